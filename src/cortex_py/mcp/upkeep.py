"""Work that a live server does while nobody waits: packing what lies idle."""

from __future__ import annotations

import logging
import threading

import anyio
import anyio.to_thread

from ..app import Cortex
from ..errors import CortexError
from .meter import Meter, NoMeter, UpkeepOutcome

__all__ = ["Upkeep"]

EVERY_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Upkeep:
    """Runs now and then until it is closed; a server that only reads has none."""

    def __init__(self, cortex: Cortex, every_seconds: float | None = None, meter: Meter | None = None) -> None:
        self._cortex = cortex
        self._every = EVERY_SECONDS if every_seconds is None else every_seconds
        self._meter = meter or NoMeter()
        self._stop = threading.Event()
        self._needed = not any(bound.read_only for bound in cortex.settings.tool_bounds)

    async def run(self) -> None:
        while self._needed:
            await anyio.sleep(self._every)
            # With a place of its own: calls must not wait for it. It is not abandoned: the store is open under it.
            await anyio.to_thread.run_sync(self._work, limiter=anyio.CapacityLimiter(1))

    def close(self) -> None:
        """Let the work end at its next batch."""
        self._stop.set()

    def _work(self) -> None:
        self._meter.upkept(self._outcome())

    def _outcome(self) -> UpkeepOutcome:
        try:
            self._cortex.upkeep(self._stop.is_set)
        except CortexError as error:
            _log.warning("upkeep was put off: %s", error)
            return "put_off"
        except Exception:  # noqa: BLE001  # it would end all upkeep, and be raised where the server stops
            _log.exception("upkeep failed")
            return "failed"
        return "done"
