"""Writes the plugins of AI clients from one source: the catalogue of clients and its texts. `make plugins` runs it.

A test compares what is written with what is committed.
"""

from __future__ import annotations

import base64
import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cortex_py.parts.clients.catalogue import SERVER, TEXTS, hook_entries, text_of
from cortex_py.version import __version__

__all__ = ["ROOT", "render"]

ROOT = Path(__file__).parents[1]
DESCRIPTION = "Lasting, local-first memory: recalls what was decided and learned, and keeps what matters"
OWNER = "Cortex contributors"
KEYWORDS = ["memory", "context", "recall", "mcp", "local-first"]


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _server(*more: str) -> dict[str, Any]:
    return {"command": "cortex", "args": ["serve", *more]}


def _manifest() -> dict[str, Any]:
    return {
        "name": SERVER,
        "version": __version__,
        "description": DESCRIPTION,
        "author": {"name": OWNER},
        "license": "MIT",
        "keywords": KEYWORDS,
    }


def _hooks(client: str) -> str:
    entries = hook_entries(client, lambda event: f"cortex hook {client} {event}")
    return _json({"hooks": {event: [entry] for event, entry in entries.items()}})


def _commands() -> dict[str, str]:
    return {path.stem: path.read_text("utf-8") for path in sorted((TEXTS / "commands").glob("*.md"))}


def _toml_command(text: str) -> str:
    """A command in the form of Gemini CLI."""
    _, front, body = text.split("---\n", 2)
    description = next(line.partition(": ")[2] for line in front.splitlines() if line.startswith("description: "))
    prompt = body.strip().replace("$ARGUMENTS", "{{args}}")
    return f'description = {json.dumps(description)}\nprompt = """\n{prompt}\n"""\n'


def _claude() -> dict[str, str]:
    files = {
        ".claude-plugin/plugin.json": _json(_manifest()),
        ".mcp.json": _json({"mcpServers": {SERVER: _server()}}),
        "hooks/hooks.json": _hooks("claude-code"),
        "skills/cortex/SKILL.md": text_of("SKILL.md"),
    }
    return files | {f"commands/{name}.md": text for name, text in _commands().items()}


def _codex() -> dict[str, str]:
    interface = {
        "displayName": "Cortex",
        "shortDescription": "Memory across sessions",
        "longDescription": f"{DESCRIPTION}. Everything stays on your machine.",
        "developerName": OWNER,
        "category": "Productivity",
        "capabilities": ["Read", "Write"],
        "defaultPrompt": ["What does Cortex remember about this project?"],
        "brandColor": "#4F46E5",
    }
    manifest = _manifest() | {
        "skills": "./skills/",
        "mcpServers": "./.mcp.json",
        "hooks": "./hooks/hooks.json",
        "interface": interface,
    }
    return {
        ".codex-plugin/plugin.json": _json(manifest),
        ".mcp.json": _json({"mcpServers": {SERVER: _server()}}),
        "hooks/hooks.json": _hooks("codex"),
        "skills/cortex/SKILL.md": text_of("SKILL.md"),
    }


def _gemini() -> dict[str, str]:
    extension = {
        "name": SERVER,
        "version": __version__,
        "description": DESCRIPTION,
        "mcpServers": {SERVER: _server()},
        "contextFileName": "GEMINI.md",
    }
    files = {
        "gemini-extension.json": _json(extension),
        "GEMINI.md": text_of("instructions.md"),
        "hooks/hooks.json": _hooks("gemini"),
        "skills/cortex/SKILL.md": text_of("SKILL.md"),
    }
    return files | {f"commands/cortex/{name}.toml": _toml_command(text) for name, text in _commands().items()}


def _cursor() -> dict[str, str]:
    config = base64.b64encode(json.dumps(_server(), separators=(",", ":")).encode()).decode()
    rule = "---\ndescription: The project's lasting memory\nalwaysApply: true\n---\n\n"
    entries = hook_entries("cursor", lambda event: f"cortex hook cursor {event}")
    return {
        "rules/cortex.mdc": rule + text_of("instructions.md"),
        "hooks.json": _json({"version": 1, "hooks": {event: [entry] for event, entry in entries.items()}}),
        "install-link.txt": f"cursor://anysphere.cursor-deeplink/mcp/install?name={SERVER}&config={quote(config)}\n",
    }


def _vscode() -> dict[str, str]:
    entry = json.dumps({"name": SERVER, "type": "stdio", **_server()}, separators=(",", ":"))
    return {"install-command.txt": f"code --add-mcp {shlex.quote(entry)}\n"}


def render() -> dict[str, str]:
    """All files by their path in the repository."""
    plugins = {
        "claude-code": _claude(),
        "codex": _codex(),
        "gemini": _gemini(),
        "cursor": _cursor(),
        "vscode": _vscode(),
    }
    files = {f"plugins/{client}/{path}": text for client, found in plugins.items() for path, text in found.items()}
    claude = {"name": SERVER, "version": __version__, "source": "./plugins/claude-code", "description": DESCRIPTION}
    files[".claude-plugin/marketplace.json"] = _json(
        {"name": SERVER, "owner": {"name": OWNER}, "metadata": {"description": DESCRIPTION}, "plugins": [claude]}
    )
    codex = {
        "name": SERVER,
        "source": {"source": "local", "path": "./plugins/codex"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Productivity",
    }
    files[".agents/plugins/marketplace.json"] = _json(
        {"name": SERVER, "interface": {"displayName": "Cortex"}, "plugins": [codex]}
    )
    return files


def main() -> None:
    files = render()
    for old in (ROOT / "plugins").rglob("*"):
        if old.is_file() and str(old.relative_to(ROOT)) not in files:
            old.unlink()
    for name, text in files.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
