"""Source text to syntax tree, in bounded time, through tree-sitter and the grammar wheel of a language.

Both are loaded when a file first needs them. Where either is missing, or the text is one that cannot
be parsed in good time, there is no tree, and the caller does without.
"""

from __future__ import annotations

import re
import threading
import warnings
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from .languages import Language

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Parser

__all__ = ["grammar", "tree"]

LARGEST = 256_000
MICROSECONDS = 2_000_000

_END = re.compile(rb"[;{}]")


class _Parsers(threading.local):
    """A parser keeps state while it works, so that each thread has its own."""

    def __init__(self) -> None:
        self.ready: dict[Language, Parser] = {}


_parsers = _Parsers()


@cache
def grammar(language: Language) -> Grammar | None:
    """The grammar of a language; None when its wheel, or tree-sitter, is not installed or does not fit."""
    try:
        import tree_sitter

        make = getattr(import_module(language.package), language.factory)
        return tree_sitter.Language(make())
    except (ImportError, AttributeError, ValueError):
        return None


def tree(language: Language, data: bytes) -> Node | None:
    """The root of the syntax tree of a text; None without a grammar, or when parsing takes too long."""
    found = grammar(language)
    if found is None or len(data) > LARGEST or not _is_tame(language, data):
        return None
    parser = _parsers.ready.get(language) or _parser(found)
    if parser is None:
        return None
    _parsers.ready[language] = parser
    try:
        return parser.parse(data).root_node
    except ValueError:
        # Out of time: the parser would go on with this text when it is given the next.
        parser.reset()
        return None


def _parser(found: Grammar) -> Parser | None:
    import tree_sitter

    with warnings.catch_warnings():
        # The limit is to be replaced by a callback, but the callback crashes the process in 0.25.2, and
        # 0.26.0 crashes without one. A release that no longer knows the limit is not used.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return tree_sitter.Parser(found, timeout_micros=MICROSECONDS)
        except TypeError:
            return None


def _is_tame(language: Language, data: bytes) -> bool:
    """Whether statements end often enough; within one some grammars take quadratic time and no limit."""
    limit = language.longest_statement
    return limit is None or max(map(len, _END.split(data))) <= limit
