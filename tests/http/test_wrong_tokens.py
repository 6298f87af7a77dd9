"""Wrong tokens are slowed down by address, right ones never; a blank token is none."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from cases import each
from cortex_py import Cortex
from cortex_py.core.errors import ConfigurationError
from cortex_py.surfaces.http.access import check_exposure
from cortex_py.surfaces.http.middleware import BearerToken, WrongTokens
from cortex_py.surfaces.http.server import build_app
from timing import MINUTE

from shell import Shell
from stub_backend import StubBackend

TOKEN = "a-long-enough-token-0123"


def _page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("in")


def _status(client: TestClient, token: str | None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return client.get("/status", headers=headers).status_code


def _refused_until_slowed(client: TestClient) -> None:
    for _ in range(100):
        began = time.monotonic()
        answer = client.get("/status", headers={"Authorization": "Bearer wrong"})
        if answer.status_code == 429:
            break
        assert answer.status_code == 401
    else:
        pytest.fail("a hundred wrong tokens were answered")
    assert time.monotonic() - began >= 1
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.headers["connection"] == "close"


def test_guesses_of_the_shared_token_are_slowed_down() -> None:
    app = Starlette(routes=[Route("/status", _page)], middleware=[Middleware(BearerToken, token=TOKEN)])
    client = TestClient(app, client=("192.0.2.1", 1))
    _refused_until_slowed(client)
    # The right one is not held up, nor is another address, nor who sends none.
    assert _status(client, TOKEN) == 200
    assert _status(client, None) == 401
    assert _status(TestClient(app, client=("192.0.2.2", 1)), "wrong") == 401


def test_guesses_of_tokens_of_their_own_are_slowed_down(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend(), auth="tokens") as cortex:
        right = cortex.access.create("ann").token
        with TestClient(build_app(cortex), base_url="http://127.0.0.1", client=("192.0.2.1", 1)) as client:
            _refused_until_slowed(client)
            assert _status(client, right) == 200
            assert _status(client, None) == 401


def test_one_network_of_ipv6_is_one_client() -> None:
    wrong, usual = WrongTokens(per_minute=3, pause=0), JSONResponse({}, status_code=401)

    async def asked() -> list[int]:
        addresses = [f"2001:db8:1:2::{number}" for number in range(5)] + ["2001:db8:1:3::1"]
        return [(await wrong.answer({"client": (one, 1)}, usual)).status_code for one in addresses]

    assert anyio.run(asked) == [401, 401, 401, 429, 429, 401]


def test_only_so_many_are_kept_waiting() -> None:
    wrong, usual = WrongTokens(per_minute=1, pause=60), JSONResponse({}, status_code=401)
    answers: list[int] = []

    async def one() -> None:
        answers.append((await wrong.answer({"client": ("192.0.2.1", 1)}, usual)).status_code)

    async def asked() -> None:
        with anyio.move_on_after(MINUTE):
            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(one)
                while len(answers) < 84:
                    await anyio.sleep(0.01)
                group.cancel_scope.cancel()

    anyio.run(asked)
    assert answers == [401] + [429] * 83


@each("token", [" " * 20, "\t" * 20, f" {TOKEN}", f"{TOKEN}\n", "schlüssel" * 3, "a\0b" * 10])
@each("host", ["127.0.0.1", "0.0.0.0"])
def test_a_token_that_no_header_carries_is_refused(host: str, token: str) -> None:
    with pytest.raises(ConfigurationError, match="shared token"):
        check_exposure(host, token)
    check_exposure(host, TOKEN)
    check_exposure(host, token, "tokens")


def test_a_short_token_is_refused_for_other_machines() -> None:
    check_exposure("127.0.0.1", "short")
    with pytest.raises(ConfigurationError, match="16 characters"):
        check_exposure("0.0.0.0", "short")


def test_a_server_with_a_blank_token_does_not_start(home: Path, project: Path) -> None:
    done = Shell(home, project, CORTEX_TOKEN=" " * 20).run("serve", "--http", "--host", "0.0.0.0", "--port", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "shared token is blank" in done.stderr
