"""Questions with the candidates that the real engine finds for them: what the ranking is trained and measured on.

Each collection of `datasets.py` is captured once into a Cortex home of its own under `bench/results/homes`, named by
the model and by all code that decides what is stored, so a second run only asks. Vectors are kept beside the homes:
a change of anything but the model costs no new embedding.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import shutil
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cortex_py
from cortex_py import Cortex
from cortex_py.clock import to_micros
from cortex_py.config import load_settings
from cortex_py.embedding.onnx_backend import OnnxBackend
from cortex_py.memory.ranking import Candidates
from cortex_py.memory.signals import measure, query_hashes
from cortex_py.memory.traits import QueryTraits
from cortex_py.records import NewMemory
from cortex_py.store.conditions import Filter
from cortex_py.store.scope import View
from cortex_py.store.threads import single_threaded

import report
from datasets import Collection, Question, Record, locomo, longmemeval

__all__ = ["FOLDS", "Engine", "KeptVectors", "Sample", "default_backend", "engine", "notes", "samples", "whole"]

FOLDS = 5
HOMES = report.RESULTS / "homes"
NOTES = Path(__file__).with_name("ranking_notes.json")
NOW = datetime(2026, 11, 15, tzinfo=UTC)  # the clock of questions that do not tell when they are asked
WANTED = 32  # candidates that each retriever is asked for, as in recall
_SEED = 7
# What decides the rows of a home; the store's own files are in it because they define the tables.
_STORED_BY = ("memory/prepare.py", "memory/chunking.py", "memory/dialogue.py", "memory/terms.py", "memory/traits.py")
_TABLES = ("store/migrations.py", "store/memories.py", "store/rows.py")


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

    def __init__(self, model: OnnxBackend) -> None:
        self._model = model
        self._path = HOMES / f"vectors-{_short(model.fingerprint)}.npz"
        self._known: dict[str, NDArray[np.float32]] = {}
        self._saved = 0
        if self._path.is_file():
            with np.load(self._path) as kept:
                self._known = dict(zip(kept["keys"].tolist(), kept["vectors"], strict=True))
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
        if len(self._known) > self._saved:
            HOMES.mkdir(parents=True, exist_ok=True)
            np.savez(self._path, keys=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))
            self._saved = len(self._known)


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
        scope = replace(self._scope, now=to_micros(question.asked_at or NOW), allowed=allowed)
        store = self._cortex._store
        vector = self._cortex.backend.embed([question.text])[0]
        hashes = query_hashes(question.text)
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
    home = HOMES / f"{_named(collection)}-{_digest(collection, backend)}"
    done = home / "filled"
    if not done.is_file():
        for old in HOMES.glob(f"{_named(collection)}-*"):
            shutil.rmtree(old)
        home.mkdir(parents=True)
        with _opened(home, backend) as cortex:
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
    settings = load_settings(os.environ.get("CORTEX_BENCH_HOME"))
    return KeptVectors(OnnxBackend(settings.models_dir))


def notes() -> Collection:
    """Hand-written developer memories, each alone, with queries of which some cannot be answered."""
    content = json.loads(NOTES.read_text("utf-8"))
    made = datetime(2026, 10, 1, tzinfo=UTC)
    records = tuple(Record(m["id"], m["id"], m["content"], None, made) for m in content["memories"])
    asked = enumerate(content["queries"])
    return Collection(
        "notes", records, tuple(Question(f"{n}", q["query"], "note", frozenset(q["relevant"])) for n, q in asked)
    )


def whole(engine: Engine, source: str, fold: int | None = None) -> Iterator[Sample]:
    """Every question of the collection, asked of all of it; folds go by question unless one is given."""
    for question in engine.collection.questions:
        yield engine.ask(question, source, _fold(question) if fold is None else fold)


def _fold(question: Question) -> int:
    return zlib.crc32(question.text.encode()) % FOLDS


def samples(folder: Path | None = None) -> list[Sample]:
    """All that the model is trained on: whole collections, parts of them, and questions that are foreign to them."""
    backend = default_backend()
    conversations = [engine(collection, backend) for collection in locomo(folder)]
    sessions, own = engine(longmemeval(folder), backend), engine(notes(), backend)
    drawn = random.Random(_SEED)
    found: list[Sample] = []
    for n, one in enumerate(conversations):
        found += whole(one, "locomo/turns", n % FOLDS)
    found += whole(sessions, "longmemeval/sessions")
    for n, one in enumerate(conversations):
        for question in one.collection.questions:
            if drawn.random() < (0.8 if question.answerable else 0.5):
                found.append(_part(one, question, "locomo/part", n % FOLDS, _any_size(one, drawn), drawn))
    for question in [*sessions.collection.questions] * 2:
        found.append(_part(sessions, question, "longmemeval/part", _fold(question), _any_size(sessions, drawn), drawn))
    for question in own.collection.questions:
        for size in (1, 2, 5, 12, 30, 61):
            found.append(_part(own, question, "notes/part", _fold(question), size, drawn))
    found += _foreign(conversations, sessions, own, drawn)
    backend.save()
    return found


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


def _foreign(conversations: Sequence[Engine], sessions: Engine, own: Engine, drawn: random.Random) -> Iterator[Sample]:
    """Questions asked where nothing can answer them."""
    asked = [[*one.collection.questions] for one in (*conversations, sessions, own)]
    chats = [question for questions in asked[: len(conversations)] for question in questions]
    talks, written = asked[-2], asked[-1]
    for n, one in enumerate(conversations):
        others = [q for m, questions in enumerate(asked[: len(conversations)]) if m != n for q in questions]
        for question in [*drawn.sample(written, 15), *drawn.sample(talks, 15), *drawn.sample(others, 12)]:
            size = _any_size(one, drawn) if drawn.random() < 0.5 else len(one.nums)
            yield _part(one, _unanswerable(question), "locomo/foreign", n % FOLDS, size, drawn)
    for question in [*drawn.sample(chats, 40), *drawn.sample(written, 25)]:
        size = _any_size(sessions, drawn) if drawn.random() < 0.8 else len(sessions.nums)
        yield _part(sessions, _unanswerable(question), "longmemeval/foreign", _fold(question), size, drawn)
    for question in [*drawn.sample(chats, 40), *drawn.sample(talks, 40)]:
        size = drawn.choice((1, 2, 5, 12, 30, 61))
        yield _part(own, _unanswerable(question), "notes/foreign", _fold(question), size, drawn)


def _unanswerable(question: Question) -> Question:
    return replace(question, relevant=frozenset(), kind="foreign")
