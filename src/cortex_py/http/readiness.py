"""Whether requests should be sent here: the database can be reached, the model is installed, the server is not going.

Anybody may ask, as a probe has no token; so the answer names no place, and asking often costs no more than asking once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ..errors import CortexError, StorageError
from .draining import Draining

if TYPE_CHECKING:
    from ..app import Cortex

__all__ = ["Readiness"]

_LIMIT_SECONDS = 2.0
_KEPT_SECONDS = 1.0
_SLOW = ("StoreUnavailable", f"The store did not answer within {_LIMIT_SECONDS:.0f} seconds.")
_GOING = ("DRAINING", "This server is about to stop.")

_log = logging.getLogger(__name__)

# A code and words; none if all is well.
Fault = tuple[str, str] | None


class Readiness:
    def __init__(self, cortex: Cortex, draining: Draining) -> None:
        self._cortex = cortex
        self._draining = draining
        self._lock = threading.Lock()
        self._store: CortexError | None = None
        self._looked_at: float | None = None
        self._looking: asyncio.Task[Fault] | None = None

    async def page(self, _: Request) -> Response:
        fault = await self.fault()
        if fault is None:
            return JSONResponse({"status": "ready"})
        code, message = fault
        body = {"error": {"code": code, "message": message}}
        return JSONResponse(body, status_code=503, headers={"Retry-After": "1"})

    async def fault(self) -> Fault:
        """Why no requests should come; told within a bounded time, even if the database takes longer to say nothing."""
        if self._draining.begun:
            return _GOING
        if self._looking is None or self._looking.done():
            # One looks, all who ask meanwhile wait for it: a database that hangs must not fill up with probes.
            self._looking = asyncio.create_task(self._look())
        done, _ = await asyncio.wait({self._looking}, timeout=_LIMIT_SECONDS)
        return self._looking.result() if done else _SLOW

    async def _look(self) -> Fault:
        return await anyio.to_thread.run_sync(self._seen, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=True)

    def _seen(self) -> Fault:
        if (error := self.store_fault()) is not None:
            return type(error).__name__, "The store cannot be reached; the server's log has the details."
        try:
            # Looks whether the model is installed; it is not loaded for this.
            assert self._cortex.backend.fingerprint
        except CortexError as error:
            return type(error).__name__, "The embedding model cannot be used."
        return None

    def store_fault(self) -> CortexError | None:
        """Why the store cannot be reached, as found a moment ago at most."""
        with self._lock:
            now = time.monotonic()
            if self._looked_at is None or now - self._looked_at > _KEPT_SECONDS:
                before, self._store = self._store, self._reached()
                self._looked_at = time.monotonic()
                if self._store is not None and before is None:
                    _log.error("not ready: %s", self._store)
            return self._store

    def _reached(self) -> CortexError | None:
        try:
            self._cortex.reach(_LIMIT_SECONDS)
        except StorageError as error:
            return error
        return None
