"""Consolidating, superseding and enriching through real clients: what a run tells, does, and leaves alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.surfaces.mcp.server import build_server
from llm.chat_server import ChatServer, chat

from clients import CURRENT, MODES, Caller, connected, served

SAME = (
    "Use PostgreSQL for primary storage because of JSONB support",
    "We use PostgreSQL as the primary storage because it supports JSONB",
)
OTHER = "Deploy the web server on Fridays"
NOWHERE = "0" * 40


@pytest.fixture
def cortex(home: Path, project: Path, model: Backend) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, backend=model) as opened:
        yield opened


@pytest.fixture(params=[CURRENT])
def client(cortex: Cortex, request: pytest.FixtureRequest) -> Iterator[Caller]:
    with connected(build_server(cortex), request.param) as caller:
        yield caller


def _capture(client: Caller, content: str, **more: Any) -> str:
    return str(client.call("subcog_capture", **{"content": content, "namespace": "decisions", **more})["id"])


def _shown(client: Caller, **how: Any) -> set[str]:
    return {one["id"] for one in client.call("subcog_recall", **how)["results"]}


# -- consolidating -----------------------------------------------------------------------------------


def test_a_dry_run_tells_exactly_what_the_real_run_does(client: Caller) -> None:
    first = _capture(client, SAME[0], tags=["database"], source="docs/a.md")
    second = _capture(client, SAME[1], tags=["storage"], source="docs/b.md")
    other, elsewhere = _capture(client, OTHER), _capture(client, SAME[0], namespace="learnings")
    before = client.call("subcog_recall", detail="everything")

    tried = client.call("subcog_consolidate", namespace="decisions", dry_run=True)
    (group,) = tried["candidate_merges"]
    assert group["memories"] == [first, second]
    assert (tried["groups_found"], tried["dry_run"], tried["strategy"]) == (1, True, "merge")
    assert (tried["method"], group["method"], "result_id" in group) == ("local", "local", False)
    assert client.call("subcog_recall", detail="everything") == before

    done = client.call("subcog_consolidate", namespace="decisions")
    (made,) = done["candidate_merges"]
    result = made.pop("result_id")
    assert (made, {**done, "candidate_merges": [], "dry_run": True}) == (group, {**tried, "candidate_merges": []})
    assert _shown(client) == {result, other, elsewhere}
    assert _shown(client, query="PostgreSQL storage", namespace="decisions") == {result}
    assert _shown(client, filter="status:superseded") == {first, second}
    assert client.call("subcog_status")["statistics"]["total_count"] == 3

    view = client.call("subcog_get", memory_id=result)
    assert (view["content"], view["supersedes"], view["status"]) == (
        made["proposed_content"],
        [first, second],
        "active",
    )
    assert set(view["tags"]) >= {"database", "storage"}
    assert all(source in view["source"] for source in ("docs/a.md", "docs/b.md"))
    assert "superseded_by" not in view
    for id, content in zip((first, second), SAME, strict=True):
        old = client.call("subcog_get", memory_id=id)
        assert (old["content"], old["status"], old["superseded_by"]) == (content, "superseded", result)
        assert "supersedes" not in old

    again = client.call("subcog_consolidate", namespace="decisions")
    assert (again["groups_found"], again["candidate_merges"]) == (0, [])


def test_what_only_looks_alike_stays_apart(client: Caller) -> None:
    ids = {_capture(client, f"The session timeout is {minutes} minutes") for minutes in (30, 60)}
    for strategy in ("merge", "dedupe"):
        assert client.call("subcog_consolidate", namespace="decisions", strategy=strategy)["groups_found"] == 0
    assert _shown(client) == ids


def test_each_strategy_joins_its_own_kind(client: Caller) -> None:
    ids = [_capture(client, content) for content in (*SAME, SAME[0].lower() + "!")]

    def joined(strategy: str) -> list[set[str]]:
        found = client.call("subcog_consolidate", namespace="decisions", strategy=strategy, dry_run=True)
        assert found["strategy"] == strategy
        return [set(one["memories"]) for one in found["candidate_merges"]]

    assert joined("dedupe") == [{ids[0], ids[2]}]
    assert joined("merge") == [set(ids)]
    assert joined("summarize") == [set(ids)]


def test_a_query_narrows_what_is_joined(client: Caller) -> None:
    storage = {_capture(client, content, tags=["database"]) for content in SAME}
    deploys = {_capture(client, OTHER) for _ in range(2)}

    def joined(**how: str) -> list[set[str]]:
        found = client.call("subcog_consolidate", namespace="Decisions ", dry_run=True, **how)
        return sorted((set(one["memories"]) for one in found["candidate_merges"]), key=sorted)

    assert joined() == joined(query=" ") == sorted([storage, deploys], key=sorted)
    assert joined(query="tag:database") == [storage]
    assert joined(query="-tag:database") == [deploys]
    assert joined(query="PostgreSQL") == [storage]
    assert joined(query="tag:nothing") == []


@pytest.mark.slow
def test_what_one_process_consolidates_another_sees_at_once(home: Path, project: Path) -> None:
    with served("http", "auto", home, project) as one, served("stdio", "legacy", home, project) as other:
        ids = [_capture(one, content) for content in SAME]
        # Both have searched before, so that both hold what they found.
        assert _shown(other, query="PostgreSQL storage") == _shown(one, query="PostgreSQL storage") == set(ids)
        (made,) = other.call("subcog_consolidate", namespace="decisions")["candidate_merges"]
        assert _shown(one, query="PostgreSQL storage") == _shown(one) == {made["result_id"]}
        assert one.call("subcog_get", memory_id=ids[0])["superseded_by"] == made["result_id"]
        newer = _capture(one, "Use MySQL for primary storage", supersedes=made["result_id"])
        assert _shown(other, query="primary storage") == _shown(other) == {newer}
        version = one.call("subcog_enrich", memory_id=newer)["version"]
        assert other.call("subcog_get", memory_id=newer)["version"] == version == 2


# -- superseding -------------------------------------------------------------------------------------


def test_a_memory_takes_the_place_of_another(client: Caller) -> None:
    old = _capture(client, "Production runs PostgreSQL 15")
    told = client.call("subcog_capture", content="Production runs PostgreSQL 16", namespace="decisions")
    (conflict,) = told["conflicts_with"]
    assert conflict["memory_id"] == old
    assert all(number in conflict["reason"] for number in ("15", "16"))
    # A suggestion only.
    assert _shown(client) == {old, told["id"]}

    newest = client.call(
        "subcog_capture", content="Production runs PostgreSQL 17", namespace="decisions", supersedes=old[:16]
    )
    # What it replaces is no longer a contradiction; what it does not replace is one.
    assert [one["memory_id"] for one in newest["conflicts_with"]] == [told["id"]]
    assert _shown(client) == _shown(client, query="PostgreSQL in production") == {told["id"], newest["id"]}
    assert _shown(client, filter="status:superseded") == {old}
    assert client.call("subcog_get", memory_id=old)["superseded_by"] == newest["id"]
    assert client.call("subcog_get", memory_id=newest["id"])["supersedes"] == [old]
    plain = client.call("subcog_get", memory_id=told["id"])
    assert not {"supersedes", "superseded_by"} & plain.keys()
    # Not kept: it is told once, when a memory is captured.
    assert "conflicts_with" not in plain


def test_a_memory_that_contradicts_nothing_does_not_say_so(client: Caller) -> None:
    _capture(client, SAME[0])
    assert client.call("subcog_capture", content=OTHER, namespace="decisions").keys() == {"id", "urn", "pending"}


def test_what_cannot_be_replaced_is_refused_and_nothing_is_stored(client: Caller) -> None:
    old = _capture(client, "Production runs PostgreSQL 15")
    new = _capture(client, "Production runs PostgreSQL 16", supersedes=old)
    deleted = _capture(client, OTHER)
    client.call("subcog_delete", memory_id=deleted)
    before = client.call("subcog_status"), client.call("subcog_recall", detail="everything")
    for supersedes, code, error in (
        (NOWHERE, -32604, "MemoryNotFound"),
        (deleted, -32604, "MemoryNotFound"),
        (old, -32608, "Conflict"),
        ("", -32602, "InvalidId"),
    ):
        refused = client.refused(
            "subcog_capture", content="Production runs PostgreSQL 17", namespace="decisions", supersedes=supersedes
        )
        assert (refused.code, refused.data["error"]) == (code, error), supersedes
        assert refused.message
    assert (client.call("subcog_status"), client.call("subcog_recall", detail="everything")) == before
    assert client.call("subcog_get", memory_id=old)["superseded_by"] == new


@pytest.mark.parametrize("fillers", ["pretty much ", "basically ", ""])
def test_two_paraphrases_become_one_line(client: Caller, fillers: str) -> None:
    _capture(client, f"We {fillers}use PostgreSQL 15 for the orders service.")
    _capture(client, "The orders service runs on PostgreSQL 15.")
    assert client.call("subcog_consolidate", namespace="decisions")["groups_found"] == 1
    (left,) = client.call("subcog_recall", filter="ns:decisions", detail="everything")["results"]
    assert left["content"] == "The orders service runs on PostgreSQL 15." or not fillers
    assert "\n" not in left["content"]


def test_one_word_contrasts_stay_two_memories(client: Caller) -> None:
    for text in (
        "Dana plays lead guitar in the company band.",
        "Dana plays rhythm guitar in the company band.",
        "We booked a single room for the conference.",
        "We booked a twin room for the conference.",
        "The team liked the new dashboard.",
        "The team hated the new dashboard.",
    ):
        _capture(client, text)
    assert client.call("subcog_consolidate", namespace="decisions")["groups_found"] == 0


# -- enriching ---------------------------------------------------------------------------------------


def test_a_memory_is_enriched_once_and_its_former_self_is_kept(client: Caller) -> None:
    content = "We decided to use Redis because it is fast. Alternatives were Memcached."
    id = _capture(client, content, tags=["cache"])
    done = client.call("subcog_enrich", memory_id=id[:16])
    changes = done["changes"]
    assert (done["memory_id"], done["version"], done["method"]) == (id, 2, "local")
    assert {"redis", "memcached"} <= set(changes["tags_added"])
    assert (changes["structure_improved"], "context_added" in changes) == (True, False)
    assert done["diff"].startswith("--- before\n+++ after\n")
    assert f"-{content}" in done["diff"].splitlines()

    view = client.call("subcog_get", memory_id=id)
    assert view["tags"] == ["cache", *changes["tags_added"]]
    assert view["content"].splitlines() == [line[1:] for line in done["diff"].splitlines()[3:] if line[0] == "+"]
    assert all(word in view["content"] for word in content.replace(".", " ").split())
    versions = client.call("subcog_history", memory_id=id)["versions"]
    assert [(one["content"], one["tags"]) for one in versions] == [
        (content, ["cache"]),
        (view["content"], view["tags"]),
    ]

    again = client.call("subcog_enrich", memory_id=id)
    assert (again["version"], again["changes"]) == (2, {"tags_added": [], "structure_improved": False})
    assert "diff" not in again


def test_only_what_was_asked_for_is_enriched(client: Caller) -> None:
    near = _capture(client, SAME[1])
    id = _capture(client, SAME[0])
    nothing = client.call("subcog_enrich", memory_id=id, enrich_tags=False, enrich_structure=False)
    assert (nothing["version"], nothing["changes"]) == (1, {"tags_added": [], "structure_improved": False})
    tags = client.call("subcog_enrich", memory_id=id, enrich_structure=False)
    assert (tags["version"], tags["changes"]["structure_improved"], "diff" in tags) == (2, False, False)
    assert tags["changes"]["tags_added"]
    assert client.call("subcog_get", memory_id=id)["content"] == SAME[0]
    context = client.call("subcog_enrich", memory_id=id, enrich_tags=False, enrich_structure=False, add_context=True)
    assert f"subcog://memory/{near}" in context["changes"]["context_added"]
    assert client.call("subcog_get", memory_id=id)["content"].startswith(f"{SAME[0]}\n")


def test_a_note_gets_tags_to_search_by_and_nothing_where_there_is_nothing_to_add(client: Caller) -> None:
    id = _capture(client, "The login endpoint returns 401 when the token is expired.")
    added = client.call("subcog_enrich", memory_id=id, enrich_structure=False)["changes"]["tags_added"]
    assert "login-endpoint" in added
    assert not any("returns" in tag for tag in added)
    plain = _capture(client, "ok thanks")
    done = client.call("subcog_enrich", memory_id=plain, add_context=True)
    assert (done["version"], done["changes"]) == (1, {"tags_added": [], "structure_improved": False})


# -- with a language model ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_language_model_words_it_and_its_use_is_told(home: Path, project: Path, model: Backend, mode: str) -> None:
    worded = "Use PostgreSQL as the primary storage: it supports JSONB."
    enriched = {"tags": ["Weekly Release", "deploy"], "content": "**Rule:** Deploy the web server on Fridays"}
    with (
        ChatServer([chat({"content": worded}), chat(enriched)]) as server,
        Cortex.open(
            home, project=project, backend=model, llm_provider="openai", llm_model="some-model", llm_url=server.url
        ) as cortex,
        connected(build_server(cortex), mode) as client,
    ):
        for content in SAME:
            _capture(client, content)
        id = _capture(client, OTHER, tags=["deploy"])
        assert "llm" not in client.call("subcog_status")
        client.call("subcog_consolidate", namespace="decisions", dry_run=True, method="local")
        assert server.asked == []
        done = client.call("subcog_consolidate", namespace="decisions", method="llm")
        (made,) = done["candidate_merges"]
        assert (made["proposed_content"], made["method"], done["method"]) == (
            worded,
            "llm:some-model",
            "llm:some-model",
        )
        assert client.call("subcog_get", memory_id=made["result_id"])["content"] == worded
        assert all(content in server.asked[0].user for content in SAME)
        assert OTHER not in server.asked[0].user
        better = client.call("subcog_enrich", memory_id=id)
        assert (better["method"], better["changes"]["tags_added"]) == ("llm:some-model", ["weekly-release"])
        assert client.call("subcog_status")["llm"] == [
            {"model": "some-model", "calls": 2, "input_tokens": 22, "output_tokens": 14, "failed": 0}
        ]
