r"""Make `claim_model.json`: what each check of a claim against its project is worth, learned from labelled claims.

    python training/grounding/train_grounding.py [--most N] [--check] [--write-errors FILE] \
        [--behaviour CLAIMS CHECKOUTS]...

The claims are those of `grounding_claims` about the repositories and in the phrasings that are kept for training, and
claims about behaviour with the checkouts that they are about; `grounding_code` and `grounding_behaviour` measure on
others. A check that holds never speaks against a claim, nor one that fails for it: where
the data would have it so, it counts nothing. What the data has no cases of is given in `FIXED`. `--check` leaves the
file alone and tells how the model does on each repository when it was fitted to the others.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import grounding_behaviour
import grounding_code
from cortex_py import Cortex
from cortex_py.parts.verify.judges import judge
from cortex_py.parts.verify.judges.judge import FEATURES, ClaimModel

Floats = NDArray[np.float64]

RIDGE = 1.0
MOST = 200
# Test reports, lines and commits are not part of the labelled claims; what they are worth is set by hand.
FIXED = {
    "tests_holds": 3.5, "tests_fails": -3.5, "line_holds": 1.5, "line_fails": -2.0, "commit_holds": 0.5,
    "commit_fails": -3.0, "memory": 2.5, "message": 2.0,
    "file_fails": -2.0,
}  # fmt: skip
FREE = frozenset(("denied", "named"))
AGAINST = frozenset(("several_fail", "details_missing", "universal"))


@dataclass(frozen=True)
class Case:
    repository: str
    text: str
    kind: str
    change: str | None
    true: bool
    features: tuple[float, ...]
    checks: tuple[str, ...]


def gather(most: int, behaviour: Sequence[Sequence[str]] = ()) -> list[Case]:
    """The claims with what is checked of them; of a false one that makes several claims nobody knows which is false."""
    cases = []
    # What is checked does not depend on what it is worth, and the model at hand may be of other checks.
    judge.default_claim_model = lambda: ClaimModel(dict.fromkeys(FEATURES, 0.0), 0.0)
    for claims, checkouts in behaviour:
        cases += gather_behaviour(Path(claims), Path(checkouts))
    with tempfile.TemporaryDirectory() as scratch:
        for name, repository in grounding_code.repositories("training", Path(scratch)):
            for wording in ("training", "development"):
                for _, claim, cortex in grounding_code.standing(repository, wording, most):
                    cases += _cases(name, claim.text, claim.kind, claim.change, claim.true, cortex)
            print(f"{name}: {sum(case.repository == name for case in cases)} cases", file=sys.stderr, flush=True)
    return cases


def gather_behaviour(path: Path, checkouts: Path) -> list[Case]:
    """The claims about what code does, each with what is checked of it."""
    rows, cases = grounding_behaviour.read_claims(path), []
    for repository in sorted({row["repo"] for row in rows}):
        name = repository.rpartition("/")[2]
        if not (checkouts / name).is_dir():
            print(f"Not there: {checkouts / name}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as home, Cortex.open(Path(home), project=checkouts / name) as cortex:
            for row in rows:
                if row["repo"] == repository:
                    cases += _cases(name, row["claim"], f"behaviour: {row['kind']}", None, bool(row["label"]), cortex)
        print(f"{name}: {sum(case.repository == name for case in cases)} cases", file=sys.stderr, flush=True)
    return cases


def _cases(name: str, text: str, kind: str, change: str | None, true: bool, cortex: Cortex) -> list[Case]:
    findings = [finding for finding in cortex.grounding.verify(text).findings if finding.features]
    if not true and len(findings) > 1:
        return []
    return [
        Case(
            name, text, kind, change, true,
            tuple(finding.features.get(key, 0.0) for key in FEATURES),
            (finding.claim.type, *(f"{one.name} {'+' if one.holds else '-'} {one.reason}" for one in finding.checks)),
        )
        for finding in findings
    ]  # fmt: skip


def train(cases: Sequence[Case]) -> ClaimModel:
    """The logistic model; of the weights with an unbelievable sign the largest is dropped until there is none."""
    rows, target = np.array([case.features for case in cases]), np.array([float(case.true) for case in cases])
    given = rows @ np.array([FIXED.get(name, 0.0) for name in FEATURES])
    used = [place for place, name in enumerate(FEATURES) if name not in FIXED]
    while True:
        offset, fitted = _fit(rows[:, used], target, given)
        wrong = [(abs(value), place) for value, place in zip(fitted, used, strict=True) if _unbelievable(place, value)]
        if not wrong:
            break
        used.remove(max(wrong)[1])
    weights = dict.fromkeys(FEATURES, 0.0) | FIXED
    weights |= {FEATURES[place]: float(value) for place, value in zip(used, fitted, strict=True)}
    return ClaimModel(weights, offset)


def _unbelievable(place: int, value: float) -> bool:
    name = FEATURES[place]
    if name in FREE:
        return False
    against = name.endswith("_fails") or name in AGAINST
    return value > 0 if against else value < 0


def _fit(rows: Floats, target: Floats, given: Floats) -> tuple[float, Floats]:
    """Weights by Newton's method; large ones are held back."""
    columns = np.hstack([rows, np.ones((len(rows), 1))])
    penalty = np.append(np.full(rows.shape[1], RIDGE), 1e-3)
    weights = np.zeros(columns.shape[1])
    for _ in range(50):
        likely = 1 / (1 + np.exp(-(columns @ weights + given)))
        slope = columns.T @ (likely - target) + penalty * weights
        bend = (columns * (likely * (1 - likely))[:, None]).T @ columns + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return float(weights[-1]), weights[:-1]


