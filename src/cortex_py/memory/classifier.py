"""Which entry of the ontology a text belongs to: embedding prototypes and lexical cues in one logistic model.

Each subcategory has a prototype vector, a weight per cue and per word, and an offset; the similarity of a text's
vector to the prototype, its cues, its words and the offset add up to a logit. Beside the listed cues there are thirteen
counted ones: how much the words of a text speak for each category, by a table made from labelled notes. A word counts
for more the rarer it is, and all words of a text together have length 1. A softmax over all subcategories gives their
probabilities, and a category has those of its subcategories together. The numbers live in `ontology_model.json`, made
by `bench/train_ontology.py`. Vectors come from the caller: nothing here embeds anything. The prototypes hold for one
embedding model only; with any other the cues and words decide alone, by weights of their own.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .cues import CUE_NAMES, Lexicon, default_lexicon
from .ontology import CATEGORIES, CATEGORY_NAMES, FALLBACK

__all__ = [
    "CATEGORY_FLOOR",
    "FEATURE_NAMES",
    "SUBCATEGORY_FLOOR",
    "SUBCATEGORY_NAMES",
    "WORD_SCALE",
    "Basis",
    "Classified",
    "Classifier",
    "CueModel",
    "OntologyModel",
    "VectorModel",
    "WordTable",
    "by_category",
    "default_model",
    "softmax",
]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Basis = Literal["vector", "cues"]

# A guess less likely than this is more often wrong than right by far: better to say that nothing is known.
CATEGORY_FLOOR = 0.2
# A subcategory is told when it is likelier right than wrong.
SUBCATEGORY_FLOOR = 0.5

SUBCATEGORY_NAMES: tuple[str, ...] = tuple(name for category in CATEGORIES for name, _ in category.subcategories)
# What the weights are for: the listed cues, and what the words say for each category.
FEATURE_NAMES: tuple[str, ...] = (*CUE_NAMES, *(f"words_of_{name}" for name in CATEGORY_NAMES))
WORD_SCALE = 32  # the table of words is stored in whole steps of 1/32, from -4 to 4
# Subcategories stand in the order of their categories, so those of one category begin here.
_STARTS = np.cumsum([0, *(len(category.subcategories) for category in CATEGORIES[:-1])])


@dataclass(frozen=True, slots=True)
class Classified:
    """What a text is about. `confidence` is the probability that the category is right.

    `basis` says what it rests on: the vector together with the cues, or the cues alone. Where nothing reaches
    `CATEGORY_FLOOR` the category is `general`, with the low confidence that this deserves.
    """

    category: str
    subcategory: str | None
    confidence: float
    basis: Basis


@dataclass(frozen=True, slots=True)
class WordTable:
    """How much likelier each category is, in logarithms, where a word is seen, and how rare that is: a row per word."""

    rows: Mapping[str, int]
    leanings: Floats
    rarity: Floats

    def known(self, stems: Iterable[str]) -> Places:
        """The rows of those words that the table has, in their order."""
        return np.array(sorted(row for stem in stems if (row := self.rows.get(stem)) is not None), np.intp)

    def leaning(self, known: Places) -> Floats:
        """What all words say together for each category; long texts do not shout."""
        if not known.size:
            return np.zeros(len(CATEGORY_NAMES))
        together: Floats = self.leanings[known].sum(axis=0) / math.sqrt(len(known))
        return together

    def shares(self, known: Places) -> NDArray[np.float32]:
        """How much each of the words counts, rare ones for more; together they have length 1."""
        rarity: Floats = self.rarity[known]
        return (rarity / max(math.sqrt(rarity @ rarity), 1e-9)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class CueModel:
    """Weights that read the cues and words alone: a row per subcategory; `words` has a row per word."""

    weights: Floats
    words: NDArray[np.float32]
    offsets: Floats
    temperature: float  # divides logits, so that the probabilities made of them come true

    def logits(self, found: Floats, said: NDArray[np.float32]) -> Floats:
        """One number per subcategory, for one note or for a row each; `said` is what its words add."""
        return found @ self.weights.T + said + self.offsets


@dataclass(frozen=True, slots=True)
class VectorModel:
    """Prototypes and cue weights: a row per subcategory. The length of a prototype is the weight of its likeness.

    `words` has a row per word.
    """

    fingerprint: str
    prototypes: Floats
    weights: Floats
    words: NDArray[np.float32]
    offsets: Floats
    temperature: float

    def logits(self, found: Floats, said: NDArray[np.float32], units: NDArray[Any]) -> Floats:
        """One number per subcategory, for one note or for a row each; vectors have length 1."""
        return units @ self.prototypes.T + found @ self.weights.T + said + self.offsets


@dataclass(frozen=True, slots=True)
class OntologyModel:
    """All that was learned, and what it was learned from."""

    with_vector: VectorModel
    cues_alone: CueModel
    lexicon: Lexicon
    words: WordTable
    provenance: Mapping[str, Any]

    def features(self, text: str) -> Floats:
        """The values of `FEATURE_NAMES` for a text."""
        return self.read(text)[0]

    def read(self, text: str) -> tuple[Floats, Places]:
        """The values of `FEATURE_NAMES` for a text, and the rows of its words in the table."""
        cues, stems = self.lexicon.read(text)
        known = self.words.known(stems)
        return np.concatenate([cues, self.words.leaning(known)]), known

    @classmethod
    def from_json(cls, text: str) -> OntologyModel:
        """The model in a file as `bench/train_ontology.py` writes it."""
        content = json.loads(text)
        vector, alone = content["with_vector"], content["cues_alone"]
        if vector["subcategories"] != list(SUBCATEGORY_NAMES) or alone["subcategories"] != list(SUBCATEGORY_NAMES):
            raise ValueError("the ontology model was made for another ontology: run bench/train_ontology.py")
        prototypes = np.stack([_prototype(vector["prototypes"][name]) for name in SUBCATEGORY_NAMES])
        return cls(
            with_vector=VectorModel(
                fingerprint=vector["fingerprint"],
                prototypes=prototypes * np.array(vector["likeness"])[:, None],
                weights=_weights(vector["cues"]),
                words=_word_weights(vector["words"]),
                offsets=np.array(vector["offsets"]),
                temperature=float(vector["temperature"]),
            ),
            cues_alone=CueModel(
                weights=_weights(alone["cues"]),
                words=_word_weights(alone["words"]),
                offsets=np.array(alone["offsets"]),
                temperature=float(alone["temperature"]),
            ),
            lexicon=default_lexicon(),
            words=_words(content["words"]),
            provenance=content["provenance"],
        )


class Classifier:
    """Classifies texts whose vectors come from one embedding model, named by its fingerprint."""

    def __init__(self, fingerprint: str, model: OntologyModel | None = None) -> None:
        self._model = model or default_model()
        self._reads_vectors = fingerprint == self._model.with_vector.fingerprint

    @property
    def reads_vectors(self) -> bool:
        """Whether the prototypes were made by the same embedding model; if not, the cues decide alone."""
        return self._reads_vectors

    def classify(self, text: str, vector: NDArray[np.float32] | None) -> Classified:
        """The entry that fits best. For a long text, the vector of its beginning serves."""
        (found, known), unit = self._model.read(text), self._unit(vector)
        shares = self._model.words.shares(known)
        if unit is None:
            alone = self._model.cues_alone
            said = shares @ alone.words[known]
            return _answer(by_category(softmax(alone.logits(found, said) / alone.temperature)), None)
        model = self._model.with_vector
        parts = softmax(model.logits(found, shares @ model.words[known], unit) / model.temperature)
        return _answer(by_category(parts), parts)

    def _unit(self, vector: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        if vector is None or not self._reads_vectors:
            return None
        expected = self._model.with_vector.prototypes.shape[1:]
        if vector.shape != expected:
            raise ValueError(f"the vector has shape {vector.shape}, those of this embedding model have {expected}")
        length = float(np.linalg.norm(vector))
        # A vector of zeros, or a broken one, points nowhere.
        return vector / np.float32(length) if 0.0 < length < np.inf else None


def by_category(parts: Floats) -> Floats:
    """Probabilities of categories from those of subcategories, which may have any leading dimensions."""
    together: Floats = np.add.reduceat(parts, _STARTS, axis=-1)
    return together


def softmax(logits: Floats) -> Floats:
    """Probabilities along the last dimension."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def _answer(probabilities: Floats, parts: Floats | None) -> Classified:
    best = int(np.argmax(probabilities))
    basis: Basis = "cues" if parts is None else "vector"
    if probabilities[best] < CATEGORY_FLOOR:
        return Classified(FALLBACK, None, float(probabilities[CATEGORY_NAMES.index(FALLBACK)]), basis)
    name = CATEGORY_NAMES[best]
    return Classified(name, None if parts is None else _subcategory(best, parts), float(probabilities[best]), basis)


