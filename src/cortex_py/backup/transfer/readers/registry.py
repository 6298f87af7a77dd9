"""All readers, and which one reads a file: the first that recognises it."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidInput
from .chats import ChatGptExport, ClaudeAiExport, ClaudeAiProjects
from .commits import GIT_KIND
from .documents import Changelogs, DecisionRecords, InstructionFiles, MemoryFolders
from .files import SourceFile
from .notes import MarkdownNotes, PlainTexts
from .records import FieldMap, Reader
from .sqlite_stores import McpMemoryService, Mem0Stores, MemPalaces
from .tables import CsvTables, JsonObjects, MemoryServerGraph
from .transcripts import ClaudeCodeHistory, ClaudeCodeTranscripts, CodexHistory, CodexSessions, GeminiChats

__all__ = ["ALIASES", "READER_KINDS", "reader_of", "readers", "recognise"]

ALIASES = {
    "obsidian": "markdown",
    "basic-memory": "markdown",
    "jsonl": "json",
    "cursor": "instructions",
    "openmemory": "mem0",
}


def readers(fields: FieldMap = FieldMap()) -> tuple[Reader, ...]:  # noqa: B008 - it is immutable
    """All readers, from those that go by the content to those that go by the name of the file."""
    return (
        ClaudeCodeTranscripts(),
        CodexSessions(),
        GeminiChats(),
        ClaudeCodeHistory(),
        CodexHistory(),
        MemoryServerGraph(),
        Mem0Stores(),
        MemPalaces(),
        McpMemoryService(),
        ChatGptExport(),
        ClaudeAiExport(),
        ClaudeAiProjects(),
        InstructionFiles(),
        Changelogs(),
        DecisionRecords(),
        MemoryFolders(),
        MarkdownNotes(),
        CsvTables(fields),
        PlainTexts(),
        JsonObjects(fields),
    )


READER_KINDS: tuple[str, ...] = tuple(reader.kind for reader in readers())


def reader_of(kind: str, fields: FieldMap) -> Reader:
    """The reader of a kind."""
    wanted = ALIASES.get(kind, kind)
    for reader in readers(fields):
        if reader.kind == wanted:
            return reader
    raise InvalidInput(
        f"There is no kind {kind[:40]!r}.",
        remedy=f"Choose one of {', '.join((*READER_KINDS, GIT_KIND))}.",
        field="kind",
    )


def recognise(file: SourceFile, known: Sequence[Reader]) -> Reader | None:
    """The first of these readers that recognises a file; None for a file that nobody reads."""
    return next((reader for reader in known if reader.recognises(file)), None)
