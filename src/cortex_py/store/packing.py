"""Contents packed without loss (zstd), with a dictionary of their space where one pays.

A packed record keeps its terms, vectors and summary as they are, so search never unpacks anything it does
not return.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache

from .database import Row, Session

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["Dictionaries", "pack", "trained", "unpack"]

# Level 19 packed dialogue turns up to 5 points smaller with a dictionary; the time it takes was not measured.
_LEVEL = 9
# What does not shrink by this much is left as it is.
_WORTH = 0.9
# A dictionary is a small share of what it is learned from, within bounds.
_SHARE = 32
_SMALLEST, _LARGEST = 2_048, 32_768
_SAMPLE_BYTES = 4_000_000
# A dictionary costs its own size once, and must save this share of what is packed without it.
_PAYS = 0.9
_HELD_OUT = 5
_CACHED = 64


def pack(content: str, dictionary: bytes | None = None) -> bytes | None:
    """The content packed; None where that would hardly be smaller."""
    data = content.encode()
    packed = zstd.compress(data, options=_OPTIONS, zstd_dict=_loaded(dictionary) if dictionary else None)
    return packed if len(packed) < _WORTH * len(data) else None


def unpack(packed: bytes, dictionary: bytes | None = None) -> str:
    """The very content that was packed."""
    return zstd.decompress(packed, zstd_dict=_loaded(dictionary) if dictionary else None).decode()


def trained(contents: Sequence[str]) -> bytes | None:
    """A dictionary for contents like these; None where they are too few, or it would not pay for itself.

    Every fifth content is held out from the training, to measure on.
    """
    samples = _sampled(contents)
    learned = [data for i, data in enumerate(samples) if i % _HELD_OUT]
    measured = samples[::_HELD_OUT]
    size = min(sum(map(len, learned)) // _SHARE, _LARGEST)
    if len(learned) < 64 or size < _SMALLEST:
        return None
    try:
        made = zstd.train_dict(learned, size)
    except zstd.ZstdError:
        return None  # all alike, or nothing in common
    plain = sum(len(zstd.compress(data, options=_OPTIONS)) for data in measured)
    helped = sum(len(zstd.compress(data, options=_OPTIONS, zstd_dict=made)) for data in measured)
    share = sum(map(len, samples)) / max(1, sum(map(len, measured)))
    return bytes(made.dict_content) if helped * share + size < _PAYS * plain * share else None


def _sampled(contents: Sequence[str]) -> list[bytes]:
    samples, room = [], _SAMPLE_BYTES
    for content in contents:
        # Long contents need no dictionary: they have enough in common with themselves.
        data = content[:16_384].encode()
        samples.append(data)
        room -= len(data)
        if room <= 0:
            break
    return samples


_OPTIONS = {
    int(zstd.CompressionParameter.compression_level): _LEVEL,
    int(zstd.CompressionParameter.checksum_flag): 1,
}


@lru_cache(maxsize=_CACHED)
def _loaded(dictionary: bytes) -> zstd.ZstdDict:
    return zstd.ZstdDict(dictionary)


class Dictionaries:
    """The dictionaries in the store; one is never changed, so that a process keeps those it has read."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], bytes] = {}

    def get(self, session: Session, space: str, num: int | None) -> bytes | None:
        if not num:
            return None
        found = self._known.get((space, num))
        if found is None:
            rows: list[Row] = session.rows("SELECT data FROM dictionary WHERE space = ? AND num = ?", (space, num))
            found = self._known[(space, num)] = rows[0][0]
        return found

    def newest(self, session: Session, space: str) -> tuple[int, bytes] | None:
        rows = session.rows("SELECT num, data FROM dictionary WHERE space = ? ORDER BY num DESC LIMIT 1", (space,))
        return (rows[0][0], rows[0][1]) if rows else None

    def add(self, session: Session, space: str, data: bytes, at: int) -> int:
        known = self.newest(session, space)
        num = known[0] + 1 if known else 1
        session.run("INSERT INTO dictionary (space, num, data, created_at) VALUES (?, ?, ?, ?)", (space, num, data, at))
        return num
