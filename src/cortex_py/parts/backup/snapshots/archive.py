"""Snapshot archives: parts and a manifest in one `.tar.gz` that ordinary tools unpack, written and read as a stream.

Each part is a gzip member, so that several are compressed at a time; the file has the same bytes in whatever order
they finish. Reading is strict: the manifest comes first, from the end of the file, so that every size is known and
within the limits before a part is inflated. Every piece has one form: what is read is compared with what would have
been written, so that nothing else fits in. The format and the order of the checks: docs/reference/formats.md.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import struct
import tarfile
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from ....core.errors import BackupCorrupt, BackupError, InvalidInput, LimitExceeded, storage_error
from ....core.files import atomic_write, open_existing, read_exactly, write_fully
from ....core.security.home_key import SEALED_START, HomeKey, SealedReader, SealedWriter, is_sealed
from ....core.store.documents.document import canonical_json

__all__ = [
    "ArchiveLimits", "ArchiveManifest", "ArchivePart", "parse_manifest", "read_manifest", "read_parts",
    "verify_archive", "write_archive",
]  # fmt: skip


JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

VERSION = 1
MANIFEST_NAME = "manifest.json"
BLOCK = 512
# Two blocks of zeros end a tar file.
END_OF_TAR = bytes(2 * BLOCK)
TRAILER_BYTES = 74

_FORMAT = "cortex-snapshot"
_FIELDS = {"content_sha256", "facts", "format", "parts", "version"}
_PART_FIELDS = {"name", "sha256", "size"}
_MIB = 1024 * 1024
_LONGEST_NAME = 100
_NUMBERED = re.compile(r"documents/(?!000000)[0-9]{6}\.jsonl|vectors/(?!000000)(?P<vectors>[0-9]{6})\.bin")
_FILE = re.compile(r"files(?:/[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?){1,8}")
_DIGEST = re.compile(r"[0-9a-f]{64}")

_DEVICES, _CHECKSUM = slice(329, 345), slice(148, 156)
_KIND, _MAGIC = slice(156, 157), slice(257, 265)
_KINDS = {
    **dict.fromkeys((tarfile.LNKTYPE, tarfile.SYMTYPE), "a link"),
    **dict.fromkeys((tarfile.CHRTYPE, tarfile.BLKTYPE), "a device"),
    **dict.fromkeys((tarfile.XGLTYPE, tarfile.XHDTYPE), "a PAX extension"),
    **dict.fromkeys((tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.GNUTYPE_SPARSE), "a GNU extension"),
    tarfile.DIRTYPE: "a folder",
    tarfile.FIFOTYPE: "a pipe",
}

# No flags, no time, no operating system. RFC 1952 sets the last byte but one to 4 for the fastest method.
_GZIP_COMPRESSED = bytes.fromhex("1f8b0800 00000000 00ff")
_GZIP_STORED = bytes.fromhex("1f8b0800 00000000 04ff")
_WITH_GZIP_HEADER = zlib.MAX_WBITS + 16
_LEVEL = 6

# A gzip member with an extra field and no content.
_TRAILER_START = bytes.fromhex("1f8b0804 00000000 00ff 3400 4358 3000")
_TRAILER_FIELDS = struct.Struct(">HHQ")
_TRAILER_CHECK = struct.Struct(">I")
_TRAILER_END = bytes.fromhex("0300 00000000 00000000")
_DIGEST_BYTES = 32
_CHECK_AT = len(_TRAILER_START) + _TRAILER_FIELDS.size + _DIGEST_BYTES


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Bounds on an archive; `ratio` limits the size of all parts together to a multiple of the file's size."""

    part_bytes: int = 64 * _MIB
    parts: int = 20_000
    total_bytes: int = 64 * 1024 * _MIB
    manifest_bytes: int = 4 * _MIB
    ratio: int = 200

    def excess(self, count: int, largest: int, total: int) -> str | None:
        """Which bound the parts exceed, or None."""
        if count > self.parts:
            return f"more than {self.parts} parts"
        if largest > self.part_bytes:
            return f"a part of more than {self.part_bytes} bytes"
        return f"more than {self.total_bytes} bytes" if total > self.total_bytes else None


