"""Commands that tidy up: consolidate, enrich, supersede, doctor and `gc --suggest`, for people and as JSON."""

import json
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex, Memory
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.surfaces import cli
from llm.chat_server import ChatServer, chat, refusal

from helpers import FakeClock
from shell import Shell
from terminal import at_terminal

SAME = (
    "Use PostgreSQL for primary storage because of JSONB support",
    "We use PostgreSQL as the primary storage because it supports JSONB",
)
NOWHERE = "0" * 40
KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def shell(home: Path, project: Path) -> Shell:
    return Shell(home, project)


Kept = Callable[..., list[Memory]]


@pytest.fixture
def kept(home: Path, project: Path, model: Backend) -> Kept:
    """Puts texts into the memory and returns the records."""

    def capture(*contents: str, namespace: str = "decisions", **more: Any) -> list[Memory]:
        with Cortex.open(home, project=project, backend=model) as cortex:
            return [cortex.memories.capture(content, namespace=namespace, **more) for content in contents]

    return capture


@pytest.fixture
def seen(home: Path, project: Path, model: Backend) -> Callable[[], dict[str, Memory]]:
    """All that recall shows now, by id."""

    def look() -> dict[str, Memory]:
        with Cortex.open(home, project=project, backend=model) as cortex:
            return {one.memory.id: one.memory for one in cortex.memories.recall().results}

    return look


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line without a process of its own: exit code, output and errors."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("COLUMNS", "60")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cortex", *words])
        capsys.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


# -- consolidate -------------------------------------------------------------------------------------


def test_memories_are_consolidated_and_taken_apart_again(
    shell: Shell, kept: Kept, seen: Callable[[], dict[str, Memory]]
) -> None:
    first, second = kept(*SAME)
    (elsewhere,) = kept("Zoë deploys on Fridays", namespace="learnings")
    tried = shell.text("consolidate", "decisions", "--dry-run")
    heading, content, count = tried.splitlines()
    assert heading.split()[0] == "decisions"
    assert heading.endswith(f"{first.id[:16]}, {second.id[:16]}")
    assert "PostgreSQL" in content
    assert count == "1 group found."
    assert seen().keys() == {first.id, second.id, elsewhere.id}

    done = shell.json("consolidate")
    (group,) = done["groups"]
    result = group["result_id"]
    assert (group["memories"], group["namespace"], group["method"]) == ([first.id, second.id], "decisions", "local")
    assert (group["content"], done["strategy"], done["dry_run"]) == (content, "merge", False)
    assert (done["skipped"], done["warnings"]) == (0, [])
    assert seen().keys() == {result, elsewhere.id}

    undone = shell.json("consolidate", "--undo", result)
    assert (undone["result_id"], set(undone["restored"])) == (result, {first.id, second.id})
    assert seen().keys() == {first.id, second.id, elsewhere.id}


def test_every_option_of_a_consolidation_is_heeded(run: Run, kept: Kept, seen: Callable[[], dict[str, Memory]]) -> None:
    same, alike = kept(*SAME, tags=["database"])
    repeat, _ = kept(SAME[0].lower() + "!", "Deploy on Fridays")

    def groups(*words: str) -> list[set[str]]:
        code, out, err = run("consolidate", "decisions", "--dry-run", "--json", *words)
        assert (code, err) == (0, "")
        return [set(one["memories"]) for one in json.loads(out)["groups"]]

    assert groups() == groups("--strategy", "merge", "--method", "local") == [{same.id, alike.id, repeat.id}]
    assert groups("--strategy", "dedupe") == [{same.id, repeat.id}]
    assert groups("--strategy", "summarize") == [{same.id, alike.id, repeat.id}]
    assert groups("-q", "tag:database") == groups("--query", "tag:database storage") == [{same.id, alike.id}]
    assert groups("-q", "tag:nothing") == []

    code, out, _ = run("consolidate", "decisions", "--strategy", "dedupe")
    assert code == 0
    heading, *_, count = out.splitlines()
    assert count == "1 group consolidated."
    made = heading.split(" -> ")[1]
    assert run("consolidate", "decisions", "--strategy", "dedupe")[:2] == (0, "No memories say the same.\n")
    assert run("consolidate", "--undo", made)[:2] == (0, f"2 memories are back; {made} is deleted.\n")
    assert {same.id, alike.id, repeat.id} <= seen().keys()
    assert run("consolidate", "--undo", same.id)[0] == 2


