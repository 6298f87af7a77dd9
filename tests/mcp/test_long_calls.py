"""Long work for a client: progress is told, a cancellation is heeded, and nothing is left by half."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray

from cortex_py import Cortex, NewMemory
from cortex_py.core.memory.capture.capture import Progress
from cortex_py.surfaces.mcp.calls import run_long
from cortex_py.surfaces.mcp.server import MemoryServer, build_server
from cortex_py.surfaces.mcp.stdio.front import AnswerSnapshot, Front, envelope
from cortex_py.surfaces.mcp.stdio.streams import MessageServer
from timing import MINUTE

from clients import MODES, Caller, connected
from helpers import FakeClock
from stub_backend import StubBackend
from witness import Witness

SECONDS = MINUTE
RECORDS = 600
# What the library rebuilds between two reports.
STEPS = [128, 256, 384, 512, 600]


class HeldBackend(StubBackend):
    """Embeds at once, but stops at a chosen call until it is let go."""

    def __init__(self) -> None:
        self.calls = 0
        self.hold_at: int | None = None
        self.held, self.released = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        self.calls += 1
        if self.calls == self.hold_at:
            self.held.set()
            assert self.released.wait(SECONDS)
        return super().embed(texts, normalize=normalize)


@pytest.fixture
def backend() -> HeldBackend:
    return HeldBackend()


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock, backend: HeldBackend) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=backend) as opened:
        yield opened


@pytest.fixture
def filled(cortex: Cortex, backend: HeldBackend) -> Cortex:
    """A memory of a few hundred records."""
    cortex.memories.capture_many(NewMemory(content=f"Memory number {number} of many") for number in range(RECORDS))
    backend.calls = 0
    return cortex


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
def server(cortex: Cortex, witness: Witness) -> MemoryServer:
    built = build_server(cortex)
    built.middleware.append(witness)
    return built


class Call:
    """A call under way, whose progress is heard."""

    def __init__(self, caller: Caller, tool: str, **arguments: Any) -> None:
        self.progress: list[tuple[float, float | None]] = []
        self._first = threading.Event()
        call = partial(caller.client.call_tool_mcp, tool, arguments, progress_handler=self._hear)
        self._future: Future[Any] = caller.portal.start_task_soon(call)

    async def _hear(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, total))
        self._first.set()

    def result(self) -> Any:
        return self._future.result(SECONDS).structured_content

    def cancel_after_first_progress(self) -> None:
        self.cancel_after(self._first)

    def cancel_after(self, event: threading.Event) -> None:
        assert event.wait(SECONDS)
        self._future.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_progress_of_a_reindex_reaches_the_client(filled: Cortex, server: MemoryServer, mode: str) -> None:
    with connected(server, mode) as caller:
        call = Call(caller, "subcog_reindex")
        assert call.result()["indexed"] == RECORDS
        assert call.progress == [(step, RECORDS) for step in STEPS]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_the_progress_of_a_collection_reaches_the_client(
    cortex: Cortex, clock: FakeClock, server: MemoryServer, mode: str, dry_run: bool
) -> None:
    cortex.memories.capture("short-lived", ttl="1h")
    clock.advance(hours=2)
    with connected(server, mode) as caller:
        call = Call(caller, "subcog_gc", dry_run=dry_run)
        assert (call.result()["expired"], call.result()["dry_run"]) == (1, dry_run)
        assert call.progress == ([(1, 3), (3, 3)] if dry_run else [(1, 3), (2, 3), (3, 3)])


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_reindex_stops_without_damage(
    filled: Cortex, backend: HeldBackend, server: MemoryServer, witness: Witness, mode: str
) -> None:
    backend.hold_at = 2
    with connected(server, mode) as caller:
        call = Call(caller, "subcog_reindex")
        call.cancel_after_first_progress()
        assert backend.held.wait(SECONDS)
        assert witness.noticed.wait(SECONDS)
        backend.released.set()
        # The same client goes on, whatever the server still has to finish.
        assert caller.call("subcog_status")["statistics"]["total_count"] == RECORDS
    # The batch under way was finished, and no other begun.
    assert backend.calls == 2
    assert call.progress == [(128, RECORDS)]
    assert filled.check() == []
    assert filled.memories.recall("number 17").results[0].memory.content == "Memory number 17 of many"
    assert filled.memories.recall().total == RECORDS
    with connected(server, mode) as caller:
        assert caller.call("subcog_reindex")["indexed"] == RECORDS
    assert filled.check() == []


def _tombstoned(cortex: Cortex) -> None:
    for number in range(3):
        cortex.memories.delete(cortex.memories.capture(f"deleted {number}").id)


def _expired(cortex: Cortex) -> None:
    for number in range(3):
        cortex.memories.capture(f"short-lived {number}", ttl="1h")


@pytest.mark.parametrize(("prepare", "purge"), [(_expired, False), (_tombstoned, True)], ids=["expired", "purge"])
@pytest.mark.parametrize("mode", MODES)
def test_a_collection_cancelled_before_its_end_changes_nothing(
    cortex: Cortex,
    home: Path,
    project: Path,
    clock: FakeClock,
    server: MemoryServer,
    witness: Witness,
    mode: str,
    prepare: Any,
    purge: bool,
) -> None:
    cortex.memories.capture("lasting")
    prepare(cortex)
    clock.advance(hours=2)
    before = (cortex.memories.status(), cortex.memories.revision())
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as other:
        with connected(server, mode) as caller:
            # While another writes, the collection has begun and cannot go on.
            with other._store.database.write():
                call = Call(caller, "subcog_gc", purge=purge)
                call.cancel_after_first_progress()
                assert witness.noticed.wait(SECONDS)
            assert caller.call("subcog_status")["statistics"]["total_count"] == before[0].total_count
        assert call.progress == [(1, 3)]
        assert (cortex.memories.status(), cortex.memories.revision()) == before
        assert cortex.check() == []
    with connected(server, mode) as caller:
        collected = caller.call("subcog_gc", purge=purge)
    assert (collected["memories_affected"], collected["purged"]) == (3, 3 if purge else 0)


# Pairs that say the same; all of them together are two batches of writing.
PAIRS = 20


@pytest.fixture
def doubled(cortex: Cortex, backend: HeldBackend) -> Cortex:
    """A memory in which much is said twice."""
    contents = [f"Server number {number} runs service{number} alone" for number in range(PAIRS)]
    cortex.memories.capture_many(NewMemory(content=content, namespace="decisions") for content in contents * 2)
    backend.calls = 0
    return cortex


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_the_progress_of_a_consolidation_reaches_the_client(
    doubled: Cortex, server: MemoryServer, mode: str, dry_run: bool
) -> None:
    with connected(server, mode) as caller:
        call = Call(caller, "subcog_consolidate", namespace="decisions", strategy="dedupe", dry_run=dry_run)
        assert (call.result()["groups_found"], call.result()["dry_run"]) == (PAIRS, dry_run)
    done = [one for one, _ in call.progress]
    assert done == sorted(done)
    assert {total for _, total in call.progress} == {done[-1]}
    assert len(set(done)) > 1
    assert doubled.memories.recall().total == (2 * PAIRS if dry_run else PAIRS)


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_consolidation_leaves_no_group_by_half_and_another_does_the_rest(
    doubled: Cortex, backend: HeldBackend, server: MemoryServer, witness: Witness, mode: str
) -> None:
    # The second batch is about to be written when the client no longer wants it.
    backend.hold_at = 2
    arguments = {"namespace": "decisions", "strategy": "dedupe"}
    with connected(server, mode) as caller:
        call = Call(caller, "subcog_consolidate", **arguments)
        call.cancel_after(backend.held)
        assert witness.noticed.wait(SECONDS)
        backend.released.set()
        assert caller.call("subcog_status")["statistics"]["total_count"] > PAIRS
    assert backend.calls == 2
    assert doubled.check() == []
    made = [one.memory for one in doubled.memories.recall().results if doubled.memories.origins(one.memory.id)]
    assert 0 < len(made) < PAIRS
    for memory in made:
        originals = [doubled.memories.get(id) for id in doubled.memories.origins(memory.id)]
        assert [(one.content, one.status, one.superseded_by) for one in originals] == [
            (memory.content, "superseded", memory.id)
        ] * 2
    assert doubled.memories.recall().total == 2 * PAIRS - len(made)
    with connected(server, mode) as caller:
        assert caller.call("subcog_consolidate", **arguments)["groups_found"] == PAIRS - len(made)
        assert caller.call("subcog_consolidate", **arguments)["groups_found"] == 0
    assert doubled.memories.recall().total == PAIRS
    assert doubled.check() == []


@pytest.mark.parametrize("mode", MODES)
def test_a_group_that_another_changed_meanwhile_is_left_alone_and_told(
    doubled: Cortex, home: Path, project: Path, clock: FakeClock, backend: HeldBackend, server: MemoryServer, mode: str
) -> None:
    backend.hold_at = 2
    with (
        Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as other,
        connected(server, mode) as caller,
    ):
        call = Call(caller, "subcog_consolidate", namespace="decisions", strategy="dedupe")
        assert backend.held.wait(SECONDS)
        waiting = [one.memory for one in other.memories.recall().results if not other.memories.origins(one.memory.id)]
        changed = other.memories.update(waiting[0].id, tags=["changed"])
        backend.released.set()
        done = call.result()
    assert (done["groups_found"], done["skipped"], len(done["candidate_merges"])) == (PAIRS, 1, PAIRS - 1)
    assert changed.id not in {id for merge in done["candidate_merges"] for id in merge["memories"]}
    assert [one.memory.content for one in doubled.memories.recall().results].count(changed.content) == 2
    assert doubled.memories.get(changed.id) == changed


class Desk:
    """The client's side of the front, for a server in this process."""

    def __init__(self) -> None:
        self.front = Front(self._write, AnswerSnapshot({}, (), portable=False))
        self.lines: list[Any] = []
        self._told = asyncio.Event()

    def _write(self, line: bytes) -> None:
        self.lines.append(json.loads(line))
        self._told.set()

    def send(self, **message: Any) -> None:
        self.front.take([json.dumps({"jsonrpc": "2.0", **message}).encode()], 10_000)

    async def heard(self, **parts: Any) -> Any:
        """The first line with these parts, once it is there."""
        while True:
            self._told.clear()
            for line in self.lines:
                if parts.items() <= line.items():
                    return line
            await self._told.wait()


