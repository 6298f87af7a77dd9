"""A memory as a Markdown file: YAML front matter, and below it the content, byte for byte. Pure.

What is not in the file: earlier versions, what was read from the memory for the graph, and how often it was used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from anyascii import anyascii

from ..clock import from_micros, to_micros
from ..errors import InvalidInput
from ..prompts.structured import Found, Source, read_yaml, yaml_mapping
from ..records import JsonValue
from ..store.document import Document

__all__ = [
    "Note",
    "memory_data",
    "memory_markdown",
    "memory_name",
    "plain_name",
    "read_note",
    "tag_list",
    "with_front_matter",
]

_FENCE = re.compile(r"^---[ \t]*+(?:\r?\n|\Z)", re.MULTILINE)
_ID = re.compile(r"[0-9a-f]{40}\Z")
_FRONT_MOST = 4_000_000
_SLUG_LENGTH = 48
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_FOLDER = re.compile(r"[a-z][a-z0-9-]{1,39}\Z")
_TAG_BREAK = re.compile(r"[,\s]+")
# Names of devices on Windows, whatever follows the first dot.
_DEVICES = frozenset(("con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(10))))

_Type = Literal["text", "number", "moment", "texts"]

# Name in the file, name in the document, type. In the order in which they are written.
_FIELDS: tuple[tuple[str, str, _Type], ...] = (
    ("domain", "domain", "text"),
    ("namespace", "namespace", "text"),
    ("category", "category", "text"),
    ("role", "role", "text"),
    ("tags", "tags", "texts"),
    ("created", "created_at", "moment"),
    ("updated", "updated_at", "moment"),
    ("status", "status", "text"),
    ("version", "version", "number"),
    ("branch", "branch_id", "text"),
    ("git_branch", "git_branch", "text"),
    ("confinement", "confinement", "text"),
    ("source", "source", "text"),
    ("path", "path", "text"),
    ("summary", "summary", "text"),
    ("user", "user_id", "text"),
    ("agent", "agent_id", "text"),
    ("expires", "expires_at", "moment"),
    ("deleted", "tombstoned_at", "moment"),
    ("status_before", "prior_status", "text"),
    ("superseded_by", "superseded_by", "text"),
    ("duplicate_of", "duplicate_of", "text"),
    ("redactions", "redactions", "texts"),
    ("idempotency_key", "idempotency_key", "text"),
    ("symbol", "symbol", "text"),
    ("first_line", "first_line", "number"),
    ("last_line", "last_line", "number"),
)
_KNOWN = frozenset(("id", *(name for name, _, _ in _FIELDS)))


@dataclass(frozen=True, slots=True)
class Note:
    """A file as found: its front matter, None where it has none, and all that follows it."""

    front: Found | None
    content: str

    @property
    def fields(self) -> Mapping[str, JsonValue]:
        return self.front.value if self.front is not None and isinstance(self.front.value, dict) else {}

    @property
    def memory_id(self) -> str | None:
        """The id of a memory; other programs have ids of their own in their notes."""
        found = self.fields.get("id")
        return found if isinstance(found, str) and _ID.match(found) else None


# Writing


def memory_markdown(document: Document) -> str:
    """The file of a memory; what is empty is left out."""
    data = document.data
    fields: dict[str, JsonValue] = {"id": document.key}
    for name, column, kind in _FIELDS:
        value = data[column]
        if value is None or value == [] or (name == "domain" and value == "project"):
            continue
        fields[name] = _told_moment(value) if kind == "moment" else value
    return with_front_matter(fields, data["content"])


def with_front_matter(fields: Mapping[str, JsonValue], content: str) -> str:
    return f"---\n{yaml_mapping(fields)}---\n{content}"


def memory_name(document: Document, *, whole_id: bool = False) -> str:
    """Where the file of a memory lies: `<namespace>/<date>-<words>-<id>.md`, safe on every file system.

    Only ASCII letters and digits come from the content, and never as the beginning of the name.
    """
    data = document.data
    namespace = data["namespace"] if _FOLDER.match(data["namespace"]) else "other"
    folder = plain_name(namespace)
    first = next((line for line in (data["summary"] or data["content"])[:2_000].splitlines() if line.strip()), "")
    words = _NOT_SLUG.sub("-", anyascii(first[:200]).lower()).strip("-")[:_SLUG_LENGTH].rstrip("-") or "memory"
    date = _told_moment(data["created_at"])[:10]
    return f"{folder}/{date}-{words}-{document.key if whole_id else document.key[:8]}.md"


def plain_name(word: str) -> str:
    """A name of letters, digits and hyphens that no file system keeps for something else."""
    return f"{word}-" if word in _DEVICES else word


def _told_moment(micros: int) -> str:
    return from_micros(micros).isoformat(timespec="microseconds").replace("+00:00", "Z")


# Reading


def read_note(filename: str, text: str) -> Note:
    """A note. What begins with a line of `---` and is no mapping, or is never closed, is content with a rule in it."""
    opening = _FENCE.match(text)
    closing = _FENCE.search(text, opening.end()) if opening else None
    if not opening or not closing:
        return Note(None, text)
    if closing.start() - opening.end() > _FRONT_MOST:
        raise Source(filename, "").fault("its front matter is too long", 1)
    front = read_yaml(Source(filename, text[opening.end() : closing.start()], lines_before=1))
    if front.value is None:
        return Note(None, text[closing.end() :])
    return Note(front, text[closing.end() :]) if isinstance(front.value, dict) else Note(None, text)


def memory_data(note: Note, now: datetime) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The data of a memory document without its space, and the fields that no memory has."""
    if note.front is None:
        raise ValueError("a note without front matter is not known by its id")
    at = to_micros(now)
    data: dict[str, Any] = {column: [] if kind == "texts" else None for _, column, kind in _FIELDS}
    data |= {"domain": "project", "namespace": "context", "status": "active", "version": 1, "kind": "note"}
    data |= {"created_at": at, "updated_at": at, "project_id": None, "content": note.content, "versions": []}
    for name, column, kind in _FIELDS:
        if note.fields.get(name) is not None:
            data[column] = _value(note.front, name, kind)
    return data, tuple(sorted(set(note.fields) - _KNOWN))


