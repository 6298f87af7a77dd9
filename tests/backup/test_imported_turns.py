"""Imported conversations are read behind the import: what is worth keeping waits for a review, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_kinds import claude_line, lines

from cortex_py import Cortex
from cortex_py.core.jobs import Jobs, Pace
from cortex_py.opening import World
from cortex_py.parts.hooks.staging import ImportedTurnReader

from helpers import FakeClock
from homes import opened

SAID = (
    ("user", "Please always use pnpm in this repository, never npm."),
    ("user", "We decided to keep sessions in PostgreSQL because Redis lost them on every restart."),
    ("assistant", "Done, all tests pass."),
)


def conversation(path: Path, *, copies: int = 1) -> Path:
    turns = [
        claude_line(role, f"u{copy}-{n}", text, timestamp="2025-03-04T05:06:07Z")
        for copy in range(copies)
        for n, (role, text) in enumerate(SAID)
    ]
    return lines(path / "projects" / "-gone" / "s-1.jsonl", *turns)


def test_decisions_and_preferences_are_staged_once_and_in_steps(
    home: Path, project: Path, tmp_path: Path, clock: FakeClock
) -> None:
    path = conversation(tmp_path, copies=3)
    with opened(home, project, clock) as cortex:
        cortex.backups.import_from([path])
        # The import itself stages nothing: it does not wait for the gate.
        assert cortex.review.staged() == []
        first = cortex.hooks.read_imported(most=1)
        assert (first.turns, first.more) == (1, True)
        assert cortex.hooks.read_imported(stop=lambda: True).turns == 0
    with opened(home, project, clock) as cortex:
        rest = cortex.hooks.read_imported()
        assert (rest.turns, rest.more) == (8, False)
        staged = [one.memory for one in cortex.review.staged()]
        assert sorted(one.content for one in staged) == sorted((SAID[0][1], SAID[1][1]))
        assert {one.created_at.year for one in staged} == {2025}
        assert staged[0].source is not None
        assert staged[0].source.startswith("claude-code/s-1/")
        assert cortex.hooks.read_imported().turns == 0
        cortex.backups.import_from([path])
        cortex.upkeep()
        assert len(cortex.review.staged()) == 2


def test_what_a_person_pasted_is_not_staged_from_an_import(
    home: Path, project: Path, tmp_path: Path, clock: FakeClock
) -> None:
    pasted = f"Implement the following plan:\n\n# Sessions\n\nok. {SAID[1][1]}"
    path = lines(tmp_path / "s.jsonl", claude_line("user", "u1", pasted), claude_line("user", "u2", SAID[0][1]))
    with opened(home, project, clock) as cortex:
        assert cortex.backups.import_from([path]).added == {"turn": 2}
        cortex.hooks.read_imported()
        assert [one.memory.content for one in cortex.review.staged()] == [SAID[0][1]]


def test_calls_go_first_while_imported_turns_are_read(
    home: Path, project: Path, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex_py.parts.hooks.staging._IMPORTED_AT_ONCE", 4)
    monkeypatch.setattr(Cortex, "world", World(pace=Pace(reads="with", stretch=0.0), durable=False))
    done: list[str] = []
    save = ImportedTurnReader._save_position

    def saved(reader: ImportedTurnReader, after: int) -> None:
        done.append("read")
        save(reader, after)

    with opened(home, project, clock) as cortex:
        cortex.backups.import_from([conversation(tmp_path, copies=3)])
        monkeypatch.setattr(ImportedTurnReader, "_save_position", saved)
        monkeypatch.setattr(Jobs, "wait_for_a_pause", lambda *_: done.append("waited"))
        cortex.upkeep()
    first = done.index("read")
    assert done.count("read") == 3
    assert done[first - 1 : first + 6] == ["waited", "read"] * 3 + ["waited"]


def test_staging_from_imports_can_be_switched_off(home: Path, project: Path, tmp_path: Path, clock: FakeClock) -> None:
    with opened(home, project, clock, import_staging=False) as cortex:
        cortex.backups.import_from([conversation(tmp_path)])
        cortex.upkeep()
        assert cortex.review.read().turns == 0
        assert cortex.review.staged() == []
