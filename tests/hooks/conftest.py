"""Fixtures of the tests of hooks: a project with memories, and a warm process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.parts.hooks.warm import address_file, serving_hooks

from helpers import git
from hook_runs import DATABASE, wait_for


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "begin")
    return project


@pytest.fixture
def filled(repository: Path, cortex: Cortex) -> Cortex:
    cortex.memories.capture(DATABASE, namespace="decisions")
    cortex.memories.capture("Uploads retry five times with exponential backoff", namespace="patterns")
    return cortex


@pytest.fixture
def warm(filled: Cortex) -> Iterator[Cortex]:
    """A process that answers hooks: this one."""
    with serving_hooks(filled):
        wait_for(address_file(filled.settings.home).exists)
        filled.hooks.warm_up(filled.project.root or ".")
        yield filled
