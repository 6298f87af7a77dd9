"""Builds a tool from its row of the table and its function, with schemas in few tokens."""

from __future__ import annotations

import inspect
import re
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_type_hints

import anyio
import anyio.from_thread
import anyio.to_thread
from fastmcp import Context
from fastmcp.exceptions import ToolError
from fastmcp.tools import FunctionTool, Tool, ToolResult
from mcp_types import TextContent, ToolAnnotations
from pydantic import BeforeValidator
from pydantic_core import to_json

from ...deadline import Cancelled, Limit, apply_limit, current_limit
from ...errors import InvalidInput
from ...memory.capture.capture import Progress
from ..middleware.errors import expected_errors
from ..registry import ToolSpec
from .answer import Answer
from .embedding.models import ToolErrorResponse

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["Cancelled", "FamilyTools", "WhileAnswering", "make_tool", "require_argument", "run_long"]

_T = TypeVar("_T")

# What a tool is takes long to work out and is the same for every server of a process.
_described: dict[tuple[str, bool, Callable[..., Any]], tuple[Tool, dict[str, Any], inspect.Signature]] = {}


class FamilyTools:
    """The tools of a family over one opened Cortex."""

    def __init__(self, cortex: Cortex) -> None:
        self._cortex = cortex


def require_argument(value: _T | None, field: str) -> _T:
    """An argument that only some actions of a tool need."""
    if value is None:
        raise InvalidInput(f"{field} is missing.", remedy="This action needs it.", field=field)
    return value


# A context for the answer to a call.
WhileAnswering = Callable[[], AbstractContextManager[None]]


def make_tool(
    spec: ToolSpec, function: Callable[..., Any], *, portable: bool, while_answering: WhileAnswering = nullcontext
) -> Tool:
    """A tool that calls the function, which returns an `Answer`, or a text that is the whole answer."""
    key = (spec.name, portable, getattr(function, "__func__", function))
    answering = _as_tool_function(function, while_answering)
    if key not in _described:
        _described[key] = _describe(spec, function, answering, portable=portable)
    description, answering.__annotations__, answering.__signature__ = _described[key]  # type: ignore[attr-defined]
    return description.model_copy(update={"fn": answering})


def _describe(
    spec: ToolSpec, function: Callable[..., Any], answering: Callable[..., Any], *, portable: bool
) -> tuple[Tool, dict[str, Any], inspect.Signature]:
    """A tool without its function, which would keep a server alive, and the function's annotations and signature."""
    hints = {name: _taken(hint) for name, hint in get_type_hints(function, include_extras=True).items()}
    hints["return"] = ToolResult
    parameters = [
        parameter.replace(annotation=hints[name]) for name, parameter in inspect.signature(function).parameters.items()
    ]
    answering.__annotations__ = hints
    answering.__signature__ = inspect.Signature(parameters, return_annotation=ToolResult)  # type: ignore[attr-defined]
    answers = _answer_type(function)
    tool = FunctionTool.from_function(
        answering,
        name=spec.portable_name if portable else spec.name,
        title=spec.title,
        description=spec.description,
        output_schema=None if answers is str else _slim(answers.model_json_schema()),
        annotations=ToolAnnotations(
            read_only_hint=spec.read_only,
            destructive_hint=spec.destructive,
            idempotent_hint=spec.idempotent,
            open_world_hint=spec.reaches_out,
        ),
    )
    tool.parameters = _slim(tool.parameters)
    # The framework may have changed the signature, to give the function what no caller passes.
    return tool.model_copy(update={"fn": None}), tool.fn.__annotations__, inspect.signature(tool.fn)


def _as_tool_function(function: Callable[..., Any], while_answering: WhileAnswering) -> Callable[..., Any]:
    """The same function, with its answer as a result of the protocol."""
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def answer_later(*args: Any, **kwargs: Any) -> ToolResult:
            with expected_errors(ToolError), while_answering():
                return _result(await function(*args, **kwargs))

        return answer_later

    @wraps(function)
    def answer(*args: Any, **kwargs: Any) -> ToolResult:
        with expected_errors(ToolError), while_answering():
            return _result(function(*args, **kwargs))

    return answer


# The server takes a value of the declared type and no other. Claude Code, Claude Desktop, Cursor and Cline sometimes
# write a number as text, so a number in plain digits is taken too. No client is known to write a boolean otherwise.
_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?", re.ASCII)


def _taken(hint: Any) -> Any:
    """The type of a parameter, with numbers that are written as text."""
    kinds = get_args(hint) or (hint,)
    # An annotated type comes first, and may have alternatives.
    kinds = (*kinds, *get_args(kinds[0]))
    if int in kinds:
        return Annotated[hint, BeforeValidator(_read_integer)]
    return Annotated[hint, BeforeValidator(_read_number)] if float in kinds else hint


def _read_integer(value: object) -> object:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    # JSON does not distinguish 5 from 5.0.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_number(value: object) -> object:
    return float(value) if isinstance(value, str) and _DECIMAL.fullmatch(value) else value


def _answer_type(function: Callable[..., Any]) -> Any:
    """The model of a successful answer, or `str`."""
    returned = get_type_hints(function)["return"]
    kinds = get_args(returned) or (returned,)
    return next(kind for kind in kinds if kind is not ToolErrorResponse)


def _result(answer: Answer | str) -> ToolResult:
    if isinstance(answer, str):
        return ToolResult(content=answer)
    payload = answer.payload()
    # Not through the constructor, which converts and checks again what the answer's own model has just written.
    text = TextContent.model_construct(type="text", text=to_json(payload).decode())
    is_error = isinstance(answer, ToolErrorResponse)
    return ToolResult.model_construct(content=[text], structured_content=payload, meta=None, is_error=is_error)


def _slim(schema: Any, shared: dict[str, Any] | None = None) -> Any:
    """The same schema in fewer tokens: no titles, no references, and optional values are left out, not null."""
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


# Long work for a client: run in a thread, with progress reports and cancellation.
#
# The library reports progress through a callback between two units of work. When the client has left or cancelled, or
# the deadline of the call has passed, the next report raises, and the library leaves everything as it was before that
# unit.


async def run_long(context: Context, work: Callable[[Progress], _T]) -> _T:
    """Run `work` in a thread. It gets the callback through which it reports progress."""
    gate, begun, ended = threading.Lock(), threading.Event(), threading.Event()
    limit = current_limit() or Limit()

    started = time.monotonic()

    def report(done: int, total: int) -> None:
        limit.check()
        message = _estimate(done, total, time.monotonic() - started)
        anyio.from_thread.run(partial(context.report_progress, done, total, message))

    def run() -> _T:
        with gate:
            limit.check()
            begun.set()
        try:
            with apply_limit(limit):
                return work(report)
        finally:
            ended.set()

    try:
        # With a limiter of its own: short calls must not wait for a long one.
        return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
    except anyio.get_cancelled_exc_class():
        with gate:
            limit.cancel()
        # Work that has not begun never will, so there is no end to wait for.
        if begun.is_set():
            with anyio.CancelScope(shield=True):
                # The store must not be closed under the thread; it ends at its next report.
                await anyio.to_thread.run_sync(ended.wait, limiter=anyio.CapacityLimiter(1))
        raise


def _estimate(done: int, total: int, seconds: float) -> str:
    """How far the work is and, once it can be estimated, how long the rest will take."""
    if not 0 < done < total:
        return f"{done} of {total}"
    left = seconds * (total - done) / done
    return f"{done} of {total}, about {f'{left / 60:.0f} min' if left >= 90 else f'{left:.0f} s'} left"
