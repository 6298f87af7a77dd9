"""Traces for a collector of OpenTelemetry, where the settings name one. Its packages are loaded only then.

The provider is this server's own: the frameworks' spans, which may quote names and errors, go nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..config import Settings
from ..errors import ConfigurationError
from ..tracing import watched_by
from ..version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

__all__ = ["traced"]

_FLUSH_MS = 3_000


@contextmanager
def traced(settings: Settings) -> Iterator[None]:
    """While inside, spans are sent to the collector of the settings; at the end what is left, for a short time."""
    if not settings.otel_endpoint:
        yield
        return
    provider = _provider(settings.otel_endpoint)
    watched_by(_OpenTelemetry(provider))
    try:
        yield
    finally:
        watched_by(None)
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
            remedy="Install it: pip install 'cortex-py[otel]'.",
            field="otel_endpoint",
        ) from error
    # What else the standard variables say, such as further attributes and headers, the packages read themselves.
    told = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "cortex"), "service.version": __version__}
    provider = TracerProvider(resource=Resource.create(told), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=5)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class _OpenTelemetry:
    """Spans of this process for a provider."""

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
            # An error's words may quote what was worked on; its type does not.
            record_exception=False,
            set_status_on_exception=False,
        ) as opened:
            try:
                yield opened
            except BaseException as error:
                opened.set_attribute("error.type", type(error).__name__)
                opened.set_status(Status(StatusCode.ERROR))
                raise
