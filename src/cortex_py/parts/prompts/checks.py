"""What a prompt or template must be before it is stored. Nothing here writes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ...core.echo import clean_text
from ...core.errors import BadArguments, ContentTooLarge, InvalidInput
from ...core.memory.capture.capture import check_no_secret, check_text, clean_tags
from ...core.records import JsonValue, Saved, SavedDomain, SavedKind, Variable
from ...core.security.policy import Screen
from ...texts.structured import check
from .language.placeholders import AUTOMATIC, FILLED_MOST, check_name, find_blanks, value_text
from .language.syntax import Template, parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A text with its declarations, as a caller or a file gives it; nothing is checked yet."""

    name: str
    content: str
    description: str | None = None
    tags: tuple[str, ...] = ()
    variables: tuple[Variable, ...] = ()
    kind: SavedKind = "prompt"

    def as_saved(self, domain: SavedDomain) -> Saved:
        return Saved(
            kind=self.kind,
            name=self.name,
            domain=domain,
            content=self.content,
            description=self.description,
            tags=self.tags,
            variables=self.variables,
        )


# Before the name of a text that a file of the project holds: no name in the store can begin so.
OF_FOLDER = "project:"
CONTENT_MOST = 200_000
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_NAME_LENGTH = 64
_DESCRIPTION_MOST = 2_000
_VARIABLES_MOST = 100
_CHOICES_MOST = 100
_DEFAULT_MOST = 20_000
_FIELDS = frozenset(("name", "description", "default", "required", "choices"))


@dataclass(frozen=True, slots=True)
class VariableNames:
    """The variables of a content in order of appearance: certain ones, and possible ones."""

    sure: tuple[str, ...]
    possible: tuple[str, ...] = ()


def variable_names(kind: SavedKind, content: str) -> VariableNames:
    """The variables of a content; ContentSyntaxError if it cannot be parsed.

    Automatic variables need no declaration, but may have one, with a default that takes precedence.
    """
    if kind == "prompt":
        return VariableNames(find_blanks(content).names)
    template = parse_template(content)
    certain = tuple(name for name in template.names if name not in AUTOMATIC)
    automatic = tuple(name for name in template.names if name in AUTOMATIC)
    return VariableNames(certain, (*automatic, *template.inner_names))


@lru_cache(maxsize=64)
def parse_template(content: str) -> Template:
    return parse(content)


def plain_name(name: str) -> str:
    """The name of a text without the prefix that some clients write before it."""
    return name.removeprefix("subcog:")


def is_saved_name(name: str) -> bool:
    """Whether a text can have this name: kebab-case, as clients show it as a command."""
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


def check_draft(draft: Draft) -> tuple[Draft, tuple[str, ...]]:
    """The draft as it is stored, with a declaration for every variable in its content, and warnings."""
    check_saved_name(draft.name, draft.kind)
    found = variable_names(draft.kind, check_content(draft.content))
    if draft.description is not None:
        _check_words(draft.description, "description", _DESCRIPTION_MOST, "description")
    declared = _by_name(draft.variables)
    names = (*found.sure, *(name for name in found.possible if name in declared))
    if len(names) > _VARIABLES_MOST:
        raise InvalidInput(f"The content has more than {_VARIABLES_MOST} variables.", field="content")
    unused = [name for name in declared if name not in names]
    warnings = tuple(
        clean_text(f"The variable {name!r} is declared but does not occur in the content; it was left out.")
        for name in unused
    )
    # Values missing in a template stay empty, unless its author requires them.
    undeclared = None if draft.kind == "prompt" else False
    variables = tuple(declared.get(name, Variable(name, required=undeclared)) for name in names)
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
    # Nested as deep as in a file of several texts: what is stored can be exported.
    if fault := check([{"variables": [{"default": variable.default}]}]):
        raise InvalidInput(f"The default of the variable {variable.name!r}: {fault}.", field="variables")
    if text.strip():
        _check_words(text, f"default of {variable.name!r}", _DEFAULT_MOST)
    if variable.choices and text not in variable.choices:
        raise InvalidInput(
            f"The default of the variable {variable.name!r} is not one of its choices.", field="variables"
        )


def _check_words(text: str, what: str, most: int, field: str = "variables") -> None:
    if not text.strip():
        raise InvalidInput(f"The {what} is empty.", remedy="Leave it out, or give some text.", field=field)
    if len(text) > most:
        raise InvalidInput(f"The {what} is longer than {most:,} characters.", remedy="Shorten it.", field=field)
    check_text(text, field, 4 * most)


