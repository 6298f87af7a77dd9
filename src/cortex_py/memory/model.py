"""Which model made the store's vectors. Vectors of two models, or two precisions, are never mixed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..embedding.backend import Backend
from ..errors import ModelMismatch
from ..store.database import Session
from ..store.store import Store

__all__ = [
    "check_model",
    "mark_changing",
    "set_model",
    "set_spaces_without_vectors",
    "spaces_without_vectors",
]

_KEY = "embedding"
_MISSING = "spaces_without_vectors"


def check_model(store: Store, session: Session, backend: Backend, *, claim: bool = False) -> None:
    """Refuse a backend that is not the one of the stored vectors; `claim` marks a store that has none."""
    stored = store.settings.get(session, _KEY)
    if stored is None:
        if claim:
            set_model(store, session, backend)
        return
    if stored != backend.fingerprint:
        raise ModelMismatch(
            f"The stored vectors were made by {stored}, the configured model is {backend.fingerprint}.",
            remedy="Run `cortex reindex` to compute them anew, or set the former model again.",
        )


def mark_changing(store: Store, session: Session, backend: Backend) -> None:
    """Close the store to all models while its vectors change from one to another."""
    if store.settings.get(session, _KEY) not in (None, backend.fingerprint):
        store.settings.put(session, _KEY, f"a reindex to {backend.fingerprint} that is not finished")


def set_model(store: Store, session: Session, backend: Backend) -> None:
    store.settings.put(session, _KEY, backend.fingerprint)


def spaces_without_vectors(store: Store, session: Session) -> list[str]:
    """Spaces in which records may wait for their vectors."""
    return [str(space) for space in json.loads(store.settings.get(session, _MISSING) or "[]")]


def set_spaces_without_vectors(store: Store, session: Session, spaces: Sequence[str]) -> None:
    store.settings.put(session, _MISSING, json.dumps(sorted(set(spaces))))
