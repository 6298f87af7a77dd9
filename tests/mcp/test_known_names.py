"""A name that exists is recognised wherever a client writes it: in memories, texts, filters and inference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.surfaces.mcp.server import build_server

from clients import Caller, connected

SPELLINGS = (
    "the checkout service was slow today",
    "we restarted checkout-service twice",
    "both Checkout Services answer again",
    "CheckoutService logs too much",
    "the CHECKOUT SERVICE has a new alert",
    "checkout_service needs more memory",
)
README = """# Marzipan

Marzipan is a small build tool. With Marzipan you describe each step once.

Install marzipan and run it. The marzipan cache lives beside the sources.
"""


@pytest.fixture
def caller(stubbed: Cortex) -> Iterator[Caller]:
    with connected(build_server(stubbed), "auto") as client:
        yield client


def capture(caller: Caller, content: str) -> str:
    return str(caller.call("subcog_capture", content=content, namespace="decisions")["id"])


def create(caller: Caller, name: str, type: str = "Technology") -> str:
    given = {"action": "create", "name": name, "entity_type": type}
    return str(caller.call("subcog_entities", **given)["entity"]["id"])


def mentioned_in(caller: Caller, ref: str) -> set[str]:
    shown = caller.call("subcog_entities", action="get", entity_id=ref)
    return {mention["memory_id"] for mention in shown["mentions"]}


def extracted(caller: Caller, content: str) -> dict[str, Any]:
    return caller.call("subcog_entities", action="extract", content=content)


def recalled(caller: Caller, filter: str) -> set[str]:
    return {one["id"] for one in caller.call("subcog_recall", filter=filter, limit=50)["results"]}


def test_a_created_name_is_found_in_every_later_memory(caller: Caller) -> None:
    identity = create(caller, "Checkout Service")
    memories = {capture(caller, text) for text in SPELLINGS}
    assert mentioned_in(caller, identity) == memories
    assert recalled(caller, "entity:checkout-service") == memories
    listed = caller.call("subcog_entities", action="list", limit=100)["entities"]
    assert [one["id"] for one in listed if "checkout" in one["id"]] == [identity]


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_created_name_is_found_in_a_text(caller: Caller, text: str) -> None:
    create(caller, "Checkout Service")
    found = extracted(caller, text)["entities"]
    assert [(one["type"], one["method"]) for one in found if "checkout" in one["name"].lower()] == [
        ("Technology", "dictionary:entity")
    ]


@pytest.mark.parametrize(
    ("name", "type", "text"),
    [
        ("Falcon", "Technology", "the falcon is down again"),
        ("rate limiter", "Concept", "two Rate Limiters stand before it"),
        ("rate limiter", "Concept", "the RateLimiter drops too many calls"),
        ("Dispatch Policy", "Concept", "our dispatch policies changed"),
        ("Kestrel Works", "Organization", "a call with kestrel works about it"),
        ("Oyelaran", "Person", "then oyelaran looked at the log"),
        ("deploy/web.yaml", "File", "it is set in deploy/web.yaml now"),
    ],
)
def test_names_of_every_type_are_found_in_other_spellings(caller: Caller, name: str, type: str, text: str) -> None:
    identity = create(caller, name, type)
    memory = capture(caller, text)
    assert mentioned_in(caller, identity) == {memory}
    assert type in {one["type"] for one in extracted(caller, text)["entities"]}


def test_small_words_do_not_become_the_names_they_resemble(caller: Caller) -> None:
    for name in ("Next", "Will", "It"):
        create(caller, name)
    assert extracted(caller, "it will be in the next one")["entities"] == []


def test_a_name_read_from_one_memory_is_found_in_the_next(caller: Caller) -> None:
    first = capture(caller, "Maria Lopez from Quentrix built the Ledger Gateway.")
    second = capture(caller, "ask quentrix about the ledger-gateway")
    assert mentioned_in(caller, "Quentrix") == {first, second}
    assert mentioned_in(caller, "Ledger Gateway") == {first, second}


def test_ownership_is_a_relationship(caller: Caller) -> None:
    found = extracted(caller, "Dana owns the Checkout Service.")
    assert [(one["from_entity"], one["to_entity"]) for one in found["relationships"]] == [("Dana", "Checkout Service")]
    dana, service = create(caller, "Dana", "Person"), create(caller, "Checkout Service")
    capture(caller, "dana owns the checkout-service")
    told = caller.call("subcog_relationships", action="infer", entity_ids=[dana, service])
    assert [(one["from_entity"], one["to_entity"]) for one in told["relationships"]] == [(dana, service)]
    assert extracted(caller, "Dana does not own the Checkout Service.")["relationships"] == []


def test_mentions_in_other_spellings_count_for_inference(caller: Caller) -> None:
    one, other = create(caller, "Checkout Service"), create(caller, "Ledger")
    for number in range(4):
        capture(caller, f"checkout services and the ledger disagreed, case {number}")
    for number in range(30):
        capture(caller, f"an unrelated note about gardening, number {number}")
    told = caller.call("subcog_relationships", action="infer", entity_ids=[one, other], min_confidence=0.1)
    assert {(edge["from_entity"], edge["to_entity"]) for edge in told["relationships"]} & {(one, other), (other, one)}


def test_a_name_that_a_text_repeats_is_learned(caller: Caller) -> None:
    found = extracted(caller, README)["entities"]
    named = [README[one["start"] : one["end"]] for one in found]
    assert [name.lower() for name in named].count("marzipan") == README.lower().count("marzipan")
    capture(caller, README)
    later = capture(caller, "since monday marzipan fails on the second step")
    assert later in mentioned_in(caller, "marzipan")


def test_a_name_that_memories_repeat_is_learned(caller: Caller) -> None:
    texts = [f"On day {number} we rolled Vosk back and wrote it down." for number in range(4)]
    memories = [capture(caller, text) for text in texts]
    assert memories[-1] in mentioned_in(caller, "Vosk")


@pytest.mark.parametrize(
    "text",
    [
        "Run `npm run build` first, then `pip install -r requirements.txt`.",
        "First:\n\ndocker compose up -d\nkubectl apply -f deploy.yaml\n\nthen wait.",
        "We ran `uv sync --frozen` and `git rebase -i main`.",
        "$ cargo test --workspace\n$ make lint",
    ],
)
def test_commands_are_not_entities(caller: Caller, text: str) -> None:
    assert extracted(caller, text)["entities"] == []


def test_a_new_entity_is_found_in_earlier_memories(stubbed: Cortex, caller: Caller) -> None:
    earlier = capture(caller, "somehow checkout services time out at noon")
    identity = create(caller, "Checkout Service")
    assert recalled(caller, 'entity:"Checkout Service"') == {earlier}
    stubbed.upkeep()
    assert mentioned_in(caller, identity) == {earlier}
