"""Heads: what makes packs visible. A head tells all packs of one machine for one space; only that machine writes it.

There is one for each day on which something was pushed; the latest counts, the others are restore points.
The form: docs/formats.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ..store.document import canonical_json
from .frames import framed, malformed, unframed
from .packs import PackRef
from .sealing import ObjectKeys, content_name, open_sealed, seal
from .vault_header import Random

__all__ = [
    "ROOT",
    "Head",
    "HeadName",
    "Leaving",
    "day_of",
    "head_names",
    "machine_mark",
    "open_head",
    "seal_head",
    "space_mark",
]

ROOT = "cortex-backups/"

_MARK_DIGITS = 12
_NAME = re.compile(r"cortex-backups/([0-9a-f]{12})([0-9a-f]{12})_([0-9]{8})\.enc", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HEAD_FIELDS = {"head", "leaving", "machine", "moment", "packs", "sequence", "space"}


class HeadName(NamedTuple):
    """The name of a head: the marks of its space and machine, which tell nothing without the key, and the day."""

    space: str
    machine: str
    day: str

    @property
    def path(self) -> str:
        return f"{ROOT}{self.space}{self.machine}_{self.day}.enc"


class Leaving(NamedTuple):
    """A pack that is in no head of its machine any more, and since when (microseconds)."""

    name: str
    since: int


@dataclass(frozen=True, slots=True)
class Head:
    """`sequence` grows with every push of the machine; `head` is random and tells two writers of one number apart."""

    space: str
    machine: str
    sequence: int
    head: str
    moment: int
    packs: tuple[PackRef, ...]
    leaving: tuple[Leaving, ...] = ()


def space_mark(keys: ObjectKeys, space: str) -> str:
    return content_name(keys, b"space:" + space.encode("utf-8", "surrogatepass"))[:_MARK_DIGITS]


def machine_mark(keys: ObjectKeys, machine: str) -> str:
    return content_name(keys, b"machine:" + machine.encode("utf-8", "surrogatepass"))[:_MARK_DIGITS]


def day_of(moment: datetime) -> str:
    return f"{moment.year:04}{moment.month:02}{moment.day:02}"


def head_names(paths: list[str]) -> list[HeadName]:
    """Those of the paths that name heads, the latest first and each once; a listing may repeat itself."""
    found = {HeadName(*match.groups()) for path in paths if (match := _NAME.fullmatch(path))}
    return sorted(found, key=lambda name: (name.day, name.path), reverse=True)


def seal_head(head: Head, name: HeadName, keys: ObjectKeys, random: Random) -> bytes:
    told = {
        "head": head.head,
        "leaving": [list(each) for each in head.leaving],
        "machine": head.machine,
        "moment": head.moment,
        "packs": [[pack.name, pack.size, pack.documents] for pack in head.packs],
        "sequence": head.sequence,
        "space": head.space,
    }
    return seal(framed(canonical_json(told)), keys, context=_context(name), random=random)


def open_head(sealed: bytes, name: HeadName, keys: ObjectKeys) -> Head:
    text, rest = unframed(open_sealed(sealed, keys, context=_context(name)))
    if rest:
        raise malformed("a head has no vectors")
    try:
        return _head(json.loads(text), name, keys)
    except (ValueError, KeyError, TypeError) as error:
        raise malformed("a head cannot be read") from error


def _head(told: dict[str, Any], name: HeadName, keys: ObjectKeys) -> Head:
    if set(told) != _HEAD_FIELDS:
        raise ValueError("other fields")
    head = Head(
        str(told["space"]),
        str(told["machine"]),
        int(told["sequence"]),
        str(told["head"]),
        int(told["moment"]),
        tuple(PackRef(_name(pack), int(size), int(documents)) for pack, size, documents in told["packs"]),
        tuple(Leaving(_name(pack), int(since)) for pack, since in told["leaving"]),
    )
    if (space_mark(keys, head.space), machine_mark(keys, head.machine)) != (name.space, name.machine):
        raise ValueError("the head of another")
    return head


def _name(value: object) -> str:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError("not the name of a pack")
    return value


def _context(name: HeadName) -> bytes:
    return b"head" + name.path.removeprefix(ROOT).encode("ascii")
