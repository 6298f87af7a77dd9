"""How many secrets are found, how much ordinary text is mistaken for one, and how long a look takes.

    python bench/secret_scan.py [FOLDER]

Labelled lines come from `secrets.jsonl.gz`: the rules were tuned on one half of them (a fixed shuffle) and are
reported on both (the other half was looked at once, after its blind figures were written down: 0.936 found, 8 of 81
mistaken). Ordinary text comes from conversations, code and questions, where every finding is a mistake.
(Not named `secrets.py`: scripts in this folder would then import it in place of the standard library's module.)
"""

from __future__ import annotations

import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cortex_py.security.secrets import find_secrets

import report
from datasets import DatasetMissing, locomo, read_lines

SEED = 20240611
# Lines of this source marked "no secret" are published Google sample keys that gitleaks lists one by one: real keys
# by their form, so every scanner without that list finds them.
LISTED = "gitleaks/gcp.go"


class Line(NamedTuple):
    text: str
    secret: bool
    source: str


def labelled(folder: Path | None) -> tuple[list[Line], list[Line]]:
    """The labelled lines: the half that was tuned on, and the half that was held out."""
    lines = [Line(row["text"], row["secret"], row["source"]) for row in read_lines("secrets.jsonl.gz", folder)]
    random.Random(SEED).shuffle(lines)
    middle = len(lines) // 2
    return lines[:middle], lines[middle:]


def ordinary(folder: Path | None) -> dict[str, Callable[[], Iterator[str]]]:
    return {
        "conversation turns (LoCoMo)": lambda: (
            record.content for part in locomo(folder, form="plain") for record in part.records
        ),
        "chat messages (LongMemEval)": lambda: (
            turn["content"]
            for row in read_lines("longmemeval_oracle.jsonl.gz", folder)
            for session in row["haystack_sessions"]
            for turn in session
        ),
        "Python functions (CoSQA)": lambda: (row["code"] for row in read_lines("cosqa_code.jsonl.gz", folder)),
        "Stack Overflow sentences": lambda: (
            " ".join(row["tokens"]) for row in read_lines("software_ner.jsonl.gz", folder)
        ),
    }


def share(lines: Sequence[Line]) -> tuple[int, int]:
    return sum(bool(find_secrets(line.text)) for line in lines), len(lines)


def rows_of_lines(name: str, lines: Sequence[Line]) -> Iterator[tuple[str, str, int, int, float]]:
    groups = {
        "found of the secrets": [line for line in lines if line.secret],
        "mistaken": [line for line in lines if not line.secret],
        "mistaken, without listed sample keys": [line for line in lines if not line.secret and line.source != LISTED],
    }
    for measure, group in groups.items():
        found, total = share(group)
        yield name, measure, found, total, found / total


def rows_by_source(lines: Sequence[Line]) -> Iterator[tuple[str, str, int, int, float]]:
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        groups[line.source, "found of the secrets" if line.secret else "mistaken"].append(line)
    for (source, measure), group in sorted(groups.items()):
        found, total = share(group)
        yield source, measure, found, total, found / total


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    try:
        tuned, held = labelled(folder)
        rows: list[tuple[str, str, int, int, float]] = []
        for name, lines in (("tuned half", tuned), ("held-out half", held), ("all labelled lines", tuned + held)):
            rows += rows_of_lines(name, lines)
        speed: dict[str, float] = {}
        for name, texts in ordinary(folder).items():
            found = total = characters = 0
            began = time.perf_counter()
            for text in texts():
                total += 1
                characters += len(text)
                found += bool(find_secrets(text))
            speed[name] = (time.perf_counter() - began) / characters * 200e6
            rows.append((name, "mistaken", found, total, found / total))
    except DatasetMissing as missing:
        print(f"Skipped: {missing}")
        return 0
    rows += rows_by_source(tuned + held)
    report.table(("text", "measure", "lines", "of", "share"), rows)
    print()
    report.table(("text", "µs per 200 characters, reading included"), list(speed.items()))
    names = ("text", "measure", "lines", "of", "share")
    report.write("secrets", {"rows": [dict(zip(names, row, strict=True)) for row in rows], "us_per_200_chars": speed})
    return 0


if __name__ == "__main__":
    sys.exit(main())
