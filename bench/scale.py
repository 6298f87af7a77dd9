"""What a store on PostgreSQL takes: bytes by table, time of a recall and of a capture by part.

    python bench/scale.py                   50,000 records, figures into bench/data/scale_figures.json
    python bench/scale.py 2000 --dry        fewer, only shown

The server is one of its own, from the wheel that the tests use, with durable commits. The records are synthetic (see
`synthetic.py`), in one space; queries are embedded by the real model. `scale_model.py` reads the figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from cortex_py import Cortex
from cortex_py.team.postgres import engine as postgres
from latency import _backend as backend
from latency import _memory_mb as memory_mb

import report
from synthetic import documents, queries

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import postgres_server

FIGURES = Path(__file__).parent / "data" / "scale_figures.json"
_DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "autovacuum": "on"}
_ROOM = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
_RECALLS, _CAPTURES = 300, 200
_SIZES = """
    SELECT c.relname, c.reltuples::bigint, pg_table_size(c.oid), pg_indexes_size(c.oid)
    FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 3 DESC, 1
"""


class Clocked:
    """Time spent in statements, and in transactions that hold the writers' lock."""

    def __init__(self) -> None:
        self.statements, self.count = 0.0, 0
        self.held_each: list[float] = []
        session = postgres._PostgresSession
        for name in ("rows", "run", "run_many"):
            setattr(session, name, self._timed(getattr(session, name)))
        write = postgres.PostgresDatabase.write

        @contextmanager
        def held(database: postgres.PostgresDatabase, *spaces: str, derived: bool = False) -> Iterator[object]:
            with write(database, *spaces, derived=derived) as found:
                started = time.perf_counter()
                yield found
            # The commit is within: the lock is given back by it.
            self.held_each.append(time.perf_counter() - started)

        postgres.PostgresDatabase.write = held  # type: ignore[method-assign, assignment]

    def _timed(self, method: Callable[..., object]) -> Callable[..., object]:
        def timed(*given: object) -> object:
            started = time.perf_counter()
            try:
                return method(*given)
            finally:
                self.statements += time.perf_counter() - started
                self.count += 1

        return timed


def fill(url: str, home: Path, records: int) -> float:
    made = backend()
    made.bulk = True
    with Cortex.open(home, project=home, backend=made, database_url=url) as cortex:
        started = time.perf_counter()
        source = documents(records)
        while batch := list(islice(source, 5_000)):
            cortex.memories.capture_many(batch)
        return records / (time.perf_counter() - started)


def sizes(server: postgres_server.PostgresServer, database: str, records: int) -> dict[str, dict[str, float]]:
    """Bytes for each memory, by table: rows with what is stored beside them, and indexes."""
    server.run("VACUUM ANALYZE", database)
    return {
        str(table): {
            "rows": round(int(rows) / records, 3),
            "table_bytes": round(int(heap) / records, 1),
            "index_bytes": round(int(indexes) / records, 1),
        }
        for table, rows, heap, indexes in server.run(_SIZES, database)  # type: ignore[call-overload]
        if int(rows) >= records / 1_000
    }


