"""The embedding service as callers meet it: what it adds to the model, alone and under load, beside peers.

Throughput: 32 clients that send one text of 64 tokens at a time, over HTTP and in the library, beside the
model's own batched throughput in the same run. Latency: one short text, uncached and cached. Memory: 16
clients with 10,000 texts of 10 to 8,000 characters. Peers, where a Python with them is named in
CORTEX_BENCH_PEERS: each in a process of its own, on the same weights and texts.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.service import EmbeddingService

import report
from server import CORTEX, _free_port, _peak_mb, _serving

CLIENTS = 32
TOKENS = 64
WORDS = ["the", "build", "of", "a", "release", "waits", "for", "every", "test", "that", "can", "fail", "on", "night"]


def _texts(tokens: int, count: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, tokens - 2)) for _ in range(count)]


def _rate(work: Callable[[str], object], texts: list[str], clients: int) -> float:
    with ThreadPoolExecutor(clients) as pool:
        started = time.perf_counter()
        list(pool.map(work, texts))
        return len(texts) / (time.perf_counter() - started)


class _Poster:
    """A connection per thread, as clients keep them, and as little else as possible: the service is measured."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._local = threading.local()

    def __call__(self, text: str) -> bytes:
        if not hasattr(self._local, "socket"):
            self._local.socket = socket.create_connection(("127.0.0.1", self._port), timeout=120)
            self._local.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = json.dumps({"text": text}).encode()
        head = (
            f"POST /embed HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._local.socket.sendall(head.encode() + body)
        return self._answer(self._local.socket)

    def _answer(self, connection: socket.socket) -> bytes:
        taken = b""
        while b"\r\n\r\n" not in taken:
            taken += connection.recv(1 << 16)
        head, _, body = taken.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), taken
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(1 << 16)
        return body


def measure_throughput(backend: OnnxBackend, post: _Poster) -> dict[str, float]:
    """Medians of alternating rounds."""
    raw, library, served = [], [], []
    for round_ in range(5):
        texts = _texts(TOKENS, 320, round_)
        started = time.perf_counter()
        backend.embed(texts)
        raw.append(len(texts) / (time.perf_counter() - started))
        with EmbeddingService(backend=backend, rate_limit=0) as service:
            library.append(_rate(service.generate, _texts(TOKENS, 320, 100 + round_), CLIENTS))
        served.append(_rate(post, _texts(TOKENS, 320, 200 + round_), CLIENTS))
    model, lib, over_http = (float(np.median(found)) for found in (raw, library, served))
    return {
        "model_texts_per_s": model,
        "library_texts_per_s": lib,
        "library_share": lib / model,
        "http_texts_per_s": over_http,
        "http_share": over_http / model,
    }


def measure_latency(backend: OnnxBackend, post: _Poster) -> dict[str, float]:
    """One text of 12 tokens; medians in ms over blocks in turn. Call by call the two processes' copies of the

    weights would push each other out of the processor's cache, which no caller's machine does.
    """
    taken: dict[str, list[float]] = {"model": [], "library": [], "http": [], "library_cached": [], "http_cached": []}

    def timed(name: str, call: Callable[[str], object], texts: list[str]) -> None:
        for text in texts:
            started = time.perf_counter()
            call(text)
            taken[name].append((time.perf_counter() - started) * 1e3)

    with EmbeddingService(backend=backend, rate_limit=0) as service:
        for block in range(10):
            texts = _texts(12, 40, 1000 + block)
            timed("model", lambda text: backend.embed([text]), texts)
            timed("library", service.generate, texts)
            timed("library_cached", service.generate, texts)
            timed("http", post, texts)
            timed("http_cached", post, texts)
    median = {f"{name}_ms": float(np.median(times)) for name, times in taken.items()}
    return {**median, "http_over_model": median["http_ms"] / median["model_ms"]}


def _long_texts() -> Iterator[str]:
    random = np.random.default_rng(3)
    for number in range(10_000):
        size = int(random.integers(10, 8_000))
        yield f"{number} " + " ".join(random.choice(WORDS, 1 + size // 5))[: size - 6]


def measure_memory(post: _Poster, pid: int) -> dict[str, float]:
    rate = _rate(post, list(_long_texts()), 16)
    return {"texts": 10_000, "clients": 16, "texts_per_s": rate, "peak_mb": _peak_mb(pid)}


PEER = """
import json, resource, sys, time
started = time.perf_counter()
kind, model, texts = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
if kind == "cortex":
    from cortex_py.core.embedding.backends.onnx import OnnxBackend
    embed = OnnxBackend().embed
elif kind == "sentence-transformers":
    from sentence_transformers import SentenceTransformer
    loaded = SentenceTransformer(model, device="cpu")
    embed = lambda texts: loaded.encode(texts, batch_size=32)
else:
    import asyncio
    from infinity_emb import AsyncEmbeddingEngine, EngineArgs
    engine = AsyncEmbeddingEngine.from_args(EngineArgs(model_name_or_path=model, engine="torch", device="cpu"))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(engine.astart())
    embed = lambda texts: loop.run_until_complete(engine.embed(sentences=texts))
embed(texts[:1])
start = time.perf_counter() - started
rates = []
for _ in range(3):
    began = time.perf_counter()
    embed(texts)
    rates.append(len(texts) / (time.perf_counter() - began))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"start_s": start, "texts_per_s": sorted(rates)[1], "peak_mb": peak}))
"""


def measure_peers(folder: Path) -> list[dict[str, object]]:
    """`CORTEX_BENCH_PEERS` holds entries `name=python`, `CORTEX_BENCH_WEIGHTS` the model's folder for them."""
    peers = dict(entry.split("=", 1) for entry in os.environ.get("CORTEX_BENCH_PEERS", "").split(",") if entry)
    weights = os.environ.get("CORTEX_BENCH_WEIGHTS", "")
    texts = folder / "texts.json"
    texts.write_text(json.dumps(_texts(TOKENS, 256, 11)))
    rows: list[dict[str, object]] = []
    for name, python in {"cortex": sys.executable, **peers}.items():
        model = "" if name == "cortex" else weights
        done = subprocess.run(
            [python, "-c", PEER, name, model, str(texts)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{name} did not run: {done.stderr.strip().splitlines()[-1:]}")
            continue
        rows.append({"engine": name, **json.loads(done.stdout.strip().splitlines()[-1])})
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(CORTEX_HOME=f"{folder}/home", CORTEX_RATE_LIMIT="0")
        backend = OnnxBackend()
        backend.embed(_texts(TOKENS, 64, 0))
        port = _free_port()
        with _serving([*CORTEX, "--http", "--port", str(port), "--project", folder], port) as process:
            post = _Poster(port)
            post("warm")
            throughput = measure_throughput(backend, post)
            latency = measure_latency(backend, _Poster(port))
            memory = measure_memory(_Poster(port), process.pid)
        peers = measure_peers(Path(folder))
    for part in (throughput, latency, memory, *peers):
        report.table(list(part), [list(part.values())])
        print()
    report.write("embedding_service", {"throughput": throughput, "latency": latency, "memory": memory, "peers": peers})


if __name__ == "__main__":
    main()
