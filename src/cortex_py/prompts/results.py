"""What the services of saved texts give back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..records import JsonValue, Saved, Shelf

__all__ = ["Filled", "Imported", "Listed", "Listing", "RenderedText", "Stored"]


@dataclass(frozen=True, slots=True)
class Stored:
    """A text that was saved, and what its author should know."""

    saved: Saved
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of a list: the text without its content, and where another of its name comes before it."""

    saved: Saved
    shadowed_by: Shelf | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list, how many there are in all, and files that could not be taken."""

    items: tuple[Listed, ...]
    total: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filled:
    """A prompt with its blanks filled in, by which values."""

    saved: Saved
    content: str
    values: Mapping[str, JsonValue]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedText:
    """A template rendered: the output in the format asked for, and how many memories went into it."""

    saved: Saved
    output: str
    format: str
    memories: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the texts of files, by name; `problems` tells what could not be taken, and why."""

    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
