"""How useful the hooks are: does a prompt get the memory it needs, and how often does one get what nobody needs?

Past work is stored as memories, and each prompt goes through `cortex.hooks.prompt`, with its budget of tokens. Sources:
LongMemEval (each turn a memory, the turns with the answer are needed), LoCoMo (each turn a memory, the evidence is
needed) and three projects written for this (`bench/data/hook_projects.json`). Prompts without a subject here and
questions about code are off-topic.

Each source is halved: by the question (LongMemEval), by the conversation (LoCoMo) and by the project. The floor is
chosen on the dev halves alone, as the lowest one that keeps to the bounds, and reported on the test halves.

    python bench/hooks.py                   # the floor of the settings, on the test halves
    python bench/hooks.py --choose          # all floors on the dev halves, then the chosen one on the test halves
    python bench/hooks.py --most 40         # only so many questions of each half
    python bench/hooks.py --latency         # how long hooks take instead; see `hook_latency.py`
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cortex_py import Cortex, NewMemory
from cortex_py.config import Settings

import report
from datasets import DatasetMissing, locomo, read_lines

PROJECTS = Path(__file__).parent / "data" / "hook_projects.json"
FLOORS = tuple(range(20, 96, 5))
# Injections nobody needs, for each prompt; and the share of off-topic prompts that get anything.
MOST_UNNEEDED, MOST_OFF_TOPIC = 0.25, 0.05
_DEFAULT = next(one.default for one in Settings.__dataclass_fields__.values() if one.name == "hook_floor_percent")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with the keys of the memories it needs; none for one that is off-topic.

    `beside` are memories of the same session as a needed one: no answer, but nothing that nobody needs either.
    """

    text: str
    needed: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()


@dataclass(slots=True)
class Work:
    """The past work of one project, as memories by key, and the prompts given to it."""

    source: str
    split: str
    notes: dict[str, tuple[str, str]] = field(default_factory=dict)
    prompts: list[Prompt] = field(default_factory=list)


def _half(key: str) -> str:
    return "dev" if hashlib.sha256(key.encode()).digest()[0] % 2 else "test"


def from_longmemeval(most: int | None) -> Iterator[Work]:
    """The sessions of all questions of a half together, in one project."""
    halves = {split: Work("LongMemEval", split) for split in ("dev", "test")}
    for item in read_lines("longmemeval_oracle.jsonl.gz"):
        work = halves[_half(item["question_id"])]
        if item["question_id"].endswith("_abs") or (most and len(work.prompts) >= most):
            continue
        needed, beside = set(), set()
        for session in item["haystack_sessions"]:
            for turn in session:
                key = hashlib.sha256(f"{turn['role']}: {turn['content']}".encode()).hexdigest()
                work.notes[key] = ("context", turn["content"])
                beside.add(key)
                if turn.get("has_answer"):
                    needed.add(key)
        if needed:
            work.prompts.append(Prompt(item["question"], frozenset(needed), frozenset(beside)))
    yield from halves.values()


def from_locomo(most: int | None) -> Iterator[Work]:
    for number, conversation in enumerate(locomo()):
        work = Work("LoCoMo", "dev" if number % 2 else "test")
        work.notes = {one.key: ("context", one.content) for one in conversation.records}
        asked = [one for one in conversation.questions if one.answerable]
        sessions = {one.key: one.branch for one in conversation.records}
        for one in asked[:most] if most else asked:
            held = {sessions[key] for key in one.relevant}
            beside = frozenset(key for key, session in sessions.items() if session in held)
            work.prompts.append(Prompt(one.text, one.relevant, beside))
        yield work


def from_projects() -> Iterator[Work]:
    content = json.loads(PROJECTS.read_text("utf-8"))
    for one in content["projects"]:
        notes = {str(number): (namespace, text) for number, (namespace, text) in enumerate(one["notes"])}
        prompts = [Prompt(text, frozenset(map(str, needed))) for text, needed in one["prompts"]]
        yield Work("projects", one["split"], notes, prompts)


def off_topic(split: str, most: int | None) -> list[Prompt]:
    """Remarks and general questions, and questions about code that nobody here has worked on; halved as the others."""
    remarks = [text for text in json.loads(PROJECTS.read_text("utf-8"))["off_topic"] if _half(text) == split]
    asked = [item["query"] for item in read_lines("cosqa_queries.jsonl.gz") if _half(item["query"]) == split]
    return [Prompt(text) for text in (*remarks, *(asked[: most or 100]))]


