"""The summary of a line of work kept current: what was read of it is stored, and only what came since is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ..records import Branch, Memory
from ..store.store import Store

if TYPE_CHECKING:
    # Reading turns brings many patterns along, which most commands have no use for.
    from .summary import Summary, SummaryState

__all__ = ["BranchSummary", "Summaries"]

# Reading a turn costs a fraction of a millisecond, a commit more: so many turns are left to be read at each call.
_BEHIND = 16


@dataclass(frozen=True, slots=True)
class BranchSummary:
    """A summary with what it stands for."""

    branch: Branch
    summary: Summary
    entries: int
    last_updated: datetime


class Summaries:
    """Summaries of the lines of work of one project."""

    def __init__(self, store: Store, project_id: str, count_tokens: Callable[[str], int]) -> None:
        self._store = store
        self._project = project_id
        self._count_tokens = count_tokens

    def of(self, branch: Branch, max_tokens: int) -> BranchSummary:
        """The summary of a line of work, with every turn in it that is safe."""
        from .summary import render

        state, rows, _ = self._current(branch.id)
        last = max([memory.updated_at for memory in rows], default=branch.updated_at)
        if not rows and state.turns:
            with self._store.database.read() as session:
                last = self._store.statistics.last_updated(session, self._project, branch.id) or last
        rendered = render(state, branch.topic, max_tokens=max_tokens, count_tokens=self._count_tokens)
        return BranchSummary(branch, rendered, state.turns, max(last, branch.created_at))

    def refresh(self, branch_id: str) -> None:
        """Store how far a line of work was read, once it has grown by enough."""
        state, rows, seq = self._current(branch_id)
        if len(rows) >= _BEHIND:
            with self._store.database.write() as session:
                self._store.branches.put_summary(session, self._project, branch_id, state.to_json(), seq)

    def _current(self, branch_id: str) -> tuple[SummaryState, list[Memory], int]:
        """The state with all turns read, those that were not in the stored one, and the change it is current with."""
        from .summary import EMPTY, Turn, advance

        with self._store.database.read() as session:
            text, seq = self._store.branches.summary(session, self._project, branch_id)
            state = _loaded(text)
            same, rows = self._store.memories.of_branch_since(session, self._project, branch_id, seq)
            if same != state.turns:
                # A turn that was read has changed or gone: what followed from it is read anew.
                state, rows = EMPTY, self._store.memories.of_branch(session, self._project, branch_id)
            seq = max([change for _, change, _ in rows], default=seq)
        memories = [memory for _, _, memory in rows]
        turns = [Turn(one.id, one.role, one.content, one.created_at) for one in memories]
        return advance(state, turns), memories, seq


def _loaded(text: str | None) -> SummaryState:
    from .summary import EMPTY, SummaryState

    if text is None:
        return EMPTY
    try:
        return SummaryState.from_json(text)
    except ValueError:
        return EMPTY  # of another version; made anew
