"""What commands ask for: a text, a passphrase, a yes."""

from __future__ import annotations

import sys

import click

from ..errors import InvalidInput
from .output import note, visible

__all__ = ["ask_home_passphrase", "confirm", "new_passphrase", "read_text"]


def ask_home_passphrase() -> str:
    return str(click.prompt("Passphrase of the home", hide_input=True, err=True))


def new_passphrase() -> str:
    """A new passphrase: asked for twice on a terminal, else one line of standard input."""
    if sys.stdin.isatty():
        return str(click.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True))
    text = sys.stdin.readline().rstrip("\r\n")
    if not text:
        raise InvalidInput("No passphrase was given.", remedy="Give one line on standard input.", field="passphrase")
    return text


def read_text(words: str | None) -> str:
    """The argument, or standard input for `-` and for nothing at all."""
    if words is not None and words != "-":
        return words
    if sys.stdin.isatty():
        note("Type the text; end it with Ctrl-D on a line of its own.")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


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