LIMITS = ArchiveLimits()


def altered(what: str) -> BackupCorrupt:
    """The error for an archive that is not as it was written."""
    return BackupCorrupt(f"The snapshot archive is damaged or was altered: {what}.", remedy="Use another copy.")


def _never_written(what: str) -> BackupCorrupt:
    return altered(f"{what} has a form that no version of Cortex writes")


def refuse_excess(what: str | None) -> None:
    """Refuse an archive that exceeds a bound, before any of it is read."""
    if what:
        raise BackupCorrupt(
            f"The snapshot archive exceeds a limit: {what}.", remedy="It was altered; use another copy."
        )


# -- the manifest ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartFacts:
    """The name, the size and the digest of one part."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ArchiveManifest:
    """What an archive holds. Archives with equal parts have the same `content_sha256`, whatever their facts."""

    facts: Mapping[str, JSON]
    parts: tuple[PartFacts, ...]
    content_sha256: str
    size_bytes: int


class NameOrder:
    """Checks the names of an archive, given one by one."""

    __slots__ = ("_files", "_folders", "_last")

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def fault(self, name: str) -> str | None:
        """What is wrong with the next name, or None."""
        numbered = _NUMBERED.fullmatch(name)
        if len(name) > _LONGEST_NAME or not (numbered or _FILE.fullmatch(name)):
            return f"{name[:_LONGEST_NAME]!a} is not a valid part name"
        folder = name.partition("/")[0]
        if name <= self._last.get(folder, ""):
            return f"{name} comes twice or out of order"
        if numbered and (number := numbered["vectors"]):
            if f"documents/{number}.jsonl" not in self._files:
                return f"{name} comes before its documents"
        elif self._collides(name):
            return f"{name} collides with another name"
        self._last[folder] = name
        self._files.add(name.lower())
        return None

    def _collides(self, name: str) -> bool:
        """Whether unpacking would overwrite another part, also on file systems that ignore case."""
        steps = name.lower().split("/")
        folders = {"/".join(steps[:depth]) for depth in range(1, len(steps))}
        if name.lower() in self._files or name.lower() in self._folders or not folders.isdisjoint(self._files):
            return True
        self._folders |= folders
        return False


def manifest_json(facts: Mapping[str, JSON], parts: Sequence[PartFacts], limits: ArchiveLimits) -> bytes:
    """Encode a manifest; facts that could not be read back are refused."""
    listed = _listed(parts)
    digest = sha256(canonical_json(listed)).hexdigest()
    try:
        data = canonical_json(
            {"content_sha256": digest, "facts": facts, "format": _FORMAT, "parts": listed, "version": VERSION}
        )
        if len(data) > limits.manifest_bytes:
            raise LimitExceeded(
                f"The snapshot's manifest would have more than {limits.manifest_bytes} bytes.",
                remedy="Shorten the facts, or use larger parts.",
                field="facts",
            )
        parse_manifest(data, 0, limits)
    except (TypeError, ValueError, RecursionError, BackupCorrupt) as error:
        raise InvalidInput(
            "The facts of the snapshot cannot be written as JSON and read back.", field="facts"
        ) from error
    return data


def parse_manifest(data: bytes, size_bytes: int, limits: ArchiveLimits) -> ArchiveManifest:
    """Decode a manifest. Its values are within the limits, but nothing of it is proved yet."""
    try:
        found = json.loads(data.decode("utf-8"))
        # One spelling only, so that nothing can hide in duplicate names or odd escapes.
        if canonical_json(found) != data:
            raise altered("its manifest is not in canonical form")
    except (ValueError, RecursionError) as error:
        raise altered("its manifest is not JSON") from error
    if not isinstance(found, dict) or set(found) != _FIELDS or not isinstance(found["facts"], dict):
        raise _never_written("its manifest")
    known = found["format"] == _FORMAT and _is_integer(found["version"]) and found["version"] == VERSION
    if not known or not isinstance(found["parts"], list):
        raise _never_written("its manifest")
    parts = tuple(_part(entry) for entry in found["parts"])
    sizes = [part.size for part in parts]
    refuse_excess(limits.excess(len(sizes), max(sizes, default=0), sum(sizes)))
    order = NameOrder()
    for part in parts:
        if fault := order.fault(part.name):
            raise altered(f"in its manifest {fault}")
    if found["content_sha256"] != sha256(canonical_json(_listed(parts))).hexdigest():
        raise altered("its manifest does not belong to these parts")
    return ArchiveManifest(found["facts"], parts, found["content_sha256"], size_bytes)


def _listed(parts: Sequence[PartFacts]) -> list[JSON]:
    return [{"name": part.name, "sha256": part.sha256, "size": part.size} for part in parts]


def _part(entry: object) -> PartFacts:
    if isinstance(entry, dict) and set(entry) == _PART_FIELDS:
        name, digest, size = entry["name"], entry["sha256"], entry["size"]
        texts = isinstance(name, str) and isinstance(digest, str) and _DIGEST.fullmatch(digest)
        if texts and _is_integer(size) and size >= 0:
            return PartFacts(name, size, digest)
    raise _never_written("its manifest")


def _is_integer(value: object) -> bool:
    """Whether a value is an integer of JSON; to Python a boolean is one too."""
    return isinstance(value, int) and not isinstance(value, bool)


# -- tar entries -----------------------------------------------------------------------------------


def tar_header(name: str, size: int) -> bytes:
    """The header of a regular file in the ustar format, without owner and time."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    block = bytearray(entry.tobuf(tarfile.USTAR_FORMAT, "ascii"))
    # `tarfile` leaves them blank; the format has them as numbers.
    block[_DEVICES] = 2 * b"0000000\0"
    block[_CHECKSUM] = _checksum(block)
    return bytes(block)


