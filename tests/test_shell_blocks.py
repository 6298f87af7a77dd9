"""Every block of shell on a page runs, in order, as a person would paste it: on a fresh home, in a fresh repository."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from pasted import programs

from forking import cortex_command
from helpers import git
from postgres_server import PostgresServer, installed_programs

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = [
    page for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]) if BLOCK.search(page.read_text("utf-8"))
]
# A server ends when it has shown that it answers, except the one that `curl` starts and ends.
CORTEX = """#!/bin/bash
case " $* " in
*" --port 0 "*) exec {command} "$@" ;;
*" --http "*) exec {python} {serve} {command} "$@" --port 0 ;;
*) exec {command} "$@" ;;
esac
"""
SERVE = """
import re, socket, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
try:
    port = int(re.search(r"://[^/]*:(\\d+)", process.stdout.readline())[1])
    socket.create_connection(("127.0.0.1", port), 30).close()
finally:
    process.terminate()
    status = process.wait()
sys.exit(status)
"""


@pytest.fixture
def person(home: Path, tmp_path: Path, postgres_server: PostgresServer) -> dict[str, str]:
    """The environment of somebody with a repository, a few files of other programs, and a database server."""
    programs_folder, repository = tmp_path / "bin", tmp_path / "repository"
    programs_folder.mkdir()
    repository.mkdir()
    git(repository, "init", "-q", "-b", "trunk")
    (repository / "README.md").write_text("# Shop\n\nThe shop keeps its orders in PostgreSQL.\n")
    (repository / "auth.py").write_text("ACCESS_SECONDS = 600\n\n\ndef issue_refresh_token(): ...\n")
    (repository / "answer.md").write_text("`issue_refresh_token` is defined in auth.py.\n")
    (repository / "My note.md").write_text("Deploy on Tuesdays.\n")
    (repository / "old-tool.json").write_text('[{"content": "The queue is RabbitMQ"}]')
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    (repository / "CLAUDE.md").write_text("- Use pnpm.\n")
    (repository / "facts.csv").write_text("note,day\nThe shop closes at noon,2026-01-02\n")
    (repository / "conversations.json").write_text("[]")
    (repository / "deploy").symlink_to(ROOT / "deploy")
    (repository / ".ci").mkdir()
    (repository / ".ci" / "run").write_text(f"#!/bin/sh\ntest -x {ROOT}/.ci/run\n")
    (repository / ".ci" / "run").chmod(0o755)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "first")
    (programs_folder / "serve.py").write_text(SERVE)
    words = " ".join(cortex_command())
    start = CORTEX.format(python=sys.executable, serve=programs_folder / "serve.py", command=words)
    scripts = {"cortex": start} | {
        name: f'#!/bin/sh\nexec {sys.executable} {programs.__file__} {name} "$@"\n' for name in programs.NAMES
    }
    for name, text in scripts.items():
        (programs_folder / name).write_text(text)
        (programs_folder / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CORTEX_", "PG"))}
    return {
        **kept,
        "HOME": str(tmp_path),
        "PATH": f"{programs_folder}{os.pathsep}{installed_programs()}{os.pathsep}{os.environ['PATH']}",
        "CORTEX_HOME": str(home),
        # Hooks leave no helper behind.
        "CORTEX_HOOK_IDLE_SECONDS": "0",
        "PGHOST": str(postgres_server.folder),
        "PGUSER": "postgres",
    }


def _at_terminal(command: str, folder: Path, person: dict[str, str]) -> str:
    """What a terminal shows of a command, without the lines of progress that it wipes away again."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(["bash", "-c", command], cwd=folder, env=person, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # that is how a terminal ends
        while part := os.read(ours, 65_536):
            shown += part
    os.close(ours)
    process.wait(60)
    return re.sub(r"\r\x1b\[2K[^\r\n]*(?=\r\x1b\[2K)|\r\x1b\[2K", "", shown.decode()).replace("\r\n", "\n")


def test_an_exchange_of_the_readme_is_real(person: dict[str, str], tmp_path: Path) -> None:
    """In a folder that holds nothing but what the exchange makes."""
    block = re.search(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert block
    folder = tmp_path / "empty"
    folder.mkdir()
    at_terminal = {**person, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "110", "TMPDIR": str(tmp_path)}
    shown = [
        f"$ {command}\n{_at_terminal(command, folder, at_terminal)}"
        for command in re.findall(r"^\$ (.*)$", block[1], re.MULTILINE)
    ]
    assert _without_ids_and_dates("".join(shown)) == _without_ids_and_dates(block[1])


def _without_ids_and_dates(text: str) -> str:
    return re.sub(r"\b\d{4}-\d\d-\d\d\b", "DATE", re.sub(r"\b[0-9a-f]{16,40}\b", "ID", text))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_shell_of_a_page_runs(page: Path, person: dict[str, str], tmp_path: Path) -> None:
    script = "".join(BLOCK.findall(page.read_text("utf-8")))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path / "repository",
        env=person,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
