"""`cortex snapshot`: save a project in one file, look at what is there, and put it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..backup.retention import Retention
from ..clock import iso
from ..records import DOMAINS, Domain
from .options import common, open_cortex
from .show import print_json, print_table

if TYPE_CHECKING:
    from ..backup.snapshots import Snapshot

__all__ = ["snapshot_command"]

_DOMAIN = click.option(
    "--domain",
    type=click.Choice(DOMAINS),
    default="project",
    show_default=True,
    help="The project, or what belongs to the person or the organisation.",
)


@click.group("snapshot")
def snapshot_command() -> None:
    """Snapshots: all of a project in one verified file, and back."""


@snapshot_command.command("create")
@click.argument("description", required=False, default="")
@_DOMAIN
@common
def create_command(description: str, domain: Domain, home: str | None, project: str, as_json: bool) -> None:
    """Save all that is there, and read it back to be sure of it."""
    with open_cortex(home, project) as cortex:
        made = cortex.backups.create(description, domain=domain)
    if as_json:
        print_json(_as_dict(made))
        return
    click.echo(f"{made.id}: {made.counts.get('memory', 0)} memories, {made.size_bytes:,} bytes, verified.")
    click.echo(str(made.path))


@snapshot_command.command("list")
@_DOMAIN
@common
def list_command(domain: Domain, home: str | None, project: str, as_json: bool) -> None:
    """Show the snapshots that are there, newest first."""
    with open_cortex(home, project) as cortex:
        found = cortex.backups.snapshots(domain=domain)
    if as_json:
        print_json([_as_dict(one) for one in found])
    elif found:
        rows = [
            (one.id, one.kind, str(one.counts.get("memory", "-")), f"{one.size_bytes:,}", one.fault or one.description)
            for one in found
        ]
        print_table(("snapshot", "made", "memories", "bytes", "description"), rows, wide=4)
    else:
        click.echo("There is no snapshot yet.")


@snapshot_command.command("verify")
@click.argument("snapshot_id", required=False)
@_DOMAIN
@common
def verify_command(snapshot_id: str | None, domain: Domain, home: str | None, project: str, as_json: bool) -> None:
    """Read all of a snapshot and check it; without an id, of the newest."""
    with open_cortex(home, project) as cortex:
        found = cortex.backups.verify(snapshot_id or _newest(cortex.backups.snapshots(domain=domain)), domain=domain)
    if as_json:
        print_json(_as_dict(found))
    else:
        click.echo(f"{found.id} is whole: {found.counts.get('memory', 0)} memories.")


@snapshot_command.command("restore")
@click.argument("snapshot_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_DOMAIN
@common
def restore_command(snapshot_id: str, yes: bool, domain: Domain, home: str | None, project: str, as_json: bool) -> None:
    """Put everything back to what it was then. The present state is saved first."""
    if not yes:
        click.confirm(f"Put the {domain} back to {snapshot_id}?", abort=True, err=True)
    with open_cortex(home, project) as cortex:
        done = cortex.backups.restore(snapshot_id, domain=domain)
    if as_json:
        print_json(done)
        return
    click.echo(f"Restored {done.memories} memories in {done.branches} lines of work; {done.removed} things went.")
    click.echo(f"The state before is {done.safety}.")


@snapshot_command.command("prune")
@click.option("--hourly", type=click.IntRange(0), help="Hours of which to keep one (default: the setting).")
@click.option("--daily", type=click.IntRange(0), help="Days of which to keep one (default: the setting).")
@click.option("--weekly", type=click.IntRange(0), help="Weeks of which to keep one (default: the setting).")
@click.option("--all", "everything", is_flag=True, help="Those made by hand too.")
@_DOMAIN
@common
def prune_command(
    hourly: int | None,
    daily: int | None,
    weekly: int | None,
    everything: bool,
    domain: Domain,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Remove old snapshots made by the clock or before a restore. The newest good one always stays."""
    with open_cortex(home, project) as cortex:
        settings = cortex.settings
        retention = Retention(
            settings.snapshot_keep_hourly if hourly is None else hourly,
            settings.snapshot_keep_daily if daily is None else daily,
            settings.snapshot_keep_weekly if weekly is None else weekly,
        )
        gone = cortex.backups.prune(retention, everything=everything, domain=domain)
    if as_json:
        print_json({"removed": gone})
    else:
        click.echo("\n".join(f"Removed {one}." for one in gone) or "Nothing to remove.")


def _newest(found: list[Snapshot]) -> str:
    if not found:
        raise click.UsageError("There is no snapshot yet.")
    return found[0].id


def _as_dict(one: Snapshot) -> dict[str, object]:
    return {
        "snapshot_id": one.id,
        "path": str(one.path),
        "created_at": iso(one.created_at),
        "description": one.description,
        "kind": one.kind,
        "size_bytes": one.size_bytes,
        "verified": one.verified,
        "documents": dict(one.counts),
        "fault": one.fault or None,
    }
