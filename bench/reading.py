"""Reading notes for the graph after their capture: the same graph as if each had been read at once, and its cost.

    python bench/reading.py          400 notes of the files in bench/data

Two homes get the same notes. In one, each is read before the next is captured; in the other, all are read at the end.
Then entities, spellings, mentions, relationships and personal data are compared row by row, and the results of recalls.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cortex_py import Cortex

import report

DATA = Path(__file__).with_name("data")
NOTES, QUERIES = 400, 40
TABLES = {
    "entities": "SELECT id, name, type, key, given FROM entity ORDER BY id",
    "spellings": "SELECT entity_id, alias, key FROM entity_alias ORDER BY entity_id, alias",
    "mentions": "SELECT num, entity_id, first, past, confidence, method FROM mention ORDER BY num, first, entity_id",
    "relationships": "SELECT num, source_id, target_id, type, confidence, method, evidence FROM relationship "
    "ORDER BY num, source_id, target_id, type",
    "personal": "SELECT num, graphed, personal FROM memory ORDER BY num",
}


def notes(count: int) -> list[str]:
    """Sentences of more than 40 characters, without repetitions, in an order that does not change."""
    found: dict[str, None] = {}
    for file in sorted(DATA.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            for value in row.values() if isinstance(row, dict) else ():
                if isinstance(value, str) and len(value) > 40:
                    found.setdefault(value)
    texts = sorted(found)
    random.Random(5).shuffle(texts)
    return texts[:count]


def replay(texts: list[str], queries: list[str], *, at_once: bool) -> tuple[dict[str, Any], float, float]:
    """All that the graph has, with the processor time of a capture and of reading a note, in milliseconds."""
    captured = read = 0.0
    with tempfile.TemporaryDirectory() as home, Cortex.open(home, project=home) as cortex:
        for text in texts:
            started = time.thread_time()
            cortex.memories.capture(text)
            captured += time.thread_time() - started
            if at_once:
                read += _finish(cortex)
        read += _finish(cortex)
        with cortex._store.database.read() as session:
            found: dict[str, Any] = {name: session.rows(statement) for name, statement in TABLES.items()}
        pages = [cortex.memories.recall(query, limit=5) for query in queries]
        found["recalls"] = [[(hit.memory.content, round(hit.score, 6)) for hit in page.results] for page in pages]
    return found, captured / len(texts) * 1e3, read / len(texts) * 1e3


def _finish(cortex: Cortex) -> float:
    started = time.thread_time()
    while not cortex.memories.finish_reading():
        pass
    return time.thread_time() - started


def main() -> None:
    texts = notes(NOTES + QUERIES)
    texts, queries = texts[:NOTES], texts[NOTES:]
    rows = {way: replay(texts, queries, at_once=way == "at once") for way in ("at once", "at the end")}
    report.table(
        ("read", "capture_cpu_ms", "read_cpu_ms", *TABLES),
        [
            [way, captured, read, *(len(found[name]) for name in TABLES)]
            for way, (found, captured, read) in rows.items()
        ],
    )
    differing = [name for name in (*TABLES, "recalls") if rows["at once"][0][name] != rows["at the end"][0][name]]
    print(f"different: {', '.join(differing) or 'nothing'}")
    figures = {way: {"capture_cpu_ms": captured, "read_cpu_ms": read} for way, (_, captured, read) in rows.items()}
    report.write("reading", {"rows": figures, "different": differing})
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
