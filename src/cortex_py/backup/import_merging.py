"""A document that comes against the one that is here: whether they say the same, and what becomes of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..store.document import Document

__all__ = ["joined", "same"]

# What a person writes in a file. The rest was counted or noted by the home it came from.
_WRITTEN: Mapping[str, tuple[str, ...]] = {
    "memory": (
        *("namespace", "category", "role", "content", "summary", "tags", "source", "path", "status"),
        *("branch_id", "git_branch", "user_id", "agent_id", "created_at", "expires_at"),
    ),
    "saved": ("description", "tags", "variables"),
    "branch": ("topic", "parent_id", "git_branch", "status"),
}


def same(document: Document, there: Document, *, partial: bool) -> bool:
    """Whether nothing would change."""
    if partial:
        written = _WRITTEN[document.kind]
        equal = all(document.data[name] == there.data[name] for name in written)
        return equal and (document.kind != "saved" or _content(document) == _content(there))
    if document.line == there.line:
        return True
    if document.kind == "memory" and there.data["idempotency_key"] is None:
        # Where another memory has the key, it is kept without.
        return replace(document, data={**document.data, "idempotency_key": None}).line == there.line
    return False


def joined(document: Document, there: Document, now: int) -> Document:
    """The document that is here with what a file says, and what it was before among its versions."""
    data = dict(there.data)
    data |= {name: document.data[name] for name in _WRITTEN[document.kind]}
    data["updated_at"] = now
    if document.kind == "memory":
        data |= {"version": there.data["version"] + 1, "versions": [*there.data["versions"], _past(there.data)]}
        data["redactions"] = document.data["redactions"]
        if data["status"] != there.data["status"]:
            data |= {name: document.data[name] for name in ("tombstoned_at", "prior_status", "superseded_by")}
    elif document.kind == "saved":
        number = there.data["version"] + 1
        newest = {**document.data["versions"][-1], "version": number, "saved_at": now}
        data |= {"version": number, "redactions": document.data["redactions"]}
        data["versions"] = [*there.data["versions"], newest]
    return replace(there, data=data)


def _past(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "version": data["version"],
        "recorded_at": data["updated_at"],
        "operation": "capture" if data["version"] == 1 else "update",
        **{name: data[name] for name in ("namespace", "tags", "source", "content")},
    }


def _content(document: Document) -> str:
    data = document.data
    return next((str(one["content"]) for one in data["versions"] if one["version"] == data["version"]), "")
