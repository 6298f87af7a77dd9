"""Sources, manifests, settings and reports as projects have them: texts of `samples/`, with what is read there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

__all__ = [
    "BASH", "CPP", "CSHARP", "GO", "JAVA", "JAVASCRIPT", "LUA", "PHP", "PYTHON", "RUBY", "RUST", "TYPESCRIPT", "C",
    "read_samples", "source",
]  # fmt: skip

_FOLDER = Path(__file__).with_name("samples")


def source(language: str) -> str:
    """A small source in a language."""
    return (_FOLDER / f"{language}.txt").read_text("utf-8")


def read_samples(name: str) -> dict[str, dict[str, Any]]:
    """A table of samples, each under its path or name."""
    found: dict[str, dict[str, Any]] = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text("utf-8"))
    return found


BASH, C, CPP, CSHARP, GO, JAVA = map(source, ("bash", "c", "cpp", "csharp", "go", "java"))
JAVASCRIPT, LUA, PHP, PYTHON = map(source, ("javascript", "lua", "php", "python"))
RUBY, RUST, TYPESCRIPT = map(source, ("ruby", "rust", "typescript"))
