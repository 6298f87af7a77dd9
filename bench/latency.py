"""Time and memory as the store grows: capture, recall, first recall of a fresh process, resident memory.

`capture_ms` is a note of 40 English words until it is acknowledged, p50; `made_up_ms` one of 40 words that the model
does not know, which has more tokens; `conflicts_ms` the first with the look for contradictions; `read_ms` the processor
time of reading a note for the graph afterwards, as far as it was still pending.

    python bench/latency.py                 1k, 10k, 100k records
    python bench/latency.py 1000 1000000    the sizes given

Stores are filled with Zipf texts and clustered vectors (see `synthetic.py`); queries are embedded by the real model,
none twice, and the time of that embedding alone is measured in the same loop. `built_s` is the first recall of the
first process that searches the store, `first_s` that of a later one. `two_callers` is the throughput of two threads
over that of one, taken in turns in the same run, and `two_processes` that of two processes with one thread each;
`beside_slow` how much longer a recall takes beside a thread that asks for a thousand results each time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np

from cortex_py import Cortex
from cortex_py.core.config import load_settings
from cortex_py.core.embedding.backends.registry import open_backend

import report
from synthetic import BulkBackend, documents, english, queries

SIZES = (1_000, 10_000, 100_000)
QUERIES = 200
CAPTURES = 40
CALLS, ROUNDS = 60, 4
MODES = ("hybrid", "vector", "text")


def _memory_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def _backend() -> BulkBackend:
    settings = load_settings(os.environ.get("CORTEX_BENCH_HOME"))
    return BulkBackend(open_backend(settings=settings))


def fill(home: Path, size: int, project: Path | None = None) -> float:
    backend = _backend()
    backend.bulk = True
    with Cortex.open(home, project=project or home, backend=backend) as cortex:
        # Without a graph: nothing that is measured here depends on it, and reading a million notes takes an hour.
        cortex.memories._capture.annotator = None
        started = time.perf_counter()
        source = documents(size)
        while batch := list(islice(source, 20_000)):
            cortex.memories.capture_many(batch)
        return size / (time.perf_counter() - started)


def _together(cortex: Cortex, callers: int, texts: list[str]) -> float:
    """Calls a second of so many threads that share the queries."""
    parts = [texts[n::callers] for n in range(callers)]
    with ThreadPoolExecutor(callers) as pool:
        started = time.perf_counter()
        list(pool.map(lambda part: [cortex.memories.recall(text) for text in part], parts))
        return len(texts) / (time.perf_counter() - started)


def several_callers(cortex: Cortex) -> dict[str, float]:
    """Two callers beside one, and a caller beside a slow one; each in turns, since the machine's speed changes."""
    texts = queries(3 * CALLS * ROUNDS, seed=31)
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for callers, rate in rates.items():
            rate.append(_together(cortex, callers, [texts.pop() for _ in range(CALLS)]))
    alone: list[float] = []
    beside: list[float] = []
    for taken, slow in ((alone, False), (beside, True)):
        done = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(_ask_slowly, cortex, done) if slow else None
            for _ in range(CALLS // 2):
                started = time.perf_counter()
                cortex.memories.recall(texts.pop())
                taken.append(time.perf_counter() - started)
            done.set()
            if other is not None:
                other.result()
    return {
        "two_callers": max(rates[2]) / max(rates[1]),
        "beside_slow": float(np.quantile(beside, 0.5) / np.quantile(alone, 0.5)),
    }


def _ask_slowly(cortex: Cortex, done: threading.Event) -> None:
    for text in queries(10_000, seed=37):
        if done.is_set():
            return
        cortex.memories.recall(text, limit=1_000)


def serve_recalls(home: Path) -> dict[str, float]:
    """In this process: for every line of standard input, so many recalls, and the seconds that they took."""
    texts = queries(2 * CALLS * ROUNDS + 10, seed=41 + os.getpid())
    with Cortex.open(home, project=home, backend=_backend()) as cortex:
        for _ in range(10):
            cortex.memories.recall(texts.pop())
        print("ready", flush=True)
        for _ in sys.stdin:
            started = time.perf_counter()
            for _ in range(CALLS):
                cortex.memories.recall(texts.pop())
            print(time.perf_counter() - started, flush=True)
    return {}


def several_processes(home: Path) -> dict[str, float]:
    """Two processes that recall beside one, in turns."""
    command = [sys.executable, __file__, "--recalls", str(home)]
    with ExitStack() as running:
        workers = [
            running.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(2)
        ]
        for worker in workers:
            assert worker.stdin and worker.stdout
            running.callback(worker.stdin.close)
            assert worker.stdout.readline() == "ready\n"
        rates: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(ROUNDS):
            for count, rate in rates.items():
                for worker in workers[:count]:
                    print(file=worker.stdin, flush=True)
                taken = [float(worker.stdout.readline()) for worker in workers[:count] if worker.stdout]
                rate.append(count * CALLS / max(taken))
    return {"two_processes": max(rates[2]) / max(rates[1])}


def measure(home: Path) -> dict[str, float]:
    """In a fresh process: first recall, then warm ones beside the bare embedding, then captures."""
    backend = _backend()
    begun = time.perf_counter()
    with Cortex.open(home, project=home, backend=backend) as cortex:
        texts = queries(QUERIES * len(MODES) + 20)
        cortex.memories.recall(texts.pop())
        first = time.perf_counter() - begun
        for _ in range(10):
            cortex.memories.recall(texts.pop())
        figures: dict[str, float] = {"first_s": first}
        embedding: list[float] = []
        for mode in MODES:
            taken = []
            for _ in range(QUERIES):
                text = texts.pop()
                started = time.perf_counter()
                cortex.memories.recall(text, mode=mode)
                taken.append(time.perf_counter() - started)
                started = time.perf_counter()
                backend.embed([text])
                embedding.append(time.perf_counter() - started)
            figures[f"{mode}_p50_ms"] = float(np.quantile(taken, 0.5) * 1e3)
            figures[f"{mode}_p95_ms"] = float(np.quantile(taken, 0.95) * 1e3)
        figures["embed_p50_ms"] = float(np.quantile(embedding, 0.5) * 1e3)
        figures["memory_mb"] = _memory_mb()
        figures |= several_callers(cortex)
        notes = {
            "capture": english(CAPTURES, seed=23),
            "made_up": queries(CAPTURES, seed=23, words=40),
            "conflicts": english(CAPTURES, seed=29),
        }
        for name, texts in notes.items():
            taken = []
            for text in texts:
                started = time.perf_counter()
                memory = cortex.memories.capture(text)
                if name == "conflicts":
                    cortex.memories.conflicts(memory)
                taken.append(time.perf_counter() - started)
            figures[f"{name}_ms"] = float(np.quantile(taken, 0.5) * 1e3)
        started = time.thread_time()
        while not cortex.memories.finish_reading():
            pass
        figures["read_ms"] = (time.thread_time() - started) / (len(notes) * CAPTURES) * 1e3
    return figures


def first_recall(home: Path) -> dict[str, float]:
    """In this process, which has done nothing else yet, with the model that ships."""
    (text,) = queries(1)
    begun = time.perf_counter()
    with Cortex.open(home, project=home) as cortex:
        cortex.memories.recall(text)
        return {"first_s": time.perf_counter() - begun}


def _in_fresh_process(home: Path, what: str) -> dict[str, float]:
    run = subprocess.run([sys.executable, __file__, what, str(home)], capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return figures


def _start_up_ms(code: str) -> float:
    """The least of several starts of the interpreter with this code."""
    taken = []
    for _ in range(7):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        taken.append(time.perf_counter() - started)
    return min(taken) * 1e3


def main() -> None:
    parts = {
        "--measure": measure,
        "--first": first_recall,
        "--recalls": serve_recalls,
        "--processes": several_processes,
    }
    if sys.argv[1:2] and sys.argv[1] in parts:
        if figures := parts[sys.argv[1]](Path(sys.argv[2])):
            print(json.dumps(figures))
        return
    sizes = [int(word) for word in sys.argv[1:]] or list(SIZES)
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            home.mkdir()
            loaded = fill(home, size)
            built = _in_fresh_process(home, "--first")
            figures = several_processes(home) | _in_fresh_process(home, "--measure") | {"built_s": built["first_s"]}
            figures["file_mb"] = sum(file.stat().st_size for file in home.glob("cortex.db*")) / 1e6
        figures |= {
            "records": size,
            "load_per_s": loaded,
            "ratio": figures["hybrid_p50_ms"] / figures["embed_p50_ms"],
            "p95_ratio": figures["hybrid_p95_ms"] / figures["hybrid_p50_ms"],
        }
        rows.append(figures)
    columns = (
        "records", "embed_p50_ms", "hybrid_p50_ms", "hybrid_p95_ms", "ratio", "p95_ratio", "vector_p50_ms",
        "text_p50_ms", "built_s", "first_s", "two_callers", "two_processes", "beside_slow", "capture_ms", "made_up_ms",
        "conflicts_ms", "read_ms", "load_per_s", "memory_mb", "file_mb",
    )  # fmt: skip
    report.table(columns, [[row[column] for column in columns] for row in rows])
    import_ms = _start_up_ms("import cortex_py") - _start_up_ms("pass")
    print(f"import cortex_py: {import_ms:.1f} ms above bare Python")
    report.write("latency", {"rows": rows, "import_ms": import_ms})


if __name__ == "__main__":
    main()
