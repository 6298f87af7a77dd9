"""`kill -9` in the middle of writing: what was acknowledged is there, nothing is there by half."""

import random
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.clock import SystemClock
from cortex_py.core.store.sqlite import open_sqlite

from forking import python_command
from stub_backend import StubBackend

WRITER = Path(__file__).with_name("writer.py")


def _kill_once(home: Path, project: Path, number: int, after: int) -> list[str]:
    """Let a writer acknowledge some memories, kill it, and return what it had acknowledged."""
    process = subprocess.Popen(
        [*python_command(), str(WRITER), str(home), str(project), str(number), "100000", "aloud"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().strip() for _ in range(after)]
    process.kill()
    acknowledged += [line.strip() for line in process.stdout.read().splitlines() if len(line.strip()) == 40]
    process.wait()
    process.stdout.close()
    return acknowledged


def check_survival(home: Path, project: Path, rounds: int) -> None:
    moments = random.Random(17)
    acknowledged: set[str] = set()
    for number in range(rounds):
        acknowledged |= set(_kill_once(home, project, number, moments.randrange(1, 40)))
        with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
            assert cortex.check() == []
            with closing(open_sqlite(home / "cortex.db", SystemClock())) as database, database.read() as session:
                halves = session.rows(
                    "SELECT count(*) FROM memory m WHERE NOT EXISTS (SELECT 1 FROM chunk c WHERE c.num = m.num)"
                )
                ids = {row[0] for row in session.rows("SELECT id FROM memory")}
                indexed = session.rows("SELECT count(*) FROM memory_text")
            assert halves == [(0,)]
            assert acknowledged <= ids
            assert indexed == [(len(ids),)]
    # At most the one write that each kill interrupted between commit and acknowledgement.
    assert len(ids - acknowledged) <= rounds


def test_acknowledged_writes_survive_a_few_kills(home: Path, project: Path) -> None:
    check_survival(home, project, 3)


@pytest.mark.soak
def test_acknowledged_writes_survive_a_hundred_kills(home: Path, project: Path) -> None:
    check_survival(home, project, 100)
