"""Whoever watches an address is told when what it shows has changed, in both protocols, whoever changed it."""

import queue
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp_types
import pytest
from anyio.from_thread import BlockingPortal
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client.subscriptions import Subscription, listen
from mcp.shared.exceptions import MCPError

from cortex_py import Cortex
from cortex_py.core.errors import StoreBusy
from cortex_py.core.records import Memory
from cortex_py.core.security.callers import Caller as CallerOfServer
from cortex_py.core.security.callers import acting_as
from cortex_py.surfaces.mcp.server import MemoryServer, build_server
from timing import MINUTE

from clients import MODES, Caller, connected, stdio_transport
from servers import http_server
from stub_backend import StubBackend

SECONDS = MINUTE
TOPICS = "subcog://topics"

Change = Callable[[Cortex, Memory], object]

CHANGES: dict[str, Change] = {
    "content": lambda cortex, memory: cortex.memories.update(memory.id, content="Use SQLite"),
    "tags": lambda cortex, memory: cortex.memories.update(memory.id, tags=["storage"]),
    "status": lambda cortex, memory: cortex.memories.update(memory.id, status="archived"),
    "deletion": lambda cortex, memory: cortex.memories.delete(memory.id),
    "purge": lambda cortex, memory: cortex.memories.delete(memory.id, hard=True),
}


class Watcher:
    """A client that watches addresses and hears of their changes."""

    def __init__(self, caller: Caller, told: "queue.Queue[str]", streams: ExitStack) -> None:
        self.caller = caller
        self._told = told
        self._streams = streams

    def watch(self, *uris: str) -> Callable[[], None]:
        """Begin to watch; the result ends it."""
        session = self.caller.client.session
        if session.protocol_version == "2025-11-25":
            for uri in uris:
                subscribe = mcp_types.SubscribeRequest(params=mcp_types.SubscribeRequestParams(uri=uri))
                self.caller.portal.call(session.send_request, subscribe, mcp_types.EmptyResult)
            return partial(self._unsubscribe, uris)
        stream = self._streams.enter_context(ExitStack())
        opened = listen(session, resource_subscriptions=uris)
        subscription = stream.enter_context(self.caller.portal.wrap_async_context_manager(opened))
        self.caller.portal.start_task_soon(self._hear, subscription)
        return stream.close

    def next(self) -> str:
        """The next address it is told of."""
        return self._told.get(timeout=SECONDS)

    def rest(self) -> list[str]:
        """What it has been told and not said yet."""
        return [self._told.get() for _ in range(self._told.qsize())]

    def _unsubscribe(self, uris: tuple[str, ...]) -> None:
        for uri in uris:
            request = mcp_types.UnsubscribeRequest(params=mcp_types.UnsubscribeRequestParams(uri=uri))
            self.caller.portal.call(self.caller.client.session.send_request, request, mcp_types.EmptyResult)

    async def _hear(self, subscription: Subscription) -> None:
        async for event in subscription:
            self._told.put(str(event.uri))


@contextmanager
def watcher(server: Any, mode: str, portal: BlockingPortal | None = None) -> Iterator[Watcher]:
    told: queue.Queue[str] = queue.Queue()

    async def hear(message: object) -> None:
        # A stream has its own way to the ear.
        if isinstance(message, mcp_types.ResourceUpdatedNotification) and mode == "legacy":
            told.put(str(message.params.uri))

    with connected(server, mode, portal, message_handler=hear) as caller, ExitStack() as streams:
        yield Watcher(caller, told, streams)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cortex(home: Path, project: Path) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, backend=StubBackend()) as opened:
        yield opened


@pytest.fixture
def memory(cortex: Cortex) -> Memory:
    return cortex.memories.capture("Use PostgreSQL", namespace="decisions", tags=["database"])


@pytest.fixture
def server(cortex: Cortex) -> MemoryServer:
    built = build_server(cortex)
    built.subscriptions.interval = 0.01
    return built


@pytest.fixture
def watch(server: MemoryServer, mode: str) -> Iterator[Watcher]:
    with watcher(server, mode) as opened:
        yield opened


def _uri(memory: Memory) -> str:
    return f"subcog://memory/{memory.id}"


def _proof_of_silence(cortex: Cortex, watch: Watcher) -> list[str]:
    """All that is told up to two changes of the topics, which the watcher watches too.

    Two: what one change leads to is told in any order, but before what the next one leads to.
    """
    told = []
    for tag in ("first-proof", "second-proof"):
        cortex.memories.capture("A proof", namespace="testing", tags=[tag])
        while not told or told[-1] != TOPICS:
            told.append(watch.next())
        told.append(f"after {tag}")
    return told