def _checksum(block: bytes | bytearray) -> bytes:
    return b"%06o\0 " % (sum(block) - sum(block[_CHECKSUM]) + 8 * ord(" "))


def padding(size: int) -> bytes:
    """The zeros that fill the last block of an entry."""
    return bytes(-size % BLOCK)


def read_entry(block: bytes) -> tuple[str, int]:
    """The name and the size of an entry, whose header must be exactly as `tar_header` writes it."""
    if len(block) != BLOCK or not any(block):
        raise altered("an entry of the tar file is missing")
    if block[_CHECKSUM] != _checksum(block):
        raise altered("the checksum of a tar entry is wrong")
    kind = block[_KIND]
    if kind != tarfile.REGTYPE:
        raise altered(f"it holds {_KINDS.get(kind, 'a tar entry of an unknown kind')}")
    if block[_MAGIC] != tarfile.POSIX_MAGIC:
        raise altered("it holds a tar entry that is not in the ustar format")
    try:
        entry = tarfile.TarInfo.frombuf(block, "ascii", "strict")
        # Catches everything else: owner, time, mode, a name prefix, a number spelled otherwise, bytes after an end.
        if tar_header(entry.name, entry.size) == block:
            return entry.name, entry.size
    except (tarfile.HeaderError, ValueError):
        pass
    raise _never_written("a tar entry")


# -- gzip members ----------------------------------------------------------------------------------


def gzip_member(content: bytes, *, compress: bool, most_ratio: int) -> bytes:
    """The content as one gzip member, never so small that inflating it would exceed the ratio."""
    head = _GZIP_COMPRESSED if compress else _GZIP_STORED
    packed = _deflated(content, _LEVEL if compress else 0)
    if len(content) > most_ratio * len(packed):
        # A reader could not distinguish it from a bomb.
        packed = _deflated(content, 0)
    return head + packed


def _deflated(content: bytes, level: int) -> bytes:
    """A gzip member without its header, which differs by platform."""
    return gzip.compress(content, level, mtime=0)[len(_GZIP_COMPRESSED) :]


