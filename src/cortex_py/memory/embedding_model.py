"""The embedding model of the store's vectors. Vectors of two models or two precisions are never mixed.

Without a usable model, records are stored and searched by their words, and get their vectors once the model is there.
In the same way a store moves to the model that ships: the vectors of the one that shipped before are dropped when it
is opened, and the records get new ones in the background. A large scan stores its records so, too.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from ..embedding.backends.backend import Backend
from ..errors import EmbeddingError, EmbeddingUnavailable, ModelCorrupt, ModelMismatch, ModelMissing
from ..records import files_space
from ..store.database import Session
from ..store.rows import IndexedRecord
from ..store.store import Store

__all__ = [
    "CANNOT_EMBED",
    "check_model",
    "defer_vectors",
    "deferred_spaces",
    "finish_space",
    "follow_shipped_model",
    "mark_changing",
    "mark_outlined",
    "model_problem",
    "moving_spaces",
    "outlined_spaces",
    "record_model",
    "report_moving",
    "report_words_only",
    "set_model",
    "set_spaces_without_vectors",
    "spaces_to_lock",
    "spaces_without_vectors",
    "token_counter",
]

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
    if stored is not None:
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
