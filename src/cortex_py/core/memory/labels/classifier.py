"""The classifier: which entry of the ontology a text belongs to, and the labels that records get from it.

One logistic model reads the vector of a text, its lexical cues and its words. Each subcategory has a prototype vector,
a weight per cue and per word, and an offset; the similarity to the prototype and the weighted cues and words add up to
a logit. Thirteen more cues say how much the words of a text suggest each category, by a table made from labelled notes.
Rare words count for more, and the words of a text are normalised to length 1. A softmax over all subcategories gives
their probabilities; a category has the sum of those of its subcategories.

`train_ontology.py` writes the coefficients to `ontology_model.json`. The prototypes are valid for one embedding
model; with any other one, cues and words decide alone, by a second set of weights.
"""

from __future__ import annotations

import base64
import json
import math
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...embedding.backends.backend import Backend
from ...jobs import load_once
from ...lazy import regex
from ...records import NewMemory
from ...store.rows import IndexedRecord
from ...store.search.vectors import single_threaded
from ..text import stem
from .ontology import CATEGORIES, CATEGORY_NAMES, FALLBACK

__all__ = [
    "BY_CATEGORY", "BY_SUBCATEGORY", "CATEGORY_FLOOR", "FEATURE_NAMES", "FILING_FLOOR", "SUBCATEGORY_NAMES",
    "WORD_SCALE", "Classification", "Classifier", "CueModel", "Labeller", "Lexicon", "OntologyModel", "VectorModel",
    "WordTable", "by_category", "cues_digest", "default_lexicon", "default_model", "namespace_for", "softmax",
]  # fmt: skip

# -- lexical cues: word groups in several languages, and shapes such as error names, measures and code
# A cue only says that something occurs; `training/ontology/train_ontology.py` learns what it is worth for a category.
# `cue_words.json` lists the words of each group, and translations by English headword; a translation belongs to the
# groups of its headword. Case, accents and English endings do not matter, so other inflected forms are listed one by
# one. Two words joined by `_` stand for that pair in a row.

HEAD = 1200  # characters that are read: about as many as the embedding model reads
_OPENING = 3  # tokens at the start, where people announce what follows
_UNSPACED_OPENING = 12  # the same in characters, for scripts without spaces

_TABLES = json.loads(Path(__file__).with_name("cue_words.json").read_text("utf-8"))
_GROUPS: dict[str, list[str]] = _TABLES["groups"]
_TRANSLATIONS: dict[str, list[str]] = _TABLES["translations"]

# Shapes of one token between spaces: those with a digit, and others. Plain words are not tested.
_DIGIT_SHAPES: dict[str, str] = _TABLES["digit_shapes"]
_SHAPES: dict[str, str] = _TABLES["shapes"]
# A unit is often separated from its number by a space ("820 ms") and is then a token of its own.
_UNITS = {name: tuple(units) for name, units in _TABLES["units"].items()}
_WHOLE = ("asks", "opens_with_question_word", "brief", "long")

CUE_NAMES: tuple[str, ...] = (*_GROUPS, *(f"opens_with_{name}" for name in _GROUPS), *_DIGIT_SHAPES, *_SHAPES, *_WHOLE)

_AT = {name: number for number, name in enumerate(CUE_NAMES)}
_DIGIT_PATTERNS = tuple((_AT[name], regex(pattern)) for name, pattern in _DIGIT_SHAPES.items())
_PATTERNS = tuple((_AT[name], regex(pattern)) for name, pattern in _SHAPES.items())
_DIGIT = regex(r"[0-9]")
_UNIT_CUES = {unit: _AT[name] for name, units in _UNITS.items() for unit in units}
_TOKEN = regex(r"[^\W_]+(?:['’./+\-][^\W_]+)*")
_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])")
_UNSPACED = regex(r"[\u3040-\u30ff\u3400-\u9fff]")
_QUESTION_WORD = regex(r"\W*(?:how|what|which|why|where|who|when|can|could|should|is|are|does|do|was|warum|wie)\b")


@dataclass(frozen=True, slots=True)
class _Token:
    """The cues and stems of one token between spaces, and what its neighbours need from it."""

    seen: tuple[int, ...]
    stems: tuple[str, ...]
    first: str
    last: str
    ends_in_digit: bool


