"""Keeps the memories of a project in step with git: with renamed, merged and deleted git branches.

There is no daemon. Each call looks at a few small files. Git itself is asked only when a reference has changed, and
only where records are confined to git branches.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ..clock import Clock, to_micros
from ..config import Settings
from ..errors import Conflict, StoreReadOnly
from ..events import BranchesChanged, Events
from ..pools import ForkLock
from ..records import Confinement, Memory
from ..security.callers import as_system
from ..security.permission import require_write
from ..security.policy import Screen
from ..store.store import Store
from ..worktree.git.branch_state import BranchState, classify_branches, former_name, refs_watermark
from ..worktree.git.repository import CheckedOut, Repository
from .suggestions.automation import action_plan

__all__ = ["GitFollower"]

logger = logging.getLogger(__name__)

_REDACTED = "[REDACTED:"


class GitFollower:
    """Applies to the memories of one project what git does, seen from one working tree (`memory.place.GitState`)."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        events: Events,
        project_id: str,
        repository: Repository | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._screen = Screen.by(settings)
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
