"""The command line: every command, for people and as JSON, with one-line errors and exit codes."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from forking import cortex_command
from helpers import git


def run(home: Path, project: Path, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CORTEX_HOME": str(home), "COLUMNS": "120"}
    return subprocess.run(
        [*cortex_command(), *words],
        cwd=project,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def as_json(home: Path, project: Path, *words: str, given: str | None = None):
    done = run(home, project, *words, "--json", given=given)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_projects_of_a_home_are_listed_also_where_a_folder_was_renamed(home: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    git(old, "init", "-q")
    text = "We deploy on Tuesdays because the bank closes its batches on Monday"
    as_json(home, old, "capture", text, "-n", "decisions")
    old.rename(new)
    done = run(home, new, "status")
    assert "cortex status --projects" in done.stderr
    listed = as_json(home, new, "status", "--projects")
    assert [(one["name"], one["memories"], one["is_here"]) for one in listed] == [("old", 1, False), ("new", 0, True)]
    assert f"{old} (gone)" in run(home, new, "status", "--projects").stdout
    assert text in run(home, new, "recall", "when do we deploy", "-f", f"project:{listed[0]['id']}").stdout


@pytest.mark.slow
def test_a_memorys_life_on_the_command_line(home: Path, project: Path) -> None:
    note = "Use PostgreSQL for JSONB 🐘"
    stored = as_json(home, project, "capture", note, "-n", "decisions", "-t", "db", "-s", "ARCH.md")
    assert (stored["content"], stored["namespace"], stored["tags"]) == (note, "decisions", ["db"])
    assert stored["urn"] == f"subcog://project/decisions/{stored['id']}"
    assert as_json(home, project, "get", stored["id"][:12])["id"] == stored["id"]
    found = as_json(home, project, "recall", "which database", "-f", "ns:decisions")
    assert (found["total"], found["results"][0]["id"]) == (1, stored["id"])
    assert as_json(home, project, "update", stored["id"], "-c", "-", given="Use SQLite")["version"] == 2
    assert [v["content"] for v in as_json(home, project, "history", stored["id"])["versions"]] == [note, "Use SQLite"]
    assert as_json(home, project, "delete", stored["id"])["deleted"] is True
    assert as_json(home, project, "recall")["total"] == 0
    assert as_json(home, project, "restore", stored["id"])["id"] == stored["id"]
    assert as_json(home, project, "status")["total_count"] == 1
    assert as_json(home, project, "gc", "--dry-run")["dry_run"] is True
    assert as_json(home, project, "reindex")["indexed"] == 1


@pytest.mark.soak
def test_people_see_tables_and_short_answers(home: Path, project: Path) -> None:
    identity = run(home, project, "capture", "-", given="Lunch [bold]is[/bold] at noon").stdout.strip()
    assert len(identity) == 40
    table = run(home, project, "recall", "lunch").stdout
    assert identity[:12] in table
    assert "Lunch [bold]is[/bold] at noon" in table
    assert "1 of 1" in run(home, project, "recall").stderr
    assert "Lunch" in run(home, project, "get", identity).stdout
    assert "memories" in run(home, project, "status").stdout
    assert "version 2" in run(home, project, "update", identity, "-t", "food").stdout
    assert "restore" in run(home, project, "delete", identity).stdout
    assert "back" in run(home, project, "restore", identity).stdout
    assert "capture" in run(home, project, "history", identity).stdout
    assert "Stale branches: none" in run(home, project, "gc").stdout
    assert "Indexed 1" in run(home, project, "reindex").stdout


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("get", "0" * 40), 4, "There is no memory"),
        (("get", "nonsense"), 2, "not a memory id"),
        (("recall", "x", "-f", "since:never"), 2, "position 6"),
        (("capture", "x", "-n", "nonsense"), 2, "decisions"),
        (("capture", " "), 2, "empty"),
        (("nonsense",), 2, "No such command"),
        (("recall", "--limit", "many"), 2, "integer"),
    ],
)
def test_errors_are_one_line_with_a_remedy_and_an_exit_code(
    home: Path, project: Path, words: tuple[str, ...], code: int, told: str
) -> None:
    done = run(home, project, *words)
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_secret_is_redacted_and_said(home: Path, project: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    done = run(home, project, "capture", f"token {token}")
    assert "Redacted" in done.stderr
    assert token not in done.stdout + done.stderr


def test_init_prepares_a_project(home: Path, project: Path) -> None:
    told = as_json(home, project, "init")
    assert told["model_installed"] is True
    assert told["project_id"] == as_json(home, project, "status")["project_id"]


def test_a_folder_that_only_names_a_project_joins_it_by_hand(home: Path, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for folder in (project, other):
        git(folder, "init", "-q")
        git(folder, "remote", "add", "origin", "https://example.org/team/app.git")
    run(home, project, "capture", "kept for the project")
    known = as_json(home, project, "status")["project_id"]
    assert as_json(home, other, "status")["project_id"] != known
    for command in ("status", "init"):
        assert "cortex init --join" in run(home, other, command).stderr
    assert "1 memory" in run(home, other, "init", "--join", "--mode", "none").stderr
    assert as_json(home, other, "status")["project_id"] == known


def test_model_info_tells_what_is_installed(home: Path, project: Path) -> None:
    told = as_json(home, project, "model", "info")
    assert (told["installed"], told["dimensions"], told["precision"]) == (True, 384, "int8")


@pytest.mark.slow
def test_help_lists_every_command(home: Path, project: Path) -> None:
    from cortex_py.surfaces.cli import cli

    text = run(home, project, "--help").stdout
    for name in cli.list_commands(None):  # type: ignore[arg-type]
        assert f"  {name} " in text
        assert run(home, project, name, "--help").returncode == 0
