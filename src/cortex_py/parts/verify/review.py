"""Checks stored memories against the project, and marks those that the code no longer bears out as stale.

The mark is the tag `stale`; it goes when the project bears the memory out again. Memories are never evidence for
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ...core.memory.service import Memories
from ...core.records import STALE_TAG, Memory
from .verification import Finding, Verification, describe_evidence, to_stored_json

__all__ = ["MemoryReview", "ReviewedMemory", "review_memories"]

_FILTER = "kind:note"
_MOST = 1_000
_READ = 20_000  # characters of a memory


@dataclass(frozen=True, slots=True)
class ReviewedMemory:
    """A memory that the project contradicts, with the first reason; `was` says whether it was marked before."""

    memory: Memory
    claim: str
    reason: str
    was: bool


@dataclass(frozen=True, slots=True)
class MemoryReview:
    """How many memories were checked, which are stale, and which are no longer."""

    checked: int
    stale: tuple[ReviewedMemory, ...]
    fresh: tuple[Memory, ...]


def review_memories(
    memories: Memories,
    verify: Callable[[str], Verification],
    *,
    changed: Collection[str] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> MemoryReview:
    """Check the newest memories, or only those that name a changed file or what it defines."""
    checked, stale, fresh = 0, [], []
    for memory in memories.listed(_FILTER, _MOST):
        if stop():
            break
        if changed is not None and not _concerns(memory.content, changed) and STALE_TAG not in memory.tags:
            continue
        found = verify(memory.content[:_READ])
        checked += 1
        wrong = next((one for one in found.findings if one.verdict == "contradicted"), None)
        if wrong is not None:
            stale.append(_mark(memories, memory, found, wrong))
        elif STALE_TAG in memory.tags:
            fresh.append(_clear(memories, memory))
    return MemoryReview(checked, tuple(stale), tuple(fresh))


def _concerns(content: str, changed: Collection[str]) -> bool:
    return any(name in content for name in changed)


def _mark(memories: Memories, memory: Memory, found: Verification, wrong: Finding) -> ReviewedMemory:
    was = STALE_TAG in memory.tags
    if not was:
        memory = memories.update(memory.id, tags=[*memory.tags, STALE_TAG])
    memories.keep_verification(memory, to_stored_json(found))
    return ReviewedMemory(memory, wrong.claim.text, describe_evidence(wrong), was)


def _clear(memories: Memories, memory: Memory) -> Memory:
    tags: Sequence[str] = [tag for tag in memory.tags if tag != STALE_TAG]
    return memories.update(memory.id, tags=tags)
