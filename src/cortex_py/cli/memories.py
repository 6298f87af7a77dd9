"""Commands on memories: capture, recall, get, update, delete, restore, history."""

from __future__ import annotations

from dataclasses import replace

import click

from ..clock import iso
from ..errors import InvalidInput
from ..records import DOMAINS, MODES, STATUSES
from .options import common, open_cortex, read_text
from .show import (
    SHORT_ID,
    hit_as_dict,
    memory_as_dict,
    print_json,
    print_memory,
    print_table,
)

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


@click.command("capture")
@click.argument("content", required=False)
@click.option("-n", "--namespace", default="context", show_default=True, help="Kind of memory.")
@click.option("-t", "--tag", "tags", multiple=True, help=_TAGS_HELP)
@click.option("-s", "--source", help="File or address it comes from.")
@click.option("--domain", type=click.Choice([*DOMAINS, "global"]), default="project", show_default=True)
@click.option("--branch", "branch_id", help="Id of a line of work.")
@click.option("--ttl", help="Time to live, such as 30d.")
@click.option("--supersedes", metavar="ID", help="A memory that it takes the place of.")
@common
def capture_command(
    content: str | None,
    namespace: str,
    tags: tuple[str, ...],
    source: str | None,
    domain: str,
    branch_id: str | None,
    ttl: str | None,
    supersedes: str | None,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Remember CONTENT, or standard input when it is missing or "-"."""
    with open_cortex(home, project) as cortex:
        memory = cortex.memories.capture(
            read_text(content),
            namespace=namespace,
            tags=tags,
            source=source,
            domain=domain,  # type: ignore[arg-type]  # one of the choices above
            branch_id=branch_id,
            ttl=ttl,
            supersedes=supersedes,
        )
    if as_json:
        print_json(memory_as_dict(memory))
        return
    click.echo(memory.id)
    for other in memory.conflicts_with:
        click.echo(f"Contradicts {other.memory_id[:SHORT_ID]} ({other.reason}).", err=True)
    if memory.redactions:
        click.echo(f"Redacted before storing: {', '.join(memory.redactions)}.", err=True)
    if memory.duplicate_of:
        click.echo(f"The same text is already in {memory.duplicate_of}.", err=True)


@click.command("recall")
@click.argument("query", required=False)
@click.option("-f", "--filter", "filter_text", default="", help='Such as "ns:decisions since:7d -tag:draft".')
@click.option("-n", "--namespace", help="Only this namespace.")
@click.option("-d", "--domain", type=click.Choice(DOMAINS), help="Only this domain.")
@click.option("-m", "--mode", type=click.Choice(MODES), default="hybrid", show_default=True)
@click.option("-l", "--limit", type=int, help="Most results (default: 10, or 50 when listing).")
@click.option("--offset", type=int, default=0, help="Skip this many.")
@click.option("--min-score", type=float, default=0.0, help="Leave out weaker hits (0 to 1).")
@click.option("--prefer-newer", is_flag=True, help="Of several hits on one subject, the newest first.")
@click.option("--full", is_flag=True, help="Show whole contents.")
@click.option("--expand", is_flag=True, help="Add memories tied to the hits through the graph; without filters only.")
@common
def recall_command(
    query: str | None,
    filter_text: str,
    namespace: str | None,
    domain: str | None,
    mode: str,
    limit: int | None,
    offset: int,
    min_score: float,
    prefer_newer: bool,
    full: bool,
    expand: bool,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Search by meaning and words for QUERY; list the newest when it is missing."""
    if expand and (filter_text or namespace or domain or not query):
        # A filter is a wall; what is tied to a hit may lie behind it.
        raise InvalidInput("--expand goes with a query alone.", remedy="Leave the filters out.", field="expand")
    with open_cortex(home, project) as cortex:
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
    if as_json:
        results = [hit_as_dict(hit) for hit in page.results]
        print_json({"results": results, "total": page.total, "warnings": page.warnings})
        return
    for warning in page.warnings:
        click.echo(f"Note: {warning}", err=True)
    rows = [
        (
            hit.memory.id[:SHORT_ID],
            f"{hit.score:.2f}" if query else iso(hit.memory.created_at)[:10],
            hit.memory.namespace,
            hit.memory.content if full else hit.snippet,
        )
        for hit in page.results
    ]
    print_table(("id", "score" if query else "date", "namespace", "memory"), rows, wide=3)
    click.echo(f"{len(rows)} of {page.total}", err=True)


@click.command("get")
@click.argument("memory_id")
@click.option("--chain", is_flag=True, help="With all that it replaced and all that replaced it, oldest first.")
@common
def get_command(memory_id: str, chain: bool, home: str | None, project: str, as_json: bool) -> None:
    """Show the memory with MEMORY_ID: an id, a unique prefix, or an address."""
    with open_cortex(home, project) as cortex:
        memories = cortex.memories.chain(memory_id) if chain else [cortex.memories.get(memory_id)]
    if as_json:
        told = [memory_as_dict(memory) for memory in memories]
        print_json(told if chain else told[0])
        return
    for memory in memories:
        print_memory(memory)


@click.command("update")
@click.argument("memory_id")
@click.option("-c", "--content", help='New content; "-" reads standard input.')
@click.option("-t", "--tag", "tags", multiple=True, help=_TAGS_HELP + " Replaces all tags.")
@click.option("--clear-tags", is_flag=True, help="Remove all tags.")
@click.option("-n", "--namespace", help="New namespace.")
@click.option("-s", "--source", help="New source.")
@click.option("--status", type=click.Choice([s for s in STATUSES if s != "tombstoned"]), help="New status.")
@click.option("--ttl", help="New time to live, such as 30d.")
@common
def update_command(
    memory_id: str,
    content: str | None,
    tags: tuple[str, ...],
    clear_tags: bool,
    namespace: str | None,
    source: str | None,
    status: str | None,
    ttl: str | None,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Change a memory. The former version stays in its history."""
    with open_cortex(home, project) as cortex:
        memory = cortex.memories.update(
            memory_id,
            content=read_text(content) if content is not None else None,
            tags=tags if tags or clear_tags else None,
            namespace=namespace,
            source=source,
            status=status,  # type: ignore[arg-type]  # one of the choices above
            ttl=ttl,
        )
    print_json(memory_as_dict(memory)) if as_json else click.echo(f"{memory.id} is now version {memory.version}.")


@click.command("delete")
@click.argument("memory_id")
@click.option("--hard", is_flag=True, help="For good: no trace is left.")
@common
def delete_command(memory_id: str, hard: bool, home: str | None, project: str, as_json: bool) -> None:
    """Delete a memory; `cortex restore` brings it back unless --hard was given."""
    with open_cortex(home, project) as cortex:
        memory = cortex.memories.delete(memory_id, hard=hard)
    if as_json:
        print_json({"id": memory.id, "deleted": True, "hard": hard})
    else:
        click.echo(f"{memory.id} is {'gone' if hard else 'deleted; restore brings it back'}.")


@click.command("restore")
@click.argument("memory_id")
@common
def restore_command(memory_id: str, home: str | None, project: str, as_json: bool) -> None:
    """Bring a deleted memory back."""
    with open_cortex(home, project) as cortex:
        memory = cortex.memories.restore(memory_id)
    print_json(memory_as_dict(memory)) if as_json else click.echo(f"{memory.id} is back.")


@click.command("history")
@click.argument("memory_id")
@common
def history_command(memory_id: str, home: str | None, project: str, as_json: bool) -> None:
    """Show all versions of a memory, oldest first."""
    with open_cortex(home, project) as cortex:
        versions = cortex.memories.history(memory_id)
    if as_json:
        print_json({"versions": versions})
        return
    rows = [(str(v.version), iso(v.recorded_at), v.operation, v.namespace, v.content) for v in versions]
    print_table(("version", "recorded", "operation", "namespace", "content"), rows, wide=4)
