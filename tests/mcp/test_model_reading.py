"""What a configured language model does for the tools, through a real client: checked, merged, with its source."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.surfaces.mcp.server import build_server
from llm.chat_server import ChatServer, chat, refusal

from clients import CURRENT, MODES, Caller, connected
from stub_backend import StubBackend

TEXT = "Dana owns the Checkout Service. It uses PostgreSQL and was planned by Northwind."
ANSWER = {
    "entities": [
        {"name": "Dana", "type": "Person", "confidence": 0.99},
        {"name": "checkout service", "type": "Technology", "confidence": 0.9},
        {"name": "PostgreSQL", "type": "Technology", "confidence": 0.5},
        {"name": "Oracle", "type": "Technology", "confidence": 1},
    ],
    "relationships": [
        {
            "from": "Dana",
            "to": "Checkout Service",
            "type": "Created",
            "quote": "Dana owns the  Checkout",
            "confidence": 1,
        },
        {"from": "Checkout Service", "to": "Dana", "type": "WorksAt", "quote": "Dana owns the", "confidence": 1},
        {"from": "Dana", "to": "PostgreSQL", "type": "Uses", "quote": "Dana uses PostgreSQL", "confidence": 1},
        {"from": "Dana", "to": "Oracle", "type": "Uses", "quote": "Dana owns the", "confidence": 1},
    ],
}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture(params=[CURRENT])
def client(home: Path, project: Path, server: ChatServer, request: pytest.FixtureRequest) -> Iterator[Caller]:
    chosen = {"llm_provider": "openai", "llm_model": "some-model", "llm_url": server.url}
    with (
        Cortex.open(home, project=project, backend=StubBackend(), **chosen) as cortex,
        connected(build_server(cortex), request.param) as caller,
    ):
        yield caller


def _extract(client: Caller, **given: Any) -> dict[str, Any]:
    return client.call("subcog_entities", **{"action": "extract", "content": TEXT, **given})


@pytest.mark.parametrize("client", MODES, indirect=True)
def test_both_readings_are_merged_each_with_its_source(client: Caller, server: ChatServer) -> None:
    local = _extract(client, method="local", min_confidence=0)
    assert (local["method"], server.asked) == ("local", [])
    server.script.append(chat(ANSWER))
    both = _extract(client, min_confidence=0)
    assert both["method"] == "hybrid"
    found = {one["name"]: one for one in both["entities"]}
    # What is not in the text is not taken, and what only one reading has is kept.
    assert "Oracle" not in found
    assert {one["name"] for one in local["entities"]} <= set(found)
    assert (found["Dana"]["type"], found["Checkout Service"]["type"]) == ("Person", "Technology")
    assert found["Checkout Service"]["method"] in ("llm:some-model", "rule:kind")  # both readings find it
    assert found["Checkout Service"]["confidence"] <= 0.9
    assert TEXT[found["Dana"]["start"] : found["Dana"]["end"]] == "Dana"
    assert not found["PostgreSQL"]["method"].startswith("llm")
    made = [one for one in both["relationships"] if one["method"] == "llm:some-model"]
    assert [(one["from_entity"], one["type"], one["to_entity"]) for one in made] == [
        ("Dana", "Created", "Checkout Service")
    ]
    assert made[0]["evidence"] == "Dana owns the Checkout"
    spans = sorted((one["start"], one["end"]) for one in both["entities"])
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_the_models_reading_alone_can_be_kept(client: Caller, server: ChatServer) -> None:
    server.script.append(chat(ANSWER))
    told = _extract(client, method="llm", store=True, min_confidence=0.6)
    assert (told["method"], told["stored"]) == ("llm", True)
    assert [one["name"] for one in told["entities"]] == ["Dana", "Checkout Service"]
    assert all(one["method"] == "llm:some-model" for one in told["entities"])
    listed = client.call("subcog_relationships", action="list")["relationships"]
    assert [(one["from_entity"], one["type"], one["method"]) for one in listed] == [
        ("entity_dana", "Created", "llm:some-model")
    ]


def test_a_model_that_fails_leaves_the_local_reading(client: Caller, server: ChatServer) -> None:
    server.usual = refusal(400, "no such model")
    local = _extract(client, method="local")
    told = _extract(client)
    assert told["warnings"][0].startswith("The language model was not used")
    assert {**told, "warnings": None} == {**local, "warnings": None}
    error = client.refused("subcog_entities", action="extract", content=TEXT, method="llm")
    assert (error.code, "no such model" in error.message) == (-32606, True)
    # An answer that breaks the schema is repaired once, then given up.
    server.usual = chat({"entities": [{"name": "Dana", "type": "Wizard", "confidence": 1}], "relationships": []})
    before = len(server.asked)
    assert _extract(client)["method"] == "local"
    assert len(server.asked) == before + 2


def test_secrets_are_not_sent(client: Caller, server: ChatServer) -> None:
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    server.script.append(chat({"entities": [], "relationships": []}))
    _extract(client, content=f"{TEXT} The token is {secret}.")
    assert "Checkout Service" in server.asked[0].user
    assert secret not in server.asked[0].user


def test_relationships_are_inferred_from_what_memories_state(client: Caller, server: ChatServer) -> None:
    for number in range(3):
        note = f"Note {number}: Alice looks after Redis at night"
        client.call("subcog_capture", content=note, namespace="context")
    for name, kind in (("Alice", "Person"), ("Redis", "Technology")):
        client.call("subcog_entities", action="create", name=name, entity_type=kind)
    assert server.asked == []
    asked = {"action": "infer", "entity_ids": ["entity_alice", "entity_redis"], "min_confidence": 0.8}
    fact = {"from": 1, "to": 2, "type": "Uses", "memory": 1, "quote": "Alice looks after Redis", "confidence": 1}
    wrong = [
        {**fact, "quote": "Alice sold Redis"},
        {**fact, "from": 7},
        {**fact, "memory": 99},
        {**fact, "from": 2, "to": 1, "type": "WorksAt"},
    ]
    server.script.append(chat({"relationships": [*wrong, fact]}))
    told = client.call("subcog_relationships", **asked, store=True)
    assert told["method"] == "hybrid"
    (made,) = [one for one in told["relationships"] if one["method"] == "llm:some-model"]
    assert (made["from_entity"], made["type"], made["to_entity"]) == ("entity_alice", "Uses", "entity_redis")
    assert made["evidence"].startswith("Alice looks after Redis (")
    assert made["id"]
    server.usual = refusal(400, "away")
    again = client.call("subcog_relationships", **asked)
    assert (again["method"], len(again["warnings"])) == ("local", 1)
    assert made["evidence"] in {one["evidence"] for one in again["relationships"]}
    assert client.refused("subcog_relationships", **asked, method="llm").code == -32606


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("subcog_entities", {"action": "extract", "content": "nothing here"}),
        ("subcog_relationships", {"action": "infer", "entity_ids": ["entity_a", "entity_b"]}),
        ("subcog_consolidate", {"namespace": "decisions"}),
        ("subcog_consolidate", {"namespace": "decisions", "strategy": "dedupe"}),
        ("subcog_consolidate", {"namespace": "decisions", "dry_run": True}),
        ("subcog_enrich", {"memory_id": "KEPT"}),
        ("subcog_enrich", {"memory_id": "KEPT", "enrich_tags": False, "enrich_structure": False}),
    ],
)
def test_without_a_model_asking_for_it_is_always_refused(
    home: Path, project: Path, tool: str, given: dict[str, Any]
) -> None:
    with (
        Cortex.open(home, project=project, backend=StubBackend()) as cortex,
        connected(build_server(cortex), CURRENT) as caller,
    ):
        kept = caller.call("subcog_capture", content="A note", namespace="context")["id"]
        for name in ("A", "B"):
            caller.call("subcog_entities", action="create", name=name, entity_type="Concept")
        given = {**given, **({"memory_id": kept} if "memory_id" in given else {})}
        error = caller.refused(tool, **given, method="llm")
        assert (error.code, error.data["error"]) == (-32606, "LLMError")


# -- consolidating and enriching ---------------------------------------------------------------------

# The local comparison calls these alike with a probability of about 0.6.
DOUBTFUL = ("Deployments run through the release pipeline", "Releases are deployed by the pipeline")
OTHERS = ("Deploy to staging with version 3 first", "Deploy to staging with version 4 first")


@pytest.fixture
def desk(home: Path, project: Path, server: ChatServer, model: Backend) -> Iterator[Caller]:
    chosen = {"llm_provider": "openai", "llm_model": "some-model", "llm_url": server.url}
    with (
        Cortex.open(home, project=project, backend=model, **chosen) as cortex,
        connected(build_server(cortex), CURRENT) as caller,
    ):
        yield caller


def _capture(client: Caller, *contents: str) -> list[str]:
    return [client.call("subcog_capture", content=one, namespace="patterns")["id"] for one in contents]


@pytest.mark.parametrize("verdict", ["same", "different"])
def test_uncertain_pairs_are_judged_by_the_model(desk: Caller, server: ChatServer, verdict: str) -> None:
    ids = _capture(desk, *DOUBTFUL, *OTHERS)
    assert len(desk.call("subcog_consolidate", namespace="patterns", dry_run=True, method="local")["candidate_merges"])
    assert server.asked == []
    worded = "Releases are deployed through the release pipeline. Deployments run through it."
    server.script += [chat({"answers": [{"number": 1, "verdict": verdict}]}), chat({"content": worded})]
    told = desk.call("subcog_consolidate", namespace="patterns", dry_run=True)
    first = server.asked[0].user
    assert all(text in first for text in DOUBTFUL)
    # What differs in a number is certain, and nobody is asked.
    assert not any(text in first for text in OTHERS)
    merges = told["candidate_merges"]
    assert [one["memories"] for one in merges] == ([ids[:2]] if verdict == "same" else [])
    assert len(server.asked) == (2 if verdict == "same" else 1)
    if merges:
        assert (merges[0]["method"], merges[0]["proposed_content"]) == ("llm:some-model", worded)


def test_a_judge_that_fails_leaves_the_local_judgement(desk: Caller, server: ChatServer) -> None:
    _capture(desk, *DOUBTFUL)
    local = desk.call("subcog_consolidate", namespace="patterns", dry_run=True, method="local")
    server.usual = refusal(400, "away")
    told = desk.call("subcog_consolidate", namespace="patterns", dry_run=True)
    assert told["candidate_merges"] == local["candidate_merges"]
    assert "away" in told["warnings"][0]
    assert desk.refused("subcog_consolidate", namespace="patterns", dry_run=True, method="llm").code == -32606


NOTE = "Use PostgreSQL for primary storage because of JSONB support"
NEAR = "PostgreSQL as primary storage is what the billing reports of Dana depend on"


def test_tags_structure_and_context_come_from_the_model_each_with_its_source(desk: Caller, server: ChatServer) -> None:
    note, near = _capture(desk, NOTE, NEAR)
    form = "**Decision:** Use PostgreSQL for primary storage\n\n**Reason:** because of JSONB support"
    statements = [
        {"text": "The billing reports of Dana depend on it", "piece": 1},
        {"text": "It costs 900 a month", "piece": 1},
        {"text": "Erik is against it", "piece": 1},
        {"text": "The reports depend on it", "piece": 42},
    ]
    server.script += [chat({"tags": ["Primary Storage"], "content": form}), chat({"statements": statements})]
    told = desk.call("subcog_enrich", memory_id=note, add_context=True)
    assert told["changes"]["tags_added"] == ["primary-storage"]
    assert told["changes"]["structure_improved"] is True
    lines = told["changes"]["context_added"].split("\n")
    # What is in no piece is not taken: another number, another name, another piece.
    assert lines[0] == f"- The billing reports of Dana depend on it (subcog://memory/{near})"
    shown = re.sub(r"subcog://\S+", "", told["changes"]["context_added"])
    assert not any(word in shown for word in ("900", "Erik", "42"))
    assert all("(subcog://memory/" in line for line in lines)
    assert told["method"] == "llm:some-model"
    assert {told["sources"][part] for part in ("tags", "structure")} == {"llm:some-model"}
    assert told["sources"]["context"] in ("llm:some-model", "hybrid")
    assert desk.call("subcog_get", memory_id=note)["content"].startswith(form)


def test_a_context_that_cannot_be_had_is_the_local_one(desk: Caller, server: ChatServer) -> None:
    note, near = _capture(desk, NOTE, "We use PostgreSQL as the primary storage because it supports JSONB")
    server.usual = refusal(400, "away")
    told = desk.call("subcog_enrich", memory_id=note, enrich_tags=False, enrich_structure=False, add_context=True)
    assert (told["method"], told["sources"]) == ("local", {"context": "local"})
    assert f"subcog://memory/{near}" in told["changes"]["context_added"]
    assert "away" in told["warnings"][0]
