"""Relationships that nobody stated: from entities that stand together more often than chance, and from the code.

Both are plain arithmetic over what is given. Each result says what speaks for it, and how much.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from .values import ENTITY_TYPES, EntityType, RelationshipType

__all__ = ["Fact", "Inferred", "Thing", "facts", "infer"]

# A memory that names more than this says little about any two of them; the rarest names are taken.
_PER_MEMORY = 40
_PAIRS = 500_000
_EVIDENCE = 20
# The chance of a pair by accident is below 1 in 20 above this value of the log-likelihood ratio.
_LIKELY = 3.84


@dataclass(frozen=True, slots=True)
class Inferred:
    """A relationship between two entities that are mentioned together, and what speaks for it."""

    source_id: str
    target_id: str
    type: RelationshipType
    confidence: float
    support: int
    pmi: float
    likelihood: float
    memory_ids: tuple[str, ...]
    method: str


# What two types suggest when nothing but nearness speaks for it, with the most it can be worth. The first type is the
# source; types that are not here only relate.
_SUGGESTED: dict[tuple[EntityType, EntityType], tuple[RelationshipType, float]] = {
    ("Person", "Technology"): ("Uses", 0.6),
    ("Organization", "Technology"): ("Uses", 0.6),
    ("File", "Technology"): ("Uses", 0.8),
    ("Technology", "Technology"): ("RelatesTo", 0.8),
}
_RELATED: tuple[RelationshipType, float] = ("RelatesTo", 0.7)
# What a text may state between two types; anything may relate to anything.
_STATED: dict[RelationshipType, tuple[tuple[EntityType, ...], tuple[EntityType, ...]]] = {
    "WorksAt": (("Person",), ("Organization",)),
    "Created": (("Person", "Organization"), ("Organization", "Technology", "Concept", "File")),
    "Uses": (("Person", "Organization", "Technology", "File", "Concept"), ("Technology", "Concept", "File")),
    "Implements": (("Technology", "File", "Person", "Organization"), ("Concept", "Technology")),
    "PartOf": (ENTITY_TYPES, ("Organization", "Technology", "Concept", "File")),
    "Supersedes": (("Technology", "Concept", "File"), ("Technology", "Concept", "File")),
    "ConflictsWith": (ENTITY_TYPES, ENTITY_TYPES),
}
_STATED_WORTH = 0.95


def infer(
    memories: Mapping[str, Collection[str]],
    types: Mapping[str, EntityType],
    *,
    total: int | None = None,
    stated: Collection[tuple[str, str, RelationshipType]] = (),
    min_support: int = 2,
    min_pmi: float = 0.5,
    min_likelihood: float = _LIKELY,
    limit: int = 1_000,
) -> list[Inferred]:
    """Pairs of entities that memories mention together more often than chance would, the surest first.

    `memories` has the entities of each memory, `total` is how many memories there are with those that mention none.
    `stated` are relationships that a text states by its wording: only with one of them is a pair more than its types
    suggest, such as a person who works at an organisation.
    """
    held = {one: frozenset(ids & types.keys()) for one, ids in ((m, set(memories[m])) for m in sorted(memories))}
    count = max(total or 0, len(held))
    single = Counter(entity for ids in held.values() for entity in ids)
    pairs = _pairs(held, single, max(1, min_support))
    wordings: dict[tuple[str, str], list[tuple[str, str, RelationshipType]]] = {}
    for source, target, type in stated:
        wordings.setdefault((min(source, target), max(source, target)), []).append((source, target, type))
    found = []
    for (a, b), memory_ids in pairs.items():
        support = len(memory_ids)
        if support < min_support:
            continue
        pmi = math.log2(support * count / (single[a] * single[b]))
        likelihood = _likelihood(support, single[a], single[b], count)
        if pmi < min_pmi or likelihood < min_likelihood:
            continue
        source, target, type, worth, method = _typed(a, b, types, wordings.get((a, b), ()))
        confidence = worth * _strength(pmi, support, count) * support / (support + 2)
        found.append(
            Inferred(
                source_id=source,
                target_id=target,
                type=type,
                confidence=round(confidence, 4),
                support=support,
                pmi=round(pmi, 4),
                likelihood=round(likelihood, 4),
                memory_ids=tuple(memory_ids[:_EVIDENCE]),
                method=method,
            )
        )
    found.sort(key=lambda one: (-one.confidence, -one.likelihood, one.source_id, one.target_id))
    return found[:limit]


def _pairs(
    held: Mapping[str, frozenset[str]], single: Mapping[str, int], least: int
) -> dict[tuple[str, str], list[str]]:
    """Pairs with the memories that name both. What is named too seldom cannot be part of a pair that counts."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for memory_id, ids in held.items():
        frequent = sorted((single[one], one) for one in ids if single[one] >= least)
        for pair in combinations(sorted(one for _, one in frequent[:_PER_MEMORY]), 2):
            pairs.setdefault(pair, []).append(memory_id)
        if len(pairs) > _PAIRS:
            # Bounded memory: pairs seen once so far go; one that counts will be seen again.
            pairs = {pair: where for pair, where in pairs.items() if len(where) > 1}
    return pairs


