"""The events from which suggestions learn: the newest are kept, of each project for itself."""

from pathlib import Path

from cortex_py import Cortex
from cortex_py.core.store.tables.suggestions import ReferenceRow
from inside import database_of, store_of

from stub_backend import StubBackend


def test_only_so_many_events_are_kept(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        table = store_of(cortex).suggestions
        with database_of(cortex).write() as session:
            for number in range(10):
                table.add(session, "p", [ReferenceRow(f"{number:040x}", "load", None, "", number)], 4)
            table.add(session, "q", [ReferenceRow("f" * 40, "load", None, "", 0)], 4)
        with database_of(cortex).read() as session:
            assert [one.at for one in table.recent(session, "p", 100)] == [9, 8, 7, 6]
            assert (table.count(session, "p"), table.count(session, "q")) == (4, 1)
