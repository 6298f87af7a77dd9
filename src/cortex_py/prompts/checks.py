"""What a prompt or template must be before it is kept. Nothing here writes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..config import SecretPolicy
from ..errors import BadArguments, ContentTooLarge, InvalidInput
from ..memory.prepare import check_no_secret, check_text, clean_tags
from ..records import JsonValue, Saved, SavedKind, Variable
from ..security.policy import screen
from .draft import Draft
from .names import check_name
from .placeholders import FILLED_MOST, value_text
from .structured import check

__all__ = [
    "CONTENT_MOST",
    "FoundNames",
    "as_variables",
    "check_choices",
    "check_content",
    "check_draft",
    "check_saved_name",
    "check_value",
    "is_saved_name",
    "screened",
    "values_for",
]

CONTENT_MOST = 200_000
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_NAME_LENGTH = 64
_DESCRIPTION_MOST = 2_000
_VARIABLES_MOST = 100
_CHOICES_MOST = 100
_DEFAULT_MOST = 20_000
_FIELDS = frozenset(("name", "description", "default", "required", "choices"))


@dataclass(frozen=True, slots=True)
class FoundNames:
    """The variables of a content in order of appearance: those that surely are some, and those that may be."""

    sure: tuple[str, ...]
    possible: tuple[str, ...] = ()


def is_saved_name(name: str) -> bool:
    """Whether anything can have this name: kebab-case, as clients show it as a command."""
    return len(name) <= _NAME_LENGTH and bool(_NAME.fullmatch(name))


def check_saved_name(name: str, kind: SavedKind) -> str:
    if not is_saved_name(name):
        shown = f"{name[:_NAME_LENGTH]}…" if len(name) > _NAME_LENGTH else name
        raise InvalidInput(
            f"The {kind} name {shown!r} is not kebab-case of at most {_NAME_LENGTH} characters.",
            remedy="Use lower-case letters and digits in words joined by single hyphens, such as code-review.",
            field="name",
        )
    return name


def check_content(content: str) -> str:
    if len(content) > CONTENT_MOST:
        raise ContentTooLarge(
            f"The content is longer than {CONTENT_MOST:,} characters.", remedy="Shorten it.", field="content"
        )
    return check_text(content, "content", 4 * CONTENT_MOST)


def check_draft(draft: Draft, found: FoundNames) -> tuple[Draft, tuple[str, ...]]:
    """The draft in its kept form, with a declaration for every variable found in its content, and warnings."""
    if draft.description is not None:
        _check_words(draft.description, "description", _DESCRIPTION_MOST, "description")
    declared = _by_name(draft.variables)
    names = (*found.sure, *(name for name in found.possible if name in declared))
    if len(names) > _VARIABLES_MOST:
        raise InvalidInput(f"The content has more than {_VARIABLES_MOST} variables.", field="content")
    unused = [name for name in declared if name not in names]
    warnings = tuple(
        f"The variable {name!r} is declared but does not occur in the content; it was left out." for name in unused
    )
    # What a template is not given stays empty, unless its author says that it must be given.
    variables = tuple(declared.get(name, Variable(name, required=draft.kind == "prompt")) for name in names)
    return replace(draft, tags=clean_tags(draft.tags), variables=variables), warnings


def _by_name(variables: Sequence[Variable]) -> dict[str, Variable]:
    if len(variables) > _VARIABLES_MOST:
        raise InvalidInput(f"More than {_VARIABLES_MOST} variables are declared.", field="variables")
    declared: dict[str, Variable] = {}
    for variable in variables:
        if fault := check_name(variable.name):
            raise InvalidInput(f"A declared variable: {fault}", field="variables")
        if variable.name in declared:
            raise InvalidInput(f"The variable {variable.name!r} is declared twice.", field="variables")
        _check_variable(variable)
        declared[variable.name] = variable
    return declared


def _check_variable(variable: Variable) -> None:
    if variable.description is not None:
        _check_words(variable.description, f"description of {variable.name!r}", _DESCRIPTION_MOST)
    for choice in variable.choices:
        _check_words(choice, f"choice for {variable.name!r}", _DESCRIPTION_MOST)
    if len(variable.choices) > _CHOICES_MOST:
        raise InvalidInput(f"The variable {variable.name!r} has more than {_CHOICES_MOST} choices.", field="variables")
    if variable.default is None:
        return
    text = value_text(variable.name, variable.default)
    # As deep as it lies in a file of several texts: what is kept can be exported.
    if fault := check([{"variables": [{"default": variable.default}]}]):
        raise InvalidInput(f"The default of the variable {variable.name!r}: {fault}.", field="variables")
    if text.strip():
        _check_words(text, f"default of {variable.name!r}", _DEFAULT_MOST)
    if variable.choices and text not in variable.choices:
        raise InvalidInput(f"The default of the variable {variable.name!r} is none of its choices.", field="variables")


def _check_words(text: str, what: str, most: int, field: str = "variables") -> None:
    if not text.strip():
        raise InvalidInput(f"The {what} is empty.", remedy="Leave it out, or give some text.", field=field)
    if len(text) > most:
        raise InvalidInput(f"The {what} is longer than {most:,} characters.", remedy="Shorten it.", field=field)
    check_text(text, field, 4 * most)


def as_variables(given: object) -> tuple[Variable, ...]:
    """Declarations as callers write them: a list of objects with names, or an object by name.

    In the latter form a value that is no object is the default.
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        return tuple(
            _variable({**one, "name": name} if isinstance(one, Mapping) else {"name": name, "default": one})
            for name, one in given.items()
        )
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        return tuple(_variable(one) for one in given)
    raise _odd("The variables are neither a list nor an object.")


