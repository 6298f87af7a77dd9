"""What the client knows of a provider: a name, a place, and one way to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from ..errors import ConfigurationError
from ..remote import Address, RemoteProblem
from .values import Messages

__all__ = ["Finish", "Provider", "Raw", "Schema", "check_private", "count", "remedy"]

Schema = Mapping[str, Any]


class Finish(Enum):
    """How an answer ended."""

    WHOLE = "whole"
    CUT = "cut"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer as it came. Tokens are None where the provider does not count them."""

    text: str
    input_tokens: int | None
    output_tokens: int | None
    finish: Finish


class Provider(Protocol):
    """One model at one place. Safe to share between threads; nothing is sent before something is asked."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def host(self) -> str:
        """Where questions go."""
        ...

    @property
    def has_key(self) -> bool: ...

    def ask(self, messages: Messages, schema: Schema, max_tokens: int, timeout: float) -> Raw:
        """One answer, without trying again; RemoteProblem where there is none."""
        ...

    def close(self) -> None:
        """Let go of what is held; the next use takes it again."""
        ...


def check_private(address: Address, key: str | None) -> None:
    """Refuse to send a key where everybody on the way could read it."""
    if key and not address.encrypted and not address.loopback:
        raise ConfigurationError(
            f"The key would go to {address.host} over plain http, where others can read it.",
            remedy="Give llm_url with https, or no llm_api_key.",
            field="llm_url",
        )


def count(usage: object, *names: str) -> int | None:
    """The sum of those counts of an answer that make sense; none where none does."""
    found = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    sound = [number for number in found if type(number) is int and number >= 0]
    return sum(sound) if sound else None


def remedy(problem: RemoteProblem) -> str:
    """What to do about a provider's problem."""
    if problem.passing:
        return problem.when
    if problem.status in (401, 403):
        return "Check llm_api_key."
    if problem.status is not None and (problem.status in (404, 405) or 300 <= problem.status < 400):
        return "Check llm_url and llm_model."
    return "Check llm_url, llm_model and the provider's documentation."
