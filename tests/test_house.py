"""What the code asks of a reader only falls: `make house` counts it, and `house.json` holds each figure."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("house", ROOT / "tools" / "house.py")
assert SPEC
assert SPEC.loader
house = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(house)


@pytest.mark.slow
def test_no_figure_rises() -> None:
    assert house.risen(house.figures(), json.loads(house.KEPT.read_text("utf-8"))) == {}


def test_a_figure_that_is_new_or_higher_has_risen() -> None:
    kept = {"lines": 2, "words": 2, "functions of one call": 5}
    now = {"lines": 3, "words": 2, "names": 1, "functions of one call": 8}
    assert house.risen(now, kept) == {"lines": (2, 3), "names": (0, 1)}
