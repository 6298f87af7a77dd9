"""A folder that names a project gets its memories if the project knows it, or if it holds the history."""

from __future__ import annotations

import shutil
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.parts.hooks.cold import answer_cold
from cortex_py.parts.hooks.keeper import TurnKeeper
from cortex_py.worktree.git.repository import Repository
from inside import store_of

from helpers import FakeClock, git
from stub_backend import StubBackend

REMOTE = "git@example.org:team/private.git"
SECRET = "The event store uses PostgreSQL with JSONB columns for its payloads"
ASKED = "Does the event store use PostgreSQL with JSONB columns?"


def _opened(home: Path, folder: Path, *, join: bool = False) -> Cortex:
    return Cortex.open(home, project=folder, backend=StubBackend(), join=join)


def _commit(folder: Path, message: str = "first") -> None:
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def _repository(folder: Path, remote: str | None = REMOTE) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


@pytest.fixture
def private(tmp_path: Path) -> Path:
    folder = _repository(tmp_path / "work" / "private")
    (folder / "inner").mkdir()
    for message in ("first", "second", "third"):
        _commit(folder, message)
    return folder


@pytest.fixture
def project_id(home: Path, private: Path) -> str:
    with _opened(home, private) as cortex:
        cortex.memories.capture(SECRET, namespace="decisions", tags=["pin"])
        return cortex.project.id


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a stranger's folder is unpacked."""
    (tmp_path / "downloads").mkdir()
    return tmp_path / "downloads" / "theirs"


def _archived(folder: Path) -> None:
    """Pack and unpack a folder, as it comes from a stranger."""
    archive = folder.with_suffix(".tar")
    with tarfile.open(archive, "w") as file:
        file.add(folder, folder.name)
    shutil.rmtree(folder)
    with tarfile.open(archive) as file:
        file.extractall(folder.parent, filter="fully_trusted")


def _same_remote(private: Path, place: Path) -> None:
    _repository(place)
    _commit(place, "theirs")


def _empty(private: Path, place: Path) -> None:
    _repository(place)


def _pointer(private: Path, place: Path) -> None:
    place.mkdir()
    (place / ".git").write_text(f"gitdir: {private / '.git'}\n")


def _link(private: Path, place: Path) -> None:
    place.mkdir()
    (place / ".git").symlink_to(private / ".git")


def _common_folder(private: Path, place: Path) -> None:
    _repository(place)
    (place / ".git" / "commondir").write_text(str(private / ".git"))


def _someone_elses_worktree(private: Path, place: Path) -> None:
    git(private, "worktree", "add", "-q", "-b", "side", str(private.parent / "side"))
    place.mkdir()
    shutil.copy(private.parent / "side" / ".git", place / ".git")


def _inside_a_git_folder(private: Path, place: Path) -> None:
    """A folder that looks like the git folder of a linked working tree."""
    place.mkdir()
    (place / "HEAD").write_text("ref: refs/heads/main\n")
    (place / "commondir").write_text(str(private / ".git"))
    (place / "gitdir").write_text(str(private / ".git"))


def _rewriting(private: Path, place: Path) -> None:
    _repository(place, "x:private.git")
    git(place, "config", "url.git@example.org:team/.insteadOf", "x:")
    _commit(place)


def _including(private: Path, place: Path) -> None:
    _repository(place, None)
    git(place, "config", "include.path", str(private / ".git" / "config"))
    _commit(place)


def _work_tree(private: Path, place: Path) -> None:
    _repository(place)
    git(place, "config", "core.worktree", str(private))


def _local_remote(private: Path, place: Path) -> None:
    _repository(place, str(private))
    _commit(place, "theirs")


def _alternates(private: Path, place: Path) -> None:
    _repository(place)
    (place / ".git" / "objects" / "info" / "alternates").write_text(f"{private / '.git' / 'objects'}\n")
    head = git(private, "rev-parse", "HEAD")
    (place / ".git" / "refs" / "heads" / "main").write_text(f"{head}\n")


