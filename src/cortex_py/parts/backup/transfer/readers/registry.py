"""All readers, and which one reads a file: the first that recognises it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .....core.errors import InvalidInput
from .conversations import CONVERSATIONS
from .documents import DOCUMENTS, GIT_KIND
from .files import SourceFile
from .notes import MARKDOWN, PLAIN_TEXT
from .records import SourceReader
from .sqlite_stores import STORES
from .tables import MEMORY_SERVER, table_readers

__all__ = ["reader_of", "readers", "recognise"]

_ALIASES = {
    "obsidian": "markdown",
    "basic-memory": "markdown",
    "jsonl": "json",
    "cursor": "instructions",
    "openmemory": "mem0",
}


def readers(fields: Mapping[str, str] | None = None) -> tuple[SourceReader, ...]:
    """All readers, from those that go by the content to those that go by the name of the file.

    `fields` names the fields of objects and columns of tables that have other names than ours.
    """
    csv, json = table_readers(fields or {})
    agents, chats = CONVERSATIONS[:5], CONVERSATIONS[5:]
    return (*agents, MEMORY_SERVER, *STORES, *chats, *DOCUMENTS, MARKDOWN, csv, PLAIN_TEXT, json)


def reader_of(kind: str, fields: Mapping[str, str] | None = None) -> SourceReader:
    """The reader of a kind."""
    known = {reader.kind: reader for reader in readers(fields)}
    wanted = _ALIASES.get(kind, kind)
    if wanted not in known:
        raise InvalidInput(
            f"There is no kind {kind[:40]!r}.", remedy=f"Choose one of {', '.join((*known, GIT_KIND))}.", field="kind"
        )
    return known[wanted]


def recognise(file: SourceFile, known: Sequence[SourceReader]) -> SourceReader | None:
    """The first of these readers that recognises a file; None for a file that nobody reads."""
    return next((reader for reader in known if reader.recognises(file)), None)
