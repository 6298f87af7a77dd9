"""What the prompt and template tools answer; the published document shows their parameters and no answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import JsonValue

from ....clock import iso
from ..answer import Answer

if TYPE_CHECKING:
    from ....prompts.saved_texts import ListEntry
    from ....records import Saved, SavedDomain, Variable

__all__ = ["PromptsAnswer", "SavedItem", "TemplatesAnswer", "VariableItem"]


class VariableItem(Answer):
    name: str
    description: str | None = None
    default: JsonValue | None = None
    required: bool
    choices: list[str] | None = None

    @classmethod
    def from_variable(cls, variable: Variable) -> Self:
        return cls.from_record(
            variable, default=variable.default, required=variable.required is True and variable.default is None
        )


class SavedItem(Answer):
    """A prompt or template. Lists leave the content out; `shadowed_by` is the domain whose text is used instead."""

    name: str
    domain: str
    version: int | None = None
    description: str | None = None
    tags: list[str]
    variables: list[VariableItem]
    content: str | None = None
    path: str | None = None
    uses: int
    created_at: str | None = None
    updated_at: str | None = None
    shadowed_by: str | None = None
    redacted: list[str] | None = None

    @classmethod
    def from_saved(cls, saved: Saved, *, content: bool = True, shadowed_by: SavedDomain | None = None) -> Self:
        return cls(
            name=saved.name,
            domain=saved.domain,
            version=saved.version,
            description=saved.description,
            tags=list(saved.tags),
            variables=[VariableItem.from_variable(one) for one in saved.variables],
            content=saved.content if content else None,
            path=saved.path,
            uses=saved.uses,
            created_at=iso(saved.created_at) if saved.created_at else None,
            updated_at=iso(saved.updated_at) if saved.updated_at else None,
            shadowed_by=shadowed_by,
            redacted=list(saved.redactions) or None,
        )

    @classmethod
    def from_listed(cls, listed: ListEntry) -> Self:
        return cls.from_saved(listed.saved, content=False, shadowed_by=listed.shadowed_by)


class PromptsAnswer(Answer):
    """A run names the prompt it filled in, and gives the text."""

    action: str
    name: str | None = None
    domain: str | None = None
    version: int | None = None
    prompt: SavedItem | None = None
    prompts: list[SavedItem] | None = None
    total: int | None = None
    content: str | None = None
    warnings: list[str] | None = None
    deprecated: str | None = None


class TemplatesAnswer(Answer):
    """A rendering names its template and how many memories went into it, and gives the output."""

    action: str
    name: str | None = None
    domain: str | None = None
    version: int | None = None
    template: SavedItem | None = None
    templates: list[SavedItem] | None = None
    total: int | None = None
    content: str | None = None
    format: str | None = None
    memories: int | None = None
    warnings: list[str] | None = None
