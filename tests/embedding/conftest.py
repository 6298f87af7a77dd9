"""A copy of the shipped model that a test may damage, and its tokeniser."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cortex_py.core.embedding.shipped_model import SHIPPED, read_manifest, read_vocabulary
from cortex_py.core.embedding.wordpiece import WordPiece


@pytest.fixture
def own_copy(tmp_path: Path) -> Path:
    """The shipped model in a folder of the test's own."""
    return Path(shutil.copytree(SHIPPED, tmp_path / "models"))


@pytest.fixture(scope="session")
def vocabulary() -> list[str]:
    return read_vocabulary(SHIPPED, read_manifest())


@pytest.fixture(scope="session")
def tokeniser(vocabulary: list[str]) -> WordPiece:
    return WordPiece(vocabulary)
