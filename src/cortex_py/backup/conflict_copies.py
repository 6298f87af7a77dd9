"""The further document under which a rival that lost is kept, made alike by every machine that sees the two."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from ..store.document import Document

__all__ = ["COPIED_KINDS", "conflict_copy"]

# What somebody wrote. The other kinds are small facts, of which the later one holds.
COPIED_KINDS = frozenset(("memory", "saved"))

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
