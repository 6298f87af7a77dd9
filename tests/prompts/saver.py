"""A process that saves prompts under one name, and acknowledges each version only after it is stored."""

import json
import sys
from pathlib import Path

# Run as a script, it finds the parts that tests share only here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cortex_py import Cortex

from stub_backend import StubBackend

if __name__ == "__main__":
    home, project, who, count = sys.argv[1:5]
    versions = {}
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        # Both begin at once, when the other is ready too.
        print("ready", flush=True)
        sys.stdin.readline()
        for turn in range(int(count)):
            content = f"{who} {turn} {{{{name}}}}"
            saved = cortex.prompts.save("shared", content, tags=[who, f"turn-{turn}"]).saved
            versions[saved.version] = content
            cortex.prompts.run("shared", {"name": who})
    print(json.dumps(versions))
