"""What sync needs of a store: a scan of the documents one machine shares, and changes put in together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..store.document import Document

__all__ = ["Change", "Changes", "Entry", "Name", "Replica"]


class Name(NamedTuple):
    """What a document is called within its space."""

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a document across machines, also after it is gone (`digest` None).

    `versions` counts for each machine the changes that this state takes into account; `maker` is the machine whose
    latest counted change is this very state, empty where that is not known. A state knows another when it counts
    the change that the other is; two states are rivals when neither knows the other. `stamp` is the moment of the
    change in microseconds, `floor` the latest stamp ever seen here, which the next change exceeds. `pack` is where
    the document lies in the target, empty where it was not pushed by this machine.
    """

    versions: Mapping[str, int]
    stamp: int
    floor: int
    digest: str | None
    pack: str = ""
    maker: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """Put a document in the place of the one with digest `expected` (None: of none), or remove it (document None)."""

    name: Name
    expected: str | None
    document: Document | None


class Changes(Sequence[Change]):
    """Changes whose documents are read when one is taken; what each expects can be had without."""

    @abstractmethod
    def expected(self) -> Iterator[tuple[Name, str | None]]: ...


class Replica(Protocol):
    """One space of one machine, as sync sees it for one target. Who exchanges it sees to it that nobody else does
    at the same time."""

    machine: str

    def documents(self) -> Iterator[Document]:
        """All that is shared, vectors included, as of one moment."""
        ...

    def entries(self) -> dict[Name, Entry]:
        """What was known after the last exchange with the target."""
        ...

    def changed_at(self, document: Document) -> int:
        """The moment, in microseconds, when a document was last changed by its user."""
        ...

    def apply(self, changes: Sequence[Change], entries: Mapping[Name, Entry]) -> Sequence[Name]:
        """Make the changes and keep the entries, in one transaction; the names whose documents changed meanwhile.

        Where there is one such name, nothing at all was done. The documents are read from where they were put aside
        when a change is taken from the sequence, which is ordered as `KINDS`: go through it once.
        """
        ...

    def keep(self, entries: Mapping[Name, Entry], dropped: Iterable[Name] = ()) -> None:
        """Keep entries without changing documents."""
        ...

    def fact(self, key: str) -> str | None:
        """A small thing remembered about the target."""
        ...

    def remember(self, key: str, value: str) -> None: ...
