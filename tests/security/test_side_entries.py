"""No secret gets in by a side entry: planted at every parameter and in every file, none is found again anywhere.

Tools, commands and columns are walked as they are registered, so that a new one is covered by itself.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import click
import pytest

from cases import each
from cortex_py import Cortex, NewMemory
from cortex_py.core.echo import cleaner_for
from cortex_py.core.errors import ContentBlocked, CortexError, InvalidInput
from cortex_py.core.store.database import Computed, Sql
from cortex_py.core.tables import TABLES
from cortex_py.surfaces.cli import cli, main
from cortex_py.surfaces.mcp.middleware.logs import JsonLines, PlainLines
from cortex_py.surfaces.mcp.registry import EVERY_TOOL
from cortex_py.surfaces.mcp.server import build_server
from inside import database_of
from planting import Garden, everything_in

from clients import Caller, connected
from helpers import git
from homes import opened
from stub_backend import StubBackend

# Texts that a caller asks to have filled in and given back: they hold the caller's own values, and are not kept.
GIVEN_BACK = frozenset((
    "prompt_run", "subcog_prompt_run", "subcog_template_render", "context_template_render", "prompt run",
    "template render",
))  # fmt: skip
# What an operator makes for others, printed and not kept; commands that serve until they are stopped.
NOT_RUN = frozenset(("serve", "ui", "license issue"))


@pytest.fixture
def garden() -> Garden:
    return Garden()


@pytest.fixture
def logs() -> Iterator[io.StringIO]:
    """What the server logs, in both forms."""
    lines = io.StringIO()
    handlers = [logging.StreamHandler(lines) for _ in range(2)]
    for handler, form in zip(handlers, (PlainLines(), JsonLines()), strict=True):
        handler.setFormatter(form)
        logging.getLogger().addHandler(handler)
    yield lines
    for handler in handlers:
        logging.getLogger().removeHandler(handler)


@pytest.fixture
def repository(project: Path, garden: Garden) -> Path:
    """A project with a secret in everything that can be read of it."""
    git(project, "init", "-q", "-b", "main")
    sources = {
        "app.py": f'TOKEN = "{garden.plant("a string", one_line=True)}"\n\ndef run() -> None: ...\n',
        "keys.py": f'KEY = """{garden.plant("a text over lines")}"""\n\ndef sign() -> None: ...\n',
        "names.py": f"def {garden.plant('a symbol', word=True).replace('-', '_').replace('.', '_')}() -> None: ...\n",
        ".env": f"API_TOKEN={garden.plant('an environment file', one_line=True)}\n",
        "config.yaml": f"database:\n  url: {garden.plant('a setting', one_line=True)}\n",
        "pyproject.toml": f'[project]\nname = "shop"\ndependencies = ["a @ {garden.plant("a manifest", word=True)}"]\n',
        "package.json": json.dumps(
            {"name": "shop", "dependencies": {"a": garden.plant("a dependency", one_line=True)}}
        ),
        "README.md": f"# Shop\n\nUse {garden.plant('prose', one_line=True)} to deploy.\n",
        f"{garden.plant('the name of a file', word=True)}.py": "VALUE = 1\n",
        ".cortex/prompts/greet.md": f"Hello {{{{name}}}}, use {garden.plant('a shared prompt', one_line=True)}\n",
        f".cortex/prompts/{garden.plant('the name of a prompt file', word=True)}.md": "Hello\n",
    }
    for number in range(22):
        sources[f"part{number}.py"] = f"# {garden.plant(f'a comment, {number}')}\ndef part{number}() -> None: ...\n"
    for name, text in sources.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    git(project, "add", "-A")
    author = f"--author={garden.plant('an author', word=True)} <a@example.org>"
    message = f"Add {garden.plant('a subject', one_line=True)}\n\n{garden.plant('a message')}\n"
    git(project, "commit", "-q", author, "-m", message)
    for number in range(22):
        (project / "part0.py").write_text(f"# {garden.plant(f'a change, {number}')}\n", "utf-8")
        git(project, "commit", "-q", "-a", "-m", f"Change\n\n{garden.plant(f'a message, {number}')}")
    git(project, "tag", _ref(garden, "a tag"))
    git(project, "checkout", "-q", "-b", f"feature/{_ref(garden, 'a git branch')}")
    git(project, "remote", "add", "origin", f"https://deploy:{_ref(garden, 'a remote')}@git.example.org/shop.git")
    return project


def _ref(garden: Garden, place: str) -> str:
    text = garden.plant(place, word=True)
    return text if ":" not in text else _ref(garden, place)


# -- through tools ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_nothing_of_a_secret_stays_or_comes_back(
    home: Path, repository: Path, garden: Garden, logs: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[tuple[str, str]] = []
    with opened(home, repository, audit="on", toolsets="all,memory-tool") as cortex:
        with connected(build_server(cortex), "auto") as caller:
            answers += _through_tools(caller, garden, _known(cortex))
            answers += _through_resources(caller, garden)
        cortex.contexts.initialize(mode="full")
        cortex.contexts.verify("`run` is defined in app.py. The settings are in config.yaml, tested in part1.py.")
        _edit_a_branch_file(cortex, home, garden)
        _import(cortex, tmp_path, garden)
        cortex.backups.create(garden.plant("the description of a snapshot"))
        list(cortex.backups.snapshots())
    monkeypatch.setattr("cortex_py.app.open_backend", lambda **_: StubBackend())
    monkeypatch.chdir(repository)
    answers += _through_commands(garden)
    answers += [("the logs", line) for line in logs.getvalue().splitlines()]
    found = garden.found_in(iter([*everything_in(home), *answers]))
    assert not found, f"{len(found)} of {len(garden.planted)}:\n" + "\n".join(found)


def _known(cortex: Cortex) -> dict[str, Any]:
    """Values under which tools find something, by the names of their parameters."""
    one, two = cortex.memories.capture_many([NewMemory(content="A note."), NewMemory(content="Another note.")])
    branch = cortex.contexts.create_branch("Prices")
    entity = cortex.graph.create("Redis", "Technology")
    other = cortex.graph.create("Kafka", "Technology")
    cortex.prompts.save("greet", "Hello {{name}}")
    cortex.memory_tool.create("/memories/a.md", "A note.")
    return {
        "content": "The shop uses Redis.",
        "query": "notes",
        "memory_id": one.id,
        "context_id": f"context_{two.id}",
        "branch_id": branch.id,
        "cortex_branch_id": branch.id,
        "git_branch_name": "main",
        "project_id": cortex.project.id,
        "project_path": str(cortex.project.root),
        "entity_id": entity.id,
        "from_entity": entity.id,
        "to_entity": other.id,
        "from_entity_id": entity.id,
        "to_entity_id": other.id,
        "source_id": entity.id,
        "target_id": other.id,
        "name": "greet",
        "action": "create",
        "role": "assistant",
        "branch_topic": "Prices",
        "path": "/memories/a.md",
        "file_text": "A note.",
        "old_str": "note",
        "new_str": "note",
        "insert_line": 0,
        "insert_text": "First.",
        "old_path": "/memories/none.md",
        "new_path": "/memories/b.md",
    }


def _through_tools(caller: Caller, garden: Garden, known: dict[str, Any]) -> list[tuple[str, str]]:
    answers = []
    listed = caller.portal.call(caller.client.list_tools)
    assert {tool.name for tool in listed} == {spec.name for spec in EVERY_TOOL}
    for tool in sorted(listed, key=lambda one: "purge" in one.name or "restore" in one.name):
        schema = tool.input_schema
        parameters = schema.get("properties", {})
        base = {name: _fitting(name, parameters[name], schema, known) for name in schema.get("required", ())}
        for name, wanted in {**parameters, "": {}}.items():
            for form, value in _planted(garden, f"{tool.name}({name})", wanted, schema):
                given = {**base, name: value} if name else {**base, str(value): "x"}
                choice = next((one for one in ("action", "command") if one in parameters), "")
                actions = _choices(parameters[choice], schema) if choice else [None]
                for action in actions:
                    # All that an action can take: what it does with the secret, it does only with the rest.
                    rest = _files(parameters, known) if choice == "command" else {}
                    told = _answer(
                        caller, tool.name, {**rest, **given, **({choice: action} if action and name != choice else {})}
                    )
                    if tool.name not in GIVEN_BACK or "error" in told[:30]:
                        answers.append((f"answer of {tool.name}({name}{form})", told))
    return answers


def _files(parameters: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The arguments with which every command of the tool for files does something."""
    return {name: known[name] for name in parameters if name in known}


