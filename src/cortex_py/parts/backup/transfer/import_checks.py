"""Checks documents from outside: complete, of the right types, within the limits, without secrets.

People edit exports, and others may have made them: what the store itself would never hold is refused. Prompts and
templates are checked like saved ones, with all their versions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, get_args

from ....core.config import Settings
from ....core.errors import BackupCorrupt, ContentBlocked, CortexError, InvalidInput
from ....core.graph_values import ENTITY_TYPES, RELATIONSHIP_TYPES
from ....core.memory.capture.capture import check_fields, check_text, clean_tags, path_in, screen_record
from ....core.memory.labels.ontology import canonical_category
from ....core.memory.spaces import canonical_namespace
from ....core.records import STATUSES, Confinement, Domain, Memory, Saved, SavedKind
from ....core.security.policy import Screen
from ....core.security.secrets.secrets import redact
from ....core.store.documents.document import Document
from ....core.store.documents.documents import check_document
from ....core.store.documents.memories import memory_of
from ...prompts.checks import (
    Draft,
    as_variables,
    check_content,
    check_draft,
    check_saved_name,
    screen_saved,
    variable_names,
)
from .export import saved_of

__all__ = ["Checks", "placed", "saved_document", "texts_in"]

_VARIABLE_FIELDS = frozenset(("name", "description", "default", "required", "choices"))


def checked_saved(document: Document, domain: Domain, screen: Screen) -> Document:
    """A saved text with all its versions as they may be kept."""
    data = document.data
    kind = saved_of(document).kind
    check_saved_name(document.key.partition("/")[2], kind)
    if data["domain"] != domain:
        raise InvalidInput(
            f"The {kind} is of the domain {data['domain'][:40]!r}, in a part of {domain}.", field="domain"
        )
    versions = [_version(document, one, kind, screen) for one in data["versions"]]
    present = next(one for one in versions if one["version"] == data["version"])
    fields = {name: present[name] for name in ("description", "tags", "variables", "redactions")}
    return replace(document, data={**data, **fields, "versions": versions})


def saved_document(draft: Draft, domain: Domain, screen: Screen, now: int) -> Document:
    """The document of a text from a file, as its first version."""
    checked, _ = check_draft(draft)
    saved = screen_saved(checked.as_saved(domain), screen)
    fields = _fields(saved)
    versions = [{"version": 1, **fields, "saved_at": now, "content": saved.content}]
    data = {"domain": domain, "version": 1, **fields, "created_at": now, "updated_at": now, "versions": versions}
    return Document("saved", f"{saved.kind}/{saved.name}", data)


def _version(document: Document, version: Mapping[str, Any], kind: SavedKind, screen: Screen) -> dict[str, Any]:
    texts = (version["tags"], version["redactions"])
    if not all(isinstance(one, list) and all(isinstance(word, str) for word in one) for one in texts):
        raise InvalidInput(f"The tags of the {kind} are not texts.", field="tags")
    declared = version["variables"]
    if not isinstance(declared, list) or any(
        not isinstance(one, dict) or set(one) != _VARIABLE_FIELDS for one in declared
    ):
        raise InvalidInput(f"The variables of the {kind} are not declared in full.", field="variables")
    saved = Saved(
        kind=kind,
        name=document.key.partition("/")[2],
        domain=document.data["domain"],
        content=check_content(version["content"]),
        description=version["description"],
        tags=tuple(version["tags"]),
        variables=as_variables(declared),
        redactions=tuple(version["redactions"]),
    )
    # Refuses a content that cannot be parsed.
    variable_names(kind, saved.content)
    cleaned = screen_saved(saved, screen)
    if cleaned == saved:
        return dict(version)
    found = tuple(dict.fromkeys((*saved.redactions, *cleaned.redactions)))
    return {**version, **_fields(replace(cleaned, redactions=found)), "content": cleaned.content}


def _fields(saved: Saved) -> dict[str, Any]:
    return {
        "description": saved.description,
        "tags": list(saved.tags),
        "variables": [{**asdict(one), "choices": list(one.choices)} for one in saved.variables],
        "redactions": list(saved.redactions),
    }


_KEY_MOST = 400
_BRANCH_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\Z")
_TOPIC_MOST = 200
# From the year 1 to the year 9999.
_MOMENT_LEAST, _MOMENT_MOST = -62_135_596_800_000_000, 253_402_300_799_999_999
_MOMENTS = frozenset(("at", "valid_from", "valid_to"))
_REALS = frozenset(("confidence", "strength", "raw", "share", "refused", "grounding"))
# What may occur once in a list, by the name of the list.
_ONCE = {
    "versions": ("version",),
    "aliases": ("alias",),
    "parts": ("n",),
    "suggestions": ("n",),
    "log": ("n",),
    "mentions": ("entity_id", "first"),
}
# Prose, in which a secret can be redacted. A document with one elsewhere is left out.
_PROSE = {"branch": ("topic",), "relationship": ("evidence",), "session": ("task", "reason"), "reference": ("task",)}


class Checks:
    """Checks documents, and counts those that were redacted."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._screen = Screen.by(settings)
        self.redacted = 0
        # Memories whose text was redacted.
        self.reworded: set[str] = set()

    def document(self, document: Document, domain: Domain, project_id: str | None) -> Document | None:
        """The document as it may be written into a space of this domain and project.

        None if it contains a secret that cannot be redacted.
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
            cleaned = checked_saved(document, domain, self._screen)
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
        cleaned = screen_record(memory, self._screen)
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
        self.redacted += cleaned != memory or any(one["content"] not in known for one in data["versions"])
        return replace(document, data=data)

    def _version(self, version: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
        """Apply the policy to an earlier version: the history would show a secret in it."""
        check_text(version["content"], "content", self._settings.max_content_bytes)
        tags, source = tuple(version["tags"]), version["source"]
        before = replace(memory, content=version["content"], tags=tags, source=source, summary=None, path=None)
        cleaned = screen_record(before, self._screen)
        return {**version, "content": cleaned.content, "tags": list(cleaned.tags), "source": cleaned.source}

    # -- all else --------------------------------------------------------------------------------

    def _screened(self, document: Document) -> Document | None:
        data, found, here = dict(document.data), False, self._screen
        for name in _PROSE.get(document.kind, ()):
            (data[name],), kinds = here.each(name, [data[name]])
            found = found or bool(kinds)
        rest = {name: value for name, value in data.items() if name not in _PROSE.get(document.kind, ())}
        texts = [document.key, *texts_in(rest)]
        if isinstance(rest.get("properties"), dict):
            # Some secrets are recognised by the name before them.
            texts.append(json.dumps(rest["properties"], ensure_ascii=False))
        # All at once first: most documents hold no secret.
        if redact("\n".join(texts)).findings and Screen(here.policy).each(document.kind, texts)[1]:
            return None
        self.redacted += found
        return replace(document, data=data) if found else document


def placed(error: CortexError, place: str) -> CortexError:
    """The same error, with the place where it occurred."""
    message = f"{place}: {error.message}"
    if isinstance(error, ContentBlocked):
        return ContentBlocked(message, kinds=error.kinds, remedy=error.remedy)
    if isinstance(error, BackupCorrupt):
        return InvalidInput(message, remedy="Correct the line, or export again.", field="file")
    error.message = message
    return error


def _check_plain(document: Document) -> None:
    """Refuse text that the store cannot keep: half characters, and numbers that are not finite."""
    try:
        document.line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput("It holds half of a surrogate pair, which is not a character.", field="file") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput("It holds a number that is not finite, or is nested too deeply.", field="file") from error
    if not document.key or len(document.key) > _KEY_MOST:
        raise InvalidInput(f"Its key is empty or longer than {_KEY_MOST} characters.", field="key")


def _check_numbers(data: Mapping[str, Any]) -> None:
    """Moments must be dates, and lists must not repeat; applied to values of the right types."""
    for name, value in data.items():
        if (name.endswith("_at") or name in _MOMENTS) and isinstance(value, int):
            if not _MOMENT_LEAST <= value <= _MOMENT_MOST:
                raise InvalidInput(f"{name} is not a moment between the years 1 and 9999.", field=name)
        elif name in _ONCE and isinstance(value, list):
            inside = [one for one in value if isinstance(one, dict)]
            if len({tuple(str(one.get(key)) for key in _ONCE[name]) for one in inside}) < len(inside):
                raise InvalidInput(f"{name} holds the same thing twice.", field=name)
            for one in inside:
                _check_numbers(one)


def _as_stored(data: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Numbers and lists in the form in which the store returns them: 1 for 1.0 would always differ."""
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
    """The log of a merge, as far as its rows name memories."""
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
        raise InvalidInput(f"Unknown entity type {document.data['type'][:40]!r}.", field="type")


def _check_relationship(document: Document) -> None:
    data = document.data
    if data["type"] not in RELATIONSHIP_TYPES or not isinstance(data["properties"], dict):
        raise InvalidInput(f"Unknown relationship type {data['type'][:40]!r}.", field="type")
    if not 0 <= data["confidence"] <= 1:
        raise InvalidInput("The confidence is not between 0 and 1.", field="confidence")


def _check_verification(document: Document) -> None:
    result = document.data["result"]
    try:
        fits = result is None or isinstance(json.loads(result), dict)
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise InvalidInput("What a check found is not a JSON object.", field="result")


_CHECKS: dict[str, Callable[[Document], None]] = {
    "branch": _check_branch,
    "entity": _check_entity,
    "relationship": _check_relationship,
    "verification": _check_verification,
}


def texts_in(value: object) -> Iterator[str]:
    """Every text in a JSON value, without field names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
