"""What becomes of branches, each case acted out in a real repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from repositories import repository

from cortex_py.worktree.git import branch_state as merges
from cortex_py.worktree.git.branch_state import BranchState, classify_branches, former_name, refs_watermark

from helpers import git

NOWHERE = "1" * 40


def fate(root: Path, name: str, seen: str | None = None) -> BranchState:
    return classify_branches(repository(root), {name: seen})[name]


def commit(root: Path, name: str = "f.txt", text: str = "text\n") -> str:
    """One more commit that writes a file; gives its id."""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    git(root, "add", name)
    git(root, "commit", "-q", "-m", f"{name}: {text[:20]!r}")
    return git(root, "rev-parse", "HEAD")


def start(folder: Path, *options: str) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", *options)
    commit(folder, "base.txt", "".join(f"line {number}\n" for number in range(30)))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository on main with one commit."""
    return start(tmp_path / "r")


def work(root: Path, name: str = "topic", *, commits: int = 2) -> str:
    """A branch with commits of its own, left again for main; gives its last commit."""
    git(root, "switch", "-q", "-c", name)
    for number in range(commits):
        commit(root, f"{name}-{number}.txt", f"{name} {number}\n")
    git(root, "switch", "-q", "main")
    return git(root, "rev-parse", f"refs/heads/{name}")


def clone(source: Path, target: Path, *options: str) -> Path:
    git(source.parent, "clone", "-q", *options, str(source), str(target))
    return target


# Ways to merge


def merge_commit(root: Path) -> None:
    commit(root, "other.txt")
    git(root, "merge", "-q", "--no-edit", "topic")


def merge_commit_at_once(root: Path) -> None:
    git(root, "merge", "-q", "--no-ff", "--no-edit", "topic")


def fast_forward(root: Path) -> None:
    git(root, "merge", "-q", "--ff-only", "topic")


def rebase_merge(root: Path) -> None:
    commit(root, "other.txt")
    git(root, "cherry-pick", "main~1..topic")


def squash_merge(root: Path) -> None:
    commit(root, "other.txt")
    git(root, "merge", "-q", "--squash", "topic")
    git(root, "commit", "-q", "-m", "all of topic (#1)")
    commit(root, "later.txt")


def octopus(root: Path) -> None:
    work(root, "second")
    commit(root, "other.txt")
    git(root, "merge", "-q", "--no-edit", "topic", "second")


WAYS = [merge_commit, merge_commit_at_once, fast_forward, rebase_merge, squash_merge, octopus]
way_of_merging = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


@way_of_merging
def test_a_merged_branch_is_merged(root: Path, way: Callable[[Path], None]) -> None:
    tip = work(root)
    assert fate(root, "topic", tip) == "open"
    way(root)
    assert fate(root, "topic", tip) == "merged"
    assert fate(root, "topic") == "merged"


@pytest.mark.slow
@way_of_merging
def test_it_stays_merged_after_it_is_deleted(root: Path, way: Callable[[Path], None]) -> None:
    first = git(root, "rev-parse", "main")
    tip = work(root)
    way(root)
    git(root, "branch", "-q", "-D", "topic")
    assert fate(root, "topic", tip) == "merged"
    # A stale commit, an unknown one and none at all: the log of checkouts tells the last one.
    assert fate(root, "topic", git(root, "rev-parse", f"{tip}~1")) == "merged"
    assert fate(root, "topic", first) == "merged"
    assert fate(root, "topic", NOWHERE) == "merged"
    assert fate(root, "topic") == "merged"


@pytest.mark.slow
@way_of_merging
def test_a_merge_that_was_only_fetched_counts(tmp_path: Path, root: Path, way: Callable[[Path], None]) -> None:
    tip = work(root)
    copy = clone(root, tmp_path / "c")
    git(copy, "switch", "-q", "topic")
    assert fate(copy, "topic") == "open"
    way(root)
    git(root, "branch", "-q", "-D", "topic")
    git(copy, "fetch", "-q", "--prune")
    git(copy, "switch", "-q", "main")
    # A fast-forward cannot be told from a branch that never had work of its own, while it lives.
    assert fate(copy, "topic") == ("open" if way is fast_forward else "merged")
    git(copy, "branch", "-q", "-D", "topic")
    assert git(copy, "rev-parse", "main") != git(copy, "rev-parse", "origin/main")
    assert fate(copy, "topic", tip) == "merged"
    assert fate(copy, "topic") == "merged"


