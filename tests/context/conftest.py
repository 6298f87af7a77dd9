"""Fixtures for projects and their branches: a repository, and Cortex opened in folders that a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex

from helpers import FakeClock, git
from stub_backend import StubBackend


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository on main with one commit."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


@pytest.fixture
def opened(home: Path, clock: FakeClock) -> Iterator[Callable[..., Cortex]]:
    """Opens the home in a folder, with settings; all is closed in the end."""
    found: list[Cortex] = []

    def at(folder: Path, **settings: object) -> Cortex:
        found.append(Cortex.open(home, project=folder, clock=clock, **{"backend": StubBackend(), **settings}))
        return found[-1]

    yield at
    for cortex in found:
        cortex.close()


@pytest.fixture
def desk(opened: Callable[..., Cortex], project: Path) -> Cortex:
    """Cortex in a plain folder."""
    return opened(project)
