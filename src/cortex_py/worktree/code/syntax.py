"""Cutting a text into parts that end where it pauses itself, every character in exactly one of them.

The cutter is told which rows belong together under a name (units) and how good a cut lies before a
row (ranks, the lower the better). Syntax tells both for code, headings for Markdown; indentation and
blank lines stand in where neither is known. Nothing here knows a language.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .outline import Unit

__all__ = ["Part", "cut_rows", "rows_of"]

LARGEST = 1_200
# Neighbours below the first size are put together up to the second; a class up to it is not taken apart.
TINY = 120
JOINED = 500

_ROW = re.compile(r"[^\n]*\n|[^\n]+")
_FILLER = re.compile(r"[\s\])};,]*(?:end\b[\s\])};,]*)?\Z")
_CLOSER = re.compile(r"\s*(?:[\])}]|end\b|else\b|elif\b|except\b|catch\b|finally\b|</)")
_BREAK = re.compile(r"(?<=[\s;,{}()>])(?=\S)")
_DEEPEST = 40
_ROOT = -1


@dataclass(frozen=True, slots=True)
class Part:
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
) -> list[Part]:
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

    def parts(self) -> Iterator[Part]:
        text = "".join(self._rows)
        for piece in self._joined(self._pieces()):
            first = bisect_right(self._offsets, piece.start)
            last = bisect_right(self._offsets, piece.end - 1)
            symbol, kind = self._label(piece)
            yield Part(symbol, kind, first, last, text[piece.start : piece.end])

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
        """The unit that nearly all of the piece comes from, or all but what lies around it; else the common one."""
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
