"""`cortex prompt …` and `cortex template …`: saved texts on the command line, and questions where a person sits."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.surfaces.cli import main
from cortex_py.surfaces.cli.saved.texts import prompt_command, template_command

from forking import cortex_command
from shell import Done, Shell
from stub_backend import StubBackend

COMMON = {"save", "list", "get", "versions", "delete", "import", "export"}


class Here(Shell):
    """Runs the command line in this process, through the same entry: an interpreter for each takes its time."""

    def __init__(
        self, home: Path, project: Path, command: str, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]
    ) -> None:
        super().__init__(home, project, command)
        self._patch = patch
        self._capture = capture

    def run(self, *words: str, given: str | None = None) -> Done:
        self._capture.readouterr()
        with self._patch.context() as patch:
            for name, value in self.variables.items():
                patch.setenv(name, value)
            patch.chdir(self.project)
            patch.setattr(sys, "argv", ["cortex", *self.command, *words])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((given or "").encode())))
            try:
                main()
                code: str | int | None = 0
            except SystemExit as stopped:
                code = stopped.code
        output = self._capture.readouterr()
        assert isinstance(code, int)
        return Done(words, code, output.out, output.err)


@pytest.fixture
def shell(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Here(home, project, "prompt", monkeypatch, capsys)


@pytest.fixture
def template_shell(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Here(home, project, "template", monkeypatch, capsys)


@contextmanager
def library(shell: Shell) -> Iterator[Cortex]:
    with Cortex.open(shell.home, project=shell.project, backend=StubBackend()) as cortex:
        yield cortex


def test_both_groups_have_the_same_commands_and_their_own() -> None:
    assert set(prompt_command.commands) == COMMON | {"run"}
    assert set(template_command.commands) == COMMON | {"render"}
    assert all(command.help for group in (prompt_command, template_command) for command in group.commands.values())


def test_a_prompt_from_saving_to_deleting(shell: Shell) -> None:
    declared = json.dumps([{"name": "word", "default": "Hello"}])
    assert shell.text(
        "save", "greet", "{{word}}, {{name}}!", "-t", "x", "--description", "d", "--variables", declared
    ) == ("greet, version 1 (project)\n")
    made = shell.json("save", "greet", given="{{word}}, dear {{name}}!\n")
    assert (made["saved"]["version"], made["saved"]["content"], made["warnings"]) == (
        2,
        "{{word}}, dear {{name}}!\n",
        [],
    )
    assert shell.text("get", "greet", "--version", "1") == "{{word}}, {{name}}!\n"
    assert shell.json("get", "greet")["variables"][0]["name"] == "word"
    listed = shell.json("list", "--domain", "project")
    assert ([one["saved"]["name"] for one in listed["items"]], listed["total"], listed["problems"]) == (
        ["greet"],
        1,
        [],
    )
    assert [one["version"] for one in shell.json("versions", "greet")] == [1, 2]
    told = shell.text("versions", "greet")
    assert "{{word}}, dear {{name}}!" in told
    assert shell.text("run", "greet", "-v", "name=a=b {{x}}", "--variables", '{"word": ["é"], "name": 7}') == (
        '["é"], dear a=b {{x}}!\n'
    )
    filled = shell.json("run", "greet", "--variables", '{"name": "Z", "word": null}')
    assert (filled["content"], filled["values"]) == ("null, dear Z!\n", {"name": "Z", "word": None})
    assert shell.text("delete", "greet", "--domain", "project", "--yes") == "Deleted greet (project), 2 versions.\n"
    assert shell.json("list")["total"] == 0


@pytest.mark.parametrize(
    "given",
    [
        ("--variables", '{"file": "a.rs"}', "--variables", "kind=style"),
        ("--variables", "file=a.rs", "--variables", "kind=style"),
        ("-v", "kind=style", "--variables", ' {"file": "a.rs"}'),
        ("--variables", '{"file": "b.rs", "kind": "style"}', "-v", "file=a.rs"),
    ],
)
def test_variables_are_json_or_pairs(shell: Shell, given: tuple[str, ...]) -> None:
    shell.run("save", "review", "Review {{file}} for {{kind}}.")
    assert shell.text("run", "subcog:review", *given) == "Review a.rs for style.\n"
    half = shell.run("run", "review", "--variables", '{"file": "a.rs"}')
    assert (half.returncode, half.stdout) == (0, "Review a.rs for {{kind}}.\n")
    assert "No value was given for kind." in half.stderr


def test_the_list_shows_what_is_hidden_and_what_is_wrong(shell: Shell) -> None:
    folder = shell.project / ".cortex" / "prompts"
    folder.mkdir(parents=True)
    (folder / "note.md").write_text("from a file")
    (folder / "bad.md").write_text("{{")
    done = shell.run("save", "note", "x", "--domain", "project")
    assert (done.returncode, done.stdout) == (0, "note, version 1 (project)\n")
    assert done.stderr == ""
    listing = shell.run("list")
    assert len(listing.stdout.splitlines()) == 2
    assert ".cortex/prompts/note.md" in listing.stdout
    assert "shadowed by project" in listing.stdout
    assert "bad.md" in listing.stderr
    assert (shell.text("get", "note"), shell.text("get", "project:note")) == ("x\n", "from a file\n")
    assert shell.text("run", "note") == "x\n"
    assert shell.text("run", "project:note").startswith("Not written by the user: ")
    assert shell.text("export", "project:note").startswith("---\nname: note\n")
    shell.run("export", "--to", str(shell.project / "out"))
    assert [(one.name, "x" in one.read_text()) for one in (shell.project / "out").iterdir()] == [("note.md", True)]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("run", "greet"), 2, "a, b"),
        (("run", "greet", "--json"), 2, "a, b"),
        (("run", "unknown"), 4, "no prompt 'unknown'"),
        (("run", "greet", "-v", "a"), 2, "NAME=VALUE"),
        (("run", "greet", "--variables", "["), 2, "not JSON"),
        (("run", "greet", "--variables", "[" * 60_000), 2, "not JSON"),
        (("run", "greet", "--variables", "[]"), 2, "not a JSON object"),
        (("run", "greet", "--variables", '{"a": NaN, "b": ""}'), 2, "not JSON"),
        (("save", "greet", "{{", "--variables", "{}"), 2, "column 1"),
        (("save", "Greet", "x"), 2, "kebab-case"),
        (("save", "greet", "x", "--variables", "[" * 60_000), 2, "not JSON"),
        (("save", "greet", "x", "--domain", "builtin"), 2, "builtin"),
        (("save", "greet", "{{a}}", "--variables", '{"a": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}'), 5, "secret"),
        (("delete", "greet"), 2, "--domain"),
        (("delete", "greet", "--domain", "user"), 4, "no prompt 'greet'"),
        (("get", "greet", "--version", "99999999999999999999"), 2, "version is a number"),
        (("list", "--limit", "0"), 2, "limit"),
        (("export",), 2, "--to"),
        (("import", "nowhere.md"), 2, "nowhere.md"),
    ],
    ids=lambda one: " ".join(one)[:40] if isinstance(one, tuple) else None,
)
def test_what_is_wrong_is_told_with_the_exit_code_of_its_kind(
    shell: Shell, words: tuple[str, ...], code: int, told: str
) -> None:
    with library(shell) as cortex:
        cortex.prompts.save("greet", "{{a}} {{b}}", variables=["a", "b"])
    done = shell.run(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "ghp_" not in done.stderr
    with library(shell) as cortex:
        assert [(one.saved.version, one.saved.uses) for one in cortex.prompts.list().items] == [(1, 0)]


def test_export_writes_the_very_bytes_and_import_takes_them(shell: Shell, tmp_path: Path) -> None:
    content = "a {{b}}\r\n\x85 \u2028𝄞 no end"
    with library(shell) as cortex:
        cortex.prompts.save("one", content, tags=["x"])
        cortex.prompts.save("two", "2", domain="user")
        expected = cortex.prompts.export("one", format="yaml")
    printed = subprocess.run(
        [*cortex_command(), "prompt", "export", "one", "--format", "yaml"],
        cwd=shell.project,
        env={**os.environ, **shell.variables},
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert (printed.stdout, printed.stderr) == (expected, b"")
    folder = tmp_path / "out"
    assert shell.text("export", "--to", str(folder)) == f"2 files written to {folder}.\n"
    assert sorted(one.name for one in folder.iterdir()) == ["one.md", "two.md"]
    assert (folder / "one.md").read_bytes().endswith(content.encode())

    other = Shell(tmp_path / "other-home", shell.project, "prompt")
    assert other.text("import", str(folder)) == "created: one, two\n"
    with library(other) as cortex:
        assert cortex.prompts.get("one").content == content
        cortex.prompts.save("two", "another")
    done = other.run("import", str(folder))
    assert (done.returncode, done.stdout) == (6, "unchanged: one\nconflicts: two\n")
    (folder / "bad.md").write_text("{{")
    done = other.run("import", str(folder), "--replace", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["updated"], answer["unchanged"], answer["conflicts"]) == (2, ["two"], ["one"], [])
    assert "bad" in answer["problems"][0]


def test_templates_on_the_command_line(template_shell: Shell) -> None:
    shell = template_shell
    saved = shell.json("save", "note", "# {{title}}\n{{#each memories}}\n- {{memory.content}}\n{{/each}}\n")
    assert saved["saved"]["variables"][0]["name"] == "title"
    done = shell.run("render", "note", "--filter", "ns:decisions", "-l", "5")
    assert (done.returncode, done.stdout) == (0, "# \n")
    assert "No value was given for title." in done.stderr
    document = json.loads(shell.text("render", "note", "-v", "title=T", "--format", "json"))
    assert (document["template"], document["content"]) == ("note", "# T\n")
    made = shell.json("render", "note", "--variables", '{"title": "J"}', "--format", "xml")
    assert (made["format"], made["memories"], made["warnings"]) == ("xml", 0, [])
    assert "<content># J\n</content>" in made["output"]
    assert shell.run("render", "note", "--filter", "since:whenever").returncode == 2
    assert shell.text("delete", "note", "--domain", "project", "--yes") == "Deleted note (project), 1 version.\n"


# -- a person at a terminal ------------------------------------------------------------------------


class Terminal:
    """A process whose input and errors are a terminal, and whose output is a pipe."""

    def __init__(self, shell: Shell, *words: str) -> None:
        self._master, slave = pty.openpty()
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self.shown = ""
        self._process = subprocess.Popen(
            [*cortex_command(), *shell.command, *words],
            cwd=shell.project,
            env={**os.environ, **shell.variables, "TERM": "dumb"},
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until the terminal shows a text so many times, or for two minutes at most."""
        until = time.monotonic() + 120
        while self.shown.count(text) < times:
            assert select.select([self._master], [], [], max(0, until - time.monotonic()))[0], self.shown
            try:
                self.shown += os.read(self._master, 4096).decode()
            except OSError:
                pytest.fail(f"It ended before it showed {text!r}: {self.shown!r}")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> tuple[int, str]:
        try:
            output, _ = self._process.communicate(timeout=120)
        finally:
            self._process.kill()
            os.close(self._master)
        return self._process.returncode, output.decode()


