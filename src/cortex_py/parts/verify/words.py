"""The words by which source code and prose are matched, and the word lists that the packages of this folder keep."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

import Stemmer

from ...core.memory.text import stop_words

__all__ = [
    "alternatives", "distinctive_words", "load_pattern", "load_table", "load_words", "name_parts", "names_in",
    "stem_words", "words_of",
]  # fmt: skip

# Word lists as data: each package of this folder keeps its own in `words.json`.


@cache
def _tables(package: str) -> dict[str, Any]:
    text = resources.files(f"cortex_py.parts.verify.{package}").joinpath("words.json").read_text("utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def load_words(package: str, name: str) -> frozenset[str]:
    return frozenset(_tables(package)[name].split())


def alternatives(package: str, name: str) -> str:
    """The parts of a list as the alternatives of a regular expression, in their order."""
    return "|".join(_tables(package)[name])


def load_pattern(package: str, name: str, flags: re.RegexFlag | int = re.IGNORECASE) -> re.Pattern[str]:
    """A regular expression that is mostly a list of phrases; the file has it in pieces of one line."""
    return re.compile("".join(_tables(package)["patterns"][name]), flags)


def load_table(package: str, name: str) -> dict[str, str]:
    table: dict[str, str] = _tables(package)[name]
    return table


_NAME = re.compile(r"[^\W\d][\w$]{1,80}|\d[\d_.]{0,20}\d|\d")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_SHORTEST = 2


class _Stemming(threading.local):
    """One stemmer per thread, because stemmers cannot be shared."""

    def __init__(self) -> None:
        self.stem = Stemmer.Stemmer("english").stemWords


_stemming = _Stemming()


def names_in(text: str) -> set[str]:
    """The names and numbers of a text as written."""
    return set(_NAME.findall(text))


def name_parts(name: str) -> list[str]:
    """The words of a compound name, in lower case."""
    return [part.lower() for part in _PART.findall(name)]


def stem_words(words: Iterable[str]) -> list[str]:
    """The stems of words in lower case."""
    return list(_stemming.stem(list(words)))


def words_of(names: Iterable[str]) -> set[str]:
    """The words to index for some names: each name in lower case, and the stems of its parts."""
    found: set[str] = set()
    parts: set[str] = set()
    for name in names:
        found.add(name.lower())
        parts.update(name_parts(name))
    found.update(word for word in _stemming.stem(sorted(parts)) if len(word) >= _SHORTEST)
    return found


def distinctive_words(text: str) -> list[str]:
    """The stems of a text's words, each once, without stop words."""
    parts = [part for name in _NAME.findall(text) for part in name_parts(name)]
    wanted = [part for part in dict.fromkeys(parts) if part not in stop_words() and len(part) >= _SHORTEST]
    return list(dict.fromkeys(_stemming.stem(wanted)))
