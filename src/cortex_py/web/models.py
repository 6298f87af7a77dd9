"""What `/api/v1` takes and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ..records import Domain, Hit, Kind, Memory, Status

__all__ = ["Facet", "Facets", "FacetsQuery", "MemoryView", "SearchQuery", "SearchResult", "SearchResults", "TextPart"]

_LONGEST_QUERY = 10_000
_MOST_RESULTS = 100


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
