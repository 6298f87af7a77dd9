"""How well duplicates are separated from look-alikes, and contradictions from both.

    python bench/likeness.py [--data FOLDER] [--notes develop|held_out] [--show]

STS-B and VitaminC are cross-validated, by pair and by page. A row is one threshold: `recall` is the share found of the
STS-B pairs that people scored 4.8 or more, `of 4` that of those scored 4 or more, `from 4`, `from 4.5` and `from 4.8`
the share of the found pairs with at least that score; the last three columns are the share of VitaminC's pairs that a
fact tells apart and that were taken as the same nevertheless. The notes of `data/likeness_notes.jsonl` are judged by
the shipped model, which has learned from their `develop` half. The row `held out` takes the threshold, too, from other
folds than those it is measured on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from cortex_py.core.memory.comparison.conflicts import conflict, default_model, judge
from cortex_py.core.memory.comparison.statements import read_statement

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "cortex_recall"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "likeness"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "ranking"))

from train_likeness import (
    ALIKE,
    CLAIMS,
    EQUAL,
    REVISIONS,
    SAME_CASE,
    STS,
    Floats,
    Pair,
    cross_validated,
    gather,
    held_out,
    vectors,
)

import report
from datasets import DatasetMissing

NOTES = Path(__file__).parent / "data" / "likeness_notes.jsonl"
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
COLUMNS = ("threshold", "recall", "of 4", "from 4", "from 4.5", "from 4.8", CLAIMS, SAME_CASE, REVISIONS)
Figures = dict[str, float]
# The held-out notes as first scored; three rules were mended after seeing what had gone wrong.
FIRST_LOOK = {
    "same": "53 right of 54 found, of 60 (precision 0.981, recall 0.883)",
    "conflict": "37 right of 40 found, of 43 (precision 0.925, recall 0.860)",
}


def curve(pairs: Sequence[Pair], likely: Floats, default: float) -> list[list[float]]:
    return [[least, *shares(pairs, likely >= least)] for least in sorted({*THRESHOLDS, default})]


def shares(pairs: Sequence[Pair], same: NDArray[np.bool_]) -> list[float]:
    """What a row of the table has after its threshold."""
    score = np.array([-1.0 if pair.source != STS or pair.score is None else pair.score for pair in pairs])
    source = np.array([pair.source for pair in pairs])
    found = score[same & (source == STS)]
    right = [float(np.mean(found >= least)) for least in (4.0, 4.5, EQUAL)]
    mistaken = [float(np.mean(same[source == one])) for one in (CLAIMS, SAME_CASE, REVISIONS)]
    return [*(float(np.mean(same[score >= least])) for least in (EQUAL, ALIKE)), *right, *mistaken]


def notes_judged(half: str, show: bool) -> dict[str, object]:
    """Precision and recall on notes written by hand, for the same and for contradictions."""
    notes = [row for line in NOTES.read_text("utf-8").splitlines() if (row := json.loads(line))["set"] == half]
    known = vectors([note[side] for note in notes for side in "ab"])
    said: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for note in notes:
        a, b, cosine = read_statement(note["a"]), read_statement(note["b"]), float(known[note["a"]] @ known[note["b"]])
        judged, against = judge(a, b, cosine), conflict(a, b, cosine)
        said[note["label"], note["kind"]].append((judged.same, against is not None))
        if show and (judged.same, against is not None) != (note["label"] == "same", note["label"] == "conflict"):
            print(f"{note['label']}/{note['kind']}: {judged} conflict {against} cosine {cosine:.2f}")
            print(f"    {note['a']}\n    {note['b']}")
    return {
        "pairs": len(notes),
        "same": _figures(said, "same", 0),
        "conflict": _figures(said, "conflict", 1),
        "wrong by label and kind": {
            f"{label}, {kind}": f"same {sum(s for s, _ in found)}, conflict {sum(c for _, c in found)} of {len(found)}"
            for (label, kind), found in sorted(said.items())
            if any((same, against) != (label == "same", label == "conflict") for same, against in found)
        },
    }


def _figures(said: dict[tuple[str, str], list[tuple[bool, bool]]], label: str, place: int) -> Figures:
    right = sum(verdict[place] for (is_label, _), found in said.items() for verdict in found if is_label == label)
    taken = sum(verdict[place] for found in said.values() for verdict in found)
    there = sum(len(found) for (is_label, _), found in said.items() if is_label == label)
    return {"precision": right / max(1, taken), "recall": right / max(1, there), "found": taken, "there": there}


def reading_ms(pairs: Sequence[Pair]) -> float:
    """Milliseconds of processor time to read 300 characters, over texts of the data put together to that length."""
    long = [f"{x.a} {x.b} {y.a} {y.b}"[:300] for x, y in zip(pairs[::2], pairs[1::2], strict=False)]
    long = [text for text in long if len(text) == 300][:500]
    began = process_time()
    for text in long:
        read_statement(text)
    return 1000 * (process_time() - began) / max(1, len(long))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the public data (default ../shared/data)")
    parser.add_argument("--notes", choices=("develop", "held_out"), help="judge these notes alone")
    parser.add_argument("--show", action="store_true", help="print the notes that are judged wrongly")
    chosen = parser.parse_args(arguments)
    if chosen.notes:
        print(json.dumps(notes_judged(chosen.notes, chosen.show), indent=1))
        return 0
    try:
        pairs = gather(chosen.data)
    except DatasetMissing as missing:
        print(f"Likeness was not measured: {missing}.", file=sys.stderr)
        return 1
    rows = curve(pairs, cross_validated(pairs), default_model().threshold)
    unseen = shares(pairs, held_out(pairs))
    report.table(COLUMNS, [*rows, ["held out", *unseen]])
    halves = {half: notes_judged(half, chosen.show) for half in ("develop", "held_out")}
    for half, found in halves.items():
        print(f"notes, {half}: same {found['same']}, conflict {found['conflict']}")
    milliseconds = reading_ms(pairs)
    print(f"threshold {default_model().threshold}; {milliseconds:.3f} ms to read 300 characters")
    report.write(
        "likeness",
        {
            "pairs": {source: sum(pair.source == source for pair in pairs) for source in (STS, *COLUMNS[-3:])},
            "threshold": default_model().threshold,
            "rows": [dict(zip(COLUMNS, row, strict=True)) for row in rows],
            "held_out": dict(zip(COLUMNS[1:], unseen, strict=True)),
            "notes": halves,
            "first_look": FIRST_LOOK,
            "reading_ms": milliseconds,
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
