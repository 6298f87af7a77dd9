"""A project keeps its memories when its folder is moved, cloned, or gains a remote."""

from pathlib import Path

import pytest

from cortex_py import Cortex

from helpers import git
from stub_backend import StubBackend


def _id(home: Path, folder: Path) -> str:
    with Cortex.open(home, project=folder, backend=StubBackend()) as cortex:
        return cortex.project.id


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "here" / "work"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_moved_folder_is_found_again(home: Path, repository: Path, tmp_path: Path) -> None:
    before = _id(home, repository)
    moved = tmp_path / "there" / "work"
    moved.parent.mkdir()
    repository.rename(moved)
    assert _id(home, moved) == before
    assert _id(home, moved) == before


def test_a_copy_beside_the_original_is_another_project(home: Path, repository: Path, tmp_path: Path) -> None:
    before = _id(home, repository)
    other = tmp_path / "there" / "work"
    other.mkdir(parents=True)
    assert _id(home, other) != before


def test_a_repository_that_gains_a_remote_keeps_its_memories(home: Path, repository: Path, tmp_path: Path) -> None:
    before = _id(home, repository)
    git(repository, "remote", "add", "origin", "git@example.org:team/work.git")
    assert _id(home, repository) == before
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    git(clone, "remote", "set-url", "origin", "https://example.org/team/work")
    assert _id(home, clone) == before


def test_sub_folders_belong_to_the_project(home: Path, repository: Path) -> None:
    (repository / "src" / "deep").mkdir(parents=True)
    assert _id(home, repository / "src" / "deep") == _id(home, repository)


@pytest.mark.sqlite_only
def test_opening_again_writes_nothing(home: Path, repository: Path) -> None:
    with Cortex.open(home, project=repository, backend=StubBackend()) as first:
        first.memories.capture("note")
    before = (home / "cortex.db").read_bytes()
    assert _id(home, repository)
    assert (home / "cortex.db").read_bytes() == before
