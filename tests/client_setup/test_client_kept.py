"""What a person wrote into the files of clients is there after `install`, an edit and `uninstall`, to the letter."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from cases import each
from cortex_py.parts.clients.catalogue import BY_KEY
from cortex_py.parts.clients.install import Setup
from cortex_py.parts.clients.json_edit import add_item, put_source, read_json, set_member
from cortex_py.parts.clients.programs import is_hook_line, is_server

OWN_HOOKS = """{
  // mine
  "mcpServers": {
    "other": { "command": "x" }, // the other one
    "cortex": { "command": "my-cortex", /* mine */ "args": ["serve"] }
  },
  "hooks": {
    // told to me
    "SessionStart": [
      { "hooks": [{ "type": "command", "command": "notify cortex hook gemini SessionStart" }] }
    ],
    "AfterAgent": [
      { "matcher": "*", "hooks": [{ "type": "command", "command": "/opt/x hook gemini AfterAgent --home cortex" }] },
    ]
  }
}
"""
JSON = {
    "own hooks with similar words": OWN_HOOKS,
    "windows": OWN_HOOKS.replace("\n", "\r\n"),
    "a mark of the byte order": f"\ufeff{OWN_HOOKS}",
    "empty": "",
    "an empty object": "{}\n",
    "empty parts": '{\n  "mcpServers": {},\n  "hooks": {\n    "SessionStart": [],\n    "Mine": []\n  }\n}\n',
    "no end of the line": '{\n\t"theme": "dark"\n}',
}
TEXTS = {
    "text": "# Rules\n\nBe kind.\n", "no end of the line": "# Rules", "windows": "# Rules\r\n\r\nBe kind.\r\n",
    "empty": "", "empty lines": "\n\n",
}  # fmt: skip
TOML = {
    "comments": '# mine\nmodel = "x" # why\n\n[mcp_servers.other]\ncommand = "y"\n# end\n',
    "no end of the line": 'model = "x"',
    "empty": "",
}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def read(path: Path) -> str:
    return path.read_bytes().decode()


def install(home: Path, project: Path, client: str) -> set[str]:
    return {one.state for one in Setup(home, project).install(BY_KEY[client])}


def uninstall(home: Path, project: Path, client: str) -> set[str]:
    return {one.state for one in Setup(home, project).uninstall(BY_KEY[client])}


def all_files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): read(path) for path in folder.rglob("*") if path.is_file()}


def commented(text: str) -> str:
    """A comment at the top, and a member at the end."""
    text = text.replace("{", '{ /* "later" */', 1) if text.strip() else text
    return set_member(text, ("later",), {"a": 1})


PLACES = [
    *(("gemini", ".gemini/settings.json", text) for text in JSON.values()),
    *(("gemini", ".gemini/GEMINI.md", text) for text in TEXTS.values()),
    *(("codex", ".codex/config.toml", text) for text in TOML.values()),
]


@pytest.mark.parametrize(("client", "name", "text"), PLACES)
def test_an_installation_is_taken_back_to_the_letter(
    user: Path, home: Path, project: Path, client: str, name: str, text: str
) -> None:
    write(user / name, text)
    assert "failed" not in install(home, project, client)
    after = all_files(user)
    assert install(home, project, client) == {"unchanged"}
    assert all_files(user) == after
    uninstall(home, project, client)
    assert all_files(user) == {name: text}
    assert uninstall(home, project, client) == {"unchanged"}
    assert all_files(user) == {name: text}
    assert json.loads((home / "clients.json").read_text("utf-8")) == {}


EDITS: dict[str, Callable[[str], str]] = {
    ".json": commented,
    ".md": lambda text: f"First.\n{text}" + ("" if text and not text.endswith("\n") else "Last.\n"),
    ".toml": lambda text: f"first = 1\n{text}",
}


@pytest.mark.parametrize("again", [False, True], ids=["once", "installed again"])
@pytest.mark.parametrize(("client", "name", "text"), [one for one in PLACES if one[2].strip()])
def test_an_edit_in_between_is_all_that_differs(
    user: Path, home: Path, project: Path, client: str, name: str, text: str, again: bool
) -> None:
    """The files of a person are as if Cortex had never been there, the former entry `cortex` included."""
    path = user / name
    write(path, text)
    install(home, project, client)
    edit = EDITS[path.suffix]
    write(path, edit(read(path)))
    if again:
        # As an installation of another home left it: all is written again.
        write(path, read(path).replace(str(home), "/older"))
        install(home, project, client)
        assert install(home, project, client) == {"unchanged"}
    uninstall(home, project, client)
    left, wanted = read(path), edit(text)
    assert left.split() == wanted.split() if text.strip() == "{}" else left == wanted


@pytest.mark.parametrize("edit", [commented, lambda text: text.replace("\n", "\n\n", 1)])
def test_a_file_that_install_made_goes_and_what_was_added_stays(
    user: Path, home: Path, project: Path, edit: Callable[[str], str]
) -> None:
    install(home, project, "gemini")
    path = user / ".gemini/settings.json"
    write(path, edit(read(path)))
    uninstall(home, project, "gemini")
    assert (read_json(read(path)) if path.exists() else {}) in ({}, {"later": {"a": 1}})
    assert path.exists() == (edit is commented)


def test_a_hook_that_was_added_before_a_second_installation_stays(user: Path, home: Path, project: Path) -> None:
    """Also in a file that the first installation made."""
    install(home, project, "claude-code")
    path = user / ".claude/settings.json"
    mine = {"hooks": [{"type": "command", "command": "mine"}]}
    write(path, add_item(read(path), ("hooks", "Stop"), mine))
    content = read_json(read(path))
    content["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "beside"})
    write(path, json.dumps(content))
    assert "done" in install(home, project, "claude-code")
    assert install(home, project, "claude-code") == {"unchanged"}
    uninstall(home, project, "claude-code")
    assert read_json(read(path)) == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "beside"}]}, mine]}}


def test_comments_between_our_parts_stay(user: Path, home: Path, project: Path) -> None:
    path = user / ".cursor/mcp.json"
    write(path, '{\n  "mcpServers": {\n    "other": { "command": "x" }\n  }\n}\n')
    install(home, project, "cursor")
    write(path, read(path).replace('    "cortex"', '    // the next one\n    "cortex"'))
    uninstall(home, project, "cursor")
    assert read(path) == '{\n  "mcpServers": {\n    "other": { "command": "x" }\n    // the next one\n  }\n}\n'


def test_two_lines_are_never_joined(user: Path, home: Path, project: Path) -> None:
    path = user / ".gemini/GEMINI.md"
    write(path, "one\n")
    install(home, project, "gemini")
    write(path, read(path).replace("one\n\n", "one\n") + "two\n")
    uninstall(home, project, "gemini")
    assert read(path) == "one\ntwo\n"


def test_a_block_that_lost_its_end_takes_no_text_with_it(user: Path, home: Path, project: Path) -> None:
    path = user / ".gemini/GEMINI.md"
    install(home, project, "gemini")
    write(path, read(path).replace("<!-- cortex:end -->", "") + "mine\n")
    install(home, project, "gemini")
    uninstall(home, project, "gemini")
    assert read(path).endswith("mine\n")


def test_an_entry_of_the_user_is_left_and_brought_back(user: Path, home: Path, project: Path) -> None:
    path = user / ".cursor/mcp.json"
    write(path, '{"mcpServers": {"cortex": {"url": "https://me.example"}}}')
    # Nothing was installed: there is nothing to take away.
    assert uninstall(home, project, "cursor") == {"unchanged"}
    install(home, project, "cursor")
    write(path, set_member(read(path), ("mcpServers", "more"), {"command": "x"}))
    uninstall(home, project, "cursor")
    assert read_json(read(path))["mcpServers"] == {"cortex": {"url": "https://me.example"}, "more": {"command": "x"}}


def test_an_entry_of_the_user_comes_back_where_the_client_has_a_command(
    user: Path, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, mine = user / ".claude.json", '{ "command": "mine" }'
    (user / "bin").mkdir()
    program = user / "bin/claude"
    program.write_text(f"#!/bin/sh\n[ $2 = remove ] && echo '{{}}' > {shlex.quote(str(path))}; exit 0\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{user / 'bin'}:/usr/bin:/bin")
    write(path, put_source("", ("mcpServers", "cortex"), mine))
    install(home, project, "claude-code")
    assert read(path) == "{}\n"
    command, *arguments = Setup(home, project).server_words(BY_KEY["claude-code"])
    write(path, json.dumps({"mcpServers": {"cortex": {"command": command, "args": arguments}}}))
    uninstall(home, project, "claude-code")
    assert mine in read(path)
    # An addition that fails has taken nothing away.
    program.write_text(program.read_text("utf-8").replace("exit 0", "[ $2 = remove ]"), "utf-8")
    assert "failed" in install(home, project, "claude-code")
    assert mine in read(path)


def test_what_stands_beside_our_words_is_told(user: Path, home: Path, project: Path) -> None:
    install(home, project, "cursor")
    path = user / ".cursor/mcp.json"
    write(path, set_member(read(path), ("mcpServers", "cortex", "env"), {"A": "b"}))
    told = next(iter(Setup(home, project).install(BY_KEY["cursor"])))
    assert told.state == "unchanged"
    assert told.detail == f"{path}, with more than ours: env"


@each("table", ['[mcp_servers]\ncortex = { command = "x" }\n', '[mcp_servers."cortex"]\ncommand = "x"\n', "a = {"])
def test_a_table_of_the_user_is_not_replaced(user: Path, home: Path, project: Path, table: str) -> None:
    write(user / ".codex/config.toml", table)
    assert next(iter(Setup(home, project).install(BY_KEY["codex"]))).state == "failed"
    assert read(user / ".codex/config.toml") == table


OURS = "hook codex Stop --home /h"


@each(
    ("line", "ours"),
    [
        (f"/usr/bin/cortex {OURS}", True), (f"'/my own/cortex' {OURS}", True),
        (f"/usr/bin/python3.12 -m cortex_py {OURS}", True), (f"/usr/bin/python3.12 -P -m cortex_py {OURS}", True),
        (r'"C:\my own\cortex.exe" hook codex Stop --home C:\h', True), (f"cortex {OURS}", False),
        (f"/usr/bin/cortex {OURS} --more", False), (f"/usr/bin/cortex {OURS};x", False),
        (f"/usr/bin/cortex {OURS}\n", False), (f"/usr/bin/cortex {OURS} # mine", False),
        (f"/usr/bin/cortex-notify {OURS}", False), (f"/usr/bin/notify /usr/bin/cortex {OURS}", False),
        ("/usr/bin/cortex hook gemini Stop --home /h", False), (r"C:\cortex.exe hook codex Stop --home C:\h&x", False),
        (f"'/usr/bin/cortex {OURS}", False), (7, False), ("", False),
    ],
)  # fmt: skip
def test_a_hook_is_ours_only_in_the_form_that_we_write(line: object, ours: bool) -> None:
    assert is_hook_line(line, "codex") is ours


@each(
    ("words", "ours"),
    [
        (["/usr/bin/cortex", "serve", "--home", "/h"], True),
        (["/usr/bin/python", "-m", "cortex_py", "serve", "--home", "/h", "--portable-names"], True),
        (["cortex", "serve"], False),
        (["/usr/bin/cortex", "serve", "--home"], False),
        (["/usr/bin/cortex", "serve", "--home", "/h", "--http"], False),
        ([], False),
    ],
)
def test_a_server_is_ours_only_in_the_form_that_we_write(words: list[str], ours: bool) -> None:
    assert is_server(words) is ours
