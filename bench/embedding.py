"""How fast the model embeds, beside the machine's own limit and beside sentence-transformers if installed.

The limit is the measured peak of single-precision matrix products: an encoder of 10.6 M weights needs
21.2 MFLOP a token, and 9.2 kFLOP more for each pair of tokens in attention.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import time
from collections.abc import Callable

import numpy as np

from cortex_py import Cortex, NewMemory
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.shipped_model import RECALL

import report

LENGTHS = (12, 64, 256)
BATCH = 32
IMPORTED = 8_000
CAPTURED = {"12": "12 tokens", "64": "64 tokens", "import": f"64 tokens, {IMPORTED:,} notes"}


def _median_ms(call: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return float(np.median(taken) * 1e3)


def _gemm_peak() -> float:
    left, right = np.ones((2048, 384), np.float32), np.ones((384, 1536), np.float32)
    return 2 * 2048 * 384 * 1536 / (_median_ms(lambda: left @ right, 40) / 1e3)


def _work(tokens: int) -> float:
    return tokens * (21.2e6 + 9.2e3 * tokens)


def _texts(backend: OnnxBackend, tokens: int, count: int) -> list[str]:
    """Distinct texts of exactly so many tokens, counted as the model counts."""
    words = ["the", "build", "of", "a", "release", "waits", "for", "every", "test", "that", "can", "fail", "on"]
    random = np.random.default_rng(tokens)
    texts = []
    while len(texts) < count:
        text = " ".join(random.choice(words, tokens - 2))
        if backend.count_tokens(text) == tokens:
            texts.append(text)
    return texts


def _row(
    name: str, embed: Callable[[list[str]], object], texts: dict[int, list[str]], peak: float
) -> dict[str, object]:
    row: dict[str, object] = {"backend": name}
    for tokens in LENGTHS:
        own = texts[tokens]
        embed(own[:2])
        single = iter(own * 3)
        row[f"{tokens}_ms"] = _median_ms(lambda one=single: embed([next(one)]), 40)  # type: ignore[misc]
        row[f"{tokens}_batch_per_s"] = BATCH / _median_ms(lambda mine=own: embed(mine[:BATCH]), 4) * 1e3  # type: ignore[misc]
        row[f"{tokens}_share_of_peak"] = float(row[f"{tokens}_batch_per_s"]) * _work(tokens) / peak  # type: ignore[arg-type]
    return row


def _capture_share(backend: OnnxBackend, texts: list[str], rounds: int = 5) -> float:
    """Throughput of capturing many, as a share of the bare model's on the same texts, in alternating rounds."""
    shares = []
    for _ in range(rounds):
        started = time.perf_counter()
        backend.embed(texts)
        bare = time.perf_counter() - started
        with tempfile.TemporaryDirectory() as home, Cortex.open(home, project=home, backend=backend) as cortex:
            started = time.perf_counter()
            cortex.memories.capture_many([NewMemory(content=text) for text in texts])
            shares.append(bare / (time.perf_counter() - started))
    return float(np.median(shares))


def main() -> None:
    model = OnnxBackend()
    peak = _gemm_peak()
    texts = {tokens: _texts(model, tokens, 40) for tokens in LENGTHS}
    rows = [_row(f"onnx {RECALL} int8", model.embed, texts, peak)]
    if importlib.util.find_spec("sentence_transformers") and os.environ.get("CORTEX_BENCH_ST"):
        from sentence_transformers import SentenceTransformer

        reference = SentenceTransformer(os.environ["CORTEX_BENCH_ST"], device="cpu")
        rows.append(_row("sentence-transformers", reference.encode, texts, peak))
    columns = list(rows[0])
    report.table(columns, [[row[column] for column in columns] for row in rows])
    shares = {}
    for tokens in LENGTHS[:2]:
        shares[str(tokens)] = _capture_share(model, _texts(model, tokens, 1500 if tokens == 12 else 600))
    # More notes than may wait for the graph.
    shares["import"] = _capture_share(model, _texts(model, 64, IMPORTED), rounds=1)
    print(
        f"peak {peak / 1e9:.0f} GFLOP/s; capture_many at",
        ", ".join(f"{share:.2f} of the model ({CAPTURED[name]})" for name, share in shares.items()),
    )
    report.write("embedding", {"peak_gflops": peak / 1e9, "rows": rows, "capture_share": shares})


if __name__ == "__main__":
    main()
