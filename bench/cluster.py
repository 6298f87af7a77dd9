"""Cortex on a Citus cluster: beside one server, and with millions of memories in many spaces.

    python bench/cluster.py compare URL_OF_ONE_SERVER URL_OF_A_COORDINATOR [RECORDS]
    python bench/cluster.py serve                           a coordinator and two workers, until the input ends
    python bench/cluster.py --fill URL FOLDER [SPACES [RECORDS]]        500 spaces of 10,000
    python bench/cluster.py --measure URL FOLDER            figures into bench/data/cluster_figures.json

`compare`: both databases are empty at the start. Each gets the same synthetic records in one project; the second is
distributed. Calls alternate, so that the load of the machine meets both alike: compare the ratio, not the times.

`serve` prints the address of an empty store. CORTEX_TEST_CITUS names the installation that `make soak-citus` builds.

`--fill` distributes an empty store and fills the first space of every shard through the store's own code, a COPY for
each table and a thousand records. Each space is a project with a folder of its own. Texts are drawn without repetition
from 15,000 that the library checked and indexed; vectors are real embeddings of some of them with noise. The other
spaces are copied from the first on its worker, with numbers and ids of their own. The text index is built at the end,
and the graph is left out. A fill that was interrupted goes on where it was.

`--measure` takes sizes, then recalls and captures of one process. `cold` is the first recall in a space by a process,
which reads the space; `warm` are later ones. A capture includes the model.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
from numpy.typing import NDArray

from cortex_py import Cortex
from cortex_py.core.memory.service import Memories
from cortex_py.core.memory.spaces import check_model
from cortex_py.core.store.rows import IndexedRecord, space_word
from cortex_py.team.postgres.engine import PostgresDatabase
from latency import _backend as backend
from latency import _memory_mb as memory_mb

import report
from synthetic import documents, queries

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

FIGURES = Path(__file__).parent / "data" / "cluster_figures.json"
_RECALLS, _CAPTURES, _BATCH = 300, 60, 200
_SERVERS = {
    "shared_buffers": "1GB", "max_wal_size": "6GB", "checkpoint_timeout": "15min", "autovacuum": "on",
    "maintenance_work_mem": "192MB",
}  # fmt: skip
# -- filling
_POOL, _EMBEDDED, _NOISE, _AT_ONCE = 15_000, 500, 0.5, 1_000
_FILLED = ("memory", "tag", "chunk", "memory_text", "space_change")
_BEGINNING = datetime(2025, 1, 1, tzinfo=UTC)
_WORDS_INDEX = "CREATE INDEX IF NOT EXISTS memory_text_words ON memory_text USING gin (words) WITH (fastupdate = off)"
_COLUMNS = "SELECT attname FROM pg_attribute WHERE attrelid = ?::text::regclass AND attnum > 0 AND NOT attisdropped"
# What differs in a copy. Ids go on as if there was a capture in each millisecond.
_COPIED = {
    "space": "%(space)s",
    "project_id": "%(space)s",
    "num": "num + %(add)s",
    "id": "lpad(to_hex(('x' || substr(id, 1, 16))::bit(64)::bigint + (num + %(add)s) * 17179869), 16, '0') "
    "|| substr(md5(%(space)s || id), 1, 24)",
    "words": "array_prepend(%(word)s, words[2:])",
}
# -- measuring
_COLD, _WARM_SPACES, _WARM, _CALLERS, _SECONDS = 200, 20, 200, 16, 15.0


def compare(one: str, coordinator: str, records: int = 3_000) -> None:
    notes = list(documents(records + _CAPTURES))
    asked = queries(_RECALLS)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        project = Path(folder) / "project"
        project.mkdir()
        stores = {}
        for name, url in (("one server", one), ("cluster", coordinator)):
            model = backend()
            cortex = Cortex.open(Path(folder) / name, project=project, backend=model, database_url=url)
            stores[name] = stack.enter_context(cortex)
            if name == "cluster":
                print(cortex.distribute())
            model.bulk = True
            for low in range(0, records, _BATCH):
                cortex.memories.capture_many(notes[low : min(records, low + _BATCH)])
            model.bulk = False
        _compare("recall", stores, [lambda store, text=text: store.memories.recall(text) for text in asked])
        fresh = [note.content for note in notes[records:]]
        _compare("capture", stores, [lambda store, text=text: store.memories.capture(text) for text in fresh])


def _compare(name: str, stores: dict[str, Cortex], calls: list[Callable[[Cortex], object]]) -> None:
    times: dict[str, list[float]] = {store: [] for store in stores}
    for call in calls[:5]:
        for store in stores.values():
            call(store)
    for call in calls[5:]:
        for store, cortex in stores.items():
            began = time.perf_counter()
            call(cortex)
            times[store].append(time.perf_counter() - began)
    medians = {store: statistics.median(spent) for store, spent in times.items()}
    for store, median in medians.items():
        print(f"{name} on {store}: p50 {1_000 * median:.1f} ms of {len(times[store])}")
    print(f"{name}: {medians['cluster'] / medians['one server']:.2f} times one server")


# -- a large store ---------------------------------------------------------------------------------


def serve() -> None:
    from citus_cluster import running_cluster

    with running_cluster(settings=_SERVERS) as cluster, cluster.database(distributed=False) as url:
        print(url, flush=True)
        sys.stdin.read()


@contextmanager
def _store(url: str, folder: Path) -> Iterator[tuple[Cortex, PostgresDatabase]]:
    (folder / "first").mkdir(parents=True, exist_ok=True)
    with Cortex.open(folder / "home", project=folder / "first", backend=backend(), database_url=url) as cortex:
        database = cortex._store.database
        assert isinstance(database, PostgresDatabase)
        yield cortex, database


class Pool:
    """Records as the library makes them from texts, to be drawn for any space."""

    def __init__(self, cortex: Cortex) -> None:
        capture = cortex.memories._capture
        model = cortex._backend
        self._random = np.random.default_rng(17)
        self._records = [
            # What a capture does to a note until it is stored; nothing in it is personal.
            capture.index(replace(capture.draft(item), personal=()), cortex.project.id)
            for item in documents(_POOL, seed=19)
        ]
        texts = [one.memory.content for one in self._records[:_EMBEDDED]]
        self._real = np.concatenate([model.embed(texts[low : low + 100]) for low in range(0, len(texts), 100)])
        assert all(len(one.chunks) == 1 for one in self._records)

    def drawn(self, count: int, space: str, ids: Callable[[], str]) -> Iterator[IndexedRecord]:
        chosen = self._random.choice(len(self._records), count, replace=False)
        word, moment, second = space_word(space), _BEGINNING, timedelta(seconds=37)
        for n, vector in zip(chosen.tolist(), self._vectors(count), strict=True):
            record, moment = self._records[n], moment + second
            memory = replace(record.memory, id=ids(), project_id=space, created_at=moment, updated_at=moment)
            words = f"{word}{record.words[record.words.index(' ') :]}"
            chunks = (replace(record.chunks[0], vector=vector.tobytes()),)
            yield replace(record, memory=memory, space=space, words=words, chunks=chunks)

    def _vectors(self, count: int) -> NDArray[np.float32]:
        near = self._real[self._random.integers(0, len(self._real), count)]
        noise = self._random.standard_normal(near.shape, np.float32) * np.float32(_NOISE / near.shape[1] ** 0.5)
        made: NDArray[np.float32] = near + noise
        return made / np.linalg.norm(made, axis=1, keepdims=True)


def fill(url: str, folder: Path, spaces: int = 500, records: int = 10_000) -> None:
    with _store(url, folder) as (cortex, database):
        if not database.distributed:
            print(cortex.distribute(), flush=True)
        began = time.monotonic()
        pool = Pool(cortex)
        print(f"{_POOL:,} records made in {time.monotonic() - began:.0f} s", flush=True)
        projects = _projects(cortex, folder, spaces)
        with database.writing_as(None) as session:
            check_model(cortex._store, session, cortex._backend, claim=True)
            # As if the graph had read them. The text index is faster to build than to keep up to date.
            session.run("ALTER TABLE memory ALTER COLUMN graphed SET DEFAULT 1")
            session.run("DROP INDEX IF EXISTS memory_text_words")
        began = time.monotonic()
        copies = _Copies(database, projects)
        done = 0
        for space in copies.originals:
            done += _fill_space(cortex, database, pool, space, records)
            print(f"{done:,} records, {done / (time.monotonic() - began):,.0f}/s", flush=True)
        print(f"{done:,} records in {time.monotonic() - began:.0f} s, {len(copies.originals)} spaces", flush=True)
        copies.make(records)
        filled, began = time.monotonic() - began, time.monotonic()
        with database.writing_as(None) as session:
            session.run("ALTER TABLE memory ALTER COLUMN graphed SET DEFAULT 0")
            session.run(_WORDS_INDEX)
        print(f"all in {filled:.0f} s; text index in {time.monotonic() - began:.0f} s", flush=True)
        began = time.monotonic()
        database.compact()
        print(f"vacuum and statistics in {time.monotonic() - began:.0f} s", flush=True)


def _projects(cortex: Cortex, folder: Path, spaces: int) -> list[str]:
    """The spaces of so many projects, each with a folder of its own."""
    found = []
    for n in range(spaces):
        (place := folder / f"project-{n}").mkdir(exist_ok=True)
        found.append(cortex._sessions.at(place).id)
    return found


def _fill_space(cortex: Cortex, database: PostgresDatabase, pool: Pool, space: str, records: int) -> int:
    table = cortex._store.memories
    with database.writing_as(None, space) as session:
        if session.rows("SELECT 1 FROM memory WHERE space = ? LIMIT 1", (space,)):
            return 0
        made = pool.drawn(records, space, cortex._sessions.ids.new)
        for low in range(0, records, _AT_ONCE):
            some = [next(made) for _ in range(min(_AT_ONCE, records - low))]
            table.insert_all(session, some, table.next_seqs(session, [space]))
    return records


class _Copies:
    """The other spaces of each shard, copied on its worker from the first: one statement for each table."""

    def __init__(self, database: PostgresDatabase, spaces: list[str]) -> None:
        where = "SELECT get_shard_id_for_distribution_column(?::text::regclass, ?::text)"
        with database.read() as session:
            (self._schema,) = session.rows("SELECT current_schema()")[0]
            shards: dict[int, list[str]] = defaultdict(list)
            for space in spaces:
                shards[session.rows(where, ("memory", space))[0][0]].append(space)
            nodes = "SELECT shardid, nodename, nodeport FROM pg_dist_shard_placement"
            placed = {shard: (host, port) for shard, host, port in session.rows(nodes)}
            self._columns = {table: [row[0] for row in session.rows(_COLUMNS, (f'"{table}"',))] for table in _FILLED}
            # By worker: the shard of each table that has the spaces of a group, and these.
            self._work: dict[tuple[str, int], list[tuple[dict[str, int], list[str]]]] = defaultdict(list)
            for shard, members in shards.items():
                tables = {table: session.rows(where, (table, members[0]))[0][0] for table in _FILLED}
                self._work[placed[shard]].append((tables, members))
        self._database = database
        self.originals = [members[0] for members in shards.values()]

    def make(self, records: int) -> None:
        count = sum(len(members) - 1 for groups in self._work.values() for _, members in groups)
        with self._database.writing_as(None) as session:
            # As many numbers as are needed, from where all others come from.
            ((first,),) = session.rows("SELECT nextval(pg_get_serial_sequence('memory', 'num'))")
            session.rows("SELECT setval(pg_get_serial_sequence('memory', 'num'), ?)", (first + count * records,))
        offsets = iter(range(first, first + count * records, records))
        lock, began, done = threading.Lock(), time.monotonic(), [0]

        def work(place: tuple[str, int]) -> None:
            with psycopg.connect(
                host=place[0], port=place[1], user="postgres", dbname="cortex", autocommit=True
            ) as connection:
                connection.execute("SET citus.enable_manual_changes_to_shards = on")
                connection.execute("SET enable_seqscan = off")
                connection.execute(f"SET search_path = {self._schema}".encode())
                for tables, (original, *others) in self._work[place]:
                    for space in others:
                        with lock:
                            offset = next(offsets)
                        self._copy(connection, tables, original, space, offset)
                        with lock:
                            done[0] += 1
                            if done[0] % 20 == 0:
                                rate = done[0] * records / (time.monotonic() - began)
                                print(f"{done[0]} of {count} spaces copied, {rate:,.0f} records/s", flush=True)

        with ThreadPoolExecutor() as pool:
            list(pool.map(work, self._work))

    def _copy(
        self, connection: psycopg.Connection, tables: Mapping[str, int], original: str, space: str, offset: int
    ) -> None:
        first = connection.execute(
            f"SELECT min(num) FROM memory_{tables['memory']} WHERE space = %s".encode(), (original,)
        ).fetchone()
        assert first
        if connection.execute(
            f"SELECT 1 FROM memory_{tables['memory']} WHERE space = %s LIMIT 1".encode(), (space,)
        ).fetchone():
            return
        values = {"space": space, "add": offset - first[0], "word": space_word(space), "from": original}
        with connection.transaction():
            for table, shard in tables.items():
                made = ", ".join(_COPIED.get(name, f'"{name}"') for name in self._columns[table])
                names = ", ".join(f'"{name}"' for name in self._columns[table])
                connection.execute(
                    f"INSERT INTO {table}_{shard} ({names}) SELECT {made} FROM {table}_{shard} "
                    "WHERE space = %(from)s".encode(),
                    values,
                )


def measure(url: str, folder: Path) -> None:
    spaces = len(list(folder.glob("project-*")))
    with _store(url, folder) as (cortex, database):
        projects = _projects(cortex, folder, spaces)
        found = {"spaces": spaces, "cores": os.cpu_count() or 1, **_sizes(database, projects)}
        servers = _servers(database)
        found["load_before"] = os.getloadavg()[0]
        found |= _recalls(cortex, folder, spaces, servers)
        found |= _captures(cortex, folder, spaces, servers)
        found["servers_mb"] = _server_mb(servers)
        found["load_after"] = os.getloadavg()[0]
    _show(found)
    FIGURES.write_text(json.dumps(found, indent=2) + "\n", "utf-8")


def _sizes(database: PostgresDatabase, projects: list[str]) -> dict[str, object]:
    """Bytes for each memory by table, and how the shards and spaces are spread."""
    sizes = "SELECT pg_table_size(''%1$s'') || '' '' || pg_indexes_size(''%1$s'') || '' '' || reltuples::bigint"
    each_shard = f"'{sizes} FROM pg_class WHERE oid = ''%1$s''::regclass'"
    statement = f"SELECT shardid, result FROM run_command_on_shards('{{0}}', {each_shard})"
    by_table: dict[str, list[int]] = {}
    by_shard: dict[int, int] = defaultdict(int)
    with database.read() as session:
        shards = {row[0]: row[1] for row in session.rows("SELECT shardid, nodeport FROM pg_dist_shard_placement")}
        # Shards with the same spaces of all tables belong together.
        group = dict(session.rows("SELECT shardid, shardminvalue::bigint FROM pg_dist_shard WHERE shardminvalue <> ''"))
        for table in _FILLED:
            each = [
                (shard, [int(one) for one in text.split()]) for shard, text in session.rows(statement.format(table))
            ]
            by_table[table] = [sum(one[n] for _, one in each) for n in range(3)]
            for shard, one in each:
                by_shard[group[shard]] += one[0] + one[1]
        placed = [
            session.rows("SELECT get_shard_id_for_distribution_column('memory', ?::text)", (space,))[0][0]
            for space in projects
        ]
        whole = session.rows("SELECT count(*) FROM memory")[0][0]
    workers = sorted(set(shards.values()))
    return {
        "memories": whole,
        "tables": {
            name: {
                "rows": round(rows / whole, 3),
                "table_bytes": round(heap / whole, 1),
                "index_bytes": round(own / whole, 1),
            }
            for name, (heap, own, rows) in by_table.items()
        },
        "bytes": sum(by_shard.values()),
        "shards": len(by_shard),
        "shard_mb": [round(size(by_shard.values()) / 1e6, 1) for size in (min, statistics.median, max)],
        "spaces_of_workers": [sum(shards[one] == worker for one in placed) for worker in workers],
        "spaces_of_shards": [size([placed.count(one) for one in set(placed)]) for size in (min, max)],
    }


def _servers(database: PostgresDatabase) -> dict[str, int]:
    """The first process of each server, which must run on this machine."""
    with database.read() as session:
        ports = [row[0] for row in session.rows("SELECT nodeport FROM pg_dist_node ORDER BY groupid")]
    found: dict[str, int] = {}
    for file in Path(tempfile.gettempdir()).glob("cortex-pg-*/data/postmaster.pid"):
        lines = file.read_text().splitlines()
        if int(lines[3]) in ports:
            n = ports.index(int(lines[3]))
            found["coordinator" if n == 0 else f"worker {n}"] = int(lines[0])
    return dict(sorted(found.items()))


def _family(first: int) -> Iterator[tuple[Path, list[str]]]:
    """The processes of a server, each with its folder and figures."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(stat.parent.name) == first or int(fields[1]) == first:
                yield stat.parent, fields


