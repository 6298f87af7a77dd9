"""How well claims that a text supports are separated from others, and how well the supporting sentences rank.

    python bench/grounding_text.py [--data FOLDER]

VitaminC is cross-validated by page, WiCE by document; the figures are AUROC. A claim that WiCE calls partially
supported counts as not supported. Baselines read the same evidence: ROUGE-2 (the share of the claim's bigrams that it
has, and their F1), the share of the claim's words that it has, and the highest cosine of a sentence with the claim.
The second table is about WiCE's claims that have supporting sentences: `any` is the share with at least one of them
among the first k, `set` how much of the best covered of the sets that people marked as enough is there, `all` how much
of everything they marked.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np

from cortex_py.parts.verify.judges.support import default_model, rank, support

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "cortex_recall"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "likeness"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "ranking"))

from train_support import (
    STRANGER,
    VITAMINC,
    WICE,
    Case,
    Floats,
    auroc,
    cross_validated,
    gather,
    measured,
    strangers,
    word_weights,
)

import report
from datasets import DatasetMissing

WORD = re.compile(r"\w+")
COLUMNS = ("scorer", "VitaminC", "WiCE")
DEPTHS = (1, 3, 5)
Scores = dict[str, Floats]


def baselines(cases: Sequence[Case]) -> Scores:
    rows = [_baseline(case) for case in cases]
    names = ("ROUGE-2 recall", "ROUGE-2 F1", "word coverage", "cosine alone")
    return dict(zip(names, np.array(rows).T, strict=True))


def _baseline(case: Case) -> tuple[float, ...]:
    claim, told = (WORD.findall(text.lower()) for text in (case.claim, "\n".join(case.evidence)))
    mine, others = Counter(pairwise(claim)), Counter(pairwise(told))
    shared = (mine & others).total()
    recall, precision = shared / max(1, mine.total()), shared / max(1, others.total())
    covered = len(set(claim).intersection(told)) / max(1, len(set(claim)))
    return recall, 2 * recall * precision / max(1e-9, recall + precision), covered, max(case.cosines)


def figures(cases: Sequence[Case], scores: Scores) -> list[list[object]]:
    places = {source: [n for n, case in enumerate(cases) if case.source == source] for source in (VITAMINC, WICE)}
    return [
        [name, *(auroc([cases[n] for n in inside], values[inside]) for inside in places.values())]
        for name, values in scores.items()
    ]


def other_readings(cases: Sequence[Case], likely: Floats) -> dict[str, float]:
    """The same predictions seen otherwise: by label, by page, and against evidence of other pages."""

    def of(chosen: Callable[[Case], bool]) -> float:
        inside = [n for n, case in enumerate(cases) if chosen(case)]
        return auroc([cases[n] for n in inside], likely[inside])

    pages = Counter(case.group for case in cases if case.source == VITAMINC)
    large = {page for page, count in pages.most_common(10)}
    return {
        "VitaminC, against refuted": of(lambda c: c.source == VITAMINC and c.label != "NOT ENOUGH INFO"),
        "VitaminC, against not enough": of(lambda c: c.source == VITAMINC and c.label != "REFUTES"),
        "VitaminC, without figures": of(lambda c: c.source == VITAMINC and not re.search(r"\d", c.claim)),
        "VitaminC, without the ten largest pages": of(lambda c: c.source == VITAMINC and c.group not in large),
        "VitaminC, against another page's": of(
            lambda c: c.source == STRANGER or (c.source == VITAMINC and c.supported)
        ),
        "WiCE, against not supported at all": of(lambda c: c.source == WICE and c.label != "partially_supported"),
    }


def retrieval(cases: Sequence[Case], ordered: Callable[[Case], Sequence[int]]) -> list[list[float]]:
    """A row per depth: the share of claims with any telling sentence, of the best set, of all."""
    asked = [(case, ordered(case)) for case in cases if case.gold]
    rows = []
    for depth in DEPTHS:
        found = [(case.gold, frozenset(order[:depth])) for case, order in asked]
        marked = [(frozenset[int]().union(*gold), top) for gold, top in found]
        rows.append(
            [
                float(np.mean([bool(all_of & top) for all_of, top in marked])),
                float(np.mean([max(len(one & top) / len(one) for one in gold) for gold, top in found])),
                float(np.mean([len(all_of & top) / len(all_of) for all_of, top in marked])),
            ]
        )
    return rows


def by_cosine(case: Case) -> list[int]:
    return sorted(range(len(case.evidence)), key=lambda place: (-case.cosines[place], place))


def milliseconds(cases: Sequence[Case]) -> float:
    """Processor time of one judgement."""
    default_model()
    began = process_time()
    for case in cases:
        support(case.claim, case.evidence, case.cosines)
    return 1000 * (process_time() - began) / max(1, len(cases))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the public data (default ../shared/data)")
    chosen = parser.parse_args(arguments)
    try:
        gathered = gather(chosen.data)
    except DatasetMissing as missing:
        print(f"Grounding in text was not measured: {missing}.", file=sys.stderr)
        return 1
    words, every = word_weights(gathered), [*gathered, *strangers(gathered)]
    cases = measured(every, words)
    likely = cross_validated(cases, words)
    bare = cross_validated(measured(every, words, with_cosines=False), words)
    table = figures(cases, baselines(cases) | {"support, no cosines": bare, "support": likely})
    report.table(COLUMNS, table)
    readings = other_readings(cases, likely)
    for name, value in readings.items():
        print(f"{name}: {value:.3f}")
    wice = [case for case in gathered if case.source == WICE]
    rankings = {
        "rank": retrieval(wice, lambda case: rank(case.claim, case.evidence, case.cosines)),
        "rank, no cosines": retrieval(wice, lambda case: rank(case.claim, case.evidence)),
        "cosine alone": retrieval(wice, by_cosine),
    }
    columns = ("WiCE sentences", "k", "any", "set", "all")
    ranked = [[name, k, *row] for name, rows in rankings.items() for k, row in zip(DEPTHS, rows, strict=True)]
    report.table(columns, ranked)
    cost = {"VitaminC": milliseconds(gathered[:500]), "WiCE": milliseconds(wice[:50])}
    print(f"milliseconds a claim: {cost}")
    report.write(
        "grounding_text",
        {
            "claims": dict(Counter(case.source for case in cases)),
            "labels": {
                source: dict(Counter(c.label for c in cases if c.source == source)) for source in (VITAMINC, WICE)
            },
            "partially_supported": "counted as not supported",
            "auroc": [dict(zip(COLUMNS, row, strict=True)) for row in table],
            "readings": readings,
            "retrieval": [dict(zip(columns, row, strict=True)) for row in ranked],
            "milliseconds": cost,
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
