"""How memories are laid out in a folder: as a vault of Markdown notes, or as the memory folder of Claude Code.

A layout turns a memory into a file and reads back what a person or a model made of it. Both are functions of texts;
`folder` compares the two sides and moves what changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from ....core.errors import InvalidInput
from ....core.records import JsonValue, NewMemory
from ....core.security.quoting import QUOTED, neutralise, without_unseen
from ....core.store.documents.document import Document
from ....texts.structured import yaml_mapping
from ..transfer.markdown import Note, memory_name, moment_text, name_words, read_note, tag_list
from ..transfer.readers.notes import tags_in

__all__ = ["AGENT_TAG", "LAYOUTS", "ClaudeMemory", "Layout", "Parsed", "Shared", "Vault", "differing", "plain"]

# What an agent wrote into its own folder.
AGENT_TAG = "agent-memory"
_ID = re.compile(r"[0-9a-f]{40}\Z")
_FENCE_END = re.compile(r"^---[ \t]*\r?\n", re.MULTILINE)
_OBSIDIAN_TAG = re.compile(r"(?=.*[^\d/])[\w/-]+\Z")


@dataclass(frozen=True, slots=True)
class Shared:
    """What a file and its memory have in common. None: the file does not say."""

    content: str
    namespace: str | None = None
    tags: tuple[str, ...] | None = None
    summary: str | None = None

    @property
    def digest(self) -> str:
        """Equal if the meaning is: line ends, the end of the file and the order of tags do not count."""
        tags = None if self.tags is None else sorted({tag.casefold() for tag in self.tags})
        parts = [plain(self.content), self.namespace, tags, self.summary]
        return sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file that was read: what it shares with its memory, the id it names, and its front matter."""

    shared: Shared
    memory_id: str | None = None
    fields: Mapping[str, JsonValue] | None = None


def plain(text: str) -> str:
    """A text without what editors change by themselves: line ends, and blank lines around it."""
    return text.replace("\r\n", "\n").strip("\n").rstrip()


def differing(said: Shared, known: Shared) -> dict[str, Any]:
    """The fields that a file says otherwise, as arguments of an update."""
    changes: dict[str, Any] = {}
    if plain(said.content) != plain(known.content):
        changes["content"] = plain(said.content)
    for name in ("namespace", "summary"):
        value = getattr(said, name)
        if value is not None and value != getattr(known, name):
            changes[name] = value
    if said.tags is not None and {one.casefold() for one in said.tags} != {one.casefold() for one in known.tags or ()}:
        changes["tags"] = said.tags
    return changes


def _front_text(text: str) -> str | None:
    """The front matter of a file as it stands there, with its fences; None without one."""
    if not text.startswith("---"):
        return None
    opening = _FENCE_END.match(text)
    closing = _FENCE_END.search(text, opening.end()) if opening else None
    return text[: closing.end()] if closing else None


def _joined(fields: Mapping[str, JsonValue], content: str, before: str | None, filename: str) -> str:
    """A file with these fields. Fields of other programs, and a front matter that says the same, stay as they are."""
    if before is not None:
        try:
            known = read_note(filename, before.removeprefix("\ufeff"))
        except InvalidInput:
            known = Note(None, before)
        front = _front_text(before.removeprefix("\ufeff"))
        same = {name: value for name, value in known.fields.items() if name in fields or name in _OWN} == fields
        if known.front is not None and front and same:
            return f"{front}{content}"
        others = {name: value for name, value in known.fields.items() if name not in fields and name not in _OWN}
        fields = {**fields, **others}
    return f"---\n{yaml_mapping(fields)}---\n{content}"


# Fields of a vault that are left out where they are empty.
_OWN = frozenset(("id", "cortex", "namespace", "tags", "labels", "summary", "mentions"))


class Vault:
    """One note for each memory: front matter as Obsidian reads it, and the content below it.

    Tags that Obsidian cannot read stand under `labels`. `mentions` links the entities that the memory names.
    """

    kind = "vault"
    index = None

    def shared(self, memory: Document) -> Shared:
        data = memory.data
        tags = tuple(dict.fromkeys((*data["tags"], *tags_in(data["content"]))))
        return Shared(data["content"], data["namespace"], tags, data["summary"])

    def parse(self, path: str, text: str) -> Parsed:
        note = read_note(path, text)
        if note.front is None:
            return Parsed(Shared(note.content))
        namespace, summary = _word(note, "namespace"), _word(note, "summary")
        tags = (*tag_list(note.front, "tags"), *tag_list(note.front, "labels"), *tags_in(note.content))
        shared = Shared(note.content, namespace, tuple(dict.fromkeys(tag.removeprefix("#") for tag in tags)), summary)
        return Parsed(shared, note.memory_id, note.fields)

    def render(self, memory: Document, mentions: Sequence[str], before: str | None) -> str:
        data = memory.data
        fields: dict[str, JsonValue] = {"id": memory.key, "namespace": data["namespace"]}
        readable = [tag for tag in data["tags"] if _OBSIDIAN_TAG.match(tag)]
        fields |= {"tags": readable} if readable else {}
        others = [tag for tag in data["tags"] if tag not in readable]
        fields |= {"labels": others} if others else {}
        fields |= {"summary": data["summary"]} if data["summary"] else {}
        fields["created"] = moment_text(data["created_at"])
        fields |= {"source": data["source"]} if data["source"] else {}
        fields |= {"mentions": [f"[[{name}]]" for name in mentions]} if mentions else {}
        return _joined(fields, _ended(data["content"]), before, memory.key)

    def name(self, memory: Document, *, whole_id: bool = False) -> str:
        return memory_name(memory, whole_id=whole_id)

    def new(self, path: str, parsed: Parsed) -> NewMemory:
        shared = parsed.shared
        return NewMemory(
            content=plain(shared.content),
            namespace=shared.namespace,
            tags=tuple(tags_in(shared.content)) if shared.tags is None else shared.tags,
            summary=shared.summary,
            source=path,
        )