def _value(front: Found, name: str, kind: _Type) -> object:
    fields = front.value if isinstance(front.value, dict) else {}
    value = fields[name]
    if kind == "texts":
        return list(tag_list(front, name))
    if kind == "number":
        if isinstance(value, bool) or not isinstance(value, int):
            raise front.fault(f"{name} must be a whole number", (name,))
        return value
    if not isinstance(value, str):
        raise front.fault(f"{name} must be text; put it in quotes", (name,))
    if kind == "text":
        return value
    try:
        return moment_in(value, name)
    except InvalidInput as error:
        raise front.fault(error.message.rstrip("."), (name,)) from error


def moment_in(value: object, name: str) -> int:
    """Microseconds since 1970 of a moment as it stands in front matter."""
    try:
        return to_micros(datetime.fromisoformat(str(value)))
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} must be a moment such as 2026-01-02T12:34:56Z.", field=name) from error


def tag_list(front: Found, name: str = "tags") -> tuple[str, ...]:
    """Tags as a list, or as one text with commas or spaces between them, as some programs write them."""
    value = front.value.get(name) if isinstance(front.value, dict) else None
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(word for word in _TAG_BREAK.split(value) if word)
    if not isinstance(value, list):
        raise front.fault(f"{name} must be a list of texts", (name,))
    texts = [one for one in value if isinstance(one, str)]
    if len(texts) < len(value):
        raise front.fault(f"{name} must be a list of texts; put each in quotes", (name,))
    return tuple(texts)
