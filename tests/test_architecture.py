"""The tree of `src/` is the architecture: arrows point down, packages are small, names are pinned."""

import ast
import re
import sys
import tomllib
from collections import Counter
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import cortex_py
import house

SOURCE = Path(cortex_py.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))


@cache
def _nodes(module: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(module.read_text("utf-8"))))


def _speaks_sql(module: Path) -> bool:
    return module.is_relative_to(SOURCE / "core/store") or module.is_relative_to(SOURCE / "team/postgres")


def test_the_kernel_and_the_libraries_import_nothing_above_them() -> None:
    """`make house` counts the imports between parts, which only fall."""
    assert [one for one in house.crossings() if one.startswith(("core.", "language.", "worktree."))] == []


def test_a_module_is_a_chapter_that_says_what_it_holds() -> None:
    texts = {str(module.relative_to(SOURCE)): module.read_text("utf-8") for module in MODULES}
    assert [name for name, text in texts.items() if text.count("\n") > 1_000] == []
    assert [name for name, text in texts.items() if not ast.get_docstring(ast.parse(text))] == []


def test_a_package_has_few_modules() -> None:
    counts = Counter(module.parent for module in MODULES if module.name != "__init__.py")
    assert {str(folder.relative_to(SOURCE)): count for folder, count in counts.items() if count > 16} == {}


def test_what_is_imported_is_declared() -> None:
    """Every package from elsewhere is named in pyproject.toml, and every name there is imported."""
    imported = set()
    for module in MODULES:
        for node in _nodes(module):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                imported.add(node.module.split(".")[0])
    imported -= {*sys.stdlib_module_names, "cortex_py"}
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [one for name, ones in project["optional-dependencies"].items() if name != "dev" for one in ones]
    declared = {_distribution(re.split(r"[\[<>=;~! ]", one)[0]) for one in (*project["dependencies"], *extras)}
    # `compression` is part of Python 3.14.
    known = {**packages_distributions(), "compression": ["backports.zstd"]}
    missing = {name for name in imported if not {_distribution(one) for one in known.get(name, [name])} & declared}
    assert missing == set()


