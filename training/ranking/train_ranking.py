"""Make `ranking_model.json`: the fusion and the calibration of recall, learned from candidates as recall sees them.

    python training/ranking/train_ranking.py [--data FOLDER] [--check]

One model is trained on all sets together; none of them is LoCoMo or CoSQA, which only measure. The vectors of each
text come from an encoder that was not trained on it: those that `export.py` wrote to `.make/encoders`. Figures
are cross-validated by collection, or by question where a source has few collections, and never come from data the
measured model was trained on. The run is deterministic. `--check` measures without writing the file. Where the
candidates come from is one function, `samples` in `ranking_samples.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cortex_py.core.memory.recall import ranking
from cortex_py.core.memory.recall.ranking import (
    FEATURE_NAMES,
    MEASURED,
    RISING_FEATURES,
    RIVALS,
    Background,
    Candidates,
    RankingModel,
    calibration_terms,
    features,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training" / "cortex_recall"))

from ranking_samples import FOLDS, Sample
from ranking_samples import samples as gather

import report
from datasets import DatasetMissing

Floats = NDArray[np.float64]

BACKGROUND_WEIGHT = 20.0
LIST_LENGTH = 100  # candidates of a question that the fusion learns from
SHOWN = 10  # results of a question that the calibration learns from
RIDGE = 30.0
FIXED = {"vector": 0.5, "text_window": 0.5}
# Which terms each map from value to score may use, and which of those may not be negative.
CALIBRATED = {
    "learned": (
        "usual", "crowd", "alone", "unseen", "named", "stranger", "author", "outdone", "ahead", "author_top",
        "field", "behind", "top",
        "lone", "long", "code", "lone_top", "lone_crowd", "long_part", "turn_window",
        *(f"{kind}_{signal}" for kind in ("turn", "lone", "long", "code") for signal in ("raw", "vector")),
        *(f"{kind}_coverage" for kind in ("turn", "lone", "long")),
    ),
    "weighted": ("raw", "crowd", "alone", "best_vector", "best_coverage"),
    "rrf": ("raw", "crowd", "alone", "best_vector", "best_coverage"),
    "vector": ("raw", "crowd", "alone", "vector"),
    "text": ("raw", "crowd", "alone", "coverage"),
}  # fmt: skip
NOT_NEGATIVE = {
    "raw", "vector", "coverage", "best_vector", "best_coverage", "outdone", "ahead", "author_top",
    "behind", "top", "lone_top",
    "long_part", "turn_window",
    *(f"{kind}_{signal}" for kind in ("turn", "lone", "long", "code") for signal in ("raw", "vector", "coverage")),
}  # fmt: skip
NOT_POSITIVE = {"stranger"}  # who is not asked for is never the likelier for it
FOLDS_FILE = report.RESULTS / "ranking_folds.json"
# Not in the calibration: questions of RHELM with a wrong premise, whose words are nevertheless those of a record, and
# stories, whose sections all have the same words.
UNFAIR = ("hallucination", "fairytaleqa")
MODEL_FILE = Path(ranking.__file__).with_name("ranking_model.json")


def background_of(samples: Sequence[Sample]) -> Background:
    """Mean and spread of each signal among the strongest hundred, averaged over questions."""
    mean, spread = [], []
    for name in MEASURED:
        tops = [np.sort(_signal(s.candidates, name))[-RIVALS:] for s in samples if s.whole]
        mean.append([round(float(np.mean([top.mean() for top in tops])), 3)])
        spread.append([round(float(np.mean([top.std() for top in tops])), 3)])
    return Background(np.array(mean), np.array(spread), BACKGROUND_WEIGHT)


def _signal(candidates: Candidates, name: str) -> Floats:
    values: Floats = getattr(candidates, name)
    return values / max(candidates.mass, 1e-9) if name.startswith("text") else values


def fit_fusion(samples: Sequence[Sample], background: Background, start: Floats | None = None) -> Floats:
    """Weights that make the relevant candidates likely under a softmax over each question's list.

    A question's loss is the mean cross-entropy of its relevant units, a unit counting with its best records.
    Relevant records that retrieval missed are not added: they would teach the wrong thing.
    """
    lists: list[tuple[Floats, Floats, float]] = []
    for sample in samples:
        best = _promising(sample.candidates)
        target = _target(sample.relevant[best], sample.units[best])
        if target.any():
            lists.append((features(sample.query, sample.candidates, background)[:, best].T, target, sample.weight))
    rows = np.concatenate([rows for rows, _, _ in lists])
    target = np.concatenate([target for _, target, _ in lists])
    starts = np.cumsum([0] + [len(t) for _, t, _ in lists[:-1]])
    owner = np.repeat(np.arange(len(lists)), [len(t) for _, t, _ in lists])
    weight = np.array([weight for _, _, weight in lists])[owner]
    spread = rows.std(axis=0) + 1e-6
    rows = (rows - rows.mean(axis=0)) / spread

    def loss(w: Floats) -> tuple[float, Floats]:
        value = rows @ w
        top = np.maximum.reduceat(value, starts)[owner]
        share = np.exp(value - top)
        total = np.add.reduceat(share, starts)[owner]
        cost = -(weight * target * (value - top - np.log(total))).sum() + RIDGE * (w @ w) / 2
        return float(cost), rows.T @ (weight * (share / total - target)) + RIDGE * w

    lowest = np.array([0.0 if name in RISING_FEATURES else -np.inf for name in FEATURE_NAMES])
    weights: Floats = minimise(loss, lowest, start=None if start is None else start * spread) / spread
    return weights


def _promising(c: Candidates) -> NDArray[np.int64]:
    mass = max(c.mass, 1e-9)
    rough = 5 * (c.vector + c.vector_window) + (2 * c.text + c.text_part + 2 * c.text_window) / mass
    return np.argsort(-rough, kind="stable")[:LIST_LENGTH]


def _target(relevant: NDArray[np.bool_], units: NDArray[np.int64]) -> Floats:
    """Each relevant unit weighs the same, shared among its records."""
    target = np.zeros(len(relevant))
    found = np.unique(units[relevant])
    for unit in found:
        members = relevant & (units == unit)
        target[members] = 1.0 / (len(found) * members.sum())
    return target


def fit_calibration(samples: Sequence[Sample], model: RankingModel, name: str) -> dict[str, float]:
    """A logistic map from a fusion's value and the strength of the query's matches to a score."""
    terms = CALIBRATED[name]
    blocks, labels, weights = [], [], []
    for sample in samples:
        rows, relevant = _shown(sample, model, name)
        blocks.append(rows)
        labels.append(relevant)
        weights.append(np.full(len(rows), sample.weight))
    rows, label, weight = np.concatenate(blocks), np.concatenate(labels), np.concatenate(weights)
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    scaled = np.hstack([(rows - mean) / spread, np.ones((len(rows), 1))])

    def loss(b: Floats) -> tuple[float, Floats]:
        logit = scaled @ b
        cost = (weight * (np.logaddexp(0, logit) - label * logit)).sum() + (b[:-1] @ b[:-1]) / 2
        slope = scaled.T @ (weight * (1 / (1 + np.exp(-logit)) - label))
        slope[:-1] += b[:-1]
        return float(cost), slope

    lowest = np.array([0.0 if term in NOT_NEGATIVE else -np.inf for term in terms] + [-np.inf])
    highest = np.array([0.0 if term in NOT_POSITIVE else np.inf for term in terms] + [np.inf])
    fitted = minimise(loss, lowest, highest)
    slopes = fitted[:-1] / spread
    result = {term: round(float(slope), 4) for term, slope in zip(terms, slopes, strict=True)}
    return result | {"offset": round(float(fitted[-1] - slopes @ mean), 4)}


def _shown(sample: Sample, model: RankingModel, name: str) -> tuple[Floats, NDArray[np.bool_]]:
    fused = model.fuse(name, sample.query, sample.candidates)
    best = np.argsort(-fused.raw, kind="stable")[:SHOWN]
    terms = calibration_terms(fused, sample.candidates, CALIBRATED[name])
    columns = [np.broadcast_to(terms[term], fused.raw.shape)[best] for term in CALIBRATED[name]]
    return np.stack(columns, axis=1), sample.relevant[best]


def minimise(
    loss: Callable[[Floats], tuple[float, Floats]],
    lowest: Floats,
    highest: Floats | float = np.inf,
    start: Floats | None = None,
    steps: int = 3000,
) -> Floats:
    """The minimum of a smooth convex loss within bounds: accelerated projected gradient with restarts."""
    at = ahead = np.zeros(len(lowest)) if start is None else start
    momentum, reach = 1.0, 1e-3
    cost = loss(at)[0]
    for _ in range(steps):
        here, slope = loss(ahead)
        reach *= 1.5
        while True:
            new = np.clip(ahead - reach * slope, lowest, highest)
            step = new - ahead
            new_cost = loss(new)[0]
            if new_cost <= here + slope @ step + (step @ step) / (2 * reach) + 1e-9:
                break
            reach /= 2
        if new_cost > cost:  # overshot: start again from here without momentum
            if momentum == 1.0:
                return at
            ahead, momentum = at, 1.0
            continue
        if cost - new_cost < 1e-7 * max(1.0, abs(cost)) and np.abs(new - at).max() < 1e-4:
            return new
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - at)
        at, momentum, cost = new, following, new_cost
    return at


def train(samples: Sequence[Sample], start: Floats | None = None) -> RankingModel:
    """A model of the samples. The losses are convex, so the start saves time and changes nothing else."""
    background = background_of(samples)
    whole = [s for s in samples if s.whole and s.answerable]
    weights = np.round(fit_fusion(whole, background, start), 4)
    return calibrate(RankingModel(background, weights, FIXED, {}), samples)


def calibrate(model: RankingModel, samples: Sequence[Sample]) -> RankingModel:
    """The model's fusion with a calibration of the samples."""
    fair = [sample for sample in samples if sample.kind not in UNFAIR and not sample.source.startswith(UNFAIR)]
    return replace(model, calibration={name: fit_calibration(fair, model, name) for name in CALIBRATED})


