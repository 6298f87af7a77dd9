"""The model that ships: its files are those that were measured, and it computes what the figures were measured with."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from cortex_py.core.config import load_settings
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.backends.registry import open_backend
from cortex_py.core.embedding.shipped_model import RECALL, SHIPPED, read_manifest
from cortex_py.core.errors import ConfigurationError

FIGURES = Path(__file__).parents[2] / "training" / "cortex_recall" / "figures.json"
CARD = Path(__file__).parents[2] / "docs" / "explain" / "model-card.md"
# The graph decides what every stored vector is: other bytes need other figures, and stores move to them.
GRAPH = "fc8f6f2999d2f8ce3f5db831ec2a9101af9a49a4f17b80adf6a12291d5447359"
SIZE = 30_000_000


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_shipped_files_are_those_that_were_measured() -> None:
    folder = SHIPPED / RECALL
    manifest = read_manifest()
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
    model = OnnxBackend()
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


def test_settings_name_the_shipped_model_or_another_backend() -> None:
    assert open_backend(settings=load_settings(embedding_model=RECALL)).model_name == RECALL
    with pytest.raises(ConfigurationError, match=r"no model 'other'.*Set embedding_model to cortex-recall"):
        open_backend(settings=load_settings(embedding_model="other"))


def test_settings_of_the_former_model_are_read_and_said_to_have_no_meaning(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home.mkdir()
    (home / "config.toml").write_text('models_dir = "/m"\nprecision = "fp32"\nservice_model = "all-MiniLM-L6-v2"\n')
    assert open_backend(settings=load_settings(home)).model_name == RECALL
    assert "models_dir, precision, service_model in" in caplog.text
