"""What commands ask for: a text, a passphrase, a yes."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ...core.errors import InvalidInput
from ...core.paths import read_whole
from .output import note, visible

__all__ = ["ask_home_passphrase", "confirm", "new_passphrase", "read_input", "read_text"]


_MOST_INPUT = 100_000_000
_LONGEST_LINE = 100_000


def ask_home_passphrase() -> str:
    return str(click.prompt("Passphrase of the home", hide_input=True, err=True))


def new_passphrase() -> str:
    """A new passphrase: asked for twice on a terminal, else one line of standard input."""
    if sys.stdin.isatty():
        return str(click.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True))
    text = sys.stdin.readline(_LONGEST_LINE).rstrip("\r\n")
    if not text:
        raise InvalidInput("No passphrase was given.", remedy="Give one line on standard input.", field="passphrase")
    return text


def read_text(words: str | None) -> str:
    """The argument, or standard input for `-` and for nothing at all."""
    if words is not None and words != "-":
        return words
    if sys.stdin.isatty():
        note("Type the text; end it with Ctrl-D on a line of its own.")
    return read_input().decode("utf-8", "replace")


def read_input(file: Path | None = None) -> bytes:
    """All of a file, or of standard input where none is named."""
    try:
        if file is not None:
            return read_whole(file, _MOST_INPUT)
        data = sys.stdin.buffer.read(_MOST_INPUT + 1)
    except OSError as error:
        raise InvalidInput(
            f"{file or 'Standard input'} cannot be read: {error.strerror}.",
            remedy="Name a regular file, or give the text on standard input.",
            field="file",
        ) from error
    if len(data) > _MOST_INPUT:
        raise InvalidInput(f"Standard input is larger than {_MOST_INPUT:,} bytes.", remedy="Give less at once.")
    return data


def confirm(question: str, *, yes: bool) -> None:
    """Ask before what cannot be undone. Without a terminal nobody can answer, and `--yes` must be given."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(
            f"{question} Nobody can answer here: this is no terminal.",
            remedy="Nothing was changed; add --yes to do it without a question.",
            field="yes",
        )
    click.confirm(visible(question), abort=True, err=True)
