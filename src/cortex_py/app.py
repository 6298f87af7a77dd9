"""`Cortex`: opens a home, wires the parts together, and closes them. The one place that knows all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .clock import Clock, SystemClock
from .config import Settings, load_settings
from .context.desk import Desks
from .context.project import identify
from .context.service import Contexts
from .embedding.backend import Backend
from .embedding.backends import open_backend
from .errors import ConfigurationError, CortexError, StorageError
from .graph.naming import keys_of
from .graph.service import Graph
from .ids import IdMaker
from .memory.carrying import tag_of
from .memory.compressing import Compressed
from .memory.prepare import entity_words, space_word
from .memory.service import Memories
from .memory.terms import index_word
from .records import Domain, Project
from .store.database import Database
from .store.ledger_of_use import StoreLedger
from .store.sqlite import open_sqlite
from .store.store import Store
from .store.where import Names

if TYPE_CHECKING:
    from .access.audit import Audit
    from .access.authentication import Verifier
    from .access.service import Access
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
        self._store = _open_store(settings, backend, clock)
        self._ids = IdMaker(clock)
        self._desks = Desks(self._store, backend, settings, clock, self._ids, lambda: self.language_model)
        try:
            self._desk = self._desks.at(folder)
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
        return cls(settings, Path(project).expanduser(), model, clock or SystemClock())

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
        return Contexts(self._store, self._clock, self._desks, self._desk)

    @cached_property
    def suggestions(self) -> Suggestions:
        """What a task will need, and what the answers to that teach."""
        from .context.suggestions import Suggestions

        return Suggestions(self._store, self._clock, self._ids, self.settings, self._desks, self._desk)

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

    @cached_property
    def prompts(self) -> Prompts:
        """Saved prompts, filled in by name."""
        from .prompts.builtins import builtins
        from .prompts.service import Prompts

        return Prompts(self._store, self._clock, self.memories, self.settings.secrets, self._desk.root, builtins)

    @cached_property
    def templates(self) -> Templates:
        """Saved templates, rendered with memories."""
        from .prompts.templates import Templates

        return Templates(self._store, self._clock, self.memories, self.settings.secrets, self._desk.root)

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

        return Access(self._store, self._clock)

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

        return open_verifier(self.settings, self.access, self._clock)

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

    def doctor(self) -> Diagnosis:
        """What is well and what is not, and what would be sent to which other machine."""
        from .diagnosis import diagnose

        return diagnose(self)

    def upkeep(self, stop: Callable[[], bool] = lambda: False) -> Compressed:
        """What is done between calls: follow git, read the project, read old memories for the graph, pack what is idle.

        `stop` is asked between two batches.
        """
        self.memories.place.arrive()
        self.memories.write_uses()
        self._desks.write_references()
        self._write_token_uses()
        self.memories.annotate(stop)
        if self._desk.repository is not None:
            # A plain folder may be anything, a whole home too; it is read when somebody asks.
            with suppress(CortexError):
                self.grounding.refresh(stop)
        self.memories.fill_vectors(stop)
        if not stop():
            self.backups.scheduled()
        return self.memories.compress(stop)

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
        target = _open_store(settings, self._backend, self._clock)
        try:
            # Known there before the project is opened: it must not get another id.
            copy_projects(self._store, target)
        finally:
            target.close()
        with Cortex(settings, self._desk.folder or Path.cwd(), self._backend, self._clock) as other:
            return move_store(self._store, other._store, other.memories.carried, progress)

    def close(self) -> None:
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


def _open_database(settings: Settings, clock: Clock) -> Database:
    if not settings.database_url:
        return open_sqlite(settings.database, clock)
    if not settings.database_url.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError(
            "database_url is not the address of a PostgreSQL database.",
            remedy="Begin it with postgresql://, or leave it unset to keep the store in the home.",
            field="database_url",
        )
    try:
        from .store.postgres import open_postgres
    except ImportError as error:
        raise ConfigurationError(
            f"The driver for database_url cannot be loaded: {error}.",
            remedy="Install it: pip install 'cortex-py[postgres]'.",
            field="database_url",
        ) from error
    return open_postgres(settings.database_url, clock)


def _open_store(settings: Settings, backend: Backend, clock: Clock) -> Store:
    return Store(
        _open_database(settings, clock),
        dimensions=backend.dimensions,
        word=index_word,
        space_word=space_word,
        names=Names(entity_words, keys_of),
        tag=lambda: tag_of(backend),
    )
