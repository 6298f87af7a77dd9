"""The command line as a person runs it: a process in a project, what it prints, and what it prints as JSON.

Processes are forked (see `forking`), which spares their imports. That every group of commands starts from nothing is
shown in `cli/test_starting.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from forking import cortex_command

__all__ = ["Done", "Shell"]

Done = subprocess.CompletedProcess[str]


class Shell:
    """Runs `cortex` in a project; `command` comes before every word, `variables` go over the environment."""

    def __init__(self, home: Path, project: Path, *command: str, **variables: str) -> None:
        self.home = home
        self.project = project
        self.command = command
        places = {"CORTEX_HOME": str(home), "COLUMNS": "200"}
        self.variables = {**places, **variables}

    def run(self, *words: str, given: str | None = None) -> Done:
        return subprocess.run(
            [*cortex_command(), *self.command, *words],
            cwd=self.project,
            env={**os.environ, **self.variables},
            input=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    def text(self, *words: str, given: str | None = None) -> str:
        done = self.run(*words, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *words: str, given: str | None = None) -> Any:
        return json.loads(self.text(*words, "--json", given=given))