def _server_cpu(url: str) -> float:
    """Seconds of processor time that the server's processes have used, those that are still there."""
    folder = unquote(url.partition("@")[2].rpartition("/")[0])
    postmaster = (Path(folder) / "data" / "postmaster.pid").read_text().splitlines()[0]
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == postmaster:
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def recalls(url: str, home: Path) -> dict[str, float]:
    """Warm recalls of one caller, one after the other."""
    clocked, made = Clocked(), backend()
    started = time.perf_counter()
    with Cortex.open(home, project=home, backend=made, database_url=url) as cortex:
        texts = queries(_RECALLS + 20)
        cortex.memories.recall(texts.pop())
        first = time.perf_counter() - started
        for _ in range(10):
            cortex.memories.recall(texts.pop())
        clocked.statements, clocked.count = 0.0, 0
        taken, begun, used, used_there = [], time.perf_counter(), time.process_time(), _server_cpu(url)
        for _ in range(_RECALLS):
            one = time.perf_counter()
            cortex.memories.recall(texts.pop())
            taken.append(time.perf_counter() - one)
        wall, cpu = time.perf_counter() - begun, time.process_time() - used
        return {
            "first_recall_s": first,
            "recall_p50_ms": float(np.percentile(taken, 50)) * 1e3,
            "recall_p95_ms": float(np.percentile(taken, 95)) * 1e3,
            "recall_app_cpu_ms": cpu / _RECALLS * 1e3,
            "recall_server_cpu_ms": (_server_cpu(url) - used_there) / _RECALLS * 1e3,
            "recall_statements": clocked.count / _RECALLS,
            "recall_statements_ms": clocked.statements / _RECALLS * 1e3,
            "recalls_per_s_one_caller": _RECALLS / wall,
            "process_mb": memory_mb(),
        }


def captures(url: str, home: Path, count: int, seed: int) -> dict[str, float]:
    """Captures of one process, one transaction each, without the time of the model."""
    clocked, made = Clocked(), backend()
    made.bulk = True
    with Cortex.open(home, project=home, backend=made, database_url=url) as cortex:
        notes = list(documents(count + 5, seed=seed))
        for note in notes[:5]:
            cortex.memories.capture_many([note])
        clocked.held_each.clear()
        clocked.count = 0
        used, used_there, begun = time.process_time(), _server_cpu(url), time.perf_counter()
        for note in notes[5:]:
            cortex.memories.capture_many([note])
        wall, cpu, cpu_there = time.perf_counter() - begun, time.process_time() - used, _server_cpu(url) - used_there
    held = clocked.held_each[:count]
    return {
        "captures_per_s": count / wall,
        "capture_app_cpu_ms": cpu / count * 1e3,
        "capture_server_cpu_ms": cpu_there / count * 1e3,
        "capture_statements": clocked.count / count,
        "lock_held_p10_ms": float(np.percentile(held, 10)) * 1e3,
        "lock_held_p50_ms": float(np.percentile(held, 50)) * 1e3,
        "lock_held_p95_ms": float(np.percentile(held, 95)) * 1e3,
        "lock_held_mean_ms": float(np.mean(held)) * 1e3,
    }


def _apart(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, *words], stdout=subprocess.PIPE)


def _answers(*running: subprocess.Popen[bytes]) -> list[dict[str, float]]:
    return [json.loads(one.communicate()[0]) for one in running]


def measure(records: int) -> dict[str, object]:
    postgres_server._SETTINGS.update(_DURABLE | _ROOM)
    with postgres_server.running_server() as server, tempfile.TemporaryDirectory() as folder:
        server.run("CREATE DATABASE measured")
        url, home = server.url("measured"), str(Path(folder))
        filled = fill(url, Path(folder), records)
        by_table = sizes(server, "measured", records)
        (recalled,) = _answers(_apart("recalls", url, home))
        (alone,) = _answers(_apart("captures", url, home, str(_CAPTURES), "100"))
        return {
            "records": records,
            "cores": os.cpu_count() or 1,
            "bulk_records_per_s": filled,
            "tables": by_table,
            **recalled,
            **alone,
        }


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["recalls"]:
        print(json.dumps(recalls(words[1], Path(words[2]))))
        return
    if words[:1] == ["captures"]:
        print(json.dumps(captures(words[1], Path(words[2]), int(words[3]), int(words[4]))))
        return
    found = measure(int(words[0]) if words else 50_000)
    tables = found["tables"]
    assert isinstance(tables, dict)
    report.table(("table", "rows", "bytes", "index bytes"), [(name, *one.values()) for name, one in tables.items()])
    report.table(("figure", "value"), [(name, value) for name, value in found.items() if name != "tables"])
    if "--dry" not in words:
        kept = {name: round(value, 3) if isinstance(value, float) else value for name, value in found.items()}
        FIGURES.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
