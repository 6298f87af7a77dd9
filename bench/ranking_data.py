"""Build `data/ranking_talks.jsonl.gz` and `data/calibration_talks.jsonl.gz`, what the ranking is fitted on.

    python bench/ranking_data.py fusion|calibration SNAPSHOTS PACKAGES...

SNAPSHOTS holds git copies of the public repositories (owner+name/repo); PACKAGES are folders like site-packages. Only
sets with a permissive licence are read; `data/README.md` names them. Three people of RHELM are left out: they are for
reporting. The calibration gets what the training of the encoder held out (`training/conversations.py`,
`training/functions.py`). Each line is a collection: name, licence, records [text, session, date] in order and questions
[text, kind, positions of the records that answer it, date]; no position means that nothing there answers.
"""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import without_docstring

DATA = Path(__file__).parent / "data"
NAMED_SESSIONS = 36  # of a person whose talk is rewritten to names
NAMES = ("Anna", "Ben", "Carla", "Dan", "Ella", "Frank", "Grace", "Henry", "Iris", "Jack", "Kate", "Leo", "Mia", "Noah")
PACKAGES = {  # name of the package and its licence
    "anyio": "MIT", "attr": "MIT", "click": "BSD-3-Clause", "fastmcp": "Apache-2.0", "httpx": "BSD-3-Clause",
    "jsonschema": "MIT", "networkx": "BSD-3-Clause", "numpy": "BSD-3-Clause", "packaging": "BSD-2-Clause",
    "pydantic": "MIT", "pygments": "BSD-2-Clause", "rich": "MIT", "sqlalchemy": "MIT", "starlette": "BSD-3-Clause",
    "typer": "MIT", "urllib3": "MIT", "uvicorn": "BSD-3-Clause", "yaml": "MIT",
}  # fmt: skip
HELD_OUT_PACKAGES = {
    "anyio": "MIT", "attr": "MIT", "boltons": "BSD-3-Clause", "fastmcp": "Apache-2.0", "nltk": "Apache-2.0",
    "numpy": "BSD-3-Clause", "packaging": "BSD-2-Clause", "pydantic": "MIT", "pypdf": "BSD-3-Clause",
    "starlette": "BSD-3-Clause", "urllib3": "MIT", "uvicorn": "BSD-3-Clause", "yaml": "MIT",
}  # fmt: skip
TOGETHER, HELD_OUT = 12, 24  # scenes or stories of one collection, and at most so many that the encoder never saw
Collection = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """What one file takes of each source."""

    out: Path
    named: tuple[str, ...]  # people of RHELM, as turns of two named persons
    pooled: tuple[str, ...]  # and as sessions
    stories: Callable[[int], Iterable[int]]  # where collections begin, by how many stories there are
    scenes: Callable[[int], Iterable[int]]
    personas: str  # the part of Synthetic-Persona-Chat
    rows: Callable[[int], Iterable[int]]
    packages: Iterable[str]
    functions: int


def _held_out(count: int) -> list[int]:
    """Where the collections begin that the encoder was not trained on."""
    return [first for first in range(0, count, TOGETHER) if first >= count - HELD_OUT]


# What a first-person sentence becomes when it is about a named person.
ABOUT = (
    (r"\bam I\b", "is {n}"), (r"\bdo I\b", "does {n}"), (r"\bhave I\b", "has {n}"), (r"\bwere I\b", "was {n}"),
    (r"\bI am\b|\bI'm\b", "{n} is"), (r"\bI've\b|\bI have\b", "{n} has"), (r"\bI'll\b", "{n} will"),
    (r"\b[Mm]y\b|\bmine\b", "{n}'s"), (r"\b(?:me|myself)\b", "{n}"), (r"\bI\b|(?<=[ .])i(?=[ '])", "{n}"),
    (r"\byou\b", "{o}"), (r"\byour\b", "{o}'s"),
)  # fmt: skip


