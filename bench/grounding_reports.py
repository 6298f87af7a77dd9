"""How the sentences of agents' reports are judged: whole texts about a repository, some about edits made in a clone.

    python bench/grounding_reports.py REPOSITORIES [--data DIR]

The sentences are those of `agent_reports.jsonl.gz` in the folder of the public data. REPOSITORIES has a git repository
for each, named `owner+name`, which is cloned for each group of edits. Nothing is fetched. A sentence is judged by the
claims that overlap it; without a claim it counts as open. Accepted is 0.7 and more, rejected below 0.3.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from cortex_py import Cortex
from cortex_py.grounding.verification import compute_score
from grounding_code import ACCEPT, REJECT, auroc

import datasets
import report


def judge(rows: Sequence[dict[str, Any]], cortex: Cortex) -> list[tuple[bool, float, bool]]:
    """The label and score of each sentence of one text, and whether a claim spans another one too."""
    text = rows[0]["text"]
    spans = [(at := text.index(row["sentence"]), at + len(row["sentence"])) for row in rows]
    findings = cortex.grounding.verify(text).findings
    found = []
    for row, (start, end) in zip(rows, spans, strict=True):
        own = [one for one in findings if one.claim.start < end and one.claim.end > start]
        merged = any(
            one.claim.start < b and one.claim.end > a for one in own for a, b in spans if (a, b) != (start, end)
        )
        found.append((bool(row["label"]), compute_score(own) if own else 0.5, merged))
    return found


def measure(rows: Sequence[dict[str, Any]], repositories: Path) -> list[tuple[bool, float, bool]]:
    found = []
    for (name, commit, setup), group in groupby(rows, key=lambda row: (row["repo"], row["commit"], row["setup"])):
        with tempfile.TemporaryDirectory() as folder:
            clone = Path(folder, name.rpartition("/")[2])
            source = repositories / name.replace("/", "+")
            subprocess.run(["git", "clone", "-q", str(source), str(clone)], check=True)
            subprocess.run(["git", "checkout", "-q", commit], cwd=clone, check=True)
            subprocess.run(["bash", "-c", setup], cwd=clone, check=True)
            with Cortex.open(Path(folder, "home"), project=clone) as cortex:
                for _, text in groupby(group, key=lambda row: row["id"]):
                    found += judge(list(text), cortex)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("repositories", type=Path)
    parser.add_argument("--data", type=Path, help="folder of the public data (default ../shared/data)")
    chosen = parser.parse_args(arguments)
    rows = measure(list(datasets.read_lines("agent_reports.jsonl.gz", chosen.data)), chosen.repositories)
    true = [score for label, score, _ in rows if label]
    false = [score for label, score, _ in rows if not label]
    columns = ("label", "sentences", "accepted", "rejected")
    shares = [(len(one), sum(s >= ACCEPT for s in one) / len(one), sum(s < REJECT for s in one) / len(one))
              for one in (true, false)]  # fmt: skip
    report.table(columns, [["true", *shares[0]], ["false", *shares[1]]])
    print(f"AUROC {auroc(true, false):.3f}, merged sentences {sum(merged for _, _, merged in rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
