"""Charts for the pages, as SVG: light or dark as the reader's system is, each series with its name beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Axis", "Series", "draw"]

# By series, in the light and in the dark scheme.
_COLOURS = (
    ("#0f766e", "#5cc9b8"), ("#b42318", "#ff9d92"), ("#2f62b8", "#8fb5f5"), ("#8a5a00", "#f0c674"),
    ("#7c4ba0", "#c9a2e8"), ("#be185d", "#f9a8d4"), ("#4d7c0f", "#a3d977"), ("#475569", "#cbd5e1"),
)  # fmt: skip
# Of the paper, of what is not a series, and of the grid.
_GREYS = (("#ffffff", "#0d1117"), ("#59636e", "#9198a1"), ("#e6e3dd", "#30343a"))
_WIDTH, _HEIGHT = 420, 320
_LEFT, _TOP, _BELOW = 64, 40, 48
_LETTER, _LINE = 7, 16  # pixels that a letter takes at most, and a line of text


@dataclass(frozen=True, slots=True)
class Axis:
    """`ticks` are values with their names, from the least to the most, which are the ends of the axis."""

    label: str
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Where a value is, from 0 to 1."""
        low, high, at = (
            math.log10(one) if self.logarithmic else one for one in (self.ticks[0][0], self.ticks[-1][0], value)
        )
        return (at - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Series:
    """Points, each with its radius, that a line joins if there are several."""

    name: str
    points: Sequence[tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def draw(title: str, across: Axis, up: Axis, series: Sequence[Series], *, diagonal: bool = False) -> str:
    """A chart. `diagonal` draws the line on which both values are equal."""
    if len(series) > len(_COLOURS):
        raise ValueError(f"there are {len(_COLOURS)} colours for {len(series)} series")

    def at(x: float, y: float) -> tuple[float, float]:
        return _LEFT + across.share(x) * _WIDTH, _TOP + (1 - up.share(y)) * _HEIGHT

    bottom, right = _TOP + _HEIGHT, _LEFT + _WIDTH
    parts = [f'<text class="dim" x="8" y="20">{escape(up.label)}</text>']
    for value, name in up.ticks:
        y = at(across.ticks[0][0], value)[1]
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text class="dim" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>')
    for value, name in across.ticks:
        x = at(value, up.ticks[0][0])[0]
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text class="dim" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{escape(name)}</text>')
    middle = _LEFT + _WIDTH // 2
    parts.append(f'<text class="dim" x="{middle}" y="{bottom + 38}" text-anchor="middle">{escape(across.label)}</text>')
    if diagonal:
        parts.append(f'<line class="equal" x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{_TOP}"/>')
    drawn = [[(*at(x, y), radius) for x, y, radius in one.points] for one in series]
    for number, points in enumerate(drawn):
        if len(points) > 1:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
            parts.append(f'<polyline class="c{number}" points="{line}"/>')
        parts += [f'<circle class="c{number}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>' for x, y, radius in points]
    joined = any(len(points) > 1 for points in drawn)
    places = _beside_lines(drawn) if joined else _beside_points(drawn, [one.name for one in series])
    for number, (one, (x, y)) in enumerate(zip(series, places, strict=True)):
        if joined:
            end, height, _ = drawn[number][-1]
            parts.append(f'<path class="c{number}" d="M{end:.1f} {height:.1f}L{right + 8} {y - 4:.1f}"/>')
        anchor = "" if joined or x > drawn[number][0][0] else ' text-anchor="end"'
        parts.append(f'<text class="c{number}" x="{x:.1f}" y="{y:.1f}"{anchor}>{escape(one.name)}</text>')
    ends = (x + _LETTER * len(one.name) for one, (x, _) in zip(series, places, strict=True))
    width = round(max(right + 16, *ends) + 8)
    return _document(title, width, bottom + _BELOW, parts, len(series))


def _beside_lines(drawn: Sequence[Sequence[tuple[float, float, float]]]) -> list[tuple[float, float]]:
    """Right of the chart, at the height where each line ends, as far as there is room."""
    order = sorted(range(len(drawn)), key=lambda one: drawn[one][-1][1])
    heights: dict[int, float] = {}
    lowest = 0.0
    for one in order:
        lowest = heights[one] = max(drawn[one][-1][1] + 4, lowest + _LINE)
    # What ran over the end moves up again.
    highest = float(_TOP + _HEIGHT + 4)
    for one in reversed(order):
        highest = heights[one] = min(heights[one], highest)
        highest -= _LINE
    return [(_LEFT + _WIDTH + 14, heights[one]) for one in range(len(drawn))]


def _beside_points(
    drawn: Sequence[Sequence[tuple[float, float, float]]], names: Sequence[str]
) -> list[tuple[float, float]]:
    """Right of each point, or left of it, where no other name and no point is: where the name begins, or ends."""
    taken = [_Box(x - r, y - r, x + r, y + r) for points in drawn for x, y, r in points]
    found = []
    for ((x, y, radius), *_), name in zip(drawn, names, strict=True):
        width = _LETTER * len(name)
        gap = radius + 4
        rows = (0, *(sign * n * _LINE for n in range(1, 8) for sign in (-1, 1)))
        sides = ((edge, y + 4 + row) for row in rows for edge in (x + gap, x - gap))
        place, box = next(
            (at, box)
            for at in sides
            if (box := _Box(at[0] - width * (at[0] < x), at[1] - 12, at[0] + width * (at[0] > x), at[1] + 4)).left
            > _LEFT
            and box.bottom < _TOP + _HEIGHT + 9
            and not any(map(box.meets, taken))
        )
        taken.append(box)
        found.append(place)
    return found


def _rules(scheme: int, colours: int) -> str:
    """The colours of a scheme. Without variables, which not every program that shows a picture knows."""
    paper, dim, edge = (pair[scheme] for pair in _GREYS)
    rules = [f"rect {{ fill: {paper} }} .dim {{ fill: {dim} }} line {{ stroke: {edge} }} .equal {{ stroke: {dim} }}"]
    for n, pair in enumerate(_COLOURS[:colours]):
        rules.append(f"text.c{n}, circle.c{n} {{ fill: {pair[scheme]} }}")
        rules.append(f"polyline.c{n}, path.c{n} {{ stroke: {pair[scheme]} }}")
    return " ".join(rules)


def _document(title: str, width: int, height: int, parts: Iterable[str], colours: int) -> str:
    style = [
        "text { font: 12px system-ui, sans-serif } .equal { stroke-dasharray: 4 } circle { opacity: 0.75 }",
        "polyline, path { fill: none; stroke-width: 1.5 } path { stroke-width: 0.75; opacity: 0.6 }",
        _rules(0, colours),
        f"@media (prefers-color-scheme: dark) {{ {_rules(1, colours)} }}",
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>',
        "<style>",
        *style,
        "</style>",
        '<rect width="100%" height="100%" rx="8"/>',
        *parts,
        "</svg>",
        "",
    ])  # fmt: skip
