"""Anthropic's messages, against a real server on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from cortex_py.core.errors import ConfigurationError
from cortex_py.core.llm.registry import AnthropicMessages
from cortex_py.core.llm.values import Finish, Messages, RawAnswer
from cortex_py.core.remote import RemoteProblem

from chat_server import GOOD, SCHEMA, Answer, ChatServer, answer, dripping, message, refusal, tool_use

KEY = "sk-ant-0123456789abcdef"
MESSAGES = Messages("Find the name.", "Alpha is number 3.")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(usual=message({"type": "text", "text": "Well."}, tool_use(GOOD))) as opened:
        yield opened


@pytest.fixture
def provider(server: ChatServer) -> Iterator[AnthropicMessages]:
    opened = AnthropicMessages(server.root, "some-model", api_key=KEY)
    yield opened
    opened.close()


def _ask(provider: AnthropicMessages, timeout: float = 10.0) -> RawAnswer:
    return provider.ask(MESSAGES, SCHEMA, 50, timeout)


def test_it_asks_as_the_interface_wants(server: ChatServer, provider: AnthropicMessages) -> None:
    assert _ask(provider) == RawAnswer(json.dumps(GOOD), 13, 7, Finish.WHOLE)
    (asked,) = server.asked
    assert asked.path == "/v1/messages"
    assert asked.headers["x-api-key"] == KEY
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in asked.headers
    assert asked.body == {
        "model": "some-model",
        "max_tokens": 50,
        "system": MESSAGES.system,
        "messages": [{"role": "user", "content": MESSAGES.user}],
        "tools": [{"name": "answer", "description": "Takes the answer.", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "answer", "disable_parallel_tool_use": True},
    }


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/messages"])
def test_an_address_may_be_given_with_or_without_its_end(server: ChatServer, path: str) -> None:
    provider = AnthropicMessages(server.root + path, "m")
    _ask(provider)
    provider.close()
    assert server.asked[0].path == "/v1/messages"
    assert "x-api-key" not in server.asked[0].headers


@pytest.mark.parametrize(
    ("stop", "finish", "text"),
    [
        ("max_tokens", Finish.CUT, "Well."),
        ("model_context_window_exceeded", Finish.CUT, "Well."),
        ("refusal", Finish.REFUSED, "Well."),
        ("end_turn", Finish.WHOLE, "Well."),
    ],
)
def test_endings(server: ChatServer, provider: AnthropicMessages, stop: str, finish: Finish, text: str) -> None:
    server.script = [message({"type": "text", "text": "Well."}, stop=stop)]
    raw = _ask(provider)
    assert (raw.finish, raw.text) == (finish, text)


@pytest.mark.parametrize(("status", "retryable"), [(529, True), (429, True), (500, True), (400, False), (401, False)])
def test_which_refusals_pass(server: ChatServer, provider: AnthropicMessages, status: int, retryable: bool) -> None:
    server.script = [refusal(status, f"no, {KEY}")]
    with pytest.raises(RemoteProblem, match=rf"answered {status}: no, \[key\]") as caught:
        _ask(provider)
    assert caught.value.retryable is retryable
    assert len(server.asked) == 1


@pytest.mark.parametrize("content", [b"no json", b"null", b"{}", b'{"content": {}}', b'{"content": null}'])
def test_an_answer_that_makes_no_sense_is_an_error(
    server: ChatServer, provider: AnthropicMessages, content: bytes
) -> None:
    server.script = [lambda _: Answer(200, content)]
    with pytest.raises(RemoteProblem):
        _ask(provider)


def test_an_error_in_an_answer_of_status_200(server: ChatServer, provider: AnthropicMessages) -> None:
    server.script = [lambda _: answer({"type": "error", "error": {"type": "api_error", "message": "broken"}})]
    with pytest.raises(RemoteProblem, match="broken"):
        _ask(provider)


def test_a_server_that_drips_comes_to_an_end(server: ChatServer, provider: AnthropicMessages) -> None:
    server.script = [dripping("body")]
    with pytest.raises(RemoteProblem, match="does not answer"):
        _ask(provider, timeout=0.2)


def test_no_key_over_plain_http_to_others() -> None:
    with pytest.raises(ConfigurationError, match="plain http"):
        AnthropicMessages("http://example.org", "m", api_key=KEY)
