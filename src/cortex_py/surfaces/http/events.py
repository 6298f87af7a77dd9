"""`/api/v1/events`: server-sent events that say that something in the store changed, so that the page looks again.

An event says nothing else: what its reader may see is decided by the request that follows.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ...core.errors import CortexError
from ...core.security.callers import acting_as, current_caller
from .middleware import DrainState

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["change_events"]

_LOOK_SECONDS = 0.5
_BEAT_SECONDS = 15.0
# Then the browser asks again, and the guards look at its session again.
_LAST_SECONDS = 300.0


def change_events(cortex: Cortex, draining: DrainState) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint. Its streams end when the server is about to stop."""

    def revision() -> int:
        """What has changed for the reader, as long as their token and their rights last."""
        caller, verifier = current_caller(), cortex.verifier
        with acting_as(verifier.readmitted(caller) if caller and verifier else caller):
            return cortex.memories.revision()

    async def stream() -> AsyncIterator[str]:
        seen = await run_in_threadpool(revision)
        yield "retry: 1000\n\n"
        began = beat = time.monotonic()
        while not draining.begun and time.monotonic() - began < _LAST_SECONDS:
            await anyio.sleep(_LOOK_SECONDS)
            try:
                now = await run_in_threadpool(revision)
            except CortexError:
                return
            if now != seen:
                seen, beat = now, time.monotonic()
                yield "event: change\ndata: {}\n\n"
            elif time.monotonic() - beat > _BEAT_SECONDS:
                beat = time.monotonic()
                yield ": still here\n\n"

    async def answer(_: Request) -> Response:
        return StreamingResponse(stream(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    return answer
