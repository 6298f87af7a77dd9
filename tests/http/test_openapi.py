"""The description of the HTTP interface holds: requests made from it, right and wrong, are answered as it says."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema_rs
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.testclient import TestClient

from cortex_py import Cortex
from cortex_py.core.embedding.service import EmbeddingService
from cortex_py.surfaces.http.embeddings import embedding_routes, openapi
from cortex_py.surfaces.http.middleware import BearerToken, BodyLimit, DrainState
from cortex_py.surfaces.http.monitoring import Readiness, health_routes

from stub_backend import StubBackend

Opens = Callable[..., EmbeddingService]

TOKEN = "a-long-enough-token-0123"


@pytest.fixture
def cortex(home: Path, project: Path) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, backend=StubBackend()) as opened:
        opened.memories.capture("Use PostgreSQL", tags=["database"])
        yield opened


@pytest.fixture
def routes(cortex: Cortex, opened: Opens) -> list[Route]:
    return [*health_routes(cortex, Readiness(cortex, DrainState())), *embedding_routes(opened())]


@pytest.mark.slow
def test_requests_made_from_the_description(routes: list[Route]) -> None:
    # Not above: every run of any test would load it.
    import schemathesis
    from schemathesis.engine import events, from_schema

    config = schemathesis.Config.from_dict({"generation": {"max-examples": 12, "deterministic": True}})
    schema = schemathesis.openapi.from_asgi("/openapi.json", Starlette(routes=routes), config=config)
    asked: Counter[str] = Counter()
    faults: list[str] = []
    for event in from_schema(schema).execute():
        assert not isinstance(event, events.FatalError), event
        if isinstance(event, events.NonFatalError):
            faults.append(f"{event.label}: {event.info.format()}")
        if isinstance(event, events.ScenarioFinished):
            asked[event.recorder.label] += len(event.recorder.interactions)
            faults += [
                f"{event.phase} {event.recorder.label} {check.name}: {check.failure_info}"
                for checks in event.recorder.checks.values()
                for check in checks
                if check.failure_info
            ]
    # The description itself is where the requests come from.
    assert asked.keys() == {f"{method} {path}" for method, path in _operations(routes)} - {"GET /openapi.json"}
    assert min(asked.values()) >= 5
    assert not faults, "\n".join(faults[:10])


@pytest.mark.parametrize(("path", "status"), [("/embed", 401), ("/status", 401), ("/embed", 413)])
def test_refusals_of_the_guards_are_as_described(routes: list[Route], opened: Opens, path: str, status: int) -> None:
    guards = [Middleware(BearerToken, token=TOKEN), Middleware(BodyLimit, most=10)]
    app = Starlette(routes=[*routes[:4], *embedding_routes(opened(), token=TOKEN)], middleware=guards)
    carrying = TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"})
    described = carrying.get("/openapi.json").json()
    client = TestClient(app) if status == 401 else carrying
    method = next(iter(described["paths"][path]))
    answer = client.request(method, path, content=b'{"text": "too long for the bound"}' if method == "post" else None)
    assert answer.status_code == status
    (kind,) = described["paths"][path][method]["responses"][str(status)]["content"].items()
    assert kind[0] == answer.headers["content-type"]
    whole = {**kind[1]["schema"], "components": described["components"]}
    jsonschema_rs.Draft202012Validator(whole).validate(answer.json())


def test_the_token_is_described_where_one_is_needed(opened: Opens) -> None:
    for token in (None, TOKEN):
        described = openapi(opened(), needs_token=token is not None)
        asks = {path for path, methods in described["paths"].items() for one in methods.values() if "security" in one}
        assert asks == (set(described["paths"]) - {"/health/live", "/health/ready"} if token else set())


def _operations(routes: list[Route]) -> list[tuple[str, str]]:
    described = TestClient(Starlette(routes=routes)).get("/openapi.json").json()
    return [(method.upper(), path) for path, methods in described["paths"].items() for method in methods]


def test_every_page_is_described(routes: list[Route]) -> None:
    described = TestClient(Starlette(routes=routes)).get("/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    assert sorted(described["paths"]) == sorted(route.path for route in routes)
