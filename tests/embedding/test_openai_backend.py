"""The endpoint's backend, against a real server on loopback: what is asked, what is believed, what is told."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest
from endpoint import Endpoint, Step, answer, refusal, vectors

from cases import each
from cortex_py.core.clock import Limit, apply_limit
from cortex_py.core.embedding.backends import openai as openai_backend
from cortex_py.core.embedding.backends.openai import OpenAIBackend
from cortex_py.core.embedding.wordpiece import WordPiece
from cortex_py.core.errors import ConfigurationError, CortexError, DeadlineExceeded, EmbeddingError
from llm.chat_server import Answer, ChatServer, dripping
from timing import MINUTE, no_hang

from stub_backend import StubBackend

KEY = "sk-test-0123456789abcdef"
TEXTS = ["alpha beta", "gamma", "delta epsilon zeta"]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as opened:
        yield opened


class Patient:
    """A backend for one endpoint, and the pauses it made."""

    def __init__(self, url: str, **more: Any) -> None:
        self.pauses: list[float] = []
        self.backend = OpenAIBackend(url, "some-model", sleep=self.pauses.append, **more)

    def __enter__(self) -> Patient:
        return self

    def __exit__(self, *_: object) -> None:
        self.backend.close()


def _vector(question: dict[str, Any], length: int) -> list[dict[str, Any]]:
    return [{"index": n, "embedding": [1.0] + [0.0] * (length - 1)} for n in range(len(question["input"]))]


def _of_length(length: int) -> Step:
    return lambda question: answer({"data": _vector(question, length)})


def test_it_asks_as_the_interface_wants(endpoint: Endpoint) -> None:
    with Patient(endpoint.url, api_key=KEY) as patient:
        found = patient.backend.embed(TEXTS)
    assert np.allclose(found, StubBackend().embed(TEXTS))
    (asked,) = endpoint.asked
    assert asked.path == "/v1/embeddings"
    assert asked.body == {"model": "some-model", "input": TEXTS}
    assert asked.headers["authorization"] == f"Bearer {KEY}"


def test_nothing_is_asked_before_something_is_embedded(endpoint: Endpoint) -> None:
    with Patient(endpoint.url, dimensions=32) as patient:
        backend = patient.backend
        port = endpoint.url.split(":")[2].split("/")[0]
        assert backend.fingerprint == f"openai:127.0.0.1:{port}:some-model:32"
        assert (backend.name, backend.dimensions, backend.max_tokens, backend.loaded) == ("openai", 32, 512, False)
        assert backend.count_tokens("two words") > 2
        assert backend.embed([]).shape == (0, 32)
        assert not endpoint.asked
        assert not backend.loaded
        backend.embed(["x"])
        assert backend.loaded


def test_many_texts_go_in_requests_of_a_size_all_servers_take(endpoint: Endpoint) -> None:
    texts = [f"text number {n}" for n in range(70)]
    with Patient(endpoint.url) as patient:
        found = patient.backend.embed(texts)
    assert [len(asked.body["input"]) for asked in endpoint.asked] == [32, 32, 6]
    assert np.allclose(found, StubBackend().embed(texts))


def test_vectors_may_come_as_base64(endpoint: Endpoint) -> None:
    def encoded(question: dict[str, Any]) -> Any:
        rows = StubBackend().embed(question["input"])
        return answer(
            {"data": [{"index": n, "embedding": base64.b64encode(r.tobytes()).decode()} for n, r in enumerate(rows)]}
        )

    endpoint.script = [encoded]
    with Patient(endpoint.url) as patient:
        assert np.array_equal(patient.backend.embed(TEXTS, normalize=False), StubBackend().embed(TEXTS))


def test_it_comes_back_after_what_passes(endpoint: Endpoint) -> None:
    endpoint.script = [refusal(503, "starting"), refusal(429, "slow down", Retry_After="7"), refusal(502, "proxy")]
    with Patient(endpoint.url) as patient:
        assert np.allclose(patient.backend.embed(TEXTS), StubBackend().embed(TEXTS))
        first, asked_for, third = patient.pauses
    assert 0.3 < first < 0.7
    assert asked_for == 7
    assert 1.4 < third < 2.6


def test_a_date_is_waited_for(endpoint: Endpoint) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=20)
    endpoint.script = [refusal(429, "later", Retry_After=format_datetime(moment, usegmt=True))]
    with Patient(endpoint.url) as patient:
        patient.backend.embed(["x"])
        assert 15 < patient.pauses[0] <= 20


@pytest.mark.parametrize(
    ("wait", "told"), [("3600", "3600"), ("1e308", "86400"), ("Thu, 01 Jan 9999 00:00:00 GMT", "86400")]
)
def test_a_wait_that_is_too_long_is_left_to_the_caller(endpoint: Endpoint, wait: str, told: str) -> None:
    endpoint.usual = refusal(429, "quota", Retry_After=wait)
    with Patient(endpoint.url) as patient, pytest.raises(EmbeddingError, match=f"quota Try again in {told} seconds"):
        patient.backend.embed(["x"])
    assert len(endpoint.asked) == 1
    assert not patient.pauses


@each("wait", ["soon", "Thu, 01 Jan 2026 00:00:00 +99999999999999999"])
def test_an_unreadable_wait_is_no_wait(endpoint: Endpoint, wait: str) -> None:
    endpoint.script = [refusal(429, "later", Retry_After=wait)]
    with Patient(endpoint.url) as patient:
        patient.backend.embed(["x"])
        assert 0.3 < patient.pauses[0] < 0.7
    assert "authorization" not in endpoint.asked[0].headers, "there is no key"


@pytest.mark.parametrize(("status", "hint"), [(401, "embedding_api_key"), (404, "embedding_url"), (400, "shorter")])
def test_a_refusal_for_good_is_told_at_once(endpoint: Endpoint, status: int, hint: str) -> None:
    endpoint.usual = refusal(status, f"no: {KEY} is not good")
    with Patient(endpoint.url, api_key=KEY) as patient, pytest.raises(EmbeddingError) as caught:
        patient.backend.embed(["x"])
    assert f"answered {status}: no: [key] is not good" in caught.value.message
    assert hint in str(caught.value.remedy)
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"error": "plain words"}', "plain words"),
        (b'{"detail": "not here"}', "not here"),
        (b"<html>Bad\nGateway</html>", "<html>Bad Gateway</html>"),
        (b"", "nothing"),
        (b"[1]", "[1]"),
        (b"x" * 5000, "x" * 300),
    ],
)
def test_reasons_are_found_where_servers_put_them(endpoint: Endpoint, content: bytes, said: str) -> None:
    endpoint.usual = lambda _: (400, {}, content)
    with Patient(endpoint.url) as patient, pytest.raises(EmbeddingError) as caught:
        patient.backend.embed(["x"])
    assert caught.value.message.endswith(f"answered 400: {said}")


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"{}",
        b"[]",
        b"null",
        b'{"data": {}}',
        b'{"data": []}',
        b'{"data": [{"index": 0, "embedding": [1.0]}]}',
        b'{"data": [{"embedding": [1.0]}, {"embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}',
        b'{"data": [{"index": 1, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}]}',
        b'{"data": [{"index": [], "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]}',
        b'{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": [[1.0]]}, {"index": 1, "embedding": [[1.0]]}]}',
        b'{"data": [{"index": 0, "embedding": ["1"]}, {"index": 1, "embedding": ["1"]}]}',
        b'{"data": [{"index": 0, "embedding": [true]}, {"index": 1, "embedding": [true]}]}',
        b'{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1e300]}, {"index": 1, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1' + b"0" * 400 + b']}, {"index": 1, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": "????"}, {"index": 1, "embedding": "????"}]}',
        b'{"data": [{"index": 0, "embedding": "AAA="}, {"index": 1, "embedding": "AAA="}]}',
        b'{"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}, {"index": 2}]}',
    ],
)
def test_an_answer_that_makes_no_sense_is_an_error(endpoint: Endpoint, content: bytes) -> None:
    endpoint.usual = lambda _: (200, {}, content)
    with Patient(endpoint.url) as patient, pytest.raises(EmbeddingError):
        patient.backend.embed(["one", "two"])
    assert not patient.backend.loaded


def test_a_length_that_was_not_configured_is_learned_and_then_held(endpoint: Endpoint) -> None:
    endpoint.script = [_of_length(8), _of_length(9)]
    with Patient(endpoint.url) as patient:
        assert patient.backend.dimensions == 0
        told = patient.backend.fingerprint
        patient.backend.embed(["x"])
        assert patient.backend.dimensions == 8
        assert patient.backend.fingerprint == told
        with pytest.raises(EmbeddingError, match="9 numbers where 8 were expected"):
            patient.backend.embed(["x"])


def test_an_endpoint_that_can_is_asked_for_the_configured_length(endpoint: Endpoint) -> None:
    endpoint.usual = lambda question: answer({"data": _vector(question, question.get("dimensions", 32))})
    with Patient(endpoint.url, dimensions=8) as patient:
        assert patient.backend.embed(["x"]).shape == (1, 8)
        assert patient.backend.embed(["y"]).shape == (1, 8)
    assert [asked.body.get("dimensions") for asked in endpoint.asked] == [None, 8, 8]


@pytest.mark.parametrize("second", [_of_length(32), refusal(400, "This model has one length.")])
def test_one_that_cannot_is_an_error_that_names_both_lengths(endpoint: Endpoint, second: Step) -> None:
    endpoint.script = [_of_length(32), second]
    with Patient(endpoint.url, dimensions=8) as patient:
        with pytest.raises(EmbeddingError, match="32 numbers where 8 were expected") as caught:
            patient.backend.embed(["x"])
        assert "embedding_dimensions to 32" in str(caught.value.remedy)
        assert not patient.backend.loaded


def test_long_texts_are_cut_where_the_count_says(endpoint: Endpoint) -> None:
    with Patient(endpoint.url, max_tokens=12) as patient:
        backend = patient.backend
        assert backend.count_tokens("word " * 10) == 12
        backend.embed(["word " * 10, "word " * 11, "", "\ud800"])
    assert endpoint.asked[0].body["input"] == ["word " * 10, "word " * 10, " ", " "]


@pytest.mark.slow
def test_the_estimate_is_near_what_a_tokeniser_counts(tokeniser: WordPiece) -> None:
    backend = OpenAIBackend("http://localhost/v1", "m")
    text = " ".join(str(openai_backend.__doc__).split()) + "\nfor row, text in zip(rows, texts, strict=True): pass\n"
    assert 0.95 < backend.count_tokens(text) / tokeniser.count(text) < 1.3


@each("reason", ["does not answer", "answered 503: model is loading"])
def test_it_gives_up_and_tells_why(endpoint: Endpoint, reason: str) -> None:
    with Endpoint() as closed:
        url = closed.url if reason == "does not answer" else endpoint.url
    endpoint.usual = refusal(503, "model is loading")
    with Patient(url, api_key=KEY) as patient, pytest.raises(EmbeddingError, match=reason):
        patient.backend.embed(["x"])
    assert len(patient.pauses) == 3
    assert not patient.backend.loaded


def test_silence_is_not_waited_for_forever(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_backend, "_SILENCE_SECONDS", 1.0)
    silent = threading.Event()

    def say_nothing(question: dict[str, Any]) -> Any:
        silent.wait(MINUTE)
        return vectors(question)

    endpoint.script = [say_nothing]
    with Patient(endpoint.url) as patient:
        assert patient.backend.embed(["x"]).shape == (1, 32)
        assert len(patient.pauses) == 1
    silent.set()


@each("what", ["head", "body"])
def test_an_answer_that_drips_comes_to_an_end(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a new connection, and on one that has served before."""
    monkeypatch.setattr(openai_backend, "_ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(openai_backend, "_PATIENCE_SECONDS", 0.2)
    texts = [str(number) for number in range(40)]
    sound = vectors({"input": texts[:32], "model": "some-model"})[2]
    with ChatServer() as server, Patient(server.url) as patient, no_hang():
        for script in ([dripping(what)], [lambda _: Answer(200, sound), dripping(what)]):
            server.script = [*script]
            with pytest.raises(EmbeddingError, match=r"not all of it came within 1 seconds"):
                patient.backend.embed(texts)
            assert not server.script


def test_an_endpoint_is_not_waited_for_longer_than_the_call_may_take() -> None:
    with ChatServer(usual=dripping("body")) as server, Patient(server.url) as patient, no_hang():
        with apply_limit(Limit(0.5)), pytest.raises(EmbeddingError, match="not all of it came within"):
            patient.backend.embed(["x"])
        with apply_limit(Limit(0)), pytest.raises(DeadlineExceeded):
            patient.backend.embed(["x"])
    assert len(server.asked) == 1


def test_an_answer_that_would_fill_the_memory_is_not_read_to_its_end(endpoint: Endpoint) -> None:
    endpoint.usual = lambda _: (200, {}, b'{"data":[' + b"{}," * 6_000_000 + b"{}]}")
    with Patient(endpoint.url) as patient, pytest.raises(EmbeddingError, match="more than 16,000,000 bytes"):
        patient.backend.embed(["x"])


def test_what_a_terminal_would_act_on_is_not_repeated(endpoint: Endpoint) -> None:
    endpoint.usual = refusal(400, "\x1b]0;owned\x07 \x9b2J \ud800 \u202e bad")
    with Patient(endpoint.url) as patient, pytest.raises(EmbeddingError, match="answered 400: ") as caught:
        patient.backend.embed(["x"])
    assert str(caught.value).isprintable()
    assert str(caught.value).encode()


def test_attempts_end_when_patience_does(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_backend, "_PATIENCE_SECONDS", 10.0)
    endpoint.usual = refusal(503, "busy", Retry_After="11")
    with Patient(endpoint.url) as patient, pytest.raises(EmbeddingError, match="busy"):
        patient.backend.embed(["x"])
    assert not patient.pauses


def test_the_key_is_not_carried_to_another_place(endpoint: Endpoint) -> None:
    with Endpoint() as other:
        endpoint.usual = lambda _: answer({}, 307, Location=f"{other.url}/embeddings")
        with Patient(endpoint.url, api_key=KEY) as patient, pytest.raises(EmbeddingError, match="answered 307"):
            patient.backend.embed(["x"])
        assert not other.asked


def test_the_key_is_nowhere_to_be_seen(endpoint: Endpoint) -> None:
    endpoint.usual = refusal(401, f"bad key {KEY}")
    with Patient(endpoint.url, api_key=KEY) as patient:
        backend = patient.backend
        assert KEY not in repr(backend) + str(backend) + backend.fingerprint
        with pytest.raises(EmbeddingError) as caught:
            backend.embed(["x"])
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in str(error) + repr(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("key", ["sk-with space", "sk-with\nbreak", "sk-ключ"])
def test_what_cannot_be_a_key_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        OpenAIBackend("http://localhost/v1", "m", api_key=key)
    assert caught.value.field == "embedding_api_key"
    assert "sk-" not in str(caught.value)


@each(
    ("url", "path"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/embeddings"),
        (" https://Api.Example.org/v1/ ", "https://Api.Example.org/v1/embeddings"),
        ("https://example.org", "https://example.org/embeddings"),
        ("https://example.org/x/embeddings?api-version=1", "https://example.org/x/embeddings?api-version=1"),
    ],
)
def test_addresses(url: str, path: str) -> None:
    assert OpenAIBackend(url, "m")._address == path


@each("url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://host:port", "https://user:pass@host/v1"])
def test_what_is_no_address_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(CortexError) as caught:
        OpenAIBackend(url, "m")
    assert isinstance(caught.value, ConfigurationError)
    assert caught.value.field == "embedding_url"
    assert "pass" not in str(caught.value)