def test_undoing_goes_alone(run: Run, kept: Kept, seen: Callable[[], dict[str, Memory]]) -> None:
    kept(*SAME)
    made = json.loads(run("consolidate", "decisions", "--json")[1])["groups"][0]["result_id"]
    # Left as it is: a trial that really undoes, or an empty variable that consolidates everything, would be a bad
    # surprise.
    for words in (("--dry-run",), ("decisions",), ("-q", "x")):
        code, out, err = run("consolidate", "--undo", made, *words)
        assert (code, out) == (2, "")
        assert "--undo goes alone" in err
    assert list(seen()) == [made]
    kept("Deploy on Fridays", "Deploy on Fridays")
    assert run("consolidate", "--undo", "")[:2] == (2, "")
    assert len(seen()) == 3


def test_progress_is_for_people_who_watch(shell: Shell, kept: Kept) -> None:
    kept(*SAME)
    watched = at_terminal(shell, "consolidate", "--dry-run", pipe=True)
    assert watched.piped.endswith("1 group found.\n")
    assert "Consolidating" in watched.screen
    for option in ("--json", "--quiet"):
        assert at_terminal(shell, "consolidate", "--dry-run", option, pipe=True).screen == ""


# -- enrich ------------------------------------------------------------------------------------------


def test_every_option_of_an_enrichment_is_heeded(run: Run, kept: Kept, seen: Callable[[], dict[str, Memory]]) -> None:
    near, memory = kept(SAME[1], SAME[0])

    def enriched(*words: str) -> Any:
        code, out, err = run("enrich", memory.id[:16], "--json", *words)
        assert (code, err) == (0, "")
        return json.loads(out)

    tried = enriched("--dry-run", "--context", "--method", "local")
    assert tried["tags_added"]
    assert tried["structure_improved"] is True
    assert f"subcog://memory/{near.id}" in tried["context_added"]
    assert (tried["memory"]["version"], tried["method"], tried["warnings"]) == (1, "local", [])
    assert seen()[memory.id] == memory
    nothing = enriched("--no-tags", "--no-structure", "--no-context")
    assert (nothing["tags_added"], nothing["structure_improved"], nothing["diff"]) == ([], False, "")
    assert seen()[memory.id] == memory
    tags = enriched("--no-structure", "--tags")
    assert (tags["memory"]["version"], tags["tags_added"], tags["diff"]) == (2, tried["tags_added"], "")
    assert seen()[memory.id].tags == tuple(tags["tags_added"])
    assert enriched("--no-tags", "--structure", "--context")["diff"] == tried["diff"]

    (other,) = kept("We decided to use Redis because it is fast.")
    code, out, _ = run("enrich", other.id)
    assert code == 0
    first, *diff = out.splitlines()
    assert first.startswith("Tags added: ")
    assert "redis" in first
    assert "-We decided to use Redis because it is fast." in diff
    assert run("enrich", other.id)[:2] == (0, "Tags added: none\nThe content stays as it is.\n")


# -- supersede ---------------------------------------------------------------------------------------


def test_a_memory_takes_the_place_of_another(
    shell: Shell, run: Run, kept: Kept, seen: Callable[[], dict[str, Memory]]
) -> None:
    (old,) = kept("Production runs PostgreSQL 15")
    told = shell.run("capture", "-n", "decisions", "Production runs PostgreSQL 16")
    newer = told.stdout.strip()
    assert (told.returncode, told.stderr) == (0, f"Contradicts {old.id[:16]} (version: 15 / 16).\n")
    assert run("supersede", old.id[:16], newer) == (0, f"{old.id[:16]} is superseded by {newer[:16]}.\n", "")
    assert list(seen()) == [newer]

    captured = run("capture", "-n", "decisions", "Production runs PostgreSQL 17", "--supersedes", newer, "--json")
    assert (captured[0], captured[2]) == (0, "")
    newest = json.loads(captured[1])
    assert "conflicts_with" not in newest
    assert list(seen()) == [newest["id"]]
    contradicting = json.loads(run("capture", "-n", "decisions", "Production runs PostgreSQL 18", "--json")[1])
    assert [one["memory_id"] for one in contradicting["conflicts_with"]] == [newest["id"]]
    shown = json.loads(run("get", newer, "--json")[1])
    assert (shown["status"], shown["superseded_by"]) == ("superseded", newest["id"])
    over = json.loads(run("supersede", newest["id"], contradicting["id"], "--json")[1])
    assert (over["id"], over["status"], over["superseded_by"]) == (newest["id"], "superseded", contradicting["id"])
    listed = json.loads(run("recall", "-f", "status:superseded", "--json")[1])
    assert {one["id"] for one in listed["results"]} == {old.id, newer, newest["id"]}
    # The way back is closed: what was replaced does not replace its own successor.
    assert run("supersede", contradicting["id"], old.id)[0] == 2


# -- doctor ------------------------------------------------------------------------------------------


