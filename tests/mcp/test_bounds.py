"""What one call may cost: the size of its arguments, and the time until it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference
from numpy.typing import NDArray

from cortex_py import Cortex
from cortex_py.core.clock import Cancelled, Limit, apply_limit, check_deadline
from cortex_py.core.config import load_settings
from cortex_py.core.echo import cleaner_for
from cortex_py.core.errors import ContentTooLarge, DeadlineExceeded, LimitExceeded, wire_form
from cortex_py.surfaces.mcp.middleware.chain import LONGEST_TEXT, MOST_VALUES, check_sizes
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.surfaces.mcp.server import build_server
from timing import quick

from clients import MODES, Caller, connected
from helpers import FakeClock
from stub_backend import StubBackend


class CountingBackend(StubBackend):
    """Counts what it is asked for; `delay` holds each call back, as a slow machine would."""

    def __init__(self) -> None:
        self.calls = 0
        self.delay = 0.0

    def count_tokens(self, text: str) -> int:
        self.calls += 1
        return super().count_tokens(text)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        self.calls += 1
        threading.Event().wait(self.delay)
        return super().embed(texts, normalize=normalize)


@pytest.fixture
def backend() -> CountingBackend:
    return CountingBackend()


@pytest.fixture
def cortex(
    home: Path, project: Path, clock: FakeClock, backend: CountingBackend, request: pytest.FixtureRequest
) -> Iterator[Cortex]:
    """Calls have a minute, or as many seconds as the test asks for."""
    settings = {"call_seconds": getattr(request, "param", 60), "max_content_bytes": LONGEST_TEXT}
    with Cortex.open(home, project=project, clock=clock, backend=backend, snapshot_every="off", **settings) as made:
        yield made


@pytest.fixture
def caller(cortex: Cortex) -> Iterator[Caller]:
    with connected(build_server(cortex), MODES[0]) as made:
        yield made


hurried = pytest.mark.parametrize("cortex", [2], indirect=True)


def _text_parameters(schema: dict[str, Any]) -> Iterator[str]:
    for name, one in schema.get("properties", {}).items():
        if one.get("type") == "string" and "enum" not in one:
            yield name


@pytest.mark.slow
def test_no_text_of_any_tool_is_without_a_limit(caller: Caller, cortex: Cortex, backend: CountingBackend) -> None:
    too_long = "x" * (cortex.settings.max_content_bytes + 1)
    tools = caller.portal.call(caller.client.list_tools)
    assert {tool.name for tool in tools} == {spec.name for spec in TOOLS}
    backend.calls = 0
    tried = 0
    for tool in tools:
        for name in _text_parameters(tool.input_schema):
            result = caller.portal.call(_outcome, caller, tool.name, {name: too_long})
            assert name in result, (tool.name, result)
            assert "longer than" in result, (tool.name, result)
            tried += 1
    assert tried > 80
    assert backend.calls == 0


async def _outcome(caller: Caller, tool: str, arguments: dict[str, Any]) -> str:
    try:
        return str((await caller.client.call_tool_mcp(tool, arguments)).structured_content)
    except MCPError as error:
        return f"{error.error.message} {error.error.data}"


def test_no_text_of_another_request_is_without_a_limit(caller: Caller, cortex: Cortex) -> None:
    too_long = "x" * (LONGEST_TEXT + 1)
    cortex.prompts.save("greet", "Hello {{who}}")
    reference = ResourceTemplateReference(uri="subcog://search/{query}")
    prompt = PromptReference(name="greet")
    client = caller.client
    requests: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (client.read_resource, (f"subcog://search/{too_long}",)),
        (client.get_prompt, (too_long,)),
        (client.get_prompt, ("greet", {"who": too_long})),
        (client.get_prompt, ("greet", dict.fromkeys(map(str, range(MOST_VALUES)), "x"))),
        (client.complete, (reference, {"name": "query", "value": too_long})),
        (client.complete, (prompt, {"name": "who", "value": too_long})),
    ]
    for method, arguments in requests:
        with pytest.raises(MCPError) as caught:
            caller.portal.call(method, *arguments)
        assert caught.value.error.data["error"] in ("ContentTooLarge", "LimitExceeded"), method
    assert caller.portal.call(client.get_prompt, "greet", {"who": "Ada"}).messages


@hurried
def test_another_request_that_takes_too_long_is_stopped(
    caller: Caller, cortex: Cortex, backend: CountingBackend
) -> None:
    cortex.memories.capture("One.")
    backend.delay = 2.5
    error = caller.unreadable("subcog://search/one")
    assert error.data["error"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"query": "x" * 100_001}, ContentTooLarge),
        ({"filter": "x" * 10_001}, ContentTooLarge),
        ({"anything": "x" * (LONGEST_TEXT + 1)}, ContentTooLarge),
        ({"tags": ["x" * (LONGEST_TEXT + 1)]}, ContentTooLarge),
        ({"variables": {"x" * (LONGEST_TEXT + 1): 1}}, ContentTooLarge),
        ({"x" * (LONGEST_TEXT + 1): 1}, ContentTooLarge),
        ({"tags": ["x"] * (MOST_VALUES + 1)}, LimitExceeded),
        ({"variables": {"a": [[1]] * (MOST_VALUES // 2)}}, LimitExceeded),
    ],
)
def test_arguments_that_are_too_large(arguments: dict[str, object], kind: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(kind):
        check_sizes(arguments, load_settings(tmp_path))


def test_arguments_of_the_usual_size_pass(tmp_path: Path) -> None:
    settings = load_settings(tmp_path)
    check_sizes({"content": "x" * settings.max_content_bytes, "query": "x" * 100_000, "tags": ["a"] * 100}, settings)
    check_sizes({"variables": {"a": {"b": [1, 2.0, None, True]}}}, settings)


def test_a_huge_query_is_refused_before_anything_reads_it(
    caller: Caller, cortex: Cortex, backend: CountingBackend
) -> None:
    backend.calls = 0
    query = "x " * 10_000_000
    # The server has a thread of its own.
    error = quick(lambda: caller.refused("subcog_recall", query=query), 10, clock=time.process_time)
    assert (error.code, error.data["field"]) == (-32602, "query")
    assert backend.calls == 0
    with pytest.raises(LimitExceeded, match="query"):
        cortex.memories.recall("x" * 100_001)


def test_what_an_error_must_not_repeat_is_looked_for_in_the_beginning_of_a_text() -> None:
    query = "x " * 20_000_000
    show = quick(lambda: cleaner_for({"query": query}), 1)
    assert show("A text in query is longer than 100,000 characters.").startswith("A text in query")


def test_a_long_text_is_stored_whole_and_the_answer_says_what_is_indexed(caller: Caller, cortex: Cortex) -> None:
    text = "The first word is zebra. " + "Nothing else. " * 10_000 + "The last word is aardvark."
    made = caller.call("subcog_capture", content=text, namespace="context")
    assert made["warnings"] == [f"Indexed the first 100,000 of {len(text):,} characters; the text is stored whole."]
    assert cortex.memories.get(made["id"]).content == text
    found = [hit.memory.id for hit in cortex.memories.recall("zebra", mode="text").results]
    assert found == [made["id"]]
    assert cortex.memories.recall("aardvark", mode="text").results == ()
    changed = caller.call("subcog_update", memory_id=made["id"], content=f"{text} And more.")
    assert changed["warnings"][0].startswith("Indexed the first 100,000 of")
    assert "warnings" not in caller.call("subcog_capture", content="A short note.", namespace="context")
    branch = cortex.contexts.create_branch("Long texts")
    added = caller.call("update_memory", branch_id=branch.id, content=text, role="user", project_id=cortex.project.id)
    assert "Indexed the first 100,000 of" in added["message"]


def test_equal_passages_are_embedded_once(cortex: Cortex, backend: CountingBackend) -> None:
    asked: list[int] = []

    class Recording(CountingBackend):
        def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
            asked.append(len(texts))
            return super().embed(texts, normalize=normalize)

    cortex.memories._capture._backend = Recording()
    cortex.memories.capture("[" * 100_000)
    assert max(asked) < 10


@hurried
def test_a_call_that_takes_too_long_is_stopped_and_leaves_nothing(
    caller: Caller, cortex: Cortex, backend: CountingBackend
) -> None:
    cortex.memories.capture("Tables are loaded by the first one.")
    backend.delay = 2.5
    error = caller.refused("subcog_capture", content="Never stored.", namespace="context")
    assert error.code == -32603
    assert error.data["error"] == "DeadlineExceeded"
    assert "2 seconds" in error.message
    backend.delay = 0.0
    assert cortex.memories.recall().total == 1
    assert caller.call("subcog_capture", content="Stored.", namespace="context")["id"]


@hurried
def test_the_context_tools_tell_it_in_their_form(caller: Caller, cortex: Cortex, backend: CountingBackend) -> None:
    branch = cortex.contexts.create_branch("Slow")
    backend.delay = 2.5
    told = caller.failed(
        "update_memory", branch_id=branch.id, content="Never.", role="user", project_id=cortex.project.id
    )
    assert told["error_code"] == "STORAGE_ERROR"
    assert "longer than 2 seconds" in told["error"]


@hurried
def test_a_long_tool_has_more_time(caller: Caller, cortex: Cortex, backend: CountingBackend) -> None:
    cortex.memories.capture("One.")
    backend.delay = 2.5
    assert caller.call("subcog_reindex")["indexed"] == 1


@pytest.mark.sqlite_only
def test_a_statement_that_takes_too_long_is_interrupted_and_rolled_back(cortex: Cortex) -> None:
    database = cortex._store.database
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with apply_limit(Limit(0.3)), pytest.raises(DeadlineExceeded), database.write() as session:
        session.run("CREATE TABLE by_half (x)")
        session.rows(endless)
    with database.read() as session:
        assert not database.has_table(session, "by_half")
    assert wire_form(DeadlineExceeded("")).exit_code == 16


def test_cancelled_work_stops_between_two_units_and_late_work_at_once() -> None:
    limit = Limit()
    with apply_limit(limit):
        limit.cancel()
        check_deadline()
        with pytest.raises(Cancelled):
            limit.check()
    with apply_limit(Limit(0.0)), pytest.raises(DeadlineExceeded):
        check_deadline()
    check_deadline()
