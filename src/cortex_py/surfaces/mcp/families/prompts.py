"""The tools for saved prompts and templates, and the deprecated ones: a function for each, which goes by its action.

The published document shows their parameters and no answers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, JsonValue, WithJsonSchema

from ....core.clock import iso
from ....core.errors import InvalidInput
from .answer import Answer, FamilyTools, require_argument

if TYPE_CHECKING:
    from ....core.records import Saved, SavedDomain, Variable
    from ....parts.prompts.saved_texts import ListEntry

__all__ = ["PromptTools"]


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


Domain = Annotated[str | None, Field(description="project, user or org")]
# A list of declarations is taken too; an object alone is shown, because not every client knows alternatives.
_OBJECT = {"additionalProperties": True, "type": "object"}
_VARIABLES = "run: values by name; save: {name: {description, default, required, choices}}"


def _read_object(value: object) -> object:
    """The document writes the variables of a run as JSON text, and Claude Code has sent objects so."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


_Object = Annotated[dict[str, Any] | list[Any] | None, BeforeValidator(_read_object)]
Given = Annotated[_Object, WithJsonSchema(_OBJECT)]
Described = Annotated[_Object, WithJsonSchema({**_OBJECT, "description": _VARIABLES})]


class PromptTools(FamilyTools):
    def prompts(
        self,
        action: Literal["save", "list", "get", "run", "delete"],
        name: Annotated[str | None, Field(description="kebab-case")] = None,
        content: str | None = None,
        description: str | None = None,
        domain: Domain = None,
        tags: list[str] | None = None,
        variables: Described = None,
        version: int | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> PromptsAnswer:
        prompts = self._cortex.prompts
        if action == "list":
            page = prompts.list(domain=domain, tags=tags or (), limit=limit, offset=offset)
            return PromptsAnswer(
                action=action,
                prompts=[SavedItem.from_listed(one) for one in page.items],
                total=page.total,
                warnings=list(page.problems) or None,
            )
        name = require_argument(name, "name")
        if action == "save":
            text, where = require_argument(content, "content"), "project" if domain is None else domain
            stored = prompts.save(
                name, text, description=description, domain=where, tags=tags or (), variables=variables
            )
            return PromptsAnswer(
                action=action, prompt=SavedItem.from_saved(stored.saved), warnings=list(stored.warnings) or None
            )
        if action == "run":
            filled = prompts.run(name, _by_name(variables), domain=domain, version=version)
            return PromptsAnswer(
                action=action,
                name=filled.saved.name,
                domain=filled.saved.domain,
                version=filled.saved.version,
                content=filled.content,
                warnings=list(filled.warnings) or None,
            )
        found = (
            prompts.get(name, domain=domain, version=version)
            if action == "get"
            else prompts.delete(name, domain=require_argument(domain, "domain"))
        )
        return PromptsAnswer(action=action, prompt=SavedItem.from_saved(found))

    def templates(
        self,
        action: Literal["save", "list", "get", "render", "delete"],
        name: Annotated[str | None, Field(description="kebab-case")] = None,
        content: str | None = None,
        description: str | None = None,
        domain: Domain = None,
        tags: list[str] | None = None,
        query: Annotated[str | None, Field(description="Search that fills {{memories}}; omit for the newest")] = None,
        limit: int | None = None,
        filter: str | None = None,
        format: Literal["markdown", "json", "xml"] = "markdown",
        variables: Given = None,
        version: int | None = None,
        offset: int = 0,
    ) -> TemplatesAnswer:
        templates = self._cortex.templates
        if action == "list":
            page = templates.list(domain=domain, tags=tags or (), limit=20 if limit is None else limit, offset=offset)
            return TemplatesAnswer(
                action=action,
                templates=[SavedItem.from_listed(one) for one in page.items],
                total=page.total,
                warnings=list(page.problems) or None,
            )
        name = require_argument(name, "name")
        if action == "save":
            text, where = require_argument(content, "content"), "project" if domain is None else domain
            stored = templates.save(
                name, text, description=description, domain=where, tags=tags or (), variables=variables
            )
            return TemplatesAnswer(
                action=action, template=SavedItem.from_saved(stored.saved), warnings=list(stored.warnings) or None
            )
        if action == "render":
            made = templates.render(
                name,
                query=query,
                limit=limit,
                filter=filter or "",
                format=format,
                variables=_by_name(variables),
                domain=domain,
                version=version,
            )
            return TemplatesAnswer(
                action=action,
                name=made.saved.name,
                domain=made.saved.domain,
                version=made.saved.version,
                content=made.output,
                format=made.format,
                memories=made.memories,
                warnings=list(made.warnings) or None,
            )
        found = (
            templates.get(name, domain=domain, version=version)
            if action == "get"
            else templates.delete(name, domain=require_argument(domain, "domain"))
        )
        return TemplatesAnswer(action=action, template=SavedItem.from_saved(found))

    def prompt_save(
        self,
        name: str,
        content: str,
        description: str | None = None,
        domain: str = "project",
        tags: list[str] | None = None,
        variables: Given = None,
    ) -> PromptsAnswer:
        return _deprecated(self.prompts("save", name, content, description, domain, tags, variables))

    def prompt_list(
        self, domain: str | None = None, tags: list[str] | None = None, limit: int = 20, offset: int = 0
    ) -> PromptsAnswer:
        return _deprecated(self.prompts("list", domain=domain, tags=tags, limit=limit, offset=offset))

    def prompt_get(self, name: str, domain: str | None = None, version: int | None = None) -> PromptsAnswer:
        return _deprecated(self.prompts("get", name, domain=domain, version=version))

    def prompt_run(self, name: str, variables: Given = None, domain: str | None = None) -> PromptsAnswer:
        return _deprecated(self.prompts("run", name, variables=variables, domain=domain))

    def prompt_delete(self, name: str, domain: str) -> PromptsAnswer:
        return _deprecated(self.prompts("delete", name, domain=domain))


def _by_name(variables: dict[str, Any] | list[Any] | None) -> dict[str, Any] | None:
    """Values to fill in. A list declares variables and has no values."""
    if isinstance(variables, list):
        raise InvalidInput(
            "The variables are a list.", remedy="Give the values as an object by name.", field="variables"
        )
    return variables


def _deprecated(answer: PromptsAnswer) -> PromptsAnswer:
    note = f"prompt_{answer.action} is deprecated: call subcog_prompts with action {answer.action}."
    return answer.model_copy(update={"deprecated": note})
