"""A project keeps its memories when its folder is moved, cloned, or gains a remote."""

from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.parts.hooks.cold import answer_cold

from helpers import git
from stub_backend import StubBackend


def _id(home: Path, folder: Path) -> str:
    with Cortex.open(home, project=folder, backend=StubBackend()) as cortex:
        return cortex.project.id


@pytest.fixture
def repository(tree: Path) -> Path:
    folder = tree.parent / "here" / "work"
    folder.parent.mkdir()
    return tree.rename(folder)


def test_a_moved_folder_is_found_again(home: Path, repository: Path, tmp_path: Path) -> None:
    before = _id(home, repository)
    moved = tmp_path / "there" / "work"
    moved.parent.mkdir()
    repository.rename(moved)
    assert _id(home, moved) == before
    assert _id(home, moved) == before


def test_a_repository_that_gains_a_remote_keeps_its_memories(home: Path, repository: Path, tmp_path: Path) -> None:
    before = _id(home, repository)
    git(repository, "remote", "add", "origin", "git@example.org:team/work.git")
    assert _id(home, repository) == before
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    git(clone, "remote", "set-url", "origin", "https://example.org/team/work")
    assert _id(home, clone) == before


def test_a_sub_folder_of_a_plain_folder_belongs_to_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "user" / "notes"
    for name in ("own", "deep/er", "code"):
        (notes / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    git(notes / "code", "init", "-q")
    own = _id(home, notes / "own")
    # What holds everything of the user is no project of it.
    everything = _id(home, tmp_path / "user")
    known = _id(home, notes)
    assert len({own, everything, known}) == 3
    with Cortex.open(home, project=notes / "deep" / "er", backend=StubBackend()) as cortex:
        assert (cortex.project.id, cortex.project.root, cortex.memories.status().path) == (known, *[str(notes)] * 2)
        assert cortex.contexts.project_at(notes / "deep").id == known
        memory = cortex.memories.capture("Read the tide tables of the harbour before planning", namespace="patterns")
        assert cortex.hooks.session_start(notes / "deep").ids == (memory.id,)
    event = {"cwd": str(notes / "deep"), "text": "When do I read the tide tables of the harbour?"}
    assert answer_cold(home, event)[1] == [memory.id]
    assert (_id(home, notes / "own"), _id(home, notes)) == (own, known)
    assert _id(home, notes / "code") not in (own, known, everything)


@pytest.mark.sqlite_only
def test_opening_again_writes_nothing(home: Path, repository: Path) -> None:
    with Cortex.open(home, project=repository, backend=StubBackend()) as first:
        first.memories.capture("note")
    before = (home / "cortex.db").read_bytes()
    assert _id(home, repository)
    assert (home / "cortex.db").read_bytes() == before
