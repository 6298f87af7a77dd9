"""The store spread over two real PostgreSQL servers by the space of each row: the same work, the same answers.

Every test of the engines that compares two stores runs here with the spread one in place of PostgreSQL.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import test_engines
from routing import route
from sharded import ShardedDatabase, Shards, coordinator, joined_template
from test_engines import Both, side_by_side

import cortex_py
from cases import each
from cortex_py import Cortex
from cortex_py.core.store.database import COORDINATOR, DISTRIBUTED, FAN_OUTS
from cortex_py.parts.context.project import identify
from cortex_py.team.postgres import engine as postgres
from cortex_py.team.postgres.engine import as_postgres
from inside import database_of, store_of

from helpers import FakeClock
from homes import fill, opened
from postgres_server import PostgresServer, running_server

# Collected here once more, with the fixtures below. The others bring stores of their own.
_OF_OWN_STORES = {
    "test_any_text_comes_back_as_it_was",
    "test_a_store_moves_to_postgres_and_back",
    "test_homes_of_both_engines_exchange_what_they_hold",
}
globals().update(
    {name: test for name, test in vars(test_engines).items() if name.startswith("test_") and name not in _OF_OWN_STORES}
)

SPREAD = "postgresql://over-several-servers/cortex"


@pytest.fixture(scope="session")
def second_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def servers(postgres_server: PostgresServer, second_server: PostgresServer) -> tuple[PostgresServer, ...]:
    servers = (postgres_server, second_server)
    with postgres_server.database() as first, second_server.database() as second:
        joined_template(servers, (first, second))
    return servers


@pytest.fixture
def shards(servers: tuple[PostgresServer, ...]) -> Iterator[Shards]:
    with (
        servers[0].database() as first,
        servers[1].database() as second,
        coordinator(servers, (first, second)) as over_all,
    ):
        yield Shards((first, second), over_all)


@pytest.fixture
def spread_url(shards: Shards, monkeypatch: pytest.MonkeyPatch) -> str:
    """An address under which a library opens the store that lies on both servers."""
    real = postgres.open_postgres
    monkeypatch.setattr(
        postgres,
        "open_postgres",
        lambda url, clock, *bounds, **more: (
            ShardedDatabase(shards, clock) if url == SPREAD else real(url, clock, *bounds, **more)
        ),
    )
    return SPREAD


@pytest.fixture
def project(tmp_path: Path, shards: Shards) -> Path:
    """A project that lies on another server than what is its person's own."""
    for n in range(100):
        folder = tmp_path / f"project-{n}"
        folder.mkdir()
        if shards.of([identify(folder).id]) != shards.of(["user:local"]):
            return folder
    raise AssertionError("all lie on one server")


@pytest.fixture
def spread(tmp_path: Path, project: Path, clock: FakeClock, spread_url: str) -> Iterator[Cortex]:
    with opened(tmp_path / "of-both", project, clock, database_url=spread_url) as cortex:
        yield cortex


@pytest.fixture
def both(
    tmp_path: Path, project: Path, clock: FakeClock, spread_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Both]:
    with side_by_side(tmp_path, project, clock, spread_url, monkeypatch) as homes:
        yield homes


# -- where rows lie ------------------------------------------------------------------------------


def _ask(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode()).fetchall()


def test_every_row_lies_on_the_server_of_its_space(spread: Cortex, shards: Shards) -> None:
    ids = fill(spread)
    spread.memories.delete(ids[1], hard=True)
    held = Counter[str]()
    for n, url in enumerate(shards.urls):
        for table, key in DISTRIBUTED.items():
            spaces = [str(row[0]) for row in _ask(url, f'SELECT DISTINCT {key} FROM "{table}"')]
            assert shards.of(spaces) in ([], [n]), (table, spaces)
            held[table] += len(spaces)
        assert [row[0] for row in _ask(url, "SELECT count(*) > 0 FROM memory")] == [True]
    # What a day's work leaves; the others are empty, and are filled in tests of their own.
    assert {"memory", "chunk", "memory_text", "tag", "mention", "recalled", "reference", "saved", "space_change"} <= (
        +held
    ).keys()


def test_numbers_are_never_given_twice(spread: Cortex, shards: Shards) -> None:
    fill(spread)
    nums = [row[0] for url in shards.urls for row in _ask(url, "SELECT num FROM memory")]
    assert len(nums) == len(set(nums)) == 7


