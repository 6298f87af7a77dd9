"""The programming languages whose syntax Cortex reads: how their files are named, which grammar wheel
parses them, and which nodes of the tree are definitions, imports, or belong to what follows them.

Only a table and a look-up: grammars are loaded in `parsing`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["FUNCTIONS", "TYPES", "Language", "language_of"]

FUNCTIONS = frozenset(("function", "method"))
TYPES = frozenset(("class", "struct", "union", "enum", "interface", "trait", "record", "impl"))


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """One grammar and what its nodes mean.

    `definitions` are nodes that have a name and become parts of their own; `values` become symbols
    outside functions only, and parts when they span lines. `prefixes` are nodes around a definition
    that begin it, such as decorators; `leading` are nodes before it that belong to it, such as its
    comment. Names inside `scopeless` definitions are not qualified by them. `longest_statement`
    bounds text on which the grammar is known to take quadratic time.
    """

    name: str
    package: str
    definitions: Mapping[str, str]
    values: Mapping[str, str] = field(default_factory=dict)
    imports: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    leading: frozenset[str] = frozenset(("comment",))
    scopeless: frozenset[str] = frozenset()
    factory: str = "language"
    modules_have_methods: bool = False
    longest_statement: int | None = None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PYTHON = Language(
    name="python",
    package="tree_sitter_python",
    definitions={"function_definition": "function", "class_definition": "class"},
    values={"assignment": "variable", "type_alias_statement": "type"},
    imports=_words("import_statement import_from_statement future_import_statement"),
    prefixes=_words("decorated_definition expression_statement"),
)
_JAVASCRIPT_DEFINITIONS = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "method_definition": "method",
    "field_definition": "method",
    "pair": "method",
    "assignment_expression": "function",
}
_JAVASCRIPT = Language(
    name="javascript",
    package="tree_sitter_javascript",
    definitions=_JAVASCRIPT_DEFINITIONS,
    values={"variable_declarator": "variable", "export_statement": "variable"},
    imports=_words("import_statement export_statement variable_declarator expression_statement"),
    prefixes=_words(
        "export_statement lexical_declaration variable_declaration expression_statement assignment_expression"
    ),
    leading=_words("comment decorator"),
)
_TYPESCRIPT_DEFINITIONS = _JAVASCRIPT_DEFINITIONS | {
    "abstract_class_declaration": "class",
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "internal_module": "namespace",
    "module": "namespace",
    "function_signature": "function",
    "abstract_method_signature": "method",
    "public_field_definition": "method",
}
_TYPESCRIPT = Language(
    name="typescript",
    package="tree_sitter_typescript",
    factory="language_typescript",
    definitions=_TYPESCRIPT_DEFINITIONS,
    values=_JAVASCRIPT.values,
    imports=_JAVASCRIPT.imports,
    prefixes=_JAVASCRIPT.prefixes | {"ambient_declaration"},
    leading=_JAVASCRIPT.leading,
)
_TSX = Language(
    name="tsx",
    package="tree_sitter_typescript",
    factory="language_tsx",
    definitions=_TYPESCRIPT_DEFINITIONS,
    values=_TYPESCRIPT.values,
    imports=_TYPESCRIPT.imports,
    prefixes=_TYPESCRIPT.prefixes,
    leading=_TYPESCRIPT.leading,
)
_GO = Language(
    name="go",
    package="tree_sitter_go",
    definitions={
        "function_declaration": "function",
        "method_declaration": "method",
        "type_spec": "type",
        "type_alias": "type",
    },
    values={"const_spec": "constant", "var_spec": "variable"},
    imports=_words("import_spec"),
    prefixes=_words(
        "type_declaration const_declaration var_declaration var_spec_list import_declaration import_spec_list"
    ),
)
_RUST = Language(
    name="rust",
    package="tree_sitter_rust",
    definitions={
        "function_item": "function",
        "function_signature_item": "function",
        "struct_item": "struct",
        "union_item": "union",
        "enum_item": "enum",
        "trait_item": "trait",
        "impl_item": "impl",
        "mod_item": "module",
        "macro_definition": "macro",
        "type_item": "type",
    },
    values={"const_item": "constant", "static_item": "variable"},
    imports=_words("use_declaration extern_crate_declaration mod_item"),
    leading=_words("line_comment block_comment attribute_item"),
)
_JAVA = Language(
    name="java",
    package="tree_sitter_java",
    definitions={
        "class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "record",
        "annotation_type_declaration": "interface",
        "method_declaration": "method",
        "constructor_declaration": "method",
        "compact_constructor_declaration": "method",
    },
    imports=_words("import_declaration"),
    leading=_words("line_comment block_comment"),
    longest_statement=8_000,
)
_C_DEFINITIONS = {
    "function_definition": "function",
    "struct_specifier": "struct",
    "union_specifier": "union",
    "enum_specifier": "enum",
    "type_definition": "type",
}
_C_VALUES = {"declaration": "function", "preproc_def": "macro", "preproc_function_def": "macro"}
_C = Language(
    name="c",
    package="tree_sitter_c",
    definitions=_C_DEFINITIONS,
    values=_C_VALUES,
    imports=_words("preproc_include"),
    prefixes=_words("declaration"),
    scopeless=_words("type_definition"),
)
_CPP = Language(
    name="cpp",
    package="tree_sitter_cpp",
    definitions=_C_DEFINITIONS
    | {"class_specifier": "class", "namespace_definition": "namespace", "concept_definition": "type"},
    values=_C_VALUES | {"field_declaration": "function", "alias_declaration": "type"},
    imports=_words("preproc_include"),
    prefixes=_words("template_declaration declaration field_declaration"),
    scopeless=_words("type_definition namespace_definition"),
)
_CSHARP = Language(
    name="csharp",
    package="tree_sitter_c_sharp",
    definitions={
        "class_declaration": "class",
        "struct_declaration": "struct",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "record",
        "delegate_declaration": "type",
        "method_declaration": "method",
        "constructor_declaration": "method",
        "local_function_statement": "function",
        "namespace_declaration": "namespace",
    },
    values={"property_declaration": "property"},
    imports=_words("using_directive"),
    prefixes=_words("global_statement"),
    scopeless=_words("namespace_declaration"),
    longest_statement=8_000,
)
_RUBY = Language(
    name="ruby",
    package="tree_sitter_ruby",
    definitions={"module": "module", "class": "class", "method": "function", "singleton_method": "function"},
    values={"assignment": "constant"},
    imports=_words("call"),
    prefixes=_words("call argument_list"),
    modules_have_methods=True,
)
_PHP = Language(
    name="php",
    package="tree_sitter_php",
    factory="language_php",
    definitions={
        "namespace_definition": "namespace",
        "class_declaration": "class",
        "interface_declaration": "interface",
        "trait_declaration": "trait",
        "enum_declaration": "enum",
        "function_definition": "function",
        "method_declaration": "method",
    },
    values={"const_element": "constant"},
    imports=_words("namespace_use_declaration expression_statement"),
    prefixes=_words("const_declaration"),
    scopeless=_words("namespace_definition"),
)
_BASH = Language(
    name="bash",
    package="tree_sitter_bash",
    definitions={"function_definition": "function"},
    imports=_words("command"),
)
_LUA = Language(
    name="lua",
    package="tree_sitter_lua",
    definitions={"function_declaration": "function", "assignment_statement": "function"},
    imports=_words("function_call assignment_statement"),
    prefixes=_words("variable_declaration"),
)

_BY_SUFFIX = {
    suffix: language
    for language, suffixes in (
        (_PYTHON, ".py .pyi .pyw"),
        (_JAVASCRIPT, ".js .jsx .mjs .cjs"),
        (_TYPESCRIPT, ".ts .mts .cts"),
        (_TSX, ".tsx"),
        (_GO, ".go"),
        (_RUST, ".rs"),
        (_JAVA, ".java"),
        (_C, ".c"),
        # A header may be either; the larger language reads both.
        (_CPP, ".h .cc .cpp .cxx .c++ .hh .hpp .hxx .h++ .ipp .inl .tpp .cu .cuh"),
        (_CSHARP, ".cs"),
        (_RUBY, ".rb .rake .gemspec .ru"),
        (_PHP, ".php .phtml .inc"),
        (_BASH, ".sh .bash .bats"),
        (_LUA, ".lua"),
    )
    for suffix in suffixes.split()
}
_BY_NAME = {"rakefile": _RUBY, "gemfile": _RUBY, "podfile": _RUBY, "vagrantfile": _RUBY, "fastfile": _RUBY}
_BY_PROGRAM = {
    "python": _PYTHON,
    "node": _JAVASCRIPT,
    "ruby": _RUBY,
    "php": _PHP,
    "lua": _LUA,
    "bash": _BASH,
    "sh": _BASH,
}
_SHEBANG = re.compile(r"#!.*?\b(python|node|ruby|php|lua|bash|sh)(?:[\d.]*)?(?=\s|$)")


def language_of(path: str, text: str = "") -> Language | None:
    """The language of a file by its name, else by the program that its first line asks for."""
    name = posixpath.basename(path).lower()
    suffix = posixpath.splitext(name)[1]
    if found := _BY_SUFFIX.get(suffix) or _BY_NAME.get(name):
        return found
    asked = _SHEBANG.match(text[:200].partition("\n")[0].rstrip()) if not suffix else None
    return _BY_PROGRAM[asked[1]] if asked else None
