"""How often a project's own name is found in its description and in its issues.

    python bench/own_names.py [--issues FOLDER] [--developed] [--missed]

Descriptions are those of installed packages. The six of HELD_OUT were never looked at while rules were written, nor
learned from; `--developed` reports on others, which `train_repetition.py` learned from. A mention is the name as
a whole word in any case, outside of code, commands, addresses and markup. It is found if an entity has exactly these
words. A description is read alone, by a store that knows nothing. `FOLDER/<project>.jsonl` holds the texts of issues
(`text`): they are read by a store that has the description as a memory, in a folder of another name, and each issue is
stored before the next is read.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cortex_py import Cortex
from cortex_py.parts.graph.reading.tokens import MAX_CHARACTERS, code_spans

import report

HELD_OUT = frozenset(("keyring", "psutil", "responses", "schemathesis", "tokenizers", "urllib3"))
DEVELOPED = (
    "anyio", "attrs", "boto3", "cachetools", "click", "cryptography", "fsspec", "jsonschema", "moto", "networkx",
    "packaging", "pluggy", "pydantic", "pytest", "requests", "rich", "ruff", "starlette", "tqdm", "uvicorn",
    "werkzeug", "xmltodict",
)  # fmt: skip
_MARKUP = re.compile(r"(?:https?://|www\.)\S+|\]\([^)\s]*\)|\]\[[^\]\n]*\]|<[^>\n]{0,300}>|^\[[^\]\n]+\]:.*$", re.M)


def description(name: str) -> str:
    """The long description of an installed package."""
    return str(importlib.metadata.distribution(name).metadata.json.get("description", ""))


def mentions(name: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the part of a text that is read has the name in prose."""
    text = text[:MAX_CHARACTERS]
    skipped = [*code_spans(text), *(match.span() for match in _MARKUP.finditer(text))]
    for match in re.finditer(rf"(?i)(?<![\w/@.\\-]){re.escape(name)}(?![\w/@\\(=\[-]|\.\w)", text):
        if not any(first <= match.start() < last for first, last in skipped):
            yield match.span()


class Count:
    """Mentions, and how many of them were found."""

    def __init__(self) -> None:
        self.all = self.found = 0
        self.missed: list[str] = []

    def add(self, cortex: Cortex, name: str, text: str) -> None:
        found = {(one.start, one.end) for one in cortex.graph.extract(text).extraction.entities}
        for first, last in mentions(name, text):
            self.all += 1
            if (first, last) in found:
                self.found += 1
            else:
                self.missed.append(" ".join(text[max(0, first - 40) : last + 30].split()))

    @property
    def share(self) -> float:
        return self.found / self.all if self.all else 1.0


def measure(name: str, issues: list[str]) -> tuple[Count, Count]:
    """The mentions in the description alone, and in the issues of a project whose description is stored."""
    alone, later = Count(), Count()
    text = description(name)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        work.mkdir()
        with Cortex.open(Path(folder) / "home", project=work) as cortex:
            alone.add(cortex, name, text)
            cortex.memories.capture(text[:MAX_CHARACTERS])
            for issue in issues:
                later.add(cortex, name, issue)
                cortex.memories.capture(issue)
    return alone, later


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--issues", type=Path)
    parser.add_argument("--developed", action="store_true", help="projects that the weights were learned from")
    parser.add_argument("--missed", action="store_true", help="show the mentions that were missed")
    chosen = parser.parse_args()
    rows: list[tuple[object, ...]] = []
    counts = [0, 0, 0, 0]
    missed: list[str] = []
    for name in DEVELOPED if chosen.developed else sorted(HELD_OUT):
        file = chosen.issues / f"{name}.jsonl" if chosen.issues else None
        lines = file.read_text("utf-8").splitlines() if file and file.is_file() else []
        alone, later = measure(name, [json.loads(line)["text"] for line in lines])
        rows.append((name, alone.all, alone.share, len(lines), later.all, later.share))
        counts = [a + b for a, b in zip(counts, (alone.all, alone.found, later.all, later.found), strict=True)]
        missed += [f"{name}: {place}" for place in (*alone.missed, *later.missed)]
    shares = counts[1] / max(counts[0], 1), counts[3] / max(counts[2], 1)
    rows.append(("all", counts[0], shares[0], "", counts[2], shares[1]))
    report.table(("project", "in description", "found", "issues", "in issues", "found"), rows)
    if chosen.missed:
        print("\n" + "\n".join(missed))
    elif not chosen.developed:
        report.write("own_names", {"rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
