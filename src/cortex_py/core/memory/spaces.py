"""The spaces of a caller, the namespaces in them, and the state of their vectors.

A space is the store's unit of isolation. Records of the domain `project` belong to the space of their project, those of
`user` to that of the person, those of `org` to that of the organisation.

Vectors of two models or two precisions are never mixed. Without a usable model, records are stored and searched by
their words, and get their vectors once the model is there. In the same way a store moves to the model that ships: the
vectors of the one that shipped before are dropped when it is opened, and the records get new ones in the background. A
large scan stores its records so, too.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from ..clock import Clock, to_micros
from ..embedding.backends.backend import Backend
from ..errors import (
    EmbeddingError,
    EmbeddingUnavailable,
    InvalidInput,
    ModelCorrupt,
    ModelMismatch,
    ModelMissing,
    UnknownNamespace,
)
from ..records import (
    DOMAINS,
    Confinement,
    Domain,
    Kind,
    Memory,
    Project,
    files_space,
    kind_space,
    org_space,
    user_space,
)
from ..security.callers import current_caller
from ..security.permission import may_read, permitted_spaces, require_write
from ..security.rights import Level
from ..store.database import Session
from ..store.rows import IndexedRecord
from ..store.search.filters import EVERYTHING, View
from ..store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..store.search.candidates import Details

__all__ = [
    "CANNOT_EMBED", "NAMESPACES", "GitState", "Namespace", "Neighbours", "Place", "canonical_domain",
    "canonical_namespace", "check_model", "defer_vectors", "deferred_spaces", "finish_space", "follow_shipped_model",
    "mark_changing", "mark_outlined", "model_problem", "moving_spaces", "outlined_spaces", "record_model",
    "report_moving", "report_words_only", "seek_readable", "set_model", "set_spaces_without_vectors", "spaces_to_lock",
    "spaces_without_vectors", "token_counter",
]  # fmt: skip


_LOCAL_USER = "local"


class GitState(Protocol):
    """What memory needs to know of the project's git repository."""

    def sync_git_state(self) -> None:
        """Apply what git did since the last call. Every use of the memory begins with it."""
        ...

    def git_branch(self) -> str | None:
        """The git branch that is checked out."""
        ...

    def confinement(self, git_branch: str) -> Confinement | None:
        """Whether records written on a git branch stay there until it is merged."""
        ...

    def stale(self, names: Iterable[str], *, unsure: bool = False) -> tuple[str, ...]:
        """The branches among these that were deleted without being merged; with `unsure`, perhaps merged ones too."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """The project and the person. `own_user`, `own_agent` and `own_org` apply where no caller is bound."""

    project: Project
    own_user: str | None
    own_agent: str | None
    own_org: str
    git: GitState

    def sync_git_state(self) -> None:
        self.git.sync_git_state()

    def git_branch(self) -> str | None:
        return self.git.git_branch()

    @property
    def user_id(self) -> str | None:
        caller = current_caller()
        return caller.user if caller else self.own_user

    @property
    def agent_id(self) -> str | None:
        caller = current_caller()
        return caller.agent if caller else self.own_agent

    @property
    def org(self) -> str:
        caller = current_caller()
        return caller.org if caller else self.own_org

    def space(self, domain: Domain, kind: Kind = "note") -> str:
        """The name of a space, whether or not the caller may read it."""
        if domain == "user":
            return user_space(self.user_id or _LOCAL_USER)
        if domain == "org":
            return org_space(self.org)
        return kind_space(self.project.id, kind)

    def writable_space(self, domain: Domain, kind: Kind = "note") -> str:
        """A space to write to; `AccessDenied` if the caller may not."""
        space = self.space(domain, kind)
        require_write(space)
        return space

    def view(self, now: int) -> View:
        """What the caller sees: the readable spaces, and of git branches the one that is checked out."""
        return View(self.spaces(), now, self.git_branch())

    def spaces(self, level: Level = "read") -> tuple[str, ...]:
        """The spaces of the project, the person and the organisation in which the caller has this level."""
        return permitted_spaces((self.space(domain) for domain in DOMAINS), level)


def canonical_domain(text: str) -> Domain:
    """The domain that a text names; `global` means `user`."""
    wanted = text.strip().lower()
    for domain in DOMAINS:
        if wanted == domain or (wanted == "global" and domain == "user"):
            return domain
    raise InvalidInput(f"Unknown domain {text[:40]!r}.", remedy=f"Choose one of {', '.join(DOMAINS)}.", field="domain")


@dataclass(frozen=True, slots=True)
class Namespace:
    """A kind of memory; `signal_words` are words that people use for it."""

    name: str
    description: str
    signal_words: tuple[str, ...]


NAMESPACES: tuple[Namespace, ...] = tuple(
    Namespace(name, description, tuple(words.split(", ")))
    for name, description, words in (
        ("decisions", "Architectural and design decisions", "decided, chose, going with"),
        ("patterns", "Discovered patterns and conventions", "always, never, convention"),
        ("learnings", "Insights gained from mistakes, experiments and debugging", "learned, realized, turns out"),
        ("context", "Background that explains why things are as they are", "because, background, for context"),
        ("tech-debt", "Shortcuts taken and clean-up still owed", "todo, workaround, refactor later"),
        ("blockers", "What stands in the way of the work", "blocked by, waiting on, stuck"),
        ("progress", "What is finished, under way or next", "completed, in progress, next step"),
        ("apis", "Endpoints, contracts and how to call them", "endpoint, request, response"),
        ("config", "Settings, environments and how things are set up", "configured, setting, env var"),
        ("security", "Threats, safeguards and how access is controlled", "vulnerability, permission, authentication"),
        ("testing", "How the work is tested and what the tests showed", "test case, coverage, flaky"),
        ("performance", "Measurements, bottlenecks and tuning", "latency, slow, benchmark"),
        ("prompts", "Wording for language models that is worth keeping", "prompt, template, instruct"),
    )
)

_ALIASES: dict[str, str] = {"techdebt": "tech-debt", "tech_debt": "tech-debt"}

_NAMES = tuple(namespace.name for namespace in NAMESPACES)


def canonical_namespace(text: str) -> str:
    """The namespace that a text names; case and surrounding space do not matter."""
    spelled = text.strip().lower()
    name = _ALIASES.get(spelled, spelled)
    if name not in _NAMES:
        from difflib import get_close_matches

        near = get_close_matches(name[:80], _NAMES, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise UnknownNamespace(
            f"There is no namespace {text[:80]!r}.",
            remedy=f"{meant}Use one of: {', '.join(_NAMES)}.",
            field="namespace",
        )
    return name


logger = logging.getLogger(__name__)

# What a backend raises while its model is missing, damaged or behind an endpoint that is away. Words work without it.
CANNOT_EMBED = (ModelMissing, ModelCorrupt, EmbeddingUnavailable)

_KEY = "embedding"
_MISSING = "spaces_without_vectors"
_MOVING = "spaces_with_moving_vectors"
_OUTLINED = "spaces_with_outlines"
# What ships, and the fingerprints of what shipped before. A later version of it that is not named here is not touched:
# two versions of Cortex would otherwise take turns in computing all vectors of a store.
_SHIPPED = "cortex-recall"
_BEFORE = ("all-MiniLM-L6-v2:", "cortex-recall:dd9ffb721d7a:")
_UNFINISHED = "a reindex to "


def check_model(store: Store, session: Session, backend: Backend, *, claim: bool = False) -> None:
    """Refuse a backend other than that of the stored vectors; `claim` records it in a store without vectors."""
    stored = store.settings.get(session, _KEY)
    if stored is None:
        if claim:
            # Spaces that wait for vectors go on waiting for those of this model.
            store.settings.put(session, _KEY, backend.fingerprint)
        return
    _check_same(store, stored, backend)


def _check_same(store: Store, stored: str, backend: Backend) -> None:
    if stored != backend.fingerprint:
        raise ModelMismatch(
            f"The stored vectors were made by {stored}, the configured model is {backend.fingerprint}.",
            remedy="Run `cortex reindex` to recompute them, or set the former model again.",
        )
    store.known_model = stored


def _is_replaced(stored: str | None, backend: Backend) -> bool:
    """Whether the model that shipped before made the vectors, and the backend is the one that ships."""
    return backend.model_name == _SHIPPED and (stored or "").removeprefix(_UNFINISHED).startswith(_BEFORE)


def moving_spaces(store: Store, session: Session, backend: Backend, spaces: Iterable[str]) -> frozenset[str]:
    """The spaces that are to be searched by words, because their vectors move to the model that ships.

    Where the move has not begun these are the given `spaces`. Raises ModelMismatch where another model made the
    vectors.
    """
    facts = store.settings.get_many(session, (_KEY, _MOVING))
    stored = facts.get(_KEY)
    if _is_replaced(stored, backend):
        # The store cannot be written to, or the move was not begun yet.
        return frozenset(spaces)
    # Without its model nothing is compared: the caller says so and searches by words.
    if stored is not None and not model_problem(backend):
        _check_same(store, stored, backend)
    return frozenset(json.loads(facts.get(_MOVING) or "[]"))


def follow_shipped_model(store: Store, backend: Backend) -> None:
    """Let a store with vectors of the model that shipped before wait for vectors of the one that ships.

    The former vectors go in one transaction, so vectors of the two models are never compared. `fill_vectors` computes
    the new ones, batch by batch. A space is searched by words until all its records have theirs: a record without a
    vector would rank behind all that have one.
    """
    # The fingerprint of another backend may take long to compute.
    if backend.model_name != _SHIPPED or model_problem(backend):
        return
    with store.database.read() as session:
        if not _is_replaced(store.settings.get(session, _KEY), backend):
            return
    with store.database.write() as session:
        # Another process may have been faster.
        if _is_replaced(store.settings.get(session, _KEY), backend):
            store.memories.drop_vectors(session)
            set_model(store, session, backend)
            spaces = store.memories.spaces(session)
            set_spaces_without_vectors(store, session, spaces)
            store.settings.put(session, _MOVING, json.dumps(spaces))
            _set_outlined(store, session, frozenset())
            logger.info("the vectors move to %s in the background", backend.fingerprint)


def model_problem(backend: Backend) -> EmbeddingError | None:
    """Why the model cannot be used; None if its files are there."""
    try:
        assert backend.fingerprint
    except CANNOT_EMBED as error:
        return error
    return None


def token_counter(backend: Backend) -> Callable[[str], int]:
    """What counts the tokens of a text: the model's vocabulary, or where it is missing an estimate, rather too many."""
    return _estimate_tokens if model_problem(backend) else backend.count_tokens


