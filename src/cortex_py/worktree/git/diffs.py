"""Reads patches as `git diff -U0` prints them: which files changed, by how many lines, and which names came and went.

A hunk's header gives its number of lines, so a content line that looks like a header is never taken for one. Names are
read from hand-written files only: binary, generated, vendored, locked, private and minified files give none. This
module does not touch the disk or start git.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from ..files.choice import skip_by_name
from .repository import decode_output

__all__ = [
    "MOST_BYTES", "MOST_FILES", "MOST_LISTED", "ChangedLine", "PatchFile", "PatchReader", "Status", "TextCleaner",
    "find_names", "new_file_change", "new_file_lines", "parse_raw_listing", "path_label",
]  # fmt: skip

Status = Literal["added", "modified", "deleted", "renamed"]
# Removes what may not be stored, such as secrets.
TextCleaner = Callable[[str], str]

# How much of one commit is read for names, and how many of its files are listed at all.
MOST_FILES = 400
MOST_BYTES = 2_000_000
MOST_LISTED = 5_000

_LONGEST = 2_000
LINES_AT_ONCE = 1_024
# Lines this long on average, in a change of this size, were not typed by hand, except in prose.
_DENSE_LINE = 300
_DENSE_BYTES = 2_500
_PROSE = (".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc", ".org", ".tex")

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?")
# Undecodable letters stay part of their word, so that half a word is never taken for a name.
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
class PatchFile:
    """What a commit, or the uncommitted work, did to one file.

    `path` is the path after the change, in display form; `old_path` is the former path of a renamed or copied file (a
    copy counts as added). `introduced` are names on added lines only, `dropped` on removed lines only, `touched` on
    both, or in the line that git prints as a hunk's context.
    """

    path: str
    old_path: str | None
    status: Status
    added: int
    removed: int
    introduced: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    touched: frozenset[str] = frozenset()


class ChangedLine(NamedTuple):
    """A changed line: its number is that in the new file for "+", in the old one for "-"."""

    sign: Literal["+", "-"]
    number: int
    text: str


def path_label(path: bytes) -> str:
    """A repository path as it is stored and displayed."""
    return path.decode("utf-8", "backslashreplace")


def find_names(lines: Sequence[bytes], clean: TextCleaner = str) -> frozenset[str]:
    """The identifiers on some lines; very long lines are read up to a limit."""
    if not lines:
        return frozenset()
    is_short = max(map(len, lines)) <= _LONGEST
    text = decode_output(b"\n".join(lines)) if is_short else "\n".join(map(_cut, lines))
    # Every other word leaves an empty text.
    return frozenset(_NAME.findall(clean(text))) - {""}


def new_file_change(path: bytes, data: bytes) -> PatchFile:
    """An untracked file as a change."""
    lines = _content_lines(data)
    is_read = _gives_names(path_label(path)) and not _is_dense(path_label(path), lines)
    return PatchFile(path_label(path), None, "added", len(lines), 0, find_names(lines) if is_read else frozenset())


def new_file_lines(data: bytes, most_bytes: int) -> tuple[tuple[ChangedLine, ...], bool]:
    """The lines of an untracked file, and whether these are all of them."""
    lines = _content_lines(data)
    return PatchReader(iter([b"@@ -0,0 +1,%d @@" % len(lines), *(b"+" + line for line in lines)])).lines_of(
        b"", most_bytes
    )


def parse_raw_listing(listing: bytes) -> list[tuple[bytes, bytes]]:
    """The old and the new path of each file in a raw listing; a truncated entry is skipped."""
    parts = iter(listing.split(b"\0"))
    found: list[tuple[bytes, bytes]] = []
    for facts in parts:
        if facts.startswith(b":"):
            old = next(parts, None)
            is_pair = facts.rpartition(b" ")[2].startswith((b"R", b"C"))
            new = next(parts, None) if is_pair else old
            if old is not None and new is not None:
                found.append((old, new))
    return found


class PatchReader:
    """Reads changes from a stream of lines that may hold other things between them.

    `line` is the next unread line, None at the end.
    """

    def __init__(self, lines: Iterator[bytes], clean: TextCleaner = str) -> None:
        self._lines = lines
        self._clean = clean
        self.line = next(lines, None)

    def advance(self) -> bytes | None:
        """Move to the next line and return it."""
        self.line = next(self._lines, None)
        return self.line

    def changes(self) -> tuple[tuple[PatchFile, ...], bool]:
        """The changes up to a line that starts with a NUL or to the end, and whether all was read for names."""
        found: list[PatchFile] = []
        last: _File | None = None
        left, count = MOST_BYTES, 0
        is_complete = True
        for file, hunk in self._hunks():
            if hunk is None:
                if last is not None and count <= MOST_LISTED:
                    found.append(last.change(self._clean))
                last, count = file, count + 1
                if count > MOST_FILES:
                    file.is_limited, is_complete = True, False
                continue
            removed, added = _length(hunk[2]), _length(hunk[4])
            file.removed += removed
            file.added += added
            is_wanted = file.is_wanted
            if is_wanted and (context := hunk.string[hunk.end() : hunk.end() + _CONTEXT_BYTES]):
                file.contexts.append(context)
            for lines, wanted in ((file.minus, removed), (file.plus, added)):
                for part in self._take(wanted):
                    if is_wanted and left >= 0:
                        left -= sum(map(len, part))
                        lines += part
            if is_wanted and left < 0:
                # In half a patch, a name that only moved would seem dropped.
                file.is_limited, is_complete = True, False
        if last is not None and count <= MOST_LISTED:
            found.append(last.change(self._clean))
        return tuple(found), is_complete

    def lines_of(self, path: bytes, most_bytes: int) -> tuple[tuple[ChangedLine, ...], bool]:
        """The changed lines of one file among those in the patch, and whether these are all of them."""
        found: list[ChangedLine] = []
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
                        found.append(ChangedLine(sign, number, decode_output(line[1:]).removesuffix("\r")[:_LONGEST]))
                        number += 1
        return tuple(found), True

    def _hunks(self) -> Iterator[tuple[_File, re.Match[bytes] | None]]:
        """Each file, then each of its hunks; the consumer takes the lines that follow a hunk's header."""
        file = _File(b"")
        line = self.line
        while line is not None and not line.startswith(b"\0"):
            if line.startswith(b"@@ "):
                if (match := _HUNK.match(line)) is not None:
                    yield file, match
            elif line.startswith(b"diff --git "):
                path = _path_of(line)
                # git prints a file that became a link, or the reverse, as deleted and then as new.
                if path != file.path or file.status != "deleted":
                    file = _File(path)
                    yield file, None
                file.is_plain = True
            else:
                file.read_header(line)
            line = self.advance()

    def _take(self, count: int) -> Iterator[list[bytes]]:
        """The next lines of one side of a hunk, some at a time."""
        while count > 0 and (part := list(islice(self._lines, min(count, LINES_AT_ONCE)))):
            # "\ No newline at end of file" belongs to the other side's last line.
            if part[0].startswith(b"\\"):
                del part[0]
            count -= len(part)
            yield part


