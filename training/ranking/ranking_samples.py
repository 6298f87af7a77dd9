"""Questions with the candidates that the real engine finds for them: what the ranking is trained and measured on.

Each collection of `datasets.py` is captured once into a Cortex home of its own under `bench/results/homes`, named by
the model and by all code that decides what is stored, so a second run only asks. Vectors are kept beside the homes:
a change of anything but the model costs no new embedding.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import random
import shutil
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cortex_py
from cortex_py import Cortex
from cortex_py.core.clock import to_micros
from cortex_py.core.config import load_settings
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.embedding.backends.onnx import OnnxBackend
from cortex_py.core.embedding.backends.registry import open_backend
from cortex_py.core.memory.recall.ranking import Candidates, measure, query_hashes
from cortex_py.core.memory.text import QueryTraits, leading_query_terms
from cortex_py.core.records import NewMemory
from cortex_py.core.store.search.filters import Filter, Scope, View
from cortex_py.core.store.search.vectors import single_threaded

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "training" / "cortex_recall"))

from ranking_data import NAMES, OUT, about, clean, cut

import report
from datasets import Collection, DatasetMissing, Question, Record, longmemeval, moment, read_lines

__all__ = ["FOLDS", "Engine", "KeptVectors", "Sample", "default_backend", "engine", "notes", "samples", "talk", "whole"]

FOLDS = 5
HOMES = report.RESULTS / "homes"
NOTES = Path(__file__).with_name("ranking_notes.json")
NAMED_TALKS = 8  # that LongMemEval is divided into
LINE = 8  # notes of one line of work
# Where `training/cortex_recall/export.py` wrote them.
ENCODERS = Path(__file__).resolve().parents[2] / ".make" / "encoders"
SMALL = Path(__file__).parents[2] / "bench" / "data" / "small_stores.jsonl"
NOW = datetime(2026, 11, 15, tzinfo=UTC)  # the clock of questions that do not tell when they are asked
WANTED = 32  # candidates that each retriever is asked for, as in recall
_SEED = 7
# What decides the rows of a home; the store's own files are in it because they define the tables.
_STORED_BY = tuple(f"memory/capture/{name}.py" for name in ("prepare", "chunking", "terms", "traits"))
_TABLES = ("store/migrations.py", "store/tables/memories.py", "store/rows.py")


@dataclass(frozen=True, slots=True)
class Sample:
    """One question asked of one scope: what retrieval gave and which of it is relevant.

    `whole` marks a scope that was not cut down; the fusion learns from those, the calibration from all. `units`
    names what is counted where several records make one result, such as the turns of a session.
    """

    source: str
    fold: int
    query: QueryTraits
    candidates: Candidates
    relevant: NDArray[np.bool_]
    wanted: int  # relevant units in the scope, retrieved or not
    units: NDArray[np.int64]
    whole: bool = True
    kind: str = ""
    weight: float = 1.0

    @property
    def answerable(self) -> bool:
        return self.wanted > 0


class KeptVectors:
    """The embedding model with a memory on disk."""

    def __init__(self, model: Backend) -> None:
        self._model = model
        self._path = HOMES / f"vectors-{_short(model.fingerprint)}.npz"
        self._known = self._read()
        self._saved = len(self._known)
        self.name, self.model_name, self.fingerprint = model.name, model.model_name, model.fingerprint
        self.dimensions, self.max_tokens, self.loaded = model.dimensions, model.max_tokens, True

    def count_tokens(self, text: str) -> int:
        return self._model.count_tokens(text)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        assert normalize
        keys = [hashlib.blake2b(text.strip().encode(), digest_size=16).hexdigest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if new:
            self._known.update(zip(new, self._model.embed(list(new.values())), strict=True))
        return np.stack([self._known[key] for key in keys])

    def save(self) -> None:
        """Write the vectors, with those that another run has written meanwhile."""
        if len(self._known) > self._saved:
            HOMES.mkdir(parents=True, exist_ok=True)
            known = self._read() | self._known
            with NamedTemporaryFile(dir=HOMES, suffix=".npz", delete=False) as file:
                np.savez(file, keys=np.array(list(known)), vectors=np.stack(list(known.values())))
            Path(file.name).replace(self._path)
            self._saved = len(self._known)

    def _read(self) -> dict[str, NDArray[np.float32]]:
        if not self._path.is_file():
            return {}
        with np.load(self._path) as kept:
            return dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))


def _narrow(scope: Scope, nums: Sequence[int]) -> Scope:
    """The scope, of these records only."""
    numbers = ",".join(str(num) for num in nums)
    where = replace(scope.where, sql=f"{scope.where.sql} AND m.num IN ({numbers})")
    return replace(scope, where=where, filtered=True, only=lambda _space: where)


class Engine:
    """One collection in an opened home, to be asked as recall asks it."""

    def __init__(self, collection: Collection, cortex: Cortex) -> None:
        self.collection = collection
        self._cortex = cortex
        self._units = {unit: n for n, unit in enumerate(dict.fromkeys(r.unit for r in collection.records))}
        store = cortex._store
        with store.database.read() as session:
            self.nums = np.array([num for (num,) in session.rows("SELECT num FROM memory ORDER BY num")])
            view = View((cortex.project.id,), to_micros(NOW))
            self._scope = store.scope(session, Filter(), view)
        assert len(self.nums) == len(collection.records)
        self._unit_of = dict(
            zip(self.nums.tolist(), [self._units[record.unit] for record in collection.records], strict=True)
        )

    def ask(self, question: Question, source: str, fold: int, chosen: Sequence[int] | None = None) -> Sample:
        """The question's candidates in the whole collection, or among the records chosen by their place in it."""
        allowed = None if chosen is None else tuple(self.nums[list(chosen)].tolist())
        scope = replace(self._scope, now=to_micros(question.asked_at or NOW))
        if allowed is not None:
            scope = _narrow(scope, allowed)
        store = self._cortex._store
        vector = self._cortex.backend.embed([question.text])[0]
        hashes = query_hashes(leading_query_terms(question.text))
        with store.database.read() as session, single_threaded():
            found = store.search.candidates(session, scope, hashes, vector, WANTED)
            seen = measure(found, question.text, hashes, vector, now=scope.now)
        units = np.array([self._unit_of[num] for num in found.details.nums.tolist()], np.int64)
        relevant = {self._units[unit] for unit in question.relevant}
        inside = self._unit_of.values() if allowed is None else [self._unit_of[num] for num in allowed]
        return Sample(
            source=source,
            fold=fold,
            query=seen.traits,
            candidates=seen.candidates,
            relevant=np.isin(units, list(relevant)),
            wanted=len(relevant.intersection(inside)),
            units=units,
            whole=chosen is None,
            kind=question.kind,
        )


