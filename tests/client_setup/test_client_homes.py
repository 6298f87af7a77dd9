"""The homes of a machine, and the clients that use them, as `cortex doctor` shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cortex_py.parts.clients.homes import Home, find_homes


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")


def test_every_client_is_listed_with_the_home_it_uses(user: Path, home: Path, project: Path) -> None:
    other = user / "other"
    _write(other / "cortex.db", "")
    plain = {"command": "/usr/bin/cortex", "args": ["serve"]}
    _write(user / ".claude.json", {"projects": {"/a": {"mcpServers": {"memory": plain}}}})
    _write(
        user / ".codex/config.toml", '[mcp_servers.cortex]\ncommand = "cortex"\nargs = ["serve", "--home", "~/other"]\n'
    )
    _write(user / ".cursor/mcp.json", {"mcpServers": {"c": {**plain, "env": {"CORTEX_HOME": str(other)}}}})
    _write(
        project / ".vscode/mcp.json", {"servers": {"x": {"command": "python", "args": ["-m", "cortex_py", "serve"]}}}
    )
    _write(user / ".gemini/settings.json", {"mcpServers": {"files": {"command": "npx", "args": ["files"]}}})
    assert find_homes(home, project) == [
        Home(str(home), False, ()),
        Home(str(user / ".cortex"), False, ("Claude Code", "VS Code")),
        Home(str(other), True, ("Cursor", "Codex")),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "not JSON {",
        "[" * 100_000,
        '{"mcpServers": [1]}',
        {"mcpServers": {"c": {"command": 3, "args": "serve"}}, "projects": 7},
        {"mcpServers": {"c": {"command": "cortex", "args": ["serve"], "env": {"CORTEX_HOME": "a" * 9_000}}}},
        {"mcpServers": {"c": {"command": "cortex", "args": ["serve", "--home", "x\u001b[2J\u0000"]}}},
    ],
)
def test_a_strange_configuration_does_no_harm(home: Path, project: Path, content: object) -> None:
    _write(project / ".mcp.json", content)
    found = find_homes(home, project)
    assert found[0] == Home(str(home), False, ())
    assert all(one.path.isprintable() and len(one.path) < 5_000 for one in found)