PARTS = {
    "fusion": Part(
        DATA / "ranking_talks.jsonl.gz",
        ("David_R._Ellis", "Dr._Alastair_McEwan", "Dr._Elias_Romero", "Elena_Morales"),
        ("David_Reyes", "Dr._Elena_Markovic", "Dr._Marcus_Ellison"),
        lambda _: range(0, 24, TOGETHER),
        lambda _: range(0, 72, TOGETHER),
        "valid",
        lambda _: range(0, 75, 25),
        PACKAGES,
        1200,
    ),
    "calibration": Part(
        DATA / "calibration_talks.jsonl.gz",
        ("Elena_Morales",),
        ("Elena_Morales",),
        _held_out,
        _held_out,
        "test",
        lambda count: [first for first in range(0, count, 25) if first >= count - 100],
        HELD_OUT_PACKAGES,
        1600,
    ),
}


class Snapshot:
    def __init__(self, folder: Path, name: str) -> None:
        path = folder / name.replace("/", "+") / "repo"
        self._git = ["git", f"--git-dir={path / '.git' if (path / '.git').is_dir() else path}"]

    def files(self, under: str) -> list[str]:
        listed = subprocess.run(
            [*self._git, "ls-tree", "-r", "-l", "HEAD", under], capture_output=True, text=True, check=True
        )
        return [line.split("\t")[1] for line in listed.stdout.splitlines() if line.split()[3] != "BAD"]

    def read(self, paths: Iterable[str]) -> Iterator[str]:
        for path in paths:
            yield subprocess.run(
                [*self._git, "show", f"HEAD:{path}"], capture_output=True, text=True, check=True
            ).stdout


def clean(text: str, most: int = 10_000) -> str:
    flat = re.sub(r"\s+", " ", text).strip()
    return flat if len(flat) <= most else flat[:most].rsplit(" ", 1)[0]


def about(text: str, name: str, other: str) -> str:
    for pattern, put in ABOUT:
        text = re.sub(pattern, put, text)
    return text.replace("{n}", name).replace("{o}", other)


def rhelm(folder: Path, part: Part, drawn: random.Random) -> Iterator[Collection]:
    """Talks as turns between two named persons, and as pooled sessions."""
    repo = Snapshot(folder, "microsoft/RHELM")
    files = repo.files("data/conversations")
    pooled: Collection = {"name": "rhelm-sessions", "licence": "MIT", "records": [], "questions": []}
    for person in sorted({*part.named, *part.pooled}):
        talks = [json.loads(body) for body in repo.read(f for f in files if f"/{person}/" in f)]
        asked = [
            json.loads(line)
            for body in repo.read(f for f in repo.files("data/QA_final") if f"_{person}_all" in f)
            for line in body.splitlines()
            if line.strip()
        ]
        asked = [q for q in asked if q["question_type"] not in ("attachment", "mixed", "misleading")]
        if person in part.pooled:
            _pool(pooled, talks, asked)
        if person in part.named:
            name, other = re.sub(r"^Dr\._", "", person).split("_")[0], drawn.choice(NAMES)
            yield _named(person, talks[:NAMED_SESSIONS], asked, name, other)
    yield pooled


def _named(person: str, talks: list[Any], asked: list[Any], name: str, other: str) -> Collection:
    records: list[list[str]] = []
    place: dict[str, int] = {}
    for talk in talks:
        for turn in talk["conversation"]:
            place[f"{talk['date']}:{turn['turn']}"] = len(records)
            records.append([f"{name}: {clean(turn['user'], 500)}", talk["date"], talk["date"]])
            records.append([f"{other}: {clean(turn['assistant'], 200)}", talk["date"], talk["date"]])
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
    return {"name": f"rhelm-{person}", "licence": "MIT", "records": records, "questions": questions}


def _pool(pooled: Collection, talks: list[Any], asked: list[Any]) -> None:
    place: dict[str, int] = {}
    for talk in talks:
        place[talk["date"]] = len(pooled["records"])
        turns = [
            line
            for turn in talk["conversation"]
            for line in (f"user: {clean(turn['user'], 500)}", f"assistant: {clean(turn['assistant'], 200)}")
        ]
        pooled["records"].append(["\n".join(turns), None, talk["date"]])
    for q in asked:
        days = {e.split(":")[0] for e in q["supporting_evidence"]}
        if days and days <= set(place):
            kind = q["question_type"]
            spots = [] if kind == "hallucination" else sorted(place[day] for day in days)
            pooled["questions"].append([clean(q["question"]), kind, spots, q["question_date"]])


