"""What a WebDAV server says is in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from .target_faults import TargetProblem, Trouble

__all__ = ["QUESTION", "Resource", "moment", "resources"]

QUESTION = (
    b'<?xml version="1.0" encoding="utf-8"?>'
    b'<propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/></prop></propfind>'
)


class Resource(NamedTuple):
    """A file or a folder, with its path on the server, decoded and without a slash at its end."""

    path: str
    folder: bool
    size: int
    changed: datetime | None


class _Plain(ElementTree.TreeBuilder):
    """Refuses documents that define entities of their own: a few lines of those can fill the memory."""

    def doctype(self, *_: object) -> None:
        raise TargetProblem(Trouble.REFUSED)


def resources(document: bytes) -> Iterator[Resource]:
    """All that an answer of status 207 tells of; what cannot be understood is left out."""
    parser = ElementTree.XMLParser(target=_Plain())
    try:
        parser.feed(document)
        root = parser.close()
    except (ElementTree.ParseError, LookupError, ValueError):
        raise TargetProblem(Trouble.REFUSED) from None
    for response in root.iter("{DAV:}response"):
        try:
            path = unquote(urlsplit(response.findtext("{DAV:}href", "").strip()).path, errors="strict")
        except ValueError:
            continue
        size = _first(response, "{DAV:}getcontentlength")
        yield Resource(
            path=path.rstrip("/"),
            folder=response.find(".//{DAV:}resourcetype/{DAV:}collection") is not None,
            size=int(size) if size.isascii() and size.isdigit() and len(size) < 19 else 0,
            changed=moment(_first(response, "{DAV:}getlastmodified")),
        )


def moment(text: str) -> datetime | None:
    """A date as HTTP writes it."""
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC)


def _first(response: ElementTree.Element, tag: str) -> str:
    return next((one.text or "" for one in response.iter(tag)), "").strip()
