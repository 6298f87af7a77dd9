"""How well names and stated relationships are found, beside a list alone and the tagger alone, and how fast.

    python bench/entities.py [--developed] [FOLDER]

Names are measured on `software_ner.jsonl.gz` (spans, types as mapped in `graph.reading.tagger.TYPE_OF`), which was
never learned from nor looked into; relationships on `bench/data/relations.json`, whose one half the rules were
developed on. The other half's blind figures, at its first scoring, were: names 0.915 precision and 0.970 recall,
relationships 0.867 and 0.897. `--developed` leaves the test set and that other half alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from cortex_py.parts.graph.reading.extract import extract
from cortex_py.parts.graph.reading.knowledge import Knowledge
from cortex_py.parts.graph.reading.shapes import Gazetteer, listed_names
from cortex_py.parts.graph.reading.tagger import TYPES, load_tagger

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "entities"))

import report
from datasets import DatasetMissing, read_lines
from train_entities import TRAINING, truth

TEST = "software_ner.jsonl.gz"
RELATIONS = Path(__file__).parent / "data" / "relations.json"
LENGTH = 500
TEXTS = 400

Spans = set[tuple[int, int, str]]


def scores(pairs: Iterable[tuple[Spans, Spans]]) -> dict[str, tuple[int, float, float, float]]:
    """By type and for all: how many were wanted, precision, recall, F1."""
    right, given, wanted = Counter[str](), Counter[str](), Counter[str]()
    for expected, found in pairs:
        for count, spans in ((right, expected & found), (given, found), (wanted, expected)):
            for span in spans:
                count[span[2]] += 1
                count["all"] += 1
    rows = {}
    for name in (*TYPES, "all"):
        precision, recall = right[name] / max(given[name], 1), right[name] / max(wanted[name], 1)
        rows[name] = wanted[name], precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)
    return rows


def by_list(words: Sequence[str]) -> Spans:
    """What the list of names alone finds, whatever the case: the type of the first kind that lists it."""
    found: Spans = set()
    for first, last, listed in Gazetteer(listed_names()).matches(words, [word.lower() for word in words]):
        kind = listed[0][0]
        name = {"organization": "Organization", "given": "Person"}.get(kind, "Technology")
        found.add((first, last, name))
    return found


def by_tagger(rows: Sequence[Sequence[str]]) -> list[Spans]:
    return [{(name.first, name.last, name.type) for name in names} for names in load_tagger().tag(rows)]


def by_all(words: Sequence[str]) -> Spans:
    """What `extract` finds in the words joined by spaces; a name counts by the words it touches."""
    places: list[tuple[int, int]] = []
    at = 0
    for word in words:
        places.append((at, at + len(word)))
        at += len(word) + 1
    found: Spans = set()
    for entity in extract(" ".join(words)).entities:
        touched = [n for n, (start, end) in enumerate(places) if start < entity.end and entity.start < end]
        found.add((touched[0], touched[-1] + 1, entity.type))
    return found


def names(folder: Path | None) -> list[tuple[object, ...]]:
    rows = list(read_lines(TEST, folder))
    expected = [truth(row["tags"]) for row in rows]
    words = [row["tokens"] for row in rows]
    ways = {
        "the list alone": [by_list(row) for row in words],
        "the tagger alone": by_tagger(words),
        "extract": [by_all(row) for row in words],
    }
    return [
        (way, name, *figures)
        for way, found in ways.items()
        for name, figures in scores(zip(expected, found, strict=True)).items()
    ]


def relations(half: str) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]], list[str]]:
    """Precision and recall of names and relationships of a half, by method, and what went wrong."""
    content = json.loads(RELATIONS.read_text("utf-8"))
    project = content["project"]
    knowledge = Knowledge(project=project)
    totals = {"names": Counter[str](), "relationships": Counter[str]()}
    methods: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for row in content["sentences"]:
        if row["half"] != half:
            continue
        found = extract(row["text"], knowledge)
        named = {(entity.name, entity.type): entity.method for entity in found.entities if entity.name != project}
        stated = {
            (found.entities[one.source].name, one.type, found.entities[one.target].name): one.method
            for one in found.relationships
        }
        for what, wanted, given in (
            ("names", {(entity["name"], entity["type"]) for entity in row["entities"]}, named),
            ("relationships", {tuple(one) for one in row["relationships"]}, stated),
        ):
            count = totals[what]
            # Concepts are not written down in this set: neither wanted nor wrong.
            given = {key: method for key, method in given.items() if key[1] != "Concept"}
            count["wanted"] += len(wanted)
            count["given"] += len(given)
            count["right"] += len(wanted & given.keys())
            for key, method in given.items():
                methods.setdefault(method, Counter())["right" if key in wanted else "wrong"] += 1
            if wanted != given.keys():
                lacks, extra = sorted(wanted - given.keys()), sorted(given.keys() - wanted)
                wrong.append(f"{row['text']}  lacks {lacks}  extra {extra}")
    rows: list[tuple[object, ...]] = [
        (half, what, n["wanted"], n["right"] / max(n["given"], 1), n["right"] / max(n["wanted"], 1))
        for what, n in totals.items()
    ]
    return rows, [(half, method, n["right"], n["wrong"]) for method, n in sorted(methods.items())], wrong


def _milliseconds(text: str) -> float:
    """Processor time of this thread: what else the machine does is not ours."""
    began = time.thread_time()
    extract(text)
    return (time.thread_time() - began) * 1000


def speed(folder: Path | None) -> list[tuple[object, ...]]:
    """Milliseconds for texts of LENGTH characters, and for the load in a fresh process."""
    text = " ".join(" ".join(row["tokens"]) for row in read_lines(TRAINING, folder))
    texts = [text[at : at + LENGTH] for at in range(0, len(text) - LENGTH, LENGTH)][: TEXTS * 2]
    for one in texts[:TEXTS]:
        extract(one)
    taken, again = ([_milliseconds(one) for one in texts[TEXTS:]] for _ in range(2))
    began = time.perf_counter()
    extract(text[:1_000_000])
    whole = (time.perf_counter() - began) * 1000
    code = (
        "import time, numpy\nfrom cortex_py.parts.graph.reading.extract import extract\nbegan = time.perf_counter()\n"
    )
    code += "from cortex_py.parts.graph.reading.tagger import load_tagger\nload_tagger()\n"
    code += "print(time.perf_counter() - began)"
    loads = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) * 1000
        for _ in range(5)
    ]
    return [
        (f"{LENGTH} characters not seen before, p50", statistics.median(taken)),
        (f"{LENGTH} characters not seen before, p95", statistics.quantiles(taken, n=20)[18]),
        (f"{LENGTH} characters, every word seen before, p50", statistics.median(again)),
        ("1,000,000 characters", whole),
        ("load, median of five", statistics.median(loads)),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--developed", action="store_true", help="only what the rules were developed on")
    chosen = parser.parse_args()
    try:
        times = speed(chosen.folder)
        named = [] if chosen.developed else names(chosen.folder)
    except DatasetMissing as missing:
        print(f"Skipped: {missing}")
        return 0
    halves = [relations(half) for half in ("developed", "held")[: 1 if chosen.developed else 2]]
    left_out = load_tagger().model.provenance["left_out_precision_recall_f1"]
    print(f"tagger on training sentences left out: precision, recall, F1 = {left_out}\n")
    if named:
        report.table(("test set", "type", "names", "precision", "recall", "F1"), named)
        print()
    report.table(("half", "what", "wanted", "precision", "recall"), [row for rows, _, _ in halves for row in rows])
    print()
    report.table(("half", "method", "right", "wrong"), [row for _, rows, _ in halves for row in rows])
    print()
    report.table(("time", "ms"), times)
    if chosen.developed:
        print("\n" + "\n".join(line for _, _, wrong in halves for line in wrong))
        return 0
    report.write(
        "entities",
        {
            "left_out": left_out,
            "names": named,
            "relations": [row for rows, _, _ in halves for row in rows],
            "methods": [row for _, rows, _ in halves for row in rows],
            "ms": dict(times),
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
