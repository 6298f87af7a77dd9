"""What a caller may be allowed to do, by name: the scopes, and their spelling. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, get_args

from ..errors import InvalidInput

__all__ = ["SCOPES", "TOOL_PREFIX", "Scope", "check_scopes", "is_scope", "known_scopes"]

# None holds another: a token for everything names all of them.
Scope = Literal["read", "write", "admin", "embed"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

# `tool:NAME` opens one tool, whatever scope it needs otherwise.
TOOL_PREFIX = "tool:"
_TOOL = re.compile(r"tool:[A-Za-z][A-Za-z0-9_.]{0,63}")
_MOST = 64


def is_scope(text: str) -> bool:
    return text in SCOPES or _TOOL.fullmatch(text) is not None


def check_scopes(given: Iterable[str]) -> frozenset[str]:
    """The scopes, if all of them can be some and there is at least one."""
    scopes = frozenset(given)
    for scope in sorted(scopes):
        if not is_scope(scope):
            raise InvalidInput(
                f"Unknown scope {scope[:80]!r}.", remedy=f"Known: {', '.join(SCOPES)}, tool:NAME.", field="scopes"
            )
    if not 0 < len(scopes) <= _MOST:
        raise InvalidInput(f"Give between one and {_MOST} scopes.", field="scopes")
    return scopes


def known_scopes(text: str) -> frozenset[str]:
    """Those of a list by blanks that mean something here; an issuer's lists hold others too."""
    return frozenset(word for word in text.split() if is_scope(word))
