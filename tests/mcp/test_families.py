"""A family of tools is complete in its folder: its rows, its models, its functions, its words."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

from cases import each
from cortex_py.mcp import families
from cortex_py.mcp.registry import EVERY_TOOL, TOOL_BY_NAME, ToolSpec, family_tools

FOLDER = Path(families.__path__[0])
NAMES = sorted({spec.family for spec in EVERY_TOOL})


def test_every_folder_is_a_family() -> None:
    assert sorted(path.parent.name for path in FOLDER.glob("*/spec.toml")) == NAMES


@each("family", NAMES)
def test_a_family_is_complete_in_its_folder(family: str) -> None:
    files = {path.name for path in (FOLDER / family).iterdir() if path.is_file()}
    assert files == {"__init__.py", "spec.toml", "models.py", "tools.py", "reference.toml"}
    assert [spec for spec in EVERY_TOOL if spec.family == family] == list(family_tools(family))


@each("spec", EVERY_TOOL, ids=lambda spec: spec.name)
def test_a_row_names_a_function_of_its_family(spec: ToolSpec) -> None:
    tools = import_module(f"cortex_py.mcp.families.{spec.family}.tools")
    (owner,) = [getattr(tools, name) for name in tools.__all__]
    assert inspect.isfunction(getattr(owner, spec.method))
    assert TOOL_BY_NAME[spec.portable_name] is spec
