"""Ignore rules as git reads them, for folders without a repository.

Rules and paths are bytes, as in git: `?` matches one byte, not one character. Matching takes at most quadratic time,
whatever the pattern. That is why this is not `pathspec`: its regular expressions backtrack, and one pattern of 24
characters ("*a" twelve times and a "b") against a name of 40 takes minutes. This module does not touch the disk.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

__all__ = ["IgnoreRules"]

_DEEP = None
_Step = re.Pattern[bytes] | None

# No path is longer, so a longer pattern can be skipped.
_LONGEST_LINE = 4_096
_POSIX = {
    b"alnum": rb"[0-9A-Za-z]", b"alpha": rb"[A-Za-z]", b"blank": rb"[ \t]", b"cntrl": rb"[\x00-\x1f\x7f]",
    b"digit": rb"[0-9]", b"graph": rb"[!-~]", b"lower": rb"[a-z]", b"print": rb"[ -~]", b"punct": rb"[!-/:-@\[-`{-~]",
    b"space": rb"[ \t\n\r\f\v]", b"upper": rb"[A-Z]", b"xdigit": rb"[0-9A-Fa-f]",
}  # fmt: skip
_BYTES = bytes(range(256))


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line: its pattern as steps from folder to folder, where None stands for any number of them."""

    steps: tuple[_Step, ...]
    ignores: bool
    folders_only: bool
    anchored: bool


@dataclass(frozen=True)
class IgnoreRules:
    """The rules that hold in a folder: those of its own file before those of the folders above."""

    text: bytes
    folder: bytes = b""
    above: IgnoreRules | None = None

    @cached_property
    def _rules(self) -> Sequence[_Rule]:
        lines = self.text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        # The last rule that matches decides, so it is asked first.
        return [rule for line in reversed(lines) if (rule := _rule(line.removesuffix(b"\r")))]

    def ignored(self, path: bytes, *, is_folder: bool) -> bool:
        """Whether a path below the outermost of these folders is ignored, provided its parents are not."""
        rules: IgnoreRules | None = self
        while rules is not None:
            names = path[len(rules.folder) + 1 if rules.folder else 0 :].split(b"/")
            for rule in rules._rules:
                if (is_folder or not rule.folders_only) and _matches(rule, names):
                    return rule.ignores
            rules = rules.above
        return False


def _rule(line: bytes) -> _Rule | None:
    """The rule of a line; None for a comment, a blank line, or a pattern that can match nothing."""
    if line.startswith(b"#") or len(line) > _LONGEST_LINE:
        return None
    line = _without_trailing_spaces(line)
    ignores = not line.startswith(b"!")
    pattern = line.removeprefix(b"!") if not ignores else line
    folders_only = pattern.endswith(b"/")
    pattern = pattern.removesuffix(b"/")
    anchored = b"/" in pattern
    parts = pattern.removeprefix(b"/").split(b"/")
    if not pattern.strip(b"/"):
        return None
    steps: list[_Step] = []
    for part in parts:
        if anchored and len(part) > 1 and not part.strip(b"*"):
            steps += [] if steps and steps[-1] is _DEEP else [_DEEP]
        elif (regex := _step(part)) is not None:
            steps.append(re.compile(regex, re.DOTALL))
        else:
            return None
    return _Rule(tuple(steps), ignores, folders_only, anchored)


def _without_trailing_spaces(line: bytes) -> bytes:
    """The line without trailing spaces, except one escaped by a backslash."""
    short = line.rstrip(b" ")
    is_kept = (len(short) - len(short.rstrip(b"\\"))) % 2 == 1
    return line[: len(short) + is_kept]


def _matches(rule: _Rule, names: Sequence[bytes]) -> bool:
    """Whether the steps match the names; after a mismatch, only the last `**` takes one more name."""
    steps = rule.steps
    if not rule.anchored:
        return steps[0] is not None and steps[0].match(names[-1]) is not None
    step = name = 0
    again: tuple[int, int] | None = None
    while name < len(names):
        if step < len(steps) and (here := steps[step]) is _DEEP:
            # At the end it matches what is inside the folder, never the folder itself.
            if step == len(steps) - 1:
                return True
            step, again = step + 1, (step + 1, name + 1)
        elif step < len(steps) and here is not None and here.match(names[name]):
            step, name = step + 1, name + 1
        elif again is not None:
            step, name = again
            again = (step, name + 1)
        else:
            return False
    return step == len(steps)


def _step(pattern: bytes) -> bytes | None:
    """A regular expression for one name; None if the pattern is malformed and matches nothing.

    Every star but the last keeps its first match: a later one would only leave less for what follows. So a hostile
    pattern cannot cause exponential backtracking.
    """
    pieces = [b""]
    at = 0
    while at < len(pattern):
        sign = pattern[at : at + 1]
        at += 1
        if sign == b"*":
            pieces += [b""] if pieces[-1] or len(pieces) == 1 else []
        elif sign == b"?":
            pieces[-1] += b"."
        elif sign == b"[":
            found = _class(pattern, at)
            if found is None:
                return None
            chosen, at = found
            pieces[-1] += chosen
        elif sign == b"\\":
            if at == len(pattern):
                return None
            pieces[-1] += re.escape(pattern[at : at + 1])
            at += 1
        else:
            pieces[-1] += re.escape(sign)
    if len(pieces) == 1:
        return pieces[0] + rb"\Z"
    middle = b"".join(b"(?>.*?%b)" % piece for piece in pieces[1:-1])
    return b"%b%b.*%b\\Z" % (pieces[0], middle, pieces[-1])


def _class(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """The bytes that `[…]` matches, as a regular expression, and the position after it."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    chosen: set[int] = set()
    low: int | None = None
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        if at >= len(pattern):
            return None
        if pattern[at : at + 2] == b"[:" and (end := pattern.find(b":]", at)) >= 0:
            name = _POSIX.get(pattern[at + 2 : end])
            if name is None:
                return None
            chosen.update(b"".join(re.findall(name, _BYTES)))
            at, low = end + 2, None
            continue
        is_range = low is not None and pattern[at : at + 1] == b"-" and pattern[at + 1 : at + 2] not in (b"", b"]")
        at += is_range
        at += pattern[at : at + 1] == b"\\"
        if at >= len(pattern):
            return None
        high = pattern[at]
        chosen.update(range(low if is_range and low is not None else high, high + 1))
        at, low = at + 1, None if is_range else high
    wanted = set(range(256)) - chosen if negated else chosen
    wanted.discard(ord("/"))
    regex = b"".join(re.escape(bytes([byte])) for byte in sorted(wanted))
    return (b"[%b]" % regex if regex else b"(?!)"), at + 1
