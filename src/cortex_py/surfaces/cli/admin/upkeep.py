"""Commands that look after the store: status, gc, reindex, migrate, distribute."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..input import confirm
from ..options import CommandSession, command, with_session
from ..output import SHORT_ID, counted, note, print_json, print_table, say
from ..progress import progress_bar

if TYPE_CHECKING:
    from ....core.memory.consolidation.consolidation import HygieneFinding

__all__ = ["distribute_command", "gc_command", "migrate_command", "reindex_command", "status_command"]


@command("status")
@click.option("--projects", is_flag=True, help="List all projects of this home instead.")
@with_session
def status_command(projects: bool, session: CommandSession) -> None:
    """Show what the memory holds here."""
    if projects:
        _list_projects(session)
        return
    with session.open() as cortex:
        status, apart = cortex.memories.status(), cortex.contexts.apart
        elsewhere = not status.total_count and len(cortex.contexts.projects()) > 1
    if apart:
        note(apart)
    if elsewhere:
        note("This project holds no memories yet. All projects of this home: cortex status --projects")
    if session.shown_as_json(status):
        return
    waiting = status.status_counts.get("pending", 0)
    rows = [
        ("project", f"{status.project_name} ({status.project_id})"),
        ("path", status.path or "-"),
        ("git branch", status.branch or "-"),
        ("memories", str(status.total_count)),
        ("by namespace", ", ".join(f"{name} {count}" for name, count in status.namespace_counts.items()) or "-"),
        ("by status", ", ".join(f"{name} {count}" for name, count in status.status_counts.items()) or "-"),
        *([("to be reviewed", f"{waiting}: cortex review")] if waiting else []),
        ("recent topics", ", ".join(status.recent_topics) or "-"),
        ("top tags", ", ".join(f"{tag} {count}" for tag, count in status.top_tags) or "-"),
        ("grounding", ", ".join(f"{name} {count}" for name, count in status.grounding_counts.items()) or "-"),
        ("personal data", ", ".join(f"{kind} {count}" for kind, count in status.personal_counts.items()) or "-"),
        ("store", f"{status.engine}, {status.size_bytes / 1e6:.1f} MB"),
        ("model", status.model or "none yet"),
        *([("vectors", _pending(status.pending_vectors, status.pending_outlines))] if status.pending_vectors else []),
        *(
            (
                f"{model} today",
                f"{counted(calls, 'call')} ({failed} failed), {asked:,} tokens asked, {answered:,} answered",
            )
            for model, calls, asked, answered, failed in status.llm_use
        ),
    ]
    print_table(("", ""), rows, wide=1, empty="")


def _list_projects(session: CommandSession) -> None:
    with session.open() as cortex:
        found = [(asdict(one), size) for one, size in cortex.contexts.project_sizes()]
    listed = [
        {**one, "memories": size, "is_here": bool(one["root"] and Path(one["root"]).is_dir())} for one, size in found
    ]
    rows = [
        (one["name"], one["id"], str(one["memories"]), f"{one['root'] or '-'}{'' if one['is_here'] else ' (gone)'}")
        for one in listed
    ]
    session.show_table(listed, ("project", "id", "memories", "folder"), rows, wide=3, empty="There is no project yet.")
    if not session.as_json and not all(one["is_here"] for one in listed):
        note("Memories of a project whose folder is gone are found from anywhere: cortex recall WORDS -f project:ID")


def _pending(vectors: int, outlines: int) -> str:
    first = f", first those of the beginnings of {counted(outlines, 'file')}" if outlines else ""
    return f"{vectors:,} are yet to be computed{first}"


@command("gc")
@click.option("--dry-run", is_flag=True, help="Only tell what would happen.")
@click.option("--branch", help="Only this git branch.")
@click.option("--purge", is_flag=True, help="Remove tombstones for good.")
@click.option("--older-than", help="Purge only tombstones of this age, such as 30d.")
@click.option("--suggest", is_flag=True, help="Only report what could be tidied up, with the command for it.")
@click.option("--yes", is_flag=True, help="Do not ask before --purge.")
@with_session
def gc_command(
    dry_run: bool,
    branch: str | None,
    purge: bool,
    older_than: str | None,
    suggest: bool,
    yes: bool,
    session: CommandSession,
) -> None:
    """Collect memories of deleted git branches and expired ones; with --purge remove tombstones."""
    with session.open() as cortex:
        if suggest:
            _print_findings(cortex.memories.suggest(), as_json=session.as_json)
            return
        if purge and not dry_run:
            would = cortex.memories.gc(dry_run=True, branch=branch, purge=True, older_than=older_than)
            if would.purged:
                confirm(f"Remove {counted(would.purged, 'deleted memory')} for good?", yes=yes)
        with progress_bar("Collecting", hidden=session.as_json) as progress:
            result = cortex.memories.gc(
                dry_run=dry_run, branch=branch, purge=purge, older_than=older_than, progress=progress
            )
    if session.shown_as_json(result):
        return
    say(f"Stale branches: {', '.join(result.stale_branches) or 'none'}")
    say(
        f"{'Would delete' if dry_run else 'Deleted'} {result.tombstoned} ({result.expired} expired), "
        f"{'would purge' if dry_run else 'purged'} {result.purged}."
    )


def _print_findings(found: list[HygieneFinding], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for one in found:
        # In lines of their own: a table would cut the commands where the window is narrow.
        ids = ", ".join(id[:SHORT_ID] for id in one.memories)
        say(f"{one.trouble}  {ids}", bold=True)
        say(f"  {one.reason}")
        say(f"  {one.remedy}")
    note(f"{counted(len(found), 'suggestion')}; nothing was changed." if found else "Nothing needs tidying up.")


@command("reindex")
@click.option("--repo", type=click.Path(), help="Only the memories of the project in this folder.")
@with_session
def reindex_command(repo: str | None, session: CommandSession) -> None:
    """Rebuild the text index and the vectors of the whole store with the configured model."""
    with session.open(needs_model=True) as cortex, progress_bar("Reindexing", hidden=session.as_json) as progress:
        project_id = cortex.contexts.project_at(repo).id if repo else None
        result = cortex.memories.reindex(project_id=project_id, progress=progress)
    session.show(
        {"indexed": result.indexed, "duration_ms": result.duration_ms, "status": "success"},
        f"Indexed {counted(result.indexed, 'memory')} in {result.duration_ms / 1000:.1f} s.",
    )


@command("migrate")
@click.option("--to", "place", required=True, help="postgresql://…, or `home` for the file in the home.")
@with_session
def migrate_command(place: str, session: CommandSession) -> None:
    """Copy everything into another store, and read it back to verify it. Scanned files are read again there.

    Nothing else may write meanwhile. The present store stays as it is; repeat the command if it was interrupted.
    """
    with session.open() as cortex, progress_bar("Moving", hidden=session.as_json) as progress:
        moved = cortex.move_to(None if place == "home" else place, progress)
    if session.shown_as_json(moved):
        return
    say(
        f"{counted(moved.documents.get('memory', 0), 'memory')} in "
        f"{counted(moved.spaces + moved.there_already, 'space')}, "
        f"{moved.there_already} of them there before; read back and compared."
    )
    say("Unset database_url to use it." if place == "home" else "Set database_url to use it.")


@command("distribute")
@click.option("--shards", type=click.IntRange(1, 1024), help="How many parts the store is cut into; 32 if not given.")
@click.option("--yes", is_flag=True, help="Do not ask before.")
@with_session
def distribute_command(shards: int | None, yes: bool, session: CommandSession) -> None:
    """Spread a PostgreSQL store over the workers of a Citus cluster. Stop all servers first.

    The coordinator in database_url must know its workers. All rows of a space go to one worker.
    """
    confirm("Distribute the store by space? There is no command that takes it back.", yes=yes)
    with session.open() as cortex:
        done = cortex.distribute(shards)
    moved = f"Distributed {counted(len(done.tables), 'table')}" if done.tables else "The store was distributed before"
    session.show(
        {"workers": done.workers, "tables": done.tables},
        f"{moved}, over {counted(len(done.workers), 'worker')}: {', '.join(done.workers)}.",
    )
