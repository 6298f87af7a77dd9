"""Chat completions, against a real server on loopback: what is asked, what is believed, what is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cases import each
from cortex_py.core.errors import ConfigurationError
from cortex_py.core.llm.registry import OpenAIChat
from cortex_py.core.llm.values import Finish, Messages, RawAnswer
from cortex_py.core.remote import RemoteProblem
from timing import no_hang

from chat_server import GOOD, SCHEMA, Answer, Asked, ChatServer, Step, answer, chat, dripping, refusal

KEY = "sk-test-0123456789abcdef"
MESSAGES = Messages("Find the name. Ünïcode too.", "Alpha is number 3.")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as opened:
        yield opened


@pytest.fixture
def provider(server: ChatServer) -> Iterator[OpenAIChat]:
    opened = OpenAIChat(server.url, "some-model", api_key=KEY)
    yield opened
    opened.close()


def _ask(provider: OpenAIChat, timeout: float = 10.0) -> RawAnswer:
    return provider.ask(MESSAGES, SCHEMA, 50, timeout)


def test_it_asks_as_the_interface_wants(server: ChatServer, provider: OpenAIChat) -> None:
    assert _ask(provider) == RawAnswer(json.dumps(GOOD), 11, 7, Finish.WHOLE)
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "some-model",
        "messages": [
            {"role": "system", "content": MESSAGES.system},
            {"role": "user", "content": MESSAGES.user},
        ],
        "max_tokens": 50,
        "temperature": 0,
        "stream": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
        },
    }


def _taking(*forms: object) -> Step:
    """A server that knows only those kinds of `response_format`."""

    def step(asked: Asked) -> Answer:
        form = asked.body.get("response_format", {}).get("type")
        return chat(GOOD)(asked) if form in forms else refusal(400, "response_format is not known here")(asked)

    return step


@pytest.mark.parametrize(
    ("taken", "tried"),
    [
        (("json_object", None), ["json_schema", "json_object"]),
        ((None,), ["json_schema", "json_object", None]),
    ],
)
def test_what_a_server_refuses_is_left_out_and_remembered(
    server: ChatServer, provider: OpenAIChat, taken: tuple[object, ...], tried: list[object]
) -> None:
    server.usual = _taking(*taken)
    assert _ask(provider).finish is Finish.WHOLE
    _ask(provider)
    forms = [asked.body.get("response_format", {}).get("type") for asked in server.asked]
    assert forms == [*tried, tried[-1]]
    assert json.dumps(SCHEMA) in server.asked[-1].system
    assert json.dumps(SCHEMA) not in server.asked[0].system


def _of_the_new_kind(asked: Asked) -> Answer:
    if "max_tokens" in asked.body:
        return refusal(400, "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")(
            asked
        )
    if "temperature" in asked.body:
        return refusal(400, "Unsupported value: 'temperature' does not support 0 with this model.")(asked)
    return chat(GOOD)(asked)


def test_newer_models_are_asked_with_what_they_take(server: ChatServer, provider: OpenAIChat) -> None:
    server.usual = _of_the_new_kind
    _ask(provider)
    _ask(provider)
    assert len(server.asked) == 4
    last = server.asked[-1].body
    assert last["max_completion_tokens"] == 50
    assert last["response_format"]["type"] == "json_schema"
    assert not {"max_tokens", "temperature"} & last.keys()


def test_a_refusal_that_nothing_helps_against_is_told_and_not_remembered(
    server: ChatServer, provider: OpenAIChat
) -> None:
    server.script = [refusal(422, "no such model")] * 3
    with pytest.raises(RemoteProblem, match="answered 422: no such model") as caught:
        _ask(provider)
    assert not caught.value.retryable
    assert len(server.asked) == 3
    _ask(provider)
    assert server.asked[-1].body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    ("step", "finish", "text"),
    [
        (chat('{"name": "al', finish="length"), Finish.CUT, '{"name": "al'),
        (chat("", finish="content_filter"), Finish.REFUSED, ""),
        (chat(None, refusal="I would\nrather not."), Finish.REFUSED, "I would rather not."),
        (chat(None), Finish.WHOLE, ""),
        (lambda _: answer({"choices": [{"message": {"content": [{"text": "a"}, {"text": "b"}, 3]}}]}), None, "ab"),
    ],
)
def test_endings(server: ChatServer, provider: OpenAIChat, step: Step, finish: Finish | None, text: str) -> None:
    server.script = [step]
    raw = _ask(provider)
    assert (raw.finish, raw.text) == (finish or Finish.WHOLE, text)


@pytest.mark.parametrize(
    "usage", [None, [], {}, {"prompt_tokens": -1, "completion_tokens": "7"}, {"prompt_tokens": True}]
)
def test_counts_that_make_no_sense_are_none(server: ChatServer, provider: OpenAIChat, usage: Any) -> None:
    server.script = [lambda _: answer({"choices": [{"message": {"content": "{}"}}], "usage": usage})]
    raw = _ask(provider)
    assert (raw.input_tokens, raw.output_tokens) == (None, None)


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"<html>a login page</html>",
        b"null",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": {}}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": "x"}]}',
        b'{"a":' * 5000,
        b"\xff\xfe\xfa",
    ],
)
def test_an_answer_that_makes_no_sense_is_an_error(server: ChatServer, provider: OpenAIChat, content: bytes) -> None:
    server.script = [lambda _: Answer(200, content)]
    with pytest.raises(RemoteProblem) as caught:
        _ask(provider)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("error", "retryable"),
    [({"code": 429, "message": "wait"}, True), ({"code": 402, "message": "pay"}, False), ("x", False)],
)
@pytest.mark.parametrize("inside", [False, True])
def test_an_error_in_an_answer_of_status_200(
    server: ChatServer, provider: OpenAIChat, error: Any, retryable: bool, inside: bool
) -> None:
    choice = {"message": {"content": ""}, "error": error}
    server.script = [lambda _: answer({"choices": [choice]} if inside else {"error": error})]
    with pytest.raises(RemoteProblem, match="answered with an error") as caught:
        _ask(provider)
    assert caught.value.retryable is retryable


@pytest.mark.parametrize("what", ["head", "body"])
def test_a_server_that_drips_comes_to_an_end(server: ChatServer, provider: OpenAIChat, what: str) -> None:
    server.script = [dripping(what)]
    ended = pytest.raises(RemoteProblem, match=r"not all of it came within 0\.3 seconds|Timeout")
    with no_hang(), ended as caught:
        _ask(provider, timeout=0.3)
    assert caught.value.retryable
    assert caught.value.timed_out


def test_silence_comes_to_an_end(server: ChatServer, provider: OpenAIChat) -> None:
    server.script = [server.silence]
    with pytest.raises(RemoteProblem, match="does not answer") as caught:
        _ask(provider, timeout=0.2)
    assert caught.value.timed_out


def test_nobody_there() -> None:
    with ChatServer() as closed:
        url = closed.url
    provider = OpenAIChat(url, "m", api_key=KEY)
    with pytest.raises(RemoteProblem, match="does not answer: ConnectError") as caught:
        _ask(provider)
    provider.close()
    assert caught.value.retryable
    assert not caught.value.timed_out


def test_too_much_is_not_read(server: ChatServer, provider: OpenAIChat) -> None:
    server.script = [lambda _: Answer(200, b" " * 4_000_001)]
    with pytest.raises(RemoteProblem, match="more than 4,000,000 bytes"):
        _ask(provider)


def test_neither_key_nor_question_is_carried_to_another_place(server: ChatServer, provider: OpenAIChat) -> None:
    with ChatServer() as other:
        server.usual = lambda _: answer({}, 307, Location=f"{other.url}/chat/completions")
        with pytest.raises(RemoteProblem, match="answered 307"):
            _ask(provider)
        assert not other.asked


def test_a_server_on_this_machine_is_reached_without_a_proxy(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.root)
        monkeypatch.setenv("ALL_PROXY", proxy.root)
        provider = OpenAIChat(f"{server.url}/chat/completions/", "m")
        _ask(provider)
        provider.close()
        assert not proxy.asked
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert "authorization" not in asked.headers


def test_a_proxy_that_cannot_be_used_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://user:hunter2@proxy")
    with pytest.raises(RemoteProblem, match="proxy") as caught:
        _ask(OpenAIChat("https://example.invalid/v1", "m"))
    assert "hunter2" not in str(caught.value)


@each(
    "url",
    ["http://example.org/v1", "http://192.168.1.7:11434/v1", "http://localhost.example.org/v1", "http://0.0.0.0/v1"],
)
def test_no_key_over_plain_http_to_others(url: str) -> None:
    with pytest.raises(ConfigurationError, match="plain http") as caught:
        OpenAIChat(url, "m", api_key=KEY)
    assert KEY not in str(caught.value)
    assert not OpenAIChat(url, "m").has_key


@each("url", ["http://localhost:1234/v1", "http://127.0.0.1/v1", "http://[::1]:8080/v1", "https://a.example/v1"])
def test_a_key_may_go_where_nobody_listens(url: str) -> None:
    assert OpenAIChat(url, "m", api_key=KEY).has_key


@pytest.mark.parametrize("key", ["sk-with space", "sk-with\nbreak", "sk-ключ"])
def test_what_cannot_be_a_key_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        OpenAIChat("http://localhost/v1", "m", api_key=key)
    assert caught.value.field == "llm_api_key"
    assert "sk-" not in str(caught.value)


@each("url", ["", "localhost:8000", "ftp://host/v1", "http://", "https://user:pass@host/v1"])
def test_what_is_no_address_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        OpenAIChat(url, "m")
    assert caught.value.field == "llm_url"
    assert "pass" not in str(caught.value)
