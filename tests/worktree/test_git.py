"""Facts about repositories, each asked of a real one."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from repositories import repository

from cortex_py.core.errors import CortexError
from cortex_py.worktree.git.repository import CheckedOut, Repository

from helpers import git


def make(folder: Path, *branches: str, first: str = "main") -> Path:
    """A repository with one commit on `first` and the further branches."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", first)
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    for branch in branches:
        git(folder, "branch", branch)
    return folder


def clone(source: Path, target: Path, *options: str) -> Path:
    git(source.parent, "clone", "-q", *options, str(source), str(target))
    return target


# Where it is


def test_every_path_in_a_repository_leads_to_its_working_tree(tmp_path: Path) -> None:
    root = make(tmp_path / "größe 数")
    nested = root / "a" / "b"
    nested.mkdir(parents=True)
    (root / "f.txt").write_text("x")
    (tmp_path / "link").symlink_to(root)
    found = repository(root)
    assert found == Repository(root, root / ".git", root / ".git", is_bare=False)
    assert not found.is_linked
    for path in (nested, root / "f.txt", tmp_path / "link", root / ".git" / "refs"):
        assert repository(path) == found


def test_a_worktree_has_its_own_root_and_shares_the_common_folder(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    found = repository(tmp_path / "side")
    assert found.root == repository(root / ".git" / "worktrees" / "side").root == tmp_path / "side"
    assert found.common_dir == root / ".git"
    assert found.is_linked
    assert found.head() == CheckedOut("side", git(root, "rev-parse", "main"))


def test_a_bare_repository_is_its_own_root(tmp_path: Path) -> None:
    bare = clone(make(tmp_path / "r"), tmp_path / "b.git", "--bare")
    found = repository(bare)
    assert found == Repository(bare, bare, bare, is_bare=True)
    assert found.head().branch == "main"
    assert found.branches() == {"main"}


def test_a_worktree_of_a_bare_repository_is_not_bare(tmp_path: Path) -> None:
    bare = clone(make(tmp_path / "r", "side"), tmp_path / "b.git", "--bare")
    git(bare, "worktree", "add", "-q", str(tmp_path / "w"), "side")
    found = repository(tmp_path / "w")
    assert (found.root, found.common_dir, found.is_bare) == (tmp_path / "w", bare, False)
    assert found.head().branch == "side"
    assert found.default_branch() == "main"


def test_no_repository_no_folder_no_git_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Repository.discover(tmp_path) is None
    assert Repository.discover(tmp_path / "gone" / "deeper") is None
    root = make(tmp_path / "r")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Repository.discover(root) is None


def test_a_hooks_environment_does_not_redirect_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = make(tmp_path / "here", first="one"), make(tmp_path / "there", first="two")
    monkeypatch.setenv("GIT_DIR", str(there / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(there))
    monkeypatch.setenv("GIT_INDEX_FILE", str(there / ".git" / "index"))
    assert repository(here).root == here
    assert repository(here).branches() == {"one"}


# What is checked out


def test_the_head_is_a_branch_and_its_commit(tmp_path: Path) -> None:
    root = make(tmp_path / "r", "main-2", "x/main")
    first = git(root, "rev-parse", "HEAD")
    assert repository(root).head() == CheckedOut("main", first)
    git(root, "commit", "-q", "--allow-empty", "-m", "second")
    git(root, "pack-refs", "--all")
    assert not (root / ".git" / "refs" / "heads" / "main").exists()
    second = git(root, "rev-parse", "HEAD")
    assert repository(root).head() == CheckedOut("main", second)
    assert repository(root).root_commit() == first
    git(root, "checkout", "-q", "--detach")
    assert repository(root).head() == CheckedOut(None, second)
    assert repository(root).branches() == {"main", "main-2", "x/main"}
    assert repository(root).stale(["main", "main-2", "gone"]) == ("gone",)
    assert repository(root).stale([]) == ()


def test_an_unborn_branch_has_a_name_and_lives(tmp_path: Path) -> None:
    root = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "début", str(root))
    found = repository(root)
    assert found.head() == CheckedOut("début", None)
    assert found.branches() == {"début"}
    assert found.default_branch() == "début"
    assert found.root_commit() is None
    assert found.stale(["début", "main"]) == ("main",)


def test_a_head_that_stands_for_another_branch_or_is_a_link_is_resolved_by_git(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(root, "symbolic-ref", "HEAD", "refs/heads/alias")
    assert repository(root).head() == CheckedOut("main", git(root, "rev-parse", "main"))
    head = root / ".git" / "HEAD"
    head.unlink()
    head.symlink_to("refs/heads/main")
    assert repository(root).head() == CheckedOut("main", git(root, "rev-parse", "main"))


# Remotes


def test_the_remote_is_origin_else_the_first_by_name(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    assert repository(root).remote_url() is None
    git(root, "config", "remote.aaa.fetch", "+refs/heads/*:refs/remotes/aaa/*")
    assert repository(root).remote_url() is None
    addresses = {"zeta": "https://example.org/z.git", "alpha": "https://example.org/with space.git"}
    for name, address in (addresses | {"origin": "git@example.org:o.git"}).items():
        git(root, "remote", "add", name, address)
        assert repository(root).remote_url() == address


def test_only_the_user_may_have_addresses_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r")
    git(root, "remote", "add", "origin", "ex:org/repo.git")
    git(root, "config", "url.https://example.org/private/.insteadOf", "ex:org/")
    (tmp_path / "more").write_text('[url "https://example.org/private/"]\n\tinsteadOf = ex:org/\n')
    git(root, "config", "include.path", str(tmp_path / "more"))
    assert repository(root).remote_url() == "ex:org/repo.git"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "global"))
    (tmp_path / "global").write_text('[url "https://example.org/"]\n\tinsteadOf = ex:\n')
    assert repository(root).remote_url() == "https://example.org/org/repo.git"


def test_a_remote_in_an_included_file_is_not_the_repositorys_own(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    (tmp_path / "more").write_text('[remote "origin"]\n\turl = https://example.org/private.git\n')
    git(root, "config", "include.path", str(tmp_path / "more"))
    assert repository(root).remote_url() is None
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    git(root, "remote", "add", "own", "https://example.org/own.git")
    assert repository(tmp_path / "side").remote_url() == "https://example.org/own.git"


def test_commits_count_as_held_by_their_contents(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    commit = git(root, "rev-parse", "HEAD")
    assert repository(root).landmarks() == [commit]
    assert repository(root).held([commit, "0" * 40, "no commit", git(root, "rev-parse", "HEAD^{tree}")]) == [commit]
    forged = root / ".git" / "objects" / commit[:2] / commit[2:]
    text = zlib.decompress(forged.read_bytes()).replace(b"first", b"other")
    forged.chmod(0o644)
    forged.write_bytes(zlib.compress(text))
    assert git(root, "rev-list", "HEAD") == commit
    assert repository(root).held([commit]) == []


# Branches


def test_branches_on_the_remote_live_under_their_own_names(tmp_path: Path) -> None:
    source = make(tmp_path / "r", "feature/x", "feature/deep/y")
    copy = clone(source, tmp_path / "c")
    git(copy, "branch", "local/z")
    assert repository(copy).branches() == {"main", "feature/x", "feature/deep/y", "local/z"}


def test_branches_of_several_remotes_wherever_they_are_kept(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    for name, branch in (("origin", "feature/one"), ("team/upstream", "feature/two"), ("far", "feature/three")):
        git(root, "remote", "add", name, str(make(tmp_path / name, branch)))
    git(root, "config", "remote.far.fetch", "+refs/heads/*:refs/remotes/far/away/*")
    git(root, "fetch", "-q", "--all")
    # As a forgotten remote leaves it behind.
    git(root, "update-ref", "refs/remotes/gone/feature/x", "HEAD")
    assert repository(root).branches() == {"main", "feature/one", "feature/two", "feature/three", "feature/x"}


def test_a_branch_checked_out_beside_lives_even_unborn(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    git(tmp_path / "side", "checkout", "-q", "--orphan", "unborn/x")
    assert repository(root).branches() == {"main", "side", "unborn/x"}


def test_a_repository_that_stops_answering_is_an_error_not_an_empty_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path / "r")
    found = repository(root)
    monkeypatch.setenv("PATH", str(tmp_path))
    for ask in (found.branches, found.default_branch, lambda: found.stale(["main"]), found.remote_url):
        with pytest.raises(CortexError, match="gave no answer"):
            ask()
    assert found.head().branch == "main"


# The default branch


@pytest.mark.parametrize("options", [(), ("-o", "team/up")])
def test_the_default_branch_is_the_one_of_the_remote(tmp_path: Path, options: tuple[str, ...]) -> None:
    copy = clone(make(tmp_path / "r", "main", first="trunk"), tmp_path / "c", *options)
    second = clone(copy, tmp_path / "c2")
    git(copy, "checkout", "-q", "main")
    assert repository(copy).default_branch() == "trunk"
    assert (repository(second).default_branch(), repository(second).branches()) == ("trunk", {"trunk"})


@pytest.mark.parametrize(
    ("first", "others", "default"),
    [
        ("main", ["master", "x"], "main"), ("master", ["x"], "master"), ("x", ["master"], "master"),
        ("only", [], "only"), ("checked-out", ["x"], "checked-out"),
    ],
)  # fmt: skip
def test_without_a_remote_the_conventional_name_that_exists(
    tmp_path: Path, first: str, others: list[str], default: str
) -> None:
    assert repository(make(tmp_path / "r", *others, first=first)).default_branch() == default


def test_the_configured_initial_branch_comes_before_convention(tmp_path: Path) -> None:
    root = make(tmp_path / "r", "trunk")
    git(root, "config", "init.defaultBranch", "trunk")
    assert repository(root).default_branch() == "trunk"


def test_a_default_branch_renamed_here_is_followed_and_keeps_its_memories(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    git(root, "branch", "-m", "main", "dev")
    git(root, "branch", "-m", "dev", "trunk")
    git(root, "checkout", "-q", "-b", "feature/x")
    git(root, "checkout", "-q", "-b", "feature/old")
    git(root, "branch", "-m", "feature/old", "feature/new")
    found = repository(root)
    assert found.default_branch() == "trunk"
    assert found.stale(["trunk", "dev", "main", "feature/x", "feature/old", "gone"]) == ("feature/old", "gone")


def test_a_default_branch_renamed_on_the_remote_is_followed_and_keeps_its_memories(tmp_path: Path) -> None:
    source = make(tmp_path / "r", first="master")
    copy = clone(source, tmp_path / "c")
    git(source, "branch", "-m", "master", "main")
    git(copy, "fetch", "-q", "--prune")
    git(copy, "checkout", "-q", "main")
    git(copy, "branch", "-q", "-D", "master")
    found = repository(copy)
    assert found.default_branch() == "main"
    assert found.stale(["master", "main", "gone"]) == ("gone",)


def test_the_head_of_a_bare_repository_names_its_default(tmp_path: Path) -> None:
    bare = clone(make(tmp_path / "r", "main", first="trunk"), tmp_path / "b.git", "--bare")
    assert repository(bare).default_branch() == "trunk"
    git(bare, "symbolic-ref", "HEAD", "refs/heads/missing")
    assert repository(bare).default_branch() == "main"


# Stale


def test_stale_are_the_names_that_no_longer_live(tmp_path: Path) -> None:
    source = make(tmp_path / "r", "feature/remote-only", "feature/deleted")
    copy = clone(source, tmp_path / "c")
    git(copy, "worktree", "add", "-q", "-b", "in-worktree", str(tmp_path / "w"))
    git(source, "branch", "-D", "-q", "feature/deleted")
    git(copy, "fetch", "-q", "--prune")
    names = ["z-gone", "main", "feature/remote-only", "feature/deleted", "in-worktree", "feature", "", "z-gone"]
    assert repository(copy).stale(names) == ("feature", "feature/deleted", "z-gone")
