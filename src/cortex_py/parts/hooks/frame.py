"""How memories appear in a session: quoted as data, with their source, and marked so that they are not kept again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from ...core.security.quoting import QUOTED, neutralise

__all__ = ["Quote", "fit", "frame", "quote"]

_OPEN = f'<cortex-memory note="{QUOTED}">'
_CLOSE = "</cortex-memory>"
_SHORT_ID = 12


class Quotable(Protocol):
    """What a quotation needs of a memory."""

    @property
    def id(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...


class Quote(NamedTuple):
    """A memory as it is shown: its id, and the lines with its source and text."""

    id: str
    text: str


def quote(memory: Quotable, text: str) -> Quote:
    """A memory with its namespace, date and id; further lines are indented, so that each belongs to its memory."""
    body = neutralise(text).replace("\n", "\n  ")
    mark = ", not reviewed" if memory.status == "pending" else ""
    source = neutralise(f"{memory.namespace}, {memory.created_at:%Y-%m-%d}, id {memory.id[:_SHORT_ID]}{mark}")
    return Quote(memory.id, f"- {body} ({source})")


def frame(lines: Iterable[str]) -> str:
    """Lines as one marked quotation; empty without any."""
    body = "\n".join(line for line in lines if line.strip())
    return f"{_OPEN}\n{body}\n{_CLOSE}" if body else ""


def fit(quotes: Sequence[Quote], tokens: int, count_tokens: Callable[[str], int]) -> list[Quote]:
    """The first quotes that fit into a budget together with the frame; one that is too long is passed over."""
    left = tokens - count_tokens(f"{_OPEN}{_CLOSE}")
    chosen = []
    for one in quotes:
        cost = count_tokens(one.text)
        if cost <= left:
            chosen.append(one)
            left -= cost
    return chosen
