"""`/api/v1` does what its description says: requests made from it, right and wrong, are answered as described."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import schemathesis
from schemathesis.engine import events, from_schema
from starlette.applications import Starlette

from cortex_py import Cortex
from cortex_py.surfaces.http.access import API, CHANGE_SCOPES, PAGE_SCOPES
from cortex_py.surfaces.http.page import OPERATIONS, page_routes
from cortex_py.surfaces.web import models
from cortex_py.surfaces.web.assets import find_asset
from cortex_py.surfaces.web.models import word_difference

from stub_backend import StubBackend


@pytest.mark.slow
def test_requests_made_from_the_description(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        cortex.memories.capture("Use PostgreSQL", tags=["database"])
        # Which ids exist and what the filter language says is not part of a schema; a deleted memory keeps its history.
        config = schemathesis.Config.from_dict(
            {
                "generation": {"max-examples": 4, "deterministic": True},
                "checks": {"positive_data_acceptance": {"enabled": False}, "use_after_free": {"enabled": False}},
            }
        )
        app = Starlette(routes=page_routes(cortex))
        schema = schemathesis.openapi.from_asgi(f"{API}/openapi.json", app, config=config)
        asked: Counter[str] = Counter()
        faults: list[str] = []
        for event in from_schema(schema).execute():
            assert not isinstance(event, events.FatalError), event
            if isinstance(event, events.ScenarioFinished):
                asked[event.recorder.label] += len(event.recorder.interactions)
                faults += [
                    f"{event.recorder.label} {check.name}: {check.failure_info}"
                    for checks in event.recorder.checks.values()
                    for check in checks
                    if check.failure_info
                ]
        assert asked.keys() >= {f"{one.method} {API}{one.path}" for one in OPERATIONS}
        assert not faults, "\n".join(faults[:5])


def test_every_change_needs_more_than_reading() -> None:
    for one in OPERATIONS:
        path = f"{API}{one.path}"
        if one.changes:
            assert CHANGE_SCOPES.get(path, PAGE_SCOPES[path]) in ("write", "admin"), path


def test_words_that_stay_go_and_come() -> None:
    found = [(one.change, one.text) for one in word_difference("Use tabs, not spaces.", "Use spaces, not tabs.")]
    assert "".join(text for change, text in found if change != "added") == "Use tabs, not spaces."
    assert "".join(text for change, text in found if change != "removed") == "Use spaces, not tabs."
    assert found[0] == ("same", "Use ")
    assert [one.change for one in word_difference("a " * 5_000, "b " * 5_000)] == ["removed", "added"]


def test_the_page_is_light() -> None:
    assets = [find_asset(path.name) for path in (Path(models.__file__).parent / "static").iterdir()]
    assert len(assets) >= 10
    assert sum(len(one.packed) for one in assets if one) < 150_000
