"""Which words mean the same or nearly the same: a table of WordNet's senses.

Vectors cannot say this: "lead" and "rhythm", "indoor" and "outdoor" are as near to each other as "fix" and "repair".
`bench/make_synonyms.py` writes `synonyms.tsv`, whose head has WordNet's notice. Words are stems, as statements have.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["are_synonyms"]


class _Table(NamedTuple):
    senses: dict[str, frozenset[str]]  # of a word
    near: dict[str, frozenset[str]]  # senses next to a sense


def are_synonyms(word: str, other: str) -> bool:
    """Whether two words share a sense, or one is a broader, similar or derived word of the other."""
    mine, others = _senses(word), _senses(other)
    return not mine.isdisjoint(others) or not _near(word).isdisjoint(others) or not _near(other).isdisjoint(mine)


def _senses(word: str) -> frozenset[str]:
    return _table().senses.get(word, frozenset())


@lru_cache(maxsize=4096)
def _near(word: str) -> frozenset[str]:
    near = _table().near
    return frozenset(one for sense in _senses(word) for one in near.get(sense, ()))


@lru_cache(maxsize=1)
def _table() -> _Table:
    """Read on first use: most calls compare nothing."""
    text = Path(__file__).with_name("synonyms.tsv").read_text("utf-8")
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    words, _, senses = body.partition("\n\n")
    return _Table(_rows(words), _rows(senses))


def _rows(text: str) -> dict[str, frozenset[str]]:
    return {key: frozenset(rest.split()) for key, _, rest in (line.partition("\t") for line in text.splitlines())}