@pytest.mark.slow
@way_of_merging
def test_a_merged_branch_that_goes_on_is_open_again(root: Path, way: Callable[[Path], None]) -> None:
    work(root)
    way(root)
    git(root, "switch", "-q", "topic")
    tip = commit(root, "more.txt")
    git(root, "switch", "-q", "main")
    assert fate(root, "topic", tip) == "open"
    git(root, "branch", "-q", "-D", "topic")
    assert fate(root, "topic", tip) == "deleted"
    assert fate(root, "topic", git(root, "rev-parse", f"{tip}~1")) == "deleted"


def test_a_squash_of_a_branch_that_took_main_in_between(root: Path) -> None:
    work(root)
    commit(root, "other.txt")
    git(root, "switch", "-q", "topic")
    git(root, "merge", "-q", "--no-edit", "main")
    tip = commit(root, "more.txt")
    git(root, "switch", "-q", "main")
    commit(root, "other.txt", "changed\n")
    assert fate(root, "topic", tip) == "open"
    git(root, "merge", "-q", "--squash", "topic")
    git(root, "commit", "-q", "-m", "squashed")
    assert fate(root, "topic", tip) == "merged"
    git(root, "branch", "-q", "-D", "topic")
    assert fate(root, "topic", tip) == "merged"


def test_a_squash_beside_changes_of_others_in_the_same_file(root: Path) -> None:
    lines = [f"line {number}\n" for number in range(30)]
    git(root, "switch", "-q", "-c", "topic")
    for number in (10, 20):
        lines[number] = f"changed {number}\n"
        commit(root, "base.txt", "".join(lines))
    git(root, "switch", "-q", "main")
    lines = [f"line {number}\n" for number in range(30)]
    # Two lines off: inside the usual context of a patch, yet no conflict.
    lines[0], lines[12] = "a new line\nline 0\n", "another's\n"
    commit(root, "base.txt", "".join(lines))
    git(root, "merge", "-q", "--squash", "topic")
    git(root, "commit", "-q", "-m", "squashed")
    assert fate(root, "topic") == "merged"


def test_a_branch_squashed_in_two_parts_without_taking_main_in_between(root: Path) -> None:
    first = work(root, "topic", commits=3)
    git(root, "switch", "-q", "-c", "child", "topic")
    commit(root, "base.txt", "rewritten\n")
    tip = commit(root, "child.txt", "text\n")
    git(root, "switch", "-q", "main")
    squash_merge(root)
    assert classify_branches(repository(root), {"topic": first, "child": tip}) == {"topic": "merged", "child": "open"}
    git(root, "checkout", "-q", "child", "--", "base.txt", "child.txt")
    git(root, "commit", "-q", "-m", "all of child (#2)")
    git(root, "branch", "-q", "-D", "topic", "child")
    assert classify_branches(repository(root), {"topic": first, "child": tip}) == {"topic": "merged", "child": "merged"}


def test_binary_content_is_compared_too(root: Path) -> None:
    (root / "b.bin").write_bytes(b"\0one")
    git(root, "add", "b.bin")
    git(root, "commit", "-q", "-m", "binary")
    for branch, content in (("topic", b"\0two"), ("side", b"\0three")):
        git(root, "switch", "-q", "-c", branch, "main")
        (root / "b.bin").write_bytes(content)
        git(root, "commit", "-q", "-a", "-m", branch)
    git(root, "switch", "-q", "main")
    commit(root, "other.txt")
    git(root, "cherry-pick", "side")
    assert classify_branches(repository(root), {"topic": None, "side": None}) == {"topic": "open", "side": "merged"}


