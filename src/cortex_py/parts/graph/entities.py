"""Operations on entities: create, get, list, delete, extract from text, find duplicates, merge."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple

from ...core.errors import InvalidInput, LLMError
from ...core.graph_values import Entity, EntityMention, EntityType, ExtractedEntity, Extraction, Relationship, canonical
from ...core.memory.capture.capture import check_no_secret, check_text, entity_words
from ...core.memory.consolidation.merging import LOCAL, Method, check_method, choose_model
from ...core.memory.spaces import canonical_domain
from ...core.records import Domain
from ...core.security.permission import require_admin, require_write
from ...core.security.secrets.secrets import redact
from ...core.store.database import Session
from .base import (
    NAME_BYTES,
    GraphBase,
    check_confidence,
    check_entity_type,
    check_limit,
    check_properties,
    entity_from,
    relationship_from,
)
from .writer import EntityResolver, StoredEntities, drop_unsure, entity_key

__all__ = ["DuplicateGroup", "EntityMerge", "EntityOperations", "ExtractionResult", "find_duplicates", "fold_name"]


_CONTENT_BYTES = 16_000_000
_SHOWN = 20
_READ_AGAIN = 1_000  # earlier memories at most that a new entity has read again


@dataclass(frozen=True, slots=True)
class EntityView:
    """An entity with its mentions and relationships."""

    entity: Entity
    mentions: tuple[EntityMention, ...]
    relationships: tuple[Relationship, ...]


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """What a text names and states, and the ids of its entities if they were stored.

    `method` is `local`, `llm` for what a language model read, or `hybrid` for both readings together.
    """

    extraction: Extraction
    ids: tuple[str, ...]
    method: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityMerge:
    """A merge or its preview: the remaining entity, the merged ones, and what was moved or dropped."""

    entity: Entity
    merged: tuple[Entity, ...]
    mentions_moved: int
    relationships_moved: int
    relationships_dropped: int
    merge_id: str | None


class EntityOperations(GraphBase):
    def create(
        self, name: str, type: str, *, properties: Mapping[str, object] | None = None, domain: Domain = "project"
    ) -> Entity:
        """Create an entity; an existing one of this name and type gains the properties."""
        kind = check_entity_type(type)
        check_no_secret(check_text(name, "name", NAME_BYTES), "name")
        extra = check_properties(properties)
        space = self._place.writable_space(canonical_domain(domain))
        with self._writing() as (session, at):
            wanted = ExtractedEntity(name.strip(), kind, 0, 0, 1.0, "given")
            identity = EntityResolver(self._table, session, space, at).ids([wanted])[entity_key(wanted)]
            row = self._table.entities(session, space, [identity])[identity]
            if not row.given:
                self._table.mark_given(session, space, [identity])
                self._read_again(session, space, row.name)
            if extra:
                joined = check_properties({**row.properties, **extra})
                self._table.update_entity(session, replace(row, properties=joined, updated_at=at, given=True))
            return self._entities(session, space, [identity])[identity]

    def _read_again(self, session: Session, space: str, name: str) -> None:
        """Let upkeep read earlier memories again that contain the words of a new name."""
        if words := entity_words(name):
            where, params = self._store.database.text_condition(session, (space,), words)
            self._table.mark_unread(session, space, where, params, _READ_AGAIN)

    def get(self, ref: str) -> EntityView:
        """An entity by id, name or other spelling, with its mentions and relationships."""
        with self._reading() as session:
            space, identity = self._find(session, ref)
            sight = self._sight()
            mentions = self._table.mentions(session, space, identity, sight, limit=_SHOWN)
            facts, _ = self._table.list_relationships(
                session, space, sight, either=identity, valid_at=sight.now, limit=_SHOWN
            )
            return EntityView(
                self._entities(session, space, [identity])[identity],
                tuple(EntityMention(*one) for one in mentions),
                tuple(map(relationship_from, facts)),
            )

    def named_in(self, memory_id: str, *, limit: int = 50) -> list[Entity]:
        """The entities that a memory names, in the order of its text."""
        with self._reading() as session:
            found = self._store.memories.locate(session, self._place.spaces(), memory_id)
            if found is None or found[1] not in self._place.spaces():
                return []
            num, space = found
            rows = self._table.mentions_of(session, space, [num]).get(num, [])
            ids = list(dict.fromkeys(row.entity_id for row in rows))[:limit]
            return list(self._entities(session, space, ids).values())

    def entities(
        self, *, type: str | None = None, prefix: str = "", limit: int = 50, offset: int = 0
    ) -> tuple[list[Entity], int]:
        """Entities in the order of their names, and the total count."""
        check_limit(limit, offset)
        kinds = (check_entity_type(type),) if type else ()
        found: list[Entity] = []
        total = 0
        with self._reading() as session:
            for space in self._place.spaces():
                rows, count = self._table.list_entities(
                    session, space, types=kinds, prefix=prefix, limit=limit + offset, offset=0
                )
                total += count
                found += self._with_counts(session, space, rows)
        found.sort(key=lambda one: (one.name.casefold(), one.id))
        return found[offset : offset + limit], total

    def delete(self, ref: str) -> Entity:
        """Delete an entity with its mentions and relationships; memories do not change."""
        with self._writing() as (session, _):
            space, identity = self._find(session, ref)
            require_admin(space)
            entity = self._entities(session, space, [identity])[identity]
            self._table.delete_entities(session, space, [identity])
            return entity

    def extract(
        self, content: str, *, store: bool = False, min_confidence: float = 0.6, method: str = "auto"
    ) -> ExtractionResult:
        """Extract entities and relationships from a text; with `store`, add them to the graph.

        `auto` merges the local reading with that of a language model, if one is configured; `llm` is the latter alone.
        """
        check_text(content, "content", _CONTENT_BYTES)
        check_confidence(min_confidence)
        # Stored relationships quote the text as evidence.
        read, how, warnings = self._read(redact(content).text if store else content, check_method(method))
        found = drop_unsure(read, min_confidence)
        ids: tuple[str, ...] = ()
        if store:
            space = self._place.writable_space("project")
            with self._writing() as (session, at):
                known = EntityResolver(self._table, session, space, at).ids(found.entities)
                ids = tuple(known[entity_key(one)] for one in found.entities)
                self._table.mark_given(session, space, ids)
                self._add_facts(
                    session,
                    space,
                    [
                        (ids[f.source], ids[f.target], f.type, f.confidence, f.method, f.evidence)
                        for f in found.relationships
                    ],
                    at,
                )
        return ExtractionResult(found, ids, how, warnings)

    def _read(self, text: str, method: Method) -> tuple[Extraction, str, tuple[str, ...]]:
        """A text as it is read by the method, which readings that is, and warnings."""
        model = choose_model(self._model, method)
        if model is None:
            return self._read_locally(text), LOCAL, ()
        from .model_reading import LONGEST_READ, merge_readings, read_by_model

        warnings = (
            (f"The language model read the first {LONGEST_READ:,} characters.",) if len(text) > LONGEST_READ else ()
        )
        try:
            read = read_by_model(model, text)
        except LLMError as error:
            if method == "llm":
                raise
            return self._read_locally(text), LOCAL, (f"The language model was not used: {error}",)
        if method == "llm":
            return read, "llm", warnings
        return merge_readings(self._read_locally(text), read), "hybrid", warnings

    def _read_locally(self, text: str) -> Extraction:
        from .reading.extract import extract

        return extract(text, self._names.get(), StoredEntities(self._store, self._place.spaces()))

    def merge(self, refs: Sequence[str], *, canonical_name: str | None = None, dry_run: bool = False) -> EntityMerge:
        """Merge several entities into the one mentioned most; the other names become its spellings."""
        if canonical_name is not None:
            check_text(canonical_name, "canonical_name", NAME_BYTES)
            canonical_name = check_no_secret(canonical_name, "canonical_name").strip()
        with self._writing() as (session, at):
            places = self._find_all(session, refs)
            spaces = {space for space, _ in places}
            if len(spaces) > 1:
                raise InvalidInput("The entities are in different domains.", field="entity_ids")
            space, ids = places[0][0], [identity for _, identity in places]
            if not dry_run:
                require_write(space)
            before = self._entities(session, space, ids)
            kept = max(ids, key=lambda one: (before[one].mention_count, -ids.index(one)))
            key = canonical(canonical_name, before[kept].type) if canonical_name else None
            if key is not None:
                self._check_free(session, space, key, before[kept].type, ids)
            plan = self._table.plan_merge(session, space, kept, ids, at, name=canonical_name, key=key)
            if plan is None or len(ids) < 2:
                raise InvalidInput("These are the same entity.", field="entity_ids")
            naming = self._table.mentioned_by(session, space, self._sight(), ids)
            merge_id = None
            if not dry_run:
                merge_id = f"merge_{self._ids.new()}"
                self._table.merge(session, plan, merge_id, at)
            return EntityMerge(
                entity_from(plan.kept, len(naming)),
                tuple(before[one] for one in ids if one != kept),
                len(plan.merged_mentions),
                len(plan.changed),
                len(plan.loops) + len(plan.duplicates),
                merge_id,
            )

    def _check_free(self, session: Session, space: str, key: str, type: str, ids: Sequence[str]) -> None:
        """Refuse a name that another entity of the type has, since the two could not be distinguished."""
        for row in self._table.by_keys(session, space, [key]).get(key, ()):
            if row.type == type and row.id not in ids:
                raise InvalidInput(f"{row.id} has that name.", remedy="Merge it too.", field="canonical_name")

    def undo_merge(self, merge_id: str) -> bool:
        """Undo a merge; False if it is unknown or can no longer be undone."""
        with self._writing() as (session, at):
            return any(self._table.undo_merge(session, space, merge_id, at) for space in self._place.spaces("write"))

    def duplicates(self, *, limit: int = 50) -> list[DuplicateGroup]:
        """Groups of entities that are probably the same, the most likely first."""
        check_limit(limit)
        found: list[DuplicateGroup] = []
        with self._reading() as session:
            for space in self._place.spaces():
                rows = self._table.all_entities(session, space)
                found += find_duplicates((entity_from(row, 0) for row in rows), limit)
        return sorted(found, key=lambda one: (-one.confidence, one.ids))[:limit]

    def orphans(self, *, delete: bool = False) -> list[Entity]:
        """Entities without mentions and relationships.

        `delete` removes them, except those in memories that are only hidden: deleted ones that can be restored, and
        those of another git branch.
        """
        found: list[Entity] = []
        with self._writing() as (session, _):
            for space in self._place.spaces("admin" if delete else "read"):
                ids = self._table.orphans(session, space, None if delete else self._sight())
                found += self._entities(session, space, ids).values()
                if delete:
                    self._table.delete_entities(session, space, ids)
        return found


# -- entities that are probably the same --------------------------------------------------------
# Only those of one type in one block are compared: by folded spelling, initials, stem, a part of a person's name, or a
# long name without one character.

Reason = Literal["same spelling", "acronym", "short form", "part of a name", "typing error"]

_SHORT_FORMS = {
    "Technology": ("sql", "ql", "js", "db", "lang", "py", "io", "framework", "language", "database"),
    "Organization": (
        *("inc", "incorporated", "ltd", "limited", "llc", "gmbh", "ag", "se", "sa", "bv", "plc"),
        *("corp", "corporation", "co", "company", "group", "labs", "hq"),
    ),
}
_SMALL_WORDS = frozenset(("a", "and", "de", "for", "in", "of", "on", "the", "to", "und"))
_NUMERONYM = re.compile(r"([a-z])(\d{1,2})([a-z])\Z")
# A shorter name is too easily another word.
_LONG = 8
# A larger block is a naming pattern, not typing errors.
_BLOCK = 40


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Entities that may be the same, by id; `names` in the same order."""

    type: EntityType
    ids: tuple[str, ...]
    names: tuple[str, ...]
    reason: Reason
    confidence: float


