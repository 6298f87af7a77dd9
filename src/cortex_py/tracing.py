"""Spans of work for tracing: a name, a start, an end and an outcome; never the content. And how far long work is.

Without a tracer a span costs nothing. A server sets one if tracing is configured. Work deep inside the library that
takes no callback reports how far it is to a watcher in the same context, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Literal, Protocol, TypeVar

__all__ = ["Tracer", "Unit", "report", "reported", "set_tracer", "span", "watch"]

# What is counted: texts that are embedded, documents that are saved or read, packs that are fetched, files and commits
# of a project that are read.
Unit = Literal["texts", "documents", "packs", "files"]
_T = TypeVar("_T")
_watched: ContextVar[tuple[Unit, Callable[[int, int], None]] | None] = ContextVar("watched", default=None)


class Tracer(Protocol):
    def span(
        self, name: str, attributes: Mapping[str, str | int], caller: Mapping[str, str] | None
    ) -> AbstractContextManager[object]:
        """A span inside the current one, or inside the caller's, which its headers name."""
        ...


_NOTHING: AbstractContextManager[object] = nullcontext()
_tracer: Tracer | None = None


def span(
    name: str, attributes: Mapping[str, str | int], caller: Mapping[str, str] | None = None
) -> AbstractContextManager[object]:
    """Enter it around a piece of work. Of an error that leaves it only the type is recorded."""
    return _NOTHING if _tracer is None else _tracer.span(name, attributes, caller)


def set_tracer(tracer: Tracer | None) -> None:
    """Send every later span of this process to the tracer."""
    global _tracer
    _tracer = tracer


@contextmanager
def watch(unit: Unit, progress: Callable[[int, int], None] | None) -> Iterator[None]:
    """Have `progress` called with (done, total) of these units; a total of 0 is not known."""
    before = _watched.set((unit, progress) if progress else None)
    try:
        yield
    finally:
        _watched.reset(before)


def report(unit: Unit, done: int, total: int = 0) -> None:
    """Say how far work is, if somebody watches. If the watcher raises, the work stops there."""
    watched = _watched.get()
    if watched is not None and watched[0] == unit:
        watched[1](done, total)


def reported(unit: Unit, items: Iterable[_T], total: int = 0) -> Iterator[_T]:
    """The items, each reported when it is done."""
    for done, item in enumerate(items, 1):
        yield item
        report(unit, done, total)
