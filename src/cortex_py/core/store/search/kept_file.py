"""A file with the numbers of a space, which processes map privately and catch up by the change sequence.

    prefix    magic, format, lengths of the next two parts, their checksum, token
    facts     a JSON object: the change that the file is as of, sizes, and where each array lies
    sums      a CRC-32 for each block of the arrays; 0 for one that was not written
    arrays    each begins a block and has spare rows, which take no space on the disk

It holds no text: names are hashes.
"""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import os
import secrets
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...jobs import call_library
from .vectors import GROUPED_FROM, rows_at

__all__ = ["READ_BY_CHUNK", "READ_BY_PLACE", "RUN", "Arrays", "Damaged", "KeptFile", "KeptSpace", "Outdated"]

_MAGIC, _FORMAT = b"CORTEXKS", 3
_PREFIX = struct.Struct("<8sIIII16s")
_BLOCK = 1 << 16
_AT_ONCE = 1 << 20
_MOST_FACTS, _MOST_SUMS = 1 << 20, 1 << 26
# An array has one spare row for so many rows, and some.
_SPARE_SHARE, _SPARE_LEAST = 8, 4_096
_PER_CHUNK = ("coarse", "fine", "scale", "place")
# Arrays that nobody appends to.
_FIXED = ("place_of", "basis", "steps", "sampled", "centres", "bounds", "names", "tails", "words", "shares")
# Arrays that are checked whenever a file is opened: a wrong place would lead beyond the other arrays.
_CHECKED = ("place", "branch", "before", "after", *_FIXED)
# What a purge leaves of a record, where it is not 0.
_PURGED = dict.fromkeys(("nums", "branch", "confined", "before", "after", "place", "place_of"), -1)
# What a search reads here and there. No process overwrites what it has of a chunk; of a record it may.
# Rows that are whole pages of every array.
RUN = 1 << 13
READ_BY_CHUNK = ("fine", "scale")
READ_BY_PLACE = ("nums", "created", "flags", "author", "branch", "before", "after")

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class KeptSpace:
    """What a file has: facts, and arrays that may be changed and appended to without anybody else noticing."""

    facts: Mapping[str, Any]
    arrays: Arrays

    @property
    def is_large(self) -> bool:
        """Whether a search maps much more of the file than it reads."""
        return bool(self.facts["chunks"] >= GROUPED_FROM)

    def release(self, names: Sequence[str], changed: Collection[int] = ()) -> None:
        """Give the memory of some arrays back to the system; what reads them next maps it again.

        `changed` are the runs of `RUN` rows in which a row that came from the file was overwritten: they stay. What was
        appended lies beyond the file's rows.
        """
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        for name in names:
            kind, _, shape, count = self.facts["arrays"][name]
            width = _width(kind, shape)
            end = count * width // _BLOCK * _BLOCK
            # Each array begins a block, hence a page.
            begin, start = self.arrays[name].ctypes.data, 0
            for run in [*sorted(changed), None]:
                stop = end if run is None else min(end, run * RUN * width)
                if start < stop:
                    # Not the call that `mmap` has: all threads would wait for it, for milliseconds.
                    where, size = ctypes.c_void_p(begin + start), ctypes.c_size_t(stop - start)
                    call_library("madvise", where, size, mmap.MADV_DONTNEED)
                start = end if run is None else (run + 1) * RUN * width


class Damaged(Exception):
    """The file is not one of these, or not whole."""


class Outdated(Damaged):
    """Another version of Cortex wrote the file."""


