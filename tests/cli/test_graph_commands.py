"""`cortex graph …`: entities, relationships, ways and pictures on the command line, for people and as JSON."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from cases import each
from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.surfaces.cli.graph import graph_command
from cortex_py.surfaces.cli.output import print_json

from helpers import git
from shell import Shell

SENTENCE = "Alice from Anthropic uses Rust to build the Claude API."


@pytest.fixture
def shell(home: Path, project: Path, tmp_path: Path, model: Backend) -> Shell:
    """In a project whose one memory is the published document's sentence, with nothing but git on the path."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "git").symlink_to(_where("git"))
    git(project, "init", "-q", "-b", "main")
    with Cortex.open(home, project=project, backend=model) as cortex:
        cortex.memories.capture(SENTENCE, namespace="decisions")
    return Shell(home, project, "graph", PATH=str(tools))


def _where(program: str) -> Path:
    return next(found for folder in os.environ["PATH"].split(os.pathsep) if (found := Path(folder, program)).is_file())


@pytest.mark.slow
def test_entities_on_the_command_line(shell: Shell) -> None:
    made = shell.json("create", "Zoë [bold]", "--type", "person", "--property", "team=core=1", "--property", "x=")
    assert (made["id"], made["name"], made["type"]) == ("entity_zoe_bold", "Zoë [bold]", "Person")
    assert (made["properties"], made["aliases"], made["mention_count"]) == ({"team": "core=1", "x": ""}, [], 0)
    assert datetime.fromisoformat(made["created_at"]).tzinfo is not None
    assert shell.text("create", "Postgres", "--type", "Technology") == "entity_postgres\n"
    shell.text("create", "PostgreSQL", "--type", "Technology")

    listed = shell.json("entities")
    assert [one["name"] for one in listed["entities"]] == [
        "Alice",
        "Anthropic",
        "Claude API",
        "Postgres",
        "Rust",
        "Zoë [bold]",
    ]
    assert listed["total"] == 6
    some = shell.json("entities", "--type", "technology", "--prefix", "p", "-l", "1")
    assert ([one["id"] for one in some["entities"]], some["total"]) == (["entity_postgres"], 1)
    assert [one["name"] for one in shell.json("entities", "--limit", "1", "--offset", "1")["entities"]] == ["Anthropic"]
    table = shell.text("entities")
    assert "Zoë [bold]" in table
    assert len(table.splitlines()) == 6

    view = shell.json("get", "rust")
    assert (view["entity"]["id"], view["entity"]["mention_count"]) == ("entity_rust", 1)
    assert [(one["start"], one["end"]) for one in view["mentions"]] == [(26, 30)]
    assert [(one["source_id"], one["type"]) for one in view["relationships"]] == [("entity_alice", "Uses")]
    shown = shell.text("get", "Rust")
    assert "Rust  Technology  entity_rust" in shown
    assert f"in {view['mentions'][0]['memory_id']} at 26" in shown
    assert "Uses" in shown
    assert "also: PostgreSQL" in shell.text("get", "Postgres")
    assert '{"team": "core=1", "x": ""}' in shell.text("get", "entity_zoe_bold")

    assert shell.text("delete", "Postgres") == "Removed entity_postgres.\n"
    assert shell.json("delete", "Zoë [bold]")["id"] == "entity_zoe_bold"
    assert shell.json("entities")["total"] == 4


@pytest.mark.soak
def test_what_a_text_names_and_states_is_shown_and_kept_when_asked(shell: Shell) -> None:
    text = "Bob from Initech uses PostgreSQL."
    found = shell.json("extract", "-", given=text)
    assert [one["name"] for one in found["extraction"]["entities"]] == ["Bob", "Initech", "PostgreSQL"]
    assert {one["type"] for one in found["extraction"]["relationships"]} == {"WorksAt", "Uses"}
    assert (found["ids"], found["method"]) == ([], "local")
    told = shell.text("extract", text)
    assert "Bob WorksAt Initech (" in told
    assert "Person" in told
    assert shell.json("extract", text, "--min-confidence", "1")["extraction"]["entities"] == []
    assert shell.json("entities")["total"] == 4
    assert shell.json("extract", text, "--store")["ids"] == ["entity_bob", "entity_initech", "entity_postgresql"]
    assert shell.json("entities")["total"] == 7


