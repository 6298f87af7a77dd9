"""Cortex: lasting, local-first memory for AI coding agents.

    from cortex_py import Cortex

    with Cortex.open(project=".") as cortex:
        cortex.memories.capture("Use PostgreSQL for JSONB", namespace="decisions")
        page = cortex.memories.recall("database choice")

Names are imported when they are first used, so that `import cortex_py` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .version import __version__

if TYPE_CHECKING:
    from .app import Cortex
    from .core.errors import CortexError
    from .core.records import Branch, Hit, Memory, NewMemory, Page, Project, Version

__all__ = [
    "Branch",
    "Cortex",
    "CortexError",
    "Hit",
    "Memory",
    "NewMemory",
    "Page",
    "Project",
    "Version",
    "__version__",
]

_MODULES = {"Cortex": ".app", "CortexError": ".core.errors"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, ".core.records"), __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
