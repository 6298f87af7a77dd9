"""A middleware for tests that must know when a server has noticed a cancellation."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

__all__ = ["Witness"]


class Witness(Middleware):
    """Knows when the server has noticed that a call was cancelled."""

    def __init__(self) -> None:
        self.noticed = threading.Event()

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        loop = asyncio.get_running_loop()

        async def watch() -> None:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                # What else was cancelled in this moment hears of it first.
                loop.call_soon(loop.call_soon, self.noticed.set)
                raise

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            result = await call_next(context)
            group.cancel_scope.cancel()
        return result
