"""Texts a second at 64 tokens: sentence-transformers on an NVIDIA card, and beside it what processors do.

    python bench/make_gpu_folder.py                        here, once
    PYTHONPATH=src python3 bench/gpu_embedding.py          there

Everything goes through the classes that Cortex itself uses. They need numpy, onnxruntime and, for what is
measured with it, sentence-transformers; nothing else that Cortex depends on has to be there.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import statistics
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from cortex_py.embedding.backends.backend import Backend
from cortex_py.embedding.backends.onnx import OnnxBackend
from cortex_py.embedding.backends.registry import missing_for_cuda
from cortex_py.embedding.backends.sentence_transformers import SentenceTransformersBackend
from cortex_py.embedding.install.model_files import DIMENSIONS, MODEL_NAME, PRECISIONS, Manifest
from cortex_py.embedding.install.onnx_graph import float_graph, integer_graph
from make_gpu_folder import FOLDER, read_tensors

import report

TOKENS = 64
ROUNDS = 5
# Enough texts for a second or more of each.
ON_CARD, ON_PROCESSOR = 32_768, 1_024


def _install(folder: Path, models_dir: Path) -> None:
    """The default model in both precisions, from the weights at hand instead of the package's."""
    tensors = read_tensors(folder / "model.safetensors")
    vocabulary = (folder / "vocab.txt").read_bytes()
    place = models_dir / MODEL_NAME
    place.mkdir(parents=True)
    (place / "vocab.txt").write_bytes(vocabulary)
    for precision in PRECISIONS:
        graph = b"".join((integer_graph if precision == "int8" else float_graph)(tensors).parts())
        (place / f"{precision}.onnx").write_bytes(graph)
        manifest = Manifest(
            name=MODEL_NAME,
            weights_sha256=hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
            precision=precision,
            recipe=0,
            dimensions=DIMENSIONS,
            graph_sha256=hashlib.sha256(graph).hexdigest(),
            graph_bytes=len(graph),
            vocabulary_sha256=hashlib.sha256(vocabulary).hexdigest(),
        )
        (place / f"{precision}.json").write_text(json.dumps(asdict(manifest)))


def _texts(backend: Backend, count: int) -> list[str]:
    """Texts of exactly so many tokens, no two alike."""
    words = ["the", "build", "of", "a", "release", "waits", "for", "every", "test", "that", "can", "fail", "on"]
    random = np.random.default_rng(TOKENS)
    texts = [" ".join(random.choice(words, TOKENS - 2)) for _ in range(count)]
    assert {backend.count_tokens(text) for text in texts[:100]} == {TOKENS}
    return texts


def _row(name: str, backend: Backend, texts: list[str]) -> dict[str, object]:
    started = time.perf_counter()
    backend.embed(texts[:1])
    load = time.perf_counter() - started
    # The first batches of each size are slower: memory is taken, kernels are chosen.
    backend.embed(texts)
    rates = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        backend.embed(texts)
        rates.append(len(texts) / (time.perf_counter() - started))
    single = []
    for text in texts[:200]:
        started = time.perf_counter()
        backend.embed([text])
        single.append(time.perf_counter() - started)
    return {
        "backend": name,
        "texts": len(texts),
        "texts_per_s": statistics.median(rates),
        "slowest": min(rates),
        "fastest": max(rates),
        "one_text_ms": statistics.median(single) * 1e3,
        "load_s": load,
    }


def _card() -> str | None:
    """The card's name; none if there is none or nothing here can use it."""
    if not importlib.util.find_spec("torch"):
        return None
    missing = missing_for_cuda("torch")
    if missing:
        print(f"No card: {missing[0]}.")
        return None
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=FOLDER, help="folder with the model; made by make_gpu_folder.py")
    parser.add_argument("--card-texts", type=int, default=ON_CARD)
    parser.add_argument("--processor-texts", type=int, default=ON_PROCESSOR)
    options = parser.parse_args()
    folder = str(options.model)
    card = _card()
    cores = len(os.sched_getaffinity(0))
    rows: list[dict[str, object]] = []
    found: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as models:
        _install(options.model, Path(models))
        plain = {
            "onnx int8, as shipped": OnnxBackend(Path(models)),
            f"onnx int8, {cores} threads": OnnxBackend(Path(models), threads=cores),
            f"onnx fp32, {cores} threads": OnnxBackend(Path(models), "fp32", threads=cores),
        }
        texts = _texts(next(iter(plain.values())), max(options.card_texts, options.processor_texts))
        on_processor: dict[str, Backend] = {**plain}
        on_card: dict[str, Backend] = {}
        if importlib.util.find_spec("sentence_transformers"):
            on_processor["sentence_transformers cpu float32"] = SentenceTransformersBackend(folder)
            if card:
                on_card["sentence_transformers cuda float32"] = SentenceTransformersBackend(folder, "cuda")
                half = SentenceTransformersBackend(folder, "cuda", width="float16")
                on_card["sentence_transformers cuda float16"] = half
        # Of every length, since differences grow with it.
        long = " ".join(texts[:16])
        lengths = [long[: 7 * number] for number in range(1, 257)]
        for name, backend in {**on_card, **on_processor}.items():
            count = options.card_texts if name in on_card else options.processor_texts
            rows.append(_row(name, backend, texts[:count]))
            print(f"{name}: {rows[-1]['texts_per_s']:,.0f} texts/s", flush=True)
            found[name] = backend.embed(lengths)
    print()
    report.table(list(rows[0]), [list(row.values()) for row in rows])
    exact = found[f"onnx fp32, {cores} threads"]
    apart = {
        name: {"largest": float(np.abs(one - exact).max()), "least_cosine": float((one * exact).sum(axis=1).min())}
        for name, one in found.items()
    }
    print("\nBeside onnx fp32 on 256 texts of 1 to 256 tokens: largest difference of a number, least cosine")
    for name, one in apart.items():
        print(f"  {name}: {one['largest']:.1e}, {one['least_cosine']:.6f}")
    report.write("gpu_embedding", {"card": card, "cores": cores, "tokens": TOKENS, "rows": rows, "apart": apart})


if __name__ == "__main__":
    main()
