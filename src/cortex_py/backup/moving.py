"""A whole store moved into another one, of whichever engine: space by space as documents, read back and compared.

Each space goes in one transaction. What was interrupted is repeated: spaces that are there already are passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..errors import Conflict
from ..store.database import Session
from ..store.document import Document
from ..store.rows import Prepared
from ..store.store import Store
from .replacement import replace_state, state_of

__all__ = ["Moved", "copy_projects", "move_store"]


@dataclass(frozen=True, slots=True)
class Moved:
    """How many spaces were written, how many were there already, and what all of them hold, by kind."""

    spaces: int
    there_already: int
    documents: dict[str, int]


class _Carrier(Protocol):
    def prepared(self, document: Document) -> Prepared: ...

    def written(self, session: Session) -> None: ...


@dataclass(frozen=True, slots=True)
class _WholeSpace:
    """A space by its name alone: what hangs on it in a home stays where it is."""

    space: str
    carrier: _Carrier

    @property
    def facts(self) -> Mapping[str, str | None]:
        return {}

    def settle(self) -> None: ...

    def files(self) -> Iterator[tuple[str, bytes]]:
        return iter(())

    def prepared(self, document: Document) -> Prepared:
        return self.carrier.prepared(document)

    def written(self, session: Session) -> None:
        self.carrier.written(session)

    def changed(self) -> None: ...


def copy_projects(source: Store, target: Store) -> None:
    """Make the projects of one store known to another."""
    with source.database.read() as old, target.database.write() as new:
        target.projects.copy(new, source.projects.rows(old))


def move_store(
    source: Store,
    target: Store,
    carrier: Callable[[str], _Carrier],
    progress: Callable[[int, int], None] | None = None,
) -> Moved:
    """Put all that one store holds into another; the one is only read, as it is at one moment.

    A space that holds something else in the other store is refused. Scanned files are left out: a scan reads them anew.
    """
    written = there_already = 0
    documents: Counter[str] = Counter()
    with source.database.read() as old:
        spaces = source.documents.spaces(old)
        for done, space in enumerate(spaces):
            if progress is not None:
                progress(done, len(spaces))
            wanted = state_of(source, old, space)
            documents += wanted.counts
            with target.database.write() as new:
                found = state_of(target, new, space)
                if found.hexdigest() == wanted.hexdigest():
                    there_already += 1
                    continue
                if found.counts.total():
                    raise Conflict(
                        f"The other store already holds something else under {space!r}.",
                        remedy="Move into an empty database; spaces that were moved before this one are complete.",
                    )
                held = _WholeSpace(space, carrier(space))
                replace_state(target, new, held, source.documents.scan(old, space, vectors=True), wanted.hexdigest())
                written += 1
    if progress is not None:
        progress(len(spaces), len(spaces))
    return Moved(written, there_already, dict(documents))
