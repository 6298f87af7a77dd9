"""OpenAI's own client, pointed at a server on loopback."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cases import each
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.guards import SlidingWindow
from cortex_py.core.embedding.service import EmbeddingService
from cortex_py.core.errors import ModelMissing

from stub_backend import StubBackend

if TYPE_CHECKING:
    import openai

Opens = Callable[..., EmbeddingService]
Serves = Callable[[EmbeddingService], str]

TEXTS = ["rotate the signing keys", "def main() -> None: ...", "Grüße aus 東京"]


@contextmanager
def _client(url: str) -> Iterator[openai.OpenAI]:
    import openai

    # No retries: a refusal shall be seen at once.
    with openai.OpenAI(base_url=f"{url}/v1", api_key="not needed", max_retries=0) as client:
        yield client


@pytest.fixture
def client(opened: Opens, served: Serves, model: Backend) -> Iterator[openai.OpenAI]:
    with _client(served(opened(model))) as made:
        yield made


@each("encoding", ["float", "base64", None])
def test_vectors_are_those_of_the_model(client: openai.OpenAI, model: Backend, encoding: str | None) -> None:
    options = {"encoding_format": encoding} if encoding else {}
    answer = client.embeddings.create(input=TEXTS, model=model.model_name, **options)
    found = [entry.embedding for entry in answer.data]
    if encoding == "base64":
        found = [np.frombuffer(base64.b64decode(text), "<f4") for text in found]
    np.testing.assert_allclose(found, model.embed(TEXTS), atol=1e-6)
    assert [entry.index for entry in answer.data] == [0, 1, 2]
    assert answer.model == model.model_name
    assert answer.usage.total_tokens == sum(map(model.count_tokens, TEXTS))


def test_a_single_text_and_the_list_of_models(client: openai.OpenAI, model: Backend) -> None:
    (served,) = client.models.list().data
    assert (served.id, served.object, served.to_dict()["dimensions"]) == (model.model_name, "model", 384)
    answer = client.embeddings.create(input=TEXTS[0], model=f"sentence-transformers/{served.id}", dimensions=384)
    np.testing.assert_allclose(answer.data[0].embedding, model.embed(TEXTS[:1])[0], atol=1e-6)


def test_refusals_are_the_errors_of_the_client(opened: Opens, served: Serves) -> None:
    import openai

    class Missing(StubBackend):
        @property
        def fingerprint(self) -> str:
            raise ModelMissing("The model is not there.", remedy="Install it.")

    with _client(served(opened(limiter=SlidingWindow(1)))) as client:
        for wrong in ({"model": "gpt-9"}, {"input": [1, 2]}, {"input": ""}, {"dimensions": 64}):
            with pytest.raises(openai.UnprocessableEntityError) as refused:
                client.embeddings.create(**{"input": "text", "model": "stub", **wrong})
            assert refused.value.code == "VALIDATION_ERROR"
        client.embeddings.create(input="one", model="stub")
        with pytest.raises(openai.RateLimitError) as limited:
            client.embeddings.create(input="two", model="stub")
    assert limited.value.code == "RATE_LIMITED"
    assert 1 <= int(limited.value.response.headers["retry-after"]) <= 60
    with _client(served(opened(Missing()))) as client, pytest.raises(openai.InternalServerError) as failed:
        client.embeddings.create(input="one", model="stub")
    assert (failed.value.status_code, failed.value.code) == (503, "INTERNAL_ERROR")
    assert "Install it." in failed.value.message
