"""Finds candidates for a task by history, meaning, the graph and git, with the signals that speak for each."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ...core.clock import to_micros
from ...core.memory.service import Memories
from ...core.memory.text import query_terms, stop_words, terms
from ...core.records import Hit, Memory
from ...core.store.database import Session
from ...core.store.store import Store
from ...worktree.git.repository import Repository
from ...worktree.git.runner import run_git
from ..graph.service import Graph
from .ranking import HABIT, Cues
from .usage_log import BURST, Habit, fade, habits

__all__ = ["CandidateFinder", "Gathered", "describe", "task_kind", "task_words"]

_FOUND = 12
# If even the best hit scores less, none is about the task; if it does not, others may score far less.
_BEST, _LEAST = 0.08, 0.02
_TIED = 10
_ANCHORS = 8
_MEANT = 3
# The partners of all anchors together, and the fewest of each.
_PARTNERS, _FEWEST = 48, 6
_CHOICES = 60
# The newest refused sessions that are read, and for how long a refusal keeps a record from such a task.
_REFUSALS = 100
_REFUSED_FOR = 30 * 86_400_000_000
_FILES = 8
_PER_FILE = 3
# The newest events of a branch that show what it uses again and again.
_EVENTS = 150
# Of what history knows, this many times `top_k` is read; more would only be left out later.
_LOOKED_AT = 2
_SHORT = 60
_READ, _SHARED = 4_000, 2
_KEY = 200
# The share of words that two tasks must have in common to be alike.
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
    """The candidates with their records."""

    signals: dict[str, Cues] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)


class _Table:
    """Collects the signals of each candidate."""

    def __init__(self) -> None:
        self.memories: dict[str, Memory] = {}
        self._columns: dict[str, dict[str, Any]] = {}

    def add(self, memory: Memory, **more: object) -> None:
        self.memories.setdefault(memory.id, memory)
        self._columns.setdefault(memory.id, {}).update(more)

    def gathered(self, past: _Past, now: int) -> Gathered:
        kept = {one: memory for one, memory in self.memories.items() if past.leaves(memory)}
        return Gathered(
            {one: Cues(one, **self._columns[one], **_description(memory, now)) for one, memory in kept.items()}, kept
        )


class CandidateFinder:
    """Finds candidates in one project."""

    def __init__(
        self, store: Store, memories: Memories, graph: Graph, repository: Repository | None, project_id: str
    ) -> None:
        self._store = store
        self._memories = memories
        self._graph = graph
        self._repository = repository
        self._project = project_id

    def gather(self, task: str, branch_id: str | None, now: int, top_k: int) -> Gathered:
        table = _Table()
        hits = self._memories.related(task[:2_000], max(_FOUND, 2 * top_k), mode="hybrid")
        with self._store.database.read() as session:
            past = self._past(session, task, hits, branch_id, now, top_k)
        for hit in past.hits:
            by_meaning = hit.signals is not None and hit.signals.meaning > 0
            table.add(hit.memory, semantic=hit.score, by_meaning=by_meaning, shared=shared_words(task, hit.memory))
        self._from_graph(past.hits, table)
        self._from_git(table)
        self._from_history(past, now, table)
        return table.gathered(past, now)

    def _from_graph(self, hits: Sequence[Hit], table: _Table) -> None:
        tied = self._graph.expand(hits[:5], limit=_TIED)
        if not tied:
            return
        labels = {hit.memory.id: _label(hit.memory) for hit in hits[:5]}
        with self._store.database.read() as session:
            ids, spaces = [hit.memory.id for hit in tied], self._memories.place.spaces()
            named = self._store.suggestions.named_by_both(session, spaces, ids, list(labels))
        for hit in tied:
            # Of the hits that name the same entity, the reason names the best.
            both = [(one, named[hit.memory.id, one]) for one in labels if (hit.memory.id, one) in named]
            beside, entity = both[0] if both else ("", "")
            table.add(hit.memory, graph=hit.score, graph_entity=entity, graph_with=labels.get(beside, ""))

    def _from_git(self, table: _Table) -> None:
        """Records about files that are changed here: uncommitted, or on this git branch only."""
        for path in self._changed()[:_FILES]:
            quoted = path.replace("\\", "\\\\").replace('"', '\\"')
            for memory in self._memories.listed(f'path:"{quoted}"', _PER_FILE):
                table.add(memory, git=1.0, git_file=posixpath.basename(path))

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

    def _past(
        self, session: Session, task: str, hits: Sequence[Hit], branch_id: str | None, now: int, top_k: int
    ) -> _Past:
        """What the log of uses says, read in a handful of statements."""
        table = self._store.suggestions
        events = table.used(session, self._project, branch_id, _EVENTS) if branch_id else []
        # What the current burst of work has used is at hand already, and shows what comes next.
        recent = list(dict.fromkeys(one for one, at in events if now - at <= BURST))
        before = ((one, at) for one, at in events if now - at > BURST)
        hits = _about(hits, begun=bool(events))
        anchors = _anchors(recent, hits)
        each = max(_FEWEST, _PARTNERS // max(1, len(anchors)))
        partners = table.together(session, self._project, list(anchors), each)
        chosen = _chosen(table.chosen(session, self._project, _CHOICES), task)
        usual = habits(before)
        strengths = table.strengths(session, self._project, list(anchors))
        links = _links(partners, anchors, {one: row[1] for one, row in strengths.items()}, now)
        said = {one: HABIT * habit.rate for one, habit in usual.items()}
        said |= {one: 1.0 - (1.0 - link.likely) * (1.0 - said.get(one, 0.0)) for one, link in links.items()}
        at_hand = frozenset(recent)
        best = sorted(said.keys() - at_hand, key=lambda one: (-said[one], one))[: _LOOKED_AT * top_k]
        wanted = dict.fromkeys([*(hit.memory.id for hit in hits), *best, *chosen])
        refused = _refused(table.refused(session, self._project, now - _REFUSED_FOR, _REFUSALS), task)
        return _Past(
            hits, at_hand, refused, {one: links[one] for one in wanted if one in links}, chosen,
            {one: usual[one] for one in wanted if one in usual},
            table.strengths(session, self._project, list(wanted)),
        )  # fmt: skip

    def _from_history(self, past: _Past, now: int, table: _Table) -> None:
        """Add the signals of history to each record; the reason names the strongest partner."""
        beside = {link.anchor for link in past.links.values()}
        asked = dict.fromkeys([*past.links, *past.usual, *past.chosen, *sorted(beside)])
        known = table.memories | self._memories.visible([one for one in asked if one not in table.memories])
        for memory_id, link in past.links.items():
            if memory_id in known:
                label = _label(known[link.anchor]) if link.anchor in known else ""
                more = {"together": link.likely, "together_with": label, "together_times": link.times}
                table.add(known[memory_id], **more)
        for memory_id, times in past.chosen.items():
            if memory_id in known:
                table.add(known[memory_id], selected=times)
        for memory_id, habit in past.usual.items():
            if memory_id in known:
                more = {"habit": habit.rate, "habit_times": habit.times, "habit_bursts": habit.bursts}
                table.add(known[memory_id], **more)
        for memory_id, (value, _, at) in past.strengths.items():
            if memory_id in table.memories:
                table.add(known[memory_id], used=fade(value, at, now))


@dataclass(frozen=True, slots=True)
class _Link:
    """How likely a record is used with what is in use, its strongest partner there, and how often both were used."""

    likely: float
    anchor: str
    times: int


@dataclass(frozen=True, slots=True)
class _Past:
    hits: list[Hit]
    at_hand: frozenset[str]
    refused: dict[str, int]
    links: dict[str, _Link]
    chosen: dict[str, int]
    usual: dict[str, Habit]
    strengths: dict[str, tuple[float, int, int]]

    def leaves(self, memory: Memory) -> bool:
        """Whether a record may be suggested: it is not at hand, and was not refused for this task as it is now."""
        refused = memory.id not in self.chosen and self.refused.get(memory.id, -1) >= to_micros(memory.updated_at)
        return memory.id not in self.at_hand and not refused


def _about(hits: Sequence[Hit], *, begun: bool) -> list[Hit]:
    """The hits that may be about the task. On a branch with uses, weaker hits count as well."""
    if not hits or (hits[0].score < _BEST and not begun):
        return []
    return [hit for hit in hits if hit.score >= _LEAST]


def _anchors(recent: Sequence[str], hits: Sequence[Hit]) -> dict[str, float]:
    """What the work is about now, with weights: what was just used, and the best hits for the task."""
    weights: dict[str, float] = {}
    for place, one in enumerate(recent):
        weights[one] = 0.9**place
    for hit in hits[:_MEANT]:
        weights[hit.memory.id] = max(weights.get(hit.memory.id, 0.0), hit.score)
    return dict(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:_ANCHORS])


def _links(
    partners: Sequence[tuple[str, str, float, int, int]],
    anchors: Mapping[str, float],
    uses: Mapping[str, int],
    now: int,
) -> dict[str, _Link]:
    """In which share of the uses of each anchor a record took part; long ago counts for less."""
    missed: dict[str, float] = {}
    best: dict[str, tuple[float, str, int]] = {}
    for anchor, other, _, times, at in partners:
        # One further use without the other is assumed: being together once is no rule.
        often = min(1.0, times / (uses.get(anchor, times) + 1))
        likely = anchors[anchor] * fade(often, at, now)
        missed[other] = missed.get(other, 1.0) * (1.0 - likely)
        link = (likely, anchor, times)
        if other not in best or link > best[other]:
            best[other] = link
    return {other: _Link(1.0 - part, *best[other][1:]) for other, part in missed.items()}


def _chosen(events: Sequence[tuple[str, str]], task: str) -> dict[str, int]:
    """How often records were chosen for tasks like this one."""
    words = _subject(task)
    found: dict[str, int] = {}
    for memory_id, earlier in events:
        theirs = _subject(earlier)
        if words and theirs and len(words & theirs) / min(len(words), len(theirs)) >= _LIKE:
            found[memory_id] = found.get(memory_id, 0) + 1
    return found


def _refused(suggested: Sequence[tuple[str, str, int]], task: str) -> dict[str, int]:
    """When records were last refused for a task that shares more than half of its words with this one."""
    words = _subject(task)
    theirs = {earlier: _subject(earlier) for earlier in {row[1] for row in suggested}}
    found: dict[str, int] = {}
    for memory_id, earlier, at in suggested:
        if len(words & theirs[earlier]) * 2 > max(len(words), len(theirs[earlier])):
            found[memory_id] = max(at, found.get(memory_id, at))
    return found


def shared_words(task: str, memory: Memory) -> tuple[str, ...]:
    """Up to two words of a task, as it writes them, that a record has too: names and code first, then longer words."""
    spoken = set(terms(f"{memory.path or ''} {memory.symbol or ''} {memory.content[:_READ]}"))
    generic = {word for word in task_words(task) if any(form.fullmatch(word) for _, form in _KINDS)}
    found: dict[str, str] = {}
    for word in re.findall(r"[\w./-]*\w", task[:2_000]):
        stems = set(query_terms(word))
        if len(word) > 2 and word.lower() not in stop_words() | generic and stems and stems <= spoken:
            found.setdefault(min(stems), word)
    return tuple(sorted(found.values(), key=lambda word: (word.islower() and word.isalpha(), -len(word)))[:_SHARED])


def task_words(task: str) -> frozenset[str]:
    """The words that distinguish tasks."""

    words = (word.strip(".,:;!?()[]\"'`").lower() for word in task[:2_000].split())
    return frozenset(word for word in words if len(word) > 2 and word not in stop_words())


@lru_cache(maxsize=2_000)
def _subject(task: str) -> frozenset[str]:
    """The words of a task without its verbs: that both add something does not make two tasks alike."""
    words = task_words(task)
    return frozenset(word for word in words if not any(form.fullmatch(word) for _, form in _KINDS)) or words


def task_kind(task: str) -> str:
    """The kind of work a task is. Answers teach about that kind first."""
    words = task_words(task)
    return next((kind for kind, form in _KINDS if any(form.fullmatch(word) for word in words)), "other")


def describe(memory: Memory, now: int) -> Cues:
    """The signals that a record itself has, without those of a task."""
    return Cues(memory.id, **_description(memory, now))


def _description(memory: Memory, now: int) -> dict[str, Any]:
    place = memory.path or (memory.source or "").removeprefix("file://")
    folders = place.split("/")[:-1] if "/" in place else []
    return {
        "age_days": max(0.0, (now - to_micros(memory.updated_at)) / 86_400_000_000),
        "branch_id": memory.branch_id,
        "area": "/".join(folders[:2]),
        "category": memory.category or "",
        "text_key": " ".join(memory.content[:_KEY].lower().split()),
    }


def _label(memory: Memory) -> str:
    words = " ".join((memory.symbol or memory.path or memory.summary or memory.content).split())
    return words if len(words) <= _SHORT else words[: _SHORT - 1] + "…"
