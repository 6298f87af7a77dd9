"""Make `ontology_model.json`: the prototypes and the weights of cues and words by which notes are classified.

    python training/ontology/train_ontology.py [--check]

Learned from the labelled notes of `bench/data/ontology_notes.jsonl` and `ontology_notes_later.jsonl`, and from the
ontology's own descriptions; never from `ontology_check.jsonl`. The run is deterministic. `--check` writes nothing and
fails where the shipped file differs from what would be written. How well it works is measured by `bench/ontology.py`.

The listed words of the cues were written by people who had read the notes of the first file. A word may be on the list
because of a single note, and would then seem to know that note's label. So a note is learned from only by those of its
listed words that another note has as well. The table of words is counted from the training notes alone; a training
note is read by a table made without it.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex_py.core.config import load_settings
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.backends.registry import open_backend
from cortex_py.core.memory.labels import classifier
from cortex_py.core.memory.labels.classifier import (
    FEATURE_NAMES,
    SUBCATEGORY_NAMES,
    WORD_SCALE,
    CueModel,
    Lexicon,
    OntologyModel,
    VectorModel,
    WordTable,
    by_category,
    cues_digest,
    default_lexicon,
    softmax,
)
from cortex_py.core.memory.labels.ontology import CATEGORIES, CATEGORY_NAMES
from cortex_py.core.memory.labels.ontology import PARENTS as CATEGORY_OF
from cortex_py.core.store.search.vectors import single_threaded

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training"))

from logistic import fit

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DATA = Path(__file__).parents[2] / "bench" / "data"
NOTES_FILE = DATA / "ontology_notes.jsonl"
LATER_FILE = DATA / "ontology_notes_later.jsonl"  # written when the listed words were closed
CHECK_FILE = DATA / "ontology_check.jsonl"  # never learned from
MODEL_FILE = Path(classifier.__file__).with_name("ontology_model.json")
SETTINGS = load_settings()

FIRST_LATER = 478  # so many of the later notes were written first; the others when their figures had been seen
INNER_FOLDS = 3
TABLE_FOLDS = 5
LEAST_NOTES = 2  # a word that one note has says nothing
PRIOR_NOTES = 5.0  # as many notes of every kind are taken to have each word besides those that do
ALIKE = 0.65  # the likeness of vectors from which two notes count as one for dividing them
SPREAD_OF_UNIT = 20.0  # brings the parts of a vector of length 1 to about the spread of the cues
LEAST_SPREAD = 0.15  # a cue seen once in a hundred notes must not count for more because it is rare
TEMPERATURES = tuple(round(float(value), 3) for value in np.geomspace(0.2, 2.0, 47))
PARENTS: Integers = np.array([CATEGORY_NAMES.index(CATEGORY_OF[name]) for name in SUBCATEGORY_NAMES])
# A subcategory's family is itself and its category.
FAMILY: Floats = np.vstack([np.eye(len(SUBCATEGORY_NAMES)), np.eye(len(CATEGORY_NAMES))[:, PARENTS]])


@dataclass(frozen=True, order=True, slots=True)
class Held:
    """How strongly large weights are held back, per thousand notes, and those that subcategories share relative to it.

    Grown with the number of notes, the logits of a part and of the whole have the same spread, and a temperature
    found on parts holds for the whole.
    """

    prototypes: float
    cues: float
    words: float
    shared: float


TRIED = (Held(50.0, 35.0, 20.0, 2.0), Held(75.0, 50.0, 30.0, 2.0))
TRIED_ALONE = (Held(0.0, 50.0, 30.0, 2.0), Held(0.0, 75.0, 50.0, 2.0))  # there are no prototypes to hold back


@dataclass(frozen=True, slots=True)
class Notes:
    """Labelled notes; `labels` are places in SUBCATEGORY_NAMES, `later` marks those no listed word was chosen by."""

    texts: tuple[str, ...]
    vectors: Floats
    labels: Integers
    later: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.texts)

    def those(self, which: NDArray[np.bool_]) -> Notes:
        texts = tuple(text for text, wanted in zip(self.texts, which, strict=True) if wanted)
        return Notes(texts, self.vectors[which], self.labels[which], self.later[which])

    def __add__(self, other: Notes) -> Notes:
        return Notes(
            self.texts + other.texts,
            np.concatenate([self.vectors, other.vectors]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.later, other.later]),
        )

    @property
    def categories(self) -> Integers:
        return PARENTS[self.labels]

    def words(self, least: int) -> Lexicon:
        """The lexicon of the words that occur in at least so many of these notes."""
        counts = Counter(entry for text in self.texts for entry in set(default_lexicon().entries(text)))
        return Lexicon({entry for entry, count in counts.items() if count >= least})

    def stems(self) -> list[set[str]]:
        return [default_lexicon().read(text)[1] for text in self.texts]

    def seen_by(self, lexicon: Lexicon, table: WordTable) -> Seen:
        read = [lexicon.read(text) for text in self.texts]
        known = [table.known(stems) for _, stems in read]
        rows = [np.concatenate([cues, table.leaning(own)]) for (cues, _), own in zip(read, known, strict=True)]
        return Seen(np.stack(rows), spread_out(known, table), self.vectors, self.labels)

    def learnable(self, lexicon: Lexicon | None = None) -> tuple[Seen, WordTable]:
        """These notes as a model may learn from them, and the table of their words for reading others.

        A note's own label must not reach it through the table, so each is read by a table made without it.
        """
        stems, categories = self.stems(), self.categories
        fold = np.random.default_rng(0).permutation(len(self)) % TABLE_FOLDS
        leanings = np.empty((len(self), len(CATEGORY_NAMES)))
        for number in range(TABLE_FOLDS):
            others = fold != number
            kept = [found for found, other in zip(stems, others, strict=True) if other]
            table = count_words(kept, categories[others])
            for place in np.flatnonzero(~others).tolist():
                leanings[place] = table.leaning(table.known(stems[place]))
        shared = lexicon or self.words(2)
        cues = np.stack([shared.cues(text) for text in self.texts])
        whole = count_words(stems, categories)
        words = spread_out([whole.known(found) for found in stems], whole)
        return Seen(np.hstack([cues, leanings]), words, self.vectors, self.labels), whole


def count_words(stems: Sequence[set[str]], categories: Integers) -> WordTable:
    """Leanings of the words of notes, held back towards none where few notes have a word."""
    counts: dict[str, Floats] = {}
    for found, category in zip(stems, categories.tolist(), strict=True):
        for stem in found:
            counts.setdefault(stem, np.zeros(len(CATEGORY_NAMES)))[category] += 1
    kept = sorted(stem for stem, row in counts.items() if row.sum() >= LEAST_NOTES)
    share = np.bincount(categories, minlength=len(CATEGORY_NAMES)) / len(categories)
    rows = np.stack([counts[stem] for stem in kept])
    leanings = np.log((rows + PRIOR_NOTES * share) / (rows.sum(axis=1, keepdims=True) + PRIOR_NOTES) / share)
    # Rounded as they are stored, so that what is measured is what is shipped.
    steps = np.clip(np.round(leanings * WORD_SCALE), -127, 127)
    rarity = np.round(np.log(len(categories) / rows.sum(axis=1)) * WORD_SCALE) / WORD_SCALE
    return WordTable({stem: row for row, stem in enumerate(kept)}, steps / WORD_SCALE, rarity)


def spread_out(known: Sequence[NDArray[np.intp]], table: WordTable) -> NDArray[np.float32]:
    """How much each word of the table counts in each note: a row per note."""
    found = np.zeros((len(known), len(table.rows)), np.float32)
    for place, rows in enumerate(known):
        found[place, rows] = table.shares(rows)
    return found


@dataclass(frozen=True, slots=True)
class Seen:
    """Notes as the model sees them."""

    cues: Floats
    words: NDArray[np.float32]
    vectors: Floats
    labels: Integers


def read(*paths: Path) -> list[dict[str, str]]:
    """The rows of some files; of the training set where none is named."""
    return [
        json.loads(line) for path in paths or (NOTES_FILE, LATER_FILE) for line in path.read_text("utf-8").splitlines()
    ]


def digest(*paths: Path) -> str:
    """Names the content of some files; of the training set where none is named."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths or (NOTES_FILE, LATER_FILE))).hexdigest()