@pytest.mark.soak
def test_merges_are_tried_done_and_taken_back(shell: Shell) -> None:
    shell.text("create", "Rustlang", "--type", "Technology")
    tried = shell.text("merge", "Rust", "Rustlang", "--name", "Rust language", "--dry-run")
    assert tried == "Would merge entity_rustlang into entity_rust (Rust language).\n"
    assert shell.json("entities")["total"] == 5
    done = shell.text("merge", "Rust", "Rustlang", "--name", "Rust language")
    assert done.startswith("Merged entity_rustlang into entity_rust (Rust language).\nmerge_")
    assert shell.json("get", "Rustlang")["entity"]["name"] == "Rust language"
    assert shell.text("unmerge", done.split()[-1]) == "Taken back.\n"
    assert shell.json("entities")["total"] == 5

    merged = shell.json("merge", "Rust", "Rustlang")
    assert (merged["entity"]["id"], [one["id"] for one in merged["merged"]]) == ("entity_rust", ["entity_rustlang"])
    assert (merged["mentions_moved"], merged["relationships_moved"], merged["relationships_dropped"]) == (0, 0, 0)
    assert shell.json("unmerge", merged["merge_id"]) == {"merge_id": merged["merge_id"], "undone": True}
    again = shell.run("unmerge", merged["merge_id"])
    assert (again.returncode, again.stdout) == (2, "")


def test_likely_duplicates_are_shown(shell: Shell) -> None:
    for name in ("Jon Smith", "John Smith"):
        shell.text("create", name, "--type", "Person")
    found = shell.json("duplicates", "--limit", "5")
    assert [set(one["ids"]) for one in found] == [{"entity_jon_smith", "entity_john_smith"}]
    assert 0 < found[0]["confidence"] <= 1
    assert "entity_jon_smith" in shell.text("duplicates")


def test_what_nothing_leads_to_is_shown_and_removed(shell: Shell) -> None:
    shell.text("create", "Lonely", "--type", "Concept")
    assert shell.text("orphans") == "entity_lonely\tLonely\n"
    kept = shell.json("orphans")
    assert ([one["id"] for one in kept["orphans"]], kept["deleted"]) == (["entity_lonely"], False)
    assert shell.text("orphans", "--delete") == "entity_lonely\tLonely\n"
    assert shell.json("orphans", "--delete") == {"orphans": [], "deleted": True}


def test_relationships_on_the_command_line(shell: Shell) -> None:
    shell.text("create", "Acme", "--type", "Organization")
    made = shell.json(
        "relate", "Alice", "worksat", "Acme", "--from", "2020-01-01", "--to", "2022-01-01", "--property", "as=dev"
    )
    assert (made["source_id"], made["type"], made["target_id"]) == ("entity_alice", "WorksAt", "entity_acme")
    assert (made["valid_from"][:10], made["valid_to"][:10], made["properties"]) == (
        "2020-01-01",
        "2022-01-01",
        {"as": "dev"},
    )
    assert shell.json("relationships")["total"] == 3
    then = shell.json("relationships", "--entity", "Acme", "--as-of", "2021-01-01")
    assert [one["id"] for one in then["relationships"]] == [made["id"]]
    uses = shell.text("relationships", "--type", "uses", "-l", "1")
    assert "entity_rust" in uses
    assert len(uses.splitlines()) == 1

    id = shell.text("relate", "Acme", "Uses", "Rust").strip()
    assert id.startswith("relationship_")
    assert shell.json("unrelate", id, "--to", "1d")["valid_to"]
    assert shell.text("unrelate", made["id"]) == f"Ended {made['id']}.\n"
    assert shell.json("relationships", "--as-of", "2021-01-01", "--entity", "Acme")["total"] == 1
    assert shell.run("unrelate", made["id"]).returncode == 4


def test_what_memories_suggest_is_told_with_the_reason(shell: Shell) -> None:
    told = shell.json("infer", "Alice", "Rust", "Anthropic")
    assert {(one["source"]["name"], one["type"], one["target"]["name"]) for one in told} == {
        ("Alice", "Uses", "Rust"),
        ("Alice", "WorksAt", "Anthropic"),
    }
    assert f"Alice Uses Rust ({told[0]['confidence']:.2f}): {SENTENCE}" in shell.text("infer", "Alice", "Rust")
    assert shell.json("infer", "Alice", "Rust", "--store", "--min-confidence", "1") == []


