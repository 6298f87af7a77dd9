"""What the operations on lines of work give back. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..records import Branch, Memory
from .budget import Shown
from .summaries import BranchSummary

if TYPE_CHECKING:
    from ..grounding.verification import Verification

__all__ = ["Appended", "Linked", "Resumed", "Searched"]


@dataclass(frozen=True, slots=True)
class Appended:
    """A turn that was stored, and what checking it found; None for a user's own words, which are not checked.

    `unchecked` says why an assistant's words could not be.
    """

    memory: Memory
    task_id: str
    verification: Verification | None = None
    unchecked: str = ""


@dataclass(frozen=True, slots=True)
class Resumed:
    """A summary with the newest turns it was taken from."""

    summary: BranchSummary
    content: str


@dataclass(frozen=True, slots=True)
class Searched:
    """Results within the budget, how many there are in all, the lines of work they name, and how long it took."""

    results: tuple[Shown, ...]
    total: int
    topics: dict[str, str]
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Linked:
    """A line of work joined to a git branch; `released` are those that were joined to it before."""

    branch: Branch
    released: tuple[str, ...]
    exists: bool
