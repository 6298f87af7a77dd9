"""Writes the table of settings in `docs/reference/settings.md` from their declarations. Standard library only."""

from __future__ import annotations

import re
from dataclasses import MISSING
from pathlib import Path

from ...config import Setting, declared_settings

__all__ = ["SETTINGS_FILE", "render_settings"]

SETTINGS_FILE = Path("docs", "reference", "settings.md")

_HEAD = """\
| key | variable | default | meaning |
|---|---|---|---|
| (the home itself) | `CORTEX_HOME` | `~/.cortex` | where everything is kept |
"""
_TABLE = re.compile(r"^\| key \|.*?\n(?=\n)", re.DOTALL | re.MULTILINE)


def render_settings(page: str) -> str:
    """The page with its table rendered from the declarations."""
    table = _HEAD + "".join(map(_row, declared_settings().values()))
    return _TABLE.sub(lambda _: table, page, count=1)


def _row(setting: Setting) -> str:
    return f"| `{setting.name}` | `{setting.variables[0]}` | {_default(setting)} | {setting.help} |\n"


def _default(setting: Setting) -> str:
    if setting.shown is not None:
        return setting.shown
    if setting.default in (None, (), MISSING):
        return "none"
    return f"`{str(setting.default).lower() if isinstance(setting.default, bool) else setting.default}`"


def main() -> None:
    SETTINGS_FILE.write_text(render_settings(SETTINGS_FILE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
