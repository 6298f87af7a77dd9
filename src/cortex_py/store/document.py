"""A document: one thing of a space with all that belongs to it, in a form that knows no engine.

Snapshots, sync, export and a move to another engine all carry documents. The text form is
canonical: the same state always has the same bytes, so equal digests mean equal things.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

__all__ = ["KINDS", "SHARED_KINDS", "Document", "canonical_json", "parse_canonical", "parse_document"]

# In the order in which they are written and read back: what is referred to comes first.
KINDS = (
    "branch",
    "entity",
    "memory",
    "mention",
    "verification",
    "relationship",
    "merge",
    "saved",
    "consolidation",
    "use",
    "saved_use",
    "reference",
    "referred",
    "together",
    "session",
    "trust",
)
# What machines share. The rest counts what was done on one machine.
SHARED_KINDS = KINDS[: KINDS.index("use")]


@dataclass(frozen=True)
class Document:
    """`key` is unique within the kind. `vectors` are what search needs of a memory, apart from its identity: another
    model makes other vectors of the same text."""

    kind: str
    key: str
    data: Mapping[str, Any]
    vectors: bytes = field(default=b"", compare=False)

    @cached_property
    def line(self) -> bytes:
        """The canonical text, without a line end; it holds none."""
        return canonical_json({"kind": self.kind, "key": self.key, "data": self.data})

    @cached_property
    def digest(self) -> str:
        return sha256(self.line).hexdigest()


def canonical_json(value: object) -> bytes:
    """One spelling for each value: sorted names, no spaces, no escapes that are not needed."""
    # A lone surrogate cannot be UTF-8; it can come only from a damaged store, and is kept readable.
    return _canonical(value).encode("utf-8", "surrogatepass")


# Made once: `json.dumps` would make one for each call.
_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def parse_document(line: bytes, vectors: bytes = b"") -> Document:
    """A document from its line; ValueError where it is none."""
    found = json.loads(line.decode("utf-8", "surrogatepass"))
    if not isinstance(found, dict) or set(found) != {"kind", "key", "data"}:
        raise ValueError("not a document")
    kind, key, data = found["kind"], found["key"], found["data"]
    if kind not in KINDS or not isinstance(key, str) or not isinstance(data, dict):
        raise ValueError("not a document")
    return Document(kind, key, data, vectors)


def parse_canonical(line: bytes, vectors: bytes = b"") -> Document:
    """A document from a line that is taken to be the canonical one, which is then not made again."""
    document = parse_document(line, vectors)
    vars(document)["line"] = line
    return document
