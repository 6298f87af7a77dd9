"""A large space on PostgreSQL: hybrid recall beside SQLite and beside a plain pgvector query, in one run.

    python bench/postgres.py                         100,000 memories, on a server of its own
    python bench/postgres.py 1000000                 so many
    python bench/postgres.py 1000000 --keep FOLDER --url postgresql://…
                                                     stores that stay, filled where they are not yet

Filters let through everything, about 10% and about 1%. `recall@10` compares the ten nearest that the vector half of a
search gives with the exact ten under the same filter; `same@10` the answers of hybrid recall with those it gives when
all vectors are compared. Query vectors are drawn like those of the documents and cost no model, so times are those
beyond embedding.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import numpy as np
import psycopg

from cortex_py import Cortex
from cortex_py.core.clock import to_micros
from cortex_py.core.config import load_settings
from cortex_py.core.embedding.backends.registry import open_backend
from cortex_py.core.memory.recall.filters import parse_filter
from cortex_py.core.store.search import search as engine_space
from cortex_py.core.store.search.filters import View
from cortex_py.team.postgres import vector_index
from cortex_py.team.postgres.vector_index import as_vector

import report
from synthetic import KnownQueries, documents, queries

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

FILTERS = {"none": "", "10%": "tag:" + ",".join(f"t{n}" for n in range(10)), "1%": "tag:t5"}
# As is customary, a quarter of the machine's memory for the server's pages.
_QUARTER = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
SERVER = {
    "shared_buffers": f"{_QUARTER >> 20}MB",
    "maintenance_work_mem": "2GB",
    "max_wal_size": "4GB",
    "autovacuum": "on",
}
TIMED, COMPARED = 100, 40
# As many as a recall of ten asks its vector half for.
CANDIDATES = 32


def _backend() -> KnownQueries:
    return KnownQueries(open_backend(settings=load_settings(os.environ.get("CORTEX_BENCH_HOME"))))


@contextmanager
def _opened(folder: Path, backend: KnownQueries, url: str | None) -> Iterator[Cortex]:
    home = folder / ("postgres" if url else "sqlite")
    home.mkdir(parents=True, exist_ok=True)
    with Cortex.open(home, project=folder, backend=backend, database_url=url, snapshot_every="off") as cortex:
        # What is measured is search; reading every text for the graph would take most of the filling.
        cortex.memories._capture.annotator = None
        yield cortex


def _fill(cortex: Cortex, backend: KnownQueries, size: int) -> float:
    """Captures per second; nothing where it is filled already."""
    if cortex.memories.status().total_count >= size:
        return float("nan")
    backend.bulk = True
    began, source = time.perf_counter(), documents(size)
    while batch := list(islice(source, 20_000)):
        cortex.memories.capture_many(batch)
    backend.bulk = False
    return size / (time.perf_counter() - began)


def _build(cortex: Cortex) -> float:
    nearest = cortex._store.database.vector_index
    assert nearest is not None
    began = time.perf_counter()
    assert nearest.build(cortex.project.id, cortex.backend.dimensions, lambda: False)
    return time.perf_counter() - began


def _read_codes(cortex: Cortex) -> float:
    """What a server does between calls, once a query has shown a need for it."""
    cortex.memories.recall(queries(1)[0], filter=FILTERS["1%"])
    began = time.perf_counter()
    cortex._store.read_codes(lambda: False)
    return time.perf_counter() - began


def _times(cortex: Cortex, filter: str, texts: list[str]) -> tuple[float, float]:
    for text in texts[:10]:
        cortex.memories.recall(text, filter=filter)
    taken = []
    for text in texts[10 : 10 + TIMED]:
        began = time.perf_counter()
        cortex.memories.recall(text, filter=filter)
        taken.append(time.perf_counter() - began)
    return float(np.quantile(taken, 0.5) * 1e3), float(np.quantile(taken, 0.95) * 1e3)


def _same(cortex: Cortex, filter: str, texts: list[str]) -> float:
    """The share of hybrid recall's ten best that are the same when all vectors are compared."""

    def best() -> list[set[str]]:
        return [{hit.memory.id for hit in cortex.memories.recall(text, filter=filter).results} for text in texts]

    quick = best()
    with patch.object(vector_index, "_EXACT", 1 << 60), patch.object(engine_space, "_SELDOM", 1 << 60):
        exact = best()
    return float(np.mean([len(one & other) / max(1, len(other)) for one, other in zip(quick, exact, strict=True)]))


