"""A compiled filter as plain values: what every retriever takes, and nothing about how.

A `Filter` is a conjunction of conditions; the values inside one condition are alternatives.
The parser that makes it lives in `memory/filters.py`; the SQL that it becomes lives in `where.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

__all__ = ["EVERYTHING", "GROUNDED_WORDS", "Condition", "Filter", "Key", "Value"]

Key = Literal[
    "namespace",
    "tag",
    "since",
    "before",
    "source",
    "project",
    "branch",
    "path",
    "status",
    "entity",
    "category",
    "kind",
    "role",
    "user",
    "agent",
    "grounded",
]

# Names of the documented ranges of a grounding score: a lower bound that is in, an upper one that is not.
GROUNDED_WORDS: dict[str, tuple[float, float] | None] = {
    "accept": (0.7, 2.0),
    "warn": (0.3, 0.7),
    "reject": (0.0, 0.3),
    "none": None,
}

# A text value may hold glob signs where its key allows them; a time value is a moment.
Value = str | datetime


@dataclass(frozen=True, slots=True)
class Condition:
    key: Key
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    conditions: tuple[Condition, ...] = ()

    def having(self, key: Key) -> tuple[Condition, ...]:
        return tuple(c for c in self.conditions if c.key == key)

    def plus(self, *conditions: Condition) -> Filter:
        return Filter(self.conditions + conditions)


EVERYTHING = Filter()
