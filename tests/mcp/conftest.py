"""Fixtures shared by the tests of the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex

from clients import CURRENT
from helpers import FakeClock
from stub_backend import StubBackend


@pytest.fixture(params=[CURRENT])
def mode(request: pytest.FixtureRequest) -> str:
    """The newest protocol; a test that asks for both has a parameter of this name."""
    return str(request.param)


@pytest.fixture
def stubbed(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    """A memory whose model knows only words: for what has nothing to do with meaning."""
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        yield opened