def _subcategory(category: int, parts: Floats) -> str | None:
    start = int(_STARTS[category])
    own = parts[start : start + len(CATEGORIES[category].subcategories)]
    best = int(np.argmax(own))
    return SUBCATEGORY_NAMES[start + best] if own[best] >= SUBCATEGORY_FLOOR else None


def _weights(by_cue: Mapping[str, list[float]]) -> Floats:
    if tuple(by_cue) != FEATURE_NAMES:
        unlike = ", ".join(sorted(set(by_cue) ^ set(FEATURE_NAMES))) or "their order"
        raise ValueError(f"the ontology model was made with other cues ({unlike}): run bench/train_ontology.py")
    return np.array([by_cue[name] for name in FEATURE_NAMES]).T.copy()


def _words(stored: Mapping[str, str]) -> WordTable:
    stems = stored["stems"].split()
    steps = np.frombuffer(base64.b64decode(stored["leanings"]), dtype=np.int8).reshape(len(stems), len(CATEGORY_NAMES))
    rarity = np.frombuffer(base64.b64decode(stored["rarity"]), dtype=np.uint8)
    return WordTable(
        {stem: row for row, stem in enumerate(stems)},
        steps.astype(np.float64) / WORD_SCALE,
        rarity.astype(np.float64) / WORD_SCALE,
    )


def _word_weights(stored: Mapping[str, Any]) -> NDArray[np.float32]:
    steps = np.frombuffer(base64.b64decode(stored["steps"]), dtype=np.int8).reshape(-1, len(SUBCATEGORY_NAMES))
    return steps.astype(np.float32) * np.float32(stored["step"])


def _prototype(encoded: str) -> Floats:
    return np.frombuffer(base64.b64decode(encoded), dtype="<f2").astype(np.float64)


@lru_cache(maxsize=1)
def default_model() -> OntologyModel:
    """The model that ships with the package."""
    text = resources.files("cortex_py.memory").joinpath("ontology_model.json").read_text("utf-8")
    return OntologyModel.from_json(text)
