"""Long work on behalf of a client: run in a thread, with progress told and cancellation honoured.

The library reports progress through a callback between two units of work. When the client has gone or has
cancelled, the next report raises, and the library leaves everything as it was before that unit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from fastmcp import Context

from ..memory.capture import Progress

__all__ = ["Cancelled", "run_long"]

_T = TypeVar("_T")


class Cancelled(Exception):
    """The client no longer wants the result."""


async def run_long(context: Context, work: Callable[[Progress], _T]) -> _T:
    """Run `work` in a thread; it is given the callback through which it reports progress."""
    gate, stop, begun, ended = threading.Lock(), threading.Event(), threading.Event(), threading.Event()

    started = time.monotonic()

    def report(done: int, total: int) -> None:
        if stop.is_set():
            raise Cancelled
        told = _estimate(done, total, time.monotonic() - started)
        anyio.from_thread.run(partial(context.report_progress, done, total, told))

    def run() -> _T:
        with gate:
            if stop.is_set():
                raise Cancelled
            begun.set()
        try:
            return work(report)
        finally:
            ended.set()

    try:
        # With a place of its own: short calls must not wait for a long one.
        return await anyio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
    except anyio.get_cancelled_exc_class():
        with gate:
            stop.set()
        # What had not begun never will; there would be no end to wait for.
        if begun.is_set():
            with anyio.CancelScope(shield=True):
                # The store must not be closed under the thread; it ends at its next report.
                await anyio.to_thread.run_sync(ended.wait, limiter=anyio.CapacityLimiter(1))
        raise


def _estimate(done: int, total: int, seconds: float) -> str:
    """How far the work is and, once that can be told, how long the rest will take."""
    if not 0 < done < total:
        return f"{done} of {total}"
    left = seconds * (total - done) / done
    return f"{done} of {total}, about {f'{left / 60:.0f} min' if left >= 90 else f'{left:.0f} s'} left"
