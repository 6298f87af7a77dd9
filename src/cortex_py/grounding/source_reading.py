"""Where the head of a definition ends, and what it takes, read off its lines in any language with brackets. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["header_end", "parameters", "values_on"]

_LONGEST_HEAD = 80
_OPEN, _CLOSE = "([{", ")]}"
_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`[^`\n]*`")
_COMMENT = re.compile(r"(?:(?<=\s)|^)(?:#|//).*$", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])-?(?:0x[0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.]*\.\d)")
_MARKS = frozenset(("*", "/", ""))
_RECEIVERS = frozenset(("self", "cls", "this", "&self", "&mut"))


def header_end(lines: Sequence[str], first: int, last: int) -> int:
    """The line, counted from 1, where the brackets of a definition's head are closed."""
    depth, opened = 0, False
    for number in range(first, min(last, first + _LONGEST_HEAD, len(lines)) + 1):
        plain = _COMMENT.sub("", _STRING.sub("''", lines[number - 1]))
        for sign in plain:
            if sign == "(":
                depth, opened = depth + 1, True
            elif sign == ")":
                depth -= 1
        if depth <= 0 and (opened or plain.rstrip().endswith((":", "{", ";", "=>")) or number == last):
            return number
    return min(last, first + _LONGEST_HEAD)


def parameters(lines: Sequence[str], first: int, last: int, *, method: bool) -> list[str] | None:
    """The parameters in the first brackets of a definition's head, a method's without its receiver; None without."""
    end = header_end(lines, first, last)
    text = "\n".join(lines[first - 1 : end])
    text = _COMMENT.sub("", _STRING.sub("''", text))
    begin = text.find("(")
    if begin < 0:
        return None
    depth, parts, at = 0, [], begin + 1
    for place in range(begin, len(text)):
        if text[place] in _OPEN:
            depth += 1
        elif text[place] in _CLOSE:
            depth -= 1
        if depth == 0 or (depth == 1 and text[place] == ","):
            parts.append(text[at:place].strip())
            at = place + 1
        if depth == 0:
            break
    left_out = _MARKS | _RECEIVERS if method else _MARKS
    return [part for part in parts if re.split(r"[:=\s]", part)[0] not in left_out]


def values_on(line: str) -> list[float]:
    """The numbers of a line of source, products among them: `60 * 60` is also 3600."""
    plain = _COMMENT.sub("", line)
    found = [_number(match[0]) for match in _NUMBER.finditer(plain)]
    for match in re.finditer(r"\d[\d_]*(?:\s*\*\s*\d[\d_]*)+", plain):
        product = 1.0
        for factor in match[0].split("*"):
            product *= float(factor.replace("_", "").strip())
        found.append(product)
    return found


def _number(written: str) -> float:
    plain = written.replace("_", "")
    return float(int(plain, 16)) if "0x" in plain else float(plain)
