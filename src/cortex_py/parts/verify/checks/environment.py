"""Checks of what code takes from outside: environment variables, what stands in for them, and libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....core.security.secrets.secrets import redact
from ..index.lookup import module_words
from ..words import load_pattern, load_words
from .check import Check
from .names import is_auxiliary
from .scene import Scene, number_meanings, read_numbers, same_number

__all__ = ["check_environment", "check_libraries"]

_LIBRARY = load_pattern("checks", "library")
_NOT_LIBRARIES = load_words("checks", "not_libraries")
_UNITS = load_words("checks", "units")

_VARIABLE = re.compile(r"(?<![\w`])`?([A-Z][A-Z0-9]*_[A-Z0-9_]+)`?(?!\w)")
_ENVIRONMENT = re.compile(r"environ|getenv|process\.env|env::var|Getenv|LookupEnv|ENV\[", re.I)
_OF_ENVIRONMENT = re.compile(r"\benv(?:ironment)?\b|\bvariables?\b|\bhonou?r", re.I)
# What stands in for a variable that is not set: `process.env.X || 3000`, `${X:-3000}`, `os.getenv("X") or 3000`.
_INSTEAD = (
    r"{name}[\"'\])}}]{{0,4}}\s*(?:,|\|\||\?\?|\bor\b|:-|,\s*default\s*=)\s*(?P<value>\"[^\"]*\"|'[^']*'|[\w.+-]+)"
)
_STATED = re.compile(
    r"\b(?:defaults?|falls? back|fallback)\b[^.,;]{0,30}?\b(?:to|is|of|as|on)\s{1,3}"
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


# -- Libraries ------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"(?<![\w`/.-])`?([A-Za-z][\w-]*(?:[./:][A-Za-z][\w-]*)*)`?(?![\w/])")
_IMPORTING = re.compile(r"^\s*(?:from|import|use|require|include|#include|export)\b|\b(?:require|import)\s*\(")


def check_libraries(scene: Scene) -> Iterator[Check]:
    """Whether the code that the claim speaks of uses the library that it names."""
    if not _LIBRARY.search(scene.said) or scene.claim.type == "removed":
        return
    lookup = scene.lookup
    paths = list(dict.fromkeys([*scene.found.paths, *(one.definition.path for one in scene.subjects[:3])]))
    paths = [path for path in paths if lookup.imports(path)]
    if not paths:
        return
    known = lookup.modules
    named = {one.definition.name for one in scene.named}
    libraries = [
        match[1]
        for match in _TOKEN.finditer(scene.text)
        if match[1].lower().replace("-", "_") in known
        and match[1] not in named
        and match[1].lower() != lookup.folder.lower()
        and match[1].lower() not in _UNITS
        and match[1].lower() not in _NOT_LIBRARIES
        and (match[1].islower() or "`" in match[0])
        and _LIBRARY.search(scene.text[max(0, match.start() - 36) : match.start()])
    ]
    for token in dict.fromkeys(libraries):
        root = token.lower().replace("-", "_")
        for path in paths:
            line = next((one.line for one in lookup.imports(path) if root in module_words(one.module)), None)
            line = line or next(
                (n for n in lookup.lines_with(path, token) if _IMPORTING.search(lookup.lines(path)[n - 1])), None
            )
            if line is not None:
                shown = f"{path} uses {token}"
                line = _use(scene, path, root) or line
                yield scene.answer("library", not scene.claim.negated, shown, path, line, sure=0.7)
                return
        is_package = f"`{token}`" in scene.text or bool(lookup.dependencies(token))
        if not is_package or len(paths) != 1 or (not scene.found.paths and not scene.named):
            return  # it may be an ordinary word, or where the claim means is a guess
        if _brings(scene, paths[0], token):
            return
        yield scene.answer(
            "library",
            scene.claim.negated,
            f"{paths[0]} does not import {token}",
            paths[0],
            lookup.imports(paths[0])[0].line,
            sure=0.3,
        )
        return


def _brings(scene: Scene, path: str, token: str) -> bool:
    """Whether a file may get a library in another way: it names it, takes all of a module, or a module of the project
    that it imports does."""
    imports = scene.lookup.imports(path)
    stems = {re.split(r"[./:]+", one.module.strip("./"))[-1] for one in imports}
    near = [other for other in scene.lookup.paths
            if other != path and re.split(r"[/.]", other)[-2:-1] and re.split(r"[/.]", other)[-2] in stems]  # fmt: skip
    return any("*" in one.names for one in imports) or any(
        re.search(rf"(?<![A-Za-z]){re.escape(token)}(?![A-Za-z])", line, re.I)
        for other in (path, *near[:12])
        for line in scene.lookup.lines(other)
    )


_TAKEN_AS = re.compile(r"\b(?:const|let|var|import)\s+(?:\*\s+as\s+)?(\w+)")


def _use(scene: Scene, path: str, library: str) -> int | None:
    """The line of the claim's definitions, or of its file, where a library is used for what the claim speaks of."""
    lookup = scene.lookup
    own = [one for one in lookup.imports(path) if library in module_words(one.module)]
    heads = (_TAKEN_AS.search(lookup.lines(path)[one.line - 1]) for one in own)
    names = {library, *(name for one in own for name in one.names), *(head[1] for head in heads if head)}
    spans = [
        (one.definition.line, one.definition.end_line) for one in scene.subjects[:3] if one.definition.path == path
    ]
    lines = sorted({n for name in names for span in spans for n in lookup.lines_with(path, name, *span)})[:60]
    words = [word for word in scene.words if word != library]

    def fit(line: int) -> float:
        return scene.overlap(words, " ".join(lookup.lines(path)[max(0, line - 3) : line + 3]))

    return max(lines, key=lambda line: (fit(line), -line), default=None)