def _answer(caller: Caller, tool: str, arguments: dict[str, Any]) -> str:
    from mcp.shared.exceptions import MCPError

    try:
        return str(caller.portal.call(caller.client.call_tool_mcp, tool, arguments))
    except MCPError as error:
        return f"error {error.error}"


def _through_resources(caller: Caller, garden: Garden) -> list[tuple[str, str]]:
    from mcp.shared.exceptions import MCPError

    answers = []
    for place in ("memory", "memory/decisions", "project", "search", "topics", "nothing", "user", "org"):
        for scheme in ("subcog", "cortex"):
            uri = f"{scheme}://{place}/{garden.plant(f'the address {scheme}://{place}', word=True)}"
            try:
                found = caller.portal.call(caller.client.read_resource, uri)
                # The protocol repeats the address beside each text.
                answers.append((f"resource {place}", str([one.text for one in found])))
            except MCPError as error:
                answers.append((f"resource {place}", str(error.error)))
    try:
        answers.append(
            ("prompt", str(caller.portal.call(caller.client.get_prompt, garden.plant("a prompt", word=True))))
        )
    except MCPError as error:
        answers.append(("prompt", str(error.error)))
    return answers


def _resolved(wanted: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter's schema without references and without "or nothing"."""
    while True:
        if "$ref" in wanted:
            wanted = schema["$defs"][wanted["$ref"].rpartition("/")[2]]
        elif options := [one for one in wanted.get("anyOf", ()) if one.get("type") != "null"]:
            wanted = next((one for one in options if one.get("type") in ("array", "object")), options[0])
        else:
            return wanted


def _choices(wanted: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    return list(_resolved(wanted, schema).get("enum", ()))


def _fitting(name: str, wanted: dict[str, Any], schema: dict[str, Any], known: dict[str, Any]) -> Any:
    wanted = _resolved(wanted, schema)
    if "enum" in wanted:
        return known[name] if known.get(name) in wanted["enum"] else wanted["enum"][0]
    if name in known:
        return known[name]
    kind = wanted.get("type")
    if kind == "array":
        return [_fitting(name.removesuffix("s"), wanted.get("items", {}), schema, known)]
    if kind == "object":
        return {
            inner: _fitting(inner, wanted["properties"][inner], schema, known) for inner in wanted.get("required", ())
        }
    return {"integer": 1, "number": 0.5, "boolean": True}.get(kind or "", "word")


def _planted(garden: Garden, place: str, wanted: dict[str, Any], schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values with a secret in them: as the text itself, within a sentence, in a list, as a value and as a key."""
    wanted = _resolved(wanted, schema)
    kind = wanted.get("type")
    if kind == "array":
        yield "[]", [garden.plant(place)]
    elif kind == "object":
        yield "{}", {"note": garden.plant(place)}
        yield "{} key", {garden.plant(place, word=True): "x"}
    elif not wanted:
        yield "", garden.plant(place, word=True)
    else:
        yield "", garden.plant(place)
        if kind == "string" and "enum" not in wanted:
            yield " in a sentence", f"Please take {garden.plant(place)} for now"


# -- through files ------------------------------------------------------------------------------------


def _edit_a_branch_file(cortex: Cortex, home: Path, garden: Garden) -> None:
    branch = cortex.contexts.create_branch(f"Prices with {garden.plant('a topic', one_line=True)}")
    cortex.contexts.append(branch.id, f"Use {garden.plant('a turn')}.", "user")
    path = cortex.contexts.check_branch(branch.id).path
    text = path.read_text("utf-8") + f"\nA person adds {garden.plant('an edit')}.\n"
    path.write_text(
        text.replace("Prices with", f"{garden.plant('an edited topic', word=True)} prices with", 1), "utf-8"
    )
    cortex.contexts.sync(branch.id)


def _import(cortex: Cortex, folder: Path, garden: Garden) -> None:
    lines = folder / f"{garden.plant('the name of an import', word=True)}.jsonl"
    given = {"content": garden.plant("an imported note"), "tags": [garden.plant("an imported tag", word=True)]}
    lines.write_text(json.dumps({**given, "source": garden.plant("an imported source", one_line=True)}) + "\n", "utf-8")
    cortex.backups.import_from([lines])


# -- through commands ---------------------------------------------------------------------------------


def _through_commands(garden: Garden) -> list[tuple[str, str]]:
    answers = []
    for path, command in _commands(cli, ()):
        name = " ".join(path)
        if name in NOT_RUN:
            continue
        wanted = [one for one in command.params if not getattr(one, "is_flag", False)]
        for parameter in wanted:
            for others in ({}, {"--json": ""}):
                if others and not any("--json" in one.opts for one in command.params):
                    continue
                words = list(path)
                value = garden.plant(f"{name} {parameter.name}", one_line=True)
                for one in wanted:
                    if one is parameter or one.required:
                        words += _typed(one, value if one is parameter else _usual(one))
                # A folder or file that the caller chose is named to them, and kept nowhere.
                given_back = name in GIVEN_BACK or isinstance(parameter.type, click.Path) or parameter.name == "output"
                told = _run([*words, *others], given_back=given_back)
                if parameter.name != "home":
                    answers.append((f"cortex {name} {parameter.name}", told))
    answers.append(("cortex", _run([garden.plant("a command", word=True)])))
    answers.append(("cortex recall", _run(["recall", f"--{garden.plant('an option', word=True)}"])))
    return answers


def _commands(group: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(group, click.Group):
        yield path, group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from _commands(command, (*path, name))


def _typed(parameter: click.Parameter, value: str) -> list[str]:
    return [value] if isinstance(parameter, click.Argument) else [f"{parameter.opts[0]}={value}"]


def _usual(parameter: click.Parameter) -> str:
    if isinstance(parameter.type, click.Choice):
        return str(parameter.type.choices[0])
    return "1" if parameter.type.name.startswith(("integer", "float")) else "greet"


def _run(words: list[str], *, given_back: bool = False) -> str:
    """What a command prints; of one that gives back what it was given, only what it says on standard error."""
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before, sys.argv = sys.argv, ["cortex", *words]
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b""))
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            main()
    except SystemExit:
        pass
    finally:
        sys.argv, sys.stdin = before, stdin
    told = (errors,) if given_back else (errors, output)
    return "\n".join(one.buffer.getvalue().decode() for one in told)


# -- the boundary of the store ------------------------------------------------------------------------


@pytest.mark.sqlite_only
def test_the_declared_columns_are_those_of_the_database(cortex: Cortex) -> None:
    sql_types = {"text": "TEXT", "json": "TEXT", "real": "REAL", "blob": "BLOB"}
    with database_of(cortex).read() as session:
        names = [row[0] for row in session.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found = {
            name: {(row[1], row[2], not row[3] and not row[5]) for row in session.rows(f"PRAGMA table_info({name})")}
            for name in names
            if not name.startswith(("sqlite_", "memory_text"))
        }
    declared = {
        name: {(one.name, sql_types.get(one.type, "INTEGER"), one.optional) for one in table.columns}
        for name, table in TABLES.items()
        if not table.postgres
    }
    assert found == declared
    texts = [one for table in TABLES.values() for one in table.columns if one.type in ("text", "json")]
    assert all(one.origin for one in texts)


@each(
    "sql",
    [
        "INSERT INTO branch (project_id, id, topic, status, created_at, updated_at) VALUES ('p', 'b', ?, 'x', 1, 1)",
        "insert or replace\ninto branch (topic) VALUES (?)",
        "REPLACE INTO branch (topic) VALUES (?)",
        "UPDATE OR IGNORE branch SET topic = ?",
        'UPDATE "branch" SET topic = ?',
        "/* everywhere: find */ UPDATE main.branch SET topic = ? WHERE id = 'b'",
        "WITH given AS (SELECT ? AS topic) INSERT INTO branch (topic) SELECT topic FROM given",
        "INSERT INTO memory_text (rowid, words) SELECT num, ? FROM memory",
    ],
)
def test_a_statement_that_writes_texts_past_the_screen_is_refused(cortex: Cortex, sql: str) -> None:
    writes = ("rows", (sql, ("x",))), ("run", (sql, ("x",))), ("run_many", (sql, [("x",)]))
    with database_of(cortex).write() as session:
        for name, given in writes:
            with pytest.raises(ValueError, match="screen"):
                getattr(session, name)(*given)
        session.run("DELETE FROM branch WHERE topic = ?", ("x",))
        assert session.rows("SELECT topic FROM branch WHERE topic = ?", ("x",)) == []


def test_what_nobody_thought_of_is_screened_when_it_is_stored(cortex: Cortex, garden: Garden) -> None:
    """As a new function would write that forgot to screen: below the library, straight into tables, in every way."""
    task = json.dumps({'say "it"': garden.plant("JSON", word=True)})
    topics = [garden.plant(f"topic {n}", one_line=True) for n in range(3)]
    with database_of(cortex).write() as session:
        row = {"project_id": cortex.project.id, "status": "x", "created_at": 1, "updated_at": 1}
        session.insert("branch", {**row, "id": "a", "topic": topics[0]})
        session.insert_many("branch", (*row, "id", "topic"), [(*row.values(), "b", topics[1])])
        session.update("branch", {"git_branch": garden.plant("git", word=True)}, "id = ?", ("a",))
        changed = Computed("? || topic", (topics[2],))
        assert session.update("branch", {"topic": changed, "updated_at": 2}, "id = ?", ("b",)) == 1
        session.update_many("branch", ["git_branch"], "id = ?", [(garden.plant("another", word=True), "b")])
        columns = ("project_id", "n", "memory_id", "kind", "task", "at")
        session.copy("reference", columns, [(cortex.project.id, 1, "m", "k", task, 1)])
        with pytest.raises(ValueError, match="branch has no summary_of"):
            session.insert("branch", {**row, "summary_of": "x"})
        with pytest.raises(KeyError):
            session.insert("sqlite_schema", {"sql": "x"})
    with database_of(cortex).read() as session:
        kept = session.rows("SELECT topic, git_branch FROM branch ORDER BY id")
        stored = session.rows("SELECT task FROM reference")[0][0]
    assert not garden.found_in(iter([("branch", str(kept)), ("reference", stored)]))
    assert all("[REDACTED:" in topic and branch for topic, branch in kept)
    assert json.loads(stored)


@pytest.mark.sqlite_only
def test_a_secret_is_cleaned_from_every_text_column_of_every_table(cortex: Cortex, garden: Garden) -> None:
    """Each declared table takes a row with a secret in each text that comes from outside."""
    screened = 0
    with database_of(cortex).write() as session:
        for name, table in TABLES.items():
            outside = {one.name for one in table.columns if one.origin in ("prose", "name", "found")}
            if table.postgres or not outside:
                continue
            row: dict[str, Sql] = {
                one.name: garden.plant(f"{name}.{one.name}", word=True)
                if one.name in outside
                else "x"
                if one.type in ("text", "json")
                else 7
                for one in table.columns
            }
            session.insert(name, row)
            (kept,) = session.rows(f"SELECT {', '.join(sorted(outside))} FROM {name} ORDER BY rowid DESC LIMIT 1")
            assert not garden.found_in(iter([(name, str(kept))])), name
            screened += len(outside)
    assert screened > 40


# -- the policy ---------------------------------------------------------------------------------------


def _side_entries(cortex: Cortex, garden: Garden) -> list[tuple[str, Any]]:
    secret = garden.plant("a side entry", word=True)
    known = cortex.contexts.create_branch("Prices").id
    return [
        ("branch_topic", lambda: cortex.contexts.create_branch(f"Prices {secret}")),
        ("git_branch_name", lambda: cortex.contexts.create_branch("Prices", git_branch=f"feature/{secret}")),
        ("git_branch_name", lambda: cortex.contexts.link(known, f"feature/{secret}")),
        ("description", lambda: cortex.backups.create(secret)),
        ("idempotency_key", lambda: cortex.memories.capture_many([NewMemory(content="a", idempotency_key=secret)])),
        ("git_branch", lambda: cortex.memories.capture("a", git_branch=f"feature/{secret}")),
        ("agent_id", lambda: cortex.memories.capture_many([NewMemory(content="a", agent_id=secret)])),
    ]


def test_side_entries_are_refused_where_the_policy_says_so(home: Path, project: Path, garden: Garden) -> None:
    with opened(home, project, secrets="block") as cortex:
        entries = _side_entries(cortex, garden)
        before = _state(cortex, home)
        for field, enter in entries:
            with pytest.raises(ContentBlocked) as refused:
                enter()
            assert refused.value.field == field
            assert refused.value.kinds
        assert _state(cortex, home) == before


def _state(cortex: Cortex, home: Path) -> tuple[object, ...]:
    files = sorted(str(path) for folder in ("memory", "backups") for path in (home / folder).rglob("*"))
    return cortex.memories.recall().total, cortex.contexts.branches(), files


def test_texts_are_kept_as_they_are_where_the_policy_allows_it(home: Path, project: Path, garden: Garden) -> None:
    with opened(home, project, secrets="allow") as cortex:
        secret = garden.plant("a topic", word=True)
        branch = cortex.contexts.create_branch(f"Prices {secret}", git_branch=f"feature/{secret}")
        assert (branch.topic, branch.git_branch) == (f"Prices {secret}", f"feature/{secret}")
        with pytest.raises(CortexError) as refused:
            cortex.memories.get(secret)
        assert secret not in str(refused.value)


def test_git_branches_with_secrets_in_their_names_stay_apart_and_alive(
    home: Path, project: Path, garden: Garden
) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "Begin")
    names = [f"feature/{_ref(garden, place)}" for place in ("one branch", "another branch")]
    with opened(home, project) as cortex:
        for name in names:
            git(project, "checkout", "-q", "-b", name)
            cortex.memories.capture(f"On {name.partition('/')[0]}")
        kept = [hit.memory.git_branch for hit in reversed(cortex.memories.recall().results)]
        assert len(set(kept)) == 2
        assert not garden.found_in(iter([("git branches", str(kept))]))
        assert cortex.memories.gc().memories_affected == 0
        git(project, "checkout", "-q", "main")
        git(project, "branch", "-q", "-D", names[0])
        gone = cortex.memories.gc(branch=kept[0])
        assert gone.memories_affected == 1
        assert not garden.found_in(iter([("gc", str(gone))]))


def test_a_topic_from_before_is_read_as_it_is(home: Path, project: Path, garden: Garden) -> None:
    topic = f"Prices {garden.plant('a topic of old', one_line=True)}"
    with opened(home, project) as cortex:
        branch = cortex.contexts.create_branch("Prices")
        with database_of(cortex).write() as session:
            session.as_is.run("UPDATE branch SET topic = ? WHERE id = ?", (topic, branch.id))
        assert cortex.contexts.get_branch(branch.id).topic == topic
        cortex.contexts.append(branch.id, "A turn.", "user")
        assert cortex.contexts.check_branch(branch.id).verified


# -- errors -------------------------------------------------------------------------------------------


def test_errors_show_no_secrets_and_end(garden: Garden) -> None:
    secret = garden.plant("an error", one_line=True)
    error = InvalidInput(f"{secret!r} is not a memory id.", remedy=f"Not {secret}.", field=secret)
    told = f"{error} {error!r} {error.message} {error.remedy} {error.field} {error.args}"
    assert not garden.found_in(iter([("the error", told)]))
    assert len(str(InvalidInput("word " * 100_000))) < 5_000


def test_pieces_of_what_a_caller_gave_are_not_shown(garden: Garden) -> None:
    secret = garden.plant("an argument", word=True)
    show = cleaner_for({"id": secret, "other": ["plain"]})
    told = show(f"{secret[:14]!r} is unknown, plain {secret.lower()[-12:]}")
    assert told == "'[REDACTED]' is unknown, plain [REDACTED]"
    assert show("plain words stay") == "plain words stay"


def test_traces_in_logs_show_where_and_not_what(garden: Garden) -> None:
    secret = garden.plant("a value", word=True)
    try:
        try:
            raise ValueError(f"first line\ninput_value={secret[:20]!r}")
        except ValueError as error:
            raise KeyError(secret) from error
    except KeyError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, __file__, 1, "failed", (), (KeyError, error, error.__traceback__)
        )
    for form in (PlainLines(), JsonLines()):
        line = form.format(record)
        assert "test_side_entries.py" in line
        assert "KeyError" in line
        assert not garden.found_in(iter([("the log", line)]))
