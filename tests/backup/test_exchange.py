"""Sync of whole homes: two machines and a folder between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend

from cortex_py import Cortex
from cortex_py.core.errors import BackupError, ConfigurationError, NetworkError, RateLimited, WrongKey
from cortex_py.core.store.documents.document import SHARED_KINDS
from cortex_py.parts.backup.sync import sync as exchange
from cortex_py.parts.backup.sync.merge import Name
from cortex_py.parts.backup.sync.store_replica import StoreReplica
from cortex_py.parts.backup.vault.passphrase import keep_in_keyring

from cloud_servers import s3_server, webdav_server
from helpers import FakeClock
from homes import fill, opened, state
from in_memory import ANY, FAST

WORDS = "correct horse battery staple"


@pytest.fixture(autouse=True)
def _quick_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deriving a key takes its time on purpose; that it does is tested elsewhere."""
    monkeypatch.setattr(exchange, "Sync", partial(exchange.Sync, parameters=FAST, limits=ANY))
    monkeypatch.setattr(exchange, "CollectionKey", partial(exchange.CollectionKey, parameters=FAST, limits=ANY))


def machine(tmp_path: Path, name: str, project: Path, clock: FakeClock, **settings: object) -> Cortex:
    given = {"cloud_url": str(tmp_path / "cloud"), "passphrase": WORDS, **settings}
    return opened(tmp_path / name, project, clock, **given)


def shared(cortex: Cortex) -> list[bytes]:
    return state(cortex, SHARED_KINDS)


