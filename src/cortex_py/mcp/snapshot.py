"""What the server says about itself before it is loaded: the handshake and the lists, rendered beforehand.

`snapshot.json` holds the real server's own answers with every tool, for each protocol version; reading it
needs only the standard library. `make snapshot` writes it, and a test compares it with the living server.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..version import __version__
from .frames import Frame
from .registry import ToolSpec

__all__ = ["HANDSHAKE_VERSIONS", "LISTS", "MODERN_VERSIONS", "SNAPSHOT_FILE", "Snapshot", "envelope"]

SNAPSHOT_FILE = Path(__file__).with_name("snapshot.json")
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
LISTS = ("tools/list", "resources/list", "resources/templates/list")

_PREFIX = "io.modelcontextprotocol/"


def envelope(version: str) -> dict[str, Any]:
    """What every request of the stateless protocol carries."""
    return {"_meta": {f"{_PREFIX}protocolVersion": version, f"{_PREFIX}clientCapabilities": {}}}


class Snapshot:
    """Answers to the first requests of a client. Whatever is not the plain, usual request it leaves alone."""

    def __init__(self, results: dict[str, dict[str, Any]], specs: Sequence[ToolSpec], *, portable: bool) -> None:
        self._results = results
        self._names = {spec.name: spec.portable_name if portable else spec.name for spec in specs}
        self._handshake: str | None = None
        self._modern: bool | None = None

    @classmethod
    def load(cls, specs: Sequence[ToolSpec], *, portable: bool, path: Path = SNAPSHOT_FILE) -> Snapshot:
        """The snapshot of this version; one of another version, or a damaged one, answers nothing."""
        try:
            results = _results(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            results = {}
        return cls(results, specs, portable=portable)

    def answer(self, frame: Frame) -> dict[str, Any] | None:
        """The result of a request, or nothing when only the server itself can tell."""
        if not frame.is_request or frame.method is None:
            return None
        if self._modern is None:
            self._modern = _opens_modern(frame)
        version = self._version(frame)
        if version is None:
            return None
        if frame.method == "ping" and version in HANDSHAKE_VERSIONS:
            return {}
        result = self._results.get(version, {}).get(frame.method)
        if frame.method == "tools/list" and result is not None:
            return {**result, "tools": [self._named(tool) for tool in result["tools"] if tool["name"] in self._names]}
        return result

    def _named(self, tool: dict[str, Any]) -> dict[str, Any]:
        return {**tool, "name": self._names[tool["name"]]}

    def _version(self, frame: Frame) -> str | None:
        """The protocol version a request is made under, if it is the usual request and no more."""
        if frame.method == "initialize":
            return self._begin(frame.params)
        params = dict(frame.params)
        meta = params.pop("_meta", {})
        if params or not isinstance(meta, dict):
            return None
        if self._handshake:
            return self._handshake if f"{_PREFIX}protocolVersion" not in meta else None
        return _modern_version(meta) if self._modern else None

    def _begin(self, params: dict[str, Any]) -> str | None:
        version = params.get("protocolVersion")
        usual = (
            self._handshake is None
            and not self._modern
            and version in self._results
            and version in HANDSHAKE_VERSIONS
            and isinstance(params.get("capabilities"), dict)
            and _is_implementation(params.get("clientInfo"))
        )
        if usual:
            self._handshake = version
        return version if usual else None


def _results(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The results by protocol version and method."""
    if content["version"] != __version__:
        return {}
    return {
        version: {method: content["results"][place] for method, place in places.items()}
        for version, places in content["places"].items()
    }


def _opens_modern(frame: Frame) -> bool:
    """Whether a first request makes this a connection of the stateless protocol; it stays one."""
    meta = frame.params.get("_meta")
    return frame.method != "initialize" and isinstance(meta, dict) and f"{_PREFIX}protocolVersion" in meta


def _modern_version(meta: dict[str, Any]) -> str | None:
    version = meta.get(f"{_PREFIX}protocolVersion")
    info = meta.get(f"{_PREFIX}clientInfo")
    usual = (
        version in MODERN_VERSIONS
        and isinstance(meta.get(f"{_PREFIX}clientCapabilities"), dict)
        and (info is None or _is_implementation(info))
    )
    return version if usual else None


def _is_implementation(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("version"), str)
