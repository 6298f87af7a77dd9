"""What an engine offers that keeps an index of the vectors of large spaces by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..database import Session
    from .codes import Codes
    from .filters import Where

__all__ = ["Extent", "RankingColumns", "VectorIndex"]


class Extent(NamedTuple):
    """How many records of a space have vectors, and the lowest and highest of their numbers."""

    records: int
    oldest: int
    newest: int


class RankingColumns(NamedTuple):
    """What ranking needs of a record besides its chunks; its neighbours in the line of work by number."""

    num: int
    created: int
    length: int
    flags: int
    author: int
    branch: str | None
    before: int | None
    after: int | None


class VectorIndex(Protocol):
    def covered(self, session: Session, spaces: Sequence[str]) -> set[str]:
        """The spaces that have a complete index."""

    def add(self, session: Session, rows: Sequence[tuple[str, int, int, bytes | None]]) -> None:
        """Add chunks of new records, as (space, record, chunk, vector); spaces without an index are skipped."""

    def forget_all(self, session: Session) -> None:
        """Remove the index of every space."""

    def extent(self, session: Session, space: str) -> Extent: ...

    def sample(self, session: Session, space: str, count: int, records: int) -> list[int]:
        """About `count` of the space's records, the same ones until it changes."""

    def passing(self, session: Session, space: str, nums: Sequence[int], where: Where) -> list[tuple[int, int]]:
        """The records that pass a filter, in the order given, each with its length."""

    def closest(
        self, session: Session, space: str, query: NDArray[np.float32], where: Where, count: int, open_records: int
    ) -> list[int]:
        """The records nearest to a query that pass a filter, best first; about `open_records` pass it."""

    def numbers(self, session: Session, space: str, where: Where) -> bytes:
        """The numbers of the records that pass a filter, eight bytes each, and perhaps of some that do not."""

    def compared(
        self, session: Session, space: str, query: NDArray[np.float32], where: Where, nums: Sequence[int], count: int
    ) -> list[int]:
        """The nearest of some records that pass a filter, best first, by exact comparison."""

    def changed(self, session: Session, space: str, seq: int, most: int) -> list[int]:
        """At most so many records that were written after a change sequence."""

    def codes(self, session: Session, space: str, nums: Sequence[int]) -> Codes:
        """The codes of the records that have vectors."""

    def around(self, session: Session, space: str, nums: Sequence[int]) -> list[int]:
        """The live records before and after each in its line of work."""

    def columns(self, session: Session, space: str, nums: Sequence[int], where: Where) -> list[RankingColumns]:
        """The records that pass a filter, by ascending number."""

    def build(self, space: str, dimensions: int, stop: Callable[[], bool]) -> bool:
        """Complete the index of a space; False if it cannot be had, another process builds it, or on `stop`."""
