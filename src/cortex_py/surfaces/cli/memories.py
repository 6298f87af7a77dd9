"""Commands on memories: capture, recall, get, update, delete, restore, history."""

from __future__ import annotations

from dataclasses import replace

import click

from ...core.clock import iso
from ...core.errors import InvalidInput
from ...core.records import DOMAINS, MODES, STATUSES
from .input import confirm, read_text
from .options import CommandSession, command, with_session
from .output import (
    SHORT_ID,
    counted,
    hit_as_dict,
    memory_as_dict,
    note,
    print_json,
    print_memories,
    print_table,
    print_warnings,
    say,
    score_colour,
    shorten,
)
from .progress import watched

__all__ = [
    "capture_command",
    "delete_command",
    "get_command",
    "history_command",
    "recall_command",
    "restore_command",
    "update_command",
]

_TAGS_HELP = "A tag; repeat for several."


@command("capture")
@click.argument("content", required=False)
@click.option("-n", "--namespace", default="context", show_default=True, help="Kind of memory.")
@click.option("-t", "--tag", "tags", multiple=True, help=_TAGS_HELP)
@click.option("-s", "--source", help="File or address it comes from.")
@click.option("--domain", type=click.Choice([*DOMAINS, "global"]), default="project", show_default=True)
@click.option("--branch", "branch_id", help="Id of a line of work.")
@click.option("--ttl", help="Time to live, such as 30d.")
@click.option("--supersedes", metavar="ID", help="A memory that it takes the place of.")
@with_session
def capture_command(
    content: str | None,
    namespace: str,
    tags: tuple[str, ...],
    source: str | None,
    domain: str,
    branch_id: str | None,
    ttl: str | None,
    supersedes: str | None,
    session: CommandSession,
) -> None:
    """Remember CONTENT, or standard input when it is missing or "-"."""
    text = read_text(content)
    with session.open(needs_model=True) as cortex, watched("Embedding", "texts", session):
        memory = cortex.memories.capture(
            text,
            namespace=namespace,
            tags=tags,
            source=source,
            domain=domain,  # type: ignore[arg-type]  # one of the choices above
            branch_id=branch_id,
            ttl=ttl,
            supersedes=supersedes,
        )
        indexed = cortex.memories.index_note(memory)
        conflicts = cortex.memories.conflicts(memory)
    if session.shown_as_json(memory_as_dict(memory, conflicts)):
        return
    say(memory.id)
    for other in conflicts:
        say(f"Contradicts {other.memory_id[:SHORT_ID]} ({other.reason}).", err=True)
    if indexed:
        note(indexed)
    if memory.redactions:
        say(f"Redacted before storing: {', '.join(memory.redactions)}.", err=True)
    if memory.personal:
        say(f"Holds personal data: {', '.join(kind for kind, _ in memory.personal)}.", err=True)
    if memory.duplicate_of:
        say(f"The same text is already in {memory.duplicate_of}.", err=True)


@command("recall")
@click.argument("query", required=False)
@click.option("-f", "--filter", "filter_text", default="", help='Such as "ns:decisions since:7d -tag:draft".')
@click.option("-n", "--namespace", help="Only this namespace.")
@click.option("-d", "--domain", type=click.Choice(DOMAINS), help="Only this domain.")
@click.option("-m", "--mode", type=click.Choice(MODES), default="hybrid", show_default=True)
@click.option("-l", "--limit", type=int, help="Most results (default: 10, or 50 when listing).")
@click.option("--offset", type=int, default=0, help="Skip this many.")
@click.option("--min-score", type=float, help="Leave out weaker hits (0 to 1; without it, those that round to 0.00).")
@click.option("--prefer-newer", is_flag=True, help="Of several hits on one subject, the newest first.")
@click.option("--full", is_flag=True, help="Show whole contents.")
@click.option("--expand", is_flag=True, help="Add memories tied to the hits through the graph; without filters only.")
@with_session
def recall_command(
    query: str | None,
    filter_text: str,
    namespace: str | None,
    domain: str | None,
    mode: str,
    limit: int | None,
    offset: int,
    min_score: float | None,
    prefer_newer: bool,
    full: bool,
    expand: bool,
    session: CommandSession,
) -> None:
    """Search by meaning and words for QUERY; list the newest when it is missing."""
    if expand and (filter_text or namespace or domain or not query):
        # What is tied to a hit may be outside the filter.
        raise InvalidInput("--expand goes with a query alone.", remedy="Leave the filters out.", field="expand")
    # A list needs no model.
    with session.open(needs_model=bool(query) and mode != "text") as cortex:
        page = cortex.memories.recall(
            query,
            filter=filter_text,
            namespace=namespace,
            domain=domain,  # type: ignore[arg-type]  # one of the choices above
            mode=mode,  # type: ignore[arg-type]  # one of the choices above
            limit=limit,
            offset=offset,
            min_score=min_score,
            prefer_newer=prefer_newer or None,
        )
        if expand:
            page = replace(page, results=(*page.results, *cortex.graph.expand(page.results)))
    if session.as_json:
        results = [hit_as_dict(hit) for hit in page.results]
        print_json({"results": results, "total": page.total, "warnings": page.warnings})
        return
    print_warnings([f"Note: {warning}" for warning in page.warnings])
    rows = [
        (
            hit.memory.id[:SHORT_ID],
            *((f"{hit.score:.2f}",) if query else ()),
            iso(hit.memory.created_at)[:10],
            hit.memory.namespace,
            (f"(outdated by {hit.outdated_by[:SHORT_ID]}) " if hit.outdated_by else "")
            + (hit.memory.content if full else hit.snippet),
        )
        for hit in page.results
    ]
    columns = ("id", *(("score",) if query else ()), "date", "namespace", "memory")
    print_table(
        columns,
        rows,
        wide=len(columns) - 1,
        empty=_nothing_found(page.total, query, filtered=bool(filter_text or namespace or domain or min_score)),
        tint={1: score_colour} if query else None,
    )
    if rows:
        note(f"{len(rows)} of {counted(page.total, 'memory')}")


