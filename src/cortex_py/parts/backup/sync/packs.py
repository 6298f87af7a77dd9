"""Packs and heads, the objects that a machine writes into a target. The format: docs/reference/formats.md.

A pack holds many documents with their states and is named by its content. It names its machine and space, so that packs
of two machines never have the same name and each machine decides alone which of its packs go. A head lists all packs of
one machine for one space; only that machine writes it. There is one head for each day with a push. The latest counts,
the others are restore points.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from ....core.errors import BackupCorrupt, BackupError
from ....core.security.ciphers import ObjectKeys, Random, name_object, open_object, seal_object
from ....core.store.documents.document import Document, canonical_json, parse_document
from ..vault.vault import padded_size
from .merge import DocumentState, Name

_FORM = 1
_START = struct.Struct(">BIII")
_LEVEL = 6
_FOLDER = "cortex-backups/packs"
_COUNTS = 1 << 63
# What reading JSON of other fields, or of any depth, ends with.
_UNREADABLE = (ValueError, KeyError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True)
class PackRef:
    """A pack as a head lists it: its name, its sealed size and its number of states."""

    name: str
    size: int
    documents: int


class Record(NamedTuple):
    """One document in a pack; `document` is None if it was deleted."""

    name: Name
    entry: DocumentState
    document: Document | None


def pack_path(name: str) -> str:
    return f"{_FOLDER}/{name[:2]}/{name}"


class Versions:
    """Shares one mapping among states with equal counts: few differ, and documents are many."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}

    def shared(self, versions: Mapping[str, int]) -> Mapping[str, int]:
        return self._known.setdefault(tuple(versions.items()), versions)


class PackBuilder:
    """A growing pack; `size` counts its bytes before compression."""

    def __init__(self, space: str, machine: str) -> None:
        self._lines = [canonical_json({"machine": machine, "space": space})]
        self._vectors: list[bytes] = []
        self.size = 0
        self.entries: dict[Name, DocumentState] = {}

    def add(self, name: Name, entry: DocumentState, document: Document | None) -> None:
        fields: dict[str, Any] = {
            "floor": entry.floor,
            "maker": entry.maker,
            "stamp": entry.stamp,
            "versions": dict(entry.versions),
        }
        if document is None:
            self._append(canonical_json({**fields, "gone": list(name)}))
        else:
            self._append(canonical_json({**fields, "vectors": len(document.vectors)}))
            self._append(document.line)
            self._vectors.append(document.vectors)
            self.size += len(document.vectors)
        self.entries[name] = entry

    def plain(self) -> bytes:
        """The bytes to name and seal_object. Releases the parts, so it can be called once."""
        lines, vectors = self._lines, self._vectors
        self._lines, self._vectors = [], []
        text = b"\n".join(lines)
        lines.clear()
        return framed(text, b"".join(vectors))

    def _append(self, line: bytes) -> None:
        self._lines.append(line)
        self.size += len(line) + 1


def seal_pack(plain: bytes, keys: ObjectKeys, random: Random) -> tuple[str, bytes]:
    """The name of a pack and its sealed bytes."""
    name = name_object(keys, plain)
    return name, seal_object(plain, keys, context=_pack_context(name), random=random)


def read_pack(
    sealed: bytes, keys: ObjectKeys, name: str, *, space: str, machine: str, versions: Versions | None = None
) -> Iterator[Record]:
    """Yield the records of a pack. Only a complete iteration proves that all of them are well formed."""
    plain = open_object(sealed, keys, context=_pack_context(name))
    if name_object(keys, plain) != name:
        raise malformed("it has the name of another")
    text, vectors = unframed(plain)
    lines = iter(text.split(b"\n"))
    offset = 0
    shared = versions or Versions()
    try:
        if json.loads(next(lines)) != {"machine": machine, "space": space}:
            raise malformed("it belongs to another machine or space")
        for line in lines:
            fields = json.loads(line)
            if "gone" in fields:
                kind, key = fields["gone"]
                yield Record(Name(_text(kind), _text(key)), _entry(fields, None, shared), None)
                continue
            width = _count(fields["vectors"])
            whole = next(lines)
            if offset + width > len(vectors):
                raise malformed("its vectors are not all there")
            document = parse_document(whole, vectors[offset : offset + width])
            offset += width
            yield Record(Name(document.kind, document.key), _entry(fields, sha256(whole).hexdigest(), shared), document)
    except (*_UNREADABLE, StopIteration) as error:
        raise malformed("its lines cannot be read") from error
    if offset != len(vectors):
        raise malformed("it has vectors that belong to nothing")


def _entry(fields: Mapping[str, Any], digest: str | None, shared: Versions) -> DocumentState:
    versions = {_text(machine): _count(count) for machine, count in dict(fields["versions"]).items()}
    maker = _text(fields["maker"])
    if maker and maker not in versions:
        raise ValueError("a maker that is not counted")
    return DocumentState(shared.shared(versions), _count(fields["stamp"]), _count(fields["floor"]), digest, maker=maker)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _COUNTS:
        raise ValueError("not a count")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _pack_context(name: str) -> bytes:
    return b"pack" + name.encode("ascii")


# -- the inside of a sealed object ------------------------------------------------------------------


