"""How well true claims about a project are separated from false ones, and how often the place that shows it is right.

    python bench/grounding_code.py [--split reported|training] [--most N] [--write-errors FILE]

Measured on real release histories (`python bench/releases.py` gets them, once) and the first commits of this
repository; without them on copies of the installed packages. `training` are the packages and phrasings that rules and
models may be fitted to, `reported` are others of both. A claim has a score, the probability that it is true: 0.7 and
more accepts it, below 0.3 rejects it, between is a warning.

- `bal.acc.`: a true claim is right if it is accepted (0.7 and more), a false one if it is not (below 0.7); the mean of
  the two shares.
- `strict`: the same, but a false claim is right only if it is rejected (below 0.3).
- `warn true`, `warn false`: the shares of them that fall between.
- `place`: of the true claims found `supported`, the share whose first evidence is at the right place: the file, and a
  line of the place or within two of its first, or the commit. Claims that nothing can be shown for are left out.
- `nothing`: claims that nothing to be checked was taken from; they count with the score that they were given.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grounding_claims
import releases
from cortex_py import Cortex
from grounding_claims import LabelledClaim, Place

import report

OWN = "this repository"
TRAINING = ("click", "attrs", "pluggy", "redux", "execa")
REPORTED = ("flask", "httpx", "packaging", "starlette", "tenacity", "jinja2", "axios", "immer", "express", OWN)
INSTALLED = ("click", "starlette", "anyio", "fastmcp", "filelock", "rich", "uvicorn", "networkx")
ACCEPT, REJECT = 0.7, 0.3
NEAR = 2
SEED = 20
MOST = 300
COLUMNS = ("what", "claims", "AUROC", "bal.acc.", "strict", "warn true", "warn false", "place", "nothing")


@dataclass(frozen=True)
class Judged:
    repository: str
    commit: str
    claim: LabelledClaim
    score: float
    verdicts: tuple[str, ...]
    evidence: tuple[str, ...]
    """Of the finding that decides, best first."""
    right_place: bool | None
    """Whether the first evidence is where it should be; None where it is not supported, or has no place."""
    seconds: float

    @property
    def wrong(self) -> bool:
        return self.claim.true != (self.score >= ACCEPT)


def at_place(evidence: Any, places: Sequence[Place]) -> bool:
    """Whether an evidence is one of the places, or as good as."""
    for one in places:
        if one.commit is not None:
            given = evidence.commit
            if given and (one.commit.startswith(given) or given.startswith(one.commit)):
                return True
        elif evidence.path == one.path:
            whole = one.last >= 10**9
            line = evidence.line
            if (whole and line is None) or (
                line is not None and (one.first <= line <= one.last or abs(line - one.first) <= NEAR)
            ):
                return True
    return False


def judged(repository: str, commit: str, claim: LabelledClaim, cortex: Any) -> Judged:
    began = time.perf_counter()
    found = cortex.grounding.verify(claim.text)
    seconds = time.perf_counter() - began
    findings = tuple(found.findings)
    deciding = min(findings, key=lambda one: one.probability, default=None)
    evidence = tuple(deciding.evidence) if deciding is not None else ()
    supported = bool(findings) and all(one.verdict == "supported" for one in findings)
    right = None
    if claim.true and claim.places and supported:
        right = bool(evidence) and at_place(evidence[0], claim.places)
    told = tuple(str(one.location) for one in evidence[:5])
    verdicts = tuple(one.verdict for one in findings)
    return Judged(repository, commit, claim, float(found.score), verdicts, told, right, seconds)


def auroc(true: Sequence[float], false: Sequence[float]) -> float:
    """How often a true claim has more than a false one; a tie counts half."""
    if not true or not false:
        return float("nan")
    return sum((a > b) + 0.5 * (a == b) for a in true for b in false) / (len(true) * len(false))


def row(name: str, rows: Sequence[Judged]) -> list[object]:
    true = [one.score for one in rows if one.claim.true]
    false = [one.score for one in rows if not one.claim.true]
    places = [one.right_place for one in rows if one.right_place is not None]

    def share(scores: Sequence[float], holds: Callable[[float], bool]) -> float:
        return sum(map(holds, scores)) / len(scores) if scores else float("nan")

    def between(score: float) -> bool:
        return REJECT <= score < ACCEPT

    accepted = share(true, lambda score: score >= ACCEPT)
    parts = (accepted, share(false, lambda score: score < ACCEPT)), (accepted, share(false, lambda s: s < REJECT))
    balanced = [sum(part) / 2 if true and false else next(x for x in part if x == x) for part in parts]
    return [
        name, len(rows), auroc(true, false), *balanced, share(true, between), share(false, between),
        sum(places) / len(places) if places else float("nan"), sum(not one.verdicts for one in rows),
    ]  # fmt: skip


def measure(name: str, repository: Path, wording: str, most: int) -> Iterator[Judged]:
    """Every claim about a repository, judged where it stands."""
    for commit, claim, cortex in standing(repository, wording, most):
        yield judged(name, commit, claim, cortex)


def standing(repository: Path, wording: str, most: int) -> Iterator[tuple[str, LabelledClaim, Cortex]]:
    """Every claim about a repository with a Cortex that stands where it is made: a clone of its own for each commit."""
    for commit, claims in grounding_claims.claims(repository, wording=wording, seed=SEED, most=most):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "project"
            run = ("git", "-c", "advice.detachedHead=false")
            subprocess.run([*run, "clone", "-q", "--no-checkout", str(repository), str(place)], check=True)
            # What stands after the commit is not known there: no branch or tag leads to it.
            subprocess.run([*run, "-C", str(place), "checkout", "-q", commit], check=True)
            _forget_later(place, commit)
            with Cortex.open(Path(folder) / "home", project=place) as cortex:
                for claim in claims:
                    yield commit, claim, cortex


def _forget_later(clone: Path, commit: str) -> None:
    """Take away what points past the commit that a clone stands at, as if nothing had come after it."""
    git = ("git", "-C", str(clone))
    subprocess.run([*git, "remote", "remove", "origin"], check=True, capture_output=True)
    subprocess.run([*git, "checkout", "-q", "-B", "main", commit], check=True, capture_output=True)
    listed = subprocess.run([*git, "tag", "--no-merged", commit], check=True, capture_output=True, text=True).stdout
    if listed.split():
        subprocess.run([*git, "tag", "-d", *listed.split()], check=True, capture_output=True)


def repositories(split: str, scratch: Path) -> list[tuple[str, Path]]:
    """The repositories of a split by name; copies of installed packages where the release histories are not there."""
    own = Path(__file__).resolve().parent.parent
    names = TRAINING if split == "training" else REPORTED
    there = [(name, releases.FOLDER / name) for name in names if (releases.FOLDER / name / ".git").is_dir()]
    missing = [name for name in names if name != OWN and name not in dict(there)]
    if missing:
        print(f"Not there: {', '.join(missing)}. `python bench/releases.py` gets release histories.")
    if not there:
        print("Installed packages are measured in their place: one commit each, nothing about changes.")
        half = INSTALLED[:3] if split == "training" else INSTALLED[3:]
        there = [(name, made) for name in half if (made := _installed(name, scratch)) is not None]
    if split == "reported" and (own / ".git").exists():
        there.append((OWN, own))
    return there


def _installed(name: str, scratch: Path) -> Path | None:
    """A repository of one commit with the sources of an installed package."""
    source = Path(sysconfig.get_paths()["purelib"]) / name
    if not source.is_dir():
        return None
    target = scratch / name
    shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    releases.git(target, "init", "-q", "-b", "main")
    releases.git(target, "add", "-A", "-f")
    releases.git(target, "commit", "-q", "-m", f"{name} as installed", when=1_700_000_000)
    return target


def tables(rows: Sequence[Judged], names: Sequence[str]) -> dict[str, list[list[object]]]:
    kinds = sorted({one.claim.kind for one in rows})
    changes = sorted({one.claim.change for one in rows if one.claim.change})
    by_change = []
    for change in changes:
        families = {one.claim.kind for one in rows if one.claim.change == change}
        # The false ones of a change against the true ones of the families that have it.
        of = [one for one in rows if one.claim.change == change or (one.claim.true and one.claim.kind in families)]
        by_change.append(row(change, of))
    return {
        "repository": [row(name, [one for one in rows if one.repository == name]) for name in names],
        "family": [row(kind, [one for one in rows if one.claim.kind == kind]) for kind in kinds],
        "change": by_change,
        "all": [row("all", rows)],
    }


def _told(line: Sequence[object]) -> dict[str, object]:
    """A row of a table by column, without those that have no figure."""
    return {name: value for name, value in zip(COLUMNS, line, strict=True) if value == value}


def write_errors(path: Path, rows: Sequence[Judged]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for one in rows:
            if one.wrong or one.right_place is False:
                out.write(json.dumps(asdict(one) | {"wrong": one.wrong}, ensure_ascii=False) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--split", choices=("training", "reported"), default="reported")
    parser.add_argument("--most", type=int, default=MOST, help=f"claims of a repository (default {MOST})")
    parser.add_argument("--only", nargs="*", help="only these repositories of the split")
    parser.add_argument("--write-errors", type=Path, help="a file for the wrongly judged claims, a JSON object a line")
    chosen = parser.parse_args(arguments)
    rows: list[Judged] = []
    with tempfile.TemporaryDirectory() as scratch:
        listed = [one for one in repositories(chosen.split, Path(scratch)) if not chosen.only or one[0] in chosen.only]
        for name, repository in listed:
            rows.extend(measure(name, repository, chosen.split, chosen.most))
            print(f"{name}: {sum(one.repository == name for one in rows)} claims", file=sys.stderr, flush=True)
    if not rows:
        print("Grounding in code was not measured: there is no repository to measure on.", file=sys.stderr)
        return 1
    made = tables(rows, [name for name, _ in listed])
    for title, lines in made.items():
        report.table((title, *COLUMNS[1:]), lines)
        print()
    taken = sorted(one.seconds for one in rows)
    cost = {"p50": 1000 * taken[len(taken) // 2], "p95": 1000 * taken[int(len(taken) * 0.95)]}
    print(f"milliseconds a claim: p50 {cost['p50']:.1f}, p95 {cost['p95']:.1f}")
    if chosen.write_errors:
        write_errors(chosen.write_errors, rows)
    if not chosen.only:
        report.write(
            "grounding_code" if chosen.split == "reported" else "grounding_code_training",
            {
                "split": chosen.split,
                "counts": dict(Counter(f"{one.claim.kind}/{one.claim.change or 'true'}" for one in rows)),
                "tables": {title: [_told(line) for line in lines] for title, lines in made.items()},
                "milliseconds": cost,
            },
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
