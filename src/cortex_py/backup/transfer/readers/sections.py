"""Cuts Markdown into statements: one for each list item or paragraph, with the headings above it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Statement", "section_texts", "statements"]

_HEADING = re.compile(r" {0,3}(#{1,6})\s++(.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*\Z")
_ITEM = re.compile(r"( {0,3})(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?(?=\S)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_RULER = re.compile(r" {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})\Z")


@dataclass(frozen=True, slots=True)
class Statement:
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


def statements(text: str) -> Iterator[Statement]:
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
            yield Statement(f"{intro} {body}" if intro else body, headings, block.first, has_title)


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
