"""Packs: many documents with their states in one sealed object, named by what it holds.

A pack tells its machine and its space, so that packs of two machines never have the same name: each machine
decides alone which of its packs go. The form: docs/formats.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from ..store.document import Document, canonical_json, parse_document
from .frames import framed, malformed, unframed
from .replica import Entry, Name
from .sealing import ObjectKeys, content_name, open_sealed, seal
from .vault_header import Random

__all__ = ["PackBuilder", "PackRef", "Record", "Versions", "pack_path", "read_pack", "seal_pack"]

_FOLDER = "cortex-backups/packs"
_COUNTS = 1 << 63


@dataclass(frozen=True, slots=True)
class PackRef:
    """A pack as a head tells it: its name, how many bytes it has sealed, and how many states are in it."""

    name: str
    size: int
    documents: int


class Record(NamedTuple):
    """One document in a pack, or a state without one where it is gone."""

    name: Name
    entry: Entry
    document: Document | None


def pack_path(name: str) -> str:
    return f"{_FOLDER}/{name[:2]}/{name}"


class Versions:
    """One mapping for all states that have equal counts: there are few, and many documents."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}

    def shared(self, versions: Mapping[str, int]) -> Mapping[str, int]:
        return self._known.setdefault(tuple(versions.items()), versions)


class PackBuilder:
    """A pack that grows; `size` counts its bytes before they are compressed."""

    def __init__(self, space: str, machine: str) -> None:
        self._lines = [canonical_json({"machine": machine, "space": space})]
        self._vectors: list[bytes] = []
        self.size = 0
        self.entries: dict[Name, Entry] = {}

    def add(self, name: Name, entry: Entry, document: Document | None) -> None:
        told: dict[str, Any] = {
            "floor": entry.floor,
            "maker": entry.maker,
            "stamp": entry.stamp,
            "versions": dict(entry.versions),
        }
        if document is None:
            self._append(canonical_json({**told, "gone": list(name)}))
        else:
            self._append(canonical_json({**told, "vectors": len(document.vectors)}))
            self._append(document.line)
            self._vectors.append(document.vectors)
            self.size += len(document.vectors)
        self.entries[name] = entry

    def plain(self) -> bytes:
        """What is named and sealed; the parts are let go of, so that this is asked once."""
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
    name = content_name(keys, plain)
    return name, seal(plain, keys, context=_context(name), random=random)


def read_pack(
    sealed: bytes, keys: ObjectKeys, name: str, *, space: str, machine: str, versions: Versions | None = None
) -> Iterator[Record]:
    """The records of a pack. Only a reading that ends without an error has shown that all of them are well formed."""
    plain = open_sealed(sealed, keys, context=_context(name))
    if content_name(keys, plain) != name:
        raise malformed("it has the name of another")
    text, vectors = unframed(plain)
    lines = iter(text.split(b"\n"))
    offset = 0
    shared = versions or Versions()
    try:
        if json.loads(next(lines)) != {"machine": machine, "space": space}:
            raise malformed("it belongs to another machine or space")
        for line in lines:
            told = json.loads(line)
            if "gone" in told:
                kind, key = told["gone"]
                yield Record(Name(_text(kind), _text(key)), _entry(told, None, shared), None)
                continue
            width = _count(told["vectors"])
            whole = next(lines)
            if offset + width > len(vectors):
                raise malformed("its vectors are not all there")
            document = parse_document(whole, vectors[offset : offset + width])
            offset += width
            yield Record(Name(document.kind, document.key), _entry(told, sha256(whole).hexdigest(), shared), document)
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise malformed("its lines cannot be read") from error
    if offset != len(vectors):
        raise malformed("it has vectors that belong to nothing")


def _entry(told: Mapping[str, Any], digest: str | None, shared: Versions) -> Entry:
    versions = {_text(machine): _count(count) for machine, count in told["versions"].items()}
    maker = _text(told["maker"])
    if maker and maker not in versions:
        raise ValueError("a maker that is not counted")
    return Entry(shared.shared(versions), _count(told["stamp"]), _count(told["floor"]), digest, maker=maker)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _COUNTS:
        raise ValueError("not a count")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _context(name: str) -> bytes:
    return b"pack" + name.encode("ascii")