@pytest.mark.slow
@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_a_cancelled_request_is_never_answered_and_nobody_waits_for_it(
    filled: Cortex, backend: HeldBackend, server: MemoryServer, witness: Witness, modern: bool
) -> None:
    backend.hold_at = 2
    meta = envelope("2026-07-28")["_meta"] if modern else {}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}

    async def session() -> list[Any]:
        desk = Desk()
        streams = MessageServer(server, desk.front.answer)
        desk.front.serve(streams)
        async with anyio.create_task_group() as group:
            group.start_soon(streams.run)
            if not modern:
                desk.send(id=0, method="initialize", params=hello)
            params = {"name": "subcog_reindex", "arguments": {}, "_meta": {**meta, "progressToken": "p"}}
            desk.send(id=1, method="tools/call", params=params)
            await desk.heard(method="notifications/progress")
            desk.send(method="notifications/cancelled", params={"requestId": 1})
            await anyio.to_thread.run_sync(witness.noticed.wait, SECONDS)
            assert not desk.front.idle
            backend.released.set()
            # The end of the work is the end of the waiting.
            await anyio.to_thread.run_sync(desk.front.settle, SECONDS)
            assert desk.front.idle
            desk.send(id=2, method="tools/call", params={"name": "subcog_status", "arguments": {}, "_meta": meta})
            assert "result" in await desk.heard(id=2)
            streams.end()
        return desk.lines

    lines = anyio.run(session)
    assert 1 not in [line.get("id") for line in lines]
    assert backend.calls == 2


