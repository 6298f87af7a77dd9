"""The MCP server as clients meet it: how soon it answers, and what it bears.

Start: time from spawning the process on stdio until the handshake and the list of tools are answered, in both
protocols, beside a trivial FastMCP server in alternating rounds. Load: 50 HTTP clients with 40 calls each at
once, beside the same calls to the trivial server; every capture is looked for afterwards. `cpu_ms` is the processor
time of the server for each call, which a loaded machine changes less than the clock.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from fastmcp import Client

from cortex_py import Cortex
from cortex_py.surfaces.mcp.reference.rendering import requests_of

import report

ROUNDS = 7
CLIENTS = 50
CALLS = 40
TRIVIAL = [sys.executable, str(Path(__file__).with_name("trivial_server.py"))]
CORTEX = [sys.executable, "-m", "cortex_py", "serve"]
PROTOCOLS = {"2025-11-25": "handshake", "2026-07-28": "stateless"}


def _start_ms(command: list[str], version: str) -> float:
    """Spawn a server and wait for its first answer and its list of tools."""
    first, listing = requests_of(version)[:2]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin and process.stdout
    try:
        for request in (first, listing):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            assert "result" in json.loads(process.stdout.readline())
        return (time.perf_counter() - started) * 1e3
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def measure_start() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for version, protocol in PROTOCOLS.items():
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(_start_ms(CORTEX, version))
            theirs.append(_start_ms(TRIVIAL, version))
        mine, peer = float(np.median(ours)), float(np.median(theirs))
        rows.append({"protocol": protocol, "cortex_ms": mine, "trivial_ms": peer, "ratio": mine / peer})
    return rows


@contextmanager
def _serving(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait(20)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _peak_mb(pid: int) -> float:
    """The peak of a process and its children together."""
    status = Path(f"/proc/{pid}/status").read_text()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024 + sum(_peak_mb(int(child)) for child in children)


def _cpu_seconds(pid: int) -> float:
    """The processor time of a process and its children together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(_cpu_seconds(int(child)) for child in children)


def _call(trivial: bool, client: int, number: int) -> tuple[str, dict[str, object]]:
    """Half of the calls write, half read; the trivial server is sent the same texts."""
    text = f"Client {client} notes fact {number}: the cache of shard {client * number % 17} holds {number} entries"
    if trivial:
        return "echo", {"text": text}
    if number % 2:
        return "subcog_recall", {"query": f"cache of shard {client * CALLS + number}", "limit": 5}
    return "subcog_capture", {"content": text, "namespace": "learnings", "tags": [f"client-{client}"]}


async def _load(url: str, trivial: bool) -> tuple[list[float], int, float]:
    taken: list[float] = []
    errors = 0

    async def one(number: int) -> None:
        nonlocal errors
        async with Client(url) as client:
            ready.release()
            await begin.wait()
            for call in range(CALLS):
                name, arguments = _call(trivial, number, call)
                started = time.perf_counter()
                result = await client.call_tool_mcp(name, arguments)
                taken.append(time.perf_counter() - started)
                errors += bool(result.is_error)

    ready, begin = asyncio.Semaphore(0), asyncio.Event()
    tasks = [asyncio.create_task(one(number)) for number in range(CLIENTS)]
    for _ in tasks:
        await ready.acquire()
    started = time.perf_counter()
    begin.set()
    await asyncio.gather(*tasks)
    return taken, errors, time.perf_counter() - started


def measure_load(folder: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for number, name in enumerate(("cortex", "cortex, 2 workers", "trivial")):
        # Each has a home of its own: one that follows another would also read that one's notes for the graph.
        home = folder / f"home{number}"
        os.environ["CORTEX_HOME"] = str(home)
        port = _free_port()
        command = [*CORTEX, "--http", "--port", str(port)] if name != "trivial" else [*TRIVIAL, str(port)]
        if name.endswith("workers"):
            command += ["--workers", "2"]
        with _serving(command, port) as process:
            before, spent = _peak_mb(process.pid), _cpu_seconds(process.pid)
            taken, errors, elapsed = asyncio.run(_load(f"http://127.0.0.1:{port}/mcp", name == "trivial"))
            rows.append(
                {
                    "server": name,
                    "calls": len(taken),
                    "errors": errors,
                    "calls_per_s": len(taken) / elapsed,
                    "cpu_ms": (_cpu_seconds(process.pid) - spent) / len(taken) * 1e3,
                    "p50_ms": float(np.percentile(taken, 50) * 1e3),
                    "p95_ms": float(np.percentile(taken, 95) * 1e3),
                    "mb_before": before,
                    "mb_peak": _peak_mb(process.pid),
                }
            )
        if name != "trivial":
            with Cortex.open(home) as cortex:
                rows[-1]["stored"] = stored = cortex.memories.recall(limit=1).total
            print(f"captures stored: {stored} of {CLIENTS * CALLS // 2}")
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CORTEX_HOME"] = f"{folder}/home"
        os.chdir(folder)
        start = measure_start()
        report.table(list(start[0]), [list(row.values()) for row in start])
        print()
        load = measure_load(Path(folder))
        columns = [name for name in load[0] if name != "stored"]
        report.table(columns, [[row[name] for name in columns] for row in load])
    report.write("server", {"start": start, "load": load})


if __name__ == "__main__":
    main()
