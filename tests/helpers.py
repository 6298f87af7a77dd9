"""Parts that several tests share and that are no fixtures."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path


class FakeClock:
    """A clock that stands still until it is told to move."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 2, 12, 34, 56, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def advance(self, **parts: float) -> None:
        self.moment += timedelta(**parts)

    def repeat_prefix(self) -> None:
        """Move on by as long as the first 8 digits of ids take to come back: the next id shares those made now."""
        self.advance(microseconds=1 << 32)


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder; who commits and which settings hold is fixed for all tests."""
    done = subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()