def as_variables(given: object) -> tuple[Variable, ...]:
    """Declarations as callers write them: a list of objects with names, or an object by name.

    In the latter form a value that is not an object is the default.
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
        raise _odd("A declared variable is not an object.")
    if unknown := [str(key)[:40] for key in given if key not in _FIELDS]:
        raise _odd(f"A declared variable has the unknown field {unknown[0]!r}.")
    name, description, default = given.get("name"), given.get("description"), given.get("default")
    required, choices = given.get("required", default is None), given.get("choices") or ()
    if not isinstance(name, str):
        raise _odd("A declared variable has no name.")
    if not isinstance(description, str | None):
        raise _odd(f"The description of {name[:64]!r} is not text.")
    if not isinstance(required, bool | None):
        raise _odd(f"`required` of {name[:64]!r} is neither true nor false.")
    if not isinstance(choices, list | tuple) or not all(isinstance(one, str) for one in choices):
        raise _odd(f"The choices of {name[:64]!r} are not a list of texts.")
    return Variable(name, description or None, default, required, tuple(choices))


def _odd(message: str) -> InvalidInput:
    return InvalidInput(
        message,
        remedy=f"Declare each with {', '.join(sorted(_FIELDS))}; only the name must be there.",
        field="variables",
    )


def check_value(name: str, value: JsonValue) -> str:
    """A value as it appears in the text."""
    text = value_text(name, value)
    if text.strip():
        check_text(text, "value", 4 * FILLED_MOST)
    return text


def screen_saved(saved: Saved, screen: Screen) -> Saved:
    """The text as it may be stored; secrets in fields that cannot be redacted are refused."""
    if screen.policy != "allow":
        check_no_secret(saved.name, "name")
        for variable in saved.variables:
            for text in _texts_of(variable):
                check_no_secret(text, "variables")
    kept, kinds = screen.fields("saved_version", {"content": saved.content, "description": saved.description})
    tags, in_tags = screen.each("tags", saved.tags)
    return replace(
        saved,
        content=kept["content"] or "",
        description=kept["description"],
        tags=tuple(dict.fromkeys(tags)),
        variables=tuple(_screened_variable(one, screen) for one in saved.variables),
        redactions=tuple(dict.fromkeys((*kinds, *in_tags))) or saved.redactions,
    )


def _screened_variable(variable: Variable, screen: Screen) -> Variable:
    """A variable without personal data; secrets in it were refused before."""
    if screen.personal != "redact":
        return variable
    kept = Screen("allow", "redact")
    default = variable.default
    return replace(
        variable,
        description=variable.description and kept.prose(variable.description),
        default=kept.prose(default) if isinstance(default, str) else default,
        choices=tuple(dict.fromkeys(kept.prose(one) for one in variable.choices)),
    )


def _texts_of(variable: Variable) -> list[str]:
    default: JsonValue = variable.default
    texts = [variable.description or "", *variable.choices]
    return [*texts, "" if default is None else value_text(variable.name, default)]


def check_choices(saved: Saved, texts: Mapping[str, str]) -> None:
    """Refuse a value that is not among the declared choices of its variable."""
    for variable in saved.variables:
        text = texts.get(variable.name)
        if variable.choices and text is not None and text not in variable.choices:
            raise InvalidInput(
                f"{text[:80]!r} is not one of the choices for {variable.name}.",
                remedy=f"Choose one of {', '.join(variable.choices[:20])}.",
                field="variables",
            )


def values_for(saved: Saved, given: Mapping[str, JsonValue], *, all_of_them: bool = False) -> dict[str, JsonValue]:
    """The values of a text's variables; an error names all that are required, or with `all_of_them` expected."""
    values: dict[str, JsonValue] = {}
    missing: list[str] = []
    for variable in saved.variables:
        if variable.name in given:
            values[variable.name] = given[variable.name]
        elif variable.default is not None:
            values[variable.name] = variable.default
        elif variable.required or (all_of_them and variable.required is None):
            missing.append(variable.name)
    if missing:
        raise BadArguments(
            f"The {saved.kind} {saved.name!r} needs a value for {', '.join(missing)}.", fields=tuple(missing)
        )
    return values
