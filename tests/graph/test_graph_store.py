"""The graph's tables: nothing crosses spaces, nothing dangles, and what memories no longer state is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex_py import Cortex
from cortex_py.core.clock import to_micros
from cortex_py.core.store.database import Session
from cortex_py.core.store.graph.graph import (
    AliasRow,
    EntityRow,
    GraphTable,
    MentionRow,
    RelationshipRow,
    Sight,
)
from cortex_py.core.store.sqlite import SqliteDatabase, open_sqlite
from cortex_py.core.store.tables.memories import purge_rows

from helpers import FakeClock
from stub_backend import StubBackend

SPACE = "project"
NOW = 1_000_000
SIGHT = Sight(NOW)
TABLE = GraphTable()


class _Undone(Exception):
    """Ends a transaction so that nothing of it stays."""


@pytest.fixture
def database(home: Path, clock: FakeClock) -> Iterator[SqliteDatabase]:
    opened = open_sqlite(home / "cortex.db", clock)
    yield opened
    opened.close()


@pytest.fixture
def session(database: SqliteDatabase) -> Iterator[Session]:
    with database.write() as session:
        yield session


def _entity(id: str, name: str = "", type: str = "Technology", space: str = SPACE, **more: object) -> EntityRow:
    name = name or id
    row = EntityRow(space=space, id=id, name=name, type=type, key=name.casefold(), created_at=1, updated_at=1)
    return replace(row, **more)  # type: ignore[arg-type]


def _edge(id: str, source: str, target: str, type: str = "Uses", confidence: float = 0.5, **more: object):  # type: ignore[no-untyped-def]
    row = RelationshipRow(
        space=SPACE,
        id=id,
        source_id=source,
        target_id=target,
        type=type,
        confidence=confidence,
        method="test",
        recorded_at=10,
    )
    return replace(row, **more)  # type: ignore[arg-type]


def _memory(session: Session, num: int, space: str = SPACE) -> None:
    """A row of the memory table as plain as it can be: these tests are not about records."""
    session.run(
        "INSERT INTO memory (num, space, id, seq, domain, namespace, status, version, created_at, updated_at, "
        "redactions, digest, length, flags, author, tags, content) "
        "VALUES (?, ?, ?, 1, 'project', 'context', 'active', 1, ?, 1, '[]', x'00', 1, 0, 0, '[]', 'x')",
        (num, space, f"memory{num}", num),
    )


def _mention(entity_id: str, num: int, first: int = 0, confidence: float = 0.5, past: int | None = None) -> MentionRow:
    return MentionRow(SPACE, entity_id, num, first, past or first + 3, confidence, "rule")


def _ids(rows: list[EntityRow] | list[RelationshipRow]) -> list[str]:
    return [row.id for row in rows]


# -- entities ----------------------------------------------------------------------------------------


def test_an_entity_comes_back_as_it_was_given(session: Session) -> None:
    row = _entity(
        "e1", 'Ünï "x" 🧠', aliases=(AliasRow("A", "a"), AliasRow("B", "b")), properties={"k": [1, {"é": None}]}
    )
    TABLE.add_entities(session, [row])
    assert TABLE.entity(session, SPACE, "e1") == row
    changed = replace(row, name="New", key="new", aliases=(AliasRow("C", "c"),), properties={}, updated_at=5)
    assert TABLE.update_entity(session, changed)
    assert TABLE.entity(session, SPACE, "e1") == changed
    assert not TABLE.update_entity(session, replace(changed, id="nobody"))
    assert TABLE.entity(session, SPACE, "nobody") is None
    assert TABLE.all_entities(session, SPACE) == [changed]


def test_entities_are_listed_by_name_with_the_true_count(session: Session) -> None:
    TABLE.add_entities(session, [_entity(f"e{i:03}", f"Tool {i:03}") for i in range(600)])
    TABLE.add_entities(session, [_entity("p1", "toolmaker", "Person"), _entity("p2", "Ada", "Person")])
    rows, count = TABLE.list_entities(session, SPACE, prefix="TOOL", limit=2, offset=599)
    assert ([row.name for row in rows], count) == (["Tool 599", "toolmaker"], 601)
    rows, count = TABLE.list_entities(session, SPACE, types=["Person"])
    assert ([row.name for row in rows], count) == (["Ada", "toolmaker"], 2)
    assert TABLE.list_entities(session, SPACE, prefix="%")[1] == 0
    assert len(TABLE.entities(session, SPACE, [f"e{i:03}" for i in range(600)])) == 600


def test_an_entity_is_found_by_its_key_and_by_other_spellings(session: Session) -> None:
    TABLE.add_entities(
        session,
        [
            _entity("e1", "postgres", aliases=(AliasRow("PostgreSQL", "postgresql"), AliasRow("PG", "pg"))),
            _entity("e2", "pg"),
        ],
    )
    found = TABLE.by_keys(session, SPACE, ["pg", "postgresql", "mysql", ""])
    assert {key: _ids(rows) for key, rows in found.items()} == {"pg": ["e2", "e1"], "postgresql": ["e1"]}


def test_ids_that_are_taken_and_spellings_that_are_learned(session: Session) -> None:
    TABLE.add_entities(session, [_entity(one) for one in ("entity_go", "entity_go_2", "entity_gopher")])
    assert TABLE.ids_like(session, SPACE, ["entity_go", "entity_rust"]) == {"entity_go", "entity_go_2"}
    TABLE.add_aliases(session, SPACE, "entity_go", [AliasRow("Golang", "golang"), AliasRow("golang", "golang")])
    TABLE.add_aliases(session, SPACE, "entity_go", [AliasRow("Golang", "golang")])
    assert [len(row.aliases) for row in TABLE.by_keys(session, SPACE, ["golang"])["golang"]] == [2]


def test_spaces_know_nothing_of_each_other(session: Session) -> None:
    TABLE.add_entities(session, [_entity("e1", "here"), _entity("e1", "there", space="other")])
    TABLE.add_relationships(session, [_edge("r1", "e1", "e2")])
    assert TABLE.entities(session, "other", ["e1"])["e1"].name == "there"
    assert TABLE.list_entities(session, "other")[1] == 1
    assert TABLE.by_keys(session, "other", ["here"]) == {}
    assert TABLE.neighbours(session, "other", ["e1"], SIGHT) == []
    assert TABLE.relationship(session, "other", "r1") is None
    TABLE.delete_entities(session, "other", ["e1"])
    assert TABLE.entity(session, SPACE, "e1") is not None
    assert TABLE.relationship(session, SPACE, "r1") is not None


def test_deleting_an_entity_leaves_nothing_hanging(session: Session) -> None:
    _memory(session, 1)
    TABLE.add_entities(session, [_entity("a", aliases=(AliasRow("A1", "a1"),)), _entity("b"), _entity("c")])
    TABLE.add_mentions(session, [_mention("a", 1), _mention("b", 1, 9)])
    TABLE.add_relationships(session, [_edge("1", "a", "b"), _edge("2", "b", "a"), _edge("3", "b", "c")])
    assert TABLE.delete_entities(session, SPACE, ["a", "nobody"]) == (1, 1, 2)
    assert _ids(TABLE.list_relationships(session, SPACE, SIGHT)[0]) == ["3"]
    assert TABLE.by_keys(session, SPACE, ["a1"]) == {}


# -- mentions ----------------------------------------------------------------------------------------


def test_a_deleted_expired_or_confined_memory_is_heard_no_more(home: Path, project: Path, clock: FakeClock) -> None:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as cortex:
        store = cortex._store
        # Nothing in them is a name: what they mention is said below.
        kept = cortex.memories.capture("the first one")
        gone = cortex.memories.capture("the other one")
        with store.database.write() as session:
            nums = {memory.id: (num, space) for num, space, memory in store.memories.find(session, "")}
            space = nums[kept.id][1]
            TABLE.add_entities(session, [_entity("alice", space=space), _entity("go", space=space)])
            rows = [("alice", kept.id), ("alice", gone.id), ("go", gone.id)]
            TABLE.add_mentions(
                session, [MentionRow(space, one, nums[memory][0], 0, 5, 0.9, "rule") for one, memory in rows]
            )
            TABLE.add_relationships(session, [replace(_edge("r", "alice", "go"), space=space, num=nums[gone.id][0])])

        def seen(later: int = 0, here: str | None = None) -> tuple[dict[str, int], list[str], list[str]]:
            sight = Sight(to_micros(clock.now()) + later, here)
            with store.database.read() as session:
                counts = TABLE.mention_counts(session, space, ["alice", "go"], sight)
                places = [one.memory_id for one in TABLE.mentions(session, space, "alice", sight)]
                assert sum(counts.values()) == TABLE.counts(session, space, sight).mentions
                assert set(TABLE.mentioned_by(session, space, sight)) == set(places)
                edges = TABLE.neighbours(session, space, ["alice"], sight)
                assert TABLE.list_relationships(session, space, sight)[1] == len(edges)
                return counts, sorted(places), TABLE.orphans(session, space, sight)

        whole = ({"alice": 2, "go": 1}, sorted([kept.id, gone.id]), [])
        without = ({"alice": 1, "go": 0}, [kept.id], ["go"])
        assert seen() == whole
        cortex.memories.delete(gone.id)
        assert seen() == without
        with store.database.write() as session:
            session.as_is.run("UPDATE memory SET status = 'active', expires_at = ?", (to_micros(clock.now()) + 10,))
        assert seen() == whole
        assert seen(later=10)[1] == []
        with store.database.write() as session:
            session.as_is.run(
                "UPDATE memory SET expires_at = NULL, confinement = 'stage', git_branch = 'b' WHERE id = ?", (gone.id,)
            )
        assert seen() == without
        assert seen(here="b") == whole
        with store.database.write() as session:
            purge_rows(session, nums[gone.id][1], [nums[gone.id][0]], 1, names=False)
        assert seen(here="b") == without
        with store.database.read() as session:
            assert TABLE.relationship(session, space, "r") is None


def test_a_memory_that_is_read_anew_says_only_the_new(session: Session) -> None:
    for num in (1, 2):
        _memory(session, num)
    TABLE.add_entities(session, [_entity("a"), _entity("b")])
    TABLE.restate(session, SPACE, 1, [_mention("a", 1), _mention("b", 1, 9)], [_edge("1", "a", "b", num=1)])
    TABLE.restate(session, SPACE, 2, [_mention("a", 2)], [_edge("2", "a", "b", num=2)])
    TABLE.restate(session, SPACE, 1, [_mention("b", 1, 4)], [])
    assert TABLE.mentions_of(session, SPACE, [1, 2]) == {1: [_mention("b", 1, 4)], 2: [_mention("a", 2)]}
    assert [edge.id for edge in TABLE.neighbours(session, SPACE, ["a"], SIGHT)] == ["2"]


def test_mentions_come_newest_memory_first(session: Session) -> None:
    for num in range(5):
        _memory(session, num)
    TABLE.add_entities(session, [_entity("a")])
    TABLE.add_mentions(session, [_mention("a", num, first) for num in range(5) for first in (7, 0)])
    TABLE.add_mentions(session, [_mention("a", 4, 0, 0.9)])
    found = TABLE.mentions(session, SPACE, "a", SIGHT, limit=3, offset=1)
    assert [(one.memory_id, one.first) for one in found] == [("memory4", 7), ("memory3", 0), ("memory3", 7)]
    assert TABLE.mentions(session, SPACE, "a", SIGHT)[0].confidence == 0.9
    assert TABLE.mention_counts(session, SPACE, ["a"], SIGHT) == {"a": 5}


# -- relationships -----------------------------------------------------------------------------------


def test_a_relationship_comes_back_as_it_was_given(session: Session) -> None:
    row = _edge("1", "a", "b", evidence="“quoted”", properties={"x": 1}, valid_from=1, valid_to=2, ended_at=3, num=4)
    TABLE.add_relationships(session, [row])
    assert TABLE.relationship(session, SPACE, "1") == row


def test_relationships_are_listed_by_end_and_type(session: Session) -> None:
    TABLE.add_relationships(
        session,
        [
            _edge("1", "a", "b", confidence=0.9),
            _edge("2", "b", "a", "Created", 0.8),
            _edge("3", "a", "c", confidence=0.7),
            _edge("4", "a", "a", confidence=0.6),
        ],
    )

    def found(**options: object) -> list[str]:
        rows, count = TABLE.list_relationships(session, SPACE, SIGHT, **options)  # type: ignore[arg-type]
        assert count == len(rows)
        return _ids(rows)

    assert found() == ["1", "2", "3", "4"]
    assert found(source="a") == ["1", "3", "4"]
    assert found(target="a") == ["2", "4"]
    assert found(either="a") == ["1", "2", "3", "4"]
    assert found(either="b", types=["Created"]) == ["2"]
    assert found(source="a", target="c") == ["3"]
    rows, count = TABLE.list_relationships(session, SPACE, SIGHT, limit=1, offset=1)
    assert (_ids(rows), count) == (["2"], 4)
    assert TABLE.delete_relationships(session, SPACE, ["1", "x"]) == 1


def test_what_was_true_and_what_was_known_are_two_questions(session: Session) -> None:
    TABLE.add_relationships(
        session,
        [
            _edge("always", "a", "b", recorded_at=100),
            _edge("before", "a", "c", recorded_at=100, valid_to=50),
            _edge("from50", "a", "d", recorded_at=200, valid_from=50),
            _edge("mistake", "a", "e", recorded_at=100, ended_at=200),
        ],
    )

    def found(**options: int) -> set[str]:
        return set(_ids(TABLE.list_relationships(session, SPACE, SIGHT, **options)[0]))  # type: ignore[arg-type]

    def walked(as_of: int) -> set[str]:
        return {edge.id for edge in TABLE.neighbours(session, SPACE, ["a"], SIGHT, as_of=as_of)}

    assert found() == {"always", "before", "from50"}
    assert found(valid_at=49) == walked(49) == {"always", "before"}
    assert found(valid_at=50) == walked(50) == {"always", "from50"}
    assert found(known_at=99) == set()
    assert found(known_at=100) == {"always", "before", "mistake"}
    assert found(known_at=200) == {"always", "before", "from50"}
    assert found(known_at=150, valid_at=60) == {"always", "mistake"}
    assert TABLE.end_relationship(session, SPACE, "always", valid_to=60)
    assert found(valid_at=60) == walked(60) == {"from50"}
    assert TABLE.end_relationship(session, SPACE, "from50", ended_at=300)
    assert found(valid_at=60) == set()
    assert found(valid_at=60, known_at=299) == {"from50"}
    assert not TABLE.end_relationship(session, SPACE, "nothing", valid_to=1)
    assert {row.id for row in TABLE.between(session, SPACE, ["a", "b", "c"], SIGHT, as_of=49)} == {"always", "before"}


def test_neighbours_of_many_come_together_once_each(session: Session) -> None:
    TABLE.add_relationships(session, [_edge(f"{i:04}", f"n{i}", f"n{i + 1}") for i in range(1500)])
    found = TABLE.neighbours(session, SPACE, [f"n{i}" for i in range(1000)], SIGHT)
    assert sorted(edge.id for edge in found) == [f"{i:04}" for i in range(1000)]
    assert TABLE.neighbours(session, SPACE, ["n5"], SIGHT, types=["Created"]) == []
    assert TABLE.neighbours(session, SPACE, [], SIGHT) == []


def test_a_hub_gives_its_surest_edges(session: Session) -> None:
    TABLE.add_relationships(session, [_edge(f"o{i:02}", "hub", f"n{i}", confidence=i / 100) for i in range(50)])
    TABLE.add_relationships(session, [_edge(f"i{i:02}", f"m{i}", "hub") for i in range(3)])
    found = TABLE.neighbours(session, SPACE, ["hub", "n1"], SIGHT, per_entity=4)
    assert sorted(edge.id for edge in found) == ["i00", "i01", "i02", "o01", "o46", "o47", "o48", "o49"]
    assert TABLE.degrees(session, SPACE, SIGHT, limit=1) == [("hub", 53)]


def test_edges_that_join_two_sets_and_those_within_one(session: Session) -> None:
    TABLE.add_relationships(session, [_edge(f"o{i:03}", "hub", f"n{i}") for i in range(300)])
    TABLE.add_relationships(session, [_edge("x", "n1", "n2"), _edge("y", "n3", "hub", ended_at=5)])
    joined = TABLE.joining(session, SPACE, ["hub", "n2"], ["n1", "n3"], SIGHT)
    assert sorted(edge.id for edge in joined) == ["o001", "o003", "x"]
    assert _ids(TABLE.between(session, SPACE, ["hub", "n1", "n2"], SIGHT)) == ["o001", "o002", "x"]
    assert TABLE.between(session, SPACE, [], SIGHT) == []


def test_counts_and_orphans(session: Session) -> None:
    _memory(session, 1)
    TABLE.add_entities(session, [_entity("a"), _entity("b", type="Person"), _entity("c"), _entity("d")])
    TABLE.add_mentions(session, [_mention("a", 1), _mention("a", 1, 9)])
    TABLE.add_relationships(session, [_edge("1", "b", "a"), _edge("2", "c", "a", ended_at=5)])
    assert TABLE.counts(session, SPACE, SIGHT) == ({"Technology": 3, "Person": 1}, {"Uses": 1}, 2, 1)
    assert TABLE.orphans(session, SPACE, SIGHT) == ["c", "d"]
    assert TABLE.orphans(session, SPACE, SIGHT, limit=1) == ["c"]


# -- merges ------------------------------------------------------------------------------------------

ENTITIES = [f"e{i}" for i in range(6)]
MENTIONS = st.lists(
    st.tuples(st.sampled_from(ENTITIES), st.integers(1, 4), st.integers(0, 3), st.sampled_from([0.2, 0.9])),
    max_size=15,
    unique_by=lambda one: one[:3],
)
EDGES = st.lists(
    st.tuples(
        st.sampled_from(ENTITIES),
        st.sampled_from(ENTITIES),
        st.sampled_from(["Uses", "Created"]),
        st.sampled_from([0.2, 0.5, 0.9]),
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, 40]),
    ),
    max_size=15,
)


def _everything(session: Session) -> dict[str, list[tuple[object, ...]]]:
    tables = ("entity", "entity_alias", "mention", "relationship", "entity_history")
    rows = {table: sorted(session.rows(f"SELECT * FROM {table}"), key=repr) for table in tables}
    # When an entity was last changed is the one thing that undoing does not give back.
    rows["entity"] = [row[:-1] for row in rows["entity"]]
    return rows


@given(mentions=MENTIONS, edges=EDGES, merged=st.lists(st.sampled_from(ENTITIES), min_size=2, max_size=4, unique=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_merge_keeps_every_mention_and_leaves_nothing_hanging(
    database: SqliteDatabase,
    mentions: list[tuple[str, int, int, float]],
    edges: list[tuple[str, str, str, float, int | None, int | None]],
    merged: list[str],
) -> None:
    into, *others = merged
    with pytest.raises(_Undone), database.write() as session:
        for num in range(1, 5):
            _memory(session, num)
        TABLE.add_entities(session, [_entity(one, properties={"own": one, one: 1}) for one in ENTITIES])
        TABLE.add_mentions(session, [_mention(*one) for one in mentions])
        TABLE.add_relationships(
            session,
            [
                _edge(f"r{i:02}", *edge[:4], num=edge[4], valid_to=edge[5], properties={f"p{i}": i})
                for i, edge in enumerate(edges)
            ],
        )
        before = _everything(session)
        plan = TABLE.plan_merge(session, SPACE, into, others, at=77, name="One", key="one")
        assert plan is not None
        assert _everything(session) == before
        TABLE.merge(session, plan, "m1", at=77)

        # Every place in a memory that named one of them names the one that stays.
        one = dict.fromkeys(others, into)
        places = {(one.get(entity, entity), num, first) for entity, num, first, _ in mentions}
        found = {(row.entity_id, row.num, row.first) for n in (1, 2, 3, 4) for row in _of(session, n)}
        assert found == places
        sure = dict.fromkeys(places, 0.0)
        for entity, num, first, confidence in mentions:
            place = (one.get(entity, entity), num, first)
            sure[place] = max(sure[place], confidence)
        assert {(r.entity_id, r.num, r.first): r.confidence for n in (1, 2, 3, 4) for r in _of(session, n)} == sure

        # Every fact that is not about one alone is still there, once, as sure as its surest.
        facts: dict[tuple[object, ...], float] = {}
        for source, target, type, confidence, num_of, valid_to in edges:
            fact = (one.get(source, source), one.get(target, target), type, num_of, valid_to)
            if fact[0] != fact[1] or into not in fact:
                facts[fact] = max(facts.get(fact, 0.0), confidence)
        there = session.rows("SELECT source_id, target_id, type, num, valid_to, confidence FROM relationship")
        assert {row[:5]: row[5] for row in sorted(there, key=lambda row: row[5])} == facts
        ids = set(TABLE.entities(session, SPACE, ENTITIES))
        assert ids == set(ENTITIES) - set(others)
        assert all(row[0] in ids and row[1] in ids for row in there)
        touched = [row[:5] for row in there if into in row]
        assert len(touched) == len(set(touched))

        kept = TABLE.entity(session, SPACE, into)
        assert kept is not None
        assert kept.name == "One"
        assert {alias.alias for alias in kept.aliases} == set(merged)
        assert kept.properties == {"own": into} | dict.fromkeys(merged, 1)
        assert set(_ids(TABLE.by_keys(session, SPACE, [others[0]])[others[0]])) == {into}
        assert {TABLE.merged_into(session, SPACE, one) for one in others} == {into}

        # And back again.
        assert TABLE.undo_merge(session, SPACE, "m1", at=88)
        assert _everything(session) == before
        assert not TABLE.undo_merge(session, SPACE, "m1", at=99)
        raise _Undone


def _of(session: Session, num: int) -> list[MentionRow]:
    return list(TABLE.mentions_of(session, SPACE, [num]).get(num, ()))


def _merge(session: Session, into: str, *others: str, merge_id: str = "m1") -> None:
    plan = TABLE.plan_merge(session, SPACE, into, others, at=50)
    assert plan is not None
    TABLE.merge(session, plan, merge_id, at=50)


def test_what_is_not_there_cannot_be_merged(session: Session) -> None:
    TABLE.add_entities(session, [_entity("a")])
    assert TABLE.plan_merge(session, SPACE, "a", ["b"], at=1) is None
    assert TABLE.plan_merge(session, SPACE, "b", ["a"], at=1) is None


def test_what_happened_after_a_merge_outlives_its_undoing(session: Session) -> None:
    for num in (1, 2):
        _memory(session, num)
    TABLE.add_entities(session, [_entity("a"), _entity("b"), _entity("c"), _entity("d")])
    TABLE.add_mentions(session, [_mention("b", 1), _mention("b", 2)])
    TABLE.add_relationships(session, [_edge("1", "b", "c"), _edge("2", "b", "d"), _edge("3", "a", "b")])
    _merge(session, "a", "b")
    # A memory is read anew, another is added to, an edge goes, an end is deleted, the entity is renamed.
    TABLE.restate(session, SPACE, 1, [_mention("c", 1)])
    TABLE.add_mentions(session, [_mention("a", 2, 9)])
    TABLE.delete_relationships(session, SPACE, ["1"])
    TABLE.delete_entities(session, SPACE, ["d"])
    now = TABLE.entity(session, SPACE, "a")
    assert now is not None
    TABLE.update_entity(session, replace(now, name="Later", key="later", properties={"new": 1}))
    assert TABLE.undo_merge(session, SPACE, "m1", at=60)
    assert TABLE.mentions_of(session, SPACE, [1, 2]) == {
        1: [_mention("c", 1)],
        2: [_mention("b", 2), _mention("a", 2, 9)],
    }
    assert _ids(TABLE.list_relationships(session, SPACE, SIGHT)[0]) == ["3"]
    now = TABLE.entity(session, SPACE, "a")
    assert now is not None
    assert (now.name, now.properties, now.aliases) == ("Later", {"new": 1}, ())


def test_merges_are_undone_from_the_last(session: Session) -> None:
    TABLE.add_entities(session, [_entity("a"), _entity("b"), _entity("c")])
    TABLE.add_relationships(session, [_edge("1", "a", "b"), _edge("2", "b", "c")])
    before = _everything(session)
    _merge(session, "b", "a", merge_id="m1")
    _merge(session, "c", "b", merge_id="m2")
    assert not TABLE.undo_merge(session, SPACE, "m1", at=60)
    assert TABLE.undo_merge(session, SPACE, "m2", at=60)
    assert TABLE.undo_merge(session, SPACE, "m1", at=60)
    assert _everything(session) == before


def test_a_purged_memory_does_not_live_on_in_the_record_of_a_merge(session: Session) -> None:
    for num in (1, 2):
        _memory(session, num)
    TABLE.add_entities(session, [_entity("a"), _entity("b"), _entity("c")])
    TABLE.add_mentions(session, [_mention("b", 1), _mention("b", 2)])
    TABLE.add_relationships(session, [_edge("1", "a", "b", num=1, evidence="a secret"), _edge("2", "b", "c", num=2)])
    _merge(session, "a", "b")
    purge_rows(session, SPACE, [1], 1, names=False)
    assert not any("secret" in str(row) for row in session.rows("SELECT * FROM entity_history"))
    assert TABLE.undo_merge(session, SPACE, "m1", at=60)
    assert TABLE.mentions_of(session, SPACE, [1, 2]) == {2: [_mention("b", 2)]}
    assert session.rows("SELECT id, source_id FROM relationship") == [("2", "b")]
