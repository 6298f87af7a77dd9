"""Answers without what differs from run to run: ids by order of appearance, folders and moments by name."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

__all__ = ["Steady", "compare"]

FOLDER = Path(__file__).parent
# Read now: no variable of this kind reaches a test.
WRITE = bool(os.environ.get("CORTEX_WRITE_GOLDEN"))

_ID = re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{40}(?![0-9a-zA-Z])|(?<![0-9a-zA-Z])[0-9a-f]{12}(?![0-9a-zA-Z])")
_SHORT = re.compile(r"(?<![0-9a-zA-Z])(?=[0-9a-f]*[0-9])(?:[0-9a-f]{16}|[0-9a-f]{8})(?![0-9a-zA-Z])")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=[_-])[0-9a-f]{32}\b|[0-9a-f]{64}")
_MOMENT = re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?|(?<=_)20\d{6}_\d{6}(_[0-9a-f]{6})?")
_DAY = re.compile(r"20\d\d-\d\d-\d\d")
_MICROSECONDS = re.compile(r"\b1[78]\d{14}\b")
_AMOUNT = re.compile(r"\b\d+\.\d( MB| s\b)|\b\d{1,3},\d{3}()\b")
_MEASURED = re.compile(r'("(?:\w*(?:_ms|_seconds|_bytes|_mb|bytes|uptime|pid|took|size|load)\w*)": ?)-?\d+(\.\d+)?')
_ADDRESS = re.compile(r"(?<=/static/)[0-9a-f]{16}")
# What a processor computes differs from another's in the last digits.
_VECTOR = re.compile(r"\[(?:-?\d\.\d+,){63,}-?\d\.\d+\]")
_LONG_FLOAT = re.compile(r"(\d+\.\d{3})\d+")


class Steady:
    """Replaces what differs; the same id gets the same name in all texts that one object sees."""

    def __init__(self, **folders: Path) -> None:
        self._folders = {str(path): f"<{name}>" for name, path in folders.items()}
        self._names: dict[str, str] = {}

    def text(self, text: str) -> str:
        for path, name in self._folders.items():
            text = text.replace(path, name)
        text = _ADDRESS.sub("<build>", _VECTOR.sub("<vector>", _MOMENT.sub("<moment>", text)))
        text = _AMOUNT.sub(r"<n>\1", _MICROSECONDS.sub("<moment>", _DAY.sub("<day>", text)))
        text = _UUID.sub(self._named, text)
        text = _ID.sub(self._named, text)
        text = _SHORT.sub(self._prefix, text)
        return _LONG_FLOAT.sub(r"\1", _MEASURED.sub(r"\1<n>", text))

    def _named(self, found: re.Match[str]) -> str:
        return self._names.setdefault(found[0], f"<id {len(self._names) + 1}>")

    def _prefix(self, found: re.Match[str]) -> str:
        """The short form of an id that was seen; other digits stay."""
        names = [name for whole, name in self._names.items() if whole.startswith(found[0])]
        return f"<short {names[0][1:]}" if len(names) == 1 else found[0]


def compare(name: str, answers: Any) -> None:
    """Compare with the recorded file, or record it where `CORTEX_WRITE_GOLDEN` is set."""
    file = FOLDER / f"{name}.json"
    if WRITE:
        file.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n", "utf-8")
    recorded = json.loads(file.read_text("utf-8"))
    assert answers.keys() == recorded.keys()
    for step, answer in answers.items():
        assert answer == recorded[step], f"{name}: {step}"
