"""A project session: one project with the services that work on it, built in one place.

`open_session` builds and connects the services, top to bottom. `GitFollower` keeps the memories of a project in step
with git. `ProjectSessions` keeps the open sessions of a process.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from .core.clock import Clock, IdMaker, to_micros
from .core.config import Settings
from .core.embedding.backends.backend import Backend
from .core.errors import Conflict, CortexError, InvalidInput, ProjectNotFound, StorageError, StoreReadOnly
from .core.events import BranchesChanged, Events, MemoriesChanged
from .core.jobs import ForkLock, Jobs, Pace
from .core.memory.capture.capture import StoredRecord
from .core.memory.capture.reading import WaitingNotes
from .core.memory.service import Memories
from .core.memory.spaces import Place, model_problem
from .core.records import KINDS, CommitMessage, Confinement, Domain, Memory, Project, kind_space
from .core.security.callers import as_system, current_caller
from .core.security.home_key import HomeKey
from .core.security.path_access import PathAccess, path_refusal
from .core.security.permission import may_read, require_write
from .core.security.policy import Screen
from .core.security.tenant_files import TenantFiles
from .core.store.database import Session
from .core.store.documents.document import Document
from .core.store.rows import IndexedRecord
from .core.store.store import Store
from .parts.context.branches.projection import Projection
from .parts.context.branches.store import BranchFiles
from .parts.context.claims import resolve_project
from .parts.context.project import (
    StoredProjects,
    existing_folder,
    folders_of,
    git_stamp,
    identify_repository,
    project_repository,
)
from .parts.context.summary.service import Summaries
from .parts.suggest.automation import action_plan
from .parts.suggest.usage_log import ReferenceLog
from .worktree.git.branch_state import BranchState, classify_branches, former_name, refs_watermark
from .worktree.git.repository import CheckedOut, Repository

if TYPE_CHECKING:
    from .core.llm.client import LanguageModel
    from .parts.context.scan import Scanner
    from .parts.graph.reading.knowledge import Knowledge, ProjectNames
    from .parts.graph.service import Graph
    from .parts.graph.writer import GraphWriter, RelatedFacts
    from .parts.verify.judges.judge import ConfiguredJudge
    from .parts.verify.service import Grounding

__all__ = ["ProjectSession", "ProjectSessions", "open_session"]

logger = logging.getLogger(__name__)

# Callers of a shared server choose their projects, so the number of open ones is bounded.
MOST_OPEN = 64
# Stands for an id, so that a caller need not know the id of the project that it works in.
_CURRENT = "current"
_REDACTED = "[REDACTED:"


def open_session(
    shared: ProjectSessions, record: Project, folder: Path | None, repository: Repository | None = None
) -> ProjectSession:
    """Build the services of a project and connect them. `folder` is None where the project is not on this machine.

    A caller that knows the repository around the folder gives it, so that git is not asked again.
    """
    store, backend, settings, clock, ids = shared.store, shared.backend, shared.settings, shared.clock, shared.ids
    repository = repository or (project_repository(folder, record.id) if folder else None)
    events = Events()

    git = GitFollower(shared, events, record.id, repository)
    place = Place(record, settings.user_id, settings.agent_id, settings.org, git)
    reader = MemoryReader(shared, place, folder, repository)
    memories = Memories(
        store, backend, settings, clock, ids, place, events, reader, shared.model, shared.notes, shared.jobs
    )

    summaries = Summaries(store, backend, record.id)
    projection = Projection(store, clock, shared.branch_files, record.id, memories)
    references = shared.reference_log(record.id)

    def refresh(event: MemoriesChanged | BranchesChanged) -> None:
        # The system derives summaries and files, whatever the rights of the caller who made the change.
        with as_system():
            for branch_id in sorted(event.branch_ids):
                summaries.refresh(branch_id)
                projection.try_refresh(branch_id)

    events.subscribe(MemoriesChanged, refresh)
    events.subscribe(BranchesChanged, refresh)

    return ProjectSession(shared, record, folder, repository, git, reader, memories, summaries, projection, references)


@dataclass(eq=False)
class ProjectSession:
    """One project with its services. `open_session` connects them; `shared` are the parts of the whole process.

    `folder` is None where the project is not on this machine.
    """

    shared: ProjectSessions
    record: Project
    folder: Path | None
    repository: Repository | None
    git: GitFollower
    reader: MemoryReader
    memories: Memories
    summaries: Summaries
    projection: Projection
    references: ReferenceLog
    # The project that the folder names without being known there, which keeps its memories from it.
    refused: Project | None = field(default=None, init=False)
    _grounding: Grounding | None = field(default=None, init=False)
    _lock: ForkLock = field(default_factory=ForkLock, init=False)

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def root(self) -> Path | None:
        """Where the project's files begin: the working tree, or the folder itself where there is none."""
        return self.repository.root if self.repository and not self.repository.is_bare else self.folder

    @property
    def apart(self) -> str:
        """Why the folder is not in the project that it names; empty where it is, or names none."""
        if (other := self.refused) is None:
            return ""
        return (
            f"This folder names the project {other.name} ({other.remote or other.root or other.id}), but holds none of "
            "its history: its memories are kept apart. If it is yours, run in it: cortex init --join"
        )

    @cached_property
    def graph(self) -> Graph:
        """The graph of the project. Built when first needed, because most commands do not."""
        from .parts.graph.service import Graph

        shared, memories = self.shared, self.memories
        names, finish = self.reader.project_names, memories.finish_reading
        return Graph(shared.store, shared.clock, shared.ids, memories.place, names, shared.model, finish)

    @property
    def grounding(self) -> Grounding:
        """Checks claims against the project. Built when first needed, because it imports the parsers."""
        if self._grounding is None:
            from .parts.verify.index.project_index import index_name
            from .parts.verify.service import Grounding

            shared, root = self.shared, self.root
            path = shared.tenant_files.adopt("evidence", self.id, index_name(root)) if root else None
            key = shared.key.database if shared.key else None
            made = Grounding(path, root, self.repository, self.memories, shared.judge, key, shared.settings.home)
            with self._lock:
                self._grounding = self._grounding or made
        return self._grounding

    def scanner(self) -> Scanner:
        if self.folder is None or self.root is None:
            raise InvalidInput(
                f"The folder of the project {self.record.name[:80]!r} does not exist.",
                remedy="Give its current path.",
                field="project",
            )
        from .parts.context.scan import Scanner

        return Scanner(self.shared.store, self.record, self.root, self.shared.settings.home, self.memories.files)

    def write_counts(self) -> None:
        """Store the uses and references that were noted in memory."""
        self.memories.write_uses()
        self.references.write()

    def close(self) -> None:
        """Close the files that are kept open."""
        if self._grounding is not None:
            self._grounding.close()
            self._grounding = None


