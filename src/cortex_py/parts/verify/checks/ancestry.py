"""What stands above a class or an exception: its bases in the project, and what is known of those of the language."""

from __future__ import annotations

import builtins
import collections.abc
import enum
import io
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from itertools import islice

from ..index.facts import Definition
from .scene import HOLDERS, Scene, is_error_name, last_part

__all__ = ["BUILT_IN", "are_related", "find_ancestors", "is_exception", "is_kind", "may_lead_to"]

_DEPTH = 6  # classes above a class that are read
_PART = re.compile(r"\w+")


def may_lead_to(scene: Scene, wanted: str, chain: Sequence[str]) -> bool:
    """Whether a class of another project among the bases may have the wanted one above it."""
    if any(one.kind in HOLDERS for one in scene.lookup.definitions(wanted)):
        return False
    for name in chain:
        known = BUILT_IN.get(name)
        if known is not None:
            if wanted in known:
                return True
        elif name not in _ROOTS and not any(one.kind in HOLDERS for one in scene.lookup.definitions(name)):
            return True
    return False


# Classes that every project has, by what stands above them.
BUILT_IN = {
    name: frozenset(base.__name__ for base in known.__mro__)
    for module in (builtins, collections.abc, enum, io, logging, threading)
    for name, known in vars(module).items()
    if isinstance(known, type)
}
_ROOTS = frozenset((
    "Object", "Error", "EventEmitter", "Array", "Map", "Set", "Promise", "Throwable", "Protocol", "ABC", "Generic",
    "Iterator", "Iterable", "Comparable", "Cloneable", "Serializable", "Closeable", "Runnable", "Exception",
))  # fmt: skip


def find_ancestors(scene: Scene, definition: Definition) -> Iterator[tuple[int, str, int, str]]:
    """The bases of a class and theirs: depth, name, line, path."""
    waiting, seen = [(1, definition)], {definition}
    while waiting:
        depth, one = waiting.pop(0)
        for name, line in _rust_traits(scene, one):
            yield depth, name, line, one.path
        for fact in scene.lookup.facts(one):
            if fact.role != "base" or (fact.owner and fact.owner != one.name):
                continue
            name = last_part(re.split(r"[\[<(]", fact.name)[0])
            yield depth, name, fact.line, one.path
            if depth < _DEPTH and len(seen) < 40:
                above = [
                    other for other in scene.lookup.definitions(name) if other.kind in HOLDERS and other not in seen
                ]
                above.sort(key=lambda other: other.path != one.path)
                seen.update(above[:1])
                waiting += [(depth + 1, other) for other in above[:1]]


def _rust_traits(scene: Scene, one: Definition) -> Iterator[tuple[str, int]]:
    """The traits that a type implements outside its definition."""
    if not one.path.endswith(".rs"):
        return
    pattern = re.compile(
        rf"^\s*(?:unsafe\s+)?impl\b[^{{]{{0,200}}?([A-Za-z_]\w*)(?:<[^{{]{{0,100}}?>)?\s+for\s+{re.escape(one.name)}\b"
    )
    lines = scene.lookup.lines(one.path)
    for number in scene.lookup.lines_with(one.path, one.name)[:200]:
        if match := pattern.search(lines[number - 1]):
            yield match[1], number


def is_exception(name: str, scene: Scene) -> bool:
    one = next((one for one in scene.lookup.definitions(name) if one.kind in HOLDERS), None)
    return one is not None and any(is_error_name(base) for _, base, _, _ in find_ancestors(scene, one))


# Exceptions of Java by what they extend; those of Python are known by themselves.
_ABOVE = {
    "IllegalArgumentException": "RuntimeException", "NumberFormatException": "IllegalArgumentException",
    "NullPointerException": "RuntimeException", "IllegalStateException": "RuntimeException",
    "UnsupportedOperationException": "RuntimeException", "IndexOutOfBoundsException": "RuntimeException",
    "ArrayIndexOutOfBoundsException": "IndexOutOfBoundsException", "FileNotFoundException": "IOException",
    "EOFException": "IOException", "MalformedURLException": "IOException", "UncheckedIOException": "RuntimeException",
}  # fmt: skip


def are_related(scene: Scene, one: str, other: str) -> bool:
    """Whether two exceptions may be kinds of each other, as far as is known; one of another project may be any."""
    names = [last_part(name) for name in (*_PART.findall(one)[-1:], other)]
    if any(name in ("Exception", "Error", "Throwable", "RuntimeException", "BaseException") for name in names):
        return True
    lines = [_line_of(scene, name) for name in names]
    return bool(set(lines[0]) & {names[1]} or set(lines[1]) & {names[0]})


def _line_of(scene: Scene, name: str) -> list[str]:
    """An exception and what it is a kind of."""
    found = [name, *BUILT_IN.get(name, ())]
    while found[-1] in _ABOVE:
        found.append(_ABOVE[found[-1]])
    one = next((one for one in scene.lookup.definitions(name) if one.kind in HOLDERS), None)
    return [*found, *(base for _, base, _, _ in islice(find_ancestors(scene, one), 20))] if one is not None else found


def is_kind(name: str, wanted: str, scene: Scene) -> bool:
    """Whether an exception is the wanted one, or a class below it."""
    return wanted in _line_of(scene, name)