_NOTHING = _Token((), (), "", "", False)


class _Tokens(dict[str, _Token]):
    """A bounded cache of tokens: most words of a note occurred in earlier notes."""

    def __init__(self, read: Callable[[str], _Token]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, raw: str) -> _Token:
        token = self._read(raw)
        if len(raw) <= 32:
            if len(self) >= 1 << 14:
                self.clear()
            self[raw] = token
        return token


class Lexicon:
    """Reads the cues of texts, with all listed words or only those `among` some entries. Thread-safe.

    The entry of a word is its stem, or the stems of a pair; that of a translation is the entry of its headword.
    """

    def __init__(self, among: Container[str] | None = None) -> None:
        self._words: dict[str, tuple[int, ...]] = {}
        # By the first word of the pair, then by the second.
        self._pairs: dict[str, dict[str, tuple[int, ...]]] = {}
        self._unspaced: dict[str, tuple[int, ...]] = {}
        self._entries: dict[str, str] = {}
        self._tokens = _Tokens(self._read)
        groups: dict[str, tuple[int, ...]] = {}
        for cue, listed in enumerate(_GROUPS.values()):
            for entry in map(_entry, listed):
                groups[entry] = (*groups.get(entry, ()), cue)
        for entry, cues in groups.items():
            if among is None or entry in among:
                self._add(entry, entry, cues)
        for headword, listed in _TRANSLATIONS.items():
            entry = _entry(headword)
            if among is None or entry in among:
                for word in listed:
                    self._add(_entry(word), entry, groups[entry])

    def _add(self, form: str, entry: str, cues: tuple[int, ...]) -> None:
        self._entries.setdefault(form, entry)
        first, _, second = form.partition("_")
        if _UNSPACED.search(form):
            self._unspaced[form] = tuple({*self._unspaced.get(form, ()), *cues})
        elif second:
            after = self._pairs.setdefault(first, {})
            after[second] = tuple({*after.get(second, ()), *cues})
        else:
            self._words[form] = tuple({*self._words.get(form, ()), *cues})

    def cues(self, text: str) -> NDArray[np.float64]:
        """How strongly each of `CUE_NAMES` occurs in a text, from 0 to 2; any string is valid."""
        return self.read(text)[0]

    def read(self, text: str) -> tuple[NDArray[np.float64], set[str]]:
        """The cues of a text, and the stems of all its words, listed or not."""
        stems: list[str] = []
        head = text[:HEAD].strip()
        found = [0.0] * len(CUE_NAMES)
        asks = head.endswith(("?", "？"))
        if not head.isascii() and _UNSPACED.search(head):
            for piece, seen in self._unspaced.items():
                place = head.find(piece)
                for cue in seen if place >= 0 else ():
                    found[cue] += 1
                    found[len(_GROUPS) + cue] += place < _UNSPACED_OPENING
            head = _UNSPACED.sub(" ", head)
        before = _NOTHING
        for place, raw in enumerate(head.split()):
            token = self._tokens[raw]
            seen = token.seen
            if before.last in self._pairs:
                seen += self._pairs[before.last].get(token.first, ())
            for cue in seen:
                found[cue] += 1
                if place < _OPENING and cue < len(_GROUPS):
                    found[len(_GROUPS) + cue] += 1
            if before.ends_in_digit and (unit := _UNIT_CUES.get(raw.rstrip(".,;:)"))) is not None:
                found[unit] += 1
            stems += token.stems
            before = token
        count = len(stems)
        # A second occurrence adds less than the first, and a tenth adds nothing.
        result = np.minimum(np.sqrt(found), 2.0)
        opens = "?" in head and _QUESTION_WORD.match(head.lower()) is not None
        result[-len(_WHOLE) :] = float(asks), float(opens), max(0.0, 1.0 - count / 12), min(2.0, count / 40)
        return result, set(stems)

    def entries(self, text: str) -> Iterator[str]:
        """The entries of the words in a text, possibly repeated, as `among` takes them."""
        head = text[:HEAD]
        yield from (self._entries[piece] for piece in self._unspaced if piece in head)
        stems = [stem for raw in _UNSPACED.sub(" ", head).split() for stem in _stems(raw)]
        yield from (self._entries[stem] for stem in stems if stem in self._words)
        pairs = ((first, second) for first, second in pairwise(stems) if second in self._pairs.get(first, ()))
        yield from (self._entries["_".join(pair)] for pair in pairs)

    def _read(self, raw: str) -> _Token:
        stems = _stems(raw)
        seen = [cue for stem in stems for cue in self._words.get(stem, ())]
        seen += [cue for first, second in pairwise(stems) for cue in self._pairs.get(first, {}).get(second, ())]
        bare = raw.rstrip(".,;:?")
        if not bare.isalpha() or not bare[1:].islower():
            patterns = _DIGIT_PATTERNS + _PATTERNS if _DIGIT.search(raw) else _PATTERNS
            seen += [cue for cue, pattern in patterns if pattern.search(raw)]
        first, last = (stems[0], stems[-1]) if stems else ("", "")
        return _Token(tuple(seen), tuple(stems), first, last, raw[-1:].isdigit())