class _Name(NamedTuple):
    """All entities with one folded spelling."""

    key: str
    words: tuple[str, ...]
    shown: str
    members: tuple[tuple[str, str], ...]


def fold_name(name: str, type: EntityType) -> str:
    """A name without case, accents and punctuation; "+" and "#" stay (C++, C#), and so do paths."""
    if type == "File":
        return name.strip().replace("\\", "/").removeprefix("./")
    plain = unicodedata.normalize("NFKD", name.casefold())
    kept = "".join(sign for sign in plain if sign.isalnum() or sign in "+#")
    return kept or name.casefold().strip()


def find_duplicates(entities: Iterable[Entity], limit: int = 1_000) -> list[DuplicateGroup]:
    """Groups of entities that are probably the same, the most likely first."""
    by_type: dict[EntityType, dict[str, list[Entity]]] = defaultdict(lambda: defaultdict(list))
    for entity in sorted(entities, key=lambda one: one.id):
        by_type[entity.type][fold_name(entity.name, entity.type)].append(entity)
    found: dict[tuple[str, ...], DuplicateGroup] = {}
    for type, spellings in sorted(by_type.items()):
        names = [_name(key, members) for key, members in sorted(spellings.items())]
        for group in _groups(type, names):
            # The first reason is the strongest.
            found.setdefault(tuple(sorted(group.ids)), group)
    return sorted(found.values(), key=lambda one: (-one.confidence, one.ids))[:limit]


