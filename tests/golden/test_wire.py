"""The bytes that clients receive over stdio and HTTP, and what the commands print, compared with a recording.

`CORTEX_WRITE_GOLDEN=1 pytest tests/golden` records them again; read the difference before you commit it.
"""

from __future__ import annotations

import hashlib
import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import cortex_py
from golden.steady import Steady, compare

from helpers import git
from servers import http_server, stdio_server
from shell import Shell

pytestmark = [pytest.mark.slow, pytest.mark.sqlite_only]

CLIENT = {"name": "recorder", "version": "1"}
BEGIN = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
NOTE = "The deploy waits for the smoke test."
# Method and parameters, in one session over stdio. A list is sent as it is.
MESSAGES: list[tuple[str, str, Any]] = [
    ("begin", "initialize", BEGIN),
    ("ping", "ping", {}),
    ("tools", "tools/list", {}),
    ("prompts", "prompts/list", {}),
    ("resources", "resources/list", {}),
    ("templates", "resources/templates/list", {}),
    ("capture", "tools/call", {"name": "subcog_capture", "arguments": {"content": NOTE, "namespace": "decisions"}}),
    ("namespaces", "tools/call", {"name": "subcog_namespaces", "arguments": {}}),
    ("list", "tools/call", {"name": "subcog_recall", "arguments": {"limit": 1}}),
    ("no tool", "tools/call", {"name": "fly", "arguments": {}}),
    ("bad arguments", "tools/call", {"name": "subcog_capture", "arguments": {"content": 7}}),
    ("bad parameters", "tools/call", {"arguments": {}}),
    ("topics", "resources/read", {"uri": "subcog://topics"}),
    ("help", "resources/read", {"uri": "subcog://help"}),
    ("no resource", "resources/read", {"uri": "subcog://nothing"}),
    ("no prompt", "prompts/get", {"name": "nothing"}),
    ("complete", "completion/complete", {
        "ref": {"type": "ref/prompt", "name": "nothing"}, "argument": {"name": "x", "value": ""},
    }),
    ("no method", "tools/fly", {}),
]  # fmt: skip
# Method, path, headers and body, in one run of the HTTP server.
REQUESTS: list[tuple[str, str, str, dict[str, str], str]] = [
    ("health", "GET", "/health", {}, ""),
    ("page", "GET", "/", {}, ""),
    ("nothing", "GET", "/nothing", {}, ""),
    ("wrong method", "DELETE", "/health", {}, ""),
    ("openapi", "GET", "/openapi.json", {}, ""),
    ("model", "GET", "/model", {}, ""),
    ("embed", "POST", "/embed", {"content-type": "application/json"}, '{"text": "a"}'),
    ("embed nothing", "POST", "/embed", {"content-type": "application/json"}, '{"text": ""}'),
    ("embed badly", "POST", "/embed", {"content-type": "application/json"}, "{"),
    ("embed text", "POST", "/embed", {"content-type": "text/plain"}, "a"),
    ("stranger", "GET", "/health", {"host": "evil.example"}, ""),
    ("foreign page", "POST", "/mcp", {"origin": "https://evil.example", "content-type": "application/json"}, "{}"),
    ("mcp badly", "POST", "/mcp", {"content-type": "application/json", "accept": "application/json"}, "{"),
    ("mcp", "POST", "/mcp", {
        "content-type": "application/json", "accept": "application/json, text/event-stream",
    }, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": BEGIN})),
]  # fmt: skip
COMMANDS: list[tuple[str, ...]] = [
    ("capture", NOTE, "-n", "decisions", "-t", "deploy", "-s", "docs/deploy.md"),
    ("capture", "key AKIAIOSFODNN7EXAMPLQ", "-n", "security"),
    ("capture", "x", "-n", "nowhere"),
    ("recall", "--limit", "5"),
    ("recall", "-f", "since:yesteryear"),
    ("recall", "--limit", "1", "--json"),
    ("get", "moon"),
    ("status",),
    ("status", "--json"),
    ("branch", "create", "payments"),
    ("branch", "list"),
    ("prompt", "save", "greet", "Hello {{name}}"),
    ("prompt", "list"),
    ("prompt", "run", "greet", "--var", "name=Ada"),
    ("graph", "entities"),
    ("graph", "stats"),
    ("gc", "--dry-run"),
    ("reindex",),
    ("snapshot", "create", "before"),
    ("snapshot", "list"),
    ("verify", "src/gone.py exists."),
    ("export",),
    ("sync", "status"),
    ("automation",),
    ("review",),
    ("model", "info"),
    ("model", "install", "--precision", "int8"),
    ("doctor",),
    ("help", "CONTEXT_NOT_FOUND"),
    ("fly",),
    ("capture",),
    ("--help",),
    ("--version",),
]
HEADERS = ("content-type", "cache-control", "content-security-policy", "www-authenticate", "x-frame-options")


def _short(text: str) -> str:
    """Long answers are recorded by their length and digest: a difference shows, and other tests say where."""
    if len(text) < 4_000:
        return text
    return f"{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()}"


def _prepare(project: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    (project / "README.md").write_text("# Shop\n")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin", "--date", "2026-01-01T00:00:00Z")


def test_lines_over_stdio_are_the_recorded_ones(home: Path, project: Path) -> None:
    _prepare(project)
    steady = Steady(project=project, home=home, package=Path(cortex_py.__file__).parent)
    recorded: dict[str, Any] = {}
    with stdio_server(home, project) as server:
        for step, method, parameters in MESSAGES:
            answer = server.request(step, method, parameters)
            recorded[step] = _short(steady.text(json.dumps(answer, ensure_ascii=False)))
            if method == "initialize":
                server.send("notifications/initialized")
        server.write(b"{not json\n")
        recorded["not json"] = steady.text(json.dumps(server.read()))
    compare("stdio", recorded)


def test_answers_over_http_are_the_recorded_ones(home: Path, project: Path) -> None:
    _prepare(project)
    steady = Steady(project=project, home=home, package=Path(cortex_py.__file__).parent)
    recorded: dict[str, Any] = {}
    with http_server(home, project) as server:
        address = urlsplit(server.url)
        for step, method, path, headers, body in REQUESTS:
            connection = http.client.HTTPConnection(address.netloc, timeout=60)
            connection.request(method, path, body.encode() or None, headers)
            answer = connection.getresponse()
            text = answer.read().decode().replace(address.netloc, "<address>")
            shown = {name: answer.headers[name] for name in HEADERS if name in answer.headers}
            recorded[step] = {"status": answer.status, "headers": shown, "body": _short(steady.text(text))}
            connection.close()
    compare("http", recorded)


def test_commands_print_what_is_recorded(home: Path, project: Path) -> None:
    _prepare(project)
    steady = Steady(project=project, home=home, package=Path(cortex_py.__file__).parent)
    shell = Shell(home, project)
    recorded: dict[str, Any] = {}
    for words in COMMANDS:
        done = shell.run(*words)
        recorded[" ".join(words)] = {
            "code": done.returncode,
            "out": steady.text(done.stdout).splitlines(),
            "err": steady.text(done.stderr).splitlines(),
        }
    compare("commands", recorded)
