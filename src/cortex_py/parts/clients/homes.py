"""Which homes there are on this machine, and which MCP client is configured to use which.

Clients do not always pass their environment on, so a server may use another home than the person's commands do.
Configuration files are read, never written.
"""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.paths import expanded, read_regular

__all__ = ["ClientHome", "Home", "find_homes"]

logger = logging.getLogger(__name__)

_MOST_BYTES = 16 << 20
_LONGEST_PATH = 1_000  # characters
# Client, configuration file (below the user's folder, or below the project for `./`), and the key of its servers.
_CONFIGURATIONS = (
    ("Claude Code", "~/.claude.json", "mcpServers"),
    ("Claude Code", "./.mcp.json", "mcpServers"),
    ("Claude Desktop", "~/.config/Claude/claude_desktop_config.json", "mcpServers"),
    ("Claude Desktop", "~/Library/Application Support/Claude/claude_desktop_config.json", "mcpServers"),
    ("Claude Desktop", "~/AppData/Roaming/Claude/claude_desktop_config.json", "mcpServers"),
    ("Cursor", "~/.cursor/mcp.json", "mcpServers"),
    ("Cursor", "./.cursor/mcp.json", "mcpServers"),
    ("VS Code", "~/.config/Code/User/mcp.json", "servers"),
    ("VS Code", "~/Library/Application Support/Code/User/mcp.json", "servers"),
    ("VS Code", "~/AppData/Roaming/Code/User/mcp.json", "servers"),
    ("VS Code", "./.vscode/mcp.json", "servers"),
    ("Codex", "~/.codex/config.toml", "mcp_servers"),
    ("Gemini CLI", "~/.gemini/settings.json", "mcpServers"),
    ("Gemini CLI", "./.gemini/settings.json", "mcpServers"),
)


@dataclass(frozen=True, slots=True)
class ClientHome:
    """A client whose configuration starts Cortex, and the home that its server uses."""

    client: str
    file: Path
    home: Path


@dataclass(frozen=True, slots=True)
class Home:
    """A home on this machine, whether it holds a store, and the clients that use it."""

    path: str
    has_store: bool
    clients: tuple[str, ...]


def find_homes(in_use: Path, project: Path) -> list[Home]:
    """The home in use, the usual one, and those that clients name; homes without a store and a client are left out."""
    usual = expanded("~/.cortex").absolute()
    used: dict[Path, list[str]] = {in_use: [], usual: []}
    for one in _client_homes(usual, project):
        names = used.setdefault(one.home, [])
        if one.client not in names:
            names.append(one.client)
    homes = [Home(str(path), _has_store(path), tuple(names)) for path, names in used.items()]
    return [home for home in homes if home.has_store or home.clients or home.path == str(in_use)]


def _has_store(home: Path) -> bool:
    try:
        return (home / "cortex.db").exists()
    except OSError:
        # Somebody else's folder.
        return False


def _client_homes(usual: Path, project: Path) -> Iterator[ClientHome]:
    for client, place, key in _CONFIGURATIONS:
        file = project / place if place.startswith("./") else expanded(place)
        for server in _servers(_read(file), key):
            home = _home_of(server)
            if home is not None:
                yield ClientHome(client, file, expanded(home).absolute() if home else usual)


def _read(file: Path) -> Any:
    data = read_regular(file, _MOST_BYTES)
    if data is None:
        return None
    try:
        text = data.decode("utf-8-sig")
        return tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        logger.debug("the configuration %s cannot be read: %s", file, type(error).__name__)
        return None


def _servers(content: Any, key: str) -> Iterator[Mapping[str, Any]]:
    """The servers of a configuration; Claude Code keeps more of them by project."""
    if not isinstance(content, dict):
        return
    projects = content.get("projects")
    for holder in (content, *(projects.values() if isinstance(projects, dict) else ())):
        servers = holder.get(key) if isinstance(holder, dict) else None
        for server in servers.values() if isinstance(servers, dict) else ():
            if isinstance(server, dict):
                yield server


def _home_of(server: Mapping[str, Any]) -> str | None:
    """The home that a server of Cortex is given, empty for the usual one; None for other servers."""
    words = [server.get("command"), *(server["args"] if isinstance(server.get("args"), list) else ())]
    words = [word for word in words if isinstance(word, str)]
    names = {Path(word).stem for word in words}
    if "serve" not in names or not names & {"cortex", "cortex_py"}:
        return None
    if "--home" in words[:-1]:
        home = words[words.index("--home") + 1]
    else:
        environment = server.get("env")
        home = environment.get("CORTEX_HOME") if isinstance(environment, dict) else ""
    # A stranger's repository may have written this.
    return home if isinstance(home, str) and home.isprintable() and len(home) < _LONGEST_PATH else ""
