"""Vectors agree with those of sentence-transformers; `make_reference.py` made the file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cortex_py.embedding.backends.onnx import OnnxBackend

DATA = Path(__file__).parent / "data"
TEXTS: list[dict[str, str]] = json.loads((DATA / "reference.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def expected() -> NDArray[np.float32]:
    vectors = np.load(DATA / "reference.npy").astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _cosines(backend: OnnxBackend, expected: NDArray[np.float32]) -> dict[str, float]:
    vectors = backend.embed([entry["text"] for entry in TEXTS])
    cosines = (vectors * expected).sum(axis=1)
    return {f"{entry['kind']}: {entry['text'][:40]}": float(c) for entry, c in zip(TEXTS, cosines, strict=True)}


@pytest.mark.slow
def test_fp32_is_the_same_model(fp32: OnnxBackend, expected: NDArray[np.float32]) -> None:
    assert {text: c for text, c in _cosines(fp32, expected).items() if c < 0.9999} == {}


@pytest.mark.slow
def test_int8_is_close_on_every_text(int8: OnnxBackend, expected: NDArray[np.float32]) -> None:
    assert {text: c for text, c in _cosines(int8, expected).items() if c < 0.985} == {}


def test_int8_is_closer_on_average(int8: OnnxBackend, expected: NDArray[np.float32]) -> None:
    assert np.mean(list(_cosines(int8, expected).values())) > 0.996


def test_int8_ranks_the_texts_as_the_reference_does(int8: OnnxBackend, expected: NDArray[np.float32]) -> None:
    """Each text's nearest neighbour is the reference's, or as near as makes no difference."""
    vectors = int8.embed([entry["text"] for entry in TEXTS])
    found = vectors @ vectors.T - 2 * np.eye(len(TEXTS))
    wanted = expected @ expected.T - 2 * np.eye(len(TEXTS))
    nearest = found.argmax(axis=1)
    loss = wanted.max(axis=1) - wanted[np.arange(len(TEXTS)), nearest]
    assert loss.max() < 0.02
