"""A process that goes back and forth between two snapshots, or pushes and pulls, until it is killed.

It says a line before each step and one after each that was done.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from homes import forget_sync_day, opened


def main(home: str, project: str, cloud: str, work: str, *ids: str) -> None:
    with opened(Path(home), Path(project), None, cloud_url=cloud, passphrase="correct horse battery") as cortex:
        print("ready", flush=True)
        for number in range(100_000):
            if work == "restore":
                cortex.backups.restore(ids[number % 2])
            elif work == "create":
                cortex.backups.create()
            else:
                forget_sync_day(Path(home))
                cortex.memories.capture(f"number {number} of a worker")
                cortex.backups.push()
                cortex.backups.pull()
            print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
