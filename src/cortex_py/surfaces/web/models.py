"""What `/api/v1` takes and answers."""

from __future__ import annotations

import re
from datetime import date, datetime
from difflib import SequenceMatcher
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from ...core.records import Domain, Hit, Kind, Memory, Status, Version

__all__ = [
    "Brief", "CheckRequest", "CheckedClaim", "CheckedMemory", "CheckedText", "ClaimEvidence", "ClientView",
    "Contradicting", "DayCount", "Deleted", "DiffPart", "EntityLink", "Facet", "Facets", "FacetsQuery", "Given",
    "Health", "HealthCheck", "History", "LineOfWork", "LineSummary", "LinesOfWork", "MemoryChange", "MemoryPage",
    "MemoryPurge", "MemoryQuery", "MemoryView", "NextSession", "NextSessionQuery", "OutboundView", "PageModel",
    "ReviewDecision", "ReviewOutcome", "SearchQuery", "SearchResult", "SearchResults", "SignalsView", "TextPart",
    "UncheckedText", "UsesView", "VerifiedClaim", "VersionView", "text_parts", "word_difference",
]  # fmt: skip

_LONGEST_QUERY = 10_000
_MOST_RESULTS = 100
_LONGEST_BRIEF = 160
_LONGEST_ANSWER = 100_000
_MOST_VERSIONS = 100
_MOST_WORDS = 4_000
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


class PageModel(BaseModel):
    """What is not declared is refused."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def from_record(cls, record: object, **given: Any) -> Self:
        """The fields that a record has under the same name, and what is `given` for the others."""
        shared = {name: getattr(record, name) for name in cls.model_fields if name not in given}
        return cls.model_validate({**shared, **given}, from_attributes=True)


class TextPart(PageModel):
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


class MemoryView(PageModel):
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


class Brief(PageModel):
    """A memory in a line."""

    id: str
    text: str
    status: Status
    namespace: str
    tags: list[str]
    version: int
    created_at: datetime

    @classmethod
    def of(cls, memory: Memory) -> Brief:
        text = " ".join(memory.content[:_LONGEST_BRIEF].split())
        given = {name: getattr(memory, name) for name in ("id", "status", "namespace", "version", "created_at")}
        return cls(**given, text=text, tags=list(memory.tags))


class EntityLink(PageModel):
    name: str
    type: str
    mentions: int = Field(description="How many memories name it.")


class UsesView(PageModel):
    """Where a memory was used."""

    recalls: int
    last_recalled_at: datetime | None
    sessions: int = Field(description="Sessions of the last two weeks that the hooks gave it to.")
    last_given_at: datetime | None


class VerifiedClaim(PageModel):
    text: str
    verdict: str
    evidence: str


class CheckedMemory(PageModel):
    """The result of the last check of a memory against its project."""

    score: float
    status: str
    claims: list[VerifiedClaim]


class MemoryPage(PageModel):
    """A memory with what it belongs to."""

    memory: MemoryView
    text: list[TextPart] = Field(description="Its content, cut at the words of the query that led here.")
    chain: list[Brief] = Field(description="It with all that it replaced and all that replaced it, oldest first.")
    conflicts: list[Brief] = Field(description="Memories that contradict it.")
    entities: list[EntityLink]
    uses: UsesView
    check: CheckedMemory | None
    may_change: bool = Field(description="Whether this server takes changes.")


class MemoryQuery(PageModel):
    q: Annotated[str, Field(max_length=_LONGEST_QUERY)] = Field(default="", description="Words to mark.")


class MemoryChange(PageModel):
    """Fields that are left out stay. With `version`, a memory that changed since is left as it is."""

    content: str | None = None
    tags: list[str] | None = None
    namespace: str | None = None
    status: Literal["active", "pending", "archived"] | None = None
    version: int | None = None


class MemoryPurge(PageModel):
    confirm: str = Field(description="The id of the memory, to confirm: a purge cannot be undone.")


class Deleted(PageModel):
    id: str


class DiffPart(PageModel):
    change: Literal["same", "added", "removed"]
    text: str


class VersionView(PageModel):
    version: int
    operation: str
    recorded_at: datetime
    namespace: str
    tags: list[str]
    difference: list[DiffPart] = Field(description="Its words against those of the version before.")


class History(PageModel):
    versions: list[VersionView] = Field(description="Newest first.")

    @classmethod
    def of(cls, versions: list[Version]) -> History:
        befores = [versions[0].content, *(one.content for one in versions[:-1])] if versions else []
        shown = [
            VersionView.from_record(one, difference=word_difference(before, one.content))
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


class ReviewDecision(PageModel):
    """`accept` makes staged memories active, `drop` deletes them, `stage` puts accepted ones back."""

    action: Literal["accept", "drop", "stage"]
    ids: list[str] = Field(min_length=1, max_length=_MOST_RESULTS)


class ReviewOutcome(PageModel):
    done: list[str]
    failed: dict[str, str] = Field(description="Why others stayed as they were, by id.")


class SearchQuery(PageModel):
    q: Annotated[str, Field(max_length=_LONGEST_QUERY)] = Field(
        default="", description="Words and conditions of the filter language, mixed. Empty lists the newest memories."
    )
    limit: int = Field(default=20, ge=1, le=_MOST_RESULTS)
    offset: int = Field(default=0, ge=0, le=10_000)


class SignalsView(PageModel):
    """What speaks for a result: the cosine of its meaning, the share of the query's words, and whether it is near."""

    meaning: float
    words: float
    near: bool = Field(description="Of the current line of work, or one that it came from.")
    named: bool = Field(description="The query names who wrote it, or somebody in it.")


