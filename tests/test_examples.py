"""The examples run as their pages say: as programs, with a real store, repository and server; models are scripted."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from backup.import_kinds import database
from cortex_py import Cortex
from llm.chat_server import Asked, ChatServer, Step, chat, message

from forking import cortex_command
from helpers import git
from servers import http_server

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
Run = Callable[..., str]
SAID = "We deploy on Tuesdays."


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an example in a project, as a person does but for the start of the interpreter; what it prints."""

    def run(script: str, *words: str, **variables: str) -> str:
        monkeypatch.chdir(project)
        monkeypatch.setattr("sys.argv", [script, *words])
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    return run


def _uses_memory(**given: str) -> Step:
    return message({"type": "tool_use", "id": "toolu_1", "name": "memory", "input": given})


def _says_what_it_read(asked: Asked) -> Any:
    """The model's answer is what the tool gave it last."""
    (result,) = asked.body["messages"][-1]["content"]
    return message({"type": "text", "text": result["content"]}, stop="end_turn")(asked)


@pytest.mark.slow
def test_an_agent_with_the_memory_tool_remembers_the_conversation_before(run: Run) -> None:
    with ChatServer() as model:
        there = {"ANTHROPIC_BASE_URL": model.root, "ANTHROPIC_API_KEY": "none"}
        model.script = [
            _uses_memory(command="view", path="/etc/passwd"),  # a mistake, which must not end the loop
            _uses_memory(command="create", path="/memories/deploy.md", file_text=SAID),
            message({"type": "text", "text": "Noted."}, stop="end_turn"),
        ]
        assert run("agent_with_memory.py", SAID, **there) == "Noted.\n"
        refused = model.asked[1].body["messages"][-1]["content"][0]
        assert refused["is_error"]
        model.script = [_uses_memory(command="view", path="/memories/deploy.md"), _says_what_it_read]
        assert SAID in run("agent_with_memory.py", "When do we deploy?", **there)
    assert model.asked[0].body["tools"] == [{"type": "memory_20250818", "name": "memory"}]


def _calls(name: str, **given: str) -> Step:
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
    return chat(None, finish="tool_calls", tool_calls=[call])


def test_an_agent_with_two_tools_remembers_the_conversation_before(run: Run) -> None:
    with ChatServer() as model:
        there = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
        model.script = [_calls("remember", txt="wrong"), _calls("remember", text=SAID), chat("Noted.")]
        assert run("agent_with_tools.py", SAID, **there) == "Noted.\n"
        assert model.asked[1].user.startswith("This did not work")
        model.script = [_calls("recall", question="on which day do we deploy?"), lambda asked: chat(asked.user)(asked)]
        assert SAID in run("agent_with_tools.py", "When do we deploy?", **there)