def _name(key: str, members: Sequence[Entity]) -> _Name:
    shown = members[0].name
    plain = unicodedata.normalize("NFKD", shown)
    words = tuple(re.findall(r"[^\W_]+", "".join(sign for sign in plain if not unicodedata.combining(sign)).casefold()))
    return _Name(key, words, shown, tuple((one.id, one.name) for one in members))


def _groups(type: EntityType, names: Sequence[_Name]) -> Iterator[DuplicateGroup]:
    for name in names:
        if len(name.members) > 1:
            yield _group(type, [name], "same spelling", 0.95)
    # Paths that differ in one letter are different files.
    if type == "File":
        return
    if type == "Person":
        yield from _parts_of_names(type, names)
    else:
        yield from _acronyms(type, names)
        yield from _short_forms(type, names)
    for a, b in _slips(names):
        # Mario is rarely a typing error for Maria.
        certain = 0.5 if type == "Person" else 0.8 if len(a.key) >= 12 else 0.6
        yield _group(type, [a, b], "typing error", certain)


def _group(type: EntityType, names: Sequence[_Name], reason: Reason, confidence: float) -> DuplicateGroup:
    members = [member for name in names for member in name.members]
    return DuplicateGroup(
        type=type,
        ids=tuple(one for one, _ in members),
        names=tuple(shown for _, shown in members),
        reason=reason,
        confidence=confidence,
    )


