"""Spans of work for whoever watches: a name, a beginning, an end, an outcome. Never what is worked on.

Nobody watches unless a server was told to; then it brings a tracer, and until then a span costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

__all__ = ["Tracer", "span", "watched_by"]


class Tracer(Protocol):
    def span(
        self, name: str, attributes: Mapping[str, str | int], caller: Mapping[str, str] | None
    ) -> AbstractContextManager[object]:
        """A span inside the current one, or inside the caller's, whose headers tell of it."""
        ...


_NOTHING: AbstractContextManager[object] = nullcontext()
_tracer: Tracer | None = None


def span(
    name: str, attributes: Mapping[str, str | int], caller: Mapping[str, str] | None = None
) -> AbstractContextManager[object]:
    """To be entered around a piece of work. An error that leaves it is its outcome, by its type alone."""
    return _NOTHING if _tracer is None else _tracer.span(name, attributes, caller)


def watched_by(tracer: Tracer | None) -> None:
    """From now on every span of this process goes to the tracer."""
    global _tracer
    _tracer = tracer
