"""One line on a terminal that says how far long work is, how fast it goes, and how long it will take."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...core.jobs import Unit, watch
from .options import CommandSession
from .output import quiet

__all__ = ["Progress", "describe_seconds", "progress_bar", "watched"]

Progress = Callable[[int, int], None]

_REDRAW_SECONDS = 0.2
# Before this, a rate says little about what is to come.
_STEADY_SECONDS = 1.0
_MINUTE = 60


@contextmanager
def watched(label: str, unit: Unit, session: CommandSession) -> Iterator[None]:
    """A line for work of the library that reports these units."""
    with progress_bar(label, hidden=session.as_json) as progress, watch(unit, progress):
        yield


@contextmanager
def progress_bar(label: str, *, hidden: bool = False) -> Iterator[Progress | None]:
    """A line for long work if standard error is a terminal; nothing otherwise."""
    if hidden or quiet() or not sys.stderr.isatty():
        yield None
        return
    line = _Line(label)
    line.draw(f"{label} …")
    try:
        yield line.update
    finally:
        line.draw("")


class _Line:
    def __init__(self, label: str) -> None:
        self._label = label
        self._drawn = 0.0
        # When the first of the present work was begun, and what was done then. A new total is new work.
        self._start: tuple[float, int, int] | None = None

    def update(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._start is None or self._start[2] != total:
            self._start = (now, done, total)
        if now - self._drawn >= _REDRAW_SECONDS:
            self.draw(describe(self._label, done, total, now - self._start[0], done - self._start[1]))

    def draw(self, text: str) -> None:
        self._drawn = time.monotonic()
        sys.stderr.write("\r\x1b[2K" + text[: shutil.get_terminal_size().columns - 1])
        sys.stderr.flush()


def describe(label: str, done: int, total: int, seconds: float, lately: int) -> str:
    """`Scanning 120 of 2,400 (5%), 38/s, 1 min left`:

    `lately` is what was done in these seconds. A total of 0 is not known.
    """
    text = f"{label} {done:,} of {total:,} ({100 * done // total}%)" if total else f"{label} {done:,}"
    if seconds < _STEADY_SECONDS or lately <= 0:
        return text
    rate = lately / seconds
    speed = f"{rate:,.0f}/s" if rate >= 1 else f"{rate * _MINUTE:.0f}/min"
    left = f", {describe_seconds((total - done) / rate)} left" if total else ""
    return f"{text}, {speed}{left}"


def describe_seconds(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / _MINUTE)
    return f"{minutes} min" if minutes < _MINUTE else f"{minutes // _MINUTE} h {minutes % _MINUTE} min"
