"""A client that goes away takes its work with it; what others wait for goes on."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from urllib.parse import urlsplit

import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.types import Message

from cortex_py.core.embedding.service import EmbeddingService
from cortex_py.surfaces.http.embeddings import embedding_routes
from timing import MINUTE

from stub_backend import StubBackend

Opens = Callable[..., EmbeddingService]
Serves = Callable[[EmbeddingService], str]

PATIENCE = MINUTE
UNWANTED = "nobody waits for this"
BODIES = {
    "/embed": {"text": UNWANTED},
    "/embeddings": {"texts": [UNWANTED, UNWANTED + " either"]},
    "/v1/embeddings": {"input": UNWANTED, "model": "stub"},
}


class Held(StubBackend):
    """A model that embeds nothing until it is let go; `seen` is what it was given."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.busy = threading.Semaphore(0)
        self.asked = threading.Event()
        self.go = threading.Event()

    def count_tokens(self, text: str) -> int:
        if text.startswith(UNWANTED):
            self.asked.set()
        return super().count_tokens(text)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        self.seen += texts
        self.busy.release()
        assert self.go.wait(PATIENCE)
        return super().embed(texts, normalize=normalize)


@pytest.fixture
def backend() -> Held:
    return Held()


@pytest.fixture
def service(opened: Opens, backend: Held) -> EmbeddingService:
    """A service whose model is at work on something else, in as many threads as it has."""
    made = opened(backend)
    for text in ("busy", "busy too"):
        made.begin(text)
        assert backend.busy.acquire(timeout=PATIENCE)
    return made


def _nothing_was_done_for_nobody(backend: Held, service: EmbeddingService) -> None:
    backend.go.set()
    assert service.generate("this is wanted").metadata.count == 1
    assert backend.seen == ["busy", "busy too", "this is wanted"]
    assert service.metrics.cache_misses == 1, "what nobody waited for does not count"


@pytest.mark.parametrize("path", BODIES)
def test_a_closed_connection_cancels_the_work(
    backend: Held, service: EmbeddingService, served: Serves, path: str
) -> None:
    url = urlsplit(served(service))
    body = json.dumps(BODIES[path]).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((url.hostname, url.port), PATIENCE) as leaving:
        leaving.sendall(head.encode() + body)
        assert backend.asked.wait(PATIENCE)
    connection = HTTPConnection(url.netloc, timeout=PATIENCE)
    told, deadline = "", time.monotonic() + PATIENCE
    while f'path="{path}",status="499"' not in told:
        assert time.monotonic() < deadline, "the server did not notice"
        connection.request("GET", "/metrics")
        told = connection.getresponse().read().decode()
    connection.close()
    _nothing_was_done_for_nobody(backend, service)


async def _ask(service: EmbeddingService, path: str, leave: asyncio.Event, sent: list[Message]) -> None:
    """One request to the pages themselves, from a client that goes away when it is told to."""
    messages: list[Message] = [{"type": "http.request", "body": json.dumps(BODIES[path]).encode()}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b"", "client": None}
    await Starlette(routes=embedding_routes(service))(scope, receive, send)


@pytest.mark.parametrize("loaded", [True, False], ids=["asked on the loop", "asked in a thread"])
@pytest.mark.parametrize("path", BODIES)
def test_nothing_is_answered_to_nobody(backend: Held, service: EmbeddingService, path: str, loaded: bool) -> None:
    backend.loaded = loaded
    sent: list[Message] = []

    async def leaves_at_once() -> None:
        leave = asyncio.Event()
        leave.set()
        await _ask(service, path, leave, sent)
        # What was still being asked for in a thread is dropped once that is done.
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    asyncio.run(leaves_at_once())
    assert not sent
    _nothing_was_done_for_nobody(backend, service)


def test_a_server_that_stops_is_not_taken_for_a_client_that_left(backend: Held, service: EmbeddingService) -> None:
    async def stops() -> None:
        asking = asyncio.create_task(_ask(service, "/embed", asyncio.Event(), []))
        while not backend.asked.is_set():
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(stops())
    _nothing_was_done_for_nobody(backend, service)


def test_an_answer_is_given_to_a_client_that_stays(backend: Held, service: EmbeddingService) -> None:
    sent: list[Message] = []
    backend.go.set()
    asyncio.run(_ask(service, "/embed", asyncio.Event(), sent))
    assert [message.get("status") for message in sent] == [200, None]
