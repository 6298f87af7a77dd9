"""The helper of hooks: a process that keeps a home warm while no server does, and ends by itself.

It is started by a hook, with the event of that hook on its standard input. It ends when nothing was asked for
`hook_idle_seconds`, when its hours are over, when Cortex was upgraded, or when its home is gone. It starts no process
of its own but git.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.config import Settings, load_settings
from ...core.errors import CortexError
from .front import log_line
from .keeper import TurnKeeper
from .warm import HookListener

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["main"]

_MOST_INPUT = 200_000
_MOST_SECONDS = 12 * 3_600.0
_LOAD_SECONDS = 60.0


def main(arguments: list[str]) -> int:
    """Keep the event on standard input, then answer hooks unless another process does."""
    home = Path(arguments[arguments.index("--home") + 1])
    data = b""
    while len(data) < _MOST_INPUT and (more := os.read(0, _MOST_INPUT)):
        data += more
    try:
        event = json.loads(data) if data else None
        return _Helper(load_settings(home), event if isinstance(event, dict) else None).run()
    except (CortexError, ValueError, OSError) as error:
        log_line(home, f"helper {type(error).__name__}")
        return 1


class _Helper:
    def __init__(self, settings: Settings, event: dict[str, Any] | None) -> None:
        self._settings = settings
        self._event = event
        self._keeper = TurnKeeper(settings)
        self._loaded: Future[Cortex] = Future()
        self._loader = threading.Thread(target=self._load, daemon=True)
        self._listener = HookListener(settings, self._keeper, lambda: self._loaded.result(_LOAD_SECONDS).hooks)
        self._begun = time.monotonic()
        self._ready: float | None = None

    def run(self) -> int:
        """Listen first and load meanwhile: a hook that comes in between waits no longer than its own deadline."""
        keeping = threading.Thread(target=self._keep, daemon=True)
        keeping.start()
        try:
            if self._settings.hook_idle_seconds:
                self._listener.listen(self._is_over, self._loader.start)
        finally:
            keeping.join(_LOAD_SECONDS)
            if self._loader.ident:
                self._loader.join(_LOAD_SECONDS)
            if self._loaded.done() and not self._loaded.exception():
                self._loaded.result().close()
        return 0

    def _keep(self) -> None:
        if self._event:
            self._keeper.take(self._event)

    def _load(self) -> None:
        try:
            from ...app import Cortex

            folder = Path(str((self._event or {}).get("cwd") or self._settings.home))
            cortex = Cortex.from_settings(self._settings, folder if folder.is_dir() else self._settings.home)
            self._loaded.set_result(cortex)
            try:
                cortex.hooks.warm_up(folder)
            except CortexError as error:
                log_line(self._settings.home, f"the helper was not warmed up ({type(error).__name__})")
        except Exception as error:  # noqa: BLE001  # raised again for the hooks that wait
            if not self._loaded.done():
                self._loaded.set_exception(error)
        finally:
            self._ready = time.monotonic()

    @property
    def _ready_seconds(self) -> float:
        """How long the helper has been able to answer; 0 while it loads."""
        return time.monotonic() - self._ready if self._ready else 0.0

    def _is_over(self) -> bool:
        failed = self._loaded.done() and self._loaded.exception() is not None
        return (
            failed
            or self._listener.outdated
            or min(self._listener.idle_seconds, self._ready_seconds) > self._settings.hook_idle_seconds
            or time.monotonic() - self._begun > _MOST_SECONDS
            or not self._settings.home.is_dir()
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
