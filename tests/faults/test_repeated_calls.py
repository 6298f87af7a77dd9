"""Calls that are repeated because their answer was lost: with a request id, what they store is stored once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import Conflict
from cortex_py.core.security.repeats import repeatable
from cortex_py.core.store.sqlite import open_sqlite
from cortex_py.team.postgres.engine import open_postgres

from forking import python_command
from helpers import FakeClock
from homes import opened
from servers import StdioServer, serve_environment, stdio_server

pytestmark = pytest.mark.sqlite_only  # each says which engine it is about

# A server that is killed after the commit of a capture and before its answer.
_KILLED = """
import os, signal, sys
from cortex_py.surfaces.cli import main
from cortex_py.core.jobs import Jobs
Jobs.added = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
sys.argv = ["cortex", "serve"]
main()
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock, url: str | None) -> Iterator[Cortex]:
    with opened(home, project, clock, database_url=url) as made:
        yield made


def _capture(server: StdioServer, content: str, request_id: object = None) -> Any:
    meta = {} if request_id is None else {"_meta": {"request_id": request_id}}
    arguments = {"content": content, "namespace": "decisions"}
    return server.request(content, "tools/call", {"name": "subcog_capture", "arguments": arguments, **meta})


@pytest.mark.slow
def test_a_server_killed_between_commit_and_answer_is_asked_again(home: Path, project: Path, url: str | None) -> None:
    more = {} if url is None else {"CORTEX_DATABASE_URL": url}
    process = subprocess.Popen(
        [*python_command(), "-c", _KILLED],
        cwd=project,
        env=serve_environment(home, **more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        killed = StdioServer(process)
        killed.handshake()
        with pytest.raises(AssertionError, match="closed its output"):
            _capture(killed, "The ledger rounds half to even", "r-1")
    with stdio_server(home, project, **more) as server:
        server.handshake()

        def id_of(content: str, request_id: str | None = None) -> str:
            return str(_capture(server, content, request_id)["result"]["structuredContent"]["id"])

        first = id_of("The ledger rounds half to even", "r-1")
        assert id_of("The ledger rounds half to even", "r-1") == first
        others = [
            id_of("The ledger rounds half to even", "r-2"),
            id_of("The ledger rounds up", "r-1"),
            id_of("The ledger rounds half to even"),
        ]
        assert len({first, *others}) == 4
        for wrong in (7, "", "x" * 201):
            assert _capture(server, "never stored", wrong)["error"]["data"]["field"] == "_meta.request_id"
    with opened(home, project, database_url=url) as cortex:
        assert cortex.memories.recall(limit=50).total == 4


def test_two_attempts_at_the_same_time_store_one_memory(cortex: Cortex) -> None:
    for text in ("the store learns", "its model first"):
        cortex.memories.capture(text)

    def attempt(_: int) -> str:
        with repeatable("once"):
            return cortex.memories.capture("asked for twice").id

    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda n: copy_context().run(attempt, n), range(8)))
    assert len(set(ids)) == 1
    assert cortex.memories.recall(limit=50).total == 3


def test_all_changes_of_a_request_are_told_apart(cortex: Cortex) -> None:
    def request() -> list[str]:
        with repeatable("three"):
            return [cortex.memories.capture("the same", domain=domain).id for domain in ("project", "user", "project")]

    first = request()
    assert len(set(first)) == 3
    assert request() == first


def test_an_update_and_a_saved_text_are_stored_once(cortex: Cortex) -> None:
    memory = cortex.memories.capture("The ledger rounds up")
    for _ in range(2):
        with repeatable("update"):
            changed = cortex.memories.update(memory.id, content="The ledger rounds down", expected_version=1)
        assert (changed.version, changed.content) == (2, "The ledger rounds down")
        with repeatable("prompt"):
            assert cortex.prompts.save("greet", "Hello {{who}}.", domain="project").saved.version == 1
    with pytest.raises(Conflict):
        cortex.memories.update(memory.id, content="The ledger rounds down", expected_version=1)
    assert cortex.prompts.save("greet", "Hello {{who}}.", domain="project").saved.version == 2


def test_what_a_request_stored_is_remembered_for_a_day_and_purged_with_it(
    cortex: Cortex, clock: FakeClock, url: str | None
) -> None:
    def attempt(key: str) -> str:
        with repeatable(key):
            return cortex.memories.capture(f"from the request {key}").id

    first, gone = attempt("a"), attempt("b")
    cortex.memories.delete(gone, hard=True)
    clock.advance(hours=23)
    assert attempt("a") == first
    assert attempt("b") != gone
    clock.advance(hours=2)
    attempt("c")
    assert attempt("a") != first
    database = open_postgres(url, clock) if url else open_sqlite(cortex.settings.home / "cortex.db", clock)
    with closing(database), database.read() as session:
        assert session.rows("SELECT count(*) FROM kept_request") == [(3,)]
