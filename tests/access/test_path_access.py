"""Paths that callers give: nobody reaches beyond the operator's folders, nor what another tenant has there."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.transports import StreamableHttpTransport

from cortex_py import Cortex
from cortex_py.core.errors import AccessDenied, InvalidInput, ProjectNotFound
from cortex_py.core.security.callers import Caller, acting_as
from cortex_py.core.security.rights import SCOPES
from cortex_py.surfaces.http.callers import PROJECT_HEADER
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.surfaces.mcp.server import build_server
from inside import sessions_of

from clients import connected
from helpers import git
from homes import opened
from servers import http_server
from stub_backend import StubBackend

WORD = "vermilion"
# Every text that a tool takes and that may name a file or folder. A new one is checked, tested here, and listed.
PATHS = {("initialize_context", "project_path"), ("subcog_reindex", "repo_path")}
# These name files inside the caller's own project, never beyond it: `test_sources_stay_in_the_project`.
PATTERNS = {("verify_response", "evidence_sources")}
# Words by which a parameter shows that it means a place.
PLACE_WORDS = {
    *("path", "paths", "folder", "folders", "dir", "directory", "file", "files", "filename", "root", "location"),
    *("source", "sources", "target", "url", "uri", "output", "input", "destination"),
}
NO_PLACES = {("subcog_capture", "source")}  # a text that is kept as it is: where a note comes from
KERNEL = ("/proc", "/proc/self", "/proc/self/cwd", "/sys", "/dev", "/dev/shm")


@dataclass(frozen=True)
class Shared:
    """A server's folders: `roots` is the operator's, with a project of each of two organisations."""

    home: Path
    base: Path
    roots: Path
    ours: Path
    theirs: Path

    def attacks(self) -> dict[str, str]:
        """Paths that a member of the first organisation has no business with."""
        branch = next(iter(sorted(self.home.rglob("*.md")))).parent
        aims = {
            "home": self.home,
            "branch files": branch,
            "snapshots": self.home / "backups",
            "above all": self.roots,
            "base": self.base,
            "their project": self.theirs,
            "inside theirs": self.theirs / "src",
            "a file of theirs": self.theirs / "README.md",
            "/": Path("/"),
            "/etc": Path("/etc"),
            "/etc/passwd": Path("/etc/passwd"),
            "missing": self.roots / "nothing" / "here",
            "missing outside": Path("/nothing/here"),
            "outside": self.base / "outside",
            **{name: Path(name) for name in KERNEL},
        }
        links = self.roots / "links"
        links.mkdir(exist_ok=True)
        found = {name: str(place) for name, place in aims.items()}
        for number, (name, place) in enumerate(aims.items()):
            link = links / str(number)
            if not link.is_symlink():
                link.symlink_to(place)
            found[f"link to {name}"] = str(link)
        return {
            **found,
            "dots": f"{self.ours}/../{self.theirs.name}",
            "dots outside": f"{self.ours}/../../outside",
            "dots to a link": f"{links}/../links/0/../home",
            "tilde": "~",
            "tilde below": "~/.cortex",
            "tilde of nobody": "~nobody-of-that-name",
            "tilde of root": "~root",
            "relative": "project",
            "here": ".",
            "above": "..",
            "empty": "",
            "null byte": f"{self.ours}\0",
            "null byte within": f"{self.roots}/o\0urs",
            "long": "/x" * 5000,
            "doubled": f"//{self.theirs}",
            "trailing": f"{self.theirs}/./",
            "through proc": f"/proc/self/root{self.theirs}",
        }


def _project(folder: Path, word: str) -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text(f"# About\n\nThe {word} engine rounds down.\n")
    (folder / "src" / "engine.py").write_text(f"def {word}() -> None: ...\n")
    return folder


@pytest.fixture
def shared(tmp_path: Path, home: Path) -> Shared:
    roots = tmp_path / "roots"
    _project(tmp_path / "outside", WORD)
    return Shared(home, tmp_path, roots, _project(roots / "ours", "plain"), _project(roots / "theirs", WORD))


@pytest.fixture
def cortex(shared: Shared, project: Path) -> Iterator[Cortex]:
    with opened(shared.home, project, auth="tokens", project_roots=[shared.roots]) as made:
        _settle(made, shared)
        yield made


def _settle(cortex: Cortex, shared: Shared) -> None:
    """Two organisations with a project each; the rivals' has a line of work and a snapshot."""
    for org, user in (("rivals", "rob"), ("friends", "ann")):
        cortex.tenants.create(org)
        cortex.tenants.join(user, "admin", org=org)
    with acting_as(_rob(cortex)):
        made = cortex.contexts.initialize(shared.theirs).project.id
    # Their rights are read for each request.
    with acting_as(_rob(cortex)):
        line = cortex.contexts.create_branch(f"{WORD} work", project_id=made)
        cortex.contexts.append(line.id, f"The {WORD} launch", "user", project_id=made)
        cortex.backups.create(project_id=made)


