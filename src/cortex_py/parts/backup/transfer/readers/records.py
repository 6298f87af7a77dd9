"""What readers yield: records with their source and position, names and relations for the graph, and what they skipped.

A reader never writes, never follows a link and never holds more than one record of a large file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from .....core.errors import CortexError
from .....texts.structured import one_line
from .files import SourceFile

__all__ = ["Found", "Skipped", "SourceEntity", "SourceReader", "SourceRecord", "SourceRelation", "skip_because"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """One note or one turn of a conversation.

    `source` and `position` identify it: the same pair is the same record in every run, wherever the file is kept.
    Of notes without a lasting position (`by_text`), those with the same text are the same, and `position` only says
    which of the others a changed one continues.
    """

    source: str
    position: str
    content: str
    line: int | None = None
    kind: Literal["note", "turn"] = "note"
    by_text: bool = False
    at: datetime | None = None
    # Who speaks, and as whom the client knows them.
    role: str | None = None
    author: str | None = None
    agent: str | None = None
    session: str | None = None
    folder: str | None = None
    git_branch: str | None = None
    namespace: str | None = "context"
    category: str | None = None
    tags: tuple[str, ...] = ()
    summary: str | None = None
    path: str | None = None
    # Shown as the source of the memory; the file and its line where it is None.
    shown: str | None = None
    ignored: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceEntity:
    """A name for the graph, with the type that the other program gave it."""

    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class SourceRelation:
    """A relation between two names, which become entities where they are none yet."""

    source: str
    target: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of a file that was not taken: its line or entry, and why."""

    place: str
    reason: str


Found = SourceRecord | SourceEntity | SourceRelation | Skipped


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads one kind of file.

    `recognises` goes by the content, and by the name only where the content says nothing. `read` yields everything in
    the file, in order; what is damaged as `Skipped`.
    """

    kind: str
    recognises: Callable[[SourceFile], bool]
    read: Callable[[SourceFile], Iterator[Found]]


def skip_because(error: Exception, name: str) -> Skipped:
    """What to report of an error in a file: its line, if the message has one, and the reason."""
    message = error.message if isinstance(error, CortexError) else str(getattr(error, "strerror", None) or error)
    place, colon, reason = message.removeprefix(one_line(name)).partition(": ")
    if not colon or not (place == "" or place.startswith(", line ")):
        place, reason = "", message
    return Skipped(place.removeprefix(", "), (reason or "it cannot be read").rstrip("."))
