"""A plain page: one method, a body in, bytes out, and one form for every error.

Pages use the ASGI interface directly instead of request and response objects: embedding a short text takes two
milliseconds, and the layers in between would add a good part of that.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from ...core.echo import clean_text
from ...core.errors import CortexError, InvalidInput, ModelCorrupt, ModelMissing, RateLimited
from ...core.security.callers import current_caller
from ...version import __version__
from ..mcp.families.embedding import ToolErrorResponse
from .middleware import read_whole_body

__all__ = [
    "OPENAPI_SCHEMA", "PageAnswer", "PlainPage", "Work", "named_fields", "openapi_content", "openapi_document",
    "read_body", "refusal",
]  # fmt: skip

_M = TypeVar("_M", bound=BaseModel)
_Headers = tuple[tuple[bytes, bytes], ...]

# Where a description keeps its models, for Pydantic to fill in.
OPENAPI_SCHEMA = "#/components/schemas/{model}"
_LONGEST_FIELD = 80
_STATUS = {"RATE_LIMITED": 429, "INTERNAL_ERROR": 500}


@dataclass(frozen=True, slots=True)
class PageAnswer:
    body: bytes
    status: int = 200
    kind: bytes = b"application/json"
    headers: _Headers = ()


# What a page does with a body and the caller's name.
Work = Callable[[bytes, str], Awaitable[PageAnswer]]


class PlainPage:
    """One path and one method. When the client leaves, its work is cancelled."""

    def __init__(self, path: str, method: str, work: Work, caller: str | None = None) -> None:
        """Callers are distinguished by name where they are known, else by address; `caller` names all of them."""
        self._path = path
        self._methods = ("GET", "HEAD") if method == "GET" else (method,)
        self._work = work
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._answer(scope, receive)
        if answer is not None:
            await _send(answer, scope["method"], send)

    async def _answer(self, scope: Scope, receive: Receive) -> PageAnswer | None:
        """The answer; None if the client has left."""
        if scope["method"] not in self._methods:
            allowed = ", ".join(self._methods)
            headers = ((b"allow", allowed.encode()),)
            return _refused(405, f"{self._path} does not take {scope['method']}.", f"Use {allowed}.", headers)
        if scope["method"] == "POST" and not _is_json(scope):
            return _refused(415, "The body is not announced as JSON.", "Send Content-Type: application/json.")
        body = await read_whole_body(receive)
        if body is None:
            return None
        return await _while_connected(self._settled(body, self._caller or _name(scope)), receive)

    async def _settled(self, body: bytes, caller: str) -> PageAnswer:
        try:
            return await self._work(body, caller)
        except CortexError as error:
            return refusal(error)


def read_body(model: type[_M], body: bytes) -> _M:
    """The body as a value. Nothing is converted, and unknown fields are refused."""
    with named_fields("The body", "/openapi.json describes what is taken."):
        return model.model_validate_json(body, strict=True)


@contextmanager
def named_fields(whole: str, remedy: str) -> Iterator[None]:
    """Around the reading of an input: its error names the first field that is wrong, else the whole."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        # A field that is not known has the name the client gave it, of any length.
        field = clean_text(".".join(str(part) for part in first["loc"]), _LONGEST_FIELD) or None
        raise InvalidInput(f"{field or whole}: {first['msg']}.", remedy=remedy, field=field) from None


def openapi_document(title: str, description: str, paths: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "description": description},
        "paths": paths,
        "components": components,
    }


def openapi_content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": OPENAPI_SCHEMA.format(model=model.__name__)}}}


def refusal(error: CortexError) -> PageAnswer:
    """An error as every page reports it."""
    answer = ToolErrorResponse.from_error(error)
    status = 503 if isinstance(error, ModelMissing | ModelCorrupt) else _STATUS.get(answer.code, 422)
    headers: _Headers = ()
    if isinstance(error, RateLimited):
        headers = ((b"retry-after", str(max(1, math.ceil(error.retry_after))).encode()),)
    return PageAnswer(to_json({"error": answer.payload()}), status, headers=headers)


def _refused(status: int, message: str, remedy: str, headers: _Headers = ()) -> PageAnswer:
    body = {"error": ToolErrorResponse.from_error(InvalidInput(message, remedy=remedy)).payload()}
    return PageAnswer(to_json(body), status, headers=headers)


def _is_json(scope: Scope) -> bool:
    """Whether the body is announced as JSON, or not announced at all."""
    for name, value in scope["headers"]:
        if name == b"content-type":
            kind: bytes = value.partition(b";")[0].strip().lower()
            return kind == b"application/json" or kind.endswith(b"+json")
    return True


def _name(scope: Scope) -> str:
    if known := current_caller():
        return known.label
    client = scope.get("client")
    return str(client[0]) if client else "local"


async def _while_connected(work: Awaitable[PageAnswer], receive: Receive) -> PageAnswer | None:
    """The answer of the work, or None if the client leaves first; then the work is cancelled."""
    task = asyncio.current_task()
    assert task is not None, "a page is always answered in a task"
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    watching = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        # Cancelled by the server as well: then the server must see it.
        if not gone or task.uncancel() > 0:
            raise
        return None
    finally:
        watching.cancel()


async def _send(answer: PageAnswer, method: str, send: Send) -> None:
    headers = [(b"content-type", answer.kind), (b"content-length", str(len(answer.body)).encode()), *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else answer.body})
