"""`Cortex`: opens a home, wires the parts together, and closes them. The one place that knows all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .clock import Clock, SystemClock
from .config import Settings, load_settings
from .context.desk import Desk, Desks
from .context.project import identify, normalise_remote
from .context.service import Contexts
from .embedding.backend import Backend
from .embedding.backends import open_backend
from .errors import ConfigurationError, CortexError, ProjectNotFound, StorageError
from .graph.service import Graph
from .ids import IdMaker
from .memory.compressing import Compressed
from .memory.service import Memories
from .opening import open_store
from .paths import expanded
from .records import Domain, Project
from .security.callers import acting_as, current_caller
from .security.permission import readable
from .store.database import Vitals
from .store.ledger_of_use import StoreLedger

if TYPE_CHECKING:
    from .access.audit import Audit
    from .access.authentication import Verifier
    from .access.service import Access
    from .access.tenants import Tenants
    from .backup.entitlement import Gate
    from .backup.moving import Moved
    from .backup.service import Backups
    from .context.holding import HeldSpace
    from .context.suggestions import Suggestions
    from .diagnosis import Diagnosis
    from .embedding.service import EmbeddingService
    from .grounding.service import Grounding
    from .llm.client import LanguageModel
    from .prompts.service import Prompts
    from .prompts.templates import Templates

__all__ = ["Cortex"]

_CACHED_IN_MEMORY = 16_000_000


class Cortex:
    """One memory, opened. Use it as a context manager, or call `close`."""

    def __init__(self, settings: Settings, folder: Path, backend: Backend, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self._backend = backend
        # A folder that is not there is told before anything is made.
        identify(folder)
        self._store = open_store(settings, backend, clock)
        self._ids = IdMaker(clock)
        self._desks = Desks(self._store, backend, settings, clock, self._ids, lambda: self.language_model)
        self._prompts: WeakKeyDictionary[Desk, Prompts] = WeakKeyDictionary()
        self._templates: WeakKeyDictionary[Desk, Templates] = WeakKeyDictionary()
        try:
            # Whoever opens a home has it.
            with acting_as(None):
                self._here = self._desks.own = self._desks.at(folder)
        except BaseException:
            self._store.close()
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
        **settings: Any,
    ) -> Cortex:
        """Open the memory in `home` (default `CORTEX_HOME`, else `~/.cortex`) for the project at a path.

        Further keyword arguments are settings. Nothing heavy is loaded before it is needed.
        """
        chosen = load_settings(home, database_url=database_url, **settings)
        return cls.from_settings(chosen, project, backend=backend, clock=clock)

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        project: str | Path = ".",
        *,
        backend: Backend | None = None,
        clock: Clock | None = None,
    ) -> Cortex:
        """Open the memory that settings already read describe."""
        model = backend or open_backend(settings=settings)
        if model.dimensions <= 0:
            raise ConfigurationError(
                "The length of the embedding model's vectors is not known.",
                remedy="Set embedding_dimensions.",
                field="embedding_dimensions",
            )
        return cls(settings, expanded(project), model, clock or SystemClock())

    @property
    def _desk(self) -> Desk:
        """The one that the caller works at: of the project they chose, or the one that this Cortex was opened for."""
        caller = current_caller()
        if caller is None:
            return self._here
        chosen = caller.project or self._here.project.id
        if not readable(chosen):
            raise ProjectNotFound(
                "You work in no project here.", remedy="Choose one: header Cortex-Project, or a token made with --in."
            )
        return self._desks.of(chosen)

    @property
    def memories(self) -> Memories:
        """Capture, recall, and all that a memory goes through."""
        return self._desk.memories

    @property
    def graph(self) -> Graph:
        """What memories speak of, and how it hangs together."""
        return self._desk.graph

    @property
    def grounding(self) -> Grounding:
        """Whether what a text says is true of this project."""
        return self._desks.grounding(self._desk)

    @cached_property
    def contexts(self) -> Contexts:
        """Projects and lines of work."""
        return Contexts(self._store, self._clock, self._desks, lambda: self._desk)

    @cached_property
    def suggestions(self) -> Suggestions:
        """What a task will need, and what the answers to that teach."""
        from .context.suggestions import Suggestions

        return Suggestions(self._store, self._clock, self._ids, self.settings, self._desks, lambda: self._desk)

    @cached_property
    def backups(self) -> Backups:
        """Snapshots, and encrypted copies elsewhere."""
        from .backup.service import Backups

        def held(project_id: str | None, domain: Domain) -> HeldSpace:
            return self._desks.held(self._desk if project_id is None else self._desks.of(project_id), domain)

        def memories(project_id: str | None) -> Memories:
            return self.memories if project_id is None else self._desks.of(project_id).memories

        return Backups(self._store, self._clock, self.settings, held, lambda: self._backend.fingerprint, memories)

    @cached_property
    def embeddings(self) -> EmbeddingService:
        """Vectors for callers outside the engine, by the engine's own model; checked, cached and limited."""
        from .embedding.cache import VectorCache
        from .embedding.service import EmbeddingService
        from .embedding.sqlite_vectors import SqliteVectors

        settings = self.settings
        kept = SqliteVectors(settings.embedding_cache, settings.cache_bytes) if settings.cache_bytes else None
        return EmbeddingService(
            backend=self._backend,
            cache=VectorCache(_CACHED_IN_MEMORY, kept),
            rate_limit=settings.rate_limit,
            profile=settings.security_profile,
            max_text_length=settings.max_text_length,
            clock=self._clock,
        )

    @property
    def prompts(self) -> Prompts:
        """Saved prompts, filled in by name."""
        from .prompts.builtins import builtins
        from .prompts.service import Prompts

        desk = self._desk
        made = self._prompts.get(desk)
        if made is None:
            made = Prompts(self._store, self._clock, desk.memories, self.settings.secrets, desk.root, builtins)
        return self._prompts.setdefault(desk, made)

    @property
    def templates(self) -> Templates:
        """Saved templates, rendered with memories."""
        from .prompts.templates import Templates

        desk = self._desk
        made = self._templates.get(desk)
        if made is None:
            made = Templates(self._store, self._clock, desk.memories, self.settings.secrets, desk.root)
        return self._templates.setdefault(desk, made)

    @cached_property
    def language_model(self) -> LanguageModel | None:
        """The language model, where one is configured; nothing is sent before it is asked."""
        if self.settings.llm_provider is None:
            return None
        from .llm.open import open_language_model

        return open_language_model(self.settings, StoreLedger(self._store), self._clock)

    def require(self, tool: str, arguments: Mapping[str, object] | None = None) -> None:
        """Raise `LicenseRequired` where the settings ask for a licence and it does not open a tool.

        The MCP server asks before each call. The library's own methods are open to whoever holds them.
        """
        if self.settings.require_license:
            self._gate.require(tool, arguments)

    @cached_property
    def access(self) -> Access:
        """Tokens by which callers of a shared server are known."""
        from .access.service import Access

        return Access(self._store, self._clock, self.tenants)

    @cached_property
    def tenants(self) -> Tenants:
        """Organisations, members, groups, and who may do what in which project."""
        from .access.tenants import Tenants

        settings = self.settings
        return Tenants(self._store, self._clock, settings.org, settings.auto_join, normalise_remote)

    @cached_property
    def audit(self) -> Audit:
        """What callers did, in a log that shows whether it was changed."""
        from .access.audit import Audit
        from .access.audit_key import AuditKey

        path = self.settings.audit_key_file or self.settings.home / "audit.key"
        return Audit(self._store, AuditKey(path), self._clock)

    @cached_property
    def verifier(self) -> Verifier | None:
        """Tells who a bearer token speaks for; None where the settings do not tell callers apart."""
        from .access.authentication import open_verifier

        return open_verifier(self.settings, self.access, self.tenants, self._clock)

    @cached_property
    def _gate(self) -> Gate:
        from .backup.entitlement import Gate

        return Gate(self.settings, self._clock)

    @property
    def backend(self) -> Backend:
        """The embedding model behind recall."""
        return self._backend

    @property
    def project(self) -> Project:
        return self._desk.project

    def check(self) -> list[str]:
        """Faults found in the store's files; empty when all is well."""
        return self._store.database.check()

    def reach(self, seconds: float) -> None:
        """Raise why the store cannot be reached now; told within about that time, whatever else is at work."""
        self._store.database.ping(seconds)

    def vitals(self) -> Vitals:
        """What the store's engine counts about itself."""
        return self._store.database.vitals()

    def wait_for_change(self, seconds: float) -> bool | None:
        """Wait until memories or prompts may have changed, at most that long; None where the store cannot tell."""
        return self._store.database.wait_for_change(seconds)

    def doctor(self) -> Diagnosis:
        """What is well and what is not, and what would be sent to which other machine."""
        from .diagnosis import diagnose

        return diagnose(self)

    def upkeep(self, stop: Callable[[], bool] = lambda: False) -> Compressed:
        """What is done between calls: follow git, read the project, read old memories for the graph, pack what is idle.

        `stop` is asked between two batches. Of several processes on one PostgreSQL database one does the part that
        concerns the whole store.
        """
        with acting_as(None):
            return self._upkeep(stop)

    def _upkeep(self, stop: Callable[[], bool]) -> Compressed:
        self.memories.place.arrive()
        self.memories.write_uses()
        self._desks.write_references()
        self._write_token_uses()
        if self._desk.repository is not None:
            # A plain folder may be anything, a whole home too; it is read when somebody asks.
            with suppress(CortexError):
                self.grounding.refresh(stop)
        return self._shared_upkeep(stop)

    def _shared_upkeep(self, stop: Callable[[], bool]) -> Compressed:
        """What concerns the whole store is done by one of the processes that share it."""
        database = self._store.database
        everything = database.leads("upkeep")
        if everything:
            self.memories.annotate(stop)
            self.memories.fill_vectors(stop)
        # Snapshots are of the project that a server is for, and there may be servers for several.
        if not stop() and database.leads(f"snapshots of {self.project.id}"):
            self.backups.scheduled()
        packed = self.memories.compress(stop) if everything else Compressed(0, 0, 0)
        # By whichever process has met a large space. Last: it may take minutes, or be refused by the engine.
        self._store.read_codes(stop)
        self._store.index_large_spaces(self.settings.vector_index_above, stop)
        return packed

    def _write_token_uses(self) -> None:
        if access := vars(self).get("access"):
            access.write_uses()

    def move_to(self, database_url: str | None, progress: Callable[[int, int], None] | None = None) -> Moved:
        """Put all that the store holds into another: a PostgreSQL database, or for None the file in the home.

        This one stays as it is; point `database_url` at the other afterwards.
        """
        from .backup.moving import copy_projects, move_store

        if (database_url or None) == (self.settings.database_url or None):
            raise ConfigurationError("The store lies there already.", remedy="Name another place.", field="to")
        self.memories.write_uses()
        self._desks.write_references()
        settings = replace(self.settings, database_url=database_url)
        target = open_store(settings, self._backend, self._clock)
        try:
            # Known there before the project is opened: it must not get another id.
            copy_projects(self._store, target)
        finally:
            target.close()
        with Cortex(settings, self._here.folder or Path.cwd(), self._backend, self._clock) as other:
            return move_store(self._store, other._store, other.memories.carried, progress)

    def close(self) -> None:
        with acting_as(None):
            self._close()

    def _close(self) -> None:
        if "embeddings" in vars(self):
            self.embeddings.close()
        if model := vars(self).get("language_model"):
            model.close()
        with suppress(StorageError):
            # A store that cannot be written now has lost a count, no memory.
            self.memories.write_uses()
            self._desks.write_references()
            self._write_token_uses()
        self._desks.close()
        self._store.close()

    def __enter__(self) -> Cortex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
