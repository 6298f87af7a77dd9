"""A stamp changes with everything that a check of claims could see, and with nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cortex_py.worktree.files.files import compute_stamp
from cortex_py.worktree.git.repository import Repository

from helpers import git


def make(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    (root / "a.py").write_text("x = 1\n")
    (root / "b.py").write_text("y = 1\n")
    (root / ".gitignore").write_text("*.log\n")
    git(root, "add", "--all")
    git(root, "commit", "-q", "-m", "first")
    return root


def take(root: Path) -> str:
    found = compute_stamp(root, Repository.discover(root))
    assert found is not None
    return found


def _edit(root: Path) -> None:
    (root / "a.py").write_text("x = 1234\n")


def _edit_of_the_same_size(root: Path) -> None:
    (root / "a.py").write_text("x = 2\n")
    # As if it had been written in the same moment as before.
    facts = (root / "b.py").stat()
    os.utime(root / "a.py", ns=(facts.st_atime_ns, facts.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": _edit,
    "edit of the same size": _edit_of_the_same_size,
    "commit": lambda root: git(root, "commit", "-q", "--allow-empty", "-m", "second"),
    "switch": lambda root: git(root, "checkout", "-q", "-b", "other"),
    "detach": lambda root: git(root, "checkout", "-q", "--detach"),
    "stage": lambda root: (_edit(root), git(root, "add", "a.py")),
    "name with odd signs": lambda root: (root / "new\n file é.py").write_text("z = 1\n"),
    "new file": lambda root: (root / "new.py").write_text("z = 1\n"),
    "delete": lambda root: (root / "a.py").unlink(),
    "rename": lambda root: (root / "a.py").rename(root / "c.py"),
    "untrack": lambda root: git(root, "rm", "-q", "--cached", "a.py"),
    "tag": lambda root: git(root, "tag", "v1"),
    "signed tag": lambda root: git(root, "tag", "-a", "-m", "one", "v1"),
    "ignore": lambda root: (root / ".gitignore").write_text("*.log\n*.txt\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_a_repository_changes_its_stamp(tmp_path: Path, change: str) -> None:
    root = make(tmp_path / "r")
    before = take(root)
    assert take(root) == before
    CHANGES[change](root)
    after = take(root)
    assert after != before
    assert take(root) == after


def test_what_is_staged_and_what_is_not_differ(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    _edit(root)
    unstaged = take(root)
    git(root, "add", "a.py")
    staged = take(root)
    git(root, "stash", "-q")
    assert len({unstaged, staged, take(root)}) == 3


def test_a_changed_file_that_changes_again_is_seen(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    seen = {take(root)}
    for number in range(3):
        (root / "a.py").write_text(f"x = {number}{number}\n")
        (root / "new.py").write_text(f"{number}\n")
        seen.add(take(root))
    assert len(seen) == 4


def test_a_file_that_git_ignores_changes_nothing(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    before = take(root)
    (root / "noise.log").write_text("x\n")
    assert take(root) == before


def test_a_plain_folder_is_told_by_its_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.py").write_text("x = 1\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    before = compute_stamp(tmp_path, None)
    (tmp_path / "noise.log").write_text("x\n")
    assert compute_stamp(tmp_path, None) == before
    (tmp_path / "deep" / "a.py").write_text("x = 22\n")
    edited = compute_stamp(tmp_path, None)
    (tmp_path / "b.py").write_text("")
    assert len({before, edited, compute_stamp(tmp_path, None)}) == 3


def test_a_bare_and_an_unborn_repository_have_stamps(tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    bare.mkdir()
    git(bare, "init", "-q", "--bare")
    assert take(bare) == take(bare)
    unborn = tmp_path / "unborn"
    unborn.mkdir()
    git(unborn, "init", "-q", "-b", "main")
    before = take(unborn)
    (unborn / "a.py").write_text("x = 1\n")
    assert take(unborn) != before


def test_where_git_does_not_answer_there_is_no_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r")
    repository = Repository.discover(root)
    monkeypatch.setattr("cortex_py.worktree.files.files.run_git", lambda *_, **__: None)
    assert compute_stamp(root, repository) is None
