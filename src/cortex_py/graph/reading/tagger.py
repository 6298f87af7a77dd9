"""The tagger: a trained linear chain that marks the names in a sentence, with how sure it is.

Its weights were learned by python-crfsuite (`bench/train_entities.py`) and are applied here by numpy: what a word
contributes is added up once and kept, and all sentences of a text go through the chain together. It was learned on
finer types than are answered; the likelihoods of the finer types are added up.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .features import CLUSTERS, LEANINGS, Features, Tables
from .gazetteer import Gazetteer, listed_names
from .values import EntityType

__all__ = ["MODEL_FILE", "TYPES", "TYPE_OF", "WEIGHT_STEP", "Model", "Tagged", "Tagger", "shipped", "unpacked"]

MODEL_FILE = Path(__file__).with_name("tagger.bin")
WEIGHT_STEP = 64  # stored weights are sixty-fourths
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
_KEPT_WORDS = 20_000
_GAP = 2  # as far as a word's neighbours are looked at
_RESCALED = 4
_TINY = 1e-30

Floats = NDArray[np.float32]


class Tagged(NamedTuple):
    """A name in a sentence: from and to which word, its type, and how sure the chain is of its words."""

    first: int
    last: int
    type: EntityType
    likelihood: float


@dataclass(frozen=True, slots=True)
class Model:
    """What was learned."""

    labels: tuple[str, ...]
    rows: dict[str, int]  # of the features in `weights`
    weights: NDArray[np.int16]
    transitions: Floats
    tables: Tables
    eagerness: float  # by which factor "no name" is held less likely than the chain says
    calibration: tuple[tuple[float, float], ...]  # likelihoods, and the share of names found with it that are right
    provenance: dict[str, object]


class Tagger:
    """Applies a model; keeps what it worked out for words, up to a bound."""

    def __init__(self, model: Model, features: Features | None = None) -> None:
        self.model = model
        self.features = features or Features(model.tables, Gazetteer(listed_names()))
        self._lock = Lock()
        self._forget()
        weights = model.weights.astype(np.float32) / WEIGHT_STEP
        self._weights = np.concatenate([weights, np.zeros_like(weights[:1])])
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
        self._shapes: list[str] = [""]  # the first row is no word's: it stands for the edge of a sentence
        self._sums = np.zeros((256, 5, len(self.model.labels)), np.float32)

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[Tagged]]:
        """The names in each of the sentences."""
        return [self._read(likely) for likely in self.likelihoods(sentences)]

    def sure(self, likelihood: float) -> float:
        """The share of names found with such a likelihood that were right on sentences not learned from."""
        points = self.model.calibration
        if likelihood <= points[0][0]:
            return points[0][1]
        for (low, below), (high, above) in pairwise(points):
            if likelihood <= high:
                return round(below + (above - below) * (likelihood - low) / max(high - low, 1e-9), 3)
        return points[-1][1]

    def likelihoods(self, sentences: Sequence[Sequence[str]]) -> list[Floats]:
        """Of every label for every word."""
        if not sentences:
            return []
        with self._lock:  # what is kept of words is shared by all threads
            if len(self._places) > _KEPT_WORDS:
                self._forget()
            scores = self._scores(sentences)
        lengths = np.array([len(words) for words in sentences])
        longest, size = int(lengths.max()), len(self.model.labels)
        batch = np.zeros((longest, len(sentences), size), np.float32)
        flat = np.exp(scores - scores.max(axis=1, keepdims=True))
        ends = np.cumsum(lengths + _GAP).tolist()
        for number, (end, length) in enumerate(zip(ends, lengths.tolist(), strict=True)):
            batch[:length, number] = flat[end - length : end]
        # Sums are brought back to 1 every few steps: often enough for single precision, and far quicker.
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
        return [forward[:length, number] for number, length in enumerate(lengths.tolist())]

    def _read(self, likely: Floats) -> list[Tagged]:
        begins, continues = likely @ self._begins.T, likely @ self._continues.T
        by_type = begins + continues
        best = by_type.argmax(axis=1)
        chance = by_type.max(axis=1)
        named = chance > (1.0 - by_type.sum(axis=1)) * self.model.eagerness
        found: list[Tagged] = []
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
                found.append(Tagged(place, place + 1, TYPES[kind], float(chance[place])))
        return found

    def _scores(self, sentences: Sequence[Sequence[str]]) -> Floats:
        """Of every label for every word, the sentences one after another with a gap before each."""
        places: list[int] = []
        at: list[int] = []
        hits: list[int] = []
        rows, get, known, kept = self.model.rows, self.model.rows.get, self._places, self._shapes
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
            for place, features in self.features.phrases(words, lowered).items():
                for feature in features:
                    for where, named in ((place, feature), (place + 1, "-1" + feature), (place - 1, "+1" + feature)):
                        row = get(named)
                        if row is not None and 0 <= where < len(words):
                            at.append(start + where)
                            hits.append(row)
        row_of = np.array([0] * _GAP + places + [0] * _GAP)
        sums, count = self._sums, len(places)
        scores: Floats = sums[row_of[_GAP : _GAP + count], 0]
        for column, step in ((1, -1), (2, 1), (3, -2), (4, 2)):
            scores += sums[row_of[_GAP + step : _GAP + step + count], column]
        if hits:
            # Added up by place; `np.add.at` would do the same in five times the time.
            words_at = np.array(at)
            order = np.argsort(words_at, kind="stable")
            words_at = words_at[order]
            firsts = np.flatnonzero(np.concatenate(([True], words_at[1:] != words_at[:-1])))
            scores[words_at[firsts]] += np.add.reduceat(self._weights[np.array(hits)[order]], firsts, axis=0)
        return scores

    def _learn(self, word: str) -> int:
        place = len(self._shapes)
        if place == len(self._sums):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        own, near, far = self.features.of(word)
        groups = (
            own,
            ["-1" + name for name in near],
            ["+1" + name for name in near],
            ["-2" + name for name in far],
            ["+2" + name for name in far],
        )
        rows, nothing = self.model.rows, len(self._weights) - 1
        hits: list[int] = []
        firsts: list[int] = []
        for names in groups:
            firsts.append(len(hits))
            hits.append(nothing)  # a group must not be empty to be added up
            hits += [rows[name] for name in names if name in rows]
        np.add.reduceat(self._weights[hits], firsts, axis=0, out=self._sums[place])
        self._places[word] = place
        self._shapes.append("s=" + Features.shape(word))
        return place


def _answered(label: str) -> str:
    """The label with the type that is answered for it; other sorts are nothing to us."""
    return f"{label[0]}-{TYPE_OF[label[2:]]}" if label[2:] in TYPE_OF else "O"


def unpacked(data: bytes) -> Model:
    """The model of a file: a line that describes it, then its parts, compressed one after another."""
    line, _, rest = data.partition(b"\n")
    about = json.loads(line)
    content = zlib.decompress(rest)
    parts: dict[str, bytes] = {}
    for name, size in about["parts"].items():
        parts[name], content = content[:size], content[size:]
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
    return Model(
        labels,
        {name: row for row, name in enumerate(features)},
        weights,
        np.frombuffer(parts["transitions"], "<f4").reshape(len(labels), len(labels)).copy(),
        tables,
        about["eagerness"],
        tuple((known, right) for known, right in about["calibration"]),
        about["provenance"],
    )


@cache
def shipped() -> Tagger:
    """The tagger that comes with the package, read when first asked for."""
    return Tagger(unpacked(MODEL_FILE.read_bytes()))
