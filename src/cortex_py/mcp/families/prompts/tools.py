"""The functions of the prompt and template tools: one for each, which goes by its action, and the deprecated ones.

Parameters follow the published document; each function calls the library and builds the answer.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from ....errors import InvalidInput
from ..tool import FamilyTools, require_argument
from .models import PromptsAnswer, SavedItem, TemplatesAnswer

__all__ = ["PromptTools"]

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
