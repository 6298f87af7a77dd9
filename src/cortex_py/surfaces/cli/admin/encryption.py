"""`cortex encryption`: encrypt the files of the home, decrypt them, see how they stand."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from ....core.config import Settings, load_settings
from ....core.errors import StoreLocked
from ..input import ask_home_passphrase, new_passphrase
from ..options import CommandSession, group, with_session
from ..output import say

__all__ = ["encryption_command"]

_PASSPHRASE = click.option(
    "--passphrase", is_flag=True, help="Open the home with a passphrase: asked for, or one line of standard input."
)


@group("encryption")
def encryption_command() -> None:
    """Encryption of the home on this disk: on, off, status, change."""


@encryption_command.command("on")
@_PASSPHRASE
@with_session
def on_command(passphrase: bool, session: CommandSession) -> None:
    """Encrypt all files of the home. Its key is kept in the system's keyring, or opens with a passphrase."""
    from ....encryption import encrypt_home, encryption_of

    settings = load_settings(session.home)
    if encryption_of(settings).encrypted:
        settings = _unlocked(settings)
        encrypt_home(settings, None)
    else:
        encrypt_home(settings, new_passphrase() if passphrase else None)
    _print_state(settings, session)


@encryption_command.command("off")
@with_session
def off_command(session: CommandSession) -> None:
    """Put all files of the home back into plain form."""
    from ....encryption import decrypt_home

    settings = _unlocked(load_settings(session.home))
    decrypt_home(settings)
    _print_state(settings, session)


@encryption_command.command("change")
@_PASSPHRASE
@with_session
def change_command(passphrase: bool, session: CommandSession) -> None:
    """Let a new passphrase open the home, or without --passphrase a new secret in the system's keyring."""
    from ....encryption import change_passphrase

    settings = _unlocked(load_settings(session.home))
    change_passphrase(settings, new_passphrase() if passphrase else None)
    _print_state(settings, session)


@encryption_command.command("status")
@with_session
def status_command(session: CommandSession) -> None:
    """Show whether the home is encrypted, and what opens it."""
    _print_state(load_settings(session.home), session)


def _unlocked(settings: Settings) -> Settings:
    """The settings with a passphrase that is asked for, where they have none and one is needed."""
    from ....encryption import home_key

    try:
        home_key(settings)
    except StoreLocked:
        if not sys.stdin.isatty():
            raise
        return replace(settings, home_passphrase=ask_home_passphrase())
    return settings


def _print_state(settings: Settings, session: CommandSession) -> None:
    from ....encryption import encryption_of

    found = encryption_of(settings)
    if session.shown_as_json(
        {
            "home": str(settings.home),
            "encrypted": found.encrypted,
            "opened_by": found.opened_by or None,
            "unfinished": [str(path) for path in found.unfinished],
        }
    ):
        return
    say(f"{settings.home} is {found.described}.")
