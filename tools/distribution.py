"""Builds what others install, into dist/, and checks it: sdist, wheel, an MCPB bundle and server.json.

    python tools/distribution.py [REPOSITORY]

REPOSITORY is the address where the project lives, such as https://github.com/owner/name. Nothing in the sources knows
it: with it, the metadata of the wheel, the bundle and server.json name it, and server.json says where a release of it
offers the bundle. `make dist` runs this with the packages of the group dist.
"""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
# What the wheel is built from; the bundle holds the same.
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")
SCHEMA = "2025-12-11"
MANIFEST_CHECKER = "@anthropic-ai/mcpb@2.1.2"


def main() -> None:
    repository = sys.argv[1].rstrip("/").removesuffix(".git") if len(sys.argv) > 1 else ""
    if repository and not re.fullmatch(r"https://[\w.-]+/[\w./-]+", repository):
        sys.exit(f"REPOSITORY is not the https address of a repository: {repository}")
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        source = copy_sources(Path(folder) / "source", repository)
        _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source))
        packages = sorted(str(file) for file in out.iterdir())
        _run(sys.executable, "-m", "twine", "check", "--strict", *packages)
        _run(sys.executable, "-m", "check_wheel_contents", *(name for name in packages if name.endswith(".whl")))
        project = read_project(source)
        bundle = out / f"cortex-{project['version']}.mcpb"
        (source / "manifest.json").write_text(_json(manifest(project, repository)), "utf-8")
        _check_manifest(source / "manifest.json")
        write_bundle(source, bundle)
    described = server_json(project, repository, bundle)
    _check_server_json(described)
    (out / "server.json").write_text(_json(described), "utf-8")
    for file in sorted(out.iterdir()):
        print(f"{file.stat().st_size:>12,}  dist/{file.name}")


def copy_sources(target: Path, repository: str = "") -> Path:
    """A copy of the sources without what tools left in them, whose metadata names the repository."""
    target.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=ignored)
        else:
            shutil.copyfile(ROOT / name, target / name)
    if repository:
        with (target / "pyproject.toml").open("a", encoding="utf-8") as file:
            file.write(f'\n[project.urls]\nRepository = "{repository}"\nIssues = "{repository}/issues"\n')
    return target


def read_project(source: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    version = runpy.run_path(str(source / "src/cortex_py/version.py"))["__version__"]
    return {**project, "version": version}


def manifest(project: dict[str, Any], repository: str) -> dict[str, Any]:
    """The manifest of the bundle. The host runs it with uv, which installs the packages that pyproject.toml names."""
    snapshot = json.loads((ROOT / "src/cortex_py/surfaces/mcp/stdio/snapshot.json").read_text("utf-8"))
    (listed,) = [result["tools"] for result in snapshot["results"] if "tools" in result][:1]
    # The snapshot also has the tool that a server offers only if it is asked for.
    tools = [tool for tool in listed if tool["name"] != "memory"]
    described: dict[str, Any] = {
        "manifest_version": "0.4",
        "name": "cortex",
        "display_name": "Cortex",
        "version": project["version"],
        "description": project["description"],
        "author": {"name": project["authors"][0]["name"]},
        "license": project["license"],
        "keywords": project["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "src/cortex_py/__main__.py",
            "mcp_config": {
                "command": "uv",
                # Portable names: hosts of bundles withhold a server whose tools have dots in their names.
                "args": [
                    *("run", "--project", "${__dirname}", "--no-dev", "cortex", "serve", "--portable-names"),
                    *("--project", "${user_config.project}"),
                ],
            },
        },
        "user_config": {
            "project": {
                "type": "directory",
                "title": "Project folder",
                "description": "The folder whose memory this is. Memories of other projects stay out of its answers.",
                "required": True,
                "default": "${HOME}",
            }
        },
        "tools": [{"name": tool["name"].replace(".", "_")} for tool in tools],
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": project["requires-python"]},
        },
    }
    if repository:
        described["repository"] = {"type": "git", "url": repository}
    return described


def write_bundle(source: Path, bundle: Path) -> None:
    """A zip of the sources and the manifest, the same for the same files."""
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("manifest.json", *SOURCES):
            for file in sorted([source / name, *(source / name).rglob("*")]):
                inside = file.relative_to(source).as_posix()
                if file.is_file() and ".egg-info/" not in inside:
                    archive.writestr(zipfile.ZipInfo(inside), file.read_bytes(), zipfile.ZIP_DEFLATED)


def server_json(project: dict[str, Any], repository: str, bundle: Path) -> dict[str, Any]:
    """The entry of a registry. Without a repository it names no package: there is no address to get one from."""
    described: dict[str, Any] = {
        "$schema": f"https://static.modelcontextprotocol.io/schemas/{SCHEMA}/server.schema.json",
        "name": f"{_namespace(repository)}/cortex",
        "title": "Cortex",
        "description": project["description"],
        "version": project["version"],
    }
    if repository:
        host = urlsplit(repository).hostname or ""
        described["repository"] = {"url": repository, "source": host.partition(".")[0]}
        described["packages"] = [
            {
                "registryType": "mcpb",
                "identifier": f"{repository}/releases/download/v{project['version']}/{bundle.name}",
                "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
                "transport": {"type": "stdio"},
            }
        ]
    return described


def _namespace(repository: str) -> str:
    """The names that a registry gives to the owner of a repository: io.github.owner, or the host turned round."""
    if not repository:
        return "local.cortex"
    parts = urlsplit(repository)
    if parts.hostname == "github.com":
        return f"io.github.{parts.path.split('/')[1]}"
    return ".".join(reversed((parts.hostname or "").split(".")))


def _check_server_json(described: dict[str, Any]) -> None:
    import jsonschema

    # The package that checks such files brings the published schemas.
    schema = files(f"skillsaw.schemas.mcp_registry.v{SCHEMA.replace('-', '_')}") / "server.schema.json"
    jsonschema.validate(described, json.loads(schema.read_text("utf-8")))
    print("server.json fits its schema")


def _check_manifest(path: Path) -> None:
    npx = shutil.which("npx")
    if npx is None:
        sys.exit(f"The manifest of the bundle is checked by {MANIFEST_CHECKER}: install Node, which brings npx.")
    _run(npx, "--yes", MANIFEST_CHECKER, "validate", str(path))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT / "dist", stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"{Path(command[0]).name} {' '.join(command[1:3])} failed")


if __name__ == "__main__":
    main()
