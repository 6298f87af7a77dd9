"""Reads what a source file defines and imports, and where it may be cut, in one walk over its syntax tree.

Positions are rows counted from 0; only a line feed ends a row. The walk keeps its own stack and descends only into
nodes that span rows or that the language names, so deep or long input is safe.
"""

from __future__ import annotations

import logging
import re
import threading
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from .imports import Import, read_imports
from .naming import FUNCTIONS, TYPES, Language, NamedNode, read_definition

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Parser

__all__ = ["Outline", "Symbol", "Unit", "load_grammar", "parse_tree", "read_outline"]

logger = logging.getLogger(__name__)

_LONGEST_NAME = 400
_HOLDERS = TYPES | {"namespace", "module"}
# Outside functions, these contain definitions of interest even on one row.
_BODIES = frozenset((
    "block", "body_statement", "class", "class_body", "declaration_list", "enum_body", "enum_body_declarations",
    "enum_declaration_list", "field_declaration_list", "interface_body", "object", "statement_block",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition: `qualified` includes the enclosing names; lines count from 1 and include the last."""

    name: str
    qualified: str
    kind: str
    line: int
    end_line: int


class Unit(NamedTuple):
    """Rows that belong together under a name; a container is made of such units itself."""

    first: int
    last: int
    name: str
    kind: str
    is_container: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """A file's structure; `ranks` are the rows where a statement begins, with its depth."""

    symbols: list[Symbol] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    ranks: dict[int, int] = field(default_factory=dict)


class _Place(NamedTuple):
    """A node to visit, with its context."""

    node: Node
    scope: str
    kind: str
    in_function: bool
    depth: int
    lead: int
    is_prefix: bool


def read_outline(language: Language, data: bytes) -> Outline | None:
    """The outline of a source text; None when it cannot be parsed."""
    root = parse_tree(language, data)
    return None if root is None else _Walk(language, data).over(root)


def _is_wanted(value: Node, kind: str, place: _Place) -> bool:
    """Whether a value becomes a symbol: inside a function only if it is a function or class itself."""
    if place.in_function:
        return kind in FUNCTIONS | {"class"} and value.child_by_field_name("value") is not None
    return kind in FUNCTIONS | {"class", "property"} or place.kind not in TYPES | {"object"}


class _Walk:
    """One walk over one tree."""

    def __init__(self, language: Language, data: bytes) -> None:
        self._language = language
        self._data = data
        self._starts = [0]
        at = data.find(b"\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = data.find(b"\n", at + 1)
        self._outline = Outline()
        self._symbols: list[tuple[int, Symbol]] = []

    def over(self, root: Node) -> Outline:
        waiting = [_Place(root, "", "", in_function=False, depth=0, lead=0, is_prefix=False)]
        while waiting:
            waiting += self._children(waiting.pop())
        self._outline.symbols.extend(symbol for _, symbol in sorted(self._symbols, key=lambda one: one[0]))
        self._outline.imports.sort(key=lambda one: one.line)
        return self._outline

    def _children(self, place: _Place) -> Iterator[_Place]:
        language = self._language
        before = -1
        begun: int | None = None
        for child in place.node.children:
            row, last = self._rows(child)
            if child.type in language.leading:
                # A comment behind code belongs to that code.
                if begun is None or row > before + 1:
                    if begun is not None:
                        self._rank(begun, place.depth)
                    begun = row if row > before else None
                before = last
                continue
            if not child.is_named:
                before = last
                continue
            first = begun if begun is not None and row <= before + 1 else row
            if begun is not None and first == row:
                self._rank(begun, place.depth)
            begun, before = None, last
            is_first = child.start_byte == place.node.start_byte
            if place.is_prefix or (is_first and place.depth):
                first = min(first, place.lead)
            if first < row or self._begins_row(child.start_byte, row):
                self._rank(first, place.depth)
            yield from self._enter(place, child, first, row, last)
        if begun is not None:
            self._rank(begun, place.depth)

    def _enter(self, place: _Place, child: Node, first: int, row: int, last: int) -> Iterator[_Place]:
        language, kind = self._language, child.type
        if kind in language.imports and not place.in_function:
            self._outline.imports.extend(read_imports(language.name, child, row + 1))
        found: NamedNode | None = None
        is_value = kind in language.values
        if is_value or kind in language.definitions:
            found = read_definition(language, child, language.definitions.get(kind) or language.values[kind])
        if found is not None and is_value and not _is_wanted(child, found.kind, place):
            found = None
        is_prefix = kind in language.prefixes
        if found is None:
            if last > row or (not place.in_function and (is_prefix or kind in _BODIES)):
                yield _Place(
                    child, place.scope, place.kind, place.in_function, place.depth + 1, first, is_prefix=is_prefix
                )
            return
        found = self._adapted(found, place.kind)
        qualified = ".".join(part for part in (place.scope, found.prefix, found.name) if part)
        name_row = self._row(found.at)
        is_holder = found.kind in _HOLDERS
        if found.is_symbol:
            self._symbols.append((found.at, Symbol(found.name, qualified, found.kind, name_row + 1, last + 1)))
        if not is_value or found.kind in FUNCTIONS | TYPES or last > row:
            self._outline.units.append(Unit(first, last, qualified, found.kind, is_holder))
        if last > row or is_holder or found.is_object:
            in_function = place.in_function or found.kind in FUNCTIONS
            # Deep nesting must not make ever longer names.
            is_silent = kind in language.scopeless or len(qualified) > _LONGEST_NAME
            scope = place.scope if is_silent else qualified
            inner = "object" if found.is_object else found.kind
            yield _Place(child, scope, inner, in_function, place.depth + 1, first, is_prefix=is_prefix)

    def _adapted(self, found: NamedNode, around: str) -> NamedNode:
        """A function inside a type is its method."""
        holds_methods = around in TYPES or (around == "module" and self._language.modules_have_methods)
        if found.kind == "function" and (holds_methods or found.prefix):
            return found._replace(kind="method")
        if found.kind == "method" and not (around or found.prefix):
            return found._replace(kind="function")
        return found

    def _rank(self, row: int, depth: int) -> None:
        ranks = self._outline.ranks
        if ranks.get(row, depth) >= depth:
            ranks[row] = depth

    def _rows(self, node: Node) -> tuple[int, int]:
        start, end = node.start_byte, node.end_byte
        row = self._row(start)
        # Most nodes end in the row where they begin; the last row has no next one.
        fits = row + 1 == len(self._starts) or end <= self._starts[row + 1]
        return row, row if fits else self._row(end - 1)

    def _row(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    def _begins_row(self, offset: int, row: int) -> bool:
        return not self._data[self._starts[row] : offset].strip()


# -- Parsing: tree-sitter and grammars are loaded when a file first needs them, and parsing time is bounded


LARGEST = 1_000_000
MICROSECONDS = 1_000_000

_END = re.compile(rb"[;{}]")


class Parsers(threading.local):
    """Parsers by language, one for each thread, because a parser has state."""

    def __init__(self) -> None:
        self.ready: dict[Language, Parser] = {}


parsers = Parsers()


@cache
def load_grammar(language: Language) -> Grammar | None:
    """The grammar of a language; None if its package or tree-sitter is missing or incompatible."""
    try:
        import tree_sitter

        make = getattr(import_module(language.package), language.factory)
        return tree_sitter.Language(make())
    except (ImportError, AttributeError, ValueError) as error:
        logger.debug("no grammar for %s: %s", language.name, error)
        return None


def parse_tree(language: Language, data: bytes) -> Node | None:
    """The root of a text's syntax tree; None without a grammar, or if parsing takes too long."""
    found = load_grammar(language)
    if found is None or len(data) > LARGEST or not _is_tame(language, data):
        return None
    parser = parsers.ready.get(language) or _parser(found)
    if parser is None:
        return None
    parsers.ready[language] = parser
    try:
        return parser.parse(data).root_node
    except ValueError:
        # Timed out: without a reset, the parser would continue with this text on the next call.
        logger.debug("parsing %d bytes of %s took too long", len(data), language.name)
        parser.reset()
        return None


def _parser(found: Grammar) -> Parser | None:
    import tree_sitter

    with warnings.catch_warnings():
        # The timeout is deprecated in favour of a callback, but the callback crashes the process in 0.25.2, and 0.26.0
        # crashes without one. A release without the timeout is not used.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return tree_sitter.Parser(found, timeout_micros=MICROSECONDS)
        except TypeError:
            return None


def _is_tame(language: Language, data: bytes) -> bool:
    """Whether statements are short enough; some grammars take quadratic time within one and ignore the timeout."""
    limit = language.longest_statement
    return limit is None or max(map(len, _END.split(data))) <= limit
