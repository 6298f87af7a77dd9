"""Documents that people and agents write: instruction files, memory folders, decision records, changelogs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePath, PurePosixPath

from ....errors import CortexError
from ..markdown import Note, read_note
from .files import SourceFile
from .parsing import moment
from .records import Found, Skipped, SourceRecord, skip_because
from .sections import section_texts, statements

__all__ = ["Changelogs", "DecisionRecords", "InstructionFiles", "MemoryFolders", "read_markdown"]

_MOST_BYTES = 4_000_000
_SHOWN = 1_900  # characters
_INSTRUCTIONS = frozenset(
    ("claude.md", "claude.local.md", "agents.md", "agents.override.md", "gemini.md", ".cursorrules", ".windsurfrules",
     ".clinerules", "copilot-instructions.md", "conventions.md")
)  # fmt: skip
_RULE_FOLDERS = frozenset(("rules", "instructions"))
_AGENT_FOLDERS = frozenset((".claude", ".cursor", ".github", ".windsurf", ".clinerules", ".codex", ".gemini"))
_MEMORY_FOLDERS = frozenset(("memory", "memories", "agent-memory"))
_MARKDOWN = frozenset((".md", ".markdown", ".mdc"))
# A line that only includes another file.
_INCLUDED = re.compile(r"@[\w./~-]+\Z")


def read_markdown(file: SourceFile) -> Note | Skipped:
    """The front matter and the text of a file."""
    try:
        return read_note(file.name, file.text(_MOST_BYTES))
    except (CortexError, OSError) as error:
        return skip_because(error, file.name)


def _parts(file: SourceFile) -> tuple[str, ...]:
    return PurePath(file.name.replace("!", "/")).parts


class InstructionFiles:
    """CLAUDE.md, AGENTS.md, GEMINI.md, rules folders, Cursor rules: one memory for each rule or fact."""

    kind = "instructions"

    def recognises(self, file: SourceFile) -> bool:
        parts = _parts(file)
        if parts[-1].lower() in _INSTRUCTIONS or file.suffix == ".mdc":
            return True
        folders = {one.lower() for one in parts[:-1]}
        return file.suffix in _MARKDOWN and bool(folders & _RULE_FOLDERS) and bool(folders & _AGENT_FOLDERS)

    def read(self, file: SourceFile) -> Iterator[Found]:
        note = read_markdown(file)
        if isinstance(note, Skipped):
            yield note
            return
        about = note.fields.get("description")
        globs = note.fields.get("globs") or note.fields.get("paths")
        tags = ("instructions", *(f"globs:{one}" for one in _texts(globs)))
        before = (about,) if isinstance(about, str) and about.strip() else ()
        yield from _statements(file, note, namespace="patterns", tags=tags, before=before)


class MemoryFolders:
    """Folders in which agents keep notes for themselves: Claude Code's `memory/`, `/memories` of the memory tool."""

    kind = "memory-folder"

    def recognises(self, file: SourceFile) -> bool:
        parts = _parts(file)
        is_inside = len(parts) > 1 and bool({one.lower() for one in parts[:-1]} & _MEMORY_FOLDERS)
        return parts[-1] == "MEMORY.md" or (is_inside and file.suffix in (*_MARKDOWN, ".txt"))

    def read(self, file: SourceFile) -> Iterator[Found]:
        note = read_markdown(file)
        if isinstance(note, Skipped):
            yield note
            return
        name, sort = note.fields.get("name"), note.fields.get("type")
        if isinstance(name, str) or file.suffix not in _MARKDOWN:
            # One fact in each file; the front matter says which.
            if note.content.strip():
                about = note.fields.get("description")
                yield SourceRecord(
                    source=file.name,
                    position="",
                    line=1,
                    content=note.content.strip(),
                    summary=about if isinstance(about, str) and about.strip() else None,
                    tags=("agent-memory", *([sort] if isinstance(sort, str) and sort.strip() else [])),
                    at=_modified(file),
                    shown=file.name,
                )
            return
        yield from _statements(file, note, namespace=None, tags=("agent-memory",), before=())


def _statements(
    file: SourceFile, note: Note, *, namespace: str | None, tags: tuple[str, ...], before: tuple[str, ...]
) -> Iterator[Found]:
    """One record for each statement, with its headings before it."""
    above = len(file.text(_MOST_BYTES).splitlines()) - len(note.content.splitlines())
    for one in statements(note.content):
        if _INCLUDED.match(one.text):
            continue
        heading = " > ".join((*before, *one.context))
        where = one.heading
        yield SourceRecord(
            source=file.name,
            position=where,
            by_text=True,
            line=one.line + above,
            content=f"{heading}: {one.text}" if heading else one.text,
            namespace=namespace,
            tags=tags,
            at=_modified(file),
            shown=f"{file.name}#{where}"[:_SHOWN] if where else file.name,
        )


