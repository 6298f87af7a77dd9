"""The name and kind of a definition, read from its node in the syntax tree of any language.

Most grammars have a name field; C puts the name inside declarators, JavaScript names functions by assigning them, Go
and Rust write a method's type apart from its name.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["FUNCTIONS", "TYPES", "Language", "NamedNode", "language_of", "node_text", "read_definition"]

# The programming languages whose syntax Cortex reads.
#
# `languages.json` lists them: which files are theirs, which grammar package parses them, and which nodes of the tree
# are definitions, imports, or belong to the definition that follows. `outline` loads the grammars.

FUNCTIONS = frozenset(("function", "method"))
TYPES = frozenset(("class", "struct", "union", "enum", "interface", "trait", "record", "impl"))

_SHEBANG = re.compile(r"#!.*?\b(python|node|ruby|php|lua|bash|sh)(?:[\d.]*)?(?=\s|$)")


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """One grammar and what its nodes mean.

    `definitions` maps nodes that have a name and become parts of their own to their kind. `values` become symbols
    outside functions only, and parts when they span lines. `prefixes` are nodes around a definition that begin it,
    such as decorators; `leading` are nodes before it that belong to it, such as its comment. `scopeless` definitions
    do not qualify the names inside them. `longest_statement` bounds text on which the grammar takes quadratic time.
    """

    name: str
    package: str
    definitions: Mapping[str, str]
    values: Mapping[str, str]
    imports: frozenset[str]
    prefixes: frozenset[str]
    leading: frozenset[str]
    scopeless: frozenset[str]
    factory: str
    modules_have_methods: bool
    longest_statement: int | None


@dataclass(frozen=True, slots=True)
class _Index:
    by_suffix: dict[str, Language]
    by_name: dict[str, Language]
    by_program: dict[str, Language]


def language_of(path: str, text: str = "") -> Language | None:
    """The language of a file by its name, or by the program that its first line asks for."""
    name = posixpath.basename(path).lower()
    suffix = posixpath.splitext(name)[1]
    index = _index()
    if found := index.by_suffix.get(suffix) or index.by_name.get(name):
        return found
    asked = _SHEBANG.match(text[:200].partition("\n")[0].rstrip()) if not suffix else None
    return index.by_program[asked[1]] if asked else None


@cache
def _index() -> _Index:
    rows: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("languages.json").read_text("utf-8"))
    index = _Index({}, {}, {})
    for name, row in rows.items():
        language = _language(name, row)
        for places, key in (
            (index.by_suffix, "suffixes"),
            (index.by_name, "file_names"),
            (index.by_program, "programs"),
        ):
            places.update(dict.fromkeys(row.get(key, "").split(), language))
    return index


def _language(name: str, row: Mapping[str, Any]) -> Language:
    def kinds(key: str) -> dict[str, str]:
        return {node: kind for kind, nodes in row.get(key, {}).items() for node in nodes.split()}

    def nodes(key: str, default: str = "") -> frozenset[str]:
        return frozenset(row.get(key, default).split())

    return Language(
        name=name,
        package=row["package"],
        definitions=kinds("definitions"),
        values=kinds("values"),
        imports=nodes("imports"),
        prefixes=nodes("prefixes"),
        leading=nodes("leading", "comment"),
        scopeless=nodes("scopeless"),
        factory=row.get("factory", "language"),
        modules_have_methods=row.get("modules_have_methods", False),
        longest_statement=row.get("longest_statement"),
    )


_LONGEST = 200
_FUNCTION_VALUES = frozenset(("arrow_function", "function_expression", "generator_function", "function_definition"))
_BODIED = frozenset(("struct_specifier", "union_specifier", "enum_specifier", "class_specifier"))
_EXPORTS = re.compile(r"^(?:module\.)?exports\.(?=.)")
_DOTTED = re.compile(r"[\w$]+(?:\.[\w$]+)*\Z")
_ARGUMENTS = re.compile(r"<[^<>]*>|\s+")
_OPERATOR = re.compile(r"\boperator\b\s*(?:\(\s*\)|[^(]*)")


class NamedNode(NamedTuple):
    """A definition: its name, those before it in a qualified one, and the byte where it stands."""

    name: str
    kind: str
    at: int
    prefix: str = ""
    is_symbol: bool = True
    is_object: bool = False


def node_text(node: Node | None) -> str:
    """The source text of a node, at most a line's worth of it."""
    data = (node.text or b"")[: 4 * _LONGEST] if node is not None else b""
    return data.decode("utf-8", "replace")[:_LONGEST]


def read_definition(language: Language, node: Node, kind: str) -> NamedNode | None:
    """The name of a definition; None for one without, and for a node that only resembles a definition."""
    special = _SPECIAL.get((language.name, node.type)) or _SPECIAL.get(("", node.type))
    if special is not None:
        return special(node, kind)
    return _plain(node, kind)


def _plain(node: Node, kind: str) -> NamedNode | None:
    return _from(node.child_by_field_name("name"), kind)


