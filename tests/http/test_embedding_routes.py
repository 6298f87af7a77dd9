"""The embedding pages: what each answers, and each way of being refused."""

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.testclient import TestClient

from cases import each
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.guards import SlidingWindow
from cortex_py.core.embedding.service import EmbeddingService
from cortex_py.core.errors import ModelCorrupt, ModelMissing
from cortex_py.surfaces.http.embeddings import embedding_routes

from stub_backend import StubBackend

Opens = Callable[..., EmbeddingService]
Asks = Callable[..., TestClient]

TEXT = "rotate the signing keys"
POSTED: dict[str, dict[str, Any]] = {
    "/embed": {"text": TEXT},
    "/embeddings": {"texts": [TEXT]},
    "/v1/embeddings": {"input": TEXT, "model": "stub"},
}


def _with_text(path: str, text: str) -> dict[str, Any]:
    """The body of a page, with another text."""
    name = next(iter(POSTED[path]))
    return {**POSTED[path], name: [text] if name == "texts" else text}


def _error(answer: Any) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    assert body["error"]["message"]
    return answer.status_code, body["error"]["code"]


class Broken(StubBackend):
    """Fails in the way it is told to, when the model is used or when it is looked for."""

    def __init__(self, error: Exception, *, missing: bool = False) -> None:
        self._error = error
        self._missing = missing

    @property
    def fingerprint(self) -> str:
        if self._missing:
            raise self._error
        return "broken"

    def embed(self, texts: Any, *, normalize: bool = True) -> Any:
        raise self._error


def test_one_text(asking: Asks, model: Backend) -> None:
    answer = asking(model).post("/embed", json={"text": TEXT}).json()
    np.testing.assert_allclose(answer["embedding"], model.embed([TEXT])[0], atol=1e-6)
    metadata = answer["metadata"]
    assert metadata.pop("generated_at").endswith("Z")
    assert metadata == {
        "model_name": model.model_name,
        "dimensions": 384,
        "backend": "onnx",
        "cached": False,
        "source": "generator",
        "cache_metrics": {"cache_hits": 0, "cache_misses": 1, "rate_limited": 0},
        "tokens": model.count_tokens(TEXT),
        "truncated": False,
    }


def test_vectors_are_not_normalised_when_that_is_not_wanted(asking: Asks, model: Backend) -> None:
    client = asking(model)
    for normalize in (False, True):
        answer = client.post("/embed", json={"text": TEXT, "normalize": normalize}).json()
        np.testing.assert_allclose(answer["embedding"], model.embed([TEXT], normalize=normalize)[0], atol=1e-5)


def test_many_texts_in_their_order(asking: Asks) -> None:
    client = asking()
    client.post("/embed", json={"text": "two"})
    answer = client.post("/embeddings", json={"texts": ["one", "two", "three", "one"]}).json()
    np.testing.assert_allclose(answer["embeddings"], StubBackend().embed(["one", "two", "three", "one"]), atol=1e-6)
    metadata = answer["metadata"]
    assert (metadata["count"], metadata["cached_hits"], metadata["source"]) == (4, 1, "mixed")


def test_more_texts_than_are_answered_on_the_loop(asking: Asks) -> None:
    texts = [f"text {number} " * 40 for number in range(200)]
    answer = asking().post("/embeddings", json={"texts": texts}).json()
    np.testing.assert_allclose(answer["embeddings"], StubBackend().embed(texts), atol=1e-6)


