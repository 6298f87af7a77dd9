"""The language model that the settings name, if they name one.

A key comes from the setting, else from the environment, else from the keyring. A key that lies in the
environment for all programs goes to the provider it belongs to and to no other address.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from ..clock import Clock
from ..config import LLMProvider, Settings
from ..errors import ConfigurationError
from .anthropic_messages import AnthropicMessages
from .client import LanguageModel
from .ledger import Ledger
from .openai_chat import OpenAIChat

__all__ = ["open_language_model"]

_SERVICE = "cortex"


class _Known(NamedTuple):
    """What is known of a provider."""

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
    """The configured model, or None. Nothing is sent; the keyring is asked only where no key is found before."""
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
        # Servers on this machine or in the house need no key, and asking the keyring may ask the user.
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
    """Scheme and host of an address that may be none; the adapter says so."""
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
    except KeyringError:
        return None
