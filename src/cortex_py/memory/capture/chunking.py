"""Chunks: a long record as passages an embedding model can read whole, and the passage shown to a caller.

Passages end where the text itself pauses: headings, paragraphs, code blocks, list items, sentences, lines,
words, in that order. Everything here is a function of the text and of a token counter; models, vectors and
storage live elsewhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from .terms import UNSPACED, terms

__all__ = ["Chunk", "chunk", "snippet"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of some content: `content[start:end]`."""

    start: int
    end: int


# How good a place the start of a piece is for a cut; just after a heading is the worst.
_AFTER_HEADING, _INSIDE_WORD, _WORD, _LINE, _SENTENCE, _ITEM, _PARAGRAPH, _HEADING = range(8)

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r" {0,3}(`{3,}(?![^\n]*`)|~{3,})")
_TITLE = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,4}[.)])\s")
_PAUSE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+\s++(?=[^a-z])|[。！？｡．।॥؟۔።။។]++[\"'”’」』）】]*+\s*+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|cf|vs|approx|no|fig|dr|mrs?|ms|prof|st|[a-z])\.\s+$", re.IGNORECASE
)
_WORD_ENDS = (" ", "\t", "\u3000", "，", "、", "；")
_SHORT_SENTENCE = 40
# A record this many characters per allowed token long is not worth counting whole before it is cut.
_SPARSE = 40


class _Piece(NamedTuple):
    start: int
    end: int
    rank: int
    tokens: int


