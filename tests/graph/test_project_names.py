"""The names of a project: from its manifests (even broken ones), its history, its remote and its scan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.parts.graph.reading.knowledge import Knowledge, names_in
from timing import quick

from helpers import FakeClock, git
from stub_backend import StubBackend

Open = Callable[..., Cortex]
MANIFESTS = {
    "pyproject.toml": (
        """
[project]
name = "weaver"
dependencies = ["httpx>=0.27", "ruamel.yaml ; python_version > '3.8'", "uvicorn[standard]"]
[project.optional-dependencies]
dev = ["pytest-xdist"]
[tool.poetry.dependencies]
python = "^3.11"
celery = {version = "^5"}
""",
        {"httpx", "ruamel.yaml", "uvicorn", "pytest-xdist", "celery"},
    ),
    "requirements.txt": ("# pinned\n-r base.txt\nflask==3.0 --hash=x\n\n  sqlalchemy>2\n", {"flask", "sqlalchemy"}),
    "requirements-dev.txt": ("mypy\n", {"mypy"}),
    "package.json": (
        json.dumps(
            {"name": "w", "dependencies": {"react": "^18", "@vue/core": "3"}, "devDependencies": {"vitest": "1"}}
        ),
        {"react", "@vue/core", "vitest"},
    ),
    "Cargo.toml": (
        '[package]\nname = "w"\n[dependencies]\nserde = "1"\ntokio = { version = "1" }\n'
        '[dev-dependencies]\nproptest = "1"\n',
        {"serde", "tokio", "proptest"},
    ),
    "go.mod": (
        "module example.org/w\n\ngo 1.22\n\nrequire github.com/gin-gonic/gin v1.9.1\n\nrequire (\n"
        "\tgithub.com/jackc/pgx/v5 v5.5.0 // indirect\n\tgopkg.in/yaml.v3 v3.0.1\n)\n",
        {"gin", "pgx", "yaml"},
    ),
    "Gemfile": ("source 'https://rubygems.org'\ngem 'rails', '~> 7'\n  gem \"sidekiq\"\n", {"rails", "sidekiq"}),
    "composer.json": (
        json.dumps({"require": {"php": ">=8", "laravel/framework": "^11"}, "require-dev": {"phpunit/phpunit": "^11"}}),
        {"laravel/framework", "phpunit/phpunit"},
    ),
}
BROKEN = {
    "pyproject.toml": [
        "[project",
        "project = 5",
        "[project]\ndependencies = 5",
        "[project]\noptional-dependencies = [1]",
    ],
    "requirements.txt": ["\x00\x00", "===\n\n;;;"],
    "package.json": ["{", "[]", '"x"', '{"dependencies": [1, {}]}', '{"dependencies": null}', "[" * 100_000],
    "Cargo.toml": ["dependencies = 3", "dependencies = [1, 2]", "dependencies = [{a = 1}]", "[[["],
    "go.mod": ["require (", "\n" * 900_000, "require " * 100_000],
    "Gemfile": ["gem", "gem '", "\n \t" * 300_000],
    "composer.json": ['{"require": null}', '{"require": [1]}', '{"require": "a/b"}', "null"],
}


@pytest.fixture
def open_at(home: Path, clock: FakeClock) -> Iterator[Open]:
    opened: list[Cortex] = []

    def at(folder: Path) -> Cortex:
        opened.append(Cortex.open(home, project=folder, clock=clock, backend=StubBackend()))
        return opened[-1]

    yield at
    for cortex in opened:
        cortex.close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "weaver"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "src" / "loom.py").write_text("def thread_shuttle():\n    return 1\n")
    git(folder, "add", "-A")
    return folder


def known(cortex: Cortex) -> Knowledge:
    return cortex._session.reader.project_names.get()


def named(cortex: Cortex, text: str) -> set[tuple[str, str]]:
    return {(one.name, one.type) for one in cortex.graph.extract(text, min_confidence=0.0).extraction.entities}


# -- manifests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_names_the_packages(tmp_path: Path, name: str) -> None:
    content, packages = MANIFESTS[name]
    (tmp_path / name).write_text(content)
    assert names_in(tmp_path)[0] == packages


def test_all_manifests_are_read_together(tmp_path: Path) -> None:
    for name, (content, _) in MANIFESTS.items():
        (tmp_path / name).write_text(content)
    assert names_in(tmp_path)[0] == set[str]().union(*(packages for _, packages in MANIFESTS.values()))


@pytest.mark.parametrize(
    ("name", "content"),
    [pytest.param(name, one, id=f"{name}-{n}") for name, many in BROKEN.items() for n, one in enumerate(many)],
)
def test_a_broken_manifest_hides_nothing_but_itself(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    other = "go.mod" if name != "go.mod" else "Gemfile"
    (tmp_path / other).write_text(MANIFESTS[other][0])
    found = quick(lambda: names_in(tmp_path)[0], 5)
    assert found >= MANIFESTS[other][1]
    assert all(isinstance(one, str) for one in found)


def test_what_is_no_plain_file_of_fair_size_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "package.json").mkdir()
    (tmp_path / "Cargo.toml").symlink_to(tmp_path / "Cargo.toml")
    (tmp_path / "Gemfile").write_bytes(b"gem '\xff\xfe'\ngem 'rails'\n")
    (tmp_path / "requirements.txt").write_text("flask\n" + "#" * 1_100_000)
    assert names_in(tmp_path)[0] == {"rails"}


@pytest.mark.parametrize("content", ["project = 5", "[project", "[project]\ndependencies = [5, 'httpx']"])
def test_a_broken_manifest_does_not_keep_anybody_from_remembering(open_at: Open, tree: Path, content: str) -> None:
    (tree / "pyproject.toml").write_text(content)
    cortex = open_at(tree)
    memory = cortex.memories.capture("The deploy runs on Kubernetes.")
    assert [one.memory_id for one in cortex.graph.get("Kubernetes").mentions] == [memory.id]


# -- git -----------------------------------------------------------------------------------------


def test_authors_and_the_organisation_are_known(open_at: Open, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for author in ("Qwxyl Brztn", "ci-bot", "Žofie Nováková"):
        monkeypatch.setenv("GIT_AUTHOR_NAME", author)
        git(tree, "commit", "-q", "--allow-empty", "-m", "work")
    git(tree, "remote", "add", "origin", "git@github.com:Frobozz/weaver.git")
    cortex = open_at(tree)
    found = known(cortex)
    assert found.authors == {"Qwxyl Brztn", "Žofie Nováková"}
    assert {one.casefold() for one in found.organizations} == {"frobozz"}
    assert found.project == "weaver"
    assert ("Qwxyl Brztn", "Person") in named(cortex, "ask Qwxyl Brztn about it")
    memory = cortex.memories.capture("ask Qwxyl Brztn about it")
    assert [one.memory_id for one in cortex.graph.get("Qwxyl Brztn").mentions] == [memory.id]


def test_a_remote_on_this_machine_names_no_organisation(open_at: Open, tree: Path, tmp_path: Path) -> None:
    git(tree, "commit", "-q", "-m", "first")
    git(tmp_path, "clone", "-q", str(tree), "copy")
    assert known(open_at(tmp_path / "copy")).organizations == frozenset()


def test_the_manifest_of_the_root_counts_from_a_folder_within(open_at: Open, tree: Path) -> None:
    (tree / "package.json").write_text(MANIFESTS["package.json"][0])
    assert known(open_at(tree / "src")).packages == MANIFESTS["package.json"][1]


def test_a_repository_without_a_commit_is_read_as_far_as_it_goes(open_at: Open, tree: Path) -> None:
    (tree / "Gemfile").write_text(MANIFESTS["Gemfile"][0])
    found = known(open_at(tree))
    assert (found.authors, found.packages) == (frozenset(), {"rails", "sidekiq"})


def test_without_a_repository_the_folder_tells(open_at: Open, project: Path) -> None:
    (project / "requirements.txt").write_text("zorblax-client\n")
    cortex = open_at(project)
    found = known(cortex)
    assert (found.packages, found.authors, found.organizations) == ({"zorblax-client"}, frozenset(), frozenset())
    assert ("zorblax-client", "Technology") in named(cortex, "the queue is read by zorblax-client")


# -- scans ---------------------------------------------------------------------------------------


def test_a_scan_teaches_files_and_symbols_at_once(open_at: Open, tree: Path, clock: FakeClock) -> None:
    git(tree, "commit", "-q", "-m", "first")
    cortex = open_at(tree)
    assert (known(cortex).paths, known(cortex).symbols) == (frozenset(), frozenset())
    cortex.contexts.initialize(mode="full")
    assert "src/loom.py" in known(cortex).paths
    assert "thread_shuttle" in known(cortex).symbols
    text = "the fault is in thread_shuttle of src/loom.py"
    assert {("thread_shuttle", "Concept"), ("src/loom.py", "File")} <= named(cortex, text)
    assert known(cortex) is known(cortex)
    clock.advance(minutes=1)
    (tree / "src" / "heddle.py").write_text("def raise_heddle():\n    return 2\n")
    (tree / "Gemfile").write_text(MANIFESTS["Gemfile"][0])
    git(tree, "add", "-A")
    cortex.contexts.initialize(mode="full")
    assert "raise_heddle" in known(cortex).symbols
    assert "rails" in known(cortex).packages


def test_another_project_learns_nothing_of_it(open_at: Open, tree: Path, project: Path) -> None:
    (tree / "Gemfile").write_text(MANIFESTS["Gemfile"][0])
    open_at(tree).contexts.initialize(mode="full")
    found = known(open_at(project))
    assert (found.paths, found.symbols, found.packages) == (frozenset(), frozenset(), frozenset())
