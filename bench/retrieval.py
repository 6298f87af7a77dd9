"""How well recall finds: LoCoMo by turn, LongMemEval by session, through the engine as it ships.

    python bench/retrieval.py [--data FOLDER]

Each row is one way of ranking. `learned` is cross-validated: every question is ranked by a model that was trained
without its conversation (LoCoMo) or without the questions of its fold (LongMemEval). Questions that cannot be answered
are not counted. `any` is the share of questions with at least one relevant result among the first, `found` the share
of relevant ones that are there, `all` the share of questions with every one of them there. LongMemEval questions are
asked at their own date where the clock is said to be `asked`, and at the present where it is `now`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex_py.memory.ranking import RankingModel, Scores
from cortex_py.records import Mode
from ranking_samples import FOLDS, Engine, Sample, default_backend, engine, samples, whole
from train_ranking import train

import report
from datasets import Collection, DatasetMissing, locomo, longmemeval

AT = (5, 10)
MODES: tuple[tuple[str, Mode, str], ...] = (
    ("text", "text", "learned"),
    ("vector", "vector", "learned"),
    ("hybrid rrf", "hybrid", "rrf"),
    ("hybrid weighted", "hybrid", "weighted"),
    ("hybrid learned", "hybrid", "learned"),
)
Figures = dict[str, float]


def ranking(sample: Sample, scores: Scores) -> NDArray[np.int64]:
    """Places of the candidates, best first, each unit once by its best record."""
    order = np.lexsort((-np.round(scores.raw, 7), -np.round(scores.score, 7)))
    _, first = np.unique(sample.units[order], return_index=True)
    return np.asarray(order[np.sort(first)])


def figures(sample: Sample, scores: Scores) -> Figures:
    relevant = sample.relevant[ranking(sample, scores)]
    found: Figures = {}
    for k in AT:
        count = int(relevant[:k].sum())
        found |= {f"any@{k}": float(count > 0), f"found@{k}": count / sample.wanted}
        found[f"all@{k}"] = float(count == sample.wanted)
    return found


def measured(asked: Sequence[Sample], models: Sequence[RankingModel]) -> dict[str, list[Figures]]:
    """Figures of every question under every way of ranking."""
    rows: dict[str, list[Figures]] = {}
    for name, mode, fusion in MODES:
        rows[name] = [
            figures(s, models[s.fold].score(s.query, s.candidates, fusion=fusion, mode=mode))  # type: ignore[arg-type]
            for s in asked
        ]
    return rows


def means(rows: Sequence[Figures]) -> Figures:
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def without_clock(collection: Collection) -> Collection:
    return replace(collection, questions=tuple(replace(q, asked_at=None) for q in collection.questions))


def asked_of(engines: Sequence[Engine], source: str, fold: Callable[[int], int | None]) -> list[Sample]:
    return [s for n, one in enumerate(engines) for s in whole(one, source, fold(n)) if s.answerable]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the public data (default ../shared/data)")
    folder = parser.parse_args(arguments).data
    try:
        conversations, sessions = locomo(folder), longmemeval(folder)
        turns = longmemeval(folder, form="turns")
    except DatasetMissing as missing:
        print(f"Retrieval was not measured: {missing}.", file=sys.stderr)
        return 1
    learned_from = samples(folder)
    models = [train([s for s in learned_from if s.fold != fold]) for fold in range(FOLDS)]
    backend = default_backend()
    sets = {
        "LoCoMo turns": asked_of([engine(c, backend) for c in conversations], "locomo/turns", lambda n: n % FOLDS),
        "LongMemEval sessions, asked": asked_of([engine(sessions, backend)], "sessions", lambda _: None),
        "LongMemEval sessions, now": asked_of([engine(without_clock(sessions), backend)], "sessions", lambda _: None),
        "LongMemEval turns, asked": asked_of([engine(turns, backend)], "turns", lambda _: None),
    }
    backend.save()
    columns = [f"{figure}@{k}" for k in AT for figure in ("any", "found", "all")]
    rows: list[list[object]] = []
    result: dict[str, object] = {}
    for name, asked in sets.items():
        by_mode = measured(asked, models)
        result[name] = {mode: means(found) for mode, found in by_mode.items()}
        rows += [[name, len(asked), mode, *(means(found)[c] for c in columns)] for mode, found in by_mode.items()]
        kinds = sorted({sample.kind for sample in asked})
        for kind in kinds:
            chosen = [n for n, sample in enumerate(asked) if sample.kind == kind]
            found = means([by_mode["hybrid learned"][n] for n in chosen])
            result[f"{name}, {kind}"] = {"hybrid learned": found}
            rows.append([f"  {kind}", len(chosen), "hybrid learned", *(found[c] for c in columns)])
    report.table(("set", "questions", "ranking", *columns), rows)
    report.write("retrieval", {"sets": result})
    return 0


if __name__ == "__main__":
    sys.exit(main())
