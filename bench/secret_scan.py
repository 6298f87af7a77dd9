"""How many secrets are found, how much ordinary text is mistaken for one, and how long a look takes.

    python bench/secret_scan.py [FOLDER]

Labelled lines come from `secrets.jsonl.gz`. They are split by the SHA-256 of their source and shape (`shape`), so that
lines that differ only in the characters of a token are in one half. The present rules were made with half A in sight
and only the totals of half B; rules of earlier versions were made with the whole file in sight. Ordinary text comes
from conversations, claims, code, documentation and the standard library, where every finding is a mistake.
(Not named `secrets.py`: scripts in this folder would then import it in place of the standard library's module.)
"""

from __future__ import annotations

import hashlib
import re
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cortex_py.core.security.secrets.secrets import find_secrets

import report
from datasets import DatasetMissing, locomo, read_lines

# Lines of this source marked "no secret" are published Google sample keys that gitleaks lists one by one: real keys
# by their form, so every scanner without that list finds them.
LISTED = "gitleaks/gcp.go"
# Lines marked "secret" that are none by the definition of security.md: one character repeated in place of a
# token, the words `username:password`, and public addresses.
STAND_IN = re.compile(r"([A-Za-z0-9])\1{7,}|://username:password@")
ADDRESS = re.compile(r"\s*[\"']?(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?[\"']?\s*")
ROOT = Path(__file__).resolve().parent.parent
Row = tuple[str, str, int, int, float]


class Line(NamedTuple):
    text: str
    secret: bool
    source: str

    @property
    def half(self) -> str:
        return "AB"[hashlib.sha256(f"{self.source}\0{shape(self.text)}".encode()).digest()[0] & 1]


def shape(text: str) -> str:
    """The text without what two lines of one kind differ in: long words become `#`, digits become zeros."""
    return re.sub(r"\d", "0", re.sub(r"\s+", " ", re.sub(r"[A-Za-z0-9_+/=~-]{12,}", "#", text)))


def files(folder: Path, *patterns: str) -> Iterator[str]:
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            if "site-packages" not in path.parts and "test" not in path.parts:
                yield path.read_text(encoding="utf-8", errors="replace")


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
        "claims and evidence (VitaminC, WiCE)": lambda: (
            text
            for name in ("vitaminc.jsonl.gz", "wice.jsonl.gz")
            for row in read_lines(name, folder)
            for text in (row["claim"], *([row["evidence"]] if isinstance(row["evidence"], str) else row["evidence"]))
        ),
        "Python functions (CoSQA)": lambda: (row["code"] for row in read_lines("cosqa_code.jsonl.gz", folder)),
        "Stack Overflow sentences": lambda: (
            " ".join(row["tokens"]) for row in read_lines("software_ner.jsonl.gz", folder)
        ),
        "standard library, without its tests": lambda: files(Path(sysconfig.get_paths()["stdlib"]), "**/*.py"),
        "this project's pages and sources": lambda: files(ROOT, "*.md", "docs/**/*.md", "src/**/*.py"),
    }


def share(lines: Sequence[Line]) -> tuple[int, int]:
    return sum(bool(find_secrets(line.text)) for line in lines), len(lines)


def rows_of_lines(name: str, lines: Sequence[Line]) -> Iterator[Row]:
    secrets = [line for line in lines if line.secret]
    others = [line for line in lines if not line.secret]
    groups = {
        "found of the secrets": secrets,
        "found, without placeholders and public addresses": [
            line for line in secrets if not (STAND_IN.search(line.text) or ADDRESS.fullmatch(line.text))
        ],
        "mistaken": others,
        "mistaken, without listed sample keys": [line for line in others if line.source != LISTED],
    }
    for measure, group in groups.items():
        found, total = share(group)
        yield name, measure, found, total, found / total


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    rows: list[Row] = []
    speed: dict[str, float] = {}
    try:
        lines = [Line(row["text"], row["secret"], row["source"]) for row in read_lines("secrets.jsonl.gz", folder)]
        for half in "AB":
            rows += rows_of_lines(f"half {half}", [line for line in lines if line.half == half])
        for name, texts in ordinary(folder).items():
            found = total = characters = 0
            began = time.perf_counter()
            for text in texts():
                total += 1
                characters += len(text)
                found += bool(find_secrets(text))
            speed[name] = (time.perf_counter() - began) / characters * 1e9
            rows.append((name, "mistaken", found, total, found / total))
    except DatasetMissing as missing:
        print(f"Skipped: {missing}")
        return 0
    report.table(("text", "measure", "lines", "of", "share"), rows)
    print()
    report.table(("text", "µs per 1,000 characters, reading included"), list(speed.items()))
    names = ("text", "measure", "lines", "of", "share")
    report.write("secrets", {"rows": [dict(zip(names, row, strict=True)) for row in rows], "us_per_1000_chars": speed})
    return 0


if __name__ == "__main__":
    sys.exit(main())
