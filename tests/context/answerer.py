"""A process that answers sessions of suggestions: one a line, and tells what came of each."""

import sys
from pathlib import Path

# Run as a script, it finds the parts that tests share only here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cortex_py import Cortex
from cortex_py.core.errors import CortexError

from stub_backend import StubBackend

if __name__ == "__main__":
    home, project, how = sys.argv[1:4]
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        print("ready", flush=True)
        for line in sys.stdin:
            session, *ids = line.split()
            try:
                if how == "accept":
                    cortex.suggestions.accept(session, ids)
                else:
                    cortex.suggestions.reject(session, "not relevant")
                print("done", flush=True)
            except CortexError as error:
                print(type(error).__name__, flush=True)
