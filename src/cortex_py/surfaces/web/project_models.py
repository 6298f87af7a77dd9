"""What `/api/v1` takes and answers about a project: timeline, graph, reviews side by side, snapshots, completion."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import Field

from .models import Brief, DiffPart, MemoryView, PageModel

__all__ = [
    "Comparison", "Completion", "CompletionQuery", "Completions", "CounterpartView", "EntityMemories", "EntityQuery",
    "EventView", "EvidenceQuery", "ExcerptLine", "ExcerptView", "FactView", "Facts", "FactsQuery", "GraphEdge",
    "GraphNode", "GraphPath", "GraphPathQuery", "GraphQuery", "GraphView", "MemoryToolAnswer", "MemoryToolCall",
    "MergeRequest", "Names", "NamesQuery", "Promotion", "PromotionOutcome", "Restored", "SnapshotRequest",
    "SnapshotRestore", "SnapshotView", "SnapshotsView", "Supersession", "SyncView", "TimelineDayView", "TimelineDays",
    "TimelineEvents", "TimelineQuery", "TimelineWindowQuery",
]  # fmt: skip

_NAME = Annotated[str, Field(min_length=1, max_length=500)]
_Zone = Annotated[int, Field(ge=-1440, le=1440, description="Minutes to add to UTC: days begin at that midnight.")]
_Kinds = Annotated[
    str, Field(max_length=100, description="`memory`, `line`, `commit`, `merge`, `snapshot`, with commas; empty: all.")
]
_Types = Annotated[str, Field(max_length=100, description="Types of entities, with commas; empty: all.")]


# -- the filter language while it is typed ---------------------------------------------------------


class CompletionQuery(PageModel):
    q: Annotated[str, Field(max_length=10_000)] = Field(default="", description="The text up to the cursor.")


class Completion(PageModel):
    text: str = Field(description="What takes the place of the last word.")
    hint: str = Field(description="How many memories have it, or what a key stands for.")


class Completions(PageModel):
    word: str = Field(description="The last word, which a completion replaces.")
    completions: list[Completion]


# -- the timeline ----------------------------------------------------------------------------------


class TimelineQuery(PageModel):
    zone: _Zone = 0
    kinds: _Kinds = ""


class TimelineDayView(PageModel):
    day: date
    counts: dict[str, int] = Field(description="By kind of event.")


class TimelineDays(PageModel):
    total: int
    days: list[TimelineDayView] = Field(description="Newest first.")


class TimelineWindowQuery(TimelineQuery):
    limit: int = Field(default=50, ge=1, le=200)
    offset: int = Field(default=0, ge=0, le=10_000_000)


class EventView(PageModel):
    kind: Literal["memory", "line", "commit", "merge", "snapshot"]
    at: datetime
    id: str
    title: str
    detail: str = Field(description="The namespace, git branch, author or kind of snapshot.")
    status: str


class TimelineEvents(PageModel):
    events: list[EventView] = Field(description="Newest first.")


# -- the graph -------------------------------------------------------------------------------------


class GraphQuery(PageModel):
    centre: Annotated[str, Field(max_length=500)] = Field(
        default="", description="An entity by id or name. Empty: those that most memories name."
    )
    depth: int = Field(default=1, ge=1, le=3)
    types: _Types = ""
    limit: int = Field(default=200, ge=1, le=2_000)


class GraphNode(PageModel):
    id: str
    name: str
    type: str
    mentions: int = Field(description="How many memories name it.")


class GraphEdge(PageModel):
    source: str
    target: str
    type: str
    confidence: float


class GraphView(PageModel):
    centre: str | None
    complete: bool = Field(description="False if the limit left entities out.")
    nodes: list[GraphNode]
    edges: list[GraphEdge] = Field(description="One for each pair and type, the surest.")


class GraphPathQuery(PageModel):
    source: _NAME
    target: _NAME
    hops: int = Field(default=5, ge=1, le=10)


class GraphPath(PageModel):
    found: bool
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class FactsQuery(PageModel):
    source: _NAME
    target: _NAME


class FactView(PageModel):
    source: str
    target: str
    type: str
    confidence: float
    method: str
    evidence: str
    memory: Brief | None = Field(description="The memory that states it; none for what the project itself shows.")


class Facts(PageModel):
    facts: list[FactView]


class EntityQuery(PageModel):
    id: _NAME


class EntityMemories(PageModel):
    entity: GraphNode
    aliases: list[str]
    memories: list[Brief] = Field(description="Memories that name it, newest first.")


class NamesQuery(PageModel):
    q: Annotated[str, Field(max_length=500)] = Field(default="", description="How the name begins.")


class Names(PageModel):
    entities: list[GraphNode]


# -- a review, side by side ------------------------------------------------------------------------


class CounterpartView(PageModel):
    memory: MemoryView
    relation: Literal["repeats", "contradicts"]
    reason: str
    difference: list[DiffPart] = Field(description="The words of the staged memory against those of this one.")
    merged: str | None = Field(description="One text with the facts of both, where they say the same.")
    merged_difference: list[DiffPart] = Field(description="The merged text against this memory as it is.")


class Comparison(PageModel):
    memory: MemoryView
    counterparts: list[CounterpartView]


class MergeRequest(PageModel):
    """Give a memory the merged text; the staged one is superseded by it."""

    into: _NAME
    content: Annotated[str, Field(min_length=1)]
    version: int | None = None


class Supersession(PageModel):
    by: _NAME = Field(description="The id of the memory that takes its place.")


# -- evidence --------------------------------------------------------------------------------------


class EvidenceQuery(PageModel):
    path: Annotated[str, Field(min_length=1, max_length=4_000)]
    line: int = Field(default=1, ge=1, le=100_000_000)


class ExcerptLine(PageModel):
    number: int
    text: str


class ExcerptView(PageModel):
    path: str
    lines: list[ExcerptLine]


# -- staged on a git branch ------------------------------------------------------------------------


class Promotion(PageModel):
    """Make staged memories visible on every git branch; with `back`, confine them to theirs again."""

    ids: list[str] = Field(min_length=1, max_length=100)
    back: bool = False


class PromotionOutcome(PageModel):
    done: list[str]
    failed: dict[str, str] = Field(description="Why others stayed as they were, by id.")


# -- snapshots and sync ----------------------------------------------------------------------------


class SnapshotRequest(PageModel):
    description: Annotated[str, Field(max_length=1_000)] = ""


class SnapshotView(PageModel):
    id: str
    created_at: datetime
    description: str
    kind: str
    size_bytes: int
    verified: bool
    memories: int
    fault: str


class SnapshotsView(PageModel):
    snapshots: list[SnapshotView] = Field(description="Newest first.")


class SnapshotRestore(PageModel):
    confirm: str = Field(description="The id of the snapshot, to confirm.")


class Restored(PageModel):
    id: str
    safety: str = Field(description="The snapshot of the state before, which undoes this.")
    memories: int


class SyncView(PageModel):
    target: str
    pending: int = Field(description="Documents that wait to be pushed.")
    waiting: int = Field(description="Machines with something to pull.")
    pushes_today: int
    pulls_today: int


# -- the memory tool of Claude's API -----------------------------------------------------------------


class MemoryToolCall(PageModel):
    """The input of the tool as the model sent it; which fields a command needs is the tool's."""

    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"]
    path: str | None = None
    view_range: list[int] | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    insert_text: str | None = None
    old_path: str | None = None
    new_path: str | None = None


class MemoryToolAnswer(PageModel):
    text: str
