"""Dialogues: a record that holds several turns, cut where the speaker changes.

What a person said and what an assistant answered are different kinds of evidence, so each turn is
indexed for itself and the assistant's turns are marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Turn", "turns"]

_LABEL = re.compile(r"^[ \t]*[*_>]{0,3}([^\W\d][\w .'’-]{0,30}?)[*_]{0,3}:(?=\s|[*_]{1,3}\s)", re.MULTILINE)
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "agent", "claude", "gpt", "chatgpt", "system", "model"})
_FEW = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """One speaker's words: `content[start:end]`."""

    start: int
    end: int
    by_assistant: bool


def turns(content: str) -> list[Turn]:
    """The turns of a dialogue in order; the whole as one turn when it is none.

    A dialogue has few speakers, and one of them speaks again: a list of `Key: value` lines does neither.
    """
    labels = list(_speakers(content))
    names = [name for _, name in labels]
    if len(names) < 2 or len(set(names)) > max(_FEW, len(names) // 3) or len(set(names)) == len(names) > 2:
        return [Turn(0, len(content), False)]
    starts = [start for start, _ in labels]
    found = [
        Turn(start, end, name in _ASSISTANTS)
        for (start, name), end in zip(labels, [*starts[1:], len(content)], strict=True)
    ]
    return found if not content[: starts[0]].strip() else [Turn(0, starts[0], False), *found]


def _speakers(content: str) -> Iterator[tuple[int, str]]:
    for match in _LABEL.finditer(content):
        yield match.start(), match[1].strip().casefold()