@pytest.mark.soak
def test_ways_on_the_command_line(shell: Shell) -> None:
    near = shell.json("neighbors", "Rust", "--depth", "2")
    assert near["entity"]["id"] == "entity_rust"
    assert {(one["entity"]["name"], one["distance"]) for one in near["neighbors"]} == {
        ("Alice", 1),
        ("Anthropic", 2),
        ("Claude API", 2),
    }
    step = near["neighbors"][0]["step"]
    assert (step["edge"]["type"], step["edge"]["source_id"], step["forward"]) == ("Uses", "entity_alice", False)
    assert "Alice" in shell.text("neighbors", "Rust")

    assert shell.text("path", "Rust", "Anthropic").splitlines() == [
        "entity_rust <-Uses- entity_alice",
        "entity_alice -WorksAt-> entity_anthropic",
    ]
    way = shell.json("path", "Rust", "Anthropic")
    assert (way["found"], [one["name"] for one in way["entities"]]) == (True, ["Rust", "Alice", "Anthropic"])
    assert [step["edge"]["type"] for step in way["steps"]] == ["Uses", "WorksAt"]
    assert shell.text("path", "Rust", "Anthropic", "--max-hops", "1") == "There is no path of at most 1 hop.\n"
    assert shell.json("path", "Rust", "Anthropic", "--max-hops", "1")["found"] is False

    stats = shell.json("stats")
    assert (stats["entities"], stats["relationships"], stats["mentions"], stats["orphans"]) == (4, 3, 4, 0)
    assert stats["by_entity_type"] == {"Technology": 2, "Organization": 1, "Person": 1}
    assert stats["busiest"][0][0]["id"] == "entity_alice"
    assert shell.run("stats").stderr.splitlines()[0] == "4 entities, 3 relationships, 4 mentions"


# -- pictures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        ((), "flowchart LR"),
        (("--format", "dot"), "digraph"),
        (("--format", "json"), '{"nodes"'),
        (("--json",), '{"nodes"'),
        (("--entity", "Alice", "--depth", "1", "-l", "3", "--type", "Person", "--type", "technology"), "flowchart LR"),
    ],
)
def test_a_drawing_is_printed(shell: Shell, words: tuple[str, ...], begins: str) -> None:
    drawn = shell.text("visualize", *words)
    assert drawn.startswith(begins)
    assert "Alice" in drawn
    assert ("Anthropic" in drawn) is ("--type" not in words)


@pytest.mark.parametrize(
    ("name", "begins"),
    [("graph.mmd", "flowchart"), ("graph.txt", "flowchart"), ("g.dot", "digraph"), ("g.JSON", '{"nodes"')],
)
def test_a_drawing_is_written_in_the_form_its_name_asks_for(shell: Shell, name: str, begins: str) -> None:
    assert shell.text("visualize", "-o", name) == f"{name}\n"
    assert (shell.project / name).read_text("utf-8").startswith(begins)


def _put_dot(shell: Shell, ending: int = 0) -> Callable[[], tuple[str, str]]:
    """A program of Graphviz's name that notes how it was called, what it was given, and writes a picture."""
    given, called = shell.home.parent / "given", shell.home.parent / "called"
    program = Path(shell.variables["PATH"]) / "dot"
    program.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\npathlib.Path({str(called)!r}).write_text(' '.join(sys.argv[1:]))\n"
        f"pathlib.Path({str(given)!r}).write_bytes(sys.stdin.buffer.read())\n"
        f"if {ending}:\n    sys.exit({ending})\npathlib.Path(sys.argv[-1]).write_text('<svg/>')\n",
        "utf-8",
    )
    program.chmod(0o755)
    return lambda: (called.read_text("utf-8"), given.read_text("utf-8"))


@pytest.mark.parametrize("name", ["graph.svg", "graph.PNG", "graph.pdf"])
def test_a_picture_is_drawn_by_graphviz(shell: Shell, name: str) -> None:
    noted = _put_dot(shell)
    shell.text("create", "Zoë", "--type", "Person")
    done = shell.run("visualize", "-o", name, "--format", "mermaid")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{name}\n", "")
    assert (shell.project / name).read_text("utf-8") == "<svg/>"
    called, given = noted()
    assert called == f"-T{name[-3:].lower()} -o {name}"
    assert given.startswith("digraph")
    assert "Zoë" in given


