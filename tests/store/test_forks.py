"""A process that forks while it has the store open: parent and child each go on with connections of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.sqlite_only,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here"),
]

_START = """
import os, signal, sys, threading, warnings
sys.path[:0] = sys.argv[2:]
from pathlib import Path

from cortex_py.core.clock import SystemClock
from cortex_py.core.errors import StorageError
from cortex_py.core.store.sqlite import open_sqlite

warnings.simplefilter("ignore")
signal.alarm(30)
path = Path(sys.argv[1])
database = open_sqlite(path, SystemClock())

def put(key):
    with database.write() as session:
        session.run("CREATE TABLE IF NOT EXISTS kept (key TEXT)")
        session.run("INSERT INTO kept VALUES (?)", (key,))

def kept():
    with database.read() as session:
        return [key for (key,) in session.rows("SELECT key FROM kept ORDER BY rowid")]

def end(child):
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), kept(), database.check())
"""


def _run(home: Path, program: str) -> str:
    command = [sys.executable, "-c", _START + program, str(home / "cortex.db"), str(Path(__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_child_keeps_the_log_that_its_parent_would_remove(home: Path) -> None:
    """The last process to close a store removes the log; the locks of the child must show that it is there."""
    program = """
put("parent")
go, told = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    signal.alarm(30)
    put("child")
    os.write(told[1], b"x")
    os.read(go[0], 1)
    put("after the parent closed")
    os._exit(0)
os.read(told[0], 1)
database.close()
log = path.with_name("cortex.db-wal").exists()
os.write(go[1], b"x")
os.waitpid(child, 0)
database = open_sqlite(path, SystemClock())
print(log, kept(), database.check())
"""
    assert _run(home, program) == "True ['parent', 'child', 'after the parent closed'] []"


def test_a_fork_waits_for_the_transactions_of_other_threads(home: Path) -> None:
    program = """
put("parent")
inside, go = threading.Event(), threading.Event()
def work():
    with database.write() as session:
        inside.set()
        go.wait(60)
        session.run("INSERT INTO kept VALUES ('thread')")
thread = threading.Thread(target=work)
thread.start()
inside.wait(60)
threading.Timer(0.2, go.set).start()
child = os.fork()
if child == 0:
    signal.alarm(30)
    put("child")
    os._exit(0)
thread.join()
end(child)
"""
    assert _run(home, program) == "0 ['parent', 'thread', 'child'] []"


def test_a_fork_holds_back_what_other_threads_begin(home: Path) -> None:
    """They read without a pause: at no moment by itself would none of them have the file in use."""
    program = """
put("parent")
over = threading.Event()
def work():
    while not over.is_set():
        kept()
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
child = os.fork()
if child == 0:
    signal.alarm(30)
    put("child")
    os._exit(0)
kept()
over.set()
for thread in threads:
    thread.join()
end(child)
"""
    assert _run(home, program) == "0 ['parent', 'child'] []"


def test_a_child_refuses_a_file_that_stayed_in_use(home: Path) -> None:
    program = """
put("parent")
import cortex_py.core.sqlite_file as sqlite_file
sqlite_file._FORK_WAIT_SECONDS = 0.1
inside, go = threading.Event(), threading.Event()
def work():
    with database.write() as session:
        inside.set()
        go.wait(60)
        session.run("INSERT INTO kept VALUES ('thread')")
thread = threading.Thread(target=work)
thread.start()
inside.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(30)
    refused = 0
    for use in (kept, lambda: put("child"), lambda: open_sqlite(path, SystemClock())):
        try:
            use()
        except StorageError as error:
            refused += "forked" in error.message
    database.close()
    os._exit(refused)
os.waitpid(child, os.WNOHANG)
go.set()
thread.join()
end(child)
"""
    assert _run(home, program) == "3 ['parent', 'thread'] []"


def test_a_child_cannot_end_the_transaction_of_its_parent(home: Path) -> None:
    program = """
put("parent")
child = None
try:
    with database.write() as session:
        session.run("INSERT INTO kept VALUES ('once')")
        child = os.fork()
except StorageError as error:
    os._exit(7 if child == 0 and "forked" in error.message else 8)
end(child)
"""
    assert _run(home, program) == "7 ['parent', 'once'] []"


def test_a_memory_of_a_child_is_found_by_its_parent(home: Path, project: Path) -> None:
    program = f"""
database.close()
from cortex_py import Cortex
from stub_backend import StubBackend
with Cortex.open({str(home)!r}, project={str(project)!r}, backend=StubBackend()) as cortex:
    cortex.memories.capture("the parent prefers tabs")
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        cortex.memories.capture("the child prefers spaces")
        os._exit(len(cortex.memories.recall("prefers").results))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code, sorted(hit.memory.content for hit in cortex.memories.recall("prefers").results), cortex.check())
"""
    assert _run(home, program) == "2 ['the child prefers spaces', 'the parent prefers tabs'] []"
