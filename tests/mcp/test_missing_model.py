"""Without a usable model, tools store and search words and say so; vectors follow. Through real clients."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.shipped_model import SHIPPED
from cortex_py.core.errors import EmbeddingError
from cortex_py.surfaces.mcp.server import build_server

from clients import CURRENT, MODES, Caller, connected
from stub_backend import StubBackend

INVOICES = "The invoices are rendered by WeasyPrint"


def _none(models: Path) -> str:
    assert not models.exists()
    return "is not installed"


def _cut(models: Path) -> str:
    shutil.copytree(SHIPPED, models)
    graph = next(models.glob("*/int8.onnx"))
    graph.write_bytes(graph.read_bytes()[:-1])
    return "is damaged"


def _garbage(models: Path) -> str:
    shutil.copytree(SHIPPED, models)
    next(models.glob("*/int8.onnx")).write_bytes(b"not a model")
    return "is damaged"


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("spoil", [_none, _cut, _garbage])
def test_words_are_stored_and_searched_and_it_is_said(
    home: Path, project: Path, tmp_path: Path, mode: str, spoil: Callable[[Path], str]
) -> None:
    why = spoil(tmp_path / "models")
    (project / "README.md").write_text("# Shop\n\nSells umbrellas.\n", "utf-8")
    with (
        Cortex.open(home, project=project, backend=OnnxBackend(tmp_path / "models")) as cortex,
        connected(build_server(cortex), mode) as caller,
    ):
        kept = caller.call("subcog_capture", content=INVOICES, namespace="decisions")["id"]
        opened = caller.call("initialize_context", project_path=str(project))
        assert opened["contexts_created"] == 1
        work = {"project_id": opened["project_id"]}
        work["branch_id"] = caller.call("create_branch", **work, branch_topic="Invoices")["branch_id"]
        said = caller.call("update_memory", **work, content="Long tables make the invoices slow", role="user")
        assert said["indexed"] is True
        for how in ("hybrid", "vector"):
            found = caller.call("subcog_recall", query="invoices", mode=how)
            assert len(found["results"]) == 2
            assert found["message"].startswith("Searched by words only")
            assert why in found["message"]
            assert "warnings" not in found
        assert "message" not in caller.call("subcog_recall", query="invoices", mode="text")
        assert "message" not in caller.call("subcog_recall")
        searched = caller.call("search_context", project_id=work["project_id"], query="invoices tables")
        assert "Searched by words only" in searched["message"]
        assert why in searched["message"]
        assert searched["results"]
        assert "umbrellas" in caller.call("subcog_recall", query="umbrellas")["results"][0]["content"]
        assert "Searched by words only" in caller.read("subcog://search/invoices")
        caller.call("subcog_update", memory_id=kept, content=f"{INVOICES} since May")
        assert caller.call("subcog_recall", query="May")["results"][0]["id"] == kept
        enriched = caller.call("subcog_enrich", memory_id=kept, add_context=True)
        assert enriched["changes"]["tags_added"]
        for tool in ("subcog_status", "subcog_gc", "subcog_graph"):
            caller.call(tool, **({"operation": "stats"} if tool == "subcog_graph" else {}))
        error = caller.refused("subcog_reindex")
        assert (error.code, why in error.message) == (-32603, True)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def cortex(home: Path, project: Path, models: Path) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, backend=OnnxBackend(models)) as opened:
        yield opened


@pytest.fixture
def client(cortex: Cortex) -> Iterator[Caller]:
    with connected(build_server(cortex), CURRENT) as caller:
        yield caller


@pytest.mark.parametrize("by", ["upkeep", "reindex"])
def test_vectors_are_filled_in_once_the_model_is_there(cortex: Cortex, client: Caller, models: Path, by: str) -> None:
    kept = client.call("subcog_capture", content=INVOICES, namespace="decisions")["id"]
    asked = {"query": "how do we make the bills for customers", "mode": "vector"}
    assert "message" in client.call("subcog_recall", **asked)
    shutil.copytree(SHIPPED, models)
    if by == "upkeep":
        cortex.upkeep()
    else:
        assert client.call("subcog_reindex")["indexed"] == 1
    found = client.call("subcog_recall", **asked)
    assert [one["id"] for one in found["results"]] == [kept]
    assert "message" not in found


def test_a_suggestion_names_the_words_that_matched(client: Caller) -> None:
    client.call("subcog_capture", content=INVOICES, namespace="decisions")
    told = client.call(
        "suggest_contexts", project_id="current", current_context="Invoices come out of WeasyPrint empty"
    )
    (one,) = told["suggestions"]
    assert "meaning" not in one["reason"]
    assert one["reason"].endswith("both mention “WeasyPrint” and “Invoices”")


def test_what_cannot_be_compared_is_said(client: Caller) -> None:
    client.call("subcog_capture", content=INVOICES, namespace="decisions")
    told = client.call("subcog_consolidate", namespace="decisions", dry_run=True)
    assert "is not installed" in told["warnings"][0]


class _Away(StubBackend):
    """An endpoint that can go away."""

    away = False

    def embed(self, texts: object, *, normalize: bool = True) -> object:
        if self.away:
            raise EmbeddingError("The endpoint does not answer.", remedy="Try again later.")
        return super().embed(texts, normalize=normalize)  # type: ignore[arg-type]


def test_an_endpoint_that_is_away_leaves_the_words(home: Path, project: Path) -> None:
    backend = _Away()
    with (
        Cortex.open(home, project=project, backend=backend) as cortex,
        connected(build_server(cortex), CURRENT) as caller,
    ):
        kept = caller.call("subcog_capture", content=INVOICES, namespace="decisions")["id"]
        assert "message" not in caller.call("subcog_recall", query="invoices")
        backend.away = True
        assert "message" not in caller.call("subcog_recall", query="invoices"), "its vector is known"
        found = caller.call("subcog_recall", query="all invoices")
        assert [one["id"] for one in found["results"]] == [kept]
        assert found["message"] == "Searched by words only: The endpoint does not answer. Try again later."
