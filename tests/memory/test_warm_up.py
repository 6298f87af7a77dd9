"""Warming up loads what the first capture and the first recall need, and leaves no trace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cortex_py import Cortex

from stub_backend import StubBackend

LOADED_BY_CALLS = """
import sys
from pathlib import Path
from cortex_py import Cortex

with Cortex.open(Path(sys.argv[1]), project=sys.argv[2]) as cortex:
    cortex.memories.capture("Zanzibar stores its rows in PostgreSQL.")
    cortex.memories.warm_up()
    before = set(sys.modules)
    noted = cortex.memories.capture("Zanzibar stores its rows in MySQL.")
    assert cortex.memories.conflicts(noted)
    assert cortex.memories.recall("rows").total
    print(sorted(name for name in set(sys.modules) - before if name.startswith(("cortex_py", "numpy", "onnxruntime"))))
"""


class _Counting(StubBackend):
    def __init__(self, name: str = "stub") -> None:
        self.name = name  # type: ignore[misc]
        self.calls = 0

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        self.calls += 1
        return super().embed(texts, normalize=normalize)


def test_nothing_is_stored(home: Path, project: Path) -> None:
    backend = _Counting()
    with Cortex.open(home, project=project, backend=backend) as cortex:
        cortex.memories.warm_up()
        assert backend.calls
        assert cortex.memories.recall().total == 0
        assert cortex.graph.entities() == ([], 0)


def test_an_endpoint_is_not_asked(home: Path, project: Path) -> None:
    backend = _Counting("openai")
    with Cortex.open(home, project=project, backend=backend) as cortex:
        cortex.memories.warm_up()
        assert not backend.calls


def test_a_store_without_a_model_is_warmed_up_too(home: Path, project: Path, tmp_path: Path) -> None:
    with Cortex.open(home, project=project, embedding_model="all-MiniLM-L6-v2") as cortex:
        cortex.memories.warm_up()
        assert cortex.memories.recall().total == 0


@pytest.mark.slow
def test_the_first_calls_afterwards_import_nothing_more(home: Path, project: Path) -> None:
    command = [sys.executable, "-c", LOADED_BY_CALLS, str(home), str(project)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