def _word(note: Note, name: str) -> str | None:
    value = note.fields.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is no text.", remedy="Put it in quotes.", field=name)
    return value.strip()


def _ended(content: str) -> str:
    return content if content.endswith("\n") else f"{content}\n"


# -- the memory folder of Claude Code ----------------------------------------------------------------

# Claude Code reads so much of the index.
_LINES_MOST, _BYTES_MOST = 200, 25_000
# Of which so much is left to what Claude or a person wrote there; the rest is for the list.
_FREE_LINES, _FREE_BYTES = 150, 18_000
_LINE_LENGTH = 150
_TITLE_LENGTH = 48
_BEGIN, _END = "<!-- cortex: the list below is kept by Cortex -->", "<!-- cortex: end of the list -->"
_SECTION = re.compile(rf"^{re.escape(_BEGIN)}[ \t]*\r?$\n?(.*?)(?:^{re.escape(_END)}[ \t]*\r?$\n?|\Z)", re.M | re.S)
_ENTRY = re.compile(r"[-*] \[([^\]\n]*)\]\(<?([^)>\n]+\.md)>?\)(?: (?:—|-|–) ?(.*))?\s*\Z")
_LINKED = re.compile(r"\]\(<?([^)>\n]+\.md)>?\)|\[\[([^\]|#\n]+)")
_MARK = re.compile(r"^[#>*+\s-]+")
_SPACE = re.compile(r"\s+")
# By so many days a memory of this kind counts as younger than it is.
_DAYS = {"patterns": 120, "decisions": 60, "blockers": 60, "learnings": 45, "config": 30, "apis": 15, "security": 30}
_DAY = 86_400_000_000
_TYPES = {"patterns": "feedback", "apis": "reference", "config": "reference"}


@dataclass(frozen=True, slots=True)
class Index:
    """An index: its text, and the line of each file that its list names."""

    text: str
    lines: Mapping[str, str]


