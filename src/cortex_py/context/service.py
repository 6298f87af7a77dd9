"""`cortex.contexts`: projects, their lines of work, and what is kept in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ..clock import Clock, to_micros
from ..errors import BranchNotFound, CortexError, InvalidInput, MemoryNotFound, ProjectNotFound, StorageError
from ..memory.ontology import canonical_category
from ..paths import expanded
from ..records import Branch, Memory, NewMemory, Project
from ..security.permission import as_maker_of, readable, require_write
from ..store.conditions import EVERYTHING
from ..store.database import Session
from ..store.store import Store
from ..worktree.git import Repository
from .branch import branch_id as make_branch_id
from .branch import check_git_branch, check_role, check_topic, task_id
from .budget import check_tokens, newest_within, shown
from .desk import Desk, Desks
from .projection import BranchCheck, Synced
from .results import Appended, Linked, Resumed, Searched
from .summaries import BranchSummary

if TYPE_CHECKING:
    from ..grounding.verification import Verification
    from .relations import ContextGraph, Named
    from .scan import Progress, ScanMode, Scanned

__all__ = ["ACTIVE", "Appended", "Contexts", "Linked", "Resumed", "Searched"]

# Stands for the line of work of the git branch that is checked out, wherever an id is taken.
ACTIVE = "active"

_ATTEMPTS = 1000
_SUMMARY_TOKENS = 400
_RESUME_TOKENS = 1_200
_RESUME_TURNS = 50
_GRAPH_NODES = 500
_GRAPH_ENTITIES = 200
# Somebody waits for an update: so long may reading what changed in the project take.
_CHECK_SECONDS = 0.5


class Contexts:
    """Lines of work of the project that the caller works in, or of any other that is named by its id."""

    def __init__(self, store: Store, clock: Clock, desks: Desks, here: Callable[[], Desk]) -> None:
        self._store = store
        self._clock = clock
        self._desks = desks
        self._here = here

    # -- projects --------------------------------------------------------------------------------

    @property
    def project(self) -> Project:
        """The project that this Cortex stands in."""
        return self._here().project

    def projects(self) -> list[Project]:
        """All projects of the store that the caller may read."""
        with self._store.database.read() as session:
            return [one for one in self._store.projects.all(session) if readable(one.id)]

    def project_at(self, path: str | Path) -> Project:
        """The stored project that a folder belongs to."""
        from .project import identify

        found = identify(expanded(path))
        with self._store.database.read() as session:
            project = self._store.projects.get(session, found.id)
        if project is None or not readable(project.id):
            raise ProjectNotFound(
                f"No memories are kept for {str(path)[:200]!r}.", remedy="Capture something there first.", field="path"
            )
        return project

    def repository(self) -> Repository:
        """The git repository that this Cortex stands in."""
        repository = self._here().repository
        if repository is None:
            raise InvalidInput("This project is no git repository.", remedy="Run it inside one.", field="project")
        return repository

    def initialize(
        self, path: str | Path | None = None, mode: ScanMode = "light", *, progress: Progress | None = None
    ) -> Scanned:
        """Remember a project and what its files say; edits that people made to branch files are taken in.

        `progress` is told (done, total) in files; what it raises stops the scan, and what is done stays done.
        """
        from .scan import check_mode

        check_mode(mode)
        desk = self._here() if path is None else self._desks.at(expanded(path))
        with as_maker_of(desk.project.id) if path is not None else nullcontext():
            require_write(desk.project.id)
            for branch in self.branches(desk.project.id):
                desk.projection.try_refresh(branch.id)
            return desk.scanner(self._store).run(mode, progress)

    # -- lines of work ---------------------------------------------------------------------------

    def create_branch(
        self,
        topic: str,
        *,
        parent_id: str | None = None,
        git_branch: str | None = None,
        project_id: str | None = None,
    ) -> Branch:
        """Begin a line of work, perhaps as a child of another, with its file."""
        check_topic(topic)
        if git_branch is not None:
            check_git_branch(git_branch)
        desk = self._writing(project_id)
        if parent_id and parent_id.strip().lower() == ACTIVE:
            parent_id = self._branch(desk, parent_id).id
        branch = self._add(desk.project.id, topic, parent_id, git_branch)
        try:
            desk.projection.refresh(branch.id)
        except CortexError:
            # Whoever is told that it failed begins it again.
            with self._store.database.write() as session:
                self._store.branches.remove(session, desk.project.id, branch.id)
            raise
        return branch

    def _add(self, project_id: str, topic: str, parent_id: str | None, git_branch: str | None) -> Branch:
        now = self._clock.now()
        with self._store.database.write() as session:
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
        """Whether a line of work is truly there: its file, the file's front matter, and its place in the store."""
        return self._desk(project_id).projection.check(branch_id)

    def get_branch(self, branch_id: str, *, project_id: str | None = None) -> Branch:
        """A line of work by its exact id, or the active one by the word `active`."""
        return self._branch(self._desk(project_id), branch_id)

    def branches(self, project_id: str | None = None) -> list[Branch]:
        """All lines of work of the project, oldest first."""
        desk = self._desk(project_id)
        desk.following.arrive()
        with self._store.database.read() as session:
            return self._store.branches.all(session, desk.project.id)

    def active(self, *, project_id: str | None = None) -> Branch | None:
        """The line of work that belongs to the git branch that is checked out now."""
        desk = self._desk(project_id)
        desk.following.arrive()
        name = desk.following.git_branch()
        if name is None:
            return None
        with self._store.database.read() as session:
            return self._store.branches.linked_to(session, desk.project.id, name)

    def link(self, branch_id: str, git_branch: str, *, project_id: str | None = None) -> Linked:
        """Join a line of work to a git branch: it is the active one whenever that branch is checked out."""
        check_git_branch(git_branch)
        desk = self._writing(project_id)
        branch = self._branch(desk, branch_id)
        with self._store.database.write() as session:
            now = to_micros(self._clock.now())
            released = self._store.branches.link(session, desk.project.id, branch.id, git_branch, now)
        for changed in (branch.id, *released):
            desk.projection.try_refresh(changed, whole=True)
        exists = desk.repository is not None and git_branch in desk.repository.branches()
        return Linked(self._branch(desk, branch.id), tuple(released), exists)

    def sync(self, branch_id: str, *, project_id: str | None = None) -> Synced:
        """Take in what a person changed in the file of a line of work; where both changed, both are kept."""
        desk = self._writing(project_id)
        return desk.projection.sync(self._branch(desk, branch_id).id)

    # -- contexts --------------------------------------------------------------------------------

    def append(self, branch_id: str, content: str, role: str, *, project_id: str | None = None) -> Appended:
        """Add a turn to a line of work. When this returns it is stored, indexed, filed and in the branch file."""
        check_role(role)
        desk = self._writing(project_id)
        branch = self._branch(desk, branch_id)
        found, unchecked = self._checked(desk, content) if role == "assistant" else (None, "")
        score = found.score if found and found.findings else None
        item = NewMemory(content=content, branch_id=branch.id, role=role, namespace=None, grounding=score)
        memory = desk.memories.capture_many([item])[0]
        if found is not None and found.findings:
            from ..grounding.record import as_json

            desk.memories.keep_verification(memory, as_json(found))
        return Appended(memory, task_id(memory.id, memory.created_at), found, unchecked)

    def _checked(self, desk: Desk, content: str) -> tuple[Verification | None, str]:
        """What an assistant's words are worth. That they cannot be checked is no reason not to keep them."""
        try:
            return self._desks.grounding(desk).verify(content, seconds=_CHECK_SECONDS), ""
        except CortexError as error:
            return None, error.message

    def verify(
        self, text: str, *, evidence_sources: Sequence[str] | None = None, project_id: str | None = None
    ) -> Verification:
        """Whether what a text says is true of a project."""
        return self._desks.grounding(self._desk(project_id)).verify(text, evidence_sources=evidence_sources)

    def summary(
        self, branch_id: str = ACTIVE, *, max_tokens: int | None = None, project_id: str | None = None
    ) -> BranchSummary:
        """What a line of work is about and where it stands, taken from its turns, within a budget of tokens."""
        check_tokens(max_tokens)
        desk = self._desk(project_id)
        return desk.summaries.of(self._branch(desk, branch_id), max_tokens or _SUMMARY_TOKENS)

    def resume(
        self, branch_id: str = ACTIVE, *, max_tokens: int | None = None, project_id: str | None = None
    ) -> Resumed:
        """The summary of a line of work, and its newest turns in full as far as the budget reaches."""
        check_tokens(max_tokens)
        budget = max_tokens or _RESUME_TOKENS
        found = self.summary(branch_id, max_tokens=min(_SUMMARY_TOKENS, budget), project_id=project_id)
        desk = self._desk(project_id)
        turns = self.content(found.branch.id, newest=_RESUME_TURNS, project_id=project_id)
        left = budget - found.summary.tokens
        return Resumed(found, newest_within(turns, found.entries, left, desk.memories.count_tokens))

    def content(self, branch_id: str, *, newest: int = -1, project_id: str | None = None) -> list[Memory]:
        """The turns of a line of work, oldest first: all, or the newest so many."""
        desk = self._desk(project_id)
        branch = self._branch(desk, branch_id)
        with self._store.database.read() as session:
            rows = self._store.memories.of_branch(session, desk.project.id, branch.id, newest)
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
    ) -> Searched:
        """The contexts that answer a query, by the one recall, best first."""
        started = time.perf_counter()
        if not query.strip():
            raise InvalidInput("The query is empty.", remedy="Say what to look for.", field="query")
        check_tokens(max_tokens)
        if category is not None:
            category = canonical_category(category, field="filter_category")
        desk = self._desk(project_id)
        page = desk.memories.recall(query, limit=top_k, min_score=min_score, category=category)
        results = tuple(shown(page.results, max_tokens, desk.memories.count_tokens))
        self._desks.references(desk).searched(hit.memory.id for hit in page.results)
        with self._store.database.read() as session:
            topics = {one.id: one.topic for one in self._store.branches.all(session, desk.project.id)}
        return Searched(results, page.total, topics, round((time.perf_counter() - started) * 1000))

    def load(self, context_id: str, branch_id: str = "", *, project_id: str | None = None) -> Memory:
        """One context in full. One that belongs to no line of work is loaded with an empty `branch_id`."""
        desk = self._desk(project_id)
        branch = self._branch(desk, branch_id) if branch_id else None
        memory = desk.memories.get(context_id)
        if memory.domain == "project" and memory.project_id != desk.project.id:
            raise MemoryNotFound(f"There is no context {context_id[:80]!r} in this project.", field="context_id")
        if branch and memory.branch_id != branch.id:
            where = f"belongs to {memory.branch_id!r}" if memory.branch_id else "belongs to no branch"
            raise MemoryNotFound(
                f"The context {context_id[:80]!r} is not in the branch {branch.id!r}: it {where}.",
                remedy="Give the branch_id that search_context shows.",
                field="context_id",
            )
        desk.memories.used(memory)
        # The line of work that needs it is the one at hand; where none is, the one that it belongs to.
        active = self.active(project_id=desk.project.id) if desk.repository else None
        self._desks.references(desk).loaded(memory.id, active.id if active else memory.branch_id)
        return memory

    def graph(self, branch_id: str | None = None, *, project_id: str | None = None) -> ContextGraph:
        """How the newest contexts of a project, or of one line of work, hang together."""
        from .relations import connect

        desk = self._desk(project_id)
        desk.following.arrive()
        branch = self._branch(desk, branch_id) if branch_id else None
        with self._store.database.read() as session:
            branches = self._store.branches.all(session, desk.project.id)
            view = desk.memories.place.view(to_micros(self._clock.now()))
            where = self._store.scope(session, EVERYTHING, view).where
            found = self._store.memories.newest(session, where, _GRAPH_NODES, branch.id if branch else None)
            total = len(found)
            if total == _GRAPH_NODES:
                total = self._store.memories.count(session, where, branch.id if branch else None)
            vectors = self._store.vectors(session, where.spaces, [num for num, _ in found])
            entities = self._named(session, desk, found)
        kept = [one for one in branches if branch is None or one.id == branch.id]
        return connect([memory for _, memory in found], vectors, kept, entities, total - len(found))

    def _named(self, session: Session, desk: Desk, found: Sequence[tuple[int, Memory]]) -> list[Named]:
        """The entities that contexts name, those first that most of them name."""
        from .relations import Named

        ids = {num: memory.id for num, memory in found}
        contexts: dict[tuple[str, str], dict[str, float]] = {}
        table, spaces = self._store.graph, desk.memories.place.spaces()
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
        named: dict[str, Named] = {}
        for space, identity in sorted(chosen, key=lambda key: key[0] != desk.project.id):
            if (space, identity) in rows:
                # The same id in another space is another entity; the project's has the plain one.
                shown = identity if identity not in named else f"{space}/{identity}"
                named[shown] = Named(shown, rows[space, identity].name, contexts[space, identity])
        return list(named.values())

    # -- helpers ---------------------------------------------------------------------------------

    def _desk(self, project_id: str | None) -> Desk:
        return self._here() if project_id is None else self._desks.of(project_id)

    def _writing(self, project_id: str | None) -> Desk:
        desk = self._desk(project_id)
        require_write(desk.project.id)
        return desk

    def _branch(self, desk: Desk, branch_id: str) -> Branch:
        if branch_id.strip().lower() == ACTIVE:
            found = self.active(project_id=desk.project.id)
            if found is None:
                raise BranchNotFound(
                    f"No line of work is linked to the git branch {desk.following.git_branch()!r}.",
                    remedy="Link one with link_git_branch, or name it by its id.",
                    field="branch_id",
                )
            return found
        desk.following.arrive()
        with self._store.database.read() as session:
            branch = self._store.branches.get(session, desk.project.id, branch_id)
        if branch is None:
            raise _unknown(branch_id)
        return branch


def _unknown(branch_id: str, field: str = "branch_id") -> BranchNotFound:
    return BranchNotFound(
        f"There is no branch {branch_id[:80]!r} in this project.", remedy="Create it first.", field=field
    )
