"""What is asked of the catalogue of PostgreSQL: the statements of `queries.sql` by name."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["FAULTS", "QUERIES"]

_, *_PARTS = re.split(
    r"^-- (\w+): (.*)\n", Path(__file__).with_name("queries.sql").read_text("utf-8"), flags=re.MULTILINE
)
_ROWS = list(zip(_PARTS[::3], _PARTS[1::3], (statement.strip() for statement in _PARTS[2::3]), strict=True))

QUERIES = {name: statement for name, _, statement in _ROWS if name != "fault"}
# Counts that must be zero, by what they mean otherwise.
FAULTS = {meaning: statement for name, meaning, statement in _ROWS if name == "fault"}
