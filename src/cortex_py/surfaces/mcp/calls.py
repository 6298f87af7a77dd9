"""Runs calls of tools: checks the arguments, bounds the work, and answers in the form of the protocol."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BeforeValidator, TypeAdapter, ValidationError
from pydantic_core import to_json

from ...core.clock import Limit, apply_limit, current_limit
from ...core.config import Settings
from ...core.errors import BadArguments, CortexError, StoreUnavailable
from .error_forms import error_result
from .families.answer import Answer, Progress
from .families.embedding import ToolErrorResponse
from .middleware.chain import INTERNAL_ERROR, INVALID_PARAMS, as_wire_error, check_sizes
from .registry import ToolSpec

__all__ = ["META", "Requirement", "Tool", "ToolCalls", "Turns", "make_tool", "retried", "run_long"]

UNKNOWN_TOOL = -32601
# Clients have always seen it with everything that is listed.
META: dict[str, Any] = {"fastmcp": {"tags": []}}

# Takes a tool's name and arguments, and raises why it may not be called.
Requirement = Callable[[str, dict[str, Any]], None]
# A context for the answer to a call.
WhileAnswering = Callable[[], AbstractContextManager[None]]
# Tells the client how far a call is: done, total, message.
Report = Callable[[float, float | None, str | None], Coroutine[Any, Any, None]]

_PARAMS = {"name", "arguments", "_meta"}
_PROGRESS = "progress"
_T = TypeVar("_T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it is listed, its function, and the check of the function's arguments."""

    spec: ToolSpec
    listed: mcp_types.Tool
    function: Callable[..., Any]
    arguments: TypeAdapter[tuple[tuple[Any, ...], dict[str, Any]]]
    is_async: bool
    reports: bool

    @property
    def is_plain(self) -> bool:
        """Whether a call needs nothing but its arguments and sends nothing but its answer."""
        return not self.is_async and not self.reports


# What a tool takes and answers is slow to work out, and the same for every server of a process.
_described: dict[tuple[str, bool, Callable[..., Any]], tuple[mcp_types.Tool, TypeAdapter[Any]]] = {}


def make_tool(spec: ToolSpec, function: Callable[..., Any], *, portable: bool) -> Tool:
    """A tool that calls the function, which returns an `Answer`, or a text that is the whole answer."""
    key = (spec.name, portable, getattr(function, "__func__", function))
    if key not in _described:
        _described[key] = _describe(spec, function, portable=portable)
    listed, arguments = _described[key]
    reports = _PROGRESS in inspect.signature(function).parameters
    return Tool(spec, listed, function, arguments, inspect.iscoroutinefunction(function), reports)


