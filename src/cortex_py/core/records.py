"""The values that packages exchange: the memory record, projects, branches, results of a recall, saved prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Annotated, Literal

__all__ = [
    "CONFIDENCE_TAG",
    "DETAILS",
    "DOMAINS",
    "FETCHED_TAG",
    "FOUND_BY_MODEL_TAG",
    "KINDS",
    "LIVE_STATUSES",
    "MODES",
    "NEVER_INJECTED_TAG",
    "PINNED_TAG",
    "SESSION_TAG",
    "STAGED_TAG",
    "STALE_TAG",
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
    "Origin",
    "Page",
    "Project",
    "Saved",
    "SavedDomain",
    "SavedKind",
    "Signals",
    "Status",
    "Stored",
    "Variable",
    "Version",
    "files_space",
    "kind_space",
    "org_space",
    "tells_subject",
    "turns_space",
    "user_space",
]  # fmt: skip

# Where a text that is stored comes from, which decides how it is screened for secrets and personal data:
#
# - `prose`: a caller's text. The policy decides whether a secret in it is removed, refused or kept.
# - `name`: a caller's text by which something is looked up. The same, and a digest keeps names distinct.
# - `found`: a name that Cortex read in git or in a folder. Secrets are removed even if the policy refuses them.
# - `copied`: derived from such texts after screening.
# - `made`: ids, digests, states and the like that Cortex generates.
Origin = Literal["prose", "name", "found", "copied", "made"]


@dataclass(frozen=True, slots=True)
class Stored:
    """How a field of a record is stored, in the column of its name: a text has an origin.

    `exported` fields are in the documents of backups, sync and export; `front` is the name of the field in the front
    matter of a Markdown file.
    """

    origin: Origin | None = None
    exported: bool = True
    front: str | None = None


JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

Domain = Literal["project", "user", "org"]
Status = Literal["active", "pending", "archived", "superseded", "consolidated", "tombstoned"]
Mode = Literal["hybrid", "vector", "text"]
Detail = Literal["light", "medium", "everything"]
# A note that was captured, a part of a scanned file, or a turn of a conversation.
Kind = Literal["note", "file", "turn"]
KINDS: tuple[Kind, ...] = ("note", "file", "turn")
# A record is visible on its git branch only: for good, or until the branch is merged.
Confinement = Literal["isolate", "stage"]

# Tags that mean something to the hooks: what a session is given first, and what none is ever given.
PINNED_TAG = "pinned"
NEVER_INJECTED_TAG = "never-inject"
STALE_TAG = "stale"  # what the code no longer bears out

# Tags of what a session or an import left: how it came here.
STAGED_TAG = "from-session"
FOUND_BY_MODEL_TAG = "found-by-model"  # and not by the gate, so that there is no measured confidence
FETCHED_TAG = "after-fetch"  # said after a tool fetched something
CONFIDENCE_TAG = "confidence-"  # begins the tag
SESSION_TAG = "session:"  # begins the tag
_MARKS = frozenset({PINNED_TAG, NEVER_INJECTED_TAG, STALE_TAG, STAGED_TAG, FOUND_BY_MODEL_TAG, FETCHED_TAG})


def tells_subject(tag: str) -> bool:
    """Whether a tag says what a memory is about, and not how it came here or how it is treated."""
    return tag not in _MARKS and not tag.startswith((CONFIDENCE_TAG, SESSION_TAG))


# A prompt is filled in by its user, a template also by memories.
SavedKind = Literal["prompt", "template"]
# Where a saved text comes from; those that ship with Cortex belong to no domain.
SavedDomain = Literal["project", "user", "org", "builtin"]

DOMAINS: tuple[Domain, ...] = ("project", "user", "org")
STATUSES: tuple[Status, ...] = ("active", "pending", "archived", "superseded", "consolidated", "tombstoned")
LIVE_STATUSES: tuple[Status, ...] = ("active", "pending")
MODES: tuple[Mode, ...] = ("hybrid", "vector", "text")
DETAILS: tuple[Detail, ...] = ("light", "medium", "everything")


@dataclass(frozen=True, slots=True)
class Project:
    """One repository, or one folder without a repository."""

    id: str
    root: str | None
    remote: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of work in a project; its records are ordered neighbours."""

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
    """An older memory that contradicts a new one, and how they differ."""

    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What a caller captures. Only the content is required."""

    content: str
    # None: chosen by the classifier, `context` if it is not sure.
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
    # Id of the memory that this one replaces.
    supersedes: str | None = None
    # The grounding score of a check against the project.
    grounding: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The memory record, for Cortex contexts and Subcog memories alike.

    A stored field is declared here: `tables` derives its column, its screening and its place in documents and files. A
    new one also needs a step in `store/schema.sql`.
    """

    id: Annotated[str, Stored("made", exported=False)]
    domain: Annotated[Domain, Stored("made", front="domain")]
    project_id: Annotated[str | None, Stored("made")]
    branch_id: Annotated[str | None, Stored("made", front="branch")]
    namespace: Annotated[str, Stored("made", front="namespace")]
    category: Annotated[str | None, Stored("made", front="category")]
    role: Annotated[str | None, Stored("made", front="role")]
    content: Annotated[str, Stored("prose")]
    summary: Annotated[str | None, Stored("prose", front="summary")]
    tags: Annotated[tuple[str, ...], Stored("prose", front="tags")]
    source: Annotated[str | None, Stored("prose", front="source")]
    path: Annotated[str | None, Stored("name", front="path")]
    git_branch: Annotated[str | None, Stored("name", front="git_branch")]
    user_id: Annotated[str | None, Stored("name", front="user")]
    agent_id: Annotated[str | None, Stored("name", front="agent")]
    status: Annotated[Status, Stored("made", front="status")]
    created_at: Annotated[datetime, Stored(front="created")]
    updated_at: Annotated[datetime, Stored(front="updated")]
    # This and the score of a check change without the record; documents of their own have them.
    accessed_at: Annotated[datetime | None, Stored(exported=False)]
    expires_at: Annotated[datetime | None, Stored(front="expires")]
    tombstoned_at: Annotated[datetime | None, Stored(front="deleted")]
    superseded_by: Annotated[str | None, Stored("made", front="superseded_by")]
    grounding: Annotated[float | None, Stored(exported=False)]
    version: Annotated[int, Stored(front="version")]
    duplicate_of: Annotated[str | None, Stored("made", front="duplicate_of")] = None
    # Reported at capture, not stored.
    # What is done after a capture was acknowledged: "graph", the reading of names and statements.
    pending: tuple[str, ...] = field(default=(), compare=False)
    redactions: Annotated[tuple[str, ...], Stored("made", front="redactions")] = ()
    # How often each kind of personal data was found in its texts; None if not checked yet.
    personal: Annotated[tuple[tuple[str, int], ...] | None, Stored("made", exported=False)] = field(
        default=None, compare=False
    )
    kind: Annotated[Kind, Stored("made")] = "note"
    symbol: Annotated[str | None, Stored("name", front="symbol")] = None
    first_line: Annotated[int | None, Stored(front="first_line")] = None
    last_line: Annotated[int | None, Stored(front="last_line")] = None
    confinement: Annotated[Confinement | None, Stored("made", front="confinement")] = None
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """What somebody wrote about a commit: its id, when it was committed, the first line, and the rest."""

    id: str
    at: str
    subject: str
    body: str


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


