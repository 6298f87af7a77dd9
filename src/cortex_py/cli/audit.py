"""`cortex audit`: what callers did, and whether the log of it still is what was written."""

from __future__ import annotations

import click

from ..clock import iso
from .options import common, open_cortex
from .show import print_json, print_table

__all__ = ["audit_command"]


@click.group("audit")
def audit_command() -> None:
    """What callers did: list, and check that the log was not changed."""


@audit_command.command("list")
@click.option("-l", "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@common
def list_command(limit: int, home: str | None, project: str, as_json: bool) -> None:
    """Show the latest events, newest first."""
    with open_cortex(home, project) as cortex:
        found = cortex.audit.list(limit)
    if as_json:
        print_json(found)
        return
    print_table(
        ["n", "when", "who", "what", "outcome", "ids"],
        [
            [
                str(entry.number),
                iso(entry.event.at),
                "/".join(filter(None, (entry.event.user, entry.event.agent))) or f"({entry.event.via})",
                entry.event.action,
                entry.event.outcome,
                " ".join(id[:12] for id in entry.event.ids),
            ]
            for entry in found
        ],
        wide=5,
    )


@audit_command.command("verify")
@click.option("--expect", help="A head that was shown earlier: it must be part of this log.")
@common
def verify_command(expect: str | None, home: str | None, project: str, as_json: bool) -> None:
    """Check every event; exit code 7 if one was changed, removed, added or moved."""
    with open_cortex(home, project) as cortex:
        found = cortex.audit.verify(expect)
    if as_json:
        print_json(found)
    else:
        click.echo(f"{found.events} events, none changed. Head: {found.head}")
