"""A memory as a Markdown file: YAML front matter, then the content, byte for byte; and memories from other programs.

Earlier versions, what was read from the memory for the graph, and usage counts are not in the file. Other programs give
objects with a content and a few known fields, or Markdown notes. They have no id of ours: a digest of their content
takes its place, so that each is imported once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from anyascii import anyascii

from ....core.clock import from_micros, to_micros
from ....core.errors import InvalidInput
from ....core.memory.capture.capture import clean_tags
from ....core.memory.labels.ontology import canonical_category
from ....core.memory.spaces import canonical_namespace
from ....core.records import Domain, JsonValue, NewMemory
from ....core.store.documents.document import Document, canonical_json
from ....core.tables import TABLES
from ....texts.structured import Found, Source, read_yaml, yaml_mapping
from .readers.parsing import moment

__all__ = [
    "Note", "from_note", "from_object", "memory_data", "memory_markdown", "memory_name", "moment_in", "moment_text",
    "name_words", "plain_name", "read_note", "tag_list", "with_front_matter",
]  # fmt: skip


_FENCE = re.compile(r"^---[ \t]*+(?:\r?\n|\Z)", re.MULTILINE)
_ID = re.compile(r"[0-9a-f]{40}\Z")
_FRONT_MOST = 4_000_000
_SLUG_LENGTH = 48
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_FOLDER = re.compile(r"[a-z][a-z0-9-]{1,39}\Z")
_TAG_BREAK = re.compile(r"[,\s]+")
# Device names of Windows, whatever follows the first dot.
_DEVICES = frozenset(("con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(10))))


# The order in files; fields that were declared later follow.
_ORDER = (
    "domain", "namespace", "category", "role", "tags", "created", "updated", "status", "version", "branch",
    "git_branch", "confinement", "source", "path", "summary", "user", "agent", "expires", "deleted", "status_before",
    "superseded_by", "duplicate_of", "redactions", "idempotency_key",
)  # fmt: skip
# The name in the file, that in the document, the type.
_FIELDS = sorted(
    ((column.front, column.name, column.type) for column in TABLES["memory"].columns if column.front),
    key=lambda field: _ORDER.index(field[0]) if field[0] in _ORDER else len(_ORDER),
)
# A vault has tags that Obsidian cannot read under `labels`, and links to entities under `mentions`.
_FILE_FIELDS = frozenset(("id", "labels", "mentions", *(name for name, _, _ in _FIELDS)))


@dataclass(frozen=True, slots=True)
class Note:
    """A parsed file: its front matter, None if it has none, and everything after it."""

    front: Found | None
    content: str

    @property
    def fields(self) -> Mapping[str, JsonValue]:
        return self.front.value if self.front is not None and isinstance(self.front.value, dict) else {}

    @property
    def memory_id(self) -> str | None:
        """The id of a memory, if the note has one; other programs use ids of their own."""
        found = self.fields.get("id")
        return found if isinstance(found, str) and _ID.match(found) else None


# -- writing -------------------------------------------------------------------------------------


def memory_markdown(document: Document) -> str:
    """The file of a memory; empty fields are left out."""
    data = document.data
    fields: dict[str, JsonValue] = {"id": document.key}
    for name, column, kind in _FIELDS:
        value = data[column]
        if value is None or value == [] or (name == "domain" and value == "project"):
            continue
        fields[name] = moment_text(value) if kind == "moment" else value
    return with_front_matter(fields, data["content"])


def with_front_matter(fields: Mapping[str, JsonValue], content: str) -> str:
    return f"---\n{yaml_mapping(fields)}---\n{content}"


def memory_name(document: Document, *, whole_id: bool = False) -> str:
    """The path of a memory's file: `<namespace>/<date>-<words>-<id>.md`, safe on every file system.

    Only ASCII letters and digits come from the content, and never at the beginning of the name.
    """
    data = document.data
    namespace = data["namespace"] if _FOLDER.match(data["namespace"]) else "other"
    folder = plain_name(namespace)
    date = moment_text(data["created_at"])[:10]
    return f"{folder}/{date}-{name_words(document)}-{document.key if whole_id else document.key[:8]}.md"


def name_words(document: Document) -> str:
    """The first words of a memory for the name of a file: ASCII letters, digits and hyphens."""
    data = document.data
    first = next((line for line in (data["summary"] or data["content"])[:2_000].splitlines() if line.strip()), "")
    return _NOT_SLUG.sub("-", anyascii(first[:200]).lower()).strip("-")[:_SLUG_LENGTH].rstrip("-") or "memory"


def plain_name(word: str) -> str:
    """A name of letters, digits and hyphens that no file system reserves."""
    return f"{word}-" if word in _DEVICES else word


def moment_text(micros: int) -> str:
    return from_micros(micros).isoformat(timespec="microseconds").replace("+00:00", "Z")


# -- reading -------------------------------------------------------------------------------------


def read_note(filename: str, text: str) -> Note:
    """Parse a note. A first line of `---` without a mapping below it, or without an end, is part of the content."""
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
    """The data of a memory document without its space, and the unknown fields."""
    if note.front is None:
        raise ValueError("a note without front matter is not known by its id")
    at = to_micros(now)
    data: dict[str, Any] = {column: [] if kind == "json" else None for _, column, kind in _FIELDS}
    data |= {"domain": "project", "namespace": "context", "status": "active", "version": 1, "kind": "note"}
    data |= {"created_at": at, "updated_at": at, "project_id": None, "content": note.content, "versions": []}
    for name, column, kind in _FIELDS:
        if note.fields.get(name) is not None:
            data[column] = _value(note.front, name, kind)
    data["tags"] += tag_list(note.front, "labels")
    return data, tuple(sorted(set(note.fields) - _FILE_FIELDS))


def _value(front: Found, name: str, kind: str) -> object:
    fields = front.value if isinstance(front.value, dict) else {}
    value = fields[name]
    if kind == "json":
        return list(tag_list(front, name))
    if kind == "int":
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
    """Microseconds since 1970 of a moment in front matter."""
    try:
        return to_micros(datetime.fromisoformat(str(value)))
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} must be a moment such as 2026-01-02T12:34:56Z.", field=name) from error


def tag_list(front: Found, name: str = "tags") -> tuple[str, ...]:
    """Tags as a list, or as one text separated by commas or spaces, as some programs write them."""
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


_TEXTS = ("content", "namespace", "source", "path", "summary", "category")
_MOMENTS = ("created_at", "created", "date")
_KNOWN = frozenset((*_TEXTS, *_MOMENTS, "tags", "id"))


def from_object(value: object, domain: Domain) -> tuple[NewMemory, frozenset[str]]:
    """A memory from a JSON object, and the unknown fields."""
    if not isinstance(value, dict):
        raise InvalidInput("It is not a JSON object.", remedy='Give {"content": "…"}.', field="file")
    for name in _TEXTS:
        if not isinstance(value.get(name), str) and (name == "content" or value.get(name) is not None):
            what = "is missing" if value.get(name) is None else "is not text"
            raise InvalidInput(f"{name} {what}.", field=name)
    tags = value.get("tags")
    if tags is not None and not isinstance(tags, list):
        raise InvalidInput("tags is not a list of texts.", field="tags")
    return _memory(value, domain, clean_tags(tags or ())), frozenset(value) - _KNOWN


def from_note(note: Note, filename: str, domain: Domain) -> tuple[NewMemory, frozenset[str]]:
    """A memory from a note; its source is the name of the file unless the note has one."""
    fields: dict[str, Any] = {name: note.fields.get(name) for name in _KNOWN if name in note.fields}
    for name in (*_TEXTS, *_MOMENTS):
        if isinstance(fields.get(name), list | dict):
            # Its meaning in another program is unknown.
            del fields[name]
    given = {name: str(value) if name in _TEXTS and value is not None else value for name, value in fields.items()}
    tags = clean_tags(tag_list(note.front)) if note.front is not None else ()
    given |= {"content": note.content, "source": given.get("source") or PurePath(filename).name}
    return _memory(given, domain, tags), frozenset(note.fields) - _KNOWN


def _memory(given: Mapping[str, Any], domain: Domain, tags: tuple[str, ...]) -> NewMemory:
    category = given.get("category")
    item = NewMemory(
        content=given["content"],
        namespace=canonical_namespace(given.get("namespace") or "context"),
        domain=domain,
        tags=tags,
        source=given.get("source") or None,
        path=given.get("path") or None,
        summary=given.get("summary") or None,
        category=canonical_category(category) if category else None,
        created_at=next((_moment(given[name], name) for name in _MOMENTS if given.get(name) is not None), None),
    )
    created = to_micros(item.created_at) if item.created_at else None
    texts = (item.content, item.namespace, list(tags), item.source, item.path, item.summary, item.category)
    return replace(item, idempotency_key=f"import:{sha256(canonical_json((*texts, created))).hexdigest()}")


def _moment(value: object, name: str) -> datetime:
    found = moment(value)
    if found is None:
        raise InvalidInput(
            f"{name} is not a moment.", remedy="Give it as 2026-01-02T12:34:56Z, or in seconds since 1970.", field=name
        )
    return found
