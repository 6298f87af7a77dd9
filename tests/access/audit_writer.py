"""A process that adds events to the audit log of a home: python audit_writer.py HOME PROJECT NAME COUNT."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cortex_py import Cortex
from cortex_py.core.security.callers import Caller

from stub_backend import StubBackend

home, project, name, count = sys.argv[1:]
with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
    print("ready", flush=True)
    # All begin together, when they are told to.
    sys.stdin.readline()
    for number in range(int(count)):
        cortex.audit.record(Caller(name), f"tool:{number}", "ok")
