"""A memory whose embedding endpoint is away keeps the words, and their vectors follow once it answers."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from endpoint import Endpoint, refusal, vectors

from cortex_py import Cortex
from cortex_py.core.embedding.backends.openai import OpenAIBackend
from cortex_py.core.errors import EmbeddingError

TEXT = "The invoices are rendered by WeasyPrint"


def _backend(endpoint: Endpoint) -> closing[OpenAIBackend]:
    return closing(OpenAIBackend(endpoint.url, "some-model", dimensions=32, sleep=lambda _: None))


def test_words_are_kept_and_found_at_once_and_vectors_follow(home: Path, project: Path) -> None:
    (project / "README.md").write_text("# Shop\n\nSells umbrellas.\n", "utf-8")
    with (
        Endpoint(usual=refusal(503, "down for maintenance")) as endpoint,
        _backend(endpoint) as backend,
        Cortex.open(home, project=project, backend=backend) as cortex,
    ):
        kept = cortex.memories.capture(TEXT)
        cortex.memories.update(kept.id, content=TEXT + " since May")
        assert cortex.contexts.initialize(mode="light").contexts_created == 1
        assert [hit.memory.id for hit in cortex.memories.recall("May").results] == [kept.id]
        assert "umbrellas" in cortex.memories.recall("umbrellas").results[0].memory.content
        cortex.upkeep()
        assert cortex.memories.status().pending_vectors == 2
        endpoint.usual = vectors
        cortex.upkeep()
        assert cortex.memories.status().pending_vectors == 0
        page = cortex.memories.recall("invoices", mode="vector")
        assert page.warnings == ()
        assert any(hit.memory.id == kept.id and hit.signals and hit.signals.meaning for hit in page.results)


def test_what_the_endpoint_refuses_is_not_stored(home: Path, project: Path) -> None:
    with (
        Endpoint(usual=refusal(401, "no such key")) as endpoint,
        _backend(endpoint) as backend,
        Cortex.open(home, project=project, backend=backend) as cortex,
    ):
        with pytest.raises(EmbeddingError, match="no such key"):
            cortex.memories.capture(TEXT)
        assert cortex.memories.recall("invoices", mode="text").total == 0