class MemoryReader:
    """Reads the memories of a session for the graph, and what it knows around them.

    What does that is imported with the first memory that is read: a query needs none of it.
    """

    def __init__(
        self, shared: ProjectSessions, place: Place, folder: Path | None, repository: Repository | None
    ) -> None:
        self._shared = shared
        self._place = place
        self._folder = folder
        self._repository = repository

    @cached_property
    def project_names(self) -> ProjectNames:
        from .parts.graph.reading.knowledge import ProjectNames

        return ProjectNames(self._shared.store, self._place.project, self._folder, self._repository)

    @cached_property
    def _writer(self) -> GraphWriter:
        from .parts.graph.writer import GraphWriter

        shared = self._shared
        known = MemoryKnowledge(shared, self._place, self.project_names)
        return GraphWriter(shared.store, shared.clock, shared.ids, known)

    @cached_property
    def _facts(self) -> RelatedFacts:
        from .parts.graph.writer import RelatedFacts

        return RelatedFacts(self._shared.store, self._shared.clock, self._place)

    # As an annotator of memories (`memory.capture.capture.Annotator`).

    def read(self, memory: Memory, stored: tuple[str, int] | None = None) -> object:
        return self._writer.read(memory, stored)

    def people(self, note: object) -> Sequence[tuple[int, int]]:
        return self._writer.people(note) if note is not None else ()

    def write(self, session: Session, stored: Sequence[StoredRecord]) -> None:
        if stored:
            self._writer.write(session, stored)

    # As what surrounds a memory (`memory.consolidation.enrichment.Surroundings`).

    def names(self, memory: Memory, note: object) -> Sequence[str]:
        return self._facts.names(memory, note)

    def statements(self, memory: Memory, note: object) -> Sequence[tuple[str, str]]:
        return self._facts.statements(memory, note)


