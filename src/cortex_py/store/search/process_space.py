"""What a process keeps in memory of one space: a few numbers per record, never its text.

The ledger knows which records live, how long, and who stands next to whom in a line of work. It is
caught up by the change sequence and can be thrown away at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..records import LIVE_STATUSES
from .database import Row

__all__ = ["LEDGER_COLUMNS", "Ledger"]

LEDGER_COLUMNS = (
    "num, status, expires_at, branch_id, created_at, length, flags, author, "
    "CASE WHEN confinement IS NULL THEN NULL ELSE COALESCE(git_branch, '') END"
)
_NEVER = np.iinfo(np.int64).max
_NONE = -1
_SAMPLED = 8_192


@dataclass(slots=True)
class _Columns:
    nums: NDArray[np.int64]
    live: NDArray[np.bool_]
    expires: NDArray[np.int64]
    branch: NDArray[np.int32]
    created: NDArray[np.int64]
    length: NDArray[np.int32]
    flags: NDArray[np.int64]
    author: NDArray[np.int64]
    confined: NDArray[np.int32]
    before: NDArray[np.int32]
    after: NDArray[np.int32]

    @classmethod
    def empty(cls, capacity: int) -> _Columns:
        return cls(
            nums=np.zeros(capacity, np.int64),
            live=np.zeros(capacity, np.bool_),
            expires=np.full(capacity, _NEVER, np.int64),
            branch=np.full(capacity, _NONE, np.int32),
            created=np.zeros(capacity, np.int64),
            length=np.zeros(capacity, np.int32),
            flags=np.zeros(capacity, np.int64),
            author=np.zeros(capacity, np.int64),
            confined=np.full(capacity, _NONE, np.int32),
            before=np.full(capacity, _NONE, np.int32),
            after=np.full(capacity, _NONE, np.int32),
        )

    def grown(self, capacity: int) -> _Columns:
        larger = _Columns.empty(capacity)
        for name in self.__slots__:
            getattr(larger, name)[: len(self.nums)] = getattr(self, name)
        return larger


class Ledger:
    """Positions are stable: a record keeps its place until the ledger is dropped."""

    def __init__(self) -> None:
        self.size = 0
        self._columns = _Columns.empty(64)
        # Indexed by a record's number, which the engine gives out densely.
        self._place_of = np.full(64, _NONE, np.int32)
        self._branches: dict[str, int] = {}
        self._git_branches: dict[str, int] = {}
        self._tails: dict[int, int] = {}
        self._linked = True
        self._expiring = False

    # -- catching up -----------------------------------------------------------------------------

    def apply(self, rows: Sequence[Row]) -> None:
        """Take in new or changed records, in the order of `LEDGER_COLUMNS`."""
        if self.size == 0 and len(rows) > 1:
            self._load(rows)
            return
        self._make_room(len(rows))
        self._reach(max((row[0] for row in rows), default=0))
        for num, status, expires_at, branch_id, created_at, length, flags, author, confined in rows:
            known = int(self._place_of[num])
            place = self.size if known == _NONE else known
            branch = _NONE if branch_id is None else self._branches.setdefault(branch_id, len(self._branches))
            live = status in LIVE_STATUSES
            self._note_links(place, known == _NONE, live, branch, (created_at, num))
            columns = self._columns
            columns.nums[place] = num
            columns.live[place] = live
            columns.expires[place] = _NEVER if expires_at is None else expires_at
            columns.branch[place] = branch
            columns.created[place] = created_at
            columns.length[place] = length
            columns.flags[place] = flags
            columns.author[place] = author
            columns.confined[place] = self._git_code(confined)
            self._expiring |= expires_at is not None
            if known == _NONE:
                self._place_of[num] = place
                self.size += 1

    def _load(self, rows: Sequence[Row]) -> None:
        """The first filling, a column at a time: a large space has a hundred thousand rows."""
        n = len(rows)
        self._make_room(n)
        nums, statuses, expires, branches, created, lengths, flags, authors, confined = zip(*rows, strict=True)
        columns, codes = self._columns, self._branches
        columns.nums[:n] = nums
        columns.live[:n] = [status in LIVE_STATUSES for status in statuses]
        columns.expires[:n] = [_NEVER if moment is None else moment for moment in expires]
        columns.branch[:n] = [_NONE if name is None else codes.setdefault(name, len(codes)) for name in branches]
        columns.created[:n] = created
        columns.length[:n] = lengths
        columns.flags[:n] = flags
        columns.author[:n] = authors
        columns.confined[:n] = [self._git_code(name) for name in confined]
        self._reach(max(nums))
        self._place_of[columns.nums[:n]] = np.arange(n, dtype=np.int32)
        self._expiring = any(moment is not None for moment in expires)
        self._linked = not codes
        self.size = n

    def drop(self, nums: Sequence[int]) -> None:
        """Forget purged records; their places stay empty."""
        for place in self.places(nums).tolist():
            num = int(self._columns.nums[place])
            if num >= 0:
                self._place_of[num] = _NONE
                self._columns.live[place] = False
                self._columns.nums[place] = -1
                self._linked = self._linked and self._columns.branch[place] == _NONE

    def _reach(self, num: int) -> None:
        if num >= len(self._place_of):
            longer = np.full(max(num + 1, 2 * len(self._place_of)), _NONE, np.int32)
            longer[: len(self._place_of)] = self._place_of
            self._place_of = longer

    def _make_room(self, more: int) -> None:
        capacity = len(self._columns.nums)
        if self.size + more > capacity:
            self._columns = self._columns.grown(max(self.size + more, capacity * 2))

    def _note_links(self, place: int, new: bool, live: bool, branch: int, order: tuple[int, int]) -> None:
        """Keep neighbours current in the usual case, a record appended to its branch; else relink later."""
        columns = self._columns
        if not new:
            same = columns.live[place] == live and columns.branch[place] == branch
            if not same or columns.created[place] != order[0]:
                self._linked = self._linked and branch == _NONE and columns.branch[place] == _NONE
            return
        if branch == _NONE or not live or not self._linked:
            return
        tail = self._tails.get(branch)
        if tail is not None:
            if (columns.created[tail], columns.nums[tail]) > order:
                self._linked = False
                return
            columns.after[tail] = place
            columns.before[place] = tail
        self._tails[branch] = place

    def _link(self) -> None:
        columns, n = self._columns, self.size
        columns.before[:n] = columns.after[:n] = _NONE
        places = np.flatnonzero(columns.live[:n] & (columns.branch[:n] != _NONE))
        order = places[np.lexsort((columns.nums[places], columns.created[places], columns.branch[places]))]
        same = columns.branch[order[:-1]] == columns.branch[order[1:]]
        columns.after[order[:-1][same]] = order[1:][same]
        columns.before[order[1:][same]] = order[:-1][same]
        self._tails = dict(zip(columns.branch[order].tolist(), order.tolist(), strict=True))
        self._linked = True

    # -- asking ----------------------------------------------------------------------------------

    @property
    def nums(self) -> NDArray[np.int64]:
        return self._columns.nums[: self.size]

    def total_length(self, open_places: NDArray[np.bool_]) -> tuple[int, int]:
        """How many places are open and how many terms their records have; from a sample where they are many."""
        step = max(1, self.size // _SAMPLED)
        sampled = open_places[::step]
        return int(np.count_nonzero(open_places)), int(self._columns.length[: self.size : step][sampled].sum()) * step

    def open_to(self, now: int, allowed: NDArray[np.int64] | None, here: str | None = None) -> NDArray[np.bool_]:
        """Which places a query may see: the live, unexpired and not elsewhere confined ones, or exactly the allowed."""
        if allowed is None:
            live = self._columns.live[: self.size]
            if self._expiring:
                live = live & (self._columns.expires[: self.size] > now)
            if self._git_branches:
                confined = self._columns.confined[: self.size]
                live = live & ((confined == _NONE) | (confined == self._git_branches.get(here or "", -2)))
            return live
        mask = np.zeros(self.size, np.bool_)
        mask[self.places(allowed)] = True
        return mask

    def places(self, nums: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int32]:
        """Places of the records that this ledger knows."""
        wanted = np.asarray(nums, np.int64)
        places = self._place_of[wanted[wanted < len(self._place_of)]]
        known: NDArray[np.int32] = places[places != _NONE]
        return known

    def column(self, name: str, places: NDArray[np.int32]) -> NDArray[np.int64]:
        """One of `created`, `length`, `flags`, `author`, for each place."""
        values: NDArray[np.int64] = getattr(self._columns, name)[places]
        return values

    def branches(self, places: NDArray[np.int32]) -> NDArray[np.int32]:
        return self._columns.branch[places]

    def nearness(self, places: NDArray[np.int32], near: Mapping[str, float]) -> NDArray[np.float32]:
        """What the line of work of each record is worth where the caller stands."""
        worth = np.zeros(len(self._branches) + 1, np.float32)
        for name, value in near.items():
            if name in self._branches:
                worth[self._branches[name]] = value
        # The last slot stands for "no line of work", which -1 addresses.
        return worth[self._columns.branch[places]]

    def _git_code(self, name: str | None) -> int:
        return _NONE if name is None else self._git_branches.setdefault(name, len(self._git_branches))

    def neighbours(self, places: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The places before and after each in its line of work; -1 where there is none."""
        if not self._linked:
            self._link()
        return self._columns.before[places], self._columns.after[places]
