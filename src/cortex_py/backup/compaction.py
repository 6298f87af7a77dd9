"""Which packs a push writes anew, and how large packs are: so that a small change stays a small push.

Packs grow with what is stored, so that even the largest is a small share of the whole. What is rewritten at
once is bounded too; a push that would have more to do leaves it to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .packs import PackRef

__all__ = ["pack_limit", "to_rewrite"]

_LEAST_BYTES, _MOST_BYTES = 64 * 1024, 2 * 1024 * 1024
_SHARE_OF_ALL = 32
_BUDGET_SHARE = 32
_MOST_SMALL = 16
_SMALL_SHARE, _LEAST_SMALL = 16, 16 * 1024


def pack_limit(stored: int) -> int:
    """At how many bytes before compression a pack is closed, where so many are stored already."""
    return min(max(stored // _SHARE_OF_ALL, _LEAST_BYTES), _MOST_BYTES)


def to_rewrite(packs: Sequence[PackRef], live: Mapping[str, int]) -> set[str]:
    """The packs whose living states are written into new ones. `live` counts the states that no later pack supersedes.

    Those of which half or less lives, the emptiest first; then, where there are too many small ones, the
    smallest. All that costs at most a 32nd of what is stored, unless three quarters of it are dead.
    """
    stored, living = sum(pack.documents for pack in packs), sum(live.get(pack.name, 0) for pack in packs)
    total = sum(pack.size for pack in packs)
    budget = max(total // _BUDGET_SHARE, _LEAST_BYTES) if living * 4 >= stored else total
    chosen: set[str] = set()
    for pack in sorted(packs, key=lambda pack: (_share(pack, live), pack.name)):
        share = _share(pack, live)
        if share > 0.5 or pack.size * share > budget:
            break
        chosen.add(pack.name)
        budget -= round(pack.size * share)
    border = max(pack_limit(total) // _SMALL_SHARE, _LEAST_SMALL)
    small = sorted((pack.size, pack.name) for pack in packs if pack.name not in chosen and pack.size < border)
    if len(small) > _MOST_SMALL:
        for size, name in small:
            if size > budget:
                break
            chosen.add(name)
            budget -= size
    return chosen


def _share(pack: PackRef, live: Mapping[str, int]) -> float:
    return live.get(pack.name, 0) / max(pack.documents, 1)
