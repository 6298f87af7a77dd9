"""The excerpts of a project that a judge reads a claim by: many short blocks of lines, the likeliest first.

A file is cut into blocks of a few lines, by its functions and classes. How likely a block shows whether a claim is true
is a logistic model over what the two share (`excerpt_model.json`, made by `train_passages.py`); the best blocks
that fit into 1,500 tokens are taken.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from ..index.facts import Definition
from ..judges.support import LogisticModel, read_weights
from ..words import load_pattern, name_parts, stem_words
from .changes import is_changelog
from .names import is_auxiliary, is_configuration
from .passages import Passage, is_prose, mark_lines, rank_files
from .scene import Scene, number_meanings, read_numbers, same_number

__all__ = ["FEATURES", "Block", "choose_passages", "read_blocks"]

_TOKENS = 1_500  # of all excerpts of one claim
_TOKEN = 3.6  # characters of source code
_LINES = 10  # of one block
_FILES = 24
_MOST_DEFINITIONS = 2_000  # of one file
_MOST_BLOCKS = 4_000
_HISTORY = load_pattern("checks", "of_history")
FEATURES = (
    "words", "best_line", "around", "names", "path", "exact", "subject", "called", "calls", "in_file",
    "numbers", "auxiliary", "prose", "changelog", "setting", "text", "near",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of a file, and the definition around them."""

    path: str
    first: int
    last: int
    name: str
    kind: str
    features: Mapping[str, float]


@lru_cache(maxsize=1)
def default_excerpt_model() -> LogisticModel:
    """The model of the package."""
    text = resources.files("cortex_py.parts.verify.checks").joinpath("excerpt_model.json").read_text("utf-8")
    return LogisticModel(*read_weights(json.loads(text), FEATURES))


def choose_passages(scene: Scene, model: LogisticModel | None = None, *, within: Sequence[str] = ()) -> list[Passage]:
    """The excerpts to judge a claim by, the likeliest first; those that touch each other are one.

    `within` are the only files to take them from.
    """
    weigh = (model or default_excerpt_model()).probability
    ranked = sorted(((weigh(one.features), one) for one in read_blocks(scene, within)), key=lambda row: -row[0])
    left = _TOKENS * _TOKEN
    taken: list[tuple[float, Block]] = []
    for score, one in ranked:
        lines = scene.lookup.lines(one.path)[one.first - 1 : one.last]
        size = sum(len(line) + 1 for line in lines) + len(one.path) + 20
        if size <= left and any(line.strip() for line in lines):
            taken.append((score, one))
            left -= size
    return _joined(taken)


def _joined(taken: Sequence[tuple[float, Block]]) -> list[Passage]:
    found: list[Passage] = []
    for score, one in sorted(taken, key=lambda row: (row[1].path, row[1].first)):
        last = found[-1] if found else None
        covered = one.features["words"]
        if last is not None and last.path == one.path and one.first <= last.last + 1:
            best = max(score, last.score)
            found[-1] = Passage(one.path, last.first, one.last, last.name, last.kind, covered, best, last.best_line)
        else:
            found.append(Passage(one.path, one.first, one.last, one.name, one.kind, covered, score, one.first))
    return sorted(found, key=lambda one: -one.score)


def read_blocks(scene: Scene, within: Sequence[str] = ()) -> list[Block]:
    """The blocks of some files, or of those in which the claim's words and names occur, with their features."""
    reader = _Reader(scene)
    return [block for path in within[:_FILES] or reader.files() for block in reader.blocks(path)][:_MOST_BLOCKS]