def test_all_is_well_and_nothing_leaves_this_machine(run: Run, kept: Kept) -> None:
    kept(*SAME)
    code, told, err = run("doctor")
    assert (code, err) == (0, "")
    assert [line.split()[:2] for line in told.splitlines() if "ok" in line] == [
        ["store", "ok"],
        ["encryption", "ok"],
        ["embedding", "model"],
        ["language", "model"],
        ["snapshots", "ok"],
        ["personal", "data"],
    ]
    assert "Nothing is sent to any other machine." in told.splitlines()
    assert told.splitlines()[-1].startswith("This home: ")


def test_what_leaves_this_machine_is_told_and_no_key_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"PROVIDER": "openai", "MODEL": "some-model", "URL": "https://models.example/v1", "API_KEY": KEY}
    for name, value in settings.items():
        monkeypatch.setenv(f"CORTEX_LLM_{name}", value)
    monkeypatch.setenv("CORTEX_EMBEDDING_API_KEY", KEY)
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    assert "Sends the memories" in out
    assert "models.example" in out
    assert KEY not in out
    code, out, _ = run("doctor", "--json")
    report = json.loads(out)
    assert (code, [one["well"] for one in report["checks"]]) == (0, [True] * 6)
    assert [(one["purpose"], one["host"]) for one in report["outbound"]] == [("language model", "models.example")]
    assert KEY not in out


