"""A clone may bring the files of clients: nothing that they name is run, and nothing outside the clone is written."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cortex_py.parts.clients.catalogue import BY_KEY, CATALOGUE, Client
from cortex_py.parts.clients.checks import ClientCheck, check_client, client_states
from cortex_py.parts.clients.install import Setup, SetupOutcome
from cortex_py.parts.clients.programs import cortex_words
from timing import no_hang

HOOKS = {
    "claude-code": (".claude/settings.json", "SessionStart"), "codex": (".codex/hooks.json", "SessionStart"),
    "gemini": (".gemini/settings.json", "SessionStart"), "cursor": (".cursor/hooks.json", "sessionStart"),
    "copilot": (".github/hooks/cortex.json", "sessionStart"),
}  # fmt: skip
SERVERS = {
    "claude-code": (".mcp.json", "mcpServers"), "codex": (".codex/config.toml", "mcp_servers"),
    "gemini": (".gemini/settings.json", "mcpServers"), "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".vscode/mcp.json", "servers"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def key(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stranger would like to change."""
    (user / ".ssh").mkdir()
    (user / ".ssh/authorized_keys").write_text("ssh-ed25519 AAAA me\n", "utf-8")
    (user / ".bashrc").write_text("alias ll='ls -l'\n", "utf-8")
    monkeypatch.setenv("CORTEX_HOOK_IDLE_SECONDS", "0")


@pytest.fixture
def clone(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project)
    return project


def put(clone: Path, name: str, key: str, value: dict[str, Any]) -> None:
    """One more member of a client's file."""
    path = clone / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".toml":
        lines = (f"{field} = {json.dumps(one)}\n" for field, one in value["cortex"].items())
        path.write_text(f"[{key}.cortex]\n{''.join(lines)}", "utf-8")
        return
    content = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**content, key: value}), "utf-8")


def put_hook(clone: Path, client: str, line: str) -> None:
    name, event = HOOKS[client]
    one = {"bash" if client == "copilot" else "command": line}
    put(clone, name, "hooks", {event: [one if client in ("cursor", "copilot") else {"hooks": [one]}]})


def checks(home: Path, clone: Path) -> list[ClientCheck]:
    return [one for client in CATALOGUE for one in check_client(client, home, clone)]


