"""Where a statement belongs: a small reader of the store's SQL that finds the key of every distributed table in it.

It knows just as much SQL as the store uses. A key counts where it is compared with parameters (`space = ?`,
`space IN (?, ?)`), alone or through equal keys of joined tables, in the plain conjunction of a WHERE or ON: one under
an OR or a NOT narrows nothing down. Whatever it cannot follow it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cortex_py.core.store.database import DISTRIBUTED

__all__ = ["Route", "route"]

_TOKEN = re.compile(r"'(?:[^']|'')*'|[A-Za-z_]\w*(?:\.(?:\w+|\*))?|\d+(?:\.\d+)?|<>|<=|>=|\|\||@>|&&|[^\s]")
_MARK = re.compile(r"/\* everywhere: ([\w ]+) \*/")
_JOINING = {"FROM", "JOIN", "INTO", "UPDATE"}
_CLAUSES = {"SELECT", "SET", "WHERE", "ON", "GROUP", "ORDER", "LIMIT", "HAVING", "RETURNING", "VALUES", "OFFSET"}
_NO_NAMES = _JOINING | _CLAUSES | {"AS", "LEFT", "CROSS", "INNER", "NATURAL", "UNION", "WITH", "MATERIALIZED"}
_QUERY = ("SELECT", "WITH")


@dataclass(frozen=True, slots=True)
class Route:
    """`keys` are the places of the parameters that name the spaces: one tuple for each table, or group of joined ones.

    `tables` are all that are named, `everywhere` the name of a listed statement that needs no key.
    """

    tables: frozenset[str]
    distributed: frozenset[str]
    keys: tuple[tuple[int, ...], ...]
    missing: tuple[str, ...]
    everywhere: str | None
    writes: bool
    # Rows of several servers can simply be put together: nothing counts, sorts or cuts them.
    plain: bool


@dataclass(slots=True)
class _Node:
    """A table, a subquery or a common table expression, as one block of a query names it."""

    name: str
    table: str | None
    inner: list[_Block] = field(default_factory=list)


@dataclass(slots=True)
class _Block:
    """One SELECT, UPDATE, DELETE or INSERT with what it reads from; nested blocks are blocks of their own."""

    words: list[tuple[int, object]]
    outer: _Block | None
    nodes: dict[str, _Node] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    bound: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A parameter, by its place."""

    place: int


@lru_cache(maxsize=4_096)
def route(sql: str) -> Route:
    """Read a statement."""
    marked = _MARK.search(sql)
    text = re.sub(r"\+(?=(?:\w+\.)?space\b)", "", _MARK.sub("", sql))
    places = iter(range(10_000))
    words: list[object] = [_Mark(next(places)) if word == "?" else word for word in _TOKEN.findall(text)]
    blocks = list(_blocks(words, None))
    for block in blocks:
        _read(block)
    everything = [one for block in blocks for one in _within(block)]
    groups = _Groups(everything)
    tables = [(block, node) for block in everything for node in block.nodes.values() if node.table]
    distributed = [(block, node) for block, node in tables if node.table in DISTRIBUTED]
    found = [(node, groups.keys(node)) for _, node in distributed]
    missing = [str(node.table) for node, marks in found if marks is None]
    keys = {marks for _, marks in found if marks is not None}
    first = str(words[0]).upper()
    upper = {str(word).upper() for word in words}
    return Route(
        frozenset(str(node.table) for _, node in tables),
        frozenset(str(node.table) for _, node in distributed),
        tuple(sorted(keys)),
        tuple(missing),
        marked[1] if marked else None,
        first in ("INSERT", "UPDATE", "DELETE"),
        not upper & {"ORDER", "LIMIT", "GROUP", "DISTINCT", "COUNT", "SUM", "MAX", "MIN"},
    )


def _blocks(words: Sequence[object], outer: _Block | None) -> Iterator[_Block]:
    """The blocks of a query, which UNION joins; what stands in brackets and is a query becomes a list of blocks."""
    block = _Block([], outer)
    depth = place = 0
    while place < len(words):
        word = words[place]
        if word == "(" and str(words[place + 1]).upper() in _QUERY:
            end = _closing(words, place)
            block.words.append((depth, list(_blocks(words[place + 1 : end], block))))
            place = end
        elif word == "UNION" and depth == 0:
            yield block
            block = _Block([], outer)
            place += words[place + 1] == "ALL"
        else:
            depth += (word == "(") - (word == ")")
            block.words.append((depth, word))
        place += 1
    yield block


def _closing(words: Sequence[object], opening: int) -> int:
    depth = 0
    for place in range(opening, len(words)):
        depth += (words[place] == "(") - (words[place] == ")")
        if depth == 0:
            return place
    raise AssertionError("brackets do not match")


def _within(block: _Block) -> Iterator[_Block]:
    yield block
    for _, word in block.words:
        for inner in word if isinstance(word, list) else ():
            yield from _within(inner)


