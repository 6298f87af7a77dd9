"""The files of the page, read once, with one name for all of them that changes with their content."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Asset", "find_asset", "static_version"]

_FOLDER = Path(__file__).parent / "static"
_KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    kind: str
    plain: bytes
    packed: bytes


@cache
def _assets() -> dict[str, Asset]:
    found = {}
    for path in sorted(_FOLDER.iterdir()):
        if path.suffix in _KINDS:
            content = path.read_bytes()
            found[path.name] = Asset(_KINDS[path.suffix], content, gzip.compress(content, 9, mtime=0))
    return found


@cache
def static_version() -> str:
    """A digest of all files. It is part of their addresses, so that browsers may keep them for good."""
    digest = hashlib.sha256()
    for name, asset in _assets().items():
        digest.update(f"{name} {len(asset.plain)} ".encode() + asset.plain)
    return digest.hexdigest()[:16]


def find_asset(name: str) -> Asset | None:
    return _assets().get(name)
