"""The content of an encrypted vault file: cut into chunks, padded, sealed one by one, and read back.

A chunk is bound to its file, its place and whether it is the last, so that none can be changed, moved,
repeated, left out or taken from elsewhere. Two chunks at most are held in memory. Byte by byte:
docs/formats.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ..errors import LimitExceeded
from .byte_streams import read_exactly
from .ciphers import TAG_BYTES, Cipher
from .vault_header import FixedPart, OpenedHeader, altered

__all__ = ["LEAST_PADDED", "Content", "open_chunks", "padded_size", "seal_chunks"]

LEAST_PADDED = 4096

_COUNT = struct.Struct(">I")
_PLACE = struct.Struct(">IB")
_MOST_CHUNKS = 1 << 32


@dataclass(slots=True)
class Content:
    """What was read so far; whole only when the reading has ended without an error."""

    size: int = 0
    padded: int = 0
    chunks: int = 0


def padded_size(size: int) -> int:
    """The size under which content hides: at most an eighth more, with few steps for each power of two (Padmé)."""
    if size <= LEAST_PADDED:
        return LEAST_PADDED
    exponent = size.bit_length() - 1
    mask = (1 << (exponent - exponent.bit_length())) - 1
    return (size + mask) & ~mask


def seal_chunks(source: BinaryIO, opened: OpenedHeader) -> Iterator[bytes]:
    """The sealed chunks of a source, read to its end."""
    sealing = _Sealing(opened)
    capacity = sealing.capacity
    size = 0
    piece = read_exactly(source, capacity)
    while len(piece) == capacity and (following := read_exactly(source, capacity)):
        yield sealing.sealed(piece, capacity, last=False)
        size += capacity
        piece = following
    left = padded_size(size + len(piece)) - size
    while left:
        width = min(capacity, left)
        left -= width
        yield sealing.sealed(piece, width, last=not left)
        piece = b""


def open_chunks(source: BinaryIO, opened: OpenedHeader, content: Content) -> Iterator[memoryview]:
    """The content of a file after its header, piece by piece, each proved before it is given.

    Only a reading that ends without an error has proved that nothing is missing.
    """
    opening = _Sealing(opened)
    width = opening.capacity + _COUNT.size + TAG_BYTES
    ended = False
    piece = read_exactly(source, width)
    while True:
        # A chunk is last where the file ends: what is cut off or appended makes the mark of the last chunk wrong.
        following = read_exactly(source, width) if len(piece) == width else b""
        plain = opening.opened(piece, last=not following)
        room = len(plain) - _COUNT.size
        count = _COUNT.unpack_from(plain)[0]
        if count > room or (ended and count) or plain[_COUNT.size + count :].strip(b"\0"):
            raise altered(f"chunk {content.chunks} is not formed as one")
        ended = ended or count < room
        content.size += count
        content.padded += room
        content.chunks += 1
        if count:
            yield memoryview(plain)[_COUNT.size : _COUNT.size + count]
        if not following:
            break
        piece = following
    if content.padded != padded_size(content.size):
        raise altered("its content is not padded as it should be")


class _Sealing:
    """The cipher of one content, counting chunks."""

    __slots__ = ("_binding", "_cipher", "_number", "_prefix", "capacity")

    def __init__(self, opened: OpenedHeader) -> None:
        fixed: FixedPart = opened.header.fixed
        self.capacity = (1 << fixed.chunk_bits) - _COUNT.size
        self._cipher = Cipher(opened.content_key)
        self._binding = fixed.binding
        self._prefix = fixed.nonce_prefix
        self._number = 0

    def sealed(self, piece: bytes, width: int, *, last: bool) -> bytes:
        plain = b"".join((_COUNT.pack(len(piece)), piece, bytes(width - len(piece))))
        place = self._place(last)
        return self._cipher.encrypt(self._prefix + place, plain, self._binding + place)

    def opened(self, sealed: bytes, *, last: bool) -> bytes:
        number = self._number
        place = self._place(last)
        plain = self._cipher.decrypt(self._prefix + place, sealed, self._binding + place)
        if plain is None:
            raise altered(f"chunk {number} is not what was written there, or what follows it is missing")
        if len(plain) <= _COUNT.size:
            raise altered(f"chunk {number} is not formed as one")
        return plain

    def _place(self, last: bool) -> bytes:
        if self._number >= _MOST_CHUNKS:
            raise LimitExceeded("The content has more chunks than can be counted.", remedy="Take larger chunks.")
        place = _PLACE.pack(self._number, last)
        self._number += 1
        return place
