"""The variables that Cortex itself fills in: memories found by the one recall, counts, where and when.

What a template does not mention is not looked up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..clock import Clock, iso
from ..ids import memory_uri
from ..memory.service import Memories
from ..records import Hit, Page
from .printing import ListText

__all__ = ["AUTOMATIC", "Facts", "Wanted", "gather"]

AUTOMATIC = ("memories", "total_count", "namespace_counts", "statistics", "project", "branch", "now")
_FROM_RECALL = frozenset(("memories", "total_count", "namespace_counts"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which memories a template is to show."""

    query: str | None = None
    filter: str = ""
    limit: int | None = None
    snippets: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    values: Mapping[str, object]
    memories: int = 0
    warnings: tuple[str, ...] = field(default=())


def gather(memories: Memories, clock: Clock, names: Collection[str], wanted: Wanted) -> Facts:
    """Values for those of the automatic variables that are named."""
    place = memories.place
    values: dict[str, object] = {
        "project": place.project.name,
        "branch": place.git_branch() or "",
        "now": iso(clock.now()),
    }
    page: Page | None = None
    if _FROM_RECALL.intersection(names):
        page = memories.recall(wanted.query, filter=wanted.filter, limit=wanted.limit)
        values |= _found(page, wanted)
    if "statistics" in names:
        values["statistics"] = _statistics(memories)
    kept = {name: value for name, value in values.items() if name in names}
    return Facts(kept, len(page.results) if page else 0, page.warnings if page else ())


def _found(page: Page, wanted: Wanted) -> dict[str, object]:
    searched = bool((wanted.query or "").strip())
    items = [_item(hit, searched=searched, snippet=wanted.snippets) for hit in page.results]
    return {
        "memories": ListText(items, _as_list),
        "total_count": page.total,
        "namespace_counts": dict(Counter(hit.memory.namespace for hit in page.results).most_common()),
    }


def _item(hit: Hit, *, searched: bool, snippet: bool) -> dict[str, object]:
    memory = hit.memory
    return {
        "id": memory.id,
        "uri": memory_uri(memory.id),
        "namespace": memory.namespace,
        "domain": memory.domain,
        "content": memory.content,
        **({"snippet": hit.snippet} if snippet else {}),
        "score": round(hit.score, 4) if searched else None,
        "tags": list(memory.tags),
        "summary": memory.summary,
        "source": memory.source,
        "path": memory.path,
        "category": memory.category,
        "role": memory.role,
        "status": memory.status,
        "branch": memory.git_branch,
        "branch_id": memory.branch_id,
        "created_at": iso(memory.created_at),
        "updated_at": iso(memory.updated_at),
        "version": memory.version,
    }


def _as_list(items: Sequence[object]) -> str:
    """How the memories look where a template only says `{{memories}}`: a list, further lines of each indented."""
    lines = []
    for item in items:
        if isinstance(item, dict):
            content = str(item["content"]).strip().replace("\n", "\n  ")
            lines.append(f"- **{item['namespace']}**: {content}")
    return "\n".join(lines)


def _statistics(memories: Memories) -> dict[str, object]:
    status = memories.status()
    return {
        "total_count": status.total_count,
        "namespace_counts": dict(status.namespace_counts),
        "status_counts": dict(status.status_counts),
        "recent_topics": list(status.recent_topics),
        "top_tags": [{"tag": tag, "count": count} for tag, count in status.top_tags],
        "size_bytes": status.size_bytes,
    }
