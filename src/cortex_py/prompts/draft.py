"""A prompt or template before it is kept: what a caller or a file says."""

from __future__ import annotations

from dataclasses import dataclass

from ..records import SavedKind, Variable

__all__ = ["Draft"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The text and what is declared about it; nothing of it is checked yet."""

    name: str
    content: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    variables: tuple[Variable, ...] = ()
    kind: SavedKind = "prompt"
