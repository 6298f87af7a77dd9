"""What a configured language model reads in texts, checked and merged with the local reading.

A name counts only if it is in the text, a relationship only between two such names, of types between which it is
plausible, and with a quotation that is in the text. The model's own confidence is not calibrated, so it is bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.graph_values import (
    STATED_TYPES,
    Entity,
    EntityType,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    RelationshipType,
)
from ...core.llm.values import Budget, Passage, Prompt
from ...core.security.secrets.secrets import redact

if TYPE_CHECKING:
    from ...core.llm.client import LanguageModel

__all__ = ["LONGEST_READ", "ReadStatement", "merge_readings", "read_by_model", "relate_by_model"]

LONGEST_READ = 20_000  # characters of a text that are sent
_SURE = 0.9
_LONGEST_QUOTE = 300
_BUDGET = Budget(input_tokens=12_000, output_tokens=3_000)
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class ReadStatement:
    """A relationship that a memory states, as a model read it."""

    source_id: str
    target_id: str
    type: RelationshipType
    confidence: float
    evidence: str


def read_by_model(model: LanguageModel, text: str) -> Extraction:
    """The entities and relationships that the model finds in the beginning of a text; LLMError if it fails."""
    sent = redact(text[:LONGEST_READ]).text
    reply = model.complete(*_task("extract", [Passage("the text", sent)]), _BUDGET)
    method = f"llm:{reply.model}"
    entities: dict[str, ExtractedEntity] = {}
    for one in reply.value["entities"]:
        name = str(one["name"]).strip()
        start = _find(text, name)
        if start is not None and name.casefold() not in entities:
            written = text[start : start + len(name)]
            confidence = min(_SURE, float(one["confidence"]))
            entities[name.casefold()] = ExtractedEntity(
                written, one["type"], start, start + len(name), confidence, method
            )
    ordered = sorted(entities.values(), key=lambda one: one.start)
    places = {one.name.casefold(): place for place, one in enumerate(ordered)}
    flat = _flat(text)
    facts: dict[tuple[int, int, str], ExtractedRelationship] = {}
    for one in reply.value["relationships"]:
        ends = [places.get(str(one[end]).strip().casefold()) for end in ("from", "to")]
        source, target = ends
        quote = _flat(str(one["quote"]))[:_LONGEST_QUOTE]
        if source is None or target is None or source == target or not quote or quote not in flat:
            continue
        if _plausible(one["type"], ordered[source].type, ordered[target].type):
            confidence = min(_SURE, float(one["confidence"]))
            fact = ExtractedRelationship(source, target, one["type"], confidence, method, quote)
            facts.setdefault((source, target, one["type"]), fact)
    return Extraction(tuple(ordered), tuple(facts.values()))


def merge_readings(local: Extraction, model: Extraction) -> Extraction:
    """Both readings together, in the order of the text. Of two names at one place, the surer one stays."""
    kept: list[tuple[ExtractedEntity, set[tuple[int, int]]]] = [(one, {(0, n)}) for n, one in enumerate(local.entities)]
    by_name = {one.name.casefold(): n for n, one in enumerate(local.entities)}
    for n, one in enumerate(model.entities):
        over = [place for place, (other, _) in enumerate(kept) if other.start < one.end and one.start < other.end]
        same = by_name.get(one.name.casefold())
        place = same if same is not None else over[0] if over else None
        if place is None:
            kept.append((one, {(1, n)}))
            continue
        other, origins = kept[place]
        origins.add((1, n))
        spans = (other.start, other.end) == (one.start, one.end)
        if spans and other.type == one.type:
            kept[place] = (replace(other, confidence=max(other.confidence, one.confidence)), origins)
        elif spans and one.confidence > other.confidence:
            kept[place] = (one, origins)
    order = sorted(range(len(kept)), key=lambda place: (kept[place][0].start, kept[place][0].end))
    places = {origin: new for new, old in enumerate(order) for origin in kept[old][1]}
    facts: dict[tuple[int, int, str], ExtractedRelationship] = {}
    for reading, found in enumerate((local.relationships, model.relationships)):
        for fact in found:
            source, target = places[reading, fact.source], places[reading, fact.target]
            known = facts.get((source, target, fact.type))
            if source != target and (known is None or known.confidence < fact.confidence):
                facts[source, target, fact.type] = replace(fact, source=source, target=target)
    return Extraction(tuple(kept[place][0] for place in order), tuple(facts.values()))


def relate_by_model(
    model: LanguageModel, entities: Sequence[Entity], memories: Mapping[str, str]
) -> tuple[list[ReadStatement], str]:
    """The relationships between entities that memories (texts by id) state, and the method; LLMError if it fails."""
    ids = list(memories)
    names = "\n".join(
        f"{number}. {', '.join((one.name, *one.aliases))} ({one.type})" for number, one in enumerate(entities, 1)
    )
    data = [Passage("the entities", names)]
    data += [Passage(f"memory {number}", redact(memories[one]).text) for number, one in enumerate(ids, 1)]
    reply = model.complete(*_task("infer", data), _BUDGET)
    found: dict[tuple[str, str, str], ReadStatement] = {}
    for one in reply.value["relationships"]:
        numbers = int(one["from"]), int(one["to"])
        memory, quote = int(one["memory"]), _flat(str(one["quote"]))[:_LONGEST_QUOTE]
        if not all(1 <= number <= len(entities) for number in numbers) or not 1 <= memory <= len(ids):
            continue
        source, target = (entities[number - 1] for number in numbers)
        if source.id == target.id or not quote or quote not in _flat(memories[ids[memory - 1]]):
            continue
        if _plausible(one["type"], source.type, target.type):
            evidence = f"{quote} ({ids[memory - 1]})"
            statement = ReadStatement(source.id, target.id, one["type"], min(_SURE, float(one["confidence"])), evidence)
            found.setdefault((source.id, target.id, one["type"]), statement)
    return list(found.values()), f"llm:{reply.model}"


def _plausible(type: RelationshipType, source: EntityType, target: EntityType) -> bool:
    sources, targets = STATED_TYPES.get(type, ((), ()))
    return not sources or (source in sources and target in targets)


def _find(text: str, name: str) -> int | None:
    """Where a text has a name as a word of its own."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) if name else None
    return found.start() if found and found.end() - found.start() == len(name) else None


def _flat(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _task(name: str, data: Sequence[Passage]) -> tuple[Prompt, dict[str, Any]]:
    wanted = json.loads((Path(__file__).parent / "reading" / "tasks.json").read_text("utf-8"))[name]
    return Prompt(wanted["instructions"], data), wanted["schema"]
