"""Saved prompts in number: how long listing and getting take, and what rendering adds to a recall.

    python bench/prompts.py                  10,000 prompts, a rendering of 1,000 memories
    python bench/prompts.py 1000 100         the sizes given

Prompts are spread over project and user, some names in both, each with tags and variables. The rendering is that of
the published example, its memories of 500 characters; what it takes is shown beside the recall it begins with, in
alternating turns of one process.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from cortex_py import Cortex
from cortex_py.core.records import NewMemory

import report
import synthetic

SIZES = (10_000, 1_000)
QUESTIONS = 300
ROUNDS = 15
WANTED_MS = {"list and get p50": 5.0, "render beyond recall": 100.0}
COLUMNS = ("question", "p50_ms", "p95_ms")
EXAMPLE = "# {{title}}\n\n{{#each memories}}\n- **{{memory.namespace}}**: {{memory.content}}\n{{/each}}"
TAGS = [f"tag-{i}" for i in range(40)]


def fill(cortex: Cortex, prompts: int) -> list[str]:
    """Save prompts, and tell their names. In one transaction each, as callers do, it would take minutes."""
    lot = random.Random(3)
    names = [f"prompt-{i:05d}" for i in range(prompts)]
    for i, name in enumerate(names):
        cortex.prompts.save(
            name,
            f"Number {i}: review {{{{file}}}} for {{{{issue_type}}}}.",
            description=f"Prompt number {i}, for the benchmark",
            domain="user" if i % 3 == 0 else "project",
            tags=lot.sample(TAGS, 3),
            variables=[{"name": "issue_type", "default": "security"}],
        )
    for name in names[::30]:
        cortex.prompts.save(name, "Another {{file}}", domain="project")
    return names


def timed(questions: list[Callable[[], object]]) -> list[float]:
    taken = []
    for question in questions:
        started = time.perf_counter()
        question()
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def rendering(cortex: Cortex, memories: int) -> tuple[list[float], list[float]]:
    """Milliseconds of a recall, and of a rendering with the same recall, in turns."""
    cortex.memories.capture_many(
        NewMemory(content=one.content[:500].ljust(500, "."), namespace="decisions")
        for one in synthetic.documents(memories + 50)
    )
    cortex.templates.save("example", EXAMPLE)
    query = synthetic.queries(1)[0]
    alone, whole = [], []
    for _ in range(ROUNDS):
        alone += timed([lambda: cortex.memories.recall(query, limit=memories)])
        whole += timed(
            [lambda: cortex.templates.render("example", query=query, limit=memories, variables={"title": "T"})]
        )
    return alone, whole


def main() -> None:
    prompts, memories = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else SIZES
    lot = random.Random(5)
    with tempfile.TemporaryDirectory() as home, Cortex.open(home, project=tempfile.mkdtemp(dir=home)) as cortex:
        names = fill(cortex, prompts)
        some = [lot.choice(names) for _ in range(QUESTIONS)]
        asked: dict[str, list[Callable[[], object]]] = {
            "list, first 20": [lambda: cortex.prompts.list()] * QUESTIONS,
            "list, 20 at half": [lambda: cortex.prompts.list(offset=prompts // 2)] * 30,
            "list with 2 tags": [lambda: cortex.prompts.list(tags=lot.sample(TAGS, 2)) for _ in range(QUESTIONS)],
            "get": [lambda name=name: cortex.prompts.get(name) for name in some],
            "run": [lambda name=name: cortex.prompts.run(name, {"file": "a.py"}) for name in some],
            "all, for clients": [lambda: cortex.prompts.visible()] * 10,
        }
        rows = []
        for question, calls in asked.items():
            taken = timed(calls)
            rows.append({**dict(zip(COLUMNS, (question, *map(float, np.quantile(taken, (0.5, 0.95)))), strict=True))})
        alone, whole = rendering(cortex, memories)
        for label, taken in (("recall", alone), ("recall and rendering", whole)):
            rows.append({**dict(zip(COLUMNS, (label, *map(float, np.quantile(taken, (0.5, 0.95)))), strict=True))})
        beyond = float(np.median(whole) - np.median(alone))
        found = cortex.templates.render("example", query=synthetic.queries(1)[0], limit=memories).memories
    report.table(COLUMNS, [list(row.values()) for row in rows])
    print(f"{prompts:,} prompts; {found:,} memories rendered, {beyond:.1f} ms beyond the recall")
    report.write(
        "prompts",
        {"prompts": prompts, "memories": found, "rows": rows, "beyond_ms": beyond, "wanted_ms": WANTED_MS},
    )


if __name__ == "__main__":
    main()
