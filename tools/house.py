"""Counts what the code asks of a reader, and holds each figure: it may fall, never rise.

    python tools/house.py            print the figures beside those of house.json, and lower these where it can
    python tools/house.py --accept   write all figures as they are

`make house` runs it; `tests/test_house.py` fails where a figure is above that of house.json. A change that must raise
one lowers another, and its message says so.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "house.json"
SOURCE = ROOT / "src" / "cortex_py"
TESTS = ROOT / "tests"
PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md")
# Rendered pages (`make reference`, `make bench`), and the log of changes, which only grows.
LEFT_OUT = {
    "CHANGELOG.md", "docs/reference/tools.md", "docs/reference/settings.md", "docs/reference/errors.md",
    "docs/explain/comparison.md",
}  # fmt: skip
CALLS = ("capture", "recall", "verify", "snapshot", "hook")

# What any part may use: libraries without tables, tools or a home.
LIBRARIES = ("texts", "worktree")

Figures = dict[str, int]


def figures() -> Figures:
    """All figures by name."""
    return {
        **{f"lines of {name}": count for name, count in source_lines().items()},
        "lines of tests": _lines(_modules(TESTS)),
        "words of pages by hand": page_words(),
        "regular expressions": sum(map(_is_expression, _nodes(SOURCE))),
        "bare floats": sum(map(_is_bare_float, _inner_nodes())),
        "imports inside functions": sum(isinstance(node, ast.Import | ast.ImportFrom) for node in _inner_nodes()),
        "imports across a boundary": len(crossings()),
        "public class names that exist twice": len(doubled_names()),
        "private names that tests use": sum(_private_uses(path) for path in _modules(TESTS)),
        **call_figures(),
    }


def crossings() -> list[str]:
    """Imports that the house does not want: of the kernel from above it, of a library or a part from another part.

    The modules beside the folders assemble the parts; surfaces show what there is. Both may import all below them.
    """
    found: set[str] = set()
    for path in _modules(SOURCE):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for target in _imported(path):
            if not _may_import(_room(name), _room(target)):
                found.add(f"{name} imports {target}")
    return sorted(found)


def _room(module: str) -> str:
    """The part of the house that a module is in; modules beside the folders are `top`."""
    first, *rest = module.split(".")
    if first in ("__main__", "mcp"):  # entries, and names of the published API
        return "surfaces"
    if first in ("parts", "team") and rest:
        return f"{first}.{rest[0]}"
    if first == "version":
        return "core"
    return first if first in ("core", "surfaces", *LIBRARIES) else "top"


def _may_import(room: str, target: str) -> bool:
    if room == target or room == "surfaces" or target == "core":
        return True
    if room == "top":
        return target != "surfaces"
    return room not in ("core", *LIBRARIES) and target in LIBRARIES


def _imported(path: Path) -> Iterator[str]:
    """Modules of ours that a module imports, lazily or not."""
    package = path.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            module = [*base, *(node.module or "").split(".")] if node.module else [*base]
            for alias in node.names:
                whole = SOURCE.joinpath(*module, alias.name)
                is_module = whole.with_suffix(".py").is_file() or whole.is_dir()
                yield ".".join([*module, alias.name] if is_module else module)


def source_lines() -> Figures:
    """The lines of each part; modules beside the folders count as `top`."""
    found: Counter[str] = Counter()
    for path in _modules(SOURCE):
        package, *inner = path.relative_to(SOURCE).parts
        deep = package in ("core", "parts", "surfaces", "team") and len(inner) > 1
        found[f"{package}/{inner[0]}" if deep else package if inner else "top"] += _lines([path])
    return {"all source": found.total(), **dict(sorted(found.items()))}


def page_words() -> int:
    listed = subprocess.run(["git", "ls-files", *PAGES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sum(len((ROOT / page).read_text("utf-8").split()) for page in set(listed.splitlines()) - LEFT_OUT)


def doubled_names() -> list[str]:
    """Names of public classes that two modules define."""
    found = Counter(
        node.name
        for path in _modules(SOURCE)
        for node in _tree(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, times in found.items() if times > 1)


def call_figures() -> Figures:
    """Modules and functions of ours that each call enters, as `tools/one_call.py count` finds them."""
    command = [sys.executable, str(ROOT / "tools" / "one_call.py"), "count", *CALLS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=240)
    counts: dict[str, Figures] = json.loads(done.stdout)
    return {f"{what} of one {call}": counts[call][what] for call in CALLS for what in ("modules", "functions")}


# -- The source as a tree -----------------------------------------------------------------------


def _modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def _nodes(folder: Path) -> list[ast.AST]:
    return [node for path in _modules(folder) for node in ast.walk(_tree(path))]


@cache
def _inner_nodes() -> list[ast.AST]:
    """What stands inside functions of the source."""
    return [node for path in _modules(SOURCE) for node in _inside_functions(_tree(path))]


def _inside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                yield from ast.walk(statement)
        else:
            yield from _inside_functions(node)


def _is_expression(node: ast.AST) -> bool:
    """Whether a regular expression is written or used here: a function of `re`, or `regex`, which compiles late."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id == "re" and function.attr != "escape"
    return isinstance(function, ast.Name) and function.id == "regex"


def _is_bare_float(node: ast.AST) -> bool:
    """Whether a number has no name that explains it; 0.0 and 1.0 need none."""
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value not in (0.0, 1.0)


@cache
def _private_names() -> frozenset[str]:
    return frozenset(name for node in _nodes(SOURCE) for name in _defined(node) if _is_private(name))


def _private_uses(test: Path) -> int:
    """How often a test reads, replaces or imports a name that is private to our source."""
    nodes = list(ast.walk(_tree(test)))
    private = _private_names() - {name for node in nodes for name in _defined(node)}
    uses = 0
    for node in nodes:
        if isinstance(node, ast.Attribute):
            uses += node.attr in private
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # The target of a patch: a name, or a dotted path to one.
            uses += node.value.rpartition(".")[2] in private
        elif isinstance(node, ast.ImportFrom):
            uses += sum(alias.name in private for alias in node.names)
    return uses


def _defined(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (node.name,)
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
        return (node.id if isinstance(node, ast.Name) else node.attr,)
    return ()


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name != "_"


# -- The ratchet ----------------------------------------------------------------------------------


def risen(now: Figures, kept: Figures) -> dict[str, tuple[int, int]]:
    """The figures above those that are kept, each as it was and as it is; a new figure counts as risen from 0."""
    return {name: (kept.get(name, 0), count) for name, count in now.items() if count > kept.get(name, 0) + _slack(name)}


def _slack(name: str) -> int:
    """What chance may add: ids are random and threads run side by side, so a call enters a function more or less."""
    return 3 if name.startswith("functions of") else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help="write all figures as they are, also those that rose")
    accept = parser.parse_args().accept
    kept: Figures = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    now = figures()
    for name, count in now.items():
        change = count - kept.get(name, 0)
        print(f"{count:8,d}  {f'{change:+,d}' if change else '':>8}  {name}")
    worse = {} if accept else risen(now, kept)
    written = {name: kept.get(name, 0) if name in worse else count for name, count in now.items()}
    KEPT.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
    for name, (before, count) in worse.items():
        print(f"{name} rose from {before:,d} to {count:,d}: lower it, or lower another figure and say so.")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