class _Packed:
    """The next `size` bytes of a file as gzip members; `digest` covers all that were read."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size
        self._unused = b""
        self.digest = sha256()

    @property
    def ended(self) -> bool:
        return not self._unused and not self._left

    def next_piece(self) -> bytes:
        piece, self._unused = self._unused, b""
        if not piece:
            piece = self._file.read(min(self._left, _READ_BYTES))
            self._left -= len(piece)
            self.digest.update(piece)
        if not piece:
            raise altered("it ends within a gzip member")
        return piece

    def give_back(self, rest: bytes) -> None:
        self._unused = rest + self._unused


class _InflatedMember:
    """The content of one gzip member, inflated as far as is asked for and no further."""

    def __init__(self, packed: _Packed) -> None:
        self._packed = packed
        self._inflater = zlib.decompressobj(_WITH_GZIP_HEADER)
        self._waiting = packed.next_piece()
        while len(self._waiting) < len(_GZIP_COMPRESSED):
            self._waiting += packed.next_piece()
        head = self._waiting[: len(_GZIP_COMPRESSED)]
        if head not in (_GZIP_COMPRESSED, _GZIP_STORED):
            raise _never_written("the header of a gzip member")
        self.compressed = head == _GZIP_COMPRESSED

    def read(self, size: int) -> bytes:
        """The next `size` bytes of the content."""
        pieces = []
        while size:
            piece = self._inflate(size)
            if not piece:
                raise altered("a gzip member ends early")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def end(self) -> None:
        """Check that the content ends here; the inflater compares it with its checksum."""
        if self._inflate(1):
            raise altered("a gzip member holds more than its entry")
        self._packed.give_back(self._inflater.unused_data)

    def _inflate(self, most: int) -> bytes:
        """Some bytes of the content, or none at its end."""
        while not self._inflater.eof:
            try:
                piece = self._inflater.decompress(self._waiting, most)
            except zlib.error as error:
                if "incorrect" in str(error):
                    raise altered("the checksum of a gzip member is wrong") from error
                raise altered("a gzip member cannot be inflated") from error
            self._waiting = self._inflater.unconsumed_tail
            if piece:
                return piece
            if not self._inflater.eof and not self._waiting:
                self._waiting = self._packed.next_piece()
        return b""


# -- the trailer -----------------------------------------------------------------------------------


def trailer_start(manifest_at: int) -> bytes:
    """The trailer before its digest, which covers this too: the offset of the manifest's member."""
    return _TRAILER_START + _TRAILER_FIELDS.pack(VERSION, 0, manifest_at)


def trailer(manifest_at: int, digest: bytes) -> bytes:
    data = trailer_start(manifest_at) + digest
    return data + _TRAILER_CHECK.pack(zlib.crc32(data)) + _TRAILER_END


def read_trailer(data: bytes) -> tuple[int, bytes]:
    """The offset of the manifest's member and the digest, from the last bytes of a file."""
    if len(data) != TRAILER_BYTES or not data.startswith(_TRAILER_START):
        raise BackupCorrupt(
            "This is not a snapshot archive of Cortex, or its end is missing.",
            remedy="Check the path, or use another copy.",
        )
    if data[_CHECK_AT:] != _TRAILER_CHECK.pack(zlib.crc32(data[:_CHECK_AT])) + _TRAILER_END:
        raise altered("its trailer is damaged")
    version, _, manifest_at = _TRAILER_FIELDS.unpack_from(data, len(_TRAILER_START))
    # After the check, so that damage is never taken for a newer version.
    if version > VERSION:
        raise BackupError(
            f"The snapshot archive has format {version}; this version of Cortex reads format {VERSION}.",
            remedy="Update Cortex.",
        )
    digest = data[_CHECK_AT - _DIGEST_BYTES : _CHECK_AT]
    if trailer(manifest_at, digest) != data:
        raise _never_written("its trailer")
    return manifest_at, digest


_WORKERS = max(1, min(4, os.cpu_count() or 1))
_READ_BYTES = 64 * 1024
# How much longer than its content a gzip member may be: headers, and the marks of stored blocks.
_PACKING_BYTES = 64 * 1024


class ArchivePart(NamedTuple):
    """One file of an archive; `compress` is false if compression gains nothing."""

    name: str
    data: bytes
    compress: bool = True


