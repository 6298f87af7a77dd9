"""What a judge answers about one claim. Pure."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["JudgeAnswer"]


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """How likely the claim is, and the passage that shows it: its number from 0, or None if the judge names none."""

    probability: float
    passage: int | None = None