@load_once
def default_lexicon() -> Lexicon:
    """The lexicon of all listed words."""
    return Lexicon()


def cues_digest() -> str:
    """A digest of all cue definitions: learned weights are valid for one set of definitions only."""
    defined = (_GROUPS, _TRANSLATIONS, _DIGIT_SHAPES, _SHAPES, _UNITS, CUE_NAMES, HEAD, _OPENING, _UNSPACED_OPENING)
    return sha256(repr(defined).encode()).hexdigest()[:16]


def _entry(word: str) -> str:
    return word if _UNSPACED.search(word) else "_".join(_stems(part)[0] for part in word.split("_"))


def _stems(raw: str) -> list[str]:
    """The stems of a token, or of the parts of an identifier."""
    if raw.isascii() and raw.isalpha() and raw.islower():
        return [stem(raw)]
    parts = _HUMP.sub(" ", raw.replace("_", " "))
    return [stem(word) for word in _TOKEN.findall(_plain(parts))]


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Basis = Literal["vector", "cues"]

# Below this probability a category is mostly wrong; the answer is then `general`.
CATEGORY_FLOOR = 0.2
# A subcategory is reported if it is more likely right than wrong.
SUBCATEGORY_FLOOR = 0.5

SUBCATEGORY_NAMES: tuple[str, ...] = tuple(name for category in CATEGORIES for name, _ in category.subcategories)
# What has a weight: the listed cues, and what the words suggest for each category.
FEATURE_NAMES: tuple[str, ...] = (*CUE_NAMES, *(f"words_of_{name}" for name in CATEGORY_NAMES))
WORD_SCALE = 32  # the table of words is stored in steps of 1/32, from -4 to 4
# The first subcategory of each category; subcategories are in the order of their categories.
_STARTS = np.cumsum([0, *(len(category.subcategories) for category in CATEGORIES[:-1])])


@dataclass(frozen=True, slots=True)
class Classification:
    """What a text is about. `confidence` is the probability that the category is right.

    `basis` says whether the vector and the cues decided, or the cues alone. If no category reaches `CATEGORY_FLOOR`,
    the category is `general`, with its own low confidence.
    """

    category: str
    subcategory: str | None
    confidence: float
    basis: Basis


