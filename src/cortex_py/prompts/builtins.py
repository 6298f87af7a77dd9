"""The prompts that come with Cortex, one Markdown file each in `builtin`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .draft import Draft
from .files import load

__all__ = ["builtins"]

_FOLDER = Path(__file__).with_name("builtin")


@cache
def builtins() -> tuple[Draft, ...]:
    """All of them, by name; read once, when first asked for."""
    files = sorted(_FOLDER.glob("*.md"))
    return tuple(draft for file in files for draft in load(file.read_bytes(), filename=file.name, kind="prompt"))
