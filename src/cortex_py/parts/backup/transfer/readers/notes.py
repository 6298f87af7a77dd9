"""Notes: Markdown of any program, with the observations of basic-memory and the links of Obsidian; plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from .....core.clock import in_utc
from .....core.errors import CortexError
from ..markdown import Note, from_note
from .documents import note_reader
from .files import SourceFile
from .records import Found, Skipped, SourceReader, SourceRecord, SourceRelation, skip_because

__all__ = ["MARKDOWN", "PLAIN_TEXT", "relations_in", "tags_in"]

_MOST_BYTES = 16_000_000
# A category has letters: `[x]`, `[⚡]` and their like are boxes of a list of tasks.
_OBSERVATION = re.compile(
    r"^- \[(?=[^\]\n]{0,59}\w\w)([^\]\[\n]{1,60})\] (\S.*?)(?: \(([^()\n]{1,200})\))?[ \t]*$", re.MULTILINE
)
_RELATION = re.compile(r"^- ([\w][\w /-]{0,60}?) \[\[([^\]\n]{1,200})\]\].*$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[\[([^\]\|#\n]{1,200})(?:#[^\]\|\n]*)?(?:\|[^\]\n]*)?\]\]")
_TAG = re.compile(r"(?<![\w&/#])#([A-Za-z][\w/-]{0,60})(?![\w-])")
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_EMPTY_SECTION = re.compile(r"^#{1,6} (?:Observations|Relations)\s*\n(?=\s*(?:#|\Z))", re.MULTILINE)


def _markdown(note: Note, file: SourceFile) -> Iterator[Found]:
    """One memory for each note, and one for each observation in it; links and relations go into the graph."""
    if not note.content.strip():
        yield Skipped("", "it is empty")
        return
    title = note.fields.get("title")
    name = title.strip() if isinstance(title, str) and title.strip() else PurePosixPath(file.path).stem
    prose = _CODE.sub("", note.content)
    links = _LINK.search(prose) is not None
    observed = list(_OBSERVATION.finditer(prose)) if "permalink" in note.fields or links else []
    try:
        record = _note(file, note, prose if links or note.front is not None else "")
    except CortexError as error:
        yield skip_because(error, file.name)
        return
    if observed:
        rest = _EMPTY_SECTION.sub("", _RELATION.sub("", _OBSERVATION.sub("", note.content)))
        record = replace(record, content=rest)
    if any(line.strip() and not line.startswith("#") for line in record.content.splitlines()):
        yield record
    for match in observed:
        yield _observation(record, note, name, match)
    yield from relations_in(note.content, name)


def relations_in(text: str, name: str) -> list[SourceRelation]:
    """The links of a note to others, with the type of relation where one is written before the link."""
    prose = _CODE.sub("", text)
    typed = {one.group(2): one.group(1) for one in _RELATION.finditer(prose)}
    targets = dict.fromkeys(one.group(1).strip() for one in _LINK.finditer(prose))
    return [
        SourceRelation(name, target.rpartition("/")[2] or target, typed.get(target, "links to"))
        for target in targets
        if target and target != name
    ]


def tags_in(text: str) -> list[str]:
    """The `#tags` in the prose of a note."""
    return [one.group(1) for one in _TAG.finditer(_CODE.sub("", text))]


def _note(file: SourceFile, note: Note, tagged: str) -> SourceRecord:
    item, ignored = from_note(note, file.name, "project")
    found = [one.group(1) for one in _TAG.finditer(tagged)]
    return SourceRecord(
        source=file.name,
        position="",
        line=1,
        content=item.content,
        namespace=item.namespace,
        category=item.category,
        tags=tuple(dict.fromkeys((*item.tags, *found)))[:64],
        summary=item.summary,
        path=item.path,
        at=None if item.created_at is None else in_utc(item.created_at),
        shown=item.source,
        ignored=ignored - {"title", "type", "permalink", "aliases", "cssclasses"}
        if "permalink" in note.fields
        else ignored,
    )


def _observation(record: SourceRecord, note: Note, name: str, match: re.Match[str]) -> SourceRecord:
    category, text, about = match.groups()
    tags = tuple(dict.fromkeys((category.strip(), *(one.group(1) for one in _TAG.finditer(text)))))
    line = note.content.count("\n", 0, max(0, note.content.find(match.group()))) + 1
    return replace(
        record,
        source=f"{record.source}#observations",
        position=f"observation/{category}",
        by_text=True,
        line=line,
        content=f"{name}: {text}{f' ({about})' if about else ''}",
        tags=tags,
        summary=None,
        category=None,
        ignored=frozenset(),
    )


def _plain_text(file: SourceFile) -> Iterator[Found]:
    """A text file is one memory."""
    try:
        text = file.text(_MOST_BYTES)
    except CortexError as error:
        yield skip_because(error, file.name)
        return
    if text.strip():
        yield SourceRecord(source=file.name, position="", line=1, content=text, shown=file.name)
    else:
        yield Skipped("", "it is empty")


MARKDOWN = note_reader("markdown", lambda file: file.suffix in (".md", ".markdown"), _markdown)
PLAIN_TEXT = SourceReader("text", lambda file: file.suffix in (".txt", ".text", ".rst", ".org", ".adoc"), _plain_text)