def _acronyms(type: EntityType, names: Sequence[_Name]) -> Iterator[DuplicateGroup]:
    """AWS and Amazon Web Services, K8s and Kubernetes, if only one name fits."""
    initials: dict[str, list[_Name]] = defaultdict(list)
    counted: dict[str, list[_Name]] = defaultdict(list)
    for name in names:
        if len(name.words) > 1:
            spelled = {"".join(word[0] for word in name.words)}
            spelled.add("".join(word[0] for word in name.words if word not in _SMALL_WORDS))
            for one in spelled:
                initials[one].append(name)
        elif len(name.key) > 4:
            counted[f"{name.key[0]}{len(name.key) - 2}{name.key[-1]}"].append(name)
    for name in names:
        if len(name.words) != 1:
            continue
        meant: Sequence[_Name] = ()
        if _NUMERONYM.match(name.key):
            meant = counted.get(name.key, ())
        elif 2 <= len(name.key) <= 6 and sum(sign.isupper() for sign in name.shown) >= 2:
            meant = initials.get(name.key, ())
        if len(meant) == 1:
            yield _group(type, [name, meant[0]], "acronym", 0.6 if len(name.key) == 2 else 0.75)


def _short_forms(type: EntityType, names: Sequence[_Name]) -> Iterator[DuplicateGroup]:
    """Postgres and PostgreSQL, React and React.js, Acme and Acme Inc."""
    by_key = {name.key: name for name in names}
    for name in names:
        for ending in _SHORT_FORMS.get(type, ()):
            stem = by_key.get(name.key.removesuffix(ending)) if name.key.endswith(ending) else None
            if stem is None or len(stem.key) < 3:
                continue
            # An ending that is a separate word is certain; inside a word the stem must be long.
            apart = len(name.words) > 1 and name.words[-1] == ending
            if apart or len(stem.key) >= 4:
                yield _group(type, [stem, name], "short form", 0.8 if apart or len(stem.key) >= 6 else 0.65)


