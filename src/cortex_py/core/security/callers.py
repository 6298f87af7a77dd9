"""The current caller, bound to the work done on their behalf.

A server that knows its callers binds one around each request. Without a bound caller, as on a person's own machine,
the settings say who works here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..errors import InvalidInput
from .policy import holds_secret
from .rights import NO_RIGHTS, Rights

__all__ = ["Caller", "acting_as", "as_system", "check_name", "current_caller"]

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Caller:
    """A person, possibly through an agent, and what they may do. `via` is how they were authenticated.

    `scopes` are what their token allows, `rights` what they may access in their organisation `org`; a call needs both.
    `project` is the one they work in; None for the server's own.
    """

    user: str
    agent: str | None = None
    scopes: frozenset[str] = frozenset()
    via: str = ""
    org: str = ""
    rights: Rights = NO_RIGHTS
    project: str | None = None

    @property
    def label(self) -> str:
        """The key for rate limits; agents of one person share it."""
        return f"user:{self.user}"


_calling: ContextVar[Caller | None] = ContextVar("cortex_caller", default=None)


def current_caller() -> Caller | None:
    return _calling.get()


@contextmanager
def acting_as(caller: Caller | None) -> Iterator[None]:
    """Run the block on behalf of a caller."""
    before = _calling.set(caller)
    try:
        yield
    finally:
        _calling.reset(before)


def as_system() -> AbstractContextManager[None]:
    """Do the enclosed work as Cortex itself, with full rights and on behalf of no caller."""
    return acting_as(None)


def check_name(name: str, field: str) -> str:
    """Validate a person's or agent's name, which becomes part of keys, lists and logs."""
    if not name or name != name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise InvalidInput(
            f"The {field} is empty, longer than {_LONGEST_NAME} characters, or contains unprintable characters.",
            remedy="Give a name on one line, without blanks around it.",
            field=field,
        )
    if holds_secret(name):
        raise InvalidInput(f"The {field} looks like a secret.", remedy="Give a name that may be seen.", field=field)
    return name
