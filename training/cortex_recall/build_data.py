"""Builds the training data: the same bytes from the same snapshots and packages.

    python training/cortex_recall/build_data.py SNAPSHOTS WHEELS DATA OUT

SNAPSHOTS holds git copies of the repositories that `conversations.py`, `notes.py` and `functions.py` name
(owner+name/repo), WHEELS the packages whose functions are taken, DATA the public data of the benchmarks (CoSQA's
functions are read from there, to leave them out). OUT is a JSON-lines file compressed with xz, one collection a line.
"""

from __future__ import annotations

import json
import lzma
import sys
from dataclasses import asdict
from pathlib import Path

import conversations
import functions
import notes


def main(snapshots: Path, wheels: Path, data: Path, out: Path) -> None:
    sources = {
        "RHELM": conversations.rhelm(snapshots),
        "FriendsQA": conversations.friends(snapshots),
        "QMSum": conversations.qmsum(snapshots),
        "FairytaleQA": conversations.fairytales(snapshots),
        "SQuAD sentences": conversations.squad(snapshots),
        "Synthetic-Persona-Chat": conversations.persona(snapshots),
        "histories": notes.histories(snapshots),
        "commands": notes.commands(snapshots),
        "functions": functions.packages(wheels, data),
        "recipes": functions.recipes(snapshots, data),
        "snippets": functions.snippets(snapshots),
    }
    with lzma.open(out, "wt", encoding="utf-8", preset=6) as file:
        for name, collections in sources.items():
            count = records = questions = characters = 0
            for collection in collections:
                line = json.dumps(asdict(collection), ensure_ascii=False, separators=(",", ":"))
                file.write(f"{line}\n")
                count, characters = count + 1, characters + len(line)
                records, questions = records + len(collection.records), questions + len(collection.questions)
            print(
                f"{name}: {count} collections, {records} records, {questions} questions, {characters // 1000} kB",
                flush=True,
            )
    print(f"{out}: {out.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:5]))