def engine(collection: Collection, backend: KeptVectors) -> Engine:
    """The collection in its home, which is filled when it is asked for the first time."""
    named = f"{_named(collection)}-{backend.model_name}"
    home = HOMES / f"{named}-{_digest(collection, backend)}"
    done = home / "filled"
    if not done.is_file():
        for old in HOMES.glob(f"{named}-*"):
            shutil.rmtree(old)
        home.mkdir(parents=True)
        with _opened(home, backend) as cortex:
            cortex.memories._capture.annotator = None  # the graph takes most of the time and does not affect recall
            branches = dict.fromkeys(record.branch for record in collection.records if record.branch)
            ids = {branch: cortex.contexts.create_branch(branch).id for branch in branches}
            cortex.memories.capture_many(
                NewMemory(
                    content=record.content,
                    created_at=record.created_at,
                    branch_id=ids[record.branch] if record.branch else None,
                )
                for record in collection.records
            )
        backend.save()
        done.touch()
    return Engine(collection, _opened(home, backend))


def _opened(home: Path, backend: KeptVectors) -> Cortex:
    return Cortex.open(home, project=home, backend=backend, secrets="allow", max_content_bytes=10_000_000)


def _named(collection: Collection) -> str:
    form = "turns" if collection.records[0].branch else "records"
    return f"{collection.name}-{form}"


