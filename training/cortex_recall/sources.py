"""What every builder of training data shares: git snapshots, clean text, and the one form all data takes.

A collection is a list of records in order and questions with the places of the records that answer them. Records of
one session that stand next to each other are neighbours, as the turns of a conversation are.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

WORDS: dict[str, list[str]] = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))
NAMES = WORDS["names"]


@dataclass(frozen=True, slots=True)
class Collection:
    """`kind` says which records form a batch together; `held_out` keeps a collection out of training."""

    name: str
    kind: str
    records: list[tuple[str, int]]
    questions: list[tuple[str, list[int]]]
    held_out: bool = False


def half(name: str) -> int:
    """Which half of the data a collection belongs to.

    An encoder that is trained without one half gives the ranking vectors of texts that the encoder has never seen.
    """
    return zlib.crc32(name.removesuffix("/named").encode()) % 2


class Snapshot:
    """A bare git copy of a public repository."""

    def __init__(self, folder: Path, name: str) -> None:
        path = folder / name.replace("/", "+") / "repo"
        self.name = name
        self.folder = path / ".git" if (path / ".git").is_dir() else path

    def git(self, *arguments: str) -> str:
        command = ["git", f"--git-dir={self.folder}", *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")

    def files(self, under: str = "") -> list[str]:
        """Paths of the newest commit; those that the snapshot lacks are left out."""
        rows = self.git("ls-tree", "-r", "-l", "HEAD", *([under] if under else [])).splitlines()
        return [row.split("\t")[1] for row in rows if row.split()[3] not in ("BAD", "-")]

    def read(self, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
        process = subprocess.Popen(
            ["git", f"--git-dir={self.folder}", "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin and process.stdout
        for path in paths:
            process.stdin.write(f"HEAD:{path}\n".encode())
            process.stdin.flush()
            head = process.stdout.readline().split()
            if head[-1] == b"missing":
                continue
            body = process.stdout.read(int(head[2]))
            process.stdout.read(1)
            yield path, body.decode("utf-8", "replace")
        process.stdin.close()
        process.wait()


def clean(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length].rsplit(" ", 1)[0]


def draw(seed: str) -> Random:
    """Chance that depends on the name alone, so that a source can change without changing the others."""
    return Random(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]))


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]{3,}", text.lower())


# What a first-person sentence becomes when it is about a named person.
_ABOUT = (
    (r"\bam I\b", "is {n}"),
    (r"\b(do|have) I\b", lambda m: {"do": "does", "have": "has"}[m[1].lower()] + " {n}"),
    (r"\b(Do|Have) I\b", lambda m: {"do": "Does", "have": "Has"}[m[1].lower()] + " {n}"),
    (r"\bwere I\b", "was {n}"),
    (r"\b[Ii] am\b|\b[Ii]'m\b|\b[Ii]m\b", "{n} is"),
    (r"\b[Ii]'ve\b|\b[Ii] have\b", "{n} has"),
    (r"\b[Ii]'ll\b", "{n} will"),
    (r"\b[Ii]'d\b", "{n} would"),
    (r"\b[Ii] was\b", "{n} was"),
    (r"\b[Mm]y\b", "{n}'s"),
    (r"\b[Mm]ine\b", "{n}'s"),
    (r"\b(me|myself)\b", "{n}"),
    (r"\bI\b|(?<![\w.])i\b(?!\.)", "{n}"),
)


def about(text: str, name: str) -> str:
    """The sentence with its first person replaced by a named one; only the first mention keeps the name."""
    for pattern, put in _ABOUT:
        text = re.sub(pattern, put, text)
    return text.replace("{n}", name)


def prune(collection: Collection, most: int) -> Collection:
    """Keep what can be learned from: answers with their neighbours, the best word matches, and some others."""
    records, questions = collection.records, collection.questions
    if len(records) <= most:
        return collection
    bags = [set(words(text)) for text, _ in records]
    held: dict[str, int] = {}
    for bag in bags:
        for word in bag:
            held[word] = held.get(word, 0) + 1
    keep: set[int] = set()
    for query, places in questions:
        for place in places:
            keep.update((place - 1, place, place + 1))
        wanted = [word for word in set(words(query)) if held.get(word, 0) < len(records) / 4]
        scores = [
            (sum(held[word] ** -0.5 for word in wanted if word in bag) / (10 + len(bag)) ** 0.3, n)
            for n, bag in enumerate(bags)
        ]
        keep.update(n for _, n in sorted(scores, reverse=True)[:20])
    keep.update(draw(collection.name).sample(range(len(records)), min(len(records), 100)))
    order = sorted(n for n in keep if 0 <= n < len(records))
    new = {old: n for n, old in enumerate(order)}
    return Collection(
        collection.name,
        collection.kind,
        [records[n] for n in order],
        [(query, [new[place] for place in places]) for query, places in questions],
        collection.held_out,
    )
