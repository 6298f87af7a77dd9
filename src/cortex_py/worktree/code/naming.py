"""The name and kind of a definition, read off its node in the syntax tree of any language.

Most grammars mark the name; C hides it inside declarators, JavaScript gives names to functions by
assigning them, Go and Rust write a method's type apart from its name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from .languages import Language

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Named", "named", "text_of"]

_LONGEST = 200
_FUNCTION_VALUES = frozenset(("arrow_function", "function_expression", "generator_function", "function_definition"))
_BODIED = frozenset(("struct_specifier", "union_specifier", "enum_specifier", "class_specifier"))
_EXPORTS = re.compile(r"^(?:module\.)?exports\.(?=.)")
_DOTTED = re.compile(r"[\w$]+(?:\.[\w$]+)*\Z")
_ARGUMENTS = re.compile(r"<[^<>]*>|\s+")
_OPERATOR = re.compile(r"\boperator\b\s*(?:\(\s*\)|[^(]*)")


class Named(NamedTuple):
    """A definition: its name, those before it in a qualified one, and the byte where it stands."""

    name: str
    kind: str
    at: int
    prefix: str = ""
    is_symbol: bool = True
    is_object: bool = False


def text_of(node: Node | None) -> str:
    """The source text of a node, at most a line's worth of it."""
    data = (node.text or b"")[: 4 * _LONGEST] if node is not None else b""
    return data.decode("utf-8", "replace")[:_LONGEST]


def named(language: Language, node: Node, kind: str) -> Named | None:
    """The name of a definition; None for one without, and for a node that only resembles a definition."""
    special = _SPECIAL.get((language.name, node.type)) or _SPECIAL.get(("", node.type))
    if special is not None:
        return special(node, kind)
    return _plain(node, kind)


def _plain(node: Node, kind: str) -> Named | None:
    return _from(node.child_by_field_name("name"), kind)


def _from(name: Node | None, kind: str) -> Named | None:
    return None if name is None else _qualified(text_of(name), kind, name.start_byte)


def _qualified(text: str, kind: str, at: int) -> Named | None:
    """A name that may be written as `a::b`, `a.b` or `a:b`, with type arguments."""
    operator = _OPERATOR.search(text)
    last = " ".join(operator[0].split()) if operator else ""
    rest = text[: operator.start()] if operator else text
    while (shorter := _ARGUMENTS.sub("", rest)) != rest:
        rest = shorter
    parts = [part for part in re.split(r"::|[.:\\]", rest.strip("\"'")) if part] + ([last] if last else [])
    return Named(parts[-1], kind, at, ".".join(parts[:-1])) if parts else None


# C and C++


def _declared(node: Node | None) -> tuple[Node | None, bool]:
    """The name inside a declarator, and whether it is declared as a function."""
    is_function = False
    while node is not None:
        if node.type == "operator_cast":
            return node, True
        is_function = is_function or node.type == "function_declarator"
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in ("reference_declarator", "parenthesized_declarator"):
            inner = node.named_child(node.named_child_count - 1) if node.named_child_count else None
        if inner is None:
            return node, is_function
        node = inner
    return None, is_function


def _c_function(node: Node, kind: str) -> Named | None:
    name, _ = _declared(node.child_by_field_name("declarator"))
    return _from(name, kind)


def _c_prototype(node: Node, kind: str) -> Named | None:
    name, is_function = _declared(node.child_by_field_name("declarator"))
    return _from(name, kind) if is_function else None


def _c_bodied(node: Node, kind: str) -> Named | None:
    return _plain(node, kind) if node.child_by_field_name("body") is not None else None


# JavaScript and TypeScript


def _of_value(name: Node | None, value: Node | None, otherwise: str | None) -> Named | None:
    if name is None or name.type.endswith("_pattern"):
        return None
    kind = otherwise
    if value is not None and value.type in _FUNCTION_VALUES:
        kind = "function"
    elif value is not None and value.type == "class":
        kind = "class"
    if kind is None:
        return None
    is_object = value is not None and value.type == "object"
    return Named(text_of(name).strip("\"'`"), kind, name.start_byte, is_object=is_object)


def _js_variable(node: Node, kind: str) -> Named | None:
    return _of_value(node.child_by_field_name("name"), node.child_by_field_name("value"), kind)


def _js_member(node: Node, _: str) -> Named | None:
    name = node.child_by_field_name("key") or node.child_by_field_name("property") or node.child_by_field_name("name")
    found = _of_value(name, node.child_by_field_name("value"), None)
    return found._replace(kind="method") if found is not None and found.kind == "function" else None


