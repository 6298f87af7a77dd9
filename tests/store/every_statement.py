"""A plugin for any test run: every statement of every test must name the key of each distributed table in it.

PYTHONPATH=src:tests:tests/store pytest -p every_statement tests/context
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from routing import route

import cortex_py
from cortex_py.core.store import sqlite

_SOURCE = Path(cortex_py.__file__).parent
_TEXT_INDEX = re.compile(r"\bmemory_text\b")
_OTHER = re.compile(r"\s*(?:CREATE|ALTER|DROP|PRAGMA|INSERT INTO recalled_placed|EXPLAIN)\b")


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    def checked(session: object, sql: str, params: Sequence[Any] | Iterable[Any] = ()) -> Any:
        # What a test asks by itself is its own affair. SQLite's text index has no column for the space, and the
        # schema's own statements have none to name.
        ours = Path(sys._getframe(1).f_code.co_filename).is_relative_to(_SOURCE)
        if ours and not _OTHER.match(sql) and not _TEXT_INDEX.search(sql):
            found = route(sql)
            assert not found.missing or found.everywhere, f"without the key of {', '.join(found.missing)}: {sql}"
        return method(session, sql, params)

    return checked


@pytest.fixture(autouse=True)
def _every_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rows", "run", "run_many"):
        monkeypatch.setattr(sqlite._SqliteSession, name, _checked(getattr(sqlite._SqliteSession, name)))