def _digest(collection: Collection, backend: KeptVectors) -> str:
    package = Path(cortex_py.__file__).parent
    parts = [backend.fingerprint.encode(), *((package / name).read_bytes() for name in (*_STORED_BY, *_TABLES))]
    parts += [repr((r.content, r.branch, r.created_at)).encode() for r in collection.records]
    return _short(b"\0".join(parts))


def _short(text: str | bytes) -> str:
    return hashlib.blake2b(text if isinstance(text, bytes) else text.encode(), digest_size=8).hexdigest()


def default_backend() -> KeptVectors:
    return KeptVectors(open_backend(settings=load_settings(os.environ.get("CORTEX_BENCH_HOME"))))


class Encoders:
    """The encoder that ships, and for each half of the training data one that was trained without it.

    cortex-recall knows the texts that it was trained on: there its vectors look better than they are, and a ranking
    that is fitted on them would trust them too much elsewhere.
    """

    def __init__(self) -> None:
        self.shipped = default_backend()
        self._without: dict[int, KeptVectors] = {}

    def unaware_of(self, half: int | None) -> KeptVectors:
        """An encoder that has seen no text of that half."""
        if half is None:
            return self.shipped
        if half not in self._without:
            folder = ENCODERS / f"without{half}"
            if not folder.is_dir():
                raise DatasetMissing(folder)
            self._without[half] = KeptVectors(OnnxBackend(folder))
        return self._without[half]

    def save(self) -> None:
        for backend in (self.shipped, *self._without.values()):
            backend.save()


def notes() -> Collection:
    """Hand-written developer memories, each alone, with queries of which some cannot be answered."""
    content = json.loads(NOTES.read_text("utf-8"))
    made = datetime(2026, 10, 1, tzinfo=UTC)
    records = tuple(Record(m["id"], m["id"], m["content"], None, made) for m in content["memories"])
    asked = enumerate(content["queries"])
    return Collection(
        "notes", records, tuple(Question(f"{n}", q["query"], "note", frozenset(q["relevant"])) for n, q in asked)
    )


def in_lines(collection: Collection) -> Collection:
    """The same notes as records of lines of work, where each has neighbours that have nothing to do with it."""
    records = list(collection.records)
    random.Random(_SEED).shuffle(records)
    placed = [replace(record, branch=f"line-{n // LINE}") for n, record in enumerate(records)]
    return Collection(f"{collection.name}-lines", tuple(placed), collection.questions)


def whole(engine: Engine, source: str, fold: int | None = None) -> Iterator[Sample]:
    """Every question of the collection, asked of all of it; folds go by question unless one is given."""
    for question in engine.collection.questions:
        yield engine.ask(question, source, _fold(question) if fold is None else fold)


def _fold(question: Question) -> int:
    """All forms of one question are in one fold; the key of those that were rewritten is the original."""
    text = question.key if question.key.endswith("?") else question.text
    return zlib.crc32(text.encode()) % FOLDS


def talks() -> Iterator[tuple[Collection, int | None]]:
    """The collections that `ranking_data.py` wrote, each with the half of the training data that it belongs to."""
    if not OUT.is_file():
        raise DatasetMissing(OUT)
    with gzip.open(OUT, "rt", encoding="utf-8") as lines:
        for content in map(json.loads, lines):
            yield talk(content), content["half"]


def talk(content: dict[str, Any]) -> Collection:
    """A collection in the form that `ranking_data.py` writes."""
    made = datetime(2026, 10, 1, tzinfo=UTC)
    records = tuple(
        Record(f"{n}", f"{n}", text, None if session is None else f"s{session}", _day(day) or made)
        for n, (text, session, day) in enumerate(content["records"])
    )
    questions = tuple(
        Question(f"{n}", text, kind, frozenset(map(str, places)), _day(day))
        for n, (text, kind, places, day) in enumerate(content["questions"])
    )
    return Collection(content["name"], records, questions)


def _day(text: str | None) -> datetime | None:
    return None if text is None else datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)


