"""What is found of a name in the source and in the history. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

__all__ = ["ChangeRow", "Definition", "Revision", "Seen"]


@dataclass(frozen=True, slots=True)
class Definition:
    """Where something is defined; `qualified` has the names around it."""

    path: str
    name: str
    qualified: str
    kind: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit that leads to what is checked out."""

    id: str
    time: datetime
    author: str
    subject: str
    body: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A change of one file, in a commit or not committed yet."""

    path: str
    old_path: str | None
    status: str
    revision: Revision | None


class ChangeRow(NamedTuple):
    """A change as the index has it, with the number of its commit."""

    path: str
    old_path: str | None
    status: str
    revision: int
