"""`cortex sync`: encrypted copies in a folder, a bucket or on a server, and several machines through them."""

from __future__ import annotations

import sys

import click

from ..clock import from_micros, iso
from ..errors import InvalidInput
from .options import common, json_option, open_cortex
from .show import print_json, print_table

__all__ = ["sync_command"]


@click.group("sync")
def sync_command() -> None:
    """Sync with a folder, bucket or server, encrypted end to end: push, pull, status, passphrase."""


@sync_command.command("push")
@click.option("--whole", is_flag=True, help="Write everything anew, also what may be damaged there.")
@common
def push_command(whole: bool, home: str | None, project: str, as_json: bool) -> None:
    """Bring what changed here to the target."""
    with open_cortex(home, project) as cortex:
        done = cortex.backups.push(whole=whole)
    if as_json:
        print_json(done)
    elif done.documents:
        click.echo(f"{done.documents:,} changes, {done.uploaded_bytes:,} bytes, to {done.target} ({done.cloud_path}).")
    else:
        click.echo(f"Nothing had changed; {done.target} has all {done.total:,} documents.")


@sync_command.command("pull")
@common
def pull_command(home: str | None, project: str, as_json: bool) -> None:
    """Merge what other machines brought to the target. Where two changed the same, both are kept."""
    with open_cortex(home, project) as cortex:
        done = cortex.backups.pull()
    if as_json:
        print_json(done)
        return
    click.echo(
        f"{done.added:,} added, {done.changed:,} changed, {done.removed:,} removed from {len(done.machines)} machines "
        f"({done.downloaded_bytes:,} bytes)."
    )
    for conflict in done.conflicts:
        kept = f"; the other is kept as {conflict.kept.key}" if conflict.kept else ""
        click.echo(f"Changed on both sides: {conflict.name.kind} {conflict.name.key}{kept}.")
    for fault in done.faults:
        click.echo(f"Not read: {fault}", err=True)


@sync_command.command("status")
@common
def status_command(home: str | None, project: str, as_json: bool) -> None:
    """Show what waits here, and what other machines brought; nothing is changed."""
    with open_cortex(home, project) as cortex:
        found = cortex.backups.sync_status()
    if as_json:
        print_json(found)
        return
    click.echo(
        f"{found.target}, as machine {found.machine}; {found.pushes_today} pushes and {found.pulls_today} pulls today."
    )
    rows = [
        (
            domain,
            one.machine[:8] + (" (here)" if one.own else ""),
            iso(from_micros(one.moment)),
            f"{one.stored_bytes:,}",
            "" if one.merged else "to be pulled",
        )
        for domain, status in found.domains.items()
        for one in status.machines
    ]
    for domain, status in found.domains.items():
        if status.pending:
            click.echo(f"{domain}: {status.pending:,} to be pushed.")
    if rows:
        print_table(("what", "machine", "pushed", "bytes", ""), rows)


@sync_command.command("passphrase")
@click.option("--change", is_flag=True, help="Put a new one in the place of the one the target is encrypted under.")
@click.option("--home", type=click.Path(), help="Home folder (default: CORTEX_HOME or ~/.cortex).")
@click.option("--project", type=click.Path(), default=".", help="Project folder (default: here).")
@json_option
def passphrase_command(change: bool, home: str | None, project: str, as_json: bool) -> None:
    """Keep a passphrase in the system's keyring. It is asked for, or read from standard input, never an argument."""
    from ..backup.passphrase import keep_in_keyring

    new = _asked()
    if change:
        with open_cortex(home, project) as cortex:
            cortex.backups.change_passphrase(new)
            told = "The target opens with the new passphrase now; set it on every machine."
    else:
        keep_in_keyring(new)
        told = "Kept in the system's keyring."
    if as_json:
        print_json({"changed": change, "kept_in_keyring": not change})
    else:
        click.echo(told)


def _asked() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True))
    text = sys.stdin.readline().rstrip("\r\n")
    if not text:
        raise InvalidInput("No passphrase was given.", remedy="Give one line on standard input.", field="passphrase")
    return text
