"""Splitting content: chunks that an embedding model can read whole, snippets for callers, turns of a dialogue.

Chunks end where the text pauses: at headings, paragraphs, code blocks, list items, sentences, lines or words, in that
order of preference. Each turn of a dialogue is indexed separately and those of the assistant are marked, because they
are a different kind of evidence.
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

__all__ = ["Chunk", "Turn", "chunk", "snippet", "split_turns"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of some content: `content[start:end]`."""

    start: int
    end: int


# How good a place for a cut the start of a piece is, worst first.
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
# A record with more characters per allowed token is certainly too long; counting its tokens would be wasted.
_SPARSE = 40


class _Piece(NamedTuple):
    start: int
    end: int
    rank: int
    tokens: int


def chunk(
    content: str, *, count_tokens: Callable[[str], int], window: int = 256, target: int = 200, overlap: int = 32
) -> list[Chunk]:
    """Chunks of about `target` tokens, none above `window`, that cover every visible character in order.

    Consecutive chunks share whole sentences or lines of about `overlap` tokens, except before a heading. Content that
    fits the window is one chunk. A window below the target lowers the target.
    """
    if window < 1 or target < 1 or overlap < 0:
        raise ValueError(f"window {window}, target {target}, overlap {overlap}: want at least 1, 1 and 0 tokens")
    target = min(target, window)
    overlap = min(overlap, target // 2)
    everything = Chunk(0, len(content))
    if not content.strip() or (len(content) <= _SPARSE * window and count_tokens(content) <= window):
        return [everything]
    # The tokens that a counter adds to any text, such as a model's opening and closing tokens, count once per chunk.
    fixed = count_tokens("")
    fixed = fixed if fixed < target - overlap else 0
    cutter = _Cutter(content, count_tokens, fixed, window - fixed, target - fixed, overlap)
    pieces = list(cutter.pieces())
    if sum(piece.tokens for piece in pieces) <= cutter.window and count_tokens(content) <= window:
        return [everything]
    return list(cutter.pack(pieces))


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Splits one content; `window` and `target` are without the `fixed` tokens that every count includes."""

    content: str
    count_tokens: Callable[[str], int]
    fixed: int
    window: int
    target: int
    overlap: int

    def pieces(self) -> Iterator[_Piece]:
        """The smallest passages that should stay whole, end to end over the content."""
        for start, end, rank, fenced in _blocks(self.content):
            if fenced:
                yield from self._fit(start, end, rank, self.window)
                continue
            for at, until in _sentences(self.content, start, end):
                yield from self._fit(at, until, rank if at == start else _SENTENCE, self.target)

    def _fit(self, start: int, end: int, rank: int, limit: int) -> Iterator[_Piece]:
        tokens = self.count_tokens(self.content[start:end]) - self.fixed
        if tokens <= limit or end - start == 1:
            yield _Piece(start, end, rank, tokens)
            return
        grain = max(1, self.target // 6)
        for at, until, cut_rank in _cuts(self.content, start, end, max(1, (end - start) * grain // tokens)):
            yield from self._fit(at, until, rank if at == start else cut_rank, self.target)

    def pack(self, pieces: list[_Piece]) -> Iterator[Chunk]:
        sums = [0, *accumulate(piece.tokens for piece in pieces)]
        first = fresh = 0
        shown = Chunk(0, 0)
        while fresh < len(pieces):
            last = self._break(pieces, sums, first, fresh)
            for found in self._within_window(pieces[first].start, pieces[last - 1].end):
                # Blank pieces after an overlap would only repeat the overlap.
                if found.end > shown.end:
                    shown = found
                    yield found
            first, fresh = self._overlapping(pieces, sums, last, shown.start), last

    def _break(self, pieces: list[_Piece], sums: list[int], first: int, fresh: int) -> int:
        """The end (exclusive) of the chunk that starts at `first` and must contain piece `fresh`."""
        before = sums[first]
        if sums[-1] - before <= self.window:
            return len(pieces)
        last = fresh + 1
        while last < len(pieces):
            taken, grown = sums[last] - before, sums[last + 1] - before
            # A few words that introduce a long piece may exceed the target, up to the window.
            if grown > (self.window if taken < self.target // 4 else self.target):
                break
            last += 1
        if last == len(pieces):
            return last
        enough = [end for end in range(fresh + 1, last + 1) if sums[end] - before >= self.target // 2]
        return max(enough or [last], key=lambda end: (pieces[end].rank, end))

    def _overlapping(self, pieces: list[_Piece], sums: list[int], last: int, floor: int) -> int:
        """The first piece of the chunk that continues with piece `last`, after the position `floor`."""
        start = last
        if last < len(pieces):
            most = min(self.overlap * 3 // 2, self.window - pieces[last].tokens)
            while (
                pieces[start - 1].start > floor
                and pieces[start].rank != _HEADING
                and sums[last] - sums[start] < self.overlap
                and sums[last] - sums[start - 1] <= most
            ):
                start -= 1
        return start

    def _within_window(self, start: int, end: int) -> Iterator[Chunk]:
        """The span without blank edges, halved while it exceeds the window: a whole may count more than its parts."""
        text = self.content[start:end]
        start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
        if start >= end:
            return
        if end - start == 1 or self.count_tokens(self.content[start:end]) - self.fixed <= self.window:
            yield Chunk(start, end)
            return
        for at, until, _ in _cuts(self.content, start, end, (end - start + 1) // 2):
            yield from self._within_window(at, until)


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
    """How good a cut before this line is; None inside a paragraph."""
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
    """The sentences of a block; a short one is joined to the next."""
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
    """The span in parts of at most `step` characters, cut after a line, else a word, else anywhere."""
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
    """Whether two characters are shown as one: a letter with a mark, or an emoji sequence."""
    return "\u200d" in (left, right) or unicodedata.category(right)[0] == "M" or "\U0001f3fb" <= right <= "\U0001f3ff"


# -- snippets ------------------------------------------------------------------------------------


def snippet(content: str, span: Chunk, words: Collection[str] | None, length: int = 200) -> str:
    """At most `length` characters of a passage, around the place with the most words of the query.

    White space is collapsed, cuts are made between words if possible, and … marks where the content continues.
    """
    text = " ".join(content[span.start : span.end].split())
    before = bool(content[: span.start].strip())
    after = bool(content[span.end :].strip())
    if len(text) + before + after <= length:
        return "…" * before + text + "…" * after
    most = max(1, length - 2)
    start, end = _densest(text, _wanted_terms(words), most) if words else (0, 0)
    left = max(0, min(start - max(0, most - (end - start)) // 2, len(text) - most))
    return _with_ellipses(text, left, min(len(text), left + most), (start, end), before=before, after=after)


def matching_spans(text: str, words: Collection[str]) -> list[tuple[int, int]]:
    """Where a text has words of a query, in order and without overlaps, and without the signs around them."""
    found: list[tuple[int, int]] = []
    for start, end, _ in sorted(_hits(text, _wanted_terms(words))):
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip(_AROUND))
        end -= len(piece) - len(piece.rstrip(_AROUND))
        if start < end and (not found or start >= found[-1][1]):
            found.append((start, end))
    return found


def _with_ellipses(text: str, left: int, right: int, kept: tuple[int, int], *, before: bool, after: bool) -> str:
    """The range cut back to whole words, if that loses little and nothing of `kept`, with its ellipses."""
    slack = (right - left) // 4
    if left > 0 and text[left - 1] != " ":
        left = max(left, text.find(" ", left, min(kept[0], left + slack)) + 1)
    if right < len(text) and text[right] != " ":
        space = text.rfind(" ", max(kept[1], right - slack), right)
        right = space if space >= 0 else right
    return "…" * (before or left > 0) + text[left:right].strip() + "…" * (after or right < len(text))


def _wanted_terms(words: Collection[str]) -> frozenset[str]:
    """The terms to look for, from words or terms of the query."""
    return frozenset(words).union(*map(terms, words))


def _densest(text: str, wanted: frozenset[str], most: int) -> tuple[int, int]:
    """The range of at most `most` characters with the most distinct wanted terms, then the most terms."""
    hits = sorted(_hits(text, wanted))
    best, best_score = (0, 0), (0, 0)
    counts: dict[str, int] = {}
    first = 0
    for last, (_, end, term) in enumerate(hits):
        counts[term] = counts.get(term, 0) + 1
        while end - hits[first][0] > most and first < last:
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
_AROUND = ".,;:!?()[]{}<>\"'`*_“”‘’…"


@cache
def _spaced() -> re.Pattern[str]:
    return re.compile(rf"[^\s{UNSPACED}]+")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(rf"[{UNSPACED}]")


# -- dialogues -----------------------------------------------------------------------------------

_LABEL = re.compile(r"^[ \t]*[*_>]{0,3}([^\W\d][\w .'’-]{0,30}?)[*_]{0,3}:(?=\s|[*_]{1,3}\s)", re.MULTILINE)
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "agent", "claude", "gpt", "chatgpt", "system", "model"})
_FEW = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """One speaker's words: `content[start:end]`."""

    start: int
    end: int
    by_assistant: bool


def split_turns(content: str) -> list[Turn]:
    """The turns of a dialogue in order, or the whole content as one turn if it is not a dialogue.

    A dialogue has few speakers, and one of them speaks more than once; a list of `Key: value` lines has neither.
    """
    labels = [(match.start(), match[1].strip().casefold()) for match in _LABEL.finditer(content)]
    names = [name for _, name in labels]
    if len(names) < 2 or len(set(names)) > max(_FEW, len(names) // 3) or len(set(names)) == len(names) > 2:
        return [Turn(0, len(content), False)]
    starts = [start for start, _ in labels]
    found = [
        Turn(start, end, name in _ASSISTANTS)
        for (start, name), end in zip(labels, [*starts[1:], len(content)], strict=True)
    ]
    return found if not content[: starts[0]].strip() else [Turn(0, starts[0], False), *found]