class ClaudeMemory:
    """`MEMORY.md`, which Claude Code loads into every session, and a file for each memory that it reads on demand.

    The index is what Claude or a person wrote there, and below it a list of memories by rank, within the limits of
    Claude Code. Front matter is as Claude Code writes it, with the id of the memory under `cortex`.
    """

    kind = "claude-code"
    index = "MEMORY.md"

    def shared(self, memory: Document) -> Shared:
        return Shared(memory.data["content"], summary=description(memory))

    def parse(self, path: str, text: str) -> Parsed:
        if path == self.index:
            return Parsed(Shared(self.free_text(text)))
        note = read_note(path, text)
        found, said = note.fields.get("cortex"), note.fields.get("description")
        memory_id = found if isinstance(found, str) and _ID.match(found) else None
        summary = said.strip() if isinstance(said, str) and said.strip() else None
        return Parsed(Shared(note.content, summary=summary), memory_id, note.fields)

    def render(self, memory: Document, mentions: Sequence[str], before: str | None) -> str:  # noqa: ARG002 - a protocol
        known = read_note(memory.key, before).fields if before is not None else {}
        name = known.get("name") if isinstance(known.get("name"), str) else PurePosixPath(self.name(memory)).stem
        fields: dict[str, JsonValue] = {"name": name, "description": description(memory)}
        if "type" not in known and "metadata" not in known:
            fields["metadata"] = {"type": _TYPES.get(memory.data["namespace"], "project")}
        fields["cortex"] = memory.key
        return _joined(fields, _ended(memory.data["content"]), before, memory.key)

    def name(self, memory: Document, *, whole_id: bool = False) -> str:
        return f"{name_words(memory)}-{memory.key if whole_id else memory.key[:8]}.md"

    def new(self, path: str, parsed: Parsed) -> NewMemory:
        fields = parsed.fields or {}
        inner = fields.get("metadata")
        sort = fields.get("type") or (inner.get("type") if isinstance(inner, dict) else None)
        kind = (sort,) if isinstance(sort, str) and sort.strip() else ()
        return NewMemory(
            content=plain(parsed.shared.content),
            namespace="patterns" if kind == ("feedback",) else None,
            tags=(AGENT_TAG, *kind),
            summary=parsed.shared.summary,
            source=path,
        )

    # -- the index -------------------------------------------------------------------------------

    def free_text(self, text: str) -> str:
        """What an index says beside the list of Cortex; lines in the list that are no entries belong to it."""
        strays = [
            line
            for found in _SECTION.finditer(text)
            for line in found.group(1).splitlines()
            if line.strip() not in ("", QUOTED) and not _ENTRY.match(line)
        ]
        rest = _SECTION.sub("", text).strip("\n")
        return "\n".join(filter(None, (rest, *strays)))

    def entries(self, text: str) -> dict[str, str]:
        """The lines of the list of Cortex, by the file that each names."""
        lines = (line for found in _SECTION.finditer(text) for line in found.group(1).splitlines())
        return {found.group(2): line.rstrip() for line in lines if (found := _ENTRY.match(line))}

    def said(self, line: str) -> str:
        """The words of a line of the list."""
        found = _ENTRY.match(line)
        return " ".join(filter(None, (found.group(1).strip(), (found.group(3) or "").strip()))) if found else ""

    def rank(self, memories: Sequence[Document]) -> list[Document]:
        """What is most worth loading first: by age, with rules, decisions and blockers counting as younger."""

        def key(one: Document) -> tuple[bool, int, str]:
            data = one.data
            return (AGENT_TAG in data["tags"], data["updated_at"] + _DAYS.get(data["namespace"], 0) * _DAY, one.key)

        return sorted(memories, key=key, reverse=True)

    def fit(self, free: str) -> tuple[str, str]:
        """As much of a free text as fits into the index, and the rest."""
        lines, size = free.split("\n"), 0
        for n, line in enumerate(lines):
            size += len(line.encode("utf-8", "replace")) + 1
            if n >= _FREE_LINES or size > _FREE_BYTES:
                break
        else:
            return free, ""
        if n == 0:
            # One line that is too long alone.
            cut = len(lines[0].encode("utf-8", "replace")[: _FREE_BYTES - 1].decode("utf-8", "ignore"))
            return free[:cut], free[cut:]
        return "\n".join(lines[:n]), "\n".join(lines[n:])

    def linked(self, free: str) -> set[str]:
        """The files that the free text of an index names, as paths and as names without ending."""
        return {one for found in _LINKED.finditer(free) for one in found.groups() if one}

    def build_index(self, free: str, ranked: Sequence[tuple[str, Document]]) -> Index:
        """The index with as many lines of the list as fit; files that the free text names have none."""
        named = self.linked(free)
        most = _LINES_MOST - free.count("\n") - 6
        size = len(free.encode("utf-8", "replace")) + len(_BEGIN) + len(QUOTED) + len(_END) + 17
        lines: dict[str, str] = {}
        for path, memory in ranked:
            if path in named or path.removesuffix(".md") in named:
                continue
            line = self.line(path, memory)
            size += len(line.encode("utf-8", "replace")) + 1
            if len(lines) >= most or size > _BYTES_MOST:
                break
            lines[path] = line
        parts = [free] if free else []
        if lines:
            parts.append("\n".join((_BEGIN, QUOTED, *lines.values(), _END)))
        return Index("\n\n".join(parts) + "\n" if parts else "", lines)

    def line(self, path: str, memory: Document) -> str:
        """The line of a memory: a title that links its file, and the words after the title."""
        text = re.sub(r"[\[\]()<>]", " ", description(memory))
        words = _SPACE.sub(" ", text).strip()
        title = _cut(words, _TITLE_LENGTH)
        hook = _cut(words[len(title) :].strip(), max(20, _LINE_LENGTH - len(title) - len(path) - 10))
        return f"- [{title}]({path})" + (f" — {hook}" if hook else "")


def description(memory: Document) -> str:
    """What a memory is about, in one line: its summary, or the beginning of its text, as hooks quote it."""
    data = memory.data
    text = data["summary"] or next((line for line in data["content"].splitlines() if _MARK.sub("", line).strip()), "")
    line = _cut(_SPACE.sub(" ", _MARK.sub("", without_unseen(text[:2_000]))).strip(), 200)
    return neutralise(line) or data["namespace"]


def _cut(text: str, most: int) -> str:
    """A text of at most so many characters, cut between words."""
    if len(text) <= most:
        return text
    return text[: most + 1].rpartition(" ")[0].rstrip() or text[:most]


# One way to lay memories out as files, with these methods:
#   shared   what the file of a memory says             parse    what a file says; InvalidInput if it cannot be read
#   render   the file; what else stood in it stays      name     the path of a new file
#   new      what to capture of a file that no memory is known for
# `index` is the file that lists the others, if there is one; what people write into it is a memory too.
Layout: TypeAlias = Vault | ClaudeMemory
LAYOUTS: Mapping[str, type[Layout]] = {one.kind: one for one in (ClaudeMemory, Vault)}
