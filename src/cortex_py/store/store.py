"""The store as the domain sees it: an engine, its tables, and search over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from .access import AccessTable, AuditTable
from .conditions import Filter
from .consolidations import ConsolidationTable, LLMUseTable, RecallTable
from .database import Database, Session
from .document_memories import MemoryDocuments
from .documents import DocumentTable
from .graph import GraphTable
from .memories import MemoryTable
from .packing import Dictionaries
from .places import BranchTable, ProjectTable, SettingTable
from .replicas import ReplicaTable
from .saved import SavedTable
from .scans import ScanTable
from .scope import Scope, View, open_scope
from .statistics import StatisticsTable
from .suggestions import SuggestionTable
from .tenants import TenantTable
from .upkeep import UpkeepTable
from .verifications import VerificationTable
from .where import Names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
        names: Names,
        tag: Callable[[], bytes] = lambda: bytes(8),
        readable: Callable[[str], bool] = lambda _space: True,
    ) -> None:
        """The functions spell the text index's entries: of a term, of a space; and how names are looked up.

        `tag` marks what is made of a text for search, wherever that is carried elsewhere. `readable` tells whether
        whoever asks now may see a space.
        """
        self.database = database
        dictionaries = Dictionaries()
        self.memories = MemoryTable(database, dictionaries)
        self.projects = ProjectTable()
        self.branches = BranchTable()
        self.settings = SettingTable()
        self.statistics = StatisticsTable()
        self.scans = ScanTable()
        self.upkeep = UpkeepTable(dictionaries)
        self.graph = GraphTable()
        self.saved = SavedTable()
        self.consolidations = ConsolidationTable()
        self.llm_use = LLMUseTable()
        self.recalls = RecallTable()
        self.verifications = VerificationTable()
        self.suggestions = SuggestionTable()
        self.documents = DocumentTable(
            self.memories, MemoryDocuments(database, self.memories, dictionaries, tag), self.graph
        )
        self.replicas = ReplicaTable()
        self.access = AccessTable()
        self.audit = AuditTable()
        self.tenants = TenantTable()
        self._dimensions = dimensions
        self._word = word
        self._space_word = space_word
        self._names = names
        self._readable = readable

    @cached_property
    def search(self) -> Search:
        """Built when first needed: listing and counting do without arrays."""
        from .search import Search

        return Search(self.database, self._dimensions, self._word, self._space_word)

    def scope(self, session: Session, filter: Filter, view: View) -> Scope:
        """What a query with this filter may see."""
        return open_scope(self.database, session, filter, view, self._names, self._readable)

    def vectors(self, session: Session, spaces: Sequence[str], nums: Sequence[int]) -> NDArray[np.float32]:
        """One vector of length 1 for each record, made of all its parts; the records are of these spaces."""
        from .details import record_vectors

        return record_vectors(session, spaces, nums, self._dimensions)

    def index_large_spaces(self, above: int, stop: Callable[[], bool]) -> list[str]:
        """Let the engine make an index for spaces in use that have more records than `above`; which ones have it now.

        Engines that cannot leave them to the process.
        """
        nearest = self.database.nearest
        if nearest is None or not above or "search" not in vars(self):
            return []
        return [space for space in self.search.larger_than(above) if nearest.build(space, self._dimensions, stop)]

    def read_codes(self, stop: Callable[[], bool]) -> None:
        """Keep codes of vectors in the process where queries would have used them."""
        if "search" in vars(self):
            self.search.read_codes(stop)

    def close(self) -> None:
        self.database.close()
