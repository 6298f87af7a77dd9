"""A text file as parts, symbols and imports: code along its syntax, Markdown along its headings, the
rest along blank lines and indentation.

Everything is a function of the path and the text. Without the parser or the grammar of a language,
and for a text too large to parse in good time, code is cut like any other text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .cutting import Part, cut_rows, rows_of
from .imports import Import
from .languages import language_of
from .outline import Outline, Symbol, Unit, outline

__all__ = ["Analysis", "Import", "Part", "Symbol", "analyse", "cut", "imports", "symbols"]

_MARKDOWN = (".md", ".mdx", ".markdown", ".mkd", ".qmd", ".rmd")
_HEADING = re.compile(r" {0,3}(#{1,6})(?!\S)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\r?\n?\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_NO_TITLE = re.compile(r"\s*(?:[-*+>|#=`~]|\d+[.)]\s|\Z)")
_LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class Analysis:
    """What one look at a file finds; the parts in order give back its text."""

    parts: list[Part]
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
        found = outline(language, text.encode("utf-8", "replace"))
    if found is None:
        return Analysis(cut_rows(rows, loose="block" if language is None else "module"), [], [])
    parts = cut_rows(rows, found.units, found.ranks, loose="module")
    return Analysis(parts, found.symbols, found.imports)


def cut(path: str, text: str) -> list[Part]:
    """The parts of a file, none much above 1,200 characters."""
    return analyse(path, text).parts


def symbols(path: str, text: str) -> list[Symbol]:
    """What a source file defines, in order."""
    return analyse(path, text).symbols


def imports(path: str, text: str) -> list[Import]:
    """What a source file imports, in order."""
    return analyse(path, text).imports


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
