"""The store as the rest of Cortex sees it: an engine, its tables, and search over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .database import Database, Session
from .documents.documents import DocumentTable
from .graph.graph import GraphTable
from .groups import CommitGroups
from .packing import Dictionaries
from .search.filters import Filter, Naming, Scope, View, open_scope
from .tables.access import AccessTable, AuditTable, TenantTable
from .tables.consolidations import ConsolidationTable, RecallTable, VerificationTable
from .tables.memories import MemoryTable
from .tables.places import BranchTable, LLMUsageTable, ProjectTable, RequestTable, SettingTable
from .tables.replicas import ReplicaTable
from .tables.saved import SavedTable
from .tables.scans import ScanTable
from .tables.suggestions import SuggestionTable
from .tables.upkeep import StatisticsTable, UpkeepTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .search.search import Search

__all__ = ["Store"]


class Store:
    def __init__(
        self,
        database: Database,
        dimensions: int,
        names: Naming,
        readable: Callable[[str], bool] = lambda _space: True,
    ) -> None:
        """`names` says how names are looked up. `readable` decides whether the current caller may read a space."""
        self.database = database
        dictionaries = Dictionaries(database)
        self.memories = MemoryTable(database, dictionaries)
        self.projects = ProjectTable()
        self.branches = BranchTable()
        self.settings = SettingTable()
        self.statistics = StatisticsTable()
        self.scans = ScanTable()
        self.upkeep = UpkeepTable(dictionaries)
        self.graph = GraphTable()
        self.saved = SavedTable()
        self.requests = RequestTable()
        self.consolidations = ConsolidationTable()
        self.llm_usage = LLMUsageTable(database)
        self.recalls = RecallTable()
        self.verifications = VerificationTable()
        self.suggestions = SuggestionTable()
        self.documents = DocumentTable(self.memories, self.graph)
        self.replicas = ReplicaTable()
        self.access = AccessTable()
        self.audit = AuditTable()
        self.tenants = TenantTable()
        # Captures that wait for the same space.
        self.groups: CommitGroups[Any, Any] = CommitGroups()
        # The fingerprint that was last read as that of the stored vectors.
        self.known_model: str | None = None
        self._dimensions = dimensions
        self._names = names
        self._readable = readable

    @cached_property
    def search(self) -> Search:
        """Built on first use: listing and counting need no numpy."""
        from .search.search import Search

        return Search(self.database, self._dimensions)

    def scope(self, session: Session, filter: Filter, view: View) -> Scope:
        """What a query with this filter may see, as SQL."""
        return open_scope(self.database, session, filter, view, self._names, self._readable)

    def count(self, session: Session, scope: Scope) -> int:
        """How many records are visible."""
        # A process that searched the spaces need not read their records.
        counted = self.search.count(session, scope) if "search" in vars(self) else None
        return self.memories.count(session, scope.where) if counted is None else counted

    def vectors(self, session: Session, spaces: Sequence[str], nums: Sequence[int]) -> NDArray[np.float32]:
        """One unit vector per record: the mean of its chunks. The records are in these spaces."""
        from .search.candidates import record_vectors

        return record_vectors(session, spaces, nums, self._dimensions)

    def index_large_spaces(self, above: int, stop: Callable[[], bool]) -> list[str]:
        """Let the engine index the vectors of cached spaces with more records than `above`; the spaces it indexed."""
        index = self.database.vector_index
        if index is None or not above or "search" not in vars(self):
            return []
        return [space for space in self.search.larger_than(above) if index.build(space, self._dimensions, stop)]

    def read_codes(self, stop: Callable[[], bool]) -> None:
        """Cache the vector codes that recent queries could have used."""
        if "search" in vars(self):
            self.search.read_codes(stop)

    def keep_spaces(self, stop: Callable[[], bool] = lambda: False, *, check: bool = False) -> None:
        """Write what a fresh process needs to search the large spaces that this one searched.

        `check` also looks for damage in what this process had from an earlier one.
        """
        if "search" in vars(self):
            self.search.keep_spaces(stop, check=check)

    def forget(self, spaces: Iterable[str]) -> None:
        """Drop cached spaces that are no longer in use; they are read again when needed."""
        if "search" in vars(self):
            self.search.forget(spaces)

    def close(self) -> None:
        self.database.close()
