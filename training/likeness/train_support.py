"""Make `support_model.json`: when some evidence bears a claim out, learned from VitaminC and WiCE.

    python training/likeness/train_support.py [--data FOLDER] [--check]

A logistic model over the features of `grounding.judges.support`. A feature that by its meaning can only speak for
support, or only against it, never gets a weight of the other sign: it is left out instead. What the data has too few
cases of to learn from is given in `FIXED`. How telling a word is comes from the evidence alone, which has no labels.
`--check` leaves the file alone.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex_py.core.memory.comparison.opposites import word_set
from cortex_py.parts.verify.judges import support
from cortex_py.parts.verify.judges.support import FEATURE_NAMES, SupportModel, WordWeights, model_features, read_passage

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training" / "cortex_recall"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training" / "ranking"))

from train_likeness import vectors

from datasets import DatasetMissing, read_lines

__all__ = [
    "STRANGER",
    "VITAMINC",
    "WICE",
    "Case",
    "auroc",
    "cross_validated",
    "gather",
    "measured",
    "strangers",
    "train",
    "word_weights",
]

Floats = NDArray[np.float64]

VITAMINC, WICE, STRANGER = "VitaminC", "WiCE", "evidence of another page"
FOLDS = 5
RIDGE = 30.0
WICE_WEIGHT = 3.0  # of one claim: there are far fewer, and only they have whole documents
STRANGERS = 6000  # claims that are paired with another's evidence; one in five is of the same fold and kept
TABLE = 800  # words whose weight is kept; all others count as rare
# These may speak for support or against it; of the others, those below only against it, the rest only for it.
FREE = word_set("document figureless number_open number_compared date_open date_compared claim_length sentences")
AGAINST = word_set(
    """one_missing negation opposites extremes_missing hedged number_against number_absent date_against date_absent"""
)
FIXED = {"negation": -3.5, "extremes_missing": -0.3, "hedged": -1.0}
MODEL_FILE = Path(support.__file__).with_name("support_model.json")


@dataclass(frozen=True, slots=True)
class Case:
    """A claim with its evidence; `group` is the page or document that must not be both learned from and measured."""

    source: str
    group: str
    claim: str
    evidence: tuple[str, ...]
    label: str
    gold: tuple[frozenset[int], ...] = ()  # sets of sentences, each enough for what is supported
    cosines: tuple[float, ...] = ()
    features: tuple[float, ...] = field(default=())

    @property
    def supported(self) -> bool:
        """Partial support is no support."""
        return self.label in ("SUPPORTS", "supported")

    @property
    def fold(self) -> int:
        return zlib.crc32(self.group.encode()) % FOLDS


def gather(folder: Path | None = None) -> list[Case]:
    """All claims with the cosines of their evidence, without features."""
    found = [*_vitaminc(folder), *_wice(folder)]
    known = vectors([text for case in found for text in (case.claim, *case.evidence)])
    return [
        _with(case, cosines=tuple(float(known[case.claim] @ known[one]) for one in case.evidence)) for case in found
    ]


def _with(case: Case, cosines: tuple[float, ...] = (), features: tuple[float, ...] = ()) -> Case:
    kept = (case.source, case.group, case.claim, case.evidence, case.label, case.gold)
    return Case(*kept, cosines or case.cosines, features)


def _vitaminc(folder: Path | None) -> Iterator[Case]:
    for row in read_lines("vitaminc.jsonl.gz", folder):
        yield Case(VITAMINC, str(row["page"]), row["claim"], (row["evidence"],), row["label"])


def _wice(folder: Path | None) -> Iterator[Case]:
    for row in read_lines("wice.jsonl.gz", folder):
        gold = tuple(frozenset(places) for places in row["supporting_sentences"] if places)
        yield Case(WICE, row["evidence"][0], row["claim"], tuple(row["evidence"]), row["label"], gold)


def strangers(cases: Sequence[Case]) -> list[Case]:
    """Claims of VitaminC with evidence of another page: whatever figures it has, it bears nothing out."""
    lot, own = random.Random(1), [case for case in cases if case.source == VITAMINC]
    chosen = lot.sample(own, min(STRANGERS, len(own)))
    others = [lot.choice(own) for _ in chosen]
    pairs = [(case, other) for case, other in zip(chosen, others, strict=True) if case.fold == other.fold]
    known = vectors([text for case, other in pairs for text in (case.claim, *other.evidence)])
    return [
        Case(STRANGER, case.group, case.claim, (text,), STRANGER, cosines=(float(known[case.claim] @ known[text]),))
        for case, other in pairs
        if case.group != other.group and (text := other.evidence[0])
    ]


def word_weights(cases: Sequence[Case]) -> WordWeights:
    """The commonest words, by the number of pages and documents that have them."""
    pages: dict[tuple[str, str], set[str]] = {}
    for source, group, text in dict.fromkeys((c.source, c.group, one) for c in cases for one in c.evidence):
        pages.setdefault((source, group), set()).update(read_passage(text).known)
    counts = Counter(word for page in pages.values() for word in page)
    kept = sorted(counts, key=lambda word: (-counts[word], word))[:TABLE]
    table = {word: round(math.log((len(pages) + 1) / (counts[word] + 0.5)), 3) for word in sorted(kept)}
    return WordWeights(table, round(max(table.values()) + 1.0, 3))


def measured(cases: Sequence[Case], words: WordWeights, with_cosines: bool = True) -> list[Case]:
    """The cases with what the model weighs."""
    found = []
    for case in cases:
        features = model_features(case.claim, case.evidence, case.cosines if with_cosines else None, words)[1]
        found.append(_with(case, features=tuple(features[name] for name in FEATURE_NAMES)))
    return found


def train(cases: Sequence[Case], words: WordWeights) -> SupportModel:
    """The logistic model; of the weights with an unbelievable sign the largest is dropped until there is none."""
    rows, target = np.array([case.features for case in cases]), np.array([float(case.supported) for case in cases])
    weight = np.array([WICE_WEIGHT if case.source == WICE else 1.0 for case in cases])
    given = rows @ np.array([FIXED.get(name, 0.0) for name in FEATURE_NAMES])
    used = [place for place, name in enumerate(FEATURE_NAMES) if name not in FIXED]
    while True:
        offset, fitted = _fit(rows[:, used], target, weight, given)
        wrong = [(abs(value), place) for value, place in zip(fitted, used, strict=True) if _unbelievable(place, value)]
        if not wrong:
            break
        used.remove(max(wrong)[1])
    weights = dict.fromkeys(FEATURE_NAMES, 0.0) | FIXED
    weights |= {FEATURE_NAMES[place]: float(value) for place, value in zip(used, fitted, strict=True)}
    return SupportModel(weights, offset, words)


def _unbelievable(place: int, value: float) -> bool:
    name = FEATURE_NAMES[place]
    return name not in FREE and (value > 0) == (name in AGAINST)


def _fit(rows: Floats, target: Floats, weight: Floats, given: Floats) -> tuple[float, Floats]:
    """Offset and weights by Newton's method; `given` is what the fixed weights already say."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    scaled = np.hstack([np.ones((len(rows), 1)), (rows - mean) / spread])
    held = np.diag([0.0, *[RIDGE] * rows.shape[1]])
    fitted = np.zeros(scaled.shape[1])
    for _ in range(30):
        likely = 0.5 + 0.5 * np.tanh((scaled @ fitted + given) / 2)
        slope = scaled.T @ (weight * (likely - target)) + held @ fitted
        bend = (scaled * (weight * likely * (1 - likely))[:, None]).T @ scaled + held
        step = np.linalg.solve(bend, slope)
        fitted -= step
        if np.abs(step).max() < 1e-8:
            break
    weights = fitted[1:] / spread
    return float(fitted[0] - weights @ mean), weights


