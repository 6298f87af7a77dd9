"""Long work on behalf of a client: run in a thread, with progress told and cancellation honoured.

The library reports progress through a callback between two units of work. When the client has gone or has
cancelled, the next report raises, and the library leaves everything as it was before that unit.
"""

from __future__ import annotations

import threading
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

    def report(done: int, total: int) -> None:
        if stop.is_set():
            raise Cancelled
        anyio.from_thread.run(partial(context.report_progress, done, total))

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
