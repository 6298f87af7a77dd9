"""The tree of `src/` is the architecture: arrows point down, rooms are small, names are pinned."""

import ast
from pathlib import Path

import pytest

import cortex_py

SOURCE = Path(cortex_py.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# Which rooms a room may import. The modules beside the rooms (errors, records, clock, ids, config,
# paths, remote, tracing, version) hold values and may be imported by all.
VALUES = {"errors", "records", "clock", "ids", "config", "paths", "remote", "tracing", "version"}
ALLOWED = {
    "store": set(),
    "security": set(),
    "embedding": set(),
    "llm": set(),
    "memory": {"store", "security", "embedding", "llm"},
    "worktree": set(),
    "graph": {"store", "security", "memory", "worktree"},
    "context": {"store", "security", "embedding", "memory", "worktree", "graph", "grounding", "llm"},
    "prompts": {"store", "security", "memory"},
    "grounding": {"store", "security", "embedding", "memory", "worktree", "llm"},
    "backup": {"store", "memory", "graph", "prompts", "security"},
    "access": {"store", "security"},
    "app": {
        "access",
        "security",
        "memory",
        "context",
        "graph",
        "grounding",
        "prompts",
        "backup",
        "store",
        "embedding",
        "worktree",
        "llm",
        "opening",
        "diagnosis",
    },
    "opening": {"store", "embedding", "graph", "memory", "security"},
    "diagnosis": {"app"},
    "services": {"embedding"},
    "mcp": {"app", "memory", "context", "graph", "grounding", "prompts", "backup", "embedding", "security"},
    "http": {"app", "mcp", "embedding", "access", "security"},
    "cli": {
        "app",
        "access",
        "security",
        "http",
        "mcp",
        "memory",
        "context",
        "graph",
        "grounding",
        "prompts",
        "backup",
        "embedding",
        "worktree",
    },
}


def _room(module: Path) -> str:
    parts = module.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


def _imports(module: Path) -> set[str]:
    """Rooms of this package that a module imports, lazily or not."""
    depth = len(module.relative_to(SOURCE).parts)
    rooms = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            name = node.module or ""
            if node.level == depth:
                rooms |= {name.split(".")[0]} if name else {alias.name for alias in node.names}
            elif node.level == 0 and name.startswith("cortex_py."):
                rooms.add(name.split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {a.name.split(".")[1] for a in node.names if a.name.startswith("cortex_py.")}
    return rooms


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(SOURCE)))
def test_arrows_point_down(module: Path) -> None:
    room = _room(module)
    if room in ("__init__", "__main__"):
        return
    allowed = VALUES if room in VALUES else VALUES | ALLOWED[room] | {room}
    assert _imports(module) <= allowed


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(SOURCE)))
def test_a_room_can_be_held_in_the_head(module: Path) -> None:
    text = module.read_text("utf-8")
    assert text.count("\n") <= 400
    assert ast.get_docstring(ast.parse(text)), "a module says what lives in it"


def test_only_the_store_speaks_sql() -> None:
    for module in MODULES:
        # The embedding cache is a file of its own that is nobody's data.
        if _room(module) == "store" or module.name.startswith("sqlite"):
            continue
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith(("SELECT ", "INSERT ", "UPDATE ", "DELETE FROM")), module


def test_no_engine_word_outside_its_module() -> None:
    for module in MODULES:
        if module.name.startswith("sqlite"):
            continue
        assert "import apsw" not in module.read_text("utf-8"), module


def test_a_home_in_a_path_is_put_in_at_one_place() -> None:
    """What pathlib does with the home of an unknown user is an error of no kind that callers are told of."""
    users = [module.name for module in MODULES if ".expanduser(" in module.read_text("utf-8")]
    assert users == ["paths.py"]


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