def test_a_change_that_was_taken_back_and_is_made_anew_is_not_merged(root: Path) -> None:
    commit(root, "f.txt", "feature\n")
    git(root, "revert", "--no-edit", "HEAD")
    git(root, "switch", "-q", "-c", "topic")
    tip = commit(root, "f.txt", "feature\n")
    git(root, "switch", "-q", "main")
    assert fate(root, "topic") == "open"
    git(root, "branch", "-q", "-D", "topic")
    assert fate(root, "topic", tip) == "deleted"


def test_half_of_a_branch_in_main_leaves_it_open(root: Path) -> None:
    tip = work(root)
    commit(root, "other.txt")
    git(root, "cherry-pick", "topic~1")
    assert fate(root, "topic") == "open"
    git(root, "branch", "-q", "-D", "topic")
    assert fate(root, "topic", tip) == "deleted"


def test_like_commits_are_not_taken_for_each_other(root: Path) -> None:
    git(root, "switch", "-q", "-c", "topic")
    git(root, "commit", "-q", "--allow-empty", "-m", "empty")
    git(root, "switch", "-q", "-c", "other", "main")
    commit(root, "f.txt", "one\n")
    git(root, "switch", "-q", "main")
    git(root, "commit", "-q", "--allow-empty", "-m", "also empty")
    commit(root, "f.txt", "two\n")
    assert classify_branches(repository(root), {"topic": None, "other": None}) == {"topic": "open", "other": "open"}


def test_a_merge_into_another_branch_is_none(root: Path) -> None:
    tip = work(root)
    git(root, "switch", "-q", "-c", "develop")
    commit(root, "develop.txt")
    git(root, "merge", "-q", "--no-edit", "topic")
    git(root, "branch", "-q", "-D", "topic")
    assert fate(root, "topic", tip) == "deleted"
    assert fate(root, "develop") == "open"


# Without work


def test_a_fresh_branch_has_nothing_to_be_merged(root: Path) -> None:
    git(root, "branch", "fresh")
    git(root, "switch", "-q", "-c", "entered")
    assert classify_branches(repository(root), {"fresh": None, "entered": None}) == {"fresh": "open", "entered": "open"}
    git(root, "switch", "-q", "main")
    commit(root)
    git(root, "switch", "-q", "fresh")
    git(root, "merge", "-q", "main")
    assert classify_branches(repository(root), {"fresh": None, "entered": None}) == {"fresh": "open", "entered": "open"}


def test_a_branch_made_from_merged_work_is_fresh_too(root: Path) -> None:
    work(root)
    git(root, "branch", "child", "topic")
    squash_merge(root)
    assert classify_branches(repository(root), {"topic": None, "child": None}) == {"topic": "merged", "child": "open"}
    git(root, "merge", "-q", "--no-edit", "topic")
    assert classify_branches(repository(root), {"topic": None, "child": None}) == {"topic": "merged", "child": "open"}


def test_work_that_was_thrown_away_is_not_merged(root: Path) -> None:
    git(root, "switch", "-q", "-c", "topic")
    commit(root)
    git(root, "reset", "-q", "--hard", "main")
    assert fate(root, "topic") == "open"


def test_a_branch_that_followed_main_after_its_merge_is_merged(root: Path) -> None:
    work(root)
    squash_merge(root)
    git(root, "switch", "-q", "topic")
    git(root, "reset", "-q", "--hard", "main")
    assert fate(root, "topic") == "merged"


def test_a_fresh_branch_on_a_remote_is_open(tmp_path: Path, root: Path) -> None:
    git(root, "branch", "fresh")
    commit(root)
    copy = clone(root, tmp_path / "c")
    assert fate(copy, "fresh", git(root, "rev-parse", "fresh")) == "open"


def test_an_empty_branch_that_is_deleted_is_deleted(root: Path) -> None:
    git(root, "switch", "-q", "-c", "tried")
    git(root, "switch", "-q", "main")
    git(root, "branch", "-q", "-d", "tried")
    commit(root)
    assert fate(root, "tried", git(root, "rev-parse", "main~1")) == "deleted"
    assert fate(root, "tried") == "deleted"


