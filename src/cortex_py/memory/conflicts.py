"""Contradictions: a new memory beside older ones that say something else of the same thing. Only ever a suggestion."""

from __future__ import annotations

from ..records import Contradiction, Memory
from .enrichment import without_context
from .likeness import conflict
from .neighbours import Neighbours
from .statements import read_statement

__all__ = ["ConflictFinder"]

_LOOKED_AT = 8
_TOLD = 3
# Longer texts hold many statements; one difference between two of them tells nothing.
_LONGEST = 1_000


class ConflictFinder:
    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours

    def of(self, memory: Memory) -> tuple[Contradiction, ...]:
        """Other memories of the same scope that exclude this one, the nearest first, each with the reason."""
        if memory.kind != "note" or memory.role is not None or len(memory.content) > _LONGEST:
            return ()
        statement = read_statement(without_context(memory.content))
        found = []
        for other, cosine in self._neighbours.of(memory, _LOOKED_AT):
            if other.role is not None or len(other.content) > _LONGEST:
                continue
            if difference := conflict(read_statement(without_context(other.content)), statement, cosine):
                found.append(Contradiction(other.id, str(difference)))
        return tuple(found[:_TOLD])
