"""Completion of the parts of an address: what can stand there, and nothing that is hidden."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp_types import PromptReference, ResourceTemplateReference

from cortex_py import Cortex
from cortex_py.surfaces.mcp.server import build_server

from clients import CURRENT, Caller, connected
from helpers import FakeClock
from stub_backend import StubBackend

LISTING = "subcog://{domain}/{namespace}"
MEMORY = "subcog://memory/{id}"
SEARCH = "subcog://search/{query}"
HELP = "subcog://help/{topic}"


@pytest.fixture(params=[CURRENT])
def client(stubbed: Cortex, request: pytest.FixtureRequest) -> Iterator[Caller]:
    with connected(build_server(stubbed), request.param) as caller:
        yield caller


def _offered(client: Caller, template: str, argument: str, typed: str) -> list[str]:
    reference = ResourceTemplateReference(uri=template)
    answer = client.portal.call(client.client.complete, reference, {"name": argument, "value": typed})
    return list(answer.values)


def test_completion_is_advertised(client: Caller) -> None:
    capabilities = client.client.server_capabilities
    assert capabilities is not None
    assert capabilities.completions is not None


FIXED = [
    (LISTING, "domain", "", ["project", "user", "org"]),
    (LISTING, "domain", "p", ["project"]),
    (LISTING, "domain", "U", ["user"]),
    (LISTING, "domain", "x", []),
    (LISTING, "namespace", "de", ["decisions"]),
    (LISTING, "namespace", "P", ["patterns", "progress", "performance", "prompts"]),
    (LISTING, "namespace", " te", ["tech-debt", "testing"]),
    (LISTING, "namespace", "thoughts", []),
    (HELP, "topic", "", ["capture", "recall", "filters", "resources", "errors"]),
    (HELP, "topic", "re", ["recall", "resources"]),
]


def test_what_is_fixed_is_offered_by_its_beginning(client: Caller) -> None:
    for template, argument, typed, offered in FIXED:
        assert _offered(client, template, argument, typed) == offered


def test_all_namespaces_are_offered(client: Caller) -> None:
    offered = _offered(client, LISTING, "namespace", "")
    assert (len(offered), offered[0], offered[-1]) == (13, "decisions", "prompts")


def test_ids_are_offered_by_their_beginning_newest_first(stubbed: Cortex, client: Caller, clock: FakeClock) -> None:
    ids = []
    for text in ("one", "two", "three"):
        ids.insert(0, stubbed.memories.capture(text).id)
        clock.advance(days=30)
    assert _offered(client, MEMORY, "id", "") == ids
    assert _offered(client, MEMORY, "id", ids[1][:8]) == [ids[1]]
    assert _offered(client, MEMORY, "id", ids[1][:8].upper()) == [ids[1]]
    assert _offered(client, "subcog://{domain}/{namespace}/{id}", "id", ids[2]) == [ids[2]]
    assert _offered(client, MEMORY, "id", "not-an-id") == []
    assert _offered(client, MEMORY, "id", "%") == []
    assert _offered(client, MEMORY, "id", "_") == []


def test_tags_are_offered_for_a_search_most_used_first(stubbed: Cortex, client: Caller) -> None:
    stubbed.memories.capture("one", tags=["database", "deploy"])
    stubbed.memories.capture("two", tags=["deploy", "auth"])
    assert _offered(client, SEARCH, "query", "") == ["deploy", "auth", "database"]
    assert _offered(client, SEARCH, "query", "D") == ["deploy", "database"]
    assert _offered(client, SEARCH, "query", "database") == ["database"]
    assert _offered(client, SEARCH, "query", "databases") == []
    assert _offered(client, SEARCH, "query", "%") == []


def test_no_more_than_a_hundred_values_are_offered(stubbed: Cortex, client: Caller) -> None:
    for first in range(0, 110, 10):
        stubbed.memories.capture(f"Note {first}", tags=[f"tag-{number}" for number in range(first, first + 10)])
    assert len(_offered(client, SEARCH, "query", "tag-")) == 100


def test_what_is_hidden_is_not_offered(stubbed: Cortex, client: Caller, clock: FakeClock, tmp_path: Path) -> None:
    deleted = stubbed.memories.capture("one", tags=["deleted"])
    archived = stubbed.memories.capture("two", tags=["archived"])
    stubbed.memories.capture("three", tags=["expired"], ttl="1h")
    seen = stubbed.memories.capture("four", tags=["seen"])
    (tmp_path / "elsewhere").mkdir()
    settings = {"project": tmp_path / "elsewhere", "clock": clock, "backend": StubBackend()}
    with Cortex.open(stubbed.settings.home, **settings) as other:
        other.memories.capture("five", tags=["elsewhere"])
    assert len(_offered(client, MEMORY, "id", "")) == 4
    stubbed.memories.delete(deleted.id)
    stubbed.memories.update(archived.id, status="archived")
    clock.advance(hours=1)
    assert _offered(client, MEMORY, "id", "") == [seen.id]
    assert _offered(client, MEMORY, "id", deleted.id) == []
    assert _offered(client, SEARCH, "query", "") == ["seen"]
    stubbed.memories.restore(deleted.id)
    assert _offered(client, MEMORY, "id", deleted.id) == [deleted.id]
    assert _offered(client, SEARCH, "query", "del") == ["deleted"]


def test_nothing_is_offered_for_what_is_not_known(stubbed: Cortex, client: Caller) -> None:
    stubbed.memories.capture("one", tags=["a"])
    for template, argument in (
        (MEMORY, "colour"),
        (LISTING, ""),
        ("file:///{id}", "id"),
        ("https://example.org/{namespace}", "namespace"),
    ):
        assert _offered(client, template, argument, "") == []


def test_nothing_is_offered_for_a_prompt(stubbed: Cortex, client: Caller) -> None:
    stubbed.memories.capture("one", tags=["a"])
    reference = PromptReference(name="review")
    answer = client.portal.call(client.client.complete, reference, {"name": "namespace", "value": ""})
    assert answer.values == []
