"""The filters of templates, `{{name | filter argument}}`: their arguments and effects.

Arguments are checked while a template is parsed, so that rendering cannot fail on them. Dates use a table of our own:
names of months do not depend on the machine, and no directive takes a width.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from .placeholders import shown
from .printing import RenderBudget, joined, json_text, printed

__all__ = ["FILTERS", "Argument", "apply", "check_filter"]

Argument = str | int | float

_DATE_FORMAT = "%Y-%m-%d"
_DATE_FORMAT_LONGEST = 100
_TRUNCATE_AT = 100
_TRUNCATE_MOST = 1_000_000
_JOINED_BY = ", "

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DATE_DIRECTIVES: dict[str, Callable[[datetime], str]] = {
    "Y": lambda at: f"{at.year:04}",
    "y": lambda at: f"{at.year % 100:02}",
    "m": lambda at: f"{at.month:02}",
    "d": lambda at: f"{at.day:02}",
    "e": lambda at: f"{at.day:2}",
    "j": lambda at: f"{at.timetuple().tm_yday:03}",
    "B": lambda at: _MONTHS[at.month - 1],
    "b": lambda at: _MONTHS[at.month - 1][:3],
    "A": lambda at: _DAYS[at.weekday()],
    "a": lambda at: _DAYS[at.weekday()][:3],
    "H": lambda at: f"{at.hour:02}",
    "I": lambda at: f"{at.hour % 12 or 12:02}",
    "p": lambda at: "AM" if at.hour < 12 else "PM",
    "M": lambda at: f"{at.minute:02}",
    "S": lambda at: f"{at.second:02}",
    "F": lambda at: f"{at.year:04}-{at.month:02}-{at.day:02}",
    "T": lambda at: f"{at.hour:02}:{at.minute:02}:{at.second:02}",
    "%": lambda _: "%",
}
_DIRECTIVE = re.compile("%(.?)", re.DOTALL)
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)


@dataclass(frozen=True, slots=True)
class TemplateFilter:
    """One filter; `check` returns what is wrong with an argument."""

    takes: Literal["nothing", "optional", "required"]
    act: Callable[[object, Argument | None, RenderBudget], object]
    check: Callable[[Argument], str | None] | None = None


def check_filter(name: str, arguments: Sequence[Argument]) -> str | None:
    """What is wrong with the use of a filter, or None."""
    if not name:
        return "After `|` the name of a filter is missing."
    known = FILTERS.get(name)
    if known is None:
        return f"There is no filter {shown(name)}; there are: {', '.join(FILTERS)}."
    if known.takes == "nothing" and arguments:
        return f"The filter `{name}` takes no argument."
    if known.takes == "required" and not arguments:
        return f'The filter `{name}` needs an argument, as in `{name} "text"`.'
    if len(arguments) > 1:
        return f"The filter `{name}` takes one argument."
    return known.check(arguments[0]) if known.check and arguments else None


def apply(name: str, value: object, argument: Argument | None, budget: RenderBudget) -> object:
    """Apply a filter to a value; its use must have passed `check_filter`."""
    budget.spend()
    return FILTERS[name].act(value, argument, budget)


# -- what they do ------------------------------------------------------------------------------------


def _date(value: object, argument: Argument | None, _: RenderBudget) -> object:
    moment = _moment(value)
    if moment is None:
        return value
    layout = _DATE_FORMAT if argument is None else str(argument)
    return _DIRECTIVE.sub(lambda match: DATE_DIRECTIVES[match[1]](moment), layout)


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, str) and _ISO.fullmatch(value):
        try:
            return datetime.fromisoformat(value.upper())
        except ValueError:
            return None
    return None


def _truncate(value: object, argument: Argument | None, budget: RenderBudget) -> object:
    most = _TRUNCATE_AT if argument is None else int(argument)
    text = printed(value, budget)
    return text if len(text) <= most else text[: most - 1] + "…"


def _join(value: object, argument: Argument | None, budget: RenderBudget) -> object:
    if isinstance(value, (list, tuple)):
        return joined(value, _JOINED_BY if argument is None else str(argument), budget)
    return value


def _default(value: object, argument: Argument | None, _: RenderBudget) -> object:
    return argument if value is None or value in ("", [], {}, ()) else value


def _json(value: object, _: Argument | None, budget: RenderBudget) -> object:
    return json_text(value, budget)


def _length(value: object, _: Argument | None, budget: RenderBudget) -> object:
    if isinstance(value, (list, tuple, Mapping)):
        return len(value)
    return len(printed(value, budget))


def _on_text(change: Callable[[str], str]) -> Callable[[object, Argument | None, RenderBudget], object]:
    def act(value: object, _: Argument | None, budget: RenderBudget) -> object:
        text = printed(value, budget)
        budget.spend_on(len(text))
        return change(text)

    return act


# -- what they take ----------------------------------------------------------------------------------


def _check_date(argument: Argument) -> str | None:
    if not isinstance(argument, str):
        return 'The filter `date` takes a format in quotes, as in `date "%Y-%m-%d"`.'
    if len(argument) > _DATE_FORMAT_LONGEST:
        return f"The format of `date` is longer than {_DATE_FORMAT_LONGEST} characters."
    for match in _DIRECTIVE.finditer(argument):
        if match[1] not in DATE_DIRECTIVES:
            known = " ".join(f"%{sign}" for sign in DATE_DIRECTIVES)
            return f"The filter `date` does not know {shown(match[0])}; it knows {known}."
    return None


def _check_truncate(argument: Argument) -> str | None:
    if isinstance(argument, int) and 1 <= argument <= _TRUNCATE_MOST:
        return None
    return f"The filter `truncate` takes a whole number from 1 to {_TRUNCATE_MOST:,}."


def _check_join(argument: Argument) -> str | None:
    return None if isinstance(argument, str) else 'The filter `join` takes a text in quotes, as in `join ", "`.'


FILTERS: dict[str, TemplateFilter] = {
    "date": TemplateFilter("optional", _date, _check_date),
    "truncate": TemplateFilter("optional", _truncate, _check_truncate),
    "join": TemplateFilter("optional", _join, _check_join),
    "default": TemplateFilter("required", _default),
    "json": TemplateFilter("nothing", _json),
    "upper": TemplateFilter("nothing", _on_text(str.upper)),
    "lower": TemplateFilter("nothing", _on_text(str.lower)),
    "trim": TemplateFilter("nothing", _on_text(str.strip)),
    "length": TemplateFilter("nothing", _length),
}
