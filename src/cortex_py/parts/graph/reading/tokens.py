"""Splits a text into sentences of tokens, and skips code.

Tokens are those of the labelled sentences that the tagger was trained on: names such as `C++`, `Node.js`, `recv()` and
`src/app.py` stay whole, so nothing is found inside a longer word ("Go" in "Google", "R" in "R&D").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["MAX_CHARACTERS", "WordToken", "code_spans", "sentences"]

MAX_CHARACTERS = 20_000  # of a text that are read
_LONGEST = 80  # tokens of a sentence; a longer one is cut, which bounds every later step
_LONGEST_WORD = 200

_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1[^\n]*$|\Z)", re.M | re.S)
_CODE_LINE = re.compile(
    r"^(?:(?:[ ]{4}|\t)(?![-*+•\d])[^\n]*[(){}\[\];=<>][^\n]*"  # indented, with the signs of code
    r"|[^\n]{0,300}(?:[;{]|\}\)?;?|=>)[ \t]*"  # ends as a statement does
    r"|[ \t]*(?:Traceback \(most recent call last\):|File \"[^\"\n]*\", line \d+[^\n]*|at [\w.$<>/]+\([^)\n]*\))[ \t]*"
    r"|[ \t]*(?:\$|>>>|\.\.\.|In \[\d+\]:)[ \t][^\n]*)$",
    re.M,
)
# A directive of reStructuredText is markup.
_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:\|[^|\n]{1,80}\| )?[\w-]{1,40}::[^\n]*$", re.M)
_CUES = json.loads(Path(__file__).with_name("cues.json").read_text("utf-8"))
_RUN = r"(?:(?:sudo|\w+=\S{0,80}|time)[ ])*(?:" + "|".join(map(re.escape, _CUES["commands"].split())) + r")[ ]"
_ARGUMENT = (
    r"(?:(?:" + "|".join(map(re.escape, _CUES["subcommands"].split())) + r")(?![\w-])|--?\w|[\w.-]{0,40}[/=]|\.)"
)
# In a line of its own the second word must be that of a command, since "make" and "go" are verbs.
_COMMAND = re.compile(
    rf"(?<=`){_RUN}[^`\n]{{1,300}}(?=`)|(?<=`)[\w./-]{{1,60}}[ ](?:[^`\n]{{0,200}}[ ])?--?\w[^`\n]{{0,200}}(?=`)"
    rf"|^[ \t]*(?:[#%>][ ])?{_RUN}(?=[^\n]{{0,60}}?(?<=[ ]){_ARGUMENT})[^\n]{{1,300}}(?<![.!?:,;])$",
    re.M,
)
_CALL = re.compile(r"[\w\])]\(|;.")
_THREE_WORDS = re.compile(r"[A-Za-z]{2} [a-z]{2,}+ [a-z]{2}")

# Repetitions are bounded, so that no failed match scans the whole text.
_TOKEN = re.compile(
    r"""
    (?P<url>(?:https?|ftp|file|ssh|git)://[^\s<>"'`]+|www\.[^\s<>"'`]+)
    |(?P<mail>[\w.+-]{1,64}@\w[\w-]{0,63}(?:\.[\w-]{1,63}){1,8})
    |(?P<tag></?[A-Za-z][\w-]*\s?/?>)
    |(?P<mention>@\w[\w-]*(?:/[\w.-]+)?)
    |n[’']t\b|[’'](?:s|m|re|ve|ll|d)\b
    |\w+(?=n[’']t\b)
    |(?P<path>(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@+-]{1,100})+[/\\]?|[\w.@+-]{1,100}(?:[/\\][\w.@+-]{1,100})+[/\\]?)
    |\.?\w+(?:(?:[-.&]|::|->)\w+)*(?:\+\+|\#)?(?:\(\))?
    |\S
    """,
    re.X,
)
_ENDS = frozenset(".!?")
_BREAK = re.compile(r"\n[ \t]*(?:\n|[-*+•>#|]|\d+[.)]|[A-Z])")
_EITHER = re.compile(r"[A-Za-z][A-Za-z+#]+/[A-Za-z][A-Za-z+#]+\Z")  # two names, and no path
_WHOLE = frozenset(("tcp/ip", "pl/sql", "ci/cd", "and/or", "gnu/linux", "os/2", "pl/pgsql", "read/write"))


class WordToken(NamedTuple):
    """A word with its place; `kind` is the named group that matched, or ""."""

    text: str
    start: int
    end: int
    kind: str


def sentences(text: str) -> Iterator[list[WordToken]]:
    """The prose sentences in the part of a text that is read."""
    text = text[:MAX_CHARACTERS]
    sentence: list[WordToken] = []
    last = 0
    for token in _tokens(text):
        gap = text[last : token.start]
        parted = (
            len(sentence) >= _LONGEST
            or ("\n" in gap and _BREAK.match(text, last + gap.index("\n")) is not None)
            or (gap and sentence and sentence[-1].text in _ENDS and not token.text[0].islower())
        )
        if parted and sentence:
            yield sentence
            sentence = []
        sentence.append(token)
        last = token.end
    if sentence:
        yield sentence


def _tokens(text: str) -> Iterator[WordToken]:
    place = 0
    for first, last in code_spans(text):
        yield from _cut(text, place, first)
        place = last
    yield from _cut(text, place, len(text))


def code_spans(text: str) -> list[tuple[int, int]]:
    """The spans of code: fenced blocks, commands, and lines that look like statements, stack frames or a console."""
    found = [match.span() for match in _FENCE.finditer(text)]
    lines = (match for match in _CODE_LINE.finditer(text) if match.end() > match.start())
    found += [match.span() for match in lines if not _ends_as_prose(match[0])]
    found += [match.span() for shape in (_COMMAND, _DIRECTIVE) for match in shape.finditer(text)]
    merged: list[tuple[int, int]] = []
    for first, last in sorted(found):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _ends_as_prose(line: str) -> bool:
    """Whether a line that ends in ";" has three words after its last code character; prose has brackets too."""
    signs = "(){}=" if _CALL.search(line) else "{}="
    return line.endswith(";") and _THREE_WORDS.search(line, 1 + max(map(line.rfind, signs))) is not None


def _cut(text: str, first: int, last: int) -> Iterator[WordToken]:
    for match in _TOKEN.finditer(text, first, last):
        start, end, kind = match.start(), match.end(), match.lastgroup or ""
        if end - start > _LONGEST_WORD:
            continue  # no name is that long
        if kind == "path":
            word = match[0]
            if _EITHER.match(word.rstrip(".")) and word.lower() not in _WHOLE:
                while text[end - 1] == ".":
                    end -= 1
                middle = start + word.index("/")
                yield WordToken(text[start:middle], start, middle, "")
                yield WordToken("/", middle, middle + 1, "")
                yield WordToken(text[middle + 1 : end], middle + 1, end, "")
                yield from (WordToken(".", at, at + 1, "") for at in range(end, match.end()))
                continue
            while text[end - 1] in ".@+-" and end - start > 1:  # the full stop of the sentence
                end -= 1
        elif kind == "url":
            while text[end - 1] in ".,;:!?)]}" and end - start > 1:
                end -= 1
        yield WordToken(text[start:end], start, end, kind)
        if end < match.end():
            yield from (WordToken(text[at], at, at + 1, "") for at in range(end, match.end()))