class _Reader:
    """Reads the blocks for one claim."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._words = sorted(scene.weights)
        self._total = sum(scene.weights.values()) or 1.0
        names = [item.last.lower() for item in scene.objects] + [one.last.lower() for one in scene.found.names]
        self._names = [name for name in dict.fromkeys(names) if len(name) > 2][:6]
        self._own = [one.definition for one in scene.named[:4]]
        called = [one for subject in scene.named[:2]
                  for one, _ in scene.callees(scene.facts(subject), subject.definition.path)]  # fmt: skip
        self._called = {(one.path, one.line) for one in called}
        self._numbers = [number_meanings(mention) for mention in scene.numbers]
        self._of_history = _HISTORY.search(scene.text) is not None

    def files(self) -> list[str]:
        scene = self._scene
        found = [*scene.found.paths[:6], *(one.path for one in self._own), *(path for path, _ in sorted(self._called))]
        if self._of_history:
            found += [path for path in scene.lookup.paths if is_changelog(path)][:2]
        ranked = rank_files(scene.words, scene.weights, scene.lookup)
        return list(dict.fromkeys([*found, *ranked]))[:_FILES]

    def blocks(self, path: str) -> Iterator[Block]:
        lookup = self._scene.lookup
        lines = lookup.lines(path)
        marks = mark_lines(path, [*self._words, *self._names], lookup)
        marked = sorted(marks)
        of_file = {
            "path": self._share(stem_words(name_parts(path))),
            "in_file": float(path in self._scene.found.paths),
            "auxiliary": float(is_auxiliary(path) or path.endswith((".pyi", ".d.ts"))),
            "prose": float(is_prose(path)),
            "changelog": float(self._of_history and is_changelog(path)),
            "setting": float(is_configuration(path)),
        }
        for around, first, last in _segments(lookup.in_file(path)[:_MOST_DEFINITIONS], len(lines)):
            is_own, is_called = self._is_own(path, around), self._is_called(path, around)
            if not (is_own or is_called) and bisect_left(marked, first) == bisect_right(marked, last):
                continue
            own = self._of_definition(path, around, marked, marks)
            for low, high in _cut(first, last):
                here = marked[bisect_left(marked, low) : bisect_right(marked, high)]
                if here or is_own or is_called:
                    features = of_file | own | self._of_lines(lines, low, high, here, marks, marked)
                    name, kind = (around.qualified, around.kind) if around else ("", "text")
                    yield Block(path, low, high, name, kind, features)

    def _share(self, stems: Sequence[str]) -> float:
        have = set(stems)
        return sum(weight for word, weight in self._scene.weights.items() if word in have) / self._total

    def _worth(self, bits: int) -> float:
        return (
            sum(self._scene.weights[word] for place, word in enumerate(self._words) if bits >> place & 1) / self._total
        )

    def _of_definition(
        self, path: str, around: Definition | None, marked: Sequence[int], marks: Mapping[int, int]
    ) -> dict[str, float]:
        if around is None:
            return {"around": 0.0, "names": 0.0, "subject": 0.0, "called": 0.0, "text": 1.0}
        bits = 0
        for line in marked[bisect_left(marked, around.line) : bisect_right(marked, around.end_line)]:
            bits |= marks[line]
        return {
            "around": self._worth(bits),
            "names": self._share(stem_words(name_parts(around.qualified))),
            "subject": float(self._is_own(path, around)),
            "called": float(self._is_called(path, around)),
            "text": 0.0,
        }

    def _is_own(self, path: str, around: Definition | None) -> bool:
        return around is not None and any(
            one.path == path and one.line <= around.line and around.end_line <= one.end_line for one in self._own
        )

    def _is_called(self, path: str, around: Definition | None) -> bool:
        return around is not None and (path, around.line) in self._called

    def _of_lines(
        self, lines: Sequence[str], low: int, high: int, here: Sequence[int], marks: Mapping[int, int],
        marked: Sequence[int],
    ) -> dict[str, float]:  # fmt: skip
        bits = 0
        for line in here:
            bits |= marks[line]
        near = bits
        for line in marked[bisect_left(marked, low - _LINES) : bisect_right(marked, high + _LINES)]:
            near |= marks[line]
        exact = bits >> len(self._words)
        numbers = 0.0
        if self._numbers:
            there = [number for line in lines[low - 1 : high] if _DIGIT.search(line) for number in read_numbers(line)]
            found = [any(same_number(a, b) for a in meaning for b in there) for meaning in self._numbers]
            numbers = sum(found) / len(found)
        return {
            "words": self._worth(bits),
            "best_line": max((self._worth(marks[line]) for line in here), default=0.0),
            "near": self._worth(near),
            "exact": exact.bit_count() / len(self._names) if self._names else 0.0,
            "calls": float(bool(exact & 1)),
            "numbers": numbers,
        }


_DIGIT = re.compile(r"\d")


def _segments(definitions: Sequence[Definition], count: int) -> Iterator[tuple[Definition | None, int, int]]:
    """The lines of a file, each run with the innermost definition around it."""
    owner: list[Definition | None] = [None] * (count + 2)
    for one in sorted(definitions, key=lambda one: (one.line, -one.end_line)):
        for line in range(one.line, min(one.end_line, count) + 1):
            owner[line] = one
    first = 1
    for line in range(2, count + 2):
        if line > count or owner[line] is not owner[first]:
            yield owner[first], first, line - 1
            first = line


def _cut(first: int, last: int) -> Iterator[tuple[int, int]]:
    """A run of lines in parts of about one block."""
    length = last - first + 1
    parts = max(1, round(length / _LINES))
    for part in range(parts):
        yield first + length * part // parts, first + length * (part + 1) // parts - 1