def _estimate_tokens(text: str) -> int:
    return len(text) // 2 + 1


def report_moving(backend: Backend, *, outlined: bool = False) -> str:
    """The note for a caller whose text was searched by words while the vectors move.

    `outlined`: files were also searched by the meaning of their first parts.
    """
    reason = f"vectors of the model {backend.model_name} are being computed in the background."
    _log_once(reason)
    searched = "Files were searched by words and by what they begin with" if outlined else "Searched by words only"
    return f"{searched}: {reason}"


def report_words_only(error: EmbeddingError) -> str:
    """The note for a caller whose text was searched by words alone."""
    _log_once(error.message)
    return f"Searched by words only: {error}"


@lru_cache(maxsize=16)
def _log_once(reason: str) -> None:
    logger.info("working with words only: %s", reason)


def record_model(store: Store, session: Session, backend: Backend, records: Iterable[IndexedRecord]) -> None:
    """Record which model made the vectors of new records, and which spaces wait for vectors.

    Called in the transaction that stores the records.
    """
    waiting = {one.space for one in records if any(chunk.vector is None for chunk in one.chunks)}
    if waiting:
        set_spaces_without_vectors(store, session, [*spaces_without_vectors(store, session), *waiting])
    else:
        check_model(store, session, backend, claim=True)


