"""Repositories that tests of git act in."""

from __future__ import annotations

from pathlib import Path

from cortex_py.worktree.git.repository import Repository

__all__ = ["repository"]


def repository(path: Path) -> Repository:
    """The repository that a path is in."""
    found = Repository.discover(path)
    assert found is not None
    return found
