"""Anthropic's messages. The answer comes as the input of a tool that the model has to use, so it has a shape."""

from __future__ import annotations

import json
from typing import Any

from ..remote import Endpoint, RemoteProblem, check_key, read_address
from .provider import Finish, Raw, Schema, check_private, count
from .values import Messages

__all__ = ["AnthropicMessages"]

_VERSION = "2023-06-01"
_MOST_BYTES = 4_000_000
_TOOL = "answer"
_ENDINGS = {
    "max_tokens": Finish.CUT,
    "model_context_window_exceeded": Finish.CUT,
    "refusal": Finish.REFUSED,
}


class AnthropicMessages:
    """Asks `{url}/v1/messages`. Safe to share between threads."""

    name = "anthropic"

    def __init__(self, url: str, model: str, *, api_key: str | None = None) -> None:
        address = read_address(url, "/v1/messages", setting="llm_url", key_setting="llm_api_key")
        key = check_key(api_key, setting="llm_api_key") if api_key else None
        check_private(address, key)
        headers = {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}
        self._endpoint = Endpoint(address, key=key, headers=headers, keep_alive=False, most_bytes=_MOST_BYTES)
        self.model = model
        self.host = address.host
        self.has_key = key is not None

    def __repr__(self) -> str:
        return f"AnthropicMessages({self.host!r}, {self.model!r})"

    def ask(self, messages: Messages, schema: Schema, max_tokens: int, timeout: float) -> Raw:
        """One answer, as the input of the tool."""
        question = {
            "model": self.model,
            "max_tokens": max_tokens,
            "system": messages.system,
            "messages": [{"role": "user", "content": messages.user}],
            "tools": [{"name": _TOOL, "description": "Takes the answer.", "input_schema": dict(schema)}],
            "tool_choice": {"type": "tool", "name": _TOOL, "disable_parallel_tool_use": True},
        }
        return self._read(self._endpoint.post(question, silence=timeout, total=timeout))

    def close(self) -> None:
        """Let go of the connections; the next use opens new ones."""
        self._endpoint.close()

    def _read(self, answer: Any) -> Raw:
        if isinstance(answer, dict) and answer.get("type") == "error":
            raise self._endpoint.refused(answer.get("error"))
        blocks = answer.get("content") if isinstance(answer, dict) else None
        if not isinstance(blocks, list):
            raise RemoteProblem(f"{self.host} gave no usable answer: it holds no content.")
        usage, ending = answer.get("usage"), answer.get("stop_reason")
        finish = _ENDINGS.get(ending, Finish.WHOLE) if isinstance(ending, str) else Finish.WHOLE
        text = _input(blocks) if finish is Finish.WHOLE else self._endpoint.told(_said(blocks))
        return Raw(
            text,
            count(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
            count(usage, "output_tokens"),
            finish,
        )


def _input(blocks: list[Any]) -> str:
    """What the tool was given; where it was not used, what was said instead."""
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            return json.dumps(block.get("input"), ensure_ascii=False)
    return _said(blocks)


def _said(blocks: list[Any]) -> str:
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