def _from(name: Node | None, kind: str) -> NamedNode | None:
    return None if name is None else _qualified(node_text(name), kind, name.start_byte)


def _qualified(text: str, kind: str, at: int) -> NamedNode | None:
    """A name that may be written as `a::b`, `a.b` or `a:b`, with type arguments."""
    operator = _OPERATOR.search(text)
    last = " ".join(operator[0].split()) if operator else ""
    rest = text[: operator.start()] if operator else text
    while (shorter := _ARGUMENTS.sub("", rest)) != rest:
        rest = shorter
    parts = [part for part in re.split(r"::|[.:\\]", rest.strip("\"'")) if part] + ([last] if last else [])
    return NamedNode(parts[-1], kind, at, ".".join(parts[:-1])) if parts else None


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


def _c_function(node: Node, kind: str) -> NamedNode | None:
    name, _ = _declared(node.child_by_field_name("declarator"))
    return _from(name, kind)


def _c_prototype(node: Node, kind: str) -> NamedNode | None:
    name, is_function = _declared(node.child_by_field_name("declarator"))
    return _from(name, kind) if is_function else None


def _bodied(node: Node, kind: str) -> NamedNode | None:
    return _plain(node, kind) if node.child_by_field_name("body") is not None else None


# JavaScript and TypeScript


def _of_value(name: Node | None, value: Node | None, otherwise: str | None) -> NamedNode | None:
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
    return NamedNode(node_text(name).strip("\"'`"), kind, name.start_byte, is_object=is_object)


def _js_variable(node: Node, kind: str) -> NamedNode | None:
    return _of_value(node.child_by_field_name("name"), node.child_by_field_name("value"), kind)


def _js_member(node: Node, _: str) -> NamedNode | None:
    name = node.child_by_field_name("key") or node.child_by_field_name("property") or node.child_by_field_name("name")
    found = _of_value(name, node.child_by_field_name("value"), None)
    return found._replace(kind="method") if found is not None and found.kind == "function" else None


def _js_assignment(node: Node, _: str) -> NamedNode | None:
    left = node.child_by_field_name("left")
    found = _of_value(left, node.child_by_field_name("right"), None)
    if found is None or not _DOTTED.match(found.name):
        return None
    name = _EXPORTS.sub("", found.name).replace(".prototype.", ".")
    prefix, _, last = name.rpartition(".")
    return found._replace(name=last, prefix=prefix) if name != "module.exports" else None


def _js_export(node: Node, kind: str) -> NamedNode | None:
    """`export default` of something without a name is imported under that word."""
    value = node.child_by_field_name("value")
    if value is None or value.type == "identifier":
        return None
    found = _of_value(value, value, kind)
    return found._replace(name="default", is_object=value.type == "object") if found else None


# Go, Rust, C#, PHP, Ruby, Lua


def _go_method(node: Node, kind: str) -> NamedNode | None:
    found = _plain(node, kind)
    receiver = node.child_by_field_name("receiver")
    taken = receiver.named_child(0) if receiver is not None and receiver.named_child_count else None
    owner = node_text(taken.child_by_field_name("type")) if taken is not None else ""
    return found and found._replace(prefix=owner.lstrip("*( ").partition("[")[0].rstrip(") "))


def _go_type(node: Node, kind: str) -> NamedNode | None:
    value = node.child_by_field_name("type")
    kinds = {"struct_type": "struct", "interface_type": "interface"}
    return _plain(node, kinds.get(value.type, kind) if value is not None else kind)


def _rust_impl(node: Node, kind: str) -> NamedNode | None:
    found = _from(node.child_by_field_name("type"), kind)
    return found and found._replace(name=found.name.lstrip("&"), prefix="", is_symbol=False)


def _unqualified(node: Node, kind: str) -> NamedNode | None:
    """A namespace with a body, under its whole name; without one it stands for the file."""
    name = node.child_by_field_name("name")
    if name is None or node.child_by_field_name("body") is None:
        return None
    return NamedNode(node_text(name).strip("\"'").replace("::", ".").replace("\\", "."), kind, name.start_byte)


def _php_constant(node: Node, kind: str) -> NamedNode | None:
    return _from(node.named_child(0) if node.named_child_count else None, kind)


def _assigned(node: Node, kind: str) -> NamedNode | None:
    """A plain name on the left: a variable of Python, a constant of Ruby."""
    left = node.child_by_field_name("left")
    wanted = "constant" if kind == "constant" else "identifier"
    return _from(left, kind) if left is not None and left.type == wanted else None


def _python_type(node: Node, kind: str) -> NamedNode | None:
    left = node.child_by_field_name("left")
    return NamedNode(node_text(left).partition("[")[0], kind, left.start_byte) if left is not None else None


def _lua_assignment(node: Node, kind: str) -> NamedNode | None:
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
    **{("", kind): _bodied for kind in _BODIED},
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
    ("", "mod_item"): _bodied,
    ("", "const_element"): _php_constant,
    ("", "assignment"): _assigned,
    ("", "type_alias_statement"): _python_type,
    ("", "assignment_statement"): _lua_assignment,
}
