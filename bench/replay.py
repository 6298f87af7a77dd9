"""Answers before and after a change of the code: the ids and scores of many queries, written down and compared.

    PYTHONPATH=<old>/src python bench/replay.py dump HOME before.jsonl [QUERIES]
    python bench/replay.py dump HOME after.jsonl [QUERIES]
    python bench/replay.py compare before.jsonl after.jsonl

The home is one that `latency.py` fills, or any other; the 5,000 queries are synthetic (see `synthetic.py`). Some are
asked by words alone, some by their vector alone, and some with a filter. A difference in the last digits of a
score is not one: sums of floats depend on their order.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from cortex_py import Cortex
from latency import _backend as backend

from synthetic import queries

QUERIES = 5_000
MODES = ("hybrid", "vector", "hybrid", "text")
FILTERS = ("", "", "", "ns:decisions", "tag:t5", "ns:patterns,learnings -tag:t7", "since:10y", "user:nobody")
_CLOSE = 2e-6


def dump(home: Path, path: Path, count: int) -> None:
    with Cortex.open(home, project=home, backend=backend()) as cortex, path.open("w") as file:
        used = time.process_time()
        for n, text in enumerate(queries(count, seed=29)):
            filter = FILTERS[n // len(MODES) % len(FILTERS)]
            page = cortex.memories.recall(text, mode=MODES[n % len(MODES)], filter=filter)
            hits = [(hit.memory.id, round(hit.score, 7)) for hit in page.results]
            file.write(json.dumps([text, page.total, hits]) + "\n")
        print(f"{count} queries, {(time.process_time() - used) / count * 1e3:.2f} ms of processor time each")


def compare(before: Path, after: Path) -> bool:
    same = order = scores = totals = 0
    worst = 0.0
    pairs = list(zip(before.open(), after.open(), strict=True))
    for one, other in pairs:
        (text, total, hits), (again, new_total, new_hits) = json.loads(one), json.loads(other)
        assert text == again, "the dumps have different queries"
        apart = max((abs(a[1] - b[1]) for a, b in zip(hits, new_hits, strict=False)), default=0.0)
        worst = max(worst, apart)
        ids = [[hit[0] for hit in found] for found in (hits, new_hits)]
        totals += total != new_total
        if ids[0] != ids[1]:
            order += 1
        elif apart > _CLOSE:
            scores += 1
        else:
            same += 1
    print(f"{len(pairs)} queries: {same} the same, {order} with other ids, {scores} with other scores only")
    print(f"largest difference of a score: {worst:.2g}; totals that differ: {totals}")
    return same == len(pairs)


def main() -> None:
    kind, first, second, *rest = sys.argv[1:]
    if kind == "compare":
        sys.exit(0 if compare(Path(first), Path(second)) else 1)
    dump(Path(first), Path(second), int(rest[0]) if rest else QUERIES)


if __name__ == "__main__":
    main()
