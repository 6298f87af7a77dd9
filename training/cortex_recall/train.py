r"""Trains the encoder: one command on a machine with a GPU, several runs over the same prepared data.

    python training/cortex_recall/train.py --base minilm --folder FOLDER --data DATA --out OUT \
        --run first --run second:distill=2

FOLDER holds the packed base, DATA is the file that `build_data.py` wrote. A run's settings are those of `Settings`.
Each run writes its weights as OUT/<base>-<name>.part0, .part1 and its figures on held-out collections to
OUT/figures.json; the base's are measured first.

What is learned: a question is to be nearer to a record that answers it than to all others of the batch, to the records
that BM25 and the base take for the best, and to the same record said by another person. A record counts by its own
vector and by its vector together with half of each neighbour's, as recall counts it. At the same time the vectors of
ordinary texts and of code are held near the base's, so that general likeness stays.
"""

from __future__ import annotations

import argparse
import calendar
import json
import lzma
import queue
import re
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from encoder import Base, Encoder, read_base, save_parts
from sources import half
from torch import Tensor

QUERY_TOKENS, TEXT_TOKENS = 48, 128
CANDIDATES = 24  # hard negatives come from the first of BM25 and of the base
TERMS = 1 << 14
SHARES = {
    "assistant": 0.08, "named": 0.10, "people": 0.25, "meeting": 0.05,
    "story": 0.12, "fact": 0.12, "note": 0.14, "code": 0.14, "search": 0.08,
}  # fmt: skip
NEIGHBOURS = ("assistant", "named", "people", "meeting", "story")
BOTH_WAYS = ("note", "code", "search", "fact")
CHUNK = 512


@dataclass(frozen=True, slots=True)
class Settings:
    steps: int = 2000
    seed: int = 1
    batch: int = 128
    hard: int = 4
    rate: float = 3e-5
    temperature: float = 0.05
    dropout: float = 0.1
    distill: float = 1.0
    swap: float = 0.5  # share of the lists that get the same words said by another person
    dated: float = 0.12  # share of the batches with a date before each record
    window: float = 0.5  # weight of the record with its neighbours, against the record alone
    code: float = 1.0  # factor of the share of code
    general: int = 192  # texts of a step that are held near the base
    without: int = -1  # half of the collections to leave out, for the ranking

    @classmethod
    def parse(cls, text: str) -> tuple[str, Settings]:
        name, _, rest = text.partition(":")
        kinds = {field.name: type(field.default) for field in fields(cls)}
        given = dict(pair.split("=") for pair in rest.split(",") if pair)
        return name, replace(cls(), **{key: kinds[key](value) for key, value in given.items()})


@dataclass(slots=True)
class Question:
    ids: list[int]
    places: list[int]
    collection: int
    hard: list[int]
    named: bool  # whether the query names who says the answer