def embedded(texts: Sequence[str], labels: Sequence[str], backend: Backend, earlier: int = 0) -> Notes:
    """Notes with their vectors; the first `earlier` of them are those that listed words were chosen by."""
    places = np.array([SUBCATEGORY_NAMES.index(label) for label in labels])
    later = np.arange(len(texts)) >= earlier
    return Notes(tuple(texts), np.asarray(backend.embed(texts), np.float64), places, later)


def training_set(backend: Backend) -> Notes:
    rows = read()
    texts, labels = [row["text"] for row in rows], [row["subcategory"] for row in rows]
    return embedded(texts, labels, backend, earlier=len(read(NOTES_FILE)))


def descriptions(backend: Backend) -> Notes:
    """What each subcategory says of itself, as one more note of it."""
    texts = [text for category in CATEGORIES for _, text in category.subcategories]
    return embedded(texts, SUBCATEGORY_NAMES, backend)


def folds(notes: Notes, count: int, seed: int) -> Integers:
    """A fold for every note, so that each label is spread evenly over them and notes that are alike stay together."""
    found = _spread(notes.labels, count, seed)
    likeness = np.triu(notes.vectors @ notes.vectors.T, 1)
    leader = np.arange(len(notes))
    for one, other in zip(*np.nonzero(likeness >= ALIKE), strict=True):
        leader[leader == leader[other]] = leader[one]
    return found[leader]


