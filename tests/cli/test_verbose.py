"""`cortex --verbose` and `CORTEX_LOG` show what the package logs, on standard error, without content or secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cortex_py.core.memory.service import Memories
from cortex_py.surfaces import cli as commands
from cortex_py.surfaces.cli import cli

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("cortex_py")
    before = list(root.handlers), root.level, ours.level
    yield
    root.handlers[:], root.level = before[0], before[1]
    ours.setLevel(before[2])


@pytest.fixture(autouse=True)
def _a_library_that_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    status = Memories.status

    def logged(self: Memories) -> object:
        log = logging.getLogger("cortex_py.core.memory.service")
        log.debug("a detail with %s", SECRET)
        log.info("a fact")
        return status(self)

    monkeypatch.setattr(Memories, "status", logged)


def _status(home: Path, project: Path, *options: str, **environment: str) -> tuple[str, str]:
    words = [*options, "status", "--json", "--home", str(home), "--project", str(project)]
    done = CliRunner().invoke(cli, words, env=environment)
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def test_a_command_shows_no_details_by_default(home: Path, project: Path) -> None:
    assert _status(home, project)[1] == ""


def test_verbose_shows_what_is_logged(home: Path, project: Path) -> None:
    shown, logged = _status(home, project, "--verbose")
    assert "a fact" not in shown
    assert "cortex: DEBUG cortex_py.core.memory.service: a detail with" in logged
    assert "cortex: INFO cortex_py.core.memory.service: a fact" in logged
    assert SECRET not in logged


@pytest.mark.parametrize(("level", "details"), [("debug", True), ("info", False)])
def test_the_variable_shows_what_is_logged(home: Path, project: Path, level: str, details: bool) -> None:
    logged = _status(home, project, CORTEX_LOG=level)[1]
    assert "a fact" in logged
    assert ("a detail" in logged) is details


def test_a_level_that_is_none_is_an_error_that_names_the_setting(home: Path, project: Path) -> None:
    done = CliRunner().invoke(
        cli, ["status", "--home", str(home), "--project", str(project)], env={"CORTEX_LOG": "all"}
    )
    assert "log_level" in str(done.exception)


@pytest.mark.parametrize("options", [("--verbose",), ()])
def test_a_server_takes_the_level_as_its_setting(
    home: Path, project: Path, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    monkeypatch.setattr("cortex_py.surfaces.mcp.stdio.serve.serve_stdio", lambda *words: given.append(words[2]) or 0)
    assert commands.cli is cli
    CliRunner().invoke(cli, [*options, "serve", "--home", str(home), "--project", str(project)])
    assert given[0].get("log_level") == ("debug" if options else None)  # type: ignore[attr-defined]