# -- writing ---------------------------------------------------------------------------------------


def write_archive(
    path: Path,
    parts: Iterable[ArchivePart],
    facts: Mapping[str, JSON] | Callable[[], Mapping[str, JSON]],
    limits: ArchiveLimits = LIMITS,
    *,
    key: HomeKey | None = None,
    workers: int = _WORKERS,
) -> ArchiveManifest:
    """Write the parts as one file, which appears when it is complete and on the disk; `key` seals it.

    A function as `facts` is called after the last part. Non-default limits have to be given to the reader too.
    """
    digest, size = sha256(), 0
    with atomic_write(path) as file:
        sealed = SealedWriter(file, key) if key is not None else None

        def write(data: bytes) -> None:
            nonlocal size
            write_fully(sealed or file, data)
            digest.update(data)
            size += len(data)

        listed = []
        # Closed on faults too, so that no worker stays behind.
        with closing(_pack_all(_check(parts, limits), limits, workers)) as packed:
            for part, member in packed:
                write(member)
                listed.append(part)
        text = manifest_json(facts() if callable(facts) else facts, listed, limits)
        manifest_at = size
        entry = tar_header(MANIFEST_NAME, len(text)) + text + padding(len(text)) + END_OF_TAR
        write(gzip_member(entry, compress=True, most_ratio=limits.ratio))
        digest.update(trailer_start(manifest_at))
        write(trailer(manifest_at, digest.digest()))
        if sealed is not None:
            sealed.finish()
    return parse_manifest(text, size, limits)


def _check(parts: Iterable[ArchivePart], limits: ArchiveLimits) -> Iterator[ArchivePart]:
    """The parts, as long as the archive could be read back."""
    order = NameOrder()
    count, total = 0, 0
    for part in parts:
        if fault := order.fault(part.name):
            raise InvalidInput(f"The parts of the snapshot are invalid: {fault}.", field="parts")
        count, total = count + 1, total + len(part.data)
        if excess := limits.excess(count, len(part.data), total):
            raise LimitExceeded(f"The snapshot would hold {excess}.", remedy="Cut it otherwise.", field="parts")
        yield part


def _pack_all(parts: Iterable[ArchivePart], limits: ArchiveLimits, workers: int) -> Generator[tuple[PartFacts, bytes]]:
    """The parts as gzip members, in order; a few are compressed at a time."""
    waiting: deque[Future[tuple[PartFacts, bytes]]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="cortex-archive")
    try:
        for part in parts:
            waiting.append(pool.submit(_pack, part, limits.ratio))
            # One more than are compressed, so that no worker waits for the producer.
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _pack(part: ArchivePart, most_ratio: int) -> tuple[PartFacts, bytes]:
    size = len(part.data)
    entry = tar_header(part.name, size) + part.data + padding(size)
    member = gzip_member(entry, compress=part.compress, most_ratio=most_ratio)
    return PartFacts(part.name, size, sha256(part.data).hexdigest()), member


# -- reading ---------------------------------------------------------------------------------------


def verify_archive(path: Path, limits: ArchiveLimits = LIMITS, *, key: HomeKey | None = None) -> ArchiveManifest:
    """Read an archive to its end as `read_parts` does, keeping nothing."""
    with _open(path, limits, key) as archive:
        for _ in archive.parts():
            pass
    return archive.manifest


def read_manifest(path: Path, limits: ArchiveLimits = LIMITS, *, key: HomeKey | None = None) -> ArchiveManifest:
    """Read the manifest from the end of the file; the parts are neither read nor checked."""
    with _open(path, limits, key) as archive:
        return archive.manifest


def read_parts(path: Path, limits: ArchiveLimits = LIMITS, *, key: HomeKey | None = None) -> Iterator[ArchivePart]:
    """Yield the parts in order; raises at the first fault.

    Only an iteration that ends without an error proves the whole: do not act on a part before.
    """
    with _open(path, limits, key) as archive:
        yield from archive.parts()