def _linked_objects(private: Path, place: Path) -> None:
    _repository(place)
    shutil.rmtree(place / ".git" / "objects")
    (place / ".git" / "objects").symlink_to(private / ".git" / "objects")


def _linked_object(private: Path, place: Path) -> None:
    _repository(place)
    head = git(private, "rev-parse", "HEAD")
    for name in (private / ".git" / "objects").glob("??"):
        (place / ".git" / "objects" / name.name).symlink_to(name)
    (place / ".git" / "refs" / "heads" / "main").write_text(f"{head}\n")


def _forged_reference(private: Path, place: Path) -> None:
    _repository(place)
    (place / ".git" / "refs" / "heads" / "main").write_text(git(private, "rev-parse", "HEAD") + "\n")


def _forged_object(private: Path, place: Path) -> None:
    _same_remote(private, place)
    own = git(place, "rev-parse", "HEAD")
    text = zlib.decompress((place / ".git" / "objects" / own[:2] / own[2:]).read_bytes())
    for known in git(private, "rev-list", "HEAD").split():
        forged = place / ".git" / "objects" / known[:2] / known[2:]
        forged.parent.mkdir(exist_ok=True)
        forged.write_bytes(zlib.compress(text))
        (place / ".git" / "refs" / "heads" / "main").write_text(f"{known}\n")


def _worktree_that_names_theirs(private: Path, place: Path) -> Path:
    """A git folder whose working tree, by its own word, is the private folder."""
    git(place.parent, "init", "-q", "--bare", str(place))
    (place / "config").unlink()
    (place / "config").symlink_to(private / ".git" / "config")
    inner = place / "worktrees" / "app"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / "commondir").write_text("../..\n")
    (inner / "gitdir").write_text(f"{private / '.git'}\n")
    return inner


STRANGERS: list[Callable[[Path, Path], Path | None]] = [
    *(_same_remote, _empty, _pointer, _link, _common_folder, _someone_elses_worktree, _inside_a_git_folder),
    *(_rewriting, _including, _work_tree, _local_remote, _alternates, _linked_objects, _linked_object),
    *(_forged_reference, _forged_object, _worktree_that_names_theirs),
]


def _given(home: Path, cortex: Cortex, folder: Path) -> str:
    """All that hooks give in a folder, with a warm process and without one."""
    event = {"client": "codex", "kind": "prompt", "session": "s", "cwd": str(folder), "text": ASKED}
    hooks = cortex.hooks
    texts = [
        hooks.session_start(folder).text,
        hooks.prompt(ASKED, folder).text,
        hooks.tool_used(folder, command="run", output=ASKED, failed=True).text,
        answer_cold(home, event)[0],
    ]
    return "".join(texts)


@pytest.mark.parametrize("plant", STRANGERS)
def test_a_strangers_folder_neither_gets_nor_keeps_memories_of_the_project(
    home: Path, private: Path, project_id: str, place: Path, plant: Callable[[Path, Path], Path | None]
) -> None:
    inner = plant(private, place)
    _archived(place)
    place = inner or place
    with _opened(home, private) as cortex:
        assert SECRET in _given(home, cortex, private)
        assert SECRET not in _given(home, cortex, place)
    with _opened(home, place) as cortex:
        assert cortex.project.id != project_id
        assert cortex.memories.listed("kind:note", 10) == []
        cortex.memories.capture("Deploys run without a review", namespace="decisions")
        assert SECRET not in _given(home, cortex, place)
        assert cortex.contexts.project_at(place).id == cortex.project.id
        own = cortex.project.id
    with _opened(home, private) as cortex:
        assert cortex.project.id == project_id
        assert [one.content for one in cortex.memories.listed("kind:note", 10)] == [SECRET]
    # The folder keeps its own project.
    with _opened(home, place) as cortex:
        assert cortex.project.id == own
        assert len(cortex.memories.listed("kind:note", 10)) == 1