class MemoryKnowledge:
    """What is known of the project of a memory, which need not be the session's (`graph.writer.KnowledgeSource`)."""

    def __init__(self, sessions: ProjectSessions, place: Place, names: ProjectNames) -> None:
        self._sessions = sessions
        self._place = place
        self._names = names

    def space(self, memory: Memory) -> str:
        if memory.domain == "project" and memory.project_id is not None:
            return memory.project_id
        return self._place.space(memory.domain)

    def of(self, memory: Memory) -> Knowledge:
        from .parts.graph.reading.knowledge import NO_KNOWLEDGE

        if memory.project_id == self._place.project.id:
            return self._names.get()
        if memory.project_id is None:
            return NO_KNOWLEDGE
        try:
            return self._sessions.of(memory.project_id).reader.project_names.get()
        except ProjectNotFound:
            return NO_KNOWLEDGE


# -- in step with git: renamed, merged and deleted branches ------------------------------------------


class GitFollower:
    """Applies to the memories of one project what git does, seen from one working tree (`memory.spaces.GitState`).

    There is no daemon. Each call looks at a few small files. Git itself is asked only when a reference has changed, and
    only where records are confined to git branches.
    """

    def __init__(self, shared: ProjectSessions, events: Events, project_id: str, repository: Repository | None) -> None:
        self._store, self._clock = shared.store, shared.clock
        self._settings, self._screen = shared.settings, shared.screen
        self._events = events
        self._project = project_id
        self._repository = repository
        self._pending: dict[str, BranchState] = {}
        self._lock = ForkLock()
        self._branch: str | None = None
        self._mark: str | None = None
        self._default: tuple[str, str | None] | None = None

    def git_branch(self) -> str | None:
        """The branch that is checked out; None when detached, and without a repository."""
        return self._stored_name(self._repository.head().branch) if self._repository else None

    def confinement(self, git_branch: str) -> Confinement | None:
        """Whether records written on a git branch stay there; records of the default branch never do."""
        policy = self._settings.branch_memories
        if policy == "share" or self._repository is None or git_branch == self._default_branch():
            return None
        return policy

    def stale(self, names: Iterable[str], *, unsure: bool = False) -> tuple[str, ...]:
        """The stored names of branches that were deleted without being merged, sorted.

        With `unsure` also those that are gone, and git does not tell whether they were merged.
        """
        if self._repository is None:
            return ()
        stored = {self._name_in_git(name): name for name in names}
        gone = self._repository.stale(stored)
        if not gone:
            return ()
        with self._store.database.read() as session:
            tips = self._store.upkeep.tips(session, self._project, [stored[name] for name in gone])
        found = classify_branches(self._repository, {name: tips.get(stored[name]) for name in gone})
        fates = ("deleted", "open") if unsure else ("deleted",)
        return tuple(sorted(stored[name] for name in gone if found[name] in fates))

    def sync_git_state(self) -> None:
        """Apply what git did since the last call: a rename, a merge, a deletion. Runs with full rights."""
        if self._repository is None:
            return
        try:
            with as_system():
                self._sync(self._repository)
        except StoreReadOnly:
            logger.debug("the store is read-only: changes of git branches are not applied")

    def pending(self) -> dict[str, BranchState]:
        """The ended git branches whose memories wait for a confirmation, each with what became of it."""
        self.sync_git_state()
        with self._lock:
            return dict(self._pending)

    def confirm(self) -> tuple[str, ...]:
        """Move the memories that wait for a confirmation; returns their git branches."""
        self.sync_git_state()
        into = self._default_branch()
        with self._lock:
            pending, self._pending = self._pending, {}
            changed = [self._conclude(name, fate, into) for name, fate in pending.items()]
        self._publish(frozenset[str]().union(*changed))
        return tuple(pending)

    def refuse(self) -> tuple[str, ...]:
        """Leave the memories that wait for a confirmation on their branches for good; returns those branches."""
        self.sync_git_state()
        with self._lock:
            pending, self._pending = self._pending, {}
            if not pending:
                return ()
            now = to_micros(self._clock.now())
            with self._store.database.write(self._project) as session:
                seq = self._store.memories.next_seq(session, self._project)
                for name in pending:
                    nums = self._store.upkeep.staged(session, self._project, name)
                    self._store.upkeep.isolate(session, self._project, nums, now, seq)
        return tuple(pending)

    def staged(self, git_branch: str) -> list[Memory]:
        """Memories that stay on a git branch until it is merged, oldest first."""
        self.sync_git_state()
        with self._store.database.read() as session:
            nums = self._store.upkeep.staged(session, self._project, git_branch)
            return [memory for *_, memory in self._store.memories.by_numbers(session, self._project, nums)]

    def promote(self, memory: Memory, *, back: bool = False) -> None:
        """Make a staged memory visible on every git branch now; with `back`, undo that."""
        now = to_micros(self._clock.now())
        with self._store.database.write(self._project) as session:
            require_write(self._project)
            found = self._store.memories.locate(session, [self._project], memory.id)
            stored = self._store.memories.get(session, self._project, memory.id)
            wanted = None if back else "stage"
            if found is None or stored is None or found[1] != self._project or stored.confinement != wanted:
                raise Conflict(f"The memory {memory.id[:12]} is {'not' if not back else 'already'} staged.", field="id")
            seq = self._store.memories.next_seq(session, self._project)
            change = self._store.upkeep.stage if back else self._store.upkeep.promote
            change(session, self._project, [found[0]], stored.git_branch, now, seq)
        self._publish(frozenset([memory.branch_id] if memory.branch_id else []))

    # -- changes in git --------------------------------------------------------------------------

    def _sync(self, repository: Repository) -> None:
        """Ask git before taking the lock, and apply its answers under the lock."""
        head = repository.head()
        changed: set[str] = set()
        if head.branch != self._branch:
            former = _former_name(repository, head.branch) if head.branch else None
            with self._lock:
                if former is not None and head.branch is not None and head.branch != self._branch:
                    changed |= self._rename(former, head.branch)
                self._branch = head.branch
        changed |= self._conclude_ended(repository, head)
        # Not under the lock: a branch file may hold a person's edits, and storing those begins with a sync.
        self._publish(frozenset(changed))

    def _publish(self, branch_ids: frozenset[str]) -> None:
        if branch_ids:
            self._events.publish(BranchesChanged(branch_ids))

    def _rename(self, former: str, name: str) -> frozenset[str]:
        """Let records and branches follow a renamed git branch; returns the branches that did."""
        with self._store.database.write(self._project) as session:
            seq = self._store.memories.next_seq(session, self._project)
            old, new = self._stored_name(former) or former, self._stored_name(name) or name
            return self._store.upkeep.rename_git_branch(session, self._project, old, new, seq)

    def _conclude_ended(self, repository: Repository, head: CheckedOut) -> frozenset[str]:
        """Promote what was staged on merged git branches, delete what was staged on deleted ones.

        Returns the branches that this has changed.
        """
        with self._store.database.read() as session:
            confined = self._store.upkeep.confined(session, self._project)
            tips = self._store.upkeep.tips(session, self._project, list(confined)) if confined else {}
        if not confined:
            with self._lock:
                # Another process may have had the confirmation.
                self._pending = {}
            return frozenset()
        here = self._stored_name(head.branch)
        if here in confined and head.commit and tips.get(here) != head.commit:
            tips[here] = head.commit
            with self._store.database.write(self._project) as session:
                now = to_micros(self._clock.now())
                self._store.upkeep.put_tip(session, self._project, here, head.commit, now)
        mark = refs_watermark(repository)
        if mark == self._mark:
            return frozenset()
        ended = self._ended(repository, {name: tips.get(name) for name, how in confined.items() if how == "stage"})
        must_ask = bool(ended) and self._needs_confirmation()
        into = self._default_branch() if ended else None
        with self._lock:
            if mark == self._mark:
                # Another thread has done it.
                return frozenset()
            if must_ask:
                self._pending = ended
                return frozenset()
            self._pending = {}
            changed = [self._conclude(name, fate, into) for name, fate in ended.items()]
            self._mark = mark
        return frozenset().union(*changed)

    def _ended(self, repository: Repository, tips: dict[str, str | None]) -> dict[str, BranchState]:
        """The git branches that are no longer open, by their stored names, each with what became of it."""
        stored = {self._name_in_git(name): name for name in tips}
        found = classify_branches(repository, {name: tips[stored[name]] for name in stored})
        return {stored[name]: fate for name, fate in found.items() if fate != "open"}

    def _needs_confirmation(self) -> bool:
        with self._store.database.read() as session:
            return action_plan(self._store.suggestions.trust(session, self._project), "promote", self._settings) == "B"

    def _conclude(self, git_branch: str, fate: BranchState, into: str | None) -> frozenset[str]:
        now = to_micros(self._clock.now())
        with self._store.database.write(self._project) as session:
            nums = self._store.upkeep.staged(session, self._project, git_branch)
            if not nums:
                return frozenset()
            seq = self._store.memories.next_seq(session, self._project)
            merged_into = into if fate == "merged" else None
            self._store.upkeep.promote(session, self._project, nums, merged_into, now, seq)
            if fate == "deleted":
                # Promoted first, so that a memory that is restored later is visible.
                self._store.memories.soft_delete(session, self._project, nums, now, seq)
            return self._store.statistics.lines_of_work(session, self._project, nums)

    # -- names -----------------------------------------------------------------------------------

    def _stored_name(self, name: str | None) -> str | None:
        """The name of a git branch as it is stored: without secrets."""
        return name and self._screen.found(name)

    def _name_in_git(self, name: str) -> str:
        """The name that git has for a stored one; only one with a redacted secret has to be searched for."""
        if _REDACTED not in name or self._repository is None:
            return name
        return next((one for one in self._repository.branches() if self._stored_name(one) == name), name)

    def _default_branch(self) -> str | None:
        """The default branch; git is asked again only when a reference has changed."""
        if self._repository is None:
            return None
        mark = refs_watermark(self._repository)
        if self._default is None or self._default[0] != mark:
            self._default = (mark, self._stored_name(self._repository.default_branch()))
        return self._default[1]