@pytest.fixture
def asking(shell: Shell) -> Shell:
    with library(shell) as cortex:
        declared = [
            {"name": "who", "description": "whom to greet"},
            {"name": "tone", "choices": ["kind", "curt"]},
            {"name": "given"},
            {"name": "end", "default": "!"},
            {"name": "maybe", "required": False},
        ]
        cortex.prompts.save("greet", "{{who}} {{tone}} {{given}}{{end}}{{maybe}}", variables=declared)
    return shell


def test_a_person_is_asked_for_what_is_missing(asking: Shell) -> None:
    terminal = Terminal(asking, "run", "greet", "-v", "given=G")
    terminal.wait_for("who (whom to greet): ")
    terminal.type("\n")
    terminal.wait_for("who (whom to greet): ", times=2)
    terminal.type("Zoë {{tone}}\n")
    terminal.wait_for("tone (kind, curt): ")
    terminal.type("rude\n")
    terminal.wait_for("tone (kind, curt): ", times=2)
    terminal.type("curt\n")
    # Nothing but the prompt goes where it may be piped on.
    assert terminal.end() == (0, "Zoë {{tone}} curt G!\n")
    assert "end" not in terminal.shown
    assert "maybe" not in terminal.shown


def test_a_person_may_stop_and_nothing_is_printed(asking: Shell) -> None:
    terminal = Terminal(asking, "run", "greet")
    terminal.wait_for("who (whom to greet): ")
    terminal.type("\x04")
    assert terminal.end() == (130, "")
    with library(asking) as cortex:
        assert cortex.prompts.get("greet").uses == 0


@pytest.mark.parametrize("word", ["--no-input", "--json"])
def test_nobody_is_asked_who_does_not_want_to_be(asking: Shell, word: str) -> None:
    terminal = Terminal(asking, "run", "greet", word)
    terminal.wait_for("who, tone, given")
    assert terminal.end() == (2, "")
