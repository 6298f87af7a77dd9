"""Which project a folder belongs to: addresses in all their spellings, and real repositories."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.errors import InvalidInput
from cortex_py.parts.context.project import ProjectIdentity, identify, matches_moved
from cortex_py.worktree.remotes import normalise_remote

from helpers import git


def make(folder: Path, *, remote: str | None = None, message: str = "first") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# Addresses


@each(
    "url",
    [
        "https://github.com/Org/Repo.git", "https://github.com/Org/Repo", "https://github.com/Org/Repo/",
        "https://github.com/Org/Repo.git/", "https://GitHub.com:443//Org/Repo", "https://user@github.com/Org/Repo.git",
        "https://user:s3cret@github.com/Org/Repo.git",
        "https://x-access-token:ghs_abc@github.com/Org/Repo?token=ghs_abc#x", "http://github.com/Org/Repo",
        "HTTPS://github.com/Org/Repo", "ssh://git@github.com/Org/Repo.git", "ssh://git@github.com:2222/Org/Repo.git",
        "git+ssh://git@github.com/Org/Repo.git", "git://github.com/Org/Repo.git", "git@github.com:Org/Repo.git",
        "git@GITHUB.com:/Org/Repo", "github.com:Org/Repo.git", "  git@github.com:Org/Repo.git\n",
        "https::https://user:s3cret@github.com/Org/Repo.git", "https://user:pass/with@slash/es@github.com/Org/Repo.git",
        "https://github.com/Org/%52epo.git",
    ],
)  # fmt: skip
def test_spellings_of_one_address_are_one(url: str) -> None:
    assert normalise_remote(url) == "github.com/Org/Repo"


@each(
    ("url", "normalised"),
    [
        ("/srv/git/repo.git", "/srv/git/repo"), ("/srv/git/repo/.git", "/srv/git/repo"),
        ("/srv//git/x/../repo/", "/srv/git/repo"), ("file:///srv/git/repo.git", "/srv/git/repo"),
        ("file://localhost/srv/git/repo", "/srv/git/repo"), ("file:///srv/my%20repo", "/srv/my repo"),
        ("/srv/odd:name", "/srv/odd:name"), ("../sibling.git", "../sibling"), ("C:\\code\\repo.git", "c:/code/repo"),
        ("file:///C:/code/repo", "c:/code/repo"), ("ssh://git@[::1]:22/repo.git", "[::1]/repo"),
        ("git@[::1]:repo.git", "[::1]/repo"), ("https://host/@scope/repo", "host/@scope/repo"),
        ("https://host/group/sub/repo.git", "host/group/sub/repo"), ("https://host", "host"), ("https://", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_other_addresses(url: str, normalised: str) -> None:
    assert normalise_remote(url) == normalised


WORDS = st.text(st.sampled_from("abcXYZ019-_"), min_size=1, max_size=8)
HOSTS = st.lists(st.from_regex(r"[a-z0-9]{2,6}", fullmatch=True), min_size=1, max_size=3).map(".".join)
PATHS = st.lists(WORDS, min_size=1, max_size=4).map("/".join)
FORMS = (
    "https://{host}/{path}", "https://{user}:{password}@{host}/{path}.git", "http://{host}:8080/{path}/",
    "ssh://{user}@{host}:2222/{path}.git", "git://{host}/{path}.git/", "{user}@{host}:{path}.git", "{host}:{path}",
)  # fmt: skip


@given(HOSTS, PATHS, WORDS, st.from_regex(r"[0-9a-f]{20}", fullmatch=True), st.sampled_from(FORMS), st.booleans())
def test_every_form_of_an_address_means_the_same(
    host: str, path: str, user: str, password: str, form: str, loud: bool
) -> None:
    url = form.format(host=host.upper() if loud else host, path=path, user=user, password=password)
    assert normalise_remote(url) == f"{host}/{path}"


@given(st.text(max_size=30))
def test_any_text_has_a_normal_form_without_credentials(text: str) -> None:
    normalise_remote(text)
    assert "s3cret-token" not in normalise_remote(f"https://user:s3cret-token@{text}")


# Folders


def test_a_folder_without_a_repository_is_known_by_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    known = identify(folder)
    assert known == ProjectIdentity(digest(str(folder)), folder, None, "notes")
    (folder / "a.txt").write_text("x")
    assert identify(folder / "a.txt") == known
    (tmp_path / "link").symlink_to(folder)
    assert identify(tmp_path / "link") == known
    git(folder, "init", "-q")
    assert identify(folder) == known


@pytest.mark.parametrize("name", ["gone", "gone/deeper", "nul\0", "~nobody-of-this-name/x"])
def test_a_path_that_does_not_exist_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"There is no folder|cannot be a path"):
        identify(Path(name) if name.startswith("~") else tmp_path / name)


def test_a_machine_without_git_knows_folders_by_their_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r", remote="https://example.org/org/repo.git")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert identify(root) == ProjectIdentity(digest(str(root)), root, None, "r")


# Repositories


def test_a_repository_is_known_by_its_remote_and_keeps_no_credentials(tmp_path: Path) -> None:
    root = make(tmp_path / "r", remote="https://user:s3cret@Example.org/org/repo.git")
    assert identify(root) == ProjectIdentity("84340d8ed8e8", root, "example.org/org/repo", "repo")


def test_clones_worktrees_and_sub_folders_share_one_id(tmp_path: Path) -> None:
    root = make(tmp_path / "r", remote="https://example.org/org/repo.git")
    other = make(tmp_path / "elsewhere" / "named-otherwise", remote="git@example.org:org/repo")
    nested = root / "a" / "b"
    nested.mkdir(parents=True)
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert identify(nested) == identify(root)
    assert identify(tmp_path / "side") == identify(root)
    assert identify(other).id == identify(root).id
    assert identify(other).root == other


def test_a_repository_without_a_remote_is_known_by_its_main_working_tree(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    nested = root / "a"
    nested.mkdir()
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    expected = ProjectIdentity(digest(str(root)), root, None, "r", git(root, "rev-parse", "HEAD"))
    assert identify(root) == expected
    assert identify(nested) == expected
    assert identify(tmp_path / "side") == expected


def test_repositories_without_a_remote_are_different_projects(tmp_path: Path) -> None:
    root = make(tmp_path / "r")
    shutil.copytree(root, tmp_path / "copy")
    assert identify(tmp_path / "copy").id != identify(root).id


def test_worktrees_of_a_bare_repository_belong_to_it(tmp_path: Path) -> None:
    make(tmp_path / "seed")
    git(tmp_path, "clone", "-q", "--bare", str(tmp_path / "seed"), str(tmp_path / "repo.git"))
    bare = tmp_path / "repo.git"
    git(bare, "remote", "remove", "origin")
    git(bare, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert identify(bare).name == "repo"
    assert identify(bare).root == bare
    assert identify(tmp_path / "side") == identify(bare)


def test_a_hidden_repository_keeps_its_name_and_a_bare_one_that_of_the_folder_around_it(tmp_path: Path) -> None:
    assert identify(make(tmp_path / ".dotfiles")).name == ".dotfiles"
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "app" / ".bare"))
    assert identify(tmp_path / "app" / ".bare").name == "app"


def test_a_clone_of_a_clone_belongs_to_the_first_remote(tmp_path: Path) -> None:
    first = make(tmp_path / "first", remote="https://example.org/org/repo.git")
    git(tmp_path, "clone", "-q", str(first), str(tmp_path / "second"))
    git(tmp_path, "clone", "-q", f"file://{tmp_path / 'second'}", str(tmp_path / "third"))
    for name in ("second", "third"):
        found = identify(tmp_path / name)
        assert found == ProjectIdentity(identify(first).id, tmp_path / name, "example.org/org/repo", "repo")


def test_a_clone_of_a_local_repository_shares_its_id_also_when_that_is_gone(tmp_path: Path) -> None:
    make(tmp_path / "seed")
    git(tmp_path, "clone", "-q", "--bare", str(tmp_path / "seed"), str(tmp_path / "hub.git"))
    git(tmp_path / "hub.git", "remote", "remove", "origin")
    git(tmp_path, "clone", "-q", str(tmp_path / "hub.git"), str(tmp_path / "copy"))
    hub, copy = identify(tmp_path / "hub.git"), identify(tmp_path / "copy")
    assert copy == ProjectIdentity(hub.id, tmp_path / "copy", str(tmp_path / "hub"), "hub")
    git(tmp_path / "copy", "remote", "set-url", "origin", "../hub")
    assert identify(tmp_path / "copy") == copy
    shutil.rmtree(tmp_path / "hub.git")
    assert identify(tmp_path / "copy") == copy


def test_a_remote_path_inside_another_repository_is_not_taken_for_it(tmp_path: Path) -> None:
    outer = make(tmp_path / "outer", remote="https://example.org/outer.git")
    (outer / "plain").mkdir()
    root = make(tmp_path / "r", remote=str(outer / "plain"))
    assert identify(root).remote == str(outer / "plain")


def test_repositories_that_name_each_other_do_not_go_round_for_ever(tmp_path: Path) -> None:
    one = make(tmp_path / "one", remote=str(tmp_path / "two"))
    make(tmp_path / "two", remote=str(tmp_path / "one"))
    itself = make(tmp_path / "three", remote=str(tmp_path / "three"))
    assert identify(one) == identify(one)
    assert identify(itself).remote == str(itself)


def test_a_remote_without_host_or_path_counts_as_none(tmp_path: Path) -> None:
    root = make(tmp_path / "r", remote="https://")
    assert identify(root).remote is None


# Moves


def test_a_moved_repository_is_recognised(tmp_path: Path) -> None:
    before = identify(make(tmp_path / "old" / "app"))
    stored = {"stored_root": str(before.root), "stored_root_commit": before.root_commit}
    assert not matches_moved(before, **stored)
    (tmp_path / "new").mkdir()
    (tmp_path / "old" / "app").rename(tmp_path / "new" / "app")
    after = identify(tmp_path / "new" / "app")
    assert after.id != before.id
    assert matches_moved(after, **stored)


def test_a_moved_plain_folder_is_recognised_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "notes"
    folder.mkdir(parents=True)
    gone = str(tmp_path / "old" / "notes")
    assert matches_moved(identify(folder), stored_root=gone, stored_root_commit=None)
    assert not matches_moved(identify(folder), stored_root=gone + "-2", stored_root_commit=None)


def test_a_copy_another_history_or_a_remote_is_no_move(tmp_path: Path) -> None:
    original = identify(make(tmp_path / "a" / "app"))
    shutil.copytree(original.root, tmp_path / "b" / "app")
    copy = identify(tmp_path / "b" / "app")
    commit = original.root_commit
    assert not matches_moved(copy, stored_root=str(original.root), stored_root_commit=commit)
    gone = str(tmp_path / "gone" / "app")
    assert matches_moved(copy, stored_root=gone, stored_root_commit=commit)
    assert not matches_moved(copy, stored_root=gone, stored_root_commit=None)
    unrelated = identify(make(tmp_path / "c" / "app", message="another"))
    assert not matches_moved(unrelated, stored_root=gone, stored_root_commit=commit)
    remote = identify(make(tmp_path / "d" / "app", remote="https://example.org/app"))
    assert not matches_moved(remote, stored_root=gone, stored_root_commit=None)