def test_a_branch_merged_from_another_worktree_is_no_empty_one(tmp_path: Path, root: Path) -> None:
    seen = git(root, "rev-parse", "main")
    git(root, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "w"))
    commit(tmp_path / "w")
    git(root, "merge", "-q", "topic")
    git(root, "worktree", "remove", str(tmp_path / "w"))
    git(root, "branch", "-q", "-d", "topic")
    assert fate(root, "topic", seen) == "merged"
    assert fate(root, "topic") == "merged"


# Deleted, and what cannot be told


@pytest.mark.parametrize("detached", [False, True])
def test_a_branch_deleted_with_its_work_is_deleted(root: Path, detached: bool) -> None:
    tip = work(root)
    if detached:
        git(root, "checkout", "-q", "--detach")
    assert fate(root, "topic", tip) == "open"
    git(root, "branch", "-q", "-D", "topic")
    assert fate(root, "topic", tip) == "deleted"
    assert fate(root, "topic") == "deleted"
    # A commit that nobody knows is no reason to delete.
    assert fate(root, "topic", NOWHERE) == "open"


def test_what_nobody_knows_is_open(root: Path) -> None:
    names = {"never": None, "elsewhere": NOWHERE, "garbled": "no commit\n--all", "": None, "../../HEAD": None}
    assert set(classify_branches(repository(root), names).values()) == {"open"}


@pytest.mark.parametrize("moment", ["²", "9" * 5_000, "-1"])
def test_a_log_that_git_did_not_write_is_passed_over(root: Path, moment: str) -> None:
    tip = work(root)
    git(root, "branch", "-q", "-D", "topic")
    with (root / ".git" / "logs" / "HEAD").open("a", encoding="utf-8") as log:
        log.write(f"{tip} {tip} a <a@example.org> {moment} +0000\tcheckout: moving from main to topic\n")
    assert fate(root, "topic", tip) == "deleted"


def test_a_branch_that_is_only_on_a_remote_is_open(tmp_path: Path, root: Path) -> None:
    tip = work(root)
    copy = clone(root, tmp_path / "c")
    assert fate(copy, "topic", tip) == "open"
    git(root, "branch", "-q", "-D", "topic")
    git(copy, "fetch", "-q", "--prune")
    assert fate(copy, "topic", tip) == "deleted"
    assert fate(copy, "topic") == "open"


def test_new_work_on_the_remote_keeps_a_merged_branch_open(tmp_path: Path, root: Path) -> None:
    work(root)
    copy = clone(root, tmp_path / "c")
    git(copy, "switch", "-q", "topic")
    git(copy, "switch", "-q", "main")
    git(copy, "merge", "-q", "--no-ff", "--no-edit", "topic")
    assert fate(copy, "topic") == "merged"
    git(root, "switch", "-q", "topic")
    commit(root, "more.txt")
    git(copy, "fetch", "-q")
    assert fate(copy, "topic") == "open"


def test_the_default_branch_of_a_colleagues_fork_does_not_count(tmp_path: Path, root: Path) -> None:
    work(root)
    origin, fork = clone(root, tmp_path / "origin.git", "--bare"), clone(root, tmp_path / "fork.git", "--bare")
    git(root, "push", "-q", str(fork), "topic:main")
    for name, place in (("origin", origin), ("alice", fork)):
        git(root, "remote", "add", name, str(place))
    git(root, "fetch", "-q", "--all")
    assert fate(root, "topic") == "open"
    git(root, "remote", "rename", "alice", "upstream")
    assert fate(root, "topic") == "merged"


def test_a_reused_name_is_judged_by_its_last_life(root: Path) -> None:
    work(root)
    git(root, "merge", "-q", "--no-ff", "--no-edit", "topic")
    git(root, "branch", "-q", "-d", "topic")
    git(root, "switch", "-q", "-c", "topic")
    tip = commit(root, "second-life.txt")
    git(root, "switch", "-q", "main")
    git(root, "branch", "-q", "-D", "topic")
    assert fate(root, "topic", tip) == "deleted"
    assert fate(root, "topic") == "deleted"


