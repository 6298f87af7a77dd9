"""Prompts and templates from outside: checked like those that somebody saves, with every version of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ..config import SecretPolicy
from ..errors import InvalidInput
from ..prompts.checks import FoundNames, as_variables, check_content, check_draft, check_saved_name, screened
from ..prompts.draft import Draft
from ..prompts.facts import AUTOMATIC
from ..prompts.placeholders import find_blanks
from ..prompts.template_syntax import parse
from ..records import Domain, Saved, SavedKind
from ..store.document import Document
from .export_folder import saved_of

__all__ = ["checked_saved", "saved_document"]

_VARIABLE_FIELDS = frozenset(("name", "description", "default", "required", "choices"))


def checked_saved(document: Document, domain: Domain, policy: SecretPolicy) -> Document:
    """A document with all versions as they may be kept."""
    data = document.data
    kind = saved_of(document).kind
    check_saved_name(document.key.partition("/")[2], kind)
    if data["domain"] != domain:
        raise InvalidInput(
            f"The {kind} is of the domain {data['domain'][:40]!r}, in a part of {domain}.", field="domain"
        )
    versions = [_version(document, one, kind, policy) for one in data["versions"]]
    present = next(one for one in versions if one["version"] == data["version"])
    told = {name: present[name] for name in ("description", "tags", "variables", "redactions")}
    return replace(document, data={**data, **told, "versions": versions})


def saved_document(draft: Draft, domain: Domain, policy: SecretPolicy, now: int) -> Document:
    """The document of a text that a file holds, as its first version."""
    check_saved_name(draft.name, draft.kind)
    checked, _ = check_draft(draft, _names(draft.kind, check_content(draft.content)))
    saved = screened(
        Saved(
            kind=draft.kind,
            name=checked.name,
            domain=domain,
            content=checked.content,
            description=checked.description,
            tags=checked.tags,
            variables=checked.variables,
        ),
        policy,
    )
    told = _told(saved)
    versions = [{"version": 1, **told, "saved_at": now, "content": saved.content}]
    data = {"domain": domain, "version": 1, **told, "created_at": now, "updated_at": now, "versions": versions}
    return Document("saved", f"{saved.kind}/{saved.name}", data)


def _version(document: Document, version: Mapping[str, Any], kind: SavedKind, policy: SecretPolicy) -> dict[str, Any]:
    texts = (version["tags"], version["redactions"])
    if not all(isinstance(one, list) and all(isinstance(word, str) for word in one) for one in texts):
        raise InvalidInput(f"The tags of the {kind} are no texts.", field="tags")
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
    _names(kind, saved.content)
    cleaned = screened(saved, policy)
    if cleaned is saved:
        return dict(version)
    found = tuple(dict.fromkeys((*saved.redactions, *cleaned.redactions)))
    return {**version, **_told(replace(cleaned, redactions=found)), "content": cleaned.content}


def _told(saved: Saved) -> dict[str, Any]:
    return {
        "description": saved.description,
        "tags": list(saved.tags),
        "variables": [{**asdict(one), "choices": list(one.choices)} for one in saved.variables],
        "redactions": list(saved.redactions),
    }


def _names(kind: SavedKind, content: str) -> FoundNames:
    """The variables of a content; one that cannot be read is refused."""
    if kind == "prompt":
        return FoundNames(find_blanks(content).names)
    template = parse(content)
    sure = tuple(name for name in template.names if name not in AUTOMATIC)
    return FoundNames(sure, (*(name for name in template.names if name in AUTOMATIC), *template.inner_names))
