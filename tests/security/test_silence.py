"""Cortex and all that it runs on say nothing to anybody and write nowhere but in the home, whoever runs it where."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from timing import MINUTE

from clients import CURRENT, connected
from helpers import git
from hook_runs import DATABASE, processes_of, wait_for
from servers import http_server

ROOT = Path(__file__).parents[2]
# Read before the environment is cleared. Set where a machine without strace is a fault.
_REQUIRED = bool(os.environ.get("CORTEX_REQUIRE_STRACE"))
# So many seconds servers are watched: onnxruntime looks up its maker's host nine seconds after it has loaded a model.
_WATCHED = 20
_QUESTION = "Which database do we use for the event store?"


def _tool() -> ModuleType:
    """What `make silence` runs, and reads traces with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        import silence

        return silence


class Watched:
    """Runs commands for a person who has never used Cortex, and knows what they did."""

    def __init__(self, tool: ModuleType, folder: Path, home: Path, project: Path) -> None:
        self._tool = tool
        self._folder = folder
        self.home, self.project = home, project
        self._logs: list[Path] = []

    def trace(self) -> list[str]:
        """The words before the next command."""
        self._logs.append(self._folder / f"trace{len(self._logs)}")
        words: list[str] = self._tool.traced(self._logs[-1])
        return words

    def cortex(self, *words: str, sent: str = "", **variables: str) -> str:
        """What a command prints. What it started may go on."""
        answer = self._folder / "answer"
        with answer.open("wb") as output:
            subprocess.run(
                [*self.trace(), sys.executable, "-m", "cortex_py", *words],
                cwd=self.project,
                env={**os.environ, **variables},
                input=sent.encode(),
                stdout=output,
                timeout=MINUTE,
                check=True,
            )
        return answer.read_text("utf-8")

    def noises(self) -> list[str]:
        """What was changed elsewhere, and who was spoken to, by all commands, once they have ended."""
        wait_for(lambda: not any(map(processes_of, self._logs)))
        return [noise for log in self._logs for noise in self._tool.noises(log, (self.home, self._folder))]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path, project: Path) -> Watched:
    if shutil.which("strace") is None:
        assert not _REQUIRED, "CORTEX_REQUIRE_STRACE is set, and there is no strace"
        pytest.skip("no strace")
    # Nothing of whoever runs the tests: libraries are quieter where `CI` is set, and the home is a new one.
    for name in os.environ.keys() - {"PATH", "HOME", "CORTEX_HOME", "PYTEST_CURRENT_TEST"}:
        monkeypatch.delenv(name)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    # What Python compiles, it would keep beside the code.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    git(project, "init", "-q", "-b", "main")
    return Watched(_tool(), folder, home, project)


@pytest.mark.slow
def test_commands_and_a_session_write_in_the_home_and_connect_to_nobody(watched: Watched) -> None:
    watched.cortex("capture", DATABASE, "-n", "decisions")
    assert DATABASE in watched.cortex("recall", _QUESTION, ORT_DISABLE_TELEMETRY="0")
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    sent = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "subcog_recall", "arguments": {"query": _QUESTION}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in sent)
    assert DATABASE in watched.cortex("serve", sent=lines)
    assert watched.noises() == []
    assert list(Path(os.environ["HOME"]).iterdir()) == []


@pytest.mark.slow
def test_servers_and_hooks_write_in_the_home_and_connect_to_nobody(watched: Watched) -> None:
    """A server and the helper of hooks, each of another home and with its model loaded, side by side."""
    helped = watched.home / "helped"
    watched.cortex("capture", DATABASE, "-n", "decisions", "--home", str(helped))

    def hook(event: str, **sent: str) -> str:
        return watched.cortex(
            *("hook", "claude-code", event, "--home", str(helped)),
            sent=json.dumps({"session_id": event, "cwd": str(watched.project), **sent}),
            CORTEX_HOOK_DEADLINE_MS="30000",
            CORTEX_HOOK_IDLE_SECONDS=str(_WATCHED),
        )

    with (
        http_server(watched.home, watched.project, under=watched.trace()) as server,
        connected(server.mcp, CURRENT) as caller,
    ):
        caller.call("subcog_capture", content=DATABASE, namespace="decisions")
        assert caller.call("subcog_recall", query=_QUESTION)["total"] == 1
        hook("SessionStart", source="startup")
        assert DATABASE in hook("UserPromptSubmit", prompt=_QUESTION)
        assert processes_of(helped)
        wait_for(lambda: not processes_of(helped))
    assert watched.noises() == []
    assert list(Path(os.environ["HOME"]).iterdir()) == []
