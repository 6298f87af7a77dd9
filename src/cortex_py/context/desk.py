"""A desk: one project with all that works on it. A process sits at one; a tool may name any project of the store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..clock import Clock
from ..config import Settings
from ..embedding.backend import Backend
from ..errors import InvalidInput, ProjectNotFound, StorageError
from ..graph.knowledge import NOTHING, Knowledge
from ..graph.project_names import ProjectNames
from ..graph.service import Graph
from ..graph.surroundings import GraphSurroundings
from ..graph.values import Extraction
from ..graph.writing import GraphWriter
from ..ids import IdMaker
from ..memory.enrichment import without_context
from ..memory.place import Place
from ..memory.service import Memories
from ..paths import expanded
from ..records import Domain, Memory, Project
from ..security.callers import acting_as
from ..security.permission import readable
from ..store.store import Store
from ..worktree.git import Repository
from .automation import action_plan
from .branch_store import BranchFiles
from .following import Following
from .known import remember
from .project import identify
from .projection import Projection
from .reference_log import ReferenceLog
from .summaries import Summaries

if TYPE_CHECKING:
    from ..grounding.rejudging import Judge
    from ..grounding.service import Grounding
    from ..llm.client import LanguageModel
    from .holding import HeldSpace
    from .scan import Scanner

__all__ = ["Desk", "Desks"]

# Callers of a shared server choose their projects.
_MOST_DESKS = 64


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Desk:
    """`folder` is where the project lies on this machine; None where it does not, or no longer."""

    project: Project
    folder: Path | None
    repository: Repository | None
    memories: Memories
    graph: Graph
    names: ProjectNames
    following: Following
    projection: Projection
    summaries: Summaries

    @property
    def root(self) -> Path | None:
        """Where the project's files begin: the working tree, or the folder itself where there is none."""
        return self.repository.root if self.repository and not self.repository.is_bare else self.folder

    def scanner(self, store: Store) -> Scanner:
        if self.folder is None or self.root is None:
            raise InvalidInput(
                f"The folder of the project {self.project.name[:80]!r} is not there.",
                remedy="Give the path at which it lies now.",
                field="project",
            )
        from .scan import Scanner

        return Scanner(store, self.project, self.root, self.memories.files)


