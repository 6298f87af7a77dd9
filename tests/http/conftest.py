"""A small server around the embedding pages: in this process for most tests, on a port for real clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from cortex_py.core.embedding.service import EmbeddingService
from cortex_py.surfaces.http.embeddings import embedding_routes

from servers import app_server
from stub_backend import StubBackend

Opens = Callable[..., EmbeddingService]
Asks = Callable[..., TestClient]


@pytest.fixture
def opened() -> Iterator[Opens]:
    """Opens services, over the stub unless told otherwise, and closes them."""
    with ExitStack() as stack:
        yield lambda backend=None, **options: stack.enter_context(
            EmbeddingService(backend=backend or StubBackend(), **{"rate_limit": 0, **options})
        )


@pytest.fixture
def asking(opened: Opens) -> Asks:
    """A client of a service, which is made with the given options."""
    return lambda backend=None, **options: TestClient(
        Starlette(routes=embedding_routes(opened(backend, **options))), raise_server_exceptions=False
    )


@pytest.fixture
def served() -> Iterator[Callable[[EmbeddingService], str]]:
    """Puts a service on a port of loopback and tells its address."""
    with ExitStack() as stack:
        yield lambda service: stack.enter_context(
            app_server(Starlette(routes=embedding_routes(service)), lifespan="off")
        )
