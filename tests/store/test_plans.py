"""What a question to a SQLite store costs: as many steps of the engine in a large space as in a small one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from cases import each
from cortex_py import Cortex
from cortex_py.core.store import sqlite
from inside import database_of, store_of

from homes import opened
from old_schemas import use_schema

pytestmark = pytest.mark.sqlite_only

_FEW, _MANY = 200, 4_000
# What a copy of a record shares with it.
_SHARED = (
    "space, domain, project_id, namespace, content, tags, status, updated_at, version, redactions, kind, digest, "
    "length, flags, author, graphed, personal"
)
_COPY = (
    "WITH RECURSIVE copy (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < ?) "
    f"INSERT INTO memory (id, created_at, source, seq, {_SHARED}) "
    f"SELECT printf('%040x', copy.n), created_at + copy.n, 'lib/' || copy.n, ?, {_SHARED} FROM memory, copy "
    "WHERE content = 'A plain note'"
)
_COPY_CHUNKS = (
    "INSERT INTO chunk (num, n, space, first, past, by_assistant, terms, vector) "
    "SELECT m.num, c.n, c.space, c.first, c.past, c.by_assistant, c.terms, c.vector FROM memory m, chunk c "
    "WHERE c.num = (SELECT min(num) FROM memory WHERE content = 'A plain note') AND m.num > c.num"
)

_QUESTIONS: dict[str, Callable[[Cortex, str], object]] = {
    "the newest": lambda cortex, _: cortex.memories.recall(limit=5).results,
    "the newest of a namespace": lambda cortex, _: cortex.memories.recall(namespace="learnings", limit=5).results,
    "those of a period": lambda cortex, _: cortex.memories.recall(filter="since:1d", limit=5).results,
    "those of a file": lambda cortex, _: cortex.memories.recall(filter="path:src/*", limit=5).results,
    "those of a user": lambda cortex, _: cortex.memories.recall(filter="user:ada", limit=5).results,
    "a line of work": lambda cortex, branch: cortex.contexts.summary(branch),
    "the project": lambda cortex, _: cortex.contexts.graph(),
    "what expired": lambda cortex, _: _expired(cortex),
}


def _expired(cortex: Cortex) -> list[int]:
    with database_of(cortex).read() as session:
        return store_of(cortex).statistics.expired(session, cortex.project.id, 1)


@contextmanager
def _counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, str]]]:
    """The steps of each statement that is run here, with its text."""
    taken: list[tuple[int, str]] = []
    plain = sqlite._SqliteSession.rows

    def note(event: dict[str, Any]) -> None:
        taken.append((event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"], event["sql"]))

    def rows(session: sqlite._SqliteSession, *asked: Any) -> Any:
        session._connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
        try:
            return plain(session, *asked)
        finally:
            session._connection.trace_v2(0, None)

    with monkeypatch.context() as patched:
        patched.setattr(sqlite._SqliteSession, "rows", rows)
        yield taken


def _grown(folder: Path, records: int) -> tuple[Cortex, str]:
    """A home with so many notes in one space, and a line of work with five more."""
    cortex = opened(folder / "home", folder)
    branch = cortex.contexts.create_branch("A line of work").id
    for n in range(5):
        cortex.contexts.append(branch, f"The step {n} is done", "assistant")
    cortex.memories.capture("A plain note", namespace="learnings", source="lib/plain.py")
    # The first question of a process loads the columns from which later ones count.
    cortex.memories.recall("plain note")
    with database_of(cortex).write(cortex.project.id) as session:
        seq = store_of(cortex).memories.next_seq(session, cortex.project.id)
        session.as_is.run(_COPY, (records, seq))
        session.run(_COPY_CHUNKS)
    cortex.memories.recall("plain note")
    return cortex, branch


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Cortex, str]]]:
    homes = [_grown(tmp_path_factory.mktemp(f"of{records}"), records) for records in (_FEW, _MANY)]
    yield homes
    for cortex, _ in homes:
        cortex.close()


@each("question", sorted(_QUESTIONS))
def test_a_question_takes_as_many_steps_in_a_large_space(
    question: str, grown: list[tuple[Cortex, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, statements = [], []
    for cortex, branch in grown:
        _QUESTIONS[question](cortex, branch)
        with _counted(monkeypatch) as taken:
            _QUESTIONS[question](cortex, branch)
        steps.append(sum(count for count, _ in taken))
        statements.append(sorted(taken, reverse=True)[:2])
    few, many = steps
    assert few
    assert many < 3 * few, (steps, statements)


def test_a_store_of_the_schema_before_opens_with_the_new_indexes(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as old:
        use_schema(old, 19)
        with opened(home, project) as cortex:
            branch = cortex.contexts.create_branch("A line of work").id
            cortex.contexts.append(branch, "The first step is done", "assistant")
            cortex.memories.capture("We chose PostgreSQL", namespace="decisions", source="src/db.py")
            before = cortex.memories.recall(limit=10)
    with opened(home, project) as cortex:
        assert cortex.check() == []
        assert cortex.memories.recall(limit=10) == before
        assert cortex.memories.recall(namespace="decisions").total == 1
        assert cortex.memories.recall("database", filter="path:src/*").total == 1
        (turn,) = cortex.contexts.content(branch)
        assert "The first step is done" in str(turn)
        with database_of(cortex).read() as session:
            names = {row[0] for row in session.rows("SELECT name FROM sqlite_master WHERE type = 'index'")}
    assert {"memory_filed", "memory_of_line", "memory_source", "memory_expiring"} <= names
    assert not {"memory_namespace", "memory_branch"} & names