def _js_assignment(node: Node, _: str) -> Named | None:
    left = node.child_by_field_name("left")
    found = _of_value(left, node.child_by_field_name("right"), None)
    if found is None or not _DOTTED.match(found.name):
        return None
    name = _EXPORTS.sub("", found.name).replace(".prototype.", ".")
    prefix, _, last = name.rpartition(".")
    return found._replace(name=last, prefix=prefix) if name != "module.exports" else None


def _js_export(node: Node, kind: str) -> Named | None:
    """`export default` of something without a name is imported under that word."""
    value = node.child_by_field_name("value")
    if value is None or value.type == "identifier":
        return None
    found = _of_value(value, value, kind)
    return found._replace(name="default", is_object=value.type == "object") if found else None


# Go, Rust, C#, PHP, Ruby, Lua


def _go_method(node: Node, kind: str) -> Named | None:
    found = _plain(node, kind)
    receiver = node.child_by_field_name("receiver")
    taken = receiver.named_child(0) if receiver is not None and receiver.named_child_count else None
    owner = text_of(taken.child_by_field_name("type")) if taken is not None else ""
    return found and found._replace(prefix=owner.lstrip("*( ").partition("[")[0].rstrip(") "))


def _go_type(node: Node, kind: str) -> Named | None:
    value = node.child_by_field_name("type")
    kinds = {"struct_type": "struct", "interface_type": "interface"}
    return _plain(node, kinds.get(value.type, kind) if value is not None else kind)


def _rust_impl(node: Node, kind: str) -> Named | None:
    found = _from(node.child_by_field_name("type"), kind)
    return found and found._replace(name=found.name.lstrip("&"), prefix="", is_symbol=False)


def _rust_module(node: Node, kind: str) -> Named | None:
    return _plain(node, kind) if node.child_by_field_name("body") is not None else None


def _unqualified(node: Node, kind: str) -> Named | None:
    """A namespace with a body, under its whole name; without one it stands for the file."""
    name = node.child_by_field_name("name")
    if name is None or node.child_by_field_name("body") is None:
        return None
    return Named(text_of(name).strip("\"'").replace("::", ".").replace("\\", "."), kind, name.start_byte)


def _php_constant(node: Node, kind: str) -> Named | None:
    return _from(node.named_child(0) if node.named_child_count else None, kind)


def _ruby_constant(node: Node, kind: str) -> Named | None:
    left = node.child_by_field_name("left")
    return _from(left, kind) if left is not None and left.type == "constant" else None


def _python_variable(node: Node, kind: str) -> Named | None:
    left = node.child_by_field_name("left")
    return _from(left, kind) if left is not None and left.type == "identifier" else None


def _python_type(node: Node, kind: str) -> Named | None:
    left = node.child_by_field_name("left")
    return Named(text_of(left).partition("[")[0], kind, left.start_byte) if left is not None else None


def _lua_assignment(node: Node, kind: str) -> Named | None:
    lists = node.named_children
    if len(lists) != 2 or not all(one.named_child_count == 1 for one in lists):
        return None
    name, value = lists[0].named_child(0), lists[1].named_child(0)
    is_function = value is not None and value.type == "function_definition"
    return _from(name, kind) if is_function else None


_SPECIAL = {
    **{(language, "function_definition"): _c_function for language in ("c", "cpp")},
    ("", "declaration"): _c_prototype,
    ("", "field_declaration"): _c_prototype,
    ("", "type_definition"): _c_function,
    **{("", kind): _c_bodied for kind in _BODIED},
    ("", "namespace_definition"): _unqualified,
    ("", "namespace_declaration"): _unqualified,
    ("", "internal_module"): _unqualified,
    ("typescript", "module"): _unqualified,
    ("tsx", "module"): _unqualified,
    ("", "variable_declarator"): _js_variable,
    ("", "pair"): _js_member,
    ("", "field_definition"): _js_member,
    ("", "public_field_definition"): _js_member,
    ("", "assignment_expression"): _js_assignment,
    ("", "export_statement"): _js_export,
    ("go", "method_declaration"): _go_method,
    ("", "type_spec"): _go_type,
    ("", "impl_item"): _rust_impl,
    ("", "mod_item"): _rust_module,
    ("", "const_element"): _php_constant,
    ("ruby", "assignment"): _ruby_constant,
    ("python", "assignment"): _python_variable,
    ("", "type_alias_statement"): _python_type,
    ("", "assignment_statement"): _lua_assignment,
}
