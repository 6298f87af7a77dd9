"""`cortex install` writes what clients read, `uninstall` takes exactly that away, `doctor --clients` tries it."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from cortex_py.core.errors import InvalidInput
from cortex_py.parts.clients.catalogue import BY_KEY, CATALOGUE, Client, Scope, hook_entries, text_of
from cortex_py.parts.clients.checks import check_client
from cortex_py.parts.clients.codex_trust import hooks_not_trusted
from cortex_py.parts.clients.install import Setup, SetupOutcome, chosen_clients
from cortex_py.parts.clients.json_edit import read_json
from cortex_py.parts.clients.programs import cortex_words

from forking import cortex_command

SETTINGS = """{
  // mine
  "theme": "dark",
  "mcpServers": { "other": { "command": "x" } },
  "hooks": {
    "SessionStart": [
      { "hooks": [{ "type": "command", "command": "echo hi" }] }
    ]
  }
}
"""
FILES = {
    ".claude.json": SETTINGS,
    ".claude/settings.json": SETTINGS,
    ".claude/CLAUDE.md": "# Rules\n\nBe kind.\n",
    ".codex/config.toml": '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y"\n',
    ".codex/hooks.json": '{"hooks": {"Stop": [{"hooks": []}]}}',
    ".gemini/settings.json": SETTINGS,
    ".cursor/mcp.json": "{}",
    ".cursor/hooks.json": '{\n\t"version": 1,\n\t"hooks": {}\n}\n',
    ".copilot/mcp-config.json": '{"mcpServers": {}}\n',
}


def _write_all(user: Path) -> None:
    for name, text in FILES.items():
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        (user / name).write_text(text, "utf-8")


def _files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


def _states(work: Callable[[Client], object], clients: tuple[Client, ...] = CATALOGUE) -> set[str]:
    outcomes = [outcome for client in clients for outcome in work(client)]  # type: ignore[attr-defined]
    assert all(isinstance(one, SetupOutcome) for one in outcomes)
    return {one.state for one in outcomes}


@pytest.mark.skipif(os.name == "nt", reason="the interpreter stands in for one without the command beside it")
def test_what_clients_start_imports_nothing_from_the_folder_they_start_it_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, clone = tmp_path / "alone" / "python", tmp_path / "clone"
    alone.parent.mkdir()
    alone.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', "ascii")
    alone.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(alone))
    for name in ("cortex_py/__init__.py", "cortex_py/__main__.py", "json.py"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text("raise SystemExit('the repository ran')\n", "ascii")
    words = cortex_words()
    assert words[0] == str(alone)
    done = subprocess.run([*words, "--version"], cwd=clone, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("cortex")


@pytest.mark.parametrize("scope", ["user", "project"])
def test_what_is_installed_is_taken_away_exactly(user: Path, home: Path, project: Path, scope: Scope) -> None:
    _write_all(user)
    (project / "CLAUDE.md").write_text("no line end", "utf-8")
    before = _files(user) | _files(project)
    setup = Setup(home, project, scope)
    assert "failed" not in _states(setup.install)
    assert _files(user) | _files(project) != before
    assert "failed" not in _states(setup.uninstall)
    assert _files(user) | _files(project) == before
    assert not list(user.rglob("skills/cortex"))


def test_a_second_time_changes_nothing_and_a_dry_run_writes_nothing(user: Path, home: Path, project: Path) -> None:
    _write_all(user)
    before = _files(user)
    assert _states(Setup(home, project, dry_run=True).install) == {"would"}
    assert _files(user) == before
    assert not home.exists()
    _states(Setup(home, project).install)
    after = _files(user)
    assert _states(Setup(home, project).install) == {"unchanged"}
    assert _files(user) == after


def test_comments_modes_links_and_a_copy_are_kept(user: Path, home: Path, project: Path) -> None:
    _write_all(user)
    kept = user / "dotfiles.json"
    (user / ".gemini/settings.json").replace(kept)
    (user / ".gemini/settings.json").symlink_to(kept)
    kept.chmod(0o640)
    gemini = BY_KEY["gemini"]
    _states(Setup(home, project).install, (gemini,))
    assert (user / ".gemini/settings.json").is_symlink()
    assert "// mine" in kept.read_text("utf-8")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    assert kept.with_name("dotfiles.json.before-cortex").read_text("utf-8") == SETTINGS
    content = read_json(kept.read_text("utf-8"))
    assert content["mcpServers"]["other"] == {"command": "x"}
    assert content["mcpServers"]["cortex"]["args"] == ["serve", "--home", str(home)]
    assert Path(content["mcpServers"]["cortex"]["command"]).is_absolute()
    assert len(content["hooks"]["SessionStart"]) == 2


def test_a_new_home_replaces_the_old_one(user: Path, home: Path, project: Path, tmp_path: Path) -> None:
    _states(Setup(home, project).install)
    _states(Setup(tmp_path / "second", project).install)
    for name, text in _files(user).items():
        assert f"--home {home}" not in text or name.endswith(".before-cortex")
    hooks = json.loads((user / ".claude/settings.json").read_text("utf-8"))["hooks"]
    assert all(len(items) == 1 for items in hooks.values())


def test_codex_gets_a_table_that_its_parser_reads(user: Path, home: Path, project: Path) -> None:
    _write_all(user)
    codex = BY_KEY["codex"]
    _states(Setup(home, project).install, (codex,))
    content = tomllib.loads((user / ".codex/config.toml").read_text("utf-8"))
    assert content["mcp_servers"]["cortex"]["args"] == ["serve", "--home", str(home)]
    assert content["mcp_servers"]["other"] == {"command": "y"}


def test_clients_that_refuse_dots_get_portable_names(user: Path, home: Path, project: Path) -> None:
    _states(Setup(home, project).install)
    portable = {name for name, text in _files(user).items() if "--portable-names" in text}
    assert {Path(name).name for name in portable} == {"mcp-config.json", "claude_desktop_config.json"}


@pytest.mark.parametrize(
    "text", ["{broken", "[]", '{"mcpServers": 3}', '{"hooks": {"sessionStart": 3}, "mcpServers": []}']
)
def test_a_file_that_cannot_be_read_is_left_alone(user: Path, home: Path, project: Path, text: str) -> None:
    cursor = BY_KEY["cursor"]
    for name in ("mcp.json", "hooks.json"):
        (user / ".cursor").mkdir(exist_ok=True)
        (user / ".cursor" / name).write_text(text, "utf-8")
    assert "failed" in _states(Setup(home, project).install, (cursor,))
    assert text in {(user / ".cursor" / name).read_text("utf-8") for name in ("mcp.json", "hooks.json")}


def test_a_skill_that_a_person_changed_stays(user: Path, home: Path, project: Path) -> None:
    setup = Setup(home, project)
    _states(setup.install)
    skill = user / ".claude/skills/cortex/SKILL.md"
    skill.write_text(f"{skill.read_text('utf-8')}\nMine.\n", "utf-8")
    _states(setup.uninstall)
    assert skill.read_text("utf-8").endswith("Mine.\n")


def test_the_clients_own_command_is_used_where_there_is_one(
    user: Path, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = user / "bin"
    programs.mkdir()
    program = programs / "claude"
    # It follows what lies in the folder where it is started, as some clients do.
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {shlex.quote(str(user / "calls"))}\npwd >> {shlex.quote(str(user / "folders"))}\n',
        "utf-8",
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.chdir(project)
    (claude,) = chosen_clients(())
    setup = Setup(home, project)
    first = next(iter(setup.install(claude)))
    assert first.state == "done"
    command, *arguments = setup.server_words(claude)
    entry = {"type": "stdio", "command": command, "args": arguments, "env": {}}
    (user / ".claude.json").write_text(json.dumps({"mcpServers": {"cortex": entry}}), "utf-8")
    assert next(iter(setup.install(claude))).state == "unchanged"
    next(iter(setup.uninstall(claude)))
    *_, added, removed = (user / "calls").read_text("utf-8").splitlines()
    assert added.startswith("mcp add --scope user cortex -- /")
    assert added.endswith(f"serve --home {home}")
    assert removed == "mcp remove --scope user cortex"
    # In a project its file is written here: the program would follow a link that leads out of the project.
    called = (user / "calls").read_text("utf-8")
    assert next(iter(Setup(home, project, "project").install(claude))).detail == str(project / ".mcp.json")
    assert (user / "calls").read_text("utf-8") == called
    next(iter(check_client(claude, home, project)))
    assert set((user / "folders").read_text("utf-8").split()) == {str(user)}


def test_only_clients_that_are_there_are_set_up(user: Path) -> None:
    assert chosen_clients(()) == []
    (user / ".cursor").mkdir()
    assert [one.key for one in chosen_clients(())] == ["cursor"]
    assert [one.key for one in chosen_clients(["codex", "Gemini"])] == ["codex", "gemini"]
    with pytest.raises(InvalidInput, match="emacs"):
        chosen_clients(["emacs"])


def test_the_doctor_runs_hooks_and_server_as_the_client_would(
    user: Path, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORTEX_HOOK_IDLE_SECONDS", "0")
    cursor = BY_KEY["cursor"]
    assert ["not set up" in one.detail for one in check_client(cursor, home, project)] == [True, True, False]
    _states(Setup(home, project).install, (cursor,))
    found = {one.name: one for one in check_client(cursor, home, project)}
    assert all(one.well for one in found.values()), found
    assert "cortex" in found["MCP server"].detail
    assert "answers in" in found["sessionStart"].detail
    written = (user / ".cursor/hooks.json").read_text("utf-8")
    (user / ".cursor/hooks.json").write_text(written.replace("hook cursor stop", "hook cursor stop --verbose"), "utf-8")
    (stop,) = [one for one in check_client(cursor, home, project) if one.name == "stop"]
    assert not stop.well
    assert "not ours, not run" in stop.detail


def test_the_command_prints_exactly_what_it_did(user: Path, home: Path, project: Path) -> None:
    command = [*cortex_command(), "install", "cursor", "--home", str(home), "--json"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True, env=dict(os.environ))
    outcomes = json.loads(done.stdout)
    written = {one["detail"] for one in outcomes if one["state"] == "done"}
    assert written == {
        str(user / name) for name in (".cursor/mcp.json", ".cursor/hooks.json", ".cursor/skills/cortex/SKILL.md")
    }


def test_every_hook_of_every_client_has_an_entry_and_the_skill_is_short() -> None:
    from cortex_py.parts.hooks.dialects import CLIENTS

    for client, hooks in CLIENTS.items():
        assert set(hook_entries(client, lambda event: event)) == {hook.name for hook in hooks}
    assert text_of("SKILL.md").count("\n") <= 60


# As Codex 0.166 lists them for these hooks.
TRUSTED = {
    "post_tool_use": "sha256:eeea348352826f5594a9bb5be7e2191ee0b8da7edf6a7cf76ee76c9807483fc4",
    "stop": "sha256:8208500a7be11e552a120d61c3ee3cc113c65b95b4007c0f7f1fdbf98032ac34",
}


def _codex_hook(event: str, matcher: str = "") -> dict[str, object]:
    line = f"/opt/cortex hook codex {event} --home '/home/zoé/.cortex'"
    group: dict[str, object] = {"hooks": [{"type": "command", "command": line, "timeout": 5}]}
    return {"matcher": matcher, **group} if matcher else group


def test_the_hashes_of_trusted_hooks_are_those_of_codex(user: Path) -> None:
    hooks = {"PostToolUse": [_codex_hook("PostToolUse", "Bash|mcp__.*")], "Stop": [_codex_hook("Stop")]}
    file = user / ".codex" / "hooks.json"
    states = {f"{file}:{event}:0:0": {"trusted_hash": value} for event, value in TRUSTED.items()}
    assert hooks_not_trusted(file, hooks, {"state": states}) == ""
    assert hooks_not_trusted(file, hooks, {}) == "2 of 2 not trusted"
    changed = {**hooks, "Stop": [_codex_hook("Stop", "x")]}
    assert hooks_not_trusted(file, changed, {"state": states}) == "1 of 2 changed since they were trusted"
    states[f"{file}:stop:0:0"]["enabled"] = False  # type: ignore[assignment]
    assert hooks_not_trusted(file, hooks, {"state": states}) == "1 of 2 switched off"


def test_the_doctor_says_that_codex_does_not_run_hooks_before_they_are_trusted(
    user: Path, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORTEX_HOOK_IDLE_SECONDS", "0")
    codex = BY_KEY["codex"]
    _states(Setup(home, project).install, (codex,))
    (trust,) = [one for one in check_client(codex, home, project) if one.name == "trust"]
    assert not trust.well
    assert "5 of 5 not trusted" in trust.detail
    assert "/hooks" in trust.detail


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("claude-code", ".claude/settings.json", '{"enabledPlugins": {"other@x": true, "cortex@cortex": true}}'),
        ("codex", ".codex/config.toml", '[plugins."cortex@cortex"]\nenabled = true\n'),
        ("gemini", ".gemini/extensions/cortex/gemini-extension.json", '{"mcpServers": {"cortex": {"command": "c"}}}'),
    ],
)
def test_nothing_is_set_up_beside_the_plugin(
    user: Path, home: Path, project: Path, client: str, file: str, text: str
) -> None:
    (chosen,) = chosen_clients([client])
    (user / file).parent.mkdir(parents=True)
    (user / file).write_text(text, "utf-8")
    before = _files(user)
    for scope in ("user", "project"):
        (outcome,) = Setup(home, project, scope).install(chosen)  # type: ignore[arg-type]
        assert (outcome.what, outcome.state) == ("plugin", "unchanged")
        assert "is on" in outcome.detail
    assert _files(user) == before
    found = {one.name: one for one in check_client(chosen, home, project)}
    assert found["plugin"].well
    assert not any("cortex install" in one.detail for one in found.values())
    (user / file).write_text(text.replace("cortex@cortex", "xcortex@cortex").replace('"cortex"', '"o"'), "utf-8")
    assert "done" in _states(Setup(home, project, "project").install, (chosen,))
    (user / file).write_text(text, "utf-8")
    twice = {one.name: one for one in check_client(chosen, home, project)}["plugin"]
    assert not twice.well
    assert f"cortex uninstall {client}" in twice.detail
