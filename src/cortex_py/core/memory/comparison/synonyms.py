"""Which words mean the same or nearly the same: a table of WordNet's senses.

Vectors cannot say this: "lead" and "rhythm", "indoor" and "outdoor" are as near to each other as "fix" and "repair".
`make_synonyms.py` writes `synonyms.tsv`, whose head has WordNet's notice. Words are stems, as statements have.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ...jobs import load_once

__all__ = ["are_synonyms", "is_known", "with_synonyms"]


class _Table(NamedTuple):
    """Sorted lines of a key, a tab and senses: reading 50,000 lines into dictionaries takes a quarter second."""

    words: list[str]  # with the senses of each
    senses: list[str]  # with the senses next to each


def are_synonyms(word: str, other: str) -> bool:
    """Whether two words share a sense, or one is a broader, similar or derived word of the other."""
    mine, others = _senses(word), _senses(other)
    return not mine.isdisjoint(others) or not _near(word).isdisjoint(others) or not _near(other).isdisjoint(mine)


def with_synonyms(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """The words for which there is a synonym among others."""
    senses, near = frozenset[str]().union(*map(_senses, others)), frozenset[str]().union(*map(_near, others))
    return [
        word
        for word in words
        if (mine := _senses(word))
        and not (mine.isdisjoint(senses) and mine.isdisjoint(near) and _near(word).isdisjoint(senses))
    ]


def is_known(word: str) -> bool:
    """Whether a word is in the table, which has hardly any names."""
    return bool(_senses(word))


@lru_cache(maxsize=4096)
def _senses(word: str) -> frozenset[str]:
    return frozenset(_find(_table().words, word))


@lru_cache(maxsize=4096)
def _near(word: str) -> frozenset[str]:
    return frozenset(one for sense in _senses(word) for one in _find(_table().senses, sense))


def _find(lines: Sequence[str], key: str) -> list[str]:
    start = f"{key}\t"
    at = bisect_left(lines, start)
    return lines[at].removeprefix(start).split() if at < len(lines) and lines[at].startswith(start) else []


@load_once
def _table() -> _Table:
    """Read on first use: most calls compare nothing."""
    words, _, senses = Path(__file__).with_name("synonyms.tsv").read_text("utf-8").partition("\n\n")
    return _Table([line for line in words.splitlines() if not line.startswith("#")], senses.splitlines())
