"""Limits of time that a busy machine reaches: what is cut short there is done to the end in tests.

Tests of a limit set their own.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["wait_longer"]

_LIMITS = {
    "cortex_py.parts.context.service": "CHECK_SECONDS",
    "cortex_py.surfaces.cli.options": "_FILL_SECONDS",
    "cortex_py.surfaces.cli.serve": "_ANSWER_SECONDS",
}


def wait_longer() -> None:
    """Let this process wait a minute for a verdict on a turn, for vectors, and for another server."""
    for module, name in _LIMITS.items():
        found = import_module(module)
        assert hasattr(found, name)
        setattr(found, name, 60.0)