@pytest.mark.parametrize("plant", [_pointer, _link, _common_folder, _someone_elses_worktree, _inside_a_git_folder])
def test_a_folder_with_the_git_files_of_another_is_not_that_ones_project_before_it_is_stored(
    home: Path, private: Path, place: Path, plant: Callable[[Path, Path], None]
) -> None:
    plant(private, place)
    with _opened(home, place) as cortex:
        theirs = cortex.project.id
    with _opened(home, private) as cortex:
        assert cortex.project.id != theirs
        assert not cortex.contexts.apart


@pytest.mark.parametrize("named", ["a\0b/.git", "circle/.git", "\n"])
def test_a_git_folder_that_names_no_working_tree_is_asked_itself(place: Path, named: str) -> None:
    inner = _worktree_that_names_theirs(place, place)
    (place / "config").unlink()
    (place / "config").write_text("[core]\n\tbare = false\n")
    (inner / "circle").symlink_to("circle")
    (inner / "gitdir").write_text(named)
    found = Repository.discover(inner)
    assert found is not None
    assert found.root == inner
    assert not found.belongs_to(inner.parent)


def test_turns_of_a_strangers_folder_are_not_staged_in_the_project(
    home: Path, private: Path, project_id: str, place: Path
) -> None:
    _same_remote(private, place)
    said = "We decided to use Redis for the queue, because it keeps the order of the jobs."
    with _opened(home, private) as cortex:
        keeper = TurnKeeper(cortex.settings)
        for folder in (private, place):
            event = {"id": str(folder), "client": "codex", "session": "s", "turn": "1", "kind": "prompt"}
            keeper.take({**event, "cwd": str(folder), "text": said if folder == place else f"{said} Since May."})
        staged = cortex.hooks.read_turns().staged
        assert {one.project_id == project_id for one in staged} == {True, False}
        assert cortex.project.id == project_id
        assert len(cortex.review.staged()) == 1


def _cloned(private: Path, place: Path, *options: str) -> Path:
    git(private.parent, "clone", "-q", *options, f"file://{private}", str(place))
    git(place, "remote", "set-url", "origin", "https://example.org/team/private")
    return place


def _renamed_remote(private: Path, place: Path) -> Path:
    git(_cloned(private, place), "remote", "rename", "origin", "upstream")
    return place


def _clone_of_the_folder(private: Path, place: Path) -> Path:
    git(private.parent, "clone", "-q", str(private), str(place))
    return place


def _worktree(private: Path, place: Path) -> Path:
    git(private, "worktree", "add", "-q", "-b", "side", str(place))
    return place


def _worktree_of_a_clone(private: Path, place: Path) -> Path:
    clone = _cloned(private, place.with_name("clone"))
    git(clone, "worktree", "add", "-q", "-b", "side", str(place))
    return place


def _submodule(private: Path, place: Path) -> Path:
    outer = _repository(place, "https://example.org/team/outer.git")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", f"file://{private}", "inner")
    git(outer / "inner", "remote", "set-url", "origin", REMOTE)
    return outer / "inner"


def _moved(private: Path, place: Path) -> Path:
    private.rename(place)
    return place


def _sub_folder(private: Path, place: Path) -> Path:
    return private / "inner"


def _linked_folder(private: Path, place: Path) -> Path:
    place.symlink_to(private)
    return place


OWN = [
    *(_cloned, lambda *folders: _cloned(*folders, "--depth=1"), lambda *folders: _cloned(*folders, "--bare")),
    *(_renamed_remote, _clone_of_the_folder, _worktree, _worktree_of_a_clone, _submodule, _moved, _sub_folder),
    _linked_folder,
]


@pytest.mark.parametrize("make", OWN)
def test_a_folder_with_the_projects_history_joins_at_once(
    home: Path, private: Path, project_id: str, place: Path, make: Callable[[Path, Path], Path]
) -> None:
    folder = make(private, place)
    with _opened(home, folder) as cortex:
        assert cortex.project.id == project_id
        assert not cortex.contexts.apart
        assert SECRET in cortex.hooks.session_start(folder).text
    # The folder is known from now on, whatever its history.
    git(folder, "symbolic-ref", "HEAD", "refs/heads/another")
    with _opened(home, folder) as cortex:
        assert cortex.project.id == project_id


