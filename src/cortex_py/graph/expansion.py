"""Expansion: memories tied to the first hits of a recall through what they mention, for questions of two steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from ..memory.chunking import Chunk, snippet
from ..records import Hit
from ..store.database import Session
from .base import GraphBase

__all__ = ["ExpansionOperations"]

_FROM = 5
_LIMIT = 5
# What a tie is worth beside a hit of its own: one that is only near an entity half of one that names it.
_NAMED, _NEAR = 0.5, 0.25
# An entity that so large a share of the memories name ties nothing together.
_COMMON = 0.2
_NEIGHBOURS = 100


class ExpansionOperations(GraphBase):
    def expand(self, hits: Sequence[Hit], *, limit: int = _LIMIT) -> list[Hit]:
        """Further memories, best first, that share rare entities with the first hits or name a neighbour of those."""
        known = {hit.memory.id for hit in hits}
        strength: dict[str, float] = {}
        lies_in: dict[str, str] = {}
        found: dict[str, Hit] = {}
        with self._reading() as session:
            for space in self._place.spaces():
                for memory_id, weight in self._tied(session, space, hits[:_FROM]).items():
                    if memory_id not in known:
                        strength[memory_id] = max(weight, strength.get(memory_id, 0.0))
                        lies_in[memory_id] = space
            for memory_id in sorted(strength, key=lambda one: (-strength[one], one))[:limit]:
                memory = self._store.memories.get(session, lies_in[memory_id], memory_id)
                if memory is not None:
                    whole = Chunk(0, len(memory.content))
                    passage = partial(snippet, memory.content, whole, None, 200)
                    found[memory_id] = Hit(memory, strength[memory_id], strength[memory_id], passage)
        return list(found.values())

    def _tied(self, session: Session, space: str, hits: Sequence[Hit]) -> dict[str, float]:
        """What each memory is tied by to the hits, at most half the score of the best of them."""
        sight = self._sight()
        everything = self._table.mentioned_by(session, space, sight)
        named = {hit.memory.id: set(everything.get(hit.memory.id, ())) for hit in hits}
        total = max(1, len(everything))
        weights: dict[str, float] = {}
        for hit in hits:
            for entity in named[hit.memory.id]:
                weights[entity] = max(weights.get(entity, 0.0), _NAMED * hit.score)
        if not weights:
            return {}
        edges = self._table.neighbours(session, space, list(weights), sight, per_entity=_NEIGHBOURS)
        for edge in edges:
            for near, far in ((edge.source_id, edge.target_id), (edge.target_id, edge.source_id)):
                if near in weights and far not in weights:
                    weights[far] = _NEAR / _NAMED * weights[near] * edge.confidence
        spread: dict[str, int] = {}
        for ids in everything.values():
            for entity in set(ids) & weights.keys():
                spread[entity] = spread.get(entity, 0) + 1
        rare = {one for one, count in spread.items() if count <= max(3.0, _COMMON * total)}
        rarity = {one: math.log1p(total / spread[one]) / math.log1p(total) for one in rare}
        return {
            memory_id: max(weights[one] * rarity[one] for one in shared)
            for memory_id, ids in everything.items()
            if (shared := set(ids) & rare)
        }
