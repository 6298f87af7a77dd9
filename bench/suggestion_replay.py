"""Replay a history: at every step ask what else it needs, beside what simple rules would say, and answer truthfully."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from cortex_py import Cortex, NewMemory
from cortex_py.core.embedding.backends.backend import Backend
from suggestion_histories import History

TOP = 5
METHODS = ("suggest", "popularity", "recency", "semantic")
REASON = "not relevant to this task"
WARM = 0.2
BINS = 10


class Clock:
    """A clock that stands still until it is told to move."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 2, 9, 0, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def advance(self, **parts: float) -> None:
        self.moment += timedelta(**parts)


@dataclass(frozen=True)
class Asked:
    """One step that was measured: where it stands in its history in 0..1, and for each method its five."""

    place: float
    wanted: frozenset[str]
    shown: dict[str, tuple[str, ...]]
    sure: tuple[tuple[float, bool], ...]

    def found(self, method: str) -> float:
        """Of the files that could be among the five, the share that is."""
        return len(self.wanted & set(self.shown[method])) / min(TOP, len(self.wanted))

    def any(self, method: str) -> float:
        return float(bool(self.wanted & set(self.shown[method])))


@dataclass
class Replayed:
    """What came of a history: asked with the first file of a step at hand, and without."""

    name: str
    steps: int
    files: int
    begun: list[Asked] = field(default_factory=list)
    cold: list[Asked] = field(default_factory=list)


class Scene:
    """A store with a memory for each file of a history, all in one line of work."""

    def __init__(self, history: History, home: Path, backend: Backend) -> None:
        self.clock = Clock()
        root = home / "project"
        root.mkdir(parents=True)
        self.cortex = Cortex.open(home / "home", project=root, backend=backend, clock=self.clock)
        self.line = self.cortex.contexts.create_branch("The work on this project").id
        paths = list(history.texts)
        made = self.cortex.memories.capture_many(
            NewMemory(content=history.texts[path], path=path, source=f"file://{path}", branch_id=self.line)
            for path in paths
        )
        self.ids = dict(zip(paths, (one.id for one in made), strict=True))
        self.paths = {id: path for path, id in self.ids.items()}

    def load(self, path: str) -> None:
        self.cortex.contexts.load(self.ids[path], self.line)


def replay(history: History, backend: Backend, *, gap_hours: float, seed: int = 7) -> Replayed:
    done = Replayed(history.name, len(history.steps), len(history.texts))
    lot = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(history, Path(folder), backend)
        with scene.cortex:
            _steps(history, scene, done, gap_hours, lot)
    return done


def _steps(history: History, scene: Scene, done: Replayed, gap_hours: float, lot: random.Random) -> None:
    suggestions = scene.cortex.suggestions
    changed: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, step in enumerate(history.steps):
        scene.clock.advance(hours=gap_hours)
        files = list(step.files)
        # Which file a person opens first is not known from a log.
        lot.shuffle(files)
        place = number / len(history.steps)
        if len(files) > 1:
            hits = scene.cortex.memories.related(step.task, TOP + 1, mode="hybrid")
            meant = [scene.paths[hit.memory.id] for hit in hits]
            popular = sorted(changed, key=lambda path: (-changed[path], -last[path], path))
            recent = sorted(last, key=lambda path: (-last[path], path))
            for cold in (True, False):
                if not cold:
                    scene.load(files[0])
                    scene.clock.advance(minutes=1)
                held = set() if cold else {files[0]}
                wanted = frozenset(files) - held
                given = suggestions.suggest(step.task, top_k=TOP, branch_id=scene.line)
                ours = [scene.paths[one.memory.id] for one in given.suggestions]
                lists = zip(METHODS, (ours, popular, recent, meant), strict=True)
                shown = {name: tuple([path for path in paths if path not in held][:TOP]) for name, paths in lists}
                sure = tuple((one.confidence, scene.paths[one.memory.id] in wanted) for one in given.suggestions)
                (done.cold if cold else done.begun).append(Asked(place, wanted, shown, sure))
                if not cold and given.suggestions:
                    taken = [one.memory.id for one in given.suggestions if scene.paths[one.memory.id] in wanted]
                    if taken:
                        suggestions.accept(given.session_id, taken)
                    else:
                        suggestions.reject(given.session_id, REASON)
        for path in files[len(files) > 1 :]:
            scene.load(path)
        for path in files:
            changed[path] = changed.get(path, 0) + 1
            last[path] = number


# -- figures -------------------------------------------------------------------------------------


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def thirds(asked: Sequence[Asked], method: str) -> list[float]:
    """The share found in each third of the steps that were asked."""
    cuts = [len(asked) * part // 3 for part in range(4)]
    return [mean([one.found(method) for one in asked[a:b]]) for a, b in pairwise(cuts)]


def warmed(asked: Sequence[Asked]) -> list[Asked]:
    return [one for one in asked if one.place >= WARM]


def calibration(asked: Sequence[Asked]) -> float:
    """The expected calibration error in bins of equal width; the first fifth of a history is left out."""
    pairs = [pair for one in warmed(asked) for pair in one.sure]
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for pair in pairs:
        bins[min(BINS - 1, int(pair[0] * BINS))].append(pair)
    return sum(
        abs(sum(sure for sure, _ in some) - sum(right for _, right in some)) for some in bins
    ) / max(1, len(pairs))  # fmt: skip
