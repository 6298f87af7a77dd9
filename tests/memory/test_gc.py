"""Garbage collection against real git repositories: a preview and the run it foretells agree."""

from dataclasses import replace
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import InvalidInput

from helpers import FakeClock, git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


@pytest.fixture
def tree(home: Path, repository: Path, clock: FakeClock, model):
    with Cortex.open(home, project=repository, clock=clock, backend=model) as opened:
        yield opened


def _on_branch(cortex: Cortex, repository: Path, name: str, *contents: str) -> None:
    git(repository, "checkout", "-q", "-B", name)
    for content in contents:
        assert cortex.memories.capture(content).git_branch == name
    git(repository, "checkout", "-q", "main")


def test_memories_of_a_deleted_branch_are_collected(tree: Cortex, repository: Path) -> None:
    tree.memories.capture("on main")
    _on_branch(tree, repository, "feature/old-auth", "one", "two")
    _on_branch(tree, repository, "feature/alive", "three")
    assert tree.memories.gc().memories_affected == 0
    git(repository, "branch", "-D", "feature/old-auth")
    preview = tree.memories.gc(dry_run=True)
    assert (preview.stale_branches, preview.memories_affected, preview.dry_run) == (("feature/old-auth",), 2, True)
    assert tree.memories.recall().total == 4
    assert tree.memories.gc() == replace(preview, dry_run=False)
    assert {hit.memory.content for hit in tree.memories.recall().results} == {"on main", "three"}
    assert tree.memories.gc().memories_affected == 0


def test_a_memory_joins_the_line_of_work_linked_to_its_git_branch(tree: Cortex, repository: Path) -> None:
    line = tree.contexts.create_branch("Login", git_branch="feature/login")
    assert tree.memories.capture("on main").branch_id is None
    git(repository, "checkout", "-q", "-b", "feature/login")
    assert tree.memories.capture("on the feature").branch_id == line.id
    assert tree.memories.capture("mine everywhere", domain="user").branch_id is None


def test_one_branch_can_be_targeted(tree: Cortex, repository: Path) -> None:
    _on_branch(tree, repository, "gone-a", "a")
    _on_branch(tree, repository, "gone-b", "b")
    _on_branch(tree, repository, "alive", "c")
    git(repository, "branch", "-D", "gone-a", "gone-b")
    assert tree.memories.gc(branch="alive").memories_affected == 0
    assert tree.memories.gc(branch="unheard-of").memories_affected == 0
    assert tree.memories.gc(branch="gone-a").stale_branches == ("gone-a",)
    assert {hit.memory.content for hit in tree.memories.recall().results} == {"b", "c"}


def test_a_branch_that_lives_only_at_the_remote_is_not_stale(
    home: Path, repository: Path, tmp_path: Path, model
) -> None:
    git(repository, "branch", "feature/x")
    git(tmp_path, "clone", "-q", str(repository), "clone")
    with Cortex.open(home, project=tmp_path / "clone", backend=model) as cortex:
        cortex.memories.capture("work", git_branch="feature/x")
        cortex.memories.capture("other work", git_branch="feature")
        assert cortex.memories.gc(dry_run=True, branch="feature/x").stale_branches == ()
        assert cortex.memories.gc(dry_run=True, branch="feature").stale_branches == ("feature",)


def _commit(repository: Path, name: str, text: str) -> None:
    (repository / name).write_text(text)
    git(repository, "add", name)
    git(repository, "commit", "-q", "-m", f"write {name}")


_MERGES = {
    "merge commit": (("merge", "-q", "--no-ff", "--no-edit", "feature"),),
    "fast-forward": (("merge", "-q", "--ff-only", "feature"),),
    "squash": (("merge", "-q", "--squash", "feature"), ("commit", "-q", "-m", "all of it")),
    "rebase": (
        ("commit", "-q", "--allow-empty", "-m", "meanwhile"),
        ("rebase", "-q", "main", "feature"),
        ("checkout", "-q", "main"),
        ("merge", "-q", "--ff-only", "feature"),
    ),
}