@pytest.fixture(params=["folder", "s3", "webdav"])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of each kind of target, the last two on real servers."""
    with ExitStack() as stack:
        if request.param == "folder":
            yield str(tmp_path / "cloud")
        elif request.param == "s3":
            server = stack.enter_context(s3_server())
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            yield f"{server.new_bucket('memory')}/cortex{server.query}"
        else:
            folder = tmp_path / "dav"
            folder.mkdir()
            dav = stack.enter_context(webdav_server(folder))
            for name, value in dav.environment.items():
                monkeypatch.setenv(name, value)
            yield f"{dav.url}/cortex"


@pytest.mark.slow
def test_a_new_machine_gets_everything(tmp_path: Path, project: Path, clock: FakeClock, target: str) -> None:
    given = {"cloud_url": target}
    with (
        machine(tmp_path, "one", project, clock, **given) as one,
        machine(tmp_path, "two", project, clock, **given) as two,
    ):
        fill(one)
        sent = one.backups.push()
        assert sent.uploaded_bytes > 1_000
        assert sent.cloud_path.startswith("cortex-backups/") and sent.cloud_path.endswith("_20260102.enc")
        got = two.backups.pull()
        assert shared(two) == shared(one)
        user = one.memories.place.space("user")
        assert state(two, SHARED_KINDS, user) == state(one, SHARED_KINDS, user) != []
        assert got.memories == 7
        assert not got.conflicts and not got.faults
        assert two.memories.recall("Kafka events").results[0].memory.content == (
            "first: we decided on Kafka for events"
        )
        branch = two.contexts.branches()[0]
        assert "we decided on Kafka" in two.contexts.check_branch(branch.id).path.read_text()


def test_changes_go_both_ways_and_deletions_too(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with machine(tmp_path, "one", project, clock) as one, machine(tmp_path, "two", project, clock) as two:
        ids = fill(one)
        one.backups.push()
        two.backups.pull()
        clock.advance(minutes=1)
        two.memories.update(ids[1], content="we decided on NATS after all")
        two.memories.delete(ids[2], hard=True)
        two.memories.capture("from the second machine")
        two.backups.push()
        one.backups.pull()
        assert shared(one) == shared(two)
        assert one.memories.get(ids[1]).content == "we decided on NATS after all"
        assert len(one.memories.history(ids[1])) == len(two.memories.history(ids[1]))
        assert one.backups.push().changed_here == 0
        assert one.backups.push().uploaded_bytes == 0


def test_of_two_rival_changes_both_are_kept_and_told(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with machine(tmp_path, "one", project, clock) as one, machine(tmp_path, "two", project, clock) as two:
        ids = fill(one)
        one.backups.push()
        two.backups.pull()
        clock.advance(minutes=1)
        one.memories.update(ids[1], content="the first machine says RabbitMQ")
        clock.advance(minutes=1)
        two.memories.update(ids[1], content="the second machine says NATS")
        one.backups.push()
        got = two.backups.pull()
        assert len(got.conflicts) == 1
        two.backups.push()
        one.backups.pull()
        assert shared(one) == shared(two)
        contents = {hit.memory.content for hit in one.memories.recall("machine says").results}
        assert {"the first machine says RabbitMQ", "the second machine says NATS"} <= contents
        assert one.memories.get(ids[1]).content == "the second machine says NATS"


def test_a_change_between_planning_and_writing_a_pull_is_kept(
    tmp_path: Path, project: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machine(tmp_path, "one", project, clock) as one, machine(tmp_path, "two", project, clock) as two:
        ids = fill(one)
        one.backups.push()
        two.backups.pull()
        clock.advance(minutes=1)
        one.memories.update(ids[1], content="the first machine says RabbitMQ")
        one.backups.push()
        apply, late = StoreReplica.apply, ["the second machine says NATS meanwhile"]

        def applied(self: StoreReplica, *given: Any) -> Sequence[Name]:
            if late and given[0]:
                two.memories.update(ids[1], content=late.pop())
            return apply(self, *given)

        monkeypatch.setattr(StoreReplica, "apply", applied)
        assert len(two.backups.pull().conflicts) == 1
        contents = {hit.memory.content for hit in two.memories.recall("machine says").results}
        assert {"the first machine says RabbitMQ", "the second machine says NATS meanwhile"} <= contents


def test_a_wrong_passphrase_changes_nothing(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with machine(tmp_path, "one", project, clock) as one:
        fill(one)
        one.backups.push()
    with machine(tmp_path, "two", project, clock, passphrase="quite another one") as two:
        two.memories.capture("here before")
        before = state(two)
        there = {path: path.read_bytes() for path in (tmp_path / "cloud").rglob("*") if path.is_file()}
        for call in (two.backups.pull, two.backups.push, two.backups.sync_status):
            with pytest.raises(WrongKey):
                call()
        assert state(two) == before
        assert {path: path.read_bytes() for path in (tmp_path / "cloud").rglob("*") if path.is_file()} == there


def test_the_days_number_of_calls_is_kept(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with machine(tmp_path, "one", project, clock) as one:
        one.memories.capture("something")
        one.backups.push()
        for _ in range(20):
            one.backups.pull()
        with pytest.raises(RateLimited) as refused:
            one.backups.pull()
        assert 0 < refused.value.retry_after <= 24 * 3600
    with machine(tmp_path, "one", project, clock) as again:
        with pytest.raises(RateLimited):
            again.backups.pull()
        assert (again.backups.sync_status().pushes_today, again.backups.sync_status().pulls_today) == (1, 20)
        clock.advance(days=1)
        again.backups.pull()


def test_a_call_that_failed_does_not_count(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with machine(tmp_path, "one", project, clock) as one:
        one.memories.capture("something")
        for _ in range(25):
            # Nothing was pushed yet.
            with pytest.raises(BackupError):
                one.backups.pull()
        one.backups.push()
        assert one.backups.sync_status().pulls_today == 0


def test_without_a_place_or_a_passphrase_it_says_what_to_set(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with machine(tmp_path, "one", project, clock, cloud_url=None) as one, pytest.raises(ConfigurationError) as told:
        one.backups.push()
    assert "CORTEX_CLOUD_URL" in told.value.remedy
    with machine(tmp_path, "one", project, clock, passphrase=None) as one, pytest.raises(ConfigurationError) as told:
        one.backups.push()
    assert "CORTEX_PASSPHRASE" in told.value.remedy
    with machine(tmp_path, "one", project, clock, passphrase="short") as one, pytest.raises(ConfigurationError):
        one.backups.push()


def test_a_folder_that_is_gone_is_told_as_such(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with machine(tmp_path, "one", project, clock, cloud_url=str(tmp_path / "not" / "mounted")) as one:
        one.memories.capture("something")
        with pytest.raises(NetworkError) as told:
            one.backups.push()
        assert told.value.remedy


def test_the_passphrase_can_be_in_a_file_that_only_its_owner_reads(
    tmp_path: Path, project: Path, clock: FakeClock
) -> None:
    file = tmp_path / "passphrase"
    file.write_text(f"{WORDS}\n")
    file.chmod(0o644)
    given = {"passphrase": None, "passphrase_file": str(file)}
    with machine(tmp_path, "one", project, clock, **given) as one:
        one.memories.capture("something")
        with pytest.raises(ConfigurationError, match="read by others"):
            one.backups.push()
        file.chmod(0o600)
        one.backups.push()
    with machine(tmp_path, "two", project, clock) as two:
        assert two.backups.pull().memories == 1


def test_a_licence_serves_as_the_key(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    given = {"passphrase": None, "license_key": "cortex-licence-of-some-length"}
    with machine(tmp_path, "one", project, clock, **given) as one:
        one.memories.capture("something")
        one.backups.push()
    with machine(tmp_path, "two", project, clock, **given) as two:
        assert two.backups.pull().memories == 1


def test_another_passphrase_takes_the_place_of_the_old_one(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with machine(tmp_path, "one", project, clock) as one:
        one.memories.capture("something")
        one.backups.push()
        one.backups.change_passphrase("an entirely new one")
        with pytest.raises(WrongKey):
            one.backups.pull()
    with machine(tmp_path, "two", project, clock, passphrase="an entirely new one") as two:
        assert two.backups.pull().memories == 1


def test_a_restore_takes_nothing_from_other_machines(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    with machine(tmp_path, "one", project, clock) as one, machine(tmp_path, "two", project, clock) as two:
        fill(one)
        made = one.backups.create()
        clock.advance(minutes=1)
        later = one.memories.capture("written after the snapshot")
        one.backups.push()
        two.backups.pull()
        one.backups.restore(made.id)
        one.backups.push()
        two.backups.pull()
        assert two.memories.get(later.id).content == "written after the snapshot"
        two.backups.push()
        one.backups.pull()
        assert one.memories.get(later.id).content == "written after the snapshot"
        assert shared(one) == shared(two)


def test_a_copied_home_is_a_machine_of_its_own(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    import shutil

    with machine(tmp_path, "one", project, clock) as one:
        fill(one)
        one.backups.push()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with machine(tmp_path, "one", project, clock) as one, machine(tmp_path, "two", project, clock) as two:
        clock.advance(minutes=1)
        mine = one.memories.capture("by the first")
        theirs = two.memories.capture("by the copy")
        one.backups.push()
        two.backups.push()
        one.backups.pull()
        two.backups.pull()
        assert shared(one) == shared(two)
        assert one.memories.get(theirs.id) and two.memories.get(mine.id)
        assert len(one.backups.sync_status().domains["project"].machines) == 2


class Keyring(KeyringBackend):
    """A keyring of the system, in memory."""

    priority = -2.0  # type: ignore[assignment]  # never chosen by itself: later tests have no keyring

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


def test_the_passphrase_can_be_in_the_systems_keyring(tmp_path: Path, project: Path, clock: FakeClock) -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(Keyring())
    try:
        with machine(tmp_path, "one", project, clock, passphrase=None) as one:
            one.memories.capture("something")
            with pytest.raises(ConfigurationError):
                one.backups.push()
            keep_in_keyring(WORDS)
            one.backups.push()
    finally:
        keyring.set_keyring(before)
    with machine(tmp_path, "two", project, clock) as two:
        assert two.backups.pull().memories == 1


def test_what_is_deleted_for_good_goes_with_all_that_hangs_on_it(
    tmp_path: Path, project: Path, clock: FakeClock
) -> None:
    """Mentions, relationships and what it superseded change with it, on both machines and in one step."""
    with machine(tmp_path, "one", project, clock) as one, machine(tmp_path, "two", project, clock) as two:
        old = one.memories.capture("BillingService uses PostgreSQL 15")
        new = one.memories.capture("BillingService uses PostgreSQL 16", supersedes=old.id)
        alone = one.memories.capture("OrderService uses Kafka")
        one.backups.push()
        two.backups.pull()
        for gone in (alone, new):
            clock.advance(minutes=1)
            two.memories.delete(gone.id, hard=True)
            two.backups.push()
            one.backups.pull()
            assert shared(one) == shared(two)
            assert gone.id not in str(shared(one))