@dataclass(frozen=True, slots=True)
class _Archive:
    """An open archive with its manifest read; `manifest_member` holds the manifest's bytes in the file."""

    file: BinaryIO
    digest: bytes
    manifest: ArchiveManifest
    manifest_at: int
    manifest_member: bytes

    def parts(self) -> Iterator[ArchivePart]:
        self.file.seek(0)
        packed = _Packed(self.file, self.manifest_at)
        for facts in self.manifest.parts:
            if packed.ended:
                raise altered(f"the part {facts.name} is missing")
            yield _read_part(packed, facts)
        if not packed.ended:
            raise altered("it holds more than its manifest lists")
        packed.digest.update(self.manifest_member + trailer_start(self.manifest_at))
        if packed.digest.digest() != self.digest:
            raise altered("its bytes are not those that were written")


@contextmanager
def _open(path: Path, limits: ArchiveLimits, key: HomeKey | None) -> Iterator[_Archive]:
    with open_existing(path) as file:
        try:
            yield _read_end(_unseal(file, path, key), limits)
        except OSError as error:
            raise storage_error(error, path) from error


def _unseal(file: BinaryIO, path: Path, key: HomeKey | None) -> BinaryIO:
    """The content of the file, whether or not it is sealed with the key of the home."""
    start = file.read(len(SEALED_START))
    file.seek(0)
    if not is_sealed(start):
        return file
    if key is None:
        raise BackupError(f"{path} is sealed with the key of an encrypted home.", remedy="Read it in that home.")
    return io.BufferedReader(SealedReader(file, key, path))


def _read_end(file: BinaryIO, limits: ArchiveLimits) -> _Archive:
    """Read the trailer, then the manifest, whose offset the trailer gives."""
    size = file.seek(0, os.SEEK_END)
    trailer_at = max(0, size - TRAILER_BYTES)
    file.seek(trailer_at)
    manifest_at, digest = read_trailer(read_exactly(file, TRAILER_BYTES))
    if manifest_at > trailer_at:
        raise altered("its trailer points outside the file")
    length = trailer_at - manifest_at
    if length > limits.manifest_bytes + _PACKING_BYTES:
        refuse_excess(f"a manifest of more than {limits.manifest_bytes} bytes")
    file.seek(manifest_at)
    member = read_exactly(file, length)
    manifest = parse_manifest(_manifest_text(member, limits), size, limits)
    if sum(part.size for part in manifest.parts) > limits.ratio * manifest_at:
        refuse_excess(f"parts of more than {limits.ratio} times its own size")
    return _Archive(file, digest, manifest, manifest_at, member)


def _manifest_text(data: bytes, limits: ArchiveLimits) -> bytes:
    packed = _Packed(io.BytesIO(data), len(data))
    member = _InflatedMember(packed)
    name, size = read_entry(member.read(BLOCK))
    if name != MANIFEST_NAME:
        raise altered(f"{name!a} is in the place of its manifest")
    if size > limits.manifest_bytes:
        refuse_excess(f"a manifest of more than {limits.manifest_bytes} bytes")
    if size > limits.ratio * len(data):
        refuse_excess(f"a manifest of more than {limits.ratio} times its own size")
    text = member.read(size)
    filling = padding(size) + END_OF_TAR
    if member.read(len(filling)) != filling:
        raise altered("the end of its tar file is malformed")
    member.end()
    if not packed.ended:
        raise altered("there is data between its manifest and its trailer")
    return text


def _read_part(packed: _Packed, facts: PartFacts) -> ArchivePart:
    member = _InflatedMember(packed)
    name, size = read_entry(member.read(BLOCK))
    if name != facts.name:
        raise altered(f"{name!a} is in the place of {facts.name}, which its manifest lists")
    if size != facts.size:
        raise altered(f"the part {name} has another size than its manifest says")
    data = member.read(size)
    filling = padding(size)
    if member.read(len(filling)) != filling:
        raise altered(f"the part {name} is not filled with zeros")
    member.end()
    if sha256(data).hexdigest() != facts.sha256:
        raise altered(f"the part {name} is not what was written")
    return ArchivePart(name, data, member.compressed)
