"""Which model the settings open, and where its key comes from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError

from cases import each
from cortex_py.core.config import load_settings
from cortex_py.core.errors import ConfigurationError
from cortex_py.core.llm.client import LanguageModel
from cortex_py.core.llm.registry import open_language_model
from cortex_py.core.llm.values import Budget, Prompt

from chat_server import SCHEMA, ChatServer, message, tool_use
from helpers import FakeClock
from ledgers import MemoryLedger

KEY = "sk-test-0123456789abcdef"
OLLAMA = "http://localhost:11434/v1"
ROUTER = "https://openrouter.ai/api/v1"


class Keys(KeyringBackend):
    """A keyring that holds what a test puts there, and counts who looked."""

    priority = 1.0  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.looked = 0
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self.looked += 1
        if self.locked:
            raise KeyringError("locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


@pytest.fixture(autouse=True)
def keys() -> Iterator[Keys]:
    before = keyring.get_keyring()
    own = Keys()
    keyring.set_keyring(own)
    yield own
    keyring.set_keyring(before)


def _opened(environment: dict[str, str] | None = None, **settings: Any) -> LanguageModel | None:
    chosen = load_settings(**settings)
    return open_language_model(chosen, MemoryLedger(), FakeClock(), environment=environment or {})


def _described(environment: dict[str, str] | None = None, **settings: Any) -> dict[str, object]:
    model = _opened(environment, **settings)
    assert model is not None
    return model.describe()


def test_off_by_default(keys: Keys) -> None:
    assert _opened({"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}) is None
    assert _opened(llm_model="m", llm_api_key=KEY, llm_url=ROUTER) is None
    assert not keys.looked


@pytest.mark.parametrize(
    ("provider", "variable", "host"),
    [("openai", "OPENAI_API_KEY", "api.openai.com"), ("anthropic", "ANTHROPIC_API_KEY", "api.anthropic.com")],
)
def test_each_provider_has_an_address_and_a_variable(provider: str, variable: str, host: str, keys: Keys) -> None:
    found = _described({variable: KEY}, llm_provider=provider, llm_model="m")
    assert (found["provider"], found["host"], found["key"]) == (provider, host, True)
    assert not keys.looked
    other = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"} - {variable}
    with pytest.raises(ConfigurationError, match=f"no key for {provider}") as caught:
        _opened({other.pop(): KEY}, llm_provider=provider, llm_model="m")
    assert variable in str(caught.value)


def test_limits_are_taken_from_the_settings() -> None:
    found = _described(
        llm_provider="openai",
        llm_model="m",
        llm_url=OLLAMA,
        llm_timeout_seconds=5,
        llm_daily_tokens=7,
        llm_concurrency=1,
    )
    assert (found["timeout_seconds"], found["daily_tokens"], found["concurrency"]) == (5, 7, 1)


def test_a_server_on_this_machine_needs_no_key_and_gets_none(keys: Keys) -> None:
    keys.kept["cortex", "openai"] = KEY
    found = _described({"OPENAI_API_KEY": KEY}, llm_provider="openai", llm_model="m", llm_url=OLLAMA)
    assert found["key"] is False
    assert not keys.looked
    assert _described(llm_provider="openai", llm_model="m", llm_url=OLLAMA, llm_api_key=KEY)["key"] is True


@each(
    ("url", "sent"),
    [
        ("https://API.openai.com/v1/", True),
        (" https://api.openai.com/v1", True),
        (ROUTER, False),
        ("https://api.openai.com.example.org/v1", False),
        ("https://api.openai.com:8443/v1", False),
        ("http://api.openai.com/v1", False),
    ],
)
def test_a_key_of_one_house_does_not_go_to_another(url: str, sent: bool) -> None:
    assert _described({"OPENAI_API_KEY": KEY}, llm_provider="openai", llm_model="m", llm_url=url)["key"] is sent


@pytest.mark.parametrize("url", [None, ROUTER])
def test_the_keyring_holds_what_cortex_may_use(keys: Keys, url: str | None) -> None:
    keys.kept["cortex", "openai"] = KEY
    assert _described(llm_provider="openai", llm_model="m", llm_url=url)["key"] is True


def test_a_keyring_that_stays_shut_is_as_none(keys: Keys) -> None:
    keys.locked = True
    assert _described(llm_provider="openai", llm_model="m", llm_url=ROUTER)["key"] is False
    with pytest.raises(ConfigurationError, match="keyring set cortex anthropic"):
        _opened(llm_provider="anthropic", llm_model="m")


@each(
    ("settings", "field"),
    [
        ({"llm_provider": "openai"}, "llm_model"),
        ({"llm_provider": "openai", "llm_model": "m", "llm_url": "nowhere"}, "llm_url"),
        ({"llm_provider": "openai", "llm_model": "m", "llm_url": "https://[bad/v1"}, "llm_url"),
        ({"llm_provider": "openai", "llm_model": "m", "llm_url": "http://10.0.0.1/v1", "llm_api_key": KEY}, "llm_url"),
        ({"llm_provider": "openai", "llm_model": "m", "llm_url": OLLAMA, "llm_concurrency": 0}, "llm_concurrency"),
        (
            {"llm_provider": "openai", "llm_model": "m", "llm_url": OLLAMA, "llm_timeout_seconds": 0},
            "llm_timeout_seconds",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _opened(**settings)
    assert caught.value.field == field
    assert KEY not in str(caught.value)


def test_settings_come_from_file_and_environment_and_hide_the_key(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text(f'llm_provider = "openai"\nllm_model = "m"\nllm_api_key = "{KEY}"\n')
    settings = load_settings(home, environment={"CORTEX_LLM_PROVIDER": "anthropic", "CORTEX_LLM_DAILY_TOKENS": "0"})
    assert (settings.llm_provider, settings.llm_model, settings.llm_daily_tokens) == ("anthropic", "m", 0)
    assert settings.llm_api_key == KEY
    assert KEY not in repr(settings)
    with pytest.raises(ConfigurationError, match="Choose one of openai, anthropic"):
        load_settings(home, environment={"CORTEX_LLM_PROVIDER": "oracle"})


def test_what_is_configured_is_what_is_asked() -> None:
    with ChatServer(usual=message(tool_use({"name": "alpha", "number": 1}))) as server:
        model = _opened(llm_provider="anthropic", llm_model="m", llm_url=server.root, llm_api_key=KEY)
        assert model is not None
        assert model.complete(Prompt("Do it."), SCHEMA, Budget()).value == {"name": "alpha", "number": 1}
        model.close()
        assert server.asked[0].headers["x-api-key"] == KEY