def _describe(
    spec: ToolSpec, function: Callable[..., Any], *, portable: bool
) -> tuple[mcp_types.Tool, TypeAdapter[Any]]:
    hints = {name: _taken(hint) for name, hint in get_type_hints(function, include_extras=True).items()}
    given = {name: one for name, one in inspect.signature(function).parameters.items() if name != _PROGRESS}

    def taken(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    taken.__annotations__ = {name: hints[name] for name in given}
    parameters = [one.replace(annotation=hints[name]) for name, one in given.items()]
    taken.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    checked: Any = taken
    arguments: TypeAdapter[Any] = TypeAdapter(checked)
    # Every function says what it returns: an answer, perhaps beside the form of an error, or a text.
    returned = get_args(hints["return"]) or (hints["return"],)
    answers = next(kind for kind in returned if kind is not ToolErrorResponse)
    listed = mcp_types.Tool(
        name=spec.portable_name if portable else spec.name,
        title=spec.title,
        description=spec.description,
        input_schema=_slim(arguments.json_schema()),
        output_schema=None if answers is str else _slim(answers.model_json_schema()),
        annotations=mcp_types.ToolAnnotations(
            read_only_hint=spec.read_only,
            destructive_hint=spec.destructive,
            idempotent_hint=spec.idempotent,
            open_world_hint=spec.reaches_out,
        ),
        _meta=META,
    )
    return listed, arguments


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


class ToolCalls:
    """The tools of a server, by the names that a call may use.

    `require`: what must hold for each call, such as a scope or a licence. Without `settings` nothing is bounded.
    `at_once`: how many plain calls work at the same time, unless they take long.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        settings: Settings | None = None,
        *,
        require: Sequence[Requirement] = (),
        while_answering: WhileAnswering = nullcontext,
        at_once: int = 1,
    ) -> None:
        tools = list(tools)
        self.listed = [tool.listed for tool in tools]
        self._tools = {name: tool for tool in tools for name in tool.spec.spellings}
        self._settings = settings
        self._require = require
        self._while_answering = while_answering
        self._turns = Turns(at_once)

    def takes(self, params: Mapping[str, Any]) -> bool:
        """Whether these are the parameters of a plain call."""
        name, meta = params.get("name"), params.get("_meta")
        tool = self._tools.get(name) if isinstance(name, str) else None
        return (
            tool is not None
            and tool.is_plain
            and params.keys() <= _PARAMS
            and (meta is None or isinstance(meta, Mapping))
        )

    async def list(self, _: ServerRequestContext[Any, Any], __: object) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=self.listed)

    async def answer(
        self, context: ServerRequestContext[Any, Any], params: mcp_types.CallToolRequestParams
    ) -> dict[str, Any]:
        """The result of `tools/call`."""
        result = await self.call(params.name, params.arguments or {}, context.session.report_progress)
        return {**result, "resultType": "complete"}

    async def call(self, name: str, arguments: dict[str, Any], report: Report) -> dict[str, Any]:
        """The result of a call in the form of the protocol; `MCPError` where the family fails with one."""
        tool = self._tools.get(name)
        if tool is None:
            raise MCPError(code=UNKNOWN_TOOL, message=f"Unknown tool: {name}", data={"tool": name})
        try:
            if self._settings is not None:
                check_sizes(arguments, self._settings)
            for requirement in self._require:
                requirement(tool.spec.name, arguments)
            return _result(await self._bounded(_Call(tool, name, arguments, report)))
        except CortexError as error:
            fault = error
        except Exception as error:  # noqa: BLE001  # its message may quote data, so clients do not see it
            _log.error("%s failed", name, exc_info=error)
            fault = CortexError(f"{name} failed; the server's log has the details.")
        if (result := error_result(tool.spec.errors, fault, arguments)) is not None:
            return result
        raise _jsonrpc_error(name, fault, arguments) from fault

    async def _bounded(self, call: _Call) -> Answer | str:
        """The answer within the time that a call has; the library stops then with `DeadlineExceeded`."""
        work = partial(self._run, call)
        if call.tool.spec.read_only and not call.tool.spec.reaches_out:
            work = partial(retried, work)
        if self._settings is None:
            return await work()
        seconds = self._settings.long_call_seconds if call.tool.spec.long else self._settings.call_seconds
        with apply_limit(Limit(seconds)) as limit:
            if not call.tool.is_async:
                return await work()
            # It waits for a batch that also works for others, and holds no transaction.
            with anyio.move_on_after(limit.seconds):
                return await work()
            limit.check()
            raise TimeoutError

    async def _run(self, call: _Call) -> Answer | str:
        if call.tool.is_plain:
            async with self._turns.taken():
                return await anyio.to_thread.run_sync(self._run_here, call)
        function = call.function()
        with self._while_answering():
            if call.tool.reports:
                return await run_long(call.report, lambda progress: function(progress=progress))
            answer: Answer | str = await function()
            return answer

    def _run_here(self, call: _Call) -> Answer | str:
        function = call.function()
        with self._while_answering():
            answer: Answer | str = function()
            return answer


@dataclass(frozen=True, slots=True)
class _Call:
    """A call under the name that the client used."""

    tool: Tool
    name: str
    arguments: dict[str, Any]
    report: Report

    def function(self) -> Callable[..., Any]:
        """The tool's function with the arguments; `BadArguments` if they do not fit."""
        try:
            args, kwargs = self.tool.arguments.validate_json(to_json(self.arguments), strict=True)
        except ValidationError as error:
            raise _bad_arguments(self.name, error) from error
        return partial(self.tool.function, *args, **kwargs)


def _result(answer: Answer | str) -> dict[str, Any]:
    if isinstance(answer, str):
        return {"content": [{"type": "text", "text": answer}], "isError": False}
    payload = answer.payload()
    content = [{"type": "text", "text": to_json(payload).decode()}]
    return {"content": content, "structuredContent": payload, "isError": isinstance(answer, ToolErrorResponse)}


def _jsonrpc_error(name: str, fault: CortexError, arguments: dict[str, Any]) -> MCPError:
    if isinstance(fault, BadArguments):
        data = {"tool": name, "field": fault.field, "fields": list(fault.fields)}
        return MCPError(code=INVALID_PARAMS, message=str(fault), data=data)
    if type(fault) is CortexError:
        return MCPError(code=INTERNAL_ERROR, message=str(fault), data={"tool": name})
    return as_wire_error(fault, arguments)


def _bad_arguments(name: str, error: ValidationError) -> BadArguments:
    places = [(".".join(map(str, fault["loc"])), fault["msg"]) for fault in error.errors() if fault["loc"]]
    reasons = "; ".join(f"{place}: {message}" for place, message in places) or "The arguments do not fit the tool."
    return BadArguments(f"{name}: {reasons}", fields=tuple(dict.fromkeys(place.split(".")[0] for place, _ in places)))


async def retried(read: Callable[[], Awaitable[_T]]) -> _T:
    """Repeat a read once if the database went away meanwhile, so that its restart is no fault of the client.

    What writes is not repeated: an earlier transaction of it may have been committed.
    """
    try:
        return await read()
    except StoreUnavailable:
        _log.warning("the database went away during a read; retrying once")
    return await read()


# How long a call keeps its turn.
_TURN_SECONDS = 0.05


class Turns:
    """Lets few calls work at the same time; one that takes long gives its turn to the next, and goes on.

    Threads that compute wait for each other's hold of the interpreter: eight of them take a quarter more processor time
    for each call than two.
    """

    def __init__(self, most: int) -> None:
        self._free = asyncio.Semaphore(most)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        await self._free.acquire()
        has_turn = True

        def give_back() -> None:
            nonlocal has_turn
            if has_turn:
                has_turn = False
                self._free.release()

        timer = asyncio.get_running_loop().call_later(_TURN_SECONDS, give_back)
        try:
            yield
        finally:
            timer.cancel()
            give_back()


async def run_long(report: Report, work: Callable[[Progress], _T]) -> _T:
    """Run `work` in a thread, with progress reports and cancellation.

    The library calls what it is given between two units of work. When the client has left or cancelled, or the
    deadline of the call has passed, that raises, and the library leaves everything as it was before the unit.
    """
    gate, begun, ended = threading.Lock(), threading.Event(), threading.Event()
    limit = current_limit() or Limit()

    started = time.monotonic()

    def progress(done: int, total: int) -> None:
        limit.check()
        message = _estimate(done, total, time.monotonic() - started)
        anyio.from_thread.run(report, float(done), float(total), message)

    def run() -> _T:
        with gate:
            limit.check()
            begun.set()
        try:
            with apply_limit(limit):
                return work(progress)
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