def _rob(cortex: Cortex) -> Caller:
    return cortex.tenants.admitted(Caller("rob", org="rivals"))


def _ann(cortex: Cortex) -> Caller:
    return cortex.tenants.admitted(Caller("ann", org="friends"))


def _begun(cortex: Cortex, shared: Shared) -> str:
    """The project of the first organisation."""
    with acting_as(_ann(cortex)):
        return cortex.contexts.initialize(shared.ours).project.id


# -- over HTTP ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_path_of_a_caller_leads_to_what_is_not_theirs(shared: Shared, project: Path) -> None:
    """Over a real port with a real token: one answer for all, which tells nothing, and nothing is scanned."""
    with Cortex.open(shared.home, project=project, project_roots=[shared.roots]) as cortex:
        _settle(cortex, shared)
        token = cortex.access.create("ann", scopes=SCOPES, org="friends").token
        before = len(cortex.contexts.projects())
    variables = {"CORTEX_AUTH": "tokens", "CORTEX_PROJECT_ROOTS": str(shared.roots), "CORTEX_AUDIT": "off"}
    with (
        http_server(shared.home, project, **variables) as server,
        connected(StreamableHttpTransport(server.mcp, headers={"Authorization": f"Bearer {token}"}), "auto") as client,
    ):
        answers: dict[str, Any] = {}
        missing = client.refused("subcog_reindex", repo_path="/nothing/here")
        for name, path in shared.attacks().items():
            answers[name] = client.failed("initialize_context", project_path=path, mode="full")
            # Without a path it is about the caller's own project.
            assert not path or client.refused("subcog_reindex", repo_path=path) == missing, name
        assert {json.dumps(one, sort_keys=True) for one in answers.values()} == {
            json.dumps(answers["missing"], sort_keys=True)
        }
        assert answers["home"]["error_code"] == "ACCESS_DENIED"
        assert WORD not in json.dumps(answers)
        made = client.call("initialize_context", project_path=str(shared.ours), mode="full")
        assert made["contexts_created"] > 0
        headers = {"Authorization": f"Bearer {token}", PROJECT_HEADER: made["project_id"]}
        with connected(StreamableHttpTransport(server.mcp, headers=headers), "auto") as inside:
            assert inside.call("subcog_reindex", repo_path=str(shared.ours))["status"] == "success"
        with Cortex.open(shared.home, project=project) as cortex:
            assert len(cortex.contexts.projects()) == before + 1


def test_the_header_for_a_project_takes_no_path(cortex: Cortex, shared: Shared) -> None:
    ann = _ann(cortex)
    told = set()
    for path in [*shared.attacks().values(), str(shared.ours)]:
        with pytest.raises((ProjectNotFound, InvalidInput)) as caught:
            cortex.tenants.admitted(ann, path or "nothing")
        told.add(caught.value.remedy)
    assert told == {"Give the id, remote or name of one."}


# -- every tool -----------------------------------------------------------------------------------


def test_every_parameter_that_may_be_a_path_is_known(cortex: Cortex) -> None:
    """A tool with a new path fails here until it is checked and listed above."""
    server = build_server(cortex)
    with connected(server, "auto") as client:
        tools = {tool.name: tool for tool in client.portal.call(client.client.list_tools)}
    assert {spec.name for spec in TOOLS} == set(tools)
    found = set()
    for name, tool in tools.items():
        schema = tool.input_schema
        for parameter, meaning in schema.get("properties", {}).items():
            words = {
                *parameter.lower().split("_"),
                *re.findall(r"[a-z]+(?!:)\b", meaning.get("description", "").lower()),
            }
            if '"string"' in json.dumps(meaning) and "enum" not in meaning and words & PLACE_WORDS:
                found.add((name, parameter))
    assert found == PATHS | PATTERNS | NO_PLACES


def test_sources_stay_in_the_project(cortex: Cortex, shared: Shared) -> None:
    (shared.ours / "leak").symlink_to(shared.theirs)
    made = _begun(cortex, shared)
    with acting_as(_ann(cortex)):
        for source in (str(shared.theirs), "../theirs/README.md", "leak/README.md", "/etc/passwd", "leak", "..\0"):
            found = cortex.contexts.verify(
                f"`{source}` has the function `{WORD}`. `leak/src/engine.py` exists.",
                evidence_sources=[source],
                project_id=made,
            )
            assert not [one for one in found.findings if one.verdict == "supported"], source


# -- rules ----------------------------------------------------------------------------------------


