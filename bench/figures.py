"""The figures of record in `figures.json`, and how far a new result is from them.

    python bench/figures.py             # compare all results that are there
    python bench/figures.py --short     # run the short form of some benchmarks and compare their ratios

A figure has a `path` into the JSON result of its benchmark: keys, positions, or an object that an element of a list
must match. `over` is a second path that the first value is divided by, and `when` what the result must say for the
figure to apply. `better` is `lower` or `higher`; `allowed` is how many times worse than `value` a result may be.
Figures that are marked `ratio` do not depend on the speed of the machine.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILE = HERE / "figures.json"


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure of record beside a new value; `worse` is 1 where they are equal, and 2 where it is twice as bad."""

    name: str
    recorded: float
    measured: float
    worse: float
    allowed: float
    ratio: bool

    @property
    def within(self) -> bool:
        return self.worse <= self.allowed


def records() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return loaded


def find(result: object, path: list[Any]) -> float | None:
    """The number at a path, or None where the result has no such place."""
    here: Any = result
    for step in path:
        try:
            if isinstance(step, dict):
                here = next(one for one in here if all(one[_key(one, k)] == v for k, v in step.items()))
            else:
                here = here[step]
        except (KeyError, IndexError, TypeError, StopIteration):
            return None
    return float(here) if isinstance(here, int | float) else None


def _key(row: object, key: str) -> str | int:
    """Rows are objects, or lists whose positions are written as digits."""
    return int(key) if isinstance(row, list) else key


def compare(name: str, result: Mapping[str, object]) -> list[Compared]:
    """Every figure of record of this benchmark that the result contains."""
    compared = []
    for title, figure in records()["figures"].get(name, {}).items():
        if any(result.get(key) != wanted for key, wanted in figure.get("when", {}).items()):
            continue
        measured = find(result, figure["path"])
        if measured is not None and "over" in figure:
            divisor = find(result, figure["over"])
            measured = measured / divisor if divisor else None
        if measured is None:
            continue
        recorded = float(figure["value"])
        worse = _times_worse(measured, recorded, figure["better"])
        compared.append(
            Compared(title, recorded, measured, worse, float(figure["allowed"]), bool(figure.get("ratio", False)))
        )
    return compared


def _times_worse(measured: float, recorded: float, better: str) -> float:
    above, below = (recorded, measured) if better == "higher" else (measured, recorded)
    return above / below if below else (math.inf if above else 1.0)


def show(compared: list[Compared]) -> None:
    """One line for each figure: the ratio to the figure of record."""
    for one in compared:
        ratio = one.measured / one.recorded if one.recorded else float("nan")
        note = "" if one.within else f"  WORSE than allowed ({one.allowed:g} times)"
        print(f"  {ratio:5.2f} of record  {one.name}: {one.measured:.4g} (record {one.recorded:.4g}){note}")


def run_short() -> list[Compared]:
    """Run the short form of some benchmarks; only figures that do not depend on the machine's speed count."""
    compared: list[Compared] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (script, *arguments) in records()["short"].items():
            command = [sys.executable, str(HERE / script), *arguments]
            subprocess.run(command, check=True, env=os.environ | {"CORTEX_BENCH_RESULTS": folder})
            file = Path(folder) / f"{name}.json"
            found = [one for one in compare(name, json.loads(file.read_text("utf-8"))) if one.ratio]
            assert found, f"The short form of {name} gave no figure of record."
            compared += found
    return compared


def main() -> int:
    if "--short" in sys.argv[1:]:
        compared = run_short()
        print()
        show(compared)
        return int(not all(one.within for one in compared))
    for name in records()["figures"]:
        file = HERE / "results" / f"{name}.json"
        if file.is_file():
            print(name)
            show(compare(name, json.loads(file.read_text("utf-8"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
