"""A call passes few modules on its way to the store: the tool that prints the path counts them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("call", "most"), [("capture", 25), ("recall", 18)])
def test_the_way_to_the_store_is_short(call: str, most: int) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "one_call.py"), "trace", call],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    counts = re.findall(r"^(\w+): (\d+) modules on the way from the wire to (.+)$", done.stdout, re.MULTILINE)
    assert counts, done.stdout
    assert all(name == call for name, _, _ in counts)
    # The way of a capture ends with its last write; looking for conflicts afterwards reads more.
    assert int(counts[0][1]) <= most, done.stdout
