"""The values that travel between rooms: the one record, projects, branches, results.

Nothing here reads, writes or decides; the store and the domain both speak in these types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Literal

__all__ = [
    "DETAILS",
    "DOMAINS",
    "KINDS",
    "LIVE_STATUSES",
    "MODES",
    "STATUSES",
    "Branch",
    "Confinement",
    "Contradiction",
    "Detail",
    "Domain",
    "Hit",
    "JsonValue",
    "Kind",
    "Memory",
    "Mode",
    "NewMemory",
    "Page",
    "Project",
    "Saved",
    "SavedKind",
    "Shelf",
    "Status",
    "Variable",
    "Version",
    "files_space",
    "org_space",
    "user_space",
]

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

Domain = Literal["project", "user", "org"]
Status = Literal["active", "pending", "archived", "superseded", "consolidated", "tombstoned"]
Mode = Literal["hybrid", "vector", "text"]
Detail = Literal["light", "medium", "everything"]
# What somebody said or wrote down, or a part of a file that a scan read.
Kind = Literal["note", "file"]
KINDS: tuple[Kind, ...] = ("note", "file")
# A record seen on its git branch alone: for good, or until that branch is merged.
Confinement = Literal["isolate", "stage"]

# What is saved to be filled in later: a prompt by its reader's words, a template also by memories.
SavedKind = Literal["prompt", "template"]
# Where a saved text lies; those that come with Cortex belong to no domain.
Shelf = Literal["project", "user", "org", "builtin"]

DOMAINS: tuple[Domain, ...] = ("project", "user", "org")
STATUSES: tuple[Status, ...] = ("active", "pending", "archived", "superseded", "consolidated", "tombstoned")
LIVE_STATUSES: tuple[Status, ...] = ("active", "pending")
MODES: tuple[Mode, ...] = ("hybrid", "vector", "text")
DETAILS: tuple[Detail, ...] = ("light", "medium", "everything")


@dataclass(frozen=True, slots=True)
class Project:
    """A body of work: one repository, or one folder without a repository."""

    id: str
    root: str | None
    remote: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of work inside a project; its records are neighbours in order."""

    id: str
    project_id: str
    topic: str
    parent_id: str | None
    git_branch: str | None
    status: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Contradiction:
    """An older memory that says something else of the same thing, and in what they differ."""

    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What a caller gives to be remembered. Everything but content has a sensible default."""

    content: str
    # None: `context`, unless the classifier is sure of a better one.
    namespace: str | None = "context"
    domain: Domain = "project"
    tags: tuple[str, ...] = ()
    source: str | None = None
    path: str | None = None
    branch_id: str | None = None
    git_branch: str | None = None
    category: str | None = None
    role: str | None = None
    summary: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    status: Status = "active"
    created_at: datetime | None = None
    expires_at: datetime | None = None
    idempotency_key: str | None = None
    kind: Kind = "note"
    symbol: str | None = None
    first_line: int | None = None
    last_line: int | None = None
    # Id of the memory whose place it takes.
    supersedes: str | None = None
    # How far a check against the project bears it out.
    grounding: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The one record: a Cortex context and a Subcog memory alike."""

    id: str
    domain: Domain
    project_id: str | None
    branch_id: str | None
    namespace: str
    category: str | None
    role: str | None
    content: str
    summary: str | None
    tags: tuple[str, ...]
    source: str | None
    path: str | None
    git_branch: str | None
    user_id: str | None
    agent_id: str | None
    status: Status
    created_at: datetime
    updated_at: datetime
    accessed_at: datetime | None
    expires_at: datetime | None
    tombstoned_at: datetime | None
    superseded_by: str | None
    grounding: float | None
    version: int
    duplicate_of: str | None = None
    # Told when it is captured, not kept.
    conflicts_with: tuple[Contradiction, ...] = ()
    redactions: tuple[str, ...] = ()
    kind: Kind = "note"
    symbol: str | None = None
    first_line: int | None = None
    last_line: int | None = None
    confinement: Confinement | None = None
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class Version:
    """One past or present state of a memory."""

    version: int
    content: str
    namespace: str
    tags: tuple[str, ...]
    source: str | None
    recorded_at: datetime
    operation: str
    memory_id: str


@dataclass(frozen=True)
class Hit:
    """One result of a recall: the record, its calibrated score, and the passage that matched."""

    memory: Memory
    score: float
    raw_score: float
    passage: Callable[[], str] = field(repr=False, compare=False)

    @cached_property
    def snippet(self) -> str:
        """About 200 characters around the best match; cut out when first asked for."""
        return self.passage()


@dataclass(frozen=True, slots=True)
class Page:
    """Results in order, the true total behind them, and what the caller should be told."""

    results: tuple[Hit, ...]
    total: int
    warnings: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Variable:
    """One blank of a saved text. Without a default it must be filled in, unless it is declared as not required."""

    name: str
    description: str | None = None
    default: JsonValue = None
    required: bool = True
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A prompt or template at one version. One that lies in a file has its path, and no versions of ours."""

    kind: SavedKind
    name: str
    domain: Shelf
    content: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    variables: tuple[Variable, ...] = ()
    version: int | None = None
    path: str | None = None
    uses: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    used_at: datetime | None = None
    redactions: tuple[str, ...] = ()


def files_space(project_id: str) -> str:
    """Where the scanned files of a project lie: apart, so that they can neither crowd out nor re-weigh its notes."""
    return f"{project_id}/files"


def user_space(user: str) -> str:
    """Where lies what is a person's own."""
    return f"user:{user}"


def org_space(org: str) -> str:
    """Where lies what all of an organisation share."""
    return f"org:{org}"
