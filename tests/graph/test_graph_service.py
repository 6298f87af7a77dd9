"""`cortex.graph`: it answers from the caller's own spaces, and changes are atomic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cortex_py import Cortex
from cortex_py.core.errors import ContentBlocked, ContentTooLarge, EntityNotFound, InvalidInput, RelationshipNotFound
from cortex_py.core.graph_values import ENTITY_TYPES, Relationship
from cortex_py.parts.graph.service import Graph

from helpers import FakeClock
from stub_backend import StubBackend

TABLES = ("entity", "entity_alias", "mention", "relationship", "entity_history")
HOSTILE = [
    "'; DROP TABLE entity; --",
    'a "quoted" name',
    "%_*?[]",
    "…\u202egnp.exe",
    "two\nlines",
    "a\x00b",
    "\U0001f600",
    "東京",
    "entity_x",
    "-",
    "C++",
    "x" * 1_900,
]


@pytest.fixture
def desk(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        yield opened


@pytest.fixture
def graph(desk: Cortex) -> Graph:
    return desk.graph


def everything(cortex: Cortex) -> dict[str, list[tuple[object, ...]]]:
    with cortex._store.database.read() as session:
        return {table: sorted(session.rows(f"SELECT * FROM {table}"), key=repr) for table in TABLES}


def facts(found: list[Relationship]) -> set[tuple[str, str, str]]:
    return {(one.source_id, one.type, one.target_id) for one in found}


# -- entities ------------------------------------------------------------------------------------


def test_an_entity_is_made_once_by_name_and_type(graph: Graph, clock: FakeClock) -> None:
    made = graph.create("PostgreSQL", "technology", properties={"port": 5432})
    assert (made.id, made.name, made.type, made.mention_count) == ("entity_postgresql", "PostgreSQL", "Technology", 0)
    clock.advance(hours=1)
    again = graph.create("postgres", "Technology", properties={"vendor": "PGDG", "port": 5433})
    assert (again.id, again.name, again.aliases) == (made.id, "PostgreSQL", ("postgres",))
    assert again.properties == {"port": 5433, "vendor": "PGDG"}
    assert (again.created_at, again.updated_at - again.created_at) == (made.created_at, timedelta(hours=1))
    other = graph.create("PostgreSQL", "Concept")
    assert (other.id, other.type) == ("entity_postgresql_2", "Concept")
    assert graph.entities()[1] == 2


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_is_kept_and_found_again(graph: Graph, name: str) -> None:
    made = [graph.create(name, type) for type in ENTITY_TYPES]
    assert len({one.id for one in made}) == len(ENTITY_TYPES)
    for one in made:
        assert one.name == name.strip()
        assert graph.get(one.id).entity == one
        assert graph.create(name, one.type).id == one.id
    assert graph.entities(prefix=name)[1] == len(ENTITY_TYPES)
    for format in ("mermaid", "dot", "json"):
        assert graph.visualize(format=format)
    assert graph.entities(prefix="%")[1] == (len(ENTITY_TYPES) if name.startswith("%") else 0)


@pytest.mark.parametrize("name", ["", "  \n", "\ud800"])
def test_what_is_no_name_is_refused(graph: Graph, name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        graph.create(name, "Person")
    assert caught.value.field == "name"
    assert graph.entities() == ([], 0)


def test_a_name_beyond_all_measure_is_refused(graph: Graph) -> None:
    with pytest.raises(ContentTooLarge):
        graph.create("x" * 3_000, "Person")
    with pytest.raises(InvalidInput) as caught:
        graph.create("x", "Planet")
    assert caught.value.field == "entity_type"


def test_properties_come_back_as_json_keeps_them(graph: Graph) -> None:
    given = {"a": [1, (2, 3)], "b": {"c": None, 7: True}, 5: "five", "\x00": "\u202e"}
    made = graph.create("x", "Concept", properties=given)  # type: ignore[arg-type]
    assert made.properties == {"a": [1, [2, 3]], "b": {"c": None, "7": True}, "5": "five", "\x00": "\u202e"}
    assert graph.get("x").entity == made


@pytest.mark.parametrize(
    "properties",
    [{"a": float("nan")}, {"a": object()}, {"a": "\ud800"}, {"a": b"x"}, {"a": "x" * 70_000}, {(1, 2): 3}],
)
def test_properties_that_cannot_be_kept_change_nothing(graph: Graph, properties: dict[str, object]) -> None:
    made = graph.create("x", "Concept", properties={"old": 1})
    with pytest.raises(InvalidInput) as caught:
        graph.create("x", "Concept", properties=properties)
    assert caught.value.field == "properties"
    assert graph.get("x").entity == made


def test_properties_do_not_grow_without_end(graph: Graph) -> None:
    graph.create("x", "Concept", properties={"a": "x" * 40_000})
    with pytest.raises(InvalidInput) as caught:
        graph.create("x", "Concept", properties={"b": "x" * 40_000})
    assert caught.value.field == "properties"
    assert set(graph.get("x").entity.properties) == {"a"}


def test_an_entity_is_found_by_id_name_and_spelling(desk: Cortex) -> None:
    memory = desk.memories.capture("The deploy runs on Kubernetes.")
    found = desk.graph.get(" entity_kubernetes ")
    assert [(one.memory_id, one.start, one.end) for one in found.mentions] == [(memory.id, 19, 29)]
    for ref in ("Kubernetes", "kubernetes", "k8s", "KUBE"):
        assert desk.graph.get(ref) == found
    for unknown in ("entity_nobody", "nobody", "", "%"):
        with pytest.raises(EntityNotFound):
            desk.graph.get(unknown)


def test_the_id_of_another_spelling_names_the_entity_in_every_operation(desk: Cortex) -> None:
    desk.memories.capture("Alice uses PostgreSQL.")
    graph = desk.graph
    known = graph.create("Postgres", "Technology")
    assert known.id == "entity_postgresql"
    assert graph.get("entity_postgres").entity.id == known.id
    assert [one.entity.id for one in graph.neighbors("entity_postgres")[1]] == ["entity_alice"]
    assert graph.path("entity_alice", "entity_postgres").found
    assert {pair.target_id for pair in graph.relationships(target="entity_postgres")[0]} == {known.id}
    graph.infer(["entity_alice", "entity_postgres"])
    # A number at the end tells two entities apart, so it is no part of a name.
    for unknown in ("entity_postgres_2", "entity_mysql", "entity_"):
        with pytest.raises(EntityNotFound):
            graph.delete(unknown)
    assert graph.get("entity_postgres").entity.id == known.id


def test_a_name_of_several_is_not_guessed(graph: Graph) -> None:
    ids = [graph.create("Mercury", type).id for type in ("Person", "Technology")]
    with pytest.raises(InvalidInput) as caught:
        graph.get("mercury")
    assert all(one in str(caught.value) for one in ids)
    assert [graph.get(one).entity.id for one in ids] == ids


def test_entities_are_listed_in_pages_over_all_spaces(desk: Cortex) -> None:
    graph = desk.graph
    for n, domain in enumerate(("project", "user", "org") * 4):
        graph.create(f"thing {n:02}", "Concept", domain=domain)  # type: ignore[arg-type]
    graph.create("Ünder", "Person", domain="user")
    whole, total = graph.entities(limit=100)
    assert total == len(whole) == 13
    assert [one.name for one in whole] == [*(f"thing {n:02}" for n in range(12)), "Ünder"]
    assert {one.space for one in whole} == set(desk.memories.place.spaces())
    pages = [graph.entities(limit=5, offset=offset) for offset in (0, 5, 10, 15)]
    assert [one for page, _ in pages for one in page] == whole
    assert {count for _, count in pages} == {13}
    assert [one.name for one in graph.entities(type="person")[0]] == ["Ünder"]
    assert [one.name for one in graph.entities(prefix="üND")[0]] == ["Ünder"]
    assert graph.entities(prefix="thing 0", limit=3)[1] == 10
    assert graph.entities(type="File") == ([], 0)


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, 0), (1_001, 0), (5, -1), (5, 2**70)])
def test_a_page_out_of_range_is_refused(graph: Graph, limit: int, offset: int) -> None:
    for call in (graph.entities, graph.relationships):
        with pytest.raises(InvalidInput):
            call(limit=limit, offset=offset)  # type: ignore[operator]


def test_a_deleted_entity_takes_its_edges_along_and_no_memory(desk: Cortex) -> None:
    memory = desk.memories.capture("Maria Lopez from Acme uses PostgreSQL and Redis.")
    gone = desk.graph.delete("postgres")
    assert gone.id == "entity_postgresql"
    with pytest.raises(EntityNotFound):
        desk.graph.get("entity_postgresql")
    assert "entity_postgresql" not in {end for fact in facts(desk.graph.relationships()[0]) for end in fact}
    assert desk.memories.get(memory.id).content == memory.content
    assert desk.graph.get("Redis").entity.mention_count == 1
    with pytest.raises(EntityNotFound):
        desk.graph.delete("entity_postgresql")


# -- extraction ----------------------------------------------------------------------------------


TEXT = "Maria Lopez from Acme uses PostgreSQL and Redis for the billing service."


def test_extraction_alone_changes_nothing(desk: Cortex) -> None:
    before = everything(desk)
    found = desk.graph.extract(TEXT)
    assert [TEXT[one.start : one.end] for one in found.extraction.entities] == [
        one.name for one in found.extraction.entities
    ]
    assert {"Maria Lopez", "Acme", "PostgreSQL", "Redis"} <= {one.name for one in found.extraction.entities}
    assert found.ids == ()
    assert everything(desk) == before


def test_extraction_into_the_graph_can_be_repeated(desk: Cortex) -> None:
    found = desk.graph.extract(TEXT, store=True)
    assert [desk.graph.get(one).entity.name for one in found.ids] == [one.name for one in found.extraction.entities]
    held = {("entity_maria_lopez", "WorksAt", "entity_acme"), ("entity_maria_lopez", "Uses", "entity_redis")}
    assert held <= facts(desk.graph.relationships()[0])
    before = everything(desk)
    again = desk.graph.extract(TEXT, store=True)
    assert again.ids == found.ids
    assert [one.name for one in again.extraction.entities] == [one.name for one in found.extraction.entities]
    assert again.extraction.relationships == found.extraction.relationships
    assert everything(desk) == before


def test_only_what_is_sure_enough_is_extracted(graph: Graph) -> None:
    assert graph.extract(TEXT, min_confidence=1.0).extraction.entities == ()
    every = graph.extract(TEXT, min_confidence=0.0).extraction
    some = graph.extract(TEXT, min_confidence=0.9).extraction
    assert 0 < len(some.entities) < len(every.entities)
    assert all(one.confidence >= 0.9 for one in (*some.entities, *some.relationships))
    for fact in some.relationships:
        assert fact.source != fact.target
        assert max(fact.source, fact.target) < len(some.entities)
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(InvalidInput):
            graph.extract(TEXT, min_confidence=wrong)
    with pytest.raises(InvalidInput):
        graph.extract(" ")


# -- duplicates, orphans -------------------------------------------------------------------------


def test_likely_duplicates_are_told_apart_by_space(graph: Graph) -> None:
    graph.create("Amazon Web Services", "Organization")
    graph.create("AWS", "Organization")
    graph.create("Visual Studio", "Technology")
    graph.create("VS", "Technology", domain="user")
    (found,) = graph.duplicates()
    assert set(found.ids) == {"entity_amazon_web_services", "entity_aws"}
    assert found.reason == "acronym"
    assert graph.duplicates(limit=1) == [found]


def test_orphans_are_what_nothing_holds(desk: Cortex) -> None:
    graph = desk.graph
    for name in ("alone", "left", "right"):
        graph.create(name, "Concept")
    graph.relate("left", "right", "RelatesTo")
    graph.create("mine", "Concept", domain="user")
    desk.memories.capture("The deploy runs on Kubernetes.")
    assert {one.name for one in graph.orphans()} == {"alone", "mine"}
    assert graph.stats().orphans == 2
    assert {one.name for one in graph.orphans(delete=True)} == {"alone", "mine"}
    assert {one.name for one in graph.entities()[0]} == {"left", "right", "Kubernetes"}
    assert graph.orphans() == []


def test_removing_orphans_leaves_what_a_deleted_memory_will_need_again(desk: Cortex) -> None:
    memory = desk.memories.capture("Maria Lopez works at Acme.")
    whole = desk.graph.get("Acme")
    desk.memories.delete(memory.id)
    assert {one.name for one in desk.graph.orphans()} == {"Maria Lopez", "Acme"}
    assert desk.graph.orphans(delete=True) == []
    desk.memories.restore(memory.id)
    assert desk.graph.get("Acme") == whole


def test_all_orphans_are_counted(desk: Cortex) -> None:
    for half in (range(600), range(600, 1_200)):
        desk.graph.extract(" ".join(f"See src/part{n}.py now." for n in half), store=True)
    assert desk.graph.stats().orphans == desk.graph.entities(limit=1)[1] > 1_000
    desk.graph.orphans(delete=True)
    assert desk.graph.entities()[1] == 0


# -- merging -------------------------------------------------------------------------------------


def test_the_most_mentioned_stays_and_the_others_become_spellings(desk: Cortex) -> None:
    desk.memories.capture("Robert Smith works at Acme.")
    for _ in range(2):
        desk.memories.capture("Bob Smith works at Acme.")
    before = everything(desk)
    planned = desk.graph.merge(["Robert Smith", "Bob Smith"], dry_run=True)
    assert everything(desk) == before
    done = desk.graph.merge(["Robert Smith", "Bob Smith"])
    assert planned.merge_id is None
    assert done.merge_id is not None
    assert (done.entity, done.merged) == (planned.entity, planned.merged)
    assert (done.mentions_moved, done.relationships_moved, done.relationships_dropped) == (
        planned.mentions_moved,
        planned.relationships_moved,
        planned.relationships_dropped,
    )
    assert done.mentions_moved == 1
    assert (done.entity.id, done.entity.name, done.entity.mention_count) == ("entity_bob_smith", "Bob Smith", 3)
    assert "Robert Smith" in done.entity.aliases
    assert desk.graph.get("Robert Smith").entity == desk.graph.get("Bob Smith").entity == done.entity
    # From now on a memory that says so names the one that stayed.
    desk.memories.capture("Robert Smith uses Redis.")
    assert desk.graph.get("Bob Smith").entity.mention_count == 4
    # The former id means it too, until the merge is undone.
    assert desk.graph.get("entity_robert_smith").entity.id == "entity_bob_smith"
    assert desk.graph.undo_merge(done.merge_id)
    assert desk.graph.get("entity_robert_smith").entity.name == "Robert Smith"


def test_a_merge_undone_is_as_if_it_had_never_been(desk: Cortex, clock: FakeClock) -> None:
    graph = desk.graph
    desk.memories.capture("Robert Smith from Acme uses Redis and Kubernetes.")
    desk.memories.capture("Bob Smith from Acme uses Redis.")
    graph.create("Bobby", "Person", properties={"team": "core"})
    graph.relate("Bobby", "Bob Smith", "RelatesTo")
    graph.relate("Bobby", "Acme", "WorksAt")
    before = everything(desk)
    done = graph.merge(["Bobby", "Robert Smith", "Bob Smith"], canonical_name=" Robert B. Smith ")
    assert done.entity.name == "Robert B. Smith"
    assert {"Bobby", "Robert Smith", "Bob Smith"} == set(done.entity.aliases)
    assert done.entity.properties == {"team": "core"}
    assert done.relationships_dropped >= 1
    assert done.merge_id is not None
    assert all(one.source_id != one.target_id for one in graph.relationships()[0])
    assert graph.undo_merge(done.merge_id)
    assert everything(desk) == before
    assert not graph.undo_merge(done.merge_id)
    assert not graph.undo_merge("merge_of_nothing")


def test_a_merge_is_not_undone_over_an_entity_that_took_the_name(graph: Graph) -> None:
    for name in ("Kubernetes", "Kubelet"):
        graph.create(name, "Technology")
    done = graph.merge(["Kubernetes", "Kubelet"])
    assert done.merge_id is not None
    graph.create("Kubelet", "Person")
    assert graph.get("entity_kubelet").entity.type == "Person"
    assert not graph.undo_merge(done.merge_id)
    assert graph.get("entity_kubelet").entity.type == "Person"


def test_a_merge_that_fails_changes_nothing(desk: Cortex, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.memories.capture("Robert Smith works at Acme.")
    desk.memories.capture("Bob Smith works at Acme.")
    before = everything(desk)

    def fail(*_: object) -> bool:
        raise RuntimeError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(desk._store.graph, "update_entity", fail)
        with pytest.raises(RuntimeError):
            desk.graph.merge(["Robert Smith", "Bob Smith"])
    assert everything(desk) == before


def test_what_cannot_be_merged_is_refused(graph: Graph) -> None:
    graph.create("one", "Concept")
    graph.create("two", "Concept", domain="user")
    for refs in ([], ["one"], ["one", "one"], ["one", "entity_one"], ["one", "two"]):
        with pytest.raises(InvalidInput) as caught:
            graph.merge(refs)
        assert caught.value.field == "entity_ids"
    with pytest.raises(EntityNotFound):
        graph.merge(["one", "three"])
    with pytest.raises(InvalidInput):
        graph.merge(["one", "two"], canonical_name=" ")


PEOPLE = [f"Person {letter}" for letter in "abcde"]
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("capture"), st.lists(st.sampled_from(("Acme", "Redis", "Kubernetes", "Terraform")), min_size=1)
        ),
        st.tuples(st.just("relate"), st.lists(st.sampled_from(PEOPLE), min_size=2, max_size=2)),
        st.tuples(st.just("merge"), st.lists(st.sampled_from(PEOPLE), min_size=2, max_size=3)),
        st.tuples(st.just("mix"), st.lists(st.sampled_from(("Redis", "Kubernetes", *PEOPLE)), min_size=2, max_size=3)),
        st.tuples(st.just("undo"), st.just([])),
    ),
    max_size=12,
)


@pytest.fixture
def anew(tmp_path: Path, project: Path, clock: FakeClock) -> Iterator[Callable[[], Cortex]]:
    opened: list[Cortex] = []

    def make() -> Cortex:
        while opened:
            opened.pop().close()
        opened.append(
            Cortex.open(tmp_path / f"home{id(object())}", project=project, clock=clock, backend=StubBackend())
        )
        with opened[0]._store.database.write() as session:
            for table in (*TABLES, "memory", "chunk", "tag"):
                session.run(f"DELETE FROM {table}")
        return opened[0]

    yield make
    while opened:
        opened.pop().close()


@given(steps=STEPS)
@settings(suppress_health_check=list(HealthCheck))
def test_whatever_is_merged_no_mention_is_lost_and_nothing_hangs(
    anew: Callable[[], Cortex], steps: list[tuple[str, list[str]]]
) -> None:
    cortex = anew()
    for name in PEOPLE:
        cortex.graph.create(name, "Person")
    merges: list[str] = []
    mentions = 0
    for step, names in steps:
        if step == "capture":
            cortex.memories.capture("".join(f"We run {name} and keep it. " for name in names))
            with cortex._store.database.read() as session:
                mentions = session.rows("SELECT count(*) FROM mention")[0][0]
        elif step == "undo":
            if merges:
                cortex.graph.undo_merge(merges.pop())
        else:
            try:
                if step == "relate":
                    cortex.graph.relate(*names, "RelatesTo")
                else:
                    merges.append(str(cortex.graph.merge(names).merge_id))
            except (InvalidInput, EntityNotFound):
                continue
        with cortex._store.database.read() as session:
            assert session.rows("SELECT count(*) FROM mention") == [(mentions,)]
            ids = {row[0] for row in session.rows("SELECT id FROM entity")}
            ends = session.rows("SELECT source_id, target_id FROM relationship")
            held = session.rows("SELECT entity_id FROM mention UNION ALL SELECT entity_id FROM entity_alias")
        assert {end for pair in ends for end in pair} | {row[0] for row in held} <= ids
        assert all(source != target for source, target in ends)
        assert cortex.graph.stats().mentions == mentions


# -- relationships -------------------------------------------------------------------------------


@pytest.fixture
def office(graph: Graph) -> Graph:
    graph.create("Alice", "Person")
    graph.create("Acme", "Organization")
    graph.create("Initech", "Organization")
    return graph


def test_both_ends_must_be_there(office: Graph) -> None:
    for ends in (("Alice", "Nobody"), ("Nobody", "Acme")):
        with pytest.raises(EntityNotFound):
            office.relate(*ends, "WorksAt")
    for wrong in (("Alice", "alice", "WorksAt"), ("Alice", "Acme", "Hates")):
        with pytest.raises(InvalidInput):
            office.relate(*wrong)
    with pytest.raises(InvalidInput) as caught:
        office.relate("Alice", "Acme", "WorksAt", confidence=2.0)
    assert caught.value.field == "confidence"
    assert office.relationships() == ([], 0)


def test_a_fact_does_not_end_before_it_begins(office: Graph, clock: FakeClock) -> None:
    with pytest.raises(InvalidInput) as caught:
        office.relate("Alice", "Acme", "WorksAt", valid_from=clock.now(), valid_to=clock.now() - timedelta(days=1))
    assert caught.value.field == "valid_to"
    assert office.relationships() == ([], 0)


def test_a_fact_comes_back_as_it_was_stated(office: Graph, clock: FakeClock) -> None:
    start = clock.now() - timedelta(days=10)
    made = office.relate(
        "alice", "entity_acme", "worksat", properties={"as": ("cto",)}, confidence=0.5, valid_from=start
    )
    assert (made.source_id, made.type, made.target_id) == ("entity_alice", "WorksAt", "entity_acme")
    assert (made.valid_from, made.valid_to, made.recorded_at, made.method) == (start, None, clock.now(), "given")
    assert made.properties == {"as": ["cto"]}
    assert office.relationship(made.id) == made
    assert office.relationships(source="Alice") == ([made], 1)
    assert office.relationships(target="Acme", type="WORKSAT") == ([made], 1)
    assert office.relationships(entity="acme") == ([made], 1)
    assert office.relationships(source="Acme") == ([], 0)
    assert office.relationships(type="Uses") == ([], 0)
    assert office.get("Acme").relationships == (made,)
    with pytest.raises(EntityNotFound):
        office.relationships(entity="nobody")
    with pytest.raises(RelationshipNotFound):
        office.relationship("relationship_of_nobody")


def test_the_surest_come_first_in_pages(office: Graph) -> None:
    made = [office.relate("Alice", "Acme", "RelatesTo", confidence=n / 10) for n in (3, 9, 5, 7)]
    pages = [office.relationships(limit=3, offset=offset) for offset in (0, 3)]
    assert [one.confidence for page, _ in pages for one in page] == [0.9, 0.7, 0.5, 0.3]
    assert {count for _, count in pages} == {len(made)}


def test_what_held_then_and_what_holds_now(office: Graph, clock: FakeClock) -> None:
    began = clock.now()
    old = office.relate("Alice", "Acme", "WorksAt", valid_from=began)
    clock.advance(days=10)
    moved = clock.now()
    ended = office.unrelate(old.id, ended=moved)
    assert (ended.valid_to, ended.ended_at) == (moved, None)
    new = office.relate("Alice", "Initech", "WorksAt", valid_from=moved)
    clock.advance(days=10)

    def at(**days: float) -> list[str]:
        moment = began + timedelta(**days)
        known = {one.target_id for one in office.relationships(source="Alice", as_of=moment)[0]}
        start, near = office.neighbors("Alice", as_of=moment)
        assert start.name == "Alice"
        assert {one.entity.id for one in near} == known
        drawn = json.loads(office.visualize(format="json", as_of=moment))
        assert {edge["target"] for edge in drawn["edges"]} == known
        return sorted(known)

    assert at(days=5) == ["entity_acme"]
    assert at(days=10) == at(days=15) == ["entity_initech"]
    assert office.path("Alice", "Acme", as_of=began + timedelta(days=5)).found
    assert not office.path("Alice", "Acme").found
    assert office.path("Alice", "Initech").found
    assert [one.id for one in office.relationships()[0]] == [new.id]
    assert office.relationship(old.id).valid_to == moved
    with pytest.raises(InvalidInput):
        office.unrelate(old.id, ended=began)


def test_what_is_off_the_record_never_held(office: Graph, clock: FakeClock) -> None:
    made = office.relate("Alice", "Acme", "WorksAt")
    before = clock.now()
    clock.advance(days=1)
    taken = office.unrelate(made.id)
    assert (taken.ended_at, taken.valid_to) == (clock.now(), None)
    assert office.relationships() == ([], 0)
    assert office.neighbors("Alice")[1] == []
    assert office.get("Alice").relationships == ()
    assert office.relationships(as_of=before) == ([], 0)
    for call in (office.relationship, office.unrelate):
        with pytest.raises(RelationshipNotFound):
            call(made.id)


def test_a_deleted_memory_no_longer_speaks_through_its_facts(desk: Cortex) -> None:
    memory = desk.memories.capture("Maria Lopez works at Acme.")
    (fact,), _ = desk.graph.relationships(type="WorksAt")
    assert "Maria Lopez works at Acme" in desk.graph.relationship(fact.id).evidence
    desk.memories.delete(memory.id)
    for call in (desk.graph.relationship, desk.graph.unrelate):
        with pytest.raises(RelationshipNotFound):
            call(fact.id)
    desk.memories.restore(memory.id)
    assert desk.graph.relationship(fact.id) == fact


# -- inference -----------------------------------------------------------------------------------


def _grown(desk: Cortex) -> Cortex:
    for n in range(6):
        desk.memories.capture(f"Step {n}: Terraform and Ansible set up the hosts.")
        desk.memories.capture(f"Note {n}: the deploy runs on Kubernetes.")
    desk.memories.capture("Maria Lopez works at Acme.")
    return desk


def test_inference_tells_its_reasons_and_stores_nothing(desk: Cortex) -> None:
    graph = _grown(desk).graph
    before = everything(desk)
    found = graph.infer(["Terraform", "Ansible", "Kubernetes", "Maria Lopez", "Acme"], min_confidence=0.5).edges
    told = {(one.source.name, one.type, one.target.name): one for one in found}
    assert set(told) == {("Ansible", "RelatesTo", "Terraform"), ("Maria Lopez", "WorksAt", "Acme")}
    both = told["Ansible", "RelatesTo", "Terraform"]
    assert (both.method, both.id) == ("comention", None)
    assert both.evidence.startswith("named together in 6 memories: ")
    stated = told["Maria Lopez", "WorksAt", "Acme"]
    assert stated.evidence == "Maria Lopez works at Acme."
    assert stated.method.startswith("pattern:")
    assert everything(desk) == before
    assert graph.infer(["Terraform", "Ansible"], min_confidence=1.0).edges == ()
    assert graph.infer(["Terraform", "Kubernetes"]).edges == ()


def test_an_inferred_edge_is_stored_once(desk: Cortex) -> None:
    graph = _grown(desk).graph
    (edge,) = graph.infer(["Terraform", "Ansible"], store=True, min_confidence=0.5).edges
    assert edge.id is not None
    held = graph.relationship(edge.id)
    assert (held.source_id, held.type, held.target_id) == ("entity_ansible", "RelatesTo", "entity_terraform")
    assert (held.confidence, held.method, held.evidence) == (edge.confidence, edge.method, edge.evidence)
    before = everything(desk)
    (again,) = graph.infer(["Ansible", "Terraform"], store=True, min_confidence=0.5).edges
    assert again.id == edge.id
    assert everything(desk) == before
    assert [one.entity.name for one in graph.neighbors("Terraform")[1]] == ["Ansible"]


def test_memories_that_name_nothing_make_a_pair_stand_out(desk: Cortex) -> None:
    for n in range(5):
        desk.memories.capture(f"Step {n}: Terraform and Ansible set up the hosts.")
    # As far as anybody knows every memory names both: that is no sign.
    assert desk.graph.infer(["Terraform", "Ansible"], min_confidence=0.0).edges == ()
    for n in range(20):
        desk.memories.capture(f"it rained for {n} days")
    (edge,) = desk.graph.infer(["Terraform", "Ansible"], min_confidence=0.5).edges
    assert edge.evidence.startswith("named together in 5 memories")


def test_inference_needs_two(graph: Graph) -> None:
    graph.create("one", "Concept")
    for refs in ([], ["one"], ["one", "one"]):
        with pytest.raises(InvalidInput):
            graph.infer(refs)
    assert graph.infer(["one", "entity_one"]).edges == ()


# -- walks ---------------------------------------------------------------------------------------


@pytest.fixture
def chain(graph: Graph) -> Graph:
    for name in "abcdef":
        graph.create(f"node {name}", "Concept")
    for a, b in ("ab", "bc", "cd", "de"):
        graph.relate(f"node {a}", f"node {b}", "PartOf" if a != "b" else "Uses")
    return graph


def test_neighbours_come_nearest_first(chain: Graph) -> None:
    start, near = chain.neighbors("node c", depth=2)
    assert start.id == "entity_node_c"
    assert [(one.entity.name, one.distance) for one in near] == [
        ("node b", 1),
        ("node d", 1),
        ("node a", 2),
        ("node e", 2),
    ]
    assert [one.entity.name for one in chain.neighbors("node c", relationship_types=["uses"])[1]] == ["node b"]
    assert len(chain.neighbors("node c", depth=3, limit=1)[1]) == 1
    for depth in (0, 4):
        with pytest.raises(InvalidInput):
            chain.neighbors("node c", depth=depth)
    with pytest.raises(InvalidInput):
        chain.neighbors("node c", relationship_types=["Hates"])


def test_the_way_from_one_to_another(chain: Graph) -> None:
    way = chain.path("node e", "node a")
    assert [one.name for one in way.entities] == [f"node {name}" for name in "edcba"]
    assert len(way.steps) == 4
    assert not chain.path("node e", "node a", max_hops=3).found
    lost = chain.path("node a", "node f")
    assert (lost.found, [one.name for one in lost.entities], lost.steps) == (False, ["node a", "node f"], ())
    for hops in (0, 11):
        with pytest.raises(InvalidInput):
            chain.path("node a", "node b", max_hops=hops)
    with pytest.raises(EntityNotFound):
        chain.path("node a", "node z")


def test_the_whole_in_numbers(chain: Graph, desk: Cortex) -> None:
    desk.memories.capture("Maria Lopez works at Acme.")
    stats = chain.stats()
    assert (stats.entities, stats.relationships, stats.mentions, stats.memories) == (8, 5, 2, 1)
    assert stats.by_entity_type == {"Concept": 6, "Organization": 1, "Person": 1}
    assert stats.by_relationship_type == {"PartOf": 3, "Uses": 1, "WorksAt": 1}
    assert stats.orphans == 1
    assert [(one.name, count) for one, count in stats.busiest[:3]] == [("node b", 2), ("node c", 2), ("node d", 2)]


def test_pictures_of_the_whole_and_of_a_part(chain: Graph) -> None:
    drawn = json.loads(chain.visualize(format="json"))
    assert {node["name"] for node in drawn["nodes"]} == {f"node {name}" for name in "abcdef"}
    assert len(drawn["edges"]) == 4
    near = json.loads(chain.visualize(format="json", entity="node a", depth=1))
    assert {node["name"] for node in near["nodes"]} == {"node a", "node b"}
    assert json.loads(chain.visualize(format="json", entity_types=["Person"]))["nodes"] == []
    assert json.loads(chain.visualize(format="json", limit=2))["left_out"] == 4
    assert chain.visualize().startswith("flowchart")
    assert chain.visualize(format="dot").startswith("digraph")
    with pytest.raises(InvalidInput) as caught:
        chain.visualize(format="svg")
    assert caught.value.field == "format"


# -- spaces --------------------------------------------------------------------------------------


def test_spaces_are_seen_together_and_never_joined(desk: Cortex) -> None:
    graph = desk.graph
    for domain in ("project", "user", "org"):
        graph.create("Redis", "Technology", domain=domain)  # type: ignore[arg-type]
        graph.create(f"of {domain}", "Concept", domain=domain)  # type: ignore[arg-type]
    assert graph.entities()[1] == 6
    assert graph.get("Redis").entity.space == desk.project.id
    for ends in (("of project", "of user"), ("of org", "of user"), ("of org", "of project")):
        with pytest.raises(InvalidInput):
            graph.relate(*ends, "RelatesTo")
        with pytest.raises(InvalidInput):
            graph.path(*ends)
        with pytest.raises(InvalidInput):
            graph.merge(ends)
        assert graph.infer(ends).edges == ()
        assert graph.relationships(source=ends[0], target=ends[1]) == ([], 0)
    desk.memories.capture("Redis uses Lua.", domain="user")
    assert graph.get("Redis").entity.mention_count == 0
    drawn = json.loads(graph.visualize(format="json"))
    ids = [node["id"] for node in drawn["nodes"]]
    assert len(ids) == len(set(ids)) == 7
    (edge,) = drawn["edges"]
    assert edge["source"] != "entity_redis"
    assert edge["source"] in ids
    assert graph.stats().entities == 7


def test_another_project_sees_only_what_is_the_persons(desk: Cortex, home: Path, tmp_path: Path) -> None:
    desk.graph.create("Secret", "Concept")
    desk.graph.create("Shared", "Concept", domain="user")
    desk.memories.capture("Maria Lopez works at Acme.")
    (fact,), _ = desk.graph.relationships()
    done = desk.graph.merge(["Maria Lopez", "Secret"])
    (tmp_path / "other").mkdir()
    with Cortex.open(home, project=tmp_path / "other", backend=StubBackend()) as other:
        assert [one.name for one in other.graph.entities()[0]] == ["Shared"]
        for ref in ("Acme", "entity_acme", "Secret", "Maria Lopez"):
            for call in (other.graph.get, other.graph.delete, other.graph.neighbors):
                with pytest.raises(EntityNotFound):
                    call(ref)
        with pytest.raises(RelationshipNotFound):
            other.graph.relationship(fact.id)
        assert not other.graph.undo_merge(str(done.merge_id))
        assert other.graph.relationships() == ([], 0)
        assert other.graph.duplicates() == []
        assert [one.name for one in other.graph.orphans()] == ["Shared"]
        stats = other.graph.stats()
        assert (stats.entities, stats.relationships, stats.mentions) == (1, 0, 0)
        assert "Acme" not in other.graph.visualize(format="json")
    assert desk.graph.entities()[1] == 3


def test_a_secret_is_no_name_and_no_property(desk: Cortex) -> None:
    secret = "ghp_" + "1a2B3c4D5e" * 3 + "6F7g8h"
    before = everything(desk)
    for name, properties in ((secret, None), ("Alice", {"note": f"token={secret}"})):
        with pytest.raises(ContentBlocked) as refused:
            desk.graph.create(name, "Person", properties=properties)
        assert secret not in str(refused.value)
    assert everything(desk) == before
    desk.graph.extract(f"Alice from Acme uses Rust with {secret} in it.", store=True)
    assert secret not in repr(everything(desk))
    assert desk.graph.get("Alice").relationships


def test_a_recall_is_expanded_by_what_its_hits_mention(desk: Cortex) -> None:
    first = desk.memories.capture("Maria Lopez from Acme maintains the billing service.")
    tied = desk.memories.capture("Maria Lopez moved to Lisbon in May.")
    for number in range(6):
        desk.memories.capture(f"Lunch at {number} was fine.")
    hits = desk.memories.recall("billing", mode="text").results
    assert [hit.memory.id for hit in hits] == [first.id]
    found = desk.graph.expand(hits)
    assert [hit.memory.id for hit in found] == [tied.id]
    assert 0 < found[0].score < hits[0].score
    desk.memories.delete(tied.id)
    assert desk.graph.expand(hits) == []
    assert desk.graph.expand([]) == []
