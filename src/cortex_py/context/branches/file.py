"""A line of work as a Markdown file: written from the store, read back after a person changed it.

The file opens with YAML front matter; each entry is a heading for people and its exact text between two
marker lines; the last marker names what was projected, so that a file cut off is told from one with
entries deleted. Nothing here touches files or the store.

No raw carriage return is ever written, so that an editor may change the line ends without changing an
entry: text with CRLF throughout says so in its marker, and any other return becomes a comment. Whatever
looks like a marker in an entry gets a backslash before its colon; reading takes one away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from ..clock import in_utc
from ..errors import InvalidInput
from ..records import Branch

__all__ = ["FORMAT", "BranchFile", "Entry", "FoundEntry", "Parsed", "append", "parse", "render"]

FORMAT = 1

_NOTE = (
    "<!-- cortex:note Cortex writes this file from its store. Change or delete the text of an entry, or add "
    "your own below the last one; leave these comments as they are. -->"
)
_END = "<!-- cortex:end -->"
_EOF = "<!-- cortex:eof"

_LOOK_ALIKE = re.compile(r"<!-- cortex(\\*):")
_ESCAPED = re.compile(r"<!-- cortex(?::cr -->|\\(\\*):)")
_MARKER = re.compile(r"^[ \t]*+<!-- cortex:(?P<kind>entry|end|eof|note)\b(?P<rest>.*)$", re.MULTILINE)
_HEADING = re.compile(r"## \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC(?: · .*)?")
_BLANK_LINES = re.compile(r"\A(?:[ \t]*+\n)++")
_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_TAG = re.compile(r"[0-9a-f]{12}")

# Far above what `render` writes; it keeps hostile YAML cheap.
_FRONT_LENGTH = 65_536
_MAX_NUMBER = 2**63 - 1
_UNDO = "Undo the last change to the file, or move it away: Cortex writes it anew from the store."


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory of the branch, as the store has it."""

    id: str
    version: int
    created_at: datetime
    role: str | None
    namespace: str
    category: str | None
    content: str


@dataclass(frozen=True, slots=True)
class BranchFile:
    """All that a file shows. `revision` is the state of the store that it shows."""

    branch: Branch
    revision: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry as it stands in a file; `digest` is of the text that was projected."""

    id: str
    version: int
    digest: str
    content: str
    edited: bool


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file as found. `loose` are texts outside entries; `count` is how many entries were projected."""

    branch: Branch
    revision: int
    count: int
    entries: tuple[FoundEntry, ...]
    loose: tuple[str, ...]
    tags: frozenset[str]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(entry.id for entry in self.entries)

    def was_projected(self, entry_id: str, version: int) -> bool:
        """Whether this version of the entry stood in the file when Cortex last wrote it."""
        return _tag(entry_id, version) in self.tags


# Writing


def render(file: BranchFile) -> str:
    """The whole text of a file."""
    head = _head(file.branch, file.revision, len(file.entries))
    return _joined(head, "", file.entries, "")


def append(text: str, branch: Branch, revision: int, entries: Sequence[Entry]) -> str:
    """The text that `render` gives for the old entries and these; the old ones are copied, not read.

    `text` must be as `render` or `append` made it; after an error, the whole file has to be rendered.
    """
    body = text.find(f"\n{_NOTE}\n") + 1
    # No entry holds an unescaped marker, so the last one found is the real one.
    eof = text.rfind(f"\n{_EOF}")
    tags = text[eof + 1 + len(_EOF) : -len(" -->\n")]
    if not text.startswith("---\n") or not 0 < body < eof or not text.endswith(" -->\n") or "\n" in tags:
        raise _broken("it is not as Cortex wrote it, so that nothing can be appended", 1)
    head = _head(branch, revision, tags.count(" ") + len(entries))
    old = text[body + len(_NOTE) + 1 : eof]
    return _joined(head, old, entries, tags)


def _joined(head: str, old: str, entries: Sequence[Entry], old_tags: str) -> str:
    tags = (f" {_tag(entry.id, entry.version)}" for entry in entries)
    return "".join([head, old, *map(_block, entries), f"\n{_EOF}{old_tags}", *tags, " -->\n"])


def _head(branch: Branch, revision: int, count: int) -> str:
    fields: dict[str, str | int | None] = {
        "format": FORMAT,
        "branch_id": branch.id,
        "project_id": branch.project_id,
        "topic": branch.topic,
        "parent_branch": branch.parent_id,
        "git_branch": branch.git_branch,
        "status": branch.status,
        "created_at": _moment(branch.created_at),
        "updated_at": _moment(branch.updated_at),
        "revision": revision,
        "entries": count,
    }
    front = "".join(f"{name}: {_scalar(value)}\n" for name, value in fields.items())
    return f"---\n{front}---\n\n# {_one_line(branch.topic)}\n\n{_NOTE}\n"


