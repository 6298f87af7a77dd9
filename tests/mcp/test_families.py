"""A family of tools is complete: its rows, its functions, its words."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

from cases import each
from cortex_py.surfaces.mcp import families
from cortex_py.surfaces.mcp.registry import EVERY_TOOL, TOOL_BY_NAME, ToolSpec, family_tools

FOLDER = Path(families.__path__[0])
NAMES = sorted({spec.family for spec in EVERY_TOOL})
SHARED = {"__init__.py", "answer.py", "reference.toml"}


def test_every_file_belongs_to_a_family() -> None:
    files = {path.name for path in FOLDER.iterdir() if path.is_file()}
    assert files == SHARED | {f"{name}{end}" for name in NAMES for end in (".py", ".toml", ".reference.toml")}
    for family in NAMES:
        assert [spec for spec in EVERY_TOOL if spec.family == family] == list(family_tools(family))


@each("spec", EVERY_TOOL, ids=lambda spec: spec.name)
def test_a_row_names_a_function_of_its_family(spec: ToolSpec) -> None:
    tools = import_module(f"cortex_py.surfaces.mcp.families.{spec.family}")
    (owner,) = [getattr(tools, name) for name in tools.__all__ if name.endswith("Tools")]
    assert inspect.isfunction(getattr(owner, spec.method))
    assert TOOL_BY_NAME[spec.portable_name] is spec
