"""Who calls: bound to the work done for them, so that what they write is theirs and what they see is theirs to see.

A server that knows its callers binds one around each request. Where none is bound, as on a person's own machine,
the settings say who works here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..errors import InvalidInput
from .rights import NO_RIGHTS, Rights

__all__ = ["Caller", "acting_as", "check_name", "current_caller"]

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Caller:
    """A person, perhaps through an agent, and what they may do. `via` is what vouched: a token's id, an issuer.

    They work in one organisation, `org`. `scopes` are what their token opens, `rights` what they may reach with it: a
    call needs both. `project` is the one they work in; None for the server's own.
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
        """One name for rate limits: agents of one person share theirs."""
        return f"user:{self.user}"


_calling: ContextVar[Caller | None] = ContextVar("cortex_caller", default=None)


def current_caller() -> Caller | None:
    return _calling.get()


@contextmanager
def acting_as(caller: Caller | None) -> Iterator[None]:
    """Do what is done inside on behalf of a caller."""
    before = _calling.set(caller)
    try:
        yield
    finally:
        _calling.reset(before)


def check_name(name: str, field: str) -> str:
    """A person's or an agent's name, if it can be one: it becomes part of keys, lists and logs."""
    if not name or name != name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise InvalidInput(
            f"The {field} is empty, longer than {_LONGEST_NAME} characters, or holds what cannot be printed.",
            remedy="Give a name on one line, without blanks around it.",
            field=field,
        )
    return name