def defer_vectors(store: Store, session: Session, space: str) -> None:
    """Let a space be searched by words until `fill_vectors` has computed what is missing there.

    Called in the transaction that stores records without vectors.
    """
    moving = json.loads(store.settings.get(session, _MOVING) or "[]")
    if space not in moving:
        store.settings.put(session, _MOVING, json.dumps(sorted((*moving, space))))
    _set_outlined(store, session, outlined_spaces(store, session) - {space})


def outlined_spaces(store: Store, session: Session) -> frozenset[str]:
    """Spaces in which the first part of each file has its vector, and others may wait for theirs."""
    return frozenset(json.loads(store.settings.get(session, _OUTLINED) or "[]"))


def mark_outlined(store: Store, session: Session, space: str) -> None:
    """Record that the first part of each file of a space has its vector, if that is so and others wait."""
    if space in spaces_without_vectors(store, session) and not store.memories.heads_without_vectors(session, space):
        _set_outlined(store, session, outlined_spaces(store, session) | {space})


def _set_outlined(store: Store, session: Session, spaces: frozenset[str]) -> None:
    if spaces != outlined_spaces(store, session):
        store.settings.put(session, _OUTLINED, json.dumps(sorted(spaces)))


def deferred_spaces(store: Store, session: Session) -> list[str]:
    """Spaces whose chunks are right as they are and wait for their vectors."""
    moving = set(json.loads(store.settings.get(session, _MOVING) or "[]"))
    return [one for one in spaces_without_vectors(store, session) if one in moving and one.endswith(files_space(""))]