@pytest.mark.parametrize("way", _MERGES)
def test_what_a_merged_branch_taught_stays(tree: Cortex, repository: Path, way: str) -> None:
    git(repository, "checkout", "-q", "-b", "feature")
    for name in ("one.txt", "two.txt"):
        _commit(repository, name, name)
        tree.memories.capture(f"We decided to write {name} by hand.")
    git(repository, "checkout", "-q", "main")
    for command in _MERGES[way]:
        git(repository, *command)
    git(repository, "branch", "-q", "-D", "feature")
    assert tree.memories.gc().memories_affected == 0
    assert tree.memories.gc(branch="feature").memories_affected == 0
    assert tree.memories.recall().total == 2


def test_a_branch_whose_end_git_does_not_tell_is_collected_only_by_name(tree: Cortex, repository: Path) -> None:
    tree.memories.capture("work of another clone", git_branch="feature/elsewhere")
    assert tree.memories.gc().memories_affected == 0
    assert tree.memories.gc(branch="feature/elsewhere").memories_affected == 1


def test_a_branch_deleted_with_its_commits_is_collected(tree: Cortex, repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "attempt")
    _commit(repository, "one.txt", "one")
    tree.memories.capture("We try it by hand.")
    git(repository, "checkout", "-q", "main")
    git(repository, "branch", "-q", "-D", "attempt")
    assert tree.memories.gc().stale_branches == ("attempt",)


def test_the_default_branch_is_never_stale_and_a_detached_head_changes_nothing(tree: Cortex, repository: Path) -> None:
    tree.memories.capture("on main")
    git(repository, "checkout", "-q", "--detach")
    assert tree.memories.capture("detached").git_branch is None
    assert tree.memories.gc().memories_affected == 0


def test_a_worktrees_branch_is_alive(tree: Cortex, repository: Path, tmp_path: Path, home: Path, model) -> None:
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    with Cortex.open(home, project=tmp_path / "side", backend=model) as side:
        assert side.project.id == tree.project.id
        assert side.memories.capture("in the worktree").git_branch == "side"
    assert tree.memories.gc().memories_affected == 0
    git(repository, "worktree", "remove", "--force", str(tmp_path / "side"))
    git(repository, "branch", "-D", "side")
    # Its log went with the working tree, so nothing tells whether it was merged.
    assert tree.memories.gc().stale_branches == ()
    assert tree.memories.gc(branch="side").stale_branches == ("side",)


def test_without_a_repository_no_branch_is_stale(cortex: Cortex) -> None:
    cortex.memories.capture("x", git_branch="feature/x")
    assert cortex.memories.gc().memories_affected == 0


def test_expired_memories_are_collected(cortex: Cortex, clock: FakeClock) -> None:
    cortex.memories.capture("short-lived", ttl="1h")
    clock.advance(hours=2)
    preview = cortex.memories.gc(dry_run=True)
    assert (preview.expired, preview.memories_affected) == (1, 1)
    assert cortex.memories.gc() == replace(preview, dry_run=False)
    assert cortex.memories.status().status_counts == {"tombstoned": 1}


def test_purge_removes_tombstones_of_the_given_age(cortex: Cortex, clock: FakeClock) -> None:
    old, new = (cortex.memories.capture(text) for text in ("old", "new"))
    cortex.memories.delete(old.id)
    clock.advance(days=31)
    cortex.memories.delete(new.id)
    preview = cortex.memories.gc(purge=True, older_than="30d", dry_run=True)
    assert preview.purged == 1
    assert cortex.memories.gc(purge=True, older_than="30d") == replace(preview, dry_run=False)
    assert cortex.memories.status().status_counts == {"tombstoned": 1}
    assert cortex.memories.restore(new.id).content == "new"
    cortex.memories.delete(new.id)
    assert cortex.memories.gc(purge=True).purged == 1
    assert cortex.memories.status().status_counts == {}


def test_what_a_run_collects_it_does_not_purge(cortex: Cortex, clock: FakeClock) -> None:
    cortex.memories.capture("short-lived", ttl="1h")
    clock.advance(hours=2)
    result = cortex.memories.gc(purge=True)
    assert (result.tombstoned, result.purged) == (1, 0)


@pytest.mark.parametrize("wrong", ["soon", "-3d", "2999-01-01"])
def test_a_bad_age_is_refused(cortex: Cortex, wrong: str) -> None:
    with pytest.raises(InvalidInput):
        cortex.memories.gc(purge=True, older_than=wrong)