@dataclass(slots=True)
class Counts:
    prompts: int = 0
    met: int = 0
    unneeded: int = 0
    off_topic: int = 0
    off_topic_given: int = 0

    def add(self, prompt: Prompt, given: set[str]) -> None:
        if prompt.needed:
            self.prompts += 1
            self.met += bool(given & prompt.needed)
            self.unneeded += len(given - prompt.needed - prompt.beside)
        else:
            self.off_topic += 1
            self.off_topic_given += bool(given)

    def plus(self, other: Counts) -> Counts:
        names = self.__slots__
        return Counts(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def figures(self) -> tuple[float, float, float]:
        """Share of prompts that get what they need; what nobody needs, for each; share of off-topic ones given any."""
        return (
            self.met / max(1, self.prompts),
            self.unneeded / max(1, self.prompts),
            self.off_topic_given / max(1, self.off_topic),
        )


def measure(work: Work, floors: Sequence[int], most: int | None) -> dict[int, Counts]:
    """The counts of one project for each floor."""
    counts = {floor: Counts() for floor in floors}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "project")
        place.mkdir()
        with Cortex.open(Path(folder, "home"), project=place) as cortex:
            items = [NewMemory(content=text, namespace=namespace) for namespace, text in work.notes.values()]
            stored = cortex.memories.capture_many(items)
        keys = dict(zip((one.id for one in stored), work.notes, strict=True))
        for floor in floors:
            with Cortex.open(Path(folder, "home"), project=place, hook_floor_percent=floor) as cortex:
                for prompt in (*work.prompts, *off_topic(work.split, most)):
                    given = {keys[id] for id in cortex.hooks.prompt(prompt.text, place).ids}
                    counts[floor].add(prompt, given)
    return counts


def choose(by_source: dict[str, dict[int, Counts]]) -> int:
    """The lowest floor that keeps to the bounds on the dev halves of all sources, each counting the same."""
    for floor in FLOORS:
        figures = [counts[floor].figures for counts in by_source.values()]
        unneeded, off = (sum(one[place] for one in figures) / len(figures) for place in (1, 2))
        if unneeded <= MOST_UNNEEDED and off <= MOST_OFF_TOPIC:
            return floor
    return FLOORS[-1]


def run(works: Sequence[Work], split: str, floors: Sequence[int], most: int | None) -> dict[str, dict[int, Counts]]:
    found: dict[str, dict[int, Counts]] = {}
    for work in works:
        if work.split == split:
            counts = measure(work, floors, most)
            before = found.setdefault(work.source, {floor: Counts() for floor in floors})
            found[work.source] = {floor: before[floor].plus(counts[floor]) for floor in floors}
    return found


def show(found: dict[str, dict[int, Counts]]) -> list[list[object]]:
    rows: list[list[object]] = [
        [source, floor / 100, *counts.figures, counts.prompts, counts.off_topic]
        for source, by_floor in found.items()
        for floor, counts in by_floor.items()
    ]
    report.table(("source", "floor", "needed given", "not needed", "off-topic given", "prompts", "off-topic"), rows)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choose", action="store_true", help="try all floors on the dev halves first")
    parser.add_argument("--most", type=int, help="only so many questions of each half")
    parser.add_argument("--sources", default="projects,longmemeval,locomo")
    parser.add_argument("--latency", action="store_true", help="measure times instead of usefulness")
    parser.add_argument("--size", type=int, default=100_000, help="memories in the store, with --latency")
    options = parser.parse_args(arguments)
    if options.latency:
        from hook_latency import measure as measure_latency

        report.write("hook_latency", measure_latency(options.size))
        return 0
    readers = {
        "projects": from_projects,
        "longmemeval": lambda: from_longmemeval(options.most),
        "locomo": lambda: from_locomo(options.most),
    }
    try:
        works = [work for name in options.sources.split(",") for work in readers[name]()]
        floor = int(_DEFAULT)
        result: dict[str, object] = {}
        if options.choose:
            print("dev halves")
            dev = run(works, "dev", FLOORS, options.most)
            result["dev"] = show(dev)
            floor = choose(dev)
        print(f"\ntest halves, floor {floor / 100}")
        result |= {"floor": floor, "test": show(run(works, "test", [floor], options.most))}
    except DatasetMissing as error:
        print(error, file=sys.stderr)
        return 0
    report.write("hooks", result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
