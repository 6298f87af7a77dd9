"""`cortex.contexts`: projects, their branches, and the contexts in them.

A branch is a line of work: a conversation or a task with its turns, which may be linked to a git branch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.clock import iso, to_micros
from ...core.errors import BranchNotFound, CortexError, InvalidInput, MemoryNotFound, ProjectNotFound, StorageError
from ...core.memory.labels.ontology import canonical_category
from ...core.records import LIVE_STATUSES, Branch, Hit, Memory, NewMemory, Project, kind_space
from ...core.security.callers import current_caller
from ...core.security.path_access import path_refusal
from ...core.security.permission import as_project_creator, may_read, require_write
from ...core.store.database import Session
from ...core.store.search.filters import EVERYTHING
from ...session import ProjectSession, ProjectSessions
from ...worktree.git.repository import Repository
from .branches.file import branch_id as make_branch_id
from .branches.file import check_git_branch, check_role, check_topic, task_id
from .branches.projection import BranchCheck, SyncResult
from .summary.service import BranchSummary

if TYPE_CHECKING:
    from ..verify.verification import Verification
    from .relations import ContextGraph, NamedEntity
    from .scan import Progress, ScanEstimate, ScanMode, ScanResult

__all__ = ["Contexts"]

# Wherever a branch id is taken, this stands for the branch of the git branch that is checked out.
ACTIVE = "active"

# A setting of the store: the mode of the scan that the server of this project shall do.
_REQUESTED = "scan requested for "
_ATTEMPTS = 1000
_SUMMARY_TOKENS = 400
_RESUME_TOKENS = 1_200
_RESUME_TURNS = 50
_GRAPH_NODES = 500
_GRAPH_ENTITIES = 200
# An update waits at most this long for the index of the project to catch up.
CHECK_SECONDS = 0.5
# An upper estimate of the tokens that one result costs besides its text: ids, score, topic.
_RESULT_TOKENS = 120
# Without a budget, a longer content is cut to its best passage.
_LONGEST = 2_000


class _Stopped(Exception):
    """The server stops, and so does its scan."""


@dataclass(frozen=True, slots=True)
class AppendResult:
    """A stored turn, and the verification of an assistant's turn; a user's turn is not verified.

    `unchecked` is the reason where verification failed; `note` says how much of a long text is indexed.
    """

    memory: Memory
    task_id: str
    verification: Verification | None = None
    unchecked: str = ""
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeResult:
    """The summary of a branch, and its newest turns in full."""

    summary: BranchSummary
    content: str


@dataclass(frozen=True, slots=True)
class ShownHit:
    """A hit with the text that is shown of it."""

    hit: Hit
    text: str


@dataclass(frozen=True, slots=True)
class ContextSearch:
    """Results within the budget, the number of all results, and the topics of the project's branches by id."""

    results: tuple[ShownHit, ...]
    total: int
    topics: dict[str, str]
    milliseconds: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkResult:
    """A branch linked to a git branch; `released` are the branches that were linked to it before.

    `exists`: whether git has a branch of that name.
    """

    branch: Branch
    released: tuple[str, ...]
    exists: bool