def predicted(model: SupportModel, cases: Sequence[Case]) -> Floats:
    return np.array([model.probability(dict(zip(FEATURE_NAMES, case.features, strict=True))) for case in cases])


def cross_validated(cases: Sequence[Case], words: WordWeights) -> Floats:
    """The probability of each claim by a model that never saw its page or document."""
    likely, fold = np.zeros(len(cases)), np.array([case.fold for case in cases])
    for out in range(FOLDS):
        model = train([case for case in cases if case.fold != out], words)
        inside = np.flatnonzero(fold == out)
        likely[inside] = predicted(model, [cases[place] for place in inside])
    return likely


def auroc(cases: Sequence[Case], scores: Sequence[float] | Floats) -> float:
    """How often a supported claim has a higher score than one that is not; a tie counts half."""
    supported = np.array([case.supported for case in cases])
    _, place, count = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    yes = int(supported.sum())
    return float((ranks[supported].sum() - yes * (yes + 1) / 2) / max(1, yes * (len(cases) - yes)))


def write(model: SupportModel, cases: Sequence[Case]) -> None:
    sources = dict.fromkeys(case.source for case in cases)
    content = {
        "about": "When evidence bears a claim out. Made by train_support.py, read by cortex_py.parts.verify.",
        "provenance": {"trained_on": {source: sum(case.source == source for case in cases) for source in sources}},
        "weights": {name: round(value, 6) for name, value in model.coefficients.items()},
        "offset": round(model.offset, 6),
        "rare": model.words.rare,
        "words": dict(model.words.table),
    }
    MODEL_FILE.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the public data (default ../shared/data)")
    parser.add_argument("--check", action="store_true", help="measure only; leave support_model.json alone")
    chosen = parser.parse_args(arguments)
    try:
        cases = gather(chosen.data)
    except DatasetMissing as missing:
        print(f"Nothing was trained: {missing}.", file=sys.stderr)
        return 1
    words = word_weights(cases)
    cases = measured([*cases, *strangers(cases)], words)
    likely = cross_validated(cases, words)
    for source in (VITAMINC, WICE):
        inside = [place for place, case in enumerate(cases) if case.source == source]
        print(f"{source}: AUROC {auroc([cases[place] for place in inside], likely[inside]):.3f}, cross-validated")
    model = train(cases, words)
    print({name: round(value, 3) for name, value in model.coefficients.items()})
    if not chosen.check:
        write(model, cases)
        print(f"wrote {MODEL_FILE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