def test_nothing_that_a_clone_names_is_run(home: Path, clone: Path, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    touched.mkdir()
    for client, (name, key) in SERVERS.items():
        put(clone, name, key, {"cortex": {"command": "sh", "args": ["-c", f"touch {touched}/server-{client}"]}})
    for client in HOOKS:
        put_hook(clone, client, f"touch {touched}/hook-{client}; : hook {client} start\n\x1b]0;title\x07")
    found = [one for one in checks(home, clone) if "not ours, not run" in one.detail]
    assert list(touched.iterdir()) == []
    assert len(found) == len(SERVERS) + len(HOOKS) == 10
    assert not any(one.well for one in found)
    assert all(one.detail.startswith(str(clone)) and one.detail.isprintable() for one in found)
    client_states(home, clone)
    assert list(touched.iterdir()) == []


@pytest.mark.parametrize(
    "changed",
    [
        lambda line, touch: f"{line}; {touch}", lambda line, touch: f"{line}\n{touch}",
        lambda line, touch: f"{line} $({touch})", lambda line, touch: f"{touch} && {line}",
        lambda line, touch: f"{touch};{line.replace('cortex', 'с0rtex')}", lambda line, _touch: f"{line} --verbose",
        lambda line, _touch: f"{line} ",
    ],
)  # fmt: skip
def test_a_line_that_only_begins_like_ours_is_not_run(
    home: Path, clone: Path, tmp_path: Path, changed: Callable[[str, str], str]
) -> None:
    touched = tmp_path / "touched"
    line = Setup(home, clone).hook_line(BY_KEY["cursor"], "sessionStart")
    put_hook(clone, "cursor", changed(line, f"touch {shlex.quote(str(touched))}"))
    (found,) = [one for one in check_client(BY_KEY["cursor"], home, clone) if one.name == "sessionStart"]
    assert "not ours, not run" in found.detail
    assert not found.well
    assert not touched.exists()
    assert not home.exists()


def test_our_server_is_run_without_what_a_clone_puts_beside_it(home: Path, clone: Path) -> None:
    touched = clone / "touched"
    (clone / "sitecustomize.py").write_text(f"open({str(touched)!r}, 'w')\n", "utf-8")
    command, *arguments = Setup(home, clone).server_words(BY_KEY["cursor"])
    entry = {"command": command, "args": arguments, "env": {"PYTHONPATH": str(clone)}, "cwd": "sub"}
    put(clone, *SERVERS["cursor"], {"cortex": entry})
    found = next(iter(check_client(BY_KEY["cursor"], home, clone)))
    assert "answers, tried without what is not ours: env, cwd" in found.detail
    assert not found.well
    assert not touched.exists()
    put(clone, *SERVERS["cursor"], {"cortex": {**entry, "args": [*arguments, "--http"]}})
    assert "not ours, not run" in next(iter(check_client(BY_KEY["cursor"], home, clone))).detail
    # An installation writes its entry whole in its place.
    assert next(iter(Setup(home, clone, "project").install(BY_KEY["cursor"]))).state == "done"
    written = json.loads((clone / ".cursor/mcp.json").read_text("utf-8"))["mcpServers"]["cortex"]
    assert written == {"type": "stdio", "command": command, "args": arguments}


def test_what_an_installation_wrote_in_a_project_is_run(home: Path, clone: Path) -> None:
    assert all(one.state == "done" for one in Setup(home, clone, "project").install(BY_KEY["cursor"]))
    found = {one.name: one for one in check_client(BY_KEY["cursor"], home, clone)}
    assert all(one.well for one in found.values()), found
    assert "answers in" in found["sessionStart"].detail
    # A thousand copies are one command.
    content = json.loads((clone / ".cursor/hooks.json").read_text("utf-8"))
    content["hooks"]["sessionStart"] *= 1_000
    (clone / ".cursor/hooks.json").write_text(json.dumps(content), "utf-8")
    assert [one.name for one in check_client(BY_KEY["cursor"], home, clone)].count("sessionStart") == 1


def test_no_program_of_the_present_folder_is_run(
    home: Path, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched = tmp_path / "touched"
    for name in ("claude", "codex", "cortex"):
        (clone / name).write_text(f"#!/bin/sh\ntouch {shlex.quote(str(touched))}\n", "utf-8")
        (clone / name).chmod(0o755)
    monkeypatch.setenv("PATH", f".::bin:{os.environ['PATH']}")
    assert not BY_KEY["claude-code"].is_installed()
    checks(home, clone)
    assert next(iter(Setup(home, clone).install(BY_KEY["claude-code"]))).state == "done"
    assert not touched.exists()
    assert Path(cortex_words()[0]).is_absolute()


def test_pipes_devices_and_huge_files_are_not_read(home: Path, clone: Path) -> None:
    for name in (".cursor", ".gemini", ".vscode", ".codex", ".claude"):
        (clone / name).mkdir()
    os.mkfifo(clone / ".cursor/hooks.json")
    os.mkfifo(clone / ".mcp.json")
    (clone / ".cursor/mcp.json").symlink_to("/dev/zero")
    (clone / ".gemini/settings.json").symlink_to("settings.json")
    with (clone / ".vscode/mcp.json").open("wb") as file:
        file.truncate(4 << 30)
    (clone / ".codex/config.toml").write_text(f"a = {'[' * 50_000}", "utf-8")
    (clone / ".codex/hooks.json").write_text("[" * 50_000 + "]" * 50_000, "utf-8")
    (clone / ".claude/settings.json").write_text('{"hooks": {"Stop": 3, "SessionStart": [1, {"hooks": 2}]}}', "utf-8")
    with no_hang():
        assert all(one.well for one in checks(home, clone))
        assert not any(one.server or one.hooks for one in client_states(home, clone))
        states = [one.state for client in CATALOGUE for one in Setup(home, clone, "project").install(client)]
        assert states.count("failed") == 9


LINKS = {
    ".claude/skills/cortex/SKILL.md": ("claude-code", "skill", ".bashrc"),
    "CLAUDE.md": ("claude-code", "instructions", ".ssh/authorized_keys"),
    ".mcp.json": ("claude-code", "MCP server", ".ssh/new"),
    ".claude/settings.json": ("claude-code", "hooks", "settings.json"),
    "AGENTS.md": ("codex", "instructions", ".ssh/authorized_keys"),
    ".codex/config.toml": ("codex", "MCP server", ".config.toml"),
    ".vscode/mcp.json": ("vscode", "MCP server", "new/mcp.json"),
    # A folder, and one whose place is not there.
    ".cursor/skills": ("cursor", "skill", ".ssh"),
    ".cursor/rules": ("cursor", "instructions", "nowhere"),
    # The copy of a file.
    "GEMINI.md.before-cortex": ("gemini", "instructions", ".bashrc"),
}


def _all_in(folder: Path) -> dict[str, bytes | None]:
    return {str(one): one.read_bytes() if one.is_file() else None for one in folder.rglob("*")}


def _outcome(work: Callable[[Client], Any], client: str, what: str) -> SetupOutcome:
    (found,) = [one for one in work(BY_KEY[client]) if one.what == what]
    assert isinstance(found, SetupOutcome)
    return found


@pytest.mark.parametrize("name", LINKS)
def test_a_link_that_leads_out_of_a_project_is_not_followed(user: Path, home: Path, clone: Path, name: str) -> None:
    client, what, place = LINKS[name]
    (clone / "GEMINI.md").write_text("# Rules\n", "utf-8")
    (clone / name).parent.mkdir(parents=True, exist_ok=True)
    (clone / name).symlink_to(os.path.relpath(user / place, (clone / name).parent))
    before = _all_in(user)
    setup = Setup(home, clone, "project")
    done = _outcome(setup.install, client, what)
    assert done.state == "failed"
    assert "leads out of the project" in done.detail
    assert _all_in(user) == before
    # Nor is it when it comes after the installation.
    (clone / name).unlink()
    assert _outcome(setup.install, client, what).state == "done"
    written = clone / name.removesuffix(".before-cortex")
    written.rename(user / "moved")
    (clone / name).unlink(missing_ok=True)
    (clone / name).symlink_to(user / "moved")
    before = _all_in(user)
    assert _outcome(setup.uninstall, client, what).state in ("failed", "unchanged")
    assert _all_in(user) == before


def test_a_link_that_comes_while_a_file_is_written_is_not_followed(
    user: Path, home: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swapped(_name: str) -> str:
        folder = clone / ".cursor/skills"
        if not folder.is_symlink():
            folder.parent.mkdir(exist_ok=True)
            folder.symlink_to(user / ".ssh")
        return "text"

    before = _all_in(user)
    monkeypatch.setattr("cortex_py.parts.clients.install.text_of", swapped)
    assert _outcome(Setup(home, clone, "project").install, "cursor", "skill").state == "failed"
    assert _all_in(user) == before


def test_links_inside_a_project_and_to_it_are_followed(home: Path, clone: Path, tmp_path: Path) -> None:
    (clone / "docs").mkdir()
    (clone / "docs/rules.md").write_text("# Rules\n", "utf-8")
    (clone / "CLAUDE.md").symlink_to("docs/rules.md")
    (tmp_path / "way").symlink_to(clone)
    setup = Setup(home, tmp_path / "way", "project")
    assert {one.state for one in setup.install(BY_KEY["claude-code"])} == {"done"}
    assert "cortex:begin" in (clone / "docs/rules.md").read_text("utf-8")
    assert {one.state for one in setup.uninstall(BY_KEY["claude-code"])} == {"done"}
    assert (clone / "docs/rules.md").read_text("utf-8") == "# Rules\n"
    assert (clone / "CLAUDE.md").is_symlink()


def test_a_link_into_the_folder_of_git_is_not_followed(home: Path, clone: Path) -> None:
    (clone / ".git").mkdir(exist_ok=True)
    (clone / "CLAUDE.md").symlink_to(".git/config")
    done = _outcome(Setup(home, clone, "project").install, "claude-code", "instructions")
    assert done.state == "failed"
    assert not (clone / ".git/config").exists()


def test_a_copy_that_a_clone_brings_is_not_put_back(home: Path, clone: Path) -> None:
    (clone / "CLAUDE.md").write_text("# Rules\n", "utf-8")
    (clone / "CLAUDE.md.before-cortex").write_text("planted", "utf-8")
    setup = Setup(home, clone, "project")
    list(setup.install(BY_KEY["claude-code"]))
    list(setup.uninstall(BY_KEY["claude-code"]))
    assert (clone / "CLAUDE.md").read_text("utf-8") == "# Rules\n"
    assert (clone / "CLAUDE.md.before-cortex").read_text("utf-8") == "planted"