def test_without_roots_callers_can_name_no_folder(home: Path, project: Path, shared: Shared) -> None:
    with opened(home, project, auth="tokens") as cortex:
        cortex.tenants.join("ann", "admin")
        with acting_as(cortex.tenants.admitted(Caller("ann"))):
            for path in (shared.ours, "/nothing", home):
                with pytest.raises(AccessDenied, match=r"operator must name .* project_roots"):
                    cortex.contexts.initialize(path)
                with pytest.raises(AccessDenied, match="project_roots"):
                    cortex.contexts.project_at(path)
        assert cortex.contexts.initialize(shared.ours).contexts_created


@pytest.mark.parametrize("path", KERNEL)
def test_the_trees_of_the_kernel_are_refused_to_everybody(path: str, home: Path, project: Path) -> None:
    link = project / "link"
    link.symlink_to(path)
    with opened(home, project) as cortex:
        # A link to the folder that a process stands in leads out of /proc again.
        for spelled in (path, f"/usr/..{path}", *([link] if path != "/proc/self/cwd" else [])):
            for use in (
                partial(Cortex.open, home, project=spelled, backend=StubBackend()),
                partial(cortex.contexts.initialize, spelled),
                partial(cortex.contexts.project_at, spelled),
                partial(cortex.backups.import_from, [spelled]),
                partial(cortex.backups.export_to, f"{spelled}/export.jsonl"),
            ):
                with pytest.raises(InvalidInput, match="/proc, /sys and /dev"):
                    use()


def test_files_for_import_and_export_are_a_callers_own(cortex: Cortex, shared: Shared) -> None:
    made = _begun(cortex, shared)
    with acting_as(_ann(cortex)):
        for path in shared.attacks().values():
            with pytest.raises(AccessDenied, match="No such folder is open"):
                cortex.backups.import_from([path], project_id=made)
            with pytest.raises(AccessDenied, match="No such folder is open"):
                cortex.backups.export_to(f"{path}/export.jsonl", domains=["project"], project_id=made)
        place = shared.ours / "export.jsonl"
        assert cortex.backups.export_to(place, domains=["project"], project_id=made).files == 1
        assert not cortex.backups.import_from([place], project_id=made).added


def test_a_project_of_the_same_organisation_may_lie_inside(cortex: Cortex, shared: Shared) -> None:
    inner = _project(shared.ours / "inner", "inner")
    with acting_as(_ann(cortex)):
        first = cortex.contexts.initialize(inner).project.id
    with acting_as(_ann(cortex)):
        second = cortex.contexts.initialize(shared.ours).project.id
    assert first != second
    cortex.tenants.restrict(first)
    # Now nobody may read it, and the folder around it may not be read either.
    with acting_as(_ann(cortex)), pytest.raises(AccessDenied):
        cortex.contexts.initialize(shared.ours)


def test_a_clone_of_a_strangers_project_is_answered_like_a_missing_one(cortex: Cortex, shared: Shared) -> None:
    address = "https://code.example/rivals/engine.git"
    for folder in (shared.theirs, shared.ours):
        git(folder, "init", "-q")
        git(folder, "remote", "add", "origin", address)
    with acting_as(_rob(cortex)):
        cortex.contexts.initialize(shared.theirs)
    assert _refusals(cortex, shared.ours) == _refusals(cortex, shared.roots / "missing")


def _refusals(cortex: Cortex, path: Path) -> str:
    with acting_as(_ann(cortex)), pytest.raises(AccessDenied) as caught:
        cortex.contexts.initialize(path)
    return str(caught.value)


def _commit(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", f"{WORD} begins")


TRICKS = (
    "git file", "alternates", "quoted alternates", "alternates of alternates", "alternates with a blank",
    "linked worktree", "linked objects", "linked pack", "linked references", "linked reference", "linked log",
)  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS)
def test_git_does_not_lead_into_another_repository(cortex: Cortex, shared: Shared, trick: str) -> None:
    _commit(shared.theirs)
    ours = shared.ours
    if trick == "git file":
        (ours / ".git").write_text(f"gitdir: {shared.theirs / '.git'}\n")
    elif trick == "linked worktree":
        ours = shared.roots / "tree"
        git(shared.theirs, "worktree", "add", "-q", str(ours))
    else:
        git(ours, "init", "-q")
        _redirect(trick, ours / ".git", shared.theirs / ".git")
    assert _refusals(cortex, ours) == _refusals(cortex, shared.roots / "missing")


