"""XML as elements that know their lines. Documents that declare types or entities are refused before parsing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

__all__ = ["Element", "read_xml"]

_DEPTH_MOST = 200
# Long texts in a report are what a test printed, and nobody looks for them here.
_TEXT_MOST = 10_000
_PROLOGUE = re.compile(r"(?:\s++|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)


@dataclass(slots=True)
class Element:
    """An element, its name without a namespace's prefix."""

    tag: str
    line: int
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def child(self, tag: str) -> Element | None:
        return next((one for one in self.children if one.tag == tag), None)

    def text_of(self, tag: str) -> str:
        one = self.child(tag)
        return one.text.strip() if one else ""

    def all(self) -> Iterator[Element]:
        """This element and those within, in order."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting.extend(reversed(one.children))


def read_xml(text: str) -> Element:
    """Raises ValueError for what is no XML, or has a document type."""
    text = text.removeprefix("\ufeff")
    prologue = _PROLOGUE.match(text)
    if prologue is None or not text.startswith("<", prologue.end()) or text.startswith("<!", prologue.end()):
        raise ValueError("no plain XML")
    builder = _Builder()
    try:
        builder.parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ValueError("no XML") from error
    if builder.root is None:
        raise ValueError("empty")
    return builder.root


class _Builder:
    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._refuse

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _DEPTH_MOST:
            raise ValueError("nested too deeply")
        element = Element(tag.rpartition(":")[2], self.parser.CurrentLineNumber, attributes)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, _tag: str) -> None:
        self._open.pop()

    def _characters(self, data: str) -> None:
        element = self._open[-1]
        if len(element.text) < _TEXT_MOST:
            element.text += data[:_TEXT_MOST]

    def _refuse(self, *_declaration: object) -> None:
        raise ValueError("a document type")