def small_notes(part: str) -> tuple[Collection, tuple[str, ...]]:
    """One half of the notes of small stores with their paraphrases, and queries that none of them answers."""
    rows = [row for row in map(json.loads, SMALL.read_text("utf-8").splitlines()) if row["part"] == part]
    made = datetime(2026, 10, 1, tzinfo=UTC)
    kept = [row for row in rows if "note" in row]
    records = tuple(Record(f"{n}", f"{n}", row["note"], None, made) for n, row in enumerate(kept))
    questions = tuple(
        Question(f"{n}-{m}", text, "note", frozenset({f"{n}"}))
        for n, row in enumerate(kept)
        for m, text in enumerate(row["queries"])
    )
    return Collection(f"small-{part}", records, questions), tuple(
        row["off_topic"] for row in rows if "off_topic" in row
    )


def named_talks(folder: Path | None) -> list[Collection]:
    """LongMemEval as talks of two named persons, by turn: what answers is the turn that the data set marks.

    The key of a question is its text as the data set has it, which decides its fold.
    """
    items = sorted(read_lines("longmemeval_oracle.jsonl.gz", folder), key=lambda item: _short(item["question_id"]))
    items = [item for item in items if not item["question_id"].endswith("_abs")]
    step = math.ceil(len(items) / NAMED_TALKS)
    return [_named_talk(n, items[n * step : (n + 1) * step]) for n in range(NAMED_TALKS)]


def _named_talk(number: int, items: Sequence[dict[str, Any]]) -> Collection:
    name, other = random.Random(number).sample(NAMES, 2)
    sessions: dict[str, tuple[datetime, list[dict[str, Any]]]] = {}
    for item in items:
        for key, stamp, turns in zip(
            item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True
        ):
            sessions.setdefault(key, (moment(stamp), turns))
    records: list[Record] = []
    for key, (made, turns) in sorted(sessions.items(), key=lambda one: (one[1][0], one[0])):
        for n, turn in enumerate(turns):
            who, most = (name, 500) if turn["role"] == "user" else (other, 250)
            text = f"{who}: {cut(clean(turn['content']), most)}"
            records.append(Record(f"{key}:{n}", f"{key}:{n}", text, key, made))
    questions: list[Question] = []
    for item in items:
        spots = frozenset(
            f"{key}:{n}"
            for key, turns in zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True)
            for n, turn in enumerate(turns)
            if turn.get("has_answer")
        )
        text, at = about(item["question"], name, other), moment(item["question_date"])
        if spots:
            questions.append(Question(item["question"], text, item["question_type"], spots, at))
            if name in text and other not in text:
                swapped = text.replace(name, other)
                questions.append(Question(item["question"], swapped, "swapped", frozenset(), at))
    return Collection(f"named-{number}", tuple(records), tuple(questions))


# How much a question of each source weighs in the fit: what is near to what people ask of their memories weighs most.
WEIGHTS = {
    "longmemeval": 1.0,
    "named": 1.0,
    "rhelm": 1.0,
    "persona": 0.7,
    "friendsqa": 0.5,
    "fairytaleqa": 0.3,
    "functions": 0.6,
    "notes": 0.25,
    "tldr": 0.4,
    "own": 1.0,
    "lines": 1.0,
}
CODE = ("recipes", "snippets", "code")
OWN = frozenset(("own", "lines"))  # notes written by hand, asked in small stores too
SMALL_SIZES = (1, 2, 3, 5, 8, 10, 30)


def samples(folder: Path | None) -> list[Sample]:
    """All that the model is trained on: whole collections, parts of them, and questions foreign to them."""
    encoders = Encoders()
    gathered = collections(folder)
    found = [s for source in gathered for s in samples_of(source, gathered, encoders)]
    encoders.save()
    return found


Gathered = Mapping[str, Sequence[tuple[Collection, int | None]]]


def collections(folder: Path | None) -> Gathered:
    """The collections that the model is trained on, by source, each with its half of the encoder's training data."""
    own = [notes(), small_notes("develop")[0]]
    found: dict[str, list[tuple[Collection, int | None]]] = {
        "longmemeval": [(longmemeval(folder), None)],
        "named": [(one, None) for one in named_talks(folder)],
        "own": [(one, None) for one in own],
        "lines": [(in_lines(one), None) for one in own],
    }
    functions: dict[int | None, list[Collection]] = {}
    for collection, half in talks():
        source = collection.name.split("-")[0]
        if source in CODE:
            functions.setdefault(half, []).append(collection)
        else:
            found.setdefault(source, []).append((collection, half))
    return found | {"functions": [(_pooled(f"functions-{half}", several), half) for half, several in functions.items()]}


