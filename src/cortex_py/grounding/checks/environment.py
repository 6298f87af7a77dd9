"""Checks of environment variables: whether the code reads them, and what stands in for one that is not set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...security.secrets.secrets import redact
from .check import Check
from .names import is_auxiliary
from .scene import Scene, number_meanings, read_numbers, same_number

__all__ = ["check_environment"]

_VARIABLE = re.compile(r"(?<![\w`])`?([A-Z][A-Z0-9]*_[A-Z0-9_]+)`?(?!\w)")
_ENVIRONMENT = re.compile(r"environ|getenv|process\.env|env::var|Getenv|LookupEnv|ENV\[", re.I)
_OF_ENVIRONMENT = re.compile(r"\benv(?:ironment)?\b|\bvariables?\b|\bhonou?r", re.I)
# What stands in for a variable that is not set: `process.env.X || 3000`, `${X:-3000}`, `os.getenv("X") or 3000`.
_INSTEAD = (
    r"{name}[\"'\])}}]{{0,4}}\s*(?:,|\|\||\?\?|\bor\b|:-|,\s*default\s*=)\s*(?P<value>\"[^\"]*\"|'[^']*'|[\w.+-]+)"
)
_STATED = re.compile(
    r"\b(?:defaults?|falls? back|fallback)\b[^.]{0,30}?\b(?:to|is|of|as|on)\s{1,3}"
    r"(?P<after>`[^`]{0,80}`|\"[^\"]{0,80}\"|'[^']{0,80}'|[\w.+-]{1,80})"
    r"|(?P<before>`[^`]{0,80}`|\"[^\"]{0,80}\"|'[^']{0,80}'|(?<![\w.+-])[\w.+-]{1,80}+)\s{1,3}"
    r"(?:by default|if (?:it is )?(?:unset|not set)|(?:when|if) unset)",
    re.I,
)


def check_environment(scene: Scene) -> Iterator[Check]:
    """Whether the code reads the environment variables that the claim names, with the default that it gives."""
    names = list(dict.fromkeys(_VARIABLE.findall(scene.text)))
    stated = _STATED.search(scene.text)
    if not names or not (stated or _OF_ENVIRONMENT.search(scene.said)):
        return
    for name in names[:3]:
        paths = scene.found.paths or [path for path in scene.lookup.files_with(name) if not is_auxiliary(path)]
        rows = [
            (path, line)
            for path in paths[:8]
            for line in scene.lookup.lines_with(path, name)[:10]
            if _ENVIRONMENT.search(" ".join(scene.lookup.lines(path)[max(0, line - 3) : line + 2]))
        ]
        if rows and stated:
            yield from _compare_fallback(scene, name, rows, (stated["after"] or stated["before"]).strip("`\"'."))
        elif rows:
            yield scene.answer("setting", not scene.claim.negated, f"{name} is read", *rows[0], sure=0.6)
        elif _OF_ENVIRONMENT.search(scene.said) and scene.lookup.state.complete and not scene.lookup.files_with(name):
            yield Check("setting", scene.claim.negated, f"nothing reads {name}", None, 0.8, core=False)


_SWITCHES = {word: way for way, words in (("on", "on true yes 1 enabled"), ("off", "off false no 0 disabled"))
             for word in words.split()}  # fmt: skip


def _switched(value: str) -> str:
    """A value without its case; the ways to write on and off are one each."""
    return _SWITCHES.get(value.lower(), value.lower())


def _compare_fallback(scene: Scene, name: str, rows: Sequence[tuple[str, int]], stated: str) -> Iterator[Check]:
    """The value that stands in for a variable that is not set, against the one that the claim gives."""
    pattern = re.compile(_INSTEAD.format(name=re.escape(name)))
    for path, line in rows:
        found = pattern.search(" ".join(scene.lookup.lines(path)[line - 1 : line + 2]))
        if found is not None:
            value = found["value"].strip("\"'")
            same = _switched(value) == _switched(stated) or any(
                same_number(one, other)
                for one in read_numbers(value)
                for mention in scene.numbers
                for other in number_meanings(mention)
            )
            shown = f"{name} is {redact(value).text[:60] or 'empty'} if it is not set"
            yield scene.answer("value", same != scene.claim.negated, shown, path, line)
            return
