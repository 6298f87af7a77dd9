"""The words by which source and prose find each other: names whole and in parts, without their endings. Pure."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable

import Stemmer

from ..memory.terms import STOP_WORDS

__all__ = ["name_parts", "names_in", "telling_words", "words_of"]

_NAME = re.compile(r"[^\W\d][\w$]{1,80}|\d[\d_.]{0,20}\d|\d")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_SHORTEST = 2


class _Stemming(threading.local):
    """A stemmer per thread: they may not be shared."""

    def __init__(self) -> None:
        self.stem = Stemmer.Stemmer("english").stemWords


_stemming = _Stemming()


def names_in(text: str) -> set[str]:
    """The names and numbers of a text as they are written."""
    return set(_NAME.findall(text))


def name_parts(name: str) -> list[str]:
    """The words that a name is put together of, in lower case."""
    return [part.lower() for part in _PART.findall(name)]


def words_of(names: Iterable[str]) -> set[str]:
    """What names are found by: in lower case, whole and in parts, the parts without their endings."""
    found: set[str] = set()
    parts: set[str] = set()
    for name in names:
        found.add(name.lower())
        parts.update(name_parts(name))
    found.update(word for word in _stemming.stem(sorted(parts)) if len(word) >= _SHORTEST)
    return found


def telling_words(text: str) -> list[str]:
    """The words of a claim to look for, each once, without those that every text has."""
    parts = [part for name in _NAME.findall(text) for part in name_parts(name)]
    wanted = [part for part in dict.fromkeys(parts) if part not in STOP_WORDS and len(part) >= _SHORTEST]
    return list(dict.fromkeys(_stemming.stem(wanted)))
