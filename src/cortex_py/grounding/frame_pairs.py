"""Two frames side by side: whether they tell of one time, and why they cannot both be so. Pure."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from .claim_frames import Frame

__all__ = ["Conflict", "Kind", "Pair"]

Kind = Literal["polarity", "number", "version", "order", "place", "existence", "tests"]
_BY_US = re.compile(r"\b(?:I|we)\b", re.IGNORECASE)


class Conflict(NamedTuple):
    """Why two claims exclude each other, in a sentence."""

    kind: Kind
    reason: str


class Pair(NamedTuple):
    """`first` is told first, or is the older one; `apart` are claims of two texts, which tell nothing in a row."""

    first: Frame
    second: Frame
    apart: bool

    @property
    def at_one_time(self) -> bool:
        """Whether both tell of the same time: what is told first may be how things were before."""
        if "before" in (self.first.time, self.second.time):
            return False
        return self.first.time != "state" or self.second.time == "state"

    @property
    def at_one_state(self) -> bool:
        """Whether at least one tells how things are; of two changes one may have followed the other."""
        return self.at_one_time and not self.first.time == self.second.time == "event"

    @property
    def in_turn(self) -> bool:
        """Whether the second takes back what the first says, and does not only tell what came of it."""
        if self.first.time == self.second.time == "event":
            # "X was not updated. I updated X": first what was missing, then that it was done.
            return self.apart or not self.first.denied or _BY_US.search(self.first.text) is not None
        return self.at_one_time