@each("name", ["stub", "STUB", "sentence-transformers/stub", "Sentence-Transformers/Stub"])
@each("given", ["one text", ["one text", "two texts"]])
@each("encoding", ["float", "base64"])
def test_openai_form(asking: Asks, name: str, given: str | list[str], encoding: str) -> None:
    texts = [given] if isinstance(given, str) else given
    request = {"input": given, "model": name, "dimensions": 32, "user": "someone", "encoding_format": encoding}
    answer = asking().post("/v1/embeddings", json=request).json()
    tokens = sum(map(StubBackend().count_tokens, texts))
    vectors = [entry.pop("embedding") for entry in answer["data"]]
    if encoding == "base64":
        vectors = [np.frombuffer(base64.b64decode(one), "<f4") for one in vectors]
    np.testing.assert_allclose(vectors, StubBackend().embed(texts), atol=1e-6)
    assert answer == {
        "object": "list",
        "data": [{"object": "embedding", "index": index} for index in range(len(texts))],
        "model": "stub",
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


@pytest.mark.parametrize("served", ["org/model", "sentence-transformers/model"])
def test_every_name_that_is_described_is_taken(asking: Asks, served: str) -> None:
    backend = StubBackend()
    backend.model_name = served
    client = asking(backend)
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for name in {served, *schemas["OpenAIRequest"]["properties"]["model"]["enum"]}:
        assert client.post("/v1/embeddings", json={"input": TEXT, "model": name}).json()["model"] == served


def test_dimensions_that_are_known_only_afterwards(asking: Asks) -> None:
    client = asking(lambda text: [3.0, 4.0])
    (model,) = client.get("/models").json()["data"]
    assert model["dimensions"] == 0
    request = {"input": TEXT, "model": model["id"]}
    assert _error(client.post("/v1/embeddings", json={**request, "dimensions": 3})) == (422, "VALIDATION_ERROR")
    answer = client.post("/v1/embeddings", json={**request, "dimensions": 2}).json()
    np.testing.assert_allclose(answer["data"][0]["embedding"], [0.6, 0.8])


@pytest.mark.parametrize("path", ["/models", "/v1/models"])
def test_models_are_listed_and_none_is_loaded(asking: Asks, path: str) -> None:
    backend = Broken(AssertionError("the model was touched"), missing=True)
    backend.loaded = False
    assert asking(backend).get(path).json() == {
        "object": "list",
        "data": [
            {
                "id": "stub",
                "object": "model",
                "created": 0,
                "owned_by": "cortex",
                "dimensions": 32,
                "max_tokens": 256,
                "backend": "stub",
                "loaded": False,
            }
        ],
    }


def test_metrics(asking: Asks) -> None:
    client = asking(limiter=SlidingWindow(1, now=lambda: 0.0))
    client.post("/embed", json={"text": TEXT})
    client.post("/embed", json={"text": TEXT})
    client.post("/embed", json={"text": "another"})
    client.get("/embed")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    expected = {
        ("cortex_embedding_cache_hits_total",): 1,
        ("cortex_embedding_cache_misses_total",): 1,
        ("cortex_embedding_rate_limited_total",): 1,
        ("cortex_embedding_cache_size",): 1,
        ("cortex_embedding_model_loaded",): 1,
        ("cortex_http_requests_total", "POST", "/embed", "200"): 2,
        ("cortex_http_requests_total", "POST", "/embed", "429"): 1,
        ("cortex_http_requests_total", "GET", "/embed", "405"): 1,
        ("cortex_http_request_seconds_count", "/embed"): 4,
    }
    assert {key: samples.get(key) for key in expected} == expected


def test_each_server_counts_for_itself(asking: Asks) -> None:
    first, second = asking(), asking()
    first.post("/embed", json={"text": TEXT})
    assert 'path="/embed"' in first.get("/metrics").text
    assert 'path="/embed"' not in second.get("/metrics").text


@each("path", POSTED)
@each(
    "body",
    [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b'{"text": "\\ud800"}', b"{}"],
)
def test_what_is_no_request_is_refused(asking: Asks, path: str, body: bytes) -> None:
    assert _error(asking().post(path, content=body)) == (422, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("path", "changes", "field"),
    [
        ("/embed", {"text": 1}, "text"),
        ("/embed", {"text": None}, "text"),
        ("/embed", {"text": ["a"]}, "text"),
        ("/embed", {"text": " \n"}, "text"),
        ("/embed", {"normalize": "yes"}, "normalize"),
        ("/embed", {"normalize": 1}, "normalize"),
        ("/embed", {"normalise": True}, "normalise"),
        ("/embeddings", {"texts": "a"}, "texts"),
        ("/embeddings", {"texts": []}, "texts"),
        ("/embeddings", {"texts": ["a", ""]}, "texts[1]"),
        ("/embeddings", {"texts": ["a", 1]}, "texts.1"),
        ("/embeddings", {"texts": ["a"] * 2049}, "texts"),
        ("/v1/embeddings", {"input": ""}, "input"),
        ("/v1/embeddings", {"input": []}, "input"),
        ("/v1/embeddings", {"input": ["a", " "]}, "input[1]"),
        ("/v1/embeddings", {"input": [1, 2]}, "input"),
        ("/v1/embeddings", {"input": [[1, 2]]}, "input"),
        ("/v1/embeddings", {"input": None}, "input"),
        ("/v1/embeddings", {"model": "text-embedding-3-small"}, "model"),
        ("/v1/embeddings", {"model": None}, "model"),
        ("/v1/embeddings", {"dimensions": 16}, "dimensions"),
        ("/v1/embeddings", {"dimensions": "32"}, "dimensions"),
        ("/v1/embeddings", {"encoding_format": "hex"}, "encoding_format"),
        ("/v1/embeddings", {"truncate": True}, "truncate"),
        ("/v1/embeddings", {"x" * 1000: True}, "x" * 80 + "…"),
    ],
)
def test_wrong_fields_are_named(asking: Asks, path: str, changes: dict[str, Any], field: str) -> None:
    answer = asking().post(path, json={**POSTED[path], **changes})
    assert _error(answer) == (422, "VALIDATION_ERROR")
    error = answer.json()["error"]
    assert error["details"]["field"] == field
    assert field in error["message"] or field == "model"


def test_refusals_say_what_to_do(asking: Asks) -> None:
    client = asking()
    tokens = client.post("/v1/embeddings", json={"input": [1, 2], "model": "stub"}).json()["error"]["message"]
    assert "arrays of tokens are not taken" in tokens
    other = client.post("/v1/embeddings", json={"input": TEXT, "model": "other"}).json()["error"]["message"]
    assert "'stub'" in other


@each("path", POSTED)
def test_a_text_that_is_too_long_or_that_the_profile_refuses(asking: Asks, path: str) -> None:
    short, code, strict = asking(max_text_length=10), asking(), asking(profile="strict")
    for client, text, refused in (
        (short, "x" * 11, "TEXT_TOO_LONG"),
        (short, "x" * 10, None),
        (code, "a\0b", "SECURITY_VIOLATION"),
        (code, "cat ../notes", None),
        (strict, "cat ../notes", "SECURITY_VIOLATION"),
    ):
        answer = client.post(path, json=_with_text(path, text))
        assert _error(answer) == (422, refused) if refused else answer.status_code == 200


@pytest.mark.parametrize("path", POSTED)
def test_too_many_requests(asking: Asks, path: str) -> None:
    moment = 0.0
    client = asking(limiter=SlidingWindow(1, now=lambda: moment))
    assert client.post(path, json=_with_text(path, "first")).status_code == 200
    moment = 0.5
    refused = client.post(path, json=_with_text(path, "second"))
    assert _error(refused) == (429, "RATE_LIMITED")
    assert refused.headers["retry-after"] == "60"
    assert refused.json()["error"]["details"]["retry_after"] == 59.5
    assert client.post(path, json=_with_text(path, "first")).status_code == 200, "what is known is not counted"
    moment = 59.9
    assert client.post(path, json=_with_text(path, "second")).headers["retry-after"] == "1"
    moment = 60.0
    assert client.post(path, json=_with_text(path, "second")).status_code == 200


def test_each_address_has_a_limit_of_its_own(opened: Opens) -> None:
    app = Starlette(routes=embedding_routes(opened(rate_limit=1)))
    here, there = TestClient(app, client=("10.0.0.1", 1)), TestClient(app, client=("10.0.0.2", 1))
    assert here.post("/embed", json={"text": "a"}).status_code == 200
    assert there.post("/embed", json={"text": "b"}).status_code == 200
    # A token where none is asked for makes nobody another caller.
    headers = {"Authorization": "Bearer made-up"}
    assert here.post("/embed", json={"text": "c"}, headers=headers).status_code == 429


def test_where_there_is_a_token_it_is_the_caller(opened: Opens) -> None:
    app = Starlette(routes=embedding_routes(opened(rate_limit=1), token="a-long-enough-token-0123"))
    here, there = TestClient(app, client=("10.0.0.1", 1)), TestClient(app, client=("10.0.0.2", 1))
    assert here.post("/embed", json={"text": "a"}).status_code == 200
    assert there.post("/embed", json={"text": "b"}).status_code == 429


@each("path", POSTED)
def test_a_model_that_is_not_usable_or_fails(asking: Asks, path: str) -> None:
    told = "Install it."
    for error, missing, status, words in (
        (ModelMissing("The model is not there.", remedy=told), True, 503, told),
        (ModelCorrupt("The model is damaged.", remedy=told), True, 503, told),
        (RuntimeError("out of memory"), False, 500, "out of memory"),
    ):
        answer = asking(Broken(error, missing=missing)).post(path, json=POSTED[path])
        assert _error(answer) == (status, "INTERNAL_ERROR")
        assert words in answer.json()["error"]["message"]


@each("path", POSTED)
def test_another_method(asking: Asks, path: str) -> None:
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        answer = asking().request(method, path)
        assert _error(answer) == (405, "VALIDATION_ERROR")
        assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("path", ["/models", "/v1/models", "/metrics", "/openapi.json"])
def test_pages_that_are_only_read(asking: Asks, path: str) -> None:
    client = asking()
    refused = client.post(path, json={})
    assert (_error(refused), refused.headers["allow"]) == ((405, "VALIDATION_ERROR"), "GET, HEAD")
    head = client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 0


@pytest.mark.parametrize(
    ("announced", "status"),
    [
        (None, 200),
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/problem+json", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
    ],
)
def test_what_a_body_is_announced_as(asking: Asks, announced: str | None, status: int) -> None:
    headers = {} if announced is None else {"Content-Type": announced}
    answer = asking().post("/embed", content=json.dumps({"text": TEXT}).encode(), headers=headers)
    assert answer.status_code == status
    if status == 415:
        assert _error(answer) == (415, "VALIDATION_ERROR")


def test_a_body_in_pieces(asking: Asks) -> None:
    body = json.dumps({"text": TEXT}).encode()
    pieces = [body[:5], b"", body[5:]]
    answer = asking().post("/embed", content=iter(pieces), headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
