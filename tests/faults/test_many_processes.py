"""Several processes on one home: nothing is lost, nobody is told of a lock, all is found at once."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from cortex_py import Cortex

import report
from forking import python_command
from stub_backend import StubBackend

WRITER = Path(__file__).with_name("writer.py")


def _run(home: Path, project: Path, writers: int, each: int) -> list[str]:
    command = [*python_command(), str(WRITER), str(home), str(project)]
    processes = [
        subprocess.Popen([*command, str(number), str(each)], stdout=subprocess.PIPE, text=True)
        for number in range(writers)
    ]
    acknowledged: list[str] = []
    with Cortex.open(home, project=project, backend=StubBackend()) as reader:
        while any(process.poll() is None for process in processes):
            reader.memories.recall("note from writer", mode="text", limit=5)
    for process in processes:
        output, _ = process.communicate()
        assert process.returncode == 0
        acknowledged += json.loads(output)
    return acknowledged


def check_nothing_lost(home: Path, project: Path, acknowledged: list[str], writers: int, each: int) -> None:
    assert len(set(acknowledged)) == writers * each
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        assert cortex.check() == []
        assert cortex.memories.recall(limit=1).total == writers * each
        for number in range(writers):
            for turn in (0, each // 2, each - 1):
                word = f"w{number}x{turn}"
                assert cortex.memories.recall(word, mode="text").results[0].memory.content.endswith(word)


def test_four_processes_write_while_another_reads(home: Path, project: Path) -> None:
    check_nothing_lost(home, project, _run(home, project, 4, 25), 4, 25)


@pytest.mark.soak
def test_eight_processes_write_five_hundred_each(home: Path, project: Path) -> None:
    check_nothing_lost(home, project, _run(home, project, 8, 500), 8, 500)


@pytest.mark.soak
def test_half_an_hour_of_eight_writers_and_sixteen_readers(tmp_path: Path) -> None:
    script = Path(report.__file__).with_name("long_load.py")
    done = subprocess.run(
        [*python_command(), str(script)], env=os.environ | {"CORTEX_BENCH_RESULTS": str(tmp_path)}, check=False
    )
    assert done.returncode == 0
