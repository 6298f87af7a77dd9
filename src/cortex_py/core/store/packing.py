"""Lossless compression of contents (zstd), with a dictionary for each space where one pays off.

Terms, vectors and summary of a packed record stay as they are, so search only unpacks what it returns.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from functools import lru_cache

from .database import Database, Session, column, first

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["Dictionaries", "pack", "train_dictionary", "unpack"]

logger = logging.getLogger(__name__)

_LEVEL = 9
# Contents that do not shrink to this share stay unpacked.
_WORTH = 0.9
# The size of a dictionary: one 32nd of what it is trained on, within these bounds.
_SHARE = 32
_SMALLEST, _LARGEST = 2_048, 32_768
_SAMPLE_BYTES = 4_000_000
# With the dictionary, its own size included, contents must shrink to this share of their size without it.
_PAYS = 0.9
_HELD_OUT = 5
_CACHED = 64


def pack(content: str, dictionary: bytes | None = None) -> bytes | None:
    """The packed content; None if it would hardly be smaller."""
    data = content.encode()
    packed = zstd.compress(data, options=_OPTIONS, zstd_dict=_loaded(dictionary) if dictionary else None)
    return packed if len(packed) < _WORTH * len(data) else None


def unpack(packed: bytes, dictionary: bytes | None = None) -> str:
    """The original content."""
    return zstd.decompress(packed, zstd_dict=_loaded(dictionary) if dictionary else None).decode()


def train_dictionary(contents: Sequence[str]) -> bytes | None:
    """A dictionary for contents like these; None if they are too few or it does not pay off.

    Every fifth content is held out from training, to measure the gain.
    """
    samples = _sampled(contents)
    learned = [data for i, data in enumerate(samples) if i % _HELD_OUT]
    measured = samples[::_HELD_OUT]
    size = min(sum(map(len, learned)) // _SHARE, _LARGEST)
    if len(learned) < 64 or size < _SMALLEST:
        return None
    try:
        made = zstd.train_dict(learned, size)
    except zstd.ZstdError as error:
        # The contents are all alike, or have nothing in common.
        logger.debug("no dictionary was trained: %s", error)
        return None
    plain = sum(len(zstd.compress(data, options=_OPTIONS)) for data in measured)
    helped = sum(len(zstd.compress(data, options=_OPTIONS, zstd_dict=made)) for data in measured)
    share = sum(map(len, samples)) / max(1, sum(map(len, measured)))
    return bytes(made.dict_content) if helped * share + size < _PAYS * plain * share else None


def _sampled(contents: Sequence[str]) -> list[bytes]:
    samples, left = [], _SAMPLE_BYTES
    for content in contents:
        # Long contents repeat themselves enough without a dictionary.
        data = content[:16_384].encode()
        samples.append(data)
        left -= len(data)
        if left <= 0:
            break
    return samples


_OPTIONS = {int(zstd.CompressionParameter.compression_level): _LEVEL, int(zstd.CompressionParameter.checksum_flag): 1}


@lru_cache(maxsize=_CACHED)
def _loaded(dictionary: bytes) -> zstd.ZstdDict:
    return zstd.ZstdDict(dictionary)


class Dictionaries:
    """The dictionaries in the store. In an era they never change, so each process caches those it has read."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[int, str, int], bytes] = {}

    def get(self, session: Session, space: str, num: int | None) -> bytes | None:
        if not num:
            return None
        key = (self._database.era, space, num)
        if key not in self._known:
            (data,) = column(session, "SELECT data FROM dictionary WHERE space = ? AND num = ?", (space, num))
            self._known[key] = data
        return self._known[key]

    def newest(self, session: Session, space: str) -> tuple[int, bytes] | None:
        return first(session, "SELECT num, data FROM dictionary WHERE space = ? ORDER BY num DESC LIMIT 1", (space,))

    def add(self, session: Session, space: str, data: bytes, at: int) -> int:
        known = self.newest(session, space)
        num = known[0] + 1 if known else 1
        session.insert("dictionary", {"space": space, "num": num, "data": data, "created_at": at})
        return num
