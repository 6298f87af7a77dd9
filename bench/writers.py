"""Captures of many clients on one PostgreSQL: 1, 2 and 4 servers, each client in a space of its own or all in one.

    python bench/writers.py                 figures into bench/data/writers_figures.json
    python bench/writers.py 3 --dry         3 seconds for each row, only shown

A server is a process with its own connections; its clients are threads, 64 in all, each of which captures one record
after the other for some seconds. Commits are durable. Records are synthetic and their vectors are drawn, not computed.
`in all` counts acknowledged captures; `per CPU second` divides them by the processor time of the servers and of
PostgreSQL, which a loaded machine changes less than the clock. `cores used` is that processor time by the clock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from cortex_py import Cortex, NewMemory
from latency import _backend as backend
from scale import _DURABLE, _ROOM, _server_cpu, postgres_server

import report
from synthetic import documents

FIGURES = Path(__file__).parent / "data" / "writers_figures.json"
_CLIENTS, _SERVERS, _SECONDS = 64, (1, 2, 4), 8.0
_NOTES = 16_000


class _Client(threading.Thread):
    def __init__(self, cortex: Cortex, folder: Path, notes: list[NewMemory], until: list[float]) -> None:
        super().__init__(daemon=True)
        folder.mkdir(exist_ok=True)
        self._memories = cortex._sessions.at(folder).memories
        self._notes, self._until = notes, until
        self.done = 0
        self.slowest = 0.0
        self._capture()

    def _capture(self) -> None:
        self._memories.capture_many([self._notes.pop()])

    def run(self) -> None:
        while (began := time.monotonic()) < self._until[0]:
            self._capture()
            self.done += 1
            self.slowest = max(self.slowest, time.monotonic() - began)


def serve(url: str, home: Path, number: int, clients: int, spaces: str) -> None:
    """Be a server: get ready, wait for a line with the seconds, capture, print the figures."""
    made = backend()
    made.bulk = True
    notes = list(documents(_NOTES, seed=1_000 + number))
    share, until = _NOTES // clients, [0.0]
    with Cortex.open(home / f"server{number}", project=home, backend=made, database_url=url) as cortex:
        running = [
            _Client(
                cortex,
                home / ("shared" if spaces == "one" else f"project{number}-{n}"),
                notes[n * share : (n + 1) * share],
                until,
            )
            for n in range(clients)
        ]
        print("ready", flush=True)
        until[0] = time.monotonic() + float(sys.stdin.readline())
        began, used = time.monotonic(), time.process_time()
        for one in running:
            one.start()
        for one in running:
            one.join()
        wall, cpu = time.monotonic() - began, time.process_time() - used
    figures = {"captures": sum(one.done for one in running), "wall_s": wall, "cpu_s": cpu}
    print(json.dumps({**figures, "slowest_s": max(one.slowest for one in running)}), flush=True)


def _measure(url: str, home: Path, servers: int, spaces: str, seconds: float) -> dict[str, object]:
    command = [sys.executable, __file__, "serve", url, str(home)]
    running = [
        subprocess.Popen(
            [*command, str(number), str(_CLIENTS // servers), spaces],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(servers)
    ]
    for one in running:
        assert one.stdout
        assert one.stdout.readline() == "ready\n"
    before = _server_cpu(url)
    for one in running:
        assert one.stdin
        one.stdin.write(f"{seconds}\n")
        one.stdin.flush()
    # Before they close their connections: what a server process used is gone with it.
    time.sleep(seconds)
    there = _server_cpu(url) - before
    found = [json.loads(one.communicate()[0]) for one in running]
    captures, wall = sum(one["captures"] for one in found), max(one["wall_s"] for one in found)
    here = sum(one["cpu_s"] for one in found)
    return {
        "servers": servers,
        "clients": _CLIENTS,
        "spaces": spaces,
        "captures": captures,
        "captures_per_s": round(captures / wall, 1),
        "captures_per_cpu_s": round(captures / (here + there), 1),
        "server_cpu_ms": round(1e3 * here / captures, 2),
        "postgres_cpu_ms": round(1e3 * there / captures, 2),
        "cores_used": round((here + there) / wall, 2),
        "slowest_s": round(max(one["slowest_s"] for one in found), 2),
    }


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["serve"]:
        serve(words[1], Path(words[2]), int(words[3]), int(words[4]), words[5])
        return
    seconds = float(words[0]) if words and not words[0].startswith("-") else _SECONDS
    postgres_server._SETTINGS.update(_DURABLE | _ROOM | {"max_connections": "120"})
    rows = []
    with postgres_server.running_server() as server, tempfile.TemporaryDirectory() as folder:
        for spaces in ("different", "one"):
            for servers in _SERVERS:
                name = f"{spaces}_{servers}"
                server.run(f"CREATE DATABASE {name}")
                (home := Path(folder, name)).mkdir()
                rows.append(_measure(server.url(name), home, servers, spaces, seconds))
                server.run(f"DROP DATABASE {name} WITH (FORCE)")
    report.table(tuple(rows[0]), [tuple(row.values()) for row in rows])
    if "--dry" not in words:
        kept = {"cores": os.cpu_count() or 1, "load": os.getloadavg()[1], "seconds": seconds, "rows": rows}
        FIGURES.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
