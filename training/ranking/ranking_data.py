"""Build `bench/results/ranking_talks.jsonl.gz`, what the ranking is fitted on besides LongMemEval and its own notes.

    python training/ranking/ranking_data.py SNAPSHOTS DATA

SNAPSHOTS holds git copies of the public repositories (owner+name/repo), DATA is the file that
`build_data.py` wrote: the ranking is fitted on a part of what the encoder learns from, through encoders that
were trained without it. Each line is a collection: name, the half of the training data that it belongs to (none if no
encoder was trained on it), records [text, session, date] in order and questions [text, kind, positions of the records
that answer it, date]; no position means that nothing there answers. Three people of RHELM are left out: they are for
reporting.
"""

from __future__ import annotations

import gzip
import json
import lzma
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training" / "cortex_recall"))

from conversations import RHELM_HELD_OUT, RHELM_TEST
from sources import NAMES, Snapshot, clean, cut, half

import report

__all__ = ["NAMES", "OUT", "about", "clean", "cut", "locomo_plus", "rhelm_reported"]

OUT = report.RESULTS / "ranking_talks.jsonl.gz"
NAMED_SESSIONS = 36  # of a person whose talk is rewritten to names
NAMED = ("David_R._Ellis", "Dr._Alastair_McEwan", "Dr._Elias_Romero", "Elena_Morales", "David_Reyes")
POOLED = (("Dr._Elena_Markovic", "Dr._Elias_Romero"), ("David_Reyes", "Dr._Marcus_Ellison"))  # by half
# What is taken of the training data: collections of each half, records of one, questions of one.
TAKEN = {
    "fairytaleqa": (1, 400, 120),
    "persona": (3, 800, 60),
    "friendsqa": (3, 500, 110),
    "notes": (4, 400, 60),
    "tldr-pages": (1, 400, 60),
    "code": (2, 500, 70),
    "recipes": (3, 400, 110),
    "snippets": (1, 500, 60),
}
HELD_OUT = ("celery", "koajs", "boltons", "pypdf", "recipes")  # what no encoder learned from is taken as well
# What a first-person sentence becomes when it is about a named person.
ABOUT = (
    (r"\bam I\b", "is {n}"), (r"\bdo I\b", "does {n}"), (r"\bhave I\b", "has {n}"), (r"\bwere I\b", "was {n}"),
    (r"\bI am\b|\bI'm\b", "{n} is"), (r"\bI've\b|\bI have\b", "{n} has"), (r"\bI'll\b", "{n} will"),
    (r"\b[Mm]y\b|\bmine\b", "{n}'s"), (r"\b(?:me|myself)\b", "{n}"), (r"\bI\b|(?<=[ .])i(?=[ '])", "{n}"),
    (r"\byou\b", "{o}"), (r"\byour\b", "{o}'s"),
)  # fmt: skip
Collection = dict[str, Any]


def about(text: str, name: str, other: str) -> str:
    for pattern, put in ABOUT:
        text = re.sub(pattern, put, text)
    return text.replace("{n}", name).replace("{o}", other)


def rhelm(folder: Path, drawn: random.Random) -> Iterator[Collection]:
    """Talks as turns between two named persons, and as pooled sessions."""
    for person in NAMED:
        of_half = None if person in RHELM_HELD_OUT else half(f"rhelm/{person}")
        yield {"name": f"rhelm-{person}", "half": of_half} | _named(person, *_person(folder, person), drawn)
    for number, persons in enumerate(POOLED):
        assert all(half(f"rhelm/{person}") == number for person in persons)
        pooled: Collection = {"name": f"rhelm-sessions{number}", "half": number, "records": [], "questions": []}
        for person in persons:
            _pool(pooled, *_person(folder, person))
        yield pooled


def rhelm_reported(folder: Path) -> Iterator[Collection]:
    """The three people that nothing is fitted on, as turns between two named persons."""
    for person in RHELM_TEST:
        yield {"name": f"reported-{person}"} | _named(person, *_person(folder, person), random.Random(11))


def locomo_plus(folder: Path, talk: Collection) -> Collection:
    """Locomo-Plus: short talks among the turns of a conversation, each to be found by what is said much later."""
    ((_, body),) = Snapshot(folder, "xjtuleeyf/Locomo-Plus").read(["data/locomo_plus.json"])
    records, questions = list(talk["records"]), []
    for n, row in enumerate(json.loads(body)):
        questions.append([row["trigger_query"].removeprefix("A: "), row["relation_type"], [len(records)], None])
        records += [[line, f"cue {n}", None] for line in row["cue_dialogue"].splitlines() if line.strip()]
    return {"name": "locomo-plus", "records": records, "questions": questions}


def _person(folder: Path, person: str) -> tuple[list[Any], list[Any]]:
    """What a person of RHELM said, and what is asked about it."""
    repo = Snapshot(folder, "microsoft/RHELM")
    files = repo.files("data")
    own = sorted(f for f in files if f.startswith(f"data/conversations/{person}/"))
    rows = [body for _, body in repo.read(f for f in files if "QA_final/" in f and f"_{person}_all" in f)]
    asked = [json.loads(line) for body in rows for line in body.splitlines() if line.strip()]
    left_out = ("attachment", "mixed", "misleading")
    talks = [json.loads(body) for _, body in repo.read(own)]
    return talks, [q for q in asked if q["question_type"] not in left_out]


