"""The providers of language models, and opening the one that the settings name.

The API key comes from the setting, the environment or the keyring, in that order. A provider's own environment variable
is sent only to that provider's address.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..clock import Clock
from ..config import LLMProvider, Settings
from ..errors import ConfigurationError
from ..remote import RemoteProblem
from .client import LanguageModel
from .values import Finish, Ledger, Messages, Provider, RawAnswer, Schema, sum_counts

__all__ = ["AnthropicMessages", "OpenAIChat", "open_language_model"]

# -- OpenAI's chat completions, as OpenAI, OpenRouter, Ollama, vLLM, llama.cpp and LM Studio speak it
# Servers agree on the basic request, not on its options. An option that a server refuses is left out, and that is
# remembered once it answers.

_REFUSING = (400, 422)
_CHAT_ENDINGS = {"length": Finish.CUT, "content_filter": Finish.REFUSED}


class _Form(IntEnum):
    """How an answer in JSON is asked for, best first."""

    SCHEMA = 0
    OBJECT = 1
    WORDS = 2


@dataclass(frozen=True, slots=True)
class _RequestOptions:
    """The options that a server accepts."""

    form: _Form = _Form.SCHEMA
    limit: str = "max_tokens"
    temperature: bool = True

    def without(self, reason: str) -> _RequestOptions | None:
        """Without the refused option; None if there is nothing left to leave out."""
        if "temperature" in reason and self.temperature:
            return replace(self, temperature=False)
        if self.limit in reason and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if self.form < _Form.WORDS:
            return replace(self, form=_Form(self.form + 1))
        return None


class OpenAIChat(Provider):
    """Asks `{url}/chat/completions`. Safe to share between threads."""

    name = "openai"
    path = "/chat/completions"

    def __init__(self, url: str, model: str, *, api_key: str | None = None) -> None:
        super().__init__(url, model, api_key=api_key)
        self._options = _RequestOptions()

    def headers(self, key: str | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def ask(self, messages: Messages, schema: Schema, max_tokens: int, timeout: float) -> RawAnswer:
        """One answer, with the best options that the server accepts."""
        end = time.monotonic() + timeout
        options = self._options
        while True:
            question = self._question(messages, schema, max_tokens, options)
            left = max(0.001, end - time.monotonic())
            try:
                answer = self._endpoint.post(question, silence=left, total=left)
            except RemoteProblem as problem:
                less = options.without(problem.message) if problem.status in _REFUSING else None
                if less is None:
                    raise
                options = less
                continue
            self._options = options
            return self._read(answer)

    def _question(
        self, messages: Messages, schema: Schema, max_tokens: int, options: _RequestOptions
    ) -> dict[str, object]:
        system = messages.system
        if options.form is not _Form.SCHEMA:
            system += f"\n\nAnswer with one JSON object and nothing else. Its JSON schema:\n{json.dumps(dict(schema))}"
        question: dict[str, object] = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": messages.user}],
            options.limit: max_tokens,
            "stream": False,
        }
        if options.temperature:
            question["temperature"] = 0
        if options.form is _Form.SCHEMA:
            described = {"name": "answer", "schema": dict(schema), "strict": True}
            question["response_format"] = {"type": "json_schema", "json_schema": described}
        elif options.form is _Form.OBJECT:
            question["response_format"] = {"type": "json_object"}
        return question

    def _read(self, answer: Any) -> RawAnswer:
        if isinstance(answer, dict) and answer.get("error"):
            raise self._endpoint.problem_in(answer["error"])
        try:
            choice = answer["choices"][0]
            message, ending = choice["message"], choice.get("finish_reason")
            refusal, text = message.get("refusal"), _text(message.get("content"))
        except (AttributeError, IndexError, KeyError, TypeError):
            raise RemoteProblem(f"{self.host} gave no usable answer: it holds no message.") from None
        if choice.get("error"):
            # A router reports here that the model behind it failed half-way.
            raise self._endpoint.problem_in(choice["error"])
        usage = answer.get("usage")
        tokens = sum_counts(usage, "prompt_tokens"), sum_counts(usage, "completion_tokens")
        if isinstance(refusal, str) and refusal:
            return RawAnswer(self._endpoint.clean_text(refusal), *tokens, Finish.REFUSED)
        finish = _CHAT_ENDINGS.get(ending, Finish.WHOLE) if isinstance(ending, str) else Finish.WHOLE
        return RawAnswer(text, *tokens, finish)


def _text(content: object) -> str:
    """The words of a message: a text, pieces of one, or nothing."""
    if isinstance(content, list):
        pieces = [piece.get("text") for piece in content if isinstance(piece, dict)]
        return "".join(piece for piece in pieces if isinstance(piece, str))
    return content if isinstance(content, str) else ""


# -- Anthropic's Messages API: the answer is the input of a tool that the model must use, so it follows the schema

_VERSION = "2023-06-01"
_TOOL = "answer"
_ENDINGS = {
    "max_tokens": Finish.CUT,
    "model_context_window_exceeded": Finish.CUT,
    "refusal": Finish.REFUSED,
}


class AnthropicMessages(Provider):
    """Asks `{url}/v1/messages`. Safe to share between threads."""

    name = "anthropic"
    path = "/v1/messages"

    def headers(self, key: str | None) -> dict[str, str]:
        return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}

    def ask(self, messages: Messages, schema: Schema, max_tokens: int, timeout: float) -> RawAnswer:
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

    def _read(self, answer: Any) -> RawAnswer:
        if isinstance(answer, dict) and answer.get("type") == "error":
            raise self._endpoint.problem_in(answer.get("error"))
        blocks = answer.get("content") if isinstance(answer, dict) else None
        if not isinstance(blocks, list):
            raise RemoteProblem(f"{self.host} gave no usable answer: it holds no content.")
        usage, ending = answer.get("usage"), answer.get("stop_reason")
        finish = _ENDINGS.get(ending, Finish.WHOLE) if isinstance(ending, str) else Finish.WHOLE
        text = _input(blocks) if finish is Finish.WHOLE else self._endpoint.clean_text(_said(blocks))
        return RawAnswer(
            text,
            sum_counts(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
            sum_counts(usage, "output_tokens"),
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


logger = logging.getLogger(__name__)

_SERVICE = "cortex"


class _Known(NamedTuple):
    """A known provider."""

    adapter: type[OpenAIChat] | type[AnthropicMessages]
    url: str
    variable: str


_PROVIDERS: dict[LLMProvider, _Known] = {
    "openai": _Known(OpenAIChat, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": _Known(AnthropicMessages, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
}


def open_language_model(
    settings: Settings, ledger: Ledger, clock: Clock, *, environment: Mapping[str, str] | None = None
) -> LanguageModel | None:
    """The configured model, or None. Sends nothing; the keyring is used only if no other key is found."""
    if settings.llm_provider is None:
        return None
    if not settings.llm_model:
        raise ConfigurationError(
            "llm_provider is set and llm_model is not.", remedy="Name the model to ask.", field="llm_model"
        )
    for name in ("llm_timeout_seconds", "llm_concurrency"):
        if getattr(settings, name) < 1:
            raise ConfigurationError(f"{name} is 0.", remedy="Give 1 or more.", field=name)
    known = _PROVIDERS[settings.llm_provider]
    provider = known.adapter(
        settings.llm_url or known.url,
        settings.llm_model,
        api_key=_key(settings, os.environ if environment is None else environment),
    )
    return LanguageModel(
        provider,
        ledger,
        clock,
        concurrency=settings.llm_concurrency,
        daily_tokens=settings.llm_daily_tokens,
        timeout=settings.llm_timeout_seconds,
    )


def _key(settings: Settings, environment: Mapping[str, str]) -> str | None:
    assert settings.llm_provider is not None
    if settings.llm_api_key:
        return settings.llm_api_key
    known = _PROVIDERS[settings.llm_provider]
    place = _place(settings.llm_url or known.url)
    own = place == _place(known.url)
    found = environment.get(known.variable) if own else None
    if not found and place[0] == "https":
        # Local servers need no key, and opening the keyring may prompt the user.
        found = _from_keyring(settings.llm_provider)
    if not found and own:
        raise ConfigurationError(
            f"There is no key for {settings.llm_provider}.",
            remedy=f"Set CORTEX_LLM_API_KEY or {known.variable}, or keep it in the keyring: "
            f"keyring set {_SERVICE} {settings.llm_provider}",
            field="llm_api_key",
        )
    return found


def _place(url: str) -> tuple[str, str]:
    """Scheme and host of an address; empty if it is invalid, which the adapter reports."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return "", ""
    return parts.scheme, parts.netloc.lower()


def _from_keyring(provider: str) -> str | None:
    """The key that the user keeps for Cortex, if this machine has a keyring that opens."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return None
    try:
        return keyring.get_password(_SERVICE, provider)
    except KeyringError as error:
        logger.debug("the keyring gives no key: %s", type(error).__name__)
        return None
