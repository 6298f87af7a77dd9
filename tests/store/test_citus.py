"""A store on a real Citus cluster: how it gets there, a worker that dies, spaces that move while they are used.

`make soak-citus` runs it, with the contract of the engines and the isolation of callers on the same cluster.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from citus_cluster import CitusCluster, running_cluster
from cortex_py import Cortex
from cortex_py.core.clock import SystemClock
from cortex_py.core.errors import ConfigurationError, Conflict, CortexError, StoreUnavailable
from cortex_py.core.records import files_space, turns_space
from cortex_py.core.store.database import DISTRIBUTED, Bounds
from cortex_py.parts.context.project import identify
from cortex_py.team.postgres.engine import open_postgres

from helpers import FakeClock
from homes import fill, opened, state
from shell import Shell

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def cluster() -> Iterator[CitusCluster]:
    with running_cluster() as made:
        yield made


@pytest.fixture
def url(cluster: CitusCluster) -> Iterator[str]:
    with cluster.database() as made:
        yield made


@pytest.fixture(autouse=True)
def _engine() -> None:
    """Each test names its store."""


def _placed(cluster: CitusCluster, url: str, folder: Path, name: str, port: int) -> Path:
    """A new folder for a project with all its spaces on one worker."""
    for n in range(200):
        project = folder / f"{name}-{n}"
        project.mkdir()
        own = identify(project).id
        if {cluster.worker_of(url, space).port for space in (own, files_space(own), turns_space(own))} == {port}:
            return project
    raise AssertionError("no project is on that worker alone")


class Writing:
    """Captures from a thread until it is stopped; what was acknowledged, and what failed."""

    def __init__(self, cortex: Cortex, name: str) -> None:
        self.done: list[str] = []
        self.failed: list[CortexError] = []
        self._cortex, self._name = cortex, name
        self._enough = threading.Event()
        self._some = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        n = 0
        while not self._enough.is_set():
            n += 1
            try:
                self.done.append(self._cortex.memories.capture(f"{self._name} note {n} about PostgreSQL").id)
            except CortexError as error:
                self.failed.append(error)
            self._some.release()

    def wait(self, more: int) -> None:
        for _ in range(more):
            assert self._some.acquire(timeout=60)

    def __enter__(self) -> Writing:
        self._thread.start()
        self.wait(3)
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def all_there(self, cortex: Cortex) -> bool:
        return all(cortex.memories.get(one).id == one for one in self.done)


def test_a_filled_store_is_distributed_with_everything_in_it(
    cluster: CitusCluster, tmp_path: Path, project: Path, clock: FakeClock
) -> None:
    with (
        cluster.database(distributed=False) as url,
        opened(tmp_path / "home", project, clock, database_url=url) as cortex,
    ):
        fill(cortex)
        before = [state(cortex, space=space) for space in (None, "user:local")]
        with (
            opened(tmp_path / "other", project, clock, database_url=url),
            pytest.raises(Conflict, match="Other processes"),
        ):
            cortex.distribute(4)
        done = cortex.distribute(4)
        assert set(done.tables) == set(DISTRIBUTED)
        assert len(done.workers) == len(cluster.workers)
        assert [state(cortex, space=space) for space in (None, "user:local")] == before
        assert cortex.distribute(4).tables == ()
        fill(cortex, "second")
        found = {hit.memory.content for hit in cortex.memories.recall("PostgreSQL").results}
        assert any("first" in one for one in found) and any("second" in one for one in found)
        assert cortex.check() == []
    schema = url.rpartition("%3D")[2]
    placed = cluster.run(
        f"SELECT count(DISTINCT nodeport) FROM citus_shards WHERE table_name = '{schema}.memory'::regclass"
    )
    assert placed == [(len(cluster.workers),)]


def test_the_command_distributes_an_empty_store_once(cluster: CitusCluster, home: Path, project: Path) -> None:
    with cluster.database(distributed=False) as url:
        shell = Shell(home, project, CORTEX_DATABASE_URL=url)
        assert f"Distributed {len(DISTRIBUTED)} tables, over 2 workers" in shell.text(
            "distribute", "--yes", "--shards", "4"
        )
        assert shell.text("capture", "Kafka carries the events")
        assert "The store was distributed before, over 2 workers" in shell.text("distribute", "--yes", "--shards", "4")
        assert shell.json("distribute", "--yes")["tables"] == []
        assert "Kafka carries" in shell.text("recall", "kafka")


@pytest.mark.parametrize("rights", ["", "CREATEROLE"])
def test_a_login_without_special_rights_distributes_a_filled_store(
    cluster: CitusCluster, home: Path, project: Path, rights: str
) -> None:
    login = f"login_{rights.lower()}"
    cluster.run(f"CREATE ROLE {login} LOGIN {rights}")
    cluster.run(f"CREATE SCHEMA of_{login} AUTHORIZATION {login}")
    url = f"{cluster.coordinator.url('cortex', login)}?options=-csearch_path%3Dof_{login}"
    shell = Shell(home, project, CORTEX_DATABASE_URL=url)
    assert shell.text("capture", "Kafka carries the events")
    assert f"Distributed {len(DISTRIBUTED)} tables" in shell.text("distribute", "--yes", "--shards", "4")
    assert shell.text("capture", "Redis caches the carts")
    assert all(word in shell.text("recall", word) for word in ("Kafka", "Redis"))
    if not rights:
        # The statements in the error are all that an administrator has to run for callers of a shared server.
        with closing(open_postgres(url, SystemClock())) as database, pytest.raises(ConfigurationError) as refused:
            database.caller_role()
        for statement in (refused.value.remedy or "").partition("run: ")[2].split("; "):
            cluster.run(statement)
    own = identify(project).id
    with closing(open_postgres(url, SystemClock())) as database:
        for readable, found in (({own}, 2), ({"another"}, 0)):
            database.bind(lambda spaces=frozenset(readable): Bounds("anna", spaces, spaces))
            with database.read() as session:
                assert session.rows("SELECT count(*) FROM memory WHERE space = ?", (own,)) == [(found,)]


@pytest.mark.parametrize(
    ("extension", "message"), [(False, "has no Citus.*CREATE EXTENSION"), (True, "knows no worker.*citus_add_node")]
)
def test_a_server_that_is_no_cluster_is_named_and_keeps_its_store(
    cluster: CitusCluster, home: Path, project: Path, extension: bool, message: str
) -> None:
    name = f"alone_{extension}".lower()
    cluster.run(f"CREATE DATABASE {name}")
    if extension:
        cluster.run("CREATE EXTENSION citus", name)
    shell = Shell(home, project, CORTEX_DATABASE_URL=cluster.coordinator.url(name))
    assert shell.text("capture", "Kafka carries the events")
    done = shell.run("distribute", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(message, " ".join(done.stderr.split()))
    assert "Kafka carries" in shell.text("recall", "kafka")


@pytest.mark.reads_when_asked
def test_a_worker_that_dies_stops_its_own_spaces_alone(
    cluster: CitusCluster, url: str, tmp_path: Path, clock: FakeClock
) -> None:
    # What a person has of their own is part of every recall.
    stays = cluster.worker_of(url, "user:local")
    worker = next(one for one in cluster.workers if one is not stays)
    away = _placed(cluster, url, tmp_path, "away", worker.port)
    here = _placed(cluster, url, tmp_path, "here", stays.port)
    with (
        opened(tmp_path / "home", away, clock, database_url=url) as lost,
        opened(tmp_path / "home", here, clock, database_url=url) as kept,
    ):
        ids = [cortex.memories.capture(f"{n} uses PostgreSQL").id for n in range(5) for cortex in (lost, kept)]
        worker.kill()
        try:
            with pytest.raises(StoreUnavailable, match="reached"):
                lost.memories.capture("written nowhere")
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                lost.memories.recall("PostgreSQL")
            ids.append(kept.memories.capture("written meanwhile").id)
            assert len(kept.memories.recall("PostgreSQL").results) >= 5
            kept.memories.update(ids[-1], content="changed meanwhile")
            kept.memories.delete(ids[-1])
            kept.memories.restore(ids[-1])
            # The beginning of an id does not say where its record is: every worker is asked.
            with pytest.raises(StoreUnavailable, match="reached"):
                kept.memories.get(ids[-1][:12])
        finally:
            worker.start()
        assert lost.memories.capture("written afterwards").id
        assert {lost.memories.get(one).id for one in ids[:-1:2]} == set(ids[:-1:2])
        assert {kept.memories.get(one).id for one in ids[1::2]} == set(ids[1::2])
        contents = {hit.memory.content for hit in lost.memories.recall("uses PostgreSQL", limit=20).results}
        assert {f"{n} uses PostgreSQL" for n in range(5)} <= contents
        assert lost.check() == []


def test_a_space_moves_to_another_worker_while_it_is_written(
    cluster: CitusCluster, url: str, tmp_path: Path, project: Path, clock: FakeClock
) -> None:
    schema = url.rpartition("%3D")[2]
    with opened(tmp_path / "home", project, clock, database_url=url) as cortex, Writing(cortex, "moving") as writing:
        before = cluster.worker_of(url, cortex.project.id)
        after = next(worker for worker in cluster.workers if worker is not before)
        cluster.run(
            f"SELECT citus_move_shard_placement(get_shard_id_for_distribution_column('{schema}.memory', "
            f"'{cortex.project.id}'), '127.0.0.1', {before.port}, '127.0.0.1', {after.port}, 'force_logical')"
        )
        writing.wait(3)
        assert cluster.worker_of(url, cortex.project.id) is after
        assert writing.failed == []
    with opened(tmp_path / "home", project, clock, database_url=url) as cortex:
        assert writing.all_there(cortex)
        assert cortex.check() == []


def test_a_worker_is_added_and_gets_its_share_while_a_store_is_written(
    cluster: CitusCluster, url: str, tmp_path: Path, project: Path, clock: FakeClock
) -> None:
    with opened(tmp_path / "home", project, clock, database_url=url) as cortex, Writing(cortex, "growing") as writing:
        added = cluster.add_worker()
        cluster.run("SELECT citus_rebalance_start(shard_transfer_mode := 'force_logical')")
        cluster.run("SELECT citus_rebalance_wait()")
        writing.wait(3)
        assert writing.failed == []
    ((shards,),) = cluster.run(f"SELECT count(*) FROM citus_shards WHERE nodeport = {added.port}")
    assert int(str(shards)) > 0
    with opened(tmp_path / "home", project, clock, database_url=url) as cortex:
        assert writing.all_there(cortex)
        assert cortex.check() == []
