"""How every benchmark reports its result: a table, a JSON file, and the ratio to each figure of record."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

import figures

RESULTS = Path(os.environ.get("CORTEX_BENCH_RESULTS") or Path(__file__).parent / "results")


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
    figures.show(figures.compare(name, result))


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
