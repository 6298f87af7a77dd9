"""A two-level cache of vectors: memory in front of a file that all processes share.

A key covers model, normalisation and text; equal keys have equal vectors. Both levels are bounded in bytes and drop
the least recently used entries.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .sqlite_vectors import SqliteVectors

__all__ = ["VectorCache", "cache_key"]

# Memory of an entry beside its vector: key, array header, dictionary slot.
_OVERHEAD = 250


def cache_key(fingerprint: str, normalize: bool, text: str) -> bytes:
    """The 32-byte key of a vector; the text itself is not stored."""
    digest = hashlib.sha256()
    for part in (fingerprint.encode(), b"1" if normalize else b"0"):
        digest.update(len(part).to_bytes(4, "big") + part)
    digest.update(text.encode("utf-8"))
    return digest.digest()


class VectorCache:
    """Both levels behind one interface. Safe to share between threads."""

    def __init__(self, memory_bytes: int, kept: SqliteVectors | None = None) -> None:
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
        """The number of cached vectors. Those in memory are also in the file, unless it cannot be used."""
        return max(len(self._recent), self._kept.count() if self._kept is not None else 0)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def _remember(self, vectors: Iterable[tuple[bytes, NDArray[np.float32]]]) -> None:
        with self._lock:
            for key, vector in vectors:
                # Callers share the array, so it must not change.
                vector.setflags(write=False)
                former = self._recent.pop(key, None)
                self._bytes += vector.nbytes + _OVERHEAD - (0 if former is None else former.nbytes + _OVERHEAD)
                self._recent[key] = vector
            while self._bytes > self._memory_bytes and self._recent:
                _, old = self._recent.popitem(last=False)
                self._bytes -= old.nbytes + _OVERHEAD
