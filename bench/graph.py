"""A large graph on SQLite: how long neighbours, paths and drawings take, at random entities and at hubs.

    python bench/graph.py                    100k entities, 500k relationships
    python bench/graph.py 10000 50000        the sizes given

Ends of relationships are drawn so that few entities have very many: one end is any entity, the other follows Zipf's
law. Times are those of a warm process; each question is asked once. Where other work shares the machine, the
processor's time says more than the clock on the wall.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import numpy as np

from cortex_py.core.clock import SystemClock
from cortex_py.core.graph_values import ENTITY_TYPES, RELATIONSHIP_TYPES, Entity, Relationship
from cortex_py.core.store.database import Session
from cortex_py.core.store.graph.graph import EntityRow, GraphTable, RelationshipRow, Sight
from cortex_py.core.store.sqlite import SqliteDatabase, open_sqlite
from cortex_py.parts.graph.draw import dot, mermaid
from cortex_py.parts.graph.entities import find_duplicates
from cortex_py.parts.graph.traversal import Hop, neighbours, search

import report

SIZE = (100_000, 500_000)
SPACE = "3f0c5b0a9d3e4f6f8a1b2c3d4e5f60718293a4b5"
QUESTIONS = 200
HUBS = 50
HOPS = 6
# What the graph's rooms ask for: so many edges of one entity where any will do, and all where a path may need them.
NEAR = 100
BATCH = 20_000
WANTED_MS = {"neighbours": 20.0, "path": 200.0}
NOW = datetime(2026, 1, 2, tzinfo=UTC)
SIGHT = Sight(2_000_000)
TABLE = GraphTable()
COLUMNS = ("question", "p50_ms", "p95_ms", "cpu_p50_ms", "cpu_p95_ms", "answer")
SYLLABLES = ("ka", "ro", "mi", "ten", "sul", "per", "dor", "vin", "gal", "est", "nor", "bru", "chi", "lam")


def _id(number: int) -> str:
    return f"{number:016x}{number * 2654435761 % (1 << 32):024x}"


def fill(database: SqliteDatabase, entities: int, relationships: int) -> float:
    """Fill a store; returns rows in a second."""
    lot = random.Random(11)
    words = ["".join(lot.choices(SYLLABLES, k=lot.randint(2, 4))) for _ in range(entities // 12 + 10)]
    names = (" ".join(lot.choices(words, k=lot.randint(1, 3))).title() for _ in range(entities))
    rows = (
        EntityRow(
            space=SPACE,
            id=_id(i),
            name=name,
            type=ENTITY_TYPES[i % 5],
            key=name.casefold(),
            created_at=i,
            updated_at=i,
        )
        for i, name in enumerate(names)
    )
    weights = 1 / np.arange(1, entities + 1)
    rng = np.random.default_rng(11)
    common = rng.permutation(entities)[rng.choice(entities, relationships, p=weights / weights.sum())]
    any_end = rng.integers(0, entities, relationships)
    edges = (
        RelationshipRow(
            space=SPACE,
            id=_id(i),
            source_id=_id(a if i % 2 else b),
            target_id=_id(b if i % 2 else a),
            type=RELATIONSHIP_TYPES[i % 9],
            confidence=round(lot.uniform(0.3, 1.0), 2),
            method="bench",
            evidence="a sentence in which both of them are named",
            recorded_at=i,
        )
        for i, (a, b) in enumerate(zip(any_end.tolist(), common.tolist(), strict=True))
        if a != b
    )
    started = time.perf_counter()
    while batch := list(islice(rows, BATCH)):
        with database.write() as session:
            TABLE.add_entities(session, batch)
    while more := list(islice(edges, BATCH)):
        with database.write() as session:
            TABLE.add_relationships(session, more)
    return (entities + relationships) / (time.perf_counter() - started)


def _edges(session: Session, per_entity: int | None) -> Callable[[Sequence[str]], Sequence[Hop]]:
    return lambda ids: TABLE.neighbours(session, SPACE, ids, SIGHT, per_entity=per_entity)


def _timed(
    database: SqliteDatabase, questions: Sequence[Callable[[Session], int]]
) -> tuple[list[float], list[float], float]:
    """Milliseconds of each question on the wall and of the processor, and the mean of what they answer."""
    taken, busy, answers = [], [], []
    for question in questions:
        started, began = time.perf_counter(), time.process_time()
        with database.read() as session:
            answers.append(question(session))
        taken.append((time.perf_counter() - started) * 1e3)
        busy.append((time.process_time() - began) * 1e3)
    return taken, busy, float(np.mean(answers))


def _near(start: str, depth: int) -> Callable[[Session], int]:
    return lambda session: len(neighbours(start, _edges(session, NEAR), depth).reached)


def _path(a: str, b: str) -> Callable[[Session], int]:
    def question(session: Session) -> int:
        found = search(
            a,
            b,
            _edges(session, None),
            HOPS,
            some_edges=_edges(session, NEAR),
            joining=lambda ids, others: TABLE.joining(session, SPACE, ids, others, SIGHT),
        )
        return HOPS + 1 if found.steps is None else len(found.steps)

    return question


def _drawn(centre: str, picture: Callable[..., str]) -> Callable[[Session], int]:
    def question(session: Session) -> int:
        near = neighbours(centre, _edges(session, NEAR), 2, 200)
        ids = [centre, *(one.id for one in near.reached)]
        rows = TABLE.entities(session, SPACE, ids).values()
        edges = TABLE.between(session, SPACE, ids, SIGHT)
        return len(picture([_entity(row) for row in rows], [_relationship(row) for row in edges], centre=centre))

    return question


def _entity(row: EntityRow) -> Entity:
    return Entity(id=row.id, space=SPACE, name=row.name, type=row.type, created_at=NOW, updated_at=NOW)  # type: ignore[arg-type]


def _relationship(row: RelationshipRow) -> Relationship:
    return Relationship(
        id=row.id,
        space=SPACE,
        source_id=row.source_id,
        target_id=row.target_id,
        type=row.type,  # type: ignore[arg-type]
        confidence=row.confidence,
        method=row.method,
        recorded_at=NOW,
    )


def main() -> None:
    entities, relationships = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else SIZE
    lot = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        database = open_sqlite(Path(folder) / "cortex.db", SystemClock())
        loaded = fill(database, entities, relationships)
        with database.read() as session:
            degrees = TABLE.degrees(session, SPACE, SIGHT, limit=HUBS)
        hubs = [one for one, _ in degrees]
        some = [_id(lot.randrange(entities)) for _ in range(4 * QUESTIONS)]
        ends = list(zip(some[::2], some[1::2], strict=True))
        asked: dict[str, list[Callable[[Session], int]]] = {
            "neighbours, depth 1, random": [_near(one, 1) for one in some[:QUESTIONS]],
            "neighbours, depth 2, random": [_near(one, 2) for one in some[:QUESTIONS]],
            "neighbours, depth 2, hubs": [_near(one, 2) for one in hubs],
            "neighbours, depth 3, random": [_near(one, 3) for one in some[:QUESTIONS]],
            f"path, {HOPS} hops, random": [_path(a, b) for a, b in ends[:QUESTIONS]],
            f"path, {HOPS} hops, from hubs": [_path(one, lot.choice(some)) for one in hubs],
            "mermaid around a random one": [_drawn(one, mermaid) for one in some[:HUBS]],
            "dot around a hub": [_drawn(one, dot) for one in hubs],
            "counts": [lambda session: sum(TABLE.counts(session, SPACE, SIGHT).entities.values())] * 5,
        }
        rows = []
        for name, questions in asked.items():
            taken, busy, answer = _timed(database, questions)
            p50, p95 = (float(np.quantile(taken, q)) for q in (0.5, 0.95))
            cpu50, cpu95 = (float(np.quantile(busy, q)) for q in (0.5, 0.95))
            rows.append(dict(zip(COLUMNS, (name, p50, p95, cpu50, cpu95, answer), strict=True)))
        with database.read() as session:
            everything = [_entity(row) for row in TABLE.all_entities(session, SPACE)]
        started = time.perf_counter()
        groups = len(find_duplicates(everything, limit=10**9))
        taken_s = time.perf_counter() - started
        size_mb = database.size_bytes() / 1e6
        database.close()
    report.table(COLUMNS, [list(row.values()) for row in rows])
    print(f"{entities:,} entities, {relationships:,} relationships; the largest hub has {degrees[0][1]:,} edges")
    print(f"filled at {loaded:,.0f} rows a second, {size_mb:,.0f} MB; {groups:,} likely duplicates in {taken_s:.1f} s")
    report.write(
        "graph",
        {
            "entities": entities,
            "relationships": relationships,
            "largest_hub": degrees[0][1],
            "rows": rows,
            "load_per_s": loaded,
            "file_mb": size_mb,
            "duplicates_s": taken_s,
            "wanted_ms": WANTED_MS,
        },
    )


if __name__ == "__main__":
    main()
