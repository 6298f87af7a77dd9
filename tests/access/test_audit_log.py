"""The audit log: one chain for all processes, and no change of it that is not seen."""

import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from cortex_py import Cortex
from cortex_py.core.errors import ConfigurationError, StorageError, StoreCorrupt
from cortex_py.core.security.callers import Caller

from forking import python_command
from helpers import FakeClock
from homes import opened

ANN = Caller("ann", "bot", frozenset(("read",)), "token:1")
WRITER = Path(__file__).with_name("audit_writer.py")
ID = "15a02fad01650a45adfacf22982d861e2f2257d1"


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with opened(home, project, clock) as made:
        yield made


def _fill(cortex: Cortex, count: int = 6) -> None:
    for number in range(count):
        cortex.audit.record(ANN, f"tool:number{number}", "ok", ids=[ID])


def _tamper(home: Path, *statements: str) -> None:
    """Change the file behind the library's back."""
    connection = apsw.Connection(str(home / "cortex.db"))
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def test_events_tell_who_did_what_when_and_to_which(cortex: Cortex, clock: FakeClock) -> None:
    project = cortex.project.id
    cortex.audit.record(ANN, "tool:subcog_get", "ok", project=project, ids=[ID, ID, "my password is hunter2", "x"])
    clock.advance(minutes=1)
    cortex.audit.record(None, "http:GET /status", "401", via="http")
    latest, first = cortex.audit.list()
    assert (first.number, first.event.user, first.event.agent, first.event.via) == (1, "ann", "bot", "token:1")
    assert (first.event.action, first.event.outcome, first.event.project) == ("tool:subcog_get", "ok", project)
    # Whatever does not look like an id might be content.
    assert first.event.ids == (ID,)
    assert (latest.number, latest.event.user, latest.event.via) == (2, None, "http")
    assert latest.event.at == clock.moment
    assert cortex.audit.verify().events == 2


def test_a_method_that_a_client_made_up_is_kept_short_plain_and_without_secrets(cortex: Cortex) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    cortex.audit.record(ANN, f"mcp:{secret}", "ok")
    cortex.audit.record(ANN, "mcp:\x1b[2J\n\u202e" + "x" * 1_000, "ok")
    long, first = (entry.event.action for entry in cortex.audit.list())
    assert first.startswith("mcp:[REDACTED:")
    assert long.startswith("mcp:[2Jxxx")
    assert len(long) <= 201


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    ("statement", "at"),
    [
        ("UPDATE audit_event SET event = replace(event, 'ann', 'bob') WHERE n = 3", "event 3"),
        ("UPDATE audit_event SET hash = (SELECT hash FROM audit_event WHERE n = 2) WHERE n = 3", "event 3"),
        ("DELETE FROM audit_event WHERE n = 1", "event 1"),
        ("DELETE FROM audit_event WHERE n = 4", "event 4"),
        ("DELETE FROM audit_event WHERE n > 4", "event 5"),
        ("DELETE FROM audit_event", "event 1"),
        ("INSERT INTO audit_event SELECT 7, event, hash FROM audit_event WHERE n = 6", "event 7"),
        ("UPDATE audit_event SET n = CASE n WHEN 2 THEN -3 WHEN 3 THEN -2 ELSE n END", "event 1"),
        ("INSERT INTO audit_event SELECT 0, event, hash FROM audit_event WHERE n = 6", "event 1"),
        ("UPDATE audit_head SET events = 5", "its end"),
        ("DELETE FROM audit_head", "its end"),
    ],
)
def test_every_change_is_seen(cortex: Cortex, home: Path, statement: str, at: str) -> None:
    _fill(cortex)
    assert cortex.audit.verify().events == 6
    _tamper(home, statement)
    with pytest.raises(StoreCorrupt, match=f"broken at {at}:"):
        cortex.audit.verify()


@pytest.mark.sqlite_only
def test_two_events_that_changed_places_are_seen(cortex: Cortex, home: Path) -> None:
    _fill(cortex)
    swap = "UPDATE audit_event SET n = 100 WHERE n = 2", "UPDATE audit_event SET n = 2 WHERE n = 3"
    _tamper(home, *swap, "UPDATE audit_event SET n = 3 WHERE n = 100")
    with pytest.raises(StoreCorrupt, match="event 2"):
        cortex.audit.verify()


@pytest.mark.sqlite_only
def test_what_was_cut_off_is_not_healed_by_the_next_event(cortex: Cortex, home: Path) -> None:
    _fill(cortex)
    _tamper(home, "DELETE FROM audit_event WHERE n > 4")
    assert cortex.audit.record(ANN, "tool:later", "ok") == 7
    with pytest.raises(StoreCorrupt, match="event 5"):
        cortex.audit.verify()


@pytest.mark.sqlite_only
def test_a_head_that_was_changed_is_not_sealed_anew(cortex: Cortex, home: Path) -> None:
    _fill(cortex)
    _tamper(home, "DELETE FROM audit_event WHERE n > 4")
    _tamper(home, "UPDATE audit_head SET events = 4, hash = (SELECT hash FROM audit_event WHERE n = 4)")
    with pytest.raises(StoreCorrupt):
        cortex.audit.record(ANN, "tool:later", "ok")
    with pytest.raises(StoreCorrupt):
        cortex.audit.verify()


@pytest.mark.sqlite_only
def test_a_log_put_back_to_an_earlier_state_lacks_the_head_that_was_noted(cortex: Cortex, home: Path) -> None:
    _fill(cortex, 3)
    ((events, hash, seal),) = _rows(home, "SELECT events, hash, seal FROM audit_head")
    early = cortex.audit.verify().head
    _fill(cortex, 2)
    noted = cortex.audit.verify().head
    assert cortex.audit.verify(early).head == noted
    _tamper(
        home,
        "DELETE FROM audit_event WHERE n > 3",
        f"UPDATE audit_head SET events = {events}, hash = '{hash}', seal = '{seal}'",
    )
    assert cortex.audit.verify().events == 3
    with pytest.raises(StoreCorrupt, match="expected"):
        cortex.audit.verify(noted)


def _rows(home: Path, statement: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(home / "cortex.db"))
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_the_key_is_its_owners_alone_and_never_replaced(cortex: Cortex, home: Path, project: Path) -> None:
    key = home / "audit.key"
    assert not key.exists()
    assert cortex.audit.verify().events == 0
    _fill(cortex, 2)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    kept = key.read_bytes()
    with opened(home, project) as other:
        _fill(other, 1)
    assert key.read_bytes() == kept
    key.unlink()
    with opened(home, project) as other:
        with pytest.raises(StorageError, match="missing"):
            other.audit.record(ANN, "tool:later", "ok")
        with pytest.raises(StoreCorrupt, match="missing"):
            other.audit.verify()
    assert not key.exists()
    key.write_bytes(kept)
    key.chmod(0o644)
    with opened(home, project) as other, pytest.raises(ConfigurationError):
        other.audit.verify()
    key.chmod(0o600)
    with opened(home, project) as other:
        assert other.audit.verify().events == 3


def test_two_processes_write_one_chain(home: Path, project: Path) -> None:
    writers = [
        subprocess.Popen(
            [*python_command(), str(WRITER), str(home), str(project), name, "20"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("ann", "bob")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    with opened(home, project) as cortex:
        assert cortex.audit.verify().events == 40
        events = [entry.event for entry in reversed(cortex.audit.list(100))]
    for name in ("ann", "bob"):
        assert [event.action for event in events if event.user == name] == [f"tool:{number}" for number in range(20)]
