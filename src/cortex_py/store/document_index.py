"""What search needs of a memory, as bytes to carry: its parts with terms and vectors, and who made them.

The bytes begin with a tag made of the model and of how text is cut into terms. Where the reader's
differs, the parts are made anew from the text.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from .rows import PreparedChunk

__all__ = ["CarriedIndex", "index_tag", "read_index", "written_index"]

TAG_BYTES = 8
_START = struct.Struct(">8s16sIQqI")
_PART = struct.Struct(">IIBII")


@dataclass(frozen=True, slots=True)
class CarriedIndex:
    digest: bytes
    length: int
    flags: int
    author: int
    chunks: tuple[PreparedChunk, ...]


def index_tag(model: str, terms: str) -> bytes:
    """The tag of what a model and a way of making terms produce."""
    return sha256(f"{terms}\n{model}".encode()).digest()[:TAG_BYTES]


def written_index(tag: bytes, index: CarriedIndex) -> bytes:
    pieces = [
        _START.pack(tag, index.digest, index.length, index.flags & (1 << 64) - 1, index.author, len(index.chunks))
    ]
    for one in index.chunks:
        vector = one.vector or b""
        pieces += (
            _PART.pack(one.first, one.past, int(one.by_assistant), len(one.terms), len(vector)),
            one.terms,
            vector,
        )
    return b"".join(pieces)


def read_index(data: bytes, tag: bytes, *, content: str, vector_bytes: int) -> CarriedIndex | None:
    """The index again; None where it was made otherwise, is of another length, or does not fit the content."""
    if len(data) < _START.size or data[:TAG_BYTES] != tag:
        return None
    _, digest, length, flags, author, count = _START.unpack_from(data)
    place = _START.size
    chunks: list[PreparedChunk] = []
    while len(chunks) < count:
        if place + _PART.size > len(data):
            return None
        first, past, by_assistant, terms, vector = _PART.unpack_from(data, place)
        place += _PART.size
        end = place + terms + vector
        if end > len(data) or not 0 <= first <= past <= len(content) or vector not in (0, vector_bytes):
            return None
        kept = data[place + terms : end] or None
        chunks.append(PreparedChunk(first, past, bool(by_assistant), data[place : place + terms], kept))
        place = end
    if place != len(data) or not _whole(chunks):
        return None
    return CarriedIndex(digest, length, flags, author, tuple(chunks))


def _whole(chunks: Sequence[PreparedChunk]) -> bool:
    return bool(chunks) and all(one.vector for one in chunks)
