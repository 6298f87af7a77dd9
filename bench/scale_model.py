"""How latency goes with load, for one server and for several: a small simulation fed with measured figures.

    python bench/scale_model.py             the table
    python bench/scale_model.py --write     the table, put into docs/operate/scale.md

Requests arrive at random (Poisson). A recall takes a core of the process, then one of the database server that has its
space. A capture takes a core of the process, waits for the lock that the writers of its space take turns by, and holds
it while its server works and the commit reaches the disk. Captures that wait together would be committed together; here
each commits alone, which is the worst case. Times are drawn around those in `data/scale_figures.json` (made by
`scale.py`). On several servers they are drawn around those in `data/cluster_figures.json` (made by `cluster.py`), and
every call takes a core of the coordinator first. What is assumed and not measured stands in `ASSUMED`.

Databases that share nothing are alike, so that one of them is simulated. The same figures give the same table.
"""

from __future__ import annotations

import heapq
import json
import math
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent / "data" / "scale_figures.json"
WRITERS = FIGURES.with_name("writers_figures.json")
CLUSTER = FIGURES.with_name("cluster_figures.json")
PAGE = Path(__file__).parents[1] / "docs" / "operate" / "scale.md"
START, END = "<!-- bench/scale_model.py: {} -->", "<!-- end -->"

# Not measured. A person who is active at the peak hour recalls and captures so often in a minute.
ASSUMED: Mapping[str, float] = {
    "memories_per_person": 10_000,
    "active_share": 0.05,
    "recalls_per_minute": 4.0,
    "captures_per_minute": 1.0,
    # Active people who capture into the same space.
    "writers_per_space": 5,
    "round_trip_ms": 0.3,
    "embedding_ms": 5.0,
    # The deviation of the logarithm of a time: p95 is 1.4 times the median; at rest 1.3 was measured.
    "spread": 0.2,
}
_REQUESTS, _WARM_UP = 12_000, 2_000
_SEED = 7
_WORTH_TELLING = 0.005
_NODES = ("worker", "coordinator")


@dataclass(frozen=True, slots=True)
class Setup:
    """`databases` share nothing; each is spread over `shards` servers.

    The writers of each of its `spaces` have one lock; 0 stands for as many spaces as the active people write to.
    """

    memories: int
    words: str
    databases: int = 1
    shards: int = 1
    cores: int = 8
    # Cores for the processes in front of each database.
    app_cores: int = 8
    # Of the server that clients of several workers connect to.
    coordinator_cores: int = 8
    load: float = 1.0
    spaces: int = 0


