"""Claims about a git repository that are known to be true, or known to be false because one thing in them was changed.

    python bench/grounding_claims.py REPOSITORY [--wording training|reported] [--most N] [--show N]

What is true is read from the files and the history by `grounding_facts`, independently of Cortex. The same seed gives
the same claims. Run as a program it counts them and shows some, to be checked by eye.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import grounding_facts
import grounding_families
import grounding_history
import grounding_wording
from grounding_scene import LabelledClaim, Place, Release, Scene

__all__ = ["LabelledClaim", "Place", "claims", "commits"]

LOOKED_AT = 42
"""Of a long history only its first commits are taken, so that it may grow and the claims stay the same."""
RELEASES = 7
CANDIDATES = 160
"""As many claims of a family are made at a commit before some are chosen."""


def commits(repository: Path) -> list[tuple[str, str | None]]:
    """The commits to stand at, oldest first, each with the version that it is tagged with."""
    every = grounding_facts.git(repository, "rev-list", "--first-parent", "--reverse", "HEAD").split()[:LOOKED_AT]
    listed = grounding_facts.git(repository, "for-each-ref", "--format=%(objectname) %(refname:short)", "refs/tags")
    tags = dict(line.split(" ", 1) for line in listed.splitlines())
    versions = {commit: tag.removeprefix("v") for commit, tag in tags.items()}
    return [(commit, versions.get(commit)) for commit in every]


def claims(repository: Path, *, wording: str, seed: int, most: int) -> Iterator[tuple[str, list[LabelledClaim]]]:
    """At most so many claims, as many true ones as false ones of each family, by the commit to stand at."""
    listed = commits(repository)
    chosen = _spread(len(listed))
    needed = sorted({n for at in chosen for n in (at - 1, at, at + 1) if 0 <= n < len(listed)})
    history = {n: Release(grounding_facts.project(repository, listed[n][0]), listed[n][1]) for n in needed}
    known = frozenset[str]().union(*(one.project.words for one in history.values()))
    pools: dict[str, _Pool] = defaultdict(_Pool)
    seen: set[tuple[int, str]] = set()
    for at in chosen:
        near = [history[n] for n in needed if n <= at + 1] if len(listed) <= RELEASES else [
            history[n] for n in (at - 1, at, at + 1) if n in history]  # fmt: skip
        place = near.index(history[at])
        for family in (*grounding_families.FAMILIES, *grounding_history.FAMILIES):
            scene = Scene(near, place, known, wording, f"{seed} {wording} {listed[at][0]} {family.__name__}")
            for claim in islice(family(scene), CANDIDATES):
                if (at, claim.text) not in seen:
                    seen.add((at, claim.text))
                    pools[claim.kind].put(at, claim)
    taken = _balanced(pools, most, random.Random(f"{seed} {wording}"))
    for at in sorted(taken):
        yield listed[at][0], taken[at]


def _spread(count: int) -> list[int]:
    if count <= RELEASES:
        return list(range(count))
    return sorted({round(n * (count - 1) / (RELEASES - 1)) for n in range(RELEASES)})


class _Pool:
    """The claims of a family: the true ones, and the false ones by what was changed."""

    def __init__(self) -> None:
        self.true: list[tuple[int, LabelledClaim]] = []
        self.false: dict[str, list[tuple[int, LabelledClaim]]] = defaultdict(list)

    def put(self, at: int, claim: LabelledClaim) -> None:
        (self.true if claim.true else self.false[claim.change or ""]).append((at, claim))

    def pairs(self, chance: random.Random) -> Iterator[tuple[tuple[int, LabelledClaim], tuple[int, LabelledClaim]]]:
        """A true one and a false one, time and again; the changes take turns."""
        true = chance.sample(self.true, len(self.true))
        turns = deque(iter(chance.sample(ones, len(ones))) for _, ones in sorted(self.false.items()))
        for one in true:
            while turns:
                turn = turns.popleft()
                if (other := next(turn, None)) is not None:
                    turns.append(turn)
                    yield one, other
                    break


def _balanced(pools: dict[str, _Pool], most: int, chance: random.Random) -> dict[int, list[LabelledClaim]]:
    taken: dict[int, list[LabelledClaim]] = defaultdict(list)
    turns = deque(pool.pairs(chance) for _, pool in sorted(pools.items()))
    count = 0
    while turns and count + 2 <= most:
        turn = turns.popleft()
        if (both := next(turn, None)) is not None:
            turns.append(turn)
            count += 2
            for at, claim in both:
                taken[at].append(claim)
    return taken


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("repository", type=Path, nargs="+")
    parser.add_argument("--wording", choices=grounding_wording.WORDINGS, default="training")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=300)
    parser.add_argument("--show", type=int, default=0, help="so many of them, drawn at random")
    chosen = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    shown: list[str] = []
    for repository in chosen.repository:
        for commit, made in claims(repository, wording=chosen.wording, seed=chosen.seed, most=chosen.most):
            for claim in made:
                counts[f"{claim.kind}, {'true' if claim.true else 'false by ' + str(claim.change)}"] += 1
                where = " ".join(f"{p.path}:{p.first}-{p.last}" if p.path else str(p.commit)[:8] for p in claim.places)
                label = "TRUE " if claim.true else "FALSE"
                shown.append(
                    f"{repository.name}@{commit[:8]} {label} {claim.kind}/{claim.change}: {claim.text}  [{where}]"
                )
    for name, count in sorted(counts.items()):
        print(f"{count:6}  {name}")
    print(f"{counts.total():6}  all")
    for line in random.Random(chosen.seed).sample(shown, min(chosen.show, len(shown))):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
