"""Globs over paths and names: `*` stays inside a path segment, `**` crosses, `?` is one character.

`**/` at the start of a segment also stands for no folder at all, so `src/**/*.py` finds `src/a.py`.
There is no escape: a sign of a glob is always a sign. Matching is of the whole text, sees case, and
takes at most quadratic time whatever the pattern.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["glob_literal_prefix", "glob_matches", "glob_to_regex", "has_glob"]

_SIGN = re.compile(r"[*?]")
_FOLDERS = re.compile(r"(?:(?<=/)|\A)\*{2,}/")
_TOKEN = re.compile(r"(?P<deep>\*{2,})|(?P<star>\*)|(?P<one>\?)|(?P<text>[^*?]+)")


def has_glob(text: str) -> bool:
    return _SIGN.search(text) is not None


def glob_literal_prefix(pattern: str) -> str:
    """The text that everything matched by the pattern begins with."""
    sign = _SIGN.search(pattern)
    return pattern[: sign.start()] if sign else pattern


def glob_matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).match(text) is not None


def glob_to_regex(pattern: str) -> str:
    """A regular expression for `re` that matches the same whole texts as the glob.

    Every wildcard but the last of its kind is committed to its first success (an atomic group):
    a later start could only leave less text for what follows, so nothing is lost, and a hostile
    pattern cannot make the search explode.
    """
    first, *deeper = _chunks(pattern)
    lead, chunk = first
    if not deeper:
        return rf"(?s:{_last(lead, chunk)})\Z"
    middle = "".join(f"(?>{_lazy(lead)}{_inner(chunk)})" for lead, chunk in deeper[:-1])
    lead, last = deeper[-1]
    return rf"(?s:{_inner(chunk)}{middle}{_last(lead, last)})\Z"


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(glob_to_regex(pattern))


def _chunks(pattern: str) -> list[tuple[str, list[str]]]:
    """The pattern cut at its crossing wildcards: each wildcard with the pieces up to the next.

    Pieces are the texts between the single stars. The first chunk has no wildcard before it.
    """
    chunks: list[tuple[str, list[str]]] = [("", [""])]
    position = 0
    while position < len(pattern):
        folders = _FOLDERS.match(pattern, position)
        token = folders or _TOKEN.match(pattern, position)
        assert token is not None, "the tokens cover every character"
        pieces = chunks[-1][1]
        if folders:
            chunks.append((r"(?:.*/)?", [""]))
        elif token["deep"]:
            chunks.append((r".*", [""]))
        elif token["star"]:
            pieces.append("")
        else:
            pieces[-1] += "[^/]" if token["one"] else re.escape(token["text"])
        position = token.end()
    return chunks


def _inner(pieces: list[str]) -> str:
    return pieces[0] + "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:])


def _last(lead: str, pieces: list[str]) -> str:
    if len(pieces) == 1:
        return lead + pieces[0]
    return f"{lead}{_inner(pieces[:-1])}[^/]*{pieces[-1]}"


def _lazy(lead: str) -> str:
    return {r"(?:.*/)?": r"(?:.*?/)??", r".*": r".*?"}[lead]