def test_newer_commits_are_learnt_with_time(home: Path, private: Path, place: Path) -> None:
    clock = FakeClock()

    def opened(folder: Path) -> Cortex:
        return Cortex.open(home, project=folder, backend=StubBackend(), clock=clock)

    with opened(private) as cortex:
        known = cortex.project.id
    _commit(private, "fourth")
    clock.advance(hours=25)
    with opened(private):
        pass
    clone = _cloned(private, place, "--depth=1")
    private.rename(private.with_name("gone"))
    with opened(clone) as cortex:
        assert cortex.project.id == known


def test_a_clone_without_shared_commits_waits_for_a_person(
    home: Path, private: Path, project_id: str, place: Path
) -> None:
    clone = _cloned(private, place, "--depth=1")
    _commit(clone, "theirs")
    git(clone, "checkout", "-q", "--orphan", "fresh")
    git(clone, "branch", "-q", "-D", "main")
    _archived(clone)
    shutil.rmtree(clone / ".git" / "objects")
    (clone / ".git" / "objects").mkdir()
    with _opened(home, clone) as cortex:
        assert cortex.project.id != project_id
        assert "cortex init --join" in cortex.contexts.apart
        assert "cortex init --join" in cortex.contexts.initialize(clone, "none").apart
        cortex.memories.capture("kept meanwhile")
        apart = cortex.project.id
    with _opened(home, clone, join=True) as cortex:
        assert cortex.project.id == project_id
        assert not cortex.contexts.apart
        assert SECRET in _given(home, cortex, clone)
        assert [one.root for one in cortex.contexts.projects() if one.id == apart] == [None]
    for folder in (clone, private):
        with _opened(home, folder) as cortex:
            assert cortex.project.id == project_id


def test_a_plain_folder_of_the_same_name_does_not_inherit_what_was_kept_for_one_that_is_gone(
    home: Path, tmp_path: Path
) -> None:
    before, after = tmp_path / "old" / "notes", tmp_path / "new" / "notes"
    for folder in (before, after):
        folder.mkdir(parents=True)
    with _opened(home, before) as cortex:
        cortex.memories.capture(SECRET)
        known = cortex.project.id
    before.rmdir()
    with _opened(home, after) as cortex:
        apart = cortex.project.id
        assert apart != known
        assert "cortex init --join" in cortex.contexts.apart
    # Also once the other folder is back, as on a drive that was away.
    before.mkdir()
    with _opened(home, after) as cortex:
        assert cortex.project.id == apart
    before.rmdir()
    with _opened(home, after, join=True) as cortex:
        assert cortex.project.id == known
    with _opened(home, after) as cortex:
        assert cortex.project.id == known


def test_a_git_folder_kept_elsewhere_goes_on_in_the_project_that_has_it(home: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "kept.git"), str(tree))
    git(tree, "remote", "add", "origin", REMOTE)
    with _opened(home, tree) as cortex:
        own = cortex.project.id
        assert cortex.project.root == str(tree)
    with _opened(home, tree) as cortex:
        assert cortex.project.id == own


@pytest.mark.sqlite_only
def test_a_project_stored_before_folders_were_remembered_knows_its_own(
    home: Path, private: Path, project_id: str, place: Path
) -> None:
    def forget() -> None:
        with _opened(home, private.parent) as cortex, store_of(cortex).database.write() as session:
            session.run("DELETE FROM setting WHERE key = ?", (f"roots:{project_id}",))

    forget()
    # The folder that it was seen in last tells its history.
    clone = _cloned(private, place)
    with _opened(home, clone) as cortex:
        assert cortex.project.id == project_id
    forget()
    with _opened(home, clone) as cortex:
        assert cortex.project.id == project_id
    with _opened(home, private) as cortex:
        assert cortex.project.id == project_id
