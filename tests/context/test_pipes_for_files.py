"""Pipes, devices and links to them in the place of a project's files: nothing waits for them or reads them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import CortexError
from odd_files import KINDS, put

from helpers import git
from stub_backend import StubBackend

_T = TypeVar("_T")

FILES = (
    ".gitattributes", ".gitignore", ".mailmap", "README.md", "pyproject.toml", "requirements.txt", "package.json",
    "junit.xml", "deeper/.gitattributes", "deeper/.gitignore", "deeper/notes.md", ".cortex/prompts/review.md",
    ".cortex/templates/plan.md",
)  # fmt: skip


def soon(call: Callable[[], _T]) -> _T:
    """What a call gives, which must not hang."""
    found: list[_T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread of the test
            failed.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(150)
    assert not worker.is_alive(), "it hangs"
    if failed:
        raise failed[0]
    return found[0]


def work_in(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        cortex.contexts.initialize(project, "full")
        cortex.memories.capture("The app keeps its state in one file, `app.py`.")
        cortex.suggestions.suggest("change `one` in app.py")
        cortex.graph.extract("Ada Lovelace works at Initech.")
        found = cortex.grounding.verify("`one` is defined in app.py.\n\n3 tests passed.\n\nThere is a file README.md.")
        assert found.findings[0].verdict == "supported"
        sources = ["junit.xml", "README.md"]
        assert cortex.grounding.verify("3 tests passed.", evidence_sources=sources).verified == 0
        assert "review" not in {one.saved.name for one in cortex.prompts.list().items}
        cortex.upkeep()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_repository", [True, False])
def test_what_is_no_file_is_not_there(
    home: Path, project: Path, tmp_path: Path, kind: str, is_repository: bool
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (project / "app.py").write_text("def one():\n    return 1\n")
    (project / "deeper").mkdir()
    (project / "deeper" / "other.py").write_text("def two():\n    return 2\n")
    if is_repository:
        git(project, "init", "-q", "-b", "main")
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", "first")
        (project / "deeper" / "other.py").write_text("def three():\n    return 3\n")
    for name in FILES:
        # The rules of a repository are read by git, which stops at a huge file.
        if not (kind == "huge file" and is_repository and name.endswith(".gitignore")):
            put(project / name, kind, tmp_path / "pipe")
    soon(lambda: work_in(home, project))


def test_where_git_stops_at_a_huge_file_the_error_is_clear(home: Path, project: Path, tmp_path: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    put(project / ".gitignore", "huge file", tmp_path / "pipe")
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex, pytest.raises(CortexError, match="git"):
        soon(lambda: cortex.contexts.initialize(project, "full"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_branch_file_that_is_no_file_is_a_clear_error(home: Path, project: Path, tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        line = cortex.contexts.create_branch("A line of work").id
        (file,) = (home / "memory" / cortex.project.id).glob("*.md")
        (note,) = file.parent.glob(".*.note")
        for path in (file, note):
            path.unlink()
            put(path, kind, tmp_path / "pipe")
        with pytest.raises(CortexError, match=r"not a plain file|larger than"):
            soon(lambda: cortex.contexts.sync(line))


@pytest.mark.parametrize("name", ["notes.md", "notes.json"])
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "link to a device"])
def test_a_path_that_a_person_names_is_a_clear_error(
    home: Path, project: Path, tmp_path: Path, kind: str, name: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    put(tmp_path / name, kind, tmp_path / "pipe")
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        with pytest.raises(CortexError, match=r"not a regular file|/dev"):
            soon(lambda: cortex.backups.import_from([tmp_path / name]))
        imported = soon(lambda: cortex.prompts.import_files([tmp_path / name]))
        assert any("not a regular file" in line for line in imported.problems)
