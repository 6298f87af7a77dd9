"""Make `excerpt_model.json`: which blocks of a project show whether a claim is true, learned from labelled lines.

    python training/grounding/train_passages.py CHECKOUTS CLAIMS... [--check]

CLAIMS are files as `grounding_behaviour` reads them. A block counts as right if it overlaps the labelled lines. Every
repository is weighed by a model that was fitted to others, and the share of claims whose labelled
lines are among the chosen excerpts is printed; then the model is fitted to all of them and written, unless `--check` is
given.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training"))

import grounding_behaviour
import logistic
from cortex_py import Cortex
from cortex_py.parts.verify.checks import excerpts
from cortex_py.parts.verify.checks.excerpts import FEATURES, Block, read_blocks
from cortex_py.parts.verify.checks.names import resolve
from cortex_py.parts.verify.checks.scene import Scene
from cortex_py.parts.verify.claims.claims import read_claims
from cortex_py.parts.verify.index.lookup import Lookup
from cortex_py.parts.verify.judges.support import LogisticModel
from cortex_py.parts.verify.sources import EVERYTHING

Floats = NDArray[np.float64]

FOLDS = 4
RIDGE = 1.0


@dataclass(frozen=True)
class Sample:
    """The blocks of one claim, and which of them overlap the labelled lines."""

    repository: str
    features: Floats
    sizes: Floats
    right: NDArray[np.bool_]


def gather(checkouts: Path, claims: Sequence[Path], homes: Path) -> list[Sample]:
    rows = [row for path in claims for row in grounding_behaviour.read_claims(path)]
    found: list[Sample] = []
    for repository in sorted({row["repo"] for row in rows}):
        name = repository.rpartition("/")[2]
        if not (checkouts / name).is_dir():
            print(f"Not there: {checkouts / name}", file=sys.stderr)
            continue
        with Cortex.open(homes / name, project=checkouts / name) as cortex:
            index = cortex.grounding._index  # the parts that a judge gets, before they are chosen
            assert index is not None
            lookup = Lookup(index, index.refresh(), EVERYTHING)
            found += [one for row in rows if row["repo"] == repository for one in samples(row, lookup)]
        print(f"{repository}: {len(found)} claims so far", file=sys.stderr, flush=True)
    return found


def samples(row: dict[str, Any], lookup: Lookup) -> list[Sample]:
    """The blocks for each claim of a text; a text of several claims is right if any of them is."""
    blocks: list[Block] = []
    for claim in read_claims(row["claim"]).claims:
        blocks += read_blocks(Scene(claim, resolve(claim, lookup), lookup))
    if not blocks:
        return [Sample(row["repo"], np.zeros((0, len(FEATURES))), np.zeros(0), np.zeros(0, bool))]
    features = np.array([[one.features[name] for name in FEATURES] for one in blocks])
    sizes = np.array(
        [sum(len(line) + 1 for line in lookup.lines(one.path)[one.first - 1 : one.last]) + 40 for one in blocks]
    )
    right = np.array(
        [one.path == row["file"] and one.first <= row["line_end"] and one.last >= row["line_start"] for one in blocks]
    )
    return [Sample(row["repo"], features, sizes, right)]


def fit(some: Sequence[Sample]) -> LogisticModel:
    """Weights by which the blocks with the labelled lines come before the others of their claim."""
    some = [one for one in some if one.right.any()]
    rows, right = np.vstack([one.features for one in some]), np.concatenate([one.right for one in some])
    lengths = [len(one.right) for one in some]
    starts, owner = np.cumsum([0, *lengths[:-1]]), np.repeat(np.arange(len(some)), lengths)

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = rows @ weights
        raised = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
        wanted = np.where(right, raised, 0.0)
        total, found = np.add.reduceat(raised, starts), np.add.reduceat(wanted, starts)
        slope = rows.T @ (raised / total[owner] - wanted / found[owner]) + RIDGE * weights
        return float((np.log(total) - np.log(found)).sum() + RIDGE * (weights**2).sum() / 2), slope

    weights = logistic.minimise(loss, np.zeros(len(FEATURES)))
    return LogisticModel({name: float(value) for name, value in zip(FEATURES, weights, strict=True)}, 0.0)


def is_covered(model: LogisticModel, one: Sample) -> bool:
    weights = np.array([model.coefficients[name] for name in FEATURES])
    left = excerpts._TOKENS * excerpts._TOKEN
    for place in np.argsort(-(one.features @ weights), kind="stable"):
        if one.sizes[place] <= left:
            left -= one.sizes[place]
            if one.right[place]:
                return True
    return False


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("claims", type=Path, nargs="+")
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as homes:
        every = gather(chosen.checkouts, chosen.claims, Path(homes))
    covered = []
    names = sorted({one.repository for one in every})
    for fold in range(FOLDS):
        held = names[fold::FOLDS]
        model = fit([one for one in every if one.repository not in held])
        for name in held:
            own = [is_covered(model, one) for one in every if one.repository == name]
            covered += own
            print(f"{name:24} {len(own):4}  {sum(own) / len(own):.3f}")
    print(f"{'all':24} {len(covered):4}  {sum(covered) / len(covered):.3f}")
    model = fit(every)
    for name, value in model.coefficients.items():
        print(f"  {name:12} {value:+.2f}")
    if not chosen.check:
        content = {"offset": round(model.offset, 4), "weights": {k: round(v, 4) for k, v in model.coefficients.items()}}
        path = Path(excerpts.__file__).with_name("excerpt_model.json")
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
