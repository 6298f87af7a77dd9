"""Documents from outside, before they may be written: whole, of the right types, within the limits, without secrets.

People edit what was exported, and others may have made it: what the store itself would never hold is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, get_args

from ..config import Settings
from ..errors import BackupCorrupt, ContentBlocked, CortexError, InvalidInput
from ..graph.values import ENTITY_TYPES, RELATIONSHIP_TYPES
from ..memory.namespaces import canonical_namespace
from ..memory.ontology import canonical_category
from ..memory.prepare import check_fields, check_text, clean_tags, path_in, without_secrets
from ..records import STATUSES, Confinement, Domain, Memory
from ..security.policy import screen
from ..security.secrets import redact
from ..store.document import Document
from ..store.document_memories import memory_of
from ..store.documents import check_document
from .import_saved import checked_saved

__all__ = ["Checks", "placed"]

_KEY_MOST = 400
_BRANCH_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\Z")
_TOPIC_MOST = 200
# From the year 1 to the year 9999.
_MOMENT_LEAST, _MOMENT_MOST = -62_135_596_800_000_000, 253_402_300_799_999_999
_MOMENTS = frozenset(("at", "valid_from", "valid_to"))
_REALS = frozenset(("confidence", "strength", "raw", "share", "refused", "grounding"))
# What may occur once in a document, by the list it stands in.
_ONCE = {
    "versions": ("version",),
    "aliases": ("alias",),
    "parts": ("n",),
    "suggestions": ("n",),
    "log": ("n",),
    "mentions": ("entity_id", "first"),
}
# Prose, in which a secret can be blotted out. Where one stands elsewhere, the document is left out.
_PROSE = {"branch": ("topic",), "relationship": ("evidence",), "session": ("task", "reason"), "reference": ("task",)}


class Checks:
    """Counts what was redacted."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.redacted = 0
        # Memories whose text is no longer the one that came.
        self.reworded: set[str] = set()

    def document(self, document: Document, domain: Domain, project_id: str | None) -> Document | None:
        """The document as it may be written into a space of this domain and project.

        None where it holds a secret that cannot be blotted out.
        """
        _check_plain(document)
        if document.kind == "memory":
            return self._memory(document, domain, project_id)
        if document.kind == "merge":
            _check_log(document.data.get("log"))
        check_document(document)
        _check_numbers(document.data)
        document = replace(document, data=_as_stored(document.data, document.kind))
        if document.kind == "saved":
            cleaned = checked_saved(document, domain, self._settings.secrets)
            self.redacted += cleaned.line != document.line and bool(cleaned.data["redactions"])
            return cleaned
        if document.kind in _CHECKS:
            _CHECKS[document.kind](document)
        return self._screened(document)

    # -- memories --------------------------------------------------------------------------------

    def _memory(self, document: Document, domain: Domain, project_id: str | None) -> Document:
        _check_numbers(document.data)
        memory = memory_of(document)
        if memory.domain != domain:
            raise InvalidInput(f"The memory is of the domain {memory.domain}, in a part of {domain}.", field="domain")
        odd = memory.kind != "note" or memory.confinement not in (None, *get_args(Confinement)) or memory.version < 1
        if odd or document.data["prior_status"] not in (None, *STATUSES):
            raise InvalidInput("Its kind, version, confinement or former status is none of a memory.", field="kind")
        check_text(memory.content, "content", self._settings.max_content_bytes)
        check_fields(memory)
        memory = replace(
            memory,
            project_id=project_id,
            namespace=canonical_namespace(memory.namespace),
            category=None if memory.category is None else canonical_category(memory.category),
            tags=clean_tags(memory.tags),
            path=memory.path if memory.path or not memory.source else path_in(memory.source),
        )
        cleaned = without_secrets(memory, self._settings.secrets)
        data = {
            **document.data,
            "project_id": project_id,
            **{
                name: getattr(cleaned, name)
                for name in ("namespace", "category", "content", "summary", "source", "path")
            },
            "tags": list(cleaned.tags),
            "redactions": list(dict.fromkeys((*memory.redactions, *cleaned.redactions))),
            "versions": [self._version(one, memory) for one in document.data["versions"]],
        }
        if cleaned.content != memory.content:
            self.reworded.add(document.key)
        known = {one["content"] for one in document.data["versions"]}
        self.redacted += cleaned is not memory or any(one["content"] not in known for one in data["versions"])
        return replace(document, data=data)

    def _version(self, version: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
        """An earlier state passes the same policy: a secret in it would be shown by the history."""
        check_text(version["content"], "content", self._settings.max_content_bytes)
        tags, source = tuple(version["tags"]), version["source"]
        before = replace(memory, content=version["content"], tags=tags, source=source, summary=None, path=None)
        cleaned = without_secrets(before, self._settings.secrets)
        return {**version, "content": cleaned.content, "tags": list(cleaned.tags), "source": cleaned.source}

    # -- all else --------------------------------------------------------------------------------

    def _screened(self, document: Document) -> Document | None:
        data, found = dict(document.data), False
        for name in _PROSE.get(document.kind, ()):
            (data[name],), kinds = screen([data[name]], self._settings.secrets)
            found = found or bool(kinds)
        rest = {name: value for name, value in data.items() if name not in _PROSE.get(document.kind, ())}
        texts = [document.key, *_texts(rest)]
        if isinstance(rest.get("properties"), dict):
            # Some are known for secrets by the name before them.
            texts.append(json.dumps(rest["properties"], ensure_ascii=False))
        # All at once first: that most documents hold no secret is told in one look.
        if redact("\n".join(texts)).findings and screen(texts, self._settings.secrets)[1]:
            return None
        self.redacted += found
        return replace(document, data=data) if found else document


def placed(error: CortexError, place: str) -> CortexError:
    """The same error, told with the place where it arose."""
    message = f"{place}: {error.message}"
    if isinstance(error, ContentBlocked):
        return ContentBlocked(message, kinds=error.kinds, remedy=error.remedy)
    if isinstance(error, BackupCorrupt):
        return InvalidInput(message, remedy="Correct the line, or export anew.", field="file")
    error.message = message
    return error


def _check_plain(document: Document) -> None:
    """Text that the store can keep: no half characters, no numbers that are none."""
    try:
        document.line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput("It holds half of a surrogate pair, which is no character.", field="file") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput("It holds a number that is not finite, or is nested too deeply.", field="file") from error
    if not document.key or len(document.key) > _KEY_MOST:
        raise InvalidInput(f"Its key is empty or longer than {_KEY_MOST} characters.", field="key")


def _check_numbers(data: Mapping[str, Any]) -> None:
    """Moments that are dates, and lists in which each thing stands once; only of what has the right types already."""
    for name, value in data.items():
        if (name.endswith("_at") or name in _MOMENTS) and isinstance(value, int):
            if not _MOMENT_LEAST <= value <= _MOMENT_MOST:
                raise InvalidInput(f"{name} is no moment between the years 1 and 9999.", field=name)
        elif name in _ONCE and isinstance(value, list):
            inside = [one for one in value if isinstance(one, dict)]
            if len({tuple(str(one.get(key)) for key in _ONCE[name]) for one in inside}) < len(inside):
                raise InvalidInput(f"{name} holds the same thing twice.", field=name)
            for one in inside:
                _check_numbers(one)


def _as_stored(data: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Numbers and lists in the form in which the store gives them back: 1 for 1.0 would differ for ever."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        real = name in _REALS or (kind == "trust" and name == "accepted")
        if real and isinstance(value, int):
            found[name] = float(value)
        elif name in _ONCE and kind != "merge" and isinstance(value, list):
            found[name] = [_as_stored(one, kind) for one in value]
        else:
            found[name] = value
    if "mentions" in found:
        # An empty object passes for an empty list.
        found["mentions"] = sorted(found["mentions"], key=lambda one: (one["first"], one["entity_id"]))
    return found


def _check_log(log: object) -> None:
    """What a merge wrote down, as far as its rows name memories."""
    forms = {"merge": dict, "kept": dict, "entity": dict, "mention": list, "moved": dict, "dropped": dict}
    fits = isinstance(log, list) and all(
        isinstance(one, dict) and one.get("kind") in forms and isinstance(one.get("data"), forms[one["kind"]])
        for one in log
    )
    if not fits or not isinstance(log, list) or any(one["kind"] == "mention" and len(one["data"]) < 3 for one in log):
        raise InvalidInput("The log of the merge cannot be read.", field="log")


def _check_branch(document: Document) -> None:
    # The id becomes the name of a file.
    if not _BRANCH_ID.match(document.key):
        raise InvalidInput(f"{document.key[:80]!r} is not the id of a branch.", field="key")
    check_text(document.data["topic"], "topic", 4 * _TOPIC_MOST)


def _check_entity(document: Document) -> None:
    check_text(document.data["name"], "name", 4_000)
    if document.data["type"] not in ENTITY_TYPES or not isinstance(document.data["properties"], dict):
        raise InvalidInput(f"There is no type of entity {document.data['type'][:40]!r}.", field="type")


def _check_relationship(document: Document) -> None:
    data = document.data
    if data["type"] not in RELATIONSHIP_TYPES or not isinstance(data["properties"], dict):
        raise InvalidInput(f"There is no type of relationship {data['type'][:40]!r}.", field="type")
    if not 0 <= data["confidence"] <= 1:
        raise InvalidInput("The confidence is not between 0 and 1.", field="confidence")


def _check_verification(document: Document) -> None:
    result = document.data["result"]
    try:
        fits = result is None or isinstance(json.loads(result), dict)
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise InvalidInput("What a check found is no JSON object.", field="result")


_CHECKS: dict[str, Callable[[Document], None]] = {
    "branch": _check_branch,
    "entity": _check_entity,
    "relationship": _check_relationship,
    "verification": _check_verification,
}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
