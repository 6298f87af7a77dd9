"""What `/api/v1` takes and answers."""

from __future__ import annotations

import re
from datetime import datetime
from difflib import SequenceMatcher
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..records import Domain, Hit, Kind, Memory, Status, Version

__all__ = [
    "Brief", "CheckRequest", "CheckedClaim", "CheckedText", "ClaimEvidence", "Contradicting", "Deleted",
    "DiffPart", "EntityLink", "Facet", "Facets", "FacetsQuery", "Given", "Health", "HealthCheck", "History",
    "LineOfWork", "LineSummary", "LinesOfWork", "MemoryChange", "MemoryPage", "MemoryPurge", "MemoryQuery",
    "MemoryView", "NextSession", "NextSessionQuery", "OutboundView", "ReviewDecision", "ReviewOutcome",
    "SearchQuery", "SearchResult", "SearchResults", "TextPart", "UncheckedText", "VersionView", "text_parts",
    "word_difference",
]  # fmt: skip

_LONGEST_QUERY = 10_000
_MOST_RESULTS = 100
_LONGEST_BRIEF = 160
_LONGEST_ANSWER = 100_000
_MOST_VERSIONS = 100
_MOST_WORDS = 4_000
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TextPart(_Model):
    """A piece of a text; `match` says whether it is a word of the query."""

    text: str
    match: bool = False


def text_parts(text: str, marks: list[tuple[int, int]]) -> list[TextPart]:
    """A text cut where its marks begin and end."""
    parts, at = [], 0
    for start, end in marks:
        if start > at:
            parts.append(TextPart(text=text[at:start]))
        parts.append(TextPart(text=text[start:end], match=True))
        at = end
    if at < len(text) or not parts:
        parts.append(TextPart(text=text[at:]))
    return parts


class MemoryView(_Model):
    """A memory as the page shows it."""

    id: str
    content: str
    namespace: str
    domain: Domain
    kind: Kind
    status: Status
    tags: list[str]
    summary: str | None
    category: str | None
    role: str | None
    source: str | None
    path: str | None
    symbol: str | None
    first_line: int | None
    last_line: int | None
    git_branch: str | None
    branch_id: str | None = Field(description="The line of work.")
    user_id: str | None
    agent_id: str | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    superseded_by: str | None
    grounding: float | None = Field(description="The score of its last check against the project.")
    version: int

    @classmethod
    def of(cls, memory: Memory) -> MemoryView:
        given = {name: getattr(memory, name) for name in cls.model_fields}
        return cls(**{**given, "tags": list(memory.tags)})


class Brief(_Model):
    """A memory in a line."""

    id: str
    text: str
    status: Status
    created_at: datetime

    @classmethod
    def of(cls, memory: Memory) -> Brief:
        text = " ".join(memory.content[:_LONGEST_BRIEF].split())
        return cls(id=memory.id, text=text, status=memory.status, created_at=memory.created_at)


class EntityLink(_Model):
    name: str
    type: str
    mentions: int = Field(description="How many memories name it.")


class MemoryPage(_Model):
    """A memory with what it belongs to."""

    memory: MemoryView
    text: list[TextPart] = Field(description="Its content, cut at the words of the query that led here.")
    chain: list[Brief] = Field(description="It with all that it replaced and all that replaced it, oldest first.")
    conflicts: list[Brief] = Field(description="Memories that contradict it.")
    entities: list[EntityLink]
    may_change: bool = Field(description="Whether this server takes changes.")


class MemoryQuery(_Model):
    q: Annotated[str, Field(max_length=_LONGEST_QUERY)] = Field(default="", description="Words to mark.")


class MemoryChange(_Model):
    """Fields that are left out stay. With `version`, a memory that changed since is left as it is."""

    content: str | None = None
    tags: list[str] | None = None
    namespace: str | None = None
    status: Literal["active", "pending", "archived"] | None = None
    version: int | None = None


class MemoryPurge(_Model):
    confirm: str = Field(description="The id of the memory, to confirm: a purge cannot be undone.")


class Deleted(_Model):
    id: str


class DiffPart(_Model):
    change: Literal["same", "added", "removed"]
    text: str


class VersionView(_Model):
    version: int
    operation: str
    recorded_at: datetime
    namespace: str
    tags: list[str]
    difference: list[DiffPart] = Field(description="Its words against those of the version before.")


class History(_Model):
    versions: list[VersionView] = Field(description="Newest first.")

    @classmethod
    def of(cls, versions: list[Version]) -> History:
        befores = [versions[0].content, *(one.content for one in versions[:-1])] if versions else []
        shown = [
            VersionView(
                version=one.version,
                operation=one.operation,
                recorded_at=one.recorded_at,
                namespace=one.namespace,
                tags=list(one.tags),
                difference=word_difference(before, one.content),
            )
            for before, one in zip(befores, versions, strict=True)
        ]
        return cls(versions=shown[::-1][:_MOST_VERSIONS])