SILENCE = [TOPICS, "after first-proof", TOPICS, "after second-proof"]


def test_subscribing_is_advertised(server: MemoryServer, mode: str) -> None:
    with connected(server, mode) as caller:
        capabilities = caller.client.server_capabilities
    assert capabilities is not None
    assert capabilities.resources is not None
    assert capabilities.resources.subscribe is True


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_a_memory_is_told(cortex: Cortex, memory: Memory, watch: Watcher, change: Change) -> None:
    watch.watch(_uri(memory))
    change(cortex, memory)
    assert watch.next() == _uri(memory)


def test_a_restored_memory_is_told(cortex: Cortex, memory: Memory, watch: Watcher) -> None:
    cortex.memories.delete(memory.id)
    watch.watch(_uri(memory))
    cortex.memories.restore(memory.id)
    assert watch.next() == _uri(memory)


def test_every_change_is_told_anew(cortex: Cortex, memory: Memory, watch: Watcher) -> None:
    watch.watch(_uri(memory))
    for content in ("Use SQLite", "Use DuckDB", "Use PostgreSQL"):
        cortex.memories.update(memory.id, content=content)
        assert watch.next() == _uri(memory)


def test_all_addresses_of_a_memory_are_told(cortex: Cortex, memory: Memory, watch: Watcher) -> None:
    addresses = {
        _uri(memory),
        f"subcog://project/decisions/{memory.id}",
        f"subcog://_/_/{memory.id[:16]}",
        "subcog://project/decisions",
        "subcog://_/_",
    }
    watch.watch(*addresses)
    cortex.memories.update(memory.id, content="Use SQLite")
    assert {watch.next() for _ in addresses} == addresses


def test_a_new_memory_changes_its_listing_and_the_topics(cortex: Cortex, memory: Memory, watch: Watcher) -> None:
    watch.watch("subcog://project/decisions", "subcog://project/patterns", TOPICS)
    cortex.memories.capture("Use Redis", namespace="decisions", tags=["cache"])
    assert {watch.next(), watch.next()} == {"subcog://project/decisions", TOPICS}
    assert _proof_of_silence(cortex, watch) == SILENCE


def test_a_change_through_a_tool_is_told_to_the_one_who_made_it(
    server: MemoryServer, memory: Memory, mode: str
) -> None:
    with watcher(server, mode) as watch:
        watch.watch(_uri(memory))
        watch.caller.call("subcog_update", memory_id=memory.id, content="Use SQLite")
        assert watch.next() == _uri(memory)


def test_other_changes_are_not_told(cortex: Cortex, memory: Memory, watch: Watcher) -> None:
    other = cortex.memories.capture("Names are lower case", namespace="patterns")
    watch.watch(_uri(memory), "subcog://project/decisions", "subcog://user/decisions", TOPICS)
    cortex.memories.update(other.id, content="Names are upper case")
    cortex.memories.delete(other.id)
    assert _proof_of_silence(cortex, watch) == SILENCE


def test_each_watcher_is_told_of_its_own_addresses_only(
    cortex: Cortex, memory: Memory, server: MemoryServer, mode: str
) -> None:
    with watcher(server, mode) as one, watcher(server, mode, one.caller.portal) as other:
        one.watch(_uri(memory), TOPICS)
        other.watch(TOPICS)
        cortex.memories.update(memory.id, content="Use SQLite")
        assert one.next() == _uri(memory)
        assert _proof_of_silence(cortex, other) == SILENCE


def test_after_the_end_of_a_watch_nothing_is_told(cortex: Cortex, memory: Memory, watch: Watcher) -> None:
    end = watch.watch(_uri(memory))
    watch.watch(TOPICS)
    cortex.memories.update(memory.id, content="Use SQLite")
    assert watch.next() == _uri(memory)
    end()
    cortex.memories.update(memory.id, content="Use DuckDB")
    assert _proof_of_silence(cortex, watch) == SILENCE


def test_what_happened_while_nobody_watched_is_not_told_later(cortex: Cortex, memory: Memory, watch: Watcher) -> None:
    watch.watch(_uri(memory))()
    watch.watch(TOPICS)
    watch.watch(_uri(memory))()
    cortex.memories.update(memory.id, content="Use SQLite")
    watch.watch(_uri(memory))
    assert _proof_of_silence(cortex, watch) == SILENCE
    cortex.memories.update(memory.id, content="Use DuckDB")
    assert watch.next() == _uri(memory)


