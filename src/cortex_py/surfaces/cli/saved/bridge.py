"""`cortex bridge`: folders that are kept in step with the memories, both ways."""

from __future__ import annotations

import click

from ....core.records import DOMAINS, Domain
from ....parts.backup.bridges.service import BridgeResult
from ..options import CommandSession, group, with_session
from ..output import print_json, say

__all__ = ["bridge_command"]

_SHOWN = 20
_COUNTS = (
    ("taken", "new in the folder"),
    ("changed", "changed in the folder"),
    ("deleted", "deleted in the folder"),
    ("written", "written to the folder"),
    ("removed", "removed from the folder"),
)


@group("bridge")
def bridge_command() -> None:
    """Bridges: a vault of notes, or the memory folder of Claude Code, in step with the memory."""


@bridge_command.command("add")
@click.argument("kind", type=click.Choice(["vault", "claude-code"]))
@click.argument("folder", required=False)
@click.option("--domain", type=click.Choice(DOMAINS), default="project", show_default=True, help="Whose memories.")
@click.option("--dry-run", is_flag=True, help="Register the folder, and only tell what a sync would do.")
@with_session
def add_command(kind: str, folder: str | None, domain: Domain, dry_run: bool, session: CommandSession) -> None:
    """Register FOLDER and bring it into step; for claude-code it can be left out."""
    with session.open(needs_model=True) as cortex:
        made = cortex.bridges.add(kind, folder, domain=domain)
        done = cortex.bridges.sync(made.id, dry_run=dry_run)
    _show(done, session)


@bridge_command.command("sync")
@click.argument("folder", required=False)
@click.option("--allow-deletes", is_flag=True, help="Delete the memories of a folder that lost most of its files.")
@click.option("--dry-run", is_flag=True, help="Only tell what would happen.")
@with_session
def sync_command(folder: str | None, allow_deletes: bool, dry_run: bool, session: CommandSession) -> None:
    """Bring all bridges of the project into step, or one by its folder or id."""
    with session.open(needs_model=True) as cortex:
        done = cortex.bridges.sync(folder, allow_deletes=allow_deletes, dry_run=dry_run)
    _show(done, session)


@bridge_command.command("list")
@with_session
def list_command(session: CommandSession) -> None:
    """Show the bridges of the project."""
    with session.open() as cortex:
        found = cortex.bridges.all()
    session.show_table(
        found,
        ("bridge", "kind", "domain", "folder"),
        [(one.id, one.kind, one.domain, one.folder) for one in found],
        wide=3,
        empty="There is no bridge yet. Make one: cortex bridge add vault FOLDER",
    )


@bridge_command.command("remove")
@click.argument("folder")
@with_session
def remove_command(folder: str, session: CommandSession) -> None:
    """Keep FOLDER no longer in step; its files and all memories stay."""
    with session.open() as cortex:
        removed = cortex.bridges.remove(folder)
    if session.as_json:
        print_json(removed)
    else:
        say(f"{removed.folder} is no longer kept in step. Its files and all memories stay.")


def _show(done: list[BridgeResult], session: CommandSession) -> None:
    if session.shown_as_json(done):
        return
    if not done:
        say("There is no bridge yet. Make one: cortex bridge add vault FOLDER")
    for one in done:
        moved = [f"{count} {words}" for name, words in _COUNTS if (count := getattr(one, name))]
        would = "would be " if one.dry_run else ""
        say(f"{one.folder}: {', '.join(f'{would}{part}' for part in moved) if moved else 'in step'}")
        for path in one.conflicts[:_SHOWN]:
            say(f"changed on both sides, both kept: {path}", err=True)
        for line in (*one.notes, *(f"left out: {line}" for line in one.left_out[:_SHOWN])):
            say(line, err=True)
        if len(one.left_out) > _SHOWN:
            say(f"… and {len(one.left_out) - _SHOWN} more; --json shows all.", err=True)
