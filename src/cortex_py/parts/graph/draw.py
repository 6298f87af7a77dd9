"""Draws the graph as Mermaid, Graphviz DOT or JSON, safely for any name.

Drawings shorten names to one line; JSON has them in full. Nodes are numbered, so that no id is read as syntax, and an
edge is drawn only between two drawn nodes.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from ...core.clock import iso
from ...core.graph_values import Entity, EntityType, Relationship

__all__ = ["as_json", "dot", "mermaid"]

Drawing = Callable[..., str]

LIMIT = 50
_LABEL = 60
# With its default settings Mermaid shows an error above 500 edges or 50,000 characters.
_MERMAID_EDGES = 500
_MERMAID_NODE_CHARACTERS = 30_000

_SHAPES: dict[str, tuple[str, str]] = {
    "Person": ("([", "])"),
    "Organization": ("[[", "]]"),
    "Technology": ("[", "]"),
    "Concept": ("(", ")"),
    "File": ("[/", "/]"),
}
_DOT_SHAPES = {"Person": "ellipse", "Organization": "box3d", "Technology": "box", "Concept": "hexagon", "File": "note"}
# Joiners are part of emoji and some scripts; other invisible characters only mislead.
_JOINERS = "\u200c\u200d"
_PLAIN = re.compile(r"[A-Za-z0-9 /,.@()-]|(?<=[A-Za-z0-9])_(?=[A-Za-z0-9])|[^\x00-\x7f]")
_LIST_SIGN = re.compile(r"(\d+(?=[.)])|(?=[-]))(.)")


@dataclass(frozen=True, slots=True)
class _Picture:
    nodes: tuple[Entity, ...]
    edges: tuple[Relationship, ...]
    left_out: int


def _drawing(write: Callable[[_Picture], str]) -> Drawing:
    def draw(
        entities: Iterable[Entity],
        relationships: Iterable[Relationship],
        *,
        limit: int = LIMIT,
        types: Collection[EntityType] = (),
        centre: str | None = None,
    ) -> str:
        return write(_select(entities, relationships, limit, types, centre))

    return draw


@_drawing
def mermaid(picture: _Picture) -> str:
    """A Mermaid flowchart."""
    lines, numbers, size = ["flowchart LR"], dict[str, str](), 0
    for entity in picture.nodes:
        opening, closing = _SHAPES.get(entity.type, ("[", "]"))
        line = f'  n{len(numbers)}{opening}"{_mermaid_label(entity.name)}"{closing}'
        size += len(line) + 1
        if size > _MERMAID_NODE_CHARACTERS:
            break
        numbers[entity.id] = f"n{len(numbers)}"
        lines.append(line)
    drawn = [edge for edge in picture.edges if edge.source_id in numbers and edge.target_id in numbers]
    lines += [
        f'  {numbers[edge.source_id]} -->|"{_mermaid_label(edge.type)}"| {numbers[edge.target_id]}'
        for edge in drawn[:_MERMAID_EDGES]
    ]
    return "\n".join(lines) + "\n"


@_drawing
def dot(picture: _Picture) -> str:
    """A Graphviz digraph."""
    numbers = {entity.id: f"n{i}" for i, entity in enumerate(picture.nodes)}
    lines = ["digraph graph_of_entities {", "  rankdir=LR;", '  charset="UTF-8";']
    lines += [
        f'  {numbers[entity.id]} [label="{_dot_label(entity.name)}", shape={_DOT_SHAPES.get(entity.type, "box")}];'
        for entity in picture.nodes
    ]
    lines += [
        f'  {numbers[edge.source_id]} -> {numbers[edge.target_id]} [label="{_dot_label(edge.type)}"];'
        for edge in picture.edges
    ]
    return "\n".join([*lines, "}"]) + "\n"


@_drawing
def as_json(picture: _Picture) -> str:
    """Nodes and edges with their ids; `left_out` is how many entities the limit cut off."""
    nodes = [{"id": one.id, "name": one.name, "type": one.type, "mentions": one.mention_count} for one in picture.nodes]
    edges = [
        {
            "id": edge.id,
            "source": edge.source_id,
            "target": edge.target_id,
            "type": edge.type,
            "confidence": edge.confidence,
            "valid_from": iso(edge.valid_from) if edge.valid_from else None,
            "valid_to": iso(edge.valid_to) if edge.valid_to else None,
        }
        for edge in picture.edges
    ]
    whole = {"nodes": nodes, "edges": edges, "left_out": picture.left_out}
    # A lone surrogate cannot be encoded.
    return json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace").decode()


def _select(
    entities: Iterable[Entity],
    relationships: Iterable[Relationship],
    limit: int,
    types: Collection[EntityType],
    centre: str | None,
) -> _Picture:
    """The entities to draw, the most important first, and one edge for each fact between them.

    The order is by distance from the centre, then by edges, then by mentions. The centre is drawn whatever its type.
    """
    nodes = {one.id: one for one in entities if not types or one.type in types or one.id == centre}
    best: dict[tuple[str, str, str], Relationship] = {}
    for edge in sorted(relationships, key=lambda one: (-one.confidence, one.id)):
        if edge.source_id in nodes and edge.target_id in nodes:
            best.setdefault((edge.source_id, edge.target_id, edge.type), edge)
    beside: dict[str, list[str]] = {one: [] for one in nodes}
    for source, target, _ in best:
        beside[source].append(target)
        beside[target].append(source)
    far = _distances(centre, beside) if centre in nodes else {}
    order = sorted(
        nodes.values(),
        key=lambda one: (far.get(one.id, len(nodes)), -len(beside[one.id]), -one.mention_count, one.name, one.id),
    )
    shown = {one.id: place for place, one in enumerate(order[: max(0, limit)])}
    edges = [edge for edge in best.values() if edge.source_id in shown and edge.target_id in shown]
    # The surest edges come first, in case not all can be drawn.
    return _Picture(tuple(order[: max(0, limit)]), tuple(edges), len(nodes) - len(shown))


def _distances(centre: str | None, beside: dict[str, list[str]]) -> dict[str, int]:
    far, frontier = {centre or "": 0}, [centre or ""]
    while frontier:
        ring = list(dict.fromkeys(other for one in frontier for other in beside[one] if other not in far))
        distance = far[frontier[0]] + 1
        far.update(dict.fromkeys(ring, distance))
        frontier = ring
    return far


# -- labels ------------------------------------------------------------------------------------------


def _shorten(name: str) -> str:
    """A name on one line, shortened, without invisible characters."""
    # Long names are cut before the slow part; invisible characters are rarely more than half.
    kept = "".join(map(_visible, name[: 4 * _LABEL]))
    line = " ".join(kept.split())
    if len(line) > _LABEL or len(name) > 4 * _LABEL:
        line = line[: _LABEL - 1].rstrip(" " + _JOINERS) + "…"
    return line or "(unnamed)"


def _visible(sign: str) -> str:
    if sign in _JOINERS:
        return sign
    category = unicodedata.category(sign)
    if category == "Cs" or ord(sign) & 0xFFFE == 0xFFFE:
        return "\ufffd"
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "" if category == "Cf" else sign


def _mermaid_label(name: str) -> str:
    """A name as a quoted label: every character that Mermaid or Markdown could interpret is escaped."""
    text = _shorten(name)
    listed = _LIST_SIGN.match(text)
    signs = [
        sign if _PLAIN.match(text, i) and not (listed and listed.start(2) == i) else f"#{ord(sign)};"
        for i, sign in enumerate(text)
    ]
    return "".join(signs)


def _dot_label(name: str) -> str:
    # Graphviz interprets backslashes and HTML entities in labels.
    return _shorten(name).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
