"""The embedding service over plain HTTP: its own form, OpenAI's form, its metrics and its description."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema
from pydantic_core import to_json
from starlette.routing import Route

from ...core.embedding.backends.backend import Backend
from ...core.embedding.service import Embeddings, EmbeddingService, embed_many, embed_one
from ...core.errors import CortexError, InvalidInput
from ..mcp.families.embedding import (
    BatchEmbeddingResponse,
    EmbeddingBatchInput,
    EmbeddingGenerateInput,
    EmbeddingResponse,
    ToolErrorResponse,
)
from .access import OPEN_PATHS, page_scope
from .monitoring import METRICS_TYPE, HttpMetrics
from .pages import OPENAPI_SCHEMA, PageAnswer, PlainPage, Work, openapi_content, openapi_document, read_body

__all__ = ["OpenAIRequest", "embedding_routes", "openapi"]

# Embeddings and models in the form of OpenAI's interface, so that its clients work here unchanged.

_PREFIX = "sentence-transformers/"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OpenAIRequest(_Model):
    input: str | list[str] = Field(description="A text, or several. Arrays of tokens are not taken.")
    model: str = Field(description="The served model; letter case does not matter.")
    encoding_format: Literal["float", "base64"] | None = Field(
        default="float", description="base64: the bytes of little-endian 32-bit floats."
    )
    dimensions: int | None = Field(default=None, description="The model's own; vectors are never cut.")
    user: str | None = Field(default=None, description="Ignored.")


class OpenAIEmbedding(_Model):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class OpenAIUsage(_Model):
    prompt_tokens: int
    total_tokens: int


class OpenAIEmbeddings(_Model):
    object: Literal["list"] = "list"
    data: list[OpenAIEmbedding]
    model: str
    usage: OpenAIUsage


class OpenAIModel(_Model):
    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="Always 0: when the model was made is not known.")
    owned_by: Literal["cortex"] = "cortex"
    dimensions: int
    max_tokens: int = Field(description="Tokens beyond this many are not read.")
    backend: str
    loaded: bool = Field(description="Whether the model is in memory.")


class OpenAIModels(_Model):
    object: Literal["list"] = "list"
    data: list[OpenAIModel]


def read_openai_request(body: bytes, backend: Backend) -> OpenAIRequest:
    """The request, if this model can answer it."""
    try:
        asked = read_body(OpenAIRequest, body)
    except InvalidInput as error:
        # An input of the wrong kind fails twice, as a text and as a list, which is hard to read.
        if not (error.field or "").startswith("input."):
            raise
        raise InvalidInput(
            "input is neither a text nor a list of texts; arrays of tokens are not taken.",
            remedy="Send the texts themselves.",
            field="input",
        ) from None
    served = backend.model_name
    if _bare(asked.model) != _bare(served):
        raise InvalidInput(
            f"The model {asked.model[:80]!r} is not served here.", remedy=f"Ask for {served!r}.", field="model"
        )
    # Some models know their dimensions only with their first vector; 0 until then.
    if backend.dimensions:
        _check_dimensions(asked, backend.dimensions)
    return asked


async def embed_input(service: EmbeddingService, asked: OpenAIRequest, caller: str) -> Embeddings:
    """The vectors of what was asked; errors name the field that this form has."""
    single = isinstance(asked.input, str)
    try:
        found = await embed_many(service, [asked.input] if single else asked.input, True, caller)
    except CortexError as error:
        if field := error.field:
            error.field = "input" if single else field.replace("texts", "input", 1)
            error.message = error.message.replace(field, error.field, 1)
        raise
    _check_dimensions(asked, found.metadata.dimensions)
    return found


def openai_embeddings(found: Embeddings, encoding: Literal["float", "base64"] | None) -> OpenAIEmbeddings:
    vectors: list[list[float] | str]
    if encoding == "base64":
        vectors = [base64.b64encode(row.tobytes()).decode("ascii") for row in found.vectors.astype("<f4", copy=False)]
    else:
        vectors = found.vectors.tolist()
    tokens = found.metadata.tokens
    return OpenAIEmbeddings(
        data=[OpenAIEmbedding(index=index, embedding=vector) for index, vector in enumerate(vectors)],
        model=found.metadata.model_name,
        usage=OpenAIUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def openai_models(backend: Backend) -> OpenAIModels:
    """The one model that is served; loads nothing."""
    model = OpenAIModel(
        id=backend.model_name,
        created=0,
        dimensions=backend.dimensions,
        max_tokens=backend.max_tokens,
        backend=backend.name,
        loaded=backend.loaded,
    )
    return OpenAIModels(data=[model])


def model_names(served: str) -> list[str]:
    """The names of the served model: with the prefix of its publisher, or without."""
    bare = served[len(_PREFIX) :] if served.lower().startswith(_PREFIX) else served
    return [bare, _PREFIX + bare]


def _check_dimensions(asked: OpenAIRequest, dimensions: int) -> None:
    if asked.dimensions not in (None, dimensions):
        raise InvalidInput(
            f"The model has {dimensions} dimensions, not {asked.dimensions}.",
            remedy="Leave dimensions out; vectors are never cut.",
            field="dimensions",
        )


def _bare(model: str) -> str:
    return model.lower().removeprefix(_PREFIX)


# The description of the HTTP interface: OpenAPI 3.1, made of the models that the pages themselves use.


class ErrorBody(_Model):
    """Why a request was refused; `details` may name the field, what to do, and when to come back."""

    error: ToolErrorResponse


class PlainError(_Model):
    code: str
    message: str


class PlainErrorBody(_Model):
    error: PlainError


class BodyTooLarge(_Model):
    class Fault(_Model):
        code: int
        message: str

    jsonrpc: Literal["2.0"]
    id: None
    error: Fault


class LivePage(_Model):
    status: Literal["live"]


class ServedModel(_Model):
    name: str
    loaded: bool


class HealthPage(_Model):
    status: Literal["healthy"]
    version: str
    project_id: str
    model: ServedModel


class ReadyPage(_Model):
    status: Literal["ready"]
    # Only with `database_read_url`; null while the replica does not answer.
    replica_lag_bytes: int | None = None


class StatusPage(_Model):
    project_id: str
    project_name: str
    project_remote: str | None
    path: str | None
    branch: str | None
    engine: str
    total_count: int
    namespace_counts: dict[str, int]
    status_counts: dict[str, int]
    recent_topics: list[str]
    top_tags: list[list[str | int]] = Field(description="Tags, each with how many memories have it.")
    size_bytes: int
    model: str | None
    llm_use: list[list[str | int]] = Field(
        description="Language models used today: name, calls, tokens asked, tokens answered, failures."
    )
    grounding_counts: dict[str, int] = Field(
        description="Memories that were checked against the project, by what was found: accept, warn, reject."
    )
    personal_counts: dict[str, int] = Field(
        description="In how many memories each kind of personal data was found, and how many were not looked at yet."
    )
    pending_vectors: int = Field(description="Parts of scanned files whose vectors are yet to be computed.")
    pending_outlines: int = Field(description="How many of these are the first part of a file; these come first.")


class Described(BaseModel):
    """This description."""

    openapi: str


@dataclass(frozen=True, slots=True)
class _Operation:
    method: str
    path: str
    name: str
    summary: str
    answer: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    fails: bool = False


_OPERATIONS = [
    _Operation("post", "/embed", "embed", "The vector of one text", EmbeddingResponse, EmbeddingGenerateInput),
    _Operation(
        "post", "/embeddings", "embedMany", "The vectors of many texts", BatchEmbeddingResponse, EmbeddingBatchInput
    ),
    _Operation(
        "post", "/v1/embeddings", "createEmbedding", "Vectors in OpenAI's form", OpenAIEmbeddings, OpenAIRequest
    ),
    _Operation("get", "/models", "models", "The served model", OpenAIModels),
    _Operation("get", "/v1/models", "listModels", "The served model, where OpenAI's clients look", OpenAIModels),
    _Operation("get", "/metrics", "metrics", "Numbers for Prometheus"),
    _Operation("get", "/openapi.json", "openapi", "This description", Described),
    _Operation("get", "/health", "health", "What is true now; loads nothing", HealthPage, fails=True),
    _Operation("get", "/health/live", "live", "Whether the server lives", LivePage),
    _Operation(
        "get", "/health/ready", "ready", "Whether the store answers and the model is there", ReadyPage, fails=True
    ),
    _Operation("get", "/status", "status", "What the memory holds", StatusPage, fails=True),
]
_REFUSALS = {
    415: "The body is announced as something else than JSON",
    422: "The request is not understood, or a text is too long or not allowed",
    429: "Too many requests; Retry-After says when to try again",
    500: "The model failed",
    503: "The model is missing or damaged; the message says what to do",
}


def openapi(service: EmbeddingService, *, needs_token: bool, known_callers: bool = False) -> dict[str, Any]:
    """The description of all pages, with the limits of this service."""
    paths: dict[str, Any] = {}
    for operation in _OPERATIONS:
        guarded = needs_token and operation.path not in OPEN_PATHS
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, guarded)
        if guarded and known_callers:
            answers = paths[operation.path][operation.method]["responses"]
            answers["403"] = _response(f"The token lacks the scope {page_scope(operation.path)}", PlainErrorBody)
            answers.setdefault("429", _response("Too many requests", PlainErrorBody))
    components: dict[str, Any] = {"schemas": _schemas(service)}
    if needs_token:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return openapi_document("Cortex", "Embeddings and health over plain HTTP.", paths, components)


def _operation(operation: _Operation, guarded: bool) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": _response("Done", operation.answer)}
    if guarded:
        responses["401"] = _response("The token is missing or wrong", PlainErrorBody)
    if operation.body:
        responses["413"] = _response("The body is too large", BodyTooLarge)
        responses |= {str(status): _response(words, ErrorBody) for status, words in _REFUSALS.items()}
        seconds = {"required": True, "description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}}
        responses["429"]["headers"] = {"Retry-After": seconds}
    if operation.fails:
        responses["503"] = _response("The store or the model is not usable", PlainErrorBody)
    described: dict[str, Any] = {"operationId": operation.name, "summary": operation.summary, "responses": responses}
    if operation.body:
        described["requestBody"] = {"required": True, "content": openapi_content(operation.body)}
    if guarded:
        described["security"] = [{"token": []}]
    return described


def _response(words: str, model: type[BaseModel] | None) -> dict[str, Any]:
    content = openapi_content(model) if model else {"text/plain": {"schema": {"type": "string"}}}
    return {"description": words, "content": content}


def _schemas(service: EmbeddingService) -> dict[str, Any]:
    bodies = [operation.body for operation in _OPERATIONS if operation.body]
    answers = [operation.answer for operation in _OPERATIONS if operation.answer]
    answers += [ErrorBody, PlainErrorBody, BodyTooLarge]
    wanted = [(model, "validation") for model in bodies] + [(model, "serialization") for model in answers]
    _, definitions = models_json_schema(wanted, ref_template=OPENAPI_SCHEMA)  # type: ignore[arg-type]
    schemas: dict[str, Any] = definitions["$defs"]
    _add_limits(schemas, service)
    return schemas


def _add_limits(schemas: dict[str, Any], service: EmbeddingService) -> None:
    """Say of the bodies what the models cannot know: the limits of this service and the name of its model."""
    guard, backend = service.guard, service.backend
    text = {
        "type": "string",
        "minLength": 1,
        "maxLength": guard.max_length,
        "pattern": r"^[^\u0000]*\S[^\u0000]*$",
        "description": f"Not blank, and allowed by the security profile {guard.profile!r}.",
    }
    texts = {"type": "array", "items": text, "minItems": 1, "maxItems": guard.max_texts}
    schemas["EmbeddingGenerateInput"]["properties"]["text"] |= text
    schemas["EmbeddingBatchInput"]["properties"]["texts"] |= texts
    asked = schemas["OpenAIRequest"]["properties"]
    asked["input"]["anyOf"] = [text, texts]
    asked["model"]["enum"] = model_names(backend.model_name)
    if backend.dimensions:
        asked["dimensions"]["anyOf"] = [{"type": "integer", "const": backend.dimensions}, {"type": "null"}]


# Above these, reading a body or writing an answer would hold up the loop.
_SMALL_BODY = 65_536
_FEW_VECTORS = 32

_T = TypeVar("_T")


def embedding_routes(
    service: EmbeddingService,
    *,
    token: str | None = None,
    known_callers: bool = False,
    metrics: HttpMetrics | None = None,
) -> list[Route]:
    """The pages of a service. Where the server has a shared token, it also identifies the caller.

    `known_callers`: a guard in front of them identifies callers.
    `metrics` to count in and to show, if other pages of the server are counted too.
    """
    counts, backend = metrics or HttpMetrics(service), service.backend
    needs_token = known_callers or token is not None

    async def embed(body: bytes, caller: str) -> PageAnswer:
        asked = await _run_aside(lambda: read_body(EmbeddingGenerateInput, body), len(body) > _SMALL_BODY)
        return _json(EmbeddingResponse.from_embedding(await embed_one(service, asked.text, asked.normalize, caller)))

    async def embeddings(body: bytes, caller: str) -> PageAnswer:
        asked = await _run_aside(lambda: read_body(EmbeddingBatchInput, body), len(body) > _SMALL_BODY)
        found = await embed_many(service, asked.texts, asked.normalize, caller)
        return await _run_aside(
            lambda: _json(BatchEmbeddingResponse.from_embeddings(found)), len(found.vectors) > _FEW_VECTORS
        )

    async def v1_embeddings(body: bytes, caller: str) -> PageAnswer:
        asked = await _run_aside(lambda: read_openai_request(body, backend), len(body) > _SMALL_BODY)
        found = await embed_input(service, asked, caller)
        return await _run_aside(
            lambda: _json(openai_embeddings(found, asked.encoding_format)), len(found.vectors) > _FEW_VECTORS
        )

    # Made at the first request, then kept: it does not change.
    description = cache(lambda: to_json(openapi(service, needs_token=needs_token, known_callers=known_callers)))
    # In a thread: some backends read the model's folder for their description.
    shown: dict[str, Callable[[], PageAnswer]] = {
        "/models": lambda: _json(openai_models(backend)),
        "/v1/models": lambda: _json(openai_models(backend)),
        "/metrics": lambda: PageAnswer(counts.text(), kind=METRICS_TYPE.encode()),
        "/openapi.json": lambda: PageAnswer(description()),
    }
    caller = None if token is None else f"token:{hashlib.sha256(token.encode()).hexdigest()[:16]}"
    posted = {"/embed": embed, "/embeddings": embeddings, "/v1/embeddings": v1_embeddings}
    routes = [Route(path, PlainPage(path, "POST", work, caller)) for path, work in posted.items()]
    routes += [Route(path, PlainPage(path, "GET", _in_thread(show), caller)) for path, show in shown.items()]
    return [counts.count_requests(route) for route in routes]


def _in_thread(show: Callable[[], PageAnswer]) -> Work:
    async def work(_body: bytes, _caller: str) -> PageAnswer:
        return await asyncio.to_thread(show)

    return work


async def _run_aside(work: Callable[[], _T], large: bool) -> _T:
    """Do the work: in a thread if it is large, else at once."""
    return await asyncio.to_thread(work) if large else work()


def _json(model: BaseModel) -> PageAnswer:
    # The same bytes as of the model's payload, without making it first.
    return PageAnswer(to_json(model, exclude_none=True))