def write(model: RankingModel, provenance: dict[str, Any], path: Path) -> None:
    content = {
        "about": "Fusion and calibration of recall. Made by train_ranking.py; read by memory.recall.ranking.",
        "provenance": provenance,
        **_content(model),
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _counted(samples: Sequence[Sample]) -> dict[str, int]:
    return {source: sum(s.source == source for s in samples) for source in _sources(samples)}


def _content(model: RankingModel) -> dict[str, Any]:
    background = model.background
    signals = zip(MEASURED, background.mean, background.spread, strict=True)
    return {
        "background": {
            "weight": background.weight,
            "signals": {name: [float(mean), float(spread)] for name, (mean,), (spread,) in signals},
        },
        "weights": {name: float(w) for name, w in zip(FEATURE_NAMES, model.weights, strict=True)},
        "fixed": dict(model.fixed),
        "calibration": {name: dict(map) for name, map in model.calibration.items()},
    }


def cross_validate(samples: Sequence[Sample], models: Sequence[RankingModel]) -> dict[str, dict[str, float]]:
    """Figures by source, each question measured by the model that never saw its fold."""
    rows: dict[str, list[dict[str, float]]] = {source: [] for source in _sources(samples)}
    for sample in samples:
        rows[sample.source].append(measure(sample, models[sample.fold]))
    return {source: _means(found) for source, found in rows.items()}


def train_folds(samples: Sequence[Sample], start: Floats | None = None) -> list[RankingModel]:
    """For each fold a model that was trained without it; kept in a file for the benchmarks."""
    models = [train([s for s in samples if s.fold != fold], start) for fold in range(FOLDS)]
    FOLDS_FILE.parent.mkdir(exist_ok=True)
    FOLDS_FILE.write_text(json.dumps([_content(model) for model in models]), encoding="utf-8")
    return models


def fold_models(folder: Path | None = None) -> list[RankingModel]:
    """The models of the folds, from the file if it is not older than the shipped model."""
    if FOLDS_FILE.is_file() and FOLDS_FILE.stat().st_mtime >= MODEL_FILE.stat().st_mtime:
        return [RankingModel.from_json(json.dumps(one)) for one in json.loads(FOLDS_FILE.read_text("utf-8"))]
    return train_folds(gather(folder))


def _sources(samples: Sequence[Sample]) -> list[str]:
    return list(dict.fromkeys(sample.source for sample in samples))


def _means(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    keys = sorted({key for row in rows for key in row})
    return {key: round(float(np.mean([row[key] for row in rows if key in row])), 3) for key in keys}


def measure(sample: Sample, model: RankingModel) -> dict[str, float]:
    """What one question adds to the figures."""
    scores = model.score(sample.query, sample.candidates)
    order = np.lexsort((-scores.raw, -scores.score))
    units, first = np.unique(sample.units[order], return_index=True)
    ranked = order[np.sort(first)]  # each unit once, by its best record
    assert len(ranked) == len(units)
    relevant, score = sample.relevant[ranked], scores.score[ranked]
    if not sample.answerable:
        return {"unanswerable_top": float(score[0]), "unanswerable_top_from_0.3": float(score[0] >= 0.3)}
    found: dict[str, float] = {}
    if sample.whole:
        found = {f"recall@{k}": relevant[:k].sum() / sample.wanted for k in (5, 10)}
        found |= {"any@5": float(relevant[:5].any()), "all@5": float(relevant[:5].sum() == sample.wanted)}
        found["recall@10_from_0.3"] = (relevant & (score >= 0.3))[:10].sum() / sample.wanted
    if relevant[0]:
        found |= {"right_top": float(score[0]), "right_top_from_0.3": float(score[0] >= 0.3)}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the public data (default ../shared/data)")
    parser.add_argument("--check", action="store_true", help="measure only; leave ranking_model.json alone")
    chosen = parser.parse_args(arguments)
    try:
        samples = gather(chosen.data)
    except DatasetMissing as missing:
        print(f"Nothing was trained: {missing}.", file=sys.stderr)
        return 1
    model = train(samples)
    figures = cross_validate(samples, train_folds(samples, model.weights))
    print(json.dumps(figures, indent=1))
    if not chosen.check:
        write(model, {"trained_on": _counted(samples), "cross_validated": figures}, MODEL_FILE)
        FOLDS_FILE.touch()
        print(f"wrote {MODEL_FILE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