class Contexts:
    """The branches and contexts of the caller's current project, or of the one that `project_id` names."""

    def __init__(self, sessions: ProjectSessions) -> None:
        self._sessions = sessions
        self._store = sessions.store
        self._clock = sessions.clock

    # -- projects --------------------------------------------------------------------------------

    @property
    def project(self) -> Project:
        """The current project."""
        return self._sessions.current.record

    @property
    def apart(self) -> str:
        """Why the current folder is not in the project that it names; empty where it is, or names none."""
        return self._sessions.current.apart

    def projects(self) -> list[Project]:
        """All projects of the store that the caller may read."""
        with self._store.database.read() as session:
            return [one for one in self._store.projects.all(session) if may_read(one.id)]

    def project_sizes(self) -> list[tuple[Project, int]]:
        """All projects that the caller may read, each with how many memories it holds, the largest first."""
        projects, statistics = self.projects(), self._store.statistics
        with self._store.database.read() as session:
            counts = [statistics.by_status(session, (kind_space(one.id, "note"),)) for one in projects]
        sizes = [sum(count for status, count in one.items() if status in LIVE_STATUSES) for one in counts]
        return sorted(zip(projects, sizes, strict=True), key=lambda one: (-one[1], one[0].name, one[0].id))

    def project_at(self, path: str | Path) -> Project:
        """The stored project that a folder belongs to."""
        from .claims import find_claim
        from .project import identify

        project = find_claim(self._store, identify(self._sessions.places.check(path)), self._sessions.screen).project
        if project is not None and may_read(project.id):
            return project
        if current_caller() is not None:
            raise path_refusal()
        raise ProjectNotFound(
            f"No memories are kept for {str(path)[:200]!r}.", remedy="Capture something there first.", field="path"
        )

    def repository(self) -> Repository:
        """The git repository of the current project."""
        repository = self._sessions.current.repository
        if repository is None:
            raise InvalidInput("This project is not a git repository.", remedy="Run it inside one.", field="project")
        return repository

    def initialize(
        self, path: str | Path | None = None, mode: ScanMode = "light", *, progress: Progress | None = None
    ) -> ScanResult:
        """Store a project and scan its files; edits that people made to branch files are stored as well.

        After a large scan the vectors are computed in the background; `pending_vectors` says how many.
        `progress` is called with (done, total) in files. If it raises, the scan stops and keeps what it has done.
        """
        from .scan import check_mode

        check_mode(mode)
        project = self._sessions.current if path is None else self._sessions.at(Path(path))
        with as_project_creator(project.id) if path is not None else nullcontext():
            require_write(project.id)
            project.projection.refresh_all(self.branches(project.id))
            scanned = project.scanner().run(mode, progress)
        if scanned.pending_vectors:
            project.memories.begin_vectors()
        return replace(scanned, apart=project.apart) if project.apart else scanned

    def estimate_scan(self, mode: ScanMode = "full") -> ScanEstimate:
        """What `initialize` would read of the current project; nothing is stored."""
        from .scan import check_mode

        return self._sessions.current.scanner().estimate(check_mode(mode))

    def request_scan(self, mode: ScanMode = "full") -> None:
        """Leave a scan of the current project to its server: to one that runs, or to the next that starts."""
        from .scan import check_mode

        project = self._sessions.current
        require_write(project.id)
        with self._store.database.write() as session:
            self._store.settings.put(session, _REQUESTED + project.id, check_mode(mode))

    def run_requested_scan(self, stop: Callable[[], bool]) -> ScanResult | None:
        """Do the scan of the current project that was requested; None if there is none, or it was stopped."""
        from .scan import check_mode

        project = self._sessions.current
        key = _REQUESTED + project.id
        with self._store.database.read() as session:
            mode = self._store.settings.get(session, key)
        if not mode or stop():
            return None

        def go_on(_done: int, _total: int) -> None:
            if stop():
                raise _Stopped

        try:
            scanned = project.scanner().run(check_mode(mode), go_on)
        except _Stopped:
            # What was read is kept; the next upkeep goes on there.
            return None
        with self._store.database.write() as session:
            self._store.settings.put(session, key, "")
        return scanned

    # -- branches --------------------------------------------------------------------------------

    def create_branch(
        self, topic: str, *, parent_id: str | None = None, git_branch: str | None = None, project_id: str | None = None
    ) -> Branch:
        """Begin a branch with its file, perhaps as a child of another branch.

        As the name of a git branch, `HEAD` means the one checked out now.
        """
        screen = self._sessions.screen
        topic = screen.prose(check_topic(topic), "branch_topic")
        project = self._sessions.get_writable(project_id)
        if git_branch is not None:
            git_branch = screen.name(_git_branch_name(project, git_branch), "git_branch_name")
        if parent_id and parent_id.strip().lower() == ACTIVE:
            parent_id = self._branch(project, parent_id).id
        branch = self._add(project.id, topic, parent_id, git_branch)
        try:
            project.projection.refresh(branch.id)
        except CortexError:
            # The caller sees an error and will try again: leave nothing behind.
            with self._store.database.write(project.id) as session:
                self._store.branches.remove(session, project.id, branch.id)
            raise
        return branch

    def _add(self, project_id: str, topic: str, parent_id: str | None, git_branch: str | None) -> Branch:
        now = self._clock.now()
        with self._store.database.write(project_id) as session:
            if parent_id and self._store.branches.get(session, project_id, parent_id) is None:
                raise _unknown(parent_id, field="parent_branch")
            for attempt in range(_ATTEMPTS):
                branch = Branch(
                    id=make_branch_id(topic, now, attempt),
                    project_id=project_id,
                    topic=topic,
                    parent_id=parent_id or None,
                    git_branch=git_branch,
                    status="active",
                    created_at=now,
                    updated_at=now,
                )
                if self._store.branches.add(session, branch):
                    return branch
        raise StorageError(
            f"{_ATTEMPTS} branches with the topic {topic[:40]!r} were begun in one second.",
            remedy="Wait a second and repeat.",
        )

    def check_branch(self, branch_id: str, *, project_id: str | None = None) -> BranchCheck:
        """Check that a branch is complete: its file, the file's front matter, and its record in the store."""
        return self._sessions.get(project_id).projection.check(branch_id)

    def get_branch(self, branch_id: str, *, project_id: str | None = None) -> Branch:
        """A branch by its exact id, or the active one by the word `active`."""
        return self._branch(self._sessions.get(project_id), branch_id)

    def branches(self, project_id: str | None = None) -> list[Branch]:
        """All branches of the project, oldest first."""
        project = self._sessions.get(project_id)
        project.git.sync_git_state()
        with self._store.database.read() as session:
            return self._store.branches.all(session, project.id)

    def active(self, *, project_id: str | None = None) -> Branch | None:
        """The branch that is linked to the git branch checked out now."""
        project = self._sessions.get(project_id)
        project.git.sync_git_state()
        name = project.git.git_branch()
        if name is None:
            return None
        with self._store.database.read() as session:
            return self._store.branches.linked_to(session, project.id, name)

    def link(self, branch_id: str, git_branch: str, *, project_id: str | None = None) -> LinkResult:
        """Link a branch to a git branch (`HEAD`: the current one): it is active whenever that one is checked out."""
        project = self._sessions.get_writable(project_id)
        git_branch = _git_branch_name(project, git_branch)
        kept = self._sessions.screen.name(git_branch, "git_branch_name")
        branch = self._branch(project, branch_id)
        with self._store.database.write(project.id) as session:
            now = to_micros(self._clock.now())
            released = self._store.branches.link(session, project.id, branch.id, kept, now)
        for changed in (branch.id, *released):
            project.projection.try_refresh(changed, whole=True)
        exists = project.repository is not None and git_branch in project.repository.branches()
        return LinkResult(self._branch(project, branch.id), tuple(released), exists)

    def sync(self, branch_id: str, *, project_id: str | None = None) -> SyncResult:
        """Store what a person changed in the file of a branch; where both changed, both versions are kept."""
        project = self._sessions.get_writable(project_id)
        return project.projection.sync(self._branch(project, branch_id).id)

    # -- contexts --------------------------------------------------------------------------------

    def staged(self, branch_id: str, *, project_id: str | None = None) -> list[Memory]:
        """Memories of a line of work that stay on its git branch until that is merged, oldest first."""
        project = self._sessions.get(project_id)
        branch = self._branch(project, branch_id)
        return project.git.staged(branch.git_branch) if branch.git_branch else []

    def promote(self, ref: str, *, back: bool = False, project_id: str | None = None) -> Memory:
        """Make a staged memory visible on every git branch before its own is merged; with `back`, undo that."""
        project = self._sessions.get_writable(project_id)
        project.git.promote(project.memories.get(ref), back=back)
        return project.memories.get(ref)

    def append(
        self, branch_id: str, content: str, role: str, *, check: bool = True, project_id: str | None = None
    ) -> AppendResult:
        """Add a turn to a branch. When this returns, it is stored, indexed, classified and in the branch file.

        Without `check`, what the assistant says is stored unverified.
        """
        check_role(role)
        project = self._sessions.get_writable(project_id)
        branch = self._branch(project, branch_id)
        found, unchecked = self._checked(project, content) if check and role == "assistant" else (None, "")
        score = found.score if found and found.findings else None
        item = NewMemory(content=content, branch_id=branch.id, role=role, namespace=None, grounding=score)
        memory = project.memories.capture_many([item])[0]
        if found is not None and found.findings:
            from ..verify.verification import to_stored_json

            project.memories.keep_verification(memory, to_stored_json(found))
            project.summaries.refresh(branch.id)
        note = project.memories.index_note(memory)
        return AppendResult(memory, task_id(memory.id, memory.created_at), found, unchecked, note)

    def _checked(self, project: ProjectSession, content: str) -> tuple[Verification | None, str]:
        """Verify an assistant's turn. A turn that cannot be verified is stored all the same."""
        try:
            return project.grounding.verify(content, seconds=CHECK_SECONDS), ""
        except CortexError as error:
            return None, error.message

    def verify(
        self, text: str, *, evidence_sources: Sequence[str] | None = None, project_id: str | None = None
    ) -> Verification:
        """Check the claims of a text against a project."""
        return self._sessions.get(project_id).grounding.verify(text, evidence_sources=evidence_sources)

    def summary(
        self, branch_id: str = ACTIVE, *, max_tokens: int | None = None, project_id: str | None = None
    ) -> BranchSummary:
        """What a branch is about and where it stands, taken from its turns, within a budget of tokens."""
        _check_tokens(max_tokens)
        project = self._sessions.get(project_id)
        return project.summaries.of(self._branch(project, branch_id), max_tokens or _SUMMARY_TOKENS)

    def resume(
        self, branch_id: str = ACTIVE, *, max_tokens: int | None = None, project_id: str | None = None
    ) -> ResumeResult:
        """The summary of a branch, and its newest turns in full as far as the budget reaches."""
        _check_tokens(max_tokens)
        budget = max_tokens or _RESUME_TOKENS
        found = self.summary(branch_id, max_tokens=min(_SUMMARY_TOKENS, budget), project_id=project_id)
        project = self._sessions.get(project_id)
        turns = self.content(found.branch.id, newest=_RESUME_TURNS, project_id=project_id)
        left = budget - found.summary.tokens
        return ResumeResult(found, _fit_turns(turns, found.entries, left, project.memories.count_tokens))

    def content(self, branch_id: str, *, newest: int = -1, project_id: str | None = None) -> list[Memory]:
        """The turns of a branch, oldest first: all, or the `newest` ones."""
        project = self._sessions.get(project_id)
        branch = self._branch(project, branch_id)
        with self._store.database.read() as session:
            rows = self._store.memories.of_branch(session, project.id, branch.id, newest)
        return [memory for _, _, memory in rows]

    def search(
        self,
        query: str,
        *,
        top_k: int = 10,
        category: str | None = None,
        min_score: float = 0.3,
        max_tokens: int | None = None,
        project_id: str | None = None,
    ) -> ContextSearch:
        """The contexts that recall finds for a query, best first."""
        started = time.perf_counter()
        if not query.strip():
            raise InvalidInput("The query is empty.", remedy="Say what to look for.", field="query")
        _check_tokens(max_tokens)
        if category is not None:
            category = canonical_category(category, field="filter_category")
        project = self._sessions.get(project_id)
        page = project.memories.recall(query, limit=top_k, min_score=min_score, category=category)
        filter = f"category:{category}" if category else ""
        if not page.results and (below := project.memories.look_up(query, filter=filter, limit=1).results):
            note = f"none reaches min_score {min_score:g}, the best has {below[0].score:.2f}"
            page = replace(page, warnings=(*page.warnings, note))
        results = tuple(_fit_hits(page.results, max_tokens, project.memories.count_tokens))
        project.references.searched(hit.memory.id for hit in page.results)
        with self._store.database.read() as session:
            topics = {one.id: one.topic for one in self._store.branches.all(session, project.id)}
        elapsed = round((time.perf_counter() - started) * 1000)
        return ContextSearch(results, page.total, topics, elapsed, page.warnings)

    def load(self, context_id: str, branch_id: str = "", *, project_id: str | None = None) -> Memory:
        """One context in full. `branch_id` is empty for one that belongs to no branch."""
        project = self._sessions.get(project_id)
        branch = self._branch(project, branch_id) if branch_id else None
        memory = project.memories.get(context_id)
        if memory.domain == "project" and memory.project_id != project.id:
            raise MemoryNotFound(f"There is no context {context_id[:80]!r} in this project.", field="context_id")
        if branch and memory.branch_id != branch.id:
            where = f"belongs to {memory.branch_id!r}" if memory.branch_id else "belongs to no branch"
            raise MemoryNotFound(
                f"The context {context_id[:80]!r} is not in the branch {branch.id!r}: it {where}.",
                remedy="Give the branch_id that search_context shows.",
                field="context_id",
            )
        project.memories.used(memory)
        # It is needed by the active branch; without one, by the branch that it belongs to.
        active = self.active(project_id=project.id) if project.repository else None
        project.references.loaded(memory.id, active.id if active else memory.branch_id)
        return memory

    def graph(self, branch_id: str | None = None, *, project_id: str | None = None) -> ContextGraph:
        """How the newest contexts of a project, or of one branch, are related."""
        from .relations import connect

        project = self._sessions.get(project_id)
        project.git.sync_git_state()
        branch = self._branch(project, branch_id) if branch_id else None
        project.memories.finish_reading()
        with self._store.database.read() as session:
            branches = self._store.branches.all(session, project.id)
            view = project.memories.place.view(to_micros(self._clock.now()))
            scope = self._store.scope(session, EVERYTHING, view)
            where, table = scope.where, self._store.memories
            found = table.newest(session, where, _GRAPH_NODES, branch.id if branch else None)
            total = len(found)
            if total == _GRAPH_NODES:
                total = table.count(session, where, branch.id) if branch else self._store.count(session, scope)
            vectors = self._store.vectors(session, where.spaces, [num for num, _ in found])
            entities = self._named(session, project, found)
        kept = [one for one in branches if branch is None or one.id == branch.id]
        return connect([memory for _, memory in found], vectors, kept, entities, total - len(found))

    def _named(
        self, session: Session, project: ProjectSession, found: Sequence[tuple[int, Memory]]
    ) -> list[NamedEntity]:
        """The entities that contexts name, the most named first."""
        from .relations import NamedEntity

        ids = {num: memory.id for num, memory in found}
        contexts: dict[tuple[str, str], dict[str, float]] = {}
        table, spaces = self._store.graph, project.memories.place.spaces()
        for num, mentions in (
            pair for space in spaces for pair in table.mentions_of(session, space, list(ids)).items()
        ):
            for one in mentions:
                weights = contexts.setdefault((one.space, one.entity_id), {})
                weights[ids[num]] = max(one.confidence, weights.get(ids[num], 0.0))
        chosen = sorted(contexts, key=lambda key: (-len(contexts[key]), key))[:_GRAPH_ENTITIES]
        rows = {
            (space, row.id): row
            for space in {space for space, _ in chosen}
            for row in self._store.graph.entities(session, space, [one for at, one in chosen if at == space]).values()
        }
        named: dict[str, NamedEntity] = {}
        for space, identity in sorted(chosen, key=lambda key: key[0] != project.id):
            if (space, identity) in rows:
                # The same id in another space is another entity; the project's one has the plain id.
                shown = identity if identity not in named else f"{space}/{identity}"
                named[shown] = NamedEntity(shown, rows[space, identity].name, contexts[space, identity])
        return list(named.values())

    # -- helpers ---------------------------------------------------------------------------------

    def _branch(self, project: ProjectSession, branch_id: str) -> Branch:
        if branch_id.strip().lower() == ACTIVE:
            found = self.active(project_id=project.id)
            if found is None:
                raise BranchNotFound(
                    f"No line of work is linked to the git branch {project.git.git_branch()!r}.",
                    remedy="Link one with link_git_branch, or name it by its id.",
                    field="branch_id",
                )
            return found
        project.git.sync_git_state()
        with self._store.database.read() as session:
            branch = self._store.branches.get(session, project.id, branch_id)
        if branch is None:
            raise _unknown(branch_id)
        return branch


