"""Features: what the tagger sees of a word, of its neighbours and of the phrase it belongs to.

Everything that depends on one word alone is made per word, so that a reader may add up its weights once and keep
the sum. Words the training never saw are known by their pieces: tables over the embedding model's vocabulary tell
which words are used alike (clusters) and which sort of name a word leans to (leanings).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .gazetteer import Gazetteer

__all__ = ["CLUSTERS", "LEANINGS", "LEANING_STEP", "NO_CLUSTER", "Features", "Tables"]

CLUSTERS = ("f64", "f256", "f1024", "c64", "c256", "c1024")  # of whole words by meaning, of pieces by use
NO_CLUSTER = 65_535
LEANINGS = ("Technology", "Concept", "File", "Person", "Organization", "other", "none")
LEANING_STEP = 16  # stored leanings are sixteenths of the spread over the training's words
NO_LEANING = -128
_BARS = (-1.5, -0.75, 0.0, 0.75, 1.5, 2.5, 4.0)
_NEAR_BARS = (">0.75", ">2.5")

_PASSED = {(name, n): [f"{name}{n}>{bar:g}" for bar in _BARS] for name in "lm" for n in range(len(LEANINGS))}

_UPPER, _LOWER, _DIGIT = re.compile(r"[A-Z]"), re.compile(r"[a-zà-ÿ]"), re.compile(r"\d")
_REPEATED = re.compile(r"(.)\1+")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_RUN = re.compile(r"[a-z0-9]+")
_NOT_ALNUM = re.compile(r"[^a-z0-9]")
_LETTER = re.compile(r"[a-z]")
_CAMEL = re.compile(r"[a-z][A-Z]")
_EXTENSION = re.compile(r"\.(\w+)$")
_SIGNS = "_(/-"
_LONGEST_WORD = 40


@dataclass(frozen=True, slots=True)
class Tables:
    """What is known of words before any sentence is read."""

    rows: Mapping[str, int]  # of the vocabulary's words and pieces in the arrays below
    clusters: NDArray[np.uint16]
    by_piece: NDArray[np.int8]  # leanings of a piece; a word's are the mean of its pieces'
    by_word: NDArray[np.int8]  # leanings of whole words
    languages: frozenset[str]
    extensions: frozenset[str]
    modules: frozenset[str]


@dataclass(frozen=True, slots=True)
class Features:
    """Makes the features. `held_out` gives leanings for words in place of the tables', which know them too well."""

    tables: Tables
    gazetteer: Gazetteer
    held_out: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64] | None]] = field(default_factory=dict)

    def of(self, word: str) -> tuple[list[str], list[str], list[str]]:
        """Of the word itself, of it as the neighbour of another, and of it two places away."""
        low, shape = word.lower(), _shape(word)
        pieces = self.pieces(low)
        clusters, leanings = self._clusters(low), self._leanings(low, pieces)
        short = _REPEATED.sub(r"\1", shape)
        size = len(low)
        found = ["w=" + low, "W=" + word, "s=" + short, "S=" + shape[:12], "b", f"n={min(size, 12)}"]
        for length in range(1, min(5, size)):
            found += (f"p{length}=" + low[:length], f"e{length}=" + low[-length:])
        if low in self.tables.languages:
            found.append("lang")
        if low in self.tables.modules:
            found.append("std")
        if ending := _EXTENSION.search(low):
            found.append("ext" if ending[1] in self.tables.extensions else "dot")
        if "." in word[1:-1]:
            found.append("has.")
        found += ["has" + sign for sign in _SIGNS if sign in word]
        if "d" in shape and _DIGIT.search(word):
            found.append("hasd")
        if word.isupper():
            found.append("up")
        if word[:1].isupper():
            found.append("cap")
        if _CAMEL.search(word):
            found.append("camel")
        parts = [part.lower() for part in _PART.findall(word)]
        if len(parts) > 1 or (parts and parts[0] != low):
            found += ["pc=" + part for part in parts[:6]]
            found += ("firstpc=" + parts[0], "lastpc=" + parts[-1])
        found.append("sg=" + (low[:-1] if size > 3 and low.endswith("s") else low))
        found += clusters
        found += leanings
        if low not in self.tables.rows:
            found += self._of_pieces(pieces, parts)
        near = ["w=" + low, "s=" + short[:8], "e3=" + low[-3:]]
        if low in self.tables.languages:
            near.append("lang")
        near += [name for name in leanings if name.endswith(_NEAR_BARS)]
        return found, near + clusters, ["w=" + low, "s=" + short[:4], clusters[0]]

    def phrases(self, words: Sequence[str], lowered: Sequence[str]) -> dict[int, list[str]]:
        """Of the listed names that the words spell, by place."""
        found: dict[int, list[str]] = {}
        for first, last, listed in self.gazetteer.matches(words, lowered):
            length = "1" if last - first == 1 else "2"
            for kind, exact in listed:
                for place in range(first, last):
                    where = "B" if place == first else "I"
                    found.setdefault(place, []).extend((f"gz{'=' if exact else '~'}{where}{length}{kind}", f"gz{kind}"))
        return found

    @staticmethod
    def pairs(lowered: Sequence[str], shapes: Sequence[str], place: int) -> tuple[str, ...]:
        """Of the word together with its neighbours."""
        here, last = lowered[place], len(lowered) - 1
        before = lowered[place - 1] if place else ""
        after = lowered[place + 1] if place < last else ""
        return (
            f"-1|0={before}|{here}" if place else "BOS",
            f"-1|s={before}|{shapes[place]}" if place else "",
            f"0|+1={here}|{after}" if place < last else "EOS",
            f"s|+1={shapes[place]}|{after}" if place < last else "",
            f"-1|+1={before}|{after}" if 0 < place < last else "",
            f"-2|-1={lowered[place - 2]}|{before}" if place > 1 else "BOS2",
            f"+1|+2={after}|{lowered[place + 2]}" if place < last - 1 else "EOS2",
        )

    @staticmethod
    def shape(word: str) -> str:
        return _REPEATED.sub(r"\1", _shape(word))

    def pieces(self, low: str) -> list[int]:
        """Rows of the longest known pieces that spell the word's letters and digits."""
        rows, found = self.tables.rows, []
        for run in _RUN.findall(low[:_LONGEST_WORD]):
            first = 0
            while first < len(run):
                for last in range(len(run), first, -1):
                    row = rows.get(("##" if first else "") + run[first:last])
                    if row is not None:
                        found.append(row)
                        break
                else:
                    last = first + 1
                first = last
        return found

    def _clusters(self, low: str) -> list[str]:
        rows = self.tables.rows
        row = rows.get(low)
        if row is None:
            row = rows.get(_NOT_ALNUM.sub("", low))
        if row is None and low.endswith("s"):
            row = rows.get(low[:-1])
        return ["c?"] if row is None else self._named(row)

    def _named(self, row: int) -> list[str]:
        numbers = self.tables.clusters[row].tolist()
        return [f"{name}={n}" for name, n in zip(CLUSTERS, numbers, strict=True) if n != NO_CLUSTER]

    def _leanings(self, low: str, pieces: Sequence[int]) -> list[str]:
        if not _LETTER.search(low):
            return []
        found: list[str] = []
        for name, values in zip("lm", self.leanings(low, pieces), strict=True):
            if values is not None:
                for number, value in enumerate(values.tolist()):
                    found += _PASSED[name, number][: bisect_left(_BARS, value)]
        return found

    def leanings(
        self, low: str, pieces: Sequence[int] | None = None
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """To each sort of name: by the word's pieces, and by the word as a whole where it is in the vocabulary."""
        if (held := self.held_out.get(low)) is not None:
            return held
        tables = self.tables
        if pieces is None:
            pieces = self.pieces(low)
        by_piece = (
            tables.by_piece[pieces].sum(axis=0, dtype=np.int64) / (LEANING_STEP * len(pieces)) if pieces else None
        )
        row = tables.rows.get(low)
        known = row is not None and tables.by_word[row, 0] != NO_LEANING
        return by_piece, tables.by_word[row] / LEANING_STEP if known else None

    def _of_pieces(self, pieces: Sequence[int], parts: Sequence[str]) -> list[str]:
        found: list[str] = []
        if pieces:
            found += ["cp" + name for name in self._named(pieces[0])[:2]]
            if len(pieces) > 1:
                found += ["ce" + name for name in self._named(pieces[-1])[-3:]]
        if len(parts) > 1:
            rows = (self.tables.rows.get(part) for part in (parts[0], parts[-1]))
            found += ["cq" + name for row in rows if row is not None for name in self._named(row)[:2]]
        return found


def _shape(word: str) -> str:
    return _DIGIT.sub("d", _LOWER.sub("x", _UPPER.sub("X", word)))
