"""The functions of the memory tools.

Parameters and answers follow the published document; each function calls the library and builds the answer.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from fastmcp import Context
from pydantic import Field

from ....memory.namespaces import NAMESPACES
from ....records import Detail, Mode
from ..tool import FamilyTools, run_long
from . import models as answers

__all__ = ["MemoryTools"]

Id = Annotated[str, Field(description="Id or prefix of 8+ digits")]
NamespaceName = Annotated[str, Field(description=f"One of {', '.join(one.name for one in NAMESPACES)}")]


class MemoryTools(FamilyTools):
    def capture(
        self,
        content: Annotated[str, Field(description="What to remember: one fact, exact names and numbers")],
        namespace: NamespaceName,
        tags: list[str] | None = None,
        source: Annotated[str | None, Field(description="File or address it comes from")] = None,
        supersedes: Annotated[str | None, Field(description="Id of a memory it replaces")] = None,
    ) -> answers.CaptureAnswer:
        memory = self._cortex.memories.capture(
            content, namespace=namespace, tags=tags or (), source=source, supersedes=supersedes
        )
        return answers.CaptureAnswer.from_memory(memory, self._cortex.memories.index_note(memory))

    def recall(
        self,
        query: str | None = None,
        namespace: str | None = None,
        filter: Annotated[str | None, Field(description="E.g. ns:decisions since:7d -tag:draft path:src/**")] = None,
        mode: Mode = "hybrid",
        detail: Detail = "medium",
        limit: Annotated[int | None, Field(description="Default 10, list 50")] = None,
        offset: int | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        prefer_newer: Annotated[bool | None, Field(description="For how things are now")] = None,
    ) -> answers.RecallAnswer:
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
        return answers.RecallAnswer.from_page(page, detail, searched=bool(query and query.strip()))

    def get(self, memory_id: Id) -> answers.MemoryAnswer:
        memory = self._cortex.memories.get(memory_id)
        return answers.MemoryAnswer.from_memory(memory, self._cortex.memories.origins(memory.id))

    def update(self, memory_id: Id, content: str | None = None, tags: list[str] | None = None) -> answers.UpdateAnswer:
        memory = self._cortex.memories.update(memory_id, content=content, tags=tags)
        return answers.UpdateAnswer.from_memory(memory, self._cortex.memories.index_note(memory))

    def delete(
        self, memory_id: Id, hard: Annotated[bool, Field(description="For good, with its history")] = False
    ) -> answers.DeleteAnswer:
        memory = self._cortex.memories.delete(memory_id, hard=hard)
        return answers.DeleteAnswer(id=memory.id, deleted=True, hard=hard)

    def restore(self, memory_id: Id) -> answers.UpdateAnswer:
        return answers.UpdateAnswer.from_memory(self._cortex.memories.restore(memory_id))

    def history(self, memory_id: Id) -> answers.HistoryAnswer:
        versions = self._cortex.memories.history(memory_id)
        items = [answers.VersionItem.from_record(version) for version in versions]
        return answers.HistoryAnswer(id=versions[-1].memory_id, versions=items)

    def status(self) -> answers.StatusAnswer:
        status = self._cortex.memories.status()
        tags = [answers.TagCount(tag=tag, count=count) for tag, count in status.top_tags]
        project_id = status.project_remote or status.project_id
        return answers.StatusAnswer(
            repository=answers.Repository(path=status.path, project_id=project_id, branch=status.branch),
            storage=answers.Storage(persistence=status.engine, index=status.engine, vector="exact"),
            statistics=answers.Statistics.from_record(
                status,
                top_tags=tags,
                pending_vectors=status.pending_vectors or None,
                pending_outlines=status.pending_outlines or None,
            ),
            llm=[
                answers.ModelUse(model=model, calls=calls, input_tokens=asked, output_tokens=answered, failed=failed)
                for model, calls, asked, answered, failed in status.llm_use
            ]
            or None,
        )

    async def gc(
        self,
        context: Context,
        dry_run: bool = False,
        branch: Annotated[str | None, Field(description="Only this git branch")] = None,
        purge: Annotated[bool, Field(description="Also remove deleted ones for good")] = False,
        older_than: Annotated[str | None, Field(description="Purge only those deleted this long ago, e.g. 30d")] = None,
    ) -> answers.CollectAnswer:
        collect = partial(self._cortex.memories.gc, dry_run=dry_run, branch=branch, purge=purge, older_than=older_than)
        done = await run_long(context, lambda report: collect(progress=report))
        return answers.CollectAnswer.from_record(done, status="preview" if done.dry_run else "completed")

    async def consolidate(
        self,
        context: Context,
        namespace: str,
        strategy: Literal["merge", "summarize", "dedupe"] = "merge",
        query: Annotated[str | None, Field(description="Only what fits these words")] = None,
        dry_run: bool = False,
        method: Literal["auto", "local", "llm"] = "auto",
    ) -> answers.ConsolidateAnswer:
        work = partial(
            self._cortex.memories.consolidate, namespace, strategy=strategy, query=query, dry_run=dry_run, method=method
        )
        done = await run_long(context, lambda report: work(progress=report))
        merges = [answers.CandidateMerge.from_record(one, proposed_content=one.content) for one in done.groups]
        return answers.ConsolidateAnswer.from_record(
            done,
            groups_found=len(done.groups) + done.skipped,
            candidate_merges=merges,
            method=", ".join(dict.fromkeys(one.method for one in done.groups)) or "local",
            skipped=done.skipped or None,
        )

    def enrich(
        self,
        memory_id: Id,
        enrich_tags: bool = True,
        enrich_structure: bool = True,
        add_context: bool = False,
        method: Literal["auto", "local", "llm"] = "auto",
    ) -> answers.EnrichAnswer:
        done = self._cortex.memories.enrich(
            memory_id, tags=enrich_tags, structure=enrich_structure, context=add_context, method=method
        )
        return answers.EnrichAnswer.from_record(
            done, memory_id=done.memory.id, changes=answers.EnrichChanges.from_record(done), version=done.memory.version
        )

    def namespaces(self) -> answers.NamespacesAnswer:
        return answers.NamespacesAnswer.from_namespaces(self._cortex.memories.namespaces())

    async def reindex(
        self,
        context: Context,
        repo_path: Annotated[str | None, Field(description="Only that project's")] = None,
    ) -> answers.ReindexAnswer:
        project = self._cortex.contexts.project_at(repo_path) if repo_path else None
        project_id = project.id if project else None
        result = await run_long(
            context, lambda report: self._cortex.memories.reindex(project_id=project_id, progress=report)
        )
        return answers.ReindexAnswer(indexed=result.indexed, duration_ms=result.duration_ms, status="success")

    def sync(self, direction: Literal["push", "fetch", "full"] = "full") -> answers.SyncAnswer:  # noqa: ARG002
        return answers.SyncAnswer(
            message="subcog_sync is deprecated. SQLite is now the authoritative storage layer.", status="deprecated"
        )
