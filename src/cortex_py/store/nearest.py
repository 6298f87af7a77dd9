"""What an engine offers that keeps an index of vectors itself, for spaces too large to be compared in a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .database import Session
from .where import Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .codes import Codes

__all__ = ["Columns", "Extent", "Nearest", "VectorRow"]

# Space, number of the record, place of the part in it, its vector as float32.
VectorRow = tuple[str, int, int, bytes | None]


class Extent(NamedTuple):
    """How many records of a space have vectors, and the lowest and highest of their numbers."""

    records: int
    oldest: int
    newest: int


class Columns(NamedTuple):
    """What ranking needs of a record besides its parts; its neighbours in the line of work by number."""

    num: int
    created: int
    length: int
    flags: int
    author: int
    branch: str | None
    before: int | None
    after: int | None


class Nearest(Protocol):
    """An index for each space that has grown large. Conditions are on `memory m`, as everywhere."""

    def covered(self, session: Session, spaces: Sequence[str]) -> set[str]:
        """Those of the spaces that have an index that is complete."""
        ...

    def add(self, session: Session, rows: Sequence[VectorRow]) -> None:
        """Take in the parts of new records, in the transaction that adds them; spaces without an index are left out."""
        ...

    def extent(self, session: Session, space: str) -> Extent: ...

    def sample(self, session: Session, space: str, count: int, records: int) -> list[int]:
        """About `count` of the space's records, the same ones while it does not change."""
        ...

    def passing(self, session: Session, space: str, nums: Sequence[int], where: Where) -> list[tuple[int, int]]:
        """Those of the records that meet a condition, in the order given, each with its length."""
        ...

    def closest(
        self,
        session: Session,
        space: str,
        query: NDArray[np.float32],
        where: Where,
        count: int,
        open_records: int,
    ) -> list[int]:
        """Records nearest to a query among those that meet a condition, best first.

        `open_records` is about how many meet it: where they are few, all of them are compared.
        """
        ...

    def numbers(self, session: Session, space: str, where: Where) -> bytes:
        """The numbers of the records that meet a condition, eight bytes each, and perhaps of some that do not."""
        ...

    def compared(
        self,
        session: Session,
        space: str,
        query: NDArray[np.float32],
        where: Where,
        nums: Sequence[int],
        count: int,
    ) -> list[int]:
        """The nearest to a query of some records that meet a condition, best first, all of them compared."""
        ...

    def changed(self, session: Session, space: str, seq: int, most: int) -> list[int]:
        """Records that were written after that point of the change sequence, at most so many."""
        ...

    def codes(self, session: Session, space: str, nums: Sequence[int]) -> Codes:
        """The codes of those records that have vectors."""
        ...

    def around(self, session: Session, space: str, nums: Sequence[int]) -> list[int]:
        """The live records before and after each in its line of work."""
        ...

    def columns(self, session: Session, space: str, nums: Sequence[int], where: Where) -> list[Columns]:
        """Records that meet a condition, by ascending number."""
        ...

    def build(self, space: str, dimensions: int, stop: Callable[[], bool]) -> bool:
        """Make the index of a space, as far as it is not made; whether it is there now."""
        ...
