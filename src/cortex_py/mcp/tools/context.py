"""The context tools: projects, lines of work, and what is kept in them.

Parameters and answers follow the published document; each function only calls the library and shapes the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastmcp import Context
from pydantic import Field

from ...context.scan import ScanMode
from ...errors import InvalidInput
from ...paths import expanded
from .. import context_answers as answers
from .. import context_shapes as shapes
from .. import suggestion_shapes
from ..long_calls import run_long

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["ContextTools"]

BranchId = Annotated[str, Field(description="Id, or 'active' for the checked-out git branch's")]
MaxTokens = Annotated[int | None, Field(description="Fit the answer into this many tokens")]


class ContextTools:
    """The tools over one opened Cortex."""

    def __init__(self, cortex: Cortex) -> None:
        self._cortex = cortex

    async def initialize_context(
        self,
        context: Context,
        project_path: Annotated[str, Field(description="Absolute path")],
        mode: Annotated[
            ScanMode, Field(description="light: README, entry points, configuration; full: all text files")
        ] = "light",
    ) -> answers.Initialized:
        path = expanded(project_path)
        if not path.is_absolute():
            # The server's own folder says nothing about where the client stands.
            raise InvalidInput(
                f"The path {project_path[:200]!r} is not absolute.", remedy="Give the whole path.", field="project_path"
            )
        initialize = self._cortex.contexts.initialize
        return shapes.initialized(await run_long(context, lambda report: initialize(path, mode, progress=report)))

    def create_branch(
        self, project_id: str, branch_topic: str, parent_branch: str | None = None
    ) -> answers.BranchCreated:
        contexts = self._cortex.contexts
        branch = contexts.create_branch(branch_topic, parent_id=parent_branch, project_id=project_id)
        return shapes.created(branch, contexts.check_branch(branch.id, project_id=project_id))

    def update_memory(
        self, project_id: str, branch_id: BranchId, content: str, role: Literal["user", "assistant"]
    ) -> answers.MemoryUpdated:
        return shapes.updated(self._cortex.contexts.append(branch_id, content, role, project_id=project_id))

    def verify_response(
        self,
        project_id: str,
        response_text: str,
        evidence_sources: Annotated[
            list[str] | None, Field(description="Only these count: paths, globs, 'git log', 'memories', 'test report'")
        ] = None,
    ) -> answers.Verified:
        contexts = self._cortex.contexts
        return shapes.verified(contexts.verify(response_text, evidence_sources=evidence_sources, project_id=project_id))

    def get_active_summary(
        self, project_id: str, branch_id: BranchId, max_tokens: MaxTokens = None
    ) -> answers.ActiveSummary:
        return shapes.resumed(self._cortex.contexts.resume(branch_id, max_tokens=max_tokens, project_id=project_id))

    def search_context(
        self,
        project_id: str,
        query: str,
        top_k: int = 10,
        filter_category: Annotated[str | None, Field(description="Such as bug_fix or architecture")] = None,
        min_score: float = 0.3,
        max_tokens: MaxTokens = None,
    ) -> answers.FoundContexts:
        searched = self._cortex.contexts.search(
            query,
            top_k=top_k,
            category=filter_category,
            min_score=min_score,
            max_tokens=max_tokens,
            project_id=project_id,
        )
        return shapes.found_contexts(searched)

    def load_context(
        self,
        project_id: str,
        branch_id: Annotated[str, Field(description="As search_context shows it, empty if it does")],
        context_id: str,
    ) -> answers.ContextLoaded:
        return shapes.loaded(self._cortex.contexts.load(context_id, branch_id, project_id=project_id))

    def suggest_contexts(
        self,
        project_id: str,
        current_context: Annotated[str, Field(description="The task at hand")],
        top_k: int = 5,
    ) -> answers.SuggestedContexts:
        suggestions = self._cortex.suggestions
        return suggestion_shapes.suggested(suggestions.suggest(current_context, top_k=top_k, project_id=project_id))

    def accept_suggestions(
        self, project_id: str, session_id: str, context_ids: list[str]
    ) -> answers.SuggestionsAccepted:
        count = self._cortex.suggestions.accept(session_id, context_ids, project_id=project_id)
        return suggestion_shapes.accepted(count)

    def reject_suggestions(self, project_id: str, session_id: str, reason: str) -> answers.SuggestionsRejected:
        return suggestion_shapes.rejected(self._cortex.suggestions.reject(session_id, reason, project_id=project_id))

    def get_automation_status(self, project_id: str) -> answers.AutomationStatus:
        return suggestion_shapes.automation_status(self._cortex.suggestions.automation(project_id=project_id))

    def get_context_graph_info(self, project_id: str, branch_id: str | None = None) -> answers.GraphInfo:
        return shapes.graph_info(self._cortex.contexts.graph(branch_id, project_id=project_id))

    def link_git_branch(self, project_id: str, cortex_branch_id: str, git_branch_name: str) -> answers.LinkedBranch:
        return shapes.linked(self._cortex.contexts.link(cortex_branch_id, git_branch_name, project_id=project_id))