def _spread(labels: Integers, count: int, seed: int) -> Integers:
    random = np.random.default_rng(seed)
    found = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        found[members] = (np.arange(len(members)) + random.integers(count)) % count
    return found


def fit_with_vector(notes: Seen, held: Held, fingerprint: str = "") -> VectorModel:
    """Each subcategory has weights of its own and shares those of its category, which are learned from more notes."""
    centre = notes.vectors.mean(axis=0)
    mean, spread = notes.cues.mean(axis=0), np.maximum(notes.cues.std(axis=0), LEAST_SPREAD)
    rows = np.hstack(
        [(notes.vectors - centre) * SPREAD_OF_UNIT, (notes.cues - mean) / spread, notes.words * SPREAD_OF_UNIT]
    )
    size, upto = len(centre), len(centre) + len(mean)
    by_row = np.repeat([held.prototypes, held.cues, held.words], [size, len(mean), notes.words.shape[1]])
    fitted = fit(rows, notes.labels, by_row, FAMILY, _by_member(held))
    prototypes, weights = fitted[:size] * SPREAD_OF_UNIT, fitted[size:upto] / spread[:, None]
    offsets = fitted[-1] - centre @ prototypes - mean @ weights
    words = _in_steps(fitted[upto:-1] * SPREAD_OF_UNIT)
    return VectorModel(weights.T, words, offsets, 1.0, fingerprint, prototypes.T)


def fit_cues_alone(notes: Seen, held: Held) -> CueModel:
    mean, spread = notes.cues.mean(axis=0), np.maximum(notes.cues.std(axis=0), LEAST_SPREAD)
    rows = np.hstack([(notes.cues - mean) / spread, notes.words * SPREAD_OF_UNIT])
    by_row = np.repeat([held.cues, held.words], [len(mean), notes.words.shape[1]])
    fitted = fit(rows, notes.labels, by_row, FAMILY, _by_member(held))
    weights = fitted[: len(mean)] / spread[:, None]
    words = _in_steps(fitted[len(mean) : -1] * SPREAD_OF_UNIT)
    return CueModel(weights.T, words, fitted[-1] - mean @ weights, 1.0)


def _by_member(held: Held) -> Floats:
    return np.repeat([1.0, held.shared], [len(SUBCATEGORY_NAMES), len(CATEGORY_NAMES)])


def _in_steps(weights: Floats) -> NDArray[np.float32]:
    """Weights of words rounded as they are stored: to 127 steps on either side of nothing."""
    step = _step(weights)
    return np.round(weights / step).astype(np.float32) * np.float32(step)


def _step(weights: NDArray[np.floating]) -> float:
    return float(np.float32(max(float(np.abs(weights).max(initial=0.0)), 1e-6) / 127))


@dataclass(frozen=True, slots=True)
class Choice:
    """What cross-validation inside a training set settled."""

    with_vector: Held
    temperature: float  # that makes probabilities out of logits
    cues_alone: Held
    temperature_alone: float


def choose(notes: Notes, extra: Notes, seed: int) -> Choice:
    """The settings under which later notes that were left out surprise least.

    The earlier ones would not do: by the listed words they look easier than a new note is.
    """
    fold = folds(notes, INNER_FOLDS, seed)
    parts: list[tuple[Seen, Seen]] = []
    for number in range(INNER_FOLDS):
        known, asked = notes.those(fold != number) + extra, notes.those((fold == number) & notes.later)
        seen, table = known.learnable()
        parts.append((seen, asked.seen_by(default_lexicon(), table)))
    truth = np.concatenate([PARENTS[asked.labels] for _, asked in parts])

    def vector_logits(held: Held) -> Floats:
        models = [fit_with_vector(known, held) for known, _ in parts]
        found = [
            model.with_vectors(asked.cues, asked.words @ model.words, asked.vectors)
            for model, (_, asked) in zip(models, parts, strict=True)
        ]
        return np.concatenate(found)

    def cue_logits(held: Held) -> Floats:
        models = [fit_cues_alone(known, held) for known, _ in parts]
        found = [
            model.logits(asked.cues, asked.words @ model.words) for model, (_, asked) in zip(models, parts, strict=True)
        ]
        return np.concatenate(found)

    _, temperature, pair = min((*_least_surprise(vector_logits(held), truth), held) for held in TRIED)
    _, temperature_alone, alone = min((*_least_surprise(cue_logits(held), truth), held) for held in TRIED_ALONE)
    return Choice(pair, temperature, alone, temperature_alone)