def _server_mb(servers: Mapping[str, int]) -> dict[str, int]:
    """Megabytes of each server: its own memory and its share of what processes have in common."""
    found = {}
    for name, first in servers.items():
        lines = [line for folder, _ in _family(first) for line in (folder / "smaps_rollup").read_text().splitlines()]
        found[name] = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) // 1_024
    return found


class _Spent:
    """Processor time of this process, the coordinator and all workers."""

    def __init__(self, servers: Mapping[str, int]) -> None:
        self._servers = servers
        self._before = self._now()

    def _now(self) -> dict[str, float]:
        found = {"process": time.process_time(), "coordinator": 0.0, "workers": 0.0}
        for name, first in self._servers.items():
            ticks = sum(int(fields[11]) + int(fields[12]) for _, fields in _family(first))
            found["coordinator" if name == "coordinator" else "workers"] += ticks / os.sysconf("SC_CLK_TCK")
        return found

    def each(self, count: int) -> dict[str, float]:
        """Milliseconds for each of so many calls."""
        return {name: round((spent - self._before[name]) / count * 1e3, 2) for name, spent in self._now().items()}


def _recalls(cortex: Cortex, folder: Path, spaces: int, servers: Mapping[str, int]) -> dict[str, object]:
    texts = queries(_COLD + _WARM + 1)
    # The model loads, and what a person has in every project is read.
    cortex.memories.recall(texts.pop())
    before = memory_mb()
    cold, warm = [], []
    step = max(1, spaces // _COLD)
    opened = [cortex._sessions.at(folder / f"project-{n}").memories for n in range(0, spaces, step)][:_COLD]
    spent = _Spent(servers)
    for memories in opened:
        began = time.perf_counter()
        assert memories.recall(texts.pop()).results
        cold.append(time.perf_counter() - began)
    cold_cpu, grown, spent = spent.each(len(cold)), (memory_mb() - before) / len(opened), _Spent(servers)
    for n in range(_WARM):
        began = time.perf_counter()
        opened[n % _WARM_SPACES].recall(texts.pop())
        warm.append(time.perf_counter() - began)
    return {
        "cold_recalls": len(cold),
        "cold_p50_ms": _percentile(cold, 50),
        "cold_p95_ms": _percentile(cold, 95),
        "warm_recalls": len(warm),
        "warm_p50_ms": _percentile(warm, 50),
        "warm_p95_ms": _percentile(warm, 95),
        "cold_cpu_ms": cold_cpu,
        "warm_cpu_ms": spent.each(len(warm)),
        "process_mb_of_a_space": round(grown, 1),
    }


def _percentile(taken: list[float], percent: int) -> float:
    return round(float(np.percentile(taken, percent)) * 1e3, 1)


def _captures(cortex: Cortex, folder: Path, spaces: int, servers: Mapping[str, int]) -> dict[str, object]:
    """Captures of one process, model included: of one caller, and of several in spaces of their own."""
    found: dict[str, object] = {}
    for callers in (1, _CALLERS):
        memories = [cortex._sessions.at(folder / f"project-{n}").memories for n in range(min(spaces, callers))]
        notes = [one.content for one in documents(20_000, seed=100 + callers)]
        taken: list[float] = []
        spent, began = _Spent(servers), time.monotonic()
        with ThreadPoolExecutor(len(memories)) as pool:
            list(pool.map(partial(_capture, notes, taken, began + _SECONDS), memories))
        found[f"captures_per_s_{callers}"] = round(len(taken) / (time.monotonic() - began), 1)
        found[f"capture_p50_ms_{callers}"] = _percentile(taken, 50)
        found[f"capture_p95_ms_{callers}"] = _percentile(taken, 95)
        found[f"capture_cpu_ms_{callers}"] = spent.each(len(taken))
    return found


def _capture(notes: list[str], taken: list[float], until: float, memories: Memories) -> None:
    while time.monotonic() < until:
        began = time.perf_counter()
        memories.capture(notes.pop())
        taken.append(time.perf_counter() - began)


def _show(found: dict[str, object]) -> None:
    tables = found["tables"]
    assert isinstance(tables, dict)
    report.table(("table", "rows", "bytes", "index bytes"), [(name, *one.values()) for name, one in tables.items()])
    report.table(("figure", "value"), [(name, value) for name, value in found.items() if name != "tables"])


def main() -> None:
    mode, *given = sys.argv[1:]
    if mode == "compare":
        compare(given[0], given[1], *map(int, given[2:]))
    elif mode == "serve":
        serve()
    elif mode == "--fill":
        fill(given[0], Path(given[1]), *map(int, given[2:]))
    elif mode == "--measure":
        measure(given[0], Path(given[1]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
