"""From a row of the table and a function to a tool: schemas in few tokens, answers without empty fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from functools import cache, wraps
from typing import Any, get_args, get_type_hints

from fastmcp.exceptions import ToolError
from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations
from pydantic import BaseModel

from .answers import Answer
from .errors import expected_errors
from .models import ToolErrorResponse
from .registry import ToolSpec

__all__ = ["make_tool"]


def make_tool(spec: ToolSpec, function: Callable[..., Any], *, portable: bool) -> Tool:
    """A tool that calls the function, which returns an `Answer`."""
    tool = Tool.from_function(
        _answering(function),
        name=spec.portable_name if portable else spec.name,
        title=spec.title,
        description=spec.description,
        output_schema=deepcopy(_answer_schema(_answer_type(function))),
        annotations=ToolAnnotations(
            read_only_hint=spec.read_only,
            destructive_hint=spec.destructive,
            idempotent_hint=spec.idempotent,
            open_world_hint=spec.reaches_out,
        ),
    )
    tool.parameters = _slim(tool.parameters)
    return tool


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function and signature, its answer as the protocol wants it."""
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def answer_later(*args: Any, **kwargs: Any) -> ToolResult:
            with expected_errors(ToolError):
                return _result(await function(*args, **kwargs))

        wrapped: Callable[..., Any] = answer_later
    else:

        @wraps(function)
        def answer(*args: Any, **kwargs: Any) -> ToolResult:
            with expected_errors(ToolError):
                return _result(function(*args, **kwargs))

        wrapped = answer
    hints = {**get_type_hints(function, include_extras=True), "return": ToolResult}
    parameters = [
        parameter.replace(annotation=hints[name]) for name, parameter in inspect.signature(function).parameters.items()
    ]
    wrapped.__annotations__ = hints
    wrapped.__signature__ = inspect.Signature(parameters, return_annotation=ToolResult)  # type: ignore[attr-defined]
    return wrapped


def _answer_type(function: Callable[..., Any]) -> type[BaseModel]:
    """What the function answers when it succeeds."""
    returned = get_type_hints(function)["return"]
    kinds: tuple[type[BaseModel], ...] = get_args(returned) or (returned,)
    return next(kind for kind in kinds if kind is not ToolErrorResponse)


@cache
def _answer_schema(answered: type[BaseModel]) -> dict[str, Any]:
    """Half the work of making a tool, and the same for every server of a process."""
    schema: dict[str, Any] = _slim(answered.model_json_schema())
    return schema


def _result(answer: Answer | ToolErrorResponse) -> ToolResult:
    return ToolResult(structured_content=answer.payload(), is_error=isinstance(answer, ToolErrorResponse))


def _slim(schema: Any, shared: dict[str, Any] | None = None) -> Any:
    """The same schema in fewer tokens: no titles, no references, and an optional value is left out, not null."""
    if isinstance(schema, list):
        return [_slim(item, shared) for item in schema]
    if not isinstance(schema, dict):
        return schema
    shared = schema.get("$defs", shared) or {}
    if "$ref" in schema:
        return _slim(shared[schema["$ref"].rpartition("/")[2]], shared)
    slim = {key: _slim(value, shared) for key, value in schema.items() if key not in ("title", "properties", "$defs")}
    if "properties" in schema:
        slim["properties"] = {name: _slim(value, shared) for name, value in schema["properties"].items()}
    options = [option for option in slim.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        del slim["anyOf"]
        slim = {**options[0], **slim}
    if slim.get("default", ...) is None:
        del slim["default"]
    return slim
