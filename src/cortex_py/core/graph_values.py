"""The values of the graph: entities, their mentions, the relationships between them, and the keys of names."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from .lazy import regex

__all__ = [
    "ENTITY_TYPES", "RELATIONSHIP_TYPES", "STATED_TYPES", "Entity", "EntityMention", "EntityType", "ExtractedEntity",
    "ExtractedRelationship", "Extraction", "Relationship", "RelationshipType", "canonical", "keys_of",
    "shared_spelling",
]  # fmt: skip

_SPELLINGS_FILE = Path(__file__).with_name("spellings.json")
_COMPANY = regex(r"(?<![\s,])[\s,]+(?:inc|incorporated|llc|ltd|limited|gmbh|corp|corporation|co|plc|ag|sa|bv)\.?$")
_VERSION = regex(r"(?<=[^\W\d])[\s-]+v?\d+(?:\.\d+)*(?:\.x)?$")
_DOT_JS = regex(r"[.\s-]js$")
_SEPARATORS = regex(r"[\s._-]+")


@cache
def _spellings() -> dict[str, str]:
    """Spellings that no rule joins: the key of each, and the key that it shares."""
    spellings: dict[str, str] = json.loads(_SPELLINGS_FILE.read_text("utf-8"))
    return spellings


def shared_spelling(key: str) -> str:
    """The key that all spellings of a technology share, such as "postgresql" for "postgres"."""
    return _spellings().get(key, key)


def canonical(name: str, type: EntityType) -> str:
    """The key of a name: two spellings of one thing share it ("PostgreSQL", "postgres"; "Node.js", "nodejs")."""
    folded = unicodedata.normalize("NFKC", name).casefold().strip(" \t\r\n`'\"“”‘’")
    if type == "File":
        return folded.replace("\\", "/").removeprefix("./") or name
    if type == "Person":
        return _SEPARATORS.sub(" ", folded.removeprefix("@")).strip() or folded or name
    if type == "Organization":
        folded = _COMPANY.sub("", folded.removeprefix("@"))
        return _SEPARATORS.sub("", folded) or folded or name
    if type == "Concept":
        return _SEPARATORS.sub(" ", folded).strip() or folded or name
    folded = _DOT_JS.sub("js", _VERSION.sub("", folded))
    key = _SEPARATORS.sub("", folded) if folded.strip("._- ") else folded
    if key == "net" and folded.startswith("."):
        key = ".net"
    return shared_spelling(key) or name


def keys_of(name: str) -> list[str]:
    """All keys that a name can have, one for each type of entity."""
    return list(dict.fromkeys(canonical(name, type) for type in ENTITY_TYPES))


EntityType = Literal["Person", "Organization", "Technology", "Concept", "File"]
RelationshipType = Literal[
    "WorksAt", "Created", "Uses", "Implements", "PartOf", "RelatesTo", "MentionedIn", "Supersedes", "ConflictsWith"
]
ENTITY_TYPES: tuple[EntityType, ...] = get_args(EntityType)
RELATIONSHIP_TYPES: tuple[RelationshipType, ...] = get_args(RelationshipType)
# The types between which a stated relationship is plausible.
STATED_TYPES: dict[RelationshipType, tuple[tuple[EntityType, ...], tuple[EntityType, ...]]] = {
    "WorksAt": (("Person",), ("Organization",)),
    "Created": (("Person", "Organization"), ("Organization", "Technology", "Concept", "File")),
    "Uses": (("Person", "Organization", "Technology", "File", "Concept"), ("Technology", "Concept", "File")),
    "Implements": (("Technology", "File", "Person", "Organization"), ("Concept", "Technology")),
    "PartOf": (ENTITY_TYPES, ("Organization", "Technology", "Concept", "File")),
    "Supersedes": (("Technology", "Concept", "File"), ("Technology", "Concept", "File")),
    "ConflictsWith": (ENTITY_TYPES, ENTITY_TYPES),
}


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """A span of text that names something, with its type, the confidence, and the rule or model that found it."""

    name: str
    type: EntityType
    start: int
    end: int
    confidence: float
    method: str


@dataclass(frozen=True, slots=True)
class ExtractedRelationship:
    """A relationship that a text states between two of its entities, given by their indexes."""

    source: int
    target: int
    type: RelationshipType
    confidence: float
    method: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """The entities of a text, in order and without overlaps, and the relationships it states."""

    entities: tuple[ExtractedEntity, ...]
    relationships: tuple[ExtractedRelationship, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Something that memories mention, under one name and its other spellings."""

    id: str
    space: str
    name: str
    type: EntityType
    aliases: tuple[str, ...] = ()
    properties: Mapping[str, object] = field(default_factory=dict)
    mention_count: int = 0
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class EntityMention:
    """Where a memory names an entity."""

    entity_id: str
    memory_id: str
    start: int
    end: int
    confidence: float
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """A fact between two entities: when it holds (`valid_from` to `valid_to`), and since when and how it is known."""

    id: str
    space: str
    source_id: str
    target_id: str
    type: RelationshipType
    confidence: float
    method: str
    evidence: str = ""
    properties: Mapping[str, object] = field(default_factory=dict)
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_at: datetime
    ended_at: datetime | None = None
