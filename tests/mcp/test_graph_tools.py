"""The graph tools as a client uses them: what memories name and state, what is given, and ways through it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from cortex_py import Cortex
from cortex_py.core.graph_values import ENTITY_TYPES, RELATIONSHIP_TYPES
from cortex_py.surfaces.mcp.families.graph import HopItem
from cortex_py.surfaces.mcp.server import build_server

from clients import CURRENT, Caller, connected
from helpers import FakeClock, git
from stub_backend import StubBackend

# The published document's own.
SENTENCE = "Alice from Anthropic uses Rust to build the Claude API."
NAMED = {
    "entity_alice": "Person",
    "entity_anthropic": "Organization",
    "entity_rust": "Technology",
    "entity_claude_api": "Technology",
}
STATED = {
    ("entity_alice", "WorksAt", "entity_anthropic"),
    ("entity_alice", "Uses", "entity_rust"),
    ("entity_alice", "Created", "entity_claude_api"),
}
DEFAULTS = {
    "subcog_graph": {"max_hops": 5, "format": "mermaid", "limit": 50},
    "subcog_entities": {"limit": 50, "store": False, "min_confidence": 0.6, "dry_run": False, "method": "auto"},
    "subcog_relationships": {"limit": 50, "store": False, "min_confidence": 0.7, "method": "auto"},
}


class Graph:
    """The three tools in a client's hands: the same calls with less to write."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def entities(self, action: str, **given: Any) -> dict[str, Any]:
        return self.caller.call("subcog_entities", action=action, **given)

    def relationships(self, action: str, **given: Any) -> dict[str, Any]:
        return self.caller.call("subcog_relationships", action=action, **given)

    def walk(self, operation: str, **given: Any) -> dict[str, Any]:
        return self.caller.call("subcog_graph", operation=operation, **given)

    def create(self, name: str, type: str = "Technology", **given: Any) -> str:
        return str(self.entities("create", name=name, entity_type=type, **given)["entity"]["id"])

    def relate(self, source: str, type: str, target: str, **given: Any) -> str:
        ends = {"from_entity": source, "to_entity": target, "relationship_type": type}
        return str(self.relationships("create", **ends, **given)["relationship"]["id"])

    def capture(self, content: str) -> str:
        return str(self.caller.call("subcog_capture", content=content, namespace="decisions")["id"])

    def mentions(self, entity: str) -> list[str]:
        return [one["memory_id"] for one in self.entities("get", entity_id=entity)["mentions"]]

    def facts(self, **given: Any) -> set[tuple[str, str, str]]:
        return _facts(self.relationships("list", **given)["relationships"])

    def names(self, **given: Any) -> list[str]:
        return [one["name"] for one in self.entities("list", **given)["entities"]]

    def state(self) -> Any:
        """All that a call could have changed."""
        return self.entities("list"), self.relationships("list"), self.walk("stats")


