"""How every benchmark tells its result: one table on the screen, one JSON file beside it."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[str(column) for column in columns], *[[_shown(value) for value in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for number, row in enumerate(cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def write(name: str, result: dict[str, object]) -> None:
    RESULTS.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    (RESULTS / f"{name}.json").write_text(json.dumps({"benchmark": name, **machine, **result}, indent=2) + "\n")


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
