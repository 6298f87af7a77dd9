"""What a snapshot archive says about itself: its parts in order, their digests, and the facts of whoever wrote it.

Also here: how parts may be called and ordered, and the bounds on all that a reader would otherwise
believe. Byte by byte: docs/formats.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from ..errors import BackupCorrupt, InvalidInput, LimitExceeded
from ..store.document import canonical_json

__all__ = [
    "JSON",
    "LIMITS",
    "MANIFEST_NAME",
    "VERSION",
    "Limits",
    "Manifest",
    "NameOrder",
    "PartFacts",
    "altered",
    "manifest_json",
    "parse_manifest",
    "refuse_excess",
]

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

VERSION = 1
MANIFEST_NAME = "manifest.json"

_FORMAT = "cortex-snapshot"
_FIELDS = {"content_sha256", "facts", "format", "parts", "version"}
_PART_FIELDS = {"name", "sha256", "size"}
_MIB = 1024 * 1024
_LONGEST_NAME = 100
_NUMBERED = re.compile(r"documents/(?!000000)[0-9]{6}\.jsonl|vectors/(?!000000)(?P<vectors>[0-9]{6})\.bin")
_FILE = re.compile(r"files(?:/[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?){1,8}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on an archive; `ratio` is how many times larger than the file all its parts together may be."""

    part_bytes: int = 64 * _MIB
    parts: int = 20_000
    total_bytes: int = 64 * 1024 * _MIB
    manifest_bytes: int = 4 * _MIB
    ratio: int = 200

    def excess(self, count: int, largest: int, total: int) -> str | None:
        """What is too much in so many parts, or None."""
        if count > self.parts:
            return f"more than {self.parts} parts"
        if largest > self.part_bytes:
            return f"a part of more than {self.part_bytes} bytes"
        if total > self.total_bytes:
            return f"more than {self.total_bytes} bytes"
        return None


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class PartFacts:
    """One part: its name, how many bytes it has, and their digest."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive holds. `content_sha256` is equal where all parts are, whatever the facts say."""

    facts: Mapping[str, JSON]
    parts: tuple[PartFacts, ...]
    content_sha256: str
    size_bytes: int


class NameOrder:
    """Takes the names of an archive one by one, and tells of the first that may not be, or not there."""

    __slots__ = ("_files", "_folders", "_last")

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def fault(self, name: str) -> str | None:
        """What is wrong with the next name, or None; then it is taken."""
        numbered = _NUMBERED.fullmatch(name)
        if len(name) > _LONGEST_NAME or not (numbered or _FILE.fullmatch(name)):
            return f"{name[:_LONGEST_NAME]!a} is no name for a part"
        folder = name.partition("/")[0]
        if name <= self._last.get(folder, ""):
            return f"{name} comes twice or out of order"
        if numbered and (number := numbered["vectors"]):
            if f"documents/{number}.jsonl" not in self._files:
                return f"{name} comes before its documents"
        elif self._collides(name):
            return f"{name} cannot lie beside another name"
        self._last[folder] = name
        self._files.add(name.lower())
        return None

    def _collides(self, name: str) -> bool:
        """Whether unpacking would put the name onto another one, also where upper and lower case are the same."""
        steps = name.lower().split("/")
        folders = {"/".join(steps[:depth]) for depth in range(1, len(steps))}
        if name.lower() in self._files or name.lower() in self._folders or not folders.isdisjoint(self._files):
            return True
        self._folders |= folders
        return False


def altered(what: str) -> BackupCorrupt:
    """The one error for whatever is not as it was written."""
    return BackupCorrupt(f"The snapshot archive is damaged or was altered: {what}.", remedy="Use another copy.")


def refuse_excess(what: str | None) -> None:
    """Refuse to read what is beyond the bounds, before any of it was read."""
    if what:
        raise BackupCorrupt(
            f"The snapshot archive asks for more than is allowed: {what}.", remedy="It was altered; use another copy."
        )


def manifest_json(facts: Mapping[str, JSON], parts: Sequence[PartFacts], limits: Limits) -> bytes:
    """The manifest as it is written; facts that could not be read back are refused."""
    listed = _listed(parts)
    manifest = {
        "content_sha256": sha256(canonical_json(listed)).hexdigest(),
        "facts": facts,
        "format": _FORMAT,
        "parts": listed,
        "version": VERSION,
    }
    try:
        data = canonical_json(manifest)
        if len(data) > limits.manifest_bytes:
            raise LimitExceeded(
                f"The snapshot's manifest would have more than {limits.manifest_bytes} bytes.",
                remedy="Tell less about it, or take larger parts.",
                field="facts",
            )
        parse_manifest(data, 0, limits)
    except (TypeError, ValueError, RecursionError, BackupCorrupt) as error:
        raise InvalidInput(
            "The facts of the snapshot cannot be written as JSON and read back.", field="facts"
        ) from error
    return data


def parse_manifest(data: bytes, size_bytes: int, limits: Limits) -> Manifest:
    """The manifest from its one spelling; all it says is possible, though nothing of it is proved."""
    try:
        found = json.loads(data.decode("utf-8"))
        # Of all spellings of a value one is written, so nothing can hide in doubled names or odd escapes.
        if canonical_json(found) != data:
            raise altered("its manifest is not in the one spelling")
    except (ValueError, RecursionError) as error:
        raise altered("its manifest is not JSON") from error
    if not isinstance(found, dict) or set(found) != _FIELDS or not isinstance(found["facts"], dict):
        raise altered("its manifest says what no version of Cortex writes")
    known = found["format"] == _FORMAT and _is_number(found["version"]) and found["version"] == VERSION
    if not known or not isinstance(found["parts"], list):
        raise altered("its manifest says what no version of Cortex writes")
    parts = tuple(_part(entry) for entry in found["parts"])
    sizes = [part.size for part in parts]
    refuse_excess(limits.excess(len(sizes), max(sizes, default=0), sum(sizes)))
    order = NameOrder()
    for part in parts:
        if fault := order.fault(part.name):
            raise altered(f"in its manifest {fault}")
    if found["content_sha256"] != sha256(canonical_json(_listed(parts))).hexdigest():
        raise altered("its manifest does not belong to these parts")
    return Manifest(found["facts"], parts, found["content_sha256"], size_bytes)


def _listed(parts: Sequence[PartFacts]) -> list[JSON]:
    return [{"name": part.name, "sha256": part.sha256, "size": part.size} for part in parts]


def _part(entry: object) -> PartFacts:
    if isinstance(entry, dict) and set(entry) == _PART_FIELDS:
        name, digest, size = entry["name"], entry["sha256"], entry["size"]
        texts = isinstance(name, str) and isinstance(digest, str) and _DIGEST.fullmatch(digest)
        if texts and _is_number(size) and size >= 0:
            return PartFacts(name, size, digest)
    raise altered("its manifest says what no version of Cortex writes")


def _is_number(value: object) -> bool:
    """Whether a value is a whole number; to Python true is one too."""
    return isinstance(value, int) and not isinstance(value, bool)