def _facts(relationships: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {(one["from_entity"], one["type"], one["to_entity"]) for one in relationships}


@pytest.fixture
def graph(home: Path, project: Path, clock: FakeClock, request: pytest.FixtureRequest) -> Iterator[Graph]:
    """A client of a server whose model knows only words: meaning has nothing to do with the graph.

    It speaks one protocol unless a test asks for both: what tools do does not depend on it.
    """
    git(project, "init", "-q", "-b", "main")
    with (
        Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as cortex,
        connected(build_server(cortex), getattr(request, "param", "auto")) as caller,
    ):
        yield Graph(caller)


@pytest.fixture
def chain(graph: Graph) -> Graph:
    """One → Two ← Three → Four, and Five alone."""
    for name in ("One", "Two", "Three", "Four", "Five"):
        graph.create(name)
    graph.relate("One", "Uses", "Two")
    graph.relate("Three", "PartOf", "Two")
    graph.relate("Three", "Implements", "Four")
    return graph


# -- what texts name and state -----------------------------------------------------------------------


@pytest.mark.parametrize("graph", [CURRENT], indirect=True)
def test_the_documents_sentence_gives_its_entities_and_relationships(graph: Graph) -> None:
    told = graph.entities("extract", content=SENTENCE, store=True, min_confidence=0.7)
    assert {one["id"]: one["type"] for one in told["entities"]} == NAMED
    assert [SENTENCE[one["start"] : one["end"]] for one in told["entities"]] == [
        "Alice",
        "Anthropic",
        "Rust",
        "Claude API",
    ]
    documented = ("tagger", "given", "dictionary:", "rule:", "llm:")
    assert all(0.7 <= one["confidence"] <= 1 and one["method"].startswith(documented) for one in told["entities"])
    assert _facts(told["relationships"]) == STATED
    assert all(one["evidence"] in SENTENCE for one in told["relationships"])
    assert (told["total"], told["method"], told["stored"]) == (4, "local", True)
    assert graph.facts() == STATED
    assert {one["id"]: one["type"] for one in graph.entities("list")["entities"]} == NAMED


def test_extraction_alone_keeps_nothing(graph: Graph) -> None:
    before = graph.state()
    told = graph.entities("extract", content=SENTENCE)
    assert [one["name"] for one in told["entities"]] == ["Alice", "Anthropic", "Rust", "Claude API"]
    assert _facts(told["relationships"]) == {
        ("Alice", "WorksAt", "Anthropic"),
        ("Alice", "Uses", "Rust"),
        ("Alice", "Created", "Claude API"),
    }
    assert told["stored"] is False
    assert not any("id" in one for one in (*told["entities"], *told["relationships"]))
    assert graph.state() == before
    assert graph.entities("extract", content=SENTENCE, min_confidence=1.0)["entities"] == []
    assert graph.entities("extract", content="nothing here")["entities"] == []


def test_extracting_a_text_again_adds_nothing(graph: Graph) -> None:
    graph.entities("extract", content=SENTENCE, store=True)
    before = graph.state()
    graph.entities("extract", content=SENTENCE, store=True)
    assert graph.state() == before


def test_a_captured_memory_is_in_the_graph_at_once(graph: Graph) -> None:
    memory = graph.capture(SENTENCE)
    assert {one["id"]: one["type"] for one in graph.entities("list")["entities"]} == NAMED
    assert graph.facts() == STATED
    shown = graph.entities("get", entity_id="entity_rust")
    assert (shown["entity"]["name"], shown["entity"]["mention_count"]) == ("Rust", 1)
    (mention,) = shown["mentions"]
    assert (mention["memory_id"], mention["start"], mention["end"]) == (memory, 26, 30)
    assert mention["method"]
    assert 0.6 <= mention["confidence"] <= 1
    assert _facts(shown["relationships"]) == {("entity_alice", "Uses", "entity_rust")}


def test_an_update_is_read_anew(graph: Graph) -> None:
    memory = graph.capture(SENTENCE)
    graph.caller.call("subcog_update", memory_id=memory, content="Alice from Anthropic uses Kafka.")
    assert graph.mentions("Kafka") == [memory]
    assert graph.facts() == {
        ("entity_alice", "WorksAt", "entity_anthropic"),
        ("entity_alice", "Uses", "entity_kafka"),
    }
    assert graph.walk("stats")["counts"]["mentions"] == 3
    assert "entity_rust" not in str(graph.walk("neighbors", entity_id="Alice", depth=3))


def test_a_deleted_memory_leaves_the_graph_and_comes_back_with_it(graph: Graph) -> None:
    memory, other = graph.capture(SENTENCE), graph.capture("Bob uses Rust.")
    theirs = {("entity_bob", "Uses", "entity_rust")}
    stated = graph.relationships("list", from_entity="Alice")["relationships"][0]["id"]
    graph.caller.call("subcog_delete", memory_id=memory)
    assert graph.mentions("Rust") == [other]
    assert graph.facts() == theirs
    assert graph.caller.refused("subcog_relationships", action="get", relationship_id=stated).code == -32604
    assert graph.walk("stats")["counts"]["relationships"] == 1
    graph.caller.call("subcog_restore", memory_id=memory)
    assert sorted(graph.mentions("Rust")) == sorted([memory, other])
    assert graph.facts() == STATED | theirs
    assert graph.relationships("get", relationship_id=stated)["relationship"]["id"] == stated


def test_a_memory_that_is_gone_for_good_leaves_nothing(graph: Graph) -> None:
    graph.create("Rust")
    memory = graph.capture(SENTENCE)
    graph.caller.call("subcog_delete", memory_id=memory, hard=True)
    assert graph.mentions("Rust") == []
    assert graph.facts() == set()
    counts = graph.walk("stats")["counts"]
    assert (counts["mentions"], counts["memories"], counts["relationships"]) == (0, 0, 0)
    assert memory not in str(graph.state())


def test_contexts_and_entities_hang_together(graph: Graph, project: Path) -> None:
    id = graph.caller.call("initialize_context", project_path=str(project), mode="none")["project_id"]
    branch = graph.caller.call("create_branch", project_id=id, branch_topic="Speed")["branch_id"]
    graph.caller.call("update_memory", project_id=id, branch_id=branch, content=SENTENCE, role="user")
    (memory,) = graph.mentions("Rust")
    shown = graph.caller.call("get_context_graph_info", project_id=id)
    assert {node["id"] for node in shown["nodes"] if node["type"] == "entity"} == NAMED.keys()
    named = {(edge["from"], edge["to"]) for edge in shown["edges"] if edge["type"] == "MentionedIn"}
    assert named == {(entity, f"context_{memory}") for entity in NAMED}


# -- entities ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", ENTITY_TYPES)
def test_an_entity_of_every_type_is_made_found_listed_and_removed(graph: Graph, type: str) -> None:
    made = graph.entities("create", name=" Die Größe ", entity_type=type, properties={"since": 2019, "of": ["a"]})
    assert made["entity"] == {
        "id": "entity_die_grosse",
        "name": "Die Größe",
        "type": type,
        "properties": {"since": 2019, "of": ["a"]},
        "mention_count": 0,
    }
    shown = graph.entities("get", entity_id="entity_die_grosse")
    assert (shown["entity"], shown["mentions"], shown["relationships"]) == (made["entity"], [], [])
    assert graph.entities("list", entity_type=type)["entities"] == [made["entity"]]
    for other in set(ENTITY_TYPES) - {type}:
        assert graph.entities("list", entity_type=other)["entities"] == []
    assert graph.entities("delete", entity_id="entity_die_grosse")["entity"] == made["entity"]
    assert graph.caller.refused("subcog_entities", action="get", entity_id="entity_die_grosse").code == -32604


def test_creating_what_is_there_adds_properties_and_spellings(graph: Graph) -> None:
    first = graph.create("PostgreSQL", properties={"port": 5432, "by": "us"})
    assert graph.create("postgres", properties={"by": "them"}) == first
    entity = graph.entities("get", entity_id=first)["entity"]
    assert (entity["name"], entity["aliases"]) == ("PostgreSQL", ["postgres"])
    assert entity["properties"] == {"port": 5432, "by": "them"}


def test_one_name_of_two_types_is_two_entities(graph: Graph) -> None:
    assert [graph.create("Mercury", kind) for kind in ("Person", "Technology")] == [
        "entity_mercury",
        "entity_mercury_2",
    ]
    error = graph.caller.refused("subcog_entities", action="get", entity_id="Mercury")
    assert (error.code, error.data["field"]) == (-32602, "entity_id")
    assert "entity_mercury, entity_mercury_2" in error.message
    assert graph.entities("get", entity_id="entity_mercury_2")["entity"]["type"] == "Technology"


@pytest.mark.parametrize("spelling", ["entity_kubernetes", "Kubernetes", "kubernetes", " KUBERNETES ", "k8s", "Kube"])
def test_an_entity_goes_by_id_name_and_other_spellings(graph: Graph, spelling: str) -> None:
    id, other = graph.create("Kubernetes"), graph.create("Docker")
    graph.relate(spelling, "Uses", other)
    assert graph.entities("get", entity_id=spelling)["entity"]["id"] == id
    assert graph.entities("get", name=spelling)["entity"]["id"] == id
    assert graph.facts(from_entity=spelling) == {(id, "Uses", other)}
    assert graph.walk("neighbors", entity_id=spelling)["entity"]["id"] == id
    assert graph.walk("path", from_entity=other, to_entity=spelling)["found"] is True
    assert graph.entities("delete", name=spelling)["entity"]["id"] == id


def test_entities_are_listed_by_name_as_many_as_wanted(graph: Graph) -> None:
    for name in ("beta", "Alpha", "Gamma"):
        graph.create(name)
    assert graph.names() == ["Alpha", "beta", "Gamma"]
    page = graph.entities("list", limit=2)
    assert ([one["name"] for one in page["entities"]], page["total"]) == (["Alpha", "beta"], 3)


def test_a_removed_entity_takes_its_relationships_and_mentions_along(graph: Graph) -> None:
    memory = graph.capture(SENTENCE)
    assert graph.entities("delete", entity_id="Alice")["entity"]["mention_count"] == 1
    assert graph.facts() == set()
    assert graph.mentions("Rust") == [memory]
    assert graph.caller.call("subcog_get", memory_id=memory)["content"] == SENTENCE


@pytest.mark.parametrize("graph", [CURRENT], indirect=True)
def test_a_merge_is_told_before_it_is_done(graph: Graph) -> None:
    memory = graph.capture("Alice uses Rust.")
    lang, owner = graph.create("Rustlang", properties={"year": 2015}), graph.create("Mozilla", "Organization")
    graph.relate(owner, "Created", lang)
    before = graph.state()
    tried = graph.entities("merge", entity_ids=[lang, "Rust"], canonical_name="Rust language", dry_run=True)
    assert graph.state() == before
    done = graph.entities("merge", entity_ids=[lang, "Rust"], canonical_name="Rust language")
    assert (tried["dry_run"], done["dry_run"]) == (True, False)
    assert done["merge_id"].startswith("merge_")
    assert {name: done[name] for name in ("entity", "entities", "total")} == {
        name: tried[name] for name in ("entity", "entities", "total")
    }
    # The one that memories name stays.
    assert (done["entity"]["id"], done["entity"]["name"]) == ("entity_rust", "Rust language")
    assert sorted(done["entity"]["aliases"]) == ["Rust", "Rustlang"]
    assert done["entity"]["properties"] == {"year": 2015}
    assert [one["id"] for one in done["entities"]] == [lang]
    for spelling in ("Rust", "Rustlang", "rust language"):
        assert graph.mentions(spelling) == [memory]
    assert graph.facts(to_entity="Rustlang") == {
        ("entity_mozilla", "Created", "entity_rust"),
        ("entity_alice", "Uses", "entity_rust"),
    }
    assert graph.mentions(lang) == [memory]


def test_the_ids_of_merged_entities_keep_resolving(graph: Graph) -> None:
    for name in ("Billing", "Invoicing", "Money Service", "Alice"):
        graph.entities("create", name=name, entity_type="Person" if name == "Alice" else "Technology")
    ids = ["entity_billing", "entity_invoicing", "entity_money_service"]
    graph.entities("merge", entity_ids=ids[1::-1])
    graph.entities("merge", entity_ids=[ids[2], ids[1]])
    for one in ids:
        assert graph.entities("get", entity_id=one)["entity"]["id"] == ids[2]
    related = {"from_entity": "entity_alice", "relationship_type": "Uses"}
    made = graph.relationships("create", to_entity=ids[0], **related)
    assert made["relationship"]["to_entity"] == ids[2]
    near = graph.walk("neighbors", entity_id=ids[1])
    assert [one["id"] for one in near["entities"]] == ["entity_alice"]
    assert graph.walk("path", from_entity=ids[0], to_entity="entity_alice")["found"] is True
    # One that was removed is gone under all its ids.
    graph.entities("delete", entity_id=ids[0])
    for one in ids:
        assert graph.caller.refused("subcog_entities", action="get", entity_id=one).code == -32604


def test_a_merge_does_not_take_a_name_that_another_has(graph: Graph) -> None:
    for name in ("Alpha", "Beta", "Gamma"):
        graph.create(name)
    before = graph.state()
    error = graph.caller.refused(
        "subcog_entities", action="merge", entity_ids=["Alpha", "Beta"], canonical_name="gamma"
    )
    assert (error.code, error.data["field"]) == (-32602, "canonical_name")
    assert graph.state() == before


# -- relationships -----------------------------------------------------------------------------------


@pytest.mark.parametrize("type", RELATIONSHIP_TYPES)
def test_a_relationship_of_every_type_is_made_found_listed_and_removed(graph: Graph, type: str) -> None:
    one, two = graph.create("One"), graph.create("Two")
    made = graph.relationships(
        "create", from_entity="One", to_entity="Two", relationship_type=type, properties={"note": "ü"}
    )["relationship"]
    assert re.fullmatch(r"relationship_[0-9a-f]{40}", made["id"])
    assert made == {
        "id": made["id"],
        "from_entity": one,
        "to_entity": two,
        "type": type,
        "confidence": 1.0,
        "method": "given",
        "properties": {"note": "ü"},
    }
    assert graph.relationships("get", relationship_id=made["id"])["relationship"] == made
    assert graph.relationships("list", relationship_type=type)["relationships"] == [made]
    assert graph.entities("get", entity_id="Two")["relationships"] == [made]
    for other in set(RELATIONSHIP_TYPES) - {type}:
        assert graph.facts(relationship_type=other) == set()
    assert graph.relationships("delete", relationship_id=made["id"])["relationship"]["id"] == made["id"]
    assert graph.facts() == set()
    for action in ("get", "delete"):
        error = graph.caller.refused("subcog_relationships", action=action, relationship_id=made["id"])
        assert (error.code, error.data["field"]) == (-32604, "relationship_id")


def test_relationships_are_listed_by_their_ends(chain: Graph) -> None:
    assert chain.facts(from_entity="Three") == {
        ("entity_three", "PartOf", "entity_two"),
        ("entity_three", "Implements", "entity_four"),
    }
    assert chain.facts(to_entity="Two") == {
        ("entity_one", "Uses", "entity_two"),
        ("entity_three", "PartOf", "entity_two"),
    }
    assert chain.facts(from_entity="Three", to_entity="Two") == {("entity_three", "PartOf", "entity_two")}
    assert chain.facts(from_entity="Two") == set()
    page = chain.relationships("list", limit=2)
    assert (len(page["relationships"]), page["total"]) == (2, 3)


@pytest.mark.parametrize("graph", [CURRENT], indirect=True)
def test_what_held_once_is_seen_by_looking_back(graph: Graph) -> None:
    """The clock stands at 2026-01-02."""
    for name, kind in (("Alice", "Person"), ("Acme", "Organization"), ("Initech", "Organization")):
        graph.create(name, kind)
    past = graph.relate("Alice", "WorksAt", "Acme", valid_from="2020-01-01", valid_to="2024-06-30")
    graph.relate("Alice", "WorksAt", "Initech", valid_from="2024-07-01")
    now, then = ("entity_alice", "WorksAt", "entity_initech"), ("entity_alice", "WorksAt", "entity_acme")
    assert graph.facts() == {now}
    assert graph.facts(as_of="2022-03-01") == {then}
    assert graph.facts(as_of="2019-12-31") == set()
    assert graph.facts(as_of="30d") == {now}
    assert _facts(graph.entities("get", entity_id="Alice")["relationships"]) == {now}
    assert graph.walk("path", from_entity="Alice", to_entity="Acme")["found"] is False
    assert graph.walk("path", from_entity="Alice", to_entity="Acme", as_of="2022-03-01")["found"] is True
    near = graph.walk("neighbors", entity_id="Alice", as_of="2022-03-01")
    assert [one["id"] for one in near["entities"]] == ["entity_acme"]
    assert "Acme" in graph.walk("visualize", entity_id="Alice", as_of="2022-03-01")["content"]
    shown = graph.relationships("get", relationship_id=past)["relationship"]
    assert (shown["valid_from"][:10], shown["valid_to"][:10]) == ("2020-01-01", "2024-06-30")


def test_a_relationship_ends_by_the_clock(graph: Graph, clock: FakeClock) -> None:
    for name in ("One", "Two"):
        graph.create(name)
    graph.relate("One", "Uses", "Two", valid_to="2026-02-01")
    fact = ("entity_one", "Uses", "entity_two")
    assert graph.facts() == {fact}
    clock.advance(days=60)
    assert graph.facts() == set()
    assert graph.facts(as_of="2026-01-15") == {fact}


def test_a_relationship_is_ended_or_taken_off_the_record(graph: Graph) -> None:
    for name in ("One", "Two"):
        graph.create(name)
    fact = ("entity_one", "Uses", "entity_two")
    id = graph.relate("One", "Uses", "Two", valid_from="2025-01-01")
    ended = graph.relationships("delete", relationship_id=id, valid_to="2025-06-01")["relationship"]
    assert ended["valid_to"].startswith("2025-06-01")
    assert (graph.facts(), graph.facts(as_of="2025-03-01")) == (set(), {fact})
    graph.relationships("delete", relationship_id=id)
    assert graph.facts(as_of="2025-03-01") == set()


def test_what_stands_together_again_and_again_is_inferred_with_the_reason(graph: Graph) -> None:
    for day in range(12):
        graph.capture(f"Redis and Kafka ran side by side on day {day}.")
        graph.capture(f"GitLab built the pages on day {day}.")
    assert graph.relationships("infer", entity_ids=["Redis", "GitLab"], min_confidence=0.0)["relationships"] == []
    told = graph.relationships("infer", entity_ids=["Redis", "Kafka"], min_confidence=0.3)
    (edge,) = told["relationships"]
    assert {edge["from_entity"], edge["to_entity"]} == {"entity_redis", "entity_kafka"}
    assert (edge["type"], edge["method"]) == ("RelatesTo", "comention")
    assert "12 memories" in edge["evidence"]
    assert (told["total"], told["method"], told["stored"], "id" in edge) == (1, "local", False, False)
    assert graph.facts() == set()
    surer = graph.relationships("infer", entity_ids=["Redis", "Kafka"], min_confidence=edge["confidence"] + 0.01)
    assert surer["relationships"] == []

    kept = graph.relationships("infer", entity_ids=["Redis", "Kafka"], min_confidence=0.3, store=True)
    assert kept["stored"] is True
    id = kept["relationships"][0]["id"]
    assert graph.relationships("get", relationship_id=id)["relationship"]["evidence"] == edge["evidence"]
    graph.relationships("infer", entity_ids=["Redis", "Kafka"], min_confidence=0.3, store=True)
    assert graph.relationships("list")["total"] == 1


def test_what_a_memory_states_is_inferred_too(graph: Graph) -> None:
    graph.capture(SENTENCE)
    told = graph.relationships("infer", entity_ids=list(NAMED))
    assert _facts(told["relationships"]) == STATED
    assert all(one["method"].startswith("pattern") for one in told["relationships"])


# -- walks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reached"),
    [
        ({}, {"entity_two": 1}),
        ({"depth": 2}, {"entity_two": 1, "entity_three": 2}),
        ({"depth": 3}, {"entity_two": 1, "entity_three": 2, "entity_four": 3}),
        ({"depth": 3, "limit": 2}, {"entity_two": 1, "entity_three": 2}),
        ({"depth": 3, "relationship_types": ["Uses"]}, {"entity_two": 1}),
        ({"depth": 3, "relationship_types": ["Uses", "PartOf"]}, {"entity_two": 1, "entity_three": 2}),
        ({"depth": 3, "relationship_types": ["Created"]}, {}),
    ],
)
def test_neighbors_are_as_near_as_asked(chain: Graph, given: dict[str, Any], reached: dict[str, int]) -> None:
    near = chain.walk("neighbors", entity_id="entity_one", **given)
    assert near["entity"]["id"] == "entity_one"
    assert {one["id"]: one["distance"] for one in near["entities"]} == reached
    assert [hop["to_entity"] for hop in near["hops"]] == [one["id"] for one in near["entities"]]


