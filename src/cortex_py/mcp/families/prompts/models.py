"""What the prompt and template tools answer; the published document shows their parameters and no answers."""

from __future__ import annotations

from pydantic import JsonValue

from .answers import Answer

__all__ = ["PromptsAnswer", "SavedItem", "TemplatesAnswer", "VariableItem"]


class VariableItem(Answer):
    name: str
    description: str | None = None
    default: JsonValue | None = None
    required: bool
    choices: list[str] | None = None


class SavedItem(Answer):
    """A prompt or template. Lists leave the content out; `shadowed_by` tells which domain's is used instead."""

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


class PromptsAnswer(Answer):
    """A run tells which prompt it filled in, and the text."""

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
    """A rendering tells which template it used, how many memories went into it, and the output."""

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