def _parts_of_names(type: EntityType, names: Sequence[_Name]) -> Iterator[DuplicateGroup]:
    """Maria, M. Lopez or Lopez and Maria Lopez, if nobody else fits."""
    fitting: dict[tuple[str, ...], list[_Name]] = defaultdict(list)
    for name in names:
        if len(name.words) > 1 and len(name.words[0]) > 1:
            first, last = name.words[0], name.words[-1]
            for part in {(first,), (last,), (first[0], last), (first, last[0])}:
                fitting[part].append(name)
            if len(name.words) > 2:
                fitting[first, last].append(name)
    for name in names:
        meant = [one for one in fitting.get(name.words, ()) if one.key != name.key]
        if len(meant) == 1:
            certain = 0.75 if len(name.words) > 1 else 0.7 if name.words[0] == meant[0].words[0] else 0.55
            yield _group(type, [name, meant[0]], "part of a name", certain)


def _slips(names: Sequence[_Name]) -> Iterator[tuple[_Name, _Name]]:
    """Long names that are one typing error apart: a character changed, missing, added, or swapped with the next.

    Two such names are equal once each loses at most one character, so the rest is the block. Digits must be equal,
    because another version is another thing.
    """
    by_length: dict[int, list[_Name]] = defaultdict(list)
    for name in names:
        if len(name.key) >= _LONG:
            by_length[len(name.key)].append(name)
    for length in sorted(by_length):
        blocks: dict[str, list[_Name]] = defaultdict(list)
        for name in by_length.get(length - 1, ()):
            blocks[name.key].append(name)
        for name in by_length[length]:
            for rest in {name.key[:i] + name.key[i + 1 :] for i in range(length)}:
                blocks[rest].append(name)
        pairs = {pair for block in blocks.values() if 1 < len(block) <= _BLOCK for pair in combinations(block, 2)}
        for a, b in sorted(pairs):
            if _one_slip(a.key, b.key) and _digits(a.key) == _digits(b.key):
                yield a, b


def _one_slip(a: str, b: str) -> bool:
    """Whether two names that differ in one character each are one typing error apart."""
    if len(a) != len(b):
        return abs(len(a) - len(b)) == 1
    apart = [i for i, (one, other) in enumerate(zip(a, b, strict=True)) if one != other]
    return len(apart) == 1 or (
        len(apart) == 2 and apart[1] == apart[0] + 1 and a[apart[0] : apart[1] + 1] == b[apart[1]] + b[apart[0]]
    )


def _digits(key: str) -> str:
    return "".join(sign for sign in key if sign.isdigit())
