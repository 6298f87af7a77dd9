"""The page on tools leaves nothing unexplained: every parameter, every field, every code."""

import re

from cases import each
from cortex_py.core.errors import WIRE_FORMS
from cortex_py.surfaces.mcp.registry import EVERY_TOOL
from reference_pages import read_words, render

PAGE = render()


def _section(heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def _rows(section: str) -> list[list[str]]:
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@each("tool", [spec.name for spec in EVERY_TOOL])
def test_every_parameter_and_field_has_a_meaning(tool: str) -> None:
    rows = _rows(_section(tool))
    assert rows
    assert [row[0] for row in rows if not row[-1]] == []


def test_every_word_is_of_something_that_is_there() -> None:
    """What a tool no longer takes or answers is no longer explained."""
    for family in {spec.family for spec in EVERY_TOOL}:
        words, tools = read_words(family), [spec.name for spec in EVERY_TOOL if spec.family == family]
        rows = {(tool, row[0].strip("`")) for tool in tools for row in _rows(_section(tool))}
        assert {(tool, name) for tool, named in words["parameters"].items() for name in named} - rows == set()
        ends = {(tool, re.split(r"[.\]]", name)[-1]) for tool, name in rows}
        named = {name for pair in {*rows, *ends} for name in (pair[1], ".".join(pair))}
        assert words["fields"].keys() - named == set()


def test_the_form_and_every_code_of_the_context_tools_is_explained() -> None:
    section = _section("Errors of the context tools")
    assert all(f'"{field}"' in section for field in ("success", "error", "error_code", "details"))
    assert {row[0].strip("`") for row in _rows(section)} == {form.cortex for _, form in WIRE_FORMS}
    assert all(meaning in section for meaning in read_words()["errors"].values())
    assert all(f"`{spec.name}`" in section for spec in EVERY_TOOL if spec.errors == "cortex")
