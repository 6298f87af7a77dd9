"""The key of an encrypted home, and its sealed files: whole, or as a stream that can be read from any position.

A sealed file is recognised by its first bytes, so a home in which only some files are sealed can be read. Each file is
bound to its purpose: a file put in the place of another does not open.
"""

from __future__ import annotations

import io
import os
import struct
from dataclasses import dataclass, field
from typing import BinaryIO

from ..errors import BackupCorrupt
from .ciphers import TAG_BYTES, Cipher, ObjectKeys, derive_key, name_object, open_object, seal_object

__all__ = ["SEALED_START", "HomeKey", "SealedReader", "SealedWriter", "is_sealed"]

SEALED_START = b"\x89CXH\r\n\x1a\n"
_WHOLE, _STREAM = b"\x01", b"\x02"
_SALT_BYTES = 32
_CHUNK = 64 * 1024
_HEAD = len(SEALED_START) + len(_STREAM) + _SALT_BYTES
_PLACE = struct.Struct(">IQ")
_NAME_DIGITS = 32


@dataclass(frozen=True, slots=True)
class HomeKey:
    """The keys made from the one random key of a home. `database` encrypts its SQLite files."""

    database: bytes = field(repr=False)
    _objects: ObjectKeys = field(repr=False)
    _streams: bytes = field(repr=False)

    @classmethod
    def of(cls, root: bytes) -> HomeKey:
        return cls(
            derive_key(root, salt=b"", info=b"cortex/home/1/database"),
            ObjectKeys.of(derive_key(root, salt=b"", info=b"cortex/home/1/objects")),
            derive_key(root, salt=b"", info=b"cortex/home/1/streams"),
        )

    def seal(self, data: bytes, context: str) -> bytes:
        """Seal a small file; it opens only with the same context."""
        return SEALED_START + _WHOLE + seal_object(data, self._objects, context=context.encode())

    def unseal(self, data: bytes, context: str) -> bytes:
        """The content of a sealed file; a file that is not sealed is returned unchanged."""
        if not is_sealed(data):
            return data
        start = len(SEALED_START) + len(_WHOLE)
        return open_object(data[start:], self._objects, context=context.encode())

    def name(self, text: str) -> str:
        """A file name that does not reveal the text; the same text always gives the same name."""
        return name_object(self._objects, text.encode())[:_NAME_DIGITS]

    def stream_cipher(self, salt: bytes) -> Cipher:
        return Cipher(derive_key(self._streams, salt=salt, info=b"cortex/home/1/stream"))


def is_sealed(data: bytes) -> bool:
    return data.startswith(SEALED_START)


class SealedWriter(io.RawIOBase):
    """Seals what is written to it, in chunks. `finish` writes the last chunk, without which nothing can be read."""

    def __init__(self, target: BinaryIO, key: HomeKey) -> None:
        salt = os.urandom(_SALT_BYTES)
        self._target = target
        self._cipher = key.stream_cipher(salt)
        self._waiting = bytearray()
        self._number = 0
        self._target.write(SEALED_START + _STREAM + salt)

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        self._waiting += data
        while len(self._waiting) > _CHUNK:
            self._put(bytes(self._waiting[:_CHUNK]), last=False)
            del self._waiting[:_CHUNK]
        return len(data)

    def finish(self) -> None:
        self._put(bytes(self._waiting), last=True)

    def _put(self, data: bytes, *, last: bool) -> None:
        self._target.write(self._cipher.encrypt(_nonce(self._number), data, _bound(last)))
        self._number += 1


class SealedReader(io.RawIOBase):
    """Reads a sealed stream from any position. Every chunk is authenticated before it is returned."""

    def __init__(self, source: BinaryIO, key: HomeKey, name: object) -> None:
        size = source.seek(0, os.SEEK_END) - _HEAD
        source.seek(0)
        head = source.read(_HEAD)
        self._name = name
        chunks = max(1, -(-size // (_CHUNK + TAG_BYTES)))
        if len(head) < _HEAD or not head.startswith(SEALED_START + _STREAM) or size < TAG_BYTES:
            raise self._altered()
        self._source = source
        self._cipher = key.stream_cipher(head[-_SALT_BYTES:])
        self._chunks = chunks
        self._size = size - chunks * TAG_BYTES
        self._at = 0
        self._chunk = (-1, b"")
        # The last chunk authenticates the total length.
        self._read_chunk(chunks - 1)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._at >= self._size or not len(buffer):
            return 0
        number, inside = divmod(self._at, _CHUNK)
        piece = self._read_chunk(number)[inside : inside + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _read_chunk(self, number: int) -> bytes:
        if self._chunk[0] != number:
            self._source.seek(_HEAD + number * (_CHUNK + TAG_BYTES))
            sealed = self._source.read(_CHUNK + TAG_BYTES)
            plain = self._cipher.decrypt(_nonce(number), sealed, _bound(number == self._chunks - 1))
            if plain is None:
                raise self._altered()
            self._chunk = (number, plain)
        return self._chunk[1]

    def _altered(self) -> BackupCorrupt:
        return BackupCorrupt(f"{self._name} is damaged, was altered, or belongs to another home.", remedy="Use a copy.")


def _nonce(number: int) -> bytes:
    return _PLACE.pack(0, number)


def _bound(last: bool) -> bytes:
    return b"last" if last else b"more"