def test_a_way_tells_the_direction_of_each_hop(chain: Graph) -> None:
    way = chain.walk("path", from_entity="One", to_entity="Four")
    assert way["found"] is True
    assert [one["name"] for one in way["entities"]] == ["One", "Two", "Three", "Four"]
    assert [(hop["from_entity"], hop["type"], hop["direction"], hop["to_entity"]) for hop in way["hops"]] == [
        ("entity_one", "Uses", "outgoing", "entity_two"),
        ("entity_two", "PartOf", "incoming", "entity_three"),
        ("entity_three", "Implements", "outgoing", "entity_four"),
    ]
    back = chain.walk("path", from_entity="Four", to_entity="One")["hops"]
    assert [hop["direction"] for hop in back] == ["incoming", "outgoing", "incoming"]
    assert set(get_args(HopItem.model_fields["direction"].annotation)) == {"outgoing", "incoming"}


def test_a_way_is_no_longer_than_asked(chain: Graph) -> None:
    assert chain.walk("path", from_entity="One", to_entity="Four", max_hops=3)["found"] is True
    for none in ({"to_entity": "Four", "max_hops": 2}, {"to_entity": "Five"}):
        assert chain.walk("path", from_entity="One", **none) == {"operation": "path", "found": False, "hops": []}
    here = chain.walk("path", from_entity="One", to_entity="One")
    assert (here["found"], here["hops"], [one["id"] for one in here["entities"]]) == (True, [], ["entity_one"])


