"""How useful the hooks are: does a prompt get the memory it needs, and how often does one get what nobody needs?

Past work is stored as memories, and each prompt goes through `cortex.hooks.prompt`, with its budget of tokens. Sources:
LongMemEval and LoCoMo, each session a memory (a session with evidence is needed) or each turn a memory, in a line of
work for each session (a turn with evidence is needed), and three projects written for this
(`bench/data/hook_projects.json`). Remarks, general questions and questions about code are off-topic.

Each source has a dev and a test part: by the question (LongMemEval, only those that the encoder was not trained on), by
the conversation (LoCoMo) and by the project. `--choose` chooses the limits on the dev parts alone: of all floors and
margins that keep to the bounds on each of `CHOSEN_BY`, those with which most prompts of the worst source get what they
need. For the answer by words alone, while nothing is warm, the average of the sources decides. It writes the limits to
`hooks/limits.json`. The test parts report, through the hook as it is. "Evidence shown" is the share of prompts that see
words of a turn with the answer, where a whole session is the memory.

    python bench/hooks.py                   # the test parts, with the limits that are set
    python bench/hooks.py --choose          # choose the limits on the dev parts first, and write them
    python bench/hooks.py --most 40         # only so many prompts of each part
    python bench/hooks.py --latency         # how long hooks take instead; see `hook_latency.py`
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import cortex_py.parts.hooks.selection as selection_module
from cortex_py import Cortex
from cortex_py.parts.hooks.cold import MOST_GIVEN as MOST_COLD
from cortex_py.parts.hooks.cold import answer_cold, find_cold
from cortex_py.parts.hooks.selection import MOST_GIVEN, HookLimits, certain

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "cortex_recall"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "gate"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training" / "ranking"))

from ranking_samples import KeptVectors, default_backend, engine

import report
from datasets import Collection, DatasetMissing, Record, locomo, longmemeval, read_lines

PROJECTS = Path(__file__).parent / "data" / "hook_projects.json"
TARGET = Path(selection_module.__file__).with_name("limits.json")
# Injections nobody needs, for each prompt; and the share of off-topic prompts that get anything.
MOST_UNNEEDED, MOST_OFF_TOPIC = 0.25, 0.05
# What the limits are chosen by. A turn as a memory is measured beside: it is harder, and no such memories are made.
CHOSEN_BY = ("projects", "LongMemEval sessions", "LoCoMo sessions")
FLOORS = [round(0.01 * step, 2) for step in range(5, 99)]
MARGINS = [round(0.02 * step, 2) for step in range(25, 51)]
PARTS = ("dev", "test")
KINDS = ("warm", "cold")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with the keys of the memories it needs; none for one that is off-topic.

    `beside` are memories of the same session as a needed one: no answer, but nothing that nobody needs either.
    """

    text: str
    part: str
    needed: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    evidence: tuple[str, ...] = ()  # texts of the turns with the answer, where a session is the memory


@dataclass(slots=True)
class Work:
    """The past work of one project, and the prompts given to it."""

    source: str
    past: Collection
    prompts: list[Prompt] = field(default_factory=list)


def _part(key: str) -> str:
    return PARTS[hashlib.sha256(key.encode()).digest()[1] % 2]


def from_longmemeval() -> Iterator[Work]:
    """The sessions of all questions together, in one project. The ranking was fitted on the questions."""
    answers = _answering_turns()
    texts: dict[str, list[str]] = {}
    for turn in longmemeval(form="turns").records:
        if turn.key in answers:
            texts.setdefault(turn.unit, []).append(turn.content)
    for form in ("session", "turns"):
        past = longmemeval(form=form)  # type: ignore[arg-type]
        work = Work(f"LongMemEval {form.rstrip('s')}s", past)
        for one in past.questions:
            beside: frozenset[str] = frozenset()
            needed = one.relevant
            evidence = tuple(text for unit in sorted(one.relevant) for text in texts.get(unit, ()))
            if form == "turns":
                beside = frozenset(record.key for record in past.records if record.unit in one.relevant)
                needed = beside & answers
            if needed:
                work.prompts.append(Prompt(one.text, _part(one.key), needed, beside, evidence))
        yield work


