"""Reading snapshot archives: strictly, as a stream, and without believing anything that was not checked.

The manifest is read first, from the end of the file, so that every size is known and within the bounds
before a part is inflated. The form and the order of the checks: docs/formats.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from ..errors import storage_error
from .archive import Part
from .archive_manifest import (
    LIMITS,
    MANIFEST_NAME,
    Limits,
    Manifest,
    PartFacts,
    altered,
    parse_manifest,
    refuse_excess,
)
from .archive_members import (
    BLOCK,
    END_OF_TAR,
    TRAILER_BYTES,
    InflatedMember,
    Trailer,
    padding,
    read_entry,
    read_trailer,
)
from .byte_streams import read_exactly
from .replacing import whole_file

__all__ = ["read_manifest", "read_parts", "verify_archive"]

_READ_BYTES = 64 * 1024
# What a gzip member may be longer than its content: headers, and the marks of stored blocks.
_PACKING_BYTES = 64 * 1024


def verify_archive(path: Path, limits: Limits = LIMITS) -> Manifest:
    """Read an archive to its end as `read_parts` would, keeping nothing."""
    with _opened(path, limits) as archive:
        for _ in archive.parts():
            pass
    return archive.manifest


def read_manifest(path: Path, limits: Limits = LIMITS) -> Manifest:
    """What an archive says it holds, from the end of the file alone: its parts are neither read nor checked."""
    with _opened(path, limits) as archive:
        return archive.manifest


def read_parts(path: Path, limits: Limits = LIMITS) -> Iterator[Part]:
    """The parts in their order, each as the manifest says; raises at the first fault.

    Only a reading that ends without an error has proved the whole: nothing may act on a part before.
    """
    with _opened(path, limits) as archive:
        yield from archive.parts()


@dataclass(frozen=True, slots=True)
class _Archive:
    """An open archive whose manifest was read. `manifest_member` is the manifest as it lies in the file."""

    file: BinaryIO
    trailer: Trailer
    manifest: Manifest
    manifest_member: bytes

    def parts(self) -> Iterator[Part]:
        packed = _PackedFile(self.file, self.trailer.manifest_at)
        for facts in self.manifest.parts:
            if packed.ended:
                raise altered(f"the part {facts.name} is missing")
            yield _read_part(packed, facts)
        if not packed.ended:
            raise altered("it holds more than its manifest lists")
        digest = packed.digest
        digest.update(self.manifest_member)
        digest.update(self.trailer.start())
        if digest.digest() != self.trailer.digest:
            raise altered("its bytes are not those that were written")


@contextmanager
def _opened(path: Path, limits: Limits) -> Iterator[_Archive]:
    with whole_file(path) as file:
        try:
            yield _read_end(file, limits)
        except OSError as error:
            raise storage_error(error, path) from error


def _read_end(file: BinaryIO, limits: Limits) -> _Archive:
    """All but the parts: the trailer, then the manifest, whose place the trailer tells."""
    size = file.seek(0, os.SEEK_END)
    trailer_at = max(0, size - TRAILER_BYTES)
    file.seek(trailer_at)
    trailer = read_trailer(read_exactly(file, TRAILER_BYTES))
    if trailer.manifest_at > trailer_at:
        raise altered("its trailer leads nowhere")
    length = trailer_at - trailer.manifest_at
    if length > limits.manifest_bytes + _PACKING_BYTES:
        refuse_excess(f"a manifest of more than {limits.manifest_bytes} bytes")
    file.seek(trailer.manifest_at)
    member = read_exactly(file, length)
    manifest = parse_manifest(_manifest_text(member, limits), size, limits)
    if sum(part.size for part in manifest.parts) > limits.ratio * trailer.manifest_at:
        refuse_excess(f"parts of more than {limits.ratio} times its own size")
    file.seek(0)
    return _Archive(file, trailer, manifest, member)


def _manifest_text(data: bytes, limits: Limits) -> bytes:
    packed = _PackedBytes(data)
    member = InflatedMember(packed)
    entry = read_entry(member.read(BLOCK))
    if entry.name != MANIFEST_NAME:
        raise altered(f"{entry.name!a} lies where its manifest should")
    if entry.size > limits.manifest_bytes:
        refuse_excess(f"a manifest of more than {limits.manifest_bytes} bytes")
    if entry.size > limits.ratio * len(data):
        refuse_excess(f"a manifest of more than {limits.ratio} times its own size")
    text = member.read(entry.size)
    filling = padding(entry.size) + END_OF_TAR
    if member.read(len(filling)) != filling:
        raise altered("the end of its tar file is not formed as one")
    member.end()
    if not packed.ended:
        raise altered("something lies between its manifest and its trailer")
    return text


def _read_part(packed: _PackedFile, facts: PartFacts) -> Part:
    member = InflatedMember(packed)
    entry = read_entry(member.read(BLOCK))
    if entry.name != facts.name:
        raise altered(f"{entry.name!a} lies where its manifest lists {facts.name}")
    if entry.size != facts.size:
        raise altered(f"the part {facts.name} has another size than its manifest says")
    data = member.read(facts.size)
    filling = padding(facts.size)
    if member.read(len(filling)) != filling:
        raise altered(f"the part {facts.name} is not filled with zeros")
    member.end()
    if sha256(data).hexdigest() != facts.sha256:
        raise altered(f"the part {facts.name} is not what was written")
    return Part(facts.name, data, member.compressed)


class _PackedBytes:
    """Bytes that are there already, as the source of a gzip member."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def ended(self) -> bool:
        return not self._data

    def next_piece(self) -> bytes:
        data, self._data = self._data, b""
        return data

    def give_back(self, rest: bytes) -> None:
        self._data = rest + self._data


class _PackedFile(_PackedBytes):
    """The first bytes of a file, read as they are needed; `digest` is over all that were read."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        super().__init__(b"")
        self._file = file
        self._left = size
        self.digest = sha256()

    @property
    def ended(self) -> bool:
        return super().ended and not self._left

    def next_piece(self) -> bytes:
        if held := super().next_piece():
            return held
        piece = self._file.read(min(self._left, _READ_BYTES))
        self._left -= len(piece)
        self.digest.update(piece)
        return piece
