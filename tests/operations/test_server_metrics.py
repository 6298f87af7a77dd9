"""The numbers of a server: tools by name and outcome, the store, upkeep, the audit log; no name of a person."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cortex_py import Cortex
from cortex_py.core.errors import StoreBusy
from cortex_py.surfaces.http.monitoring import HttpMetrics
from cortex_py.surfaces.mcp.server import Upkeep
from operations.raw_calls import call, get
from timing import MINUTE

from homes import opened
from servers import http_server

Numbers = Mapping[tuple[str, ...], float]
SECRET = "zanzibar"


def _numbers(text: str) -> Numbers:
    """Name and values of labels → number."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.sqlite_only
def test_a_shared_server_tells_its_numbers_without_names_and_contents(
    home: Path, project: Path, postgres_url: str
) -> None:
    with opened(home, project, database_url=postgres_url) as cortex:
        scopes = ["read", "write", "admin"]
        token = cortex.access.create(f"{SECRET}-ann", agent=f"{SECRET}-editor", scopes=scopes).token
    bearer = {"Authorization": f"Bearer {token}"}
    with http_server(home, project, CORTEX_DATABASE_URL=postgres_url, CORTEX_AUTH="tokens") as server:
        for content in ("one", "two"):
            call(server.url, "subcog_capture", {"content": SECRET + content, "namespace": "decisions"}, **bearer)
        call(server.url, "subcog_get", {"memory_id": SECRET}, **bearer)
        call(server.url, f"{SECRET}-tool", {}, **bearer)
        call(server.url, "embedding_generate", {"text": "a text"}, **bearer)
        get(server.url, f"/{SECRET}", **bearer)
        # What was asked is written down, and has ended, when it was answered, perhaps a moment after that.
        found: dict[tuple[str, ...], float] = {}
        pages = 0
        while pages < 1_000 and (
            found.get(("cortex_audit_events_total", "written"), 0) < 6 or found[("cortex_http_requests_in_flight",)] > 1
        ):
            status, _, body = get(server.url, "/metrics", **bearer)
            found = _numbers(body.decode())
            pages += 1
    assert status == 200
    assert SECRET not in body.decode()
    calls = {labels[1:]: count for labels, count in found.items() if labels[0] == "cortex_mcp_calls_total"}
    assert calls == {
        ("ok", "subcog_capture"): 2,
        ("error", "subcog_get"): 1,
        ("error", "unknown"): 1,
        # By its name in the table, whichever spelling was used.
        ("ok", "embedding.generate"): 1,
    }
    assert found["cortex_mcp_call_seconds_bucket", "+Inf", "subcog_capture"] == 2
    assert found["cortex_mcp_call_seconds_sum", "subcog_capture"] > 0
    assert found[("cortex_store_up",)] == 1
    assert found["cortex_store_transactions_total", "write"] >= 4
    assert found["cortex_store_transactions_total", "read"] >= 2
    assert found["cortex_store_connections", "idle"] >= 1
    # Work in the background may hold one at that moment.
    assert 0 <= found["cortex_store_connections", "in_use"] <= 2
    assert found[("cortex_store_connections_max",)] == 16
    assert found[("cortex_store_waits_total",)] == found[("cortex_store_lost_total",)] == 0
    # Five calls and the page that is none, and the pages of numbers before this one.
    assert 6 <= found["cortex_audit_events_total", "written"] < 6 + pages
    assert found["cortex_audit_events_total", "missing"] == 0
    assert found[("cortex_http_requests_in_flight",)] == 1


def test_rounds_of_upkeep_are_counted_by_how_they_end(cortex: Cortex, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = HttpMetrics(cortex.embeddings)
    ends = [None, StoreBusy("busy."), KeyError("unforeseen")]
    all_ended, released = threading.Event(), threading.Event()

    def ending(_stop: object) -> None:
        if not ends:
            all_ended.set()
            assert released.wait(MINUTE)
        elif error := ends.pop(0):
            raise error

    async def rounds() -> str:
        with anyio.move_on_after(MINUTE) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(Upkeep(cortex, every_seconds=0, meter=metrics).run)
                while not all_ended.is_set():
                    await anyio.sleep(0.001)
                text = metrics.text().decode()
                released.set()
                scope.cancel()
        return text

    monkeypatch.setattr(cortex, "upkeep", ending)
    found = _numbers(anyio.run(rounds))
    outcomes = {labels[1]: count for labels, count in found.items() if labels[0] == "cortex_upkeep_runs_total"}
    assert outcomes == {"done": 1, "put_off": 1, "failed": 1}
