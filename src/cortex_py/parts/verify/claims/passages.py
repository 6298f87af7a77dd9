"""Splits an answer into passages: sentences, quotations and code blocks, each with the headings above it. Pure.

Most answers are Markdown. A bullet means little without the line above it, so every passage has the spans of the
headings, the lead-in and the parent bullets. All offsets refer to the original text. One pass over the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["Passage", "Span", "read_passages"]

Span = tuple[int, int]

LONGEST = 1_000  # characters of a sentence; a longer one is cut between words, which bounds the time per sentence

_FENCE = re.compile(r"[ \t]{0,12}(`{3,}|~{3,})")
_TITLE = re.compile(r"(#{1,6})[ \t]+(?=\S)")
_BOLD = re.compile(r"\*\*[^*\n]{2,80}\*\*:?[ \t]*$")
_BULLET = re.compile(r"([ \t]*)(?:[-*+•‣◦–]|\d{1,3}[.)])[ \t]+(?:\[([ xX✓✔])\][ \t]+)?(?=\S)")
_TABLE = re.compile(r"[ \t]*\|[^\n]*\|[ \t]*$")
_TABLE_RULE = re.compile(r"[ \t]*\|[ \t:|-]+\|[ \t]*$")
_QUOTED = re.compile(r"[ \t]{0,3}>")
_RULE = re.compile(r"[ \t]*(?:[-=*_~][ \t]*){3,}$")
_PAUSE = re.compile(r"(?<![.!?…])(?!(?<=\s)[.…])[.!?…]++[\"'”’)\]*_`]*+(?=\s)|[。！？｡।؟]++[\"'”’」』）】]*+")
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_ELLIPSIS = ("..", "…")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:(?P<always>e\.\s?g|i\.\s?e|cf|vs|approx|dr|mrs?|resp|incl|z\.\s?b|d\.\s?h)|(?P<before_number>no|nr|fig)"
    r"|(?P<inside>etc|al|(?:[^\W\d_]\.)+[^\W\d_])|(?P<letter>[^\W\d_]))\.$",
    re.I,
)
# How the text after an abbreviation begins if the sentence goes on. What looks like a name begins the next one.
_GOES_ON = {
    "always": re.compile(""),
    "before_number": re.compile(r"\d"),
    "inside": re.compile(r"[^\W\d_A-Z]++(?!\w|[(./]\S)"),
    "letter": re.compile(r"[^\W\d_]\."),
}
_LOOKED_AT = 60
_EDGES = " \t\r\n\f\v*~|"
_INDENTED = ("    ", "\t")


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of the text; `context` has the spans of the headings above it, the nearest last."""

    kind: Literal["sentence", "quotation", "code"]
    start: int
    end: int
    context: tuple[Span, ...] = ()
    listed: bool = False
    box: bool | None = None  # whether its task-list box is ticked; None without a box
    introduces: bool = False  # a lead-in to the list below it


def read_passages(text: str) -> list[Passage]:
    """The passages of a text in order."""
    return _Reader(text).read()


