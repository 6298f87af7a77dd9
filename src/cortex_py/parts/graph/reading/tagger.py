"""The tagger: a linear-chain CRF that finds names in sentences, with a likelihood for each, beside a small network.

`train_entities.py` trains it with python-crfsuite; here numpy applies the weights. The contribution of each word
is computed once and cached, and all sentences of a text are processed together. The model has finer types than the
graph; the likelihoods of the finer types are summed.
"""

from __future__ import annotations

import json
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.graph_values import EntityType
from ....core.jobs import load_once
from ....core.store.search.vectors import single_threaded
from .network import Network, gazetteer_bits, load_network, word_flags
from .shapes import Gazetteer, listed_names

__all__ = [
    "LEANINGS", "LEANING_STEP", "MODEL_FILE", "NO_CLUSTER", "TYPES", "TYPE_OF", "WEIGHT_STEP", "Features", "Floats",
    "Tables", "TaggedName", "Tagger", "TaggerModel", "load_tagger", "unpack_model",
]  # fmt: skip

# Features of a word, its neighbours and its phrase. Those of one word alone are separate, so that their weights are
# summed once. Words outside the training data are known by clusters (words used alike) and by leanings (to a type).

CLUSTERS = ("f64", "f256", "f1024", "c64", "c256", "c1024")  # whole words by meaning, pieces by use
NO_CLUSTER = 65_535
LEANINGS = ("Technology", "Concept", "File", "Person", "Organization", "other", "none")
LEANING_STEP = 16  # leanings are stored as sixteenths of the spread over the training words
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
Listed = tuple[int, int, list[tuple[str, bool]]]  # a listed name: start, end, and its kinds


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables over the embedding model's vocabulary, by which words outside the training data are known."""

    rows: Mapping[str, int]  # of words and pieces in the arrays below
    clusters: NDArray[np.uint16]
    by_piece: NDArray[np.int8]  # leanings of a piece; a word's are the mean of its pieces'
    by_word: NDArray[np.int8]  # leanings of whole words
    languages: frozenset[str]
    extensions: frozenset[str]
    modules: frozenset[str]


def _spelling(word: str, shape: str) -> list[str]:
    signs = {
        "hasd": "d" in shape and _DIGIT.search(word),
        "up": word.isupper(),
        "cap": word[:1].isupper(),
        "camel": _CAMEL.search(word),
    }
    return [name for name, present in signs.items() if present]


@dataclass(frozen=True, slots=True)
class Features:
    """Computes features. In training, `held_out` replaces leanings that the tables learned from the same words."""

    tables: Tables
    gazetteer: Gazetteer
    held_out: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64] | None]] = field(default_factory=dict)

    def of(self, word: str) -> tuple[list[str], list[str], list[str]]:
        """The features of a word by itself, as a neighbour, and at a distance of two."""
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
        found += _spelling(word, shape)
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

    @staticmethod
    def phrases(listed: Iterable[Listed]) -> dict[int, list[str]]:
        """The features of listed names that the gazetteer found, by position."""
        found: dict[int, list[str]] = {}
        for first, last, kinds in listed:
            length = "1" if last - first == 1 else "2"
            for kind, exact in kinds:
                for place in range(first, last):
                    where = "B" if place == first else "I"
                    found.setdefault(place, []).extend((f"gz{'=' if exact else '~'}{where}{length}{kind}", f"gz{kind}"))
        return found

    @staticmethod
    def pairs(lowered: Sequence[str], shapes: Sequence[str], place: int) -> tuple[str, ...]:
        """The features of a word together with its neighbours."""
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
        """The rows of the longest known pieces of a word."""
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
        """The leanings to each type of name: by the word's pieces, and by the whole word if the vocabulary has it."""
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


