"""Embeddings and models in the form of OpenAI's interface, so that its clients work here unchanged."""

from __future__ import annotations

import base64
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ..embedding.backend import Backend
from ..embedding.service import Embeddings, EmbeddingService
from ..embedding.waiting import embed_many
from ..errors import CortexError, InvalidInput
from .pages import read_body

__all__ = [
    "OpenAIEmbedding",
    "OpenAIEmbeddings",
    "OpenAIModel",
    "OpenAIModels",
    "OpenAIRequest",
    "OpenAIUsage",
    "embed_input",
    "model_names",
    "openai_embeddings",
    "openai_models",
    "read_openai_request",
]

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
    asked = _read(body)
    served = backend.model_name
    if _bare(asked.model) != _bare(served):
        raise InvalidInput(
            f"The model {asked.model[:80]!r} is not served here.", remedy=f"Ask for {served!r}.", field="model"
        )
    # Some models tell their dimensions only with their first vector; 0 until then.
    if asked.dimensions is not None and backend.dimensions:
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


def _read(body: bytes) -> OpenAIRequest:
    try:
        return read_body(OpenAIRequest, body)
    except InvalidInput as error:
        # A missing input is told as such; one of the wrong kind fails as a text and as a list, which says little.
        if not (error.field or "").startswith("input."):
            raise
        raise InvalidInput(
            "input is neither a text nor a list of texts; arrays of tokens are not taken.",
            remedy="Send the texts themselves.",
            field="input",
        ) from None


def model_names(served: str) -> list[str]:
    """How the served model may be called: with the prefix of its publisher, or without."""
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
