"""Whatever is asked about a stranger's repository, no program that it names ever runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from cortex_py import Cortex
from cortex_py.core.errors import CortexError
from cortex_py.surfaces.cli import cli
from cortex_py.surfaces.mcp.server import build_server
from cortex_py.worktree.git.history import files_with
from cortex_py.worktree.git.repository import Repository
from hostile_repository import VARIANTS, Traps, make_hostile

from clients import Caller, connected
from helpers import git
from stub_backend import StubBackend

CLAIMS = "I added `one` to app.py.\n\nThe file app.py defines `one`.\n\n3 tests passed."
# One that never ends, and one that installs packages; neither asks a repository anything that the others do not.
LEFT_OUT = {("serve",), ("ui",), ("model", "install")}
MUST_WORK = (
    "init", "capture", "recall", "status", "gc", "suggest", "verify", "branch current", "branch list", "graph extract",
    "doctor", "snapshot create",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex_py.app.open_backend", lambda **_: StubBackend())


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def traps(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Traps:
    made = make_hostile(tmp_path / "work", variant)
    monkeypatch.chdir(made.folder)
    return made


def _commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _commands(inner, (*path, name))


def _words(command: click.Command, known: dict[str, str]) -> list[str]:
    """Arguments that a command can work with, as far as names tell."""
    words: list[str] = []
    for one in command.params:
        if not (isinstance(one, click.Argument) or one.required):
            continue
        choices = one.type.choices if isinstance(one.type, click.Choice) else ()
        value = str(next(iter(choices), known.get(one.name or "", "one thing")))
        if isinstance(one.type, click.Path):
            value = known["file"]
        words += [value] if isinstance(one, click.Argument) else [one.opts[-1], value]
    return words


@pytest.mark.slow
def test_no_command_runs_what_a_repository_names(variant: str, traps: Traps, home: Path, tmp_path: Path) -> None:
    """Every command in an ordinary repository; in those of another form, the commands that ask git something."""
    traps.plant()
    with Cortex.open(home, project=traps.folder, backend=StubBackend()) as cortex:
        memory = cortex.memories.capture("The app keeps its state in one file, `app.py`.").id
        branch = cortex.contexts.create_branch("A line of work").id
    (tmp_path / "given.jsonl").write_text('{"content": "A note from elsewhere"}\n')
    known = {
        "memory_id": memory,
        "older": memory,
        "newer": memory,
        "branch": branch,
        "file": str(tmp_path / "given.jsonl"),
    }
    known |= {
        "content": "Ada Lovelace works at Initech and uses Redis.",
        "text": CLAIMS,
        "task": "change `one` in app.py",
    }
    runner = CliRunner()
    failed: dict[str, str] = {}
    ran = 0
    for path, command in _commands(cli):
        options = [option for one in command.params for option in one.opts]
        if path in LEFT_OUT or "--project" not in options:
            continue
        if variant != "normal" and " ".join(path) not in MUST_WORK:
            continue
        words = [*path, *_words(command, known), "--project", str(traps.folder)]
        done = runner.invoke(cli, words, input="")
        assert isinstance(done.exception, SystemExit | CortexError | None), (path, done.exc_info)
        ran += 1
        if done.exit_code:
            failed[" ".join(path)] = f"{done.output} {done.exception}"
        assert traps.sprung() == [], path
    assert ran > 50 if variant == "normal" else ran == len(MUST_WORK)
    assert {name: failed[name] for name in MUST_WORK if name in failed} == {}


@pytest.mark.slow
def test_no_tool_runs_what_a_repository_names(traps: Traps, home: Path) -> None:
    """The traps are planted while the server is at work, after it came to know the project."""
    with Cortex.open(home, project=traps.folder, backend=StubBackend()) as cortex:
        with connected(build_server(cortex), "auto") as caller:
            cortex.contexts.initialize()
            cortex.grounding.verify(CLAIMS)
            cortex.upkeep()
            traps.plant()
            (traps.folder / "later.plain").write_text("later\n")
            _call_all(caller, cortex, traps)
            # Asked of larger projects only.
            if repository := Repository.discover(traps.folder):
                files_with(repository, ["app", "later"])
        assert traps.sprung() == []


def _call_all(caller: Caller, cortex: Cortex, traps: Traps) -> None:
    memory = cortex.memories.capture("The app keeps its state in one file, `app.py`.").id
    branch = cortex.contexts.create_branch("A line of work").id
    known: dict[str, Any] = {
        "project_id": cortex.project.id, "branch_id": branch, "cortex_branch_id": branch, "memory_id": memory,
        "project_path": str(traps.folder), "repo_path": str(traps.folder), "response_text": CLAIMS,
        "git_branch_name": "main", "namespace": "decisions", "domain": "project", "role": "user",
        "content": "Ada Lovelace works at Initech and uses Redis.", "current_context": "change `one` in app.py",
        "texts": ["one"], "context_ids": [memory],
    }  # fmt: skip
    answered = 0
    for tool in caller.portal.call(caller.client.list_tools):
        properties = tool.input_schema["properties"]
        wanted = {*tool.input_schema.get("required", []), "repo_path", "content"} & properties.keys()
        for action in properties.get("action", properties.get("operation", {})).get("enum", [None]):
            given = {name: known.get(name, "one thing") for name in wanted}
            given |= {name: action for name in ("action", "operation") if name in properties}
            try:
                caller.portal.call(caller.client.call_tool_mcp, tool.name, given)
            except Exception as error:  # noqa: BLE001 - what a tool refuses, it refuses without running anything
                assert "internal" not in str(error).lower(), (tool.name, error)
            else:
                answered += 1
            assert traps.sprung() == [], tool.name
    assert answered > 25
    cortex.upkeep()
    assert traps.sprung() == [], "upkeep"


def test_a_partial_clone_fetches_nothing(tmp_path: Path, home: Path) -> None:
    traps = make_hostile(tmp_path / "work", "normal")
    blob = git(traps.folder, "rev-parse", "HEAD:app.py")
    (traps.git_dir / "objects" / blob[:2] / blob[2:]).unlink()
    traps.plant()
    with Cortex.open(home, project=traps.folder, backend=StubBackend()) as cortex:
        for _ in range(2):
            try:
                cortex.grounding.verify(CLAIMS)
            except CortexError as error:
                assert error.remedy
        cortex.upkeep()
    assert traps.sprung() == []


@pytest.mark.parametrize("name", ["plain", "dots.in.it", "größe", "", "a=b", "x" * 300])
def test_filters_of_any_name_are_emptied_or_the_repository_is_left_alone(tmp_path: Path, home: Path, name: str) -> None:
    traps = make_hostile(tmp_path / "work", "normal")
    config = traps.git_dir / "config"
    config.write_text(f'{config.read_text()}[filter "{name}"]\n\tclean = {traps.program("clean")}\n')
    (traps.folder / ".gitattributes").write_text(f"* filter={name}\n")
    with Cortex.open(home, project=traps.folder, backend=StubBackend()) as cortex:
        assert cortex.grounding.verify("There is a file app.py.").verified == 1
    assert traps.sprung() == []


def test_more_filters_than_anyone_needs_are_not_run_either(tmp_path: Path, home: Path) -> None:
    traps = make_hostile(tmp_path / "work", "normal")
    config = traps.git_dir / "config"
    program = traps.program("clean")
    lines = [f'[filter "f{n}"]\n\tclean = {program}' for n in range(2_000)]
    config.write_text("\n".join([config.read_text(), *lines, ""]))
    (traps.folder / ".gitattributes").write_text("* filter=f1999\n")
    with Cortex.open(home, project=traps.folder, backend=StubBackend()) as cortex:
        assert cortex.grounding.verify("There is a file app.py.").verified == 1
    assert traps.sprung() == []


def test_settings_in_a_file_of_the_tree_may_change_at_any_time(tmp_path: Path, home: Path) -> None:
    traps = make_hostile(tmp_path / "work", "normal")
    config = traps.git_dir / "config"
    config.write_text(config.read_text() + "[include]\n\tpath = ../team.config\n")
    with Cortex.open(home, project=traps.folder, backend=StubBackend()) as cortex:
        cortex.grounding.verify("There is a file app.py.")
        (traps.folder / "team.config").write_text(f'[filter "plain"]\n\tclean = {traps.program("clean")}\n')
        (traps.folder / "file.plain").write_text("once more\n")
        assert cortex.grounding.verify("There is a file app.py.").verified == 1
    assert traps.sprung() == []


def test_a_repository_cannot_name_another_folder_as_its_own(tmp_path: Path) -> None:
    traps = make_hostile(tmp_path / "work", "normal")
    private = tmp_path / "private"
    private.mkdir()
    (private / "diary.md").write_text("# Mine\n")
    git(traps.folder, "config", "core.worktree", str(private))
    for folder in (traps.folder, traps.git_dir, traps.git_dir / "refs"):
        found = Repository.discover(folder)
        assert found is not None
        assert found.root == traps.folder
