"""Traces as a real collector receives them: one tree from the caller down to the store, and no contents in it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from cortex_py.core.config import load_settings
from cortex_py.core.errors import ConfigurationError
from cortex_py.core.jobs import span
from cortex_py.surfaces.mcp.middleware.telemetry import send_traces
from operations.raw_calls import call
from timing import MINUTE

from servers import http_server

CONTENT = "zanzibar is a word that stands nowhere else"
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class _Collector(ThreadingHTTPServer):
    """What was sent to it: addresses, whole bodies, spans, and the name of who sent them."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.bodies = b""
        self.spans: list[Span] = []
        self.services: set[str] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def take(self, path: str, body: bytes) -> None:
        self.paths.add(path)
        self.bodies += body
        request = ExportTraceServiceRequest.FromString(body)
        for group in request.resource_spans:
            told = {one.key: one.value.string_value for one in group.resource.attributes}
            self.services.add(told["service.name"])
            for scope in group.scope_spans:
                self.spans += scope.spans


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        self.server.take(self.path, body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _collecting() -> Iterator[tuple[str, _Collector]]:
    with _Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{collector.server_address[1]}", collector
        finally:
            collector.shutdown()
            thread.join()


def _attributes(one: Span) -> dict[str, str | int]:
    return {a.key: a.value.string_value or a.value.int_value for a in one.attributes}


def test_a_call_is_one_tree_from_its_caller_to_the_store(home: Path, project: Path) -> None:
    with _collecting() as (url, collector):
        with http_server(home, project, CORTEX_OTEL_ENDPOINT=url) as server:
            headers = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
            arguments = {"content": CONTENT, "namespace": "decisions"}
            assert call(server.url, "subcog_capture", arguments, **headers)[0] == 200
            # An error's words quote what was asked for.
            assert "error" in call(server.url, "subcog_get", {"memory_id": CONTENT}, **headers)[2]
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(MINUTE) == 0
        assert collector.paths == {"/v1/traces"}
        assert collector.services == {"cortex"}
        assert b"zanzibar" not in collector.bodies
        mine = {one.span_id: one for one in collector.spans if one.trace_id.hex() == TRACE}
        (captured,) = [one for one in mine.values() if one.name == "tools/call subcog_capture"]
        asked = mine[captured.parent_span_id]
        assert (asked.name, asked.parent_span_id.hex(), asked.kind) == ("POST /mcp", CALLER, Span.SPAN_KIND_SERVER)
        below = {one.name for one in mine.values() if one.parent_span_id == captured.span_id}
        assert {"store write", "embed"} <= below
        (embedded,) = [one for one in mine.values() if one.name == "embed"]
        assert _attributes(embedded) == {"cortex.embedding.texts": 1, "cortex.embedding.backend": "onnx"}
        assert {_attributes(one)["db.system.name"] for one in mine.values() if one.name.startswith("store ")} == {
            "sqlite"
        }
        (failed,) = [one for one in mine.values() if one.name == "tools/call subcog_get"]
        assert failed.status.code == failed.status.STATUS_CODE_ERROR
        assert (failed.status.message, _attributes(failed)["error.type"]) == ("", "MCPError")


def test_a_collector_that_is_not_there_stops_nobody(home: Path, project: Path) -> None:
    with http_server(home, project, CORTEX_OTEL_ENDPOINT="http://127.0.0.1:9") as server:
        assert call(server.url, "subcog_status", {})[0] == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(MINUTE) == 0


def test_without_the_setting_nothing_of_it_is_loaded(home: Path) -> None:
    with send_traces(load_settings(home)):
        assert span("work", {}) is span("other work", {})


@pytest.mark.parametrize("address", ["collector:4318", "ftp://x", "http://"])
def test_an_address_that_is_none_is_refused(home: Path, address: str) -> None:
    with (
        pytest.raises(ConfigurationError, match="otel_endpoint"),
        send_traces(load_settings(home, otel_endpoint=address)),
    ):
        pass


def test_a_missing_package_is_told_with_its_remedy(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    settings = load_settings(home, otel_endpoint="http://127.0.0.1:4318")
    with pytest.raises(ConfigurationError, match=r"pip install '\.\[otel\]'"), send_traces(settings):
        pass
