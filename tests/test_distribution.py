"""What is built to be installed elsewhere is whole and says what it is. `make dist` checks more, with others' tools."""

from __future__ import annotations

import email
import hashlib
import re
import subprocess
import sys
import zipfile
from email.message import Message
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cortex_py
from cases import each
from cortex_py.surfaces.cli import cli
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.version import __version__

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
REPOSITORY = "https://github.com/owner/name"


@pytest.fixture(scope="module")
def distribution() -> ModuleType:
    """The program that `make dist` runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        import distribution

        return distribution


@pytest.fixture(scope="module")
def source(distribution: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copied: Path = distribution.copy_sources(tmp_path_factory.mktemp("dist") / "source", REPOSITORY)
    return copied


@pytest.fixture(scope="module")
def wheel(source: Path) -> zipfile.ZipFile:
    build = "import setuptools.build_meta as back_end; back_end.build_wheel('.')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True, timeout=120)
    (path,) = source.glob("*.whl")
    return zipfile.ZipFile(path)


def _metadata(wheel: zipfile.ZipFile, name: str) -> str:
    return wheel.read(f"cortex_py-{__version__}.dist-info/{name}").decode()


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel: zipfile.ZipFile) -> None:
    package = Path(cortex_py.__file__).parent
    ours = {
        file.relative_to(package.parent).as_posix()
        for file in package.rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }
    built = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert built == ours


def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    found: Message = email.message_from_string(_metadata(wheel, "METADATA"))
    assert (found["Name"], found["Version"]) == ("cortex-py", __version__)
    assert found["Author"] == "Cortex contributors"
    assert (found["License-Expression"], found["Requires-Python"]) == ("MIT", ">=3.11")
    assert found["Keywords"]
    assert "Typing :: Typed" in found.get_all("Classifier", [])
    assert f"Repository, {REPOSITORY}" in found.get_all("Project-URL", [])
    assert found.get_payload().startswith("# Cortex")  # type: ignore[union-attr]
    (command,) = re.findall(r"^cortex = (.*)$", _metadata(wheel, "entry_points.txt"), re.MULTILINE)
    assert callable(EntryPoint("cortex", command, "console_scripts").load())


def test_the_sources_do_not_say_where_the_project_lives(distribution: ModuleType, tmp_path: Path) -> None:
    plain = distribution.read_project(distribution.copy_sources(tmp_path / "source"))
    assert "urls" not in plain
    described = distribution.server_json(plain, "", tmp_path / "none.mcpb")
    assert not {"packages", "repository"} & described.keys()


def test_the_bundle_starts_a_server_with_names_that_its_hosts_take(distribution: ModuleType, source: Path) -> None:
    described: dict[str, Any] = distribution.manifest(distribution.read_project(source), REPOSITORY)
    assert described["version"] == __version__
    assert (source / described["server"]["entry_point"]).is_file()
    arguments = described["server"]["mcp_config"]["args"]
    command, *options = arguments[arguments.index("cortex") + 1 :]
    known = {word for option in cli.get_command(None, command).params for word in option.opts}  # type: ignore[arg-type,union-attr]
    assert {word for word in options if word.startswith("--")} <= known
    names = [tool["name"] for tool in described["tools"]]
    assert names == [spec.name.replace(".", "_") for spec in TOOLS]
    assert all(re.fullmatch(r"[\w-]{1,64}", name) for name in names)


@pytest.mark.slow
def test_a_bundle_is_the_same_for_the_same_files(distribution: ModuleType, source: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.mcpb", tmp_path / "second.mcpb"
    (source / "manifest.json").write_text("{}")
    distribution.write_bundle(source, first)
    distribution.write_bundle(source, second)
    assert first.read_bytes() == second.read_bytes()
    assert {name.partition("/")[0] for name in zipfile.ZipFile(first).namelist()} == {
        *("manifest.json", "pyproject.toml", "README.md", "LICENSE", "src")
    }
    (package,) = distribution.server_json(distribution.read_project(source), REPOSITORY, first)["packages"]
    assert package["identifier"] == f"{REPOSITORY}/releases/download/v{__version__}/first.mcpb"
    assert package["fileSha256"] == hashlib.sha256(second.read_bytes()).hexdigest()


@each("wrong", ["http://host/owner/name", "owner/name", 'https://host/"\nx = "1', "https://host"])
def test_an_address_that_is_none_is_refused(wrong: str) -> None:
    command = [sys.executable, str(ROOT / "tools/distribution.py"), wrong]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "REPOSITORY is not the https address" in done.stderr


def test_nobody_is_sent_to_a_package_that_is_not_published() -> None:
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *SOURCE.rglob("*.py"), *SOURCE.rglob("*.md")]
    wrong = re.compile(
        r"(pipx? install|uvx|uv tool install|uv add)[^\n`]*[ '\"]cortex[-_]py(?![\w.-]*\.whl)|cortex-py\["
    )
    assert [file.name for file in texts if wrong.search(file.read_text("utf-8"))] == []
