"""A replica and a target in memory, with the faults that real ones have when they are told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Self, TypeVar

from cortex_py.core.clock import to_micros
from cortex_py.core.errors import NetworkError, StorageError
from cortex_py.core.store.documents.document import Document
from cortex_py.parts.backup.sync.merge import Change, DocumentState, Name
from cortex_py.parts.backup.sync.sync import PullResult, PushResult, Sync
from cortex_py.parts.backup.targets.target import StoredObject, Target
from cortex_py.parts.backup.vault.header import Kdf, KdfLimits, KdfParameters

FAST = KdfParameters(Kdf.ARGON2ID, memory_kib=8, passes=1, lanes=1)
ANY = KdfLimits(least_memory_kib=8, least_work_kib=8)
SPACE = "0123456789ab"
Result = TypeVar("Result")


class MovableClock:
    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 2, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def advance(self, **parts: float) -> None:
        # A clock that is moved beyond what a date can be stays where it is.
        with suppress(OverflowError):
            moved = self.moment + timedelta(**parts)
            if 1970 < moved.year < 9990:
                self.moment = moved


class MemoryTarget:
    """The objects of one place, which all machines share."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.read: list[str] = []

    @property
    def shown(self) -> str:
        return "memory:"

    def put(self, name: str, data: bytes) -> None:
        self.objects[name] = data

    def create(self, name: str, data: bytes) -> bool:
        return self.objects.setdefault(name, data) is data

    def get(self, name: str, limit: int) -> bytes | None:
        self.read.append(name)
        data = self.objects.get(name)
        if data is not None and len(data) > limit:
            raise NetworkError(f"{name} is too large.")
        return data

    def list(self, prefix: str) -> Iterator[StoredObject]:
        for name in sorted(self.objects):
            if name.startswith(prefix):
                yield StoredObject(name, len(self.objects[name]))

    def delete(self, name: str) -> None:
        self.objects.pop(name, None)

    def close(self) -> None:
        pass


class FaultyTarget:
    """One machine's way to a place. `fail_in` operations from now one fails, done or not; lists may be old or
    tell names twice."""

    def __init__(self, place: Target) -> None:
        self._place = place
        self.fail_in: int | None = None
        self.done_though = False
        self.old_list: Sequence[StoredObject] | None = None
        self.twice = False

    @property
    def shown(self) -> str:
        return "faulty:"

    def well(self) -> None:
        self.fail_in, self.done_though, self.old_list, self.twice = None, False, None, False

    def _run(self, operation: Callable[[], Result]) -> Result:
        if self.fail_in is None:
            return operation()
        self.fail_in -= 1
        if self.fail_in >= 0:
            return operation()
        self.fail_in = None
        if self.done_though:
            operation()
        raise NetworkError("The line broke.")

    def put(self, name: str, data: bytes) -> None:
        self._run(lambda: self._place.put(name, data))

    def create(self, name: str, data: bytes) -> bool:
        return self._run(lambda: self._place.create(name, data))

    def get(self, name: str, limit: int) -> bytes | None:
        return self._run(lambda: self._place.get(name, limit))

    def list(self, prefix: str) -> Iterator[StoredObject]:
        listed = self.old_list if self.old_list is not None else list(self._run(lambda: self._place.list("")))
        for stored in listed:
            if stored.name.startswith(prefix):
                yield stored
                if self.twice:
                    yield stored

    def delete(self, name: str) -> None:
        self._run(lambda: self._place.delete(name))

    def close(self) -> None:
        pass


class MemoryReplica:
    """A home in memory, edited through `write` and `remove` at the time of its clock."""

    def __init__(self, machine: str, clock: MovableClock | None = None) -> None:
        self.machine = machine
        self.clock = clock or MovableClock()
        self.held: dict[Name, tuple[Document, int]] = {}
        self.known: dict[Name, DocumentState] = {}
        self.facts: dict[str, str] = {}
        self.applied = 0
        # Called before changes are made: to change something at that moment, or to raise.
        self.before_apply: Callable[[], None] | None = None

    def copied(self) -> Self:
        """The home as a backup of the machine would have it."""
        copy = type(self)(self.machine, self.clock)
        copy.held, copy.known, copy.facts = dict(self.held), dict(self.known), dict(self.facts)
        return copy

    # -- what a user does and sees -----------------------------------------------------------------

    def write(self, kind: str, key: str, text: str, *, vectors: bytes = b"", **more: object) -> Document:
        tags = {} if kind == "entity" else {"tags": []}
        document = Document(kind, key, {"content": text, **tags, **more}, vectors)
        self.held[Name(kind, key)] = (document, to_micros(self.clock.now()))
        return document

    def remove(self, kind: str, key: str) -> None:
        del self.held[Name(kind, key)]

    @property
    def lines(self) -> dict[Name, bytes]:
        return {name: document.line for name, (document, _) in self.held.items()}

    @property
    def texts(self) -> set[str]:
        return {str(document.data["content"]) for document, _ in self.held.values()}

    # -- what sync asks ------------------------------------------------------------------------------

    def documents(self) -> Iterator[Document]:
        for name in sorted(self.held):
            yield self.held[name][0]

    def withholds(self, document: Document) -> bool:
        return False

    def entries(self) -> dict[Name, DocumentState]:
        return dict(self.known)

    def changed_at(self, document: Document) -> int:
        return self.held[Name(document.kind, document.key)][1]

    def apply(self, changes: Sequence[Change], entries: Mapping[Name, DocumentState]) -> Sequence[Name]:
        if self.before_apply is not None:
            self.before_apply()
        taken = list(changes)
        meanwhile = [change.name for change in taken if self._digest(change.name) != change.expected]
        if meanwhile:
            return meanwhile
        for change in taken:
            if change.load is None:
                del self.held[change.name]
            else:
                self.held[change.name] = (change.load(), 1)
        self.known.update(entries)
        self.applied += 1
        return ()

    def keep(self, entries: Mapping[Name, DocumentState]) -> None:
        self.known.update(entries)

    def fact(self, key: str) -> str | None:
        return self.facts.get(key)

    def remember(self, key: str, value: str) -> None:
        self.facts[key] = value

    def _digest(self, name: Name) -> str | None:
        held = self.held.get(name)
        return held[0].digest if held else None


class Machine:
    """A home with its own clock and its own way to the shared place."""

    def __init__(self, name: str, place: Target, passphrase: str = "correct horse") -> None:
        self.replica = MemoryReplica(name)
        self.clock = self.replica.clock
        self.target = FaultyTarget(place)
        self.sync = Sync(self.target, passphrase, clock=self.clock, parameters=FAST, limits=ANY)

    def push(self, *, whole: bool = False) -> PushResult:
        return self.sync.push(self.replica, SPACE, whole=whole)

    def pull(self) -> PullResult:
        return self.sync.pull(self.replica, SPACE)


def broken_home() -> None:
    raise StorageError("The disk is gone.")