SETUPS = (
    Setup(10**6, "one small server", cores=2, app_cores=2),
    Setup(10**8, "one server"),
    Setup(10**8, "one server, tenfold load", load=10, app_cores=16),
    Setup(10**8, "8 workers, tenfold load", shards=8, load=10, app_cores=16),
    Setup(10**8, "8 databases by tenant, tenfold load", databases=8, load=10),
    Setup(10**9, "16 workers", shards=16, app_cores=64),
    Setup(10**9, "16 workers, tenfold load", shards=16, app_cores=256, load=10),
    Setup(10**9, "the same, 32 cores in the coordinator", shards=16, app_cores=256, coordinator_cores=32, load=10),
    Setup(10**10, "64 workers, 32 cores in the coordinator", shards=64, app_cores=256, coordinator_cores=32),
    Setup(10**10, "128 databases by tenant", databases=128),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Latencies in milliseconds at p50, p95 and p99; `busy` is the share of time that the lock of a space is held."""

    recalls_per_s: float
    captures_per_s: float
    busy: float
    recall: tuple[float, float, float]
    capture: tuple[float, float, float]

    @property
    def falls_behind(self) -> bool:
        return self.busy >= 1.0


@dataclass(slots=True)
class _Servers:
    """So many servers and one queue; each job is (duration, what comes after)."""

    free: int
    waiting: deque[tuple[float, Callable[[], None]]] = field(default_factory=deque)


class Simulation:
    def __init__(self, seed: int = _SEED) -> None:
        self.now = 0.0
        self.random = random.Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, moment: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (moment, self._count, action))

    def work(self, servers: _Servers, duration: float, after: Callable[[], None]) -> None:
        """Do a job when its turn comes, then what comes after it."""
        if servers.free:
            servers.free -= 1
            self.at(self.now + duration, lambda: self._done(servers, after))
        else:
            servers.waiting.append((duration, after))

    def _done(self, servers: _Servers, after: Callable[[], None]) -> None:
        servers.free += 1
        after()
        if servers.free and servers.waiting:
            duration, following = servers.waiting.popleft()
            self.work(servers, duration, following)

    def run(self) -> None:
        while self._events:
            self.now, _, action = heapq.heappop(self._events)
            action()

    def around(self, mean: float, spread: float) -> float:
        """A duration around a mean; `spread` is the deviation of its logarithm."""
        return mean * math.exp(self.random.gauss(-spread * spread / 2, spread))


class _Lock:
    """Held by one; the others wait in their order."""

    def __init__(self) -> None:
        self._held = False
        self._waiting: deque[Callable[[], None]] = deque()
        self.total = 0.0
        self._since = 0.0

    def take(self, now: float, holding: Callable[[], None]) -> None:
        if self._held:
            self._waiting.append(holding)
            return
        self._held, self._since = True, now
        holding()

    def give(self, now: float) -> None:
        self._held = False
        self.total += now - self._since
        if self._waiting:
            self.take(now, self._waiting.popleft())


@dataclass(frozen=True, slots=True)
class _Costs:
    """Milliseconds of the server with the rows and of the coordinator, by kind of call; how far a statement goes."""

    server: Mapping[str, float]
    coordinator: Mapping[str, float]
    hops: int

    @classmethod
    def of(cls, setup: Setup, figures: Mapping[str, float]) -> _Costs:
        kinds = ("recall", "capture")
        if setup.shards > 1 and "worker_recall_ms" in figures:
            workers, coordinator = ({kind: figures[f"{who}_{kind}_ms"] for kind in kinds} for who in _NODES)
            return cls(workers, coordinator, 2)
        return cls({kind: figures[f"{kind}_server_cpu_ms"] for kind in kinds}, dict.fromkeys(kinds, 0.0), 1)


def _pass_on(simulation: Simulation, coordinator: _Servers, mean: float, after: Callable[[], None]) -> None:
    if mean:
        simulation.work(coordinator, simulation.around(mean, ASSUMED["spread"]), after)
    else:
        after()


def simulated(setup: Setup, figures: Mapping[str, float]) -> Outcome:
    """One of the databases of a setup at its peak hour."""
    persons = setup.memories / ASSUMED["memories_per_person"] * ASSUMED["active_share"] / setup.databases
    recalls = persons * ASSUMED["recalls_per_minute"] / 60 * setup.load
    captures = persons * ASSUMED["captures_per_minute"] / 60 * setup.load
    spread = ASSUMED["spread"]
    simulation = Simulation()
    app, servers = _Servers(setup.app_cores), [_Servers(setup.cores) for _ in range(setup.shards)]
    coordinator = _Servers(setup.coordinator_cores)
    costs = _Costs.of(setup, figures)
    locks = [_Lock() for _ in range(setup.spaces or max(1, round(persons / ASSUMED["writers_per_space"])))]
    taken: dict[str, list[float]] = {"recall": [], "capture": []}
    trips = figures["recall_statements"] * ASSUMED["round_trip_ms"]
    # Measured without a network: the statements of a capture go to and fro while it holds the lock.
    commit = max(0.0, figures["lock_held_p10_ms"] - figures["capture_server_cpu_ms"])
    commit += figures["capture_statements"] * ASSUMED["round_trip_ms"] * costs.hops
    trips *= costs.hops

    def arrive(kind: str) -> None:
        began, server = simulation.now, simulation.random.choice(servers)
        lock = simulation.random.choice(locks)

        def finish() -> None:
            taken[kind].append(simulation.now - began)

        def on_server() -> None:
            def later() -> None:
                simulation.at(simulation.now + trips, finish)

            simulation.work(server, simulation.around(costs.server["recall"], spread), later)

        def holding() -> None:
            def committed() -> None:
                lock.give(simulation.now)
                finish()

            def written() -> None:
                simulation.at(simulation.now + simulation.around(commit, spread), committed)

            simulation.work(server, simulation.around(costs.server["capture"], spread), written)

        def first(after: Callable[[], None]) -> None:
            _pass_on(simulation, coordinator, costs.coordinator[kind], after)

        if kind == "recall":
            simulation.work(app, simulation.around(figures["recall_app_cpu_ms"], spread), lambda: first(on_server))
        else:
            own = figures["capture_app_cpu_ms"] + ASSUMED["embedding_ms"]
            simulation.work(
                app,
                simulation.around(own, spread),
                lambda: lock.take(simulation.now, lambda: first(holding)),
            )

    end = 0.0
    for moment, kind in _arrivals(simulation.random, recalls, captures):
        simulation.at(moment, lambda kind=kind: arrive(kind))  # type: ignore[misc]
        end = moment
    simulation.run()
    # What is asked of the locks, not what they got done: more than all of the time means that captures pile up.
    held = sum(lock.total for lock in locks) / max(1, len(taken["capture"])) / len(locks)
    skip = _WARM_UP / _REQUESTS
    return Outcome(
        recalls * setup.databases,
        captures * setup.databases,
        held * captures / 1_000 if end else 0.0,
        _percentiles(taken["recall"], skip),
        _percentiles(taken["capture"], skip),
    )


def _arrivals(source: random.Random, recalls: float, captures: float) -> Iterator[tuple[float, str]]:
    """Moments in milliseconds, and what is asked for then."""
    moment, total = 0.0, recalls + captures
    for _ in range(_REQUESTS):
        moment += source.expovariate(total) * 1_000
        yield moment, "recall" if source.random() < recalls / total else "capture"


def _percentiles(taken: list[float], skip: float) -> tuple[float, float, float]:
    settled = sorted(taken[int(len(taken) * skip) :])
    if not settled:
        return (0.0, 0.0, 0.0)
    p50, p95, p99 = (settled[min(len(settled) - 1, int(len(settled) * share))] for share in (0.5, 0.95, 0.99))
    return (p50, p95, p99)


def bytes_per_memory(tables: Mapping[str, Mapping[str, float]]) -> float:
    return sum(one["table_bytes"] + one["index_bytes"] for one in tables.values())


def rendered(figures: Mapping[str, object]) -> dict[str, str]:
    """The tables of the page, by their names."""
    numbers = {name: float(value) for name, value in figures.items() if isinstance(value, int | float)}
    tables: Mapping[str, Mapping[str, float]] = figures["tables"]  # type: ignore[assignment]
    size = bytes_per_memory(tables)
    cluster = json.loads(CLUSTER.read_text("utf-8"))
    on_workers = bytes_per_memory(cluster["tables"])
    return {
        "cluster": "\n".join(_cluster_lines(cluster)),
        "cluster sizes": "\n".join(_size_lines(cluster["tables"], on_workers)),
        "billion": "\n".join(_billion_lines(cluster)),
        "setups": "\n".join(_setup_lines({**numbers, **_of_cluster(cluster)}, size, on_workers)),
        "sizes": "\n".join(_size_lines(tables, size)),
        "times": "\n".join(_time_lines(numbers)),
        "lock": "\n".join(_lock_lines(numbers)),
        "writers": "\n".join(_writer_lines(json.loads(WRITERS.read_text("utf-8"))["rows"])),
    }


def _setup_lines(numbers: Mapping[str, float], size: float, size_on_workers: float) -> Iterator[str]:
    columns = ("memories", "setup", "on each server", "recalls/s", "captures/s", "lock of a space")
    yield f"| {' | '.join(columns)} | recall p50, p95, p99 | capture |"
    yield "|---|---|---|---|---|---|---|---|"
    for setup in SETUPS:
        found = simulated(setup, numbers)
        each = size_on_workers if setup.shards > 1 else size
        disk = setup.memories * each / setup.databases / setup.shards / 1e9
        captured = "piles up" if found.falls_behind else _shown(found.capture)
        yield (
            f"| 10^{round(math.log10(setup.memories))} | {setup.words} | {_rounded(disk)} GB "
            f"| {_rounded(found.recalls_per_s)} | {_rounded(found.captures_per_s)} | {found.busy:.0%} "
            f"| {_shown(found.recall)} | {captured} |"
        )


def _of_cluster(cluster: Mapping[str, Any]) -> dict[str, float]:
    """Processor time of a call on the servers of a cluster, in milliseconds."""
    parts = {"recall": cluster["warm_cpu_ms"], "capture": cluster["capture_cpu_ms_16"]}
    return {
        **{f"coordinator_{kind}_ms": part["coordinator"] for kind, part in parts.items()},
        **{f"worker_{kind}_ms": part["workers"] for kind, part in parts.items()},
    }


def _cluster_lines(cluster: Mapping[str, Any]) -> Iterator[str]:
    yield "| measured | |"
    yield "|---|---|"
    servers = ", ".join(f"{name} {megabytes:,} MB" for name, megabytes in cluster["servers_mb"].items())
    least, middle, most = cluster["shard_mb"]
    fewest, many = cluster["spaces_of_shards"]
    yield f"| memories, spaces, shards | {cluster['memories']:,}, {cluster['spaces']}, {cluster['shards']} |"
    each = cluster["bytes"] / cluster["memories"]
    yield f"| on disk | {cluster['bytes'] / 1e9:.1f} GB, {each:,.0f} bytes per memory |"
    yield f"| spaces of each worker, of a shard | {_listed(cluster['spaces_of_workers'])}; {fewest} to {many} |"
    yield f"| size of a shard, smallest, median, largest | {least:,.0f}, {middle:,.0f}, {most:,.0f} MB |"
    yield f"| memory of the servers | {servers} |"
    yield f"| memory of a process for each space that it searched | {cluster['process_mb_of_a_space']} MB |"
    for kind, words in (("cold", "first recall in a space"), ("warm", "later recalls")):
        times = f"{cluster[f'{kind}_p50_ms']:,.0f}, {cluster[f'{kind}_p95_ms']:,.0f} ms"
        yield f"| {words}, p50, p95 of {cluster[f'{kind}_recalls']} | {times} |"
        yield f"| its processor time: {_PARTS} | {_parts(cluster[f'{kind}_cpu_ms'])} |"
    for callers in (1, 16):
        times = f"{cluster[f'capture_p50_ms_{callers}']:,.0f}, {cluster[f'capture_p95_ms_{callers}']:,.0f} ms"
        who = "one caller" if callers == 1 else f"{callers} callers in spaces of their own"
        yield f"| captures/s with the model, {who}; p50, p95 | {cluster[f'captures_per_s_{callers}']}; {times} |"
        yield f"| its processor time: {_PARTS} | {_parts(cluster[f'capture_cpu_ms_{callers}'])} |"


_PARTS = "process, coordinator, workers"
_BILLION, _SPACE, _SHARDS, _WORKERS, _CORES, _BUSY = 10**9, 10_000, 512, 16, 8, 0.7


def _parts(spent: Mapping[str, float]) -> str:
    return ", ".join(f"{value:.1f}" for value in spent.values()) + " ms"


def _listed(values: Sequence[int]) -> str:
    return ", ".join(f"{value:,}" for value in values)


def _billion_lines(cluster: Mapping[str, Any]) -> Iterator[str]:
    """What a store of 10^9 memories takes, each line with its arithmetic."""
    each = cluster["bytes"] / cluster["memories"]
    whole = _BILLION * each / 1e12
    people = _BILLION / ASSUMED["memories_per_person"] * ASSUMED["active_share"]
    recalls, captures = (people * ASSUMED[f"{kind}s_per_minute"] / 60 for kind in ("recall", "capture"))
    spaces = people / ASSUMED["writers_per_space"]
    spent = _of_cluster(cluster)
    own = {"recall": cluster["warm_cpu_ms"]["process"], "capture": cluster["capture_cpu_ms_16"]["process"]}
    yield "| calculated for 10^9 memories | | from |"
    yield "|---|---|---|"
    yield f"| on all disks | {whole:.1f} TB | 10^9 × {each:,.0f} bytes; without log, backups, standbys and graph |"
    yield f"| on each of {_WORKERS} workers | {whole * 1e3 / _WORKERS:,.0f} GB | {whole:.1f} TB / {_WORKERS} |"
    yield (
        f"| a shard | {whole * 1e3 / 32:,.0f} GB with 32 shards, {whole * 1e3 / _SHARDS:.0f} GB with {_SHARDS} "
        f"| {whole:.1f} TB / shards; choose `--shards {_SHARDS}`, since a shard moves as a whole |"
    )
    yield f"| spaces | {_BILLION // _SPACE:,} | 10^9 / {_SPACE:,} memories in each, as measured |"
    yield (
        f"| people active at the peak | {people:,.0f} in {spaces:,.0f} spaces "
        f"| {ASSUMED['memories_per_person']:,.0f} memories per person, {ASSUMED['active_share']:.0%} active, "
        f"{ASSUMED['writers_per_space']:.0f} in a space (assumed) |"
    )
    yield f"| calls | {recalls:,.0f} recalls/s, {captures:,.0f} captures/s | 4 and 1 per minute for each (assumed) |"
    for name, cores in (("the coordinator", 1), ("all workers", _WORKERS), ("the servers of Cortex", 0)):
        costs = (
            own
            if not cores
            else {kind: spent[f"{'coordinator' if cores == 1 else 'worker'}_{kind}_ms"] for kind in own}
        )
        used = (recalls * costs["recall"] + captures * costs["capture"]) / 1e3
        room = f", {used / cores / _CORES:.0%} of {cores * _CORES}" if cores else ""
        yield (
            f"| cores of {name} | {used:.1f}{room} "
            f"| {recalls:,.0f} × {costs['recall']:.1f} ms + {captures:,.0f} × {costs['capture']:.1f} ms |"
        )
    mixed = (4 * spent["coordinator_recall_ms"] + spent["coordinator_capture_ms"]) / 5
    yield (
        f"| the most that one coordinator of {_CORES} cores passes on | {_BUSY * _CORES * 1e3 / mixed:,.0f} calls/s "
        f"| {_BUSY:.0%} of {_CORES} cores / {mixed:.1f} ms, four recalls to a capture |"
    )
    reading = sum(cluster["cold_cpu_ms"].values())
    yield (
        f"| processor time until a new process has read them | {spaces * reading / 6e4:.0f} minutes on all servers "
        f"| {spaces:,.0f} active spaces × {reading:,.0f} ms for the first recall |"
    )
    memory = spaces * cluster["process_mb_of_a_space"] / 1e3
    yield (
        f"| memory of the servers of Cortex | {memory:,.1f} GB for each process "
        f"| {spaces:,.0f} active spaces × {cluster['process_mb_of_a_space']} MB, if a process serves all of them |"
    )


def _size_lines(tables: Mapping[str, Mapping[str, float]], size: float) -> Iterator[str]:
    yield "| table | rows | bytes in the table | bytes in its indexes |"
    yield "|---|---|---|---|"
    for name, one in tables.items():
        if one["table_bytes"] + one["index_bytes"] >= _WORTH_TELLING * size:
            yield f"| `{name}` | {one['rows']:.2f} | {one['table_bytes']:,.0f} | {one['index_bytes']:,.0f} |"
    yield f"| all | | {sum(one['table_bytes'] for one in tables.values()):,.0f} " + (
        f"| {sum(one['index_bytes'] for one in tables.values()):,.0f} |"
    )


def _time_lines(numbers: Mapping[str, float]) -> Iterator[str]:
    yield "| | processor time of the process | of the server | statements | in one core and second |"
    yield "|---|---|---|---|---|"
    for kind in ("recall", "capture"):
        app, server = numbers[f"{kind}_app_cpu_ms"], numbers[f"{kind}_server_cpu_ms"]
        yield (
            f"| {kind} | {_rounded(app)} ms | {_rounded(server)} ms | {numbers[f'{kind}_statements']:.0f} "
            f"| {_rounded(1_000 / app)} in a process, {_rounded(1_000 / server)} on the server |"
        )


def _lock_lines(numbers: Mapping[str, float]) -> Iterator[str]:
    held = (numbers["lock_held_p10_ms"], numbers["lock_held_p50_ms"], numbers["lock_held_p95_ms"])
    yield "| lock of its space held by a capture, p10, p50, p95 | one process, one caller |"
    yield "|---|---|"
    yield f"| {_shown(held)} | {_rounded(numbers['captures_per_s'])} captures/s |"


def _writer_lines(rows: Sequence[Mapping[str, float | str]]) -> Iterator[str]:
    yield "| spaces | servers | captures/s in all | for each second of processor time | cores used |"
    yield "|---|---|---|---|---|"
    for row in rows:
        each = "one for each client" if row["spaces"] == "different" else "one for all"
        figures = [_rounded(float(row[name])) for name in ("captures_per_s", "captures_per_cpu_s", "cores_used")]
        yield f"| {each} | {row['servers']} | {' | '.join(figures)} |"


def _shown(values: tuple[float, float, float]) -> str:
    return ", ".join(_rounded(value) for value in values) + " ms"


def _rounded(value: float) -> str:
    """Two digits that count."""
    if value <= 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{round(value, 1 - math.floor(math.log10(value))):,.{digits}f}"


def placed(page: str, made: Mapping[str, str]) -> str:
    """The page with the tables in their places."""
    for name, table in made.items():
        before, mark, rest = page.partition(START.format(name))
        assert mark, name
        _, _, after = rest.partition(END)
        page = f"{before}{mark}\n{table}\n{END}{after}"
    return page


def main() -> None:
    made = rendered(json.loads(FIGURES.read_text("utf-8")))
    print("\n\n".join(made.values()))
    if "--write" in sys.argv:
        PAGE.write_text(placed(PAGE.read_text("utf-8"), made), "utf-8")


if __name__ == "__main__":
    main()
