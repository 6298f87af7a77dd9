"""Operations of the page about a project: its timeline, its graph, and the filter language while it is typed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidInput
from ...core.memory.labels.ontology import CATEGORY_NAMES
from ...core.memory.recall.filters import FILTER_KEYS
from ...core.records import KINDS, STATUSES
from ..web import models, project_models
from .api import Operations

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["PROJECT_VIEWS", "show_days", "show_graph", "show_window"]

_MOST_COMPLETIONS = 8
_MOST_NAMES = 12
_LONGEST_NAME = 200
_AGES = ("1d", "7d", "30d", "3mo", "1y")
_KEY_HINTS = {
    "ns": "namespace", "tag": "tag", "since": "not older than", "before": "older than", "source": "source",
    "project": "another project", "branch": "git branch or line of work", "path": "file", "status": "status",
    "entity": "what it names", "category": "category", "kind": "note, file or turn", "role": "role",
    "user": "who wrote it", "agent": "through which client", "grounded": "result of a check",
    "personal": "personal data",
}  # fmt: skip
_FIXED: dict[str, Sequence[str]] = {
    "since": _AGES, "before": _AGES, "status": STATUSES, "kind": KINDS, "category": CATEGORY_NAMES,
    "grounded": ("accept", "warn", "reject", "none"), "personal": ("any",),
}  # fmt: skip
_FACETS = ("ns", "branch", "user", "agent", "project")
_WORD = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*"?)*\Z', re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[\s,"\\]')


PROJECT_VIEWS = Operations()


# -- completion ------------------------------------------------------------------------------------


@PROJECT_VIEWS.add("GET", "/complete", "complete", "What may follow in a query")
def _complete(cortex: Cortex, _id: str, asked: project_models.CompletionQuery) -> project_models.Completions:
    found = _WORD.search(asked.q)
    word = found[0] if found else ""
    sign, bare = ("-", word[1:]) if word.startswith("-") else ("", word)
    name, colon, value = bare.partition(":")
    if not colon:
        keys = [key for key in _KEY_HINTS if name and key.startswith(name.lower())]
        return project_models.Completions(
            word=word,
            completions=[project_models.Completion(text=f"{sign}{key}:", hint=_KEY_HINTS[key]) for key in keys],
        )
    key = next((one for one in _KEY_HINTS if FILTER_KEYS.get(name.lower()) == FILTER_KEYS[one]), None)
    before, _, last = value.rpartition(",")
    typed = last.strip('"').lower()
    values = _values(cortex, key, typed) if key else []
    lead = f"{sign}{name}:{before}{',' if before else ''}"
    fitting = [(text, hint) for text, hint in values if text.lower().startswith(typed) and text.lower() != typed]
    completions = [
        project_models.Completion(text=lead + _quoted(text), hint=hint) for text, hint in fitting[:_MOST_COMPLETIONS]
    ]
    return project_models.Completions(word=word, completions=completions)


def _values(cortex: Cortex, key: str, typed: str) -> list[tuple[str, str]]:
    """Values of a key that occur, the most frequent first, each with its number of memories."""
    if key == "tag":
        return [(tag, str(count)) for tag, count in cortex.memories.tags(typed, limit=_MOST_COMPLETIONS + 1)]
    if key == "entity":
        entities, _ = cortex.graph.entities(prefix=typed, limit=_MOST_COMPLETIONS + 1)
        return [(one.name, one.type) for one in entities]
    if key in _FACETS:
        counted = dict(cortex.memories.facets("", limit=100).get(key, ()))
        known = (
            [(one.name, "") for one in cortex.memories.namespaces() if one.name not in counted] if key == "ns" else []
        )
        return [*((text, str(count)) for text, count in counted.items()), *known]
    return [(text, "") for text in _FIXED.get(key, ())]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if _NEEDS_QUOTES.search(text) else text


# -- the timeline ----------------------------------------------------------------------------------


@PROJECT_VIEWS.add("GET", "/timeline", "timeline", "How much happened on each day")
def show_days(cortex: Cortex, _id: str, asked: project_models.TimelineQuery) -> project_models.TimelineDays:
    found = cortex.timeline.days(zone_minutes=asked.zone, kinds=_split(asked.kinds))
    days = [
        project_models.TimelineDayView(day=one.day, counts={str(kind): n for kind, n in one.counts.items()})
        for one in found
    ]
    return project_models.TimelineDays(total=sum(one.total for one in found), days=days)


@PROJECT_VIEWS.add("GET", "/timeline/{id}", "timelineDay", "A part of a day")
def show_window(cortex: Cortex, id: str, asked: project_models.TimelineWindowQuery) -> project_models.TimelineEvents:
    try:
        day = date.fromisoformat(id)
    except ValueError:
        raise InvalidInput(f"{id[:40]!r} is no day.", remedy="Give it as 2026-01-31.", field="id") from None
    found = cortex.timeline.window(
        day, zone_minutes=asked.zone, kinds=_split(asked.kinds), limit=asked.limit, offset=asked.offset
    )
    return project_models.TimelineEvents(events=[project_models.EventView.from_record(one) for one in found])


def _split(text: str) -> list[str]:
    return [one for part in text.split(",") if (one := part.strip())]


# -- the graph -------------------------------------------------------------------------------------


@PROJECT_VIEWS.add("GET", "/graph", "graph", "Entities and their relationships")
def show_graph(cortex: Cortex, _id: str, asked: project_models.GraphQuery) -> project_models.GraphView:
    found = cortex.graph.picture(
        entity=asked.centre or None, entity_types=_split(asked.types), depth=asked.depth, limit=asked.limit
    )
    return project_models.GraphView(
        centre=found.centre,
        complete=found.complete,
        nodes=[_node(one) for one in found.nodes],
        edges=[_edge(one) for one in found.edges],
    )


@PROJECT_VIEWS.add("GET", "/graph/path", "graphPath", "The shortest path between two entities")
def _path(cortex: Cortex, _id: str, asked: project_models.GraphPathQuery) -> project_models.GraphPath:
    way = cortex.graph.path(asked.source, asked.target, max_hops=asked.hops)
    edges = [_edge(step.edge) for step in way.steps]
    return project_models.GraphPath(
        found=way.found, nodes=[_node(one) for one in way.entities] if way.found else [], edges=edges
    )


@PROJECT_VIEWS.add("GET", "/graph/facts", "graphFacts", "The facts between two entities, and who says so")
def _facts(cortex: Cortex, _id: str, asked: project_models.FactsQuery) -> project_models.Facts:
    found = cortex.graph.facts_between(asked.source, asked.target)
    memories = cortex.memories.visible([id for _, id in found if id is not None])
    facts = [
        project_models.FactView.from_record(
            fact,
            source=fact.source_id,
            target=fact.target_id,
            memory=models.Brief.of(memories[id]) if id in memories else None,
        )
        for fact, id in found
    ]
    return project_models.Facts(facts=facts)


@PROJECT_VIEWS.add("GET", "/graph/entity", "graphEntity", "The memories that name an entity")
def _entity(cortex: Cortex, _id: str, asked: project_models.EntityQuery) -> project_models.EntityMemories:
    found = cortex.graph.get(asked.id)
    memories = cortex.memories.visible(list(dict.fromkeys(one.memory_id for one in found.mentions)))
    return project_models.EntityMemories(
        entity=_node(found.entity),
        aliases=[one for one in found.entity.aliases if one != found.entity.name],
        memories=[models.Brief.of(one) for one in memories.values()],
    )


@PROJECT_VIEWS.add("GET", "/graph/names", "graphNames", "Entities whose names begin so")
def _names(cortex: Cortex, _id: str, asked: project_models.NamesQuery) -> project_models.Names:
    entities, _ = cortex.graph.entities(prefix=asked.q.strip(), limit=_MOST_NAMES)
    return project_models.Names(entities=[_node(one) for one in entities])


def _node(entity: Any) -> project_models.GraphNode:
    return project_models.GraphNode.from_record(entity, name=entity.name[:_LONGEST_NAME], mentions=entity.mention_count)


def _edge(edge: Any) -> project_models.GraphEdge:
    return project_models.GraphEdge.from_record(edge, source=edge.source_id, target=edge.target_id)
