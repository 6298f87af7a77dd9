"""The prompts that come with Cortex can be used as they are, and name only tools that there are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cortex_py
from cortex_py.parts.prompts.checks import Draft
from cortex_py.parts.prompts.files import builtins
from cortex_py.parts.prompts.language.placeholders import Mark, fenced, split
from cortex_py.surfaces.mcp.registry import TOOLS

FOLDER = Path(cortex_py.__file__).parent / "parts" / "prompts" / "builtin"
TOOL_NAMES = {tool.name for tool in TOOLS}
# Words with an underscore that are no tools: arguments and fields of answers.
WORDS = {"project_id", "branch_id", "dry_run", "duplicate_of"}
BLANKS = {
    "capture-decision": {"decision": True, "context": False},
    "document-api": {"path": True, "audience": False},
    "review-memories": {"topic": False},
    "start-session": {"task": False},
}

every = pytest.mark.parametrize("draft", builtins(), ids=lambda draft: draft.name)


def marks(draft: Draft) -> list[Mark]:
    parts, faults = split(draft.content, fenced(draft.content))
    assert not faults
    return [part for part in parts if isinstance(part, Mark)]


def test_there_are_these() -> None:
    found = {draft.name: {one.name: one.required for one in draft.variables} for draft in builtins()}
    assert found == BLANKS
    assert [draft.name for draft in builtins()] == sorted(found)


def test_they_are_read_once() -> None:
    assert builtins() is builtins()


@every
def test_the_file_bears_the_name(draft: Draft) -> None:
    assert (FOLDER / f"{draft.name}.md").is_file()
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", draft.name)
    assert draft.kind == "prompt"


@every
def test_everything_is_described(draft: Draft) -> None:
    assert draft.description
    assert draft.description.endswith(".")
    assert draft.tags
    assert all(one.description for one in draft.variables)


@every
def test_the_blanks_are_those_declared(draft: Draft) -> None:
    assert {mark.inner for mark in marks(draft)} == {one.name for one in draft.variables}


@every
def test_it_reads_well_with_nothing_given(draft: Draft) -> None:
    for one in draft.variables:
        assert one.required or (isinstance(one.default, str) and one.default)


@every
def test_it_names_only_tools_that_there_are(draft: Draft) -> None:
    named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", draft.content)) - WORDS
    assert named <= TOOL_NAMES
    assert {"subcog_recall", "subcog_capture"} <= named


@every
def test_it_teaches_what_matters(draft: Draft) -> None:
    text = " ".join(draft.content.split())
    for rule in ("(not|no|not as) instructions", "secrets?", "one (statement|decision) per memory", "ask "):
        assert re.search(rule, text, re.IGNORECASE), rule
    assert 15 <= draft.content.count("\n") <= 40
    assert all(len(line) <= 120 for line in draft.content.splitlines())


def test_nothing_is_read_before_it_is_asked_for() -> None:
    code = "import sys, cortex_py.parts.prompts.files as b; assert 'yaml' not in sys.modules"
    code += "; assert len(b.builtins()) == 4"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
