"""Conversations and stories with questions, each under a licence that lets its text shape a model.

LoCoMo is not among them, nor is anything that contains it. LongMemEval and three people of RHELM are left out
altogether: they are for the ranking and for reporting.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

from sources import NAMES, Collection, Snapshot, about, clean, cut, draw, prune, words

RHELM_TEST = ("Jonas_Richter", "Justice_Arvind_Prakash_Mehra", "Martin_Keller")
RHELM_HELD_OUT = ("Elena_Morales",)


def named(collection: Collection) -> Collection:
    """The same talk between a named person and an assistant, with the questions asked about that person."""
    name = draw(collection.name).choice(NAMES)
    records = [(re.sub(r"^user:", f"{name}:", text), session) for text, session in collection.records]
    questions = [(about(query, name), places) for query, places in collection.questions]
    return Collection(f"{collection.name}/named", "named", records, questions, collection.held_out)


def rhelm(snapshots: Path) -> Iterator[Collection]:
    repo = Snapshot(snapshots, "microsoft/RHELM")
    files = repo.files("data")
    for person in sorted({f.split("/")[2] for f in files if f.startswith("data/conversations/")}):
        if person in RHELM_TEST:
            continue
        place: dict[str, int] = {}
        records: list[tuple[str, int]] = []
        talks = sorted(f for f in files if f.startswith(f"data/conversations/{person}/"))
        for n, (_, body) in enumerate(repo.read(talks)):
            talk = json.loads(body)
            for turn in talk["conversation"]:
                place[f"{talk['date']}:{turn['turn']}"] = len(records)
                records.append((f"user: {cut(clean(turn['user']), 600)}", n))
                records.append((f"assistant: {cut(clean(turn['assistant']), 350)}", n))
        questions = []
        for _, body in repo.read(f for f in files if f.startswith("data/QA_final/") and person in f):
            for asked in map(json.loads, filter(str.strip, body.splitlines())):
                places = sorted({place[e] for e in asked["supporting_evidence"] if e in place})
                if places and len(places) <= 8 and asked["question_type"] != "misleading":
                    questions.append((clean(asked["question"]), places))
        held = person in RHELM_HELD_OUT
        whole = prune(Collection(f"rhelm/{person}", "assistant", records, questions, held), 1300)
        yield whole
        yield named(whole)


def friends(snapshots: Path) -> Iterator[Collection]:
    repo = Snapshot(snapshots, "emorynlp/FriendsQA")
    scenes = []
    for _, body in repo.read(["dat/friendsqa_dev.json", "dat/friendsqa_tst.json"]):
        scenes += [paragraph for scene in json.loads(body)["data"] for paragraph in scene["paragraphs"]]

    def joined(text: str) -> str:
        return re.sub(r" (n't|'\w+|[.,?!;:)\]])", r"\1", clean(text))

    for first in range(0, len(scenes), 12):
        records: list[tuple[str, int]] = []
        questions = []
        for n, scene in enumerate(scenes[first : first + 12]):
            place = {}
            for said in scene["utterances:"]:
                place[said["uid"]] = len(records)
                who = " ".join(said["speakers"]).split(" ")[0].strip("#") or "Someone"
                records.append((f"{who}: {cut(joined(said['utterance']), 600)}", n))
            for asked in scene["qas"]:
                places = sorted({place[a["utterance_id"]] for a in asked["answers"] if a["utterance_id"] in place})
                if places:
                    questions.append((joined(asked["question"]), places))
        yield Collection(f"friendsqa/{first}", "people", records, questions, first >= len(scenes) - 24)


def qmsum(snapshots: Path) -> Iterator[Collection]:
    repo = Snapshot(snapshots, "Yale-LILY/QMSum")
    meetings = [f for f in repo.files("data/ALL") if re.search(r"/(train|val|test)/[^/]+\.json$", f)]
    for path, body in repo.read(meetings):
        meeting = json.loads(body)
        records = [
            (f"{turn['speaker']}: {cut(clean(re.sub(r'{[^}]*}|<[^>]*>', ' ', turn['content'])), 600)}", 0)
            for turn in meeting["meeting_transcripts"]
        ]
        questions = []
        for asked in meeting["specific_query_list"]:
            places: set[int] = set()
            for first, last in asked.get("relevant_text_span", []):
                if str(first).isdigit() and str(last).isdigit():
                    places.update(range(int(first), int(last) + 1))
            said = sorted(p for p in places if p < len(records) and len(records[p][0]) > 80)
            if 0 < len(said) <= 40:
                questions.append((clean(asked["query"]), said))
        if questions:
            yield prune(Collection(f"qmsum/{Path(path).stem}", "meeting", records, questions), 220)


def fairytales(snapshots: Path) -> Iterator[Collection]:
    repo = Snapshot(snapshots, "uci-soe/FairytaleQAData")
    files = repo.files("data-by-train-split")
    stories = {Path(f).name[:-10]: f for f in files if "/section-stories/" in f}
    bodies = dict(repo.read(stories.values()))
    asked_in = {Path(f).name[:-14]: f for f in files if "/questions/" in f}
    chosen = sorted(set(stories) & set(asked_in))
    for first in range(0, len(chosen), 12):
        records: list[tuple[str, int]] = []
        questions = []
        for n, name in enumerate(chosen[first : first + 12]):
            where = {}
            for row in csv.DictReader(io.StringIO(bodies[stories[name]])):
                where[row["section"]] = len(records)
                records.append((cut(clean(row["text"]), 700), n))
            for _, body in repo.read([asked_in[name]]):
                for row in csv.DictReader(io.StringIO(body)):
                    places = [where[s.strip()] for s in row["cor_section"].split(",") if s.strip() in where]
                    if places and len(places) <= 3 and row["question"]:
                        questions.append((clean(row["question"]), places))
        yield Collection(f"fairytaleqa/{first}", "story", records, questions, first >= len(chosen) - 24)


def squad(snapshots: Path) -> Iterator[Collection]:
    repo = Snapshot(snapshots, "xinyadu/nqg")

    def plain(text: str) -> str:
        for old, new in (("-lrb- ", "("), (" -rrb-", ")"), ("``", '"'), ("''", '"')):
            text = text.replace(old, new)
        return re.sub(r" ([.,?!;:)\]%]|'s\b|n't)", r"\1", text)

    for part in ("dev", "test"):
        paths = [f"data/processed/{side}-{part}.txt" for side in ("src", "tgt")]
        sentences, asked = (body.splitlines() for _, body in repo.read(paths))
        for first in range(0, len(sentences), 2000):
            place: dict[str, int] = {}
            questions = []
            for sentence, question in zip(sentences[first : first + 2000], asked[first : first + 2000], strict=True):
                place.setdefault(cut(plain(sentence), 500), len(place))
                questions.append((plain(question), [place[cut(plain(sentence), 500)]]))
            records = list(place.items())
            yield Collection(f"squad/{part}{first}", "fact", records, questions, part == "test" and first == 0)


_ASKED = (
    "Is it true that {}?",
    "Did we hear that {}?",
    "What do we know about this: {}?",
    "{}",
    "{}",
    "who said that {}",
)


def persona(snapshots: Path) -> Iterator[Collection]:
    """Sentences about a person, to be found in what that person says."""
    repo = Snapshot(snapshots, "google-research-datasets/Synthetic-Persona-Chat")
    common = {"like", "love", "have", "really", "favorite", "with", "that"}
    for part in ("valid", "test"):
        for _, body in repo.read([f"data/Synthetic-Persona-Chat_{part}.csv"]):
            rows = list(csv.DictReader(io.StringIO(body)))
            for first in range(0, len(rows), 25):
                chance = draw(f"persona/{part}/{first}")
                pair = chance.sample(NAMES, 2)
                records: list[tuple[str, int]] = []
                questions = []
                for n, row in enumerate(rows[first : first + 25]):
                    begin = len(records)
                    for line in row["Best Generated Conversation"].splitlines():
                        if m := re.match(r"User ([12]): (.*)", line.strip()):
                            text = m[2].replace("[User 1's name]", pair[0]).replace("[User 2's name]", pair[1])
                            records.append((f"{pair[int(m[1]) - 1]}: {text}", n))
                    for who, name in enumerate(pair, 1):
                        own = {
                            i: set(words(records[i][0]))
                            for i in range(begin, len(records))
                            if records[i][0].startswith(f"{name}:")
                        }
                        for line in row[f"user {who} personas"].splitlines():
                            told = line.strip().rstrip(".")
                            wanted = {word for word in words(told) if len(word) > 3} - common
                            best = max(own, key=lambda i: len(wanted & own[i]), default=None)
                            if wanted and best is not None and len(wanted & own[best]) >= max(1, len(wanted) / 2):
                                questions.append((chance.choice(_ASKED).format(about(told, name)), [best]))
                held = part == "test" and first >= len(rows) - 100
                yield Collection(f"persona/{part}{first}", "people", records, questions, held)
