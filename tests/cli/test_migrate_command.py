"""`cortex migrate`: from the file to PostgreSQL and back, as a person does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shell import Shell


@pytest.mark.slow
def test_everything_is_there_after_a_move_and_after_the_way_back(home: Path, project: Path, postgres_url: str) -> None:
    shell = Shell(home, project)
    assert shell.run("capture", "Kafka carries the events").returncode == 0
    done = shell.run("migrate", "--to", postgres_url)
    assert done.returncode == 0, done.stderr
    assert "1 memory in 1 space" in done.stdout
    shared = Shell(home, project, CORTEX_DATABASE_URL=postgres_url)
    assert "Kafka carries" in shared.run("recall", "kafka").stdout
    assert shared.run("capture", "Redis caches the carts").returncode == 0
    elsewhere = Shell(home.with_name("elsewhere"), project, CORTEX_DATABASE_URL=postgres_url)
    moved = elsewhere.json("migrate", "--to", "home")
    assert (moved["spaces"], moved["documents"]["memory"]) == (1, 2)
    assert "Redis caches" in Shell(home.with_name("elsewhere"), project).run("recall", "redis").stdout


def test_a_place_that_is_none_is_told(home: Path, project: Path) -> None:
    shell = Shell(home, project)
    for place in ("somewhere", "home", "postgresql://me:hunter2@127.0.0.1:1/db"):
        done = shell.run("migrate", "--to", place)
        assert done.returncode not in (0, 1)
        assert "hunter2" not in done.stderr + done.stdout
        assert "Traceback" not in done.stderr
