"""The step of the schema that brought suggestions: an older home gains it and keeps all it had."""

import re
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.context.session import ProjectSessions
from cortex_py.store import migrations
from inside import database_of, store_of

from old_schemas import use_schema
from stub_backend import StubBackend

BEFORE = next(n for n, step in enumerate(migrations.MIGRATIONS) if "CREATE TABLE reference" in step[0])
TABLES = re.findall(r"CREATE TABLE (\w+)", " ".join(migrations.MIGRATIONS[BEFORE]))


def test_a_home_from_before_suggestions_opens_and_gains_them(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as old:
        use_schema(old, BEFORE)
        old.setattr(ProjectSessions, "settle_files", lambda _sessions: None)
        with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
            note = cortex.memories.capture("The ledger rounding is half to even")
            with database_of(cortex).read() as session:
                assert not any(database_of(cortex).has_table(session, table) for table in TABLES)
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        assert cortex.contexts.load(note.id).content == note.content
        assert cortex.suggestions.automation().standing.feedback_count == 0
        found = cortex.suggestions.suggest("Fix the ledger rounding")
        assert cortex.suggestions.accept(found.session_id, [note.id]) == 1
        assert [one.kind for one in cortex.suggestions.history()] == ["accept", "load"]
        assert cortex.check() == []
        cortex.memories.delete(note.id, hard=True)
        assert cortex.suggestions.history() == []


def test_only_so_many_events_are_kept(home: Path, project: Path) -> None:
    from cortex_py.store.tables.suggestions import ReferenceRow

    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        table = store_of(cortex).suggestions
        with database_of(cortex).write() as session:
            for number in range(10):
                table.add(session, "p", [ReferenceRow(f"{number:040x}", "load", None, "", number)], 4)
            table.add(session, "q", [ReferenceRow("f" * 40, "load", None, "", 0)], 4)
        with database_of(cortex).read() as session:
            assert [one.at for one in table.recent(session, "p", 100)] == [9, 8, 7, 6]
            assert (table.count(session, "p"), table.count(session, "q")) == (4, 1)
