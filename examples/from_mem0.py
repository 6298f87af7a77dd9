"""Moves from mem0 to Cortex: reads a store of mem0, imports what was not deleted, and shows what came.
Run it with `history.db` of mem0, `openmemory.db`, or the JSON of its `get_all`: `from_mem0.py ~/.mem0/history.db`."""

from __future__ import annotations

import argparse
from pathlib import Path

from cortex_py import Cortex

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, help="history.db, openmemory.db or a JSON file")
    parser.add_argument("--try", dest="dry_run", action="store_true", help="only show what would come")
    chosen = parser.parse_args()

    with Cortex.open(project=".") as cortex:
        # Importing twice adds nothing: a memory is known by its id in mem0.
        done = cortex.backups.import_from([chosen.store], kind="mem0", dry_run=chosen.dry_run)
        verb = "would come" if done.dry_run else "came"
        print(f"{done.added['memory']} memories {verb}, {done.unchanged} were here already.")
        for problem in done.left_out:
            print(f"  left out: {problem}")

        # The source of an imported memory is the file and its id there.
        for memory in cortex.memories.listed(f'source:"{chosen.store.resolve()}#*"', limit=20):
            print(f"  {memory.created_at:%Y-%m-%d}  {memory.namespace:10}  {memory.content}")