@dataclass(frozen=True, slots=True)
class WordTable:
    """For each word, how much more likely each category is (in logarithms) if it occurs, and how rare it is."""

    rows: Mapping[str, int]
    leanings: Floats
    rarity: Floats

    def known(self, stems: Iterable[str]) -> Places:
        """The rows of the words that are in the table, in order."""
        return np.array(sorted([row for stem in stems if (row := self.rows.get(stem)) is not None]), np.intp)

    def leaning(self, known: Places) -> Floats:
        """What all words together suggest for each category, independent of the length of the text."""
        if not known.size:
            return np.zeros(len(CATEGORY_NAMES))
        together: Floats = self.leanings[known].sum(axis=0) / math.sqrt(len(known))
        return together

    def shares(self, known: Places) -> NDArray[np.float32]:
        """The weight of each word, larger for rare ones, normalised to length 1."""
        rarity: Floats = self.rarity[known]
        return (rarity / max(math.sqrt(rarity @ rarity), 1e-9)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class CueModel:
    """Weights for cues and words alone: a row per subcategory; `words` has a row per word."""

    weights: Floats
    words: NDArray[np.float32]
    offsets: Floats
    temperature: float  # divides the logits, so that the probabilities are calibrated

    def logits(self, found: Floats, said: NDArray[np.float32]) -> Floats:
        """One number per subcategory, for one note or a row each; `said` is the contribution of its words."""
        return found @ self.weights.T + said + self.offsets


@dataclass(frozen=True, slots=True)
class VectorModel(CueModel):
    """Prototypes besides, a row per subcategory. The length of a prototype is the weight of the similarity."""

    fingerprint: str
    prototypes: Floats

    def with_vectors(self, found: Floats, said: NDArray[np.float32], units: NDArray[Any]) -> Floats:
        """One number per subcategory, for one note or a row each; vectors have length 1."""
        return units @ self.prototypes.T + self.logits(found, said)


@dataclass(frozen=True, slots=True)
class OntologyModel:
    """The trained model, and what it was trained on."""

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
        """Read the file that `training/ontology/train_ontology.py` writes."""
        content = json.loads(text)
        vector, alone = content["with_vector"], content["cues_alone"]
        if vector["subcategories"] != list(SUBCATEGORY_NAMES) or alone["subcategories"] != list(SUBCATEGORY_NAMES):
            raise ValueError("the ontology model was made for another ontology: run train_ontology.py")
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
    """Classifies texts whose vectors come from the embedding model with this fingerprint."""

    def __init__(self, fingerprint: str, model: OntologyModel | None = None) -> None:
        self._model = model or default_model()
        self._reads_vectors = fingerprint == self._model.with_vector.fingerprint

    def classify(self, text: str, vector: NDArray[np.float32] | None) -> Classification:
        """The entry that fits best. For a long text, pass the vector of its beginning."""
        return self.classify_many([text], [vector])[0]

    @single_threaded()
    def classify_many(
        self, texts: Sequence[str], vectors: Sequence[NDArray[np.float32] | None]
    ) -> list[Classification]:
        """The same for many texts at once, which takes half the time."""
        units = [self._unit(vector) for vector in vectors]
        read = [self._model.read(text) for text in texts]
        answers: dict[int, Classification] = {}
        alone, both = self._model.cues_alone, self._model.with_vector
        if rows := [row for row, unit in enumerate(units) if unit is None]:
            found, said = self._gathered([read[row] for row in rows], alone)
            parts = softmax(alone.logits(found, said) / alone.temperature)
            answers |= zip(rows, [_answer(one, None) for one in by_category(parts)], strict=True)
        if chosen := [(row, unit) for row, unit in enumerate(units) if unit is not None]:
            found, said = self._gathered([read[row] for row, _ in chosen], both)
            logits = both.with_vectors(found, said, np.stack([unit for _, unit in chosen]))
            parts = softmax(logits / both.temperature)
            named = zip(by_category(parts), parts, strict=True)
            answers |= zip([row for row, _ in chosen], [_answer(*one) for one in named], strict=True)
        return [answers[row] for row in range(len(texts))]

    def _gathered(self, read: Sequence[tuple[Floats, Places]], model: CueModel) -> tuple[Floats, NDArray[np.float32]]:
        """The features of texts, a row each, and what their words contribute."""
        table = self._model.words
        said = np.stack([table.shares(known) @ model.words[known] for _, known in read])
        return np.stack([found for found, _ in read]), said

    def _unit(self, vector: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        if vector is None or not self._reads_vectors:
            return None
        expected = self._model.with_vector.prototypes.shape[1:]
        if vector.shape != expected:
            raise ValueError(f"the vector has shape {vector.shape}, those of this embedding model have {expected}")
        length = float(np.linalg.norm(vector))
        # A zero or broken vector has no direction.
        return vector / np.float32(length) if 0.0 < length < np.inf else None


def by_category(parts: Floats) -> Floats:
    """The probabilities of categories from those of subcategories, along the last dimension."""
    together: Floats = np.add.reduceat(parts, _STARTS, axis=-1)
    return together


def softmax(logits: Floats) -> Floats:
    """Probabilities along the last dimension."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def _answer(probabilities: Floats, parts: Floats | None) -> Classification:
    best = int(np.argmax(probabilities))
    basis: Basis = "cues" if parts is None else "vector"
    if probabilities[best] < CATEGORY_FLOOR:
        return Classification(FALLBACK, None, float(probabilities[CATEGORY_NAMES.index(FALLBACK)]), basis)
    name = CATEGORY_NAMES[best]
    return Classification(name, None if parts is None else _subcategory(best, parts), float(probabilities[best]), basis)


def _subcategory(category: int, parts: Floats) -> str | None:
    start = int(_STARTS[category])
    own = parts[start : start + len(CATEGORIES[category].subcategories)]
    best = int(np.argmax(own))
    return SUBCATEGORY_NAMES[start + best] if own[best] >= SUBCATEGORY_FLOOR else None


def _weights(by_cue: Mapping[str, list[float]]) -> Floats:
    if tuple(by_cue) != FEATURE_NAMES:
        unlike = ", ".join(sorted(set(by_cue) ^ set(FEATURE_NAMES))) or "their order"
        raise ValueError(f"the ontology model was made with other cues ({unlike}): run train_ontology.py")
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


@load_once
def default_model() -> OntologyModel:
    """The model that ships with the package."""
    return OntologyModel.from_json(Path(__file__).with_name("ontology_model.json").read_text("utf-8"))


# At this confidence at least nine of ten notes get the namespace of their label, by cross-validation over labelled
# notes (`bench/ontology.py`, "filed"); also among notes that no cue word was chosen from.
FILING_FLOOR = 0.9

BY_CATEGORY: dict[str, str] = {
    "architecture": "decisions",
    "security": "security",
    "testing": "testing",
    "performance": "performance",
}
# These take precedence over the category. Other subcategories do not decide the namespace.
BY_SUBCATEGORY: dict[str, str] = {
    "coding_conventions": "patterns",
    "interface_design": "apis",
    "progress": "progress",
    "root_cause": "learnings",
    "technical_debt": "tech-debt",
}


def namespace_for(found: Classification) -> str | None:
    """The namespace of a note that was classified with high confidence, else None."""
    if found.confidence < FILING_FLOOR:
        return None
    return BY_SUBCATEGORY.get(found.subcategory or "") or BY_CATEGORY.get(found.category)


class Labeller:
    """Gives new records a category and, if the caller left it open, a namespace."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @cached_property
    def _classifier(self) -> Classifier:
        return Classifier(self._backend.fingerprint)

    @cached_property
    def _classifier_of_words(self) -> Classifier:
        return Classifier("")

    def label(self, records: Sequence[IndexedRecord], items: Sequence[NewMemory]) -> list[IndexedRecord]:
        """The records with what their callers left open. Parts of files have no category."""
        labelled = list(records)
        open_rows = [
            row
            for row, (record, item) in enumerate(zip(records, items, strict=True))
            if record.memory.kind != "file" and not (record.memory.category and item.namespace)
        ]
        for row, found in zip(open_rows, self.classify([records[row] for row in open_rows]), strict=True):
            record, item = records[row], items[row]
            memory = record.memory
            namespace = memory.namespace if item.namespace else namespace_for(found) or memory.namespace
            memory = replace(memory, category=memory.category or found.category, namespace=namespace)
            labelled[row] = replace(record, memory=memory)
        return labelled

    def classify(self, records: Sequence[IndexedRecord]) -> list[Classification]:
        """What each record is about; the beginning of a long one decides."""
        if not records:
            return []
        texts = [one.memory.content[: one.chunks[-1].past] if one.chunks else one.memory.content for one in records]
        stored = [one.chunks[0].vector if one.chunks else None for one in records]
        vectors = [None if vector is None else np.frombuffer(vector, np.float32) for vector in stored]
        # Without any vector, the fingerprint of the model is not needed, and there may be no model.
        classifier = self._classifier_of_words if all(one is None for one in vectors) else self._classifier
        return classifier.classify_many(texts, vectors)