def _program(folder: Path, name: str, script: str) -> dict[str, str]:
    """A program in a folder, and the PATH on which it is found."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    (folder / name).chmod(0o755)
    return {"PATH": os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])}


def _shell(*command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_pull_request_is_checked_by_its_description(project: Path, tmp_path: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "begin")
    (project / "auth.py").write_text("ACCESS_SECONDS = 900\n\n\ndef issue_refresh_token() -> str: ...\n", "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "Add refresh tokens")
    runner = _program(tmp_path / "bin", "cortex", f'exec {" ".join(cortex_command())} "$@"') | {
        "GITHUB_ACTIONS": "true"
    }

    def checked(description: str) -> subprocess.CompletedProcess[str]:
        step = str(EXAMPLES / "verify_pull_request.sh")
        return _shell("sh", step, folder=project, DESCRIPTION=description, **runner)

    true = checked("Added `issue_refresh_token` to auth.py.\n\nShall we merge?")
    assert true.returncode == 0, true.stderr
    false = checked("`ACCESS_SECONDS` is 600.\n\n$(touch pwned) `touch pwned`\n::error::pwned")
    assert false.returncode == 12, false.stderr
    assert "`ACCESS_SECONDS` is 900 in auth.py line 1" in false.stdout
    assert not (project / "pwned").exists()
    first, *_, last = false.stdout.splitlines()
    assert first.startswith("::stop-commands::")
    assert last == f"::{first.removeprefix('::stop-commands::')}::"
    assert checked("").returncode == 0


def test_the_workflow_gives_the_description_as_data() -> None:
    # `on` is a boolean of YAML 1.1.
    steps = yaml.safe_load((EXAMPLES / "verify_pull_request.yml").read_text("utf-8"))["jobs"]["verify"]["steps"]
    assert not any("${{" in step.get("run", "") for step in steps)
    assert steps[-1]["env"] == {"DESCRIPTION": "${{ github.event.pull_request.body }}"}
    assert steps[-1]["run"] == "sh .github/verify_pull_request.sh"


@pytest.mark.slow
def test_a_team_shares_a_server(project: Path, home: Path, tmp_path: Path, postgres_url: str) -> None:
    """The commands of the page, but for the containers: a server of the suite runs in their place."""
    sh, shown = (_block(EXAMPLES / "team_server" / "README.md", language) for language in ("sh", "text"))
    # Of `docker compose exec … cortex WORDS`, what runs in the container; nothing of `docker compose up`.
    inside = 'case "$*" in *" exec "*) ;; *) exit ;; esac\nwhile [ "$1" != cortex ]; do shift; done\nshift 2\n'
    there = _program(tmp_path / "bin", "docker", f'{inside}exec {" ".join(cortex_command())} "$@"')
    there |= {"CORTEX_DATABASE_URL": postgres_url, "CORTEX_HOME": str(home)}
    with http_server(home, project, CORTEX_DATABASE_URL=postgres_url, CORTEX_AUTH="tokens") as server:
        done = _shell("bash", "-euo", "pipefail", "-c", sh, folder=ROOT, CORTEX_URL=server.url, **there)
    assert done.returncode == 0, done.stderr
    assert _without_scores(done.stdout) == _without_scores(shown)


def _block(page: Path, language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return str(text)


def _without_scores(text: str) -> str:
    return re.sub(r"\b[01]\.\d\d\b", "SCORE", text)


def test_the_memories_of_mem0_come_over_once(run: Run, tmp_path: Path) -> None:
    store = database(tmp_path / "mem0", "history.db", "mem0-history.sql") / "0-history.db"
    assert run("from_mem0.py", str(store), "--try").startswith("2 memories would come")
    shown = run("from_mem0.py", str(store))
    assert shown.startswith("2 memories came, 0 were here already.")
    assert re.search(r"2026-11-17  \S+ +The billing service runs on port 9090", shown)
    assert run("from_mem0.py", str(store)).startswith("0 memories came, 2 were here already.")


def test_the_notebook_explores_a_memory(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    book = json.loads((EXAMPLES / "explore_memory.ipynb").read_text("utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    git(project, "init", "-q", "-b", "main")
    (project / "settings.py").write_text("TIMEOUT = 60\n", "utf-8")
    monkeypatch.chdir(project)
    with Cortex.open(project=".") as cortex:
        cortex.memories.capture("Use PostgreSQL for orders because of JSONB", namespace="decisions")
        cortex.memories.capture("PostgreSQL runs on port 5433 here", namespace="config")
    scope: dict[str, Any] = {}
    shown = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            exec(compile("".join(cell["source"]), cell["id"], "exec"), scope)
            shown[cell["id"]] = capsys.readouterr().out
    assert shown["open"].startswith("2 memories of project")
    assert re.search(r"^decisions +1  █+$", shown["count"], re.MULTILINE)
    assert re.fullmatch(r"\d{4}-\d\d +2  █+\n", shown["months"])
    assert re.search(r"^PostgreSQL \(Technology\) +2 ", shown["named"], re.MULTILINE)
    assert re.match(r"[01]\.\d\d  \S+  decisions +Use PostgreSQL for orders", shown["ask"])
    assert shown["verify"].startswith("REJECT")
    assert "contradicted: `TIMEOUT` is 30 in settings.py." in shown["verify"]


def test_the_page_names_every_example_and_nothing_else() -> None:
    names = {path.name for path in EXAMPLES.iterdir()} - {"README.md", "__pycache__"}
    links = re.findall(r"\]\(([^)/]+)", (EXAMPLES / "README.md").read_text("utf-8"))
    assert set(links) == names