def _former_name(repository: Repository, name: str) -> str | None:
    """The name that a git branch had before, unless another branch has it now."""
    former = former_name(repository, name)
    return None if former is None or former in repository.branches() else former


# -- the sessions of a process -----------------------------------------------------------------------


class ProjectSessions:
    """The open project sessions of a process, and the parts they share. The longest unused are closed."""

    def __init__(
        self,
        store: Store,
        backend: Backend,
        settings: Settings,
        clock: Clock,
        ids: IdMaker,
        model: Callable[[], LanguageModel | None] = lambda: None,
        key: HomeKey | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.store = store
        self.backend = backend
        self.settings = settings
        self.clock = clock
        self.ids = ids
        self.model = model
        self.key = key
        self.screen = Screen.by(settings)
        self.notes = WaitingNotes(store)
        self.jobs = Jobs(self.notes, pace)
        projects = StoredProjects(store)
        self.tenant_files = TenantFiles(settings.home, projects)
        self.places = PathAccess(settings.home, settings.project_roots, projects)
        self.branch_files = BranchFiles(settings.home, key, self.tenant_files)
        self._lock = ForkLock()
        # The session that the process was opened for.
        self.own: ProjectSession | None = None
        self._open: OrderedDict[tuple[object, ...], ProjectSession] = OrderedDict()
        self._logs: dict[str, ReferenceLog] = {}

    @cached_property
    def judge(self) -> ConfiguredJudge:
        # Imported on first use: most commands verify nothing, and it takes as long to load as everything else.
        from .parts.verify.judges.judge import ConfiguredJudge

        return ConfiguredJudge(self.settings, self.model)

    @property
    def current(self) -> ProjectSession:
        """The session of the project that the caller chose, or that the process was opened for."""
        own, caller = self.own, current_caller()
        if own is None:
            raise RuntimeError("no project is open")
        if caller is None:
            return own
        chosen = caller.project or own.id
        if not may_read(chosen):
            raise ProjectNotFound(
                "You work in no project here.", remedy="Choose one: header Cortex-Project, or a token made with --in."
            )
        return self.of(chosen)

    def get(self, project_id: str | None) -> ProjectSession:
        """The session of a project, or the current one for None and `current`."""
        return self.current if project_id is None or project_id == _CURRENT else self.of(project_id)

    def get_writable(self, project_id: str | None) -> ProjectSession:
        """As `get`, for a caller who may write there."""
        found = self.get(project_id)
        require_write(found.id)
        return found

    def at(self, folder: Path, *, join: bool = False) -> ProjectSession:
        """The session of the project that a folder belongs to; a new project is stored.

        A caller must be allowed to write there. With `join`, a person vouches for what the folder says it belongs to.
        """
        place = self.places.check(folder, "project")
        # The folder itself, not the project's root: a linked worktree has a git branch of its own.
        place = existing_folder(place)
        repository = Repository.discover(place)
        found = identify_repository(place, repository)
        if current_caller() is not None and not self._allows(place, found.root, *folders_of(repository)):
            raise path_refusal("project")
        resolved = resolve_project(self.store, found, self.clock, self.screen, join=join)
        place = place if found.repository else resolved.root
        session = self._session(resolved.project, place, found.repository)
        session.refused = resolved.refused
        return session

    def of(self, project_id: str) -> ProjectSession:
        """The session of a stored project. `ProjectNotFound` also for one that the caller may not read."""
        own = self.own
        if own is not None and own.id == project_id and may_read(project_id):
            lasting = own.folder is None or not self._guarded or self.places.keeps(own.folder)
            return own if lasting else self._session(own.record, None)
        with self.store.database.read() as session:
            record = self.store.projects.get(session, project_id)
        if record is None or not may_read(record.id):
            raise ProjectNotFound(
                f"There is no project {project_id[:80]!r}.",
                remedy="Give `current`, or call initialize_context with the path of the project first.",
                field="project_id",
            )
        root = Path(record.root) if record.root else None
        if root is None or not root.is_dir() or (self._guarded and not self.places.keeps(root)):
            return self._session(record, None)
        found = self._session(record, root)
        if current_caller() is None or self._allows(root, *folders_of(found.repository)):
            return found
        return self._session(record, None)

    def reference_log(self, project_id: str) -> ReferenceLog:
        """The one log of references that all sessions of a project share."""
        with self._lock:
            if project_id not in self._logs:
                self._logs[project_id] = ReferenceLog(self.store, self.clock, project_id)
            return self._logs[project_id]

    def write_counts(self) -> None:
        """Store the uses and references that were noted in memory, in all sessions."""
        for one in self._all():
            one.write_counts()

    def close(self) -> None:
        self.jobs.close()
        for one in self._all():
            one.close()
        with self._lock:
            self._open.clear()

    # -- backups (`backup.source.BackupSources`) -------------------------------------------------

    def source(self, project_id: str | None, domain: Domain) -> BackupScope:
        return BackupScope(self.get(project_id), domain)

    def memories(self, project_id: str | None) -> Memories:
        return self.get(project_id).memories

    def graph(self, project_id: str | None) -> Graph:
        return self.get(project_id).graph

    def project_of(self, folder: str) -> str | None:
        """The id of the project that a folder belongs to; None if it is no folder here and no project had it."""
        place = Path(folder)
        try:
            if place.is_absolute() and place.is_dir():
                return self.at(place).id
        except (OSError, ValueError, CortexError) as error:
            logger.debug("no project is opened for a folder: %s", type(error).__name__)
            return None
        around = [folder, *map(str, place.parents)]
        with self.store.database.read() as session:
            roots = {one.root: one.id for one in self.store.projects.all(session) if one.root and may_read(one.id)}
        return next((roots[one] for one in around if one in roots), None)

    def commits(self, folder: Path, most: int) -> Iterator[CommitMessage]:
        """The commits of the repository at a folder, newest first, without merges; InvalidInput if there is none."""
        repository = Repository.discover(self.places.check(folder))
        if repository is None:
            raise InvalidInput(
                f"{folder} is in no git repository.", remedy="Name a folder of a repository.", field="path"
            )
        if repository.head().commit is None:
            return
        form = "--format=%x1e%H%x1f%cI%x1f%s%x1f%b"
        lines = repository.lines("log", "--no-merges", f"--max-count={most}", form, "HEAD", "--")
        for text in "\n".join(lines).split("\x1e")[1:]:
            parts = text.split("\x1f", 3)
            if len(parts) == 4:
                yield CommitMessage(*parts)

    # -- files of tenants ------------------------------------------------------------------------

    def settle_files(self) -> None:
        """Move the files of projects into the folders of their organisations."""
        with as_system():
            files = self.tenant_files
            with self.store.database.read() as session:
                orgs = self.store.tenants.org_by_project(session)
                # Before each project had a folder, the indexes of all of them were in one.
                projects = self.store.projects.all(session) if files.loose("evidence") else []
            files.settle(orgs)
            if projects:
                self._adopt_indexes(projects)

    def _adopt_indexes(self, projects: Sequence[Project]) -> None:
        from .parts.verify.index.project_index import index_name

        owners = {index_name(Path(one.root)): one.id for one in projects if one.root}
        for name in self.tenant_files.loose("evidence"):
            if name in owners:
                self.tenant_files.adopt("evidence", owners[name], name)
            else:
                # No project has this folder any more; the index is rebuilt when somebody works there.
                self.tenant_files.drop("evidence", name)

    # -- open sessions ---------------------------------------------------------------------------

    @property
    def _guarded(self) -> bool:
        """Whether several tenants share this server: a path that was allowed once is checked at every use."""
        return self.settings.auth != "token" or current_caller() is not None

    def _allows(self, *paths: Path) -> bool:
        # A path inside a folder that is checked needs no check of its own.
        kept = [one for one in dict.fromkeys(paths) if not any(other in one.parents for other in paths)]
        return self.places.allows(*kept)

    def _session(self, record: Project, folder: Path | None, repository: Repository | None = None) -> ProjectSession:
        stamp = git_stamp(folder) if folder and self._guarded else ()
        key = (record.id, folder, stamp)
        with self._lock:
            found = self._open.get(key)
        if found is None or found.record != record:
            # Outside the lock: git is asked.
            found = open_session(self, record, folder, repository)
        with self._lock:
            before = self._open.get(key)
            if before is None or before.record != record:
                self._open[key] = found
            else:
                found, before = before, None
            self._open.move_to_end(key)
            closed = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - MOST_OPEN)]
        for one in (*closed, before):
            if one is not None and one is not self.own:
                self._close(one)
        return found

    def _close(self, session: ProjectSession) -> None:
        """Release what is kept for a session, after storing what it noted in memory."""
        with self._lock:
            last = all(one.id != session.id for one in (*self._open.values(), self.own) if one is not None)
            if last:
                self._logs.pop(session.id, None)
        try:
            with as_system():
                session.write_counts()
        except StorageError as error:
            # Counts are lost, no memory is.
            logger.debug("uses and references were not stored: %s", type(error).__name__)
        session.close()
        if last:
            self.store.forget(tuple(kind_space(session.id, kind) for kind in KINDS))

    def _all(self) -> list[ProjectSession]:
        with self._lock:
            found = list(self._open.values())
        return found if self.own is None or self.own in found else [*found, self.own]