class KeptFile:
    """An open file; `facts` and `sums` are the parts before its arrays."""

    def __init__(self, descriptor: int, token: bytes, facts: dict[str, Any], sums: NDArray[np.uint32]) -> None:
        self._descriptor = descriptor
        self.token = token
        self.facts = facts
        self._sums = sums

    @classmethod
    @contextmanager
    def open(cls, path: Path, *, writable: bool = False) -> Iterator[KeptFile]:
        with _opened(path, os.O_RDWR if writable else os.O_RDONLY) as descriptor:
            try:
                yield cls._read(descriptor)
            except (KeyError, ValueError, TypeError, IndexError) as error:
                raise Damaged(str(error)) from error

    @classmethod
    def _read(cls, descriptor: int) -> KeptFile:
        prefix = os.pread(descriptor, _PREFIX.size, 0)
        if len(prefix) < _PREFIX.size:
            raise Damaged("no prefix")
        magic, version, length, many, checksum, token = _PREFIX.unpack(prefix)
        if magic == _MAGIC and version != _FORMAT:
            raise Outdated("another format")
        if magic != _MAGIC or length > _MOST_FACTS or many > _MOST_SUMS:
            raise Damaged("no file of a space")
        rest = os.pread(descriptor, length + 4 * many, _PREFIX.size)
        if len(rest) != length + 4 * many or zlib.crc32(rest, zlib.crc32(token)) != checksum:
            raise Damaged("wrong checksum of the facts")
        file = cls(descriptor, token, json.loads(rest[:length]), np.frombuffer(rest, np.uint32, many, length).copy())
        if os.fstat(descriptor).st_size != file._begin + many * _BLOCK:
            raise Damaged("wrong length")
        return file

    @property
    def _begin(self) -> int:
        return int(self.facts["begin"])

    # -- reading ---------------------------------------------------------------------------------

    def mapped(self) -> KeptSpace:
        """The arrays, after a check of those that could lead astray."""
        for name in _CHECKED:
            self._check(name)
        memory = mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_COPY)
        arrays = self._arrays(memory)
        # A purge is seen here, except in parts that this process wrote to. So a record is looked up in a copy.
        arrays |= {name: arrays[name].copy() for name in _FIXED}
        return KeptSpace(self.facts, arrays)

    def check(self) -> None:
        """Raise an error if any array is not what was written."""
        for name in self.facts["arrays"]:
            self._check(name)

    def _check(self, name: str) -> None:
        kind, at, shape, count = self.facts["arrays"][name]
        size = count * _width(kind, shape)
        for block in range(at // _BLOCK, at // _BLOCK + -(-size // _BLOCK)):
            if zlib.crc32(os.pread(self._descriptor, _BLOCK, self._begin + block * _BLOCK)) != self._sums[block]:
                raise Damaged(f"wrong checksum in {name}")

    def _arrays(self, memory: mmap.mmap) -> Arrays:
        return {
            name: np.frombuffer(memory, kind, math.prod(shape), self._begin + at).reshape(shape)
            for name, (kind, at, shape, _) in self.facts["arrays"].items()
        }

    # -- writing ---------------------------------------------------------------------------------

    @classmethod
    def write(
        cls,
        path: Path,
        token: bytes,
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        chunks: NDArray[np.int64] | None,
    ) -> None:
        """Create a file. `chunks` are the rows to write of the arrays with a row per chunk; None for all."""
        lying: dict[str, list[Any]] = {}
        at = 0
        for name, array in arrays.items():
            count = len(chunks) if chunks is not None and name in _PER_CHUNK else len(array)
            capacity = count if name in _FIXED else count + count // _SPARE_SHARE + _SPARE_LEAST
            shape = [capacity, *array.shape[1:]]
            lying[name] = [array.dtype.str, at, shape, count]
            at += -(-capacity * _width(array.dtype.str, shape) // _BLOCK) * _BLOCK
        sums = np.zeros(at // _BLOCK, np.uint32)
        made = {**facts, "arrays": lying, "begin": 0, "linked": True}
        made["begin"] = -(-(_PREFIX.size + len(json.dumps(made)) + 64 + sums.nbytes) // _BLOCK) * _BLOCK
        with _opened(path, os.O_RDWR | os.O_CREAT | os.O_EXCL) as descriptor:
            file = cls(descriptor, token, made, sums)
            os.ftruncate(descriptor, made["begin"] + at)
            for name, array in arrays.items():
                file._write_array(name, array, chunks if name in _PER_CHUNK else None)
            file._write_head()
            os.fsync(descriptor)

    def _write_array(self, name: str, array: NDArray[Any], rows: NDArray[np.int64] | None) -> None:
        kind, at, shape, count = self.facts["arrays"][name]
        width = _width(kind, shape)
        # Whole blocks at a time, so that each has its sum.
        step = _BLOCK // math.gcd(_BLOCK, width)
        step *= max(1, _AT_ONCE // (step * width))
        for low in range(0, count, step):
            high = min(count, low + step)
            data = np.ascontiguousarray(array[low:high] if rows is None else array[rows[low:high]]).tobytes()
            data += bytes(-len(data) % _BLOCK)
            here = at + low * width
            _write_at(self._descriptor, data, self._begin + here)
            for n in range(0, len(data), _BLOCK):
                self._sums[(here + n) // _BLOCK] = zlib.crc32(data[n : n + _BLOCK])

    def _write_head(self) -> None:
        facts = json.dumps(self.facts).encode()
        rest = facts + self._sums.tobytes()
        checksum = zlib.crc32(rest, zlib.crc32(self.token))
        prefix = _PREFIX.pack(_MAGIC, _FORMAT, len(facts), len(self._sums), checksum, self.token)
        _write_at(self._descriptor, prefix + rest, 0)

    # -- purging ---------------------------------------------------------------------------------

    def overwrite(self, nums: Sequence[int]) -> str:
        """Overwrite what the file has of some records; the token that it has then."""
        # First: from here on the file is valid only if the transaction succeeds.
        self.token = secrets.token_bytes(16)
        self._write_head()
        os.fsync(self._descriptor)
        memory = mmap.mmap(self._descriptor, 0)
        touched = self._overwrite(self._arrays(memory), nums)
        memory.flush()
        for block in touched:
            start = self._begin + block * _BLOCK
            self._sums[block] = zlib.crc32(memory[start : start + _BLOCK])
        # The sample of words may be of these records.
        for name in ("words", "shares"):
            self.facts["arrays"][name][2:] = [[0], 0]
        self._write_head()
        os.fsync(self._descriptor)
        return self.token.hex()

    def _overwrite(self, arrays: Arrays, nums: Sequence[int]) -> set[int]:
        """The blocks that were changed."""
        asked = np.array(nums, np.int64)
        asked = asked[asked < len(arrays["place_of"])]
        places = arrays["place_of"][asked]
        asked, places = asked[places >= 0], places[places >= 0].astype(np.int64)
        chunks = rows_at(arrays["place"][: self.facts["chunks"]], places)
        if (arrays["branch"][places] >= 0).any():
            # Records beside them have other neighbours now.
            self.facts["linked"] = False
        touched: set[int] = set()
        for name, (kind, at, shape, count) in self.facts["arrays"].items():
            if name in ("words", "shares"):
                rows = np.arange(count)
            elif name == "place_of":
                rows = asked
            elif name in _FIXED:
                continue
            else:
                rows = chunks if name in _PER_CHUNK else places
            arrays[name][rows] = _PURGED.get(name, 0)
            start = at + rows * _width(kind, shape)
            touched.update((start // _BLOCK).tolist(), ((start + _width(kind, shape) - 1) // _BLOCK).tolist())
        return touched


def _width(kind: str, shape: Sequence[int]) -> int:
    """Bytes of a row."""
    return np.dtype(kind).itemsize * math.prod(shape[1:])


def _write_at(descriptor: int, data: bytes, position: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, position)
        left, position = left[written:], position + written


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
