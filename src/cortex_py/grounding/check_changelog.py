"""Checks against the project's own account of its releases: whether the section of a version tells of a name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from .checks import Check
from .claims import Claim
from .evidence import Evidence
from .lookup import Lookup
from .resolving import Resolved

__all__ = ["check_changelog", "sections"]

_FILE = re.compile(r"(?:change(?:s|log)|history|news|releases?|release[-_]notes)(?:[-_.].*)?", re.IGNORECASE)
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+){1,3}\w*)")
_HEADING = re.compile(r"\s{0,3}(?:#{1,4}\s|version\b|release\b|\[|v?\d+\.\d|\*\*|={2,}\s)", re.IGNORECASE)
_UNDERLINE = re.compile(r"([=\-~^*+#\"'`])\1{2,}")
_LONGEST_HEADING = 100
_MOST_FILES = 3


def sections(lines: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    """The versions that a changelog has sections of, with their first and last line, counted from 1."""
    opened: tuple[str, int] | None = None
    for number, line in enumerate(lines, 1):
        under = lines[number].strip() if number < len(lines) else ""
        if len(line) > _LONGEST_HEADING or not (_HEADING.match(line) or _UNDERLINE.fullmatch(under)):
            continue
        version = _VERSION.search(line)
        if version is None or line.lstrip().startswith(("-", "*  ", "+")):
            continue
        if opened is not None:
            yield opened[0], opened[1], number - 1
        opened = version[1], number
    if opened is not None:
        yield opened[0], opened[1], len(lines)


def check_changelog(claim: Claim, found: Resolved, lookup: Lookup) -> Iterator[Check]:
    """Whether what a claim says of a version stands in its section and in no other."""
    told = [mention.value for mention in claim.mentions if mention.kind == "version"]
    names = [thing.last for thing in found.names]
    if len(told) != 1 or not names:
        return
    files = [path for path in lookup.paths if _FILE.fullmatch(posixpath.basename(path))]
    for path in sorted(files, key=lambda path: (path.count("/"), path))[:_MOST_FILES]:
        own: list[tuple[str, int]] = []
        others: list[tuple[str, int]] = []
        for version, first, last in sections(lookup.lines(path)):
            here = [lookup.places(path, name, first, last) for name in names]
            if all(here):
                (own if version == told[0] else others).append((version, here[0][0]))
        if own:
            evidence = Evidence("line", path, own[0][1])
            yield Check("changelog", True, f"{path} tells of it under {told[0]} in line {own[0][1]}", evidence)
            return
        if others:
            version, line = others[0]
            yield Check(
                "changelog", False, f"{path} tells of it under {version}, not {told[0]}", Evidence("line", path, line)
            )
            return
