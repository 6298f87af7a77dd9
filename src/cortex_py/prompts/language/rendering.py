"""Filling in a template: one walk through its tree, within bounds of steps, time and size.

What a value holds is printed and never read again, so braces in it stay text. A variable that is nowhere prints
nothing, and is told in the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..errors import LimitExceeded
from .expressions import Expression, Path
from .printing import Budget, printed
from .template_syntax import Choice, Each, Node, Output, Template, Text
from .text_filters import apply

__all__ = ["ITEMS_MOST", "OUTPUT_LONGEST", "Rendered", "render"]

OUTPUT_LONGEST = 1_000_000
ITEMS_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text, and the names that were to be printed and stood for nothing, in order."""

    text: str
    missing: tuple[str, ...]


def render(
    template: Template,
    values: Mapping[str, object],
    *,
    seconds: float = 2.0,
    monotonic: Callable[[], float] = time.monotonic,
) -> Rendered:
    """Fill in a template. Raises `LimitExceeded` where it would take too much work, time or room."""
    writer = _Writer(values, Budget(seconds, monotonic))
    writer.write(template.nodes, None)
    return Rendered("".join(writer.pieces), writer.missing())


@dataclass(frozen=True, slots=True)
class _Scope:
    """One item of a list block, and the scope around the block."""

    item: object
    names: tuple[str, ...]
    index: int
    count: int
    key: object
    outer: _Scope | None

    def data(self, word: str) -> object:
        match word:
            case "@index":
                return self.index
            case "@number":
                return self.index + 1
            case "@first":
                return self.index == 0
            case "@last":
                return self.index == self.count - 1
            case _:
                return self.key


@dataclass(frozen=True, slots=True)
class _Found:
    """What a path leads to; not `there` if its first name is nowhere."""

    value: object
    there: bool = True


class _Writer:
    def __init__(self, values: Mapping[str, object], budget: Budget) -> None:
        self.pieces: list[str] = []
        self._values = values
        self._budget = budget
        self._size = 0
        # Names that stood for nothing, and whether they could only be variables.
        self._nothing: dict[str, bool] = {}
        self._fields: set[str] = set()

    def missing(self) -> tuple[str, ...]:
        """A name in a list block that some item has as a field is no variable that somebody forgot."""
        return tuple(name for name, surely in self._nothing.items() if surely or name not in self._fields)

    def write(self, nodes: tuple[Node, ...], scope: _Scope | None) -> None:
        for node in nodes:
            self._budget.spend()
            match node:
                case Text(text):
                    self._put(text)
                case Output(expression):
                    self._put(printed(self._value(expression, scope), self._budget))
                case Each():
                    self._each(node, scope)
                case Choice():
                    self._choose(node, scope)

    def _put(self, text: str) -> None:
        self._size += len(text)
        if self._size > OUTPUT_LONGEST:
            raise LimitExceeded(
                f"The filled-in template would have more than {OUTPUT_LONGEST:,} characters.",
                remedy="Give it shorter lists, or cut values with `truncate`.",
            )
        self.pieces.append(text)

    def _each(self, node: Each, scope: _Scope | None) -> None:
        over = self._find(node.path, scope).value
        if not isinstance(over, (list, tuple, Mapping)) or not over:
            self.write(node.otherwise, scope)
            return
        if len(over) > ITEMS_MOST:
            raise LimitExceeded(
                f"`#each` would go through {len(over):,} items; {ITEMS_MOST:,} are allowed.",
                remedy="Give it a shorter list.",
            )
        pairs: Iterable[tuple[object, object]] = (
            over.items() if isinstance(over, Mapping) else ((None, item) for item in over)
        )
        for index, (key, item) in enumerate(pairs):
            self._budget.spend()
            self.write(node.body, _Scope(item, node.names, index, len(over), key, scope))

    def _choose(self, node: Choice, scope: _Scope | None) -> None:
        for branch in node.branches:
            self._budget.spend()
            if bool(self._find(branch.path, scope).value) != branch.negated:
                self.write(branch.body, scope)
                return
        self.write(node.otherwise, scope)

    # -- values --------------------------------------------------------------------------------------

    def _value(self, expression: Expression, scope: _Scope | None) -> object:
        found = self._find(expression.path, scope)
        if not found.there and not expression.optional:
            name = expression.path.root
            self._nothing[name] = self._nothing.get(name, False) or scope is None
        value = found.value
        for call in expression.filters:
            value = apply(call.name, value, call.argument, self._budget)
        return value

    def _find(self, path: Path, scope: _Scope | None) -> _Found:
        for _ in range(path.ups):
            scope = scope.outer if scope else None
        if path.root == "this":
            found = _Found(scope.item if scope else None)
        elif path.root.startswith("@"):
            found = _Found(scope.data(path.root) if scope else None)
        else:
            found = self._look_up(path.root, scope)
        value = found.value
        for field in path.fields:
            value = _field(value, field)
        return _Found(value, found.there)

    def _look_up(self, name: str, scope: _Scope | None) -> _Found:
        while scope:
            if name in scope.names:
                return _Found(scope.item)
            if isinstance(scope.item, Mapping) and name in scope.item:
                self._fields.add(name)
                return _Found(scope.item[name])
            scope = scope.outer
        return _Found(self._values[name]) if name in self._values else _Found(None, there=False)


def _field(value: object, field: str) -> object:
    if isinstance(value, Mapping):
        return value.get(field)
    if isinstance(value, (list, tuple)) and field.isdecimal():
        return value[int(field)] if int(field) < len(value) else None
    return None
