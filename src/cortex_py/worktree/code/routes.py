"""The HTTP routes that a source file registers: by decorators and annotations, and by calls on a router. Pure.

The usual frameworks write them much alike: the last part of the name that is called gives the method, the first text is
the path, and the handler is what the decorator stands above or what is passed after the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .behaviour import CodeFact

__all__ = ["METHODS", "HttpRoute", "read_routes", "same_route"]

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_BY_METHOD = {name.lower(): name for name in METHODS} | {f"{name.lower()}mapping": name for name in METHODS}
# Calls that register a route for the methods that they are given; `route` alone means GET.
_REGISTERING = frozenset((
    "route", "api_route", "add_url_rule", "add_route", "add_api_route", "requestmapping", "handle", "handlefunc", "all",
    "any", "use", "mount", "methods", "websocket", "method",
))  # fmt: skip
_PATH = re.compile(r"""["'`](?:(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s+)?(/[^"'`\s]{0,200})["'`]""")
_GIVEN = re.compile(r"\bmethods?\b\s*[=:]?\s*[\[({]?([^\])}]{1,120})", re.I)
_METHOD = re.compile(rf"\b({'|'.join(METHODS)})\b")
_MADE = re.compile(rf"Method({'|'.join(METHODS)})\b|[.]Methods\(([^)]{{1,80}})\)", re.I)
_VARIABLE = re.compile(r"\{[^}/]*\}|<[^>/]*>|:\w+\??|\*\w*")
_HANDLER = re.compile(r"(?<![\w.\"'`])(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)\s*(?:\)|,|$)")


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """`methods` is empty if the route takes any or the source does not say; `handler` is "" if it has no name."""

    path: str
    methods: frozenset[str]
    handler: str
    line: int
    text: str


def same_route(one: str, other: str) -> bool:
    """Whether two paths are the same, whatever their variables are called."""
    return _plain(one) == _plain(other)


def _plain(path: str) -> str:
    return _VARIABLE.sub("{}", path).rstrip("/") or "/"


def read_routes(facts: Sequence[CodeFact], definitions: Sequence[tuple[str, int]]) -> list[HttpRoute]:
    """The routes of a file; `definitions` are the names and first lines of its functions."""
    return [route for fact in facts for route in _route(fact, definitions)]


def _route(fact: CodeFact, definitions: Sequence[tuple[str, int]]) -> Iterator[HttpRoute]:
    if fact.role not in ("call", "decorator"):
        return
    # The name of a chained call has the calls before it: `r.HandleFunc("/x", f).Methods`.
    name = re.sub(r"\(.*\)", "", fact.name, flags=re.S)
    last = re.split(r"[.:@]+", name)[-1].lower()
    if last not in _BY_METHOD and last not in _REGISTERING:
        return
    text = f"{fact.name}{fact.value}" if fact.role == "call" else fact.value
    path = _PATH.search(text)
    if path is None:
        return
    after = text[path.end() :]
    if fact.role == "decorator":
        below = min(((line, one) for one, line in definitions if line >= fact.line), default=(0, ""))
        yield HttpRoute(path[2], _methods(last, path[1], text), below[1], fact.line, text)
        return
    handler = next((match[1] for match in _HANDLER.finditer(after) if match[1].upper() not in METHODS), "")
    if "," in after or handler:
        yield HttpRoute(path[2], _methods(last, path[1], text), handler, fact.line, text)


def _methods(last: str, written: str | None, text: str) -> frozenset[str]:
    if written:
        return frozenset((written,))
    if last in _BY_METHOD:
        return frozenset((_BY_METHOD[last],))
    made = {(one or "").upper() for one, _ in _MADE.findall(text)} | {
        name for _, listed in _MADE.findall(text) for name in _METHOD.findall(listed.upper())
    }
    if named := frozenset(made & set(METHODS)):
        return named
    given = _GIVEN.search(text)
    if given is not None and (found := _METHOD.findall(given[1].upper())):
        return frozenset(found)
    return frozenset(("GET",)) if last == "route" and text.startswith("@") else frozenset()
