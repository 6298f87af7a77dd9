"""Without a usable model, words are stored and searched; vectors follow once the model is there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.clock import Limit, apply_limit
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.shipped_model import SHIPPED
from cortex_py.core.errors import DeadlineExceeded, ModelMissing
from llm.chat_server import ChatServer, dripping
from timing import no_hang

TEXT = "The invoices are rendered by WeasyPrint"


def _waiting(cortex: Cortex) -> int:
    with cortex.store.database.read() as session:
        return len(cortex.store.memories.without_vectors(session, cortex.project.id, 100))


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def test_words_work_without_a_model(home: Path, project: Path, models: Path) -> None:
    (project / "README.md").write_text("# Shop\n\nSells umbrellas.\n", "utf-8")
    with Cortex.open(home, project=project, backend=OnnxBackend(models)) as cortex:
        kept = cortex.memories.capture(TEXT)
        cortex.contexts.initialize(mode="light")
        for mode in ("hybrid", "vector", "text"):
            page = cortex.memories.recall("invoices", mode=mode)
            assert [hit.memory.id for hit in page.results] == [kept.id]
            assert any("words only" in warning for warning in page.warnings) == (mode != "text")
        assert "umbrellas" in cortex.memories.recall("umbrellas").results[0].memory.content
        changed = cortex.memories.update(kept.id, content=TEXT + " since May")
        assert cortex.memories.recall("May").results[0].memory.id == changed.id
        branch = cortex.contexts.create_branch("Invoices")
        cortex.contexts.append(branch.id, "WeasyPrint is slow with long tables", "user")
        assert cortex.contexts.summary(branch.id)
        with pytest.raises(ModelMissing):
            cortex.memories.reindex()
        assert cortex.memories.fill_vectors() == 0
        assert _waiting(cortex) == 2


def test_a_question_waits_for_an_endpoint_no_longer_than_its_call_may_take(home: Path, project: Path) -> None:
    with ChatServer(usual=dripping("head")) as server:
        settings = {"embedding_url": server.url, "embedding_model": "m", "embedding_dimensions": 32}
        with Cortex.open(home, project=project, embedding_backend="openai", **settings) as cortex:
            with no_hang(), apply_limit(Limit(0.5)), pytest.raises(DeadlineExceeded):
                cortex.memories.recall("invoices")
            assert len(server.asked) == 1


@pytest.mark.parametrize("by", ["upkeep", "reindex"])
def test_vectors_follow_once_the_model_is_there(home: Path, project: Path, models: Path, by: str) -> None:
    with Cortex.open(home, project=project, backend=OnnxBackend(models)) as cortex:
        cortex.memories.capture(TEXT)
        shutil.copytree(SHIPPED, models)
        cortex.upkeep() if by == "upkeep" else cortex.memories.reindex()
        assert _waiting(cortex) == 0
        page = cortex.memories.recall("how do we make the bills for customers")
        assert page.results[0].memory.content == TEXT
        assert page.warnings == ()


def test_a_damaged_model_is_as_none(home: Path, project: Path, models: Path) -> None:
    shutil.copytree(SHIPPED, models)
    with Cortex.open(home, project=project, backend=OnnxBackend(models)) as cortex:
        kept = cortex.memories.capture(TEXT)
    graph = next(models.glob("*/int8.onnx"))
    graph.write_bytes(graph.read_bytes()[:-1])
    with Cortex.open(home, project=project, backend=OnnxBackend(models)) as cortex:
        cortex.memories.capture("The invoices are sent on Fridays")
        page = cortex.memories.recall("invoices")
        assert len(page.results) == 2
        assert kept.id in {hit.memory.id for hit in page.results}
        assert "damaged" in page.warnings[0]
        assert cortex.memories.fill_vectors() == 0
        assert _waiting(cortex) == 1


def test_an_import_waits_for_its_vectors(home: Path, project: Path, tmp_path: Path, models: Path) -> None:
    lines = tmp_path / "notes.jsonl"
    lines.write_text(json.dumps({"content": TEXT, "namespace": "decisions"}) + "\n", "utf-8")
    with Cortex.open(home, project=project, backend=OnnxBackend(models)) as cortex:
        cortex.backups.import_from([lines])
        assert [hit.memory.content for hit in cortex.memories.recall("invoices").results] == [TEXT]
        assert _waiting(cortex) == 1
        saved = cortex.backups.create("without vectors")
        shutil.copytree(SHIPPED, models)
        cortex.backups.restore(saved.id)
        assert _waiting(cortex) == 0
        assert cortex.memories.recall("how are bills made").warnings == ()
