"""Personal data and sync: what holds some stays on its machine, and nothing is taken for deleted because of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.store.documents.document import SHARED_KINDS
from cortex_py.parts.backup.sync import sync as exchange
from cortex_py.surfaces.mcp.families.backup import PushAnswer

from helpers import FakeClock
from homes import fill, opened, state
from in_memory import ANY, FAST

# Each home has a store of its own.
pytestmark = pytest.mark.sqlite_only

MAIL = "anna.berg@parts-shop.de"
NAMED = "I met Angela Merkel in Berlin."


@pytest.fixture(autouse=True)
def _quick_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deriving a key takes its time on purpose; that it does is tested elsewhere."""
    monkeypatch.setattr(exchange, "Sync", partial(exchange.Sync, parameters=FAST, limits=ANY))


class Machines:
    def __init__(self, tmp_path: Path, project: Path, clock: FakeClock) -> None:
        self._given = (tmp_path, project, clock)

    def open(self, name: str, **settings: object) -> Cortex:
        tmp_path, project, clock = self._given
        given = {"cloud_url": str(tmp_path / "cloud"), "passphrase": "several words", **settings}
        return opened(tmp_path / name, project, clock, **given)


@pytest.fixture
def machines(tmp_path: Path, project: Path, clock: FakeClock) -> Machines:
    return Machines(tmp_path, project, clock)


def lines(cortex: Cortex) -> bytes:
    return b"\n".join(state(cortex, SHARED_KINDS))


def contents(cortex: Cortex) -> set[str]:
    return {hit.memory.content for hit in cortex.memories.recall().results}


def test_memories_with_personal_data_stay_here_with_what_belongs_to_them(machines: Machines) -> None:
    with machines.open("one") as one, machines.open("two") as two:
        fill(one)
        mail = one.memories.capture(f"PostgreSQL belongs to {MAIL}")
        named = one.memories.capture(NAMED)
        one.prompts.save("ask", f"Write to {MAIL}.")
        one.contexts.create_branch(f"Reply to {MAIL}")
        pending = one.backups.sync_status().domains["project"].pending
        sent = one.backups.push()
        assert (sent.withheld["memory"], sent.withheld["saved"], sent.withheld["branch"]) == (2, 1, 1)
        assert "2 memories" in PushAnswer.from_sent(sent).message
        two.backups.pull()
        there = lines(two)
        assert b"anna" not in there and b"erkel" not in there and mail.id.encode() not in there
        assert named.id.encode() not in there
        # An entity that others speak of too is shared.
        assert b"PostgreSQL" in there
        # What stays does not wait to be pushed, and the rest is there.
        assert one.backups.sync_status().domains["project"].pending == 0
        assert pending < len(state(one, SHARED_KINDS))
        assert contents(one) - contents(two) == {mail.content, named.content}
        assert one.backups.push().documents == 0


def test_it_is_shared_where_that_is_allowed_or_nothing_is_looked_for(machines: Machines) -> None:
    with machines.open("one", sync_personal_data=True) as one, machines.open("two") as two:
        one.memories.capture(f"to {MAIL}")
        assert one.backups.push().withheld == {}
        two.backups.pull()
        assert contents(two) == {f"to {MAIL}"}
    with machines.open("three", personal_data="keep") as three, machines.open("four") as four:
        three.memories.capture(f"kept {MAIL}")
        assert three.backups.push().withheld == {}
        four.backups.pull()
        assert f"kept {MAIL}" in contents(four)


def test_what_was_not_looked_at_yet_is_looked_at_before_a_push(machines: Machines) -> None:
    with machines.open("one", personal_data="keep") as one:
        one.memories.capture(f"to {MAIL}")
        one.memories.capture(NAMED)
        one.memories.capture("nothing of the kind")
    with machines.open("one") as one, machines.open("two") as two:
        assert one.backups.push().withheld["memory"] == 2
        two.backups.pull()
        assert contents(two) == {"nothing of the kind"}


def test_an_earlier_version_counts_as_well(machines: Machines) -> None:
    with machines.open("one") as one, machines.open("two") as two:
        memory = one.memories.capture(f"to {MAIL}")
        one.memories.update(memory.id, content="to the supplier")
        one.memories.capture("nothing of the kind")
        one.backups.push()
        two.backups.pull()
        assert contents(two) == {"nothing of the kind"}
        assert b"anna" not in lines(two)


def test_a_memory_that_comes_to_hold_some_is_not_deleted_elsewhere(machines: Machines) -> None:
    with machines.open("one") as one, machines.open("two") as two:
        memory = one.memories.capture("to the supplier")
        one.backups.push()
        two.backups.pull()
        one.memories.update(memory.id, content=f"to {MAIL}")
        assert one.backups.push().withheld["memory"] == 1
        got = two.backups.pull()
        assert (got.removed, contents(two)) == (0, {"to the supplier"})
        # A change there comes back: both are kept, here.
        two.memories.update(memory.id, content="to another supplier")
        two.backups.push()
        one.backups.pull()
        assert contents(one) == {f"to {MAIL}", "to another supplier"}
        one.backups.push(whole=True)
        assert two.backups.pull().removed == 0
        assert b"anna" not in lines(two)
        # Deleted for good, it is gone everywhere.
        one.memories.delete(memory.id, hard=True)
        one.backups.push()
        two.backups.pull()
        assert f'"key":"{memory.id}","kind":"memory"'.encode() not in lines(two)


def test_a_whole_push_takes_it_out_of_the_target(machines: Machines) -> None:
    with machines.open("one", sync_personal_data=True) as one:
        one.memories.capture(f"to {MAIL}")
        one.memories.capture("nothing of the kind")
        one.backups.push()
    with machines.open("one") as one, machines.open("two") as two:
        one.backups.push(whole=True)
        two.backups.pull()
        assert contents(two) == {"nothing of the kind"}


def test_what_comes_from_elsewhere_is_taken_in_and_not_passed_on(machines: Machines) -> None:
    with machines.open("one", sync_personal_data=True) as one, machines.open("two") as two:
        memory = one.memories.capture(f"to {MAIL}")
        one.backups.push()
        two.backups.pull()
        two.memories.capture("nothing of the kind")
        assert two.backups.push().withheld["memory"] == 1
        assert two.memories.get(memory.id).personal == (("email", 1),)
        assert one.backups.pull().removed == 0
        assert contents(one) == {f"to {MAIL}", "nothing of the kind"}


def test_what_a_memory_that_stays_replaces_is_not_hidden_elsewhere(machines: Machines) -> None:
    with machines.open("one") as one, machines.open("two") as two:
        old = one.memories.capture("The supplier is Parts and Sons")
        one.backups.push()
        two.backups.pull()
        new = one.memories.capture(f"The supplier is {MAIL}")
        one.memories.supersede(old.id, new.id)
        one.backups.push()
        two.backups.pull()
        assert contents(two) == {"The supplier is Parts and Sons"}
        assert contents(one) == {new.content}