def test_a_renamed_branch_fares_as_the_new_one(root: Path) -> None:
    tip = work(root)
    git(root, "branch", "-m", "topic", "later")
    git(root, "branch", "-m", "later", "latest")
    names = {"topic": tip, "later": tip, "latest": tip}
    assert set(classify_branches(repository(root), names).values()) == {"open"}
    git(root, "merge", "-q", "--no-ff", "--no-edit", "latest")
    assert set(classify_branches(repository(root), names).values()) == {"merged"}


def test_the_default_branch_is_open_under_every_name(root: Path) -> None:
    tip = git(root, "rev-parse", "main")
    assert fate(root, "main", tip) == "open"
    git(root, "branch", "-m", "main", "trunk")
    assert classify_branches(repository(root), {"main": tip, "trunk": tip}) == {"main": "open", "trunk": "open"}


def test_without_a_sure_default_branch_all_is_open(root: Path) -> None:
    git(root, "branch", "-m", "main", "one")
    git(root, "reflog", "delete", "one@{0}")
    git(root, "reflog", "expire", "--expire=now", "--all")
    tip = git(root, "rev-parse", "one")
    git(root, "switch", "-q", "-c", "two")
    commit(root)
    assert classify_branches(repository(root), {"one": tip, "two": None, "gone": tip}) == {
        "one": "open",
        "two": "open",
        "gone": "open",
    }


def test_looking_back_ends_somewhere_and_then_nothing_is_deleted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tip = work(root)
    squash_merge(root)
    commit(root, "even-later.txt")
    git(root, "branch", "-q", "-D", "topic")
    monkeypatch.setattr(merges, "WINDOW", 2)
    assert fate(root, "topic", tip) == "open"
    monkeypatch.setattr(merges, "WINDOW", 3)
    assert fate(root, "topic", tip) == "merged"


# Unusual repositories


@pytest.mark.parametrize("name", ["fix/a/b", "größe/数", "HEAD-x", "a.b@c", "-dash", "origin/main"])
def test_names_of_all_kinds(root: Path, name: str) -> None:
    git(root, "update-ref", f"refs/heads/{name}", "main")
    git(root, "symbolic-ref", "HEAD", f"refs/heads/{name}")
    tip = commit(root)
    git(root, "checkout", "-q", "main")
    assert fate(root, name, tip) == "open"
    git(root, "merge", "-q", "--no-ff", "--no-edit", f"refs/heads/{name}")
    assert fate(root, name, tip) == "merged"
    git(root, "update-ref", "-d", f"refs/heads/{name}")
    assert fate(root, name, tip) == "merged"
    assert fate(root, name) == "merged"


def test_a_tag_of_the_same_name_is_not_the_branch(root: Path) -> None:
    git(root, "tag", "topic")
    git(root, "tag", "main", work(root, "side"))
    tip = work(root)
    assert fate(root, "topic", tip) == "open"
    git(root, "branch", "-q", "-D", "topic")
    assert fate(root, "topic", tip) == "deleted"
    assert former_name(repository(root), "topic") is None


def test_a_repository_without_commits(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "r")
    assert classify_branches(repository(tmp_path / "r"), {"main": None, "x": NOWHERE}) == {"main": "open", "x": "open"}
    assert refs_watermark(repository(tmp_path / "r"))


def test_an_unborn_branch_is_open(root: Path) -> None:
    git(root, "checkout", "-q", "--orphan", "unborn")
    assert fate(root, "unborn") == "open"
    git(root, "commit", "-q", "-m", "unrelated")
    assert fate(root, "unborn") == "open"


def test_a_branch_checked_out_beside_is_open(tmp_path: Path, root: Path) -> None:
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "w"))
    assert fate(root, "side") == "open"
    tip = commit(tmp_path / "w")
    assert fate(tmp_path / "w", "side", tip) == "open"
    git(tmp_path / "w", "switch", "-q", "-c", "next")
    git(root, "branch", "-q", "-D", "side")
    # The log of the other working tree tells its last commit.
    assert fate(root, "side") == "deleted"
    git(root, "merge", "-q", "--no-ff", "--no-edit", "next")
    assert classify_branches(repository(root), {"side": None, "next": None}) == {"side": "merged", "next": "open"}


