"""Memories as resources: every address shows what it should, nothing that it should not, in both protocols."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cortex_py import Cortex, NewMemory
from cortex_py.core.records import Memory
from cortex_py.surfaces.mcp.server import build_server

from clients import MODES, Caller, connected
from helpers import FakeClock
from stub_backend import StubBackend

NOWHERE = "0" * 40
HELP = ["capture", "recall", "filters", "resources", "errors"]


@pytest.fixture
def client(stubbed: Cortex, request: pytest.FixtureRequest) -> Iterator[Caller]:
    """A client of one protocol unless a test asks for both: what stands in a page does not depend on it."""
    with connected(build_server(stubbed), getattr(request, "param", "auto")) as caller:
        yield caller


@pytest.fixture
def memory(stubbed: Cortex, clock: FakeClock) -> Memory:
    found = stubbed.memories.capture("Use PostgreSQL", namespace="decisions", tags=["database"], source="a/b.md")
    clock.advance(seconds=1)
    return found


def _json(client: Caller, uri: str) -> Any:
    return json.loads(client.read(uri))


def _contents(client: Caller, uri: str) -> list[str]:
    return [result["content"] for result in _json(client, uri)["results"]]


# -- what there is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("client", MODES, indirect=True)
def test_the_fixed_addresses_are_listed(client: Caller) -> None:
    listed = {str(one.uri): one.mime_type for one in client.portal.call(client.client.list_resources)}
    assert listed == {
        "subcog://namespaces": "application/json",
        "subcog://topics": "application/json",
        **{f"subcog://help/{topic}": "text/markdown" for topic in HELP},
    }


@pytest.mark.parametrize("client", MODES, indirect=True)
def test_the_templates_are_listed(client: Caller) -> None:
    templates = client.portal.call(client.client.list_resource_templates)
    assert {one.uri_template: (one.name, one.mime_type) for one in templates} == {
        "subcog://memory/{id}": ("memory", "application/json"),
        "subcog://search/{query}": ("search", "application/json"),
        "subcog://help/{topic}": ("help", "text/markdown"),
        "subcog://{domain}/{namespace}/{id}": ("scoped-memory", "application/json"),
        "subcog://{domain}/{namespace}": ("listing", "application/json"),
    }
    assert all(one.description for one in templates)


# -- one memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", MODES, indirect=True)
def test_a_memory_is_read_by_its_id_and_by_a_prefix(client: Caller, memory: Memory) -> None:
    whole = _json(client, f"subcog://memory/{memory.id}")
    assert whole == client.call("subcog_get", memory_id=memory.id)
    assert (whole["content"], whole["namespace"], whole["domain"]) == ("Use PostgreSQL", "decisions", "project")
    assert (whole["tags"], whole["source"], whole["version"]) == (["database"], "a/b.md", 1)
    for spelling in (memory.id[:8], memory.id[:20], memory.id.upper(), f"context_{memory.id}"):
        assert _json(client, f"subcog://memory/{spelling}") == whole
    assert _json(client, f"subcog:memory/{memory.id}") == whole
    assert client.call("subcog:get", memory_id=f"subcog:project/decisions/{memory.id}") == whole


def test_the_addresses_that_tools_answer_with_can_be_read(client: Caller) -> None:
    captured = client.call("subcog_capture", content="Use Redis", namespace="tech-debt")
    (found,) = client.call("subcog_recall", query="redis")["results"]
    view = _json(client, captured["urn"])
    assert view == _json(client, found["uri"])
    assert (view["id"], view["content"]) == (captured["id"], "Use Redis")
    assert (view["urn"], view["uri"]) == (captured["urn"], found["uri"])


def test_a_memory_is_read_by_every_spelling_of_its_scoped_address(stubbed: Cortex, client: Caller) -> None:
    memory = stubbed.memories.capture("Mend the cache", namespace="tech-debt")
    for domain in ("project", "_", "PROJECT", "%70roject"):
        for namespace in ("tech-debt", "_", "tech_debt", "Tech-Debt", "tech%2Ddebt"):
            for id in (memory.id, memory.id[:12]):
                assert _json(client, f"subcog://{domain}/{namespace}/{id}")["id"] == memory.id


def test_the_domain_of_a_person_has_two_names(stubbed: Cortex, client: Caller) -> None:
    memory = stubbed.memories.capture("I like tabs", namespace="patterns", domain="user")
    for domain in ("user", "global"):
        assert _json(client, f"subcog://{domain}/patterns/{memory.id}")["domain"] == "user"
        assert _contents(client, f"subcog://{domain}/patterns") == ["I like tabs"]
    assert _contents(client, "subcog://project/patterns") == []


def test_a_memory_is_not_read_by_the_address_of_another_scope(client: Caller, memory: Memory) -> None:
    for scope in ("user/decisions", "org/decisions", "project/patterns", "_/patterns", "user/_"):
        uri = f"subcog://{scope}/{memory.id}"
        error = client.unreadable(uri)
        assert (error.code, error.data["error"], error.data["uri"]) == (-32602, "MemoryNotFound", uri)


def test_an_updated_memory_is_read_as_it_is_now(stubbed: Cortex, client: Caller, memory: Memory) -> None:
    stubbed.memories.update(memory.id, content="Use SQLite")
    assert _json(client, f"subcog://memory/{memory.id}")["content"] == "Use SQLite"


@pytest.mark.parametrize("client", MODES, indirect=True)
def test_a_prefix_of_several_memories_names_them(stubbed: Cortex, clock: FakeClock, client: Caller) -> None:
    first = stubbed.memories.capture("one").id
    clock.repeat_prefix()
    twins = [first, stubbed.memories.capture("two").id]
    uri = f"subcog://memory/{twins[0][:8]}"
    error = client.unreadable(uri)
    assert (error.code, error.data["error"], error.data["uri"]) == (-32602, "AmbiguousId", uri)
    assert sorted(error.data["candidates"]) == sorted(twins)


# -- listings --------------------------------------------------------------------------------------


def test_a_listing_shows_the_newest_first(stubbed: Cortex, client: Caller, clock: FakeClock, memory: Memory) -> None:
    stubbed.memories.capture("Use Redis", namespace="decisions")
    clock.advance(seconds=1)
    stubbed.memories.capture("Lower case names", namespace="patterns")
    clock.advance(seconds=1)
    stubbed.memories.capture("I like tabs", namespace="decisions", domain="user")
    assert _contents(client, "subcog://project/decisions") == ["Use Redis", "Use PostgreSQL"]
    assert _contents(client, "subcog://_/decisions") == ["I like tabs", "Use Redis", "Use PostgreSQL"]
    assert _contents(client, "subcog://project/_") == ["Lower case names", "Use Redis", "Use PostgreSQL"]
    assert _contents(client, "subcog://_/_") == ["I like tabs", "Lower case names", "Use Redis", "Use PostgreSQL"]
    assert _contents(client, "subcog://org/_") == []
    assert _json(client, "subcog://project/decisions")["results"][1] == {
        "id": memory.id,
        "namespace": "decisions",
        "tags": ["database"],
        "content": "Use PostgreSQL",
        "uri": f"subcog://memory/{memory.id}",
        "created_at": "2026-01-02T12:34:56Z",
    }


def test_a_long_listing_is_cut_and_says_the_true_number(stubbed: Cortex, client: Caller) -> None:
    stubbed.memories.capture_many([NewMemory(content=f"Step {number}", namespace="progress") for number in range(60)])
    listing = _json(client, "subcog://project/progress")
    assert (len(listing["results"]), listing["total"]) == (50, 60)


def test_the_namespaces_are_shown(client: Caller) -> None:
    shown = _json(client, "subcog://namespaces")
    assert shown == client.call("subcog_namespaces")
    assert [one["name"] for one in shown["namespaces"]][:3] == ["decisions", "patterns", "learnings"]
    assert len(shown["namespaces"]) == 13


def test_the_topics_are_the_tags_with_their_counts(stubbed: Cortex, client: Caller, memory: Memory) -> None:
    stubbed.memories.capture("Use Redis", namespace="decisions", tags=["cache", "database"])
    stubbed.memories.capture("I like tabs", namespace="patterns", tags=["style"], domain="user")
    assert _json(client, "subcog://topics") == {
        "topics": [
            {"tag": "database", "count": 2},
            {"tag": "cache", "count": 1},
            {"tag": "style", "count": 1},
        ]
    }


def test_every_help_page_is_a_page_of_its_own(client: Caller) -> None:
    pages = [client.read(f"subcog://help/{topic}") for topic in HELP]
    assert all(page.startswith("# ") for page in pages)
    assert len(set(pages)) == len(HELP)


def test_what_follows_an_address_is_no_part_of_it(client: Caller) -> None:
    page = client.read("subcog://help/recall")
    assert client.read("subcog://help/recall?x=1") == client.read("subcog://help/recall#top") == page
    assert client.unreadable("subcog://help/?x=1").code == -32602


def test_the_help_on_addresses_names_every_template(client: Caller) -> None:
    page = client.read("subcog://help/resources")
    templates = client.portal.call(client.client.list_resource_templates)
    assert all(f"`{one.uri_template}`" in page for one in templates)


# -- searching -------------------------------------------------------------------------------------

QUERIES = [
    "Zoë déjà ☃",
    "日本語 テスト",
    "src/api/auth.py",
    "../../etc/passwd",
    "/absolute/path",
    '"quoted" NEAR -minus*',
    "it's 'single'",
    "what? yes & #1",
    "100% sure",
    "escape %41 kept",
    "escape %2F kept",
    "a+b=c",
    "{query}",
    "ns:decisions since:7d",
    "back\\slash",
    "line\nbreak",
]


@pytest.mark.parametrize("client", MODES, indirect=True)
def test_a_search_takes_any_text_once_encoded(stubbed: Cortex, client: Caller) -> None:
    decoys = ("escape A kept", "escape / kept", "a b c", "Zoe", "nothing of the kind")
    stubbed.memories.capture_many([NewMemory(content=text, namespace="testing") for text in (*QUERIES, *decoys)])
    for query in QUERIES:
        found = _json(client, f"subcog://search/{quote(query, safe='')}")
        assert found == client.call("subcog_recall", query=query)
        assert found["results"][0]["content"].split() == query.split()
        assert found["results"][0]["score"] > 0.5


@pytest.mark.parametrize("client", MODES, indirect=True)
def test_a_search_reads_the_address_as_it_was_sent(stubbed: Cortex, client: Caller) -> None:
    stubbed.memories.capture("up .. and away", namespace="testing")
    for query, sent in (("..", ".."), ("Zoë", "Zoë"), ("a b", "a b")):
        result = client.portal.call(client.client.session.read_resource, f"subcog://search/{sent}")
        assert json.loads(result.contents[0].text) == client.call("subcog_recall", query=query)


def test_a_search_for_nothing_lists(client: Caller, memory: Memory) -> None:
    assert _json(client, "subcog://search/%20")["results"] == client.call("subcog_recall")["results"]


# -- addresses of nothing --------------------------------------------------------------------------


NOTHING = [
    f"subcog://memory/{NOWHERE}",
    "subcog://memory/00000000",
    "subcog://memory/not-an-id",
    "subcog://memory/..%2Fnamespaces",
    f"subcog://project/decisions/{NOWHERE}",
    "subcog://project/decisions/not-an-id",
    "subcog://project/thoughts",
    "subcog://planet/decisions",
    "subcog://planet/_",
    "subcog://help/everything",
    "subcog://help/%2E%2E%2Fcapture",
    "subcog://search/a/b",
    "subcog://search/a/b/c",
    "subcog://nothing",
    "subcog://topics/more",
    "subcog://a/b/c/d",
    "file:///etc/passwd",
    "https://example.org/namespaces",
]


@pytest.mark.parametrize("client", MODES, indirect=True)
def test_an_address_of_nothing_is_an_error_that_names_it(client: Caller, memory: Memory) -> None:
    errors = {uri: client.unreadable(uri) for uri in NOTHING}
    assert {uri: error.code for uri, error in errors.items()} == dict.fromkeys(NOTHING, -32602)
    assert {uri: error.data["uri"] for uri, error in errors.items()} == {uri: uri for uri in NOTHING}


# -- what must not show ----------------------------------------------------------------------------

MARK = "zanzibar"
Hide = Callable[[Cortex, FakeClock, Path], str]


def _capture(stubbed: Cortex, **more: Any) -> Memory:
    return stubbed.memories.capture(f"The {MARK} secret", namespace="decisions", tags=[MARK], **more)


def _deleted(stubbed: Cortex, clock: FakeClock, folder: Path) -> str:
    return stubbed.memories.delete(_capture(stubbed).id).id


def _purged(stubbed: Cortex, clock: FakeClock, folder: Path) -> str:
    return stubbed.memories.delete(_capture(stubbed).id, hard=True).id


def _expired(stubbed: Cortex, clock: FakeClock, folder: Path) -> str:
    memory = _capture(stubbed, ttl="1h")
    clock.advance(hours=1)
    return memory.id


def _changed(stubbed: Cortex, clock: FakeClock, folder: Path) -> str:
    return stubbed.memories.update(_capture(stubbed).id, content="Nothing to see", tags=["plain"]).id


def _set_aside(status: Any) -> Hide:
    return lambda stubbed, clock, folder: stubbed.memories.update(_capture(stubbed).id, status=status).id


def _of_another(domain: Any, **settings: Any) -> Hide:
    def capture(stubbed: Cortex, clock: FakeClock, folder: Path) -> str:
        place = settings.get("project", "project")
        (folder / place).mkdir(exist_ok=True)
        others = {name: value for name, value in settings.items() if name != "project"}
        home, backend = stubbed.settings.home, StubBackend()
        with Cortex.open(home, project=folder / place, clock=clock, backend=backend, **others) as other:
            return _capture(other, domain=domain).id

    return capture


HIDDEN: dict[str, Hide] = {
    "deleted": _deleted,
    "purged": _purged,
    "expired": _expired,
    "changed": _changed,
    "archived": _set_aside("archived"),
    "superseded": _set_aside("superseded"),
    "consolidated": _set_aside("consolidated"),
    "of another project": _of_another("project", project="elsewhere"),
    "of another person": _of_another("user", user_id="eve"),
    "of another organisation": _of_another("org", org="acme"),
}

SURFACES = [
    "subcog://project/decisions",
    "subcog://user/decisions",
    "subcog://org/decisions",
    "subcog://_/decisions",
    "subcog://project/_",
    "subcog://_/_",
    f"subcog://search/{MARK}",
    f"subcog://search/the%20{MARK}%20secret",
    "subcog://topics",
]


@pytest.mark.parametrize("hide", HIDDEN.values(), ids=HIDDEN)
def test_what_is_hidden_shows_on_no_surface(
    stubbed: Cortex, client: Caller, clock: FakeClock, tmp_path: Path, hide: Hide
) -> None:
    hidden = hide(stubbed, clock, tmp_path)
    for domain in ("project", "user", "org"):
        stubbed.memories.capture("Plain to see", namespace="decisions", tags=["plain"], domain=domain)
    shown = {uri: client.read(uri) for uri in SURFACES}
    assert [uri for uri, text in shown.items() if MARK in text or (hidden in text and hide is not _changed)] == []
    assert [uri for uri, text in shown.items() if "plain" not in text] == []


def test_what_is_hidden_would_have_shown(stubbed: Cortex, client: Caller) -> None:
    for domain in ("project", "user", "org"):
        _capture(stubbed, domain=domain)
    assert [uri for uri in SURFACES if MARK not in client.read(uri)] == []


def test_a_deleted_memory_has_no_address_until_it_is_restored(stubbed: Cortex, client: Caller, memory: Memory) -> None:
    addresses = [f"subcog://memory/{memory.id}", f"subcog://project/decisions/{memory.id}", f"subcog://_/_/{memory.id}"]
    stubbed.memories.delete(memory.id)
    assert {client.unreadable(uri).code for uri in addresses} == {-32602}
    stubbed.memories.restore(memory.id)
    assert {_json(client, uri)["content"] for uri in addresses} == {"Use PostgreSQL"}
    stubbed.memories.delete(memory.id, hard=True)
    assert {client.unreadable(uri).code for uri in addresses} == {-32602}
