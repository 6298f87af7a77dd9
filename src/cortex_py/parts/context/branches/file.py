"""A branch as a Markdown file: its id, its text rendered from the store, and parsed after a person changed it.

The file opens with YAML front matter. Each entry is a heading for people and its exact text between two marker lines.
The last marker lists the entries that were written, which distinguishes a truncated file from one with deleted
entries. Nothing here touches files or the store.

No raw carriage return is ever written, so that an editor may change the line ends without changing an entry: text with
CRLF throughout says so in its marker, and any other carriage return becomes a comment. Text in an entry that looks
like a marker gets a backslash before its colon; parsing removes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from anyascii import anyascii

from ....core.clock import in_utc
from ....core.errors import InvalidInput
from ....core.lazy import regex
from ....core.records import Branch

__all__ = [
    "ROLES", "BranchFile", "FileEntry", "ParsedFile", "append", "branch_id", "check_git_branch", "check_role",
    "check_topic", "parse", "render", "slug", "task_id",
]  # fmt: skip

# Ids, which people can read and no topic can break, and checks of the names that callers give

TOPIC_LENGTH = 200
_SLUG_LENGTH = 48
ROLES = ("user", "assistant")
_GIT_LENGTH = 250
# What git refuses in the name of a reference.
_GIT_BRANCH = regex(r"(?![-/])[^\x00-\x20\x7f~^:?*\[\\]+(?<![./])")
_NOT_GIT = regex(r"\.\.|@\{|//|(?:^|/)\.|\.lock(?:/|$)|^@$|^HEAD$|[\ud800-\udfff]")
_NOT_SLUG = regex(r"[^a-z0-9]+")


def slug(topic: str) -> str:
    """A topic in lower-case ASCII words joined by underscores, of bounded length."""
    words = _NOT_SLUG.sub("_", anyascii(topic).lower()).strip("_")
    return words[:_SLUG_LENGTH].rstrip("_") or "branch"


def branch_id(topic: str, moment: datetime, attempt: int = 0) -> str:
    """`slug_YYYYMMDD_HHMMSS`; later attempts add a number, for topics begun in the same second."""
    stem = f"{slug(topic)}_{moment.astimezone(UTC):%Y%m%d_%H%M%S}"
    return f"{stem}_{attempt + 1}" if attempt else stem


def check_topic(topic: str) -> str:
    """The topic, or an error that says why it cannot be one."""
    if not topic.strip():
        raise InvalidInput("The topic is empty.", remedy="Name what the work is about.", field="branch_topic")
    if len(topic) > TOPIC_LENGTH:
        raise InvalidInput(
            f"The topic is longer than {TOPIC_LENGTH} characters.", remedy="Shorten it.", field="branch_topic"
        )
    if any(0xD800 <= ord(char) <= 0xDFFF for char in topic):
        raise InvalidInput("The topic is not valid Unicode text.", field="branch_topic")
    return topic


def check_role(role: str) -> str:
    if role not in ROLES:
        raise InvalidInput(f"Unknown role {role[:40]!r}.", remedy=f"Give {' or '.join(ROLES)}.", field="role")
    return role


def check_git_branch(name: str) -> str:
    """The name, or an error where git would refuse it."""
    if len(name) > _GIT_LENGTH or not _GIT_BRANCH.fullmatch(name) or _NOT_GIT.search(name):
        raise InvalidInput(
            f"{name[:80]!r} cannot be the name of a git branch.",
            remedy="Give it as `git branch` shows it, for example feature/login.",
            field="git_branch_name",
        )
    return name


def task_id(memory_id: str, moment: datetime) -> str:
    """`task_YYYYMMDD_HHMMSS_` and the last digits of the record's own id, which are random."""
    return f"task_{moment.astimezone(UTC):%Y%m%d_%H%M%S}_{memory_id[-6:]}"


FORMAT = 1

_NOTE = (
    "<!-- cortex:note Cortex writes this file from its store. Change or delete the text of an entry, or add "
    "your own below the last one; leave these comments as they are. -->"
)
_END = "<!-- cortex:end -->"
_EOF = "<!-- cortex:eof"

_LOOK_ALIKE = regex(r"<!-- cortex(\\*):")
_ESCAPED = regex(r"<!-- cortex(?::cr -->|\\(\\*):)")
_MARKER = regex(r"^[ \t]*+<!-- cortex:(?P<kind>entry|end|eof|note)\b(?P<rest>.*)$", re.MULTILINE)
_HEADING = regex(r"## \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC(?: · .*)?")
_BLANK_LINES = regex(r"\A(?:[ \t]*+\n)++")
_FENCE = regex(r"^---[ \t]*$", re.MULTILINE)
_TAG = regex(r"[0-9a-f]{12}")

# Far above what `render` writes; it keeps hostile YAML cheap.
_FRONT_LENGTH = 65_536
_MAX_NUMBER = 2**63 - 1
_UNDO = "Undo the last change to the file, or move it away: Cortex rewrites it from the store."


@dataclass(frozen=True, slots=True)
class FileEntry:
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
    """The content of a file. `revision` is the revision of the store that it shows."""

    branch: Branch
    revision: int
    entries: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry in a file; `digest` is that of the text that Cortex wrote."""

    id: str
    version: int
    digest: str
    content: str
    edited: bool


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """A file as it was read. `loose` are the texts outside entries; `count` is the number of entries written."""

    branch: Branch
    revision: int
    count: int
    entries: tuple[FoundEntry, ...]
    loose: tuple[str, ...]
    tags: frozenset[str]

    def was_projected(self, entry_id: str, version: int) -> bool:
        """Whether the file held this version of the entry when Cortex last wrote it."""
        return _tag(entry_id, version) in self.tags


# Writing


def render(file: BranchFile) -> str:
    """The whole text of a file."""
    head = _head(file.branch, file.revision, len(file.entries))
    return _joined(head, "", file.entries, "")


def append(text: str, branch: Branch, revision: int, entries: Sequence[FileEntry]) -> str:
    """The text that `render` gives for the old entries and these. The old ones are copied, not parsed.

    `text` must come from `render` or `append`; after an error the whole file has to be rendered.
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


def _joined(head: str, old: str, entries: Sequence[FileEntry], old_tags: str) -> str:
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


def _block(entry: FileEntry) -> str:
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
    """A short name of one version of an entry; 48 bits make collisions unlikely enough."""
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


def parse(text: str, expected: Branch | None = None) -> ParsedFile:
    """Parse a file that anybody may have edited; `expected` is the branch that it must belong to.

    A file that cannot be read without guessing is refused, with the line. Nothing is lost: the store has all that
    Cortex wrote.
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
    return ParsedFile(
        branch=branch,
        revision=front.number("revision"),
        count=count,
        entries=tuple(entries),
        loose=tuple(words for words in loose if words),
        tags=frozenset(tags),
    )


def _body(text: str, start: int) -> tuple[list[FoundEntry], list[str], list[str]]:
    """The entries in order, the texts around them, and the tags of the last marker."""
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
    """The text between entries without the title and headings that Cortex wrote."""
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
    """The front matter, and the offset of the text after it."""
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
    """The line of each key of YAML that is one flat mapping.

    Nesting, anchors and tags are refused before anything is built: Cortex never writes them, and they let small YAML
    grow large or recurse deeply.
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