def predicted(model: ClaimModel, cases: Sequence[Case]) -> list[float]:
    return [model.probability(dict(zip(FEATURES, case.features, strict=True))) for case in cases]


def figures(name: str, cases: Sequence[Case], scores: Sequence[float]) -> str:
    true = [score for case, score in zip(cases, scores, strict=True) if case.true]
    false = [score for case, score in zip(cases, scores, strict=True) if not case.true]
    if not true or not false:
        return f"{name:24} {len(cases):6}"
    right = sum(score >= 0.7 for score in true) / len(true), sum(score < 0.7 for score in false) / len(false)
    area = grounding_code.auroc(true, false)
    return (
        f"{name:24} {len(cases):6}  AUROC {area:.3f}  balanced {sum(right) / 2:.3f} ({right[0]:.2f} / {right[1]:.2f})"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write-errors", type=Path)
    parser.add_argument("--behaviour", nargs=2, action="append", default=[], metavar=("CLAIMS", "CHECKOUTS"))
    parser.add_argument("--cases", type=Path, help="a file for the gathered cases, used again if it is there")
    chosen = parser.parse_args(arguments)
    if chosen.cases and chosen.cases.exists():
        cases = [Case(**row) for row in json.loads(chosen.cases.read_text())]
    else:
        cases = gather(chosen.most, chosen.behaviour)
    if chosen.cases:
        chosen.cases.write_text(json.dumps([vars(case) for case in cases]))
    scores = dict.fromkeys(range(len(cases)), 0.0)
    for name in sorted({case.repository for case in cases}):
        model = train([case for case in cases if case.repository != name])
        held = [n for n, case in enumerate(cases) if case.repository == name]
        scores |= dict(zip(held, predicted(model, [cases[n] for n in held]), strict=True))
        print(figures(name, [cases[n] for n in held], [scores[n] for n in held]))
    for kind in sorted({case.kind for case in cases}):
        held = [n for n, case in enumerate(cases) if case.kind == kind]
        print(figures(kind, [cases[n] for n in held], [scores[n] for n in held]))
    print(figures("all", cases, list(scores.values())))
    if chosen.write_errors:
        wrong = [n for n, case in enumerate(cases) if case.true != (scores[n] >= 0.7)]
        lines = [{"score": round(scores[n], 3)} | vars(cases[n]) | {"features": None} for n in wrong]
        chosen.write_errors.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    model = train(cases)
    for name, value in model.coefficients.items():
        print(f"  {name:24} {value:+.2f}")
    if not chosen.check:
        content = {"offset": round(model.offset, 4), "weights": {k: round(v, 4) for k, v in model.coefficients.items()}}
        path = Path(judge.__file__).with_name("claim_model.json")
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