def test_watching_survives_a_busy_store(
    cortex: Cortex, memory: Memory, server: MemoryServer, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    revision, failures = cortex.memories.revision, iter((1, 2, 3))

    def busy_at_first() -> int:
        if next(failures, None):
            raise StoreBusy("Another process writes.")
        return revision()

    monkeypatch.setattr(cortex.memories, "revision", busy_at_first)
    with watcher(server, mode) as watch:
        watch.watch(_uri(memory))
        cortex.memories.update(memory.id, content="Use SQLite")
        assert watch.next() == _uri(memory)
    assert list(failures) == []


def test_too_many_addresses_are_refused(cortex: Cortex, memory: Memory, server: MemoryServer, watch: Watcher) -> None:
    server.subscriptions.most_addresses = 2
    watch.watch(_uri(memory), TOPICS)
    with pytest.raises(MCPError) as caught:
        watch.watch("subcog://namespaces")
    assert caught.value.error.code == -32602
    cortex.memories.update(memory.id, content="Use SQLite")
    assert watch.next() == _uri(memory)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_server_process_tells_what_another_process_wrote(
    home: Path,
    project: Path,
    mode: str,
    transport: str,
    engine: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if engine == "postgres":
        if mode == "legacy" and transport == "http":
            pytest.skip("without sessions, as on a shared database, that protocol has no way to tell")
        monkeypatch.setenv("CORTEX_DATABASE_URL", request.getfixturevalue("postgres_url"))
    else:
        monkeypatch.delenv("CORTEX_DATABASE_URL", raising=False)
    with ExitStack() as stack:
        where: Any = stdio_transport(home, project)
        if transport == "http":
            where = stack.enter_context(http_server(home, project)).mcp
        watch = stack.enter_context(watcher(where, mode))
        here = stack.enter_context(Cortex.open(home, project=project, backend=StubBackend()))
        watch.watch("subcog://project/decisions")
        memory = here.memories.capture("Use PostgreSQL", namespace="decisions")
        assert watch.next() == "subcog://project/decisions"
        here.memories.delete(memory.id)
        assert watch.next() == "subcog://project/decisions"


def test_a_server_that_is_stopped_ends_its_streams_in_order(home: Path, project: Path) -> None:
    async def ended(subscription: Subscription) -> list[object]:
        with anyio.fail_after(SECONDS):
            return [event async for event in subscription]

    with http_server(home, project) as server, connected(server.mcp, "auto") as caller:
        opened = listen(caller.client.session, resource_subscriptions=[TOPICS])
        with caller.portal.wrap_async_context_manager(opened) as subscription:
            server.process.terminate()
            assert caller.portal.call(ended, subscription) == []
        assert server.process.wait(timeout=SECONDS) == 0


@pytest.mark.slow
def test_known_callers_are_told_of_what_changed_for_them_alone(
    home: Path, project: Path, cortex: Cortex, mode: str
) -> None:
    made = {name: cortex.access.create(name, scopes=["read"]) for name in ("ann", "eve", "bob")}
    ann = cortex.tenants.admitted(CallerOfServer("ann"))
    with acting_as(ann):
        private = cortex.memories.capture("What ann keeps to herself", domain="user", tags=["own"])
    shared = cortex.memories.capture("What all may know")
    uris = [f"subcog://memory/{one.id}" for one in (private, shared)]
    with http_server(home, project, CORTEX_AUTH="tokens") as server, ExitStack() as stack:
        ears = {}
        for name, token in made.items():
            transport = StreamableHttpTransport(server.mcp, headers={"Authorization": f"Bearer {token.token}"})
            ears[name] = stack.enter_context(watcher(transport, mode))
            ears[name].watch(TOPICS, *uris)
        with acting_as(ann):
            cortex.memories.update(private.id, content="Changed", tags=["changed"])
        assert {ears["ann"].next(), ears["ann"].next()} == {TOPICS, uris[0]}
        cortex.memories.update(shared.id, content="Changed")
        # Had she been told of the other, that would come first.
        assert [ears[name].next() for name in made] == [uris[1]] * 3
        cortex.access.revoke(made["bob"].record.id)
        for number in range(3):
            cortex.memories.update(shared.id, content=f"Changed after bob's token was revoked {number}")
            assert [ears[name].next() for name in ("ann", "eve")] == [uris[1], uris[1]]
        # Told once of each address, so that his client asks again and is refused.
        assert sorted(ears["bob"].rest()) == sorted([TOPICS, *uris])
