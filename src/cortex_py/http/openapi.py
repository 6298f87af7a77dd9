"""The description of the HTTP interface: OpenAPI 3.1, made of the models that the pages themselves use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema

from ..embedding.service import EmbeddingService
from ..mcp.models import (
    BatchEmbeddingResponse,
    EmbeddingBatchInput,
    EmbeddingGenerateInput,
    EmbeddingResponse,
    ToolErrorResponse,
)
from ..version import __version__
from .openai_form import OpenAIEmbeddings, OpenAIModels, OpenAIRequest, model_names
from .page_scopes import OPEN_PATHS, page_scope

__all__ = ["openapi"]

_SCHEMAS = "#/components/schemas/"
_JSON = "application/json"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


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
    may_fail: bool = False


_OPERATIONS = (
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
    _Operation("get", "/health", "health", "What is true now; loads nothing", HealthPage, may_fail=True),
    _Operation("get", "/health/live", "live", "Whether the server lives", LivePage),
    _Operation(
        "get", "/health/ready", "ready", "Whether the store answers and the model is there", ReadyPage, may_fail=True
    ),
    _Operation("get", "/status", "status", "What the memory holds", StatusPage, may_fail=True),
)
_REFUSALS = {
    415: "The body is announced as something else than JSON",
    422: "The request is not understood, or a text is too long or not allowed",
    429: "Too many requests; Retry-After tells when to come back",
    500: "The model failed",
    503: "The model is missing or damaged; the message tells what to do",
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
    return {
        "openapi": "3.1.0",
        "info": {"title": "Cortex", "version": __version__, "description": "Embeddings and health over plain HTTP."},
        "paths": paths,
        "components": components,
    }


def _operation(operation: _Operation, guarded: bool) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": _response("Done", operation.answer)}
    if guarded:
        responses["401"] = _response("The token is missing or wrong", PlainErrorBody)
    if operation.body:
        responses["413"] = _response("The body is too large", BodyTooLarge)
        responses |= {str(status): _response(words, ErrorBody) for status, words in _REFUSALS.items()}
        seconds = {"required": True, "description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}}
        responses["429"]["headers"] = {"Retry-After": seconds}
    if operation.may_fail:
        responses["503"] = _response("The store or the model is not usable", PlainErrorBody)
    described: dict[str, Any] = {"operationId": operation.name, "summary": operation.summary, "responses": responses}
    if operation.body:
        described["requestBody"] = {"required": True, "content": _content(operation.body)}
    if guarded:
        described["security"] = [{"token": []}]
    return described


def _response(words: str, model: type[BaseModel] | None) -> dict[str, Any]:
    content = _content(model) if model else {"text/plain": {"schema": {"type": "string"}}}
    return {"description": words, "content": content}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {_JSON: {"schema": {"$ref": f"{_SCHEMAS}{model.__name__}"}}}


def _schemas(service: EmbeddingService) -> dict[str, Any]:
    bodies = [operation.body for operation in _OPERATIONS if operation.body]
    answers = [operation.answer for operation in _OPERATIONS if operation.answer]
    answers += [ErrorBody, PlainErrorBody, BodyTooLarge]
    wanted = [(model, "validation") for model in bodies] + [(model, "serialization") for model in answers]
    _, definitions = models_json_schema(wanted, ref_template=_SCHEMAS + "{model}")  # type: ignore[arg-type]
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