def _modified(file: SourceFile) -> datetime | None:
    return moment(file.modified // 1_000)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [one.strip() for one in value.split(",") if one.strip()]
    return [one for one in value if isinstance(one, str) and one.strip()] if isinstance(value, list) else []


class DecisionRecords:
    """Architecture decision records: title, status and decision."""

    kind = "adr"
    _DECISION = ("decision", "decision outcome", "decision outcomes", "the decision")

    def recognises(self, file: SourceFile) -> bool:
        if file.suffix not in _MARKDOWN:
            return False
        names = set(section_texts(file.head.decode("utf-8", "replace")))
        is_decision = bool(names & set(self._DECISION))
        return is_decision and bool(names & {"context", "status", "consequences", "considered options",
                                             "context and problem statement", "decision drivers"})  # fmt: skip

    def read(self, file: SourceFile) -> Iterator[Found]:
        note = read_markdown(file)
        if isinstance(note, Skipped):
            yield note
            return
        texts = section_texts(note.content)
        decision = next((texts[name] for name in self._DECISION if name in texts), None)
        if decision is None:
            yield Skipped("", "it has no decision")
            return
        first = next((line for line in note.content.splitlines() if line.startswith("# ")), "")
        title = first.removeprefix("# ").strip() or PurePosixPath(file.path).stem
        status = str(note.fields.get("status") or texts.get("status") or _field(note.content, "status") or "").strip()
        status = status.splitlines()[0] if status else ""
        date = note.fields.get("date") or _field(note.content, "date")
        why = next((texts[name] for name in ("context", "context and problem statement") if name in texts), "")
        parts = [title, f"Status: {status}" if status else "", decision, f"Context: {why}" if why else ""]
        yield SourceRecord(
            source=file.name,
            position="",
            line=1,
            content="\n\n".join(filter(None, parts)),
            namespace="decisions",
            tags=("adr", *([status.split()[0].lower().strip(".,:")] if status else [])),
            at=moment(date) or _modified(file),
            shown=file.name,
        )


def _field(text: str, name: str) -> str | None:
    """The value of a line such as `* Status: accepted`."""
    # Blanks of one line only: over line ends, every line would look at all empty ones below it.
    line = rf"^[ \t]*+(?:[-*+][ \t]++)?\**{name}\**[ \t]*+:\**[ \t]*+(\S.*)"
    found = re.search(line, text, re.IGNORECASE | re.MULTILINE)
    return found.group(1).rstrip() if found else None


class Changelogs:
    """Changelogs: what was changed, removed or deprecated on purpose. Additions and repairs are no decisions."""

    kind = "changelog"
    _VERSION = re.compile(
        r"\[?v?(\d+\.\d+[\w.+-]*|unreleased)\]?(?:\([^)]*\))?(?:\s*[-–(]+\s*(\d{4}-\d{2}-\d{2}))?", re.I
    )
    _SECTIONS = frozenset(("changed", "removed", "deprecated", "security", "breaking", "breaking changes"))
    _DECIDED = re.compile(
        r"\bbreaking\b|\bremoved?\b|\bdeprecat|\bdrop(?:ped|s)?\b|\breplac|\bswitch(?:ed|es)?\b|\bmigrat|\bno longer\b|"
        r"\bnow (?:requires?|uses?|defaults?)\b",
        re.IGNORECASE,
    )

    def recognises(self, file: SourceFile) -> bool:
        if file.suffix not in _MARKDOWN:
            return False
        head = file.head.decode("utf-8", "replace")
        named = file.path.stem.lower() in ("changelog", "history", "changes", "releases", "news")
        titled = re.match(r"\s*# change ?log\b", head, re.IGNORECASE) is not None
        return (named or titled) and re.search(r"^##? \[?v?(?:\d+\.\d+|unreleased)", head, re.I | re.M) is not None

    def read(self, file: SourceFile) -> Iterator[Found]:
        note = read_markdown(file)
        if isinstance(note, Skipped):
            yield note
            return
        for one in statements(note.content):
            found = next(
                ((n, match) for n, title in enumerate(one.headings) if (match := self._VERSION.match(title))), None
            )
            if found is None:
                continue
            level, match = found
            section = one.headings[level + 1].lower() if len(one.headings) > level + 1 else ""
            if section.strip() not in self._SECTIONS and not self._DECIDED.search(one.text):
                continue
            version = match.group(1)
            yield SourceRecord(
                source=file.name,
                position=f"{version}/{section}",
                by_text=True,
                line=one.line,
                content=f"{version}, {section}: {one.text}" if section else f"{version}: {one.text}",
                namespace="decisions",
                tags=("changelog",),
                at=moment(match.group(2)) or _modified(file),
                shown=f"{file.name}#{one.heading}"[:_SHOWN],
            )
