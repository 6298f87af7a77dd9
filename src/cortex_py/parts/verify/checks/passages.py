"""Passages of the project that speak of a claim: definitions and paragraphs, ranked by the claim's words in them.

Words only say where to look. A passage that has all of them proves nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..claims.claims import Claim
from ..index.lookup import Lookup
from ..words import distinctive_words, load_words, name_parts, stem_words
from .names import is_auxiliary

__all__ = ["Passage", "claim_words", "find_passages", "is_prose", "mark_lines", "rank_files", "weigh_words"]

_MOST_WORDS = 24
_READ = 2_000  # characters of a claim that are read for words
_FILES = 14
_MOST_HITS = 200  # of one word in one file
_SHORT = 3
_MOST_PASSAGES = 2_000  # of one file
_PARAGRAPH = 12  # lines of text without a definition that count as one passage
_LONG = 15  # lines from which length counts against a passage
_PROSE = (".md", ".rst", ".txt", ".adoc", ".mdx", ".markdown")
# Stems that say that something was done, not what.
_OF_ANY_WORK = load_words("checks", "work_words")
_NAMED = 0.6  # the extra worth of a word in the name of the passage
_OUTSIDE = 0.45  # the worth of tests, examples and documentation
_PROSE_WORTH = 0.7


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a file. `covered` is the weighted share of the claim's words, `score` what it is ranked by."""

    path: str
    first: int
    last: int
    name: str
    kind: str
    covered: float
    score: float
    best_line: int


def is_prose(path: str) -> bool:
    return path.lower().endswith(_PROSE)


def claim_words(claim: Claim) -> list[str]:
    """The words to search for, without file names and without words of any work report."""
    text = claim.text[:_READ]
    for mention in claim.mentions:
        if mention.kind in ("file", "line", "version", "commit"):
            text = text.replace(mention.text, " ")
    return [word for word in distinctive_words(text) if word not in _OF_ANY_WORK][:_MOST_WORDS]


def weigh_words(words: Sequence[str], lookup: Lookup) -> dict[str, float]:
    """How distinctive each word is in this project: the fewer files have it, the more."""
    total = max(2, len(lookup.paths))
    return {word: math.log1p(total / (1 + len(lookup.files_with(word)))) for word in words}


def find_passages(words: Sequence[str], lookup: Lookup, paths: Sequence[str] = (), most: int = 8) -> list[Passage]:
    """The passages with most of the words: of the given files, or of those in which the words occur."""
    weights = weigh_words(words, lookup)
    found = [
        one
        for path in paths[:_FILES] or rank_files(words, weights, lookup)[:_FILES]
        for one in _passages(path, weights, lookup)
    ]
    found.sort(key=lambda one: (-one.score, one.path, one.first))
    return found[:most]


def rank_files(words: Sequence[str], weights: dict[str, float], lookup: Lookup) -> list[str]:
    """The files with most of the words, the best first."""
    scores: dict[str, float] = {}
    for word in words:
        for path in lookup.files_with(word):
            scores[path] = scores.get(path, 0.0) + weights[word]
    return sorted(scores, key=lambda path: (-scores[path] * (_OUTSIDE if is_auxiliary(path) else 1), path))


def mark_lines(path: str, words: Sequence[str], lookup: Lookup) -> dict[int, int]:
    """The words on each line as bits, for lines that have any, counted from 1. Short words must start a word."""
    found: dict[int, int] = {}
    for place, word in enumerate(words):
        for line in lookup.cached_lines(path, word, _lines_with):
            found[line] = found.get(line, 0) | 1 << place
    return found


def _lines_with(word: str, text: str, starts: Sequence[int]) -> tuple[int, ...]:
    lines: dict[int, None] = {}
    at, hits = text.find(word), 0
    while at >= 0 and hits < _MOST_HITS:
        if len(word) > _SHORT or not text[at - 1 : at].isalpha():
            lines[bisect_right(starts, at)] = None
            hits += 1
        at = text.find(word, at + 1)
    return tuple(lines)


def _passages(path: str, weights: dict[str, float], lookup: Lookup) -> Iterator[Passage]:
    ordered = sorted(weights)
    total = sum(weights.values()) or 1.0
    on_line = mark_lines(path, ordered, lookup)
    if not on_line:
        return
    marked = sorted(on_line)
    worth: dict[int, float] = {}
    outside = (
        _OUTSIDE if is_auxiliary(path) or path.endswith((".pyi", ".d.ts")) else _PROSE_WORTH if is_prose(path) else 1.0
    )
    in_path = set(stem_words(name_parts(path)))
    for first, last, name, kind in _spans(path, marked, lookup):
        low, high = bisect_right(marked, first - 1), bisect_right(marked, last)
        mask = 0
        for line in marked[low:high]:
            mask |= on_line[line]
        if not mask:
            continue
        if mask not in worth:
            worth[mask] = sum(weights[word] for place, word in enumerate(ordered) if mask >> place & 1)
        named = in_path | set(stem_words(name_parts(name)))
        bonus = _NAMED * sum(weights[word] for word in ordered if word in named)
        length = 1 + 0.13 * math.log2(max(1.0, (last - first + 1) / _LONG))
        best = max(marked[low:high], key=lambda n: (on_line[n].bit_count(), -n))
        covered = worth[mask] / total
        yield Passage(path, first, last, name, kind, covered, outside * (worth[mask] + bonus) / total / length, best)


def _spans(path: str, marked: Sequence[int], lookup: Lookup) -> Iterator[tuple[int, int, str, str]]:
    """The definitions of a file, and windows of what is outside functions."""
    inside: list[tuple[int, int]] = []
    for one in lookup.in_file(path)[:_MOST_PASSAGES]:
        yield one.line, one.end_line, one.qualified, one.kind
        if one.kind in ("function", "method"):
            inside.append((one.line, one.end_line))
    inside.sort()
    at, covered, shown = 0, 0, 0
    for line in marked[:_MOST_PASSAGES]:
        while at < len(inside) and inside[at][0] <= line:
            covered = max(covered, inside[at][1])
            at += 1
        if line > covered and line > shown - _PARAGRAPH // 2:
            shown = line + _PARAGRAPH - 2
            yield max(1, line - 1), shown, "", "text"
