"""`cortex doctor --clients`: runs the hooks and the server that `cortex install` wrote, and says what arrives.

A repository may bring the files of clients. So only commands that are word for word those of this installation are
run, and nothing else that stands beside them in a file, such as variables; all other commands are shown.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.echo import clean_text
from ...core.paths import find_program
from ..hooks.dialects import CLIENTS as HOOK_CLIENTS
from ..hooks.dialects import Hook
from .catalogue import CATALOGUE, Client, Scope, hook_lines
from .codex_trust import hooks_not_trusted
from .install import Setup, find_plugin, read_members
from .programs import own_folder, run_words

__all__ = ["ClientCheck", "ClientState", "check_client", "client_states"]

_SCOPES: tuple[Scope, ...] = ("user", "project")
_MOST_SHOWN = 300
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
    setups = [Setup(home, project, scope) for scope in _SCOPES]
    return [
        ClientState(
            client.name,
            client.key,
            client.is_installed(),
            bool(find_plugin(client)) or any(setup.server_entry(client) for setup in setups),
            bool(find_plugin(client)) or any(_lines(client, setup) for setup in setups),
        )
        for client in CATALOGUE
    ]


def check_client(client: Client, home: Path, project: Path) -> Iterator[ClientCheck]:
    """All that can be checked about a client without starting a session in it; what is not set up is no fault."""
    if client.program:
        program = find_program(client.program)
        version = run_words([program, "--version"], folder=own_folder()) if program else None
        said = version.output.strip().splitlines()[:1] if version and version.code == 0 else []
        yield ClientCheck(client.name, "version", True, _shown(said[0]) if said else "not on the PATH")
    setups = [Setup(home, project, scope) for scope in _SCOPES]
    servers = [_check_server(client, setup, entry) for setup in setups if (entry := setup.server_entry(client))]
    hooks = [one for setup in setups for one in _check_hooks(client, setup)]
    if plugin := find_plugin(client):
        detail = f"{plugin} is on: it brings MCP server and hooks, which are not tried here"
        if servers or hooks:
            detail = f"{plugin} is on beside what install wrote, so all comes twice; run: cortex uninstall {client.key}"
        yield ClientCheck(client.name, "plugin", not (servers or hooks), detail)
        yield from (*servers, *hooks)
    else:
        yield from servers or [ClientCheck(client.name, "MCP server", True, _missing(client))]
        yield from hooks or ([ClientCheck(client.name, "hooks", True, _missing(client))] if client.hooks else [])
    if client.caveat:
        yield ClientCheck(client.name, "known", True, client.caveat)


def _missing(client: Client) -> str:
    return f"not set up; run: cortex install {client.key}"


def _check_server(client: Client, setup: Setup, entry: dict[str, Any]) -> ClientCheck:
    """Start our server, and shake hands, if it is what the entry names."""
    place = _shown(str(client.place(client.servers, setup.scope, setup.project)))
    words = setup.server_words(client)
    if "command" not in entry:
        return ClientCheck(client.name, "MCP server", True, f"{place}: an address, which is not tried")
    named = [entry["command"], *(entry["args"] if isinstance(entry.get("args"), list) else ())]
    if named != words:
        return _not_run(client, "MCP server", place, " ".join(one for one in named if isinstance(one, str)))
    done = run_words(words, folder=setup.project, given=json.dumps(_HANDSHAKE) + "\n")
    try:
        info = json.loads(done.output.splitlines()[0])["result"]["serverInfo"]
        said = f"{place}: {info['name']} {info['version']} answers"
    except (ValueError, LookupError, TypeError):
        return ClientCheck(client.name, "MCP server", False, f"{place}: no handshake. {_shown(done.problem)}")
    beside = setup.beside(client, entry)
    without = f", tried without what is not ours: {_shown(', '.join(beside))}" if beside else ""
    # What stands beside our words in a project may come from anybody, and a client uses it.
    return ClientCheck(client.name, "MCP server", not beside or setup.scope == "user", said + without)


def _check_hooks(client: Client, setup: Setup) -> Iterator[ClientCheck]:
    place = _shown(str(client.place(client.hooks, setup.scope, setup.project)))
    for hook, lines in _lines(client, setup):
        ours = setup.hook_line(client, hook.name)
        if ours in lines:
            yield _check_hook(client, hook, setup.hook_words(client, hook.name), setup.project)
        others = [line for line in lines if line != ours]
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            yield _not_run(client, hook.name, place, others[0], more)
    if client.key == "codex" and (why := _not_trusted(client, setup)):
        detail = f"{place}: {why}. Codex runs only trusted hooks: start it, enter /hooks and trust them"
        yield ClientCheck(client.name, "trust", False, detail)


def _not_trusted(client: Client, setup: Setup) -> str:
    file = client.place(client.hooks, setup.scope, setup.project)
    if file is None:
        return ""
    states = read_members(client.place(client.servers, "user", setup.project), "hooks", "user")
    return hooks_not_trusted(file, read_members(file, "hooks", setup.scope), states)


def _lines(client: Client, setup: Setup) -> list[tuple[Hook, list[str]]]:
    """By hook, the different command lines in a client's file that look like ours."""
    path = client.place(client.hooks, setup.scope, setup.project)
    hooks = read_members(path, "hooks", setup.scope)
    found = []
    for hook in HOOK_CLIENTS.get(client.key, ()):
        items = hooks.get(hook.name)
        inner = [
            one
            for item in (items if isinstance(items, list) else ())
            for one in (item["hooks"] if isinstance(item, dict) and isinstance(item.get("hooks"), list) else [item])
        ]
        lines = [line for one in inner for line in hook_lines(one) if isinstance(line, str)]
        if like := [line for line in dict.fromkeys(lines) if f" hook {client.key} " in line]:
            found.append((hook, like))
    return found


def _check_hook(client: Client, hook: Hook, words: Sequence[str], project: Path) -> ClientCheck:
    """Run our hook with an event of no session, so that nothing is kept of it."""
    sent = {"cwd": str(project), "workspace_roots": [str(project)], "hook_event_name": hook.name, "source": "startup"}
    begun = time.monotonic()
    done = run_words(words, folder=project, given=json.dumps(sent))
    milliseconds = 1e3 * (time.monotonic() - begun)
    try:
        body = json.loads(done.output)
    except ValueError:
        body = None
    if done.code != 0 or not isinstance(body, dict):
        return ClientCheck(client.name, hook.name, False, f"no answer. {_shown(done.problem)}")
    if not hook.takes_context:
        arrives = "keeps the turn; the client takes no context here"
    elif "cortex-memory" in done.output:
        arrives = f"gives {len(done.output)} characters"
    else:
        arrives = "gives nothing here"
    return ClientCheck(client.name, hook.name, True, f"answers in {milliseconds:.0f} ms, {arrives}")


def _not_run(client: Client, name: str, place: str, line: str, more: str = "") -> ClientCheck:
    return ClientCheck(client.name, name, False, f"{place}: not ours, not run: {_shown(line)}{more}")


def _shown(text: str) -> str:
    """The text in one line, not too long, without secrets and with what a terminal would act on spelled out."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in clean_text(text, _MOST_SHOWN))
