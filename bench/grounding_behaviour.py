"""How claims about what code does are judged: defaults, returns, exceptions, calls, conditions, order and the like.

    python bench/grounding_behaviour.py CLAIMS CHECKOUTS [--write FILE]

CLAIMS is a file of labelled claims (one JSON object a line, gzipped): `repo`, `commit`, `claim`, `label`, `kind`,
`file`, `line_start`, `line_end`. CHECKOUTS holds a git checkout for each repository, named after its last part, at that
commit. Only the text of a claim is given to Cortex. Nothing is fetched; what is missing is named and left out.

- `false accepted`, `true accepted`: scores of 0.7 and more; `true rejected`, `false rejected`: below 0.3.
- `place`: of the decided claims (accepted or rejected), the share whose first passage overlaps the labelled lines.
- `passages`: the share of all claims whose passages for a language model contain a labelled line.
- `with a model that reads right`: the best that a language model could do, one that decides every open claim whose
  passages contain a labelled line. No model is asked.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cortex_py import Cortex
from grounding_code import ACCEPT, REJECT, auroc

import report

COVERED = frozenset(
    (
        "default_value",
        "returns",
        "raises",
        "calls",
        "inheritance",
        "signature",
        "uses_library",
        "config",
        "count",
        "routes",
    )
)
COLUMNS = (
    "what",
    "claims",
    "AUROC",
    "true acc.",
    "true rej.",
    "false acc.",
    "false rej.",
    "place",
    "passages",
)


@dataclass(frozen=True)
class Judged:
    id: str
    repo: str
    kind: str
    claim: str
    label: bool
    score: float
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...]
    places: tuple[str, ...]
    right_place: bool | None
    in_passages: bool
    checks: tuple[tuple[str, ...], ...]


def read_claims(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def overlaps(evidence: Any, row: dict[str, Any]) -> bool:
    if evidence.path != row["file"] or evidence.line is None:
        return False
    last = getattr(evidence, "end_line", None) or evidence.line
    return bool(evidence.line <= row["line_end"] and last >= row["line_start"])


def judge(row: dict[str, Any], cortex: Cortex) -> Judged:
    found = cortex.grounding.verify(row["claim"])
    findings = found.findings
    decided = found.score >= ACCEPT or found.score < REJECT
    # A rejected text is decided by its worst claim, an accepted one by all of them.
    first = [one.evidence[0] for one in sorted(findings, key=lambda one: one.probability) if one.evidence]
    shown = first[:1] if found.score < REJECT else first
    passages = cortex.grounding.passages(row["claim"]) if hasattr(cortex.grounding, "passages") else []
    return Judged(
        row["id"],
        row["repo"],
        row["kind"],
        row["claim"],
        bool(row["label"]),
        found.score,
        tuple(one.verdict for one in findings),
        tuple(one.reason for one in findings),
        tuple(one.location for one in first),
        any(overlaps(one, row) for one in shown) if decided and findings else None,
        any(overlaps(one, row) for one in passages),
        tuple(tuple(f"{'+' if c.holds else '-'}{c.name}" for c in one.checks) for one in findings),
    )


def row_of(name: str, rows: Sequence[Judged]) -> list[object]:
    true = [one.score for one in rows if one.label]
    false = [one.score for one in rows if not one.label]
    places = [one.right_place for one in rows if one.right_place is not None]

    def share(some: Sequence[bool]) -> float:
        return sum(some) / len(some) if some else float("nan")

    return [
        name,
        len(rows),
        auroc(true, false),
        share([s >= ACCEPT for s in true]),
        share([s < REJECT for s in true]),
        share([s >= ACCEPT for s in false]),
        share([s < REJECT for s in false]),
        share(places),
        share([one.in_passages for one in rows]),
    ]


def measure(claims: Path, checkouts: Path) -> list[Judged]:
    every = read_claims(claims)
    rows: list[Judged] = []
    for repository in sorted({row["repo"] for row in every}):
        folder = checkouts / repository.rpartition("/")[2]
        if not folder.is_dir():
            print(f"Not there: {folder}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as home, Cortex.open(Path(home), project=folder) as cortex:
            rows += [judge(row, cortex) for row in every if row["repo"] == repository]
        print(f"{repository}: {sum(one.repo == repository for one in rows)} claims", file=sys.stderr, flush=True)
    return rows


def print_tables(rows: Sequence[Judged]) -> None:
    report.table(
        ("repository", *COLUMNS[1:]),
        [row_of(name, [o for o in rows if o.repo == name]) for name in sorted({o.repo for o in rows})],
    )
    report.table(
        ("kind", *COLUMNS[1:]),
        [row_of(name, [o for o in rows if o.kind == name]) for name in sorted({o.kind for o in rows})],
    )
    covered = [one for one in rows if one.kind in COVERED]
    read = [replace(one, score=float(one.label)) if _is_open(one) and one.in_passages else one for one in rows]
    report.table(
        ("all", *COLUMNS[1:]),
        [row_of("covered kinds", covered), row_of("all", rows), row_of("all, with a model that reads right", read)],
    )


def _is_open(one: Judged) -> bool:
    return all(verdict in ("unverified", "not found") for verdict in one.verdicts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("claims", type=Path)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--write", type=Path, help="a file for every claim with its verdicts, a JSON object a line")
    chosen = parser.parse_args(arguments)
    rows = measure(chosen.claims, chosen.checkouts)
    if not rows:
        print("Nothing was measured: no checkout is there.", file=sys.stderr)
        return 1
    print_tables(rows)
    if chosen.write:
        chosen.write.write_text("".join(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
