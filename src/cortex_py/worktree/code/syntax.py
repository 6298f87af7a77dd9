"""Divides a text file into parts: code along its syntax, Markdown along its headings, other text along blank lines.

Every character is in exactly one part. Results depend only on the path and the text. Without the parser or the grammar
of a language, or if a text is too large to parse in time, code is cut like any other text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .imports import Import
from .naming import language_of
from .outline import Outline, Symbol, Unit, read_outline

__all__ = ["SourcePart", "analyse", "rows_of"]

_MARKDOWN = (".md", ".mdx", ".markdown", ".mkd", ".qmd", ".rmd")
_HEADING = re.compile(r" {0,3}(#{1,6})(?!\S)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\r?\n?\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_NO_TITLE = re.compile(r"\s*(?:[-*+>|#=`~]|\d+[.)]\s|\Z)")
_LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class Analysis:
    """What one look at a file finds; the parts in order give back its text."""

    parts: list[SourcePart]
    symbols: list[Symbol]
    imports: list[Import]


def analyse(path: str, text: str) -> Analysis:
    """The parts, symbols and imports of a file, from one parse."""
    rows = rows_of(text)
    if path.lower().endswith(_MARKDOWN):
        return Analysis(cut_rows(rows, list(_sections(rows)), loose="block"), [], [])
    language = language_of(path, text)
    found: Outline | None = None
    if language is not None:
        # Only rows and names are read from the tree, so what UTF-8 cannot hold may be anything.
        found = read_outline(language, text.encode("utf-8", "replace"))
    if found is None:
        return Analysis(cut_rows(rows, loose="block" if language is None else "module"), [], [])
    parts = cut_rows(rows, found.units, found.ranks, loose="module")
    return Analysis(parts, found.symbols, found.imports)


def _sections(rows: Sequence[str]) -> Iterator[Unit]:
    """The sections of a Markdown text, each inside those of higher headings."""
    opened: list[tuple[int, int, str]] = []
    for row, level, title in _headings(rows):
        while opened and opened[-1][0] >= level:
            yield _section(opened, row)
            opened.pop()
        opened.append((level, row, title))
    while opened:
        yield _section(opened, len(rows))
        opened.pop()


def _section(opened: Sequence[tuple[int, int, str]], end: int) -> Unit:
    name = " > ".join(title for _, _, title in opened)
    return Unit(opened[-1][1], end - 1, name, "section", is_container=True)


def _headings(rows: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    fence = ""
    start = _front_matter(rows)
    for row in range(start, len(rows)):
        text = rows[row]
        mark = _FENCE.match(text)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark:
            fence = mark[1]
        elif found := _HEADING.match(text):
            yield row, len(found[1]), _title(_without_closing(text[found.end() :].strip()))
        elif (
            row > start
            and (line := _UNDERLINE.match(text))
            and not _NO_TITLE.match(rows[row - 1])
            and (row - 1 == start or not rows[row - 2].strip())
        ):
            yield row - 1, 1 if line[1][0] == "=" else 2, _title(rows[row - 1])


def _front_matter(rows: Sequence[str]) -> int:
    """The row after the settings that some Markdown files begin with."""
    if rows and rows[0].rstrip() == "---":
        for row in range(1, min(len(rows), 200)):
            if rows[row].rstrip() == "---":
                return row + 1
    return 0


def _without_closing(title: str) -> str:
    """A title without the signs that may end it as they begin it."""
    short = title.rstrip("#")
    return short if not short or short[-1].isspace() else title


def _title(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_TITLE] or "…"


# -- The cutter --------------------------------------------------------------------------------------
#
# The cutter gets the rows that belong together under a name (units) and how good a cut before a row is (ranks, the
# lower the better). Code takes both from its syntax, Markdown from its headings; otherwise indentation and blank lines
# decide.

LARGEST = 1_200
# Neighbours below the first size are put together up to the second; a class up to it is not taken apart.
TINY = 120
JOINED = 500

_ROW = re.compile(r"[^\n]*\n|[^\n]+")
_FILLER = re.compile(r"[\s\])};,]*(?:end\b[\s\])};,]*)?\Z")
_CLOSER = re.compile(r"\s*+(?:[\])}]|end\b|else\b|elif\b|except\b|catch\b|finally\b|</)")
_BREAK = re.compile(r"(?<=[\s;,{}()>])(?=\S)")
_DEEPEST = 40
_ROOT = -1


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A stretch of a file: the lines count from 1 and include the last; the symbol is None outside any."""

    symbol: str | None
    kind: str
    first_line: int
    last_line: int
    text: str


def rows_of(text: str) -> list[str]:
    """The rows of a text with their line feeds, which alone end a row."""
    return _ROW.findall(text)


