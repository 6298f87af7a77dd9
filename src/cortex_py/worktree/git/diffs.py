"""Patches as `git diff -U0` prints them, read line by line: which files changed, by how much, and which
names came and went.

How many lines a hunk has stands in its header, so a line that looks like a header is never taken for one.
Names come from the files that people write: what is binary, generated, vendored, locked or private by its
name gives none, nor does minified code. Nothing here touches the disk or git.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from .choice import name_reason
from .git import text_of

__all__ = [
    "MOST_BYTES",
    "MOST_FILES",
    "MOST_LISTED",
    "Change",
    "Line",
    "PatchReader",
    "Status",
    "added_lines",
    "added_whole",
    "label",
    "listed_paths",
    "names",
    "split_lines",
]

Status = Literal["added", "modified", "deleted", "renamed"]

# How much of one commit is read for names, and how many of its files are told of at all.
MOST_FILES = 400
MOST_BYTES = 2_000_000
MOST_LISTED = 5_000

_LONGEST = 2_000
# Far above what is read of a line, and above any pair of paths in a header.
_LONGEST_BYTES = 40_000
_SLICE = 1_024
_CHUNK = 1 << 16
# Lines that nobody typed: so long on average, in a change of some size. People do write prose this way.
_DENSE_LINE = 300
_DENSE_BYTES = 2_500
_PROSE = (".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc", ".org", ".tex")

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?")
# Letters that could not be read stay part of their word, so that no half of it passes for a name.
_WORD = re.compile(r"[\w$\ufffd]+")
_NAME = re.compile(r"([A-Za-z_$][\w$]{1,80}+)(?![\w$\ufffd])|[\w$\ufffd]+")
_LAST_WORD = re.compile(rb"[\w$\x80-\xff]+\Z")
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_NO_FILE = (b" 120000", b" 160000")
# git keeps no more of the line that it shows as a hunk's context.
_CONTEXT_BYTES = 80
# How far git itself looks for a NUL.
_BINARY_BYTES = 8_000


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit, or the work since, did to one file.

    `path` is where the file is after the change, in the form that files are shown in; `old_path` is where
    a renamed or copied one was (a copy counts as added). `introduced` are names on added lines alone,
    `dropped` on removed lines alone, `touched` on both, or in the line that git shows as a hunk's context.
    """

    path: str
    old_path: str | None
    status: Status
    added: int
    removed: int
    introduced: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    touched: frozenset[str] = frozenset()


class Line(NamedTuple):
    """A changed line: its number is that in the new file for "+", in the old one for "-"."""

    sign: Literal["+", "-"]
    number: int
    text: str


def label(path: bytes) -> str:
    """A path of a repository in the form to store and to show."""
    return path.decode("utf-8", "backslashreplace")


def names(lines: Sequence[bytes]) -> frozenset[str]:
    """The identifiers on some lines; what lies beyond the length that is read of a line is left out."""
    if not lines:
        return frozenset()
    is_short = max(map(len, lines)) <= _LONGEST
    text = text_of(b"\n".join(lines)) if is_short else "\n".join(map(_cut, lines))
    # Every other word leaves an empty text.
    return frozenset(_NAME.findall(text)) - {""}


