"""What a project's changelog says of each version: its sections and bullets, from Markdown or reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

NAMES = ("changes", "changelog", "history", "release-notes", "news")
SUFFIXES = ("", ".md", ".rst", ".txt")

_HEADING = re.compile(
    r"^(?P<marks>#{1,3}\s+)?(?:version\s+|release\s+|[a-z][\w-]*\s+)?\[?v?(?P<version>\d+(?:\.\d+){1,3})\b(?P<rest>.*)$",
    re.IGNORECASE,
)
_UNDERLINE = re.compile(r"^([=\-~^*+\"'])\1{3,}\s*$")
_BULLET = re.compile(r"^(?P<indent>\s*)[-*]\s+(?P<text>\S.*)$")
_ROLE = re.compile(r":(?P<role>[\w:]+):`(?P<body>[^`]+)`")
_SYMBOLS = frozenset({"class", "func", "meth", "attr", "exc", "mod", "data", "obj", "option", "deco", "file"})


@dataclass(frozen=True)
class Bullet:
    """One entry of a changelog: its text in one line, and the lines that it fills (from 1)."""

    text: str
    first: int
    last: int


@dataclass(frozen=True)
class Section:
    """What is said of one version: its heading is the first of the lines (from 1)."""

    version: str
    first: int
    last: int
    body: str
    bullets: tuple[Bullet, ...]


def changelog_path(paths: Iterable[str]) -> str | None:
    """The path of the changelog among those of a project: the one nearest to the root."""
    found = []
    for path in paths:
        name = path.rsplit("/", 1)[-1].lower()
        if any(name == stem + suffix for stem in NAMES for suffix in SUFFIXES):
            found.append((path.count("/"), path))
    return min(found)[1] if found else None


def sections(text: str) -> list[Section]:
    lines = text.splitlines()
    starts: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        match = _HEADING.match(line)
        if match is None:
            continue
        underlined = number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]) is not None
        if match["marks"] or (underlined and len(line) < 80):
            starts.append((number, match["version"]))
    found = []
    for place, (number, version) in enumerate(starts):
        end = starts[place + 1][0] if place + 1 < len(starts) else len(lines)
        skipped = number + 1 + (number + 1 < end and _UNDERLINE.match(lines[number + 1]) is not None)
        body = "\n".join(lines[skipped:end]).strip()
        found.append(Section(version, number + 1, end, body, tuple(_bullets(lines, skipped, end))))
    return found


def section(text: str, version: str) -> Section | None:
    return next((one for one in sections(text) if one.version == version), None)


def _bullets(lines: list[str], start: int, end: int) -> Iterator[Bullet]:
    """The bullets of some lines; what is set in below a bullet belongs to it, up to a blank line or another bullet."""
    gathered: list[str] = []
    first = start
    for number in range(start, end + 1):
        line = lines[number] if number < end else ""
        match = _BULLET.match(line)
        goes_on = match is None and bool(gathered) and line.startswith(" ") and bool(line.strip())
        if goes_on:
            gathered.append(line.strip())
            continue
        if gathered:
            yield Bullet(plain(" ".join(gathered)), first + 1, first + len(gathered))
            gathered = []
        if match is not None:
            gathered, first = [match["text"].strip()], number


def plain(text: str) -> str:
    """A changelog's sentence without its markup: roles and double backticks become single ones, links their text."""

    def role(match: re.Match[str]) -> str:
        body = match["body"]
        if match["role"].split(":")[-1] not in _SYMBOLS:
            return ""
        body = re.sub(r"\s*<[^>]*>$", "", body).lstrip("!")
        return f"`{body.rsplit('.', 1)[-1] if body.startswith('~') else body}`"

    text = _ROLE.sub(role, text)
    text = text.replace("``", "`")
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`([^`<]+?)\s*<[^>]*>`_+", r"\1", text)
    text = re.sub(r"\s*\(\s*(?:[#,\s]|\d|by @\S+|[0-9a-f]{7,40}|closes|PR|GH-)*\)", "", text)
    text = re.sub(r"\s*(?:\(?#\d+\)?|@[\w-]+ in \S+)[.,]?$", "", text)
    return re.sub(r"\s+", " ", text).strip()
