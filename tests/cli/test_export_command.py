"""`cortex export` and `cortex import` as a person runs them: files, what is printed, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cortex_py import Cortex
from cortex_py.core.errors import InvalidInput, wire_form
from cortex_py.surfaces.cli import cli

from homes import fill, opened
from stub_backend import StubBackend

Run = Callable[..., Result]


@pytest.fixture
def run(project: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process, with a model that needs no file."""
    monkeypatch.chdir(project)
    monkeypatch.setattr("cortex_py.app.open_backend", lambda **_: StubBackend())
    return lambda *words: CliRunner().invoke(cli, list(words), catch_exceptions=True)


@pytest.fixture
def filled(home: Path, project: Path) -> list[str]:
    with opened(home, project) as cortex:
        return fill(cortex)


def test_everything_goes_to_a_file_or_the_screen_and_comes_back(
    run: Run, filled: list[str], home: Path, project: Path, tmp_path: Path
) -> None:
    path = tmp_path / "all.jsonl"
    done = run("export", "-o", str(path))
    assert done.exit_code == 0, done.output
    assert "7 memories" in done.output
    assert str(path) in done.output
    printed = run("export", "--domain", "user")
    assert [json.loads(line).get("kind", "-") for line in printed.stdout.splitlines()].count("memory") == 1
    told = json.loads(run("export", "-o", str(path), "--domain", "project", "--domain", "user", "--json").stdout)
    assert (told["path"], told["domains"], told["documents"]["memory"]) == (str(path), ["project", "user"], 7)

    other = str(tmp_path / "other")
    tried = run("import", str(path), "--home", other, "--dry-run")
    assert tried.exit_code == 0, tried.output
    assert "would be added: " in tried.output
    taken = json.loads(run("import", str(path), "--home", other, "--json").stdout)
    assert (taken["added"]["memory"], taken["dry_run"], taken["conflicts"]) == (7, False, [])
    again = run("import", str(path), "--home", other)
    assert "added: nothing" in again.output
    with opened(tmp_path / "other", project) as cortex:
        assert cortex.memories.get(filled[1]).content == "first: we decided on Kafka for events"


