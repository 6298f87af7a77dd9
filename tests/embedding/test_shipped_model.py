"""The model that ships: its files are those that were measured, and it computes what the figures were measured with."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from cortex_py import Cortex
from cortex_py.config import load_settings
from cortex_py.embedding.backends.onnx import OnnxBackend
from cortex_py.embedding.backends.registry import onnx_model, open_backend, open_service_backend
from cortex_py.embedding.install.model_files import (
    MODEL_NAME,
    RECALL,
    SHIPPED,
    describe_shipped_model,
    read_manifest,
)
from cortex_py.errors import ConfigurationError

from helpers import MODELS

FIGURES = Path(__file__).parents[2] / "training" / "figures.json"
CARD = Path(__file__).parents[2] / "docs" / "explain" / "model-card.md"
# The graph decides what every stored vector is: other bytes need other figures, and stores move to them.
GRAPH = "fc8f6f2999d2f8ce3f5db831ec2a9101af9a49a4f17b80adf6a12291d5447359"
SIZE = 30_000_000


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_shipped_files_are_those_that_were_measured() -> None:
    folder = SHIPPED / RECALL
    manifest = read_manifest(SHIPPED, "int8", RECALL)
    assert _digest(folder / "int8.onnx") == manifest.graph_sha256 == GRAPH
    assert _digest(folder / "vocab.txt") == manifest.vocabulary_sha256
    assert json.loads(FIGURES.read_text("utf-8"))["fingerprint"] == manifest.fingerprint
    assert sum(path.stat().st_size for path in folder.iterdir()) < SIZE


def test_the_card_shows_the_figures_that_were_measured() -> None:
    card = CARD.read_text("utf-8")
    figures = json.loads(FIGURES.read_text("utf-8"))
    for name, by_model in figures["vectors_alone"].items():
        row = next(line for line in card.splitlines() if line.startswith(f"| {name} |"))
        assert [f"{value:.3f}" for value in by_model.values()] == [cell.strip() for cell in row.split("|")[2:-1]]


def test_it_keeps_general_likeness_and_finds_answers() -> None:
    model = OnnxBackend(SHIPPED, model=RECALL)
    texts = [
        "How do we undo a bad deployment?",
        "Roll back with helm rollback when a release misbehaves",
        "The office plants are watered on Mondays",
        "def rollback(release): run(['helm', 'rollback', release])",
    ]
    vectors = model.embed(texts)
    assert vectors.shape == (4, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    likeness = vectors @ vectors.T
    assert likeness[0, 1] > likeness[0, 2] + 0.2
    assert likeness[0, 3] > likeness[0, 2]


def test_it_is_described_without_loading() -> None:
    shown = describe_shipped_model()
    assert (shown.name, shown.precision, shown.dimensions, shown.max_tokens) == (RECALL, "int8", 384, 256)
    assert 22e6 < shown.bytes_on_disk < 24e6


def test_settings_choose_between_the_models(tmp_path: Path) -> None:
    assert onnx_model(load_settings()) == RECALL
    assert onnx_model(load_settings(precision="fp32")) == MODEL_NAME
    assert onnx_model(load_settings(embedding_model=f"sentence-transformers/{MODEL_NAME}")) == MODEL_NAME
    for wrong in ({"embedding_model": "other"}, {"embedding_model": RECALL, "precision": "fp32"}):
        with pytest.raises(ConfigurationError):
            onnx_model(load_settings(**wrong))


def test_the_service_serves_minilm_where_it_is_installed(tmp_path: Path) -> None:
    def served(**settings: object) -> str:
        chosen = load_settings(**settings)  # type: ignore[arg-type]
        return open_service_backend(chosen, open_backend(settings=chosen)).model_name

    assert served(models_dir=MODELS) == MODEL_NAME
    assert served(models_dir=tmp_path) == RECALL
    assert served(models_dir=MODELS, service_model=RECALL) == RECALL
    with pytest.raises(ConfigurationError, match="service_model"):
        served(service_model="other")


def test_a_memory_and_its_embedding_service_may_have_two_models(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, service_model=MODEL_NAME) as cortex:
        assert cortex.backend.model_name == RECALL
        answer = cortex.embeddings.generate("hello world").metadata
        assert (answer.model_name, answer.dimensions) == (MODEL_NAME, 384)
