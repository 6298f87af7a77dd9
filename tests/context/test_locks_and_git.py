"""git may take its time, so it is never started by a thread that holds a lock."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.worktree.git import runner as git_runner
from held_locks import watch_locks

from helpers import FakeClock, git
from stub_backend import StubBackend


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, list[str]]]]:
    """The git commands that were started, each with the locks that its thread held."""
    held = watch_locks(monkeypatch)
    found: list[tuple[str, list[str]]] = []
    plain = subprocess.Popen

    def spy(words: Any, **options: Any) -> subprocess.Popen[bytes]:
        if "--no-pager" in words:
            found.append((" ".join(words[words.index("--no-pager") :][-4:]), held()))
        return plain(words, **options)

    monkeypatch.setattr(git_runner.subprocess, "Popen", spy)
    yield found
    assert [one for one in found if one[1]] == []


def test_no_lock_is_held_while_git_runs(
    home: Path, project: Path, clock: FakeClock, started: list[tuple[str, list[str]]]
) -> None:
    git(project, "init", "-q", "-b", "main")
    (project / "app.py").write_text("def one():\n    return 1\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "first")
    options: dict[str, Any] = {"clock": clock, "backend": StubBackend(), "branch_memories": "stage"}
    with Cortex.open(home, project=project, **options) as cortex:
        cortex.contexts.initialize(project)
        cortex.memories.capture("Ada Lovelace keeps the state in one file, `app.py`.")
        line = cortex.contexts.create_branch("A line of work").id
        git(project, "switch", "-q", "-c", "feature")
        cortex.contexts.link(line, "feature")
        memory = cortex.memories.capture("Redis holds the sessions of the feature.")
        cortex.contexts.append(line, "The feature is begun in `app.py`.", "user")
        cortex.contexts.sync(line)
        git(project, "commit", "-q", "--allow-empty", "-m", "work")
        git(project, "branch", "-m", "renamed")
        cortex.memories.recall("sessions")
        (project / "app.py").write_text("def two():\n    return 2\n")
        cortex.grounding.verify("I added `two` to app.py.")
        cortex.suggestions.suggest("change `two` in app.py")
        cortex.graph.extract("Ada Lovelace works at Initech.", store=True)
        git(project, "commit", "-q", "-a", "-m", "more work")
        git(project, "switch", "-q", "main")
        git(project, "merge", "-q", "--no-ff", "-m", "merge", "renamed")
        git(project, "branch", "-q", "-D", "renamed")
        assert cortex.memories.get(memory.id) is not None
        cortex.memories.recall("sessions")
        cortex.memories.gc(dry_run=True)
        cortex.backups.create("all of it")
        cortex.upkeep()
    assert len(started) > 20