def _git_branch_name(project: ProjectSession, name: str) -> str:
    """The name of a git branch, checked. `HEAD` stands for the one checked out now, as it does for git."""
    if name != "HEAD":
        return check_git_branch(name)
    current = project.git.git_branch()
    if current is None:
        raise InvalidInput(
            "No git branch is checked out here.", remedy="Name the git branch to link to.", field="git_branch_name"
        )
    return current


def _unknown(branch_id: str, field: str = "branch_id") -> BranchNotFound:
    return BranchNotFound(
        f"There is no branch {branch_id[:80]!r} in this project.", remedy="Create it first.", field=field
    )


def _check_tokens(max_tokens: int | None) -> None:
    if max_tokens is not None and max_tokens < 1:
        raise InvalidInput(
            f"A budget of {max_tokens} tokens holds nothing.", remedy="Give 1 or more.", field="max_tokens"
        )


def _fit_hits(hits: Iterable[Hit], max_tokens: int | None, count_tokens: Callable[[str], int]) -> Iterator[ShownHit]:
    """The hits that fit into the budget, in order: whole, or as their best passage."""
    left = max_tokens
    for hit in hits:
        content = hit.memory.content
        for text in (content if len(content) <= _LONGEST else hit.snippet, hit.snippet):
            cost = 0 if left is None else _RESULT_TOKENS + count_tokens(text)
            if left is None or cost <= left:
                left = None if left is None else left - cost
                yield ShownHit(hit, text)
                break


def _fit_turns(turns: Sequence[Memory], total: int, max_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """The newest turns that fit into the budget, oldest first, after a line that counts the others."""
    taken: list[str] = []
    left = max_tokens
    for turn in reversed(turns):
        text = f"[{iso(turn.created_at)} {turn.role or 'note'}] {turn.content}"
        # Far longer than the budget in characters: not worth counting the tokens.
        cost = count_tokens(text) + 1 if len(text) < 16 * max(left, 1) else left + 1
        if cost > left:
            break
        taken.append(text)
        left -= cost
    mark = f"(+{total - len(taken)} earlier entries not shown)"
    if total > len(taken) and count_tokens(mark) <= left:
        taken.append(mark)
    return "\n\n".join(reversed(taken))
