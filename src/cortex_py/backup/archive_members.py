"""The pieces of a snapshot archive: one gzip member for each part, the tar entry in it, and the trailer of the file.

Each piece has one form. What is read is compared with the piece that would have been written, so that
nothing can be said beside it. Byte by byte: docs/formats.md.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ..errors import BackupCorrupt, BackupError
from .archive_manifest import VERSION, altered

__all__ = [
    "BLOCK",
    "END_OF_TAR",
    "TRAILER_BYTES",
    "Entry",
    "InflatedMember",
    "Packed",
    "Trailer",
    "gzip_member",
    "padding",
    "read_entry",
    "read_trailer",
    "tar_header",
]

BLOCK = 512
# Two blocks of zeros end a tar file.
END_OF_TAR = bytes(2 * BLOCK)
TRAILER_BYTES = 74

_TAR = struct.Struct("100s8s8s8s12s12s8s1s100s8s32s32s8s8s155s12x")
_USTAR = b"ustar\x0000"
_REGULAR = b"0"
_KINDS = {
    b"1": "a link",
    b"2": "a link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a folder",
    b"6": "a pipe",
    b"g": "a PAX extension",
    b"x": "a PAX extension",
    b"K": "a GNU extension",
    b"L": "a GNU extension",
    b"S": "a GNU extension",
}

# No flags, no time, no operating system. The last but one byte is told by RFC 1952 as 4 for the fastest method.
_GZIP_COMPRESSED = bytes.fromhex("1f8b0800 00000000 00ff")
_GZIP_STORED = bytes.fromhex("1f8b0800 00000000 04ff")
_GZIP_END = struct.Struct("<II")
_RAW_DEFLATE = -zlib.MAX_WBITS
_LEVEL = 6

# A gzip member with an extra field, and nothing in it.
_TRAILER_START = bytes.fromhex("1f8b0804 00000000 00ff 3400 4358 3000")
_TRAILER_FIELDS = struct.Struct(">HHQ")
_TRAILER_CHECK = struct.Struct(">I")
_TRAILER_END = bytes.fromhex("0300 00000000 00000000")
_DIGEST_BYTES = 32
_CHECK_AT = len(_TRAILER_START) + _TRAILER_FIELDS.size + _DIGEST_BYTES


# -- Tar entries ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """What the header of a tar entry says."""

    name: str
    size: int


def tar_header(name: str, size: int) -> bytes:
    """The header of a regular file in the ustar form, without owner and time."""
    none = b"0000000\0"
    before = _tar_fields(name, size, b" " * 8, none)
    return _tar_fields(name, size, b"%06o\0 " % sum(before), none)


def _tar_fields(name: str, size: int, checksum: bytes, none: bytes) -> bytes:
    return _TAR.pack(
        name.encode("ascii"),
        b"0000600\0",
        none,
        none,
        b"%011o\0" % size,
        b"%011o\0" % 0,
        checksum,
        _REGULAR,
        b"",
        _USTAR,
        b"",
        b"",
        none,
        none,
        b"",
    )


def padding(size: int) -> bytes:
    """The zeros that fill the last block of an entry."""
    return bytes(-size % BLOCK)


def read_entry(block: bytes) -> Entry:
    """The header of an entry, which is in the one form that is written."""
    if len(block) != BLOCK or not block.strip(b"\0"):
        raise altered("an entry of the tar file is missing")
    name, _, _, _, size, _, checksum, kind, _, magic, *_ = _TAR.unpack(block)
    before = sum(block) - sum(checksum) + 8 * ord(" ")
    if checksum != b"%06o\0 " % before:
        raise altered("the checksum of a tar entry is wrong")
    if kind != _REGULAR:
        raise altered(f"it holds {_KINDS.get(kind, 'a tar entry of an unknown kind')}")
    if magic != _USTAR:
        raise altered("it holds a tar entry of another form than ustar")
    text = name.partition(b"\0")[0].decode("ascii", "backslashreplace")
    digits = size[:-1]
    if not digits.isdigit() or b"8" in digits or b"9" in digits:
        raise altered("the size of a tar entry is no number")
    entry = Entry(text, int(digits, 8))
    # Catches all that is not in these two: owner, time, mode, a prefix of the name, bytes behind an end.
    if tar_header(text, entry.size) != block:
        raise altered(f"the tar entry {text!a} says what no version of Cortex writes")
    return entry


# -- Gzip members --------------------------------------------------------------------------------


def gzip_member(*pieces: bytes, compress: bool, most_ratio: int) -> bytes:
    """The pieces as one gzip member, never so small that inflating it would exceed the ratio."""
    size, check = 0, 0
    for piece in pieces:
        size += len(piece)
        check = zlib.crc32(piece, check)
    head = _GZIP_COMPRESSED if compress else _GZIP_STORED
    end = _GZIP_END.pack(check, size & 0xFFFFFFFF)
    packed = b"".join((head, *_deflated(pieces, _LEVEL if compress else 0), end))
    if size > most_ratio * len(packed):
        # A reader could not tell it from a bomb.
        packed = b"".join((head, *_deflated(pieces, 0), end))
    return packed


def _deflated(pieces: tuple[bytes, ...], level: int) -> Iterator[bytes]:
    deflater = zlib.compressobj(level, zlib.DEFLATED, _RAW_DEFLATE)
    for piece in pieces:
        yield deflater.compress(piece)
    yield deflater.flush()


class Packed(Protocol):
    """Bytes of the file in their order."""

    def next_piece(self) -> bytes:
        """Some bytes; none at the end."""
        ...

    def give_back(self, rest: bytes) -> None:
        """Bytes of the last piece that belong to what follows."""
        ...


class InflatedMember:
    """The content of one gzip member, inflated as far as is asked for and no further."""

    __slots__ = ("_check", "_inflater", "_packed", "_size", "_waiting", "compressed")

    def __init__(self, packed: Packed) -> None:
        self._packed = packed
        self._inflater = zlib.decompressobj(_RAW_DEFLATE)
        self._waiting = b""
        self._size = 0
        self._check = 0
        head = self._plain(len(_GZIP_COMPRESSED))
        if head not in (_GZIP_COMPRESSED, _GZIP_STORED):
            raise altered("a gzip member has a header that no version of Cortex writes")
        self.compressed = head == _GZIP_COMPRESSED

    def read(self, size: int) -> bytes:
        """The next bytes of the content, as many as asked for."""
        pieces = []
        while size:
            piece = self._inflated(size)
            if not piece:
                raise altered("a gzip member ends early")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def end(self) -> None:
        """See that the content ends here, and is what it was when it was written."""
        if self._inflated(1):
            raise altered("a gzip member holds more than its entry")
        self._packed.give_back(self._inflater.unused_data)
        if self._plain(_GZIP_END.size) != _GZIP_END.pack(self._check, self._size & 0xFFFFFFFF):
            raise altered("the checksum of a gzip member is wrong")

    def _inflated(self, most: int) -> bytes:
        """Some bytes of the content, or none where it ends."""
        inflater = self._inflater
        while not inflater.eof:
            try:
                piece = inflater.decompress(self._waiting, most)
            except zlib.error as error:
                raise altered("a gzip member cannot be inflated") from error
            self._waiting = inflater.unconsumed_tail
            if piece:
                self._size += len(piece)
                self._check = zlib.crc32(piece, self._check)
                return piece
            if not inflater.eof:
                self._waiting = self._more()
        return b""

    def _plain(self, size: int) -> bytes:
        """Bytes of the member around its content."""
        data = self._more()
        while len(data) < size:
            data += self._more()
        self._packed.give_back(data[size:])
        return data[:size]

    def _more(self) -> bytes:
        piece = self._packed.next_piece()
        if not piece:
            raise altered("it ends within a gzip member")
        return piece


# -- The trailer ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trailer:
    """The end of the file: where the manifest's member begins, and the digest of all bytes before the digest."""

    manifest_at: int
    digest: bytes = b""

    def start(self) -> bytes:
        """What stands before the digest, and goes into it."""
        return _TRAILER_START + _TRAILER_FIELDS.pack(VERSION, 0, self.manifest_at)

    def encoded(self) -> bytes:
        data = self.start() + self.digest
        return data + _TRAILER_CHECK.pack(zlib.crc32(data)) + _TRAILER_END


def read_trailer(data: bytes) -> Trailer:
    """The trailer of a file from its last bytes."""
    if len(data) != TRAILER_BYTES or not data.startswith(_TRAILER_START):
        raise BackupCorrupt(
            "This is not a snapshot archive of Cortex, or its end is missing.",
            remedy="Check which file was meant, or use another copy.",
        )
    check = _TRAILER_CHECK.pack(zlib.crc32(data[:_CHECK_AT]))
    if data[_CHECK_AT:] != check + _TRAILER_END:
        raise altered("its trailer is damaged")
    version, _, manifest_at = _TRAILER_FIELDS.unpack_from(data, len(_TRAILER_START))
    # Only after the check, so that damage is never taken for a later version.
    if version > VERSION:
        raise BackupError(
            f"The snapshot archive has format {version}; this version of Cortex reads format {VERSION}.",
            remedy="Update Cortex.",
        )
    trailer = Trailer(manifest_at, data[_CHECK_AT - _DIGEST_BYTES : _CHECK_AT])
    if trailer.encoded() != data:
        raise altered("its trailer says what no version of Cortex writes")
    return trailer
