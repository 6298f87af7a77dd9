"""What a template prints for a value, and the limits on that.

A printed value is counted while it is built, so that a large one is refused before it exists.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from ....core.clock import in_utc, iso
from ....core.errors import LimitExceeded

STEPS_MOST = 500_000
# Characters of one printed value, whether a filter shortens it afterwards or not.
VALUE_LONGEST = 1_000_000
# Levels of a value in JSON or XML; more would exhaust Python's stack.
DEPTH_MOST = 64
_CLOCK_EVERY = 1000
_CHARACTERS_A_STEP = 64
# Python refuses to write integers of more than 4,300 digits.
_BITS_MOST = 10_000


class ListText(list[object]):
    """A list that prints as its own text, such as a Markdown list, instead of as JSON."""

    def __init__(self, items: Iterable[object], show: Callable[[Sequence[object]], str]) -> None:
        super().__init__(items)
        self._show = show
        self._text: str | None = None

    def text(self) -> str:
        """What the list prints, built once."""
        if self._text is None:
            self._text = self._show(self)
        return self._text


class RenderBudget:
    """How much work a rendering may still do, in steps and in time."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._until = monotonic() + seconds
        self._left = STEPS_MOST
        self._clock_at = STEPS_MOST - _CLOCK_EVERY

    def spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < self._clock_at:
            self._check()

    def spend_on(self, characters: int) -> None:
        """Count the work on a text of this length."""
        self.spend(1 + characters // _CHARACTERS_A_STEP)

    def _check(self) -> None:
        if self._left < 0:
            raise LimitExceeded(
                f"The template needs more than {STEPS_MOST:,} steps.",
                remedy="Give it shorter lists, or nest fewer blocks.",
            )
        if self._monotonic() > self._until:
            raise LimitExceeded(
                f"Filling in the template took longer than {self._seconds:g} seconds.",
                remedy="Give it shorter lists, or nest fewer blocks.",
            )
        self._clock_at = self._left - _CLOCK_EVERY


def printed(value: object, budget: RenderBudget) -> str:
    """Text as it is, nothing for None, and anything else as JSON; a `ListText` by its own text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, datetime):
        return moment_text(value)
    if isinstance(value, ListText):
        budget.spend(len(value))
        return value.text()
    if isinstance(value, (bool, int, float)):
        return number_text(value)
    if isinstance(value, (list, tuple, Mapping)):
        return json_text(value, budget)
    return str(value)


def joined(items: Iterable[object], between: str, budget: RenderBudget) -> str:
    """The printed items with a text between them."""
    pieces = _Pieces(budget)
    for number, item in enumerate(items):
        if number:
            pieces.add(between)
        pieces.add(printed(item, budget))
    return pieces.text()


def json_text(value: object, budget: RenderBudget) -> str:
    """Any value as JSON on one line."""
    pieces = _Pieces(budget)
    _write(value, pieces, DEPTH_MOST)
    return pieces.text()


def number_text(number: bool | int | float) -> str:
    """A number or boolean as JSON; numbers that are not finite become `null`."""
    if isinstance(number, bool):
        return "true" if number else "false"
    if isinstance(number, float):
        return float.__repr__(number) if math.isfinite(number) else "null"
    if number.bit_length() > _BITS_MOST:
        raise LimitExceeded("A number has more digits than can be written.", remedy="Give it as text.")
    return int.__repr__(number)


def moment_text(moment: datetime) -> str:
    try:
        return iso(in_utc(moment))
    except OverflowError:
        # In UTC it is before the year 1 or after 9999.
        return moment.isoformat()


class _Pieces:
    """A growing text that cannot exceed its limits."""

    def __init__(self, budget: RenderBudget) -> None:
        self._budget = budget
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: str) -> None:
        self._size += len(piece)
        self._budget.spend_on(len(piece))
        if self._size > VALUE_LONGEST:
            raise LimitExceeded(
                f"One value would print more than {VALUE_LONGEST:,} characters.",
                remedy="Give a shorter list, or print its items one by one.",
            )
        self._pieces.append(piece)

    def text(self) -> str:
        return "".join(self._pieces)


def _write(value: object, pieces: _Pieces, depth: int) -> None:
    if depth < 0:
        raise LimitExceeded(
            f"A value is nested deeper than {DEPTH_MOST} levels.", remedy="Print the parts that are needed."
        )
    if isinstance(value, Mapping):
        pieces.add("{")
        for number, (key, item) in enumerate(value.items()):
            pieces.add(f"{', ' if number else ''}{json.dumps(str(key), ensure_ascii=False)}: ")
            _write(item, pieces, depth - 1)
        pieces.add("}")
    elif isinstance(value, (list, tuple)):
        pieces.add("[")
        for number, item in enumerate(value):
            if number:
                pieces.add(", ")
            _write(item, pieces, depth - 1)
        pieces.add("]")
    else:
        pieces.add(_scalar(value))


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, (bool, int, float)):
        return number_text(value)
    text = moment_text(value) if isinstance(value, datetime) else str(value)
    return json.dumps(text, ensure_ascii=False)