def test_a_bare_repository(tmp_path: Path, root: Path) -> None:
    for name in ("topic", "open", "lost"):
        work(root, name)
    tip = git(root, "rev-parse", "lost")
    merge_commit(root)
    git(root, "branch", "fresh")
    bare = clone(root, tmp_path / "b.git", "--bare")
    git(bare, "branch", "-q", "-D", "lost")
    wanted = {"topic": "merged", "open": "open", "lost": "deleted", "fresh": "open", "main": "open"}
    assert classify_branches(repository(bare), dict.fromkeys(wanted, tip)) == wanted


def test_a_shallow_clone_never_says_deleted(tmp_path: Path, root: Path) -> None:
    work(root)
    squash_merge(root)
    for _ in range(3):
        commit(root, "f.txt", os.urandom(4).hex())
    copy = clone(root, tmp_path / "c", "--depth=1", "--no-single-branch", "--no-local")
    assert git(copy, "rev-list", "--count", "main") == "1"
    tip = git(copy, "rev-parse", "origin/topic")
    assert fate(copy, "topic", tip) == "open"
    git(copy, "update-ref", "-d", "refs/remotes/origin/topic")
    assert fate(copy, "topic", tip) == "open"


def test_a_clone_without_content_fetches_nothing_and_still_knows_ancestry(tmp_path: Path, root: Path) -> None:
    work(root)
    work(root, "squashed")
    merge_commit(root)
    git(root, "merge", "-q", "--squash", "squashed")
    git(root, "commit", "-q", "-m", "squashed")
    git(root, "config", "uploadpack.allowFilter", "true")
    copy = tmp_path / "c"
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", root.as_uri(), str(copy))
    before = sorted((copy / ".git" / "objects" / "pack").iterdir())
    assert classify_branches(repository(copy), {"topic": None, "squashed": None}) == {
        "topic": "merged",
        "squashed": "open",
    }
    assert sorted((copy / ".git" / "objects" / "pack").iterdir()) == before


def test_a_submodule_is_a_repository_of_its_own(tmp_path: Path, root: Path) -> None:
    above = start(tmp_path / "above")
    git(above, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(root), "sub")
    git(above, "commit", "-q", "-m", "with submodule")
    tip = work(above / "sub")
    assert fate(above / "sub", "topic", tip) == "open"
    git(above / "sub", "merge", "-q", "--no-ff", "--no-edit", "topic")
    assert fate(above / "sub", "topic", tip) == "merged"
    assert fate(above, "topic", tip) == "open"


def test_a_moved_submodule_is_a_change_like_any_other(tmp_path: Path, root: Path) -> None:
    above = start(tmp_path / "above")
    git(above, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(root), "sub")
    git(above, "commit", "-q", "-m", "with submodule")
    git(above, "switch", "-q", "-c", "topic")
    commit(above / "sub")
    git(above, "commit", "-q", "-a", "-m", "moved")
    git(above, "switch", "-q", "main")
    commit(above, "other.txt")
    assert fate(above, "topic") == "open"
    git(above, "cherry-pick", "topic")
    assert fate(above, "topic") == "merged"


@pytest.mark.parametrize("options", [("--object-format=sha256",), ("--ref-format=reftable",)], ids=lambda o: o[0])
def test_other_formats_of_repositories(tmp_path: Path, options: tuple[str, ...]) -> None:
    try:
        root = start(tmp_path / "r", *options)
    except subprocess.CalledProcessError:
        pytest.skip("this git does not know the format")
    before = refs_watermark(repository(root))
    tips: dict[str, str | None] = {name: work(root, name) for name in ("topic", "lost", "open", "squashed")}
    assert refs_watermark(repository(root)) != before
    merge_commit(root)
    git(root, "merge", "-q", "--squash", "squashed")
    git(root, "commit", "-q", "-m", "squashed")
    git(root, "branch", "fresh")
    git(root, "branch", "-m", "open", "renamed")
    git(root, "branch", "-q", "-D", "lost")
    wanted = {"topic": "merged", "lost": "deleted", "renamed": "open", "squashed": "merged", "fresh": "open"}
    assert classify_branches(repository(root), {name: tips.get(name) for name in wanted}) == wanted
    assert fate(root, "lost") == "deleted"
    assert former_name(repository(root), "renamed") == "open"


