"""A command as a person runs it at a terminal: it asks, colours and pages as it does there."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from dataclasses import dataclass

from forking import cortex_command
from shell import Shell

__all__ = ["Shown", "at_terminal"]


@dataclass(frozen=True)
class Shown:
    """How a command ended, what the terminal got, and what a pipe got where standard output is one."""

    code: int
    screen: str
    piped: str = ""


def at_terminal(
    shell: Shell, *words: str, keys: str = "", pipe: bool = False, interrupt_at: str = "", **variables: str
) -> Shown:
    """Run a command at a terminal of 200 columns; with `pipe`, its standard output is a pipe.

    With `interrupt_at` it gets Ctrl-C as soon as the terminal shows that.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*cortex_command(), *shell.command, *words],
        cwd=shell.project,
        env={**os.environ, "TERM": "xterm", "PAGER": "cat", "LINES": "50", **shell.variables, **variables},
        stdin=theirs,
        stdout=subprocess.PIPE if pipe else theirs,
        stderr=theirs,
        # A pager would read the keys of the terminal that the tests run in.
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, keys.encode())
    piped = process.communicate(timeout=120)[0] or b"" if pipe else b""
    shown = b""
    try:
        while part := os.read(ours, 65_536):
            shown += part
            if interrupt_at and re.search(interrupt_at, shown.decode(errors="replace")):
                interrupt_at = ""
                process.send_signal(signal.SIGINT)
    except OSError:
        # That is how a terminal ends.
        pass
    os.close(ours)
    return Shown(process.wait(60), shown.decode().replace("\r\n", "\n"), piped.decode())
