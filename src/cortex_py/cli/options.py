"""Options that many commands share, and how they open the library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..app import Cortex

__all__ = ["common", "json_option", "open_cortex", "read_text"]

_F = TypeVar("_F", bound=Callable[..., Any])


def json_option(command: _F) -> _F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)


def common(command: _F) -> _F:
    """`--home`, `--project` and `--json`."""
    home = click.option("--home", type=click.Path(), help="Home folder (default: CORTEX_HOME or ~/.cortex).")
    project = click.option("--project", type=click.Path(), default=".", help="Project folder (default: here).")
    return json_option(home(project(command)))


def open_cortex(home: str | None, project: str, **settings: Any) -> Cortex:
    from ..app import Cortex

    return Cortex.open(home, project=project, **settings)


def read_text(words: str | None) -> str:
    """The argument, or standard input for `-` and for nothing at all."""
    if words is not None and words != "-":
        return words
    return sys.stdin.buffer.read().decode("utf-8", "replace")
