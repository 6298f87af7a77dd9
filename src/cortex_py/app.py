"""`Cortex`: opens a home, builds the services of the store, and closes them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from .core.clock import Clock, IdMaker, SystemClock
from .core.config import Settings, load_settings
from .core.embedding.backends.backend import Backend
from .core.embedding.backends.registry import open_backend
from .core.errors import AccessDenied, BackupError, ConfigurationError, CortexError, StorageError, StoreReadOnly
from .core.events import Events, TenantsChanged
from .core.jobs import Jobs, release, require, trim_arenas, watch
from .core.memory.compression import CompressionResult
from .core.memory.service import Memories
from .core.memory.spaces import follow_shipped_model
from .core.paths import expanded
from .core.records import Project
from .core.security.callers import as_system, current_caller
from .core.store.database import ServerLoad, Vitals
from .encryption import Encryption, encryption_of, home_key
from .opening import World, open_store
from .parts.context.project import existing_folder
from .parts.context.service import Contexts
from .session import ProjectSession, ProjectSessions

if TYPE_CHECKING:
    from .core.embedding.service import EmbeddingService
    from .core.llm.client import LanguageModel
    from .core.store.store import Store
    from .diagnosis import Diagnosis
    from .parts.backup.bridges.memory_tool import MemoryTool
    from .parts.backup.bridges.service import Bridges
    from .parts.backup.service import Backups
    from .parts.backup.snapshots.replacement import MoveResult
    from .parts.context.timeline import Timeline
    from .parts.graph.service import Graph
    from .parts.hooks.service import Hooks
    from .parts.hooks.staging import Review
    from .parts.prompts.service import Prompts
    from .parts.prompts.templates import Templates
    from .parts.suggest.sessions import Suggestions
    from .parts.verify.service import Grounding
    from .team.access.audit import Audit
    from .team.access.service import Access, Verifier
    from .team.access.tenants import Tenants
    from .team.licence.licence import LicenceGate
    from .team.postgres.distribution import Distribution

__all__ = ["Cortex"]

logger = logging.getLogger(__name__)

_CACHED_IN_MEMORY = 16_000_000


class Cortex:
    """One memory, opened. Use it as a context manager, or call `close`."""

    # What homes are opened with that are given nothing else.
    world: ClassVar[World] = World()

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        backend: Backend,
        clock: Clock,
        *,
        new_store: bool = False,
        join: bool = False,
        world: World | None = None,
    ) -> None:
        self.settings = settings
        self._world = world or self.world
        self._clock = clock
        self._backend = backend
        # Fail for a missing folder before anything is created.
        existing_folder(folder)
        self._key = home_key(settings)
        self._store = open_store(settings, backend, clock, self._key, new_store=new_store, world=self._world)
        require()
        self._is_open = True
        self._events = Events()
        self._sessions = ProjectSessions(
            self._store,
            backend,
            settings,
            clock,
            IdMaker(clock),
            lambda: self.language_model,
            self._key,
            self._world.pace,
        )
        self._prompts: WeakKeyDictionary[ProjectSession, Prompts] = WeakKeyDictionary()
        self._templates: WeakKeyDictionary[ProjectSession, Templates] = WeakKeyDictionary()
        self._events.subscribe(TenantsChanged, lambda _event: self._sessions.settle_files())
        try:
            # Opening a home requires no caller: local access implies full rights.
            with as_system():
                with contextlib.suppress(StoreReadOnly):
                    follow_shipped_model(self._store, backend)
                self._own = self._sessions.own = self._sessions.at(folder, join=join)
                self._sessions.settle_files()
                self.jobs.take_up()
        except BaseException:
            self._end()
            raise

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        project: str | Path = ".",
        database_url: str | None = None,
        backend: Backend | None = None,
        clock: Clock | None = None,
        new_store: bool = False,
        join: bool = False,
        world: World | None = None,
        **settings: Any,
    ) -> Cortex:
        """Open the memory in `home` (default `CORTEX_HOME`, else `~/.cortex`) for the project at a path.

        `new_store` creates a store even where the home had one that is gone. `join` vouches for the folder: it joins
        the project that it names, even if that does not know it. `world` is what it is built on. Further keyword
        arguments are settings.
        Nothing heavy is loaded before it is needed.
        """
        chosen = load_settings(home, database_url=database_url, **settings)
        return cls.from_settings(
            chosen, project, backend=backend, clock=clock, new_store=new_store, join=join, world=world
        )

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        project: str | Path = ".",
        *,
        backend: Backend | None = None,
        clock: Clock | None = None,
        new_store: bool = False,
        join: bool = False,
        world: World | None = None,
    ) -> Cortex:
        """Open the memory that these settings describe."""
        model = backend or open_backend(settings=settings)
        if model.dimensions <= 0:
            raise ConfigurationError(
                "The dimensions of the embedding model are not known.",
                remedy="Set embedding_dimensions.",
                field="embedding_dimensions",
            )
        return cls(
            settings, expanded(project), model, clock or SystemClock(), new_store=new_store, join=join, world=world
        )

    @property
    def _session(self) -> ProjectSession:
        return self._sessions.current

    @property
    def memories(self) -> Memories:
        """Capture, recall and maintenance of memories."""
        return self._session.memories

    @property
    def graph(self) -> Graph:
        """The entities that memories name, and their relationships."""
        return self._session.graph

    @property
    def grounding(self) -> Grounding:
        """Checks the claims of a text against the project."""
        return self._session.grounding

    @cached_property
    def contexts(self) -> Contexts:
        """Projects and their branches."""
        return Contexts(self._sessions)

    @cached_property
    def suggestions(self) -> Suggestions:
        """Suggests memories for a task, and learns from the answers."""
        from .parts.suggest.sessions import Suggestions

        return Suggestions(self._sessions)

    @cached_property
    def backups(self) -> Backups:
        """Snapshots, encrypted sync, export and import."""
        from .parts.backup.service import Backups

        sessions = self._sessions
        return Backups(
            self._store, self._clock, self.settings, sessions, sessions.places, sessions.tenant_files, self._key
        )

    @cached_property
    def bridges(self) -> Bridges:
        """Folders that are kept in step with the memories: vaults, and Claude Code's own memory."""
        from .parts.backup.bridges.service import Bridges

        return Bridges(self._store, self._clock, self.settings, self._sessions, self._sessions.places)

    @cached_property
    def memory_tool(self) -> MemoryTool:
        """Memories as the files of the memory tool of Claude's API."""
        from .parts.backup.bridges.memory_tool import MemoryTool

        return MemoryTool(self.memories)

    @cached_property
    def embeddings(self) -> EmbeddingService:
        """Vectors for callers; checked, cached and rate-limited."""
        from .core.embedding.cache import VectorCache
        from .core.embedding.service import EmbeddingService
        from .core.embedding.sqlite_vectors import SqliteVectors

        settings = self.settings
        key = self._key.database if self._key else None
        kept = SqliteVectors(settings.embedding_cache, settings.cache_bytes, key=key) if settings.cache_bytes else None
        return EmbeddingService(
            backend=self._backend,
            cache=VectorCache(_CACHED_IN_MEMORY, kept),
            rate_limit=settings.rate_limit,
            profile=settings.security_profile,
            max_text_length=settings.max_text_length,
            clock=self._clock,
            tenant=_tenant,
        )

    @property
    def prompts(self) -> Prompts:
        """Saved prompts, filled in by name."""
        from .parts.prompts.service import Prompts

        project = self._session
        made = self._prompts.get(project)
        if made is None:
            made = Prompts(self._store, self._clock, project.memories, self._sessions.screen, project.root)
        return self._prompts.setdefault(project, made)

    @property
    def templates(self) -> Templates:
        """Saved templates, rendered with memories."""
        return self._templates_of(self._session)

    def _templates_of(self, project: ProjectSession) -> Templates:
        from .parts.prompts.templates import Templates

        made = self._templates.get(project)
        if made is None:
            made = Templates(self._store, self._clock, project.memories, self._sessions.screen, project.root)
        return self._templates.setdefault(project, made)

    @cached_property
    def hooks(self) -> Hooks:
        """What the hooks of AI clients give to sessions, and keep of them."""
        from .parts.hooks.service import Hooks

        return Hooks(self._sessions, self._templates_of)

    @property
    def timeline(self) -> Timeline:
        """What happened in the project, on one axis."""
        from .parts.context.timeline import Timeline, TimelineEvent

        try:
            kept = self.backups.snapshots()
        except (AccessDenied, BackupError):
            kept = []  # only an administrator sees snapshots
        snapshots = [
            TimelineEvent("snapshot", one.created_at, one.id, one.description or one.id, one.kind) for one in kept
        ]
        return Timeline(self._session, snapshots)

    @property
    def review(self) -> Review:
        """What was staged from the turns of sessions: accept, change or drop it."""
        from .parts.hooks.staging import Review

        return Review(self._session.memories, self.hooks.read_all)

    @cached_property
    def language_model(self) -> LanguageModel | None:
        """The language model, where one is configured. Nothing is sent before it is used."""
        if self.settings.llm_provider is None:
            return None
        from .core.llm.registry import open_language_model

        return open_language_model(self.settings, self._store.llm_usage, self._clock)

    def require(self, tool: str, arguments: Mapping[str, object] | None = None) -> None:
        """Raise `LicenseRequired` where the settings require a licence and it does not cover a tool.

        The MCP server calls this before each tool. The library's own methods need no licence.
        """
        if self.settings.require_license:
            self._gate.require(tool, arguments)

    @cached_property
    def access(self) -> Access:
        """Tokens that identify the callers of a shared server."""
        from .team.access.service import Access

        return Access(self._store, self._clock, self.tenants)

    @cached_property
    def tenants(self) -> Tenants:
        """Organisations, members, groups, and who may do what in which project."""
        from .team.access.tenants import Tenants

        return Tenants(self._store, self._clock, self.settings.org, self.settings.auto_join, self._events)

    @cached_property
    def audit(self) -> Audit:
        """A tamper-evident log of what callers did."""
        from .core.security.key_file import KeyFile
        from .team.access.audit import Audit

        path = self.settings.audit_key_file or self.settings.home / "audit.key"
        return Audit(self._store, KeyFile(path, "audit key", "audit_key_file"), self._clock)

    @cached_property
    def verifier(self) -> Verifier | None:
        """Identifies the caller of a bearer token; None where the settings do not distinguish callers."""
        from .team.access.service import open_verifier

        return open_verifier(self.settings, self.access, self.tenants, self._clock)

    @cached_property
    def _gate(self) -> LicenceGate:
        from .team.licence.licence import LicenceGate

        return LicenceGate(self.settings, self._clock)

    @property
    def backend(self) -> Backend:
        """The embedding model behind recall."""
        return self._backend

    @property
    def project(self) -> Project:
        return self._session.record

    def check(self) -> list[str]:
        """The faults in the store's files; empty where there are none."""
        return self._store.database.check()

    def reach(self, seconds: float) -> None:
        """Raise if the store cannot be reached, within about that time even under load."""
        self._store.database.ping(seconds)

    def vitals(self) -> Vitals:
        """The engine's own counters."""
        return self._store.database.vitals()

    def replica_lag(self) -> int | None:
        """How many bytes the replica of the settings is behind; None without one, or while it does not answer."""
        return self._store.database.replica_lag()

    def server_load(self) -> ServerLoad | None:
        """What the database server is busy with; None for a store in the home, or while it does not answer."""
        return self._store.database.server_load()

    def wait_for_change(self, seconds: float) -> bool | None:
        """Wait at most that long for a change of memories or prompts; None where the store cannot notify."""
        return self._store.database.wait_for_change(seconds)

    def encryption(self) -> Encryption:
        """Whether the files of the home are encrypted, and with which key."""
        return encryption_of(self.settings)

    def doctor(self) -> Diagnosis:
        """The health of this memory, and what it sends to other machines."""
        from .diagnosis import diagnose

        return diagnose(self)

    @property
    def store(self) -> Store:
        """The store beneath, for tools that look into it."""
        return self._store

    @property
    def jobs(self) -> Jobs:
        """What runs beside calls."""
        return self._sessions.jobs

    @property
    def answering(self) -> Callable[[], contextlib.AbstractContextManager[None]]:
        """Makes a context for the answer to a call: background work of this process waits meanwhile, within limits."""
        return self.jobs.answering

    def upkeep(self, stop: Callable[[], bool] = lambda: False) -> CompressionResult:
        """Background work: sync with git, index the project, extract old memories into the graph, pack idle ones.

        `stop` is called between batches. Of several processes that share a PostgreSQL database, one does the work that
        concerns the whole store.
        """
        with as_system():
            try:
                return self._upkeep(stop)
            finally:
                trim_arenas()

    def _upkeep(self, stop: Callable[[], bool]) -> CompressionResult:
        self.memories.place.sync_git_state()
        self._sessions.write_counts()
        self._sessions.settle_files()
        self._write_token_uses()
        if self._session.repository is not None:
            # A plain folder may be anything, even a whole home directory; it is indexed when a caller verifies.
            try:
                self.grounding.refresh(stop)
                self.grounding.review_memories(stop, changed_only=True)
            except CortexError as error:
                logger.debug("the project was not indexed: %s", type(error).__name__)
        if self._store.database.leads(f"bridges of {self.project.id}"):
            self.bridges.keep(stop)
        if self._store.database.leads(f"scan of {self.project.id}"):
            try:
                self.contexts.run_requested_scan(stop)
            except CortexError as error:
                logger.warning("the scan that was requested failed, and is tried again: %s", error)
        return self._shared_upkeep(stop)

    def _shared_upkeep(self, stop: Callable[[], bool]) -> CompressionResult:
        """Work on the whole store, which one of the processes that share it does."""
        database = self._store.database
        everything = database.leads("upkeep")
        # Given only to work that no call waits for and that holds no lock which a call needs.
        let_calls_pass = self.jobs.let_calls_pass()

        def yielding() -> bool:
            let_calls_pass()
            return stop()

        if everything:
            self.jobs.take_up()
            self.memories.annotate(yielding)
            self.memories.look_for_personal_data(yielding)
            self.memories.fill_vectors(stop)
            self.hooks.read_imported(yielding)
        # Each server makes the snapshots of its own project.
        if not stop() and database.leads(f"snapshots of {self.project.id}"):
            with watch("documents", let_calls_pass):
                self.backups.scheduled()
        packed = self.memories.compress(yielding) if everything else CompressionResult(0, 0, 0)
        # Done by every process that has used a large space. Last, because it may take minutes or fail.
        self._store.keep_spaces(stop, check=True)
        self._store.read_codes(stop)
        self._store.index_large_spaces(self.settings.vector_index_above, stop)
        return packed

    def _write_token_uses(self) -> None:
        if access := vars(self).get("access"):
            access.write_uses()

    def move_to(self, database_url: str | None, progress: Callable[[int, int], None] | None = None) -> MoveResult:
        """Copy the whole store into another: a PostgreSQL database, or for None the file in the home.

        This store is not changed; set `database_url` to the other one afterwards.
        """
        from .parts.backup.snapshots.replacement import copy_projects, move_store

        if (database_url or None) == (self.settings.database_url or None):
            raise ConfigurationError("The store is there already.", remedy="Name another place.", field="to")
        self._sessions.write_counts()
        # A replica and a direct address belong to this store.
        settings = replace(self.settings, database_url=database_url, database_read_url=None, database_direct_url=None)
        target = open_store(settings, self._backend, self._clock, self._key, new_store=True, world=self._world)
        try:
            # Copied before the project is opened there, so that it keeps its id.
            copy_projects(self._store, target)
        finally:
            target.close()
        with Cortex(settings, self._own.folder or Path.cwd(), self._backend, self._clock) as other:
            return move_store(self._store, other._store, other.memories.carried, progress)

    def distribute(self, shards: int | None = None) -> Distribution:
        """Spread a PostgreSQL store with its rows over the workers of a Citus cluster, by space; no one else uses it.

        Run again, it distributes what is not distributed yet.
        """
        if not self.settings.database_url:
            raise ConfigurationError(
                "Only a store in PostgreSQL can be distributed.",
                remedy="Copy it there with cortex migrate, and set database_url.",
                field="database_url",
            )
        from .team.postgres.distribution import DEFAULT_SHARDS, distribute
        from .team.postgres.engine import PostgresDatabase

        database = self._store.database
        assert isinstance(database, PostgresDatabase)
        return distribute(database, DEFAULT_SHARDS if shards is None else shards)

    def close(self) -> None:
        with as_system():
            self._close()

    def _close(self) -> None:
        if "embeddings" in vars(self):
            self.embeddings.close()
        if model := vars(self).get("language_model"):
            model.close()
        try:
            self._sessions.write_counts()
            self._write_token_uses()
            self._store.keep_spaces()
        except StorageError as error:
            # Counts are lost, no memory is.
            logger.debug("uses were not stored: %s", type(error).__name__)
        self._sessions.close()
        self._end()

    def _end(self) -> None:
        self._store.close()
        if self._is_open:
            self._is_open = False
            release()

    def __enter__(self) -> Cortex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _tenant() -> str:
    """Who is charged for embeddings: the caller, where callers are known."""
    caller = current_caller()
    return "" if caller is None else f"\n{caller.org}\n{caller.user}"