def _against_exact(cortex: Cortex, url: str, filter: str, texts: list[str]) -> dict[str, float]:
    """The vector half and a plain query of pgvector with its default settings, both against the exact ten."""
    store, space = cortex._store, cortex.project.id
    parsed = parse_filter(filter, now=cortex._clock.now()).filter
    ours, plain, ours_ms, plain_ms, exact_ms = [], [], [], [], []
    with psycopg.connect(url, autocommit=True) as connection, store.database.read() as session:
        view = View((space,), to_micros(cortex._clock.now()))
        scope = store.scope(session, parsed, view)
        where = scope.where
        (part,) = session.rows("SELECT part FROM near_space WHERE space = ?", (space,))[0]
        (half,) = store.search.look_up(session, scope, [], CANDIDATES)
        assert isinstance(half, engine_space._Wide)
        statement = (
            f"SELECT v.num FROM {part} v JOIN memory m ON m.space = v.space AND m.num = v.num WHERE "
            f"{where.sql.replace('%', '%%').replace('?', '%s')} ORDER BY {{}} LIMIT 10"
        )
        for text in texts:
            vector = cortex.backend.embed([text])[0]
            asked, distance = as_vector(vector.tobytes()), f"v.vector::halfvec({len(vector)}) <#> %s::halfvec"

            def ten(order: str, asked: str = asked) -> tuple[list[int], float]:
                began = time.perf_counter()
                found = connection.execute(statement.format(order).encode(), (*where.params, asked)).fetchall()
                return [row[0] for row in found], (time.perf_counter() - began) * 1e3

            exact, taken = ten(f"({distance}) + 0")
            exact_ms.append(taken)
            found, taken = ten(distance)
            plain.append(len(set(found) & set(exact)) / 10)
            plain_ms.append(taken)
            began = time.perf_counter()
            found = half._closest(session, vector, CANDIDATES)[:10]
            ours_ms.append((time.perf_counter() - began) * 1e3)
            ours.append(len(set(found) & set(exact)) / 10)
    return {
        "recall_at_10": float(np.mean(ours)),
        "vector_ms": float(np.median(ours_ms)),
        "plain_recall_at_10": float(np.mean(plain)),
        "plain_ms": float(np.median(plain_ms)),
        "exact_ms": float(np.median(exact_ms)),
    }


def _server(stack: ExitStack) -> str:
    import postgres_server

    postgres_server._SETTINGS.update(SERVER)
    server = stack.enter_context(postgres_server.running_server())
    server.run("CREATE DATABASE bench")
    return server.url("bench")


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("size", type=int, nargs="?", default=100_000)
    reader.add_argument("--keep", type=Path)
    reader.add_argument("--url")
    chosen = reader.parse_args()
    with ExitStack() as stack:
        folder = chosen.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = chosen.url or _server(stack)
        backend, rows, result = _backend(), [], {}
        postgres = stack.enter_context(_opened(folder, backend, url))
        result["postgres_captures_per_s"] = _fill(postgres, backend, chosen.size)
        result["index_seconds"] = _build(postgres)
        result["codes_seconds"] = _read_codes(postgres)
        backend_too = _backend()
        sqlite = stack.enter_context(_opened(folder, backend_too, None))
        result["sqlite_captures_per_s"] = _fill(sqlite, backend_too, chosen.size)
        texts = queries(10 + TIMED)
        for name, filter in FILTERS.items():
            p50, p95 = _times(postgres, filter, texts)
            sqlite_p50, sqlite_p95 = _times(sqlite, filter, texts)
            found = _against_exact(postgres, url, filter, texts[:COMPARED])
            row = {
                "filter": name,
                "p50_ms": p50,
                "p95_ms": p95,
                **found,
                "same_at_10": _same(postgres, filter, texts[:COMPARED]),
            }
            rows.append(row | {"sqlite_p50_ms": sqlite_p50, "sqlite_p95_ms": sqlite_p95})
    report.table(list(rows[0]), [list(row.values()) for row in rows])
    print({name: round(value, 1) for name, value in result.items()})
    report.write("postgres", {"records": chosen.size, "rows": rows, **result})


if __name__ == "__main__":
    main()
