"""A few numbers for each record of a space, never its text: which are live, how long they are, what filters ask for,
and which are neighbours in a line of work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import datetime
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...clock import to_micros
from ...records import LIVE_STATUSES
from ..database import Row
from .filters import Condition
from .kept_file import RUN

__all__ = ["RECORD_COLUMNS", "RecordColumns"]


# Columns of codes come last, in the order of `_CODED`.
RECORD_COLUMNS = (
    "num, status, expires_at, created_at, length, flags, author, branch_id, "
    "CASE WHEN confinement IS NULL THEN NULL ELSE COALESCE(git_branch, '') END, "
    "namespace, category, role, user_id, agent_id"
)
_CODED = ("branch", "confined", "namespace", "category", "role", "user", "agent")
# Those that filters name.
_FILTERED = frozenset(_CODED[2:])
_NEVER = np.iinfo(np.int64).max
_NONE = -1
_SAMPLED = 8_192


# The type and the default of each column.
_DTYPES: dict[str, tuple[type[np.generic], int]] = {
    "nums": (np.int64, _NONE),
    "live": (np.bool_, 0),
    "expires": (np.int64, _NEVER),
    "created": (np.int64, 0),
    "length": (np.int32, 0),
    "flags": (np.int64, 0),
    "author": (np.int64, 0),
    **dict.fromkeys(_CODED, (np.int32, _NONE)),
    "before": (np.int32, _NONE),
    "after": (np.int32, _NONE),
}


class _Columns:
    nums: NDArray[np.int64]
    live: NDArray[np.bool_]
    expires: NDArray[np.int64]
    created: NDArray[np.int64]
    length: NDArray[np.int32]
    flags: NDArray[np.int64]
    author: NDArray[np.int64]
    branch: NDArray[np.int32]
    confined: NDArray[np.int32]
    before: NDArray[np.int32]
    after: NDArray[np.int32]

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        for name in _DTYPES:
            setattr(self, name, arrays[name])

    @classmethod
    def empty(cls, capacity: int) -> _Columns:
        return cls({name: np.full(capacity, default, kind) for name, (kind, default) in _DTYPES.items()})

    def grown(self, capacity: int) -> _Columns:
        larger = _Columns.empty(capacity)
        for name in _DTYPES:
            getattr(larger, name)[: len(self.nums)] = getattr(self, name)
        return larger

    def clear(self, place: int) -> None:
        for name, (_, default) in _DTYPES.items():
            getattr(self, name)[place] = default


def _digest(name: str) -> int:
    """A name as a number: columns, and the file that they are kept in, hold no text."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True)