@pytest.mark.slow
@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_when_the_client_goes_its_long_call_ends_first(
    filled: Cortex, backend: HeldBackend, server: MemoryServer, witness: Witness, modern: bool
) -> None:
    backend.hold_at = 2
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    meta = envelope("2026-07-28") if modern else {}

    async def session() -> list[Any]:
        desk = Desk()
        streams = MessageServer(server, desk.front.answer)
        desk.front.serve(streams)
        async with anyio.create_task_group() as group:
            group.start_soon(streams.run)
            if not modern:
                desk.send(id=0, method="initialize", params=hello)
            desk.send(id=1, method="tools/call", params={"name": "subcog_reindex", "arguments": {}, **meta})
            await anyio.to_thread.run_sync(backend.held.wait, SECONDS)
            streams.end()
            await anyio.to_thread.run_sync(witness.noticed.wait, SECONDS)
            backend.released.set()
        return desk.lines

    lines = anyio.run(session)
    # Once the server has ended nobody is at work on the store, which may be closed now.
    assert backend.calls == 2
    assert [line["error"]["message"] for line in lines if line.get("id") == 1] == ["Connection closed"]


async def _unread(done: float, total: float | None, message: str | None) -> None: ...


def test_work_cancelled_before_it_began_is_not_waited_for() -> None:
    worked = False

    def work(report: Progress) -> None:
        nonlocal worked
        worked = True

    async def cancelled_at_once() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await run_long(_unread, work)

    thread = threading.Thread(target=anyio.run, args=(cancelled_at_once,), daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert not worked


def test_what_the_work_returns_or_raises_is_passed_on() -> None:
    def fail(report: Progress) -> None:
        raise LookupError("gone")

    async def both() -> int:
        with pytest.raises(LookupError, match="gone"):
            await run_long(_unread, fail)
        return await run_long(_unread, lambda report: 17)

    assert anyio.run(both) == 17
