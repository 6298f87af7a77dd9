"""The public data the benchmarks measure on, as records to store and questions with their answers' places.

Nothing is downloaded and nothing is measured here. The files are read from `../shared/data`, or from the folder
named in `CORTEX_BENCH_DATA`; where a file is absent, `DatasetMissing` says which and what to do.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

__all__ = [
    "Collection",
    "DatasetMissing",
    "LocomoForm",
    "LongMemEvalForm",
    "Question",
    "Record",
    "cosqa",
    "data_folder",
    "locomo",
    "longmemeval",
    "moment",
    "read_lines",
    "without_docstring",
]

LocomoForm = Literal["speaker", "dated", "plain"]
LongMemEvalForm = Literal["session", "turns"]


class DatasetMissing(FileNotFoundError):
    """A benchmark file is not on this machine."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is absent: put the public data files there or name their folder in CORTEX_BENCH_DATA")
        self.filename = path


@dataclass(frozen=True, slots=True)
class Record:
    """One memory to store. `unit` is what questions call relevant: the record itself, or the session it is in."""

    key: str
    unit: str
    content: str
    branch: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A query and the units that answer it; none are relevant when it cannot be answered."""

    key: str
    text: str
    kind: str
    relevant: frozenset[str]
    asked_at: datetime | None = None

    @property
    def answerable(self) -> bool:
        return bool(self.relevant)


@dataclass(frozen=True, slots=True)
class Collection:
    """Records of one project, in order, with the questions asked of it."""

    name: str
    records: tuple[Record, ...]
    questions: tuple[Question, ...]


def data_folder(folder: Path | None = None) -> Path:
    """The folder of the data files: the argument, `CORTEX_BENCH_DATA`, or `../shared/data` beside the checkout."""
    if folder is not None:
        return folder
    named = os.environ.get("CORTEX_BENCH_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"


def read_lines(name: str, folder: Path | None = None) -> Iterator[dict[str, Any]]:
    """The objects of one gzipped JSON-lines file."""
    path = data_folder(folder) / name
    if not path.is_file():
        raise DatasetMissing(path)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def locomo(folder: Path | None = None, *, form: LocomoForm = "speaker") -> list[Collection]:
    """LoCoMo: each conversation a project, each session a branch, each turn a record.

    Question kinds are the data set's categories "1" to "5". Category 5 is unanswerable, so nothing is relevant;
    questions of categories 1 to 4 without usable evidence are left out.
    """
    return [_conversation(item, form) for item in read_lines("locomo.jsonl.gz", folder)]


def _conversation(item: dict[str, Any], form: LocomoForm) -> Collection:
    conversation = item["conversation"]
    numbers = sorted(int(m[1]) for name in conversation if (m := re.fullmatch(r"session_(\d+)", name)))
    records: list[Record] = []
    for number in numbers:
        stamp = conversation[f"session_{number}_date_time"]
        created_at = datetime.strptime(stamp, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation[f"session_{number}"]:
            content = turn["text"] if form == "plain" else f"{turn['speaker']}: {turn['text']}"
            if form == "dated":
                content = f"({stamp}) {content}"
            records.append(Record(turn["dia_id"], turn["dia_id"], content, f"session_{number}", created_at))
    known = {record.key for record in records}
    questions: list[Question] = []
    for n, qa in enumerate(item["qa"]):
        # Some evidence lists hold several ids in one string, zero-padded ids, or ids of no turn.
        cited = {f"D{int(a)}:{int(b)}" for text in qa["evidence"] for a, b in re.findall(r"D(\d+):(\d+)", text)}
        relevant = frozenset(cited & known)
        kind = str(qa["category"])
        if kind != "5" and not relevant:
            continue
        questions.append(Question(f"{n}", qa["question"], kind, frozenset() if kind == "5" else relevant))
    return Collection(str(item["sample_id"]), tuple(records), tuple(questions))


def longmemeval(folder: Path | None = None, *, form: LongMemEvalForm = "session") -> Collection:
    """LongMemEval (oracle): the sessions of all questions pooled into one project, identical ones stored once.

    `session` makes each session one long record; `turns` makes each turn a record in a branch per session.
    Units are digests of a session's text, because the data set's own session ids give the answers away.
    Question kinds are the data set's types; `_abs` questions are unanswerable.
    """
    records: dict[str, list[Record]] = {}
    questions: list[Question] = []
    for item in read_lines("longmemeval_oracle.jsonl.gz", folder):
        units: dict[str, str] = {}
        for session_id, stamp, turns in zip(
            item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True
        ):
            texts = [f"{turn['role']}: {turn['content']}" for turn in turns]
            unit = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
            units[session_id] = unit
            if unit not in records:
                records[unit] = list(_session(unit, texts, moment(stamp), form))
        absent = item["question_id"].endswith("_abs")
        relevant = frozenset() if absent else frozenset(units[s] for s in item["answer_session_ids"])
        asked_at = moment(item["question_date"])
        questions.append(Question(item["question_id"], item["question"], item["question_type"], relevant, asked_at))
    ordered = sorted(records.values(), key=lambda session: (session[0].created_at, session[0].unit))
    return Collection("longmemeval", tuple(r for session in ordered for r in session), tuple(questions))


def _session(unit: str, texts: list[str], created_at: datetime, form: LongMemEvalForm) -> Iterator[Record]:
    if form == "session":
        yield Record(unit, unit, "\n".join(texts), None, created_at)
        return
    for n, text in enumerate(texts):
        yield Record(f"{unit}:{n}", unit, text, unit, created_at)


def moment(stamp: str) -> datetime:
    """The date and time that LongMemEval writes."""
    return datetime.strptime(re.sub(r" \(\w+\)", "", stamp), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def cosqa(folder: Path | None = None, *, docstrings: bool = True) -> Collection:
    """CoSQA: each Python function a record, and web queries that one of them answers."""
    made = datetime(2026, 10, 1, tzinfo=UTC)
    functions = {row["id"]: row["code"] for row in read_lines("cosqa_code.jsonl.gz", folder)}
    records = tuple(
        Record(str(key), str(key), code if docstrings else without_docstring(code), None, made)
        for key, code in functions.items()
    )
    asked = enumerate(read_lines("cosqa_queries.jsonl.gz", folder))
    questions = tuple(Question(f"{n}", row["query"], "code", frozenset({str(row["code_id"])})) for n, row in asked)
    return Collection("cosqa" if docstrings else "cosqa-bare", records, questions)


def without_docstring(code: str) -> str:
    """A Python function without its docstring; code that cannot be parsed loses its first triple-quoted text."""
    try:
        function = ast.parse(code).body[0]
        assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    except (SyntaxError, ValueError, AssertionError, IndexError):
        return re.sub(r'[rRuU]?("""|\'\'\')[\s\S]*?\1\s*\n?', "", code, count=1)
    text = function.body[0]
    if not (isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)):
        return code
    lines = code.splitlines(keepends=True)
    kept = lines[: text.lineno - 1] + lines[text.end_lineno or text.lineno :]
    return "".join(kept) if len(function.body) > 1 else "".join([*kept, "    pass\n"])
