"""The gazetteer: listed names of technologies, organisations and people, found word by word and longest first.

The list is `names.json`. A listed name is a hint to the tagger, never more: what the sentence makes of it decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

__all__ = ["KINDS", "NAMES_FILE", "Gazetteer", "listed_names"]

NAMES_FILE = Path(__file__).with_name("names.json")
KINDS = ("library", "application", "language", "system", "device", "website", "organization", "given")


class Gazetteer:
    """Names by the lowered words that spell them."""

    def __init__(self, names: dict[str, list[str]]) -> None:
        self._names: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        self._longest: dict[str, int] = {}
        for kind in KINDS:
            for name in names[kind]:
                words = tuple(name.lower().split())
                self._names.setdefault(words, []).append((kind, name))
                self._longest[words[0]] = max(self._longest.get(words[0], 0), len(words))

    def lists(self, name: str) -> bool:
        """Whether the name is listed, in whatever case."""
        return tuple(name.lower().split()) in self._names

    def matches(
        self, words: Sequence[str], lowered: Sequence[str]
    ) -> Iterator[tuple[int, int, list[tuple[str, bool]]]]:
        """Where the words spell listed names: from, to, and the kinds with whether the spelling is the listed one."""
        place, count = 0, len(words)
        while place < count:
            step = 1
            for length in range(min(self._longest.get(lowered[place], 0), count - place), 0, -1):
                listed = self._names.get(tuple(lowered[place : place + length]))
                if listed:
                    spelled = " ".join(words[place : place + length])
                    yield place, place + length, [(kind, spelled == name) for kind, name in listed]
                    step = length
                    break
            place += step


@cache
def listed_names() -> dict[str, list[str]]:
    """The names of the list, by kind."""
    names: dict[str, list[str]] = json.loads(NAMES_FILE.read_text("utf-8"))
    return names
