"""A store with vectors of the model that shipped before moves to the one that ships, searchable all the while."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cortex_py import Cortex, NewMemory
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.backends.registry import open_backend
from cortex_py.core.embedding.shipped_model import FORMER, RECALL
from cortex_py.core.errors import ModelMismatch, ModelMissing

from forking import python_command
from stub_backend import StubBackend

TEXT = "The invoices are rendered by WeasyPrint"
QUESTION = "which library makes the PDF files of bills"
OTHERS = 300


class Former(StubBackend):
    """The model that earlier versions installed, by its name and the form of its vectors."""

    name = "onnx"
    model_name = FORMER
    dimensions = 384
    fingerprint = "all-MiniLM-L6-v2:53aa51172d14:int8.1"


@pytest.fixture(scope="module")
def former() -> Backend:
    return Former()


@pytest.fixture(scope="module")
def shipped() -> Backend:
    return OnnxBackend()


def _vectors(cortex: Cortex) -> tuple[int, int]:
    """How many chunks have a vector, and how many have none."""
    with cortex.store.database.read() as session:
        rows = session.rows("SELECT count(vector), count(*) FROM chunk WHERE space = ?", (cortex.project.id,))
    return rows[0][0], rows[0][1] - rows[0][0]


def _after(batches: int) -> Callable[[], bool]:
    """Whether so many batches were begun."""
    left = iter(range(batches))
    return lambda: next(left, None) is None


@pytest.fixture
def old_home(home: Path, project: Path, former: Backend) -> Path:
    with Cortex.open(home, project=project, backend=former) as cortex:
        cortex.memories.capture(TEXT)
        cortex.memories.capture_many(NewMemory(content=f"Shelf {n} holds box {n * 7}") for n in range(OTHERS))
    return home


@pytest.mark.slow
def test_a_store_moves_in_steps_and_answers_all_the_while(
    old_home: Path, project: Path, former: Backend, shipped: Backend
) -> None:
    with Cortex.open(old_home, project=project, backend=shipped) as cortex:
        assert _vectors(cortex) == (0, OTHERS + 1)
        assert cortex.memories.recall("the library for invoices").results[0].memory.content == TEXT
        assert cortex.memories.fill_vectors(_after(1)) == 128
        assert _vectors(cortex) == (128, OTHERS + 1 - 128)
        page = cortex.memories.recall("which box is the one that has number 1400")
        assert page.results[0].memory.content == "Shelf 200 holds box 1400"
        assert any("words only" in warning for warning in page.warnings)
        assert cortex.memories.recall("box 1400").results[0].memory.content == "Shelf 200 holds box 1400"
        new = cortex.memories.capture("Parcels are weighed before the label is printed")
        assert cortex.memories.recall("what happens to parcels", mode="vector").results[0].memory.id == new.id
    with Cortex.open(old_home, project=project, backend=shipped) as cortex:
        # What was done stays done.
        assert _vectors(cortex) == (129, OTHERS + 1 - 128)
        cortex.upkeep()
        assert _vectors(cortex) == (OTHERS + 2, 0)
        page = cortex.memories.recall(QUESTION)
        assert page.results[0].memory.content == TEXT
        assert page.warnings == ()
        assert _stored_vector(cortex) == pytest.approx(shipped.embed([TEXT])[0], abs=1e-5)
    with (
        Cortex.open(old_home, project=project, backend=former) as cortex,
        pytest.raises(ModelMismatch, match="cortex reindex"),
    ):
        cortex.memories.recall(QUESTION)


def _stored_vector(cortex: Cortex) -> np.ndarray:
    with cortex.store.database.read() as session:
        rows = session.rows(
            "SELECT c.vector FROM chunk c JOIN memory m ON m.num = c.num AND m.space = c.space "
            "WHERE m.space = ? AND m.content = ?",
            (cortex.project.id, TEXT),
        )
    return np.frombuffer(rows[0][0], np.float32)


@pytest.mark.slow
def test_a_killed_move_is_continued(old_home: Path, project: Path, shipped: Backend) -> None:
    script = (
        "import os, signal\n"
        "from cortex_py import Cortex\n"
        f"cortex = Cortex.open({str(old_home)!r}, project={str(project)!r})\n"
        "calls = iter(range(2))\n"
        "def stop():\n"
        "    if next(calls, None) is None:\n"
        "        os._exit(9)\n"
        "    return False\n"
        "cortex.memories.fill_vectors(stop)\n"
    )
    done = subprocess.run([*python_command(), "-c", script], env=os.environ, timeout=120, check=False)
    assert done.returncode == 9
    with Cortex.open(old_home, project=project, backend=shipped) as cortex:
        assert _vectors(cortex) == (256, OTHERS + 1 - 256)
        assert cortex.memories.fill_vectors() == OTHERS + 1 - 256
        assert cortex.memories.recall(QUESTION).results[0].memory.content == TEXT


@pytest.mark.parametrize("again", ["upkeep", "reindex"])
def test_a_store_whose_settings_name_the_former_model_says_that_it_is_gone_and_keeps_all(
    home: Path, project: Path, former: Backend, again: str
) -> None:
    with Cortex.open(home, project=project, backend=former) as cortex:
        kept = cortex.memories.capture(TEXT)
    with Cortex.open(home, project=project, embedding_model=FORMER) as cortex:
        assert _vectors(cortex) == (1, 0)
        page = cortex.memories.recall("invoices")
        assert [hit.memory.content for hit in page.results] == [TEXT]
        assert "all-MiniLM-L6-v2 is not part of Cortex any more" in page.warnings[0]
        assert "Remove embedding_model from the settings" in page.warnings[0]
        new = cortex.memories.capture("Parcels are weighed on Fridays")
        with pytest.raises(ModelMissing):
            cortex.memories.reindex()
        assert cortex.memories.fill_vectors() == 0
        assert _vectors(cortex) == (1, 1)
    with Cortex.open(home, project=project) as cortex:  # without the setting
        if again == "upkeep":
            cortex.upkeep()
        else:
            cortex.memories.reindex()
        assert _vectors(cortex) == (2, 0)
        page = cortex.memories.recall(QUESTION)
        assert page.results[0].memory.id == kept.id
        assert cortex.memories.get(new.id).content == "Parcels are weighed on Fridays"
        assert page.warnings == ()


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_store_that_cannot_be_written_is_searched_by_words(
    old_home: Path, project: Path, shipped: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex_py.app.follow_shipped_model", lambda *_: None)  # as where the file is read-only
    with Cortex.open(old_home, project=project, backend=shipped) as cortex:
        page = cortex.memories.recall("invoices")
        assert page.results[0].memory.content == TEXT
        assert any("words only" in warning for warning in page.warnings)


def test_new_homes_use_the_model_that_ships(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project) as cortex:
        assert cortex.backend.model_name == RECALL
        cortex.memories.capture(TEXT)
        assert cortex.memories.recall(QUESTION).results[0].memory.content == TEXT
        assert cortex.embeddings.backend is cortex.backend
    assert open_backend().model_name == RECALL


def _made_by(home: Path, project: Path, shipped: Backend, fingerprint: str) -> None:
    """A store whose vectors are said to come from another model."""
    with Cortex.open(home, project=project, backend=shipped) as cortex:
        cortex.memories.capture(TEXT)
        with cortex.store.database.write() as session:
            cortex.store.settings.put(session, "embedding", fingerprint)


def test_a_store_with_vectors_of_the_former_cortex_recall_moves_too(
    home: Path, project: Path, shipped: Backend
) -> None:
    _made_by(home, project, shipped, "cortex-recall:dd9ffb721d7a:int8.1")
    with Cortex.open(home, project=project, backend=shipped) as cortex:
        assert _vectors(cortex) == (0, 1)
        cortex.memories.fill_vectors()
        assert _vectors(cortex) == (1, 0)
        assert not cortex.memories.recall(QUESTION).warnings


def test_vectors_of_a_later_cortex_recall_are_not_touched(home: Path, project: Path, shipped: Backend) -> None:
    _made_by(home, project, shipped, "cortex-recall:ffffffffffff:int8.1")
    with Cortex.open(home, project=project, backend=shipped) as cortex:
        assert _vectors(cortex) == (1, 0)
        with pytest.raises(ModelMismatch):
            cortex.memories.recall(QUESTION)
