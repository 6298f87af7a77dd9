"""One state of a space put in the place of another: only what differs is written, in the transaction of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import BackupCorrupt
from ..store.database import Session
from ..store.document import Document
from ..store.documents import key_order
from ..store.store import Store
from .document_parts import StateDigest
from .held import Held

__all__ = ["Replaced", "replace_state", "state_of"]


class Replaced:
    """How many documents were written and how many taken away."""

    def __init__(self) -> None:
        self.written = 0
        self.removed: list[tuple[str, str]] = []


def replace_state(store: Store, session: Session, held: Held, wanted: Iterable[Document], digest: str) -> Replaced:
    """Make the space hold exactly the wanted documents, and read it all again to see that it does."""
    done = Replaced()
    seq = store.memories.next_seq(session)
    documents = store.documents
    waiting = []
    for old, new in paired(documents.scan(session, held.space), wanted):
        if new is None and old is not None:
            documents.remove(session, held.space, old.kind, old.key, seq)
            done.removed.append((old.kind, old.key))
        elif new is not None and (old is None or old.line != new.line):
            done.written += 1
            if not documents.put(session, held.space, new, seq, held.prepared):
                waiting.append(new)
    for new in waiting:
        # What had its key then is gone by now.
        documents.put(session, held.space, new, seq, held.prepared)
    held.written(session)
    found = state_of(store, session, held.space)
    if found.hexdigest() != digest:
        raise BackupCorrupt(
            "What was restored does not read back as what was saved.",
            remedy="Nothing was changed; run `cortex doctor`, and restore into an empty home.",
        )
    return done


def state_of(store: Store, session: Session, space: str) -> StateDigest:
    """The digest of a space as it is."""
    state = StateDigest()
    for document in store.documents.scan(session, space):
        state.add(document)
    return state


def paired(old: Iterable[Document], new: Iterable[Document]) -> Iterator[tuple[Document | None, Document | None]]:
    """Two ordered runs side by side: what only one has comes with None for the other."""
    olds, news = iter(old), iter(new)
    left, right = next(olds, None), next(news, None)
    while left is not None or right is not None:
        order = _order(left, right)
        if order < 0:
            yield left, None
            left = next(olds, None)
        elif order > 0:
            yield None, right
            right = next(news, None)
        else:
            yield left, right
            left, right = next(olds, None), next(news, None)


def _order(left: Document | None, right: Document | None) -> int:
    if left is None or right is None:
        return 1 if left is None else -1
    one, other = key_order(left), key_order(right)
    return (one > other) - (one < other)