def test_every_table_is_placed_and_every_unique_key_holds_its_space(shards: Shards) -> None:
    columns = _ask(
        shards.urls[0],
        "SELECT c.relname, array_agg(a.attname::text) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 GROUP BY c.relname",
    )
    placed = {str(table): {"space", "project_id"} & set(names) for table, names in columns}  # type: ignore[call-overload]
    assert {table for table, keys in placed.items() if keys} - set(COORDINATOR) == DISTRIBUTED.keys()
    assert all(DISTRIBUTED[table] in keys for table, keys in placed.items() if table in DISTRIBUTED)
    assert set(COORDINATOR) <= placed.keys()
    unique = _ask(
        shards.urls[0],
        "SELECT c.relname, x.relname, array_agg(a.attname::text) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
        "JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_attribute a ON a.attrelid = x.oid WHERE i.indisunique "
        "AND c.relnamespace = 'public'::regnamespace GROUP BY c.relname, x.relname",
    )
    of_distributed = [(table, index, names) for table, index, names in unique if table in DISTRIBUTED]
    assert len(of_distributed) >= len(DISTRIBUTED)
    without = [index for table, index, names in of_distributed if DISTRIBUTED[str(table)] not in names]  # type: ignore[operator]
    assert without == []


# -- which statements go where -------------------------------------------------------------------


@pytest.mark.reads_when_asked
def test_daily_work_goes_everywhere_only_to_look_an_id_up(spread: Cortex, shards: Shards) -> None:
    spread.memories.capture("The first capture of a process counts what others left")
    shards.fanned_out.clear()
    made = [spread.memories.capture(f"Kafka carries event {n}", tags=["db"]) for n in range(3)]
    spread.memories.recall("kafka events", filter="tag:db entity:kafka ns:context")
    spread.memories.recall(filter="since:3d")
    spread.memories.tags()
    spread.memories.status()
    spread.graph.entities()
    assert shards.fanned_out == {}
    spread.memories.update(made[0].id, content="Kafka carries all events")
    assert shards.fanned_out == {"find": 2}
    spread.memories.delete(made[1].id)
    spread.memories.restore(made[1].id)
    assert shards.fanned_out == {"find": 7}
    spread.memories.delete(made[2].id, hard=True)
    assert shards.fanned_out == {"find": 8, "forget uses": 1}