def _answering_turns() -> frozenset[str]:
    """The keys of the turns that LongMemEval marks as having an answer, as `datasets` names them."""
    found = set()
    for item in read_lines("longmemeval_oracle.jsonl.gz"):
        for session in item["haystack_sessions"]:
            text = "\n".join(f"{turn['role']}: {turn['content']}" for turn in session)
            unit = hashlib.sha256(text.encode()).hexdigest()[:16]
            found |= {f"{unit}:{place}" for place, turn in enumerate(session) if turn.get("has_answer")}
    return frozenset(found)


def from_locomo() -> Iterator[Work]:
    for number, turns in enumerate(locomo()):
        part = PARTS[(number + 1) % 2]
        sessions = {one.key: str(one.branch) for one in turns.records}
        texts = {one.key: one.content for one in turns.records}
        whole = Work("LoCoMo sessions", _by_session(turns))
        single = Work("LoCoMo turns", turns)
        for one in turns.questions:
            if one.answerable:
                held = frozenset(sessions[key] for key in one.relevant)
                beside = frozenset(key for key, session in sessions.items() if session in held)
                evidence = tuple(texts[key] for key in sorted(one.relevant))
                whole.prompts.append(Prompt(one.text, part, held, evidence=evidence))
                single.prompts.append(Prompt(one.text, part, one.relevant, beside))
        yield from (whole, single)


def _by_session(turns: Collection) -> Collection:
    by_session: dict[str, list[Record]] = {}
    for one in turns.records:
        by_session.setdefault(str(one.branch), []).append(one)
    records = (
        Record(name, name, "\n".join(one.content for one in held), None, held[0].created_at)
        for name, held in by_session.items()
    )
    return Collection(f"{turns.name}-sessions", tuple(records), ())


def from_projects() -> Iterator[Work]:
    content = json.loads(PROJECTS.read_text("utf-8"))
    made = datetime(2026, 10, 1, tzinfo=UTC)
    for number, one in enumerate(content["projects"]):
        records = (Record(str(key), str(key), text, None, made) for key, (_, text) in enumerate(one["notes"]))
        prompts = [Prompt(text, one["split"], frozenset(map(str, needed))) for text, needed in one["prompts"]]
        yield Work("projects", Collection(f"hook-project-{number}", tuple(records), ()), prompts)


def off_topic(part: str, most: int | None) -> list[Prompt]:
    """Remarks and general questions, and questions about code that nobody here has worked on."""
    remarks = [text for text in json.loads(PROJECTS.read_text("utf-8"))["off_topic"] if _part(text) == part]
    asked = [item["query"] for item in read_lines("cosqa_queries.jsonl.gz") if _part(item["query"]) == part]
    return [Prompt(text, part) for text in (*remarks, *(asked[: most or 100]))]


@dataclass(slots=True)
class Counts:
    prompts: int = 0
    met: int = 0
    unneeded: int = 0
    off_topic: int = 0
    off_topic_given: int = 0
    quoted: int = 0  # prompts that see words of the evidence

    def add(self, prompt: Prompt, given: set[str], shown: str = "") -> None:
        if prompt.needed:
            self.prompts += 1
            self.met += bool(given & prompt.needed)
            self.quoted += any(_is_quoted(one, shown) for one in prompt.evidence)
            self.unneeded += len(given - prompt.needed - prompt.beside)
        else:
            self.off_topic += 1
            self.off_topic_given += bool(given)

    @property
    def figures(self) -> tuple[float, float, float]:
        """Share of prompts that get what they need; what nobody needs, for each; share of off-topic ones given any."""
        return (
            self.met / max(1, self.prompts),
            self.unneeded / max(1, self.prompts),
            self.off_topic_given / max(1, self.off_topic),
        )


