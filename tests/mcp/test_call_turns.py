"""Few calls compute at once, a long one does not keep the others waiting, and background work waits for all of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.memory.service import Memories, MemoryStatus
from cortex_py.surfaces.mcp.calls import Turns
from cortex_py.surfaces.mcp.server import build_server

from clients import MODES, connected
from stub_backend import StubBackend


def test_no_more_calls_compute_at_once_than_have_a_turn() -> None:
    at_work, most = 0, 0

    async def call(turns: Turns) -> None:
        nonlocal at_work, most
        async with turns.taken():
            at_work += 1
            most = max(most, at_work)
            await asyncio.sleep(0)
            at_work -= 1

    async def run() -> None:
        turns = Turns(2)
        await asyncio.gather(*(call(turns) for _ in range(20)))

    asyncio.run(run())
    assert most == 2


def test_a_call_passes_long_ones_that_are_not_done() -> None:
    async def run() -> None:
        turns, done, started = Turns(2), asyncio.Event(), asyncio.Semaphore(0)

        async def long_call() -> None:
            async with turns.taken():
                started.release()
                await done.wait()

        long_ones = [asyncio.create_task(long_call()) for _ in range(5)]
        for _ in long_ones:
            await asyncio.wait_for(started.acquire(), 30)
        async with asyncio.timeout(30), turns.taken():
            assert not any(one.done() for one in long_ones)
        done.set()
        await asyncio.gather(*long_ones)

    asyncio.run(run())


def test_a_failed_or_cancelled_call_gives_its_turn_back_once() -> None:
    async def run() -> None:
        turns = Turns(1)

        async def failing() -> None:
            async with turns.taken():
                raise ValueError

        async def waiting() -> None:
            async with turns.taken():
                await asyncio.Event().wait()

        for _ in range(3):
            (failure,) = await asyncio.gather(failing(), return_exceptions=True)
            assert isinstance(failure, ValueError)
        task = asyncio.create_task(waiting())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with asyncio.timeout(30), turns.taken():
            second = asyncio.create_task(waiting())
            await asyncio.sleep(0)
            assert not second.done()
        second.cancel()

    asyncio.run(run())


@pytest.mark.parametrize("mode", MODES)
def test_background_work_waits_while_any_tool_answers(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    paused: list[bool] = []
    read = Memories.status

    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:

        def is_paused() -> bool:
            return cortex.jobs.wait_for_a_pause(patience=0.0, quiet=0.0)

        def status(self: Memories) -> MemoryStatus:
            paused.append(is_paused())
            return read(self)

        monkeypatch.setattr(Memories, "status", status)
        with connected(build_server(cortex), mode) as caller:
            assert is_paused()
            caller.call("subcog_status")
            assert paused == [False]
            assert is_paused()
            caller.refused("subcog_get", memory_id="0" * 40)
            assert is_paused()
