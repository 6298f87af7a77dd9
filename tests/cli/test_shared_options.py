"""What every command has: shared options anywhere on the line, nearest names, completion, errors that name commands."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import cortex_py
from cases import each
from cortex_py.surfaces.cli import cli
from cortex_py.surfaces.cli.remedies import in_words_of_commands
from cortex_py.surfaces.mcp.registry import TOOLS

from shell import Shell

SOURCE = Path(cortex_py.__file__).parent


@pytest.mark.parametrize(
    "line",
    [
        "--home HOME --project HERE --json branch list",
        "--json --home elsewhere branch --home HOME list --project HERE",
        "branch --json list --home HOME --project HERE",
        "branch list --json --home HOME --project HERE",
    ],
)
def test_shared_options_are_taken_anywhere_and_the_last_counts(line: str, home: Path, project: Path) -> None:
    words = line.replace("HOME", str(home)).replace("HERE", str(project)).split()
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert json.loads(done.stdout) == {"branches": [], "active": None}
    assert home.exists()


def test_quiet_leaves_out_hints_and_keeps_results(home: Path, project: Path) -> None:
    shell = Shell(home, project)
    shell.text("capture", "Lunch is at noon")
    told, silent = shell.run("recall", "lunch"), shell.run("--quiet", "recall", "lunch")
    assert (told.stderr, silent.stderr) == ("1 of 1 memory\n", "")
    assert told.stdout == silent.stdout


def test_every_command_takes_them_and_lists_them_apart() -> None:
    for name in cli.list_commands(None):  # type: ignore[arg-type]
        command = cli.get_command(None, name)  # type: ignore[arg-type]
        for part in [command, *getattr(command, "commands", {}).values()]:
            options = {word for one in part.params for word in one.opts}
            assert {"--home", "--project", "--json", "--quiet", "--verbose", "--no-color"} <= options, (name, part.name)
    page = CliRunner().invoke(cli, ["branch", "list", "--help"]).stdout
    assert "Options of every command:\n  --home" in page


@each(
    ("line", "answer"),
    [
        ("recal lunch", "Did you mean 'recall'?"),
        ("remember lunch", "Did you mean 'capture'?"),
        ("branch lst", "Did you mean 'list'?"),
        ("recall --jsn", "Did you mean '--json'?"),
        ("zzz", "No such command 'zzz'."),
    ],
)
def test_a_wrong_name_gets_the_nearest(line: str, answer: str) -> None:
    done = CliRunner().invoke(cli, line.split())
    assert (done.exit_code, answer in done.output) == (2, True)


def test_help_has_sections_everyday_first() -> None:
    page = CliRunner().invoke(cli, ["--help"]).stdout
    titles = re.findall(r"^(\w[\w ]*):$", page, re.MULTILINE)
    assert titles[:5] == ["Everyday", "Projects", "Knowledge", "Maintenance", "Team"]


@pytest.mark.slow
def test_no_error_names_a_tool_where_a_command_is_meant() -> None:
    """Every text of an error or a remedy in the library, as the command line shows it."""
    tools = re.compile(rf"\b(?:{'|'.join(name for spec in TOOLS for name in spec.spellings if '_' in name)})\b")
    named = []
    for module in SOURCE.rglob("*.py"):
        if module.relative_to(SOURCE).parts[0] in ("mcp", "http"):
            continue
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Call) and any(one.arg == "remedy" for one in node.keywords):
                texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
                shown = [in_words_of_commands(one) for one in texts if isinstance(one, str) and " " in one]
                named += [text for text in shown if tools.search(text)]
    assert named == []


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_is_printed_or_installed(
    shell_name: str, home: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    shell = Shell(home, project)
    script = shell.text("completion", shell_name)
    assert "_CORTEX_COMPLETE" in script
    place = Path(shell.json("completion", shell_name, "--install")["path"])
    assert place.is_relative_to(tmp_path)
    assert place.read_text("utf-8").strip() == script.strip()


@each(
    ("line", "wanted"),
    [
        ("cortex ca", {"capture"}),
        ("cortex branch cr", {"create"}),
        ("cortex recall --pre", {"--prefer-newer"}),
        ("cortex --ho", {"--home"}),
    ],
)
def test_commands_and_options_are_completed(line: str, wanted: set[str]) -> None:
    from click.shell_completion import BashComplete

    words = line.split()
    completer = BashComplete(cli, {}, "cortex", "_CORTEX_COMPLETE")
    assert {one.value for one in completer.get_completions(words[1:-1], words[-1])} == wanted