@dataclass(frozen=True, slots=True)
class Signals:
    """What speaks for a result of a recall.

    `meaning` is the cosine with the query (0 without vectors), `words` the share of the query's words that it has, rare
    words counting for more. `near` says that it belongs to the current line of work or one of its ancestors, `named`
    that the query names who wrote it, or that somebody whom the query names occurs in it.
    """

    meaning: float
    words: float
    near: bool
    named: bool


@dataclass(frozen=True)
class Hit:
    """One result of a recall: the record, its calibrated score, and the passage that matched."""

    memory: Memory
    score: float
    raw_score: float
    # Takes `length`, in characters.
    passage: Callable[..., str] = field(repr=False, compare=False)
    # None in a list, and where something else than a query found it.
    signals: Signals | None = field(default=None, compare=False)
    # The id of a newer memory that gave up what this one states.
    outdated_by: str | None = field(default=None, compare=False)

    @cached_property
    def snippet(self) -> str:
        """About 200 characters around the best match; computed on first use."""
        return self.passage()


@dataclass(frozen=True, slots=True)
class Page:
    """Results in order, the total number of matches, and warnings for the caller.

    `words_only` says why meaning was not searched, if that was asked for; it is one of the warnings.
    """

    results: tuple[Hit, ...]
    total: int
    warnings: tuple[str, ...] = field(default=())
    words_only: str | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a saved text. Without a value or a default it is an error if `required`, else it is empty.

    `required` is None for a variable that nobody declared: it stays in the text until it is filled in.
    """

    name: str
    description: str | None = None
    default: JsonValue = None
    required: bool | None = True
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A version of a prompt or template. One in a file has a path and no version."""

    kind: SavedKind
    name: str
    domain: SavedDomain
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
    """The space of a project's scanned files: separate, so that they neither crowd out nor re-weigh its notes."""
    return f"{project_id}/files"


def turns_space(project_id: str) -> str:
    """The space of a project's conversations: separate for the same reason."""
    return f"{project_id}/turns"


def kind_space(project_id: str, kind: Kind) -> str:
    """The space of a project's records of one kind."""
    return {"note": project_id, "file": files_space(project_id), "turn": turns_space(project_id)}[kind]


def user_space(user: str) -> str:
    """The space of one person."""
    return f"user:{user}"


def org_space(org: str) -> str:
    """The space that an organisation shares."""
    return f"org:{org}"
