"""How the cost of each operation grows with the store: processor time at several sizes, and the exponent of a fit.

    python bench/growth.py                       1,000, 10,000 and 100,000 records
    python bench/growth.py 1000 10000 --plot docs/pictures/growth.svg

An exponent of 0 is a cost that does not depend on the size, 1 one in proportion to it. Each figure is the median of a
few repetitions, of all threads of the process; processor time, since it depends less on what else a machine does.
`first recall` is that of a fresh process, model and all, after an earlier one has searched the store. A push follows
changes of 1% of the records. Consolidation is measured up to 10,000. Records are synthetic (see `synthetic.py`),
without a graph.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np

from cortex_py import Cortex
from latency import _backend as backend

import report
from charts import Axis, Series, draw
from synthetic import BulkBackend, documents, queries

SIZES = (1_000, 10_000, 100_000)
CONSOLIDATED_MOST = 10_000
# A cost of N log N between a thousand and a million records has about this exponent.
N_LOG_N = 1.15
_OPTIONS: dict[str, object] = {"snapshot_every": "off", "passphrase": "seven small stones in a row"}


def _open(home: Path, made: BulkBackend) -> Cortex:
    cloud = home.parent / f"{home.name}-cloud"
    cloud.mkdir(exist_ok=True)
    return Cortex.open(home, project=home, backend=made, cloud_url=str(cloud), **_OPTIONS)


def fill(home: Path, size: int) -> None:
    home.mkdir()
    made = backend()
    made.bulk = True
    with _open(home, made) as cortex:
        cortex.memories._capture.annotator = None
        source = documents(size)
        while batch := list(islice(source, 5_000)):
            cortex.memories.capture_many(batch)


def _used(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e3


def first_recall(home: Path) -> float:
    """In this process, which has done nothing else yet."""
    made = backend()
    (text,) = queries(1, seed=41)
    began = time.process_time()
    with _open(home, made) as cortex:
        cortex.memories.recall(text)
        return (time.process_time() - began) * 1e3


def _first_recall(home: Path) -> float:
    done = subprocess.run([sys.executable, __file__, "--first", str(home)], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def measure(home: Path, size: int) -> dict[str, float]:
    figures = {"first recall, no file": _first_recall(home)}
    figures["first recall"] = median(_first_recall(home) for _ in range(3))
    made = backend()
    with _open(home, made) as cortex:
        memories = cortex.memories
        texts = queries(80, seed=43)
        for _ in range(10):
            memories.recall(texts.pop())
        figures["recall"] = median(_used(lambda: memories.recall(texts.pop())) for _ in range(60))
        notes = queries(30, seed=47, words=40)
        figures["capture"] = median(_used(lambda: memories.capture(notes.pop())) for _ in range(20))
        figures["gc"] = median(_used(lambda: memories.gc(dry_run=True)) for _ in range(3))
        figures["snapshot"] = _used(lambda: cortex.backups.create("growth"))
        cortex.backups.push()
        made.bulk = True
        for hit in memories.recall(limit=min(1_000, max(1, size // 100))).results:
            memories.update(hit.memory.id, content=f"{hit.memory.content} changed")
        figures["push of 1%"] = _used(cortex.backups.push)
        made.bulk = False
        if size <= CONSOLIDATED_MOST:
            figures["consolidate"] = _used(lambda: memories.consolidate(dry_run=True))
    return figures


def exponent(points: list[tuple[int, float]]) -> float:
    sizes, costs = (np.log([point[n] for point in points]) for n in range(2))
    return float(np.polyfit(sizes, costs, 1)[0]) if len(points) > 1 else math.nan


def plot(curves: dict[str, list[tuple[int, float]]]) -> str:
    """Milliseconds of processor time against records, both logarithmic."""
    sizes = sorted({size for curve in curves.values() for size, _ in curve})
    costs = [math.log10(cost) for curve in curves.values() for _, cost in curve]
    powers = range(math.floor(min(costs)), math.ceil(max(costs)) + 1)
    return draw(
        "Processor time against records",
        Axis("records", [(size, f"{size:,}") for size in sizes], logarithmic=True),
        Axis("ms of processor time", [(10.0**power, f"{10.0**power:,g}") for power in powers], logarithmic=True),
        [
            Series(f"{name} (N^{exponent(curve):.2f})", [(size, cost, 3) for size, cost in curve])
            for name, curve in curves.items()
        ],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--plot", type=Path, help="write a plot")
    parser.add_argument("--first", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.first:
        print(json.dumps(first_recall(chosen.first)))
        return 0
    curves: dict[str, list[tuple[int, float]]] = {}
    for size in chosen.sizes:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            fill(home, size)
            for name, cost in measure(home, size).items():
                curves.setdefault(name, []).append((size, cost))
        print(f"{size:,} records done", file=sys.stderr)
    rows = []
    for name, curve in curves.items():
        costs = dict(curve)
        grows = exponent(curve)
        rows.append([name, *(costs.get(size, math.nan) for size in chosen.sizes), grows, grows <= N_LOG_N])
    report.table(["ms of processor time", *(f"{size:,}" for size in chosen.sizes), "exponent", "at most N log N"], rows)
    report.write("growth", {"curves": curves, "exponents": {name: exponent(curve) for name, curve in curves.items()}})
    if chosen.plot:
        chosen.plot.write_text(plot(curves), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
