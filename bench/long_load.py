"""Many processes on one home for a long time: is anything lost, does recall slow down, does memory grow?

    python bench/long_load.py                    8 writers and 16 readers for 30 minutes
    python bench/long_load.py --minutes 2

Each process has the home open for itself, as the windows of an editor have. A writer captures a note of 40 words four
times in five seconds, and a reader asks a question as often: about 6 captures and 13 recalls a second, which two cores
can serve, so the figures show what time does to them and not a queue. The store has 5,000 records at the start and
the real model embeds every text.

It fails if an acknowledged capture is not in the store at the end, if the check of the store finds a fault, if the p95
of the recalls in the last sixth of the time is more than 1.2 times that in the first, or if a reader's resident memory
grew by more than a tenth between the first third and the end.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cortex_py import Cortex
from cortex_py.core.errors import MemoryNotFound
from latency import _backend as backend

import report
from synthetic import documents, queries

WRITERS, READERS = 8, 16
AT_START = 5_000
PAUSE = 1.25
SLOWER_MOST = 1.2
LARGER_MOST = 1.1


def _fill(home: Path) -> None:
    made = backend()
    made.bulk = True
    with Cortex.open(home, project=home, backend=made) as cortex:
        cortex.memories._capture.annotator = None
        cortex.memories.capture_many(list(documents(AT_START)))


def _resident_mb() -> float:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("This system does not tell the resident memory of a process.")


def work(home: Path, kind: str, number: int, minutes: float) -> None:
    """What one process does: it says that it is ready, waits for a line, works, and prints one line of JSON."""
    chance = random.Random(number)
    rows: list[tuple[float, float, float]] = []
    ids: list[str] = []
    texts = queries(20_000, seed=1_000 + number)
    with Cortex.open(home, project=home) as cortex:
        cortex.memories.recall("ready")
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.monotonic()
        # Spread over the first pause, so that the processes do not act at the same moment.
        due = began + chance.random() * PAUSE
        turn = 0
        while due < began + minutes * 60:
            time.sleep(max(0.0, due - time.monotonic()))
            started = time.perf_counter()
            if kind == "writer":
                content = f"w{number}x{turn} {' '.join(texts[(turn * 5 + i) % len(texts)] for i in range(5))}"
                ids.append(cortex.memories.capture(content, tags=["load"]).id)
            else:
                cortex.memories.recall(texts[turn % len(texts)])
            rows.append((time.monotonic() - began, (time.perf_counter() - started) * 1e3, _resident_mb()))
            turn += 1
            # A process that is late does not catch up: its next call is a whole pause away from now at most.
            due = max(due + PAUSE, time.monotonic())
    print(json.dumps({"kind": kind, "rows": rows, "ids": ids}))


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def _worked(home: Path, minutes: float) -> list[dict[str, Any]]:
    """What each process printed. None is left behind, whatever happens."""
    command = [sys.executable, __file__, "--minutes", str(minutes), "--home", str(home)]
    with ExitStack() as left:
        processes = []
        # One after the other: what is measured begins when all have loaded the model.
        for number, kind in enumerate(["writer"] * WRITERS + ["reader"] * READERS):
            given = [*command, "--work", kind, "--number", str(number)]
            process = subprocess.Popen(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            left.callback(process.kill)
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise SystemExit("A process did not start.")
            processes.append(process)
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        done = []
        for process in processes:
            output, _ = process.communicate()
            if process.returncode:
                raise SystemExit(f"A process ended with {process.returncode}.")
            done.append(json.loads(output.splitlines()[-1]))
    return done


def run(minutes: float) -> dict[str, Any]:
    seconds = minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        _fill(Path(folder))
        done = _worked(Path(folder), minutes)
        kept = _kept(Path(folder), [id for one in done for id in one["ids"]])
    result: dict[str, Any] = {"minutes": minutes, "writers": WRITERS, "readers": READERS, **kept}
    for kind in ("reader", "writer"):
        rows = [row for one in done if one["kind"] == kind for row in one["rows"]]
        first = [ms for at, ms, _ in rows if at < seconds / 6]
        last = [ms for at, ms, _ in rows if at > seconds * 5 / 6]
        result[kind] = {
            "calls": len(rows),
            "first_p50_ms": statistics.median(first),
            "last_p50_ms": statistics.median(last),
            "first_p95_ms": _p95(first),
            "last_p95_ms": _p95(last),
            "slower": _p95(last) / _p95(first),
            "early_mb": max(mb for at, _, mb in rows if at < seconds / 3),
            "end_mb": max(mb for at, _, mb in rows if at > seconds * 5 / 6),
        }
    return result


def _kept(home: Path, acknowledged: list[str]) -> dict[str, object]:
    with Cortex.open(home, project=home) as cortex:
        faults = cortex.check()
        lost = sum(not _is_there(cortex, id) for id in acknowledged)
    return {"acknowledged": len(acknowledged), "lost": lost, "faults": [str(fault) for fault in faults]}


def _is_there(cortex: Cortex, id: str) -> bool:
    try:
        return cortex.memories.get(id).id == id
    except MemoryNotFound:
        return False


def failures(result: dict[str, Any]) -> list[str]:
    """What did not hold, in words."""
    reader = result["reader"]
    found = [f"{result['lost']} captures are lost"] if result["lost"] else []
    found += [f"a fault in the store: {fault}" for fault in result["faults"]]
    if reader["slower"] > SLOWER_MOST:
        found.append(f"the p95 of a recall grew {reader['slower']:.2f} times")
    if reader["end_mb"] > LARGER_MOST * reader["early_mb"]:
        found.append(f"a reader grew from {reader['early_mb']:.0f} to {reader['end_mb']:.0f} MB")
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--work", choices=("writer", "reader"))
    parser.add_argument("--number", type=int, default=0)
    given = parser.parse_args()
    if given.work:
        work(given.home, given.work, given.number, given.minutes)
        return 0
    result = run(given.minutes)
    columns = ("calls", "first_p50_ms", "last_p50_ms", "first_p95_ms", "last_p95_ms", "slower", "early_mb", "end_mb")
    report.table(("", *columns), [(kind, *(result[kind][c] for c in columns)) for kind in ("reader", "writer")])
    print(f"{result['acknowledged']:,} captures acknowledged, {result['lost']} lost")
    report.write("long_load", result)
    found = failures(result)
    for one in found:
        print(f"NOT HELD: {one}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
