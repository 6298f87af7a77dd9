"""What the scores of recall mean: questions without an answer, calibration, and small stores of notes.

    python bench/recall_scores.py [--data FOLDER] [--plot FILE.svg]

`auroc` tells questions with an answer from those without by the score of the first result. `ece` is the expected
calibration error of the first ten results of every question, in ten bins; `ece first` that of the first result alone.
LoCoMo and the held-out notes are scored by the shipped model, which was fitted on neither; LongMemEval is
cross-validated. The notes are those of `data/small_stores.jsonl`, asked in stores of one to ten notes.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "cortex_recall"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "ranking"))

from ranking_samples import KeptVectors, Sample, default_backend, engine, small_notes, whole

from retrieval import Models, cross_validated, ranking, shipped

import report
from charts import Axis, Series, draw
from datasets import DatasetMissing, Question, locomo, longmemeval

Floats = NDArray[np.float64]
SIZES = (1, 2, 3, 5, 8, 10)
SHOWN = 10
BINS = 10


def auroc(right: Floats, wrong: Floats) -> float:
    """The probability that one of the first has the higher score."""
    return float(np.mean((right[:, None] > wrong) + 0.5 * (right[:, None] == wrong)))


def reliability(score: Floats, relevant: Floats) -> list[tuple[float, float, float]]:
    """For each bin with scores in it: the mean score, the share that was relevant, and the share of all."""
    place = np.minimum((score * BINS).astype(int), BINS - 1)
    inside = [place == n for n in range(BINS)]
    return [(float(score[i].mean()), float(relevant[i].mean()), float(i.mean())) for i in inside if i.any()]


def calibration_error(score: Floats, relevant: Floats) -> float:
    return sum(share * abs(mean - right) for mean, right, share in reliability(score, relevant))


def scored(asked: Sequence[Sample], models: Models) -> list[tuple[bool, Floats, Floats]]:
    """Of each question: whether it has an answer, the scores of the first results, and which of them are relevant."""
    found = []
    for sample in asked:
        scores = models(sample).score(sample.query, sample.candidates)
        first = ranking(sample, scores)[:SHOWN]
        found.append((sample.answerable, scores.score[first], sample.relevant[first].astype(np.float64)))
    return found


def small_stores(part: str, backend: KeptVectors) -> Iterator[Sample]:
    """Every paraphrase asked of stores with and without its note, and queries about something else."""
    collection, off_topic = small_notes(part)
    asked = engine(collection, backend)
    drawn = random.Random(3)
    places = range(len(collection.records))
    for question in collection.questions:
        (right,) = question.relevant
        others = [n for n in places if n != int(right)]
        for size in SIZES:
            yield asked.ask(question, "notes", 0, sorted([int(right), *drawn.sample(others, size - 1)]))
    for text in off_topic:
        for size in SIZES:
            question = Question(text, text, "off topic", frozenset())
            yield replace(asked.ask(question, "notes", 0, sorted(drawn.sample(places, size))), kind="off topic")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the public data (default ../shared/data)")
    parser.add_argument("--plot", type=Path, help="write a reliability plot")
    parser.add_argument("--notes", choices=("develop", "held_out"), default="held_out")
    chosen = parser.parse_args(arguments)
    backend = default_backend()
    try:
        turns = [s for c in locomo(chosen.data) for s in whole(engine(c, backend), "locomo")]
        sessions = list(whole(engine(longmemeval(chosen.data), backend), "sessions"))
        sets = {
            "LoCoMo": scored(turns, shipped),
            "LongMemEval": scored(sessions, cross_validated(chosen.data)),
            "small stores": scored(list(small_stores(chosen.notes, backend)), shipped),
        }
    except DatasetMissing as missing:
        print(f"Scores were not measured: {missing}.", file=sys.stderr)
        return 1
    backend.save()
    rows: list[list[object]] = []
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for name, found in sets.items():
        score, relevant = (np.concatenate([one[part] for one in found]) for part in (1, 2))
        first, right = (np.array([one[part][0] for one in found]) for part in (1, 2))
        answerable = np.array([one[0] for one in found])
        curves[name] = reliability(score, relevant)
        rows.append(
            [
                name, len(found), auroc(first[answerable], first[~answerable]), calibration_error(score, relevant),
                calibration_error(first, right), float(np.mean(first[~answerable] >= 0.3)),
                float(np.mean(first[answerable & (right > 0)] >= 0.3)),
            ]
        )  # fmt: skip
    columns = ("set", "questions", "auroc", "ece", "ece first", "unanswerable from 0.3", "right first from 0.3")
    report.table(columns, rows)
    report.write("recall_scores", {str(row[0]): dict(zip(columns[1:], row[1:], strict=True)) for row in rows})
    if chosen.plot:
        chosen.plot.write_text(plot(curves), encoding="utf-8")
    return 0


def plot(curves: dict[str, list[tuple[float, float, float]]]) -> str:
    """Score against the share of results that were right; the size of a point is the share of the results."""
    ticks = [(n / 10, f"{n / 10}") for n in range(0, 11, 2)]
    return draw(
        "Scores against the share that was right",
        Axis("score", ticks),
        Axis("share that was right", ticks),
        [
            Series(name, [(mean, right, 2 + 10 * share**0.5) for mean, right, share in curve])
            for name, curve in curves.items()
        ],
        diagonal=True,
    )


if __name__ == "__main__":
    sys.exit(main())