@pytest.mark.parametrize(
    ("variables", "wrong", "told"),
    [
        ({"CORTEX_EMBEDDING_MODEL": "all-MiniLM-L6-v2"}, "embedding model", "Remove embedding_model"),
        ({"CORTEX_LLM_PROVIDER": "openai", "CORTEX_LLM_MODEL": "m"}, "language model", "CORTEX_LLM_API_KEY"),
        (
            {
                "CORTEX_LLM_PROVIDER": "openai",
                "CORTEX_LLM_MODEL": "m",
                "CORTEX_LLM_URL": f"https://me:{KEY}@models.example/v1",
            },
            "language model",
            "llm_url",
        ),
    ],
    ids=["no model", "no key", "a key in the address"],
)
def test_what_is_wrong_is_told_and_is_the_exit_code(
    run: Run, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wrong: str, told: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    code, out, _ = run("doctor", "--json")
    report = json.loads(out)
    assert (code, [one["name"] for one in report["checks"] if not one["well"]]) == (7, [wrong])
    assert told in next(one["told"] for one in report["checks"] if one["name"] == wrong)
    assert report["outbound"] == []
    code, shown, _ = run("doctor")
    assert code == 7
    assert any(line.startswith(wrong) and "\t!\t" in line for line in shown.splitlines())
    assert KEY not in out + shown


# -- gc --suggest ------------------------------------------------------------------------------------


@pytest.fixture
def untidy(home: Path, project: Path, model: Backend, kept: Kept) -> dict[str, list[Memory]]:
    """A memory with one trouble of each kind."""
    clock = FakeClock()
    clock.moment = datetime.now(UTC) - timedelta(days=200)
    with Cortex.open(home, project=project, clock=clock, backend=model) as cortex:
        stale = cortex.memories.capture("The office cat is called Minka", namespace="context")
        clock.advance(hours=1)
        unseen = cortex.memories.capture("Billing closes the books in March", namespace="context")
        assert cortex.memories.recall(stale.content, limit=1).results[0].memory == stale
    same = kept(*SAME)
    versions = kept("Production runs MongoDB 5", "Production runs MongoDB 6", namespace="config")
    large = kept("Lorem ipsum dolor sit amet. " * 1_000, namespace="learnings")
    return {
        "duplicate": same,
        "contradicted": versions,
        "stale": [stale],
        "never-recalled": [unseen],
        "oversized": large,
    }


def test_what_is_suggested_mends_it_when_it_is_done(
    run: Run, untidy: dict[str, list[Memory]], seen: Callable[[], dict[str, Memory]]
) -> None:
    before = seen()
    code, out, err = run("gc", "--suggest", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert {one["trouble"]: one["memories"] for one in found} == {
        trouble: [memory.id for memory in memories] for trouble, memories in untidy.items()
    }
    assert all(one["reason"] for one in found)
    code, shown, hint = run("gc", "--suggest")
    # Whole, however narrow the window: they are there to be copied.
    assert all(f"  {one['remedy']}\n" in shown for one in found)
    assert hint == f"{len(found)} suggestions; nothing was changed.\n"
    assert seen() == before

    for one in found:
        program, *words = shlex.split(one["remedy"])
        assert program == "cortex"
        code, _, err = run(*words)
        assert (code, err) == (0, ""), one
    assert [one["trouble"] for one in json.loads(run("gc", "--suggest", "--json")[1])] == ["oversized"]
    (newer,) = [memory.id for memory in untidy["contradicted"][1:]]
    assert {newer, untidy["oversized"][0].id} < seen().keys()
    assert len(seen()) == 3


def test_nothing_is_suggested_for_a_tidy_memory(run: Run, kept: Kept) -> None:
    kept("Deploy on Fridays", "Billing closes the books in March")
    assert run("gc", "--suggest") == (0, "", "Nothing needs tidying up.\n")
    assert json.loads(run("gc", "--suggest", "--json")[1]) == []


# -- faults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("consolidate", "thoughts"), 2, "There is no namespace 'thoughts'"),
        (("consolidate", "--strategy", "mix"), 2, "mix"),
        (("consolidate", "--method", "magic"), 2, "magic"),
        (("consolidate", "-q", "since:never"), 2, "never"),
        (("consolidate", "decisions", "learnings"), 2, "learnings"),
        (("consolidate", "--undo", NOWHERE), 4, "There is no memory"),
        (("consolidate", "--undo", "the last one"), 2, "is not a memory id"),
        (("consolidate", "--method", "llm", "--json"), 10, "No language model is configured"),
        (("enrich",), 2, "MEMORY_ID"),
        (("enrich", NOWHERE, "--json"), 4, "There is no memory"),
        (("enrich", "the last one"), 2, "is not a memory id"),
        (("enrich", "$first", "--method", "llm"), 10, "No language model is configured"),
        (("enrich", "$first", "--method", "magic"), 2, "magic"),
        (("supersede", "$first"), 2, "NEWER"),
        (("supersede", "$first", NOWHERE, "--json"), 4, "There is no memory"),
        (("supersede", NOWHERE, "$first"), 4, "There is no memory"),
        (("supersede", "$first", "$first"), 2, "cannot replace"),
        (("capture", "x", "--supersedes", NOWHERE), 4, "There is no memory"),
        (("capture", "x", "--supersedes", ""), 2, "is not a memory id"),
        (("doctor", "now"), 2, "now"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_fault_is_one_line_and_an_exit_code_and_changes_nothing(
    run: Run,
    kept: Kept,
    seen: Callable[[], dict[str, Memory]],
    words: tuple[str, ...],
    code: int,
    told: str,
) -> None:
    first, _ = kept(*SAME)
    before = seen()
    ended, out, err = run(*(word.replace("$first", first.id) for word in words))
    assert (ended, out) == (code, ""), err
    assert told in err
    assert "Traceback" not in err
    assert seen() == before


def test_what_was_replaced_cannot_be_replaced_by_a_new_memory(run: Run, kept: Kept) -> None:
    old, new = kept(*SAME)
    assert run("supersede", old.id, new.id)[0] == 0
    code, out, err = run("capture", "x", "--supersedes", old.id)
    assert (code, out) == (6, "")
    assert "cannot be superseded" in err


def test_a_language_model_that_fails_is_an_exit_code_or_a_warning(
    run: Run, kept: Kept, seen: Callable[[], dict[str, Memory]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(*SAME)
    before = seen()
    worded = {"content": "Use PostgreSQL as the primary storage: it supports JSONB."}
    with ChatServer([refusal(403, f"{KEY} is not welcome")] * 2 + [chat(worded)]) as server:
        settings = {"PROVIDER": "openai", "MODEL": "some-model", "URL": server.url, "API_KEY": KEY}
        for name, value in settings.items():
            monkeypatch.setenv(f"CORTEX_LLM_{name}", value)
        code, out, err = run("consolidate", "--method", "llm")
        assert (code, out, seen()) == (10, "", before)
        assert "is not welcome" in err
        code, out, warned = run("consolidate", "--dry-run")
        assert (code, out.splitlines()[-1]) == (0, "1 group found.")
        assert "is not welcome" in warned
        assert KEY not in err + warned
        code, out, _ = run("consolidate", "--method", "llm", "--json")
    (group,) = json.loads(out)["groups"]
    assert (code, group["content"], group["method"]) == (0, worded["content"], "llm:some-model")
    assert len(server.asked) == 3


def test_a_chain_shows_what_replaced_what(shell: Shell, kept: Kept) -> None:
    (first,) = kept("The pool has 20 connections")
    (second,) = kept("The pool has 30 connections", supersedes=first.id)
    for one in (first, second):
        told = shell.json("get", one.id, "--chain")
        assert [(memory["id"], memory.get("superseded_by")) for memory in told] == [
            (first.id, second.id),
            (second.id, None),
        ]
    printed = shell.text("get", first.id, "--chain")
    assert printed.index("20 connections") < printed.index("30 connections")
