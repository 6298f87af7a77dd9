"""What could be suggested for a task, and what is known of each: by history, meaning, the graph and git."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ..clock import to_micros
from ..graph.service import Graph
from ..memory.service import Memories
from ..records import Hit, Memory
from ..store.store import Store
from ..store.suggestions import ReferenceRow
from ..worktree.git import Repository, run_git
from .references import faded
from .suggesting import Signals

__all__ = ["CandidateFinder", "Gathered", "described", "task_kind", "task_words"]

_FOUND = 20
# Where not even the best has this score, nothing is about the task; where one is, others may be that score less.
_BEST, _LEAST = 0.08, 0.02
_TIED = 10
_ANCHORS = 8
_PARTNERS = 20
_KEPT = 30
_CHOICES = 300
_FILES = 8
_PER_FILE = 3
_HALF_DAY = 12 * 3_600 * 1_000_000
_SHORT = 60
_KEY = 200
# How much of an earlier task's words a task must have to be like it.
_LIKE = 0.34
# Whole words, with the endings that they take: "address" adds nothing, and "docker" documents nothing.
_ENDINGS = r"(?:s|es|d|ed|ing|ion|ions|ure|ures|er|ation)?"
_KINDS = tuple(
    (kind, re.compile(rf"(?:{words}){_ENDINGS}"))
    for kind, words in (
        ("fix", "fix|bug|error|crash|fail|broken|regress|issue|debug|debugg"),
        ("test", "test|untested|coverage|mock|fixture"),
        ("docs", "docs?|document|documentation|readme|changelog|guide|comment"),
        ("refactor", "refactor|clean|cleanup|renam|rename|mov|move|simplif|simplify|simplified|restructur|extract"),
        ("operations", "deploy|deployment|releas|release|docker|dockerfile|migrat|migrate|config|configur|configure"
         "|upgrad|upgrade|bump|version|pipeline"),
        ("feature", "add|implement|implementation|creat|create|support|feature|introduc|introduce|build|new"),
    )
)  # fmt: skip


@dataclass(slots=True)
class Gathered:
    """The candidates with their records, and the record of each that history was asked with."""

    signals: dict[str, Signals] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)

    def add(self, memory: Memory, **more: object) -> None:
        self.memories.setdefault(memory.id, memory)
        known = self.signals.get(memory.id) or Signals(memory.id)
        self.signals[memory.id] = replace(known, **more)  # type: ignore[arg-type]


class CandidateFinder:
    """Looks for candidates in one project."""

    def __init__(
        self, store: Store, memories: Memories, graph: Graph, repository: Repository | None, project_id: str
    ) -> None:
        self._store = store
        self._memories = memories
        self._graph = graph
        self._repository = repository
        self._project = project_id

    def gather(self, task: str, branch_id: str | None, now: int) -> Gathered:
        found = Gathered()
        hits = _about(self._memories.related(task[:2_000], _FOUND, mode="hybrid"))
        for hit in hits:
            found.add(hit.memory, semantic=hit.score)
        self._from_graph(hits, found)
        self._from_git(found)
        self._from_history(task, hits, branch_id, now, found)
        for memory_id, memory in found.memories.items():
            found.signals[memory_id] = described(found.signals[memory_id], memory, now)
        return found

    def _from_graph(self, hits: Sequence[Hit], found: Gathered) -> None:
        for tied in self._graph.expand(hits[:5], limit=_TIED):
            found.add(tied.memory, graph=tied.score)

    def _from_git(self, found: Gathered) -> None:
        """Records about the files that are changed here: not committed, or on this branch alone."""
        for path in self._changed()[:_FILES]:
            quoted = path.replace("\\", "\\\\").replace('"', '\\"')
            for memory in self._memories.listed(f'path:"{quoted}"', _PER_FILE):
                found.add(memory, git=1.0, git_file=posixpath.basename(path))

    def _changed(self) -> list[str]:
        if self._repository is None or self._repository.is_bare:
            return []
        asked = [("diff", "--name-only", "-z", "HEAD"), ("ls-files", "-z", "--others", "--exclude-standard")]
        default = self._repository.default_branch()
        if default is not None and default != self._repository.head().branch:
            asked.append(("diff", "--name-only", "-z", f"refs/heads/{default}...HEAD"))
        names: dict[str, None] = {}
        for arguments in asked:
            answer = run_git(self._repository.root, *arguments)
            if answer is not None and answer.returncode == 0:
                shown = answer.stdout.decode("utf-8", "replace").split("\0")
                names.update(dict.fromkeys(sorted(path for path in shown if path)))
        return list(names)

    def _from_history(self, task: str, hits: Sequence[Hit], branch_id: str | None, now: int, found: Gathered) -> None:
        table = self._store.suggestions
        with self._store.database.read() as session:
            recent = table.recent(session, self._project, branch_id, 100, now - _HALF_DAY) if branch_id else []
            anchors = _anchors(recent, hits)
            partners = table.together(session, self._project, list(anchors), _PARTNERS)
            partners = _strongest(partners, anchors, now)
            chosen = _chosen(table.chosen(session, self._project, _CHOICES), task)
            ids = dict.fromkeys([*(pair[1] for pair in partners), *chosen])
            strengths = table.strengths(session, self._project, [*found.memories, *ids])
        missing = [one for one in dict.fromkeys([*ids, *anchors]) if one not in found.memories]
        known = found.memories | self._memories.visible(missing)
        self._weigh_partners(partners, anchors, known, now, found)
        for memory_id, times in chosen.items():
            if memory_id in known:
                found.add(known[memory_id], selected=times)
        for memory_id, (value, _, at) in strengths.items():
            memory = found.memories.get(memory_id)
            if memory is not None:
                found.add(memory, used=faded(value, at, now))
        # What is on the table already need not be suggested.
        for memory_id in {one.memory_id for one in recent}:
            found.signals.pop(memory_id, None)
            found.memories.pop(memory_id, None)

    def _weigh_partners(
        self,
        partners: Sequence[tuple[str, str, float, int, int]],
        anchors: dict[str, float],
        known: dict[str, Memory],
        now: int,
        found: Gathered,
    ) -> None:
        """Add up what speaks for each record; the strongest of its partners is named as the reason."""
        total: dict[str, float] = {}
        best: dict[str, tuple[float, str, int]] = {}
        for anchor, other, value, times, at in partners:
            weight = anchors[anchor] * faded(value, at, now)
            total[other] = total.get(other, 0.0) + weight
            if weight > best.get(other, (0.0, "", 0))[0]:
                best[other] = weight, anchor, times
        for other, strength in total.items():
            if other not in known:
                continue
            _, anchor, times = best.get(other, (0.0, "", 0))
            beside = known.get(anchor)
            label = _label(beside) if beside is not None else ""
            found.add(known[other], together=strength, together_with=label, together_times=times)


def _about(hits: Sequence[Hit]) -> list[Hit]:
    if not hits or hits[0].score < _BEST:
        return []
    return [hit for hit in hits if hit.score >= _LEAST]


def _anchors(recent: Sequence[ReferenceRow], hits: Sequence[Hit]) -> dict[str, float]:
    """What the work is about now: what was just referred to, and what the task means; each with its weight."""
    weights: dict[str, float] = {}
    for place, one in enumerate(dict.fromkeys(row.memory_id for row in recent)):
        weights[one] = 0.9**place
    for hit in hits[:3]:
        weights[hit.memory.id] = max(weights.get(hit.memory.id, 0.0), hit.score)
    return dict(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:_ANCHORS])


_Partner = tuple[str, str, float, int, int]


def _strongest(partners: Sequence[_Partner], anchors: dict[str, float], now: int) -> list[_Partner]:
    """The pairs of those records that most speaks for: looking at all of them would take longer than it is worth."""
    total: dict[str, float] = {}
    for anchor, other, value, _, at in partners:
        total[other] = total.get(other, 0.0) + anchors[anchor] * faded(value, at, now)
    kept = set(sorted(total, key=lambda one: (-total[one], one))[:_KEPT])
    return [one for one in partners if one[1] in kept]


def _chosen(events: Sequence[ReferenceRow], task: str) -> dict[str, int]:
    """How often records were chosen for tasks like this one."""
    words = _subject(task)
    found: dict[str, int] = {}
    for event in events:
        theirs = _subject(event.task)
        if words and theirs and len(words & theirs) / min(len(words), len(theirs)) >= _LIKE:
            found[event.memory_id] = found.get(event.memory_id, 0) + 1
    return found


def task_words(task: str) -> frozenset[str]:
    """The words that tell tasks apart."""
    from ..memory.terms import STOP_WORDS

    words = (word.strip(".,:;!?()[]\"'`").lower() for word in task[:2_000].split())
    return frozenset(word for word in words if len(word) > 2 and word not in STOP_WORDS)


@lru_cache(maxsize=2_000)
def _subject(task: str) -> frozenset[str]:
    """What a task is about, without what is done there: that both add something makes no two tasks alike."""
    words = task_words(task)
    return frozenset(word for word in words if not any(form.fullmatch(word) for _, form in _KINDS)) or words


def task_kind(task: str) -> str:
    """What kind of work a task is: answers teach about work of that kind first."""
    words = task_words(task)
    return next((kind for kind, form in _KINDS if any(form.fullmatch(word) for word in words)), "other")


def described(signals: Signals, memory: Memory, now: int) -> Signals:
    place = memory.path or (memory.source or "").removeprefix("file://")
    folders = place.split("/")[:-1] if "/" in place else []
    return replace(
        signals,
        age_days=max(0.0, (now - to_micros(memory.updated_at)) / 86_400_000_000),
        branch_id=memory.branch_id,
        area="/".join(folders[:2]),
        category=memory.category or "",
        text_key=" ".join(memory.content[:_KEY].lower().split()),
    )


def _label(memory: Memory) -> str:
    words = " ".join((memory.symbol or memory.path or memory.summary or memory.content).split())
    return words if len(words) <= _SHORT else words[: _SHORT - 1] + "…"
