"""Files of the home: a folder for each tenant, for those who may read it, found where earlier versions had them."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import ProjectNotFound
from cortex_py.core.security.callers import Caller, acting_as
from cortex_py.core.security.tenant_files import TenantFiles
from cortex_py.parts.verify.index.project_index import index_name
from inside import sessions_of
from timing import MINUTE

from homes import opened

KINDS = ("memory", "backups", "evidence")
CLAIM = "`rounds` is a function in `engine.py`."


@pytest.fixture
def other(tmp_path: Path) -> Path:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "engine.py").write_text("def rounds() -> None: ...\n")
    return folder


def _fill(cortex: Cortex, project_id: str | None = None) -> str:
    """A file of every kind; the line of work."""
    contexts = cortex.contexts
    line = contexts.create_branch("rounding", project_id=project_id)
    contexts.append(line.id, "We round down", "user", project_id=project_id)
    cortex.backups.create("first", project_id=project_id)
    contexts.verify(CLAIM, project_id=project_id)
    return line.id


def _kept(home: Path, project_id: str) -> dict[str, Path]:
    """The folder of every kind that holds files of a project."""
    found = {}
    for kind in KINDS:
        places = [one for one in home.rglob(f"{kind}/{project_id}") if any(one.iterdir())]
        assert len(places) == 1, (kind, places)
        found[kind] = places[0]
    return found


def _works(cortex: Cortex, line: str, project_id: str | None = None) -> None:
    """Everything in the files is there: a person's edit of the branch file, the snapshot, the index."""
    contexts = cortex.contexts
    path = contexts.check_branch(line, project_id=project_id).path
    assert contexts.check_branch(line, project_id=project_id).verified
    path.write_text(path.read_text("utf-8").replace("We round down", "We round up"), "utf-8")
    assert contexts.sync(line, project_id=project_id).updated == 1
    snapshots = cortex.backups.snapshots(project_id=project_id)
    assert [one.description for one in snapshots if one.kind == "manual"] == ["first"]
    cortex.backups.restore(snapshots[-1].id, project_id=project_id)
    assert contexts.content(line, project_id=project_id)[0].content == "We round down"
    assert contexts.verify(CLAIM, project_id=project_id).findings[0].verdict == "supported"


def test_a_single_persons_home_has_the_documented_paths(home: Path, other: Path) -> None:
    with opened(home, other) as cortex:
        line = _fill(cortex)
        id = cortex.project.id
        assert cortex.contexts.check_branch(line).path == home / "memory" / id / f"{line}.md"
        assert [one.path.parent for one in cortex.backups.snapshots()] == [home / "backups" / id]
        assert (home / "evidence" / id / index_name(other.resolve())).is_file()
        assert not (home / "tenants").exists()
        _works(cortex, line)


def test_each_organisation_has_one_folder(home: Path, project: Path, tmp_path: Path) -> None:
    with opened(home, project, auth="tokens", project_roots=[tmp_path / "roots"]) as cortex:
        made = {}
        for org, user in (("acme", "ann"), ("../acme", "rob")):
            cortex.tenants.create(org)
            cortex.tenants.join(user, "admin", org=org)
            folder = tmp_path / "roots" / user
            folder.mkdir(parents=True)
            (folder / "engine.py").write_text("def rounds() -> None: ...\n")
            with acting_as(cortex.tenants.admitted(Caller(user, org=org))):
                id = cortex.contexts.initialize(folder).project.id
            with acting_as(cortex.tenants.admitted(Caller(user, org=org))):
                line = _fill(cortex, id)
                _works(cortex, line, id)
            made[org] = _kept(home, id)
        for kinds in made.values():
            assert len({path.parents[1] for path in kinds.values()}) == 1
            assert all(path.parents[2] == home / "tenants" for path in kinds.values())
        assert not set(made["acme"].values()) & set(made["../acme"].values())
        if os.name == "posix":
            for folder in (home / "tenants").rglob("*"):
                assert not folder.is_dir() or not folder.stat().st_mode & 0o077, folder


def test_files_follow_their_project_to_another_organisation(home: Path, project: Path, other: Path) -> None:
    with opened(home, project) as cortex, opened(home, other) as second:
        id = second.project.id
        line = _fill(second)
        # Another process knows where they were.
        assert cortex.contexts.check_branch(line, project_id=id).verified
        for org in ("acme", "rivals"):
            cortex.tenants.create(org)
            cortex.tenants.assign(id, org)
            kept = _kept(home, id)
            assert all(f"/tenants/{org}-" in str(path) for path in kept.values())
            assert second.contexts.check_branch(line).path.parent == kept["memory"]
        second.contexts.append(line, "And so on", "user")
        assert "And so on" in second.contexts.check_branch(line).path.read_text("utf-8")
        _kept(home, id)
    with opened(home, other) as second:
        _works(second, line)


def _old_layout(home: Path, id: str) -> None:
    """Put files where earlier versions had them: two kinds by project in the home, indexes all in one folder."""
    for kind, folder in _kept(home, id).items():
        if kind == "evidence":
            for file in folder.iterdir():
                file.rename(home / "evidence" / file.name)
            folder.rmdir()
        elif folder != home / kind / id:
            folder.rename(home / kind / id)
    shutil.rmtree(home / "tenants", ignore_errors=True)


