"""Memories from other programs: objects with a content and a few fields we know, or notes in Markdown.

They have no identity of ours. A digest of what they say takes its place, so that the same one comes in once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from ..clock import in_utc, to_micros
from ..config import Settings
from ..errors import InvalidInput
from ..memory.namespaces import canonical_namespace
from ..memory.ontology import canonical_category
from ..memory.prepare import check_fields, check_text, clean_tags, without_secrets
from ..records import Domain, Memory, NewMemory
from ..store.document import canonical_json
from .markdown_form import Note, tag_list

__all__ = ["from_note", "from_object", "needs_redaction"]

_TEXTS = ("content", "namespace", "source", "path", "summary", "category")
_MOMENTS = ("created_at", "created", "date")
_KNOWN = frozenset((*_TEXTS, *_MOMENTS, "tags", "id"))
# Seconds of the year 5138; larger numbers count milliseconds, and far larger ones microseconds.
_SECONDS_MOST = 100_000_000_000


def from_object(value: object, domain: Domain) -> tuple[NewMemory, frozenset[str]]:
    """A memory from a JSON object, and the fields that were not understood."""
    if not isinstance(value, dict):
        raise InvalidInput("It is no JSON object.", remedy='Give {"content": "…"}.', field="file")
    for name in _TEXTS:
        if not isinstance(value.get(name), str) and (name == "content" or value.get(name) is not None):
            what = "is missing" if value.get(name) is None else "is no text"
            raise InvalidInput(f"{name} {what}.", field=name)
    tags = value.get("tags")
    if tags is not None and not isinstance(tags, list):
        raise InvalidInput("tags is no list of texts.", field="tags")
    return _memory(value, domain, clean_tags(tags or ())), frozenset(value) - _KNOWN


def from_note(note: Note, filename: str, domain: Domain) -> tuple[NewMemory, frozenset[str]]:
    """A memory from a note; without a source of its own it has the name of the file."""
    fields: dict[str, Any] = {name: note.fields.get(name) for name in _KNOWN if name in note.fields}
    for name in (*_TEXTS, *_MOMENTS):
        if isinstance(fields.get(name), list | dict):
            # What another program means by it is not ours to guess.
            del fields[name]
    given = {name: str(value) if name in _TEXTS and value is not None else value for name, value in fields.items()}
    tags = clean_tags(tag_list(note.front)) if note.front is not None else ()
    given |= {"content": note.content, "source": given.get("source") or PurePath(filename).name}
    return _memory(given, domain, tags), frozenset(note.fields) - _KNOWN


def needs_redaction(item: NewMemory, settings: Settings) -> bool:
    """Check a memory as capture will, before anything is written; whether secrets are taken out of it."""
    check_text(item.content, "content", settings.max_content_bytes)
    moment = item.created_at or datetime(2026, 1, 1, tzinfo=UTC)
    memory = Memory(
        id="",
        domain=item.domain,
        project_id=None,
        branch_id=None,
        namespace=item.namespace or "context",
        category=item.category,
        role=None,
        content=item.content,
        summary=item.summary,
        tags=item.tags,
        source=item.source,
        path=item.path,
        git_branch=None,
        user_id=None,
        agent_id=None,
        status="active",
        created_at=moment,
        updated_at=moment,
        accessed_at=None,
        expires_at=None,
        tombstoned_at=None,
        superseded_by=None,
        grounding=None,
        version=1,
    )
    check_fields(memory)
    return without_secrets(memory, settings.secrets) is not memory


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
    told = (
        item.content,
        item.namespace,
        list(tags),
        item.source,
        item.path,
        item.summary,
        item.category,
        to_micros(item.created_at) if item.created_at else None,
    )
    return replace(item, idempotency_key=f"import:{sha256(canonical_json(told)).hexdigest()}")


def _moment(value: object, name: str) -> datetime:
    try:
        if isinstance(value, str):
            return in_utc(datetime.fromisoformat(value.strip()))
        if isinstance(value, int | float) and not isinstance(value, bool):
            while abs(value) >= _SECONDS_MOST:
                value /= 1_000
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise _no_moment(name) from error
    raise _no_moment(name)


def _no_moment(name: str) -> InvalidInput:
    return InvalidInput(
        f"{name} is no moment.", remedy="Give it as 2026-01-02T12:34:56Z, or in seconds since 1970.", field=name
    )