def test_statistics_count_all_there_is(chain: Graph) -> None:
    chain.capture(SENTENCE)
    stats = chain.walk("stats")
    assert stats["counts"] == {"entities": 9, "relationships": 6, "mentions": 4, "memories": 1, "orphans": 1}
    assert stats["entity_types"] == {"Technology": 7, "Person": 1, "Organization": 1}
    assert stats["relationship_types"] == {"Uses": 2, "Created": 1, "Implements": 1, "PartOf": 1, "WorksAt": 1}
    assert [one["id"] for one in stats["entities"]][:1] == ["entity_alice"]


@pytest.mark.parametrize("graph", [CURRENT], indirect=True)
def test_an_empty_graph_has_statistics_and_a_drawing(graph: Graph) -> None:
    assert set(graph.walk("stats")["counts"].values()) == {0}
    assert graph.walk("visualize")["content"] == "flowchart LR\n"


def test_a_drawing_comes_in_three_formats(chain: Graph) -> None:
    usual = chain.walk("visualize")
    assert (usual["format"], usual["content"].splitlines()[0]) == ("mermaid", "flowchart LR")
    assert usual["content"].count("-->") == 3
    dot = chain.walk("visualize", format="dot")
    assert (dot["format"], dot["content"][:7], dot["content"].count("->")) == ("dot", "digraph", 3)
    drawn = json.loads(chain.walk("visualize", format="json")["content"])
    assert {one["name"] for one in drawn["nodes"]} == {"One", "Two", "Three", "Four", "Five"}
    assert {(one["source"], one["type"], one["target"]) for one in drawn["edges"]} == chain.facts()