def _distribution(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_only_the_store_speaks_sql() -> None:
    for module in MODULES:
        # The embedding cache is a file of its own that is nobody's data.
        if _speaks_sql(module) or module.name.startswith("sqlite"):
            continue
        for node in _nodes(module):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith(("SELECT ", "INSERT ", "UPDATE ", "DELETE FROM")), module


def test_rows_are_written_by_the_writers_of_a_session() -> None:
    """They screen. Engines write their own tables, whose rows are computed; what was screened is written as it is."""
    written = re.compile(r"\b(?:INSERT (?:OR \w+ )?INTO|UPDATE) (\w+)|\b(?:INSERT INTO|UPDATE) $")
    for module in MODULES:
        if not _speaks_sql(module) or module.name == "database.py":
            continue
        for node in _nodes(module):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
                tables = {found[1] for found in written.finditer(node.value)}
                assert tables <= {"memory_text", "near", "near_space", "chunk", "schema_step", "space_change",
                    "saved_change", "audit_head", "SET", "OF"}, (module, tables)  # fmt: skip
    as_they_are = {module.name for module in MODULES if "session.as_is" in module.read_text("utf-8")}
    assert as_they_are == {"places.py", "documents.py"}


def test_no_engine_word_outside_its_module() -> None:
    for module in MODULES:
        if module.name.startswith("sqlite") or module.parent.name == "sqlite":
            continue
        assert "import apsw" not in module.read_text("utf-8"), module


def test_onnxruntime_is_imported_at_one_place() -> None:
    """By itself it reports to its maker; `core/embedding/backends/runtime.py` forbids that before the import."""
    root = SOURCE.parents[1]
    modules = [one for name in ("src", "bench", "tools", "training", "tests") for one in (root / name).rglob("*.py")]
    assert [one for one in modules if "onnxruntime" in _outside(one)] == [SOURCE / "core/embedding/backends/runtime.py"]


def _outside(module: Path) -> set[str]:
    """Topmost packages from elsewhere that a module imports, by a statement or by name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            found |= {str(one.value) for one in node.args if isinstance(one, ast.Constant)}
    return {name.split(".")[0] for name in found}


def test_a_home_in_a_path_is_put_in_at_one_place() -> None:
    """For the home of an unknown user pathlib raises an error that has no place in our tree of errors."""
    users = [module.name for module in MODULES if ".expanduser(" in module.read_text("utf-8")]
    assert users == ["paths.py"]


# Who may start a process: git, and the program that draws graphs.
STARTERS = {
    "worktree/git/runner.py",
    "surfaces/cli/graph.py",
    # The helper of hooks, and the programs of clients that are being set up.
    "parts/hooks/front.py",
    "surfaces/http/connections.py",
    "parts/clients/programs.py",
}
_MODULES_THAT_START = {"subprocess", "multiprocessing", "pty", "_posixsubprocess"}
_CALLS_THAT_START = ("system", "popen", "startfile", "exec", "spawn", "posix_spawn", "fork", "create_subprocess")


def _starts(module: Path) -> set[str]:
    """What in a module could start a process: imports, and names on `os`, `asyncio` and `anyio`."""
    found = set()
    for node in _nodes(module):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names if one.name.split(".")[0] in _MODULES_THAT_START}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            name = (node.module or "").split(".")[0]
            found |= {name} & _MODULES_THAT_START
            if name in ("os", "asyncio", "anyio", "concurrent"):
                found |= {one.name for one in node.names if one.name.startswith((*_CALLS_THAT_START, "ProcessPool"))}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner, name = node.value.id, node.attr
            is_start = owner == "os" and name.startswith(_CALLS_THAT_START)
            is_start |= owner in ("asyncio", "anyio") and name in (
                "create_subprocess_exec",
                "create_subprocess_shell",
                "run_process",
                "open_process",
                "to_process",
            )
            found |= {f"{owner}.{name}"} if is_start else set()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__":
            found.add("__import__")
    return found


def test_processes_are_started_at_few_places() -> None:
    found = {str(module.relative_to(SOURCE)): starts for module in MODULES if (starts := _starts(module))}
    assert found.keys() == STARTERS, found


# Who opens a file for reading by itself: what lies there is Cortex's own, or is not read at all.
READERS = {
    "core/paths.py": "the one reader",
    "core/files.py": "flushes a folder, whose content it does not read",
    "core/store/sqlite.py": "flushes a file, which it does not read",
    "parts/backup/transfer/export.py": "creates the file that it writes",
    "parts/hooks/front.py": "appends to its log",
    "core/store/search/kept_file.py": "maps a file of the home into memory, and follows no link",
    "surfaces/mcp/stdio/serve.py": "the null device",
    "surfaces/mcp/stdio/front.py": "comes with the package",
    "core/store/migrations.py": "comes with the package",
    "surfaces/web/assets.py": "comes with the package",
}
_CONSTANT = re.compile(r"\b_?[A-Z][A-Z_]+\b|__file__|resources\.")
_READ_MODES = re.compile(r"'(?:r|[rwa]b?\+)")
_OPENERS = ("io", "os", "gzip", "bz2", "lzma", "tarfile", "codecs")
_OTHER_READERS = ("copyfile", "copy2", "copytree", "from_file", "fromfile", "memmap", "FileInput", "getline")


def _opens_to_read(call: ast.Call) -> bool:
    """Whether a call opens a file by its name, and not one that a constant of the module names."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    words = [ast.unparse(one) for one in (*call.args, *(one.value for one in call.keywords))]
    if name in ("read_text", "read_bytes"):
        return bool(owner) and not _CONSTANT.search(owner)
    if name == "open" and owner in ("", *_OPENERS):
        return not any("O_WRONLY" in one or re.fullmatch("'[wxa]b?'", one) for one in words)
    if name == "open":
        return any(_READ_MODES.match(one) for one in words) or owner.endswith(("path", "_file", ")"))
    return name in _OTHER_READERS and bool(owner)


def test_files_are_opened_by_the_one_reader() -> None:
    """Opening a file by its name can wait at a pipe for ever, read a device without end, or take all memory."""
    found = {
        str(module.relative_to(SOURCE)): node.lineno
        for module in MODULES
        for node in _nodes(module)
        if isinstance(node, ast.Call) and _opens_to_read(node)
    }
    new = {f"{module}:{line}" for module, line in found.items() if module not in READERS}
    assert not new, f"use read_regular, read_whole or open_regular of cortex_py.core.paths: {new}"
    assert READERS.keys() == found.keys(), "these read no file any more: take them out of the list"


def test_the_public_names_are_pinned() -> None:
    assert cortex_py.__all__ == [
        "Branch",
        "Cortex",
        "CortexError",
        "Hit",
        "Memory",
        "NewMemory",
        "Page",
        "Project",
        "Version",
        "__version__",
    ]
    for name in cortex_py.__all__:
        assert getattr(cortex_py, name) is not None
