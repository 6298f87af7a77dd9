"""How much personal data is found, how much of what is found is right, and how much ordinary text is mistaken for it.

    python bench/personal_data.py [FOLDER]

Labelled text comes from `pii.jsonl.gz`, split in halves by the digest of each text: the rules were written with the
even half in view, the odd half is only counted. A labelled span counts as found when findings of a kind that `KINDS`
gives for its type cover at least half of its characters; a finding counts as right when spans of a type that `RIGHT`
gives for its kind cover at least half of its own. Whole spans are those found with both ends in place. Ordinary text
comes from this project, the standard library and conversations: what is found there is counted per 1,000 lines.
"""

from __future__ import annotations

import hashlib
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cortex_py.core.security.personal import PERSONAL_KINDS, find_personal_data
from cortex_py.core.security.secrets.secrets import SensitiveSpan
from cortex_py.parts.graph.writer import sure_person_names

import report
from datasets import DatasetMissing, locomo, read_lines

PROJECT = Path(__file__).parents[1]

# Which kinds of findings answer a type of the set. GPE, ORGANIZATION, TITLE, NRP, AGE, DOMAIN_NAME and DATE_TIME (all
# dates, nearly none of them of birth) have no kind of ours.
KINDS: dict[str, frozenset[str]] = {
    "EMAIL_ADDRESS": frozenset(("email",)),
    "PHONE_NUMBER": frozenset(("phone",)),
    "CREDIT_CARD": frozenset(("payment-card",)),
    "IBAN_CODE": frozenset(("iban",)),
    "US_SSN": frozenset(("us-ssn", "us-itin")),
    "US_DRIVER_LICENSE": frozenset(("driver-licence",)),
    "US_PASSPORT": frozenset(("passport",)),
    "IP_ADDRESS": frozenset(("ip-address",)),
    "MAC_ADDRESS": frozenset(("mac-address",)),
    "STREET_ADDRESS": frozenset(("street-address",)),
    "PERSON": frozenset(("person-name",)),
}
OTHERS = ("STREET_ADDRESS", "PERSON")
UNSTRUCTURED = frozenset(("street-address", "date-of-birth", "person-name"))
# The types that make a finding of a kind right: an address ends with its place and postcode.
RIGHT: dict[str, frozenset[str]] = {
    **{kind: frozenset((type,)) for type, kinds in KINDS.items() for kind in kinds},
    "street-address": frozenset(("STREET_ADDRESS", "GPE", "ZIP_CODE")),
    "date-of-birth": frozenset(("DATE_TIME",)),
}


class Labelled(NamedTuple):
    text: str
    spans: tuple[tuple[int, int, str], ...]


class Row(NamedTuple):
    half: str
    kind: str
    spans: int
    found: int
    whole: int
    recall: float
    findings: int
    right: int
    precision: float


def halves(folder: Path | None) -> dict[str, list[Labelled]]:
    parts: dict[str, list[Labelled]] = {"half in view": [], "unseen half": []}
    for row in read_lines("pii.jsonl.gz", folder):
        even = int(hashlib.sha256(row["text"].encode()).hexdigest(), 16) % 2 == 0
        spans = tuple((span["start_position"], span["end_position"], span["entity_type"]) for span in row["spans"])
        parts["half in view" if even else "unseen half"].append(Labelled(row["text"], spans))
    return parts


def covered(start: int, end: int, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether at least half of the characters are within the spans, which do not overlap."""
    return 2 * sum(max(0, min(end, last) - max(start, first)) for first, last in spans) >= end - start


def rows_of(half: str, texts: Sequence[Labelled]) -> Iterator[Row]:
    spans: Counter[str] = Counter()
    found: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for text in texts:
        result = find_personal_data(text.text, sure_person_names)
        for start, end, type in text.spans:
            if type in KINDS:
                fitting = [(finding.start, finding.end) for finding in result if finding.kind in KINDS[type]]
                spans[type] += 1
                found[type] += covered(start, end, fitting)
                whole[type] += (start, end) in fitting
        for finding in result:
            types = RIGHT.get(finding.kind, frozenset())
            findings[finding.kind] += 1
            right[finding.kind] += covered(
                finding.start, finding.end, [(start, end) for start, end, type in text.spans if type in types]
            )

    def row(name: str, types: Iterable[str], kinds: Iterable[str]) -> Row:
        types, kinds = list(types), list(kinds)
        labelled, hit = sum(spans[type] for type in types), sum(found[type] for type in types)
        seen, good = sum(findings[kind] for kind in kinds), sum(right[kind] for kind in kinds)
        exact = sum(whole[type] for type in types)
        nothing = float("nan")
        return Row(
            half,
            name,
            labelled,
            hit,
            exact,
            hit / labelled if labelled else nothing,
            seen,
            good,
            good / seen if seen else nothing,
        )

    for type, kinds in KINDS.items():
        if spans[type] or any(findings[kind] for kind in kinds):
            yield row(type, [type], kinds)
    yield row("date-of-birth", [], ["date-of-birth"])
    unmapped = [kind for kind in PERSONAL_KINDS if kind not in RIGHT]
    yield row("kinds without a type", [], unmapped)
    structured = [kind for kind in PERSONAL_KINDS if kind not in UNSTRUCTURED]
    yield row("all structured", [type for type in KINDS if type not in OTHERS], structured)


def ordinary(folder: Path | None) -> dict[str, Callable[[], Iterator[str]]]:
    def files(place: Path, *patterns: str) -> Iterator[str]:
        for path in sorted(path for pattern in patterns for path in place.rglob(pattern)):
            if "site-packages" not in path.parts and "test" not in path.parts:
                yield path.read_text("utf-8", errors="replace")

    return {
        "this project's source": lambda: files(PROJECT / "src", "*.py"),
        "this project's pages": lambda: files(PROJECT / "docs", "**/*.md"),
        "Python's standard library": lambda: files(Path(sysconfig.get_path("stdlib")), "*.py"),
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


def by_kind(findings: Iterable[SensitiveSpan]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in Counter(finding.kind for finding in findings).most_common())


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    try:
        rows = [row for half, texts in halves(folder).items() for row in rows_of(half, texts)]
        plain: list[tuple[str, int, int, float, str, float]] = []
        for name, texts in ordinary(folder).items():
            lines = characters = 0
            findings: list[SensitiveSpan] = []
            began = time.process_time()
            for text in texts():
                lines += text.count("\n") + 1
                characters += len(text)
                findings += find_personal_data(text)
            speed = (time.process_time() - began) / characters * 200e6
            plain.append((name, lines, len(findings), 1000 * len(findings) / lines, by_kind(findings), speed))
    except DatasetMissing as missing:
        print(f"Skipped: {missing}")
        return 0
    report.table(Row._fields, rows)
    print()
    columns = ("text", "lines", "findings", "per 1,000 lines", "of kinds", "µs of CPU per 200 characters")
    report.table(columns, plain)
    result = {
        "rows": [row._asdict() for row in rows],
        "ordinary": [dict(zip(columns, row, strict=True)) for row in plain],
    }
    report.write("personal_data", result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
