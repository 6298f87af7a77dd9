"""The store as the domain sees it: an engine, its tables, and search over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from .conditions import Filter
from .database import Database, Session
from .memories import MemoryTable
from .places import BranchTable, ProjectTable, SettingTable
from .scope import Scope, open_scope
from .statistics import StatisticsTable

if TYPE_CHECKING:
    from .search import Search

__all__ = ["Store"]


class Store:
    def __init__(
        self,
        database: Database,
        *,
        dimensions: int,
        word: Callable[[int], str],
        space_word: Callable[[str], str],
        entity_words: Callable[[str], Sequence[str]],
    ) -> None:
        """The functions spell the text index's entries: of a term, of a space, of a name."""
        self.database = database
        self.memories = MemoryTable(database)
        self.projects = ProjectTable()
        self.branches = BranchTable()
        self.settings = SettingTable()
        self.statistics = StatisticsTable()
        self._dimensions = dimensions
        self._word = word
        self._space_word = space_word
        self._entity_words = entity_words

    @cached_property
    def search(self) -> Search:
        """Built when first needed: listing and counting do without arrays."""
        from .search import Search

        return Search(self.database, self._dimensions, self._word, self._space_word)

    def scope(
        self, session: Session, filter: Filter, spaces: Sequence[str], now: int, *, for_search: bool = False
    ) -> Scope:
        """What a query with this filter may see."""
        return open_scope(self.database, session, filter, spaces, now, self._entity_words, enumerate_allowed=for_search)

    def close(self) -> None:
        self.database.close()
