"""From saved prompts and templates to what their tools answer."""

from __future__ import annotations

from ..clock import iso
from ..prompts.results import Listed
from ..records import Saved, Shelf, Variable
from . import prompt_answers as answers

__all__ = ["listed_item", "saved_item"]


def saved_item(saved: Saved) -> answers.SavedItem:
    """A text in full."""
    return _item(saved, saved.content, None)


def listed_item(listed: Listed) -> answers.SavedItem:
    """A line of a list: without the content."""
    return _item(listed.saved, None, listed.shadowed_by)


def _item(saved: Saved, content: str | None, shadowed_by: Shelf | None) -> answers.SavedItem:
    return answers.SavedItem(
        name=saved.name,
        domain=saved.domain,
        version=saved.version,
        description=saved.description,
        tags=list(saved.tags),
        variables=[_variable(one) for one in saved.variables],
        content=content,
        path=saved.path,
        uses=saved.uses,
        created_at=iso(saved.created_at) if saved.created_at else None,
        updated_at=iso(saved.updated_at) if saved.updated_at else None,
        shadowed_by=shadowed_by,
        redacted=list(saved.redactions) or None,
    )


def _variable(variable: Variable) -> answers.VariableItem:
    return answers.VariableItem(
        name=variable.name,
        description=variable.description,
        default=variable.default,
        required=variable.required and variable.default is None,
        choices=list(variable.choices) or None,
    )