def _nothing_found(total: int, query: str | None, *, filtered: bool) -> str:
    if total:
        return f"All {counted(total, 'memory')} come before this offset."
    if filtered:
        return "No memory fits the filter. Leave a part of it out."
    return "No memory fits. Try other words." if query else "There is no memory yet. Try: cortex capture TEXT"


@command("get")
@click.argument("memory_id")
@click.option("--chain", is_flag=True, help="With all that it replaced and all that replaced it, oldest first.")
@with_session
def get_command(memory_id: str, chain: bool, session: CommandSession) -> None:
    """Show the memory with MEMORY_ID: an id, a unique prefix, or an address."""
    with session.open() as cortex:
        memories = cortex.memories.chain(memory_id) if chain else [cortex.memories.get(memory_id)]
    if session.as_json:
        dicts = [memory_as_dict(memory) for memory in memories]
        print_json(dicts if chain else dicts[0])
        return
    print_memories(memories)


@command("update")
@click.argument("memory_id")
@click.option("-c", "--content", help='New content; "-" reads standard input.')
@click.option("-t", "--tag", "tags", multiple=True, help=_TAGS_HELP + " Replaces all tags.")
@click.option("--clear-tags", is_flag=True, help="Remove all tags.")
@click.option("-n", "--namespace", help="New namespace.")
@click.option("-s", "--source", help="New source.")
@click.option("--status", type=click.Choice([s for s in STATUSES if s != "tombstoned"]), help="New status.")
@click.option("--ttl", help="New time to live, such as 30d.")
@with_session
def update_command(
    memory_id: str,
    content: str | None,
    tags: tuple[str, ...],
    clear_tags: bool,
    namespace: str | None,
    source: str | None,
    status: str | None,
    ttl: str | None,
    session: CommandSession,
) -> None:
    """Change a memory. The former version stays in its history."""
    with session.open(needs_model=True) as cortex:
        memory = cortex.memories.update(
            memory_id,
            content=read_text(content) if content is not None else None,
            tags=tags if tags or clear_tags else None,
            namespace=namespace,
            source=source,
            status=status,  # type: ignore[arg-type]  # one of the choices above
            ttl=ttl,
        )
    session.show(memory_as_dict(memory), f"{memory.id} is now version {memory.version}.")


@command("delete")
@click.argument("memory_id")
@click.option("--hard", is_flag=True, help="For good: no trace is left.")
@click.option("--yes", is_flag=True, help="Do not ask before --hard.")
@with_session
def delete_command(memory_id: str, hard: bool, yes: bool, session: CommandSession) -> None:
    """Delete a memory; `cortex restore` brings it back unless --hard was given."""
    with session.open() as cortex:
        if hard:
            # The newest version, which a deleted memory has too.
            newest = cortex.memories.history(memory_id)[-1]
            said = shorten(newest.content)
            confirm(f"Delete {newest.memory_id[:SHORT_ID]} ({said}) for good, with all its versions?", yes=yes)
        memory = cortex.memories.delete(memory_id, hard=hard)
    session.show(
        {"id": memory.id, "deleted": True, "hard": hard},
        f"{memory.id} is gone."
        if hard
        else f"{memory.id} is deleted; cortex restore {memory.id[:SHORT_ID]} brings it back.",
    )


@command("restore")
@click.argument("memory_id")
@with_session
def restore_command(memory_id: str, session: CommandSession) -> None:
    """Bring a deleted memory back."""
    with session.open() as cortex:
        memory = cortex.memories.restore(memory_id)
    session.show(memory_as_dict(memory), f"{memory.id} is back.")


@command("history")
@click.argument("memory_id")
@with_session
def history_command(memory_id: str, session: CommandSession) -> None:
    """Show all versions of a memory, oldest first."""
    with session.open() as cortex:
        versions = cortex.memories.history(memory_id)
    rows = [(str(v.version), iso(v.recorded_at), v.operation, v.namespace, v.content) for v in versions]
    session.show_table(
        {"versions": versions},
        ("version", "recorded", "operation", "namespace", "content"),
        rows,
        wide=4,
        empty="There is no version.",
    )