def _named(person: str, talks: list[Any], asked: list[Any], drawn: random.Random) -> Collection:
    name, other = re.sub(r"^(Dr\\.|Justice)_", "", person).split("_")[0], drawn.choice(NAMES)
    records: list[list[str]] = []
    place: dict[str, int] = {}
    for talk in talks[:NAMED_SESSIONS]:
        for turn in talk["conversation"]:
            place[f"{talk['date']}:{turn['turn']}"] = len(records)
            records.append([f"{name}: {cut(clean(turn['user']), 500)}", talk["date"], talk["date"]])
            records.append([f"{other}: {cut(clean(turn['assistant']), 200)}", talk["date"], talk["date"]])
    questions = []
    for q in asked:
        if not all(e in place for e in q["supporting_evidence"]):
            continue
        text, kind = about(clean(q["question"]), name, other), q["question_type"]
        spots = [] if kind == "hallucination" else sorted({place[e] for e in q["supporting_evidence"]})
        if len(spots) <= 8:
            questions.append([text, kind, spots, q["question_date"]])
            if spots and name in text:
                # The same asked about the other one, who said nothing of the kind.
                questions.append([text.replace(name, other), "swapped", [], q["question_date"]])
    return {"records": records, "questions": questions}


def _pool(pooled: Collection, talks: list[Any], asked: list[Any]) -> None:
    place: dict[str, int] = {}
    for talk in talks:
        place[talk["date"]] = len(pooled["records"])
        turns = [
            line
            for turn in talk["conversation"]
            for line in (f"user: {cut(clean(turn['user']), 500)}", f"assistant: {cut(clean(turn['assistant']), 200)}")
        ]
        pooled["records"].append(["\n".join(turns), None, talk["date"]])
    for q in asked:
        days = {e.split(":")[0] for e in q["supporting_evidence"]}
        if days and days <= set(place):
            kind = q["question_type"]
            spots = [] if kind == "hallucination" else sorted(place[day] for day in days)
            pooled["questions"].append([clean(q["question"]), kind, spots, q["question_date"]])


def learned(data: Path) -> Iterator[Collection]:
    """Collections of every source of the training data, some of each half."""
    with lzma.open(data, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    left = {(source, number): most for source, (most, _, _) in TAKEN.items() for number in (0, 1)}
    drawn = random.Random(11)
    drawn.shuffle(found)
    for collection in found:
        first = collection["name"].split("/")[0]
        source = first if first in TAKEN else "notes"
        if collection["kind"] in ("assistant", "named", "meeting", "fact"):
            continue
        own = half(collection["name"])
        if collection["held_out"]:
            if any(part in HELD_OUT for part in collection["name"].split("/")):
                yield _taken(collection, source, None)
        elif left[source, own] > 0:
            left[source, own] -= 1
            yield _taken(collection, source, own)


def _taken(collection: Collection, source: str, of_half: int | None) -> Collection:
    """A part of a collection of the training data."""
    _, most, asked = TAKEN[source]
    drawn = random.Random(collection["name"])
    talk = collection["kind"] == "people"
    # A query made of a docstring must not be found by that docstring.
    usable = [
        (query, places)
        for query, places in collection["questions"]
        if source != "code" or not any('"""' in collection["records"][place][0] for place in places)
    ]
    records = collection["records"]
    if talk:
        usable = [(query, places) for query, places in usable if max(places) < most]
        kept = list(range(min(most, len(records))))
        questions = drawn.sample(usable, min(asked, len(usable)))
    else:
        questions = drawn.sample(usable, min(asked, len(usable)))
        wanted = {place for _, places in questions for place in places}
        others = [n for n in range(len(records)) if n not in wanted]
        kept = sorted({*wanted, *drawn.sample(others, max(0, min(most - len(wanted), len(others))))})
    new = {old: n for n, old in enumerate(kept)}
    rows: list[list[Any]] = []
    for query, places in questions:
        rows.append([query, source, sorted(new[place] for place in places), None])
        if source == "persona":
            rows += _swapped(query, records[places[0]][0].split(":")[0], records)
    name = collection["name"].replace("/", "-")
    name = name if source != "notes" else f"notes-{name}"
    sessions = [[records[n][0], str(records[n][1]) if talk else None, None] for n in kept]
    return {"name": name, "half": of_half, "records": sessions, "questions": rows}


def _swapped(query: str, name: str, records: list[Any]) -> Iterator[list[Any]]:
    """The same asked about the other person, who said nothing of the kind."""
    other = next((who for text, _ in records if (who := text.split(":")[0]) != name), None)
    if other and re.search(rf"\b{name}\b", query) and not re.search(rf"\b{other}\b", query):
        yield [re.sub(rf"\b{name}\b", other, query), "swapped", [], None]


def main() -> int:
    snapshots, data = Path(sys.argv[1]), Path(sys.argv[2])
    OUT.parent.mkdir(exist_ok=True)
    with gzip.open(OUT, "wt", encoding="utf-8") as packed:
        for one in (*rhelm(snapshots, random.Random(11)), *learned(data)):
            print(one["name"], one["half"], len(one["records"]), "records", len(one["questions"]), "questions")
            packed.write(json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
