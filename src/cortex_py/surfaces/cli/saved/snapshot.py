"""`cortex snapshot`: save a project in one file, look at what is there, and put it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from ....core.clock import iso
from ....core.errors import StoreMissing
from ....core.records import DOMAINS, Domain
from ....parts.backup.snapshots.snapshots import Retention
from ..input import confirm
from ..options import CommandSession, group, with_session
from ..output import counted, say
from ..progress import watched

if TYPE_CHECKING:
    from ....app import Cortex
    from ....parts.backup.snapshots.snapshots import Snapshot

__all__ = ["snapshot_command"]

_DOMAIN = click.option(
    "--domain",
    type=click.Choice(DOMAINS),
    default="project",
    show_default=True,
    help="The project, or what belongs to the person or the organisation.",
)


@group("snapshot")
def snapshot_command() -> None:
    """Snapshots: all of a project in one verified file, and back."""


@snapshot_command.command("create")
@click.argument("description", required=False, default="")
@_DOMAIN
@with_session
def create_command(description: str, domain: Domain, session: CommandSession) -> None:
    """Save all that is there, and read it back to be sure of it."""
    with session.open() as cortex, watched("Saving", "documents", session):
        made = cortex.backups.create(description, domain=domain)
    if session.shown_as_json(_as_dict(made)):
        return
    say(f"{made.id}: {_memories(made)}, {made.size_bytes:,} bytes, verified.")
    say(str(made.path))


@snapshot_command.command("list")
@_DOMAIN
@with_session
def list_command(domain: Domain, session: CommandSession) -> None:
    """Show the snapshots that are there, newest first."""
    with session.open() as cortex:
        found = cortex.backups.snapshots(domain=domain)
    rows = [
        (one.id, one.kind, str(one.counts.get("memory", "-")), f"{one.size_bytes:,}", one.fault or one.description)
        for one in found
    ]
    session.show_table(
        [_as_dict(one) for one in found],
        ("snapshot", "made", "memories", "bytes", "description"),
        rows,
        wide=4,
        empty="There is no snapshot yet. Make one: cortex snapshot create",
    )


@snapshot_command.command("verify")
@click.argument("snapshot_id", required=False)
@_DOMAIN
@with_session
def verify_command(snapshot_id: str | None, domain: Domain, session: CommandSession) -> None:
    """Read all of a snapshot and check it; without an id, of the newest."""
    with session.open() as cortex, watched("Checking", "documents", session):
        found = cortex.backups.verify(snapshot_id or _newest(cortex.backups.snapshots(domain=domain)), domain=domain)
    session.show(_as_dict(found), f"{found.id} is whole: {_memories(found)}.")


@snapshot_command.command("restore")
@click.argument("snapshot_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_DOMAIN
@with_session
def restore_command(snapshot_id: str, yes: bool, domain: Domain, session: CommandSession) -> None:
    """Put everything back to what it was then. The present state is saved first."""

    def ask(cortex: Cortex) -> None:
        # Checked before the question: nobody is asked about what cannot be restored.
        found = cortex.backups.verify(snapshot_id, domain=domain)
        confirm(f"Put the {domain} back to {found.id} ({_memories(found)}, {iso(found.created_at)})?", yes=yes)

    with _opened_for_restore(session, ask) as cortex, watched("Restoring", "documents", session):
        done = cortex.backups.restore(snapshot_id, domain=domain)
    if session.shown_as_json(done):
        return
    say(
        f"Restored {counted(done.memories, 'memory')} in {counted(done.branches, 'line of work')}; "
        f"{counted(done.removed, 'record')} not in the snapshot removed."
    )
    say(f"The state before is {done.safety}.")


@snapshot_command.command("prune")
@click.option("--hourly", type=click.IntRange(0), help="Hours of which to keep one (default: the setting).")
@click.option("--daily", type=click.IntRange(0), help="Days of which to keep one (default: the setting).")
@click.option("--weekly", type=click.IntRange(0), help="Weeks of which to keep one (default: the setting).")
@click.option("--all", "everything", is_flag=True, help="Those made by hand too.")
@_DOMAIN
@with_session
def prune_command(
    hourly: int | None, daily: int | None, weekly: int | None, everything: bool, domain: Domain, session: CommandSession
) -> None:
    """Remove old snapshots made by the clock or before a restore. The newest good one always stays."""
    with session.open() as cortex:
        settings = cortex.settings
        retention = Retention(
            settings.snapshot_keep_hourly if hourly is None else hourly,
            settings.snapshot_keep_daily if daily is None else daily,
            settings.snapshot_keep_weekly if weekly is None else weekly,
        )
        gone = cortex.backups.prune(retention, everything=everything, domain=domain)
    session.show({"removed": gone}, "\n".join(f"Removed {one}." for one in gone) or "Nothing to remove.")


def _opened_for_restore(session: CommandSession, ask: Callable[[Cortex], None]) -> Cortex:
    """The library, with a new store where the old one is gone; `ask` raises where nothing shall be restored."""
    missing = False
    try:
        cortex = session.open()
    except StoreMissing:
        cortex, missing = session.open(new_store=True), True
    try:
        ask(cortex)
    except BaseException:
        cortex.close()
        if missing:
            from ....core.sqlite_file import remove

            # Nothing came of it. Left there, it would hide that the store is gone.
            remove(cortex.settings.database)
        raise
    return cortex


def _newest(found: list[Snapshot]) -> str:
    if not found:
        raise click.UsageError("There is no snapshot yet. Make one: cortex snapshot create")
    return found[0].id


def _memories(one: Snapshot) -> str:
    return counted(one.counts.get("memory", 0), "memory")


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
