"""The imports of a source file, read from the nodes of its syntax tree.

Modules are named as the source names them: relative imports stay relative, and renamed names keep their original
name. Resolving a module to a file is left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .naming import node_text

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Import", "read_imports"]

_QUOTES = "\"'`<>"
_Found = Iterator[tuple[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Import:
    """A module that a file imports, with the names taken from it: none for the module as such, `*` for all.

    The default export of a JavaScript module goes by the name `default`.
    """

    module: str
    names: tuple[str, ...]
    line: int


def read_imports(language: str, node: Node, line: int) -> list[Import]:
    """The imports of one statement, which need not be one."""
    reader = _READERS.get(language)
    return [Import(module, names, line) for module, names in reader(node) if module] if reader else []


def _field(node: Node | None, name: str) -> Node | None:
    return None if node is None else node.child_by_field_name(name)


def _string(node: Node | None) -> str:
    """A text literal without its quotes; nothing for one that is put together at run time."""
    if node is None or "string" not in node.type or any("interpolation" in one.type for one in node.named_children):
        return ""
    return node_text(node).strip(_QUOTES)


def _children(node: Node | None, *types: str) -> list[Node]:
    return [one for one in node.named_children if one.type in types] if node is not None else []


def _python(node: Node) -> _Found:
    names = node.children_by_field_name("name")
    plain = [node_text(_field(one, "name") or one) for one in names]
    if node.type == "import_statement":
        yield from ((name, ()) for name in plain)
        return
    everything = ("*",) if _children(node, "wildcard_import") else ()
    module = "__future__" if node.type == "future_import_statement" else node_text(_field(node, "module_name"))
    yield module, everything or tuple(plain)


def _javascript(node: Node) -> _Found:
    if node.type == "import_statement":
        clause = next(iter(_children(node, "import_clause", "import_require_clause")), None)
        yield _string(_field(node, "source") or _field(clause, "source")), tuple(_js_names(clause))
    elif node.type == "export_statement":
        clause = next(iter(_children(node, "export_clause")), None)
        names = [node_text(_field(one, "name")) for one in _children(clause, "export_specifier")]
        yield _string(_field(node, "source")), tuple(names) if clause is not None else ("*",)
    elif node.type == "variable_declarator":
        yield _js_call(_field(node, "value")), tuple(_js_taken(_field(node, "name")))
    elif node.named_child_count:
        expression = node.named_child(0)
        value = _field(expression, "right") if expression and expression.type == "assignment_expression" else expression
        yield _js_call(value), ()


def _js_names(clause: Node | None) -> Iterator[str]:
    for one in clause.named_children if clause is not None and clause.type == "import_clause" else ():
        if one.type == "identifier":
            yield "default"
        elif one.type == "namespace_import":
            yield "*"
        else:
            yield from (node_text(_field(name, "name")) for name in _children(one, "import_specifier"))


def _js_taken(pattern: Node | None) -> Iterator[str]:
    for one in pattern.named_children if pattern is not None and pattern.type == "object_pattern" else ():
        if name := _field(one, "key") or (one if one.type == "shorthand_property_identifier_pattern" else None):
            yield node_text(name)


def _js_call(node: Node | None) -> str:
    """The module of `require(…)` or `import(…)`, perhaps awaited, called or taken apart at once."""
    for _ in range(4):
        if node is None:
            return ""
        function = _field(node, "function")
        if function is not None and node_text(function) in ("require", "import"):
            arguments = _field(node, "arguments")
            return _string(arguments.named_child(0) if arguments and arguments.named_child_count else None)
        node = node.named_child(0) if node.type == "await_expression" else function or _field(node, "object")
    return ""


def _go(node: Node) -> _Found:
    name = _field(node, "name")
    yield _string(_field(node, "path")), ("*",) if name is not None and name.type == "dot" else ()


def _rust(node: Node) -> _Found:
    if node.type == "mod_item":
        # Without a body it stands for a file of that name.
        yield (f"self::{node_text(_field(node, 'name'))}" if _field(node, "body") is None else ""), ()
    elif node.type == "extern_crate_declaration":
        yield node_text(_field(node, "name")), ()
    else:
        yield from _rust_use(_field(node, "argument"))


def _rust_use(argument: Node | None) -> _Found:
    """The modules of a tree such as `a::{b, c::{d, *}}`, each with its names."""
    found: dict[str, list[str]] = {}
    waiting = [("", argument)]
    while waiting:
        base, node = waiting.pop()
        if node is None:
            continue
        if node.type == "use_as_clause":
            waiting.append((base, _field(node, "path")))
        elif node.type == "use_list":
            waiting += [(base, one) for one in reversed(node.named_children)]
        elif node.type == "scoped_use_list":
            waiting.append((_joined(base, node_text(_field(node, "path"))), _field(node, "list")))
        else:
            path = _joined(base, node_text(node))
            module, _, name = path.rpartition("::")
            # `use a::b::self` is the module itself.
            found.setdefault(module or name, []).extend([] if name == "self" or not module else [name])
    yield from ((module, tuple(names)) for module, names in found.items())


def _joined(base: str, path: str) -> str:
    return "::".join(part for part in (base, path) if part)


def _java(node: Node) -> _Found:
    path = node_text(next(iter(_children(node, "scoped_identifier", "identifier")), None))
    if _children(node, "asterisk"):
        yield path, ("*",)
    else:
        module, _, name = path.rpartition(".")
        yield (module, (name,)) if module else (name, ())


def _c(node: Node) -> _Found:
    path = _field(node, "path")
    yield (node_text(path).strip(_QUOTES) if path is not None and "string" in path.type else ""), ()


def _csharp(node: Node) -> _Found:
    names = [one for one in node.named_children if one.type in ("qualified_name", "identifier", "alias_qualified_name")]
    yield node_text(names[-1] if names else None), ()


def _ruby(node: Node) -> _Found:
    method = node_text(_field(node, "method"))
    arguments = _field(node, "arguments")
    module = _string(arguments.named_child(0) if arguments is not None and arguments.named_child_count else None)
    if method in ("require", "load") and _field(node, "receiver") is None:
        yield module, ()
    elif method == "require_relative":
        yield (module if module.startswith(".") else f"./{module}" if module else ""), ()


def _php(node: Node) -> _Found:
    if node.type == "expression_statement":
        inner = node.named_child(0) if node.named_child_count else None
        if inner is not None and inner.type in _PHP_INCLUDES and inner.named_child_count:
            yield _string(inner.named_child(0)), ()
        return
    group = _field(node, "body")
    base = node_text(next(iter(_children(node, "namespace_name")), None))
    if group is not None:
        yield base, tuple(node_text(one.named_child(0)) for one in _children(group, "namespace_use_clause"))
        return
    for clause in _children(node, "namespace_use_clause"):
        module, _, name = node_text(clause.named_child(0)).strip("\\").rpartition("\\")
        yield (module, (name,)) if module else (name, ())


_PHP_INCLUDES = ("require_expression", "require_once_expression", "include_expression", "include_once_expression")


def _bash(node: Node) -> _Found:
    arguments = node.children_by_field_name("argument")
    if node_text(_field(node, "name")) in ("source", ".") and arguments:
        path = node_text(arguments[0]).strip(_QUOTES)
        yield (path if "$(" not in path and "`" not in path else ""), ()


def _lua(node: Node) -> _Found:
    call: Node | None = node
    if node.type == "assignment_statement":
        values = next(iter(_children(node, "expression_list")), None)
        call = values.named_child(0) if values is not None and values.named_child_count else None
    arguments = _field(call, "arguments")
    if call is not None and node_text(_field(call, "name")) == "require" and arguments is not None:
        yield _string(arguments.named_child(0) if arguments.named_child_count else None), ()


_READERS: dict[str, Callable[[Node], _Found]] = {
    "python": _python, "javascript": _javascript, "typescript": _javascript, "tsx": _javascript, "go": _go,
    "rust": _rust, "java": _java, "c": _c, "cpp": _c, "csharp": _csharp, "ruby": _ruby, "php": _php, "bash": _bash,
    "lua": _lua,
}  # fmt: skip