@pytest.mark.parametrize(
    ("given", "shown", "left_out"),
    [
        ({"entity_id": "One"}, {"One", "Two", "Three"}, 0),
        ({"entity_id": "One", "depth": 1}, {"One", "Two"}, 0),
        ({"entity_id": "One", "depth": 3}, {"One", "Two", "Three", "Four"}, 0),
        ({"limit": 1, "entity_id": "One"}, {"One"}, 2),
        ({"entity_types": ["Person"]}, {"Zoë"}, 0),
        ({"entity_types": ["Person", "Technology"], "limit": 1000}, {"One", "Two", "Three", "Four", "Five", "Zoë"}, 0),
        ({"entity_types": ["File"]}, set(), 0),
    ],
)
def test_a_drawing_shows_what_was_asked_for(
    chain: Graph, given: dict[str, Any], shown: set[str], left_out: int
) -> None:
    chain.create("Zoë", "Person")
    drawn = json.loads(chain.walk("visualize", format="json", **given)["content"])
    assert ({one["name"] for one in drawn["nodes"]}, drawn["left_out"]) == (shown, left_out)


@pytest.mark.parametrize("graph", [CURRENT], indirect=True)
def test_parameters_have_the_documented_defaults(graph: Graph) -> None:
    listed = {tool.name: tool.input_schema for tool in graph.caller.portal.call(graph.caller.client.list_tools)}
    for tool, defaults in DEFAULTS.items():
        schema = listed[tool]
        assert schema["required"] == ["operation" if tool == "subcog_graph" else "action"]
        given = {name: part["default"] for name, part in schema["properties"].items() if "default" in part}
        assert given == defaults