class Desks:
    """The desks of one process, each made when first needed; those longest unused are cleared."""

    def __init__(
        self,
        store: Store,
        backend: Backend,
        settings: Settings,
        clock: Clock,
        ids: IdMaker,
        model: Callable[[], LanguageModel | None] = lambda: None,
    ) -> None:
        self._model = model
        self._store = store
        self._backend = backend
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._files = BranchFiles(settings.home)
        self._open: OrderedDict[tuple[str, Path | None], Desk] = OrderedDict()
        self._groundings: dict[tuple[str, Path | None], Grounding] = {}
        self._judges: list[Judge | None] = []
        self._logs: dict[str, ReferenceLog] = {}
        self._lock = threading.Lock()
        # The desk of the process itself, once it sits at one.
        self.own: Desk | None = None

    def at(self, folder: Path) -> Desk:
        """The desk for the project that a folder belongs to; a project not known yet is remembered.

        A caller must be allowed to write there.
        """
        found = identify(folder)
        project = remember(self._store, found, self._clock)
        place = expanded(folder).resolve()
        # Of the folder itself, not of the project's root: a linked worktree has a branch of its own.
        return self._desk(project, place if place.is_dir() else place.parent)

    def of(self, project_id: str) -> Desk:
        """The desk for a project of the store. One that the caller may not read is not there."""
        if self.own is not None and self.own.project.id == project_id and readable(project_id):
            return self.own
        with self._store.database.read() as session:
            project = self._store.projects.get(session, project_id)
        if project is None or not readable(project.id):
            raise ProjectNotFound(
                f"There is no project {project_id[:80]!r}.",
                remedy="Call initialize_context with the path of the project first.",
                field="project_id",
            )
        root = Path(project.root) if project.root else None
        return self._desk(project, root if root and root.is_dir() else None)

    def _desk(self, project: Project, folder: Path | None) -> Desk:
        key = (project.id, folder)
        with self._lock:
            desk = self._open.get(key)
            if desk is None or desk.project != project:
                desk = self._open[key] = self._make(project, folder)
            self._open.move_to_end(key)
            cleared = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - _MOST_DESKS)]
        for one in cleared:
            _write_uses(one)
        return desk

    def _make(self, project: Project, folder: Path | None) -> Desk:
        repository = Repository.discover(folder) if folder else None
        settings, store = self._settings, self._store

        def touched(branches: frozenset[str]) -> None:
            # What follows from a change is the server's own work, whoever made the change.
            with acting_as(None):
                for branch_id in sorted(branches):
                    summaries.refresh(branch_id)
                    projection.try_refresh(branch_id)

        following = Following(
            store,
            self._clock,
            project.id,
            repository,
            settings.branch_memories,
            touched,
            lambda: self._asks(project.id),
        )
        place = Place(
            project,
            settings.user_id,
            settings.agent_id,
            settings.org,
            following.git_branch,
            following.arrive,
            following.confinement,
        )
        stale = repository.stale if repository else lambda _names: ()
        names = ProjectNames(store, project, folder, repository)

        def read(text: str) -> Extraction:
            from ..graph.extract import extract

            return extract(text, names.get())

        def read_memory(memory: Memory) -> Extraction:
            from ..graph.extract import extract

            # A context that enriching gave it quotes other memories; what they state is not this one's statement.
            text = without_context(memory.content)
            return extract(text, names.get() if memory.project_id == project.id else self._names(memory))

        writer = GraphWriter(store.graph, self._clock, self._ids, read_memory)
        memories = Memories(
            store,
            self._backend,
            settings,
            self._clock,
            self._ids,
            place,
            stale,
            touched,
            writer,
            self._model,
            GraphSurroundings(store, self._clock, place),
        )
        graph = Graph(store, self._clock, self._ids, place, read)
        projection = Projection(store, self._clock, self._files, project.id, memories)
        summaries = Summaries(store, project.id, self._backend.count_tokens)
        return Desk(project, folder, repository, memories, graph, names, following, projection, summaries)

    def grounding(self, desk: Desk) -> Grounding:
        """What checks claims against the desk's project. Loaded when first needed: it brings the parsers along."""
        from ..grounding.service import Grounding

        key = (desk.project.id, desk.folder)
        with self._lock:
            if key not in self._groundings:
                self._groundings[key] = Grounding(
                    self._settings.home, desk.root, desk.repository, desk.memories, self._judge
                )
            return self._groundings[key]

    def _judge(self) -> Judge | None:
        from ..grounding.judges import open_judge

        if not self._judges:
            self._judges.append(open_judge(self._settings, self._model))
        return self._judges[0]

    def _asks(self, project_id: str) -> bool:
        """Whether moving memories of ended branches is to be asked for first."""
        with self._store.database.read() as session:
            return action_plan(self._store.suggestions.trust(session, project_id), "promote", self._settings) == "B"

    def held(self, desk: Desk, domain: Domain) -> HeldSpace:
        """What backups hold of the desk's project, or of its person or organisation."""
        from .holding import HeldSpace

        return HeldSpace(self._store, self._files, desk, domain)

    def references(self, desk: Desk) -> ReferenceLog:
        """What is referred to in the desk's project."""
        with self._lock:
            if desk.project.id not in self._logs:
                self._logs[desk.project.id] = ReferenceLog(self._store, self._clock, desk.project.id)
            return self._logs[desk.project.id]

    def write_references(self) -> None:
        """Store what was noted in passing, at all desks."""
        with self._lock:
            logs, desks = list(self._logs.values()), list(self._open.values())
        for log in logs:
            log.write()
        for desk in desks:
            desk.memories.write_uses()

    def close(self) -> None:
        """Let go of the files that are kept open."""
        with self._lock:
            for grounding in self._groundings.values():
                grounding.close()

    def _names(self, memory: Memory) -> Knowledge:
        """What is known of a memory's project, wherever it is read: what belongs to none is read without."""
        if memory.project_id is None:
            return NOTHING
        try:
            return self.of(memory.project_id).names.get()
        except ProjectNotFound:
            return NOTHING


def _write_uses(desk: Desk) -> None:
    with acting_as(None), suppress(StorageError):
        # A store that cannot be written now has lost a count, no memory.
        desk.memories.write_uses()