def _is_quoted(evidence: str, shown: str) -> bool:
    """Whether a text shows forty characters of a turn in a row, or the whole of a shorter one."""
    words, seen = " ".join(evidence.split()), " ".join(shown.split())
    return any(words[start : start + 40] in seen for start in range(0, max(1, len(words) - 39), 10))


# What was found for a prompt, best first: scores and keys.
Found = list[tuple[Prompt, list[tuple[float, str]]]]


class Asked:
    """One project in its home, to be asked as hooks ask it. The home is filled when it is used for the first time."""

    def __init__(self, work: Work, backend: KeptVectors, most: int | None) -> None:
        self._work, self._most = work, most
        self.cortex: Cortex = engine(work.past, backend)._cortex
        with self.cortex._store.database.read() as session:
            ids = [str(id) for (id,) in session.rows("SELECT id FROM memory ORDER BY num")]
        self._keys = dict(zip(ids, (one.key for one in work.past.records), strict=True))
        self._home = self.cortex.settings.home

    def prompts(self, part: str) -> list[Prompt]:
        own = [one for one in self._work.prompts if one.part == part]
        return [*own[: self._most], *off_topic(part, self._most)] if own else []

    def found(self, kind: str, part: str) -> Found:
        return [(one, self._find(kind, one.text)) for one in self.prompts(part)]

    def _find(self, kind: str, text: str) -> list[tuple[float, str]]:
        if kind == "warm":
            return [(hit.score, self._keys[hit.memory.id]) for hit in self.cortex.hooks.candidates(text, self._home)]
        notes, _ = find_cold(self._home, self._event(text), 0.0)
        return [(note.share, self._keys[note.id]) for note in notes[: 2 * MOST_GIVEN]]

    def given(self, kind: str, text: str) -> tuple[set[str], str]:
        """What the hook gives, with the limits that are set: memories and text."""
        ids: Sequence[str]
        if kind == "warm":
            found = self.cortex.hooks.prompt(text, self._home)
            shown, ids = found.text, found.ids
        else:
            shown, ids = answer_cold(self._home, self._event(text))
        return {self._keys[id] for id in ids}, shown

    def _event(self, text: str) -> dict[str, str]:
        return {"client": "bench", "session": "bench", "cwd": str(self._home), "text": text}


def counted(found: Found, least: HookLimits, most: int) -> Counts:
    counts = Counts()
    for prompt, scored in found:
        counts.add(prompt, set(certain(scored, least)[:most]))
    return counts


def choose(by_source: dict[str, Found], most: int, *, each: bool) -> tuple[HookLimits, dict[str, Counts]]:
    """The limits that keep to the bounds and meet most prompts, and the counts of all sources with them.

    The bounds hold on each source and the worst one decides; or, but for off-topic prompts, the average of the sources.
    """
    deciding = [by_source[name] for name in CHOSEN_BY if name in by_source]
    best: tuple[tuple[float, ...], HookLimits] | None = None
    for floor, margin in product(FLOORS, MARGINS):
        figures = [counted(found, HookLimits(floor, margin), most).figures for found in deciding]
        if not each:
            met, unneeded, off = zip(*figures, strict=True)
            figures = [(sum(met) / len(met), sum(unneeded) / len(unneeded), max(off))]
        if all(unneeded <= MOST_UNNEEDED and off <= MOST_OFF_TOPIC for _, unneeded, off in figures):
            shares = [one[0] for one in figures]
            rank = (min(shares), sum(shares), floor, margin)
            if best is None or rank > best[0]:
                best = rank, HookLimits(floor, margin)
    if best is None:
        raise SystemExit("no limits keep to the bounds")
    return best[1], {source: counted(found, best[1], most) for source, found in by_source.items()}


