"""How well contradictions between two notes of one subject are told from notes that can both hold.

    python bench/conflicts.py [--part develop|held_out|held_out2] [--show]

The pairs of `data/conflict_pairs.jsonl` were written by hand before the rules were changed for them; the rules were
only ever changed with the part `develop` in view. `held_out2` was scored once. A pair counts as reported if capture
would report it: `conflict` of the comparison, with the cosine of the shipped model.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cortex_py.core.memory.comparison.conflicts import conflict
from cortex_py.core.memory.comparison.statements import read_statement

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "cortex_recall"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "likeness"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "ranking"))

from train_likeness import vectors

import report

PAIRS = Path(__file__).parent / "data" / "conflict_pairs.jsonl"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--part", choices=("develop", "held_out", "held_out2"), default="held_out2")
    parser.add_argument("--show", action="store_true", help="print the pairs that are judged wrongly")
    chosen = parser.parse_args(arguments)
    pairs = [row for row in map(json.loads, PAIRS.read_text("utf-8").splitlines()) if row["part"] == chosen.part]
    known = vectors([pair[side] for pair in pairs for side in "ab"])
    reported: list[bool] = []
    for pair in pairs:
        cosine = float(known[pair["a"]] @ known[pair["b"]])
        found = conflict(read_statement(pair["a"]), read_statement(pair["b"]), cosine)
        reported.append(found is not None)
        if chosen.show and reported[-1] != (pair["label"] == "conflict"):
            print(f"{pair['label']}/{pair['kind']} cosine {cosine:.2f}: {found}\n    {pair['a']}\n    {pair['b']}")
    right = sum(was and pair["label"] == "conflict" for was, pair in zip(reported, pairs, strict=True))
    wanted = sum(pair["label"] == "conflict" for pair in pairs)
    precision, recall = right / max(sum(reported), 1), right / wanted
    report.table(
        ("part", "pairs", "conflicts", "reported", "right", "precision", "recall"),
        [[chosen.part, len(pairs), wanted, sum(reported), right, precision, recall]],
    )
    report.write("conflicts", {"part": chosen.part, "precision": precision, "recall": recall})
    return 0


if __name__ == "__main__":
    sys.exit(main())
