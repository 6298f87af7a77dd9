"""Make `likeness_model.json`: when two notes say the same in other words, learned from pairs that look alike.

    python training/likeness/train_likeness.py [--data FOLDER] [--check]

What is alike comes from STS-B, whose scores say how much two sentences mean the same. What only looks alike comes from
VitaminC: claims of one page, and texts before and after a revision, that a fact tells apart. Half of the notes of
`data/likeness_notes.jsonl` show how developers write. Pairs with a difference
that no likeness outweighs, or with one word in place of another, are not learned from, because the model never sees
them. The threshold is the lowest from which `WANTED_PRECISION` of the pairs that cross-validation finds have a score of
4 or more, and at most `LOOKALIKES` of the claims of a case and of the texts before and after a revision count as the
same. `--check` leaves the file alone.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex_py.core.memory.comparison import conflicts
from cortex_py.core.memory.comparison.conflicts import (
    FEATURE_NAMES,
    LikenessModel,
    difference,
    likeness_features,
    replaced_word,
)
from cortex_py.core.memory.comparison.statements import Statement, read_statement

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training" / "cortex_recall"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training" / "ranking"))

from ranking_samples import default_backend

from datasets import DatasetMissing, read_lines

__all__ = [
    "ALIKE",
    "CLAIMS",
    "EQUAL",
    "REVISIONS",
    "SAME_CASE",
    "STS",
    "Pair",
    "cross_validated",
    "gather",
    "held_out",
    "train",
    "vectors",
]

Floats = NDArray[np.float64]

STS, CLAIMS, SAME_CASE, REVISIONS = "STS-B", "claims of a page", "claims of a case", "texts before and after"
NOTES = "notes of our own"
EQUAL = 4.8  # the score from which people found two sentences to mean the same
ALIKE = 4.0  # the score from which they differ in no important detail
WANTED_PRECISION = 0.91
LOOKALIKES = 0.03
LEAST_FOUND = 60  # pairs without which a share says nothing
STRICT_RECALL = 0.4  # for other languages, of which only numbers, identifiers and the commonest negations are read
LOWEST, HIGHEST = 3.6, 4.8  # scores that count as not at all and as wholly the same; in between in proportion
LOOKALIKE_WEIGHT, NOTE_WEIGHT = 0.08, 3.0  # beside 1 of a scored pair
PAGE_PAIRS = 40  # pairs of a page's claims that are looked at: a few pages have thousands
RIDGE = 2.0
FOLDS = 5
NOTES_FILE = Path(__file__).parents[2] / "bench" / "data" / "likeness_notes.jsonl"
MODEL_FILE = Path(conflicts.__file__).with_name("likeness_model.json")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts; `score` is that of STS-B or 5 and 0 for a note, none for those that a fact tells apart."""

    source: str
    a: str
    b: str
    group: str  # what must not be both learned from and measured
    score: float | None
    told_apart: bool = False  # by a difference
    features: tuple[float, ...] = ()

    @property
    def fold(self) -> int:
        return zlib.crc32(self.group.encode()) % FOLDS


def gather(folder: Path | None = None) -> list[Pair]:
    """All pairs with what the model weighs."""
    found = [*_scored(folder), *_lookalikes(folder), *_notes()]
    known = vectors([text for pair in found for text in (pair.a, pair.b)])
    read = lru_cache(maxsize=None)(read_statement)
    return [_measured(pair, read(pair.a), read(pair.b), float(known[pair.a] @ known[pair.b])) for pair in found]


def _measured(pair: Pair, a: Statement, b: Statement, cosine: float) -> Pair:
    told_apart = difference(a, b) is not None or replaced_word(a, b) is not None
    return Pair(pair.source, pair.a, pair.b, pair.group, pair.score, told_apart, tuple(likeness_features(a, b, cosine)))