class _Reader:
    """Reads lines; a paragraph or list entry stays open until something else starts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[Passage] = []
        self.titles: list[tuple[int, Span]] = []
        self.lead: Span | None = None
        self.parents: list[tuple[int, Span]] = []
        self.open: Passage | None = None
        self.fence = ""
        self.code_from = 0
        self.info: Span = (0, 0)
        self.blank = True

    def read(self) -> list[Passage]:
        at, end = 0, 0
        while at < len(self.text):
            line = self.text[at : (end := self._line_end(at))].rstrip("\r\n")
            if not self._code(line, at, end):
                self._line(line, at)
            at = end
        if self.fence:
            self._add(Passage("code", self.code_from, end, self._context()))
        self._close()
        return self.found

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end + 1

    def _code(self, line: str, at: int, end: int) -> bool:
        """Whether the line belongs to a code block or is one of its fences."""
        fence = _FENCE.match(line)
        if self.fence:
            if fence and fence[1].startswith(self.fence) and not line[fence.end() :].strip():
                self._add(Passage("code", self.code_from, at, (*self._context(), self.info)))
                self.fence = ""
            return True
        if fence is None:
            return False
        self._close()
        self.fence, self.code_from, self.info = fence[1], end, (at + fence.end(), at + len(line))
        return True

    def _line(self, line: str, at: int) -> None:
        if not line.strip() or _RULE.match(line):
            self._close()
            self.blank = True
        elif _QUOTED.match(line):
            self._close()
            self._add(Passage("quotation", at, at + len(line)))
        elif title := _TITLE.match(line):
            self._title(len(title[1]), (at + title.end(), at + len(line)))
        elif _BOLD.match(line):
            self._title(7, (at, at + len(line)))
        elif _TABLE.match(line):
            self._row(line, at)
        elif bullet := _BULLET.match(line):
            self._entry(bullet, line, at)
        else:
            self._prose(line, at)

    def _title(self, level: int, span: Span) -> None:
        self._close()
        self.titles = [title for title in self.titles if title[0] < level]
        self.titles.append((level, span))
        self.lead, self.parents, self.blank = None, [], False

    def _row(self, line: str, at: int) -> None:
        self._close()
        if _TABLE_RULE.match(line):
            if self.found and self.found[-1].listed:  # the header row
                self.found.pop()
        else:
            self._add(Passage("sentence", at, at + len(line), self._context(), listed=True))

    def _entry(self, bullet: re.Match[str], line: str, at: int) -> None:
        self._close()
        indent = len(bullet[1].expandtabs(4))
        self.parents = [parent for parent in self.parents if parent[0] < indent]
        self._announce()
        box = None if bullet[2] is None else bullet[2] != " "
        span = (at + bullet.end(), at + len(line))
        self.open = Passage("sentence", *span, self._context(), listed=True, box=box)
        self.parents.append((indent, span))
        self.blank = False

    def _announce(self) -> None:
        """Mark the passage above this list entry if it is a lead-in, or a bullet that is only a name."""
        last = self.found[-1] if self.found else None
        if last is None or last.kind != "sentence":
            return
        span, shown = (last.start, last.end), self.text[last.start : last.end].rstrip(_EDGES)
        above = span == self.lead or any(start <= span[0] <= end for _, (start, end) in self.parents)
        if above and (shown.endswith((":", "：")) or not re.search(r"\s", shown)):
            self.found[-1] = replace(last, introduces=True)

    def _prose(self, line: str, at: int) -> None:
        if self.open is not None:
            self.open = replace(self.open, end=at + len(line))
            return
        indented = line.startswith(_INDENTED)
        if indented and self.blank and not self.parents:
            self._add(Passage("code", at, at + len(line), self._context()))
            return
        if not indented:
            self.lead, self.parents = None, []
        self.open = Passage("sentence", at, at + len(line), self._context())
        self.blank = False

    def _context(self) -> tuple[Span, ...]:
        lead = () if self.lead is None else (self.lead,)
        return (*(span for _, span in self.titles), *lead, *(span for _, span in self.parents))

    def _add(self, passage: Passage) -> None:
        if passage.start < passage.end:
            self.found.append(passage)

    def _close(self) -> None:
        """Cut the open paragraph or list entry into sentences."""
        block, self.open = self.open, None
        if block is None:
            return
        for start, end in _sentences(self.text, block.start, block.end):
            self.found.append(replace(block, start=start, end=end))
        last = self.found[-1] if self.found else None
        if last and not block.listed and self.text[last.start : last.end].rstrip(_EDGES).endswith((":", "：")):
            self.lead = (last.start, last.end)


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    at = start
    code = [span.span() for span in _CODE_SPAN.finditer(text, start, end)]
    for pause in _PAUSE.finditer(text, start, end):
        while code and code[0][1] <= pause.start():
            code.pop(0)
        if (code and code[0][0] < pause.start()) or _goes_on(text, at, pause):
            continue
        yield from _cut(text, at, pause.end())
        at = pause.end()
    yield from _cut(text, at, end)


def _goes_on(text: str, start: int, pause: re.Match[str]) -> bool:
    """Whether the sentence that begins at `start` goes on after an ellipsis or an abbreviation."""
    after = text[pause.end() : pause.end() + _LOOKED_AT].lstrip()
    if pause[0].startswith(_ELLIPSIS):
        return after[:1].islower()
    found = _ABBREVIATION.search(text, max(start, pause.start() - 8), pause.end())
    return found is not None and _GOES_ON[found.lastgroup or ""].match(after) is not None


def _cut(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end and text[start] in _EDGES:
        start += 1
    while end > start and text[end - 1] in _EDGES:
        end -= 1
    while end - start > LONGEST:
        space = max(text.rfind(" ", start, start + LONGEST), text.rfind("\n", start, start + LONGEST))
        cut = space + 1 if space > start else start + LONGEST
        yield start, cut
        start = cut
    if start < end:
        yield start, end
