"""`cortex completion`: the script with which a shell completes commands and options, printed or installed."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ....core.errors import storage_error
from ..options import CommandSession, command, with_session
from ..output import note

__all__ = ["completion_command"]

_VARIABLE = "_CORTEX_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@command("completion")
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
@click.option("--install", is_flag=True, help="Write it where the shell looks for it, instead of printing it.")
@with_session
def completion_command(shell: str | None, install: bool, session: CommandSession) -> None:
    """Print the completion script of SHELL, or install it; the shell of the environment where it is left out."""
    shell = shell or _present_shell()
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell} is not known. Choose one of {', '.join(_SHELLS)}.")
    root = click.get_current_context().find_root().command
    script = kind(root, {}, "cortex", _VARIABLE).source()
    if not install:
        session.show({"shell": shell, "script": script}, script)
        return
    path = _place(shell)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, "utf-8")
    except OSError as error:
        raise storage_error(error, path) from error
    session.show({"shell": shell, "path": str(path)}, f"Installed in {path}. It works in new shells.")
    if shell == "zsh" and not session.as_json:
        note(f"If it does not, put this line before compinit into ~/.zshrc: fpath=({path.parent} $fpath)")


def _present_shell() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise click.UsageError(f"The shell is not known. Name it: cortex completion {'|'.join(_SHELLS)}")
    return name


def _place(shell: str) -> Path:
    """Where each shell loads completions from by itself, for one person."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    if shell == "bash":
        return data / "bash-completion" / "completions" / "cortex"
    if shell == "zsh":
        return data / "zsh" / "site-functions" / "_cortex"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "fish" / "completions" / "cortex.fish"