def _pooled(name: str, several: Sequence[Collection]) -> Collection:
    """Several collections as one: a project has thousands of functions, and words mislead more among many."""
    records = [
        replace(r, key=f"{n}/{r.key}", unit=f"{n}/{r.unit}") for n, one in enumerate(several) for r in one.records
    ]
    questions = [
        replace(q, key=f"{n}/{q.key}", relevant=frozenset(f"{n}/{unit}" for unit in q.relevant))
        for n, one in enumerate(several)
        for q in one.questions
    ]
    return Collection(name, tuple(records), tuple(questions))


def samples_of(source: str, gathered: Gathered, encoders: Encoders) -> Iterator[Sample]:
    """The samples of one source, which do not depend on the chance of the others."""
    drawn = random.Random(f"{_SEED} {source}")
    several = [engine(collection, encoders.unaware_of(half)) for collection, half in gathered[source]]
    for n, one in enumerate(several):
        fold = None if source in (*OWN, "longmemeval", "named", "rhelm", "functions") else n % FOLDS
        for sample in whole(one, source, fold):
            yield replace(sample, weight=WEIGHTS[source])
        for question in one.collection.questions:
            own_fold = _fold(question) if fold is None else fold
            if source in OWN:
                for size in SMALL_SIZES:
                    part = _part(one, question, f"{source}/part", own_fold, size, drawn, share=0.75)
                    yield replace(part, weight=WEIGHTS[source])
            elif drawn.random() < 0.5:
                part = _part(one, question, f"{source}/part", own_fold, _any_size(one, drawn), drawn)
                yield replace(part, weight=WEIGHTS[source])
    for question in _foreign_to(source, gathered, drawn):
        one = drawn.choice(several)
        size = drawn.choice(SMALL_SIZES) if source in OWN else _any_size(one, drawn)
        part = _part(one, _unanswerable(question), f"{source}/foreign", _fold(question), size, drawn)
        # Off-topic queries to a small store are few here and must stay below the threshold.
        yield replace(part, weight=2.5 if source in OWN else 1.0)


def _any_size(engine: Engine, drawn: random.Random) -> int:
    return round(math.exp(drawn.uniform(0, math.log(len(engine.nums)))))


def _part(
    engine: Engine, question: Question, source: str, fold: int, size: int, drawn: random.Random, share: float = 0.6
) -> Sample:
    """The question asked of about `size` records, with the relevant ones among them in that share of cases."""
    records = engine.collection.records
    right = [n for n, record in enumerate(records) if record.unit in question.relevant]
    others = [n for n, record in enumerate(records) if record.unit not in question.relevant]
    keep_right = question.answerable and drawn.random() < share
    chosen = set(right) if keep_right else set()
    if drawn.random() < 0.5 and records[0].branch:
        branches = sorted({record.branch or "" for record in records})
        drawn.shuffle(branches)
        kept = {records[n].branch for n in chosen}
        for branch in branches:
            if len(chosen) >= size:
                break
            kept.add(branch)
            chosen.update(n for n in others if records[n].branch in kept)
    else:
        missing = max(size - len(chosen), 0 if chosen else 1)
        chosen.update(drawn.sample(others, min(missing, len(others))))
    return engine.ask(question, source, fold, sorted(chosen))


def _foreign_to(source: str, gathered: Gathered, drawn: random.Random) -> list[Question]:
    """Questions that nothing of a source answers."""
    strange: list[Question] = []
    for other, several in gathered.items():
        if other != source and not {other, source} <= OWN:
            asked = [question for one, _ in several for question in one.questions]
            strange += drawn.sample(asked, min(len(asked), 14))
    if source in OWN:
        strange += [Question(text, text, "foreign", frozenset()) for text in small_notes("develop")[1]] * 3
    return strange


def _unanswerable(question: Question) -> Question:
    return replace(question, relevant=frozenset(), kind="foreign")
