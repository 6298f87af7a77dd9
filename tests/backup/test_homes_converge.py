"""Two homes that push and pull in any order come to the same state, and nothing that was written is lost."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from cortex_py import Cortex
from cortex_py.core.errors import CortexError
from cortex_py.core.store.documents.document import SHARED_KINDS
from cortex_py.parts.backup.sync import sync as exchange

from helpers import FakeClock
from homes import opened, state
from in_memory import ANY, FAST

machines = st.sampled_from([0, 1])
places = st.integers(0, 30)
words = st.sampled_from(["PostgreSQL", "Redis", "Kafka", "NATS", "Django", "tabs", "spaces"])


class Homes(RuleBasedStateMachine):
    """What was last written under each id by somebody who knew what was there before, and is not deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="cortex-homes-"))
        self.clock = FakeClock()
        project = self.folder / "project"
        project.mkdir()
        self.cortexes: list[Cortex] = []
        self.numbers = 0
        self.written: set[str] = set()
        for name in ("one", "two"):
            self.cortexes.append(
                opened(
                    self.folder / name,
                    project,
                    self.clock,
                    cloud_url=str(self.folder / "cloud"),
                    passphrase="correct horse battery staple",
                )
            )

    def ids(self, n: int) -> list[str]:
        store = self.cortexes[n].store
        with store.database.read() as session:
            rows = session.rows("SELECT id FROM memory WHERE space = ? ORDER BY id", (self.cortexes[n].project.id,))
        return [row[0] for row in rows]

    def text(self, word: str) -> str:
        self.numbers += 1
        return f"note {self.numbers} about BillingService and {word}"

    @rule(n=machines, word=words)
    def capture(self, n: int, word: str) -> None:
        text = self.text(word)
        self.cortexes[n].memories.capture(text)
        self.written.add(text)

    @rule(n=machines, place=places, word=words)
    def update(self, n: int, place: int, word: str) -> None:
        ids = self.ids(n)
        if ids:
            one = ids[place % len(ids)]
            try:
                before = self.cortexes[n].memories.get(one).content
                text = self.text(word)
                self.cortexes[n].memories.update(one, content=text)
            except CortexError:
                return  # deleted
            self.written.discard(before)
            self.written.add(text)

    @rule(n=machines, place=places, hard=st.booleans())
    def delete(self, n: int, place: int, hard: bool) -> None:
        ids = self.ids(n)
        if ids:
            one = ids[place % len(ids)]
            store = self.cortexes[n].store
            with store.database.read() as session:
                found = store.memories.find(session, one, limit=1)
            try:
                self.cortexes[n].memories.delete(one, hard=hard)
            except CortexError:
                return
            self.written.discard(found[0][2].content)

    @rule(n=machines, word=words)
    def save_prompt(self, n: int, word: str) -> None:
        self.cortexes[n].prompts.save(f"about-{word.lower()}", f"Tell of {word}: {self.text(word)}", domain="project")

    @rule(n=machines, word=words)
    def create_entity(self, n: int, word: str) -> None:
        self.cortexes[n].graph.create(word, type="Technology", properties={"seen": self.text(word)})

    @rule(n=machines)
    def branch(self, n: int) -> None:
        self.clock.advance(seconds=1)
        self.numbers += 1
        self.cortexes[n].contexts.create_branch(f"Topic {self.numbers}")

    @rule(days=st.integers(-40, 40))
    def jump(self, days: int) -> None:
        self.clock.advance(days=days, seconds=1)

    @rule(n=machines)
    def push(self, n: int) -> None:
        self.cortexes[n].backups.push()

    @precondition(lambda self: (self.folder / "cloud").exists())
    @rule(n=machines)
    def pull(self, n: int) -> None:
        self.cortexes[n].backups.pull()

    @rule(n=machines)
    def exchange(self, n: int) -> None:
        self.cortexes[n].backups.push()
        self.cortexes[1 - n].backups.pull()

    @rule(n=machines, place=places)
    def purge_what_both_have(self, n: int, place: int) -> None:
        self.exchange(n)
        self.delete(n, place, True)
        self.exchange(n)

    @invariant()
    def sound(self) -> None:
        for cortex in self.cortexes:
            store = cortex.store
            with store.database.read() as session:
                loose = session.rows(
                    "SELECT count(*) FROM mention n WHERE NOT EXISTS (SELECT 1 FROM entity e WHERE e.space = n.space "
                    "AND e.id = n.entity_id) OR NOT EXISTS (SELECT 1 FROM memory m WHERE m.num = n.num)"
                )
            assert loose == [(0,)]

    def teardown(self) -> None:
        try:
            self._converge()
        finally:
            for cortex in self.cortexes:
                cortex.close()
            shutil.rmtree(self.folder)

    def _converge(self) -> None:
        for _ in range(4):
            for cortex in self.cortexes:
                cortex.backups.push()
                cortex.backups.pull()
            shared = [state(cortex, SHARED_KINDS) for cortex in self.cortexes]
            if shared[0] == shared[1]:
                break
        assert shared[0] == shared[1]
        store = self.cortexes[0].store
        with store.database.read() as session:
            rows = session.rows("SELECT content FROM memory WHERE space = ?", (self.cortexes[0].project.id,))
        assert self.written <= {row[0] for row in rows}


@pytest.mark.slow
def test_homes_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    # Deriving a key takes its time on purpose; that it does is tested elsewhere. Nor are days counted here.
    monkeypatch.setattr(exchange, "Sync", partial(exchange.Sync, parameters=FAST, limits=ANY))
    monkeypatch.setattr(exchange, "DAILY", {"push": 10_000, "pull": 10_000})
    run_state_machine_as_test(
        Homes,
        settings=settings(
            max_examples=6, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
