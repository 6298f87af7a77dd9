"""Does it help recall to know which entities a question and a memory share? Measured by re-ordering, on and off.

    python bench/entity_signal.py

The first forty hits of each question are reordered by their score and a weight times the shared entities, rarer ones
counting more. A weight is worth having only if it helps on both data sets.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, replace

from cortex_py import Cortex
from cortex_py.core.config import load_settings
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.backends.registry import open_backend
from cortex_py.core.graph_values import canonical
from cortex_py.core.records import NewMemory
from cortex_py.parts.graph.reading.extract import extract

import datasets
import report

WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
HITS = 40
# Parts of the data sets, so that it takes minutes: conversations, and questions with the sessions of others around.
CONVERSATIONS = 5
QUESTIONS = 100
OTHERS = 100
LEAST = 0.6


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's relevant units, and its hits as (score, unit, shared entities)."""

    relevant: frozenset[str]
    hits: list[tuple[float, str, float]]


def _names(text: str) -> set[str]:
    return {canonical(one.name, one.type) for one in extract(text).entities if one.confidence >= LEAST}


def ask(collection: datasets.Collection, backend: Backend) -> list[Asked]:
    with (
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as project,
        Cortex.open(home, project=project, backend=backend) as cortex,
    ):
        lines = {
            name: cortex.contexts.create_branch(name[:190]).id
            for name in {r.branch for r in collection.records}
            if name
        }
        stored = cortex.memories.capture_many(
            NewMemory(content=one.content, branch_id=lines.get(one.branch or ""), created_at=one.created_at)
            for one in collection.records
        )
        units = {memory.id: one.unit for memory, one in zip(stored, collection.records, strict=True)}
        names = {memory.id: _names(memory.content) for memory in stored}
        spread: dict[str, int] = {}
        for found in names.values():
            for name in found:
                spread[name] = spread.get(name, 0) + 1
        asked = []
        for question in collection.questions:
            if question.answerable:
                wanted = _names(question.text)
                hits = [
                    (
                        hit.score,
                        units[hit.memory.id],
                        sum(math.log1p(len(stored) / spread[name]) for name in wanted & names[hit.memory.id]),
                    )
                    for hit in cortex.memories.recall(question.text, limit=HITS).results
                ]
                asked.append(Asked(question.relevant, hits))
        return asked


def some(collection: datasets.Collection) -> datasets.Collection:
    """Some questions, with the sessions that answer them and some that do not."""
    questions = tuple(one for one in collection.questions if one.answerable)[:QUESTIONS]
    wanted = {unit for one in questions for unit in one.relevant}
    others = [one for one in collection.records if one.unit not in wanted][:OTHERS]
    records = tuple(one for one in collection.records if one.unit in wanted) + tuple(others)
    return replace(collection, records=records, questions=questions)


def found(asked: list[Asked], weight: float, first: int) -> float:
    """The share of relevant units among the first hits."""
    wanted = met = 0
    for one in asked:
        ordered = sorted(one.hits, key=lambda hit: -(_odds(hit[0]) + weight * hit[2]))
        met += len(one.relevant & {unit for _, unit, _ in ordered[:first]})
        wanted += len(one.relevant)
    return met / wanted


def _odds(score: float) -> float:
    kept = min(max(score, 1e-9), 1 - 1e-9)
    return math.log(kept / (1 - kept))


def main() -> None:
    backend = open_backend(settings=load_settings())
    sets = {
        "LoCoMo": [one for part in datasets.locomo()[:CONVERSATIONS] for one in ask(part, backend)],
        "LongMemEval": ask(some(datasets.longmemeval()), backend),
    }
    rows = [
        (weight, *(found(asked, weight, first) for asked in sets.values() for first in (5, 10))) for weight in WEIGHTS
    ]
    report.table(("weight", *(f"{name} @{first}" for name in sets for first in (5, 10))), rows)
    report.write("entity_signal", {"columns": [f"{name}@{first}" for name in sets for first in (5, 10)], "rows": rows})


if __name__ == "__main__":
    main()
