"""Several machines in any order of edits, exchanges and faults: all end with the same documents, and none is lost."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cortex_py.core.errors import BackupError, NetworkError, StorageError
from cortex_py.parts.backup.sync.merge import Name
from cortex_py.parts.backup.targets.target import StoredObject

from in_memory import Machine, MemoryReplica, MemoryTarget, broken_home

KEYS = {"memory": ("1" * 40, "2" * 40), "saved": ("prompt/review",), "entity": ("e",)}
NAMES = [Name(kind, key) for kind, keys in KEYS.items() for key in keys]
MACHINES = st.sampled_from(("anvil", "brook", "cedar"))
# A second, a day, longer than restore points last, and clocks that are years off.
JUMPS = st.sampled_from((1, 86_400, 9 * 86_400, 20 * 365 * 86_400, -20 * 365 * 86_400, 3_000 * 365 * 86_400))


class Machines(RuleBasedStateMachine):
    """`wanted` are the texts that somebody wrote and nobody who had them before the eyes changed or deleted."""

    @initialize()
    def start(self) -> None:
        self.place = MemoryTarget()
        self.machines = {name: Machine(name, self.place) for name in ("anvil", "brook", "cedar")}
        self.saved: dict[str, MemoryReplica] = {}
        self.wanted: set[str] = set()
        self.written = 0
        self.old_list: list[StoredObject] | None = None

    def _leaves(self, machine: Machine, name: Name) -> None:
        if name in machine.replica.held:
            self.wanted.discard(str(machine.replica.held[name][0].data["content"]))

    # -- what users do -------------------------------------------------------------------------------

    @rule(which=MACHINES, name=st.sampled_from(NAMES))
    def edit(self, which: str, name: Name) -> None:
        machine = self.machines[which]
        self._leaves(machine, name)
        self.written += 1
        text = f"text {self.written}"
        machine.replica.write(name.kind, name.key, text)
        if name.kind != "entity":
            self.wanted.add(text)

    @rule(which=MACHINES, name=st.sampled_from(NAMES))
    def write_what_others_write_too(self, which: str, name: Name) -> None:
        machine = self.machines[which]
        self._leaves(machine, name)
        machine.replica.write(name.kind, name.key, "common")

    @rule(which=MACHINES, at=st.integers(0, 20))
    def delete(self, which: str, at: int) -> None:
        machine = self.machines[which]
        names = sorted(machine.replica.held)
        if names:
            name = names[at % len(names)]
            self._leaves(machine, name)
            machine.replica.remove(*name)

    @rule(which=MACHINES, seconds=JUMPS)
    def clock_jumps(self, which: str, seconds: int) -> None:
        self.machines[which].clock.advance(seconds=seconds)
        # A list may be old, but not of another day.
        self.old_list = None

    # -- exchanges -----------------------------------------------------------------------------------

    @rule(which=MACHINES)
    def push(self, which: str) -> None:
        self.machines[which].push()

    @rule(which=MACHINES)
    def push_whole(self, which: str) -> None:
        self.machines[which].push(whole=True)

    @rule(which=MACHINES)
    def pull(self, which: str) -> None:
        # Before anything was pushed there is nothing to pull.
        if self.place.objects:
            self.machines[which].pull()

    @rule(which=MACHINES, after=st.integers(0, 8), done=st.booleans(), pushes=st.booleans())
    def line_breaks(self, which: str, after: int, done: bool, pushes: bool) -> None:
        machine = self.machines[which]
        machine.target.fail_in, machine.target.done_though = after, done
        before = machine.replica.lines
        try:
            if pushes:
                machine.push()
            elif self.place.objects:
                machine.pull()
        except NetworkError:
            if not pushes:
                assert machine.replica.lines == before
        finally:
            machine.target.well()

    @rule(which=MACHINES)
    def home_breaks_while_pulling(self, which: str) -> None:
        machine = self.machines[which]
        if not self.place.objects:
            return
        before = machine.replica.lines
        machine.replica.before_apply = broken_home
        with suppress(StorageError):
            machine.pull()
        machine.replica.before_apply = None
        assert machine.replica.lines == before

    @rule(which=MACHINES, pushes=st.booleans(), twice=st.booleans())
    def list_is_old(self, which: str, pushes: bool, twice: bool) -> None:
        machine = self.machines[which]
        if not self.place.objects:
            return
        old, self.old_list = self.old_list, list(self.place.list(""))
        machine.target.old_list, machine.target.twice = old, twice
        # A list may name what is gone; then that machine is left out.
        with suppress(BackupError):
            if pushes:
                machine.push()
            else:
                machine.pull()
        machine.target.well()

    # -- homes come and go ---------------------------------------------------------------------------

    @rule(which=MACHINES)
    def save_home(self, which: str) -> None:
        self.saved[which] = self.machines[which].replica.copied()

    @rule(which=MACHINES, anew=st.booleans())
    def home_is_restored_after_a_push(self, which: str, anew: bool) -> None:
        machine = self.machines[which]
        machine.push()
        old = self.saved.get(which)
        machine.replica = MemoryReplica(which, machine.clock) if anew or old is None else old.copied()

    # -- what holds ----------------------------------------------------------------------------------

    @invariant()
    def nothing_wanted_is_lost(self) -> None:
        """What the machines hold or have pushed, without anybody having to do anything more."""
        if not hasattr(self, "machines") or self.written % 5:
            return
        here = set().union(*(machine.replica.texts for machine in self.machines.values()))
        if self.wanted - here:
            reader = Machine("reader", self.place)
            reader.pull()
            here |= reader.replica.texts
        assert self.wanted <= here

    def teardown(self) -> None:
        if not hasattr(self, "machines"):
            return
        for _ in range(3):
            for machine in self.machines.values():
                machine.push()
                pulled = machine.pull()
                assert not pulled.faults
                assert not pulled.rolled_back
        first, *others = (machine.replica.lines for machine in self.machines.values())
        assert others == [first] * len(others)
        texts = self.machines["anvil"].replica.texts
        assert self.wanted <= texts
        # All is quiet now: nothing more is sent in either direction.
        for machine in self.machines.values():
            machine.push()
        for machine in self.machines.values():
            assert machine.push().documents == 0
            machine.pull()
            assert machine.pull().packs == 0
        fresh = Machine("fresh", self.place)
        fresh.pull()
        assert fresh.replica.lines == first


Machines.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestMachines = Machines.TestCase