def framed(text: bytes, raw: bytes = b"") -> bytes:
    """Text, compressed, and raw bytes as one frame, padded with zeros to hide the size; deterministic."""
    packed = zlib.compress(text, _LEVEL)
    frame = b"".join((_START.pack(_FORM, len(packed), len(text), len(raw)), packed, raw))
    return frame + bytes(padded_size(len(frame)) - len(frame))


def unframed(frame: bytes) -> tuple[bytes, bytes]:
    """The text and the bytes of a frame."""
    if len(frame) < _START.size:
        raise malformed("it is too short")
    form, packed, length, raw = _START.unpack_from(frame)
    if form != _FORM:
        raise BackupError(
            f"An object of the backup has form {form}; this version of Cortex reads form {_FORM}.",
            remedy="Update Cortex.",
        )
    end = _START.size + packed + raw
    if len(frame) != padded_size(end) or frame[end:].strip(b"\0"):
        raise malformed("its lengths do not fit")
    opening = zlib.decompressobj()
    try:
        # One byte more than declared: this detects a wrong length, and limits what a bomb can unpack.
        text = opening.decompress(frame[_START.size : _START.size + packed], length + 1)
    except zlib.error as error:
        raise malformed("its text cannot be decompressed") from error
    if len(text) != length or not opening.eof or opening.unused_data:
        raise malformed("its text has another length")
    return text, frame[_START.size + packed : end]


def malformed(what: str) -> BackupCorrupt:
    """The error for an object that was sealed with the right key, but not by Cortex."""
    return BackupCorrupt(f"An object of the backup is malformed: {what}.", remedy="Push from its machine again.")


ROOT = "cortex-backups/"

_MARK_DIGITS = 12
_NAME = re.compile(r"cortex-backups/([0-9a-f]{12})([0-9a-f]{12})_([0-9]{8})\.enc", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HEAD_FIELDS = {"head", "leaving", "machine", "moment", "packs", "sequence", "space"}


class HeadName(NamedTuple):
    """The name of a head: keyed marks of its space and machine, which reveal nothing without the key, and the day."""

    space: str
    machine: str
    day: str

    @property
    def path(self) -> str:
        return f"{ROOT}{self.space}{self.machine}_{self.day}.enc"


class RetiredPack(NamedTuple):
    """A pack that no head of its machine lists any more, and since when (microseconds)."""

    name: str
    since: int


@dataclass(frozen=True, slots=True)
class PackHead:
    """`sequence` grows with every push of the machine; `head` is random and distinguishes two writers of one number."""

    space: str
    machine: str
    sequence: int
    head: str
    moment: int
    packs: tuple[PackRef, ...]
    leaving: tuple[RetiredPack, ...] = ()


def space_mark(keys: ObjectKeys, space: str) -> str:
    return name_object(keys, b"space:" + space.encode("utf-8", "surrogatepass"))[:_MARK_DIGITS]


def machine_mark(keys: ObjectKeys, machine: str) -> str:
    return name_object(keys, b"machine:" + machine.encode("utf-8", "surrogatepass"))[:_MARK_DIGITS]


def day_of(moment: datetime) -> str:
    return f"{moment.year:04}{moment.month:02}{moment.day:02}"


def head_names(paths: list[str]) -> list[HeadName]:
    """The paths that name heads, latest first and each once; a listing may repeat names."""
    found = {HeadName(*match.groups()) for path in paths if (match := _NAME.fullmatch(path))}
    return sorted(found, key=lambda name: (name.day, name.path), reverse=True)


def seal_head(head: PackHead, name: HeadName, keys: ObjectKeys, random: Random) -> bytes:
    fields = {
        "head": head.head,
        "leaving": [list(each) for each in head.leaving],
        "machine": head.machine,
        "moment": head.moment,
        "packs": [[pack.name, pack.size, pack.documents] for pack in head.packs],
        "sequence": head.sequence,
        "space": head.space,
    }
    return seal_object(framed(canonical_json(fields)), keys, context=_head_context(name), random=random)


def open_head(sealed: bytes, name: HeadName, keys: ObjectKeys) -> PackHead:
    text, rest = unframed(open_object(sealed, keys, context=_head_context(name)))
    if rest:
        raise malformed("a head has no vectors")
    try:
        return _head(json.loads(text), name, keys)
    except _UNREADABLE as error:
        raise malformed("a head cannot be read") from error


def _head(fields: dict[str, Any], name: HeadName, keys: ObjectKeys) -> PackHead:
    if set(fields) != _HEAD_FIELDS:
        raise ValueError("other fields")
    head = PackHead(
        str(fields["space"]),
        str(fields["machine"]),
        _count(fields["sequence"]),
        str(fields["head"]),
        _count(fields["moment"]),
        tuple(PackRef(_name(pack), _count(size), _count(documents)) for pack, size, documents in fields["packs"]),
        tuple(RetiredPack(_name(pack), _count(since)) for pack, since in fields["leaving"]),
    )
    if (space_mark(keys, head.space), machine_mark(keys, head.machine)) != (name.space, name.machine):
        raise ValueError("the head of another")
    return head


def _name(value: object) -> str:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError("not the name of a pack")
    return value


def _head_context(name: HeadName) -> bytes:
    return b"head" + name.path.removeprefix(ROOT).encode("ascii")