def _least_surprise(logits: Floats, truth: Integers) -> tuple[float, float]:
    """The least mean surprise at the true categories, and the temperature that gives it."""

    def surprise(temperature: float) -> float:
        shares = by_category(softmax(logits / temperature))
        return float(-np.log(np.maximum(shares[np.arange(len(truth)), truth], 1e-12)).mean())

    return min((surprise(temperature), temperature) for temperature in TEMPERATURES)


def train(
    notes: Notes,
    extra: Notes,
    choice: Choice,
    lexicon: Lexicon,
    fingerprint: str = "",
    learn_by: Lexicon | None = None,
) -> OntologyModel:
    """A model that reads texts by `lexicon`, learned by `learn_by` or by the listed words that two notes have."""
    seen, table = (notes + extra).learnable(learn_by)
    return OntologyModel(
        replace(fit_with_vector(seen, choice.with_vector, fingerprint), temperature=choice.temperature),
        replace(fit_cues_alone(seen, choice.cues_alone), temperature=choice.temperature_alone),
        lexicon,
        table,
        {},
    )


def rendered(model: OntologyModel, choice: Choice, count: int) -> str:
    """The text of the model file."""
    vector, alone = model.with_vector, model.cues_alone
    lengths = np.linalg.norm(vector.prototypes, axis=1)
    units = (vector.prototypes / lengths[:, None]).astype("<f2")
    encoded = [base64.b64encode(unit.tobytes()).decode() for unit in units]
    content = {
        "about": "Classification of notes. Made by train_ontology.py; read by memory.labels.classifier.",
        "provenance": {
            "notes": count,
            "notes_sha256": digest(),
            "cues": cues_digest(),
            "words": len(model.words.rows),
            "held_back": {"with_vector": asdict(choice.with_vector), "cues_alone": asdict(choice.cues_alone)},
        },
        "words": {
            "stems": " ".join(model.words.rows),
            "leanings": base64.b64encode(
                np.round(model.words.leanings * WORD_SCALE).astype(np.int8).tobytes()
            ).decode(),
            "rarity": base64.b64encode(np.round(model.words.rarity * WORD_SCALE).astype(np.uint8).tobytes()).decode(),
        },
        "cues_alone": {
            "temperature": alone.temperature,
            "subcategories": list(SUBCATEGORY_NAMES),
            "offsets": _rounded(alone.offsets),
            "cues": {name: _rounded(row) for name, row in zip(FEATURE_NAMES, alone.weights.T, strict=True)},
            "words": _stored(alone.words),
        },
        "with_vector": {
            "fingerprint": vector.fingerprint,
            "temperature": vector.temperature,
            "subcategories": list(SUBCATEGORY_NAMES),
            "offsets": _rounded(vector.offsets),
            "cues": {name: _rounded(row) for name, row in zip(FEATURE_NAMES, vector.weights.T, strict=True)},
            "words": _stored(vector.words),
            "likeness": _rounded(lengths),
            "prototypes": dict(zip(SUBCATEGORY_NAMES, encoded, strict=True)),
        },
    }
    return _with_lists_on_one_line(content) + "\n"


def _stored(weights: NDArray[np.float32]) -> dict[str, object]:
    step = _step(weights)
    steps = np.round(weights / step).astype(np.int8)
    return {"step": step, "steps": base64.b64encode(steps.tobytes()).decode()}


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 2) + 0.0 for value in values]


def _with_lists_on_one_line(value: object, depth: int = 0) -> str:
    if not isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"))
    members = [
        f"{' ' * (depth + 1)}{json.dumps(key)}: {_with_lists_on_one_line(member, depth + 1)}"
        for key, member in value.items()
    ]
    return "{\n" + ",\n".join(members) + f"\n{' ' * depth}}}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare with the shipped file and write nothing")
    chosen = parser.parse_args(arguments)
    backend = open_backend(settings=SETTINGS)
    notes = training_set(backend)
    extra = descriptions(backend)
    with single_threaded():
        choice = choose(notes, extra, seed=0)
        model = train(notes, extra, choice, default_lexicon(), backend.fingerprint)
    print(f"chosen: {choice}", file=sys.stderr)
    text = rendered(model, choice, len(notes))
    if chosen.check:
        same = MODEL_FILE.exists() and MODEL_FILE.read_text("utf-8") == text
        print("the shipped model is what the script makes" if same else f"{MODEL_FILE} differs: train again")
        return 0 if same else 1
    MODEL_FILE.write_text(text, encoding="utf-8")
    print(f"wrote {MODEL_FILE} ({len(text):,} characters)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
