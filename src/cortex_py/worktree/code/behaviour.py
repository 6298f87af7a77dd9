"""What a definition does, read from its syntax: parameters, returns, exceptions, calls, values, conditions, bases.

One walk serves every language: the grammars name their nodes much alike, so a table of node types gives each its role.
A fact has its line, the text of its parts and the conditions that it stands under. The walk is bounded and keeps its
own stack, so deep or long input is safe.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .naming import Language
from .outline import parse_tree

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["CodeFact", "Role", "SyntaxFile"]

Role = Literal[
    "parameter", "result", "return", "raise", "catch", "call", "value", "base", "decorator", "condition", "modifier",
]  # fmt: skip

_MOST_NODES = 40_000
_MOST_FACTS = 4_000
_LONGEST = 400  # characters of one part

# The types of nodes by what they do, in all grammars together.
_DATA: dict[str, Any] = json.loads(Path(__file__).with_name("behaviour.json").read_text("utf-8"))
_ROLES: dict[str, str] = {node: role for role, nodes in _DATA["roles"].items() for node in nodes.split()}


def _types(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


_FUNCTIONS, _HOLDERS, _DECLARED = _types("functions"), _types("holders"), _types("declared")
_COLLECTIONS, _LOOSE, _WRAPPERS = _types("collections"), _types("loose"), _types("wrappers")
_ENDS, _CLAUSES, _BRANCHES, _ATTEMPTS = _types("ends"), _types("clauses"), _types("branches"), _types("attempts")
_EITHER, _AROUND, _HEAD_WORDS = _types("either"), _types("around"), _types("words_of_heads")
_BLOCKS = ("block", "statement_block")
_RECEIVERS = frozenset(("self", "cls", "this", "&self", "&mut self", "mut self", "self: Self"))
_PANICS = frozenset(("panic", "bail", "unreachable", "todo", "unimplemented", "abort", "fail"))


@dataclass(frozen=True, slots=True)
class CodeFact:
    """One thing that a definition does. `name` is what is called, raised or given a value; `value` its source text.

    `guards` are the conditions around it, the outermost first; `count` is the number of entries of a collection;
    `owner` is the innermost function or class that it is in; `order` is its place in the file.
    """

    role: Role
    name: str
    value: str
    line: int
    end_line: int
    order: int
    guards: tuple[str, ...] = ()
    owner: str = ""
    count: int | None = None
    traits: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Visit:
    node: Node
    guards: tuple[str, ...]
    owner: str
    inside: bool = False  # a function


class SyntaxFile:
    """The syntax tree of one source file; facts are read for one definition at a time."""

    def __init__(self, language: Language, text: str) -> None:
        self._language = language
        self._lines = text.split("\n")
        self._root = parse_tree(language, text.encode("utf-8", "replace"))
        self._known: dict[tuple[str, int, int], tuple[CodeFact, ...]] = {}

    @property
    def is_parsed(self) -> bool:
        return self._root is not None

    def facts(self, name: str, line: int, end_line: int) -> tuple[CodeFact, ...]:
        """The facts of the definition with this name between two lines, counted from 1."""
        key = (name, line, end_line)
        if key not in self._known:
            node = self._definition(name, line, end_line)
            self._known[key] = tuple(_Walk(self._language.name).over(node)) if node is not None else ()
        return self._known[key]

    def every_fact(self) -> tuple[CodeFact, ...]:
        """The facts of the whole file."""
        key = ("", 0, 0)
        if key not in self._known:
            self._known[key] = tuple(_Walk(self._language.name).over(self._root)) if self._root is not None else ()
        return self._known[key]

    def _definition(self, name: str, line: int, end_line: int) -> Node | None:
        if self._root is None or line > len(self._lines):
            return None
        written = self._lines[line - 1]
        column = max(0, len(written[: max(0, written.find(name))].encode("utf-8", "replace")))
        node = self._root.named_descendant_for_point_range((line - 1, column), (line - 1, column))
        while node is not None and node.end_point[0] + 1 < end_line:
            node = node.parent
        while node is not None and node.parent is not None and node.parent.parent is not None:
            up = node.parent
            same_end = up.end_point[0] == node.end_point[0]
            if not same_end or up.type in ("block", "class_body", "program", "module", "statement_block", "object"):
                break
            if up.start_point[0] < line - 1 and up.type not in ("decorated_definition", "export_statement"):
                break
            node = up
        return node


class _Walk:
    def __init__(self, language: str) -> None:
        self._language = language
        self._nothing = "None" if language == "python" else "undefined"
        self.found: list[CodeFact] = []

    def over(self, root: Node) -> list[CodeFact]:
        waiting = [_Visit(root, (), "")]
        seen = 0
        while waiting and seen < _MOST_NODES and len(self.found) < _MOST_FACTS:
            visit = waiting.pop()
            seen += 1
            waiting += reversed(list(self._enter(visit)))
        self.found.sort(key=lambda one: one.order)
        return self.found

    def _enter(self, visit: _Visit) -> Iterator[_Visit]:
        node, guards, owner, inside = visit.node, visit.guards, visit.owner, visit.inside
        kind = node.type
        if kind in _FUNCTIONS or kind in _HOLDERS:
            name = _text(node.child_by_field_name("name"))
            # A function without a name inside another one is not that one.
            owner = name or (f"{owner}.<>" if visit.inside and kind in _FUNCTIONS else owner)
            inside = inside or kind in _FUNCTIONS
            self._head(node, owner)
        role = _ROLES.get(kind)
        if role is not None:
            self._fact(role, node, guards, owner)
        if role in ("condition", "case", "catch"):
            for one in _branches(node, role, guards, owner):
                yield replace(one, inside=inside)
            return
        for child in node.named_children:
            yield _Visit(child, guards, owner, inside)

    def _add(
        self, role: Role, node: Node, name: str, value: str, guards: tuple[str, ...], owner: str,
        count: int | None = None, traits: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.found.append(
            CodeFact(role, name, value, node.start_point[0] + 1, node.end_point[0] + 1, node.start_byte, guards, owner,
                     count, frozenset(traits))
        )  # fmt: skip

    def _head(self, node: Node, owner: str) -> None:
        """The signature of a function, or the bases of a class."""
        bases = node.child_by_field_name("superclasses")
        for base in bases.named_children if bases is not None else ():
            if base.type != "keyword_argument":
                self._add("base", base, _text(base), "", (), owner)
        trait = node.child_by_field_name("trait")
        if trait is not None:
            self._add("base", trait, _text(trait), "", (), owner)
        for child in node.children:
            if child.type in _HEAD_WORDS:
                self._add("modifier", child, _text(child), "", (), owner)
        if self._language == "go" and node.type == "type_spec":
            self._go_type(node, owner)
        if node.type in _FUNCTIONS:
            result = _field(node, "return_type", "result", *(("type",) if self._language == "java" else ()))
            if result is not None:
                self._add("result", result, "", _text(result).lstrip(":-> "), (), owner)
            self._parameters(node, owner)
            self._ending(node, owner)

    def _go_type(self, node: Node, owner: str) -> None:
        inner = node.child_by_field_name("type")
        lists = [one for one in inner.named_children if one.type == "field_declaration_list"][:1] if inner else []
        for one in lists[0].named_children if lists else ():
            name, typed = one.child_by_field_name("name"), one.child_by_field_name("type")
            if one.type == "field_declaration":
                role: Role = "value" if name is not None else "base"
                self._add(role, one, _text(name or typed).lstrip("*"), "", (), owner)
        for one in inner.named_children if inner is not None and inner.type == "interface_type" else ():
            if one.type == "type_elem":
                self._add("base", one, _text(one), "", (), owner)
            elif one.type == "method_elem":
                self._add("value", one, _text(one.child_by_field_name("name")), "", (), owner)
        if inner is not None:
            self._add("modifier", inner, inner.type.removesuffix("_type"), "", (), owner)

    def _parameters(self, node: Node, owner: str) -> None:
        listed = node.child_by_field_name("parameters")
        only_keywords = False
        for place, one in enumerate(listed.children if listed is not None else ()):
            if one.type in ("keyword_separator",) or (one.type == "list_splat_pattern"):
                only_keywords = True
            if _text(one) in _RECEIVERS or not (one.type in _LOOSE or one.type in _ROLES):
                continue
            name = _field(one, "name", "pattern", "left")
            names = one.children_by_field_name("name") if self._language == "go" else []
            value = _field(one, "value", "right")
            typed = one.child_by_field_name("type")
            written = _text(name) if name is not None else _text(one)
            if typed is not None and name is None and one.named_child_count:
                written = _text(one.named_child(0))
            is_variadic = "*" in written[:2] or "..." in written or "variadic" in one.type or "spread" in one.type
            is_optional = value is not None or one.type == "optional_parameter"
            traits = ["variadic"] if is_variadic else []
            traits += ["optional"] if is_optional else [] if is_variadic else ["required"]
            traits += ["keyword"] if only_keywords and not is_variadic else []
            traits += [f"type:{_text(typed).lstrip(': ')}"] if typed is not None else []
            if written.lstrip("*") in _RECEIVERS and place <= 1:
                continue
            for shown in [_text(each) for each in names] or [written]:
                self._add("parameter", one, shown.lstrip("*.&").removeprefix("mut "), _text(value), (), owner, None,
                          traits)  # fmt: skip

    def _ending(self, node: Node, owner: str) -> None:
        """A body whose last statement returns nothing gives nothing back."""
        body = node.child_by_field_name("body")
        if body is None or self._language in ("rust", "go", "java"):
            return
        if body.type not in ("block", "statement_block"):
            self._add("return", body, "", _text(body), (), owner)  # an arrow function with an expression
            return
        last = body.named_children[-1] if body.named_children else None
        if last is not None and not _can_end(last):
            return
        self._add("return", last or body, "", self._nothing, (), owner, None, ("implicit",))

    def _fact(self, role: str, node: Node, guards: tuple[str, ...], owner: str) -> None:
        read = {
            "return": self._return, "raise": self._raise, "catch": self._catch, "call": self._call,
            "condition": self._condition, "decorator": self._decorator, "base": self._base,
        }.get(role)  # fmt: skip
        if read is not None:
            read(node, guards, owner)
        elif role in ("value", "pair"):
            self._value(role, node, guards, owner)

    def _return(self, node: Node, guards: tuple[str, ...], owner: str) -> None:
        value = node.named_children[0] if node.named_children else None
        traits = ("yield",) if "yield" in node.type else ()
        shown = _text(value) if value is not None else self._nothing
        self._add("return", node, _called(value), shown, guards, owner, _count(value), traits)
        if self._language == "go" and (error := _GO_ERROR.search(shown)):
            self._add("raise", node, error[1], shown, guards, owner)

    def _raise(self, node: Node, guards: tuple[str, ...], owner: str) -> None:
        value = next((one for one in node.named_children if one.type != "comment"), None)
        self._add("raise", node, _called(value) or _text(value), _text(value), guards, owner)

    def _condition(self, node: Node, guards: tuple[str, ...], owner: str) -> None:
        condition = node.child_by_field_name("condition") or (node.named_children[0] if node.named_children else None)
        if node.type == "conditional_expression" and len(node.named_children) > 1:
            condition = node.named_children[1]
        self._add("condition", condition or node, "", _text(condition), guards, owner)

    def _decorator(self, node: Node, guards: tuple[str, ...], owner: str) -> None:
        inner = node.named_children[0] if node.named_children else node
        self._add("decorator", node, _called(inner) or _text(inner), _text(node), guards, owner)

    def _base(self, node: Node, _: tuple[str, ...], owner: str) -> None:
        if node.type == "class_heritage" and any("clause" in one.type for one in node.named_children):
            return
        for base in node.named_children:
            for one in base.named_children if base.type == "type_list" else (base,):
                self._add("base", one, re.split(r"[<(]", _text(one))[0], "", (), owner)

    def _catch(self, node: Node, guards: tuple[str, ...], owner: str) -> None:
        names = [one for one in node.named_children if one.type not in (*_BLOCKS, "comment")]
        body = _field(node, "body") or next((one for one in node.named_children if one.type in _BLOCKS), None)
        does = body.named_children[0].type if body is not None and body.named_children else "pass_statement"
        caught = re.sub(r"\bas\s+\w+$", "", " ".join(_text(one) for one in names)).strip("() ")
        self._add("catch", node, caught, _text(body), guards, owner, None, (does,))

    def _call(self, node: Node, guards: tuple[str, ...], owner: str) -> None:
        name = _called(node)
        arguments = node.child_by_field_name("arguments")
        listed = [one for one in arguments.named_children if one.type != "comment"] if arguments is not None else []
        self._add("call", node, name, _text(arguments), guards, owner, len(listed))
        last = re.split(r"[.:!]+", name.rstrip("!"))[-1]
        if last in _PANICS and self._language in ("go", "rust"):
            self._add("raise", node, last, _text(arguments), guards, owner)
        if last == "Err" and self._language == "rust":
            error = (_called(listed[0]) or _text(listed[0])) if listed else "Err"
            self._add("raise", node, error, _text(arguments), guards, owner)
        # set("name", value), getenv("NAME", default): a name in quotes is given a value, and a route is no name.
        if len(listed) >= 2 and "string" in listed[0].type and _text(listed[0]).strip("\"'`")[:1] != "/":
            self._add("value", node, _text(listed[0]).strip("\"'`"), _text(listed[1]), guards, owner, _count(listed[1]),
                      (f"by:{last}",))  # fmt: skip

    def _value(self, role: str, node: Node, guards: tuple[str, ...], owner: str) -> None:
        if node.type == "field_declaration" and self._language != "rust":
            return  # read with its type in Go, and by its declarators in Java
        left, right = _field(node, "left", "name", "key", "pattern", "field"), _field(node, "right", "value")
        if left is None and len(node.named_children) == 2 and node.type not in _DECLARED:
            left, right = node.named_children
        if left is None or (right is None and node.type not in _DECLARED):
            return
        if right is not None and right.type == "expression_list" and right.named_child_count == 1:
            right = right.named_children[0]
        name = _text(left).strip("\"'`")
        self._add("value", node, name, _text(right), guards, owner, _count(right), ("pair",) if role == "pair" else ())


# In Go an error is returned, by its type or by the variable that holds it.
_GO_ERROR = re.compile(r"(?:^|[\s,&(])((?:\w+\.)?(?:Err[A-Z]\w*|err[A-Z]\w*|\w+(?:Error|Exception)))\b(?:[({]|$|\W)")


def _can_end(node: Node, depth: int = 0) -> bool:
    """Whether the source may go on after a statement; one that always returns or raises ends the function."""
    if node.type in _ENDS:
        return False
    if depth > 12:
        return True
    inner = [one for one in node.named_children if one.type != "comment"]
    if node.type in _CLAUSES:
        return not inner or _can_end(inner[-1], depth + 1)
    if node.type == "if_statement":
        branches = [one for one in inner if one.type in _BRANCHES]
        has_else = any(one.type == "else_clause" for one in branches)
        return not has_else or any(_can_end(one, depth + 1) for one in branches)
    if node.type == "try_statement":
        parts = [one for one in inner if one.type in _ATTEMPTS]
        finals = [one for one in parts if one.type == "finally_clause"]
        if any(not _can_end(one, depth + 1) for one in finals):
            return False
        return any(_can_end(one, depth + 1) for one in parts if one not in finals)
    if node.type == "with_statement":
        return _can_end(inner[-1], depth + 1) if inner else True
    if node.type == "while_statement":
        return _text(node.child_by_field_name("condition")).strip("()") not in ("True", "true", "1")
    return not (node.type == "switch_statement" and "default" in _text(node))


def _branches(node: Node, role: str, guards: tuple[str, ...], owner: str) -> Iterator[_Visit]:
    condition = _field(node, "condition", "value")
    if node.type == "conditional_expression" and len(node.named_children) == 3:
        then, condition, other = node.named_children
        shown = _text(condition)
        yield _Visit(condition, guards, owner)
        yield _Visit(then, (*guards, shown), owner)
        yield _Visit(other, (*guards, f"not ({shown})"), owner)
        return
    if role == "catch":
        shown = "except " + " ".join(_text(one) for one in node.named_children if one.type not in _BLOCKS)
    else:
        shown = _text(condition if condition is not None else node.named_children[0] if node.named_children else None)
    for place, child in enumerate(node.children):
        if not child.is_named:
            continue
        field = node.field_name_for_child(place)
        is_other = field == "alternative" or child.type in ("else_clause", "elif_clause", "else")
        is_condition = condition is not None and child.id == condition.id
        around = guards if is_condition else (*guards, f"not ({shown})" if is_other else shown)
        yield _Visit(child, around, owner)


def _text(node: Node | None) -> str:
    if node is None:
        return ""
    data = (node.text or b"")[: 4 * _LONGEST]
    return " ".join(data.decode("utf-8", "replace")[:_LONGEST].split())


def _field(node: Node, *names: str) -> Node | None:
    """The child under the first of these fields that a node has."""
    return next((found for name in names if (found := node.child_by_field_name(name)) is not None), None)


def _called(node: Node | None) -> str:
    """The name that an expression calls or creates; "" if it does neither."""
    for _ in range(3):
        if node is None or node.type not in _AROUND or not node.named_children:
            break
        node = node.named_children[0]
    if node is None or node.type not in (*_WRAPPERS, "method_invocation", "macro_invocation"):
        return ""
    if node.type == "method_invocation":
        target, name = _text(_field(node, "object")), _text(_field(node, "name"))
        return f"{target}.{name}" if target else name
    return _text(_field(node, "function", "constructor", "type", "macro", "name"))[:120]


def _count(node: Node | None) -> int | None:
    """How many entries a collection has; None for anything else."""
    if node is not None and node.type == "composite_literal":
        node = node.child_by_field_name("body")
    if node is not None and node.type in ("call", "new_expression", "call_expression"):
        # frozenset({…}), new Set([…])
        arguments = node.child_by_field_name("arguments")
        listed = arguments.named_children if arguments is not None else []
        node = listed[0] if len(listed) == 1 else None
    if node is not None and node.type in _EITHER:
        # `formats or [...]`: the entries that count where nothing is given.
        node = next((one for one in node.named_children if one.type in _COLLECTIONS), None)
    if node is not None and node.type == "union_type":
        return 1 + (_count(node.named_children[0]) or 1)
    if node is None or node.type not in _COLLECTIONS:
        return None
    return sum(one.type != "comment" for one in node.named_children)
