"""What tests read below the library: the one place that knows how `Cortex` calls it."""

from __future__ import annotations

from typing import Any

from cortex_py import Cortex

__all__ = ["database_of", "sessions_of", "store_of"]


def store_of(cortex: Cortex) -> Any:
    return cortex._store


def database_of(cortex: Cortex) -> Any:
    return cortex._store.database


def sessions_of(cortex: Cortex) -> Any:
    return cortex._sessions