class Data:
    """All collections as token ids. A record is its speaker and its text, so that the speaker can be exchanged."""

    def __init__(self, path: Path, base: Base, most: int | None = None) -> None:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            self.collections = [json.loads(line) for line in lines]
        if most:
            self.collections = _few(self.collections, most)
        self.base = base
        ends = base.encode(["a"], 8)[0]
        self.first, self.last = ends[0], ends[-1]
        texts, speakers, self.session, self.begin = [], [], [], [0]
        for n, collection in enumerate(self.collections):
            for text, session in collection["records"]:
                who, body = _speaker(text) if collection["kind"] in NEIGHBOURS else ("", text)
                speakers.append(who)
                texts.append(f" {body}" if who and base.name == "granite" else body)
                self.session.append((n, session))
            self.begin.append(len(texts))
        self.texts = texts
        length = 32 if most else TEXT_TOKENS
        self.bodies = [np.array(ids[1:-1], np.int32) for ids in base.encode(texts, length)]
        self.speakers = speakers
        names = sorted(set(speakers))
        self.prefix = {n: np.array(ids[1:-1], np.int32) for n, ids in zip(names, _prefixes(base, names), strict=True)}
        self.dates = [np.array(ids[1:-1], np.int32) for ids in base.encode(_dates(), 24)]
        self.before, self.after = self._neighbours()
        self.questions = self._questions()

    def _neighbours(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        count = len(self.bodies)
        kinds = [self.collections[n]["kind"] in NEIGHBOURS for n, _ in self.session]
        same = np.array([kinds[n] and self.session[n] == self.session[n + 1] for n in range(count - 1)] + [False])
        index = np.arange(count)
        after = np.where(same, index + 1, -1)
        before = np.full(count, -1)
        before[1:] = np.where(same[:-1], index[:-1], -1)
        return before, after

    def _questions(self) -> list[Question]:
        asked = [(n, query, places) for n, c in enumerate(self.collections) for query, places in c["questions"]]
        ids = self.base.encode([query for _, query, _ in asked], QUERY_TOKENS)
        found = []
        for (n, query, places), tokens in zip(asked, ids, strict=True):
            own = [self.begin[n] + place for place in places]
            who = self.speakers[own[0]]
            named = len(who) > 2 and who not in ("user", "assistant") and re.search(rf"\b{re.escape(who)}\b", query)
            found.append(Question(tokens, own, n, [], bool(named)))
        return found

    def record(self, place: int, speaker: str | None = None, date: int | None = None) -> np.ndarray[Any, Any]:
        who = self.speakers[place] if speaker is None else speaker
        parts = [[self.first], self.dates[date] if date is not None else [], self.prefix[who], self.bodies[place]]
        return np.concatenate([*parts, [self.last]])[:TEXT_TOKENS].astype(np.int32)

    def others(self, place: int) -> list[str]:
        """Who else speaks in the record's collection."""
        n = self.session[place][0]
        if n not in (known := self.__dict__.setdefault("_others", {})):
            spoken = self.speakers[self.begin[n] : self.begin[n + 1]]
            known[n] = sorted({who for who in spoken if len(who) > 2 and who != "assistant"})
        return [who for who in known[n] if who != self.speakers[place]]


def _few(collections: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """The first records of one collection of every kind, for trying things out."""
    found: dict[tuple[str, bool], dict[str, Any]] = {}
    for collection in collections:
        questions = [(query, places) for query, places in collection["questions"] if max(places) < most]
        if len(questions) >= 2:
            cut = collection | {"records": collection["records"][:most], "questions": questions[:most]}
            found.setdefault((collection["kind"], collection["held_out"]), cut)
    return list(found.values())


def _speaker(text: str) -> tuple[str, str]:
    m = re.match(r"([A-Z][\w .'-]{0,30}|user|assistant): ", text)
    return (m[1], text[m.end() :]) if m else ("", text)


def _prefixes(base: Base, names: Sequence[str]) -> list[list[int]]:
    ends = base.encode(["a"], 8)[0]
    found = base.encode([f"{name}:" for name in names], 24)
    return [ids if name else [ends[0], ends[-1]] for name, ids in zip(names, found, strict=True)]


def _dates() -> list[str]:
    months = list(calendar.month_name)[1:]
    chance = np.random.default_rng(5)
    found = []
    for _ in range(1200):
        year, month, day = chance.integers(2018, 2027), int(chance.integers(12)), chance.integers(1, 29)
        form = chance.integers(4)
        found.append(
            (
                f"({day} {months[month]} {year})",
                f"{year}-{month + 1:02}-{day:02}:",
                f"[{months[month][:3]} {day}, {year}]",
                f"On {months[month]} {day}, {year},",
            )[form]
        )
    return found


class Vectors:
    """Texts through a model, shortest first, so that little is padded."""

    def __init__(self, model: Encoder, device: str) -> None:
        self.model, self.device = model, device

    def __call__(self, texts: Sequence[np.ndarray[Any, Any] | list[int]], chunk: int = CHUNK) -> Tensor:
        order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
        parts = []
        for first in range(0, len(order), chunk):
            chosen = [texts[n] for n in order[first : first + chunk]]
            # Only the model computes in 16 bits: what is compared afterwards differs by less than they can tell.
            with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
                parts.append(self.model(self.padded(chosen)))
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(parts)[back.to(self.device)]

    def padded(self, texts: Sequence[np.ndarray[Any, Any] | list[int]]) -> Tensor:
        longest = -(-max(len(ids) for ids in texts) // 8) * 8
        ids = np.full((len(texts), longest), self.model.pad, np.int64)
        for n, text in enumerate(texts):
            ids[n, : len(text)] = text
        return torch.from_numpy(ids).to(self.device, non_blocking=True)

    @torch.no_grad()
    def all(self, texts: Sequence[np.ndarray[Any, Any] | list[int]]) -> Tensor:
        self.model.eval()
        return self(texts, 2048 if self.device == "cuda" else 64)


def windows(own: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """The records with half of each neighbour; index -1 is none."""
    joined = own.clone()
    for index in (before, after):
        joined = joined + 0.5 * own[index.clamp(min=0)] * (index >= 0).unsqueeze(1)
    return F.normalize(joined, dim=-1)


def bm25(data: Data, n: int, asked: Sequence[Question], device: str) -> Tensor:
    """BM25 of the questions against all records of a collection."""
    first, last = data.begin[n], data.begin[n + 1]
    counts = torch.zeros(last - first, TERMS, device=device)
    terms = np.concatenate(data.bodies[first:last]).astype(np.int64) % TERMS
    rows = np.repeat(np.arange(last - first), [len(body) for body in data.bodies[first:last]])
    place = tuple(torch.from_numpy(index).to(device) for index in (rows, terms))
    counts.index_put_(place, torch.ones(len(rows), device=device), accumulate=True)
    length = counts.sum(1, keepdim=True)
    held = (counts > 0).sum(0)
    rarity = torch.log1p((len(counts) - held + 0.5) / (held + 0.5))
    weights = counts * 2.2 / (counts + 1.2 * (0.25 + 0.75 * length / length.mean())) * rarity
    wanted = torch.zeros(len(asked), TERMS)
    for row, question in enumerate(asked):
        wanted[row, np.array(question.ids[1:-1]) % TERMS] = 1
    return wanted.to(device) @ weights.T


def mine(data: Data, records: Tensor, queries: Tensor, device: str) -> None:
    """Give each question its hard negatives, and keep of many answers those that the base or BM25 can see."""
    before, after = (torch.from_numpy(index).to(device) for index in (data.before, data.after))
    joined = windows(records, before, after)
    numbers: dict[int, list[int]] = {}
    for number, question in enumerate(data.questions):
        numbers.setdefault(question.collection, []).append(number)
    for n, own in numbers.items():
        first, last = data.begin[n], data.begin[n + 1]
        cosine = queries[own] @ (records[first:last] + joined[first:last]).T / 2
        matched = bm25(data, n, [data.questions[number] for number in own], device)
        count = min(CANDIDATES, last - first)
        best = torch.cat([cosine.topk(count).indices, matched.topk(count).indices], 1).cpu().numpy()
        likeness = (records[first:last] @ records[first:last].T).cpu().numpy()
        cosine, matched = cosine.cpu(), matched.cpu()
        for row, number in enumerate(own):
            question = data.questions[number]
            places = np.array(question.places) - first
            wanted = places
            if len(places) > 4:
                seen = cosine[row, places] / cosine[row].max() + matched[row, places] / matched[row].max().clamp(min=1)
                wanted = places[seen.topk(4).indices.numpy()]
            near = likeness[best[row]][:, wanted].max(1)
            kept = best[row][(near < 0.95) & ~np.isin(best[row], places)]
            question.hard = [int(place) + first for place in kept]
            question.places = sorted(int(place) + first for place in wanted)


@dataclass(slots=True)
class Batch:
    kind: str
    queries: list[list[int]]
    texts: list[np.ndarray[Any, Any]]  # candidates, then their neighbours
    candidates: int
    before: np.ndarray[Any, Any]  # place of each candidate's neighbour among the texts, -1 without one
    after: np.ndarray[Any, Any]
    target: np.ndarray[Any, Any]
    barred: np.ndarray[Any, Any]  # candidates that answer the question too, or may do so
    general: np.ndarray[Any, Any]


class Batches:
    """Batches of one kind each, made ahead by a thread."""

    def __init__(self, data: Data, settings: Settings, general: np.ndarray[Any, Any]) -> None:
        self.data, self.settings, self.general = data, settings, general
        self.chance = np.random.default_rng(settings.seed)
        self.by_kind: dict[str, list[Question]] = {}
        for question in data.questions:
            collection = data.collections[question.collection]
            if not collection["held_out"] and half(collection["name"]) != settings.without and question.hard:
                self.by_kind.setdefault(collection["kind"], []).append(question)
        self.kinds = sorted(self.by_kind)
        shares = np.array([SHARES[k] * (settings.code if k in ("code", "search") else 1) for k in self.kinds])
        self.shares = shares / shares.sum()

    def __iter__(self) -> Iterator[Batch]:
        ready: queue.Queue[Batch] = queue.Queue(6)

        def fill() -> None:
            for _ in range(self.settings.steps):
                ready.put(self.make())

        threading.Thread(target=fill, daemon=True).start()
        for _ in range(self.settings.steps):
            yield ready.get()

    def make(self) -> Batch:
        data, settings, chance = self.data, self.settings, self.chance
        kind = self.kinds[chance.choice(len(self.kinds), p=self.shares)]
        pool = self.by_kind[kind]
        asked = [pool[n] for n in chance.choice(len(pool), min(settings.batch, len(pool)), replace=False)]
        dated = kind in NEIGHBOURS and chance.random() < settings.dated
        texts: list[np.ndarray[Any, Any]] = []
        around: list[tuple[int, int]] = []
        places: list[tuple[int, str | None]] = []
        target = []
        for question in asked:
            positive = question.places[chance.integers(len(question.places))]
            target.append(len(places))
            places.append((positive, None))
            hard = question.hard
            chosen = chance.choice(len(hard), min(settings.hard, len(hard)), replace=False)
            places += [(hard[n], None) for n in chosen]
            if question.named and chance.random() < settings.swap and (others := data.others(positive)):
                places[-1] = (positive, others[chance.integers(len(others))])
        dates = chance.integers(len(data.dates), size=len(places)) if dated else [None] * len(places)
        texts = [data.record(place, who, date) for (place, who), date in zip(places, dates, strict=True)]
        for (place, who), date in zip(places, dates, strict=True):
            found = []
            for index in (data.before[place], data.after[place]):
                if index < 0 or kind not in NEIGHBOURS:
                    found.append(-1)
                    continue
                # Where the speaker is another, so is the one who answers.
                exchanged = data.speakers[place] if who and data.speakers[index] == who else None
                exchanged = who if who and data.speakers[index] == data.speakers[place] else exchanged
                found.append(len(texts))
                texts.append(data.record(int(index), exchanged, date))
            around.append((found[0], found[1]))
        barred = self._barred(asked, places, target)
        before, after = np.array(around).T
        return Batch(
            kind, [q.ids for q in asked], texts, len(places), before, after, np.array(target), barred, self._general()
        )

    def _barred(
        self, asked: Sequence[Question], places: Sequence[tuple[int, str | None]], target: Sequence[int]
    ) -> np.ndarray[Any, Any]:
        barred = np.zeros((len(asked), len(places)), bool)
        where: dict[int, list[int]] = {}
        for column, (place, who) in enumerate(places):
            if who is None:
                where.setdefault(place, []).append(column)
        for row, question in enumerate(asked):
            for place in question.places:
                barred[row, where.get(place, [])] = True
            barred[row, target[row]] = False
        return barred

    def _general(self) -> np.ndarray[Any, Any]:
        """Texts with others near them, so that both near and far is held."""
        seeds = self.chance.choice(len(self.general), min(len(self.general), self.settings.general // 4), replace=False)
        return self.general[seeds].reshape(-1)


def general_texts(data: Data, base: Vectors, without: int, most: int = 24_000) -> tuple[list[Any], Tensor, Any]:
    """Texts of all kinds but no held-out ones, the base's vectors, and for each its own place and the three nearest."""
    chance = np.random.default_rng(3)
    learned = [not c["held_out"] and half(c["name"]) != without for c in data.collections]
    records = chance.permutation(np.flatnonzero([learned[n] for n, _ in data.session]))[: most * 2 // 3]
    queries = [q.ids for q in data.questions if learned[q.collection]]
    asked = chance.permutation(len(queries))[: most // 3]
    texts: list[Any] = [data.record(int(n), "") for n in records] + [queries[n] for n in asked]
    vectors = base.all(texts)
    near = []
    for first in range(0, len(texts), 4096):
        likeness = vectors[first : first + 4096] @ vectors.T
        near.append(likeness.topk(4).indices.cpu().numpy())
    return texts, vectors, np.concatenate(near)


def loss_of(batch: Batch, vectors: Vectors, settings: Settings) -> Tensor:
    device = vectors.device
    queries, texts = vectors(batch.queries), vectors(batch.texts)
    own = texts[: batch.candidates]
    target = torch.from_numpy(batch.target).to(device)
    barred = torch.from_numpy(batch.barred).to(device)

    def toward(scores: Tensor) -> Tensor:
        return F.cross_entropy((scores / settings.temperature).masked_fill(barred, -1e4), target)

    alone = queries @ own.T
    if batch.kind not in NEIGHBOURS:
        loss = toward(alone)
        if batch.kind in BOTH_WAYS:
            back = alone[:, target].T / settings.temperature
            blocked = barred[:, target].T
            answer = torch.arange(len(back), device=device)
            loss = 0.8 * loss + 0.2 * F.cross_entropy(back.masked_fill(blocked, -1e4), answer)
        return loss
    joined = own
    for index in (batch.before, batch.after):
        place = torch.from_numpy(index).to(device)
        joined = joined + 0.5 * texts[place.clamp(min=0)] * (place >= 0).unsqueeze(1)
    both = (alone + queries @ F.normalize(joined, dim=-1).T) / 2
    return settings.window * toward(both) + (1 - settings.window) * toward(alone)


def held(found: Tensor, wanted: Tensor) -> Tensor:
    """How far the vectors went from the base's, each by itself and in their likeness to each other."""
    apart = (1 - (found * wanted).sum(1)).mean()
    return apart + 10 * F.mse_loss(found @ found.T, wanted @ wanted.T)


def train(data: Data, settings: Settings, device: str, general: tuple[list[Any], Tensor, Any]) -> Encoder:
    torch.manual_seed(settings.seed)
    model = Encoder(data.base, settings.dropout).to(device)
    texts, wanted, near = general
    vectors = Vectors(model, device)
    still = [p for n, p in model.named_parameters() if p.requires_grad and p.ndim < 2]
    decayed = [p for n, p in model.named_parameters() if p.requires_grad and p.ndim >= 2]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": still, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=settings.rate, fused=device == "cuda")
    warm = max(1, settings.steps // 15)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min((n + 1) / warm, (settings.steps - n) / max(1, settings.steps - warm))
    )
    begun, seen = time.monotonic(), dict[str, list[float]]()
    for step, batch in enumerate(Batches(data, settings, near)):
        model.train()
        loss = loss_of(batch, vectors, settings)
        apart = held(vectors([texts[n] for n in batch.general]), wanted[torch.from_numpy(batch.general).to(device)])
        total = loss + settings.distill * apart
        optimizer.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0 or device == "cpu":
            seen.setdefault(batch.kind, []).append(loss.item())
            seen.setdefault("held", []).append(apart.item())
        if step % 200 == 199 or step == settings.steps - 1:
            shown = " ".join(f"{kind} {np.mean(values):.3f}" for kind, values in sorted(seen.items()))
            print(f"  step {step + 1}, {time.monotonic() - begun:.0f} s: {shown}", flush=True)
            seen = {}
    return model


def measure(data: Data, vectors: Vectors, reference: Tensor | None = None) -> tuple[dict[str, float], Tensor]:
    """Figures on held-out collections: MRR and found@10 by source, persons told apart, likeness kept."""
    device = vectors.device
    found: dict[str, list[tuple[float, float]]] = {}
    apart: list[float] = []
    sample: list[Any] = []
    for n, collection in enumerate(data.collections):
        if not collection["held_out"]:
            continue
        asked = [q for q in data.questions if q.collection == n]
        first, last = data.begin[n], data.begin[n + 1]
        own = vectors.all([data.record(place) for place in range(first, last)])
        queries = vectors.all([q.ids for q in asked])
        scores = queries @ own.T
        if collection["kind"] in NEIGHBOURS:
            index = [torch.from_numpy(i[first:last].copy()).to(device) for i in (data.before, data.after)]
            before, after = (torch.where(i >= 0, i - first, i) for i in index)
            scores = (scores + queries @ windows(own, before, after).T) / 2
        order = scores.argsort(1, descending=True).cpu().numpy() + first
        for row, question in zip(order, asked, strict=True):
            right = np.isin(row, question.places)
            figures = (1 / (1 + int(right.argmax())), right[:10].sum() / len(question.places))
            found.setdefault(collection["name"].split("/")[0] + " " + collection["kind"], []).append(figures)
        swapped = [(q, others[0]) for q in asked if q.named and (others := data.others(q.places[0]))]
        if swapped:
            right_person = vectors.all([data.record(q.places[0]) for q, _ in swapped])
            wrong = vectors.all([data.record(q.places[0], who) for q, who in swapped])
            query = vectors.all([q.ids for q, _ in swapped])
            apart += (((query * right_person).sum(1) - (query * wrong).sum(1)) > 0).float().tolist()
        sample += [data.record(place, "") for place in range(first, min(last, first + 150))]
    figures_of = {f"{name} mrr": float(np.mean([a for a, _ in rows])) for name, rows in found.items()}
    figures_of |= {f"{name} found@10": float(np.mean([b for _, b in rows])) for name, rows in found.items()}
    figures_of["right person first"] = float(np.mean(apart)) if apart else float("nan")
    kept = vectors.all(sample).float()
    likeness = kept @ kept.T
    if reference is not None:
        near = reference.fill_diagonal_(-1).topk(20).indices
        pairs = [m.gather(1, near).flatten().cpu().numpy() for m in (reference, likeness)]
        chosen = np.random.default_rng(1).choice(len(pairs[0]), min(20_000, len(pairs[0])), replace=False)
        ranks = [np.argsort(np.argsort(p[chosen])) for p in pairs]
        figures_of["likeness kept (Spearman)"] = float(np.corrcoef(ranks[0], ranks[1])[0, 1])
    return figures_of, likeness


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--base", choices=("minilm", "granite"), default="minilm")
    parser.add_argument("--folder", type=Path, required=True, help="where the packed base is")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--run", action="append", default=[], help="NAME[:setting=value,…]")
    parser.add_argument("--few", type=int, help="take so many records of each kind only, to try things out")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:.0f} s] {text}", flush=True)

    data = Data(given.data, read_base(given.base, given.folder), given.few)
    say(f"{given.base} on {device}: {len(data.bodies)} records, {len(data.questions)} questions")
    base = Vectors(Encoder(data.base).to(device).eval(), device)
    queries = base.all([q.ids for q in data.questions])
    mine(data, base.all([data.record(n) for n in range(len(data.bodies))]), queries, device)
    say("hard negatives found")
    result: dict[str, Any] = {}
    result["base"], reference = measure(data, base)
    say(f"base: {_shown(result['base'])}")
    given.out.mkdir(parents=True, exist_ok=True)
    for text in given.run:
        name, settings = Settings.parse(text)
        model = train(data, settings, device, general_texts(data, base, settings.without))
        result[name], _ = measure(data, Vectors(model.eval(), device), reference.clone())
        result[f"{name} settings"] = {field.name: getattr(settings, field.name) for field in fields(settings)}
        save_parts(model.trained(), given.out / f"{given.base}-{name}")
        say(f"{name} {settings}: {_shown(result[name])}")
        (given.out / "figures.json").write_text(json.dumps(result, indent=1))


def _shown(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in figures.items())


if __name__ == "__main__":
    main()
