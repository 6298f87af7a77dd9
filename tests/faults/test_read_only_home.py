"""A home that can be read and not written: one on a read-only file system, or one that belongs to somebody else."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cortex_py import Cortex
from nobody import begin_as_nobody, run_as_nobody

from helpers import git
from stub_backend import StubBackend

pytestmark = [pytest.mark.sqlite_only, pytest.mark.skipif(sys.platform == "win32", reason="permissions differ there")]

USES = """
page = cortex.memories.recall("tabs")
memory = page.results[0].memory
print(page.results[0].memory.content)
print(cortex.memories.get(memory.id).content, len(cortex.memories.recall().results))
print(type(cortex.memories.status()).__name__)
print(len(cortex.contexts.branches()))
cortex.backups.export_to(exported)
print("prefers tabs" in exported.read_text())
print([check.name for check in cortex.doctor().checks if not check.well])
for change in (
    lambda: cortex.memories.capture("new"),
    lambda: cortex.memories.delete(memory.id),
    lambda: cortex.contexts.create_branch("New work"),
):
    try:
        change()
    except StoreReadOnly as error:
        print("refused", error.remedy is not None)
"""


@pytest.fixture
def reachable(tmp_path: Path) -> Path:
    """A folder that another user may reach: pytest's own parents are closed to others."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    return tmp_path


def _as_nobody(home: Path, project: Path, out: Path) -> list[str]:
    """Use a home, after another one was used that loaded what is loaded late."""
    uses = textwrap.indent(USES, "    ")
    before = f"""
import cortex_py.parts.backup.transfer.export, cortex_py.diagnosis, cortex_py.parts.backup.service
import cortex_py.core.memory.service
exported = Path({str(out)!r}, "export.jsonl")
with Cortex.open({str(home)!r} + "-warm", project={str(project)!r}, backend=StubBackend()) as cortex:
    cortex.memories.capture("prefers tabs")
{uses}
exported.unlink()
print("as nobody")
"""
    code = f"with Cortex.open({str(home)!r}, project={str(project)!r}, backend=StubBackend()) as cortex:\n{uses}"
    return run_as_nobody(code, before).partition("as nobody\n")[2].splitlines()


def _close(home: Path) -> None:
    for path in home.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    home.chmod(0o555)


def _open(home: Path) -> None:
    for path in (home, *home.rglob("*")):
        path.chmod(0o700)


@pytest.fixture
def out(reachable: Path) -> Path:
    folder = reachable / "out"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
def test_what_can_be_read_is_read_and_what_would_write_is_refused(
    home: Path, project: Path, reachable: Path, out: Path, known: bool
) -> None:
    git(project, "init", "-q")
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        branch = cortex.contexts.create_branch("Old work")
        cortex.memories.capture("everybody here prefers tabs", domain="user")
        cortex.contexts.append(branch.id, "the tests pass", "assistant")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    _close(home)
    other = reachable / "other"
    other.mkdir()
    try:
        answers = _as_nobody(home, project if known else other, out)
    finally:
        _open(home)
    assert answers == [
        "everybody here prefers tabs",
        f"everybody here prefers tabs {2 if known else 1}",
        "MemoryStatus",
        "1" if known else "0",
        "True",
        "[]",
        "refused True",
        "refused True",
        "refused True",
    ]
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_a_log_that_cannot_be_read_there_is_an_error(home: Path, project: Path, reachable: Path, out: Path) -> None:
    """What a killed process left in the log would be missing."""
    kill = f"""
        cortex = Cortex.open({str(home)!r}, project={str(project)!r}, backend=StubBackend())
        cortex.memories.capture("only in the log")
        os._exit(0)
    """
    run_as_nobody("", before=kill)
    (home / "cortex.db-shm").unlink()
    _close(home)
    told = run_as_nobody(
        f"""
        try:
            Cortex.open({str(home)!r}, project={str(project)!r}, backend=StubBackend())
        except StoreReadOnly as error:
            print(error.remedy)
        """
    )
    _open(home)
    assert told == "Copy the folder to a place that can be written.\n"
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        assert [hit.memory.content for hit in cortex.memories.recall().results] == ["only in the log"]


def test_what_somebody_else_writes_is_seen(home: Path, project: Path, reachable: Path, out: Path) -> None:
    """The file is read without locks there, so every reading looks whether it is still the same."""
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        cortex.memories.capture("prefers tabs")
    _close(home)
    script = f"""
        database = open_sqlite(Path({str(home / "cortex.db")!r}), SystemClock())
        def count():
            with database.read() as session:
                print(session.rows("SELECT count(*) FROM memory")[0][0], flush=True)
                sys.stdin.readline()
        count()
        try:
            count()
        except StoreBusy:
            print("changed", flush=True)
        count()
    """
    with begin_as_nobody(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        seen = [process.stdout.readline()]
        process.stdin.write("\n")
        process.stdin.flush()
        seen.append(process.stdout.readline())
        # Root writes where it may not.
        (home / "cortex.db").chmod(0o644)
        home.chmod(0o755)
        with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
            cortex.memories.capture("prefers spaces")
        _close(home)
        process.stdin.write("\n")
        process.stdin.flush()
        seen.append(process.stdout.readline())
        seen.append(process.stdout.readline())
        process.stdin.write("\n")
    _open(home)
    assert [one.strip() for one in seen] == ["1", "1", "changed", "2"]