def _strength(pmi: float, support: int, count: int) -> float:
    """How far a pair is bound to each other, from 0.4 at chance to 1 for two that are never apart."""
    if support >= count:
        return 0.4
    return 0.4 + 0.6 * min(1.0, max(0.0, pmi / -math.log2(support / count)))


def _likelihood(both: int, a: int, b: int, count: int) -> float:
    """Dunning's log-likelihood ratio of a pair against independence."""
    cells = (both, a - both, b - both, count - a - b + both)
    expected = (a * b, a * (count - b), (count - a) * b, (count - a) * (count - b))
    return 2 * sum(seen * math.log(seen * count / chance) for seen, chance in zip(cells, expected, strict=True) if seen)


def _typed(
    a: str,
    b: str,
    types: Mapping[str, EntityType],
    wordings: Sequence[tuple[str, str, RelationshipType]],
) -> tuple[str, str, RelationshipType, float, str]:
    for source, target, type in sorted(wordings):
        sources, targets = _STATED.get(type, ((), ()))
        if types[source] in sources and types[target] in targets:
            return source, target, type, _STATED_WORTH, "comention+pattern"
    # In the order of the types, so that a person uses a technology and not the other way round.
    source, target = sorted((a, b), key=lambda one: (_rank(types[one]), one))
    type, worth = _SUGGESTED.get((types[source], types[target]), _RELATED)
    return source, target, type, worth, "comention"


def _rank(type: EntityType) -> int:
    return ("Person", "Organization", "File", "Technology", "Concept").index(type)


# -- facts of a project ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Thing:
    """An entity by name, before anyone has looked up whether it is known."""

    name: str
    type: EntityType


@dataclass(frozen=True, slots=True)
class Fact:
    """A relationship that a project's own files state."""

    source: Thing
    target: Thing
    type: RelationshipType
    confidence: float
    method: str
    evidence: str


# Modules that go by another name than the package that brings them.
_PACKAGES = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "gitpython",
    "jwt": "pyjwt",
    "pil": "pillow",
    "psycopg2": "psycopg2-binary",
    "sklearn": "scikit-learn",
    "stemmer": "pystemmer",
    "yaml": "pyyaml",
}


def facts(
    project: str,
    packages: Iterable[str],
    imports: Iterable[tuple[str, str]],
    *,
    project_type: EntityType = "Concept",
) -> list[Fact]:
    """What manifests and imports say: the project uses its packages, its files are part of it and use some of them.

    `imports` are (path, module). A module counts only as part of a package that the manifests name: what a file takes
    from the language or from the project itself is no technology that it chose.
    """
    whole = Thing(project, project_type)
    known = {_package(name): name for name in sorted(packages, reverse=True)}
    found = [Fact(whole, Thing(name, "Technology"), "Uses", 1.0, "manifest", name) for _, name in sorted(known.items())]
    uses: dict[tuple[str, str], str] = {}
    paths: set[str] = set()
    for path, module in sorted(imports):
        paths.add(path)
        package = _of_package(module, known)
        if package is not None:
            uses.setdefault((path, package), module)
    found += [Fact(Thing(path, "File"), whole, "PartOf", 1.0, "tree", path) for path in sorted(paths)]
    found += [
        Fact(Thing(path, "File"), Thing(package, "Technology"), "Uses", 1.0, "import", module)
        for (path, package), module in sorted(uses.items())
    ]
    return found


def _package(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip().casefold())


def _of_package(module: str, known: Mapping[str, str]) -> str | None:
    """The package that a module belongs to: the longest of its beginnings that is one."""
    if module.startswith((".", "/")):
        return None
    parts = re.split(r"(::|[./])", module)
    for end in range(len(parts), 0, -2):
        start = _package("".join(parts[:end]))
        for name in (start, _PACKAGES.get(start)):
            if name is not None and name in known:
                return known[name]
    return None
