"""The further document under which a rival that lost is kept, made alike by every machine that sees the two.

Of rivals that differ only in when the same was done, none is kept: that is no conflict.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from ..store.document import Document

__all__ = ["COPIED_KINDS", "conflict_copy", "same_work"]

# What somebody wrote. The other kinds are small facts, of which the later one holds.
COPIED_KINDS = frozenset(("memory", "saved"))

# When something was done, and how often: differs also where two did the same.
_MOMENTS = frozenset(("updated_at", "tombstoned_at", "saved_at", "version"))
_ID_DIGITS = 40
_MARK_DIGITS = 8
# What a name of a saved text may have; see `prompts/checks.py`.
_NAME_LENGTH = 64


def conflict_copy(document: Document) -> Document | None:
    """The document as one of its own that tells whose rival it was, or None where none is kept of its kind."""
    if document.kind not in COPIED_KINDS:
        return None
    mark = sha256(f"{document.kind}\n{document.key}\n{document.digest}".encode("utf-8", "surrogatepass")).hexdigest()
    data: dict[str, Any] = dict(document.data)
    tags = data.get("tags")
    data["tags"] = sorted({*(tags if isinstance(tags, list | tuple) else ()), "conflict"}, key=str)
    if document.kind == "memory":
        key = mark[:_ID_DIGITS]
        data["source"] = f"conflict:{document.key}"
        # The copy is another record than the one that a repeated request would find.
        if data.get("idempotency_key") is not None:
            data["idempotency_key"] = None
    else:
        shelf, slash, name = document.key.rpartition("/")
        ending = f"-conflict-{mark[:_MARK_DIGITS]}"
        name = name[: _NAME_LENGTH - len(ending)].rstrip("-") + ending
        key = f"{shelf}{slash}{name}"
        if "name" in data:
            data["name"] = name
    if "id" in data:
        data["id"] = key
    return Document(document.kind, key, data, document.vectors)


def same_work(left: Document, right: Document) -> bool:
    """Whether two rivals differ in nothing that somebody wrote or chose, only in when it was done."""
    return left.kind == right.kind and _work(left) == _work(right)


def _work(document: Document) -> dict[str, Any]:
    data = {name: value for name, value in document.data.items() if name not in _MOMENTS and name != "versions"}
    versions = document.data.get("versions")
    if document.kind == "saved" and isinstance(versions, list) and versions and isinstance(versions[-1], dict):
        # The text of a saved one lies in its last version.
        data["versions"] = {name: value for name, value in versions[-1].items() if name not in _MOMENTS}
    return data