def spaces_to_lock(store: Store, backend: Backend, records: Sequence[IndexedRecord]) -> tuple[str, ...]:
    """The spaces of new records; none, which is the whole store, if `record_model` may have something to record."""
    if any(chunk.vector is None for one in records for chunk in one.chunks):
        return ()
    return tuple({one.space for one in records}) if store.known_model == backend.fingerprint else ()


def mark_changing(store: Store, session: Session, backend: Backend) -> None:
    """Lock the store for all models while its vectors change from one model to another."""
    if store.settings.get(session, _KEY) not in (None, backend.fingerprint):
        store.settings.put(session, _KEY, f"a reindex to {backend.fingerprint} that is not finished")


def set_model(store: Store, session: Session, backend: Backend) -> None:
    store.settings.put(session, _KEY, backend.fingerprint)
    store.settings.put(session, _MOVING, "[]")
    _set_outlined(store, session, frozenset())


def spaces_without_vectors(store: Store, session: Session) -> list[str]:
    """Spaces in which records may lack their vectors."""
    return [str(space) for space in json.loads(store.settings.get(session, _MISSING) or "[]")]


def finish_space(store: Store, session: Session, space: str) -> None:
    """Record that all records of a space have their vectors."""
    left = [one for one in spaces_without_vectors(store, session) if one != space]
    set_spaces_without_vectors(store, session, left)
    moving = json.loads(store.settings.get(session, _MOVING) or "[]")
    if space in moving:
        store.settings.put(session, _MOVING, json.dumps([one for one in moving if one != space]))
    _set_outlined(store, session, outlined_spaces(store, session) - {space})


def set_spaces_without_vectors(store: Store, session: Session, spaces: Sequence[str]) -> None:
    store.settings.put(session, _MISSING, json.dumps(sorted(set(spaces))))


def seek_readable(store: Store, session: Session, spaces: Sequence[str], memory_id: str) -> tuple[int, str] | None:
    """Number and space of a readable record by its full id; the given spaces are tried first."""
    found = store.memories.locate(session, spaces, memory_id)
    return found if found and may_read(found[1]) else None


class Neighbours:
    """The notes nearest to a memory by plain cosine, which does not depend on what else is stored."""

    def __init__(self, store: Store, backend: Backend, clock: Clock, place: Place) -> None:
        self._store = store
        self._backend = backend
        self._clock = clock
        self._place = place

    def near(self, memory: Memory, count: int, text: str | None = None) -> list[tuple[Memory, float]]:
        """Other visible notes of the memory's own space with their cosines, nearest first.

        They are near to the memory as stored, or to `text` in its place. Without a usable model none are known.
        """
        if model_problem(self._backend):
            return []
        # Imported on first use: it imports NumPy.
        from ..store.search.vectors import single_threaded

        try:
            written = None if text is None else self._backend.embed([text])[0]
        except CANNOT_EMBED:
            return []
        with self._store.database.read() as session:
            check_model(self._store, session, self._backend)
            stored = seek_readable(self._store, session, self._place.spaces(), memory.id)
            space = stored[1] if stored else self._place.space(memory.domain)
            here = self._place.git_branch() if space in self._place.spaces() else None
            view = View((space,), to_micros(self._clock.now()), here)
            scope = self._store.scope(session, EVERYTHING, view)
            if written is None:
                if stored is None:
                    return []
                written = self._store.vectors(session, (space,), [stored[0]])[0]
            with single_threaded():
                details = self._store.search.nearest(session, scope, written, count + 1)
                if not details.size:
                    return []
                nums, cosines = _nearest(details, written, count + 1)
            memories = self._store.memories.fetch(session, nums, (space,))
        found = [(memories[num], cosine) for num, cosine in zip(nums, cosines, strict=True) if num in memories]
        return [(one, cosine) for one, cosine in found if one.id != memory.id][:count]


def _nearest(details: Details, vector: NDArray[np.float32], count: int) -> tuple[list[int], list[float]]:
    """The numbers of the nearest records and the best cosine among the chunks of each, nearest first."""
    import numpy as np

    starts = np.searchsorted(details.chunk_record, np.arange(details.size))
    best = np.maximum(np.maximum.reduceat(details.vectors @ vector, starts), np.float32(-1.0))
    order = np.lexsort((details.nums, -best))[:count]
    return details.nums[order].tolist(), best[order].tolist()
