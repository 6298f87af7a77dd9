"""The values of the graph: entities, their mentions in memories, relationships between them. Nothing is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

__all__ = [
    "ENTITY_TYPES",
    "RELATIONSHIP_TYPES",
    "Entity",
    "EntityType",
    "ExtractedEntity",
    "ExtractedRelationship",
    "Extraction",
    "Mention",
    "Relationship",
    "RelationshipType",
]

EntityType = Literal["Person", "Organization", "Technology", "Concept", "File"]
RelationshipType = Literal[
    "WorksAt",
    "Created",
    "Uses",
    "Implements",
    "PartOf",
    "RelatesTo",
    "MentionedIn",
    "Supersedes",
    "ConflictsWith",
]
ENTITY_TYPES: tuple[EntityType, ...] = get_args(EntityType)
RELATIONSHIP_TYPES: tuple[RelationshipType, ...] = get_args(RelationshipType)


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """A stretch of a text that names something: where, what, how sure, and by which rule or model."""

    name: str
    type: EntityType
    start: int
    end: int
    confidence: float
    method: str


@dataclass(frozen=True, slots=True)
class ExtractedRelationship:
    """A relationship that a text states between two of its entities, given by their places in the list."""

    source: int
    target: int
    type: RelationshipType
    confidence: float
    method: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that one text names and states; entities in the order of the text, not overlapping."""

    entities: tuple[ExtractedEntity, ...]
    relationships: tuple[ExtractedRelationship, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Something that memories speak of, under one name and its other spellings."""

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
class Mention:
    """Where a memory names an entity."""

    entity_id: str
    memory_id: str
    start: int
    end: int
    confidence: float
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """A fact between two entities: true from and to when, known since when, and how."""

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
