"""Full disks, forbidden folders, damaged files, missing models: each its own error, and no harm done."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from cortex_py import Cortex
from cortex_py.core.clock import SystemClock
from cortex_py.core.errors import ConfigurationError, StoreCorrupt, StoreFull, StoreTooNew
from cortex_py.core.store.sqlite import open_sqlite
from nobody import run_as_nobody

from stub_backend import StubBackend


def _try_to_capture(home: Path, project: Path) -> str:
    return run_as_nobody(
        f"""
        try:
            with Cortex.open({str(home)!r}, project={str(project)!r}, backend=StubBackend()) as cortex:
                cortex.memories.capture("x")
            print("stored")
        except CortexError as error:
            print(type(error).__name__, error.remedy is not None)
        """
    ).strip()


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that another user may reach: every run of pytest closes the folder of all its runs to others."""
    with tempfile.TemporaryDirectory(prefix="cortex-open-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_a_home_in_a_folder_that_may_not_be_written(open_to_all: Path) -> None:
    closed = open_to_all / "closed"
    closed.mkdir(mode=0o555)
    assert _try_to_capture(closed / "home", open_to_all) == "StoreDenied True"
    assert list(closed.iterdir()) == []


def test_a_store_that_may_not_even_be_read(open_to_all: Path) -> None:
    home = open_to_all / "home"
    with Cortex.open(home, project=open_to_all, backend=StubBackend()):
        pass
    home.chmod(0o700)
    if os.getuid() == 0:
        assert _try_to_capture(home, open_to_all) == "StoreDenied True"


@pytest.mark.parametrize(
    "damage", [b"this is not a database, but a letter to my aunt. " * 50, b"SQLite format 3\x00" + b"\xff" * 4096]
)
def test_a_file_that_is_no_store_is_left_as_it_is(home: Path, project: Path, damage: bytes) -> None:
    home.mkdir()
    (home / "cortex.db").write_bytes(damage)
    with pytest.raises(StoreCorrupt, match=r"backup|another home"):
        Cortex.open(home, project=project, backend=StubBackend())
    assert (home / "cortex.db").read_bytes() == damage


@pytest.mark.slow
def test_a_store_damaged_in_the_middle_is_told(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        for number in range(200):
            cortex.memories.capture(f"note {number} " + "x" * 500)
    file = home / "cortex.db"
    whole = bytearray(file.read_bytes())
    middle = len(whole) // 2 // 4096 * 4096
    whole[middle : middle + 40 * 4096] = os.urandom(40 * 4096)
    file.write_bytes(whole)
    # Where the damage hits the schema, opening tells it; elsewhere the check does, or meets it.
    try:
        with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
            assert cortex.check()
    except StoreCorrupt as error:
        assert error.remedy


def test_another_programs_database_is_not_touched(home: Path, project: Path) -> None:
    home.mkdir()
    script = f"import apsw; apsw.Connection({str(home / 'cortex.db')!r}).execute('create table t(a)')"
    subprocess.run([sys.executable, "-c", script], check=True)
    before = (home / "cortex.db").read_bytes()
    with pytest.raises(StoreCorrupt, match="another program"):
        Cortex.open(home, project=project, backend=StubBackend())
    assert (home / "cortex.db").read_bytes() == before


def test_a_store_of_a_later_version_is_refused(home: Path, project: Path) -> None:
    Cortex.open(home, project=project, backend=StubBackend()).close()
    with closing(open_sqlite(home / "cortex.db", SystemClock())) as database, database.write() as session:
        session.run("INSERT INTO schema_step (version, applied_at) VALUES (999, 0)")
    with pytest.raises(StoreTooNew, match="Upgrade"):
        Cortex.open(home, project=project, backend=StubBackend())


def test_a_full_disk_refuses_the_write_and_keeps_what_was(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[apsw.Connection] = []
    monkeypatch.setattr(apsw, "connection_hooks", [connections.append])
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        cortex.memories.capture("kept")
        files = [one for one in connections if one.filename == str(home / "cortex.db")]
        (pages,) = files[0].execute("PRAGMA page_count").fetchone()
        for connection in files:
            connection.execute(f"PRAGMA max_page_count = {pages + 8}")
        with pytest.raises(StoreFull, match="space"):
            for number in range(200):
                cortex.memories.capture(f"note {number} " + "x" * 2000)
        for connection in files:
            connection.execute("PRAGMA max_page_count = 1000000")
        assert cortex.check() == []
        assert "kept" in {hit.memory.content for hit in cortex.memories.recall(limit=1000).results}
        cortex.memories.capture("room again")


def test_a_home_that_is_a_file(open_to_all: Path) -> None:
    file = open_to_all / "file"
    file.write_text("hello")
    assert _try_to_capture(file, open_to_all) == "StorageError True"
    assert file.read_text() == "hello"


@pytest.mark.parametrize("text", ["secrets = 3", "colour = 'blue'", "not toml at all ="])
def test_bad_settings_are_named(home: Path, project: Path, text: str) -> None:
    home.mkdir()
    (home / "config.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"config\.toml"):
        Cortex.open(home, project=project)