def fairytales(folder: Path, part: Part) -> Iterator[Collection]:
    """Sections of stories as notes."""
    repo = Snapshot(folder, "uci-soe/FairytaleQAData")
    files = repo.files("data-by-train-split")
    stories = {Path(f).name[:-10]: f for f in files if "/section-stories/" in f}
    asked = {Path(f).name[:-14]: f for f in files if "/questions/" in f}
    names = sorted(set(stories) & set(asked))
    if part is PARTS["fusion"]:
        names = [name for name in names if "/section-stories/train/" not in stories[name]]
    for first in part.stories(len(names)):
        records: list[list[Any]] = []
        questions: list[list[Any]] = []
        for name in names[first : first + TOGETHER]:
            story, rows = repo.read([stories[name], asked[name]])
            where: dict[str, int] = {}
            for row in csv.DictReader(io.StringIO(story)):
                where[row["section"]] = len(records)
                records.append([clean(row["text"], 900), None, None])
            for n, row in enumerate(csv.DictReader(io.StringIO(rows))):
                spots = [where[s.strip()] for s in row["cor_section"].split(",") if s.strip() in where]
                if spots and n % 3 == 0 and row["question"]:
                    questions.append([clean(row["question"]), "story", spots, None])
        yield {"name": f"fairytales-{first}", "licence": "Apache-2.0", "records": records, "questions": questions}


def personas(folder: Path, part: Part, drawn: random.Random) -> Iterator[Collection]:
    """Talks of two persons. Sentences about one of them are asked of both; only one of the answers exists."""
    repo = Snapshot(folder, "google-research-datasets/Synthetic-Persona-Chat")
    (body,) = repo.read([f"data/Synthetic-Persona-Chat_{part.personas}.csv"])
    rows = list(csv.DictReader(io.StringIO(body)))
    for first in part.rows(len(rows)):
        pair = drawn.sample(NAMES, 2)
        records: list[list[Any]] = []
        questions: list[list[Any]] = []
        for n, row in enumerate(rows[first : first + 25]):
            begin = len(records)
            for line in row["Best Generated Conversation"].splitlines():
                if said := re.match(r"User ([12]): (.*)", line.strip()):
                    text = said[2].replace("[User 1's name]", pair[0]).replace("[User 2's name]", pair[1])
                    records.append([f"{pair[int(said[1]) - 1]}: {text}", str(n), None])
            for who in (0, 1):
                own = [i for i in range(begin, len(records)) if records[i][0].startswith(pair[who] + ":")]
                for line in row[f"user {who + 1} personas"].splitlines()[:3]:
                    questions += _persona_questions(line.strip().rstrip("."), own, records, pair[who], pair[1 - who])
        yield {"name": f"personas-{first}", "licence": "CC-BY-4.0", "records": records, "questions": questions}


def _persona_questions(text: str, own: list[int], records: list[list[Any]], name: str, other: str) -> Iterator[Any]:
    words = set(re.findall(r"[a-z]{4,}", text.lower())) - {"like", "love", "have", "really", "favorite"}
    shared = [(len(words & set(re.findall(r"[a-z]{4,}", records[i][0].lower()))), -i) for i in own]
    if words and shared and max(shared)[0] >= max(1, len(words) / 2):
        yield [f"Is it true that {about(text, name, other)}?", "persona", [-max(shared)[1]], None]
        yield [f"Is it true that {about(text, other, name)}?", "swapped", [], None]


