"""From a row of the table and a function to a tool: schemas in few tokens, answers without empty fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints

from fastmcp.exceptions import ToolError
from fastmcp.tools import Tool, ToolResult
from mcp_types import ToolAnnotations

from .answers import Answer
from .errors import expected_errors
from .registry import ToolSpec

__all__ = ["make_tool"]


def make_tool(spec: ToolSpec, function: Callable[..., Any], *, portable: bool) -> Tool:
    """A tool that calls the function, which returns an `Answer`."""
    tool = Tool.from_function(
        _answering(function),
        name=spec.portable_name if portable else spec.name,
        title=spec.title,
        description=spec.description,
        output_schema=_slim(get_type_hints(function)["return"].model_json_schema()),
        annotations=ToolAnnotations(
            read_only_hint=spec.read_only,
            destructive_hint=spec.destructive,
            idempotent_hint=spec.idempotent,
            open_world_hint=False,
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


def _result(answer: Answer) -> ToolResult:
    return ToolResult(structured_content=answer.payload())


def _slim(schema: Any) -> Any:
    """The same schema in fewer tokens: no titles, and an optional value is left out rather than null."""
    if isinstance(schema, list):
        return [_slim(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    slim = {key: _slim(value) for key, value in schema.items() if key not in ("title", "properties")}
    if "properties" in schema:
        slim["properties"] = {name: _slim(value) for name, value in schema["properties"].items()}
    options = [option for option in slim.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        del slim["anyOf"]
        slim = {**options[0], **slim}
    if slim.get("default", ...) is None:
        del slim["default"]
    return slim