def test_logs_that_only_git_can_read(root: Path) -> None:
    # As in the reftable format, where no log is a file.
    (root / ".git" / "reftable").mkdir()
    git(root, "branch", "fresh")
    git(root, "switch", "-q", "-c", "tried")
    git(root, "switch", "-q", "main")
    git(root, "branch", "-q", "-d", "tried")
    for name in ("lost", "topic"):
        work(root, name)
    git(root, "branch", "-q", "-D", "lost")
    fast_forward(root)
    git(root, "branch", "-m", "topic", "renamed")
    wanted = {"fresh": "open", "tried": "deleted", "lost": "deleted", "renamed": "merged", "topic": "merged"}
    assert classify_branches(repository(root), dict.fromkeys(wanted)) == wanted
    assert former_name(repository(root), "renamed") == "topic"


def test_without_logs_a_merge_commit_is_still_seen(root: Path) -> None:
    work(root)
    git(root, "branch", "fresh")
    merge_commit(root)
    shutil.rmtree(root / ".git" / "logs")
    assert classify_branches(repository(root), {"topic": None, "fresh": None}) == {"topic": "merged", "fresh": "open"}


@pytest.mark.parametrize("command", ["for-each-ref", "rev-list", "cat-file", "diff-tree", "config"])
def test_a_git_that_fails_half_way_deletes_nothing(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    tip = work(root)
    squash_merge(root)
    lost = work(root, "lost")
    git(root, "branch", "-q", "-D", "topic", "lost")
    asked = repository(root)
    assert classify_branches(asked, {"topic": tip, "lost": lost}) == {"topic": "merged", "lost": "deleted"}
    real = shutil.which("git")
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nfor a; do [ "$a" = {command} ] && exit 128; done\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
    assert classify_branches(asked, {"topic": tip, "lost": lost}) == {"topic": "open", "lost": "open"}


def test_a_commit_without_its_ancestors_spoils_nothing(root: Path) -> None:
    tip = work(root)
    merged = work(root, "merged")
    git(root, "merge", "-q", "--no-ff", "--no-edit", "merged")
    parent = git(root, "rev-parse", "topic~1")
    git(root, "branch", "-q", "-D", "topic")
    (root / ".git" / "objects" / parent[:2] / parent[2:]).unlink()
    assert classify_branches(repository(root), {"topic": tip, "merged": merged}) == {
        "topic": "open",
        "merged": "merged",
    }


def test_nothing_is_written(root: Path) -> None:
    tip = work(root)
    squash_merge(root)
    before = {path: path.stat().st_mtime_ns for path in (root / ".git").rglob("*")}
    classify_branches(repository(root), {"topic": tip, "gone": NOWHERE})
    refs_watermark(repository(root))
    assert {path: path.stat().st_mtime_ns for path in (root / ".git").rglob("*")} == before


# Renames


def test_the_former_name_is_that_of_the_last_rename(root: Path) -> None:
    git(root, "branch", "a/one")
    assert former_name(repository(root), "a/one") is None
    git(root, "branch", "-m", "a/one", "zwei")
    assert former_name(repository(root), "zwei") == "a/one"
    git(root, "branch", "-m", "zwei", "größe/drei")
    assert former_name(repository(root), "größe/drei") == "zwei"
    # A copy was not renamed, and no branch has no former name.
    git(root, "branch", "-c", "größe/drei", "copy")
    for name in ("zwei", "copy", "", "gone", "../../../HEAD", "a\0b"):
        assert former_name(repository(root), name) is None


def test_a_rename_is_found_from_every_worktree(tmp_path: Path, root: Path) -> None:
    git(root, "worktree", "add", "-q", "-b", "old", str(tmp_path / "w"))
    git(tmp_path / "w", "branch", "-m", "new")
    assert former_name(repository(tmp_path / "w"), "new") == "old"


# The watermark


def settle(root: Path) -> None:
    """Move the times of all references into the past, as if nothing had happened for a while."""
    for place in (root / ".git" / "refs", *(root / ".git" / "refs").rglob("*"), root / ".git" / "packed-refs"):
        if place.exists():
            os.utime(place, ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))