@dataclass(slots=True)
class _File:
    """A file whose patch is being read."""

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

    def read_header(self, line: bytes) -> None:
        """Apply a header line; lines without new information are ignored."""
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
        return self.is_plain and not self.is_limited and _gives_names(path_label(self.path))

    def change(self, clean: TextCleaner) -> PatchFile:
        path = path_label(self.path)
        old_path = None if self.old_path is None else path_label(self.old_path)
        if self.is_limited or not (self.plus or self.minus) or _is_dense(path, self.plus + self.minus):
            return PatchFile(path, old_path, self.status, self.added, self.removed)
        plus, minus = find_names(self.plus, clean), find_names(self.minus, clean)
        touched = (plus & minus) | find_names([_whole(context) for context in self.contexts], clean)
        return PatchFile(path, old_path, self.status, self.added, self.removed, plus - minus, minus - plus, touched)


def _content_lines(data: bytes) -> list[bytes]:
    """The lines of a whole file; none of a file that git would treat as binary."""
    is_text = data and b"\0" not in data[:_BINARY_BYTES]
    return data.removesuffix(b"\n").split(b"\n") if is_text else []


def _length(text: bytes | None) -> int:
    return 1 if text is None else int(text)


def _path_of(line: bytes) -> bytes:
    """The path in `diff --git a/x b/x`; both halves are equal unless a later header line gives two paths."""
    pair = line[len(b"diff --git ") :]
    return _unquoted(pair[len(pair) // 2 + 1 :])[2:]


def _unquoted(name: bytes) -> bytes:
    """A path without the quotes and escapes that git adds for unusual characters."""
    if not (name.startswith(b'"') and name.endswith(b'"')):
        return name
    return _ESCAPE.sub(_escaped, name[1:-1])


def _escaped(match: re.Match[bytes]) -> bytes:
    sign = match[1]
    return bytes((int(sign, 8) & 0xFF,)) if len(sign) == 3 else _ESCAPED.get(sign, sign)


@lru_cache(maxsize=4_096)
def _gives_names(path: str) -> bool:
    return skip_by_name(path) is None


def _is_dense(path: str, lines: Sequence[bytes]) -> bool:
    size = sum(map(len, lines))
    return size > max(_DENSE_BYTES, _DENSE_LINE * len(lines)) and not path.lower().endswith(_PROSE)


def _cut(line: bytes) -> str:
    """The beginning of a line, up to the end of a word."""
    text = decode_output(line)
    if len(text) <= _LONGEST:
        return text
    text = text[:_LONGEST]
    last = _WORD.match(text[::-1])
    return text[: -last.end()] if last else text


def _whole(context: bytes) -> bytes:
    """The context in a hunk's header, without a last word that git may have cut."""
    return _LAST_WORD.sub(b"", context) if len(context) >= _CONTEXT_BYTES else context