def split_lines(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """The lines of a stream without their ends, each cut to a length that is safe to hold."""
    rest = b""
    while chunk := read(_CHUNK):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()[:_LONGEST_BYTES]
        if lines and max(map(len, lines)) > _LONGEST_BYTES:
            lines = [line[:_LONGEST_BYTES] for line in lines]
        yield from lines
    if rest:
        yield rest


def added_whole(path: bytes, data: bytes) -> Change:
    """A file that git does not know yet, as a change."""
    lines = _content_lines(data)
    is_read = _gives_names(label(path)) and not _is_dense(label(path), lines)
    return Change(label(path), None, "added", len(lines), 0, names(lines) if is_read else frozenset())


def added_lines(data: bytes, most_bytes: int) -> tuple[tuple[Line, ...], bool]:
    """The lines of such a file, and whether these are all of them."""
    lines = _content_lines(data)
    return PatchReader(iter([b"@@ -0,0 +1,%d @@" % len(lines), *(b"+" + line for line in lines)])).lines_of(
        b"", most_bytes
    )


def listed_paths(listing: bytes) -> list[tuple[bytes, bytes]]:
    """The old and the new path of each file in a raw listing."""
    parts = iter(listing.split(b"\0"))
    found: list[tuple[bytes, bytes]] = []
    for facts in parts:
        if facts.startswith(b":"):
            old = next(parts)
            is_pair = facts.rpartition(b" ")[2].startswith((b"R", b"C"))
            found.append((old, next(parts) if is_pair else old))
    return found


class PatchReader:
    """Reads changes off a stream of lines, which may hold other things between them.

    `line` is the line that was not yet understood, None at the end.
    """

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self.line = next(lines, None)

    def advance(self) -> bytes | None:
        """The next line, after the current one is done with."""
        self.line = next(self._lines, None)
        return self.line

    def changes(self) -> tuple[tuple[Change, ...], bool]:
        """The changes up to a line that starts with a NUL or to the end, and whether all was read for names."""
        found: list[Change] = []
        last: _File | None = None
        left, count = MOST_BYTES, 0
        is_complete = True
        for file, hunk in self._hunks():
            if hunk is None:
                if last is not None and count <= MOST_LISTED:
                    found.append(last.change())
                last, count = file, count + 1
                if count > MOST_FILES:
                    file.is_limited, is_complete = True, False
                continue
            removed, added = _length(hunk[2]), _length(hunk[4])
            file.removed += removed
            file.added += added
            is_wanted = file.is_wanted
            if is_wanted and (context := hunk.string[hunk.end() :]):
                file.contexts.append(context)
            for lines, wanted in ((file.minus, removed), (file.plus, added)):
                for part in self._take(wanted):
                    if is_wanted and left >= 0:
                        left -= sum(map(len, part))
                        lines += part
            if is_wanted and left < 0:
                # Of half a patch, names would seem dropped that only moved.
                file.is_limited, is_complete = True, False
        if last is not None and count <= MOST_LISTED:
            found.append(last.change())
        return tuple(found), is_complete

    def lines_of(self, path: bytes, most_bytes: int) -> tuple[tuple[Line, ...], bool]:
        """The changed lines of one file among those in the patch, and whether these are all of them."""
        found: list[Line] = []
        for file, hunk in self._hunks():
            if hunk is None:
                continue
            sides: tuple[tuple[Literal["+", "-"], int, int], ...]
            sides = (("-", int(hunk[1]), _length(hunk[2])), ("+", int(hunk[3]), _length(hunk[4])))
            for sign, number, count in sides:
                for part in self._take(count):
                    for line in part if file.path == path else ():
                        most_bytes -= len(line)
                        if most_bytes < 0:
                            return tuple(found), False
                        found.append(Line(sign, number, text_of(line[1:]).removesuffix("\r")[:_LONGEST]))
                        number += 1
        return tuple(found), True

    def _hunks(self) -> Iterator[tuple[_File, re.Match[bytes] | None]]:
        """Each file as it begins, then each of its hunks; who is given a hunk takes the lines that follow."""
        file = _File(b"")
        line = self.line
        while line is not None and not line.startswith(b"\0"):
            if line.startswith(b"@@ "):
                if (match := _HUNK.match(line)) is not None:
                    yield file, match
            elif line.startswith(b"diff --git "):
                path = _path_of(line)
                # A file that became a link, or the reverse, is shown as deleted and then as new.
                if path != file.path or file.status != "deleted":
                    file = _File(path)
                    yield file, None
                file.is_plain = True
            else:
                file.understand(line)
            line = self.advance()

    def _take(self, count: int) -> Iterator[list[bytes]]:
        """The next lines of one side of a hunk, some at a time."""
        while count > 0 and (part := list(islice(self._lines, min(count, _SLICE)))):
            # The other side's last line had no end, which git tells after it.
            if part[0].startswith(b"\\"):
                del part[0]
            count -= len(part)
            yield part


@dataclass(slots=True)
class _File:
    """What is known of a file while its patch is read."""

    path: bytes
    old_path: bytes | None = None
    status: Status = "modified"
    added: int = 0
    removed: int = 0
    is_plain: bool = True
    is_limited: bool = False
    plus: list[bytes] = field(default_factory=list)
    minus: list[bytes] = field(default_factory=list)
    contexts: list[bytes] = field(default_factory=list)

    def understand(self, line: bytes) -> None:
        """Take in a line of the header; those that say nothing new are passed over."""
        if line.startswith((b"rename from ", b"copy from ")):
            self.old_path = _unquoted(line.partition(b" from ")[2])
            self.status = "renamed" if line.startswith(b"rename") else "added"
        elif line.startswith((b"rename to ", b"copy to ")):
            self.path = _unquoted(line.partition(b" to ")[2])
        elif line.startswith(b"new file mode "):
            self.status = "modified" if self.status == "deleted" else "added"
            self.is_plain = not line.endswith(_NO_FILE)
        elif line.startswith(b"deleted file mode "):
            self.status = "deleted"
            self.is_plain = not line.endswith(_NO_FILE)
        elif line.startswith(b"index ") and line.endswith(_NO_FILE):
            self.is_plain = False

    @property
    def is_wanted(self) -> bool:
        """Whether lines that follow are read for names."""
        return self.is_plain and not self.is_limited and _gives_names(label(self.path))

    def change(self) -> Change:
        path = label(self.path)
        old_path = None if self.old_path is None else label(self.old_path)
        if self.is_limited or not (self.plus or self.minus) or _is_dense(path, self.plus + self.minus):
            return Change(path, old_path, self.status, self.added, self.removed)
        plus, minus = names(self.plus), names(self.minus)
        touched = (plus & minus) | names([_whole(context) for context in self.contexts])
        return Change(
            path,
            old_path,
            self.status,
            self.added,
            self.removed,
            plus - minus,
            minus - plus,
            touched,
        )


def _content_lines(data: bytes) -> list[bytes]:
    """The lines of a whole file; none of what git would take for binary."""
    is_text = data and b"\0" not in data[:_BINARY_BYTES]
    return data.removesuffix(b"\n").split(b"\n") if is_text else []


def _length(text: bytes | None) -> int:
    return 1 if text is None else int(text)


def _path_of(line: bytes) -> bytes:
    """The path in a line like `diff --git a/x b/x`: unless another line tells of two, both halves are the same."""
    pair = line[len(b"diff --git ") :]
    return _unquoted(pair[len(pair) // 2 + 1 :])[2:]


def _unquoted(name: bytes) -> bytes:
    """A path as git shows it, without the quotes and escapes that odd characters bring."""
    if not (name.startswith(b'"') and name.endswith(b'"')):
        return name
    return _ESCAPE.sub(_escaped, name[1:-1])


def _escaped(match: re.Match[bytes]) -> bytes:
    sign = match[1]
    return bytes((int(sign, 8) & 0xFF,)) if len(sign) == 3 else _ESCAPED.get(sign, sign)


@lru_cache(maxsize=4_096)
def _gives_names(path: str) -> bool:
    return name_reason(path) is None


def _is_dense(path: str, lines: Sequence[bytes]) -> bool:
    size = sum(map(len, lines))
    return size > max(_DENSE_BYTES, _DENSE_LINE * len(lines)) and not path.lower().endswith(_PROSE)


def _cut(line: bytes) -> str:
    """The beginning of a line, up to the end of a word."""
    text = text_of(line)
    if len(text) <= _LONGEST:
        return text
    text = text[:_LONGEST]
    last = _WORD.match(text[::-1])
    return text[: -last.end()] if last else text


def _whole(context: bytes) -> bytes:
    """The line beside a hunk's header, without the word that git may have cut."""
    return _LAST_WORD.sub(b"", context) if len(context) >= _CONTEXT_BYTES else context
