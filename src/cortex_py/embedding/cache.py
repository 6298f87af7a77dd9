"""Vectors that were computed before: a little memory in front of a file that all processes share.

A key names the model, the normalisation and the text; equal keys have equal vectors. Both tiers are bounded
in bytes and forget what was not asked for the longest.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["KeptVectors", "VectorCache", "cache_key"]

# What an entry costs beside its vector: the key, the array's header, its place in the table.
_OVERHEAD = 250


def cache_key(fingerprint: str, normalize: bool, text: str) -> bytes:
    """32 bytes that stand for one vector; the text itself is not kept."""
    digest = hashlib.sha256()
    for part in (fingerprint.encode(), b"1" if normalize else b"0"):
        digest.update(len(part).to_bytes(4, "big") + part)
    digest.update(text.encode("utf-8"))
    return digest.digest()


class KeptVectors(Protocol):
    """The tier that outlives the process."""

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]: ...

    def put_many(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None: ...

    def count(self) -> int: ...

    def close(self) -> None: ...


class VectorCache:
    """Two tiers behind one question. Safe to share between threads."""

    def __init__(self, memory_bytes: int, kept: KeptVectors | None = None) -> None:
        self._memory_bytes = memory_bytes
        self._kept = kept
        self._recent: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """The vectors that are known, by key."""
        found: dict[bytes, NDArray[np.float32]] = {}
        with self._lock:
            for key in keys:
                if key in self._recent:
                    self._recent.move_to_end(key)
                    found[key] = self._recent[key]
        missing = [key for key in keys if key not in found]
        if missing and self._kept is not None:
            kept = self._kept.get_many(missing)
            self._remember(kept.items())
            found |= kept
        return found

    def put_many(self, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
        self._remember(vectors.items())
        if self._kept is not None:
            self._kept.put_many(vectors)

    def count(self) -> int:
        """How many vectors are known. Those in memory are in the file too, unless it cannot be used."""
        return max(len(self._recent), self._kept.count() if self._kept is not None else 0)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def _remember(self, vectors: Iterable[tuple[bytes, NDArray[np.float32]]]) -> None:
        with self._lock:
            for key, vector in vectors:
                # Nobody may change what the next caller is given.
                vector.setflags(write=False)
                former = self._recent.pop(key, None)
                self._bytes += vector.nbytes + _OVERHEAD - (0 if former is None else former.nbytes + _OVERHEAD)
                self._recent[key] = vector
            while self._bytes > self._memory_bytes and self._recent:
                _, old = self._recent.popitem(last=False)
                self._bytes -= old.nbytes + _OVERHEAD
