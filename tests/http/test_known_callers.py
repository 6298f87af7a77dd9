"""A server that knows its callers: who is let in, what each may do, whose work it is, and what is written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from fastmcp.client.transports import StreamableHttpTransport
from mcp_types import ResourceTemplateReference
from starlette.routing import Route
from starlette.testclient import TestClient

from cortex_py import Cortex
from cortex_py.core.clock import memory_uri
from cortex_py.core.errors import ConfigurationError
from cortex_py.core.security.rights import SCOPES
from cortex_py.surfaces.http.access import EVENTS_PATH, MCP_PATH, OPEN_PATHS, PAGE_SCOPES, check_exposure
from cortex_py.surfaces.http.server import build_app
from cortex_py.surfaces.mcp.middleware.access import OPEN_METHODS, needed_scope, permits
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.surfaces.mcp.server import build_server
from timing import MINUTE

from clients import MODES, Caller, connected
from helpers import FakeClock
from servers import http_server
from stub_backend import StubBackend


@contextmanager
def _opened(home: Path, project: Path, clock: FakeClock | None = None, **settings: Any) -> Iterator[Cortex]:
    settings = {"auth": "tokens", **settings}
    with Cortex.open(home, project=project, backend=StubBackend(), clock=clock, **settings) as cortex:
        yield cortex


@contextmanager
def _asking(cortex: Cortex) -> Iterator[TestClient]:
    with TestClient(build_app(cortex), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _events(cortex: Cortex) -> list[tuple[str | None, str, str]]:
    return [(one.event.user, one.event.action, one.event.outcome) for one in reversed(cortex.audit.list(1_000))]


@contextmanager
def _client(url: str, token: str, mode: str) -> Iterator[Caller]:
    with connected(StreamableHttpTransport(url, headers=_bearer(token)), mode) as caller:
        yield caller


def test_every_tool_needs_a_scope_and_each_opens_its_own() -> None:
    for spec in TOOLS:
        needed = needed_scope(spec)
        assert needed == (
            "admin" if spec.destructive or spec.family == "backup" else "read" if spec.read_only else "write"
        )
        assert permits({needed}, spec)
        assert not permits(set(SCOPES) - {needed}, spec)
        assert not permits(set(), spec)
        for name in spec.spellings:
            assert permits({f"tool:{name}"}, spec)
        assert not any(permits({f"tool:{other.name}"}, spec) for other in TOOLS if other is not spec)
    assert {needed_scope(spec) for spec in TOOLS} == {"read", "write", "admin"}


def test_every_page_needs_a_scope(home: Path, project: Path) -> None:
    with _opened(home, project) as cortex:
        paths = {route.path for route in build_app(cortex).routes if isinstance(route, Route)}
        assert paths == {*PAGE_SCOPES, *OPEN_PATHS, MCP_PATH}
        tokens = {scope: cortex.access.create("ann", scopes=[scope]).token for scope in SCOPES}
        with _asking(cortex) as client:
            for path in [*PAGE_SCOPES, "/nothing"]:
                needed = PAGE_SCOPES.get(path, "admin")
                for scope, token in tokens.items():
                    if path == EVENTS_PATH and scope == needed:
                        continue  # answered as long as its client stays
                    answer = client.get(path, headers=_bearer(token))
                    # Snapshots and sync also need the level of an administrator in the project, which she has not.
                    refused = answer.status_code == 403 and "www-authenticate" in answer.headers
                    assert refused == (scope != needed), (path, scope)
                    if refused:
                        assert f'scope="{needed}"' in answer.headers["www-authenticate"]
                        assert answer.json()["error"]["code"] == "ACCESS_DENIED"
            assert client.get("/health/live").status_code == 200


def test_every_request_of_the_protocol_needs_a_caller_and_a_scope(home: Path, project: Path) -> None:
    with _opened(home, project) as cortex, _asking(cortex) as client:
        server = build_server(cortex, known_callers=True)
        methods = {*server._request_handlers} - OPEN_METHODS - {"tools/call"}
        assert {"resources/read", "completion/complete", "resources/subscribe", "prompts/get"} <= methods
        token = cortex.access.create("eve", scopes=["embed"]).token
        # In the protocol without a handshake every message stands alone.
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        for method in sorted(methods):
            params: dict[str, Any] = {"_meta": meta, "uri": "subcog://status", "name": "x"}
            headers = {
                **_bearer(token),
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": method,
                "Mcp-Name": "subcog://status" if method == "resources/read" else "x",
            }
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answer = client.post("/mcp", json=body, headers=headers)
            # Some belong to the other protocol alone; none is answered.
            assert '"result"' not in answer.text, (method, answer.text)
            if "needs the scope" not in answer.text:
                assert method in ("resources/subscribe", "resources/unsubscribe"), (method, answer.text)


def test_strangers_are_not_let_in(home: Path, project: Path, clock: FakeClock) -> None:
    with _opened(home, project, clock) as cortex, _asking(cortex) as client:
        expired, revoked = cortex.access.create("ann", days=1), cortex.access.create("ann")
        assert client.get("/status", headers=_bearer(expired.token)).status_code == 200
        assert client.get("/status", headers=_bearer(revoked.token)).status_code == 200
        cortex.access.revoke(revoked.record.id)
        clock.advance(days=1)
        refused: list[dict[str, str]] = [
            {},
            {"Authorization": ""},
            {"Authorization": "Bearer"},
            {"Authorization": f"Basic {expired.token}"},
            *(_bearer(token) for token in ("x", "ctx_" + "A" * 43, expired.token, revoked.token)),
        ]
        for headers in refused:
            for method, path in (("GET", "/status"), ("POST", "/mcp"), ("GET", "/metrics"), ("GET", "/nothing")):
                answer = client.request(method, path, headers=headers)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"].startswith("Bearer")
                assert ("invalid_token" in answer.headers["www-authenticate"]) == (
                    headers.get("Authorization", "").startswith("Bearer ")
                )
                assert expired.token not in answer.text
        assert client.get("/health/live").status_code == 200
        assert (None, "http:GET /status", "401") in _events(cortex)


def test_strangers_cannot_fill_the_audit_log(home: Path, project: Path) -> None:
    with _opened(home, project) as cortex, _asking(cortex) as client:
        for _ in range(80):
            assert client.get("/status").status_code == 401
        assert 60 <= len(_events(cortex)) < 80


def test_one_caller_cannot_crowd_out_another(home: Path, project: Path) -> None:
    with _opened(home, project, subject_rate_limit=3) as cortex, _asking(cortex) as client:
        ann, also_ann, bob = (cortex.access.create(name).token for name in ("ann", "ann", "bob"))
        for token in (ann, also_ann, ann):
            assert client.get("/health", headers=_bearer(token)).status_code == 200
        late = client.get("/health", headers=_bearer(also_ann))
        assert (late.status_code, late.json()["error"]["code"]) == (429, "RATE_LIMITED")
        assert 1 <= int(late.headers["retry-after"]) <= 20
        assert client.get("/health", headers=_bearer(bob)).status_code == 200


def test_the_embedding_service_counts_by_person(home: Path, project: Path) -> None:
    with _opened(home, project, rate_limit=1) as cortex, _asking(cortex) as client:
        ann, bob = (cortex.access.create(name, scopes=["embed"]).token for name in ("ann", "bob"))
        asked = [(ann, "one"), (ann, "two"), (bob, "three")]
        answers = [client.post("/embed", json={"text": text}, headers=_bearer(token)) for token, text in asked]
        assert [answer.status_code for answer in answers] == [200, 429, 200]


def test_a_failing_audit_log_is_told_and_the_answer_stands(
    home: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with _opened(home, project) as cortex, _asking(cortex) as client:
        token = cortex.access.create("ann").token
        assert client.get("/health", headers=_bearer(token)).status_code == 200
    (home / "audit.key").unlink()
    with _opened(home, project) as cortex, _asking(cortex) as client:
        assert client.get("/health", headers=_bearer(token)).status_code == 200
        assert "not in the audit log: http:GET /health by ann (200)" in caplog.text
        assert len(_events(cortex)) == 1


def test_where_callers_are_known_the_world_may_be_served() -> None:
    check_exposure("0.0.0.0", None, "tokens")
    check_exposure("0.0.0.0", None, "oidc")
    with pytest.raises(ConfigurationError):
        check_exposure("0.0.0.0", None, "token")


@pytest.mark.parametrize(
    "settings", [{"token": "a-long-enough-token-0123"}, {"auth": "oidc"}, {"auth": "oidc", "oidc_issuer": "x"}]
)
def test_settings_that_leave_in_doubt_who_is_let_in_are_refused(
    home: Path, project: Path, settings: dict[str, Any]
) -> None:
    with _opened(home, project, **settings) as cortex, pytest.raises(ConfigurationError):
        build_app(cortex)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_each_does_what_they_may_and_it_is_theirs(home: Path, project: Path, mode: str) -> None:
    with _opened(home, project) as cortex:
        ann = cortex.access.create("ann", agent="editor", scopes=["read", "write", "tool:subcog_delete"]).token
        bob = cortex.access.create("bob").token
        eve = cortex.access.create("eve", scopes=["embed"]).token
        project_id = cortex.project.id
    with http_server(home, project, CORTEX_AUTH="tokens") as server:
        with _client(server.mcp, ann, mode) as caller:
            kept = caller.call("subcog_capture", content="The ledger rounds half to even", namespace="decisions")["id"]
            gone = caller.call("subcog_capture", content="A note about to be deleted", namespace="decisions")["id"]
            caller.call("subcog_delete", memory_id=gone)
            assert "needs the scope admin" in caller.refused("subcog_gc").message
        with _client(server.mcp, bob, mode) as caller:
            assert caller.call("subcog_get", memory_id=kept)["content"].startswith("The ledger")
            error = caller.refused("subcog_capture", content="Bob was here", namespace="decisions")
            assert (error.code, error.data["error"]) == (-32601, "AccessDenied")
            told = caller.failed("create_branch", project_id=project_id, branch_topic="t")
            assert (told["success"], told["error_code"]) == (False, "ACCESS_DENIED")
            assert caller.failed("list_snapshots", project_id=project_id)["error_code"] == "ACCESS_DENIED"
            assert "The ledger" in caller.read(memory_uri(kept))
        with _client(server.mcp, eve, mode) as caller:
            assert caller.failed("embedding.generate", text="x")["code"] == "SECURITY_VIOLATION"
            assert "needs the scope read" in caller.unreadable("subcog://status").message
            place = ResourceTemplateReference(type="ref/resource", uri="subcog://memory/{id}")
            with pytest.raises(Exception, match="needs the scope read"):
                caller.portal.call(caller.client.complete, place, {"name": "id", "value": kept[:4]})
    with _opened(home, project) as cortex:
        memory = cortex.memories.get(kept)
        assert (memory.user_id, memory.agent_id) == ("ann", "editor")
        events = _events(cortex)
        assert ("ann", "tool:subcog_capture", "ok") in events
        assert ("ann", "tool:subcog_gc", "error -32601") in events
        assert ("bob", "tool:create_branch", "error ACCESS_DENIED") in events
        assert ("bob", "tool:subcog_get", "ok") in events
        assert ("eve", "mcp:resources/read", "error -32601") in events
        read = next(one.event for one in cortex.audit.list(100) if one.event.action == "tool:subcog_get")
        assert kept in read.ids
        assert read.project == project_id
        written = json.dumps([one.event.__repr__() for one in cortex.audit.list(100)])
        assert "ledger" not in written
        assert "Bob was here" not in written
        assert cortex.audit.verify().events == len(events)


def test_a_session_of_the_protocol_belongs_to_whoever_began_it(home: Path, project: Path) -> None:
    with _opened(home, project) as cortex, _asking(cortex) as client:
        cortex.tenants.create("rivals")
        ann, bob = (cortex.access.create(name).token for name in ("ann", "bob"))
        others = [bob, cortex.access.create("ann", org="rivals").token, cortex.access.create("ann", agent="x").token]
        accept = {"Accept": "application/json, text/event-stream"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        begun = client.post("/mcp", json=body, headers={**_bearer(ann), **accept})
        session = {"mcp-session-id": begun.headers["mcp-session-id"], **accept}
        asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert client.post("/mcp", json=asked, headers={**_bearer(ann), **session}).status_code == 200
        for token in others:
            theirs = {**_bearer(token), **session, "Last-Event-ID": "0"}
            assert client.post("/mcp", json=asked, headers=theirs).status_code == 404
            assert client.get("/mcp", headers=theirs).status_code == 404
            assert client.delete("/mcp", headers=theirs).status_code == 404
        assert client.post("/mcp", json=asked, headers={**_bearer(ann), **session}).status_code == 200


def test_the_pages_stream_ends_with_the_token_of_its_reader(home: Path, project: Path) -> None:
    with _opened(home, project) as cortex, http_server(home, project, CORTEX_AUTH="tokens") as server:
        made = {name: cortex.access.create(name) for name in ("ann", "bob")}
        with ExitStack() as stack:
            streams = {}
            for name, one in made.items():
                asked = httpx2.stream("GET", server.url + EVENTS_PATH, headers=_bearer(one.token), timeout=MINUTE)
                lines = stack.enter_context(asked).iter_lines()
                streams[name] = (line for line in lines if line.startswith(("event", "retry")))
            assert [next(lines) for lines in streams.values()] == ["retry: 1000"] * 2
            cortex.memories.capture("Everybody may see this")
            assert [next(lines) for lines in streams.values()] == ["event: change"] * 2
            cortex.access.revoke(made["bob"].record.id)
            cortex.memories.capture("Only ann is told of this")
            assert next(streams["ann"]) == "event: change"
            assert next(streams["bob"], "the end") == "the end"


def test_callers_of_an_issuer_are_known(home: Path, project: Path, tmp_path: Path) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    keys = {"keys": [{**jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "k"}]}
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    claims = {"iss": "https://id.example", "aud": "cortex", "sub": "ann", "exp": 4_000_000_000, "scope": "read"}
    token = jwt.encode(claims, key, algorithm="EdDSA", headers={"kid": "k"})
    wrong = jwt.encode({**claims, "aud": "other"}, key, algorithm="EdDSA", headers={"kid": "k"})
    settings = {"auth": "oidc", "oidc_issuer": "https://id.example", "oidc_audience": "cortex"}
    with (
        _opened(home, project, **settings, oidc_jwks=str(tmp_path / "keys.json")) as cortex,
        _asking(cortex) as client,
    ):
        own = cortex.access.create("ann").token
        assert client.get("/status", headers=_bearer(token)).status_code == 200
        assert client.get("/metrics", headers=_bearer(token)).status_code == 403
        for other in (wrong, own, token[:-2]):
            assert client.get("/status", headers=_bearer(other)).status_code == 401
        assert ("ann", "http:GET /status", "200") in _events(cortex)


@pytest.mark.parametrize(("audit", "written"), [("auto", False), ("on", True)])
def test_on_a_persons_own_machine_calls_are_written_down_only_if_asked_for(
    home: Path, project: Path, audit: str, written: bool
) -> None:
    with _opened(home, project, auth="token", audit=audit) as cortex:
        with connected(build_server(cortex), "auto") as caller:
            caller.call("subcog_status")
        assert _events(cortex) == ([(None, "tool:subcog_status", "ok")] if written else [])
