"""The state of a summary: the sentences kept of a line of work, small enough to be stored beside it.

The state is versioned text of at most 32 KB, whatever the length of the branch and the script it is written in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .sentences import shorten
from .summary_cues import BLOCKERS, DECISIONS, DONE, GOAL, NEXT, OPEN, RECENT
from .summary_reading import all_words, content_words

__all__ = ["EMPTY", "KEPT", "LONGEST_ID", "Item", "SummaryState", "Turn", "affordable"]

VERSION = 1

# How many items of a section are kept. With the cost of one they bound the state.
KEPT = {GOAL: 6, DECISIONS: 20, DONE: 20, BLOCKERS: 8, OPEN: 12, NEXT: 10, RECENT: 4}
LONGEST_ID = 128
_LONGEST = 240  # characters of an item
_COSTLIEST = 300  # bytes of an item in the state
_PLAIN_CUE = 3  # turns by which a plainer cue outweighs a newer one


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said; `role` is "user", "assistant" or None for a note."""

    id: str
    role: str | None
    content: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Item:
    """A sentence that is kept: where it belongs, how plain its cue is, in which turn and by whom it was said."""

    section: str
    text: str
    strength: int
    turn: int
    role: str | None

    @property
    def words(self) -> frozenset[str]:
        """What later sentences are compared with; all words where each of them is a common one."""
        return content_words(self.text) or all_words(self.text)

    @property
    def worth(self) -> int:
        return self.turn + _PLAIN_CUE * self.strength


@dataclass(frozen=True, slots=True)
class SummaryState:
    """What is known after some turns: items in the order they were said, and how many more there were."""

    turns: int = 0
    dropped: int = 0
    last_id: str | None = None
    items: tuple[Item, ...] = ()

    def to_json(self) -> str:
        items = [[item.section, item.text, item.strength, item.turn, item.role] for item in self.items]
        value = {"version": VERSION, "turns": self.turns, "dropped": self.dropped, "last_id": self.last_id}
        return json.dumps(value | {"items": items}, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> SummaryState:
        """The state that was stored; ValueError for anything else, upon which the branch is read from its start."""
        try:
            value: Any = json.loads(text)
            if value["version"] != VERSION:
                raise ValueError(f"summary state has version {value['version']}, not {VERSION}: read the turns anew")
            items = tuple(_item(*row) for row in value["items"])
            return cls(int(value["turns"]), int(value["dropped"]), _text_or_none(value["last_id"]), items)
        except (KeyError, TypeError, RecursionError) as damage:
            raise ValueError("summary state is damaged: read the turns anew") from damage


EMPTY = SummaryState()


def affordable(text: str) -> str:
    """The text cut to what the state has room for, whatever its script costs in bytes."""
    text = shorten(text, _LONGEST)
    while (cost := len(json.dumps(text, ensure_ascii=False).encode())) > _COSTLIEST:
        text = shorten(text, min(len(text) - 1, len(text) * _COSTLIEST // cost))
    return text


def _item(section: object, text: object, strength: object, turn: object, role: object) -> Item:
    if section not in KEPT or not isinstance(text, str) or not isinstance(strength, int) or not isinstance(turn, int):
        raise TypeError(section)
    return Item(str(section), text, strength, turn, _text_or_none(role))


def _text_or_none(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(value)
