"""How good the suggested tags are, against tags that a person gave.

    python bench/enrich.py [--show]

The notes of `data/enrich_notes.jsonl` were written and tagged by hand before there was anything to suggest tags. One
half was looked at while the rules were made, the other was scored when they were done. A suggested tag is *right* when
a person's tag is the same but for its ending, and *near* when the two share a word; a person's tag is *found* when a
suggested one is right or near.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import Stemmer

from cortex_py.memory.labels.keyphrases import suggest_tags

import report

DATA = Path(__file__).parent / "data" / "enrich_notes.jsonl"
PARTS = ("develop", "held_out")
_STEMMER = Stemmer.Stemmer("english")


class Note(NamedTuple):
    text: str
    tags: list[str]
    part: str


def notes(part: str) -> list[Note]:
    found = (Note(**json.loads(line)) for line in DATA.read_text("utf-8").splitlines())
    return [note for note in found if note.part == part]


def words(tag: str) -> tuple[str, ...]:
    return tuple(_STEMMER.stemWords(tag.split("-")))


def near(tag: str, others: list[str]) -> bool:
    return any(set(words(tag)) & set(words(other)) for other in others)


def right(tag: str, others: list[str]) -> bool:
    return words(tag) in map(words, others)


def score(part: str, *, show: bool) -> dict[str, float]:
    suggested = exact = close = wanted = found = 0
    started = perf_counter()
    for note in notes(part):
        tags = list(suggest_tags(note.text, ()))
        suggested += len(tags)
        exact += sum(right(tag, note.tags) for tag in tags)
        close += sum(near(tag, note.tags) for tag in tags)
        wanted += len(note.tags)
        found += sum(near(tag, tags) for tag in note.tags)
        if show:
            print(f"{note.text[:70]}…\n    person {note.tags}\n    cortex {tags}")
    return {
        "notes": len(notes(part)),
        "tags_per_note": suggested / len(notes(part)),
        "right": exact / suggested,
        "right_or_near": close / suggested,
        "found": found / wanted,
        "ms_per_note": (perf_counter() - started) * 1000 / len(notes(part)),
    }


def main() -> int:
    show = "--show" in sys.argv
    # The misses of the held-out half are never shown: once read, it is no longer held out.
    results = {part: score(part, show=show and part == "develop") for part in PARTS}
    columns = list(results["develop"])
    report.table(["part", *columns], [[part, *results[part].values()] for part in PARTS])
    report.write("enrich", {"parts": results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