MODEL_FILE = Path(__file__).with_name("tagger.bin")
WEIGHT_STEP = 64  # weights are stored as sixty-fourths
TYPES: tuple[EntityType, ...] = ("Technology", "Concept", "File", "Person", "Organization")
TYPE_OF: dict[str, EntityType] = {
    "Library": "Technology",
    "Language": "Technology",
    "Application": "Technology",
    "Operating_System": "Technology",
    "Device": "Technology",
    "Website": "Technology",
    "File_Name": "File",
    "Organization": "Organization",
    "User_Name": "Person",
    "Algorithm": "Concept",
    "Data_Structure": "Concept",
    "Data_Type": "Concept",
    "HTML_XML_Tag": "Concept",
    "File_Type": "Concept",
    "User_Interface_Element": "Concept",
}
_KEPT_WORDS = 16_000  # about 20 MB; of 934,000 words of chats 5% are computed again, with 20,000 4%
_GAP = 2  # the distance of the farthest neighbour
_RESCALED = 4
_TINY = 1e-30

Floats = NDArray[np.float32]


class TaggedName(NamedTuple):
    """A name in a sentence: its words, its type, and the likelihood."""

    first: int
    last: int
    type: EntityType
    likelihood: float


@dataclass(frozen=True, slots=True)
class TaggerModel:
    """The trained model."""

    labels: tuple[str, ...]
    rows: dict[str, int]  # of the features in `weights`
    weights: NDArray[np.int16]
    transitions: Floats
    tables: Tables
    eagerness: float  # the factor that makes "no name" less likely
    calibration: tuple[tuple[float, float], ...]  # likelihoods, and the precision of names found with each
    provenance: dict[str, object]


