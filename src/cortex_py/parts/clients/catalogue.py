"""The AI clients that Cortex can set up: where they keep what, and the form in which they want it.

This is the one source for `cortex install` and for the plugins in the repository.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ...core.paths import expanded, find_program
from ..hooks.dialects import CLIENTS as HOOK_CLIENTS

__all__ = ["BY_KEY", "CATALOGUE", "SERVER", "TEXTS", "Client", "Scope", "hook_entries", "hook_lines", "text_of"]

Scope = Literal["user", "project"]
SERVER = "cortex"
TEXTS = Path(__file__).with_name("texts")

# The events that a client is asked to report, with what narrows them. Each costs a process, so few tools count: those
# of files, and those that may bring something from outside, other servers' among them. Codex cannot leave ours out.
_TOOLS = {
    "claude-code": "Read|Edit|Write|MultiEdit|NotebookEdit|Bash|WebFetch|WebSearch"
    "|mcp__(?!(?:plugin_cortex_)?cortex__).*",
    "codex": "Bash|apply_patch|mcp__.*",
}
_STARTS = {"claude-code": "startup|resume|clear|compact", "codex": "startup|resume|clear|compact"}
_COMPACTIONS = {"gemini": "manual"}
_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Client:
    """One client. Paths begin with `~/`, or with `./` in the project; a missing one means that it has no such thing."""

    key: str
    name: str
    # A folder or file that shows that it is installed.
    signs: tuple[str, ...]
    # Its program, and the words that add and remove a server with it.
    program: str | None = None
    # Where its servers are, by scope, and under which key.
    servers: Mapping[Scope, str] | None = None
    servers_key: str = "mcpServers"
    hooks: Mapping[Scope, str] | None = None
    instructions: Mapping[Scope, str] | None = None
    skill: Mapping[Scope, str] | None = None
    # The user's file that tells, under a key, whether the plugin of Cortex is on.
    plugins: str = ""
    plugins_key: str = ""
    # A client that refuses the whole server for one tool name with a dot.
    portable_names: bool = False
    # What is known about context that does not arrive.
    caveat: str = ""

    def place(self, where: Mapping[Scope, str] | None, scope: Scope, project: Path) -> Path | None:
        """The path of one of its files in a scope."""
        text = (where or {}).get(scope)
        if text is None:
            return None
        return project / text if text.startswith("./") else _user_path(text)

    @property
    def plugins_file(self) -> Path | None:
        return _user_path(self.plugins) if self.plugins else None

    def is_installed(self) -> bool:
        return bool(self.program and find_program(self.program)) or any(map(_is_there, self.signs))


def _is_there(sign: str) -> bool:
    try:
        return _user_path(sign).exists()
    except OSError:  # a folder of another user
        return False


def _user_path(text: str) -> Path:
    if text.startswith("~/.codex") and os.environ.get("CODEX_HOME"):
        return expanded(os.environ["CODEX_HOME"] + text.removeprefix("~/.codex"))
    if text.startswith("~/.claude/") and os.environ.get("CLAUDE_CONFIG_DIR"):
        return expanded(os.environ["CLAUDE_CONFIG_DIR"] + text.removeprefix("~/.claude"))
    return expanded(text)


def _desktop() -> str:
    if sys.platform == "darwin":
        return "~/Library/Application Support/Claude/claude_desktop_config.json"
    return (
        "~/AppData/Roaming/Claude/claude_desktop_config.json"
        if os.name == "nt"
        else ("~/.config/Claude/claude_desktop_config.json")
    )


def _code() -> str:
    if sys.platform == "darwin":
        return "~/Library/Application Support/Code/User/mcp.json"
    return "~/AppData/Roaming/Code/User/mcp.json" if os.name == "nt" else "~/.config/Code/User/mcp.json"


CATALOGUE: tuple[Client, ...] = (
    Client(
        key="claude-code",
        name="Claude Code",
        signs=("~/.claude", "~/.claude.json"),
        program="claude",
        servers={"user": "~/.claude.json", "project": "./.mcp.json"},
        hooks={"user": "~/.claude/settings.json", "project": "./.claude/settings.json"},
        instructions={"user": "~/.claude/CLAUDE.md", "project": "./CLAUDE.md"},
        skill={"user": "~/.claude/skills/cortex/SKILL.md", "project": "./.claude/skills/cortex/SKILL.md"},
        plugins="~/.claude/settings.json",
        plugins_key="enabledPlugins",
        caveat="each text of a hook is cut at 10,000 characters; a hook that takes longer than 30 s is dropped",
    ),
    Client(
        key="codex",
        name="Codex",
        signs=("~/.codex",),
        program="codex",
        servers={"user": "~/.codex/config.toml", "project": "./.codex/config.toml"},
        servers_key="mcp_servers",
        hooks={"user": "~/.codex/hooks.json", "project": "./.codex/hooks.json"},
        instructions={"user": "~/.codex/AGENTS.md", "project": "./AGENTS.md"},
        skill={"user": "~/.codex/skills/cortex/SKILL.md", "project": "./.agents/skills/cortex/SKILL.md"},
        plugins="~/.codex/config.toml",
        plugins_key="plugins",
        caveat="new hooks run only after you have trusted them, with /hooks in a session; some versions refuse context "
        "at the start of a session",
    ),
    Client(
        key="gemini",
        name="Gemini CLI",
        signs=("~/.gemini",),
        program="gemini",
        servers={"user": "~/.gemini/settings.json", "project": "./.gemini/settings.json"},
        hooks={"user": "~/.gemini/settings.json", "project": "./.gemini/settings.json"},
        instructions={"user": "~/.gemini/GEMINI.md", "project": "./GEMINI.md"},
        skill={"user": "~/.gemini/skills/cortex/SKILL.md", "project": "./.gemini/skills/cortex/SKILL.md"},
        plugins="~/.gemini/extensions/cortex/gemini-extension.json",
        plugins_key="mcpServers",
        caveat="hooks of a project run only in a trusted folder; versions before 0.26 need hooks switched on",
    ),
    Client(
        key="cursor",
        name="Cursor",
        signs=("~/.cursor",),
        servers={"user": "~/.cursor/mcp.json", "project": "./.cursor/mcp.json"},
        hooks={"user": "~/.cursor/hooks.json", "project": "./.cursor/hooks.json"},
        instructions={"project": "./.cursor/rules/cortex.mdc"},
        skill={"user": "~/.cursor/skills/cortex/SKILL.md", "project": "./.cursor/skills/cortex/SKILL.md"},
        caveat="prompts take no context, and some versions drop the context of a session's start; the rule in "
        ".cursor/rules asks the model to recall instead",
    ),
    Client(
        key="copilot",
        name="GitHub Copilot CLI",
        signs=("~/.copilot",),
        program="copilot",
        servers={"user": "~/.copilot/mcp-config.json"},
        hooks={"user": "~/.copilot/hooks/cortex.json", "project": "./.github/hooks/cortex.json"},
        instructions={"user": "~/.copilot/copilot-instructions.md", "project": "./.github/copilot-instructions.md"},
        skill={"user": "~/.copilot/skills/cortex/SKILL.md", "project": "./.github/skills/cortex/SKILL.md"},
        portable_names=True,
        caveat="prompts take no context, and some versions ignore the context of a session's start",
    ),
    Client(
        key="vscode",
        name="VS Code",
        signs=("~/.config/Code", "~/Library/Application Support/Code", "~/AppData/Roaming/Code"),
        program="code",
        servers={"user": _code(), "project": "./.vscode/mcp.json"},
        servers_key="servers",
        instructions={"project": "./.github/copilot-instructions.md"},
        caveat="it has no hooks; the instructions ask the model to recall",
    ),
    Client(
        key="claude-desktop",
        name="Claude Desktop",
        signs=("~/.config/Claude", "~/Library/Application Support/Claude", "~/AppData/Roaming/Claude"),
        servers={"user": _desktop()},
        portable_names=True,
        caveat="it has no hooks",
    ),
)


BY_KEY = {client.key: client for client in CATALOGUE}


def hook_entries(client: str, command: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """By event, the item that a client wants in its list of hooks; `command` gives the line for an event."""
    found = {}
    for hook in HOOK_CLIENTS.get(client, ()):
        line = command(hook.name)
        if client == "cursor":
            found[hook.name] = {"command": line, "timeout": _SECONDS}
        elif client == "copilot":
            found[hook.name] = {"type": "command", "bash": line, "powershell": line, "timeoutSec": _SECONDS}
        else:
            seconds = 1_000 * _SECONDS if client == "gemini" else _SECONDS
            one: dict[str, Any] = {"hooks": [{"type": "command", "command": line, "timeout": seconds}]}
            if client == "gemini":
                one["hooks"][0]["name"] = f"cortex-{hook.name.lower()}"
            matcher = {"tool": _TOOLS, "start": _STARTS, "compact": _COMPACTIONS}.get(hook.kind, {}).get(client)
            found[hook.name] = {"matcher": matcher, **one} if matcher else one
    return found


def hook_lines(hook: Any) -> list[Any]:
    """The command lines of one hook in a client's file, whatever its client calls them."""
    names = ("command", "bash", "powershell")
    return [hook[name] for name in names if name in hook] if isinstance(hook, dict) else []


def text_of(name: str) -> str:
    """One of the texts that clients are given: the skill, the instructions, a command."""
    return (TEXTS / name).read_text("utf-8")
