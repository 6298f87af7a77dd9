"""The graph of contexts shows what they name, and a context that shares a name with another is no orphan."""

from __future__ import annotations

from pathlib import Path

from cortex_py import Cortex, NewMemory
from cortex_py.parts.context.relations import ContextGraph

from stub_backend import StubBackend


def names(graph: ContextGraph) -> dict[str, str]:
    return {node.label: node.id for node in graph.nodes if node.kind == "entity"}


def mentions(graph: ContextGraph) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in graph.edges if edge.kind == "MentionedIn"}


def test_what_contexts_name_stands_among_them(desk: Cortex) -> None:
    one = desk.memories.capture("Maria Lopez works at Acme.")
    two = desk.memories.capture("Robert Smith from Acme uses Kubernetes, because Kubernetes held so far.")
    graph = desk.contexts.graph()
    assert names(graph) == {
        "Maria Lopez": "entity_maria_lopez",
        "Robert Smith": "entity_robert_smith",
        "Acme": "entity_acme",
        "Kubernetes": "entity_kubernetes",
    }
    assert mentions(graph) == {
        ("entity_maria_lopez", one.id),
        ("entity_acme", one.id),
        ("entity_acme", two.id),
        ("entity_robert_smith", two.id),
        ("entity_kubernetes", two.id),
    }
    assert all(0.0 < edge.weight <= 1.0 for edge in graph.edges)
    assert graph.total_nodes == len(graph.nodes) == 6
    assert len({node.id for node in graph.nodes}) == 6
    assert [(edge.source, edge.target) for edge in graph.edges if edge.target not in {n.id for n in graph.nodes}] == []


def test_a_name_that_two_share_holds_them_and_a_lone_one_does_not(desk: Cortex) -> None:
    desk.memories.capture("Maria Lopez works at Acme.")
    two = desk.memories.capture("Robert Smith from Acme has painted a larger building by that river.")
    alone = desk.memories.capture("The deploy runs on Kubernetes.")
    none = desk.memories.capture("Bananas ripen faster in a paper bag.")
    assert set(desk.contexts.graph().orphans) == {alone.id, none.id}
    desk.memories.delete(two.id)
    graph = desk.contexts.graph()
    assert len(graph.orphans) == 3
    assert two.id not in {end for pair in mentions(graph) for end in pair}
    desk.memories.restore(two.id)
    assert set(desk.contexts.graph().orphans) == {alone.id, none.id}


def test_a_line_of_work_shows_its_own_names(desk: Cortex) -> None:
    line = desk.contexts.create_branch("Hosts")
    inside = desk.memories.capture("Terraform and Ansible set up the hosts.", branch_id=line.id)
    desk.memories.capture("The deploy runs on Kubernetes.")
    graph = desk.contexts.graph(line.id)
    assert {"Terraform", "Ansible"} <= set(names(graph))
    assert "Kubernetes" not in names(graph)
    assert {target for _, target in mentions(graph)} == {inside.id}


def test_the_same_name_in_two_spaces_is_two_nodes(desk: Cortex) -> None:
    own = desk.memories.capture("The deploy runs on Kubernetes.", domain="user")
    shared = desk.memories.capture("Nobody understands Kubernetes.")
    graph = desk.contexts.graph()
    targets = {source: {to for at, to in mentions(graph) if at == source} for source, _ in mentions(graph)}
    assert targets.pop("entity_kubernetes") == {shared.id}
    assert list(targets.values()) == [{own.id}]
    ids = [node.id for node in graph.nodes]
    assert len(ids) == len(set(ids)) == 4
    assert set(graph.orphans) == {own.id, shared.id}


def test_merged_entities_are_one_node(desk: Cortex) -> None:
    memories = [desk.memories.capture(f"{name} works at Acme.") for name in ("Robert Smith", "Bob Smith")]
    desk.graph.merge(["Robert Smith", "Bob Smith"])
    graph = desk.contexts.graph()
    assert set(names(graph)) == {"Robert Smith", "Acme"}
    assert {target for source, target in mentions(graph) if source == "entity_robert_smith"} == {
        one.id for one in memories
    }


def test_of_many_names_those_are_shown_that_most_contexts_share(desk: Cortex) -> None:
    desk.memories.capture_many(
        NewMemory(content=f"Look at src/part{n}.py and src/common.py and src/again{n}.py.") for n in range(150)
    )
    graph = desk.contexts.graph()
    assert len(names(graph)) == 200
    assert len([one for one in mentions(graph) if one[0] == "entity_src_common_py"]) == 150


def test_another_project_sees_no_names_of_this_one(desk: Cortex, home: Path, tmp_path: Path) -> None:
    desk.memories.capture("Maria Lopez works at Acme.")
    (tmp_path / "other").mkdir()
    with Cortex.open(home, project=tmp_path / "other", backend=StubBackend()) as other:
        assert other.contexts.graph().nodes == ()
