"""What each error means, why it happens and what to do: for `cortex help` and for the page of errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ....core import errors
from ....core.errors import WIRE_FORMS, CortexError, WireForm

__all__ = ["ErrorHelp", "all_errors", "find_errors"]


@dataclass(frozen=True, slots=True)
class ErrorHelp:
    """The help about one kind of error, and all codes by which a caller may meet it."""

    name: str
    means: str
    why: str
    do: str
    codes: tuple[str, ...]
    """An error of the library has one for each family of tools, and its exit code last."""
    form: WireForm | None = None
    """None for codes of the protocol, of the HTTP server and of results."""

    @property
    def shown_codes(self) -> str:
        """The codes, for a page or a terminal."""
        return ", ".join(f"exit code {code}" if code.isdigit() else f"`{code}`" for code in self.codes)


def all_errors() -> Iterator[ErrorHelp]:
    """The help about every kind of error, in the order of the file."""
    sections = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    for name, words in sections.items():
        codes = tuple(words.pop("codes", ()))
        if codes:
            yield ErrorHelp(name=name, codes=codes, **words)
            continue
        kind: type[CortexError] = getattr(errors, name)
        form = next(form for one, form in WIRE_FORMS if issubclass(kind, one))
        codes = (form.cortex, str(form.subcog), form.embedding, str(form.exit_code))
        yield ErrorHelp(name=name, form=form, codes=codes, **words)


def find_errors(code: str) -> list[ErrorHelp]:
    """The errors of a name (`StoreBusy`, `store-busy`) or of a code: -32604, `CONTEXT_NOT_FOUND`, or an exit code."""
    wanted = _letters(code)
    known = list(all_errors())
    return [one for one in known if code.upper() in one.codes] or [one for one in known if _letters(one.name) == wanted]


def _letters(name: str) -> str:
    return "".join(filter(str.isalpha, name)).lower()
