"""A process that appends turns to a line of work, each with its own number."""

import sys
from pathlib import Path

# Run as a script, it finds the parts that tests share only here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cortex_py import Cortex

from stub_backend import StubBackend

if __name__ == "__main__":
    home, project, branch, name, count = sys.argv[1:6]
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        for turn in range(int(count)):
            cortex.contexts.append(branch, f"turn {turn} of {name}\n\nwith a second line", "user")
