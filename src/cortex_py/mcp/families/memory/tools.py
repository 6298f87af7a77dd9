"""The memory tools: capture, recall, and all that a memory goes through.

Parameters and answers follow the published document; each function only calls the library and shapes the
answer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from fastmcp import Context
from pydantic import Field

from ...memory.namespaces import NAMESPACES
from ...records import Detail, Mode
from .. import answers, shapes
from ..long_calls import run_long

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["MemoryTools"]

Id = Annotated[str, Field(description="Id, prefix of 8+ digits, or subcog:// address")]
NamespaceName = Annotated[str, Field(description=f"One of {', '.join(one.name for one in NAMESPACES)}")]


class MemoryTools:
    """The tools over one opened Cortex."""

    def __init__(self, cortex: Cortex) -> None:
        self._cortex = cortex

    def capture(
        self,
        content: Annotated[str, Field(description="What to remember: one fact, exact names and numbers")],
        namespace: NamespaceName,
        tags: list[str] | None = None,
        source: Annotated[str | None, Field(description="File or address it comes from")] = None,
        supersedes: Annotated[str | None, Field(description="Id of a memory it replaces")] = None,
    ) -> answers.Captured:
        memory = self._cortex.memories.capture(
            content, namespace=namespace, tags=tags or (), source=source, supersedes=supersedes
        )
        return shapes.captured(memory)

    def recall(
        self,
        query: Annotated[str | None, Field(description="Omit to list")] = None,
        namespace: str | None = None,
        filter: Annotated[str | None, Field(description="E.g. ns:decisions since:7d -tag:draft path:src/**")] = None,
        mode: Mode = "hybrid",
        detail: Detail = "medium",
        limit: Annotated[int | None, Field(description="Default 10, list 50")] = None,
        offset: int | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        prefer_newer: Annotated[bool | None, Field(description="For how things are now")] = None,
    ) -> answers.Found:
        page = self._cortex.memories.recall(
            query,
            filter=filter or "",
            namespace=namespace,
            mode=mode,
            limit=limit,
            offset=offset or 0,
            user_id=user_id,
            agent_id=agent_id,
            prefer_newer=prefer_newer,
        )
        return shapes.found(page, detail, searched=bool(query and query.strip()))

    def get(self, memory_id: Id) -> answers.MemoryView:
        memory = self._cortex.memories.get(memory_id)
        return shapes.memory_view(memory, self._cortex.memories.origins(memory.id))

    def update(self, memory_id: Id, content: str | None = None, tags: list[str] | None = None) -> answers.Changed:
        return shapes.changed(self._cortex.memories.update(memory_id, content=content, tags=tags))

    def delete(
        self,
        memory_id: Id,
        hard: Annotated[bool, Field(description="For good, with its history")] = False,
    ) -> answers.Deleted:
        memory = self._cortex.memories.delete(memory_id, hard=hard)
        return answers.Deleted(id=memory.id, deleted=True, hard=hard)

    def restore(self, memory_id: Id) -> answers.Changed:
        return shapes.changed(self._cortex.memories.restore(memory_id))

    def history(self, memory_id: Id) -> answers.History:
        return shapes.history(self._cortex.memories.history(memory_id))

    def status(self) -> answers.StatusView:
        return shapes.status_view(self._cortex.memories.status())

    async def gc(
        self,
        context: Context,
        dry_run: Annotated[bool, Field(description="Only tell what would happen")] = False,
        branch: Annotated[str | None, Field(description="Only this git branch")] = None,
        purge: Annotated[bool, Field(description="Remove deleted memories for good")] = False,
        older_than: Annotated[str | None, Field(description="Purge only those deleted this long ago, e.g. 30d")] = None,
    ) -> answers.Collected:
        collect = partial(self._cortex.memories.gc, dry_run=dry_run, branch=branch, purge=purge, older_than=older_than)
        return shapes.collected(await run_long(context, lambda report: collect(progress=report)))

    async def consolidate(
        self,
        context: Context,
        namespace: str,
        strategy: Literal["merge", "summarize", "dedupe"] = "merge",
        query: Annotated[str | None, Field(description="Only what fits these words")] = None,
        dry_run: bool = False,
        method: Literal["auto", "local", "llm"] = "auto",
    ) -> answers.ConsolidationView:
        work = partial(
            self._cortex.memories.consolidate,
            namespace,
            strategy=strategy,
            query=query,
            dry_run=dry_run,
            method=method,
        )
        return shapes.consolidated(await run_long(context, lambda report: work(progress=report)))

    def enrich(
        self,
        memory_id: Id,
        enrich_tags: bool = True,
        enrich_structure: bool = True,
        add_context: bool = False,
        method: Literal["auto", "local", "llm"] = "auto",
    ) -> answers.EnrichView:
        done = self._cortex.memories.enrich(
            memory_id, tags=enrich_tags, structure=enrich_structure, context=add_context, method=method
        )
        return shapes.enriched(done)

    def namespaces(self) -> answers.Namespaces:
        return shapes.namespaces(self._cortex.memories.namespaces())

    async def reindex(
        self,
        context: Context,
        repo_path: Annotated[str | None, Field(description="Only the memories of the project there")] = None,
    ) -> answers.Reindexed:
        project = self._cortex.contexts.project_at(repo_path) if repo_path else None
        project_id = project.id if project else None
        result = await run_long(
            context, lambda report: self._cortex.memories.reindex(project_id=project_id, progress=report)
        )
        return answers.Reindexed(indexed=result.indexed, duration_ms=result.duration_ms, status="success")

    def sync(self, direction: Literal["push", "fetch", "full"] = "full") -> answers.Synced:  # noqa: ARG002
        return answers.Synced(
            message="subcog_sync is deprecated. SQLite is now the authoritative storage layer.", status="deprecated"
        )
