"""`cortex graph …`: what memories speak of, how it is related, and pictures of it."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...core.errors import InvalidInput
from ...core.graph_values import ENTITY_TYPES, RELATIONSHIP_TYPES, Entity, Relationship
from ...core.memory.consolidation.merging import METHODS
from .input import read_text
from .options import CommandSession, group, with_session
from .output import counted, note, page, print_json, print_table, print_warnings, say, score_colour

__all__ = ["graph_command"]

_log = logging.getLogger(__name__)

_DRAW_SECONDS = 60
_PICTURES = (".svg", ".png", ".pdf")
_FORMATS = {".dot": "dot", ".gv": "dot", ".json": "json"}


@group("graph")
def graph_command() -> None:
    """The knowledge graph: entities, relationships, paths between them, pictures.

    ENTITY is an id, a name or another spelling of it.
    """


@graph_command.command("entities")
@click.option("--type", "kind", type=click.Choice(ENTITY_TYPES, case_sensitive=False), help="Only of this type.")
@click.option("--prefix", default="", help="Only names that begin so.")
@click.option("-l", "--limit", type=int, default=50, show_default=True)
@click.option("--offset", type=int, default=0)
@with_session
def entities_command(kind: str | None, prefix: str, limit: int, offset: int, session: CommandSession) -> None:
    """List entities by name."""
    with session.open() as cortex:
        found, total = cortex.graph.entities(type=kind, prefix=prefix, limit=limit, offset=offset)
    if session.shown_as_json({"entities": found, "total": total}):
        return
    print_table(("id", "name", "type", "mentions"), [_row(one) for one in found], wide=1, empty="No entity fits.")
    if found:
        note(f"{len(found)} of {counted(total, 'entity')}")


@graph_command.command("get")
@click.argument("entity")
@with_session
def get_command(entity: str, session: CommandSession) -> None:
    """Show an entity, where it is mentioned, and what holds for it."""
    with session.open() as cortex:
        view = cortex.graph.get(entity)
    if session.shown_as_json(view):
        return
    one = view.entity
    say(f"{one.name}  {one.type}  {one.id}", bold=True)
    if one.aliases:
        say(f"also: {', '.join(one.aliases)}")
    if one.properties:
        say(json.dumps(one.properties, ensure_ascii=False))
    _print_facts(view.relationships, "No relationship holds for it.")
    for mention in view.mentions:
        say(f"in {mention.memory_id} at {mention.start} ({mention.method}, {mention.confidence:.2f})")


@graph_command.command("create")
@click.argument("name")
@click.option("--type", "kind", required=True, type=click.Choice(ENTITY_TYPES, case_sensitive=False))
@click.option("--property", "properties", multiple=True, help="NAME=VALUE; repeat for several.")
@with_session
def create_command(name: str, kind: str, properties: tuple[str, ...], session: CommandSession) -> None:
    """Create an entity, or give one that exists more properties."""
    with session.open() as cortex:
        made = cortex.graph.create(name, kind, properties=_pairs(properties))
    session.show(made, made.id)


@graph_command.command("delete")
@click.argument("entity")
@with_session
def delete_command(entity: str, session: CommandSession) -> None:
    """Remove an entity with its mentions and relationships; memories stay."""
    with session.open() as cortex:
        gone = cortex.graph.delete(entity)
    session.show(gone, f"Removed {gone.id}.")


_method_option = click.option(
    "--method",
    type=click.Choice(METHODS),
    default="auto",
    show_default=True,
    help="Locally, by a language model, or both.",
)


@graph_command.command("extract")
@click.argument("content", required=False)
@click.option("--store", is_flag=True, help="Keep what is found.")
@click.option("--min-confidence", type=float, default=0.6, show_default=True)
@_method_option
@with_session
def extract_command(
    content: str | None, store: bool, min_confidence: float, method: str, session: CommandSession
) -> None:
    """Show what CONTENT (or standard input) names and states."""
    with session.open() as cortex:
        found = cortex.graph.extract(read_text(content), store=store, min_confidence=min_confidence, method=method)
    if session.shown_as_json(found):
        return
    names = found.extraction.entities
    rows = [(one.name, one.type, f"{one.confidence:.2f}", one.method) for one in names]
    print_table(
        ("name", "type", "confidence", "found by"),
        rows,
        wide=0,
        empty="The text names nothing.",
        tint={2: score_colour},
    )
    for fact in found.extraction.relationships:
        say(f"{names[fact.source].name} {fact.type} {names[fact.target].name} ({fact.confidence:.2f})")
    print_warnings(found.warnings)


@graph_command.command("merge")
@click.argument("entities", nargs=-1, required=True)
@click.option("--name", help="Name of the entity that stays.")
@click.option("--dry-run", is_flag=True, help="Only tell what would happen.")
@with_session
def merge_command(entities: tuple[str, ...], name: str | None, dry_run: bool, session: CommandSession) -> None:
    """Make one entity of several; `cortex graph unmerge` takes it back."""
    with session.open() as cortex:
        merged = cortex.graph.merge(entities, canonical_name=name, dry_run=dry_run)
    if session.shown_as_json(merged):
        return
    done = "Would merge" if dry_run else "Merged"
    say(f"{done} {', '.join(one.id for one in merged.merged)} into {merged.entity.id} ({merged.entity.name}).")
    if merged.merge_id:
        say(merged.merge_id)


@graph_command.command("unmerge")
@click.argument("merge_id")
@with_session
def unmerge_command(merge_id: str, session: CommandSession) -> None:
    """Take a merge back."""
    with session.open() as cortex:
        undone = cortex.graph.undo_merge(merge_id)
    if not undone:
        raise InvalidInput(f"The merge {merge_id[:80]!r} is not known, or can no longer be taken back.")
    session.show({"merge_id": merge_id, "undone": undone}, "Taken back.")


@graph_command.command("duplicates")
@click.option("-l", "--limit", type=int, default=50, show_default=True)
@with_session
def duplicates_command(limit: int, session: CommandSession) -> None:
    """Show entities that are likely one."""
    with session.open() as cortex:
        found = cortex.graph.duplicates(limit=limit)
    rows = [(f"{one.confidence:.2f}", one.reason, " = ".join(one.names), " ".join(one.ids)) for one in found]
    empty = "No two entities are likely one."
    session.show_table(found, ("confidence", "reason", "names", "ids"), rows, wide=(1, 2, 3), empty=empty)


@graph_command.command("orphans")
@click.option("--delete", is_flag=True, help="Remove them.")
@with_session
def orphans_command(delete: bool, session: CommandSession) -> None:
    """Show entities that nothing mentions and nothing leads to."""
    with session.open() as cortex:
        found = cortex.graph.orphans(delete=delete)
    if session.shown_as_json({"orphans": found, "deleted": delete}):
        return
    print_table(("id", "name"), [(one.id, one.name) for one in found], wide=1, empty="There is no orphan.")
    if found:
        note(f"{counted(len(found), 'orphan')} {'removed' if delete else 'found'}.")


@graph_command.command("relate")
@click.argument("source")
@click.argument("kind", type=click.Choice(RELATIONSHIP_TYPES, case_sensitive=False))
@click.argument("target")
@click.option("--property", "properties", multiple=True, help="NAME=VALUE; repeat for several.")
@click.option("--from", "valid_from", help="Since when it holds, such as 2026-01-31.")
@click.option("--to", "valid_to", help="Until when it held.")
@with_session
def relate_command(
    source: str,
    kind: str,
    target: str,
    properties: tuple[str, ...],
    valid_from: str | None,
    valid_to: str | None,
    session: CommandSession,
) -> None:
    """State that SOURCE stands in a relationship to TARGET."""
    with session.open() as cortex:
        graph = cortex.graph
        made = graph.relate(
            source,
            target,
            kind,
            properties=_pairs(properties),
            valid_from=graph.moment(valid_from, "from") if valid_from else None,
            valid_to=graph.moment(valid_to, "to") if valid_to else None,
        )
    session.show(made, made.id)


@graph_command.command("relationships")
@click.option("--entity", help="Only at this entity.")
@click.option("--type", "kind", type=click.Choice(RELATIONSHIP_TYPES, case_sensitive=False))
@click.option("--as-of", help="As it was then, such as 2026-01-31 or 30d.")
@click.option("-l", "--limit", type=int, default=50, show_default=True)
@with_session
def relationships_command(
    entity: str | None, kind: str | None, as_of: str | None, limit: int, session: CommandSession
) -> None:
    """List relationships, the surest first."""
    with session.open() as cortex:
        moment = cortex.graph.moment(as_of, "as_of") if as_of else None
        found, total = cortex.graph.relationships(entity=entity, type=kind, as_of=moment, limit=limit)
    if session.shown_as_json({"relationships": found, "total": total}):
        return
    _print_facts(found, "No relationship fits.")
    if found:
        note(f"{len(found)} of {counted(total, 'relationship')}")


@graph_command.command("unrelate")
@click.argument("relationship_id")
@click.option("--to", "valid_to", help="It held until then; without it, it is taken off the record.")
@with_session
def unrelate_command(relationship_id: str, valid_to: str | None, session: CommandSession) -> None:
    """End a relationship, or take it off the record."""
    with session.open() as cortex:
        ended = cortex.graph.moment(valid_to, "to") if valid_to else None
        gone = cortex.graph.unrelate(relationship_id, ended=ended)
    session.show(gone, f"Ended {gone.id}.")


@graph_command.command("infer")
@click.argument("entities", nargs=-1, required=True)
@click.option("--store", is_flag=True, help="Keep what is found.")
@click.option("--min-confidence", type=float, default=0.7, show_default=True)
@_method_option
@with_session
def infer_command(
    entities: tuple[str, ...], store: bool, min_confidence: float, method: str, session: CommandSession
) -> None:
    """Show what memories suggest between entities, with the reason."""
    with session.open() as cortex:
        found = cortex.graph.infer(entities, store=store, min_confidence=min_confidence, method=method)
    if session.shown_as_json(found.edges):
        return
    for edge in found.edges:
        say(f"{edge.source.name} {edge.type} {edge.target.name} ({edge.confidence:.2f}): {edge.evidence}")
    if not found.edges:
        note("Memories suggest nothing between them.")
    print_warnings(found.warnings)


@graph_command.command("neighbors")
@click.argument("entity")
@click.option("--depth", type=int, default=1, show_default=True, help="1 to 3.")
@with_session
def neighbors_command(entity: str, depth: int, session: CommandSession) -> None:
    """Show what is near an entity."""
    with session.open() as cortex:
        start, found = cortex.graph.neighbors(entity, depth=depth)
    rows = [(str(one.distance), one.entity.name, one.entity.type, one.step.edge.type) for one in found]
    shown = {"entity": start, "neighbors": found}
    session.show_table(shown, ("hops", "name", "type", "by"), rows, wide=1, empty="Nothing is near it.")


@graph_command.command("path")
@click.argument("source")
@click.argument("target")
@click.option("--max-hops", type=int, default=5, show_default=True)
@with_session
def path_command(source: str, target: str, max_hops: int, session: CommandSession) -> None:
    """Show the shortest path between two entities."""
    with session.open() as cortex:
        way = cortex.graph.path(source, target, max_hops=max_hops)
    if session.as_json:
        print_json(way)
    elif not way.found:
        say(f"There is no path of at most {counted(max_hops, 'hop')}.")
    else:
        for step in way.steps:
            arrow = f"-{step.edge.type}->" if step.forward else f"<-{step.edge.type}-"
            say(f"{step.from_id} {arrow} {step.to_id}")


@graph_command.command("stats")
@with_session
def stats_command(session: CommandSession) -> None:
    """Count what the graph holds."""
    with session.open() as cortex:
        stats = cortex.graph.stats()
    if session.shown_as_json(stats):
        return
    counts = counted(stats.entities, "entity"), counted(stats.relationships, "relationship")
    note(f"{', '.join(counts)}, {counted(stats.mentions, 'mention')}")
    rows = [*stats.by_entity_type.items(), *stats.by_relationship_type.items()]
    print_table(("type", "count"), [(name, str(count)) for name, count in rows], empty="The graph is empty.")


@graph_command.command("visualize")
@click.option("--entity", help="Only what is around it.")
@click.option("--type", "kinds", multiple=True, type=click.Choice(ENTITY_TYPES, case_sensitive=False))
@click.option("--depth", type=int, default=2, show_default=True)
@click.option("-l", "--limit", type=int, default=50, show_default=True)
@click.option("--format", "form", type=click.Choice(["mermaid", "dot", "json"]), help="Default: by the file's name.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="File to write; .svg, .png, .pdf need Graphviz.")
@with_session
def visualize_command(
    entity: str | None,
    kinds: tuple[str, ...],
    depth: int,
    limit: int,
    form: str | None,
    output: str | None,
    session: CommandSession,
) -> None:
    """Draw the graph. A picture is written where Graphviz is installed, and Mermaid where it is not."""
    place = Path(output) if output else None
    picture = _is_picture(place)
    usual = _format_for(place) if place else "json" if session.as_json else "mermaid"
    asked: dict[str, Any] = {"entity": entity, "entity_types": kinds, "depth": depth, "limit": limit}
    with session.open() as cortex:
        text = cortex.graph.visualize(format="dot" if picture else form or usual, **asked)
        if picture and place is not None and not _draw(text, place):
            text, place, picture = cortex.graph.visualize(**asked), place.with_suffix(".mmd"), False
            say("Graphviz, which draws pictures, did not run; Mermaid is written instead.", err=True)
    if place is None:
        page(text)
        return
    if not picture:
        _write_drawing(text, place)
    say(str(place))


def _pairs(properties: tuple[str, ...]) -> dict[str, object]:
    found: dict[str, object] = {}
    for pair in properties:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise InvalidInput(f"{pair[:80]!r} is not NAME=VALUE.", field="property")
        found[name] = value
    return found


def _row(entity: Entity) -> tuple[str, ...]:
    return entity.id, entity.name, entity.type, str(entity.mention_count)


def _fact(fact: Relationship) -> tuple[str, ...]:
    return fact.type, fact.source_id, fact.target_id, f"{fact.confidence:.2f}", fact.id


def _print_facts(facts: Sequence[Relationship], empty: str) -> None:
    columns = ("relationship", "from", "to", "confidence", "id")
    print_table(columns, [_fact(one) for one in facts], wide=(1, 2), empty=empty, tint={3: score_colour})


def _is_picture(place: Path | None) -> bool:
    """Whether a file's name asks for a picture."""
    return place is not None and place.suffix.lower() in _PICTURES


def _format_for(place: Path) -> str:
    """What a file's name asks for where it is no picture."""
    return _FORMATS.get(place.suffix.lower(), "mermaid")


def _draw(dot: str, place: Path) -> bool:
    """Have Graphviz draw; False where it is not installed, or fails."""
    program = shutil.which("dot")
    if program is None:
        return False
    command = [program, f"-T{place.suffix[1:].lower()}", "-o", str(place)]
    try:
        done = subprocess.run(command, input=dot.encode(), capture_output=True, timeout=_DRAW_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.debug("Graphviz did not run: %s", type(error).__name__)
        return False
    if done.returncode:
        _log.debug("Graphviz ended with %s", done.returncode)
    return done.returncode == 0


def _write_drawing(text: str, place: Path) -> None:
    try:
        place.write_text(text, "utf-8")
    except OSError as error:
        raise InvalidInput(f"{place} cannot be written: {error.strerror}.", field="output") from None
