"""`cortex graph …`: what memories speak of, how it hangs together, and pictures of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..errors import InvalidInput
from ..graph.values import ENTITY_TYPES, RELATIONSHIP_TYPES, Entity, Relationship
from .options import common, open_cortex, read_text
from .picture import drawn, format_for, is_picture, write_drawing
from .show import print_json, print_table

__all__ = ["graph_command"]


@click.group("graph")
def graph_command() -> None:
    """The knowledge graph: entities, relationships, ways between them, pictures.

    ENTITY is an id, a name or another spelling of it.
    """


@graph_command.command("entities")
@click.option("--type", "kind", type=click.Choice(ENTITY_TYPES, case_sensitive=False), help="Only of this type.")
@click.option("--prefix", default="", help="Only names that begin so.")
@click.option("-l", "--limit", type=int, default=50, show_default=True)
@click.option("--offset", type=int, default=0)
@common
def entities_command(
    kind: str | None, prefix: str, limit: int, offset: int, home: str | None, project: str, as_json: bool
) -> None:
    """List entities by name."""
    with open_cortex(home, project) as cortex:
        found, total = cortex.graph.entities(type=kind, prefix=prefix, limit=limit, offset=offset)
    if as_json:
        print_json({"entities": found, "total": total})
        return
    print_table(("id", "name", "type", "mentions"), [_row(one) for one in found], wide=1)
    click.echo(f"{len(found)} of {total}")


@graph_command.command("get")
@click.argument("entity")
@common
def get_command(entity: str, home: str | None, project: str, as_json: bool) -> None:
    """Show an entity, where it is mentioned, and what holds for it."""
    with open_cortex(home, project) as cortex:
        view = cortex.graph.get(entity)
    if as_json:
        print_json(view)
        return
    one = view.entity
    click.secho(f"{one.name}  {one.type}  {one.id}", bold=True)
    if one.aliases:
        click.echo(f"also: {', '.join(one.aliases)}")
    if one.properties:
        click.echo(json.dumps(one.properties, ensure_ascii=False))
    print_table(
        ("relationship", "from", "to", "confidence", "id"), [_fact(fact) for fact in view.relationships], wide=1
    )
    for mention in view.mentions:
        click.echo(f"in {mention.memory_id} at {mention.start} ({mention.method}, {mention.confidence:.2f})")


@graph_command.command("create")
@click.argument("name")
@click.option("--type", "kind", required=True, type=click.Choice(ENTITY_TYPES, case_sensitive=False))
@click.option("--property", "properties", multiple=True, help="NAME=VALUE; repeat for several.")
@common
def create_command(
    name: str, kind: str, properties: tuple[str, ...], home: str | None, project: str, as_json: bool
) -> None:
    """Create an entity, or give one that exists more properties."""
    with open_cortex(home, project) as cortex:
        made = cortex.graph.create(name, kind, properties=_pairs(properties))
    if as_json:
        print_json(made)
    else:
        click.echo(made.id)


@graph_command.command("delete")
@click.argument("entity")
@common
def delete_command(entity: str, home: str | None, project: str, as_json: bool) -> None:
    """Remove an entity with its mentions and relationships; memories stay."""
    with open_cortex(home, project) as cortex:
        gone = cortex.graph.delete(entity)
    if as_json:
        print_json(gone)
    else:
        click.echo(f"Removed {gone.id}.")


@graph_command.command("extract")
@click.argument("content", required=False)
@click.option("--store", is_flag=True, help="Keep what is found.")
@click.option("--min-confidence", type=float, default=0.6, show_default=True)
@common
def extract_command(
    content: str | None, store: bool, min_confidence: float, home: str | None, project: str, as_json: bool
) -> None:
    """Show what CONTENT (or standard input) names and states."""
    with open_cortex(home, project) as cortex:
        found = cortex.graph.extract(read_text(content), store=store, min_confidence=min_confidence)
    if as_json:
        print_json(found)
        return
    names = found.extraction.entities
    rows = [(one.name, one.type, f"{one.confidence:.2f}", one.method) for one in names]
    print_table(("name", "type", "confidence", "found by"), rows, wide=0)
    for fact in found.extraction.relationships:
        click.echo(f"{names[fact.source].name} {fact.type} {names[fact.target].name} ({fact.confidence:.2f})")


@graph_command.command("merge")
@click.argument("entities", nargs=-1, required=True)
@click.option("--name", help="Name of the entity that stays.")
@click.option("--dry-run", is_flag=True, help="Only tell what would happen.")
@common
def merge_command(
    entities: tuple[str, ...], name: str | None, dry_run: bool, home: str | None, project: str, as_json: bool
) -> None:
    """Make one entity of several; `cortex graph unmerge` takes it back."""
    with open_cortex(home, project) as cortex:
        merged = cortex.graph.merge(entities, canonical_name=name, dry_run=dry_run)
    if as_json:
        print_json(merged)
        return
    done = "Would merge" if dry_run else "Merged"
    click.echo(f"{done} {', '.join(one.id for one in merged.merged)} into {merged.entity.id} ({merged.entity.name}).")
    if merged.merge_id:
        click.echo(merged.merge_id)


@graph_command.command("unmerge")
@click.argument("merge_id")
@common
def unmerge_command(merge_id: str, home: str | None, project: str, as_json: bool) -> None:
    """Take a merge back."""
    with open_cortex(home, project) as cortex:
        undone = cortex.graph.undo_merge(merge_id)
    if not undone:
        raise InvalidInput(f"The merge {merge_id[:80]!r} is not known, or can no longer be taken back.")
    if as_json:
        print_json({"merge_id": merge_id, "undone": undone})
    else:
        click.echo("Taken back.")


@graph_command.command("duplicates")
@click.option("-l", "--limit", type=int, default=50, show_default=True)
@common
def duplicates_command(limit: int, home: str | None, project: str, as_json: bool) -> None:
    """Show entities that are likely one."""
    with open_cortex(home, project) as cortex:
        found = cortex.graph.duplicates(limit=limit)
    if as_json:
        print_json(found)
        return
    rows = [(f"{one.confidence:.2f}", one.reason, " = ".join(one.names), " ".join(one.ids)) for one in found]
    print_table(("confidence", "reason", "names", "ids"), rows, wide=2)


@graph_command.command("orphans")
@click.option("--delete", is_flag=True, help="Remove them.")
@common
def orphans_command(delete: bool, home: str | None, project: str, as_json: bool) -> None:
    """Show entities that nothing mentions and nothing leads to."""
    with open_cortex(home, project) as cortex:
        found = cortex.graph.orphans(delete=delete)
    if as_json:
        print_json({"orphans": found, "deleted": delete})
        return
    for one in found:
        click.echo(f"{one.id}  {one.name}")
    click.echo(f"{len(found)} {'removed' if delete else 'found'}")


@graph_command.command("relate")
@click.argument("source")
@click.argument("kind", type=click.Choice(RELATIONSHIP_TYPES, case_sensitive=False))
@click.argument("target")
@click.option("--property", "properties", multiple=True, help="NAME=VALUE; repeat for several.")
@click.option("--from", "valid_from", help="Since when it holds, such as 2026-01-31.")
@click.option("--to", "valid_to", help="Until when it held.")
@common
def relate_command(
    source: str,
    kind: str,
    target: str,
    properties: tuple[str, ...],
    valid_from: str | None,
    valid_to: str | None,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """State that SOURCE stands in a relationship to TARGET."""
    with open_cortex(home, project) as cortex:
        graph = cortex.graph
        made = graph.relate(
            source,
            target,
            kind,
            properties=_pairs(properties),
            valid_from=graph.moment(valid_from, "from") if valid_from else None,
            valid_to=graph.moment(valid_to, "to") if valid_to else None,
        )
    if as_json:
        print_json(made)
    else:
        click.echo(made.id)


@graph_command.command("relationships")
@click.option("--entity", help="Only at this entity.")
@click.option("--type", "kind", type=click.Choice(RELATIONSHIP_TYPES, case_sensitive=False))
@click.option("--as-of", help="As it was then, such as 2026-01-31 or 30d.")
@click.option("-l", "--limit", type=int, default=50, show_default=True)
@common
def relationships_command(
    entity: str | None,
    kind: str | None,
    as_of: str | None,
    limit: int,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """List relationships, the surest first."""
    with open_cortex(home, project) as cortex:
        moment = cortex.graph.moment(as_of, "as_of") if as_of else None
        found, total = cortex.graph.relationships(entity=entity, type=kind, as_of=moment, limit=limit)
    if as_json:
        print_json({"relationships": found, "total": total})
        return
    print_table(("relationship", "from", "to", "confidence", "id"), [_fact(one) for one in found], wide=1)
    click.echo(f"{len(found)} of {total}")


@graph_command.command("unrelate")
@click.argument("relationship_id")
@click.option("--to", "valid_to", help="It held until then; without it, it is taken off the record.")
@common
def unrelate_command(relationship_id: str, valid_to: str | None, home: str | None, project: str, as_json: bool) -> None:
    """End a relationship, or take it off the record."""
    with open_cortex(home, project) as cortex:
        ended = cortex.graph.moment(valid_to, "to") if valid_to else None
        gone = cortex.graph.unrelate(relationship_id, ended=ended)
    if as_json:
        print_json(gone)
    else:
        click.echo(f"Ended {gone.id}.")


@graph_command.command("infer")
@click.argument("entities", nargs=-1, required=True)
@click.option("--store", is_flag=True, help="Keep what is found.")
@click.option("--min-confidence", type=float, default=0.7, show_default=True)
@common
def infer_command(
    entities: tuple[str, ...], store: bool, min_confidence: float, home: str | None, project: str, as_json: bool
) -> None:
    """Show what memories suggest between entities, with the reason."""
    with open_cortex(home, project) as cortex:
        found = cortex.graph.infer(entities, store=store, min_confidence=min_confidence)
    if as_json:
        print_json(found)
        return
    for edge in found:
        click.echo(f"{edge.source.name} {edge.type} {edge.target.name} ({edge.confidence:.2f}): {edge.evidence}")


@graph_command.command("neighbors")
@click.argument("entity")
@click.option("--depth", type=int, default=1, show_default=True, help="1 to 3.")
@common
def neighbors_command(entity: str, depth: int, home: str | None, project: str, as_json: bool) -> None:
    """Show what is near an entity."""
    with open_cortex(home, project) as cortex:
        start, found = cortex.graph.neighbors(entity, depth=depth)
    if as_json:
        print_json({"entity": start, "neighbors": found})
        return
    rows = [(str(one.distance), one.entity.name, one.entity.type, one.step.edge.type) for one in found]
    print_table(("hops", "name", "type", "by"), rows, wide=1)


@graph_command.command("path")
@click.argument("source")
@click.argument("target")
@click.option("--max-hops", type=int, default=5, show_default=True)
@common
def path_command(source: str, target: str, max_hops: int, home: str | None, project: str, as_json: bool) -> None:
    """Show the shortest way between two entities."""
    with open_cortex(home, project) as cortex:
        way = cortex.graph.path(source, target, max_hops=max_hops)
    if as_json:
        print_json(way)
    elif not way.found:
        click.echo(f"There is no way of at most {max_hops} hops.")
    else:
        for step in way.steps:
            arrow = f"-{step.edge.type}->" if step.forward else f"<-{step.edge.type}-"
            click.echo(f"{step.from_id} {arrow} {step.to_id}")


@graph_command.command("stats")
@common
def stats_command(home: str | None, project: str, as_json: bool) -> None:
    """Count what the graph holds."""
    with open_cortex(home, project) as cortex:
        stats = cortex.graph.stats()
    if as_json:
        print_json(stats)
        return
    click.echo(f"{stats.entities} entities, {stats.relationships} relationships, {stats.mentions} mentions")
    rows = [*stats.by_entity_type.items(), *stats.by_relationship_type.items()]
    print_table(("type", "count"), [(name, str(count)) for name, count in rows])


@graph_command.command("visualize")
@click.option("--entity", help="Only what lies around it.")
@click.option("--type", "kinds", multiple=True, type=click.Choice(ENTITY_TYPES, case_sensitive=False))
@click.option("--depth", type=int, default=2, show_default=True)
@click.option("-l", "--limit", type=int, default=50, show_default=True)
@click.option("--format", "form", type=click.Choice(["mermaid", "dot", "json"]), help="Default: by the file's name.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="File to write; .svg, .png, .pdf need Graphviz.")
@common
def visualize_command(
    entity: str | None,
    kinds: tuple[str, ...],
    depth: int,
    limit: int,
    form: str | None,
    output: str | None,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Draw the graph. A picture is written where Graphviz is installed, and Mermaid where it is not."""
    place = Path(output) if output else None
    picture = is_picture(place)
    usual = format_for(place) if place else "json" if as_json else "mermaid"
    asked: dict[str, Any] = {"entity": entity, "entity_types": kinds, "depth": depth, "limit": limit}
    with open_cortex(home, project) as cortex:
        text = cortex.graph.visualize(format="dot" if picture else form or usual, **asked)
        if picture and place is not None and not drawn(text, place):
            text, place, picture = cortex.graph.visualize(**asked), place.with_suffix(".mmd"), False
            click.echo("Graphviz, which draws pictures, did not run; Mermaid is written instead.", err=True)
    if place is None:
        click.echo(text)
        return
    if not picture:
        write_drawing(text, place)
    click.echo(str(place))


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
