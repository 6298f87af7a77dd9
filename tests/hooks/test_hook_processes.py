"""Hooks as clients run them: processes that answer in time, or answer nothing, and leave nothing behind."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import jsonschema
import pytest

from cortex_py import Cortex
from cortex_py.parts.hooks.dialects import CLIENTS
from cortex_py.parts.hooks.turns import read_turns
from cortex_py.parts.hooks.warm import address_file
from odd_files import KINDS, put

from helpers import git
from hook_runs import DATABASE, answer_schema, context_of, peak_memory, processes_of, run_hook, wait_for
from servers import http_server, stdio_server

QUESTION = "Which database do we use for the event store?"
# What each kind of event sends, in the words of all clients at once.
SENT = {
    "session_id": "s",
    "sessionId": "s",
    "conversation_id": "s",
    "prompt": QUESTION,
    "text": "Done.",
    "source": "startup",
}


def _sent(folder: Path, **more: object) -> dict[str, object]:
    return {**SENT, "cwd": str(folder), "workspace_roots": [str(folder)], **more}


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_every_hook_of_every_client_answers_in_its_form(warm: Cortex, repository: Path, client: str) -> None:
    for hook in CLIENTS[client]:
        done = run_hook(warm.settings.home, client, hook.name, _sent(repository))
        assert done.returncode == 0
        assert done.stderr == b""
        jsonschema.validate(json.loads(done.stdout), answer_schema(client, hook))
        # What a start gave is not given again with the prompt.
        assert (DATABASE in context_of(done.stdout)) == (hook.kind == "start")


def test_a_prompt_is_answered_by_the_warm_process_and_its_turn_is_kept(warm: Cortex, repository: Path) -> None:
    home = warm.settings.home
    done = run_hook(home, "gemini", "before-agent", _sent(repository, prompt=f"{QUESTION} Ünïcode 🧠"))
    assert DATABASE in context_of(done.stdout)
    ((_, turn),) = read_turns(home)
    assert turn.text.endswith("Ünïcode 🧠")
    assert (turn.client, turn.role, turn.git_branch) == ("gemini", "user", "main")
    wait_for(lambda: not context_of(run_hook(home, "gemini", "BeforeAgent", _sent(repository)).stdout))


def test_a_command_that_failed_in_codex_brings_its_solution(warm: Cortex, repository: Path, tmp_path: Path) -> None:
    """Codex sends the output alone; the exit code stands in its transcript."""
    fix = "test_upload fails with EADDRINUSE address already in use 8080: set PORT=0 before running the tests"
    warm.memories.capture(fix, namespace="learnings")
    transcript = tmp_path / "rollout.jsonl"
    command, error = (
        "pytest tests/test_upload.py",
        "FAILED test_upload: OSError EADDRINUSE address already in use: 8080",
    )
    given = []
    for call, code in (("call_1", 0), ("call_2", 3)):
        item = {"type": "CommandExecution", "id": call, "aggregated_output": error, "exit_code": code}
        with transcript.open("a") as file:
            file.write(json.dumps({"type": "event_msg", "payload": {"type": "item_completed", "item": item}}) + "\n")
        more = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": error, "tool_use_id": call}
        sent = _sent(repository, transcript_path=str(transcript), **more)
        given.append(fix in context_of(run_hook(warm.settings.home, "codex", "PostToolUse", sent).stdout))
    assert given == [False, True]
    assert [turn.failed for _, turn in read_turns(warm.settings.home)] == [False, True]


def test_eight_hooks_at_the_same_time_lose_nothing(warm: Cortex, repository: Path) -> None:
    home = warm.settings.home
    with ThreadPoolExecutor(8) as pool:
        sent = [_sent(repository, session_id=f"s{n}", prompt=f"{QUESTION} {n}") for n in range(8)]
        done = list(pool.map(lambda one: run_hook(home, "codex", "UserPromptSubmit", one), sent))
    assert all(DATABASE in context_of(one.stdout) for one in done)
    assert sorted(turn.session for _, turn in read_turns(home)) == sorted(f"s{n}" for n in range(8))


@pytest.mark.slow
@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe\x00", b"[1]", b'{"cwd": "/nowhere", "prompt": "' + b"x" * 500_000 + b'"}']
)
def test_strange_input_gets_the_empty_answer(warm: Cortex, data: bytes) -> None:
    done = run_hook(warm.settings.home, "claude-code", "UserPromptSubmit", data)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}\n", b"")


@pytest.mark.parametrize(("client", "event"), [("claude-code", "Lunch"), ("nobody", "Stop"), ("", "")])
def test_an_unknown_hook_harms_nobody(home: Path, client: str, event: str) -> None:
    done = run_hook(home, client, event, {})
    assert (done.returncode, done.stdout) == (0, b"{}\n")
    assert b"Known: " in done.stderr


def test_without_a_home_a_hook_does_nothing(home: Path, project: Path) -> None:
    done = run_hook(home, "cursor", "beforeSubmitPrompt", _sent(project))
    assert (done.returncode, json.loads(done.stdout)) == (0, {"continue": True})
    assert not home.exists()


def test_a_process_that_does_not_answer_costs_no_more_than_the_deadline(home: Path, project: Path) -> None:
    """The listener accepts and says nothing; the answer is empty, and the log has one line without content."""
    address_file(home).parent.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = {"port": silent.getsockname()[1], "token": "t"}
        address_file(home).write_text(json.dumps(place), "utf-8")
        done = run_hook(
            home, "claude-code", "UserPromptSubmit", _sent(project), deadline_ms=2_000, CORTEX_HOOK_IDLE_SECONDS="0"
        )
    assert (done.returncode, done.stdout) == (0, b"{}\n")
    (line,) = (home / "hooks" / "log").read_text("utf-8").splitlines()
    assert "claude-code UserPromptSubmit" in line
    assert "database" not in line
    # The turn was handed to a helper, which kept it and ended.
    wait_for(lambda: [turn.text for _, turn in read_turns(home)] == [QUESTION])
    wait_for(lambda: not processes_of(home))


@pytest.mark.parametrize("kept", [[], [QUESTION]], ids=["never", "late"])
def test_an_input_that_stays_open_costs_no_more_than_the_deadline(home: Path, project: Path, kept: list[str]) -> None:
    """What comes when the answer is given is kept all the same."""
    home.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "cortex_py", "hook", "claude-code", "UserPromptSubmit", "--home", str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "CORTEX_HOOK_DEADLINE_MS": "60", "CORTEX_HOOK_IDLE_SECONDS": "0"},
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == b"{}\n"
        if kept:
            process.stdin.write(json.dumps(_sent(project)).encode())
            process.stdin.close()
        assert process.wait(60) == 0
    wait_for(lambda: [turn.text for _, turn in read_turns(home)] == kept)
    wait_for(lambda: not processes_of(home))


@pytest.mark.slow
def test_the_helper_keeps_the_turn_answers_the_next_hook_and_ends_by_itself(filled: Cortex, repository: Path) -> None:
    home = filled.settings.home
    first = run_hook(home, "claude-code", "SessionStart", _sent(repository), CORTEX_HOOK_IDLE_SECONDS="6")
    assert first.stdout == b"{}\n"
    wait_for(address_file(home).exists)
    # The start that came too late comes with the prompt.
    second = run_hook(home, "claude-code", "UserPromptSubmit", _sent(repository))
    assert DATABASE in context_of(second.stdout)
    assert [turn.text for _, turn in read_turns(home)] == [QUESTION]
    wait_for(lambda: not processes_of(home))
    assert not address_file(home).exists()


@pytest.mark.slow
def test_eight_cold_hooks_start_one_helper_and_lose_nothing(filled: Cortex, repository: Path) -> None:
    home = filled.settings.home
    with ThreadPoolExecutor(8) as pool:
        sent = [_sent(repository, session_id=f"s{n}") for n in range(8)]
        done = list(
            pool.map(lambda one: run_hook(home, "codex", "UserPromptSubmit", one, CORTEX_HOOK_IDLE_SECONDS="1"), sent)
        )
    assert all(one.returncode == 0 for one in done)
    wait_for(lambda: {turn.session for _, turn in read_turns(home)} == {f"s{n}" for n in range(8)})
    assert len(list(read_turns(home))) == 8
    wait_for(lambda: not processes_of(home))


def test_after_a_kill_the_next_hook_starts_a_new_helper_and_nothing_stays(filled: Cortex, repository: Path) -> None:
    home = filled.settings.home
    run_hook(home, "codex", "SessionStart", _sent(repository), CORTEX_HOOK_IDLE_SECONDS="60")
    wait_for(address_file(home).exists)
    killed = json.loads(address_file(home).read_text("utf-8"))["pid"]
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: killed not in processes_of(home))
    done = run_hook(home, "codex", "UserPromptSubmit", _sent(repository), CORTEX_HOOK_IDLE_SECONDS="1")
    assert (done.returncode, DATABASE in context_of(done.stdout)) == (0, True)
    wait_for(lambda: list(read_turns(home)))
    wait_for(lambda: not processes_of(home))


def test_a_start_is_given_from_what_was_prepared_while_nothing_is_warm(filled: Cortex, repository: Path) -> None:
    home = filled.settings.home
    filled.hooks.prepare(repository)
    first = run_hook(home, "codex", "SessionStart", _sent(repository), CORTEX_HOOK_IDLE_SECONDS="0")
    assert DATABASE in context_of(first.stdout)
    wait_for(lambda: not processes_of(home))
    assert (
        filled.hooks.answer(
            {**_sent(repository), "kind": "prompt", "client": "codex", "session": "s", "text": QUESTION}
        ).ids
        == ()
    )
    # It is not given any more once anything has changed.
    filled.memories.capture("One more decision about the event store", namespace="decisions")
    second = run_hook(home, "codex", "SessionStart", _sent(repository), CORTEX_HOOK_IDLE_SECONDS="0")
    assert second.stdout == b"{}\n"
    wait_for(lambda: not processes_of(home))


def _odd_checkouts(top: Path, places: Sequence[str]) -> list[Path]:
    """Folders that came unpacked, each with something else in the place of one file that hooks or git read there.

    A place in `tree` is one of a linked working tree, which the file `.git` of the folder leads to.
    """
    top.mkdir()
    os.mkfifo(top / "pipe")
    found = []
    for number, (place, kind) in enumerate(product(places, KINDS)):
        folder = top / str(number)
        git(top, "init", "-q", "-b", "main", str(folder))
        if place.startswith(".git/worktrees"):
            git(folder, "commit", "-q", "--allow-empty", "-m", "begin")
            git(folder, "worktree", "add", "-q", "-b", "side", str(folder / "tree"))
        odd = folder / place
        if odd.is_dir():
            shutil.rmtree(odd)
        odd.unlink(missing_ok=True)
        put(odd, kind, top / "pipe")
        found.append(folder / "tree" if place.startswith(".git/worktrees") else folder)
    return found


@pytest.mark.slow
def test_folders_with_odd_files_stop_no_hooks_of_others_and_take_no_memory(
    filled: Cortex, repository: Path, tmp_path: Path
) -> None:
    home = filled.settings.home
    pointers = _odd_checkouts(tmp_path / "few", [".git", ".git/HEAD"])
    places = (
        *(".git", ".git/HEAD", ".git/config", ".git/refs/heads/main", ".git/commondir", ".gitignore"),
        *(".git/worktrees/tree/HEAD", ".git/worktrees/tree/gitdir", ".git/worktrees/tree/commondir"),
        *(".cortex/prompts/start.md", "README.md", "pyproject.toml"),
    )
    odd = _odd_checkouts(tmp_path / "many", places)

    def ask(folder: Path, **variables: str) -> bytes:
        sent = _sent(folder, session_id=str(folder), prompt=f"{QUESTION} {folder}")
        return run_hook(home, "codex", "UserPromptSubmit", sent, deadline_ms=2_000, **variables).stdout

    with ThreadPoolExecutor(4) as pool:
        # Where no process is warm, each hook reads by itself, and starts a helper for its turn.
        assert set(pool.map(lambda one: ask(one, CORTEX_HOOK_IDLE_SECONDS="0"), pointers)) == {b"{}\n"}
        wait_for(lambda: not processes_of(home))
        run_hook(home, "codex", "SessionStart", _sent(repository), CORTEX_HOOK_IDLE_SECONDS="8")
        wait_for(address_file(home).exists)
        first = _sent(repository, session_id="first")
        assert DATABASE in context_of(run_hook(home, "codex", "UserPromptSubmit", first).stdout)
        helper = json.loads(address_file(home).read_text("utf-8"))["pid"]
        before = peak_memory(helper)
        assert set(pool.map(ask, odd)) == {b"{}\n"}
    last = _sent(repository, session_id="last")
    assert DATABASE in context_of(run_hook(home, "codex", "UserPromptSubmit", last).stdout)
    assert json.loads(address_file(home).read_text("utf-8"))["pid"] == helper
    assert peak_memory(helper) - before < 300_000_000
    wait_for(lambda: not processes_of(home))
    assert not any(processes_of(folder) for folder in (*pointers, *odd))
    assert {turn.session for _, turn in read_turns(home)} >= {str(folder) for folder in (*pointers, *odd)}


@pytest.mark.slow
def test_a_running_server_answers_hooks_and_the_next_one_takes_over(filled: Cortex, repository: Path) -> None:
    home = filled.settings.home
    filled.close()

    def asked(session: str) -> str:
        sent = _sent(repository, session_id=session)
        return context_of(run_hook(home, "codex", "UserPromptSubmit", sent, CORTEX_HOOK_IDLE_SECONDS="0").stdout)

    with stdio_server(home, repository) as server:
        server.handshake()
        server.call(1, "subcog_status")
        wait_for(address_file(home).exists)
        assert DATABASE in asked("one")
        with http_server(home, repository):
            server.process.kill()
            server.process.wait()
            wait_for(lambda: DATABASE in asked("two"))
    wait_for(lambda: not processes_of(home))


def test_a_server_that_tells_callers_apart_answers_no_hooks(
    filled: Cortex, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = filled.settings.home
    filled.close()
    with http_server(home, repository, CORTEX_AUTH="tokens", CORTEX_PROJECT_ROOTS=str(repository.parent)):
        assert not address_file(home).exists()


def test_only_the_owner_reaches_the_socket(warm: Cortex) -> None:
    place = json.loads(address_file(warm.settings.home).read_text("utf-8"))
    assert address_file(warm.settings.home).stat().st_mode & 0o077 == 0
    if "socket" in place:
        assert Path(place["socket"]).stat().st_mode & 0o077 == 0
    else:
        with socket.create_connection(("127.0.0.1", place["port"])) as stranger:
            stranger.sendall(b'{"kind": "prompt", "token": "guess"}\n')
            assert stranger.recv(100) == b""