def show(title: str, counts: dict[str, Counts]) -> list[list[object]]:
    print(f"\n{title}")
    rows: list[list[object]] = [
        [source, *one.figures, one.quoted / max(1, one.prompts), one.prompts, one.off_topic]
        for source, one in sorted(counts.items())
    ]
    columns = ("needed given", "not needed", "off-topic given", "evidence shown", "prompts", "off-topic")
    report.table(("past work", *columns), rows)
    return rows


def write_limits(chosen: dict[str, HookLimits], sources: Sequence[str]) -> None:
    lines = [f' "{kind}": {{"floor": {one.floor}, "margin": {one.margin}}},' for kind, one in chosen.items()]
    how = (
        "bench/hooks.py --choose, on the dev parts: most needed memories given, with at most "
        f"{MOST_UNNEEDED} unneeded ones a prompt and {MOST_OFF_TOPIC} of off-topic prompts given any, on each "
        f"(warm) or the average (cold) of {', '.join(sources)}"
    )
    TARGET.write_text("{\n" + "\n".join(lines) + f'\n "chosen": {json.dumps(how)}\n}}\n', "utf-8")
    selection_module.limits.cache_clear()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choose", action="store_true", help="choose the limits on the dev parts, and write them")
    parser.add_argument("--no-test", action="store_true", help="leave the test parts alone")
    parser.add_argument("--most", type=int, help="only so many prompts of each part")
    parser.add_argument("--sources", default="projects,longmemeval,locomo")
    parser.add_argument("--latency", action="store_true", help="measure times instead of usefulness")
    parser.add_argument("--size", type=int, default=100_000, help="memories in the store, with --latency")
    options = parser.parse_args(arguments)
    if options.latency:
        from hook_latency import measure as measure_latency

        report.write("hook_latency", measure_latency(options.size))
        return 0
    readers: dict[str, Callable[[], Iterator[Work]]] = {
        "projects": from_projects, "longmemeval": from_longmemeval, "locomo": from_locomo,
    }  # fmt: skip
    result: dict[str, object] = {}
    try:
        backend = default_backend()
        works = [work for name in options.sources.split(",") for work in readers[name]()]
        if options.choose:
            result |= _choose_all(works, backend, options.most)
        if not options.no_test:
            result |= _test_all(works, backend, options.most)
        backend.save()
    except DatasetMissing as error:
        print(error, file=sys.stderr)
        return 0
    report.write("hooks", result)
    return 0


def _choose_all(works: Sequence[Work], backend: KeptVectors, most: int | None) -> dict[str, object]:
    found: dict[str, dict[str, Found]] = {kind: {} for kind in KINDS}
    for work in works:
        asked = Asked(work, backend, most)
        for kind in KINDS:
            if rows := asked.found(kind, "dev"):
                found[kind].setdefault(work.source, []).extend(rows)
        asked.cortex.close()
    result: dict[str, object] = {}
    chosen: dict[str, HookLimits] = {}
    for kind, most_given in zip(KINDS, (MOST_GIVEN, MOST_COLD), strict=True):
        chosen[kind], counts = choose(found[kind], most_given, each=kind == "warm")
        title = f"dev parts, {kind}: floor {chosen[kind].floor}, margin {chosen[kind].margin}"
        result[f"dev {kind}"] = {"limits": chosen[kind]._asdict(), "rows": show(title, counts)}
    write_limits(chosen, [name for name in CHOSEN_BY if name in found["warm"]])
    return result


def _test_all(works: Sequence[Work], backend: KeptVectors, most: int | None) -> dict[str, object]:
    counts: dict[str, dict[str, Counts]] = {kind: {} for kind in KINDS}
    for work in works:
        if not any(one.part == "test" for one in work.prompts):
            continue
        asked = Asked(work, backend, most)
        for kind in KINDS:
            held = counts[kind].setdefault(work.source, Counts())
            for prompt in asked.prompts("test"):
                held.add(prompt, *asked.given(kind, prompt.text))
        asked.cortex.close()
    return {f"test {kind}": show(f"test parts, {kind}", counts[kind]) for kind in KINDS}


if __name__ == "__main__":
    sys.exit(main())
