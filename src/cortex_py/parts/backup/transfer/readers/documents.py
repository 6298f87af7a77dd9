"""Documents that people and agents write: instructions, memory folders, decision records, changelogs, commits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath, PurePosixPath

from .....core.errors import CortexError
from .....core.records import CommitMessage
from ..markdown import Note, read_note
from .files import SourceFile
from .parsing import moment, text_of
from .records import Found, Skipped, SourceReader, SourceRecord, skip_because

__all__ = ["DOCUMENTS", "GIT_KIND", "git_reader", "note_reader"]

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


def note_reader(
    kind: str, recognises: Callable[[SourceFile], bool], take: Callable[[Note, SourceFile], Iterable[Found]]
) -> SourceReader:
    """A reader of Markdown: what becomes of the front matter and the text of a file."""

    def read(file: SourceFile) -> Iterator[Found]:
        try:
            note = read_note(file.name, file.text(_MOST_BYTES))
        except (CortexError, OSError) as error:
            yield skip_because(error, file.name)
        else:
            yield from take(note, file)

    return SourceReader(kind, recognises, read)


def _parts(file: SourceFile) -> tuple[str, ...]:
    return PurePath(file.name.replace("!", "/")).parts


# -- CLAUDE.md, AGENTS.md, GEMINI.md, rules folders, Cursor rules: one memory for each rule or fact ----


def _is_instructions(file: SourceFile) -> bool:
    parts = _parts(file)
    if parts[-1].lower() in _INSTRUCTIONS or file.suffix == ".mdc":
        return True
    folders = {one.lower() for one in parts[:-1]}
    return file.suffix in _MARKDOWN and bool(folders & _RULE_FOLDERS) and bool(folders & _AGENT_FOLDERS)


def _rules(note: Note, file: SourceFile) -> Iterator[Found]:
    about = text_of(note.fields.get("description"))
    globs = note.fields.get("globs") or note.fields.get("paths")
    tags = ("instructions", *(f"globs:{one}" for one in _texts(globs)))
    return _statements(file, note, namespace="patterns", tags=tags, before=(about,) if about else ())


# -- folders in which agents keep notes for themselves: Claude Code's `memory/`, `/memories` of the memory tool


def _is_memory_folder(file: SourceFile) -> bool:
    parts = _parts(file)
    is_inside = len(parts) > 1 and bool({one.lower() for one in parts[:-1]} & _MEMORY_FOLDERS)
    return parts[-1] == "MEMORY.md" or (is_inside and file.suffix in (*_MARKDOWN, ".txt"))


def _own_notes(note: Note, file: SourceFile) -> Iterator[Found]:
    if not isinstance(note.fields.get("name"), str) and file.suffix in _MARKDOWN:
        yield from _statements(file, note, namespace=None, tags=("agent-memory",))
    elif note.content.strip():
        # One fact in each file; the front matter says which.
        sort = text_of(note.fields.get("type"))
        yield SourceRecord(
            source=file.name,
            position="",
            line=1,
            content=note.content.strip(),
            summary=text_of(note.fields.get("description")),
            tags=("agent-memory", *([sort] if sort else [])),
            at=_modified(file),
            shown=file.name,
        )


def _statements(
    file: SourceFile, note: Note, *, namespace: str | None, tags: tuple[str, ...], before: tuple[str, ...] = ()
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


# -- architecture decision records: title, status and decision ------------------------------------------

_DECISION = ("decision", "decision outcome", "decision outcomes", "the decision")
_BESIDE_DECISION = frozenset(
    ("context", "status", "consequences", "considered options", "context and problem statement", "decision drivers")
)


def _is_decision_record(file: SourceFile) -> bool:
    names = section_texts(file.head.decode("utf-8", "replace")).keys() if file.suffix in _MARKDOWN else frozenset()
    return not names.isdisjoint(_DECISION) and not names.isdisjoint(_BESIDE_DECISION)


def _decision(note: Note, file: SourceFile) -> Iterator[Found]:
    texts = section_texts(note.content)
    decision = next((texts[name] for name in _DECISION if name in texts), None)
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


# -- changelogs and commits: what was decided on purpose. Additions and repairs are no decisions --------

_VERSION = re.compile(r"\[?v?(\d+\.\d+[\w.+-]*|unreleased)\]?(?:\([^)]*\))?(?:\s*[-–(]+\s*(\d{4}-\d{2}-\d{2}))?", re.I)
_SECTIONS = frozenset(("changed", "removed", "deprecated", "security", "breaking", "breaking changes"))
_CHANGED = re.compile(
    r"\bbreaking\b|\bremoved?\b|\bdeprecat|\bdrop(?:ped|s)?\b|\breplac|\bswitch(?:ed|es)?\b|\bmigrat|\bno longer\b|"
    r"\bnow (?:requires?|uses?|defaults?)\b",
    re.IGNORECASE,
)


def _is_changelog(file: SourceFile) -> bool:
    if file.suffix not in _MARKDOWN:
        return False
    head = file.head.decode("utf-8", "replace")
    named = file.path.stem.lower() in ("changelog", "history", "changes", "releases", "news")
    titled = re.match(r"\s*# change ?log\b", head, re.IGNORECASE) is not None
    return (named or titled) and re.search(r"^##? \[?v?(?:\d+\.\d+|unreleased)", head, re.I | re.M) is not None


def _changes(note: Note, file: SourceFile) -> Iterator[Found]:
    for one in statements(note.content):
        found = next(((n, match) for n, title in enumerate(one.headings) if (match := _VERSION.match(title))), None)
        if found is None:
            continue
        level, match = found
        section = one.headings[level + 1].lower() if len(one.headings) > level + 1 else ""
        if section.strip() not in _SECTIONS and not _CHANGED.search(one.text):
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


GIT_KIND = "git"
_DECIDED = re.compile(
    r"\bbreaking\b|^[a-z]+(?:\([^)]*\))?!:|\bdeprecat|\bdrop(?:ped|s)? support\b|\breplac(?:e|es|ed|ing)\b|"
    r"\bswitch(?:ed|es|ing)?\b|\bmigrat(?:e|es|ed|ing)\b|\bno longer\b|\binstead of\b|\bin favou?r of\b|\bdecid|"
    r"\bchose\b|\bgoing with\b|\bnow (?:requires?|uses?|defaults?)\b",
    re.IGNORECASE,
)
# Who signed or took part is not part of what was decided.
_TRAILER = re.compile(
    r"^(?:(?:signed-off|co-authored|reviewed|acked|tested|reported|suggested)-by|change-id):.*$",
    re.IGNORECASE | re.MULTILINE,
)


def git_reader(commits: Iterable[CommitMessage]) -> SourceReader:
    """Reads the messages of commits; they come from the repository, not from a file."""

    def read(file: SourceFile) -> Iterator[Found]:
        for one in commits:
            body = _TRAILER.sub("", one.body).strip()
            if _DECIDED.search(one.subject) or (body and _DECIDED.search(body)):
                yield SourceRecord(
                    source=GIT_KIND,
                    position=one.id,
                    content=f"{one.subject.strip()}\n\n{body}".strip(),
                    namespace="decisions",
                    tags=("git",),
                    at=moment(one.at),
                    shown=f"{file.name}@{one.id[:12]}",
                )

    return SourceReader(GIT_KIND, lambda _file: False, read)


# -- Markdown cut into statements: one for each list item or paragraph, with the headings above it -------

_HEADING = re.compile(r" {0,3}(#{1,6})\s++(.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*\Z")
_ITEM = re.compile(r"( {0,3})(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?(?=\S)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_RULER = re.compile(r" {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})\Z")


@dataclass(frozen=True, slots=True)
class NoteStatement:
    """A rule or fact: its text, the headings above it from the outermost, and its first line."""

    text: str
    headings: tuple[str, ...]
    line: int
    has_title: bool = False

    @property
    def heading(self) -> str:
        """All headings above it as one text."""
        return " > ".join(self.headings)

    @property
    def context(self) -> tuple[str, ...]:
        """The headings without the title of the document."""
        return self.headings[1:] if self.has_title else self.headings


@dataclass(slots=True)
class _Block:
    lines: list[str]
    first: int
    is_item: bool


def statements(text: str) -> Iterator[NoteStatement]:
    """The statements of a text, in order. A paragraph that ends with a colon introduces the list below it."""
    for stack, blocks in _sections(_COMMENT.sub(_blank_lines, text)):
        headings, has_title = tuple(title for _, title in stack), bool(stack) and stack[0][0] == 1
        intro = ""
        for n, block in enumerate(blocks):
            body = _body(block)
            follows = blocks[n + 1] if n + 1 < len(blocks) else None
            if not block.is_item:
                intro = ""
            if not body:
                continue
            if not block.is_item and body.endswith(":") and "\n" not in body and follows and follows.is_item:
                intro = body
                continue
            yield NoteStatement(f"{intro} {body}" if intro else body, headings, block.first, has_title)


def section_texts(text: str) -> dict[str, str]:
    """The text below each heading of a document, by the lower-case heading; the first of two with the same name."""
    found: dict[str, str] = {}
    for stack, blocks in _sections(_COMMENT.sub(_blank_lines, text)):
        body = "\n\n".join("\n".join(block.lines).strip() for block in blocks).strip()
        if stack and body:
            found.setdefault(stack[-1][1].lower(), body)
    return found


def _blank_lines(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _body(block: _Block) -> str:
    lines = list(block.lines)
    if block.is_item:
        lines[0] = _ITEM.sub("", lines[0], count=1)
    return "\n".join(lines).strip()


def _sections(text: str) -> Iterator[tuple[list[tuple[int, str]], list[_Block]]]:
    """The headings of each section with their levels, and the blocks directly in it."""
    stack: list[tuple[int, str]] = []
    blocks: list[_Block] = []
    fence, is_open = "", False
    for number, line in enumerate(text.splitlines(), start=1):
        if fence:
            _add(blocks, line, number)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        heading = _heading(line, blocks, is_open=is_open)
        if heading is not None:
            yield stack, blocks
            level, title = heading
            stack = [one for one in stack if one[0] < level] + [(level, title)]
            blocks, is_open = [], False
        elif opened := _FENCE.match(line):
            # Code belongs to the statement before it.
            fence = opened.group(1)
            _add(blocks, line, number)
            is_open = True
        elif not line.strip() or _RULER.match(line):
            is_open = False
        elif _ITEM.match(line):
            blocks.append(_Block([line], number, is_item=True))
            is_open = True
        elif is_open or (blocks and blocks[-1].is_item and line.startswith(("  ", "\t"))):
            _add(blocks, line, number)
            is_open = True
        else:
            blocks.append(_Block([line], number, is_item=False))
            is_open = True
    yield stack, blocks


def _heading(line: str, blocks: list[_Block], *, is_open: bool) -> tuple[int, str] | None:
    if found := _HEADING.match(line):
        return len(found.group(1)), found.group(2).rstrip().rstrip("#").rstrip()
    underline = _UNDERLINE.match(line)
    if underline and is_open and blocks and not blocks[-1].is_item and len(blocks[-1].lines) == 1:
        title = blocks.pop().lines[0].strip()
        return (1 if underline.group(1)[0] == "=" else 2), title
    return None


def _add(blocks: list[_Block], line: str, number: int) -> None:
    if blocks:
        blocks[-1].lines.append(line)
    else:
        blocks.append(_Block([line], number, is_item=False))


DOCUMENTS = (
    note_reader("instructions", _is_instructions, _rules),
    note_reader("changelog", _is_changelog, _changes),
    note_reader("adr", _is_decision_record, _decision),
    note_reader("memory-folder", _is_memory_folder, _own_notes),
)