def vectors(texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    backend = default_backend()
    each = list(dict.fromkeys(texts))
    known = {
        text: vector
        for start in range(0, len(each), 256)
        for text, vector in zip(each[start : start + 256], backend.embed(each[start : start + 256]), strict=True)
    }
    backend.save()
    return known


def _scored(folder: Path | None) -> Iterator[Pair]:
    for row in read_lines("stsb.jsonl.gz", folder):
        yield Pair(STS, row["a"], row["b"], f"{row['a']}\n{row['b']}", float(row["score"]))


def _notes() -> Iterator[Pair]:
    """The developed half of our own notes: what people put into a memory is neither news nor captions."""
    for line in NOTES_FILE.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["set"] == "develop":
            yield Pair(NOTES, row["a"], row["b"], f"{row['a']}\n{row['b']}", 5.0 if row["label"] == "same" else 0.0)


def _lookalikes(folder: Path | None) -> Iterator[Pair]:
    lot = random.Random(1)
    rows = sorted(read_lines("vitaminc.jsonl.gz", folder), key=lambda row: str(row["page"]))
    for page, group in groupby(rows, key=lambda row: str(row["page"])):
        found: dict[str, set[tuple[str, str]]] = {CLAIMS: set(), SAME_CASE: set(), REVISIONS: set()}
        for x, y in combinations(list(group), 2):
            if x["label"] == y["label"]:
                continue
            if x["claim"] != y["claim"]:
                found[CLAIMS].add((x["claim"], y["claim"]))
                if x["case_id"] == y["case_id"]:
                    found[SAME_CASE].add((x["claim"], y["claim"]))
            elif x["evidence"] != y["evidence"]:
                found[REVISIONS].add((x["evidence"], y["evidence"]))
        found[CLAIMS] = set(lot.sample(sorted(found[CLAIMS]), min(PAGE_PAIRS, len(found[CLAIMS]))))
        for source, pairs in found.items():
            yield from (Pair(source, a, b, page, None) for a, b in sorted(pairs))


def train(pairs: Sequence[Pair]) -> LikenessModel:
    """A logistic model by Newton's method, without thresholds."""
    learned = [pair for pair in pairs if not pair.told_apart]
    rows = np.array([pair.features for pair in learned])
    target = np.array([_target(pair) for pair in learned])
    weight = np.array([_weight(pair) for pair in learned])
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    scaled = np.hstack([np.ones((len(rows), 1)), (rows - mean) / spread])
    held = np.diag([0.0, *[RIDGE] * len(FEATURE_NAMES)])
    fitted = np.zeros(scaled.shape[1])
    for _ in range(30):
        likely = 0.5 + 0.5 * np.tanh(0.5 * scaled @ fitted)
        slope = scaled.T @ (weight * (likely - target)) + held @ fitted
        bend = (scaled * (weight * likely * (1 - likely))[:, None]).T @ scaled + held
        fitted = fitted - np.linalg.solve(bend, slope)
    slopes = fitted[1:] / spread
    return LikenessModel(
        weights=tuple(round(float(slope), 4) for slope in slopes),
        offset=round(float(fitted[0] - slopes @ mean), 4),
        threshold=1.0,
        foreign_threshold=1.0,
    )


def _weight(pair: Pair) -> float:
    if pair.source == NOTES:
        return NOTE_WEIGHT
    return 1.0 if pair.source == STS else LOOKALIKE_WEIGHT


def _target(pair: Pair) -> float:
    return 0.0 if pair.score is None else min(1.0, max(0.0, (pair.score - LOWEST) / (HIGHEST - LOWEST)))


def predicted(model: LikenessModel, pairs: Sequence[Pair]) -> Floats:
    """The probability of each pair as `judge` gives it."""
    rows = np.array([pair.features for pair in pairs])
    likely = 0.5 + 0.5 * np.tanh(0.5 * (rows @ np.array(model.weights) + model.offset))
    return np.where([pair.told_apart for pair in pairs], 0.0, likely)


def cross_validated(pairs: Sequence[Pair]) -> Floats:
    """The probability of each pair by a model that never saw its page or its two sentences."""
    likely, fold = np.zeros(len(pairs)), np.array([pair.fold for pair in pairs])
    for out in sorted(set(fold)):
        model = train([pair for pair in pairs if pair.fold != out])
        inside = np.flatnonzero(fold == out)
        likely[inside] = predicted(model, [pairs[n] for n in inside])
    return likely


def threshold_at(pairs: Sequence[Pair], likely: Floats, recall: float) -> float:
    """The highest threshold, in hundredths, that finds this share of the equal pairs."""
    equal = np.sort(
        [p for p, pair in zip(likely, pairs, strict=True) if pair.source == STS and (pair.score or 0.0) >= EQUAL]
    )
    return float(np.floor(100 * equal[::-1][int(np.ceil(recall * len(equal))) - 1]) / 100)


def threshold_of(pairs: Sequence[Pair], likely: Floats) -> float:
    """The lowest threshold, in hundredths, that keeps the precision and the share of look-alikes."""
    source = np.array([pair.source for pair in pairs])
    alike = np.array([(pair.score or 0.0) >= ALIKE for pair in pairs])
    for hundredth in range(99, 0, -1):
        same = likely >= hundredth / 100
        found = alike[same & (source == STS)]
        mistaken = max(float(np.mean(same[source == one])) for one in (SAME_CASE, REVISIONS))
        if (len(found) >= LEAST_FOUND and np.mean(found) < WANTED_PRECISION) or mistaken > LOOKALIKES:
            return (hundredth + 1) / 100
    return 0.01


def held_out(pairs: Sequence[Pair]) -> NDArray[np.bool_]:
    """Whether each pair is taken as the same by a model and a threshold that both come from the other folds."""
    same, fold = np.zeros(len(pairs), dtype=bool), np.array([pair.fold for pair in pairs])
    for out in range(FOLDS):
        known, inside = [pair for pair in pairs if pair.fold != out], np.flatnonzero(fold == out)
        threshold = threshold_of(known, cross_validated(known))
        same[inside] = predicted(train(known), [pairs[n] for n in inside]) >= threshold
    return same


def write(model: LikenessModel, pairs: Sequence[Pair], likely: Floats) -> None:
    sources = dict.fromkeys(pair.source for pair in pairs)
    content = {
        "about": "When two notes say the same. Made by train_likeness.py; read by memory.comparison.conflicts.",
        "provenance": {"trained_on": {source: sum(pair.source == source for pair in pairs) for source in sources}},
        "weights": dict(zip(FEATURE_NAMES, model.weights, strict=True)),
        "offset": model.offset,
        "threshold": threshold_of(pairs, likely),
        "foreign_threshold": threshold_at(pairs, likely, STRICT_RECALL),
    }
    MODEL_FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the public data (default ../shared/data)")
    parser.add_argument("--check", action="store_true", help="measure only; leave likeness_model.json alone")
    chosen = parser.parse_args(arguments)
    try:
        pairs = gather(chosen.data)
    except DatasetMissing as missing:
        print(f"Nothing was trained: {missing}.", file=sys.stderr)
        return 1
    likely, model = cross_validated(pairs), train(pairs)
    print(f"precision {WANTED_PRECISION}: threshold {threshold_of(pairs, likely)}")
    for recall in (STRICT_RECALL, 0.6, 0.7):
        print(f"recall {recall}: threshold {threshold_at(pairs, likely, recall)}")
    print(dict(zip(FEATURE_NAMES, model.weights, strict=True)))
    if not chosen.check:
        write(model, pairs, likely)
        print(f"wrote {MODEL_FILE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
