"""Pictures as files: drawn by Graphviz where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from ..errors import InvalidInput

__all__ = ["drawn", "format_for", "is_picture", "write_drawing"]

_DRAW_SECONDS = 60
_PICTURES = (".svg", ".png", ".pdf")
_FORMATS = {".dot": "dot", ".gv": "dot", ".json": "json"}


def is_picture(place: Path | None) -> bool:
    """Whether a file's name asks for a picture."""
    return place is not None and place.suffix.lower() in _PICTURES


def format_for(place: Path) -> str:
    """What a file's name asks for where it is no picture."""
    return _FORMATS.get(place.suffix.lower(), "mermaid")


def drawn(dot: str, place: Path) -> bool:
    """Have Graphviz draw; False where it is not installed, or fails."""
    program = shutil.which("dot")
    if program is None:
        return False
    command = [program, f"-T{place.suffix[1:].lower()}", "-o", str(place)]
    try:
        done = subprocess.run(command, input=dot.encode(), capture_output=True, timeout=_DRAW_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def write_drawing(text: str, place: Path) -> None:
    try:
        place.write_text(text, "utf-8")
    except OSError as error:
        raise InvalidInput(f"{place} cannot be written: {error.strerror}.", field="output") from None