def test_only_what_is_listed_goes_everywhere_and_all_of_it_does(
    spread: Cortex, shards: Shards, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = fill(spread)
    spread.memories.delete(ids[1], hard=True)
    with database_of(spread).write() as session:
        session.as_is.run("UPDATE memory SET graphed = 0 WHERE space = ?", (spread.project.id,))
    clock.advance(days=40)
    spread.upkeep()
    spread.memories.reindex()
    monkeypatch.setattr("cortex_py.core.store.search.process_space.SMALL", -1)
    spread.memories.recall("PostgreSQL")
    spread.memories.revision()
    assert set(shards.fanned_out) == set(FAN_OUTS)


def test_the_list_of_such_statements_is_short() -> None:
    source = Path(cortex_py.__file__).parent
    called = Counter(
        name
        for module in source.rglob("*.py")
        for name in re.findall(r'everywhere\(\s*"([^"]+)"', module.read_text("utf-8"))
    )
    assert called == {**dict.fromkeys(FAN_OUTS, 1), "all spaces": 4}


@each(
    ("statement", "missing"),
    [
        ("SELECT id FROM memory WHERE num IN (?,?)", ["memory"]),
        ("DELETE FROM tag WHERE num = ?", ["tag"]),
        ("UPDATE memory SET project_id = ?, space = ? WHERE num = ?", ["memory"]),
        ("SELECT 1 FROM memory WHERE project_id = ?", ["memory"]),
        ("SELECT 1 FROM memory m WHERE m.space = ? OR m.num = ?", ["memory"]),
        ("SELECT 1 FROM memory m WHERE (m.space = ? OR m.num = ?) AND m.id = ?", ["memory"]),
        ("SELECT 1 FROM memory m WHERE NOT m.space = ?", ["memory"]),
        ("SELECT 1 FROM memory m WHERE m.space IN (SELECT id FROM project)", ["memory"]),
        ("SELECT 1 FROM tag t JOIN memory m ON m.num = t.num WHERE m.space = ?", ["tag"]),
        ("SELECT 1 FROM tag t WHERE t.space = ? AND t.num IN (SELECT num FROM memory WHERE id = ?)", ["memory"]),
        ("DELETE FROM entity WHERE space = ? AND NOT EXISTS (SELECT 1 FROM mention n WHERE n.num = ?)", ["mention"]),
        ("WITH a AS MATERIALIZED (SELECT num FROM memory WHERE id = ?) SELECT 1 FROM a", ["memory"]),
        ("SELECT id FROM entity WHERE space = ? UNION ALL SELECT id FROM entity WHERE id = ?", ["entity"]),
        ("INSERT INTO tag (tag, num) VALUES (?, ?)", ["tag"]),
        ("INSERT INTO branch (id, topic) VALUES (?, ?)", ["branch"]),
    ],
)
def test_a_statement_without_the_key_is_found_out(statement: str, missing: list[str]) -> None:
    assert list(route(statement).missing) == missing


def test_a_statement_without_the_key_is_refused(spread: Cortex) -> None:
    with database_of(spread).write() as session:
        with pytest.raises(AssertionError, match="without the key of tag"):
            session.run("DELETE FROM tag WHERE num = ?", (1,))
        with pytest.raises(AssertionError, match="lie apart"):
            session.rows("SELECT 1 FROM memory m JOIN project p ON p.id = m.space WHERE m.space = ?", ("x",))


@each(
    ("statement", "keys"),
    [
        ("SELECT revision FROM tenancy WHERE one = 1", ()),
        ("DELETE FROM tag WHERE +space = ? AND num = ?", ((0,),)),
        ("UPDATE memory SET seq = ?, project_id = ? WHERE num = ? AND space = ?", ((3,),)),
        ("SELECT 1 FROM memory m WHERE m.id = ? AND m.space IN (?, ?)", ((1, 2),)),
        ("SELECT 1 FROM memory m WHERE m.id = ? AND m.space IN ()", ((),)),
        ("SELECT 1 FROM tag t JOIN memory m ON m.num = t.num AND m.space = t.space WHERE m.space = ?", ((0,),)),
        (
            "DELETE FROM entity WHERE space = ? AND NOT EXISTS (SELECT 1 FROM tag n WHERE n.space = entity.space)",
            ((0,),),
        ),
        (
            "SELECT 1 FROM (SELECT m.space, m.num FROM memory m WHERE m.space = ?) r JOIN tag t ON t.space = r.space",
            ((0,),),
        ),
        ("INSERT INTO tag (tag, num, space) VALUES (?, length(?), ?)", ((2,),)),
        ("SELECT 1 FROM branch WHERE project_id = ? UNION SELECT 1 FROM branch WHERE project_id = ?", ((0,), (1,))),
    ],
)
def test_the_key_is_found_where_it_stands(statement: str, keys: tuple[tuple[int, ...], ...]) -> None:
    found = route(statement)
    assert (found.missing, found.keys) == ((), keys)


# -- over foreign tables -------------------------------------------------------------------------


def test_a_statement_with_the_key_touches_one_partition_of_a_foreign_table(
    spread: Cortex, shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(spread)
    shards.read_here.clear()
    spread.memories.recall("PostgreSQL", filter="tag:db entity:redis")
    spread.memories.recall("PostgreSQL", filter="-tag:ops -entity:kafka")
    spread.memories.recall(filter="since:3d")
    store_of(spread).search.forget_all()
    monkeypatch.setattr("cortex_py.core.store.search.process_space.SMALL", -1)
    spread.memories.recall("Kafka events")
    spread.graph.relationships()
    spread.graph.neighbors("PostgreSQL", depth=2)
    spread.graph.stats()
    spread.graph.orphans()
    spread.suggestions.suggest("speed up PostgreSQL")
    spread.contexts.graph()
    asked = dict(shards.read_here)
    assert {"memory", "chunk", "memory_text", "purged", "relationship"} <= {
        table for sql, _ in asked for table in route(sql).distributed
    }
    with psycopg.connect(shards.coordinator_url) as connection:
        for (sql, place), params in asked.items():
            spelled = as_postgres(sql).encode()
            plan = connection.execute(b"EXPLAIN (COSTS OFF) " + spelled, params).fetchall()
            touched = set(re.findall(r" on (?:\w+\.)?\w+_(\d)\b", " ".join(line for (line,) in plan)))
            assert touched == {str(place)}, (sql, plan)
            with psycopg.connect(shards.urls[place]) as there:
                expected = there.execute(spelled, params).fetchall()
            assert sorted(map(repr, connection.execute(spelled, params))) == sorted(map(repr, expected))


def test_without_the_key_all_partitions_are_touched(spread: Cortex, shards: Shards) -> None:
    fill(spread)
    plan = _ask(shards.coordinator_url, "EXPLAIN (COSTS OFF) SELECT id FROM memory WHERE num = 7")
    assert {"memory_0", "memory_1"} <= set(re.findall(r"memory_\d", str(plan)))
