"""The tool that prints what a call enters: every call can be traced, and reaches what it is for."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REACHED = {
    "capture": "core.memory.capture.capture", "get": "core.memory.lifecycle", "hook": "parts.hooks.cold",
    "recall": "core.memory.recall.recall", "snapshot": "parts.backup.snapshots.archive",
    "verify": "parts.verify.index.lookup",
}  # fmt: skip


@pytest.mark.slow
def test_every_call_can_be_traced() -> None:
    command = [sys.executable, str(ROOT / "tools" / "one_call.py"), "trace", *REACHED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    traced = re.split(r"^(\w+): (\d+) modules, \d+ functions, \d+ deepest stack\n", done.stdout, flags=re.MULTILINE)
    lists, calls, counts = traced[:-1:3], traced[1::3], traced[2::3]
    assert calls == list(REACHED)
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for modules, call, count in zip(lists, calls, counts, strict=True):
        assert re.search(rf"^ *\d+  {re.escape(REACHED[call])}$", modules, re.MULTILINE), call
        assert len(modules.splitlines()) == int(count)
        if walked := re.search(rf"\*\*\w*{call}\*\* enters (\d+) modules", page):
            assert walked[1] == count, "run `make walks`"
