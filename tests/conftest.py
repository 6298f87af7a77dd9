"""Fixtures shared by all tests: a home, a clock that a test moves, the real model."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from citus_cluster import CitusCluster, running_cluster
from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from patience import wait_longer

from helpers import FakeClock
from new_stores import ASKED, BESIDE, WITH_CAPTURES, spare_the_disk, use_world
from postgres_server import PostgresServer, running_server, transaction_pooler

# Read before the environment is cleared: with `postgres` every store that a test opens lies in a PostgreSQL database of
# its own, with `citus` on a cluster, with `pgbouncer` behind a pooler in transaction mode.
_ENGINE = os.environ.get("CORTEX_TEST_ENGINE", "sqlite")

use_world()
spare_the_disk()
wait_longer()

# Every core has a worker of its own: more threads for array arithmetic would only wait.
threadpool_limits(limits=1, user_api="blas")

# Everyday runs try few examples, and the same ones every time: no run fails by chance. `make soak` looks for new ones.
# No deadline: on a busy machine the first example may wait for tables to load.
settings.register_profile("everyday", max_examples=20, deadline=None, derandomize=True)
settings.register_profile("full", max_examples=300, deadline=None)
settings.load_profile("everyday")


def pytest_collection_finish() -> None:
    """What is imported and collected stays until the end: the collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left_out = [one for one in terminalreporter.getreports("skipped") if "no Chromium" in str(one.longrepr)]
    if left_out:
        terminalreporter.write_line(
            f"LEFT OUT: {len(left_out)} tests of the page, because this machine has no Chromium. "
            "Install it (Debian: apt-get install chromium) and run them with: pytest -m browser",
            yellow=True,
        )
    if any("no strace" in str(one.longrepr) for one in terminalreporter.getreports("skipped")):
        terminalreporter.write_line(
            "LEFT OUT: the tests that nothing is sent anywhere, because this machine has no strace. "
            "Install it (Debian: apt-get install strace) and run them with: pytest tests/security/test_silence.py",
            yellow=True,
        )


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reads the machine's own settings, home or git configuration."""
    for name in [name for name in os.environ if name.startswith(("CORTEX_", "GIT_"))]:
        monkeypatch.delenv(name)
    # Beside the test's own folder, which some tests list.
    person = tmp_path.with_name(f"{tmp_path.name}-person")
    person.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(person))
    monkeypatch.setenv("CORTEX_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    git = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": f"{tmp_path}{os.pathsep}{tmp_path.parent}",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    for name, value in git.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer | CitusCluster]:
    """A server of this process's own, started when first asked for."""
    with running_cluster() if _ENGINE == "citus" else running_server() as server:
        yield server


@pytest.fixture(scope="session")
def pooler(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """PgBouncer before that server: whatever many callers do goes over two connections."""
    with transaction_pooler(postgres_server, 2) as made:
        yield made


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database of the test's own, with a current and empty store."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(autouse=True)
def _engine(_own_environment: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if _ENGINE in ("postgres", "citus", "pgbouncer"):
        if request.node.get_closest_marker("sqlite_only"):
            pytest.skip("looks into the file of SQLite")
        url = request.getfixturevalue("postgres_url")
        monkeypatch.setenv("CORTEX_DATABASE_URL", url)
        if _ENGINE == "pgbouncer":
            monkeypatch.setenv("CORTEX_DATABASE_DIRECT_URL", url)
            monkeypatch.setenv("CORTEX_DATABASE_URL", request.getfixturevalue("pooler").url(url.rpartition("/")[2]))


@pytest.fixture(autouse=True)
def _world(request: pytest.FixtureRequest) -> None:
    """New notes are read right after their capture, and not at a moment that no test can know."""
    pace = WITH_CAPTURES
    if request.node.get_closest_marker("background_reading"):
        pace = BESIDE
    elif request.node.get_closest_marker("reads_when_asked"):
        pace = ASKED
    use_world(pace)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def model() -> Backend:
    """The model that ships, loaded once for all tests."""
    from cortex_py.core.embedding.backends.onnx import OnnxBackend

    return OnnxBackend()


@pytest.fixture(params=["small", "wide"])
def retrieval(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to candidates: taking a small space whole, and picking from a large one."""
    if request.param == "wide":
        monkeypatch.setattr("cortex_py.core.store.search.process_space.SMALL", -1)
    return str(request.param)


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock, model: Backend) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=model) as opened:
        yield opened