def cut_rows(
    rows: Sequence[str], units: Sequence[Unit] = (), ranks: Mapping[int, int] | None = None, *, loose: str
) -> list[SourcePart]:
    """The parts of a text in order; `loose` is the kind of what belongs to no unit."""
    return list(_Cutter(rows, units, ranks or {}, loose).parts()) if rows else []


@dataclass(slots=True)
class _Piece:
    """Characters `start` to `end`, under a unit.

    `shares` says how many of them each unit brought in, `grain` how many the largest piece that was put
    in. A piece is sealed when its unit came out as several: it has no more in common with its neighbours.
    """

    start: int
    end: int
    unit: int
    shares: dict[int, int]
    grain: int
    is_sealed: bool = False
    is_head: bool = False

    @property
    def size(self) -> int:
        return self.end - self.start


class _Cutter:
    def __init__(self, rows: Sequence[str], units: Sequence[Unit], ranks: Mapping[int, int], loose: str) -> None:
        self._rows = rows
        self._ranks = ranks
        self._loose = loose
        self._offsets = [0, *accumulate(map(len, rows))]
        self._units: list[Unit] = []
        self._parents: list[int] = []
        self._arrange(sorted(units, key=lambda unit: (unit.first, -unit.last)))

    def parts(self) -> Iterator[SourcePart]:
        text = "".join(self._rows)
        for piece in self._joined(self._pieces()):
            first = bisect_right(self._offsets, piece.start)
            last = bisect_right(self._offsets, piece.end - 1)
            symbol, kind = self._label(piece)
            yield SourcePart(symbol, kind, first, last, text[piece.start : piece.end])

    def _arrange(self, units: Sequence[Unit]) -> None:
        """Keep the units that are cut at, inside one another and never overlapping."""
        around: list[int] = []
        free = 0
        for unit in units:
            while around and self._units[around[-1]].last < max(unit.first, free):
                free = max(free, self._units[around.pop()].last + 1)
            above = self._units[around[-1]] if around else None
            if above is not None and (len(around) >= _DEEPEST or not self._is_open(above)):
                continue
            first = max(unit.first, free)
            last = min(unit.last, above.last if above else len(self._rows) - 1)
            is_same = above is not None and (first, last) == (above.first, above.last)
            if first > last or is_same:
                continue
            self._units.append(unit._replace(first=first, last=last))
            self._parents.append(around[-1] if around else _ROOT)
            around.append(len(self._units) - 1)
            free = first

    def _is_open(self, unit: Unit) -> bool:
        return self._size(unit.first, unit.last + 1) > (JOINED if unit.is_container else LARGEST)

    def _size(self, first: int, end: int) -> int:
        return self._offsets[end] - self._offsets[first]

    def _segments(self) -> Iterator[tuple[int, int, int]]:
        """Rows from, rows to, and the innermost unit around them."""
        row, around = 0, [_ROOT]
        for index, unit in enumerate(self._units):
            while around[-1] != self._parents[index]:
                end = self._units[around[-1]].last + 1
                yield row, end, around.pop()
                row = end
            yield row, unit.first, around[-1]
            row = unit.first
            around.append(index)
        while len(around) > 1:
            end = self._units[around[-1]].last + 1
            yield row, end, around.pop()
            row = end
        yield row, len(self._rows), _ROOT

    def _pieces(self) -> list[_Piece]:
        spans: list[list[int]] = []
        for first, end, unit in self._segments():
            start = first
            while spans and start < end and _FILLER.match(self._rows[start]):
                start += 1
            # Blank rows and closing signs end what stands before them.
            if spans:
                spans[-1][1] = max(spans[-1][1], start)
            if start < end:
                spans.append([start, end, unit])
        return [piece for first, end, unit in spans for piece in self._split(first, end, unit)]

    def _split(self, first: int, end: int, unit: int) -> Iterator[_Piece]:
        waiting = [(first, end, 0)]
        while waiting:
            first, end, depth = waiting.pop()
            if self._size(first, end) <= LARGEST:
                yield self._piece(self._offsets[first], self._offsets[end], unit)
            elif end - first == 1:
                yield from self._split_row(first, unit)
            else:
                waiting += [(at, until, depth + 1) for at, until in reversed(self._groups(first, end, depth))]

    def _groups(self, first: int, end: int, depth: int) -> list[tuple[int, int]]:
        """The rows cut at their best places, neighbours put together again while they fit."""
        ranks = [(self._ranks[row], row) for row in range(first + 1, end) if row in self._ranks]
        if not ranks or depth >= _DEEPEST:
            ranks = [(rank, row) for row in range(first + 1, end) if (rank := self._plain_rank(row)) is not None]
        best = min(ranks)[0] if ranks else None
        cuts = [row for rank, row in ranks if rank == best] or list(range(first + 1, end))
        groups: list[tuple[int, int]] = []
        for at, until in zip([first, *cuts], [*cuts, end], strict=True):
            if groups and self._size(groups[-1][0], until) <= LARGEST:
                groups[-1] = (groups[-1][0], until)
            else:
                groups.append((at, until))
        return groups

    def _plain_rank(self, row: int) -> int | None:
        """How good a cut before a row is by its looks: outermost first, after a blank row before others."""
        text = self._rows[row]
        if not text.strip() or _CLOSER.match(text):
            return None
        expanded = text.expandtabs(4)
        indent = len(expanded) - len(expanded.lstrip())
        return 2 * indent + (1 if self._rows[row - 1].strip() else 0)

    def _split_row(self, row: int, unit: int) -> Iterator[_Piece]:
        start, end = self._offsets[row], self._offsets[row + 1]
        text = self._rows[row]
        at = 0
        while len(text) - at > LARGEST:
            breaks = [match.start() for match in _BREAK.finditer(text, at + LARGEST // 2, at + LARGEST)]
            until = breaks[-1] if breaks else at + LARGEST
            yield self._piece(start + at, start + until, unit)
            at = until
        yield self._piece(start + at, end, unit)

    def _piece(self, start: int, end: int, unit: int) -> _Piece:
        return _Piece(start, end, unit, {unit: end - start}, end - start)

    def _joined(self, pieces: Sequence[_Piece]) -> list[_Piece]:
        """Small neighbours put together: first inside each unit, then units that came out as one piece."""
        around: list[int] = [_ROOT]
        lists: list[list[_Piece]] = [[]]
        for piece in pieces:
            way = self._way(piece.unit)
            while len(around) > len(way) or around[-1] != way[len(around) - 1]:
                inside = self._closed(lists.pop(), around.pop())
                lists[-1].extend(inside)
            for unit in way[len(around) :]:
                around.append(unit)
                lists.append([])
            lists[-1].append(piece)
        while len(around) > 1:
            inside = self._closed(lists.pop(), around.pop())
            lists[-1].extend(inside)
        return self._neighbours(lists[0], _ROOT)

    def _closed(self, pieces: Sequence[_Piece], unit: int) -> list[_Piece]:
        inside = self._neighbours(pieces, unit)
        for index, piece in enumerate(inside):
            piece.is_sealed, piece.is_head = len(inside) > 1, index == 0
        if len(inside) == 1:
            inside[0].unit = unit
        return inside

    def _neighbours(self, pieces: Sequence[_Piece], unit: int) -> list[_Piece]:
        done: list[_Piece] = []
        for piece in pieces:
            if not done or not (
                _fit(done[-1], piece, unit) or (piece is pieces[-1] and _trails(done[-1], piece, unit))
            ):
                done.append(piece)
                continue
            last = done[-1]
            last.end, last.is_sealed = piece.end, piece.is_sealed
            last.grain = max(last.grain, piece.grain)
            last.unit = last.unit if last.unit == piece.unit else unit
            for one, size in piece.shares.items():
                last.shares[one] = last.shares.get(one, 0) + size
        return done

    def _way(self, unit: int) -> list[int]:
        """The units around one, outermost first, and itself."""
        way = []
        while unit != _ROOT:
            way.append(unit)
            unit = self._parents[unit]
        return [_ROOT, *reversed(way)]

    def _label(self, piece: _Piece) -> tuple[str | None, str]:
        """The unit that nearly all of the piece comes from, or else the innermost common one."""
        largest = max(piece.shares, key=lambda unit: piece.shares[unit])
        wanted = 2 if piece.shares.keys() <= set(self._way(largest)) else 4 / 3
        unit = largest if wanted * piece.shares[largest] > piece.size else piece.unit
        return (None, self._loose) if unit == _ROOT else (self._units[unit].name, self._units[unit].kind)


def _fit(one: _Piece, other: _Piece, unit: int) -> bool:
    """Whether two neighbours inside a unit are better together."""
    size = one.size + other.size
    if one.is_sealed or min(one.grain, other.grain) >= TINY:
        return False
    # An opening that says little, such as a single line, goes with what it opens.
    opens = one.shares.keys() == {unit} and one.size < TINY and size <= LARGEST
    if other.is_sealed:
        return opens and other.is_head
    if one.unit == other.unit == unit:
        return size <= LARGEST + TINY
    return opens or (size <= JOINED and max(one.grain, other.grain) < TINY)


def _trails(one: _Piece, last: _Piece, unit: int) -> bool:
    """Whether the last words of a unit are too few to stand alone."""
    is_loose = last.shares.keys() == {unit} and not one.is_sealed
    return is_loose and last.size < TINY and one.size + last.size <= LARGEST
