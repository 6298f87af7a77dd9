"""Callers of a shared server, made members of its organisation."""

from __future__ import annotations

from cortex_py import Cortex
from cortex_py.core.security.callers import Caller


def member(
    cortex: Cortex, user: str, level: str = "write", *, agent: str | None = None, project: str | None = None
) -> Caller:
    """A person with a level in the organisation of the settings, with the rights that follow."""
    cortex.tenants.join(user, level)
    return cortex.tenants.admitted(Caller(user, agent), project)