@pytest.mark.parametrize("given", [False, True])
def test_a_home_of_an_earlier_version_is_put_in_order(home: Path, project: Path, other: Path, given: bool) -> None:
    with opened(home, other) as cortex:
        id = cortex.project.id
        line = _fill(cortex)
        if given:
            cortex.tenants.create("acme")
            cortex.tenants.assign(id, "acme")
    _old_layout(home, id)
    (home / "evidence" / f"{'0' * 24}.db").write_bytes(b"the index of a folder that is gone")
    before = (home / "evidence" / index_name(other.resolve())).stat().st_ino
    with opened(home, project):
        # Whoever opens the home, for whatever project.
        kept = _kept(home, id)
        assert ["tenants" in path.parts for path in kept.values()] == [given] * 3
        assert (kept["evidence"] / index_name(other.resolve())).stat().st_ino == before
        assert not [one for one in (home / "evidence").iterdir() if one.is_file()]
    with opened(home, other) as cortex:
        _works(cortex, line)


def _open_once(home: str, project: str, line: str, go: Any, out: Any) -> None:
    go.wait(MINUTE)
    with opened(Path(home), Path(project)) as cortex:
        check = cortex.contexts.check_branch(line)
        out.put((check.verified, len(cortex.backups.snapshots())))


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there are no forks here")
def test_several_processes_put_a_home_in_order_at_once(home: Path, other: Path) -> None:
    with opened(home, other) as cortex:
        id = cortex.project.id
        line = _fill(cortex)
        cortex.tenants.create("acme")
        cortex.tenants.assign(id, "acme")
    _old_layout(home, id)
    texts = {one.name: one.read_bytes() for one in home.rglob("*.md")}
    start = multiprocessing.get_context("spawn")
    go, out = start.Event(), start.Queue()
    processes = [start.Process(target=_open_once, args=(str(home), str(other), line, go, out)) for _ in range(3)]
    for process in processes:
        process.start()
    go.set()
    assert [out.get(timeout=60) for _ in processes] == [(True, 1)] * 3
    for process in processes:
        process.join()
    assert {one.name: one.read_bytes() for one in _kept(home, id)["memory"].glob("*.md")} == texts


def test_nothing_is_written_over(home: Path, project: Path, other: Path) -> None:
    with opened(home, other) as cortex:
        id = cortex.project.id
        line = _fill(cortex)
        cortex.tenants.create("acme")
        cortex.tenants.assign(id, "acme")
    new = _kept(home, id)["memory"]
    old = home / "memory" / id
    old.mkdir(exist_ok=True)
    (old / f"{line}.md").write_text("an older text")
    (old / "only_here_20260102_123456.md").write_text("of a branch")
    before = (new / f"{line}.md").read_text("utf-8")
    with opened(home, project):
        assert (new / f"{line}.md").read_text("utf-8") == before
        assert (old / f"{line}.md").read_text("utf-8") == "an older text"
        assert (new / "only_here_20260102_123456.md").read_text("utf-8") == "of a branch"


def test_folders_are_there_only_for_those_who_may_read(home: Path, project: Path, other: Path) -> None:
    with opened(home, project) as cortex, opened(home, other) as second:
        id = second.project.id
        _fill(second)
        cortex.tenants.create("rivals")
        cortex.tenants.assign(id, "rivals")
        cortex.tenants.join("ann", "admin")
        cortex.tenants.join("rob", "admin", org="rivals")
        files = sessions_of(cortex).tenant_files
        for kind in KINDS:
            with acting_as(cortex.tenants.admitted(Caller("rob", org="rivals"))):
                assert files.folder(kind, id) == _kept(home, id)[kind]
            with acting_as(cortex.tenants.admitted(Caller("ann"))):
                for space in (id, "000000000000", "..", "org:rivals", "user:rob"):
                    with pytest.raises(ProjectNotFound):
                        files.folder(kind, space)


class _Projects:
    """All projects belong to one organisation."""

    def __init__(self, org: str) -> None:
        self.org = org

    def org_of(self, project_id: str) -> str | None:
        return self.org

    def is_foreign(self, around: Sequence[Path], path: Path) -> bool:
        return False


@pytest.mark.parametrize("org", ["..", ".", "../../x", "a/b", "A" * 200, "é" * 200, "~", "C:\\x"])
def test_no_name_of_an_organisation_leads_out_of_its_folder(home: Path, org: str) -> None:
    home.mkdir()
    folder = TenantFiles(home, _Projects(org)).folder("memory", "0123456789ab")
    folder.mkdir(parents=True)
    assert folder.resolve().parents[2] == (home / "tenants").resolve()
    other = TenantFiles(home, _Projects(f"{org}x")).folder("memory", "0123456789ab")
    assert other != folder


def test_a_link_in_place_of_a_tenants_folder_is_not_followed(home: Path, other: Path, tmp_path: Path) -> None:
    with opened(home, other) as cortex:
        cortex.tenants.create("acme")
        cortex.tenants.assign(cortex.project.id, "acme")
        line = _fill(cortex)
        base = cortex.contexts.check_branch(line).path.parents[2]
        base.rename(tmp_path / "away")
        base.symlink_to(tmp_path / "away")
        from cortex_py.core.errors import StoreDenied

        with pytest.raises(StoreDenied, match="not a plain folder"):
            cortex.contexts.check_branch(line)


def test_a_cached_vector_shows_only_to_who_asked_for_it(home: Path, project: Path) -> None:
    with opened(home, project) as cortex:
        for user in ("ann", "rob"):
            cortex.tenants.join(user, "read")
        ann, rob = (cortex.tenants.admitted(Caller(user)) for user in ("ann", "rob"))
        for caller, expected in ((ann, False), (ann, True), (rob, False), (None, False), (rob, True), (None, True)):
            with acting_as(caller):
                assert cortex.embeddings.generate("the vermilion launch").metadata.cached is expected
