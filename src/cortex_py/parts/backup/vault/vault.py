"""Encrypted vault files: any bytes under a passphrase, in a format that reveals every change.

Decryption yields what is proved so far; only a call that returns has proved the whole, so do not act on the bytes
before. The format: docs/reference/formats.md.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ....core.errors import InvalidInput, LimitExceeded
from ....core.files import read_exactly, write_fully
from ....core.security.ciphers import TAG_BYTES, Cipher, Random
from .header import (
    DEFAULT_CHUNK_BITS,
    DEFAULT_PARAMETERS,
    LIMITS,
    KdfLimits,
    KdfParameters,
    OpenedHeader,
    altered,
    new_header,
    new_slot,
    read_header,
)

LEAST_PADDED = 4096

_COUNT = struct.Struct(">I")
_PLACE = struct.Struct(">IB")
_MOST_CHUNKS = 1 << 32


def encrypt(
    source: BinaryIO,
    target: BinaryIO,
    passphrase: str,
    *,
    parameters: KdfParameters | None = None,
    limits: KdfLimits = LIMITS,
    chunk_bits: int = DEFAULT_CHUNK_BITS,
    random: Random = os.urandom,
) -> None:
    """Encrypt a stream. Non-default limits have to be given to the reader too."""
    opened = new_header(passphrase, parameters or DEFAULT_PARAMETERS, chunk_bits, limits, random)
    write_fully(target, opened.header.encoded())
    for chunk in seal_chunks(source, opened):
        write_fully(target, chunk)


def decrypt(source: BinaryIO, target: BinaryIO, passphrase: str, *, limits: KdfLimits = LIMITS) -> None:
    """Decrypt a stream chunk by chunk; raises at the first fault.

    What was written before an error is authentic but may be incomplete: discard it.
    """
    opened = read_header(source, limits).opened(passphrase)
    for piece in open_chunks(source, opened, Content()):
        write_fully(target, piece)


def rewrap(
    sealed: bytes,
    old: str,
    new: str,
    *,
    parameters: KdfParameters | None = None,
    limits: KdfLimits = LIMITS,
    random: Random = os.urandom,
) -> bytes:
    """A file with its passphrase replaced. The content is copied as it is, not encrypted again.

    Anyone with the old passphrase and a copy of the file can still read that copy: the file's key stays the same.
    """
    source = io.BytesIO(sealed)
    opened = read_header(source, limits).opened(old)
    before, after = opened.header.slots[: opened.slot], opened.header.slots[opened.slot + 1 :]
    if any(slot.wrapping_key(new) is not None for slot in before + after):
        # Replacing it later would leave the other slot.
        raise InvalidInput("The new passphrase opens the file already.", remedy="Choose another.", field="passphrase")
    slot = new_slot(opened.header.fixed, opened.file_key, new, parameters or DEFAULT_PARAMETERS, random)
    slots = (*before, slot, *after)
    limits.check_written([one.parameters for one in slots])
    return opened.with_slots(slots).encoded() + source.read()


# -- chunks ----------------------------------------------------------------------------------------
#
# A chunk is bound to its file, its position and whether it is the last, so that none can be changed, moved, repeated,
# left out or taken from another file. At most two chunks are in memory.


@dataclass(slots=True)
class Content:
    """What was read so far; complete only when the iteration has ended without an error."""

    size: int = 0
    padded: int = 0
    chunks: int = 0


def padded_size(size: int) -> int:
    """The size after padding, which hides the real one: at most an eighth more, few steps per power of two (Padmé)."""
    if size <= LEAST_PADDED:
        return LEAST_PADDED
    exponent = size.bit_length() - 1
    mask = (1 << (exponent - exponent.bit_length())) - 1
    return (size + mask) & ~mask


def seal_chunks(source: BinaryIO, opened: OpenedHeader) -> Iterator[bytes]:
    """The sealed chunks of a source, read to its end."""
    cipher = _ChunkCipher(opened)
    capacity = cipher.capacity
    size = 0
    piece = read_exactly(source, capacity)
    while len(piece) == capacity and (following := read_exactly(source, capacity)):
        yield cipher.seal(piece, capacity, last=False)
        size += capacity
        piece = following
    left = padded_size(size + len(piece)) - size
    while left:
        width = min(capacity, left)
        left -= width
        yield cipher.seal(piece, width, last=not left)
        piece = b""


def open_chunks(source: BinaryIO, opened: OpenedHeader, content: Content) -> Iterator[memoryview]:
    """The content of a file after its header, in pieces that are verified before they are yielded.

    Only an iteration that ends without an error proves that nothing is missing.
    """
    cipher = _ChunkCipher(opened)
    width = cipher.capacity + _COUNT.size + TAG_BYTES
    ended = False
    piece = read_exactly(source, width)
    while True:
        # The chunk at the end of the file must be marked as the last: this detects cut and appended bytes.
        following = read_exactly(source, width) if len(piece) == width else b""
        plain = cipher.open(piece, last=not following)
        capacity = len(plain) - _COUNT.size
        count = _COUNT.unpack_from(plain)[0]
        if count > capacity or (ended and count) or plain[_COUNT.size + count :].strip(b"\0"):
            raise altered(f"chunk {content.chunks} is malformed")
        ended = ended or count < capacity
        content.size += count
        content.padded += capacity
        content.chunks += 1
        if count:
            yield memoryview(plain)[_COUNT.size : _COUNT.size + count]
        if not following:
            break
        piece = following
    if content.padded != padded_size(content.size):
        raise altered("its content has the wrong padding")


class _ChunkCipher:
    """The cipher of one content, counting chunks."""

    __slots__ = ("_binding", "_cipher", "_number", "_prefix", "capacity")

    def __init__(self, opened: OpenedHeader) -> None:
        fixed = opened.header.fixed
        self.capacity = (1 << fixed.chunk_bits) - _COUNT.size
        self._cipher = Cipher(opened.content_key)
        self._binding = fixed.binding
        self._prefix = fixed.nonce_prefix
        self._number = 0

    def seal(self, piece: bytes, width: int, *, last: bool) -> bytes:
        plain = b"".join((_COUNT.pack(len(piece)), piece, bytes(width - len(piece))))
        place = self._place(last)
        return self._cipher.encrypt(self._prefix + place, plain, self._binding + place)

    def open(self, sealed: bytes, *, last: bool) -> bytes:
        number = self._number
        place = self._place(last)
        plain = self._cipher.decrypt(self._prefix + place, sealed, self._binding + place)
        if plain is None:
            raise altered(f"chunk {number} is not what was written there, or what follows it is missing")
        if len(plain) <= _COUNT.size:
            raise altered(f"chunk {number} is malformed")
        return plain

    def _place(self, last: bool) -> bytes:
        if self._number >= _MOST_CHUNKS:
            raise LimitExceeded("The content has too many chunks.", remedy="Use larger chunks.")
        place = _PLACE.pack(self._number, last)
        self._number += 1
        return place
