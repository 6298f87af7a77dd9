"""Logs of a server: lines for people or for machines on standard error, and nowhere a content or a token."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cortex_py.core.security.rate_limit import TokenBuckets
from cortex_py.surfaces.mcp.middleware.logs import REQUEST_ID, JsonLines, PlainLines, RepeatFilter
from operations.raw_calls import call, get

from servers import serve_command, serve_environment, stdio_server

TOKEN = "a-long-enough-token-0123"
CONTENT = "zanzibar is a word that stands nowhere else"


def _served(home: Path, project: Path, **variables: str) -> list[str]:
    """The lines that a server writes while it is asked for a page, a capture, and things that are refused."""
    process = subprocess.Popen(
        serve_command("--http", "--port", "0"),
        cwd=project,
        env=serve_environment(home, CORTEX_TOKEN=TOKEN, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[2]
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    _, headers, _ = call(
        url,
        "subcog_capture",
        {"content": CONTENT, "namespace": "decisions"},
        **{"X-Request-Id": "from-a-proxy"},
        **bearer,
    )
    assert headers["x-request-id"] == "from-a-proxy"
    call(url, "subcog_capture", {"content": CONTENT, "namespace": CONTENT}, **bearer)
    call(url, CONTENT, {"content": CONTENT}, **bearer)
    assert get(url, f"/{CONTENT.replace(' ', '-')}", **bearer)[0] == 404
    status, headers, _ = get(url, "/status", **{"X-Request-Id": f"{CONTENT}\t"})
    assert (status, len(headers["x-request-id"])) == (401, 16)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "zanzibar" not in errors
    assert TOKEN not in errors
    return errors.splitlines()


def test_lines_for_machines(home: Path, project: Path) -> None:
    lines = [json.loads(line) for line in _served(home, project, CORTEX_LOG_FORMAT="json", CORTEX_LOG_LEVEL="debug")]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    mine = [line for line in lines if line.get("request_id") == "from-a-proxy"]
    (called,) = [line for line in mine if line["message"] == "call"]
    assert (called["tool"], called["outcome"], called["level"]) == ("subcog_capture", "ok", "info")
    assert called["seconds"] > 0
    (asked,) = [line for line in mine if line["message"] == "request"]
    assert (asked["path"], asked["method"], asked["status"]) == ("/mcp", "POST", 200)
    outcomes = [(line["tool"], line["outcome"]) for line in lines if line["message"] == "call"]
    assert outcomes == [("subcog_capture", "ok"), ("subcog_capture", "error"), ("unknown", "error")]
    pages = [(line["path"], line["status"]) for line in lines if line["message"] == "request"]
    assert [path for path, _ in pages] == ["/mcp", "/mcp", "/mcp", "other", "/status"]
    assert [status for _, status in pages[3:]] == [404, 401]


@pytest.mark.slow
def test_lines_for_people_begin_at_warnings(home: Path, project: Path) -> None:
    assert _served(home, project) == []
    lines = _served(home, project, CORTEX_LOG_LEVEL="info")
    assert any(re.match(r"cortex: INFO cortex_py\.surfaces\S+: call \(request_id=from-a-proxy", line) for line in lines)


def test_standard_output_is_the_protocols_alone(home: Path, project: Path) -> None:
    with stdio_server(home, project, CORTEX_LOG_FORMAT="json", CORTEX_LOG_LEVEL="debug") as server:
        server.handshake()
        assert "result" in server.call(1, "subcog_capture", content=CONTENT, namespace="decisions")
        server.close_input()
        assert server.rest() == b""
        assert server.process.stderr is not None
        lines = [json.loads(line) for line in server.process.stderr.read().splitlines()]
    assert [line["tool"] for line in lines if line["message"] == "call" and "tool" in line] == ["subcog_capture"]
    assert "zanzibar" not in str(lines)


def _record(name: str, message: str, *, error: bool = False, **extra: Any) -> logging.LogRecord:
    info = None
    if error:
        try:
            raise KeyError(CONTENT)
        except KeyError:
            info = sys.exc_info()
    record = logging.LogRecord(name, logging.ERROR, __file__, 1, message, (), info)
    for key, value in extra.items():
        setattr(record, key, value)
    return record


def test_an_unforeseen_error_is_told_by_type_and_place() -> None:
    line = json.loads(JsonLines().format(_record("cortex_py.surfaces.mcp.server", "upkeep failed", error=True)))
    assert (line["error"], line["level"]) == ("KeyError", "error")
    assert line["trace"][-1].endswith(" _record")
    assert "zanzibar" not in str(line)


@pytest.mark.parametrize("lines", [JsonLines(), PlainLines()])
def test_details_are_of_known_names_and_of_one_line(lines: logging.Formatter) -> None:
    token = REQUEST_ID.set("abc")
    text = lines.format(_record("cortex_py.x", "call", tool="subcog_get", seconds=0.5, unknown=CONTENT))
    REQUEST_ID.reset(token)
    assert "\n" not in text
    assert "subcog_get" in text
    assert "abc" in text
    assert "zanzibar" not in text


def test_of_a_library_the_first_line_is_told() -> None:
    line = json.loads(JsonLines().format(_record("asyncio", f"Task exception was never retrieved\nfuture: {CONTENT}")))
    assert line["message"] == "Task exception was never retrieved"


def test_a_line_that_clients_can_cause_does_not_fill_the_log() -> None:
    few = RepeatFilter(per_minute=10)
    lost = [_record("asyncio", f"socket.accept() out of system resource\nsocket: {n}") for n in range(10_000)]
    assert sum(map(few.filter, lost)) == 10
    # Others are not left out with them: other words, another place of an error, and what is no fault.
    assert few.filter(_record("asyncio", "Task was destroyed but it is pending!"))
    assert few.filter(_record("asyncio", "socket.accept() out of system resource", error=True))
    plain = logging.LogRecord("cortex_py.surfaces.http.middleware", logging.INFO, __file__, 1, "request", (), None)
    assert all(few.filter(plain) for _ in range(100))


def test_the_next_line_says_how_many_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(
        "cortex_py.surfaces.mcp.middleware.logs.TokenBuckets", lambda most: TokenBuckets(most, lambda: now)
    )
    few = RepeatFilter(per_minute=1)
    assert [few.filter(_record("asyncio", "again")) for _ in range(5)] == [True, False, False, False, False]
    now = 60.0
    record = _record("asyncio", "again")
    assert few.filter(record)
    assert json.loads(JsonLines().format(record))["left_out"] == 4
