"""A value of another type than the declared one is an error; numbers that clients write as text are taken."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cases import each
from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.surfaces.mcp.server import build_server

from clients import CURRENT, MODES, TRANSPORTS, Caller, connected, served


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, model: Backend) -> Iterator[Caller]:
    folder = tmp_path_factory.mktemp("types")
    with (
        Cortex.open(folder / "home", project=folder, backend=model) as cortex,
        connected(build_server(cortex), CURRENT) as caller,
    ):
        for number in range(3):
            caller.call("subcog_capture", content=f"Note {number} on parsers", namespace="learnings")
        yield caller


@pytest.mark.parametrize("limit", ["2", 2, 2.0])
def test_a_number_is_taken_as_clients_write_it(client: Caller, limit: object) -> None:
    assert len(client.call("subcog_recall", limit=limit)["results"]) == 2
    scored = client.call("subcog_entities", action="extract", content="Ann uses Rust", min_confidence="0.5")
    assert scored["entities"]


@each("limit", [True, False, "", " 2", "+2", "02", "2.0", "0x2", "1e1", "1_0", "two", [2], "²", "9" * 30])
def test_what_is_no_integer_is_refused(client: Caller, limit: object) -> None:
    error = client.refused("subcog_recall", limit=limit)
    assert (error.code, error.data["fields"]) == (-32602, ["limit"])


@each("score", [True, "yes", "nan", "inf", "1e-1", ".5", " 0.5"])
def test_what_is_no_number_is_refused(client: Caller, score: object) -> None:
    error = client.refused("subcog_entities", action="extract", content="Ann uses Rust", min_confidence=score)
    assert (error.code, error.data["fields"]) == (-32602, ["min_confidence"])
    told = client.failed("search_context", project_id="abc123def456", query="parsers", min_score=score)
    assert (told["error_code"], told["details"]) == ("INVALID_PARAMS", "Check: min_score.")


@each("flag", ["yes", "true", "false", "1", 1, 0, "on", ""])
def test_what_is_no_boolean_is_refused(client: Caller, flag: object) -> None:
    error = client.refused("subcog_gc", dry_run=flag)
    assert (error.code, error.data["fields"]) == (-32602, ["dry_run"])
    told = client.failed("embedding.generate", text="parsers", normalize=flag)
    assert (told["code"], told["details"]["field"]) == ("VALIDATION_ERROR", "normalize")


@each("given", [{"tags": "parsers"}, {"tags": ["a", 1]}, {"content": 7}, {"source": True}])
def test_what_is_no_text_is_refused(client: Caller, given: dict[str, Any]) -> None:
    error = client.refused("subcog_capture", **{"content": "A note", "namespace": "learnings", **given})
    assert (error.code, error.data["fields"]) == (-32602, list(given))


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
def test_every_server_takes_the_same(home: Path, project: Path, transport: str, mode: str) -> None:
    with served(transport, mode, home, project) as caller:
        assert caller.call("subcog_recall", limit="5")["total"] == 0
        assert caller.refused("subcog_recall", limit=True).code == -32602
        assert caller.refused("subcog_gc", dry_run="yes").code == -32602


def test_a_remote_backend_is_available_only_if_it_is_configured(home: Path, project: Path, client: Caller) -> None:
    assert client.call("health.status")["backends_available"]["openai"] is False
    assert client.call("model.info")["extras"]["openai_available"] is False
    remote = {"CORTEX_EMBEDDING_URL": "http://127.0.0.1:9/v1", "CORTEX_EMBEDDING_MODEL": "m"}
    chosen = {"CORTEX_EMBEDDING_BACKEND": "openai", "CORTEX_EMBEDDING_DIMENSIONS": "64"}
    with served("stdio", CURRENT, home, project, **remote, **chosen) as caller:
        assert caller.call("health.status")["backends_available"]["openai"] is True
