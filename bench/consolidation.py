"""Consolidation at size, and whether the newer comes first: `make bench BENCH=consolidation`.

    python bench/consolidation.py                20,000 memories; LongMemEval's updated facts
    python bench/consolidation.py 5000           that many memories

The notes are sentences and turns of three public sets, one in ten a repetition of an earlier one in other case or with
other marks. The time is
shown beside that of one vector recall for every memory, taken from a sample in the same process, and beside half the
size, because the work should grow with the number of memories and not with its square.

LongMemEval's knowledge-update questions have two sessions each, of which the later holds the present answer. Counted
is how often it stands above the earlier where both are among the first ten (of turns: thirty), with and without
`prefer_newer`, and what that costs all answerable questions: a right session first, and among the first five. The two
numbers behind `prefer_newer` were set on these very questions.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from cortex_py import Cortex
from cortex_py.core.records import NewMemory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "cortex_recall"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "ranking"))

from ranking_samples import default_backend, engine

import report
import synthetic
from datasets import Collection, longmemeval, read_lines

SIZE = 20_000
SAMPLE = 200
WANTED = {"time beside one vector query per memory": 3.0, "newer first": 0.9}


def notes(count: int) -> list[NewMemory]:
    """Sentences of STS-B and VitaminC and turns of LongMemEval; every tenth a repetition with other marks."""
    texts: dict[str, None] = {}
    for row in read_lines("stsb.jsonl.gz"):
        texts.update(dict.fromkeys((row["a"], row["b"])))
    for row in read_lines("vitaminc.jsonl.gz"):
        texts.update(dict.fromkeys((row["claim"], row["evidence"])))
    for record in longmemeval(form="turns").records:
        texts[record.content[:600]] = None
    chosen = random.Random(7).sample(sorted(texts), min(count, len(texts)))
    for n in range(10, len(chosen), 10):
        chosen[n] = chosen[n - 7].rstrip(".").upper() if n % 20 else f"- {chosen[n - 7]}!"
    return [NewMemory(content=text, namespace="decisions") for text in chosen]


def at_size(count: int) -> dict[str, object]:
    """Seconds of a dry run and of a real one, and of a vector recall for each memory."""
    with tempfile.TemporaryDirectory() as home, Cortex.open(home, project=tempfile.mkdtemp(dir=home)) as cortex:
        cortex.memories.capture_many(notes(count))
        queries = synthetic.queries(SAMPLE + 5)
        for query in queries[:5]:
            cortex.memories.recall(query, mode="vector")
        started = time.perf_counter()
        for query in queries[5:]:
            cortex.memories.recall(query, mode="vector")
        one_query = (time.perf_counter() - started) / SAMPLE
        started = time.perf_counter()
        planned = cortex.memories.consolidate("decisions", dry_run=True)
        dry = time.perf_counter() - started
        started = time.perf_counter()
        done = cortex.memories.consolidate("decisions")
        real = time.perf_counter() - started
        again = cortex.memories.consolidate("decisions", dry_run=True)
    assert [group.memories for group in planned.groups] == [group.memories for group in done.groups]
    return {
        "memories": count,
        "groups": len(done.groups),
        "again": len(again.groups),
        "dry_s": dry,
        "real_s": real,
        "one_query_ms": one_query * 1000,
        "beside_queries": real / (one_query * count),
    }


def first_places(collection: Collection, ids: Sequence[str], results: Sequence[str]) -> list[str]:
    """Sessions by their best result."""
    unit = dict(zip(ids, (record.unit for record in collection.records), strict=True))
    return list(dict.fromkeys(unit[one] for one in results))


def newer_first(form: str) -> list[dict[str, object]]:
    found = engine(longmemeval(form=form), default_backend())  # type: ignore[arg-type]
    cortex, collection = found._cortex, found.collection
    with cortex._store.database.read() as session:
        ids = [row[0] for row in session.rows("SELECT id FROM memory ORDER BY num")]
    written: dict[str, datetime] = {record.unit: record.created_at for record in collection.records}
    limit = 10 if form == "session" else 30
    rows: list[dict[str, object]] = []
    for newer in (False, True):
        both = right = 0
        ranked = []
        for question in (one for one in collection.questions if one.answerable):
            hits = cortex.memories.recall(question.text, limit=limit, prefer_newer=newer).results
            seen = first_places(collection, ids, [hit.memory.id for hit in hits])
            ranked.append((seen[0] in question.relevant, bool(question.relevant.intersection(seen[:5]))))
            if question.kind == "knowledge-update" and len(question.relevant) == 2 and question.relevant <= set(seen):
                older, later = sorted(question.relevant, key=written.__getitem__)
                both += 1
                right += seen.index(later) < seen.index(older)
        first, five = np.mean(ranked, axis=0).tolist()
        rows.append(
            {
                "form": form,
                "prefer_newer": newer,
                "both": both,
                "newer_first": right / both,
                "first": first,
                "five": five,
            }
        )
    cortex.close()
    return rows


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else SIZE
    sizes = [at_size(count // 2), at_size(count)]
    report.table(list(sizes[0]), [list(row.values()) for row in sizes])
    growth = float(str(sizes[1]["dry_s"])) / float(str(sizes[0]["dry_s"]))
    print(f"twice the memories take {growth:.1f} times as long")
    rows = [row for form in ("session", "turns") for row in newer_first(form)]
    report.table(list(rows[0]), [list(row.values()) for row in rows])
    report.write("consolidation", {"sizes": sizes, "growth": growth, "newer": rows, "wanted": WANTED})


if __name__ == "__main__":
    main()