class BackupScope:
    """What backups hold of a project, or of its person or organisation (`backup.source.BackupSource`).

    Only a project has branches, and so branch files.
    """

    def __init__(self, project: ProjectSession, domain: Domain) -> None:
        self._project = project
        self._store = project.shared.store
        self._files = project.shared.branch_files
        self._domain = domain
        self._indexer = project.memories.carried(self.space)

    @property
    def space(self) -> str:
        return self._project.memories.place.space(self._domain)

    @property
    def facts(self) -> Mapping[str, str | None]:
        if self._domain != "project":
            return {"domain": self._domain}
        record = self._project.record
        return {"domain": "project", "project_id": record.id, "name": record.name, "remote": record.remote}

    @property
    def model(self) -> str:
        backend = self._project.shared.backend
        return "" if model_problem(backend) else backend.fingerprint

    @property
    def tag(self) -> bytes | None:
        return self._indexer.tag

    def settle(self) -> None:
        self._project.memories.finish_reading()
        self._project.memories.write_uses()
        for branch_id in self._branches():
            self._project.projection.try_refresh(branch_id)

    def look_for_personal_data(self) -> None:
        self._project.memories.look_for_personal_data(space=self.space)

    def files(self) -> Iterator[tuple[str, bytes]]:
        for branch_id in self._branches():
            try:
                text = self._files.read(self._project.id, branch_id)
            except CortexError as error:
                # The store has all that is in the file, so a backup without it is still complete.
                logger.debug("the file of branch %s is not in the backup: %s", branch_id, type(error).__name__)
                continue
            if text is not None:
                yield f"branches/{branch_id}.md", text.encode()

    def index(self, document: Document) -> IndexedRecord:
        return self._indexer.index(document)

    def finish(self, session: Session) -> None:
        self._indexer.finish(session)

    def changed(self) -> None:
        """Rewrite the files of all branches, and remove those of branches that no longer exist."""
        if self._domain == "project":
            branches = self._branches()
            for branch_id in branches:
                self._project.summaries.refresh(branch_id)
                self._project.projection.try_refresh(branch_id, whole=True)
            for branch_id in set(self._files.names(self._project.id)) - set(branches):
                self._files.remove(self._project.id, branch_id)
        self._project.memories.fill_vectors()

    def _branches(self) -> list[str]:
        if self._domain != "project":
            return []
        with self._store.database.read() as session:
            return sorted(branch.id for branch in self._store.branches.all(session, self._project.id))