@pytest.mark.parametrize("installed", [False, True], ids=["no Graphviz", "a Graphviz that fails"])
def test_mermaid_is_written_where_no_picture_can_be(shell: Shell, installed: bool) -> None:
    if installed:
        _put_dot(shell, ending=1)
    done = shell.run("visualize", "-o", "graph.svg")
    assert (done.returncode, done.stdout) == (0, "graph.mmd\n")
    assert "Mermaid is written instead" in done.stderr
    assert (shell.project / "graph.mmd").read_text("utf-8").startswith("flowchart LR")
    assert not (shell.project / "graph.svg").exists()


# -- faults ------------------------------------------------------------------------------------------


@pytest.mark.slow
@each(
    ("words", "code", "told"),
    [
        (("get", "nobody"), 4, "There is no entity 'nobody'"),
        (("delete", "nobody"), 4, "There is no entity"),
        (("neighbors", "nobody"), 4, "There is no entity"),
        (("path", "Alice", "nobody"), 4, "There is no entity"),
        (("visualize", "--entity", "nobody"), 4, "There is no entity"),
        (("merge", "Alice", "nobody"), 4, "There is no entity"),
        (("infer", "Alice", "nobody"), 4, "There is no entity"),
        (("relate", "Alice", "Uses", "nobody"), 4, "There is no entity"),
        (("relationships", "--entity", "nobody"), 4, "There is no entity"),
        (("unrelate", "relationship_0"), 4, "There is no relationship"),
        (("unmerge", "merge_0"), 2, "is not known"),
        (("unmerge", "merge_0", "--json"), 2, "is not known"),
        (("create", " ", "--type", "Person"), 2, "name is empty"),
        (("create", "X"), 2, "--type"),
        (("create", "X", "--type", "Animal"), 2, "Animal"),
        (("create", "X", "--type", "Person", "--property", "team"), 2, "not NAME=VALUE"),
        (("entities", "--type", "Animal"), 2, "Animal"),
        (("entities", "-l", "0"), 2, "out of range"),
        (("entities", "--offset", "-1"), 2, "out of range"),
        (("extract", ""), 2, "content is empty"),
        (("extract", "x", "--min-confidence", "2"), 2, "out of range"),
        (("merge", "Alice"), 2, "fewer than two"),
        (("merge",), 2, "ENTITIES"),
        (("infer", "Alice"), 2, "fewer than two"),
        (("relate", "Alice", "Eats", "Rust"), 2, "Eats"),
        (("relate", "Alice", "Uses", "Alice"), 2, "same entity"),
        (("relate", "Alice", "Uses", "Rust", "--from", "soon"), 2, "soon"),
        (("relationships", "--as-of", "soon"), 2, "soon"),
        (("neighbors", "Alice", "--depth", "4"), 2, "out of range"),
        (("path", "Alice", "Rust", "--max-hops", "0"), 2, "out of range"),
        (("visualize", "--format", "png"), 2, "png"),
        (("visualize", "-o", "no/such/folder/graph.mmd"), 2, "graph.mmd"),
        (("visualize", "-o", "no/such/folder/graph.svg"), 2, "graph.mmd"),
        (("teleport",), 2, "No such command"),
    ],
)
def test_errors_are_one_line_with_a_remedy_and_an_exit_code(
    shell: Shell, words: tuple[str, ...], code: int, told: str
) -> None:
    done = shell.run(*words)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert shell.json("stats")["entities"] == 4


def test_every_command_has_help(shell: Shell) -> None:
    shown = shell.text("--help")
    for name, command in graph_command.commands.items():
        assert name in shown
        assert command.help


# -- JSON --------------------------------------------------------------------------------------------


class _Pair(NamedTuple):
    left: object
    right: object


@dataclass(frozen=True, slots=True)
class _Whole:
    at: datetime
    parts: tuple[object, ...]
    named: MappingProxyType[str, object]
    kinds: frozenset[str]


def test_every_kind_of_result_has_a_json_form(capsys: pytest.CaptureFixture[str]) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    inner = _Whole(moment, (), MappingProxyType({}), frozenset())
    print_json(_Whole(moment, (inner, _Pair(moment, [inner])), MappingProxyType({"é": inner}), frozenset("ba")))
    plain = {"at": "2026-01-02T03:04:05Z", "parts": [], "named": {}, "kinds": []}
    assert json.loads(capsys.readouterr().out) == {
        "at": "2026-01-02T03:04:05Z",
        "parts": [plain, {"left": "2026-01-02T03:04:05Z", "right": [plain]}],
        "named": {"é": plain},
        "kinds": ["a", "b"],
    }
