"""`/api/v1`: the library as JSON for the page. A table of operations, how they are run, and their description.

An operation is a function of the library and a checked input. It runs in a thread, within the time of a call; what it
raises becomes one form of error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ...core.clock import Limit, apply_limit
from ...core.errors import (
    AccessDenied,
    Conflict,
    CortexError,
    DeadlineExceeded,
    EmbeddingError,
    InvalidInput,
    NotFound,
    RateLimited,
    StorageError,
)
from ...core.security.callers import current_caller
from ..mcp.families.embedding import ToolErrorResponse
from .access import API
from .pages import OPENAPI_SCHEMA, named_fields, openapi_content, openapi_document, refusal

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["NoInput", "Operation", "Operations", "api_routes", "describe_api", "may_change", "require_write"]

Method = Literal["GET", "POST", "PATCH", "DELETE"]
_I = TypeVar("_I", bound=BaseModel)
_R = TypeVar("_R", bound=Callable[..., BaseModel])
_LONGEST_ID = 200

# Most specific first.
_STATUSES: tuple[tuple[type[CortexError], int], ...] = (
    (NotFound, 404),
    (AccessDenied, 403),
    (Conflict, 409),
    (RateLimited, 429),
    (InvalidInput, 422),
    (DeadlineExceeded, 503),
    (StorageError, 503),
    (EmbeddingError, 503),
    (CortexError, 422),
)


class NoInput(BaseModel):
    """An operation that takes nothing but its path."""

    model_config = ConfigDict(extra="forbid")


class ErrorBody(BaseModel):
    """Why a request was refused; `details` may name the field and what to do."""

    error: ToolErrorResponse


@dataclass(frozen=True, slots=True)
class Operation(Generic[_I]):
    """One method of one path. `run` gets the library, the id in the path, and the input: query or body."""

    method: Method
    path: str
    name: str
    summary: str
    takes: type[_I]
    answers: type[BaseModel]
    run: Callable[[Cortex, str, _I], BaseModel]
    changes: bool = False


class Operations(list[Operation[Any]]):
    """A table of operations."""

    def add(self, method: Method, path: str, name: str, summary: str, *, changes: bool = False) -> Callable[[_R], _R]:
        """Adds the function below it; its annotations say what the operation takes and answers."""

        def add(run: _R) -> _R:
            takes, answers = list(get_type_hints(run, localns={"Cortex": object}).values())[-2:]
            self.append(Operation(method, path, name, summary, takes, answers, run, changes))
            return run

        return add


def _is_read_only(cortex: Cortex) -> bool:
    return any(bound.read_only for bound in cortex.settings.tool_bounds)


def may_change(cortex: Cortex) -> bool:
    """Whether the caller of this request may change something here; what exactly is decided change by change."""
    caller = current_caller()
    return not _is_read_only(cortex) and (caller is None or "write" in caller.scopes)


def _require_changes(cortex: Cortex) -> None:
    if _is_read_only(cortex):
        raise AccessDenied("This server changes nothing.", remedy="Start it without --read-only.")


def require_write(cortex: Cortex) -> None:
    """For an operation that changes something only with some inputs: refuse it as the guards of a route would."""
    _require_changes(cortex)
    if not may_change(cortex):
        raise AccessDenied(
            "This needs the scope write.", remedy="Ask the operator of this server for a token that has it."
        )


def api_routes(cortex: Cortex, operations: Sequence[Operation[Any]]) -> list[Route]:
    """One route for each path, with all its methods."""
    by_path: dict[str, dict[str, Operation[Any]]] = {}
    for one in operations:
        by_path.setdefault(one.path, {})[one.method] = one
    routes = [
        Route(f"{API}{path}", _endpoint(cortex, methods), methods=sorted(methods)) for path, methods in by_path.items()
    ]
    described = describe_api(operations)
    routes.append(Route(f"{API}/openapi.json", lambda _: JSONResponse(described), methods=["GET"]))
    return routes


def _endpoint(cortex: Cortex, methods: dict[str, Operation[Any]]) -> ASGIApp | Callable[..., Any]:
    async def answer(request: Request) -> Response:
        operation = methods["GET" if request.method == "HEAD" else request.method]
        try:
            if operation.changes:
                _require_changes(cortex)
            given = await _read_input(operation, request)
            found = await run_in_threadpool(_run, cortex, operation, request.path_params.get("id", ""), given)
        except CortexError as error:
            return _refused(error)
        return Response(found.model_dump_json(), media_type="application/json", headers={"Cache-Control": "no-store"})

    return answer


def _run(cortex: Cortex, operation: Operation[Any], id: str, given: BaseModel) -> BaseModel:
    if len(id) > _LONGEST_ID:
        raise InvalidInput("The id is too long.", remedy="Give the id of a memory.", field="id")
    with apply_limit(Limit(cortex.settings.call_seconds)):
        return operation.run(cortex, id, given)


async def _read_input(operation: Operation[_I], request: Request) -> _I:
    with named_fields("The input", f"{API}/openapi.json describes it."):
        if operation.method in ("GET", "DELETE"):
            return operation.takes.model_validate(dict(request.query_params))
        body = await request.body()
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise InvalidInput("The body is not announced as JSON.", remedy="Send Content-Type: application/json.")
        return operation.takes.model_validate_json(body, strict=True)


def _refused(error: CortexError) -> Response:
    answer = refusal(error)
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    headers = {name.decode(): value.decode() for name, value in answer.headers}
    return Response(answer.body, status, headers, "application/json")


def describe_api(operations: Sequence[Operation[Any]]) -> dict[str, Any]:
    """OpenAPI 3.1, made of the models that the operations use."""
    models: set[type[BaseModel]] = {ErrorBody, *(one.takes for one in operations), *(one.answers for one in operations)}
    _, schemas = models_json_schema(
        [(model, "validation") for model in sorted(models, key=lambda one: one.__name__)],
        ref_template=OPENAPI_SCHEMA,
    )
    paths: dict[str, Any] = {}
    for one in operations:
        paths.setdefault(f"{API}{one.path}", {})[one.method.lower()] = _describe(one)
    components = {"schemas": schemas["$defs"]}
    return openapi_document("Cortex page", "What the page asks of the server.", paths, components)


def _describe(operation: Operation[Any]) -> dict[str, Any]:
    refused = {"description": "Refused; the message says why", "content": openapi_content(ErrorBody)}
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {
            "200": {"description": "Done", "content": openapi_content(operation.answers)},
            "default": refused,
        },
    }
    parameters = []
    if "{id}" in operation.path:
        schema = {"type": "string", "minLength": 1, "maxLength": _LONGEST_ID}
        parameters.append({"name": "id", "in": "path", "required": True, "schema": schema})
    if operation.method in ("GET", "DELETE"):
        schema = operation.takes.model_json_schema()
        parameters += [
            {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": one}
            for name, one in schema.get("properties", {}).items()
        ]
    else:
        found["requestBody"] = {"required": True, "content": openapi_content(operation.takes)}
    if parameters:
        found["parameters"] = parameters
    return found
