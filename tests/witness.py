"""A middleware for tests that must know when a server has noticed a cancellation."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

__all__ = ["Witness"]


class Witness:
    """Knows when the server has noticed that a call was cancelled. Belongs into the chain of the server."""

    def __init__(self) -> None:
        self.noticed = threading.Event()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "tools/call":
            return await call_next(ctx)
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
            result = await call_next(ctx)
            group.cancel_scope.cancel()
        return result
