"""The forms in which families of tools answer a failed call with a result, marked as an error.

Standard library only: the instant front answers in them too, where the store cannot be opened.
"""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

from ...core.errors import AmbiguousId, BadArguments, ContentBlocked, CortexError, RateLimited, wire_form
from .registry import ErrorForm

__all__ = ["context_error", "embedding_error", "error_result"]

# The names of arguments of the context tools for what the library calls a field.
_ARGUMENTS = {
    "id": ("context_id",),
    "limit": ("top_k",),
    "project": ("project_path",),
    "path": ("project_path",),
    "branch_id": ("branch_id", "cortex_branch_id", "parent_branch"),
}


def context_error(error: CortexError, arguments: Container[str] = ()) -> dict[str, Any]:
    """An error in the form of the context tools; `arguments` are the names of those that the call was given."""
    field = next((name for name in _ARGUMENTS.get(error.field or "", ()) if name in arguments), error.field)
    details = [f"{type(error).__name__}." if not field else f"{type(error).__name__} in {field}."]
    if error.remedy:
        details.append(error.remedy)
    if isinstance(error, BadArguments):
        details = [f"Check: {', '.join(error.fields)}."]
    if isinstance(error, AmbiguousId):
        details.append(f"Candidates: {', '.join(error.candidates)}.")
    if isinstance(error, ContentBlocked):
        details.append(f"Kinds: {', '.join(error.kinds)}.")
    code = wire_form(error).cortex
    return {"success": False, "error": error.message, "error_code": code, "details": " ".join(details)}


def embedding_error(error: CortexError) -> dict[str, Any]:
    """An error in the form of the embedding tools; `details` names the field and what else a caller can use."""
    details: dict[str, Any] = {"error": type(error).__name__, "field": error.field, "remedy": error.remedy}
    if isinstance(error, RateLimited):
        details["retry_after"] = round(error.retry_after, 3)
    if isinstance(error, ContentBlocked):
        details["kinds"] = list(error.kinds)
    kept = {name: value for name, value in details.items() if value is not None}
    return {"code": wire_form(error).embedding, "message": str(error), "details": kept}


def error_result(form: ErrorForm, error: CortexError, arguments: Container[str] = ()) -> dict[str, Any] | None:
    """The result of a failed call; None for a family that answers with an error of the protocol."""
    if form == "jsonrpc":
        return None
    if form == "text":
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    content = context_error(error, arguments) if form == "cortex" else embedding_error(error)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return {"content": [{"type": "text", "text": text}], "structuredContent": content, "isError": True}
