"""The store as the rest of Cortex sees it: an engine, its tables, and search over them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import StoreBusy, StoreUnavailable
from ..jobs import renew_in_forks
from .database import Database, Session
from .documents.documents import DocumentTable
from .graph.graph import GraphTable
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

__all__ = ["CommitGroups", "Store"]

logger = logging.getLogger(__name__)


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


# -- small writes that wait for the same turn -----------------------------------------------------

_T = TypeVar("_T")
_R = TypeVar("_R")
# A group commits soon, whatever else arrives.
_MOST = 32
_WAIT_SECONDS = 30.0


Write = Callable[[Callable[[], list[_T]]], list[_R]]


class _Waiting(Generic[_T, _R]):
    def __init__(self, item: _T) -> None:
        self.item = item
        # Set when it is done, or when it is its turn to write.
        self.called = threading.Event()
        self.leads = False
        self.result: list[_R] = []
        self.error: StoreUnavailable | None = None


class CommitGroups(Generic[_T, _R]):
    """Small writes of one space that wait for the same turn, committed together by the thread that gets it first.

    Nobody waits for a group to fill: a thread that has its turn takes along what waits at that moment.
    """

    def __init__(self) -> None:
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        self._lock = threading.Lock()
        # What waits for each key, in order; there is a list while somebody writes.
        self.waiting: dict[Hashable, deque[_Waiting[_T, _R]]] = {}

    def run(self, key: Hashable, item: _T, write: Write[_T, _R]) -> _R:
        """Store an item, perhaps with others of the same key; returns its result.

        `write` begins a transaction, calls what it is given for the items, stores them and returns the result of each.
        If a group fails, each of its items is stored alone, so that nobody sees the error of another. Only if a group
        may have been written is that the error of all.
        """
        mine: _Waiting[_T, _R] = _Waiting(item)
        with self._lock:
            mine.leads = key not in self.waiting
            self.waiting.setdefault(key, deque()).append(mine)
        if not mine.leads:
            self._wait(key, mine)
        if mine.leads:
            try:
                self._commit(key, mine, write)
            finally:
                self._pass_on(key)
        if mine.error is not None:
            raise mine.error
        return mine.result[0] if mine.result else write(lambda: [item])[0]

    def _wait(self, key: Hashable, mine: _Waiting[_T, _R]) -> None:
        if mine.called.wait(_WAIT_SECONDS):
            return
        with self._lock:
            if not mine.leads and mine in self.waiting[key]:
                self.waiting[key].remove(mine)
                raise StoreBusy("Other writes to this space take too long.", remedy="Nothing was written; try again.")
        # Somebody has taken it along.
        mine.called.wait()

    def _pass_on(self, key: Hashable) -> None:
        with self._lock:
            if waiting := self.waiting[key]:
                waiting[0].leads = True
                waiting[0].called.set()
            else:
                del self.waiting[key]

    def _commit(self, key: Hashable, mine: _Waiting[_T, _R], write: Write[_T, _R]) -> None:
        """Store the first items that wait; the one that leads is the first of them."""
        group: list[_Waiting[_T, _R]] = []

        def take() -> list[_T]:
            with self._lock:
                waiting = self.waiting[key]
                group.extend(waiting.popleft() for _ in range(min(_MOST, len(waiting))))
            return [one.item for one in group]

        try:
            for one, result in zip(group, write(take), strict=True):
                one.result.append(result)
        except Exception as error:
            if len(group) <= 1:
                raise  # its own
            logger.debug("a group of %d writes failed: %s", len(group), type(error).__name__)
            if isinstance(error, StoreUnavailable) and error.perhaps_written:
                for one in group:
                    one.error = error
        except BaseException:
            # Ctrl-C, perhaps behind the commit: the others must not store theirs a second time.
            interrupted = "The write was interrupted by that of another caller, perhaps after it was done."
            for one in group:
                one.error = StoreUnavailable(interrupted, remedy="Look whether it is there.", perhaps_written=True)
            raise
        finally:
            if not group:
                # No transaction began: the next one must not wait for this one.
                with self._lock:
                    self.waiting[key].remove(mine)
            for one in group:
                one.called.set()
