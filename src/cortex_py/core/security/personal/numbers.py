"""What the rules share: the tables, the words around a place in a text, and the numbers as people write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...lazy import regex

__all__ = [
    "HIDDEN", "TABLES", "NumberRun", "Span", "has_phrase", "number_runs", "phrases", "words", "words_after",
    "words_before",
]  # fmt: skip

# The tables of `tables.json`, and the words around a place in a text, which most rules ask for.

Span = tuple[int, int, str]  # start, end, kind

# A finding is hidden from later rules under this character. No pattern matches it and no window reaches beyond it,
# so that a text reads the same whether a finding is hidden or replaced by a marker of another length.
HIDDEN = "\0"

TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("tables.json").read_text("utf-8"))

_WORD = regex(r"[^\W\d_]+")


def words(name: str) -> frozenset[str]:
    """The words of one row of the table."""
    return frozenset(TABLES["words"][name].split())


def phrases(row: str) -> tuple[str, ...]:
    """The phrases of a row, in the form that `has_phrase` compares."""
    return tuple(f" {phrase} " for phrase in row.split("|")) if row else ()


def has_phrase(wanted: tuple[str, ...], near: Iterable[str]) -> bool:
    joined = f" {' '.join(near)} "
    return any(phrase in joined for phrase in wanted)


def words_before(text: str, start: int, width: int = 48) -> list[str]:
    """The words in lower case before a place, as far as the paragraph and the window go."""
    begin = max(0, start - width)
    window = text[begin:start].rpartition(HIDDEN)[2].rpartition("\n\n")[2]
    found = _WORD.findall(window.lower())
    cut = begin > 0 and len(window) == start - begin and window[:1].isalpha() and text[begin - 1].isalpha()
    return found[1:] if cut else found


def words_after(text: str, end: int, width: int = 24) -> list[str]:
    window = text[end : end + width].partition(HIDDEN)[0].partition("\n")[0]
    found = _WORD.findall(window.lower())
    cut = len(window) == width and window[-1:].isalpha() and text[end + width : end + width + 1].isalpha()
    return found[:-1] if cut else found


_RUN = regex(
    r"(?<![\w\0])(?:\+ ?)?\(?\+?\d+(?:(?:[ \u00a0]?[-./()\u2010-\u2013][ \u00a0(]?|[ \u00a0]\(?|\)[ \u00a0])\d+)*"
)
_DIGITS = regex(r"\d+")
_SEPARATORS = regex(r"\D+")
_BREAK = regex(r"[ \u00a0][-/\u2010-\u2013][ \u00a0]")
# What stands right before or after a number that is part of something else: a price, a share, a path, a decimal.
_BEFORE = frozenset("$€£¥%#/.:-=_@&?\\,<>*^~|'\"\u2010\u2013")
_CONTINUES = frozenset(".,:/-+@=")
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class NumberRun:
    """A number with its groups, and what stands between them."""

    start: int
    end: int
    text: str
    digits: str
    groups: tuple[str, ...]
    separators: frozenset[str]
    prefix: str  # "+", or "" where the number begins with a digit or a bracket


def number_runs(text: str) -> Iterator[NumberRun]:
    """Every number that stands for itself, longest form first; two that a spaced dash joins are two."""
    for match in _RUN.finditer(text):
        start, end = match.span()
        if end - start > _LONGEST:
            yield from _pieces(text, start, end)
        elif (run := _run(text, start, end)) is not None:
            if len(run.digits) > 15 and _BREAK.search(run.text):
                yield from _pieces(text, start, end)
            else:
                yield run


def _pieces(text: str, start: int, end: int) -> Iterator[NumberRun]:
    for piece in _BREAK.split(text[start:end]):
        if len(piece) <= _LONGEST and (run := _run(text, start, start + len(piece))) is not None:
            yield run
        start += len(piece) + 3


def _run(text: str, start: int, end: int) -> NumberRun | None:
    written = text[start:end]
    if written.startswith("(") and ")" not in written:
        start, written = start + 1, written[1:]
    elif not _begins(text, start):
        return None
    if not _ends(text, end):
        return None
    groups = tuple(_DIGITS.findall(written))
    between = _SEPARATORS.findall(written.lstrip("+( "))
    return NumberRun(
        start, end, written, "".join(groups), groups, frozenset(between), "+" if "+" in written[:3] else ""
    )


def _begins(text: str, start: int) -> bool:
    before = text[start - 1 : start]
    # "tel:0123" and "x='0123'" name the number; "12:30" and "1.5" continue one.
    return before == "" or before not in _BEFORE or (before in ":,='\"" and not text[start - 2 : start - 1].isdigit())


def _ends(text: str, end: int) -> bool:
    after = text[end : end + 2]
    if after[:1].isalpha():
        return after[0] in "xX" and after[1:].isdigit()
    return after[:1] not in ("%", "_", "\0") and not (after[:1] in _CONTINUES and after[1:].isdigit())
