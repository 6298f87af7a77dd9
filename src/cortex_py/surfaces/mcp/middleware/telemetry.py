"""What a server counts, and the traces that it sends to a collector."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from ....core.config import Settings
from ....core.errors import ConfigurationError, extra_remedy
from ....core.jobs import set_tracer
from ....version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

__all__ = [
    "CALL_TOOL", "METHODS", "OPEN_METHODS", "Meter", "Outcome", "UpkeepOutcome", "send_traces",
]  # fmt: skip

Outcome = Literal["ok", "error", "cancelled"]
UpkeepOutcome = Literal["done", "put_off", "failed"]

CALL_TOOL = "tools/call"
# They reveal nothing of what is stored.
OPEN_METHODS = frozenset(("initialize", "ping", "server/discover", "tools/list", "logging/setLevel"))
# A method that is none of these may be any text.
METHODS = OPEN_METHODS | {
    CALL_TOOL,
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "subscriptions/listen",
}


class Meter:
    """Counts what a server does; this one counts nothing."""

    def count_call(self, tool: str, outcome: Outcome, seconds: float) -> None:
        """A tool was called; a name that no tool has comes as `unknown`."""

    def count_upkeep(self, outcome: UpkeepOutcome) -> None:
        pass

    def count_audit_event(self, written: bool) -> None:
        pass


# Traces for an OpenTelemetry collector, where the settings name one. Its packages are loaded only then.
#
# The provider is this server's own: spans of the frameworks, which may quote names and errors, are not sent.

_FLUSH_MS = 3_000


@contextmanager
def send_traces(settings: Settings) -> Iterator[None]:
    """Send spans to the collector of the settings; at the end, wait a short time for the rest."""
    if not settings.otel_endpoint:
        yield
        return
    provider = _provider(settings.otel_endpoint)
    set_tracer(_OpenTelemetry(provider))
    try:
        yield
    finally:
        set_tracer(None)
        provider.force_flush(_FLUSH_MS)
        provider.shutdown()


def _provider(endpoint: str) -> TracerProvider:
    if urlsplit(endpoint).scheme not in ("http", "https") or not urlsplit(endpoint).netloc:
        raise ConfigurationError(
            "otel_endpoint is not the address of a collector.",
            remedy="Give the address of its OTLP over HTTP, such as http://localhost:4318.",
            field="otel_endpoint",
        )
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigurationError(
            f"What otel_endpoint needs cannot be loaded: {error}.",
            remedy=extra_remedy("otel"),
            field="otel_endpoint",
        ) from error
    # The packages read the other standard variables themselves, such as further attributes and headers.
    attributes = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "cortex"), "service.version": __version__}
    provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=5)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class _OpenTelemetry:
    """Sends the spans of this process to a provider."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = provider.get_tracer("cortex_py", __version__)
        self._headers = TraceContextTextMapPropagator()

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, str | int], caller: Mapping[str, str] | None) -> Iterator[Span]:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        with self._tracer.start_as_current_span(
            name,
            context=self._headers.extract(caller) if caller else None,
            kind=SpanKind.INTERNAL if caller is None else SpanKind.SERVER,
            attributes=dict(attributes),
            # The message of an error may quote data; its type does not.
            record_exception=False,
            set_status_on_exception=False,
        ) as opened:
            try:
                yield opened
            except BaseException as error:
                opened.set_attribute("error.type", type(error).__name__)
                opened.set_status(Status(StatusCode.ERROR))
                raise