def test_conflicts_have_an_exit_code_and_can_be_replaced(
    run: Run, filled: list[str], home: Path, project: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    assert run("export", "--format", "markdown", "-o", str(folder)).exit_code == 0
    with opened(home, project) as cortex:
        cortex.memories.update(filled[1], content="another thing")
    kept = run("import", str(folder))
    assert kept.exit_code == 6
    assert f"conflict: memory {filled[1]}" in kept.stderr
    replaced = run("import", str(folder), "--replace")
    assert replaced.exit_code == 0, replaced.output
    assert "replaced: 1 memory" in replaced.output


def test_plain_files_go_where_they_are_sent(run: Run, home: Path, project: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"content": "token ghp_a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5f6G7h8", "score": 1}\n')
    done = run("import", str(path), "--domain", "user")
    assert done.exit_code == 0, done.output
    assert "secrets taken out of: 1" in done.output
    assert "'score' (1 time)" in done.stderr
    with opened(home, project) as cortex:
        found = [hit.memory for hit in cortex.memories.recall().results]
    assert [(one.domain, one.content) for one in found] == [("user", "token [REDACTED:github-token]")]


def test_bad_calls_and_bad_files_are_told(run: Run, tmp_path: Path) -> None:
    assert run("export", "--format", "markdown").exit_code == 2
    assert run("import", str(tmp_path / "nowhere")).exit_code == 2
    path = tmp_path / "bad.jsonl"
    path.write_text('{"content": "fine"}\n{"content"\n')
    done = run("import", str(path))
    assert done.exit_code == 0, done.output
    assert "left out: " in done.stderr
    assert "bad.jsonl, line 2: it is not valid JSON" in done.stderr
    path.write_text('{"cortex_export":1,"domain":"project","space":"x"}\n{"content"\n')
    done = run("import", str(path))
    assert isinstance(done.exception, InvalidInput)
    assert wire_form(done.exception).exit_code == 2
    assert "bad.jsonl, line 2" in str(done.exception)


def test_the_library_says_the_same(home: Path, project: Path, filled: list[str], tmp_path: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        done = cortex.backups.export_to(tmp_path / "all.jsonl", domains=("org",), project_id=cortex.project.id)
        assert (done.domains, done.documents) == (("org",), {})
        taken = cortex.backups.import_from([str(tmp_path / "all.jsonl")], project_id=cortex.project.id)
        assert (taken.added, taken.conflicts) == ({}, [])


def test_what_other_programs_keep_is_shown_before_it_comes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("note,day\nThe shop closes at noon,2026-01-02\n")
    tried = run("import", str(path), "--field", "content=note", "--field", "created_at=day", "--dry-run")
    assert tried.exit_code == 0, tried.output
    assert tried.stdout.splitlines() == [
        "csv\tproject\t1\t1\t0\t0\t0\t2026-01-02",
        "would be added: 1 memory",
        "already here: 0",
    ]
    assert run("import", str(path), "--field", "content").exit_code == 2
    assert "added: nothing" in run("import", str(path), "--field", "content=note", "--since", "2999-01-01").output
    assert isinstance(run("import", str(path), "--from", "nothing").exception, InvalidInput)
    assert run("import").exit_code == 2


def said(words: str, **more: str) -> str:
    entry = {"type": "user", "uuid": words, "sessionId": "s", "message": {"content": words}, **more}
    return json.dumps(entry) + "\n"


def test_a_path_that_is_missing_stops_no_other(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(said("hello"))
    done = run("import", str(tmp_path / "nowhere"), str(path))
    assert (done.exit_code, "added: 1 turn" in done.stdout) == (2, True)
    assert f"left out: {tmp_path / 'nowhere'}: there is no such file or folder" in done.stderr
    both = run("import", str(tmp_path / "nowhere"), str(tmp_path / "elsewhere"))
    assert (both.exit_code, "nowhere" in both.stderr, "elsewhere" in both.stderr) == (2, True, True)


def test_an_import_says_in_one_line_what_waits_for_a_review(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(said("Please always use pnpm in this repository, never npm.") + said("thanks"))
    assert "review" not in run("import", str(path), "--dry-run").output
    line = "to be reviewed: 1 sentence; see them with: cortex review"
    assert run("import", str(path)).stdout.splitlines().count(line) == 1


def test_what_is_left_out_for_one_reason_is_printed_together(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({f"field{n}": n}) + "\n" for n in range(300)))
    done = run("import", str(path), "--dry-run")
    assert len(done.output.splitlines()) < 12
    assert "298 more" in done.stderr


def test_the_machine_is_searched_for_sources(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = tmp_path / "person"
    session = person / ".claude" / "projects" / "-shop" / "s.jsonl"
    session.parent.mkdir(parents=True)
    first = said("hello", cwd="/shop", timestamp="2025-03-04T05:06:07Z")
    filler = said("x" * 90_000, timestamp="2025-03-05T00:00:00Z") * 9
    session.write_text(first + filler + said("bye", timestamp="2025-04-01T00:00:00Z"))
    (project / "AGENTS.md").write_text("- Use tabs.\n")
    monkeypatch.setenv("HOME", str(person))
    found = json.loads(run("import", "--discover", "--json").stdout)
    assert {(one["kind"], one["folder"], tuple(one["paths"])) for one in found} == {
        ("claude-code", "/shop", (str(session),)),
        ("instructions", str(project), (str(project / "AGENTS.md"),)),
    }
    shown = run("import", "--discover")
    assert "claude-code" in shown.stdout
    assert "2025-03-04 to 2025-04-01" in shown.stdout
    assert run("import", "--discover", str(session)).exit_code == 2