class Tagger:
    """Applies a model, and caches what it computes for words."""

    def __init__(self, model: TaggerModel, features: Features | None = None, network: Network | None = None) -> None:
        self.model = model
        self.network = network
        self.eagerness = network.eagerness if network else model.eagerness
        self.calibration = network.calibration if network else model.calibration
        self.features = features or Features(model.tables, Gazetteer(listed_names()))
        self._lock = Lock()
        self._forget()
        # In steps, as stored: half the memory, and sums of whole steps are exact.
        self._weights = model.weights
        self._transitions = np.exp(model.transitions)
        self._back = np.ascontiguousarray(self._transitions.T)
        self._begins, self._continues = (
            np.array(
                [[label == f"{mark}-{name}" for label in map(_answered, model.labels)] for name in TYPES], np.float32
            )
            for mark in "BI"
        )

    def _forget(self) -> None:
        self._places: dict[str, int] = {}
        self._shapes: list[str] = [""]  # the first row is the edge of a sentence
        # Rows for all words at once: arrays that grow leave holes in memory, and rows that are not used take none.
        rows = _KEPT_WORDS + _KEPT_WORDS // 16
        self._sums = np.zeros((rows, 5, len(self.model.labels)), np.float32)
        self._states = np.zeros((rows, self.network.word_offsets.size if self.network else 0), np.float32)

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[TaggedName]]:
        """The names in each of the sentences."""
        return [self.read(likely) for likely in self.likelihoods(sentences)]

    def sure(self, likelihood: float) -> float:
        """The precision of names with such a likelihood on held-out sentences."""
        points = self.calibration
        if likelihood <= points[0][0]:
            return points[0][1]
        for (low, below), (high, above) in pairwise(points):
            if likelihood <= high:
                return round(below + (above - below) * (likelihood - low) / max(high - low, 1e-9), 3)
        return points[-1][1]

    # The matrices are small: a second thread costs more than it does.
    @single_threaded()
    def likelihoods(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """The likelihood of every label for every word."""
        if not sentences:
            return []
        with self._lock:  # all threads share the cache
            if len(self._places) > _KEPT_WORDS:
                self._forget()
            scores, places, listed = self._scores(sentences)
            states = self._states[places]
        lengths = np.array([len(words) for words in sentences])
        longest, size = int(lengths.max()), len(self.model.labels)
        batch = np.zeros((longest, len(sentences), size), np.float32)
        flat = np.exp(scores - scores.max(axis=1, keepdims=True))
        ends = np.cumsum(lengths + _GAP).tolist()
        for number, (end, length) in enumerate(zip(ends, lengths.tolist(), strict=True)):
            batch[:length, number] = flat[end - length : end]
        # Rescaling every few steps is enough for single precision and much faster.
        forward = np.empty_like(batch)
        forward[0] = batch[0]
        for step in range(1, longest):
            moved = np.matmul(forward[step - 1], self._transitions, out=forward[step])
            moved *= batch[step]
            if step % _RESCALED == 0:
                moved /= np.maximum(moved.sum(axis=1, keepdims=True), _TINY)
        backward = np.ones_like(batch)
        short = int(lengths.min())
        for step in range(longest - 2, -1, -1):
            moved = np.matmul(backward[step + 1] * batch[step + 1], self._back, out=backward[step])
            if step % _RESCALED == 0:
                moved /= np.maximum(moved.sum(axis=1, keepdims=True), _TINY)
            if step + 1 >= short:
                moved[lengths <= step + 1] = 1.0
        forward *= backward
        forward /= np.maximum(forward.sum(axis=2, keepdims=True), _TINY)
        by_chain = [forward[:length, number] for number, length in enumerate(lengths.tolist())]
        if self.network is None:
            return by_chain
        by_network = self.network.log_likelihoods(states, listed, places > 0)
        return [
            _joined(chain, by_network[end - length : end], self.network.share)
            for chain, end, length in zip(by_chain, ends, lengths.tolist(), strict=True)
        ]

    def by_type(self, likely: Floats) -> Floats:
        """The likelihood of each of TYPES for each word of a sentence."""
        return likely @ (self._begins + self._continues).T

    def read(self, likely: Floats) -> list[TaggedName]:
        """The names of a sentence, by the likelihoods of its words."""
        begins, continues = likely @ self._begins.T, likely @ self._continues.T
        by_type = begins + continues
        best = by_type.argmax(axis=1)
        chance = by_type.max(axis=1)
        named = chance > (1.0 - by_type.sum(axis=1)) * self.eagerness
        found: list[TaggedName] = []
        for place in np.flatnonzero(named).tolist():
            kind = int(best[place])
            joined = (
                found
                and found[-1].last == place
                and found[-1].type == TYPES[kind]
                and continues[place, kind] >= begins[place, kind]
            )
            if joined:
                before = found[-1]
                found[-1] = before._replace(last=place + 1, likelihood=min(before.likelihood, float(chance[place])))
            else:
                found.append(TaggedName(place, place + 1, TYPES[kind], float(chance[place])))
        return found

    def _scores(self, sentences: Sequence[Sequence[str]]) -> tuple[Floats, NDArray[np.int64], list[tuple[int, int]]]:
        """The score of every label for every word, with a gap before each sentence.

        With the words' places in the cache, 0 in the gaps, and the inputs of the network that listed names set.
        """
        places: list[int] = []
        at: list[int] = []
        hits: list[int] = []
        bits: list[tuple[int, int]] = []
        rows, known, kept = self.model.rows, self._places, self._shapes
        for words in sentences:
            places += [0] * _GAP
            start = len(places)
            for word in words:
                place = known.get(word)
                places.append(self._learn(word) if place is None else place)
            lowered = [word.lower() for word in words]
            shapes = [kept[place] for place in places[start:]]
            for place in range(len(words)):
                for feature in Features.pairs(lowered, shapes, place):
                    if feature in rows:
                        at.append(start + place)
                        hits.append(rows[feature])
            listed = list(self.features.gazetteer.matches(words, lowered))
            for where, row in self._phrase_hits(listed, len(words)):
                at.append(start + where)
                hits.append(row)
            bits += (
                (start + place, bit)
                for first, last, kinds in listed
                for place in range(first, last)
                for bit in gazetteer_bits(kinds, place == first)
            )
        row_of = np.array([0] * _GAP + places + [0] * _GAP)
        sums, count = self._sums, len(places)
        scores: Floats = sums[row_of[_GAP : _GAP + count], 0]
        for column, step in ((1, -1), (2, 1), (3, -2), (4, 2)):
            scores += sums[row_of[_GAP + step : _GAP + step + count], column]
        if hits:
            # Summed by position; `np.add.at` would take five times as long.
            words_at = np.array(at)
            order = np.argsort(words_at, kind="stable")
            words_at = words_at[order]
            firsts = np.flatnonzero(np.concatenate(([True], words_at[1:] != words_at[:-1])))
            scores[words_at[firsts]] += self._summed(np.array(hits)[order], firsts)
        return scores, row_of[_GAP : _GAP + count], bits

    def _summed(self, rows: Sequence[int] | NDArray[np.int64], firsts: Sequence[int] | NDArray[np.int64]) -> Floats:
        """The sums of groups of weights; `firsts` are where the groups begin."""
        found: Floats = np.add.reduceat(self._weights[rows], firsts, axis=0, dtype=np.float32)
        found /= WEIGHT_STEP
        return found

    def _phrase_hits(self, listed: Sequence[Listed], size: int) -> Iterator[tuple[int, int]]:
        """The weights that listed names add: the word, and the row of the weights."""
        for place, features in self.features.phrases(listed).items():
            for feature in features:
                for where, named in ((place, feature), (place + 1, "-1" + feature), (place - 1, "+1" + feature)):
                    row = self.model.rows.get(named)
                    if row is not None and 0 <= where < size:
                        yield where, row

    def _learn(self, word: str) -> int:
        place = len(self._shapes)
        if place == len(self._sums):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
            self._states = np.concatenate([self._states, np.zeros_like(self._states)])
        own, near, far = self.features.of(word)
        groups = (
            own,
            ["-1" + name for name in near],
            ["+1" + name for name in near],
            ["-2" + name for name in far],
            ["+2" + name for name in far],
        )
        rows = self.model.rows
        hits: list[int] = []
        firsts: list[int] = []
        filled: list[int] = []  # `reduceat` needs non-empty groups
        for number, names in enumerate(groups):
            known = [rows[name] for name in names if name in rows]
            if known:
                filled.append(number)
                firsts.append(len(hits))
                hits += known
        if hits:
            self._sums[place, filled] = self._summed(hits, firsts)
        if self.network is not None:
            low, tables = word.lower(), self.model.tables
            flags = word_flags(word, low in tables.languages, low in tables.modules)
            self._states[place] = self.network.of_word(word, self.features.pieces(low), flags)
        self._places[word] = place
        self._shapes.append("s=" + Features.shape(word))
        return place


def _joined(chain: Floats, network: Floats, share: float) -> Floats:
    """The likelihoods of both together; `network` has logarithms."""
    joined: Floats = ((1 - share) * chain + share * np.exp(network)).astype(np.float32)
    return joined


def _answered(label: str) -> str:
    """The label with the graph's type, or "O" for other types."""
    return f"{label[0]}-{TYPE_OF[label[2:]]}" if label[2:] in TYPE_OF else "O"


def unpack_model(data: bytes) -> TaggerModel:
    """Read a model file: a line of JSON, then the compressed parts."""
    line, _, rest = data.partition(b"\n")
    about = json.loads(line)
    content, past = zlib.decompress(rest), 0
    parts: dict[str, bytes] = {}
    for name, size in about["parts"].items():
        parts[name] = content[past : past + size]
        past += size
    del content, rest, data
    labels = tuple(about["labels"])
    features = parts["features"].decode().split("\n")
    counts = np.frombuffer(parts["counts"], np.uint8)
    weights = np.zeros((len(features), len(labels)), np.int16)
    at = np.repeat(np.arange(len(features)), counts)
    weights[at, np.frombuffer(parts["places"], np.uint8)] = np.frombuffer(parts["weights"], "<i2")
    words = parts["vocabulary"].decode().split("\n")
    tables = Tables(
        {word: row for row, word in enumerate(words)},
        np.frombuffer(parts["clusters"], "<u2").reshape(len(CLUSTERS), -1).T.copy(),
        np.frombuffer(parts["by_piece"], np.int8).reshape(len(LEANINGS), -1).T.copy(),
        np.frombuffer(parts["by_word"], np.int8).reshape(len(LEANINGS), -1).T.copy(),
        *(frozenset(about[name]) for name in ("languages", "extensions", "modules")),
    )
    return TaggerModel(
        labels,
        {name: row for row, name in enumerate(features)},
        weights,
        np.frombuffer(parts["transitions"], "<f4").reshape(len(labels), len(labels)).copy(),
        tables,
        about["eagerness"],
        tuple((known, right) for known, right in about["calibration"]),
        about["provenance"],
    )


@load_once
def load_tagger() -> Tagger:
    """The tagger of the package, loaded when first needed."""
    return Tagger(unpack_model(MODEL_FILE.read_bytes()), network=load_network())
