"""How well recall finds: LoCoMo by turn, LongMemEval by session, CoSQA by function, through the engine as it ships.

    python bench/retrieval.py [--data FOLDER] [--ceiling] [--snapshots FOLDER]

Each row is one way of ranking. LoCoMo and CoSQA are ranked by the shipped model, which was fitted on neither;
LongMemEval is cross-validated: every question is ranked by a model that was trained without the questions of its fold.
Without the data of that training, which `ranking_data.py` and `train_ranking.py` describe, it is left out.
The encoder was trained on none of the three.
Questions that cannot be answered are not counted. `any` is the share of questions with at least one relevant result
among the first, `found` the share of relevant ones that are there, `all` the share of questions with every one of them
there, `mrr@10` the mean of one over the place of the first. LongMemEval questions are asked at their own date where the
clock is said to be `asked`, and at the present where it is `now`. `--ceiling` prints what a perfect order of the first
20 and 40 results would give. With git copies of the repositories in `--snapshots`, three people of RHELM and
Locomo-Plus are measured instead, on which nothing was fitted or chosen.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex_py.core.memory.recall.ranking import RankingModel, Scores, default_model
from cortex_py.core.records import Mode

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "cortex_recall"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "ranking"))

from ranking_data import locomo_plus, rhelm_reported
from ranking_samples import KeptVectors, Sample, default_backend, engine, talk, whole
from train_ranking import fold_models

import report
from datasets import Collection, DatasetMissing, cosqa, locomo, longmemeval

AT = (5, 10)
MODES: tuple[tuple[str, Mode, str], ...] = (
    ("text", "text", "learned"),
    ("vector", "vector", "learned"),
    ("hybrid rrf", "hybrid", "rrf"),
    ("hybrid weighted", "hybrid", "weighted"),
    ("hybrid learned", "hybrid", "learned"),
)
DEPTHS = (20, 40)
Figures = dict[str, float]
Models = Callable[[Sample], RankingModel]


def ranking(sample: Sample, scores: Scores) -> NDArray[np.int64]:
    """Places of the candidates, best first, each unit once by its best record."""
    order = np.lexsort((-np.round(scores.raw, 7), -np.round(scores.score, 7)))
    _, first = np.unique(sample.units[order], return_index=True)
    return np.asarray(order[np.sort(first)])


def figures(sample: Sample, scores: Scores, depth: int | None = None) -> Figures:
    """The figures of one question; with a depth, as if the first results were in a perfect order."""
    relevant = sample.relevant[ranking(sample, scores)]
    if depth:
        relevant = np.sort(relevant[:depth])[::-1]
    found: Figures = {}
    for k in AT:
        count = int(relevant[:k].sum())
        found |= {f"any@{k}": float(count > 0), f"found@{k}": count / sample.wanted}
        found[f"all@{k}"] = float(count == sample.wanted)
    first = np.flatnonzero(relevant[:10])
    return found | {"mrr@10": 1.0 / (1 + int(first[0])) if len(first) else 0.0}


def means(rows: Sequence[Figures]) -> Figures:
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def without_clock(collection: Collection) -> Collection:
    return replace(collection, questions=tuple(replace(q, asked_at=None) for q in collection.questions))


def shipped(_: Sample) -> RankingModel:
    return default_model()


def cross_validated(folder: Path | None) -> Models:
    models = fold_models(folder)
    return lambda sample: models[sample.fold]


def sets(folder: Path | None, backend: KeptVectors) -> Iterator[tuple[str, list[Sample], Models]]:
    """Each set with its questions and the models that may rank them."""
    turns = [s for c in locomo(folder) for s in whole(engine(c, backend), "locomo")]
    yield "LoCoMo turns", turns, shipped
    try:
        folds = cross_validated(folder)
    except DatasetMissing as missing:
        print(f"LongMemEval is left out, whose models are fitted first: {missing.filename} is absent.", file=sys.stderr)
    else:
        sessions = longmemeval(folder)
        yield "LongMemEval sessions, asked", list(whole(engine(sessions, backend), "sessions")), folds
        yield "LongMemEval sessions, now", list(whole(engine(without_clock(sessions), backend), "sessions")), folds
    for docstrings in (True, False):
        functions = list(whole(engine(cosqa(folder, docstrings=docstrings), backend), "cosqa"))
        yield f"CoSQA with{'' if docstrings else 'out'} docstrings", functions, shipped
    backend.save()


def further(snapshots: Path, folder: Path | None, backend: KeptVectors) -> Iterator[tuple[str, list[Sample], Models]]:
    """Sets that are measured once, when all choices are made."""
    persons = [talk(one) for one in rhelm_reported(snapshots)]
    yield "RHELM turns", [s for c in persons for s in whole(engine(c, backend), "rhelm")], shipped
    turns = [[record.content, record.branch, None] for record in locomo(folder)[0].records]
    cues = talk(locomo_plus(snapshots, {"records": turns}))
    yield "Locomo-Plus turns", list(whole(engine(cues, backend), "locomo")), shipped
    backend.save()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the public data (default ../shared/data)")
    parser.add_argument("--ceiling", action="store_true", help="print what a perfect order would give instead")
    parser.add_argument("--snapshots", type=Path, help="measure RHELM and Locomo-Plus from the copies in this folder")
    chosen = parser.parse_args(arguments)
    backend = default_backend()
    columns = [f"{figure}@{k}" for k in AT for figure in ("any", "found", "all")] + ["mrr@10"]
    rows: list[list[object]] = []
    result: dict[str, object] = {}
    try:
        measured_sets = (
            further(chosen.snapshots, chosen.data, backend) if chosen.snapshots else sets(chosen.data, backend)
        )
        for name, asked, models in measured_sets:
            answerable = [sample for sample in asked if sample.answerable]
            by_way = ceilings(answerable, models) if chosen.ceiling else measured(answerable, models)
            result[name] = {way: means(found) for way, found in by_way.items()}
            rows += [[name, len(answerable), way, *(means(found)[c] for c in columns)] for way, found in by_way.items()]
            kinds = sorted({sample.kind for sample in answerable})
            for kind in kinds if len(kinds) > 1 else ():
                places = [n for n, sample in enumerate(answerable) if sample.kind == kind]
                for way in by_way if chosen.ceiling else ("hybrid learned",):
                    found = means([by_way[way][n] for n in places])
                    result[f"{name}, {kind}, {way}"] = found
                    rows.append([f"  {kind}", len(places), way, *(found[c] for c in columns)])
    except DatasetMissing as missing:
        print(f"Retrieval was not measured: {missing}.", file=sys.stderr)
        return 1
    report.table(("set", "questions", "ranking", *columns), rows)
    report.write("retrieval_ceiling" if chosen.ceiling else "retrieval", {"sets": result})
    return 0


def measured(asked: Sequence[Sample], models: Models) -> dict[str, list[Figures]]:
    """Figures of every question under every way of ranking."""
    return {
        name: [
            figures(s, models(s).score(s.query, s.candidates, fusion=fusion, mode=mode))  # type: ignore[arg-type]
            for s in asked
        ]
        for name, mode, fusion in MODES
    }


def ceilings(asked: Sequence[Sample], models: Models) -> dict[str, list[Figures]]:
    """Figures of the learned ranking, and of a perfect order of its first results."""
    scored = [(s, models(s).score(s.query, s.candidates)) for s in asked]
    found = {"as ranked": [figures(s, scores) for s, scores in scored]}
    return found | {f"perfect {depth}": [figures(s, scores, depth) for s, scores in scored] for depth in DEPTHS}


if __name__ == "__main__":
    sys.exit(main())