def _variable(given: object) -> Variable:
    if isinstance(given, Variable):
        return given
    if isinstance(given, str):
        return Variable(given)
    if not isinstance(given, Mapping):
        raise _odd("A declared variable is no object.")
    if unknown := [str(key)[:40] for key in given if key not in _FIELDS]:
        raise _odd(f"A declared variable has the unknown field {unknown[0]!r}.")
    name, description, default = given.get("name"), given.get("description"), given.get("default")
    required, choices = given.get("required", default is None), given.get("choices") or ()
    if not isinstance(name, str):
        raise _odd("A declared variable has no name.")
    if not isinstance(description, str | None):
        raise _odd(f"The description of {name[:64]!r} is no text.")
    if not isinstance(required, bool):
        raise _odd(f"`required` of {name[:64]!r} is neither true nor false.")
    if not isinstance(choices, list | tuple) or not all(isinstance(one, str) for one in choices):
        raise _odd(f"The choices of {name[:64]!r} are no list of texts.")
    return Variable(name, description or None, default, required, tuple(choices))


def _odd(message: str) -> InvalidInput:
    return InvalidInput(
        message,
        remedy=f"Declare each with {', '.join(sorted(_FIELDS))}; only the name must be there.",
        field="variables",
    )


def check_value(name: str, value: JsonValue) -> str:
    """A value to be filled in, as it stands in the text."""
    text = value_text(name, value)
    if text.strip():
        check_text(text, "value", 4 * FILLED_MOST)
    return text


def screened(saved: Saved, policy: SecretPolicy) -> Saved:
    """The text as it may be kept; secrets in what must stay as it is are refused."""
    if policy != "allow":
        check_no_secret(saved.name, "name")
        for variable in saved.variables:
            for text in _texts_of(variable):
                check_no_secret(text, "variables")
    given = [saved.content, *([saved.description] if saved.description else []), *saved.tags]
    cleaned, kinds = screen(given, policy)
    if not kinds:
        return saved
    content, *rest = cleaned
    description = rest.pop(0) if saved.description else None
    return replace(saved, content=content, description=description, tags=tuple(dict.fromkeys(rest)), redactions=kinds)


def _texts_of(variable: Variable) -> list[str]:
    default: JsonValue = variable.default
    texts = [variable.description or "", *variable.choices]
    return [*texts, "" if default is None else value_text(variable.name, default)]


def check_choices(saved: Saved, texts: Mapping[str, str]) -> None:
    """Refuse a value that is none of those its variable is declared to take."""
    for variable in saved.variables:
        text = texts.get(variable.name)
        if variable.choices and text is not None and text not in variable.choices:
            raise InvalidInput(
                f"{text[:80]!r} is none of the choices for {variable.name}.",
                remedy=f"Choose one of {', '.join(variable.choices[:20])}.",
                field="variables",
            )


def values_for(saved: Saved, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A value for each variable of a text; all that is missing is told at once."""
    values: dict[str, JsonValue] = {}
    missing: list[str] = []
    for variable in saved.variables:
        if variable.name in given:
            values[variable.name] = given[variable.name]
        elif variable.default is not None:
            values[variable.name] = variable.default
        elif variable.required:
            missing.append(variable.name)
    if missing:
        raise BadArguments(
            f"The {saved.kind} {saved.name!r} needs a value for {', '.join(missing)}.", fields=tuple(missing)
        )
    return values
