"""Every group of commands in an interpreter of its own, where nothing is imported yet; other tests fork theirs."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cortex_py.surfaces.cli import _COMMANDS
from timing import MINUTE

from helpers import git
from servers import http_server, serve_environment
from shell import Shell

# What to run of a module of commands; its help where nothing stands here.
WORDS = {
    "memories": ("recall",),
    "upkeep": ("status", "--json"),
    "tidy": ("consolidate", "--dry-run"),
    "suggest": ("automation",),
    "verify": ("verify", "The function gross() is in prices.py."),
    "branch": ("branch", "list"),
    "graph": ("graph", "stats"),
    "prompt": ("prompt", "list"),
    "template": ("template", "list"),
    "embed": ("embed", "word"),
}
# One command of each module: it is the module that has to be there.
STARTS = [(words, 0) for words in ({m: (name, "--help") for name, (m, _) in _COMMANDS.items()} | WORDS).values()]
STARTS += [(("get", "0" * 40), 4), (("teleport",), 2)]


@pytest.fixture
def shell(home: Path, project: Path) -> Shell:
    git(project, "init", "-q", "-b", "main")
    (project / "prices.py").write_text("def gross(net: float) -> float:\n    return net * 1.19\n", "utf-8")
    return Shell(home, project)


@pytest.mark.slow
@pytest.mark.parametrize(("words", "code"), sorted(set(STARTS)), ids=str)
def test_it_does_in_an_interpreter_of_its_own_what_a_forked_one_does(
    shell: Shell, words: tuple[str, ...], code: int
) -> None:
    shell.text("status")
    started = subprocess.run(
        [sys.executable, "-m", "cortex_py", *words],
        cwd=shell.project,
        env={**os.environ, **shell.variables},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    forked = shell.run(*words)
    assert started.returncode == code, started.stderr
    assert (forked.returncode, forked.stdout, forked.stderr) == (code, started.stdout, started.stderr)


def test_whoever_stands_for_a_forked_process_takes_it_along(home: Path, project: Path) -> None:
    with http_server(home, project) as server:
        place = urlsplit(server.url)
        socket.create_connection((str(place.hostname), place.port or 0), timeout=MINUTE).close()
        server.process.kill()
        assert server.process.wait(MINUTE) == -signal.SIGKILL
        assert server.process.stdout is not None
        # Ends when nobody can write there any more.
        server.process.stdout.read()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((str(place.hostname), place.port or 0), timeout=MINUTE)


@pytest.mark.skipif(os.name != "posix", reason="limits of processes")
@pytest.mark.parametrize("words", [("status",), ("capture", "a note")])
def test_a_process_without_files_left_says_what_to_do(home: Path, project: Path, words: tuple[str, ...]) -> None:
    limited = ["sh", "-c", 'ulimit -n 6; exec "$@"', "sh", sys.executable, "-m", "cortex_py", *words]
    done = subprocess.run(
        limited, cwd=project, env=serve_environment(home), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ulimit -n 1024" in done.stderr
    assert "Traceback" not in done.stderr
    assert 'File "' not in done.stderr
