"""Code that runs without the powers of root, which no permission would stop."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path
from typing import Any

from forking import python_command

__all__ = ["begin_as_nobody", "run_as_nobody"]

_PRELUDE = f"""
import os, signal, sys
signal.alarm(90)
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from cortex_py import Cortex, CortexError
from cortex_py.core.clock import SystemClock
from cortex_py.core.errors import StoreBusy, StoreReadOnly
from cortex_py.core.store.sqlite import open_sqlite
from stub_backend import StubBackend
"""
_GIVE_UP = """
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""


def begin_as_nobody(code: str, before: str = "", **streams: Any) -> subprocess.Popen[str]:
    """Start code. What it imports late must be used `before`: the interpreter may lie where only root can read."""
    script = _PRELUDE + textwrap.dedent(before) + _GIVE_UP + textwrap.dedent(code)
    return subprocess.Popen([*python_command(), "-c", script], text=True, **streams)


def run_as_nobody(code: str, before: str = "") -> str:
    """What code writes, after it has ended well."""
    with begin_as_nobody(code, before, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        told, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return told
