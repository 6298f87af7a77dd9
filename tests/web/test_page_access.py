"""Who may look at the page: links that work once, cookies, tokens, and requests that other sites send."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cortex_py import Cortex
from cortex_py.surfaces.http.server import build_app
from cortex_py.surfaces.http.sessions import PageLinks, PageSessions, page_address

from stub_backend import StubBackend

TOKEN = "a-long-enough-token-0123"


@contextmanager
def _client(home: Path, project: Path, **settings: Any) -> Iterator[tuple[Cortex, TestClient]]:
    with Cortex.open(home, project=project, backend=StubBackend(), **settings) as cortex:
        app = build_app(cortex)
        with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
            yield cortex, client


def _sign_in(client: TestClient) -> str:
    """Follow a fresh link; the token against forged requests."""
    link = page_address("", client.app.state.page_links)  # type: ignore[attr-defined]
    answer = client.get(link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    return _csrf(client)


def _csrf(client: TestClient) -> str:
    found = re.search(r'<meta name="csrf" content="([^"]+)">', client.get("/").text)
    assert found
    return found[1]


def test_without_a_session_only_the_way_to_one_is_shown(home: Path, project: Path) -> None:
    with _client(home, project) as (cortex, client):
        cortex.memories.capture("The launch code is swordfish")
        page = client.get("/")
        assert page.status_code == 401
        assert "cortex ui" in page.text
        assert "swordfish" not in page.text
        answer = client.get("/api/v1/search")
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED")
        # An open server checks no tokens, so one that is sent means nothing.
        assert client.get("/api/v1/search", headers={"Authorization": "Bearer x"}).status_code == 401


def test_a_link_works_once_and_gives_a_strict_cookie(home: Path, project: Path) -> None:
    with _client(home, project) as (cortex, client):
        cortex.memories.capture("Use PostgreSQL for JSONB")
        link = page_address("", client.app.state.page_links)  # type: ignore[attr-defined]
        cookie = client.get(link).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "Path=/" in cookie
        assert "PostgreSQL" in client.get("/").text
        client.cookies.clear()
        again = client.get(link)
        assert again.status_code == 401
        assert "set-cookie" not in again.headers


@pytest.mark.parametrize(
    ("method", "headers"),
    [("HEAD", {}), ("OPTIONS", {}), ("GET", {"Sec-Purpose": "prefetch;prerender"}), ("GET", {"X-Purpose": "preview"})],
)
def test_looking_ahead_does_not_spend_a_link(home: Path, project: Path, method: str, headers: dict[str, str]) -> None:
    with _client(home, project) as (_, client):
        link = page_address("", client.app.state.page_links)  # type: ignore[attr-defined]
        ahead = client.request(method, link, headers=headers)
        assert ahead.status_code == 401
        assert "set-cookie" not in ahead.headers
        assert client.get(link).status_code == 303


@pytest.mark.parametrize("code", ["", "1.2.3", "9999999999.aa.", "9999999999.aa.00", "é.ü.ñ", "." * 50])
def test_a_forged_link_opens_nothing(home: Path, project: Path, code: str) -> None:
    with _client(home, project) as (_, client):
        answer = client.get("/session", params={"code": code})
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers


def test_a_link_ends_with_its_time_and_its_server() -> None:
    now = 1_000_000.0
    links = PageLinks(b"k" * 32, now=lambda: now)
    early, late = links.code(), links.code()
    assert links.redeem(early)
    assert not PageLinks(b"k" * 32, now=lambda: now).redeem(late), "another run of the server"
    assert not PageLinks(b"x" * 32, run=links.run, now=lambda: now).redeem(late), "another home"
    now += 601
    assert not links.redeem(late)


def test_an_idle_session_ends() -> None:
    now = 0.0
    sessions = PageSessions(lambda: now)
    secret = sessions.begin(None)
    now = 11 * 3600.0
    assert sessions.find(secret)
    now += 11 * 3600.0
    assert sessions.find(secret), "using it keeps it open"
    now += 13 * 3600.0
    assert sessions.find(secret) is None
    assert sessions.find("x") is None


def test_signing_out_ends_the_session(home: Path, project: Path) -> None:
    with _client(home, project) as (_, client):
        _sign_in(client)
        kept = dict(client.cookies)
        assert client.delete("/session").status_code == 204
        client.cookies.update(kept)
        assert client.get("/").status_code == 401


def test_every_view_forbids_what_is_not_its_own(home: Path, project: Path) -> None:
    with _client(home, project) as (_, client):
        for answer in (client.get("/"), _sign_in(client) and client.get("/")):
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "trusted-types 'none'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert not re.search(r"<script(?![^>]*\ssrc=)|\sstyle=|<style|\son\w+=", answer.text)


def test_files_are_kept_for_good_under_a_name_that_changes_with_them(home: Path, project: Path) -> None:
    with _client(home, project) as (_, client):
        _sign_in(client)
        style = re.findall(r'href="(/static/[0-9a-f]{16}/page.css)"', client.get("/").text)[0]
        answer = client.get(style)
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].startswith("text/css")
        assert client.get("/static/0000/page.css").headers["location"] == style
        assert client.get(style.replace("page.css", "none.css")).status_code == 404
        assert client.get("/static/x/..%2F__init__.py").status_code == 404


def test_a_shared_token_signs_in_by_hand_or_by_link(home: Path, project: Path) -> None:
    with _client(home, project, token=TOKEN) as (_, client):
        assert client.get("/api/v1/search").status_code == 401
        assert client.get("/api/v1/search", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/api/v1/search", headers={"Authorization": "Bearer wrong"}).status_code == 401
        wrong = client.post("/session", data={"token": "wrong"})
        assert wrong.status_code == 401
        assert "not known" in wrong.text
        assert client.post("/session", data={"token": TOKEN}).status_code == 303
        assert client.get("/api/v1/search").status_code == 200
        client.cookies.clear()
        _sign_in(client)
        assert client.get("/api/v1/search").status_code == 200


def test_known_callers_sign_in_as_themselves_and_see_their_own(home: Path, project: Path) -> None:
    with _client(home, project, auth="tokens") as (cortex, client):
        assert client.app.state.page_links is None  # type: ignore[attr-defined]
        ann = cortex.access.create("ann", scopes=["read", "write"])
        eve = cortex.access.create("eve", scopes=["embed"])
        assert client.post("/session", data={"token": eve.token}).status_code == 303
        assert client.get("/api/v1/search").status_code == 403
        client.cookies.clear()
        assert client.post("/session", data={"token": ann.token}).status_code == 303
        assert client.get("/api/v1/search").status_code == 200
        cortex.access.revoke(ann.record.id)
        assert client.get("/api/v1/search").status_code == 401, "a session lasts no longer than its token"


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://127.0.0.1:9999"}],
)
def test_another_site_cannot_sign_in(home: Path, project: Path, headers: dict[str, str]) -> None:
    with _client(home, project, token=TOKEN) as (_, client):
        assert client.post("/session", data={"token": TOKEN}, headers=headers).status_code == 403


def test_a_stranger_by_name_is_refused(home: Path, project: Path) -> None:
    with _client(home, project) as (_, client):
        _sign_in(client)
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 421


def test_texts_are_written_as_text(home: Path, project: Path) -> None:
    with _client(home, project) as (cortex, client):
        hostile = "<script>alert(1)</script><img src=x onerror=alert(1)> & \"quotes' </pre>"
        memory = cortex.memories.capture(hostile, tags=["a"])
        _sign_in(client)
        for text in (client.get("/").text, client.get(f"/memories/{memory.id}").text):
            assert "<script>alert" not in text
            assert "<img" not in text
            assert "&lt;script&gt;alert(1)" in text
        echoed = client.get("/", params={"q": '"><script>alert(1)</script>'}).text
        assert "<script>alert" not in echoed


@pytest.mark.parametrize(
    "headers",
    [{}, {"Cortex-CSRF": "wrong"}, {"Origin": "http://127.0.0.1:9999"}, {"Sec-Fetch-Site": "same-site"}],
    ids=["no token", "wrong token", "another port", "another site"],
)
def test_a_change_that_the_page_did_not_ask_for_is_refused(home: Path, project: Path, headers: dict[str, str]) -> None:
    with _client(home, project) as (cortex, client):
        memory = cortex.memories.capture("Stay")
        right = {"Cortex-CSRF": _sign_in(client)}
        given = headers if "Cortex-CSRF" in headers or not headers else {**right, **headers}
        assert client.delete(f"/api/v1/memories/{memory.id}", headers=given).status_code == 403
        assert cortex.memories.get(memory.id).status == "active"
        assert client.delete(f"/api/v1/memories/{memory.id}", headers=right).status_code == 200


def test_changes_need_their_scopes_and_rights(home: Path, project: Path) -> None:
    with _client(home, project, auth="tokens") as (cortex, client):
        memory = cortex.memories.capture("Shared")
        tokens = {scope: cortex.access.create("ann", scopes=[scope]).token for scope in ("read", "write", "admin")}

        def ask(method: str, path: str, scope: str, **body: Any) -> int:
            headers = {"Authorization": f"Bearer {tokens[scope]}"}
            return client.request(method, f"/api/v1{path}", headers=headers, json=body or None).status_code

        place = f"/memories/{memory.id}"
        assert ask("GET", place, "write") == 403
        assert ask("PATCH", place, "read", content="x") == 403
        assert ask("DELETE", place, "read") == 403
        assert ask("POST", f"{place}/purge", "write", confirm=memory.id) == 403
        assert cortex.memories.get(memory.id).content == "Shared"


def test_a_purge_needs_the_whole_id(home: Path, project: Path) -> None:
    with _client(home, project) as (cortex, client):
        memory = cortex.memories.capture("Stay")
        headers = {"Cortex-CSRF": _sign_in(client)}
        for id, confirm in ((memory.id, "yes"), (memory.id[:8], memory.id[:8]), (memory.id, "")):
            answer = client.post(f"/api/v1/memories/{id}/purge", headers=headers, json={"confirm": confirm})
            assert answer.status_code == 422
            assert answer.json()["error"]["details"]["field"] == "confirm"
        assert cortex.memories.get(memory.id)


def test_wrong_input_changes_nothing_and_says_what_is_wrong(home: Path, project: Path) -> None:
    with _client(home, project) as (cortex, client):
        memory = cortex.memories.capture("Stay")
        headers = {"Cortex-CSRF": _sign_in(client)}
        place = f"/api/v1/memories/{memory.id}"
        for body, field in (({"content": 5}, "content"), ({"status": "tombstoned"}, "status"), ({"x": 1}, "x")):
            answer = client.patch(place, headers=headers, json=body)
            assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (422, field)
        assert client.patch(place, headers=headers, json={"content": "New", "version": 7}).status_code == 409
        assert client.get("/api/v1/memories/0123456789").status_code == 404
        assert client.get("/api/v1/search", params={"limit": 1000}).status_code == 422
        assert client.get("/api/v1/search", params={"q": "nokey:x ns:"}).status_code == 422
        assert cortex.memories.get(memory.id).version == 1


def test_a_review_reports_what_it_could_not_do(home: Path, project: Path) -> None:
    with _client(home, project) as (cortex, client):
        memories = cortex.memories
        staged = memories.update(memories.capture("Staged").id, status="pending")
        active = memories.capture("Active")
        headers = {"Cortex-CSRF": _sign_in(client)}
        asked = {"action": "drop", "ids": [staged.id, active.id, "0123456789"]}
        answer = client.post("/api/v1/review", headers=headers, json=asked).json()
        assert answer["done"] == [staged.id]
        assert answer["failed"].keys() == {active.id, "0123456789"}
        assert memories.get(active.id).status == "active"
