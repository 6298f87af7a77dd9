"""`cortex migrate`: from the file to PostgreSQL and back, as a person does it."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from forking import python_command
from homes import fill, opened, state
from shell import Shell

TESTS = Path(__file__).parents[1]


@pytest.mark.slow
def test_everything_is_there_after_a_move_and_after_the_way_back(home: Path, project: Path, postgres_url: str) -> None:
    shell = Shell(home, project)
    assert shell.run("capture", "Kafka carries the events").returncode == 0
    done = shell.run("migrate", "--to", postgres_url)
    assert done.returncode == 0, done.stderr
    assert "1 memory in 1 space" in done.stdout
    shared = Shell(home, project, CORTEX_DATABASE_URL=postgres_url)
    assert "Kafka carries" in shared.run("recall", "kafka").stdout
    assert shared.run("capture", "Redis caches the carts").returncode == 0
    elsewhere = Shell(home.with_name("elsewhere"), project, CORTEX_DATABASE_URL=postgres_url)
    moved = elsewhere.json("migrate", "--to", "home")
    assert (moved["spaces"], moved["documents"]["memory"]) == (1, 2)
    assert "Redis caches" in Shell(home.with_name("elsewhere"), project).run("recall", "redis").stdout


def test_a_place_that_is_none_is_told(home: Path, project: Path) -> None:
    shell = Shell(home, project)
    for place in ("somewhere", "home", "postgresql://me:hunter2@127.0.0.1:1/db"):
        done = shell.run("migrate", "--to", place)
        assert done.returncode not in (0, 1)
        assert "hunter2" not in done.stderr + done.stdout
        assert "Traceback" not in done.stderr


_KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from homes import opened
home, project = map(Path, sys.argv[2:4])
source, target, number = sys.argv[4] or None, sys.argv[5] or None, int(sys.argv[6])
calls = 0

def progress(done, total):
    global calls
    calls += 1
    if calls == number:
        os.kill(os.getpid(), signal.SIGKILL)

with opened(home, project, database_url=source) as cortex:
    print(cortex.move_to(target, progress).there_already)
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["there", "back"])
def test_a_move_that_is_killed_at_any_step_changes_nothing_here_and_is_finished_by_another(
    home: Path, project: Path, postgres_url: str, way: str
) -> None:
    source, target = (None, postgres_url) if way == "there" else (postgres_url, None)
    with opened(home, project, database_url=source) as cortex:
        fill(cortex)
        before, own = state(cortex), state(cortex, space="user:local")
    said = []
    assert own
    for number in range(1, 20):
        command = [*python_command(), "-c", _KILLED, str(TESTS), str(home), str(project), source or "", target or ""]
        done = subprocess.run([*command, str(number)], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        with opened(home, project, database_url=source) as cortex:
            assert (state(cortex), state(cortex, space="user:local"), cortex.check()) == (before, own, [])
        said.append(done.stdout.strip())
        if done.returncode == 0:
            break
    # Each step was reached, and what an earlier run had finished was there already.
    assert len(said) > 3
    assert int(said[-1]) == len(said) - 2
    with opened(home, project, database_url=target) as cortex:
        assert (state(cortex), state(cortex, space="user:local"), cortex.check()) == (before, own, [])
