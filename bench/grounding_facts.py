"""What is true of a code project at a commit, read with Python's own `ast`, plain patterns and git.

Nothing here comes from Cortex: the truth that claims are compared with has to be independent of what is measured.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tarfile
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

import grounding_manifests
from grounding_manifests import Dependency

SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
TEXTS = (*SCRIPTS, ".py", ".pyi", ".md", ".rst", ".txt", ".toml", ".cfg", ".ini", ".json", ".yml", ".yaml", ".html", "")
LONGEST = 400_000
WORD = re.compile(r"[A-Za-z_$][\w$]*")
_DEFINED = re.compile(
    r"^(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?"
    r"(?:(?P<function>(?:async\s+)?function\s*\*?)|(?P<class>class)|(?P<constant>const|let|var)|(?P<type>interface|type|enum))"
    r"\s+(?P<name>[A-Za-z_$][\w$]*)(?P<rest>.*)$"
)
_PARAMETERS = re.compile(r"^\s*\(([^(){}\[\]<>]*)\)")
_PARAMETER = re.compile(r"^([A-Za-z_$][\w$]*)(?:\s*=\s*(-?\d+|true|false|null|'[^']*'|\"[^\"]*\"))?$")
_EXTENDS = re.compile(r"^(?:<[^>]*>)?\s*extends\s+([A-Za-z_$][\w$]*)\s*(?:<[^{]*>\s*)?(?:implements[^{]*)?\{")
_LITERAL = re.compile(
    r"^\s*(?::\s*(?:number|string|boolean)\s*)?=\s*(-?\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\")\s*;?\s*(?://.*)?$"
)
_IMPORTED = re.compile(r"(?:\bfrom\s+|\bimport\s+|\brequire\(\s*|\bimport\(\s*)(['\"])([^'\"]+)\1")


@dataclass(frozen=True)
class Parameter:
    name: str
    default: str | None
    """As it is written, where it is a literal."""
    required: bool = False


@dataclass(frozen=True)
class Definition:
    """A name that a file gives a meaning: its lines are those of its head, decorators included."""

    name: str
    kind: str
    path: str
    first: int
    last: int
    owner: str | None = None
    parameters: tuple[Parameter, ...] = ()
    bases: tuple[str, ...] = ()
    raises: tuple[tuple[str, int], ...] = ()
    decorators: tuple[str, ...] = ()
    value: str | None = None
    open_ended: bool = False
    """Takes more than its named parameters, or may have more members than can be read here."""
    opaque: bool = False
    """Some base, decorator or raised value is an expression that has no plain name."""
    end: int = 0
    """The last line of its body."""

    @property
    def is_property(self) -> bool:
        return bool({"property", "cached_property", "setter", "deleter", "getter"} & set(self.decorators))

    @property
    def qualified(self) -> str:
        return f"{self.owner}.{self.name}" if self.owner else self.name


@dataclass
class Source:
    """One file of code: what it defines, what it imports (with lines), what names it binds, what words it has."""

    path: str
    definitions: list[Definition] = field(default_factory=list)
    imports: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    bound: set[str] = field(default_factory=set)
    words: frozenset[str] = frozenset()
    stars: bool = False


@dataclass
class Project:
    """All files of a commit."""

    commit: str
    files: dict[str, str]
    paths: tuple[str, ...]
    _bodies: dict[Definition, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def sources(self) -> dict[str, Source]:
        read = {}
        for path, text in self.files.items():
            if path.endswith(".py"):
                source = _python(path, text)
            elif path.endswith(SCRIPTS) and not path.endswith((".d.ts", ".d.mts", ".d.cts")):
                source = _script(path, text)
            else:
                continue
            if source is not None:
                source.words = frozenset(WORD.findall(text))
                read[path] = source
        return read

    @cached_property
    def defined(self) -> dict[str, list[Definition]]:
        """All definitions, by bare name."""
        by_name: dict[str, list[Definition]] = defaultdict(list)
        for source in self.sources.values():
            for one in source.definitions:
                by_name[one.name].append(one)
        return by_name

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of every text, in one case and without underscores: what is not in it is nowhere."""
        found: set[str] = set()
        for path, text in self.files.items():
            found.update(flat(word) for word in WORD.findall(text))
            found.update(flat(part) for part in re.split(r"[/.]", path))
        return frozenset(found)

    @cached_property
    def basenames(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = defaultdict(list)
        for path in self.paths:
            names[PurePosixPath(path).name].append(path)
        return names

    @cached_property
    def dependencies(self) -> list[Dependency]:
        return [one for path, text in self.files.items() for one in grounding_manifests.dependencies(path, text)]

    @cached_property
    def versions(self) -> list[tuple[str, str, int]]:
        """The version that the project gives itself: text, path, line."""
        return [(*one[:1], path, one[1]) for path, text in self.files.items() for one in _versions(path, text)]

    def body(self, one: Definition) -> frozenset[str]:
        """Every word of a definition, its head included."""
        if one not in self._bodies:
            lines = self.files[one.path].splitlines()[one.first - 1 : one.end]
            self._bodies[one] = frozenset(WORD.findall("\n".join(lines)))
        return self._bodies[one]

    def reached(self, one: Definition) -> set[str]:
        """All that may be raised in what a function names, and in what that names, whichever of a name is meant."""
        found = {name for name, _ in one.raises}
        names = self.body(one) & self._calls.keys()
        seen = set(names)
        while names:
            fresh: set[str] = set()
            for name in names:
                fresh |= self._calls[name]
                found.update(error for other in self.defined[name] for error, _ in other.raises)
            names = frozenset(fresh - seen)
            seen |= fresh
        return found

    @cached_property
    def _calls(self) -> dict[str, frozenset[str]]:
        """The defined names that the bodies of a name's definitions have."""
        bodies = {name: [self.body(one) for one in ones] for name, ones in self.defined.items()}
        return {name: frozenset[str]().union(*words) & self.defined.keys() for name, words in bodies.items()}

    def ancestors(self, name: str) -> set[str]:
        """All bases of the classes of a name, by bare name."""
        found: set[str] = set()
        todo = [name]
        while todo:
            for one in self.defined.get(todo.pop(), ()):
                fresh = set(one.bases) - found
                found |= fresh
                todo.extend(fresh)
        return found


def flat(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def project(repository: Path, commit: str) -> Project:
    """Read a commit's files, without a checkout."""
    command = ["git", "-C", str(repository), "archive", "--format=tar", commit]
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    files, paths = {}, []
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        for member in tar:
            if not member.isfile():
                continue
            paths.append(member.name)
            opened = tar.extractfile(member)
            if opened is not None and member.size <= LONGEST and PurePosixPath(member.name).suffix in TEXTS:
                files[member.name] = opened.read().decode("utf-8", "replace")
    return Project(commit, files, tuple(paths))


@cache
def is_test(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool({"test", "tests", "testing", "docs", "doc", "examples", "example", "bench"} & set(parts)) or bool(
        re.match(r"test_|conftest|setup\.py|.*[._](?:test|spec)\.", parts[-1])
    )


def _versions(path: str, text: str) -> Iterator[tuple[str, int]]:
    if PurePosixPath(path).name not in ("pyproject.toml", "setup.cfg", "package.json"):
        if path.endswith(".py") and not is_test(path) and path.count("/") <= 2:
            for number, line in enumerate(text.splitlines(), 1):
                if match := re.match(r"__version__\s*=\s*['\"](\d[\w.]*)['\"]", line):
                    yield match[1], number
        return
    if "/" not in path and (found := grounding_manifests.version(path, text)) is not None:
        yield found


def _python(path: str, text: str) -> Source | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    source = Source(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                source.imports[alias.name].append(node.lineno)
                source.bound.add(alias.asname or alias.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            source.imports[module].append(node.lineno)
            source.bound.update(alias.asname or alias.name for alias in node.names)
            source.bound.update(alias.name for alias in node.names)
            source.stars |= any(alias.name == "*" for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            source.bound.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            source.bound.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            source.bound.add(node.name)
        elif isinstance(node, ast.arg):
            source.bound.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            source.bound.add(node.value)  # __all__, getattr, lazy imports
    source.definitions.extend(_definitions(path, tree.body, None))
    return source


def _definitions(path: str, body: list[ast.stmt], owner: str | None) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            for inner in (node.body, node.orelse, getattr(node, "finalbody", [])):
                yield from _definitions(path, inner, owner)
            for handler in getattr(node, "handlers", []):
                yield from _definitions(path, handler.body, owner)
        elif isinstance(node, ast.ClassDef):
            bases = [_bare(base) for base in node.bases]
            first, last = _head(node)
            opaque = any(base is None for base in bases) or bool(node.keywords)
            dynamic = any(isinstance(one, ast.FunctionDef) and one.name.startswith("__getattr") for one in node.body)
            name = f"{owner}.{node.name}" if owner else node.name
            marks = tuple(filter(None, map(_bare, node.decorator_list)))
            plain_bases = tuple(filter(None, bases))
            yield Definition(
                node.name, "class", path, first, last, owner, (), plain_bases, (), marks, None, dynamic or bool(marks),
                opaque, node.end_lineno or last,
            )  # fmt: skip
            yield from _definitions(path, node.body, name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _function(path, node, owner)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    value = _literal(node.value)
                    last = node.end_lineno or node.lineno
                    kind = "constant" if owner is None else "attribute"
                    yield Definition(target.id, kind, path, node.lineno, last, owner, value=value, end=last)


def _function(path: str, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str | None) -> Definition:
    given = node.args
    named = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(named) - len(given.defaults)) + list(given.defaults)
    pairs = [*zip(named, defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    marks = [_bare(one) for one in node.decorator_list]
    parameters = [Parameter(one.arg, _literal(default), default is None) for one, default in pairs]
    if owner is not None and parameters and "staticmethod" not in marks:
        parameters = parameters[1:]
    raised: list[tuple[str, int]] = []
    opaque = any(mark is None for mark in marks)
    todo: list[ast.AST] = list(node.body)
    while todo:
        one = todo.pop()
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(one, ast.Raise) and one.exc is not None:
            called = one.exc.func if isinstance(one.exc, ast.Call) else one.exc
            name = _bare(called)
            if name is None or not name[0].isupper():
                opaque = True
            else:
                raised.append((name, one.lineno))
        todo.extend(ast.iter_child_nodes(one))
    first, last = _head(node)
    more = given.vararg is not None or given.kwarg is not None
    kind = ("async " if isinstance(node, ast.AsyncFunctionDef) else "") + ("method" if owner else "function")
    return Definition(
        node.name, kind, path, first, last, owner, tuple(parameters), (), tuple(raised),
        tuple(filter(None, marks)), None, more, opaque, node.end_lineno or last,
    )  # fmt: skip


def _head(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[int, int]:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return first, max(node.lineno, node.body[0].lineno - 1)


def _bare(node: ast.expr) -> str | None:
    """The last part of a dotted name, called or subscripted or not."""
    if isinstance(node, ast.Call | ast.Subscript):
        return _bare(node.func if isinstance(node, ast.Call) else node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _literal(node: ast.expr | None) -> str | None:
    """A number, short text, True, False or None as it is written."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return None if not isinstance(node.operand.value, int | float) else f"-{node.operand.value!r}"
    if not isinstance(node, ast.Constant) or isinstance(node.value, bytes | complex) or node.value is ...:
        return None
    if isinstance(node.value, str) and not re.fullmatch(r"[\w./: -]{1,30}", node.value):
        return None
    return repr(node.value)


def _script(path: str, text: str) -> Source:
    """Top-level names of JavaScript or TypeScript: those that begin at the line's first column."""
    source, required = Source(path), set[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("*", "/*", "//")):
            continue
        for match in _IMPORTED.finditer(line):
            source.imports[match[2]].append(number)
        if (found := _DEFINED.match(line)) is None or len(line) > 300:
            continue
        kind = next(name for name in ("function", "class", "constant", "type") if found[name])
        if "require(" in found["rest"]:
            required.add(found["name"])
            continue
        rest, value, opaque = found["rest"], None, True
        parameters: list[Parameter] = []
        bases: tuple[str, ...] = ()
        if kind == "function" and (inside := _PARAMETERS.match(rest)):
            parts = [part.strip() for part in inside[1].split(",") if part.strip()]
            read = [_PARAMETER.match(part) for part in parts]
            opaque = not all(read)
            parameters = [Parameter(one[1], one[2], one[2] is None) for one in read if one is not None]
        elif kind == "class":
            extended = _EXTENDS.match(rest)
            bases, opaque = ((extended[1],), False) if extended else ((), "extends" in rest)
        elif kind == "constant" and (told := _LITERAL.match(rest)):
            value = told[1]
        source.definitions.append(
            Definition(found["name"], kind, path, number, number, None, tuple(parameters), bases, value=value,
                       opaque=opaque, end=number)
        )  # fmt: skip
    source.bound = {one.name for one in source.definitions} | required
    source.stars = bool(re.search(r"export\s*\*", text))
    return source