def chunk(
    content: str,
    *,
    count_tokens: Callable[[str], int],
    window: int = 256,
    target: int = 200,
    overlap: int = 32,
) -> list[Chunk]:
    """Passages of about `target` tokens, none above `window`, that cover every visible character in order.

    Consecutive passages share whole sentences or lines of about `overlap` tokens, except where a heading
    begins a new subject. Content that fits the window is one passage. A window below the target lowers it.
    """
    if window < 1 or target < 1 or overlap < 0:
        raise ValueError(f"window {window}, target {target}, overlap {overlap}: want at least 1, 1 and 0 tokens")
    target = min(target, window)
    overlap = min(overlap, target // 2)
    everything = Chunk(0, len(content))
    if not content.strip() or (len(content) <= _SPARSE * window and count_tokens(content) <= window):
        return [everything]
    # What a counter adds to any text, such as a model's opening and closing tokens, is spent once per passage.
    fixed = count_tokens("")
    fixed = fixed if fixed < target - overlap else 0
    cutter = _Cutter(content, count_tokens, fixed, window - fixed, target - fixed, overlap)
    pieces = list(cutter.pieces())
    if sum(piece.tokens for piece in pieces) <= cutter.window and count_tokens(content) <= window:
        return [everything]
    return list(cutter.pack(pieces))


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Cuts one content; its window and target leave out the `fixed` tokens every count includes."""

    content: str
    count_tokens: Callable[[str], int]
    fixed: int
    window: int
    target: int
    overlap: int

    def pieces(self) -> Iterator[_Piece]:
        """The smallest passages worth keeping whole, end to end over the content."""
        for start, end, rank, fenced in _blocks(self.content):
            if fenced:
                yield from self._fitting(start, end, rank, self.window)
                continue
            for at, until in _sentences(self.content, start, end):
                yield from self._fitting(at, until, rank if at == start else _SENTENCE, self.target)

    def _fitting(self, start: int, end: int, rank: int, limit: int) -> Iterator[_Piece]:
        tokens = self.count_tokens(self.content[start:end]) - self.fixed
        if tokens <= limit or end - start == 1:
            yield _Piece(start, end, rank, tokens)
            return
        grain = max(1, self.target // 6)
        for at, until, cut_rank in _cuts(self.content, start, end, max(1, (end - start) * grain // tokens)):
            yield from self._fitting(at, until, rank if at == start else cut_rank, self.target)

    def pack(self, pieces: list[_Piece]) -> Iterator[Chunk]:
        sums = [0, *accumulate(piece.tokens for piece in pieces)]
        first = fresh = 0
        shown = Chunk(0, 0)
        while fresh < len(pieces):
            last = self._break(pieces, sums, first, fresh)
            for found in self._checked(pieces[first].start, pieces[last - 1].end):
                # Blank pieces after an overlap would only repeat its end.
                if found.end > shown.end:
                    shown = found
                    yield found
            first, fresh = self._overlapping(pieces, sums, last, shown.start), last

    def _break(self, pieces: list[_Piece], sums: list[int], first: int, fresh: int) -> int:
        """Where the passage that starts at `first` and must take in piece `fresh` ends (exclusive)."""
        before = sums[first]
        if sums[-1] - before <= self.window:
            return len(pieces)
        last = fresh + 1
        while last < len(pieces):
            taken, grown = sums[last] - before, sums[last + 1] - before
            # A few words before a long piece introduce it; the room between target and window is for them.
            if grown > (self.window if taken < self.target // 4 else self.target):
                break
            last += 1
        if last == len(pieces):
            return last
        enough = [end for end in range(fresh + 1, last + 1) if sums[end] - before >= self.target // 2]
        return max(enough or [last], key=lambda end: (pieces[end].rank, end))

    def _overlapping(self, pieces: list[_Piece], sums: list[int], last: int, floor: int) -> int:
        """Where the passage that goes on with piece `last` starts, after the position `floor`."""
        start = last
        if last < len(pieces):
            room = min(self.overlap * 3 // 2, self.window - pieces[last].tokens)
            while (
                pieces[start - 1].start > floor
                and pieces[start].rank != _HEADING
                and sums[last] - sums[start] < self.overlap
                and sums[last] - sums[start - 1] <= room
            ):
                start -= 1
        return start

    def _checked(self, start: int, end: int) -> Iterator[Chunk]:
        """The span without its blank edges, divided while it counts more as a whole than in pieces."""
        text = self.content[start:end]
        start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
        if start >= end:
            return
        if end - start == 1 or self.count_tokens(self.content[start:end]) - self.fixed <= self.window:
            yield Chunk(start, end)
            return
        for at, until, _ in _cuts(self.content, start, end, (end - start + 1) // 2):
            yield from self._checked(at, until)


def _blocks(content: str) -> Iterator[tuple[int, int, int, bool]]:
    """The blocks of a Markdown text: start, end, rank of the start, whether it is fenced code."""
    start, rank, fence, blank = 0, _PARAGRAPH, "", False
    for match in _LINES.finditer(content):
        at, line = match.start(), match[0]
        if fence:
            closing = _FENCE.match(line)
            if closing and closing[1].startswith(fence) and not line[closing.end() :].strip():
                yield start, match.end(), rank, True
                start, rank, fence, blank = match.end(), _PARAGRAPH, "", False
            continue
        if not line.strip():
            blank = True
            continue
        opening = _FENCE.match(line)
        found = _line_rank(line, after_blank=blank, fenced=bool(opening))
        titled = rank == _HEADING and start < at
        if found is not None or titled:
            if start < at:
                yield start, at, rank, False
            start, rank = at, _rank_after(titled, found)
        fence, blank = opening[1] if opening else "", False
    if start < len(content):
        yield start, len(content), rank, bool(fence)


def _line_rank(line: str, *, after_blank: bool, fenced: bool) -> int | None:
    """How good a cut lies before this line; None inside a paragraph."""
    if _TITLE.match(line):
        return _HEADING
    if after_blank or fenced:
        return _PARAGRAPH
    return _ITEM if _BULLET.match(line) else None


def _rank_after(titled: bool, found: int | None) -> int:
    if titled and found != _HEADING:
        return _AFTER_HEADING
    return _PARAGRAPH if found is None else found


def _sentences(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The sentences of a block, the shortest kept with the next."""
    at = start
    for match in _PAUSE.finditer(content, start, end):
        until = match.end()
        if until - at < _SHORT_SENTENCE or until == end:
            continue
        if _ABBREVIATION.search(content, max(at, match.start() - 12), until):
            continue
        yield at, until
        at = until
    if at < end:
        yield at, end


def _cuts(content: str, start: int, end: int, step: int) -> Iterator[tuple[int, int, int]]:
    """The span in parts of at most `step` characters, cut after lines, else words, else anywhere."""
    at, rank = start, _LINE
    while end - at > step:
        until, next_rank = _cut(content, at, at + step)
        yield at, until, rank
        at, rank = until, next_rank
    yield at, end, rank


def _cut(content: str, start: int, limit: int) -> tuple[int, int]:
    newline = content.rfind("\n", start, limit)
    if newline >= 0:
        return newline + 1, _LINE
    word = max(content.rfind(mark, start, limit) for mark in _WORD_ENDS)
    if word >= 0:
        return word + 1, _WORD
    for until in range(limit, max(start, limit - 16), -1):
        if not _joins(content[until - 1], content[until]):
            return until, _INSIDE_WORD
    return limit, _INSIDE_WORD


def _joins(left: str, right: str) -> bool:
    """Whether two characters are drawn as one: a mark on its letter, or an emoji sequence."""
    return "\u200d" in (left, right) or unicodedata.category(right)[0] == "M" or "\U0001f3fb" <= right <= "\U0001f3ff"


def snippet(content: str, span: Chunk, words: Collection[str] | None, length: int = 200) -> str:
    """At most `length` characters of a passage, around the place where most of the query's words meet.

    White space is collapsed, cuts fall between words where there are any, and … stands where the content
    goes on.
    """
    text = " ".join(content[span.start : span.end].split())
    before = bool(content[: span.start].strip())
    after = bool(content[span.end :].strip())
    if len(text) + before + after <= length:
        return "…" * before + text + "…" * after
    room = max(1, length - 2)
    start, end = _densest(text, _wanted(words), room) if words else (0, 0)
    left = max(0, min(start - max(0, room - (end - start)) // 2, len(text) - room))
    return _marked(text, left, min(len(text), left + room), (start, end), before=before, after=after)


def _marked(text: str, left: int, right: int, kept: tuple[int, int], *, before: bool, after: bool) -> str:
    """The stretch cut back to whole words where that loses little and nothing of `kept`, with its marks."""
    slack = (right - left) // 4
    if left > 0 and text[left - 1] != " ":
        left = max(left, text.find(" ", left, min(kept[0], left + slack)) + 1)
    if right < len(text) and text[right] != " ":
        space = text.rfind(" ", max(kept[1], right - slack), right)
        right = space if space >= 0 else right
    return "…" * (before or left > 0) + text[left:right].strip() + "…" * (after or right < len(text))


def _wanted(words: Collection[str]) -> frozenset[str]:
    """The query's words, given as words or as terms, as the terms to look for."""
    return frozenset(words).union(*map(terms, words))


def _densest(text: str, wanted: frozenset[str], room: int) -> tuple[int, int]:
    """The stretch of at most `room` characters that holds the most distinct wanted terms, then the most."""
    hits = sorted(_hits(text, wanted))
    best, best_score = (0, 0), (0, 0)
    counts: dict[str, int] = {}
    first = 0
    for last, (_, end, term) in enumerate(hits):
        counts[term] = counts.get(term, 0) + 1
        while end - hits[first][0] > room and first < last:
            gone = hits[first][2]
            counts[gone] -= 1
            if not counts[gone]:
                del counts[gone]
            first += 1
        score = (len(counts), last - first + 1)
        if score > best_score:
            best, best_score = (hits[first][0], end), score
    return best


def _hits(text: str, wanted: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    for match in (_spaced() if not text.isascii() else _UNIT).finditer(text):
        for term in wanted.intersection(terms(match[0])):
            yield match.start(), match.end(), term
    if text.isascii():
        return
    for term in wanted:
        at = text.find(term) if _unspaced().search(term) else -1
        while at >= 0:
            yield at, at + len(term), term
            at = text.find(term, at + 1)


_UNIT = re.compile(r"\S+")


@cache
def _spaced() -> re.Pattern[str]:
    return re.compile(rf"[^\s{UNSPACED}]+")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(rf"[{UNSPACED}]")
