"""What docs/reference/stability.md promises is still there: every name of 1.0.0, in `stable_names.json`.

`CORTEX_WRITE_GOLDEN=1 pytest tests/test_stability.py` adds new names at a release; a name never leaves within a major
version. Tools are pinned by `mcp/test_golden.py`, the library's names by `test_architecture.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click

from cases import each
from cortex_py.core.config import RETIRED, setting_names
from cortex_py.core.memory.recall.filters import FILTER_KEYS
from cortex_py.surfaces.cli import cli
from cortex_py.surfaces.http.access import API, PAGE_SCOPES
from cortex_py.surfaces.http.page import OPERATIONS
from cortex_py.surfaces.mcp.reference.error_help import all_errors

FILE = Path(__file__).with_name("stable_names.json")
SHARED = {"--home", "--project", "--json", "--quiet", "--verbose", "--no-color"}


def _commands(group: click.Group, path: str) -> Iterator[str]:
    """Each command, and each of its options behind it."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command
        yield (here := f"{path} {name}")
        words = {word for option in command.params for word in option.opts if word.startswith("-")} - SHARED
        yield from (f"{here} {word}" for word in words)
        if isinstance(command, click.Group):
            yield from _commands(command, here)


def _names() -> dict[str, list[str]]:
    return {
        "commands": sorted(_commands(cli, "cortex")),
        "errors": sorted({code for one in all_errors() for code in (one.name, *one.codes)}),
        "filters": sorted(FILTER_KEYS),
        "paths": sorted({*PAGE_SCOPES, *(f"{one.method} {API}{one.path}" for one in OPERATIONS)}),
        "settings": sorted({*setting_names(), *RETIRED}),
    }


if os.environ.get("CORTEX_WRITE_GOLDEN"):
    FILE.write_text(json.dumps(_names(), indent=1) + "\n", "utf-8")


@each("kind", list(_names()))
def test_every_name_of_the_first_version_is_still_there(kind: str) -> None:
    promised = json.loads(FILE.read_text("utf-8"))[kind]
    assert promised
    assert set(promised) - set(_names()[kind]) == set()
