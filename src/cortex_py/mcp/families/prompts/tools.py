"""The prompt and template tools: one function for each, which goes by its action, and the deprecated ones.

Parameters follow the published document; each function only calls the library and shapes the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from ...errors import InvalidInput
from ...prompts.results import Listing
from ...records import Saved
from .. import prompt_answers as answers
from .. import prompt_shapes as shapes
from .needed import needed

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["PromptTools"]

Domain = Annotated[str | None, Field(description="project, user or org")]
# A list of declarations is taken too; an object alone is shown, because not every client knows alternatives.
_OBJECT = {"additionalProperties": True, "type": "object"}
_VARIABLES = "run: values by name; save: {name: {description, default, required, choices}}"
Given = Annotated[dict[str, Any] | list[Any] | None, WithJsonSchema(_OBJECT)]
Described = Annotated[dict[str, Any] | list[Any] | None, WithJsonSchema({**_OBJECT, "description": _VARIABLES})]


class PromptTools:
    """The tools over one opened Cortex."""

    def __init__(self, cortex: Cortex) -> None:
        self._cortex = cortex

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
    ) -> answers.PromptsAnswer:
        if action == "list":
            return self._listed(self._cortex.prompts.list(domain=domain, tags=tags or (), limit=limit, offset=offset))
        name = needed(name, "name")
        if action == "save":
            text, where = needed(content, "content"), "project" if domain is None else domain
            stored = self._cortex.prompts.save(
                name, text, description=description, domain=where, tags=tags or (), variables=variables
            )
            return answers.PromptsAnswer(
                action=action, prompt=shapes.saved_item(stored.saved), warnings=list(stored.warnings) or None
            )
        if action == "get":
            return self._one(action, self._cortex.prompts.get(name, domain=domain, version=version))
        if action == "run":
            return self._run(name, variables, domain, version)
        return self._one(action, self._cortex.prompts.delete(name, domain=needed(domain, "domain")))

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
    ) -> answers.TemplatesAnswer:
        templates = self._cortex.templates
        if action == "list":
            page = templates.list(domain=domain, tags=tags or (), limit=20 if limit is None else limit, offset=offset)
            return answers.TemplatesAnswer(
                action=action,
                templates=[shapes.listed_item(one) for one in page.items],
                total=page.total,
                warnings=list(page.problems) or None,
            )
        name = needed(name, "name")
        if action == "save":
            text, where = needed(content, "content"), "project" if domain is None else domain
            stored = templates.save(
                name, text, description=description, domain=where, tags=tags or (), variables=variables
            )
            return answers.TemplatesAnswer(
                action=action, template=shapes.saved_item(stored.saved), warnings=list(stored.warnings) or None
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
            return answers.TemplatesAnswer(
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
            else templates.delete(name, domain=needed(domain, "domain"))
        )
        return answers.TemplatesAnswer(action=action, template=shapes.saved_item(found))

    def legacy_save(
        self,
        name: str,
        content: str,
        description: str | None = None,
        domain: str = "project",
        tags: list[str] | None = None,
        variables: Given = None,
    ) -> answers.PromptsAnswer:
        return _deprecated(self.prompts("save", name, content, description, domain, tags, variables))

    def legacy_list(
        self, domain: str | None = None, tags: list[str] | None = None, limit: int = 20, offset: int = 0
    ) -> answers.PromptsAnswer:
        return _deprecated(self.prompts("list", domain=domain, tags=tags, limit=limit, offset=offset))

    def legacy_get(self, name: str, domain: str | None = None, version: int | None = None) -> answers.PromptsAnswer:
        return _deprecated(self.prompts("get", name, domain=domain, version=version))

    def legacy_run(
        self, name: str, variables: dict[str, Any] | None = None, domain: str | None = None
    ) -> answers.PromptsAnswer:
        return _deprecated(self.prompts("run", name, variables=variables, domain=domain))

    def legacy_delete(self, name: str, domain: str) -> answers.PromptsAnswer:
        return _deprecated(self.prompts("delete", name, domain=domain))

    def _listed(self, page: Listing) -> answers.PromptsAnswer:
        return answers.PromptsAnswer(
            action="list",
            prompts=[shapes.listed_item(one) for one in page.items],
            total=page.total,
            warnings=list(page.problems) or None,
        )

    def _one(self, action: str, saved: Saved) -> answers.PromptsAnswer:
        return answers.PromptsAnswer(action=action, prompt=shapes.saved_item(saved))

    def _run(
        self, name: str, variables: dict[str, Any] | list[Any] | None, domain: str | None, version: int | None
    ) -> answers.PromptsAnswer:
        filled = self._cortex.prompts.run(name, _by_name(variables), domain=domain, version=version)
        return answers.PromptsAnswer(
            action="run",
            name=filled.saved.name,
            domain=filled.saved.domain,
            version=filled.saved.version,
            content=filled.content,
            warnings=list(filled.warnings) or None,
        )


def _by_name(variables: dict[str, Any] | list[Any] | None) -> dict[str, Any] | None:
    """Values to fill in; a list declares variables, and has none."""
    if isinstance(variables, list):
        raise InvalidInput(
            "The variables are a list.", remedy="Give the values as an object by name.", field="variables"
        )
    return variables


def _deprecated(answer: answers.PromptsAnswer) -> answers.PromptsAnswer:
    note = f"prompt_{answer.action} is deprecated: call subcog_prompts with action {answer.action}."
    return answer.model_copy(update={"deprecated": note})
