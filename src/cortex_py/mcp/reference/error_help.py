"""What each error means, why it happens and what to do: for `cortex help` and for the page of errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ... import errors
from ...errors import WIRE_FORMS, CortexError, WireForm

__all__ = ["ErrorHelp", "all_errors", "find_errors"]


@dataclass(frozen=True, slots=True)
class ErrorHelp:
    """The help about one kind of error, and its codes in each interface."""

    name: str
    means: str
    why: str
    do: str
    form: WireForm

    @property
    def codes(self) -> tuple[str, ...]:
        """All codes by which a caller may meet it."""
        return self.form.cortex, str(self.form.subcog), self.form.embedding, str(self.form.exit_code)


def all_errors() -> Iterator[ErrorHelp]:
    """The help about every kind of error, in the order of the file."""
    sections = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    for name, words in sections.items():
        kind: type[CortexError] = getattr(errors, name)
        yield ErrorHelp(name=name, form=next(form for one, form in WIRE_FORMS if issubclass(kind, one)), **words)


def find_errors(code: str) -> list[ErrorHelp]:
    """The errors of a name (`StoreBusy`, `store-busy`) or of a code: -32604, `CONTEXT_NOT_FOUND`, or an exit code."""
    wanted = _letters(code)
    known = list(all_errors())
    return [one for one in known if code.upper() in one.codes] or [one for one in known if _letters(one.name) == wanted]


def _letters(name: str) -> str:
    return "".join(filter(str.isalpha, name)).lower()