def scenes(folder: Path, part: Part) -> Iterator[Collection]:
    """Talk of several persons with questions about single utterances."""
    repo = Snapshot(folder, "emorynlp/FriendsQA")
    bodies = repo.read(["dat/friendsqa_dev.json", "dat/friendsqa_tst.json"])
    found = [paragraph for body in bodies for scene in json.loads(body)["data"] for paragraph in scene["paragraphs"]]
    for first in part.scenes(len(found)):
        records: list[list[Any]] = []
        questions: list[list[Any]] = []
        for n, scene in enumerate(found[first : first + TOGETHER]):
            place: dict[int, int] = {}
            for said in scene["utterances:"]:
                place[said["uid"]] = len(records)
                who = " ".join(said["speakers"]).split(" ")[0].strip("#") or "Someone"
                records.append([f"{who}: {_joined(said['utterance'], 500)}", str(n), None])
            for asked in scene["qas"]:
                spots = sorted({place[a["utterance_id"]] for a in asked["answers"] if a["utterance_id"] in place})
                if spots:
                    questions.append([_joined(asked["question"], 500), "scene", spots, None])
        yield {"name": f"scenes-{first}", "licence": "Apache-2.0", "records": records, "questions": questions}


def _joined(text: str, most: int) -> str:
    return re.sub(r" (n't|'\w+|[.,?!;:)\]])", r"\1", clean(text, most))


def functions(folders: Sequence[Path], part: Part, drawn: random.Random) -> Iterator[Collection]:
    """Functions of installed packages, asked for in the words of a web search.

    Every second has no docstring and is asked for by its summary; the others keep the summary and are asked for by
    what their docstring says further, since a query does not repeat the words that somebody else wrote.
    """
    found: list[tuple[str, str, str]] = []
    for package in part.packages:
        for path in sorted(path for folder in folders for path in (folder / package).rglob("*.py")):
            found += _documented(path.read_text("utf-8", "replace"))
    drawn.shuffle(found)
    records: list[list[Any]] = []
    questions: list[list[Any]] = []
    known: set[str] = set()
    for summary, further, code in found:
        if summary in known or len(records) == part.functions:
            continue
        known.add(summary)
        if further and len(records) % 2 == 0:
            head, rest = without_docstring(code).split("\n", 1)
            code, asked = f'{head}\n    """{summary}."""\n{rest}', further
        else:
            code, asked = without_docstring(code), summary
        if drawn.random() < 0.35:
            questions.append([_searched(asked, drawn, 0.5), "code", [len(records)], None])
        records.append([code, None, None])
    yield {"name": "functions", "licence": "MIT, BSD, Apache-2.0", "records": records, "questions": questions}


def _documented(source: str) -> Iterator[tuple[str, str, str]]:
    """The first sentence of each docstring, the second if there is one, and the function."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)) and not node.name.startswith("test"):
            code = ast.get_source_segment(source, node) or ""
            sentences = [clean(part).rstrip(".") for part in re.split(r"(?<=\w)\.\s|\n\s*\n", text) if part.strip()]
            if not sentences or len(without_docstring(code).splitlines()) < 4:
                continue
            summary, further = sentences[0], sentences[1] if len(sentences) > 1 else ""
            told = 4 <= len(summary.split()) <= 16 and 4 <= len(code.splitlines()) <= 45 and ")" in code.split("\n")[0]
            if told and "deprecated" not in summary:
                yield summary, further if re.fullmatch(r"[A-Z][\w ,'-]{25,140}", further) else "", code[:2500]


def _searched(summary: str, drawn: random.Random, dropped: float) -> str:
    """A sentence as somebody would type it into a search box: some words are missing."""
    small = {"a", "an", "the", "of", "this", "that", "is", "be", "and", "or", "for", "by", "with", "from", "given"}
    words = list(re.findall(r"[A-Za-z][\w-]*", summary))
    kept = [w.lower() for w in words if drawn.random() > (0.5 if w.lower() in small else dropped)]
    kept = kept if len(kept) > 1 else [w.lower() for w in words]
    frame = drawn.choice(("python {}", "{} python", "how to {} in python", "{}", "{}"))
    return frame.format(" ".join(kept))


def main() -> int:
    part, folder, packages = PARTS[sys.argv[1]], Path(sys.argv[2]), [Path(one) for one in sys.argv[3:]]
    drawn = random.Random(11)
    made: list[Collection] = []
    for source in (
        rhelm(folder, part, drawn), fairytales(folder, part), personas(folder, part, drawn), scenes(folder, part),
        functions(packages, part, drawn),
    ):  # fmt: skip
        made += source
    with part.out.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed:
        for one in made:
            print(one["name"], len(one["records"]), "records", len(one["questions"]), "questions")
            packed.write((json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
