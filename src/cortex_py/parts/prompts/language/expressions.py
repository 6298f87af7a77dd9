"""What stands between the braces of a template: paths, literals and filters, read into small values.

    output  = path { "|" filter }
    filter  = name [ [":"] literal ]
    path    = { "../" } ( "this" | "@" word | name ) { "." ( name | digits ) }
    literal = '"' … '"' | "'" … "'" | number

Parsing stops at the first fault, and reports its position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .filters import Argument, check_filter
from .placeholders import NAME_LONGEST, check_name, shown

# The words that can follow `@`.
DATA = ("index", "number", "first", "last", "key")
SEGMENTS_MOST = 16
FILTERS_MOST = 8

_TOKEN = re.compile(
    r"""\s++|(?P<text>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')|(?P<sign>[|:])|(?P<word>[^\s|:"']++)|(?P<quote>["'])""",
    re.DOTALL,
)
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_INDEX = re.compile(r"[0-9]{1,9}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {'"': '"', "'": "'", "\\": "\\", "n": "\n", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Path:
    """A path to a value: up so many scopes, then `this`, an `@` word or a name, then from field to field."""

    ups: int
    root: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A filter with its argument."""

    name: str
    argument: Argument | None


@dataclass(frozen=True, slots=True)
class TemplateExpression:
    """A path and the filters applied to its value; `optional` if a default replaces a missing value."""

    path: Path
    filters: tuple[Call, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class EachHead:
    """The list of an `#each` block, and the name of its item."""

    path: Path
    name: str | None


class SyntaxFault(Exception):
    """A fault of an expression; `position` counts from the beginning of the content."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


def read_output(inner: str, offset: int, scopes: int) -> TemplateExpression:
    """A path with its filters, inside `scopes` list blocks; `offset` is the position of `inner` in the content."""
    groups: list[list[_Token]] = [[]]
    bars = [offset]
    for token in _tokens(inner, offset):
        if token.text == "|" and token.kind == "sign":
            groups.append([])
            bars.append(token.position)
        else:
            groups[-1].append(token)
    path = _path_of(groups[0], offset, scopes, "Before `|`" if len(groups) > 1 else "Between the braces")
    if len(groups) > FILTERS_MOST + 1:
        raise SyntaxFault(f"More than {FILTERS_MOST} filters follow one another.", bars[FILTERS_MOST + 1])
    calls = tuple(_call(group, bar) for group, bar in zip(groups[1:], bars[1:], strict=True))
    return TemplateExpression(path, calls, any(call.name == "default" for call in calls))


def read_path(inner: str, offset: int, scopes: int, after: str) -> Path:
    """A path alone; `after` names what it follows."""
    return _path_of(list(_tokens(inner, offset)), offset, scopes, f"After `{after}`")


def read_each(inner: str, offset: int, scopes: int) -> EachHead:
    """`path` or `path as |name|`."""
    tokens = list(_tokens(inner, offset))
    path = _path_of(tokens[:1], offset, scopes, "After `#each`")
    if len(tokens) == 1:
        return EachHead(path, None)
    if [token.text for token in tokens[1:3]] != ["as", "|"] or len(tokens) != 5 or tokens[4].text != "|":
        raise SyntaxFault("`#each` takes a path, and a name as in `#each users as |user|`.", tokens[1].position)
    name = tokens[3]
    if message := _name_fault(name.text):
        raise SyntaxFault(message, name.position)
    return EachHead(path, name.text)


def _tokens(inner: str, offset: int) -> Iterator[_Token]:
    for match in _TOKEN.finditer(inner):
        kind = match.lastgroup
        if kind == "quote":
            raise SyntaxFault("A quote is opened but not closed.", offset + match.start())
        if kind is not None:
            yield _Token(kind, match[0], offset + match.start())


# -- filters -----------------------------------------------------------------------------------------


def _call(tokens: list[_Token], bar: int) -> Call:
    if not tokens:
        raise SyntaxFault(check_filter("", ()) or "", bar)
    name, *rest = tokens
    if rest and rest[0].text == ":" and rest[0].kind == "sign":
        colon = rest.pop(0)
        if not rest:
            raise SyntaxFault("After `:` an argument is missing.", colon.position)
    arguments = [_literal(token) for token in rest[:2]]
    if message := check_filter(name.text, arguments):
        raise SyntaxFault(message, name.position)
    return Call(name.text, arguments[0] if arguments else None)


def _literal(token: _Token) -> Argument:
    if token.kind == "text":
        return _ESCAPE.sub(lambda match: _unescaped(match, token), token.text[1:-1])
    number = _NUMBER.fullmatch(token.text)
    if number is None:
        raise SyntaxFault(f"{shown(token.text)} is neither a text in quotes nor a number.", token.position)
    return float(token.text) if number[1] else int(token.text)


def _unescaped(match: re.Match[str], token: _Token) -> str:
    if match[1] not in _ESCAPED:
        raise SyntaxFault(
            f"{shown(match[0])[1:-1]} is not an escape; there are \\\" \\' \\\\ \\n \\t.",
            token.position + match.start() + 1,
        )
    return _ESCAPED[match[1]]


# -- paths -------------------------------------------------------------------------------------------


def _path_of(tokens: list[_Token], offset: int, scopes: int, where: str) -> Path:
    if not tokens:
        raise SyntaxFault(f"{where} a name is missing.", offset)
    first, *rest = tokens
    path = _path(first, scopes)
    if rest:
        raise SyntaxFault(f"{shown(rest[0].text)} does not belong here; filters follow a `|`.", rest[0].position)
    return path


def _path(token: _Token, scopes: int) -> Path:
    if len(token.text) > 2 * NAME_LONGEST * SEGMENTS_MOST:
        raise SyntaxFault(f"The path {shown(token.text)} is too long.", token.position)
    way = token.text
    ups = 0
    while way.startswith("../"):
        ups, way = ups + 1, way[3:]
    if ups > scopes:
        raise SyntaxFault("`../` leads out of more `#each` blocks than there are around it.", token.position)
    root, *fields = way.split(".")
    if root == "this" and ups == scopes:
        # Outside all lists, `this` holds the variables.
        if not fields or fields[0] == "this":
            raise SyntaxFault("`this` is the item of an `#each`, and none is around it here.", token.position)
        root, *fields = fields
    message = _root_fault(root, fields, ups < scopes) or _fields_fault(fields)
    if message:
        raise SyntaxFault(message, token.position)
    return Path(ups, root, tuple(fields))


def _root_fault(root: str, fields: list[str], in_list: bool) -> str | None:
    if root == "this":
        return None
    if not root.startswith("@"):
        return check_name(root)
    if root[1:] not in DATA:
        return f"There is no {shown(root)}; there are: {', '.join('@' + word for word in DATA)}."
    if not in_list:
        return f"`{root}` counts the items of an `#each`, and none is around it here."
    return f"`{root}` has no fields." if fields else None


def _fields_fault(fields: list[str]) -> str | None:
    if len(fields) >= SEGMENTS_MOST:
        return f"A path has at most {SEGMENTS_MOST} parts."
    for field in fields:
        if not (field.isidentifier() or _INDEX.fullmatch(field)):
            return (
                f"{shown(field)} is neither the name of a field nor a number."
                if field
                else "After `.` a name is missing."
            )
        if len(field) > NAME_LONGEST:
            return f"The name {shown(field)} is longer than {NAME_LONGEST} characters."
    return None


def _name_fault(name: str) -> str | None:
    if name in ("this", "else"):
        return f"`{name}` has a meaning of its own; choose another name."
    return check_name(name)