class RecordColumns:
    """Places are stable: a record keeps its place until the columns are dropped.

    A snapshot shares the arrays. What is appended later lies beyond its size; a record that changes or goes meanwhile
    may be seen either way.
    """

    def __init__(self) -> None:
        self.size = 0
        self._columns = _Columns.empty(64)
        # Indexed by record number; the engine assigns numbers densely.
        self._place_of = np.full(64, _NONE, np.int32)
        self._codes: dict[int, int] = {}
        self._tails: dict[int, int] = {}
        self._linked = True
        self._expiring = False
        self._confining = False
        # The runs of places in which a record that was there at first was changed or dropped.
        self.overwritten: set[int] = set()

    def snapshot(self) -> RecordColumns:
        if not self._linked:
            self._link()
        return copy(self)

    # -- a file ----------------------------------------------------------------------------------

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything, as arrays and a few values: copies, for a file."""
        if not self._linked:
            self._link()
        newest = int(self.nums.max(initial=0))
        arrays = {name: getattr(self._columns, name)[: self.size].copy() for name in _DTYPES}
        arrays["place_of"] = self._place_of[: newest + 1].copy()
        arrays["names"] = np.fromiter(self._codes, np.int64, len(self._codes))
        arrays["tails"] = np.array(list(self._tails.items()), np.int32).reshape(-1, 2)
        return arrays, {"records": self.size, "expiring": self._expiring, "confining": self._confining}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> RecordColumns:
        """The same again. The arrays may be longer than what they hold."""
        made = cls()
        made._columns = _Columns(arrays)
        made.size = int(facts["records"])
        made._place_of = arrays["place_of"]
        made._codes = dict(zip(arrays["names"].tolist(), range(len(arrays["names"])), strict=True))
        made._tails = dict(arrays["tails"].tolist())
        made._expiring, made._confining = bool(facts["expiring"]), bool(facts["confining"])
        made._linked = bool(facts["linked"])
        return made

    # -- catching up -----------------------------------------------------------------------------

    def apply(self, rows: Sequence[Row]) -> None:
        """Apply new or changed records; rows have `RECORD_COLUMNS`."""
        if self.size == 0 and len(rows) > 1:
            self._load(rows)
            return
        self._grow(len(rows))
        self._reach(max((row[0] for row in rows), default=0))
        for num, status, expires_at, created_at, length, flags, author, *names in rows:
            known = int(self._place_of[num])
            place = self.size if known == _NONE else known
            codes = [self._code(name) for name in names]
            live = status in LIVE_STATUSES
            columns = self._columns
            if known == _NONE:
                columns.clear(place)
            else:
                self.overwritten.add(place // RUN)
            self._note_links(place, known == _NONE, live, codes[0], (created_at, num))
            columns.nums[place] = num
            columns.live[place] = live
            columns.expires[place] = _NEVER if expires_at is None else expires_at
            columns.created[place] = created_at
            columns.length[place] = length
            columns.flags[place] = flags
            columns.author[place] = author
            for name, code in zip(_CODED, codes, strict=True):
                getattr(columns, name)[place] = code
            self._expiring |= expires_at is not None
            self._confining |= codes[1] != _NONE
            if known == _NONE:
                self._place_of[num] = place
                self.size += 1

    def _load(self, rows: Sequence[Row]) -> None:
        """The first load, one column at a time: a large space has a hundred thousand rows."""
        n = len(rows)
        self._grow(n)
        nums, statuses, expires, created, lengths, flags, authors, *named = zip(*rows, strict=True)
        columns = self._columns
        columns.nums[:n] = nums
        columns.live[:n] = [status in LIVE_STATUSES for status in statuses]
        columns.expires[:n] = [_NEVER if moment is None else moment for moment in expires]
        columns.created[:n] = created
        columns.length[:n] = lengths
        columns.flags[:n] = flags
        columns.author[:n] = authors
        for name, values in zip(_CODED, named, strict=True):
            codes = {value: self._code(value) for value in dict.fromkeys(values)}
            getattr(columns, name)[:n] = [codes[value] for value in values]
        self._reach(max(nums))
        self._place_of[columns.nums[:n]] = np.arange(n, dtype=np.int32)
        self._expiring = any(moment is not None for moment in expires)
        self._confining = bool((columns.confined[:n] != _NONE).any())
        self._linked = not (columns.branch[:n] != _NONE).any()
        self.size = n

    def drop(self, nums: Sequence[int]) -> None:
        """Drop purged records; their places stay empty."""
        for place in self.places(nums).tolist():
            self.overwritten.add(place // RUN)
            self._place_of[self._columns.nums[place]] = _NONE
            self._linked = self._linked and self._columns.branch[place] == _NONE
            self._columns.clear(place)

    def _reach(self, num: int) -> None:
        if num >= len(self._place_of):
            longer = np.full(max(num + 1, len(self._place_of) * 5 // 4), _NONE, np.int32)
            longer[: len(self._place_of)] = self._place_of
            self._place_of = longer

    def _grow(self, more: int) -> None:
        capacity = len(self._columns.nums)
        if self.size + more > capacity:
            self._columns = self._columns.grown(max(self.size + more, capacity * 3 // 2))

    def _note_links(self, place: int, new: bool, live: bool, branch: int, order: tuple[int, int]) -> None:
        """Update neighbours in the usual case, a record appended to its branch; otherwise relink later."""
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
            self.overwritten.add(tail // RUN)
            columns.after[tail] = place
            columns.before[place] = tail
        self._tails[branch] = place

    def _link(self) -> None:
        """New arrays: a snapshot keeps the former ones."""
        columns, n = copy(self._columns), self.size
        columns.before, columns.after = (np.full(len(columns.nums), _NONE, np.int32) for _ in range(2))
        places = np.flatnonzero(columns.live[:n] & (columns.branch[:n] != _NONE))
        order = places[np.lexsort((columns.nums[places], columns.created[places], columns.branch[places]))]
        same = columns.branch[order[:-1]] == columns.branch[order[1:]]
        columns.after[order[:-1][same]] = order[1:][same]
        columns.before[order[1:][same]] = order[:-1][same]
        self._tails = dict(zip(columns.branch[order].tolist(), order.tolist(), strict=True))
        self._columns = columns
        self._linked = True

    def _code(self, name: str | None) -> int:
        return _NONE if name is None else self._codes.setdefault(_digest(name), len(self._codes))

    # -- asking ----------------------------------------------------------------------------------

    @property
    def nums(self) -> NDArray[np.int64]:
        """The number of the record at each place; -1 where it was purged."""
        return self._columns.nums[: self.size]

    def total_length(self, open_places: NDArray[np.bool_]) -> tuple[int, int]:
        """The number of open places and of the terms of their records; sampled if there are many."""
        step = max(1, self.size // _SAMPLED)
        sampled = open_places[::step]
        return int(np.count_nonzero(open_places)), int(self._columns.length[: self.size : step][sampled].sum()) * step

    def open_to(self, now: int, allowed: NDArray[np.int64] | None, here: str | None = None) -> NDArray[np.bool_]:
        """The places a query may see: exactly the allowed ones, or all live, unexpired ones not confined elsewhere."""
        if allowed is not None:
            return self.among(allowed)
        live = self._columns.live[: self.size]
        if self._expiring:
            live = live & (self._columns.expires[: self.size] > now)
        if self._confining:
            confined = self._columns.confined[: self.size]
            live = live & ((confined == _NONE) | (confined == self._codes.get(_digest(here or ""), -2)))
        return live

    def among(self, nums: Sequence[int] | NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which places have one of these records."""
        mask = np.zeros(self.size, np.bool_)
        mask[self.places(nums)] = True
        return mask

    def passing(self, condition: Condition) -> NDArray[np.bool_] | None:
        """Which places have one of the values of a condition, whether it is negated or not; None if no column says."""
        mask = np.zeros(self.size, np.bool_)
        if condition.key in ("since", "before"):
            created = self._columns.created[: self.size]
            for moment in (to_micros(value) for value in condition.values if isinstance(value, datetime)):
                mask |= created >= moment if condition.key == "since" else created < moment
        elif condition.key in _FILTERED:
            codes = getattr(self._columns, condition.key)[: self.size]
            for value in condition.values:
                mask |= codes == self._codes.get(_digest(str(value)), -2)
        else:
            return None
        return mask

    def places(self, nums: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int32]:
        """Places of the records that are known here, in the order given."""
        wanted = np.asarray(nums, np.int64)
        places = self._place_of[wanted[wanted < len(self._place_of)]]
        known: NDArray[np.int32] = places[(places != _NONE) & (places < self.size)]
        return known

    def has(self, num: int) -> bool:
        return num < len(self._place_of) and bool(self._place_of[num] != _NONE)

    def values(self, name: str, places: NDArray[np.int32]) -> NDArray[np.int64]:
        """One of `created`, `length`, `flags` and `author` for each place."""
        values: NDArray[np.int64] = getattr(self._columns, name)[places]
        return values

    def branches(self, places: NDArray[np.int32]) -> NDArray[np.int32]:
        return self._columns.branch[places]

    def nearness(self, places: NDArray[np.int32], near: Mapping[str, float]) -> NDArray[np.float32]:
        """How near the line of work of each record is to the caller's."""
        codes = self._columns.branch[places]
        # The last slot is addressed by -1, "no line of work".
        worth = np.zeros(len(self._codes) + 1, np.float32)
        for name, value in near.items():
            if (code := self._codes.get(_digest(name))) is not None:
                worth[code] = value
        return worth[codes]

    def neighbours(self, places: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The places before and after each in its line of work; -1 for none."""
        if not self._linked:
            self._link()
        before, after = self._columns.before[places], self._columns.after[places]
        after[after >= self.size] = _NONE
        return before, after