def _read(block: _Block) -> None:
    """Find out what a block reads from, what it shows and which keys it compares with what."""
    clause, words = "", block.words
    either = any(depth == 0 and word == "OR" for depth, word in words)
    place = 0
    while place < len(words):
        depth, word = words[place]
        following = [one for _, one in words[place + 1 : place + 5]]
        name = str(word).upper() if isinstance(word, str) and depth == 0 else ""
        if isinstance(word, list):
            for inner in word:
                _read(inner)
        if name in _JOINING | _CLAUSES:
            clause = "rest" if name == "ON" and following[:1] == ["CONFLICT"] else name
        elif name == "WITH" or (clause == "WITH" and name == ","):
            _add(
                block,
                str(following[0]),
                None,
                next(w for _, w in words[place:] if isinstance(w, list) or w == "VALUES"),
            )
            clause = "WITH"
        elif clause in _JOINING and depth == 0 and word not in (",", ")"):
            place += _joined(block, word, following)
        elif clause == "SELECT" and depth == 0 and isinstance(word, str):
            block.shown.append(word)
        elif clause in ("WHERE", "ON") and depth == 0 and not either and _is_key(word):
            before = words[place - 1][1] if place else ""
            if before != "NOT" and following[:1] == ["="]:
                _compared(block, str(word), following[1])
            elif following[:2] == ["IN", "("]:
                marks = _list(words, place + 3)
                block.bound += [(str(word), marks)] if marks is not None else []
        place += 1
    if words and str(words[0][1]).upper() == "INSERT":
        _inserted(block)


def _joined(block: _Block, word: object, following: Sequence[object]) -> int:
    """Add a table or subquery with its alias; how many further words that took."""
    if word == "(" or (isinstance(word, str) and word.upper() in _NO_NAMES):
        return 0
    skip = 1 if following[:1] == ["AS"] else 0
    alias = following[skip] if len(following) > skip else ""
    named = isinstance(alias, str) and re.match(r"[A-Za-z_]\w*\Z", alias) and alias.upper() not in _NO_NAMES
    _add(block, str(alias) if named else str(word), word if isinstance(word, str) else None, word)
    return skip + 1 if named else 0


def _add(block: _Block, name: str, table: str | None, given: object) -> None:
    inner = given if isinstance(given, list) else []
    if table is not None and (seen := _found(block, table)) is not None and seen.table is None:
        # A common table expression under its own or another name.
        table, inner = None, seen.inner
    block.nodes[name] = _Node(name, table, inner)


def _found(block: _Block | None, name: str) -> _Node | None:
    while block is not None:
        if name in block.nodes:
            return block.nodes[name]
        block = block.outer
    return None


def _is_key(word: object) -> bool:
    return isinstance(word, str) and word.rpartition(".")[2] in ("space", "project_id")


def _compared(block: _Block, key: str, other: object) -> None:
    if isinstance(other, _Mark):
        block.bound.append((key, (other.place,)))
    elif _is_key(other):
        block.links.append((key, str(other)))


def _list(words: Sequence[tuple[int, object]], place: int) -> tuple[int, ...] | None:
    """The parameters of a list, if it holds nothing else; an empty one names no space, and so no server."""
    marks: list[int] = []
    while words[place][1] != ")":
        word = words[place][1]
        if isinstance(word, _Mark):
            marks.append(word.place)
        elif word != ",":
            return None
        place += 1
    return tuple(marks)


def _inserted(block: _Block) -> None:
    """The key of what is inserted: the value in the place of its column."""
    plain = [word for _, word in block.words]
    assert "VALUES" in plain, "only single rows are inserted"
    node = next(iter(block.nodes.values()))
    columns = [word for word in plain[plain.index("(") + 1 : plain.index(")")] if word != ","]
    start = plain.index("VALUES") + 2
    values: list[list[object]] = [[]]
    depth = 0
    for word in plain[start:]:
        depth += (word == "(") - (word == ")")
        if depth < 0:
            break
        if word == "," and depth == 0:
            values.append([])
        else:
            values[-1].append(word)
    key = DISTRIBUTED.get(str(node.table))
    if key in columns and isinstance((given := values[columns.index(key)])[0], _Mark):
        block.bound.append((f"{node.name}.{key}", (given[0].place,)))


class _Groups:
    """Tables whose keys are equal, and the parameters that one of them is compared with."""

    def __init__(self, blocks: Sequence[_Block]) -> None:
        self._same: dict[int, int] = {}
        self._marks: dict[int, tuple[int, ...]] = {}
        for block in blocks:
            for node in block.nodes.values():
                for inner in node.inner:
                    for shown in inner.shown:
                        if _is_key(shown) and (own := self._node(inner, shown)) is not None:
                            self._join(node, own)
            for one, other in block.links:
                left, right = self._node(block, one), self._node(block, other)
                if left is not None and right is not None:
                    self._join(left, right)
        for block in blocks:
            for key, marks in block.bound:
                if (node := self._node(block, key)) is not None:
                    known = self._marks.get(self._root(node), marks)
                    self._marks[self._root(node)] = min(known, marks, key=len)

    def keys(self, node: _Node) -> tuple[int, ...] | None:
        return self._marks.get(self._root(node))

    def _node(self, block: _Block, key: str) -> _Node | None:
        """The table that a key is of; nothing where the column is no key there, as `memory.project_id`."""
        name, _, column = key.rpartition(".")
        if name:
            node = _found(block, name)
        else:
            fitting = [one for one in block.nodes.values() if DISTRIBUTED.get(str(one.table), column) == column]
            node = fitting[0] if len(fitting) == 1 else None
        if node is None or DISTRIBUTED.get(str(node.table), column) != column:
            return None
        return node

    def _root(self, node: _Node) -> int:
        place = id(node)
        while self._same.get(place, place) != place:
            place = self._same[place]
        return place

    def _join(self, one: _Node, other: _Node) -> None:
        self._same[self._root(one)] = self._root(other)