def _block(entry: Entry) -> str:
    marker: dict[str, str | int] = {"id": entry.id, "version": entry.version, "digest": _digest(entry.content)}
    body = entry.content
    if 0 < body.count("\r\n") == body.count("\n") == body.count("\r"):
        marker["ends"] = "crlf"
        body = body.replace("\r\n", "\n")
    shown = (entry.role, entry.namespace, entry.category)
    time = in_utc(entry.created_at).isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")
    heading = " · ".join([time, *(_one_line(word) for word in shown if word)])
    return f"\n## {heading}\n\n<!-- cortex:entry {json.dumps(marker)} -->\n{_escape(body)}\n{_END}\n"


def _tag(entry_id: str, version: int) -> str:
    """A short name of one version of an entry; with 48 bits, no other is taken for it."""
    return blake2b(f"{version}:{entry_id}".encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _digest(content: str) -> str:
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _moment(moment: datetime) -> str:
    return in_utc(moment).isoformat().replace("+00:00", "Z")


def _scalar(value: str | int | None) -> str:
    """A YAML value on one line. Text is always quoted: `no`, `1e3` and `2026_01_02` are not text in YAML."""
    if isinstance(value, str):
        return '"' + "".join(map(_quoted, value)) + '"'
    return "null" if value is None else str(value)


def _quoted(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if char.isprintable() else f"\\U{ord(char):08X}"


def _escape(content: str) -> str:
    return _LOOK_ALIKE.sub(r"<!-- cortex\1\\:", content).replace("\r", "<!-- cortex:cr -->")


def _unescape(body: str) -> str:
    return _ESCAPED.sub(lambda found: "\r" if found[1] is None else f"<!-- cortex{found[1]}:", body)


# Reading


def parse(text: str, expected: Branch | None = None) -> Parsed:
    """What a file says, whoever saved it last; `expected` is the branch that it must belong to.

    A file that cannot be understood without guessing is refused, with the line: nothing is lost, since
    the store has all that was projected.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    front, start = _front_matter(text)
    branch = _branch(front)
    if expected and (branch.id, branch.project_id) != (expected.id, expected.project_id):
        raise _broken(f"it belongs to another branch, {branch.id[:80]!r}", front.line("branch_id"))
    count = front.number("entries")
    entries, gaps, tags = _body(text, start)
    if len(tags) != count:
        raise _broken(f"the front matter counts {count} entries, the last marker {len(tags)}", front.line("entries"))
    loose = (_loose(gap, branch.topic) for gap in gaps)
    return Parsed(
        branch=branch,
        revision=front.number("revision"),
        count=count,
        entries=tuple(entries),
        loose=tuple(words for words in loose if words),
        tags=frozenset(tags),
    )


def _body(text: str, start: int) -> tuple[list[FoundEntry], list[str], list[str]]:
    """Entries in order, the texts around them, and the tags of the last marker."""
    entries: dict[str, FoundEntry] = {}
    gaps: list[str] = []
    opened: re.Match[str] | None = None
    eof: re.Match[str] | None = None
    for marker in _MARKER.finditer(text, start):
        kind = marker["kind"]
        if not marker["rest"].rstrip().endswith("-->"):
            raise _broken_at(marker, f"the {kind} marker does not end with -->")
        if opened and kind == "end":
            entry = _entry(opened, text[opened.end() + 1 : marker.start() - 1])
            if entries.setdefault(entry.id, entry) is not entry:
                raise _broken_at(opened, f"the entry {entry.id[:40]!r} occurs twice")
            opened = None
        elif opened:
            break
        elif kind == "end":
            raise _broken_at(marker, "this end marker has no entry before it")
        else:
            gaps.append(text[start : marker.start()])
            if kind == "eof" and eof:
                raise _broken_at(marker, "the last marker occurs twice")
            opened = marker if kind == "entry" else None
            eof = marker if kind == "eof" else eof
        start = marker.end()
    if opened:
        raise _broken_at(opened, "the entry that begins here has no end marker")
    if not eof:
        raise _broken("the file is cut off: the last marker is missing", text.count("\n") + 1)
    tags = eof["rest"].rstrip().removesuffix("-->").split()
    if not all(map(_TAG.fullmatch, tags)):
        raise _broken_at(eof, "the last marker is damaged")
    return list(entries.values()), [*gaps, text[start:]], tags


def _entry(marker: re.Match[str], body: str) -> FoundEntry:
    try:
        found = json.loads(marker["rest"].rstrip().removesuffix("-->"))
        entry_id, version, digest = found["id"], found["version"], found["digest"]
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise _broken_at(marker, "the entry marker does not name id, version and digest") from error
    # `type`, because True is an int in Python.
    if not isinstance(entry_id, str) or not isinstance(digest, str) or type(version) is not int:
        raise _broken_at(marker, "id, version or digest of the entry is of the wrong kind")
    if not 0 <= version <= _MAX_NUMBER:
        raise _broken_at(marker, "the entry has an impossible version")
    content = _unescape(body.replace("\n", "\r\n") if found.get("ends") == "crlf" else body)
    return FoundEntry(entry_id, version, digest, content, edited=_digest(content) != digest)


def _loose(gap: str, topic: str) -> str:
    """What a person wrote between entries: all but the title and the headings that Cortex made."""
    title = f"# {_one_line(topic)}".rstrip()
    lines = ["" if line.rstrip() == title or _HEADING.fullmatch(line) else line for line in gap.split("\n")]
    return _unescape(_BLANK_LINES.sub("", "\n".join(lines)).rstrip())


# Front matter


@dataclass(frozen=True, slots=True)
class _Front:
    """The fields of a front matter, and the line of each."""

    values: dict[str, object]
    lines: dict[str, int]

    def line(self, name: str) -> int:
        return self.lines.get(name, 1)

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str):
            raise _broken(f"{name} must be text in quotes", self.line(name))
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.text(name)

    def number(self, name: str) -> int:
        value = self.values.get(name)
        if type(value) is not int or not 0 <= value <= _MAX_NUMBER:
            raise _broken(f"{name} must be a whole number", self.line(name))
        return value

    def moment(self, name: str) -> datetime:
        value = self.values.get(name)
        try:
            # Without the quotes, YAML makes a moment of it itself.
            return in_utc(value if isinstance(value, datetime) else datetime.fromisoformat(self.text(name)))
        except (ValueError, OverflowError) as error:
            raise _broken(f"{name} must be a time such as 2026-01-02T12:34:56Z", self.line(name)) from error


def _branch(front: _Front) -> Branch:
    if front.number("format") != FORMAT:
        raise _broken(f"its format is not {FORMAT}, the one that this version of Cortex reads", front.line("format"))
    return Branch(
        id=front.text("branch_id"),
        project_id=front.text("project_id"),
        topic=front.text("topic"),
        parent_id=front.optional_text("parent_branch"),
        git_branch=front.optional_text("git_branch"),
        status=front.text("status"),
        created_at=front.moment("created_at"),
        updated_at=front.moment("updated_at"),
    )


def _front_matter(text: str) -> tuple[_Front, int]:
    """The front matter, and where the text after it begins."""
    fences = list(_FENCE.finditer(text[:_FRONT_LENGTH]))[:2]
    if len(fences) < 2 or fences[0].start() != 0:
        raise _broken("the front matter is missing; it begins and ends with a line of ---", 1)
    return _load(text[fences[0].end() : fences[1].start()]), fences[1].end()


def _load(source: str) -> _Front:
    # Imported here, since most calls of most programs never read a file.
    import yaml  # type: ignore[import-untyped]

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        lines = _flat(yaml, source, loader)
        return _Front(yaml.load(source, Loader=loader), lines)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise _broken("the front matter is not valid YAML", mark.line + 1 if mark else 1) from error
    except (ValueError, OverflowError) as error:
        # A number with thousands of digits, a 13th month.
        raise _broken("the front matter holds an impossible value", 1) from error


def _flat(yaml: Any, source: str, loader: Any) -> dict[str, int]:
    """The line of each key, once the YAML is seen to be one flat mapping.

    Nesting, anchors and tags are refused before anything is built: they are never written, and are what
    makes small YAML grow large, recurse deeply or fail in ways of its own.
    """
    scalars: list[tuple[str, int]] = []
    mappings = 0
    for event in yaml.parse(source, Loader=loader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionStartEvent):
            mappings += 1
            if mappings > 1 or not isinstance(event, yaml.MappingStartEvent):
                raise _broken("the front matter must be plain fields, without lists or fields in fields", line)
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise _broken("the front matter must not have anchors, aliases or tags", line)
        if isinstance(event, yaml.ScalarEvent):
            scalars.append((event.value, line))
    if not mappings:
        raise _broken("the front matter holds no fields", 1)
    lines: dict[str, int] = {}
    for name, line in scalars[::2]:
        if name in lines:
            raise _broken(f"the field {name[:40]!r} occurs twice", line)
        lines[name] = line
    return lines


def _broken_at(marker: re.Match[str], what: str) -> InvalidInput:
    return _broken(what, marker.string.count("\n", 0, marker.start()) + 1)


def _broken(what: str, line: int) -> InvalidInput:
    return InvalidInput(f"The branch file cannot be read, line {line}: {what}.", remedy=_UNDO, field="branch_file")