def _redirect(trick: str, ours: Path, theirs: Path) -> None:
    """Let one git folder read from another."""
    if "alternates" in trick:
        named = theirs / "objects"
        if trick == "alternates of alternates":
            named = ours / "more"
            (named / "info").mkdir(parents=True)
            (named / "info" / "alternates").write_text(f"{theirs / 'objects'}\n")
        if trick == "alternates with a blank":
            (ours / "more").mkdir()
            named = ours.parent / "more "
            named.symlink_to(theirs / "objects")
        text = f'"{named}"' if trick == "quoted alternates" else str(named)
        (ours / "objects" / "info" / "alternates").write_text(f"{text}\n")
        return
    name = {
        "linked objects": "objects", "linked pack": "objects/pack", "linked references": "refs/heads",
        "linked reference": "refs/heads/side", "linked log": "logs",
    }[trick]  # fmt: skip
    if (ours / name).is_dir():
        shutil.rmtree(ours / name)
    (ours / name).symlink_to(theirs / name)


def test_links_inside_the_own_git_folder_are_followed(cortex: Cortex, shared: Shared) -> None:
    git(shared.ours, "init", "-q")
    (shared.ours / ".git" / "objects").rename(shared.ours / ".git" / "kept")
    (shared.ours / ".git" / "objects").symlink_to("kept")
    with acting_as(_ann(cortex)):
        assert cortex.contexts.initialize(shared.ours).project.root == str(shared.ours)


def test_a_work_tree_elsewhere_is_not_read(cortex: Cortex, shared: Shared) -> None:
    git(shared.ours, "init", "-q")
    git(shared.ours, "config", "core.worktree", str(shared.theirs))
    with acting_as(_ann(cortex)):
        made = cortex.contexts.initialize(shared.ours, "full").project
    assert Path(made.root) == shared.ours
    assert _asks(cortex, made.id) != "supported"


# -- at use ---------------------------------------------------------------------------------------


def _asks(cortex: Cortex, project_id: str) -> str:
    """What verification of the rivals' function answers to a caller of the first organisation."""
    with acting_as(_ann(cortex)):
        found = cortex.contexts.verify(f"`{WORD}` is a function in `src/engine.py`.", project_id=project_id)
        return found.findings[0].verdict


def test_a_folder_replaced_by_a_link_is_not_followed(cortex: Cortex, shared: Shared) -> None:
    made = _begun(cortex, shared)
    (shared.ours / "src" / "engine.py").write_text(f"def {WORD}() -> None: ...\n")
    assert _asks(cortex, made) == "supported"
    shared.ours.rename(shared.roots / "old")
    shared.ours.symlink_to(shared.theirs)
    assert _asks(cortex, made) != "supported"
    with acting_as(None):
        # The server's own work does not follow it either.
        assert sessions_of(cortex).of(made).folder is None


def test_git_replaced_later_is_not_followed(cortex: Cortex, shared: Shared) -> None:
    _commit(shared.theirs)
    git(shared.ours, "init", "-q")
    made = _begun(cortex, shared)
    with acting_as(_ann(cortex)):
        assert sessions_of(cortex).of(made).repository is not None
        (shared.ours / ".git").rename(shared.ours / "gone")
        (shared.ours / ".git").write_text(f"gitdir: {shared.theirs / '.git'}\n")
        assert sessions_of(cortex).of(made).folder is None


def test_a_folder_that_is_no_longer_allowed_is_not_read(cortex: Cortex, shared: Shared, project: Path) -> None:
    made = _begun(cortex, shared)
    (shared.ours / "src" / "engine.py").write_text(f"def {WORD}() -> None: ...\n")
    assert _asks(cortex, made) == "supported"
    elsewhere = shared.base / "elsewhere"
    elsewhere.mkdir()
    with opened(shared.home, project, auth="tokens", project_roots=[elsewhere]) as other:
        assert _asks(other, made) != "supported"


def test_the_servers_own_project_is_the_operators_choice(home: Path, project: Path) -> None:
    (project / "engine.py").write_text(f"def {WORD}() -> None: ...\n")
    with opened(home, project, auth="tokens") as cortex:
        cortex.tenants.join("ann", "read")
        with acting_as(cortex.tenants.admitted(Caller("ann"))):
            assert cortex.grounding.verify(f"`{WORD}` is a function in `engine.py`.").findings[0].verdict == "supported"


def test_roots_come_as_a_list_or_by_commas(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cortex_py.core.config import load_settings

    home.mkdir()
    (home / "config.toml").write_text(f'project_roots = ["{tmp_path}/a", "{tmp_path}/b"]\n')
    wanted = (tmp_path / "a", tmp_path / "b")
    assert load_settings(home).project_roots == wanted
    monkeypatch.setenv("CORTEX_PROJECT_ROOTS", f"{tmp_path}/c, {tmp_path}/d")
    assert load_settings(home).project_roots == (tmp_path / "c", tmp_path / "d")
    assert load_settings(home, project_roots=[tmp_path]).project_roots == (tmp_path,)
    assert os.environ["CORTEX_PROJECT_ROOTS"]