CHANGES: dict[str, list[str]] = {
    "commit": ["commit", "-q", "--allow-empty", "-m", "x"],
    "switch": ["switch", "-q", "side"],
    "detach": ["checkout", "-q", "--detach"],
    "new branch": ["branch", "new"],
    "new nested branch": ["branch", "new/deep/er"],
    "nested branch moved": ["update-ref", "refs/heads/a/b/c", "HEAD~1"],
    "nested branch deleted": ["branch", "-D", "a/b/c"],
    "tracked branch moved": ["update-ref", "refs/remotes/origin/x/y", "HEAD~1"],
    "tracked branch deleted": ["update-ref", "-d", "refs/remotes/origin/x/y"],
    "renamed": ["branch", "-m", "side", "other"],
    "packed": ["pack-refs", "--all"],
    "packed branch deleted": ["branch", "-D", "packed"],
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_watermark_differs_after_every_change(root: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(root)
    git(root, "branch", "packed")
    git(root, "pack-refs", "--all")
    for name in ("refs/heads/side", "refs/heads/a/b/c", "refs/remotes/origin/x/y"):
        git(root, "update-ref", name, "HEAD")
    settle(root)
    asked = repository(root)
    before = refs_watermark(asked)
    assert refs_watermark(asked) == before
    git(root, *CHANGES[change])
    assert refs_watermark(asked) != before
    # And not only for being fresh: it still differs an hour later, and is steady then.
    later = time.time_ns() + 3_600_000_000_000
    monkeypatch.setattr(merges, "time", SimpleNamespace(time_ns=lambda: later))
    assert refs_watermark(asked) == refs_watermark(asked) != before


@pytest.mark.parametrize("name", ["refs/heads/flat", "refs/heads/a/b/c", "refs/remotes/origin/x/y"])
def test_writing_a_branch_in_place_changes_the_time_of_its_folder(root: Path, name: str) -> None:
    """What the watermark rests on."""
    commit(root)
    git(root, "update-ref", name, "HEAD")
    settle(root)
    folder = (root / ".git" / name).parent
    before = folder.stat().st_mtime_ns
    git(root, "update-ref", name, "HEAD~1")
    assert folder.stat().st_mtime_ns != before


def test_other_work_leaves_the_watermark_alone(root: Path) -> None:
    asked = repository(root)
    # Right after a change it is not trusted.
    os.utime(root / ".git" / "refs" / "heads")
    assert refs_watermark(asked) != refs_watermark(asked)
    settle(root)
    before = refs_watermark(asked)
    (root / "f.txt").write_text("x")
    git(root, "add", "f.txt")
    git(root, "status")
    git(root, "stash", "-q")
    git(root, "tag", "t")
    settle(root)
    assert refs_watermark(asked) == before


def test_with_too_many_folders_the_watermark_always_differs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        git(root, "branch", f"folder{number}/x")
    settle(root)
    asked = repository(root)
    assert refs_watermark(asked) == refs_watermark(asked)
    monkeypatch.setattr(merges, "MOST_FOLDERS", 4)
    assert refs_watermark(asked) != refs_watermark(asked)


def test_the_head_of_another_worktree_is_part_of_the_watermark(tmp_path: Path, root: Path) -> None:
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "w"))
    git(root, "branch", "next")
    settle(root)
    asked = repository(root)
    before = refs_watermark(asked)
    git(tmp_path / "w", "symbolic-ref", "HEAD", "refs/heads/unborn")
    settle(root)
    assert refs_watermark(asked) != before