class SearchResult(PageModel):
    memory: MemoryView
    score: float = Field(description="How likely the memory answers the query; 0 in a list without one.")
    signals: SignalsView | None
    snippet: list[TextPart]

    @classmethod
    def of(cls, hit: Hit, marks: list[tuple[int, int]]) -> SearchResult:
        return cls.from_record(hit, memory=MemoryView.of(hit.memory), snippet=text_parts(hit.snippet, marks))


class SearchResults(PageModel):
    total: int
    found: str = Field(
        description="In words: how many memories there are, or fit the words of the query. Empty on further pages."
    )
    results: list[SearchResult]
    warnings: list[str]


class FacetsQuery(PageModel):
    q: Annotated[str, Field(max_length=_LONGEST_QUERY)] = Field(
        default="", description="As for a search. With words, the memories that fit are counted, 100 at most."
    )


class Facet(PageModel):
    value: str
    count: int


class Facets(PageModel):
    facets: dict[str, list[Facet]] = Field(description="By key of the filter language, the most frequent values.")


# -- a text checked against the project ------------------------------------------------------------


class CheckRequest(PageModel):
    text: Annotated[str, Field(min_length=1, max_length=_LONGEST_ANSWER)]


class ClaimEvidence(PageModel):
    place: str = Field(description="The place in one line, as people read it.")
    path: str | None
    line: int | None


class CheckedClaim(PageModel):
    text: str
    verdict: str
    probability: float = Field(description="How likely the claim is true.")
    reason: str
    evidence: list[ClaimEvidence]


class UncheckedText(PageModel):
    text: str
    reason: str


class Contradicting(PageModel):
    left: str
    right: str
    reason: str
    source: str


class CheckedText(PageModel):
    score: float
    status: str
    message: str
    claims: list[CheckedClaim]
    unchecked: list[UncheckedText]
    contradictions: list[Contradicting]


# -- lines of work, the next session, health -------------------------------------------------------


class LineOfWork(PageModel):
    id: str
    topic: str
    git_branch: str | None
    status: str
    active: bool = Field(description="Whether it belongs to the branch that is checked out.")
    updated_at: datetime


class LinesOfWork(PageModel):
    total: int
    lines: list[LineOfWork]


class LineSummary(PageModel):
    """A line of work as an agent gets it."""

    id: str
    topic: str
    entries: int
    tokens: int
    text: str
    sections: dict[str, list[str]]
    left_out: int
    last_updated: datetime
    staged: list[Brief] = Field(description="Memories that stay on its git branch until that is merged.")
    pending: list[Brief] = Field(description="Memories of its git branch that wait for a review.")


class NextSessionQuery(PageModel):
    prompt: Annotated[str, Field(max_length=_LONGEST_QUERY)] = Field(
        default="", description="A prompt, to see what it would bring along."
    )


class Given(PageModel):
    """A text that a session is given, word by word, and the memories in it."""

    text: str
    tokens: int
    memories: list[Brief]


class NextSession(PageModel):
    start: Given
    prompt: Given | None


class HealthCheck(PageModel):
    name: str
    well: bool
    detail: str


class ClientView(PageModel):
    """An AI client: whether it is on this machine, and what of Cortex its files have."""

    name: str
    key: str
    installed: bool
    server: bool
    hooks: bool


class DayCount(PageModel):
    day: date
    count: int


class OutboundView(PageModel):
    purpose: str
    host: str
    what: str


class Health(PageModel):
    checks: list[HealthCheck]
    outbound: list[OutboundView] = Field(description="What is sent to other machines; empty where nothing is.")
    memories: int
    statuses: dict[str, int]
    size_bytes: int
    engine: str
    model: str | None
    growth: list[DayCount] = Field(description="Captured memories of the last 90 days on which there were any.")
    recall_ms: list[float] = Field(description="How long the last searches in this process took, oldest first.")
    clients: list[ClientView]
    sync: bool = Field(description="Whether a target for sync is set.")
