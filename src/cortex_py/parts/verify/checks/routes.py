"""Checks of HTTP: which function serves a route, by which methods, and with which status codes it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus

from ....worktree.code.behaviour import CodeFact
from ....worktree.code.routes import METHODS, HttpRoute, read_routes, same_route
from ..index.facts import Definition
from ..words import distinctive_words, load_pattern, load_words, name_parts
from .check import Check
from .names import is_auxiliary
from .scene import Scene, last_part

__all__ = ["check_routes", "check_status"]

_FILES = 8
_ROUTE = load_pattern("checks", "route")
_STATUS = load_pattern("checks", "status")
_OF_ROUTES = load_words("checks", "route_words")
_METHOD = re.compile(rf"(?<![\w/.-])({'|'.join(METHODS)})(?![\w-])")
_PATH = re.compile(r"(?<![\w.`/\"'<])[`\"']?(?:[A-Z]{3,7}\s+)?(/[\w{}<>:*-][\w{}<>:./*-]*|/(?=[`\"']))[`\"']?")
_ONLY = re.compile(r"\bonly\b|\bnothing but\b|\bexclusively\b", re.I)
_CODE = re.compile(r"(?<![\w.])([1-5]\d\d)(?![\w.]*\d)")
_ANSWERS = re.compile(r"status|abort|error|response|redirect|send|header|http|exception|reply|render|json", re.I)
_NAMED_CODE = re.compile(r"(?:Status|HTTP_|HttpStatus\.|StatusCode\.|HTTPStatus\.|SC_)_?(?:\d{3}_)?([A-Za-z]\w+)")
_VALID = frozenset(member.value for member in HTTPStatus)
_CODES = {member.name.replace("_", "").lower(): member.value for member in HTTPStatus}


def check_routes(scene: Scene) -> Iterator[Check]:
    """Whether a route is served by the methods and the function that the claim gives."""
    paths = list(dict.fromkeys(match[1].rstrip(".,") for match in _PATH.finditer(scene.text)))
    methods = frozenset(_METHOD.findall(scene.text))
    if not (paths or methods) or not _ROUTE.search(scene.text):
        return
    handlers = [one.definition for one in scene.named if one.definition.kind in ("function", "method")]
    names = {symbol.last for symbol in scene.found.names}
    if not paths and not names:
        return
    every = _routes(scene, paths, handlers)
    for path in paths or [""]:
        same = [row for row in every if (same_route(row[1].path, path) if path else row[1].handler in names)]
        if same:
            answer = _answer(scene, same, methods, names if path else set())
            # A route that is there says nothing of what else the claim tells of it.
            if not answer.holds or _says_no_more(scene):
                yield answer


def _says_no_more(scene: Scene) -> bool:
    """Whether a claim says no more of a route than its path, its methods and its function."""
    plain = _METHOD.sub(" ", _PATH.sub(" ", scene.text))
    named = {stem for item in scene.objects for stem in distinctive_words(item.text)}
    return all(word in named or word in _OF_ROUTES for word in distinctive_words(plain))


def _routes(scene: Scene, paths: Sequence[str], handlers: Sequence[Definition]) -> list[tuple[str, HttpRoute]]:
    """The routes of the files that define the handlers or have the words of the paths."""
    words = [max(name_parts(path), key=len, default="") for path in paths]
    files = [one.path for one in handlers] + [path for word in words if word for path in scene.lookup.files_with(word)]
    found = []
    for path in list(dict.fromkeys(path for path in files if not is_auxiliary(path)))[:_FILES]:
        syntax = scene.lookup.syntax(path)
        if syntax is not None:
            functions = [
                (one.name, one.line) for one in scene.lookup.in_file(path) if one.kind in ("function", "method")
            ]
            found += [(path, route) for route in read_routes(syntax.every_fact(), functions)]
    return found


def _answer(scene: Scene, same: Sequence[tuple[str, HttpRoute]], methods: frozenset[str], names: set[str]) -> Check:
    own = [row for row in same if not names or row[1].handler in names]
    path, route = (own or same)[0]
    served = frozenset(method for _, one in own or same for method in one.methods)
    unknown = any(not one.methods for _, one in own or same)
    fits = not methods or unknown or (methods == served if _ONLY.search(scene.text) else methods <= served)
    shown = f"{', '.join(sorted(served)) or 'any method'} {route.path}"
    shown += f" is served by `{route.handler}`" if route.handler else " is served"
    holds = (bool(own) and fits) != scene.claim.negated
    sure = 0.6 if unknown and methods else 1.0
    best = next((row for row in own if row[1].methods & methods), (path, route))
    return scene.answer("relation", holds, shown, best[0], best[1].line, sure=sure)


def check_status(scene: Scene) -> Iterator[Check]:
    """Whether a function answers with the status code that the claim gives."""
    wanted = [int(code) for code in _CODE.findall(scene.said) if int(code) in _VALID]
    if not wanted or not _STATUS.search(scene.said):
        return
    paths = [match[1].rstrip(".,") for match in _PATH.finditer(scene.text)]
    methods = frozenset(_METHOD.findall(scene.text))
    named = [one.definition for one in scene.named if one.definition.kind in ("function", "method")]
    rows = [
        (path, route)
        for path, route in (_routes(scene, paths, named) if paths else ())
        if any(same_route(route.path, one) for one in paths) and (not methods or methods & route.methods)
    ]
    served = [one for path, route in rows for one in scene.lookup.in_file(path) if one.name == route.handler]
    for definition in list(dict.fromkeys([*named, *served]))[:3]:
        codes = {code: fact for fact in scene.lookup.facts(definition) for code in _codes(fact)}
        if not codes:
            continue
        here = next((code for code in wanted if code in codes), None)
        shown = f"`{definition.qualified}` answers with {', '.join(map(str, list(codes)[:4]))}"
        line = codes[here].line if here is not None else next(iter(codes.values())).line
        yield scene.answer("value", (here is not None) != scene.claim.negated, shown, definition.path, line, sure=0.9)
        return


_COMPUTED = re.compile(r"[-+*/%]\s*\d+")


def _codes(fact: CodeFact) -> Iterator[int]:
    """The status codes that a fact answers with."""
    text = f"{fact.name} {fact.value}"
    is_answer = fact.role in ("raise", "decorator", "call") and _ANSWERS.search(text)
    is_code = fact.role in ("value", "parameter") and re.search(r"status|code", last_part(fact.name), re.I)
    if fact.role == "return":
        yield from (int(code) for code in re.findall(r",\s*([1-5]\d\d)\s*\)?$", fact.value) if int(code) in _VALID)
    if is_answer or is_code:
        yield from (int(code) for code in _CODE.findall(_COMPUTED.sub(" ", fact.value)) if int(code) in _VALID)
    for name in _NAMED_CODE.findall(text):
        if (code := _CODES.get(name.replace("_", "").lower())) is not None:
            yield code
