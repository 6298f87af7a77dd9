"""`cortex doctor --clients`: runs the hooks and the server of each client as it would, and says what arrives."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..hooks.dialects import CLIENTS as HOOK_CLIENTS
from ..hooks.dialects import Hook
from .catalogue import CATALOGUE, Client, Scope
from .install import Setup
from .json_edit import read_json
from .programs import run_line, run_words

__all__ = ["ClientCheck", "ClientState", "check_client", "client_states"]

_SCOPES: tuple[Scope, ...] = ("user", "project")
_HANDSHAKE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "doctor", "version": "1"}},
}


@dataclass(frozen=True, slots=True)
class ClientCheck:
    """One finding about a client: whether all is well, and what to show."""

    client: str
    name: str
    well: bool
    detail: str


@dataclass(frozen=True, slots=True)
class ClientState:
    """Whether a client is installed here, and what of Cortex it has: in the files, without running anything."""

    name: str
    key: str
    installed: bool
    server: bool
    hooks: bool


def client_states(home: Path, project: Path) -> list[ClientState]:
    """All known clients."""
    return [
        ClientState(
            client.name,
            client.key,
            client.is_installed(),
            any(True for _ in _servers(client, home, project)),
            any(
                path is not None and any(True for _ in _lines(client, path))
                for path in (client.place(client.hooks, scope, project) for scope in _SCOPES if client.hooks)
            ),
        )
        for client in CATALOGUE
    ]


def check_client(client: Client, home: Path, project: Path) -> Iterator[ClientCheck]:
    """All that can be checked about a client without starting a session in it; what is not set up is no fault."""
    if client.program:
        version = run_words([client.program, "--version"], folder=project)
        said = version.output.strip().splitlines()[:1]
        yield ClientCheck(client.name, "version", True, said[0] if said and version.code == 0 else "not on the PATH")
    servers = list(_servers(client, home, project))
    if not servers:
        yield ClientCheck(client.name, "MCP server", True, f"not set up; run: cortex install {client.key}")
    for place, entry in servers:
        yield _check_server(client, place, entry, project)
    yield from _check_hooks(client, project)
    if client.caveat:
        yield ClientCheck(client.name, "known", True, client.caveat)


def _servers(client: Client, home: Path, project: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for scope in _SCOPES:
        path = client.place(client.servers, scope, project)
        entry = Setup(home, project, scope).server_entry(client, path) if path else None
        if path and entry:
            yield path, entry


def _check_server(client: Client, place: Path, entry: dict[str, Any], project: Path) -> ClientCheck:
    """Start the server as the entry says, and shake hands."""
    command, arguments = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not isinstance(arguments, list):
        return ClientCheck(client.name, "MCP server", True, f"{place}: an address, which is not tried")
    variables = {str(name): str(value) for name, value in (entry.get("env") or {}).items()}
    words = [command, *map(str, arguments)]
    done = run_words(words, folder=project, given=json.dumps(_HANDSHAKE) + "\n", variables=variables)
    try:
        info = json.loads(done.output.splitlines()[0])["result"]["serverInfo"]
        return ClientCheck(client.name, "MCP server", True, f"{place}: {info['name']} {info['version']} answers")
    except (ValueError, LookupError, TypeError):
        return ClientCheck(client.name, "MCP server", False, f"{place}: no handshake. {done.problem}")


def _check_hooks(client: Client, project: Path) -> Iterator[ClientCheck]:
    if client.hooks is None:
        return
    found = False
    for scope in _SCOPES:
        path = client.place(client.hooks, scope, project)
        for hook, line in _lines(client, path) if path else ():
            found = True
            yield _check_hook(client, hook, line, project)
    if not found:
        yield ClientCheck(client.name, "hooks", True, f"not set up; run: cortex install {client.key}")


def _lines(client: Client, path: Path) -> Iterator[tuple[Hook, str]]:
    """The command lines of our hooks in a client's file."""
    try:
        hooks = read_json(path.read_text("utf-8"))["hooks"]
    except (OSError, ValueError, LookupError, TypeError):
        return
    for hook in HOOK_CLIENTS[client.key]:
        text = json.dumps(hooks.get(hook.name, []))
        for item in json.loads(text):
            for one in item.get("hooks", [item]):
                line = one.get("command") or one.get("bash") or ""
                if f" hook {client.key} " in line:
                    yield hook, line


def _check_hook(client: Client, hook: Hook, line: str, project: Path) -> ClientCheck:
    """Run a hook with an event of no session, so that nothing is kept of it."""
    sent = {"cwd": str(project), "workspace_roots": [str(project)], "hook_event_name": hook.name, "source": "startup"}
    begun = time.monotonic()
    done = run_line(line, folder=project, given=json.dumps(sent))
    milliseconds = 1e3 * (time.monotonic() - begun)
    try:
        body = json.loads(done.output)
    except ValueError:
        body = None
    if done.code != 0 or not isinstance(body, dict):
        return ClientCheck(client.name, hook.name, False, f"no answer. {done.problem}")
    if not hook.takes_context:
        arrives = "keeps the turn; the client takes no context here"
    elif "cortex-memory" in done.output:
        arrives = f"gives {len(done.output)} characters"
    else:
        arrives = "gives nothing here"
    return ClientCheck(client.name, hook.name, True, f"answers in {milliseconds:.0f} ms, {arrives}")
