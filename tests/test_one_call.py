"""A call passes few modules on its way to the store: the tool that prints the path counts them, foundations too."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


MOST = {"capture": 25, "recall": 23, "verify": 30, "get": 19}


@pytest.mark.slow
def test_the_way_to_the_store_is_short() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "one_call.py"), "trace", *MOST],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = re.findall(r"^(\w+): (\d+) modules on the way from the wire to (.+)$", done.stdout, re.MULTILINE)
    assert {name for name, _, _ in counts} == MOST.keys(), done.stdout
    # The way of a capture ends with its last write; looking for conflicts afterwards reads more.
    ways = {name: int(count) for name, count, _ in reversed(counts)}
    assert {name: count for name, count in ways.items() if count > MOST[name]} == {}, done.stdout
    # Each call reaches what it is for.
    for module in ("memory.capture.capture", "memory.recall.recall", "grounding.index.lookup", "memory.lifecycle"):
        assert re.search(rf"^ *\d+  {module}$", done.stdout, re.MULTILINE), module
