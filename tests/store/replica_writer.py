"""A process that writes memories and looks for each in its next recall, which a replica may answer."""

import json
import sys
from pathlib import Path

# Run as a script, it finds the parts that tests share only here.
sys.path.insert(0, str(Path(__file__).parents[1]))

from cortex_py import Cortex

from homes import opened


def _finds(cortex: Cortex, word: str) -> bool:
    return any(word in hit.memory.content.split() for hit in cortex.memories.recall(word, mode="text").results)


if __name__ == "__main__":
    url, read_url, home, project, number, writes = sys.argv[1:]
    stale: list[str] = []
    with opened(Path(home), Path(project), database_url=url, database_read_url=read_url) as cortex:
        done = 0
        while done < int(writes):
            word = f"w{number}x{done}"
            memory = cortex.memories.capture(f"note {word}")
            done += 1
            stale += [] if _finds(cortex, word) else [f"{word} was captured"]
            # The other kinds of a write: one in ten of each.
            if done % 10 == 4:
                cortex.memories.update(memory.id, content=f"note {word}changed")
                done += 1
                stale += [] if _finds(cortex, f"{word}changed") else [f"{word} was changed"]
                stale += [f"{word} was another before"] if _finds(cortex, word) else []
            elif done % 10 == 8:
                cortex.memories.delete(memory.id)
                done += 1
                stale += [f"{word} was deleted"] if _finds(cortex, word) else []
        found = cortex.vitals()
    print(json.dumps({"writes": done, "stale": stale, "replica": found.replica_reads, "primary": found.replica_passed}))
