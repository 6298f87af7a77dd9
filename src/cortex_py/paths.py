"""Paths as people write them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["expanded"]


def expanded(path: str | Path) -> Path:
    """With the home for `~`; where there is none to put in its place, the path is as relative as it looks."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
