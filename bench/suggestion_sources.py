"""Two more measures of suggestions: what twenty answers do to one source, and how long asking takes after much use."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from cortex_py import Cortex
from cortex_py.core.clock import to_micros
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.store.tables.suggestions import ReferenceRow, TrustRow
from suggestion_histories import History, Step
from suggestion_replay import REASON, Scene

import report
import synthetic

ANSWERS = 20
TAUGHT = 150
PROBES = 60
QUESTIONS = 120
_DAY = 86_400_000_000


def shares(history: History, backend: Backend) -> list[dict[str, object]]:
    """The share of a source in the top five before, after twenty refusals of it, and after twenty acceptances."""
    rows: list[dict[str, object]] = []
    for source in ("reference_history", "ai_analysis"):
        with tempfile.TemporaryDirectory() as folder:
            scene = Scene(history, Path(folder), backend)
            with scene.cortex:
                for step in history.steps[:TAUGHT]:
                    scene.clock.advance(hours=24)
                    for path in step.files:
                        scene.load(path)
                # All of one kind of work: what answers teach is for that kind first.
                rest = [
                    Step("Fix " + step.task.partition(" ")[2], step.files)
                    for step in history.steps[TAUGHT:]
                    if len(step.files) > 1
                ]
                probes, others = rest[:PROBES], rest[PROBES:]
                scene.clock.advance(hours=24)
                before = _share(scene, probes, source)
                refused = _answer(scene, others, source, accept=False)
                after = _share(scene, probes, source)
                accepted = _answer(scene, others[::-1], source, accept=True)
                again = _share(scene, probes, source)
        rows.append(
            {"source": source, "before": before, "refusals": refused, "after": after, "acceptances": accepted,
             "again": again, "fell_to": after / before, "recovered_to": again / before}
        )  # fmt: skip
    return rows


@contextmanager
def _at_hand(scene: Scene, step: Step, source: str) -> Iterator[str | None]:
    """The line of work to ask in: with one file of the step at hand where history is to speak, and none otherwise.

    What was written down meanwhile is taken off the table again, so that all is asked at one moment; what it added up
    to stays.
    """
    cortex, project = scene.cortex, scene.cortex._session.id
    history = source == "reference_history"
    cortex.suggestions.history(limit=1)  # writes what waits: it was done before
    row = ReferenceRow(scene.ids[step.files[0]], "load", scene.line, "", to_micros(scene.clock.now()))
    with cortex._store.database.write() as session:
        (last,) = session.rows("SELECT COALESCE(MAX(n), 0) FROM reference WHERE project_id = ?", (project,))
        cortex._store.suggestions.add(session, project, [row] if history else [], 100_000)
    yield scene.line if history else None
    with cortex._store.database.write() as session:
        session.run("DELETE FROM reference WHERE project_id = ? AND n > ?", (project, last[0]))


def _share(scene: Scene, steps: Sequence[Step], source: str) -> float:
    """The share of a source over all steps; nothing is answered."""
    shown: list[str] = []
    for step in steps:
        with _at_hand(scene, step, source) as line:
            given = scene.cortex.suggestions.suggest(step.task, top_k=5, branch_id=line)
        shown += [str(one.source) for one in given.suggestions]
    return shown.count(source) / max(1, len(shown))


def _answer(scene: Scene, steps: Sequence[Step], source: str, *, accept: bool) -> int:
    """Answer suggestions of one source, one at a time; returns how many there were.

    Where the surest suggestion is of another source, the first of this one among the five is accepted; the others are
    passed over. Only sessions that show nothing else are rejected.
    """
    done = 0
    for top_k in (1, 5):
        for step in steps:
            if done == ANSWERS:
                break
            with _at_hand(scene, step, source) as line:
                given = scene.cortex.suggestions.suggest(step.task, top_k=top_k, branch_id=line)
                mine = [one.memory.id for one in given.suggestions if one.source == source]
                if not mine or (not accept and len(mine) < len(given.suggestions)):
                    continue
                if accept:
                    scene.cortex.suggestions.accept(given.session_id, mine[:1])
                else:
                    scene.cortex.suggestions.reject(given.session_id, REASON)
            done += 1
    return done


def speed(backend: Backend, events: int, memories: int) -> dict[str, object]:
    """Suggesting beside one recall of the same text, in turns, after very many events."""
    bulk = synthetic.BulkBackend(backend)
    bulk.bulk = True
    lot = random.Random(17)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        with Cortex.open(Path(folder) / "home", project=root, backend=bulk) as cortex:
            line = cortex.contexts.create_branch("The work on this project").id
            ids = [one.id for one in cortex.memories.capture_many(synthetic.documents(memories))]
            bulk.bulk = False
            _fill(cortex, ids, line, events, lot)
            tasks = synthetic.queries(2 * QUESTIONS + 20)
            for task in tasks[-20:]:
                cortex.memories.recall(task)
                cortex.suggestions.suggest(task, branch_id=line)
            taken: dict[str, list[float]] = {"recall": [], "suggest": []}
            for task in tasks[: 2 * QUESTIONS : 2]:
                for name in lot.sample(sorted(taken), 2):
                    started = time.perf_counter()
                    if name == "recall":
                        cortex.memories.recall(task)
                    else:
                        cortex.suggestions.suggest(task, branch_id=line)
                    taken[name].append((time.perf_counter() - started) * 1000)
    rows = [[name, *map(float, np.quantile(times, (0.5, 0.95)))] for name, times in taken.items()]
    report.table(("call", "p50_ms", "p95_ms"), rows)
    ratio = float(np.median(taken["suggest"]) / np.median(taken["recall"]))
    print(f"{events:,} events over {memories:,} memories; suggest takes {ratio:.2f} times one recall (wanted: 2)")
    return {"events": events, "memories": memories, "rows": rows, "ratio": ratio, "wanted": 2.0}


def _fill(cortex: Cortex, ids: Sequence[str], line: str, events: int, lot: random.Random) -> None:
    """Put events and what they add up to into the store at once: by that many loads it would take an hour."""
    store, project = cortex._store, cortex._session.id
    now = to_micros(cortex._clock.now())
    weights = [1.0 / (place + 10) for place in range(len(ids))]
    used = lot.choices(ids, weights, k=events)
    tasks = synthetic.queries(500, seed=29)
    kinds = lot.choices(("load", "recall", "accept", "select"), (6, 2, 1.5, 0.5), k=events)
    rows = [
        ReferenceRow(
            one,
            kind,
            line if lot.random() < 0.7 else None,
            lot.choice(tasks) if kind in ("accept", "select") else "",
            now - (events - place) * 30_000_000,
        )
        for place, (one, kind) in enumerate(zip(used, kinds, strict=True))
    ]
    strengths = {
        one: (lot.uniform(0.1, 20.0), lot.randrange(1, 50), now - lot.randrange(30 * _DAY)) for one in set(used)
    }
    pairs: dict[tuple[str, str], tuple[float, int, int]] = {}
    for place in range(0, events - 4):
        for other in used[place + 1 : place + 4]:
            if other != used[place]:
                pair = (min(used[place], other), max(used[place], other))
                pairs[pair] = (lot.uniform(0.05, 3.0), lot.randrange(1, 9), now - lot.randrange(30 * _DAY))
    trust = {
        ("memory", one): TrustRow(lot.uniform(0, 3), lot.uniform(0, 3), now)
        for one in lot.sample(list(ids), min(len(ids), 2_000))
    }
    trust |= {("bin", str(number)): TrustRow(20.0 + number, 80.0, now) for number in range(10)}
    with store.database.write() as session:
        store.suggestions.add(session, project, rows, events)
        store.suggestions.put_strengths(session, project, strengths)
        store.suggestions.put_pairs(session, project, pairs)
        store.suggestions.put_trust(session, project, trust)
    print(
        f"filled in bulk: {events:,} events, {len(strengths):,} strengths, {len(pairs):,} pairs, {len(trust):,} trusts"
    )
