"""What a definition does, read from its syntax: parameters, returns, exceptions, calls, values, conditions, bases.

One walk serves every language: the grammars name their nodes much alike, so a table of node types gives each its role.
A fact has its line, the text of its parts and the conditions that it stands under. The walk is bounded and keeps its
own stack, so deep or long input is safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

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

_ROLES: dict[str, str] = {
    node: role
    for role, nodes in {
        "return": "return_statement return_expression yield yield_statement yield_expression",
        "raise": "raise_statement throw_statement throw_expression",
        "catch": "except_clause catch_clause except_group_clause rescue",
        "call": "call call_expression method_invocation new_expression object_creation_expression macro_invocation "
                "invocation_expression",
        "value": "assignment variable_declarator assignment_expression short_var_declaration assignment_statement "
                 "const_spec var_spec let_declaration const_item static_item public_field_definition "
                 "field_definition augmented_assignment enum_assignment property_declaration enum_constant "
                 "enum_variant field_declaration property_signature method_signature type_alias_declaration",
        "pair": "keyword_argument pair keyed_element field_initializer dictionary_element",
        "condition": "if_statement if_expression elif_clause while_statement conditional_expression "
                     "ternary_expression unless if_let_expression while_expression assert_statement",
        "case": "switch_case case_clause expression_case match_arm switch_label",
        "decorator": "decorator marker_annotation annotation attribute_item",
        "base": "class_heritage extends_clause implements_clause superclass super_interfaces extends_type_clause "
                "delegation_specifier",
        "parameter": "default_parameter typed_parameter typed_default_parameter required_parameter "
                     "optional_parameter parameter_declaration variadic_parameter_declaration formal_parameter "
                     "spread_parameter parameter assignment_pattern",
    }.items()
    for node in nodes.split()
}  # fmt: skip
_PARAMETERS = frozenset(("parameters", "formal_parameters", "parameter_list", "lambda_parameters"))
_FUNCTIONS = frozenset((
    "function_definition", "function_declaration", "function_expression", "arrow_function", "method_definition",
    "method_declaration", "constructor_declaration", "function_item", "generator_function_declaration",
    "abstract_method_signature", "function_signature", "generator_function", "func_literal",
))  # fmt: skip
_HOLDERS = frozenset((
    "class_definition", "class_declaration", "abstract_class_declaration", "impl_item", "type_spec", "struct_item",
    "enum_item", "trait_item", "interface_declaration", "enum_declaration", "record_declaration",
    "type_alias_declaration",
))  # fmt: skip
_DECLARED = frozenset((
    "enum_constant", "enum_variant", "field_declaration", "property_signature", "method_signature",
))  # fmt: skip
_COLLECTIONS = frozenset((
    "list", "tuple", "set", "dictionary", "array", "object", "literal_value", "array_expression", "array_initializer",
    "initializer_list", "expression_list",
))  # fmt: skip
_LOOSE = frozenset(("identifier", "list_splat_pattern", "dictionary_splat_pattern", "rest_pattern", "object_pattern"))
_RECEIVERS = frozenset(("self", "cls", "this", "&self", "&mut self", "mut self", "self: Self"))
_PANICS = frozenset(("panic", "bail", "unreachable", "todo", "unimplemented", "abort", "fail"))
_WRAPPERS = frozenset(("new_expression", "call_expression", "call", "object_creation_expression", "await"))


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
            if child.type in ("async", "static", "accessibility_modifier", "visibility_modifier", "modifiers",
                              "abstract", "get", "set"):  # fmt: skip
                self._add("modifier", child, _text(child), "", (), owner)
        if self._language == "go" and node.type == "type_spec":
            self._go_type(node, owner)
        if node.type in _FUNCTIONS:
            result = node.child_by_field_name("return_type") or node.child_by_field_name("result")
            result = result or (node.child_by_field_name("type") if self._language == "java" else None)
            if result is not None:
                self._add("result", result, "", _text(result).lstrip(":-> "), (), owner)
            self._parameters(node, owner)
            self._ending(node, owner)

    def _go_type(self, node: Node, owner: str) -> None:
        inner = node.child_by_field_name("type")
        fields = (
            next((one for one in inner.named_children if one.type == "field_declaration_list"), None) if inner else None
        )
        for one in fields.named_children if fields is not None else ():
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
            name = (
                one.child_by_field_name("name") or one.child_by_field_name("pattern") or one.child_by_field_name("left")
            )
            names = one.children_by_field_name("name") if self._language == "go" else []
            value = one.child_by_field_name("value") or one.child_by_field_name("right")
            typed = one.child_by_field_name("type")
            written = _text(name) if name is not None else _text(one)
            if typed is not None and name is None and one.named_child_count:
                written = _text(one.named_child(0))
            traits = (
                {"variadic"}
                if "*" in written[:2]
                or written.startswith("...")
                or "variadic" in one.type
                or "spread" in one.type
                or "..." in written
                else set()
            )
            is_optional = value is not None or one.type == "optional_parameter"
            traits |= {"optional"} if is_optional else set() if traits else {"required"}
            if only_keywords and "variadic" not in traits:
                traits |= {"keyword"}
            if written.lstrip("*") in _RECEIVERS and place <= 1:
                continue
            for shown in [_text(each) for each in names] or [written]:
                self._add("parameter", one, shown.lstrip("*.&").removeprefix("mut "), _text(value), (), owner, None,
                          [*traits, *([f"type:{_text(typed).lstrip(': ')}"] if typed is not None else [])])  # fmt: skip

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
        end = last or body
        self._add(
            "return", end, "", "None" if self._language == "python" else "undefined", (), owner, None, ("implicit",)
        )

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
        shown = _text(value) if value is not None else ("None" if self._language == "python" else "undefined")
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
        names = [one for one in node.named_children if one.type not in ("block", "statement_block", "comment")]
        body = node.child_by_field_name("body") or next(
            (one for one in node.named_children if one.type in ("block", "statement_block")), None
        )
        does = body.named_children[0].type if body is not None and body.named_children else "pass_statement"
        written = " ".join(_text(one) for one in names)
        self._add(
            "catch", node, re.sub(r"\bas\s+\w+$", "", written).strip("() "), _text(body), guards, owner, None, (does,)
        )

    def _call(self, node: Node, guards: tuple[str, ...], owner: str) -> None:
        name = _called(node)
        arguments = node.child_by_field_name("arguments")
        listed = [one for one in arguments.named_children if one.type != "comment"] if arguments is not None else []
        self._add("call", node, name, _text(arguments), guards, owner, len(listed))
        last = re.split(r"[.:!]+", name.rstrip("!"))[-1]
        if last in _PANICS and self._language in ("go", "rust"):
            self._add("raise", node, last, _text(arguments), guards, owner)
        if last == "Err" and self._language == "rust":
            self._add(
                "raise",
                node,
                _called(listed[0]) or _text(listed[0]) if listed else "Err",
                _text(arguments),
                guards,
                owner,
            )
        # set("name", value), getenv("NAME", default): a name in quotes is given a value, and a route is no name.
        if len(listed) >= 2 and "string" in listed[0].type and _text(listed[0]).strip("\"'`")[:1] != "/":
            self._add("value", node, _text(listed[0]).strip("\"'`"), _text(listed[1]), guards, owner, _count(listed[1]),
                      (f"by:{last}",))  # fmt: skip

    def _value(self, role: str, node: Node, guards: tuple[str, ...], owner: str) -> None:
        if node.type == "field_declaration" and self._language != "rust":
            return  # read with its type in Go, and by its declarators in Java
        left = next((found for field in ("left", "name", "key", "pattern", "field")
                     if (found := node.child_by_field_name(field)) is not None), None)  # fmt: skip
        right = node.child_by_field_name("right") or node.child_by_field_name("value")
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
_ENDS = frozenset(("return_statement", "raise_statement", "throw_statement"))


def _can_end(node: Node, depth: int = 0) -> bool:
    """Whether the source may go on after a statement; one that always returns or raises ends the function."""
    if node.type in _ENDS:
        return False
    if depth > 12:
        return True
    inner = [one for one in node.named_children if one.type != "comment"]
    if node.type in (
        "block",
        "statement_block",
        "else_clause",
        "finally_clause",
        "except_clause",
        "catch_clause",
        "elif_clause",
    ):
        return not inner or _can_end(inner[-1], depth + 1)
    if node.type == "if_statement":
        branches = [
            one
            for one in inner
            if one.type in ("block", "statement_block", "else_clause", "elif_clause", *_ENDS, "if_statement")
        ]
        has_else = any(one.type == "else_clause" for one in branches)
        return not has_else or any(_can_end(one, depth + 1) for one in branches)
    if node.type == "try_statement":
        parts = [
            one
            for one in inner
            if one.type in ("block", "statement_block", "except_clause", "catch_clause", "finally_clause")
        ]
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
    condition = node.child_by_field_name("condition") or node.child_by_field_name("value")
    if node.type == "conditional_expression" and len(node.named_children) == 3:
        then, condition, other = node.named_children
        shown = _text(condition)
        yield _Visit(condition, guards, owner)
        yield _Visit(then, (*guards, shown), owner)
        yield _Visit(other, (*guards, f"not ({shown})"), owner)
        return
    if role == "catch":
        shown = "except " + " ".join(
            _text(one) for one in node.named_children if one.type not in ("block", "statement_block")
        )
    else:
        shown = _text(condition if condition is not None else node.named_children[0] if node.named_children else None)
    for place, child in enumerate(node.children):
        if not child.is_named:
            continue
        field = node.field_name_for_child(place)
        is_other = field == "alternative" or child.type in ("else_clause", "elif_clause", "else")
        if condition is not None and child.id == condition.id:
            yield _Visit(child, guards, owner)
        elif is_other:
            yield _Visit(child, (*guards, f"not ({shown})"), owner)
        else:
            yield _Visit(child, (*guards, shown), owner)


def _text(node: Node | None) -> str:
    if node is None:
        return ""
    data = (node.text or b"")[: 4 * _LONGEST]
    return " ".join(data.decode("utf-8", "replace")[:_LONGEST].split())


def _called(node: Node | None) -> str:
    """The name that an expression calls or creates; "" if it does neither."""
    for _ in range(3):
        if node is None:
            return ""
        if (
            node.type in ("await", "await_expression", "parenthesized_expression", "expression_list")
            and node.named_children
        ):
            node = node.named_children[0]
            continue
        break
    if node is None or node.type not in (*_WRAPPERS, "method_invocation", "macro_invocation"):
        return ""
    if node.type == "method_invocation":
        target = _text(node.child_by_field_name("object"))
        return (
            f"{target}.{_text(node.child_by_field_name('name'))}" if target else _text(node.child_by_field_name("name"))
        )
    function = next((found for field in ("function", "constructor", "type", "macro", "name")
                     if (found := node.child_by_field_name(field)) is not None), None)  # fmt: skip
    return _text(function)[:120]


def _count(node: Node | None) -> int | None:
    """How many entries a collection has; None for anything else."""
    if node is not None and node.type == "composite_literal":
        node = node.child_by_field_name("body")
    if node is not None and node.type in ("call", "new_expression", "call_expression"):
        # frozenset({…}), new Set([…])
        arguments = node.child_by_field_name("arguments")
        listed = arguments.named_children if arguments is not None else []
        node = listed[0] if len(listed) == 1 else None
    if node is not None and node.type in (
        "conditional_expression",
        "boolean_operator",
        "binary_expression",
        "ternary_expression",
    ):
        # `formats or [...]`: the entries that count where nothing is given.
        node = next((one for one in node.named_children if one.type in _COLLECTIONS), None)
    if node is not None and node.type == "union_type":
        return 1 + (_count(node.named_children[0]) or 1)
    if node is None or node.type not in _COLLECTIONS:
        return None
    return sum(one.type != "comment" for one in node.named_children)