def word_difference(old: str, new: str) -> list[DiffPart]:
    """Two texts as words that stay, go and come. Very long ones are not compared word by word."""
    if old == new:
        return [DiffPart(change="same", text=new)]
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if len(before) + len(after) > _MOST_WORDS:
        return [DiffPart(change="removed", text=old), DiffPart(change="added", text=new)]
    found: list[DiffPart] = []
    for change, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if change == "equal":
            found.append(DiffPart(change="same", text="".join(after[k:m])))
        else:
            pieces = (("removed", "".join(before[i:j])), ("added", "".join(after[k:m])))
            found += [DiffPart(change=kind, text=text) for kind, text in pieces if text]  # type: ignore[arg-type]
    return found


class ReviewDecision(_Model):
    """`accept` makes staged memories active, `drop` deletes them, `stage` puts accepted ones back."""

    action: Literal["accept", "drop", "stage"]
    ids: list[str] = Field(min_length=1, max_length=_MOST_RESULTS)


class ReviewOutcome(_Model):
    done: list[str]
    failed: dict[str, str] = Field(description="Why others stayed as they were, by id.")


class SearchQuery(_Model):
    q: Annotated[str, Field(max_length=_LONGEST_QUERY)] = Field(
        default="", description="Words and conditions of the filter language, mixed. Empty lists the newest memories."
    )
    limit: int = Field(default=20, ge=1, le=_MOST_RESULTS)
    offset: int = Field(default=0, ge=0, le=10_000)


class SearchResult(_Model):
    memory: MemoryView
    score: float = Field(description="How likely the memory answers the query; 0 in a list without one.")
    snippet: list[TextPart]

    @classmethod
    def of(cls, hit: Hit, marks: list[tuple[int, int]]) -> SearchResult:
        return cls(memory=MemoryView.of(hit.memory), score=hit.score, snippet=text_parts(hit.snippet, marks))


class SearchResults(_Model):
    total: int
    results: list[SearchResult]
    warnings: list[str]


class FacetsQuery(_Model):
    q: Annotated[str, Field(max_length=_LONGEST_QUERY)] = Field(
        default="", description="As for a search; its conditions count, its words do not."
    )


class Facet(_Model):
    value: str
    count: int


class Facets(_Model):
    facets: dict[str, list[Facet]] = Field(description="By key of the filter language, the most frequent values.")


# -- a text checked against the project ------------------------------------------------------------


class CheckRequest(_Model):
    text: Annotated[str, Field(min_length=1, max_length=_LONGEST_ANSWER)]


class ClaimEvidence(_Model):
    place: str = Field(description="The place in one line, as people read it.")
    path: str | None
    line: int | None


class CheckedClaim(_Model):
    text: str
    verdict: str
    probability: float = Field(description="How likely the claim is true.")
    reason: str
    evidence: list[ClaimEvidence]


class UncheckedText(_Model):
    text: str
    reason: str


class Contradicting(_Model):
    left: str
    right: str
    reason: str
    source: str


class CheckedText(_Model):
    score: float
    status: str
    message: str
    claims: list[CheckedClaim]
    unchecked: list[UncheckedText]
    contradictions: list[Contradicting]


# -- lines of work, the next session, health -------------------------------------------------------


class LineOfWork(_Model):
    id: str
    topic: str
    git_branch: str | None
    status: str
    active: bool = Field(description="Whether it belongs to the branch that is checked out.")
    updated_at: datetime


class LinesOfWork(_Model):
    total: int
    lines: list[LineOfWork]


class LineSummary(_Model):
    """A line of work as an agent gets it."""

    id: str
    topic: str
    entries: int
    tokens: int
    text: str
    sections: dict[str, list[str]]
    left_out: int
    last_updated: datetime


class NextSessionQuery(_Model):
    prompt: Annotated[str, Field(max_length=_LONGEST_QUERY)] = Field(
        default="", description="A prompt, to see what it would bring along."
    )


class Given(_Model):
    """A text that a session is given, word by word, and the memories in it."""

    text: str
    tokens: int
    memories: list[Brief]


class NextSession(_Model):
    start: Given
    prompt: Given | None


class HealthCheck(_Model):
    name: str
    well: bool
    detail: str


class OutboundView(_Model):
    purpose: str
    host: str
    what: str


class Health(_Model):
    checks: list[HealthCheck]
    outbound: list[OutboundView] = Field(description="What is sent to other machines; empty where nothing is.")
    memories: int
    statuses: dict[str, int]
    size_bytes: int
    engine: str
