"""Chat completions as OpenAI began them: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio.

They agree on the question and the answer, not on what may be asked for. What one refuses is left out, and
that is remembered once it answers.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from ..remote import Endpoint, RemoteProblem, check_key, read_address
from .provider import Finish, Raw, Schema, check_private, count
from .values import Messages

__all__ = ["OpenAIChat"]

_MOST_BYTES = 4_000_000
_REFUSING = (400, 422)
_ENDINGS = {"length": Finish.CUT, "content_filter": Finish.REFUSED}


class _Form(IntEnum):
    """How an answer in JSON is asked for, best first."""

    SCHEMA = 0
    OBJECT = 1
    WORDS = 2


@dataclass(frozen=True, slots=True)
class _Manner:
    """What a server takes."""

    form: _Form = _Form.SCHEMA
    limit: str = "max_tokens"
    temperature: bool = True

    def without(self, reason: str) -> _Manner | None:
        """Less of what was refused for that reason; None where there is nothing left to leave out."""
        if "temperature" in reason and self.temperature:
            return replace(self, temperature=False)
        if self.limit in reason and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if self.form < _Form.WORDS:
            return replace(self, form=_Form(self.form + 1))
        return None


class OpenAIChat:
    """Asks `{url}/chat/completions`. Safe to share between threads."""

    name = "openai"

    def __init__(self, url: str, model: str, *, api_key: str | None = None) -> None:
        address = read_address(url, "/chat/completions", setting="llm_url", key_setting="llm_api_key")
        key = check_key(api_key, setting="llm_api_key") if api_key else None
        check_private(address, key)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._endpoint = Endpoint(address, key=key, headers=headers, keep_alive=False, most_bytes=_MOST_BYTES)
        self.model = model
        self.host = address.host
        self.has_key = key is not None
        self._manner = _Manner()

    def __repr__(self) -> str:
        return f"OpenAIChat({self.host!r}, {self.model!r})"

    def ask(self, messages: Messages, schema: Schema, max_tokens: int, timeout: float) -> Raw:
        """One answer, asked for in the best manner that the server takes."""
        end = time.monotonic() + timeout
        manner = self._manner
        while True:
            question = self._question(messages, schema, max_tokens, manner)
            left = max(0.001, end - time.monotonic())
            try:
                answer = self._endpoint.post(question, silence=left, total=left)
            except RemoteProblem as problem:
                less = manner.without(problem.message) if problem.status in _REFUSING else None
                if less is None:
                    raise
                manner = less
                continue
            self._manner = manner
            return self._read(answer)

    def close(self) -> None:
        """Let go of the connections; the next use opens new ones."""
        self._endpoint.close()

    def _question(self, messages: Messages, schema: Schema, max_tokens: int, manner: _Manner) -> dict[str, object]:
        system = messages.system
        if manner.form is not _Form.SCHEMA:
            system += f"\n\nAnswer with one JSON object and nothing else. Its JSON schema:\n{json.dumps(dict(schema))}"
        question: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": messages.user}],
            manner.limit: max_tokens,
            "stream": False,
        }
        if manner.temperature:
            question["temperature"] = 0
        if manner.form is _Form.SCHEMA:
            described = {"name": "answer", "schema": dict(schema), "strict": True}
            question["response_format"] = {"type": "json_schema", "json_schema": described}
        elif manner.form is _Form.OBJECT:
            question["response_format"] = {"type": "json_object"}
        return question

    def _read(self, answer: Any) -> Raw:
        if isinstance(answer, dict) and answer.get("error"):
            raise self._endpoint.refused(answer["error"])
        try:
            choice = answer["choices"][0]
            message, ending = choice["message"], choice.get("finish_reason")
            refusal, text = message.get("refusal"), _text(message.get("content"))
        except (AttributeError, IndexError, KeyError, TypeError):
            raise RemoteProblem(f"{self.host} gave no usable answer: it holds no message.") from None
        if choice.get("error"):
            # A router tells there that the model behind it failed halfway.
            raise self._endpoint.refused(choice["error"])
        usage = answer.get("usage")
        tokens = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
        if isinstance(refusal, str) and refusal:
            return Raw(self._endpoint.told(refusal), *tokens, Finish.REFUSED)
        finish = _ENDINGS.get(ending, Finish.WHOLE) if isinstance(ending, str) else Finish.WHOLE
        return Raw(text, *tokens, finish)


def _text(content: object) -> str:
    """The words of a message: a text, pieces of one, or nothing."""
    if isinstance(content, list):
        pieces = [piece.get("text") for piece in content if isinstance(piece, dict)]
        return "".join(piece for piece in pieces if isinstance(piece, str))
    return content if isinstance(content, str) else ""
