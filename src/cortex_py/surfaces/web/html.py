"""HTML by construction: every text and attribute is escaped when the tree is written, so no text can become markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["HtmlElement", "Node", "Raw", "document", "element"]

_EMPTY = frozenset(("br", "input", "link", "meta"))


class Raw:
    """Script or style of our own, which is written as it is."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        if "</" in text and ("</script" in text.lower() or "</style" in text.lower()):
            raise ValueError("a script or style cannot contain its own end")
        self.text = text


class HtmlElement:
    """A tag with its attributes and children."""

    __slots__ = ("_attributes", "_children", "_tag")

    def __init__(self, tag: str, attributes: dict[str, str | bool | None], children: tuple[Node, ...]) -> None:
        self._tag = tag
        self._attributes = attributes
        self._children = children

    def write(self) -> str:
        given = ((name, value) for name, value in self._attributes.items() if value not in (None, False))
        attributes = "".join(
            f" {name}" if value is True else f' {name}="{escape(str(value), quote=True)}"' for name, value in given
        )
        if self._tag in _EMPTY:
            return f"<{self._tag}{attributes}>"
        return f"<{self._tag}{attributes}>{''.join(_write(child) for child in self._children)}</{self._tag}>"


Node = HtmlElement | Raw | str | None | Iterable["Node"]


def _write(node: Node) -> str:
    if node is None:
        return ""
    if isinstance(node, str):
        return escape(node, quote=False)
    if isinstance(node, HtmlElement):
        return node.write()
    if isinstance(node, Raw):
        return node.text
    return "".join(_write(child) for child in node)


def element(tag: str, *children: Node, **attributes: str | bool | None) -> HtmlElement:
    """A tag. A trailing underscore in the name of an attribute is dropped and others become hyphens (`class_`)."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return HtmlElement(tag, named, children)


def document(*children: Node) -> str:
    return "<!doctype html>" + element("html", *children, lang="en").write()
