"""Get the real release histories that `grounding_code` measures on: a git repository for each package.

    python bench/releases.py [PACKAGE ...]

Run by hand, once: it fetches the pinned archives with pip and npm into `.make/releases/archives` and makes
`.make/releases/PACKAGE` of them, one commit and one tag for each release, the changelog's section as the commit's
body. What is there already is kept; what cannot be had is named and left out. The benchmark never fetches anything.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import grounding_changelog

FOLDER = Path(__file__).resolve().parent.parent / ".make" / "releases"
ARCHIVES = "archives"
NOBODY = ("Release", "release@example.invalid")
MOST_BYTES = 2_000_000
"""A larger file is no source that anybody wrote: it is left out."""
_GENERATED = frozenset({".egg-info", ".dist-info", ".map", ".pyc", ".so"})


@dataclass(frozen=True)
class Package:
    """A package of a registry, the releases wanted, and the folders at its root that are built from others."""

    name: str
    registry: str
    versions: tuple[str, ...]
    built: frozenset[str] = frozenset()


def _python(name: str, *versions: str) -> Package:
    return Package(name, "python", versions)


def _npm(name: str, *versions: str, built: Sequence[str] = ()) -> Package:
    return Package(name, "npm", versions, frozenset(built))


PACKAGES = (
    _python("click", "8.0.4", "8.1.0", "8.1.8", "8.2.0", "8.2.1", "8.3.0"),
    _python("attrs", "21.4.0", "22.1.0", "22.2.0", "23.1.0", "23.2.0", "24.1.0"),
    _python("pluggy", "0.13.1", "1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"),
    _npm("redux", "4.1.2", "4.2.0", "4.2.1", "5.0.0", "5.0.1", built=("dist", "es", "lib")),
    _npm("execa", "6.1.0", "7.0.0", "7.2.0", "8.0.0", "8.0.1", "9.0.0"),
    _python("flask", "2.2.5", "2.3.0", "2.3.3", "3.0.0", "3.0.3", "3.1.0"),
    _python("httpx", "0.24.1", "0.25.0", "0.25.2", "0.26.0", "0.27.2", "0.28.0"),
    _python("packaging", "21.3", "22.0", "23.0", "23.1", "23.2", "24.0"),
    _python("starlette", "0.35.1", "0.36.0", "0.36.3", "0.37.0", "0.45.3", "0.46.0"),
    _python("tenacity", "8.2.3", "8.3.0", "8.4.0", "8.4.2", "8.5.0", "9.0.0"),
    _python("jinja2", "2.11.3", "3.0.0", "3.0.3", "3.1.0", "3.1.6"),
    _npm("axios", "0.27.2", "1.0.0", "1.3.6", "1.6.8", "1.7.0", "1.7.9", "1.8.0", built=("dist",)),
    _npm("immer", "8.0.4", "9.0.0", "9.0.21", "10.0.4", "10.1.0", built=("dist", "compat")),
    _npm("express", "4.16.4", "4.17.0", "4.17.3", "4.18.0", "4.21.2", "5.0.0"),
)
"""Where a release ends in `.0` (or has two parts) the one before it here is the one before it in the registry, or a
patch of the series just before: what such a release has and that one has not, it introduced."""


def fetched(package: Package, version: str, folder: Path) -> Path:
    """The archive of one release, from the folder or from the registry."""
    kept = folder / f"{package.name}-{version}"
    if not kept.is_dir():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            if package.registry == "npm":
                command = ["npm", "pack", "--silent", "--ignore-scripts", f"{package.name}@{version}"]
            else:
                command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
                command += ["--no-binary", ":all:", f"{package.name}=={version}"]
            subprocess.run(command, cwd=scratch, check=True, capture_output=True, text=True, timeout=300)
            files = [path for path in Path(scratch).iterdir() if path.is_file()]
            if len(files) != 1:
                raise FileNotFoundError(f"{len(files)} files came for {package.name} {version}")
            kept.mkdir()
            shutil.move(files[0], kept / files[0].name)
    return next(path for path in kept.iterdir() if path.is_file())


def members(archive: Path) -> Iterator[tuple[PurePosixPath, bytes, float]]:
    """The plain files of an archive, without the folder that holds them all: path, content, time of change."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as pack:
            for one in pack.infolist():
                if not one.is_dir() and one.file_size <= MOST_BYTES:
                    when = datetime(*one.date_time, tzinfo=UTC).timestamp()
                    yield PurePosixPath(one.filename), pack.read(one), when
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            opened = tar.extractfile(member) if member.isfile() and member.size <= MOST_BYTES else None
            if opened is not None:
                yield PurePosixPath(*PurePosixPath(member.name).parts[1:]), opened.read(), float(member.mtime)


def unpack(archive: Path, target: Path, built: frozenset[str]) -> tuple[float, list[str]]:
    """Write the sources of an archive below a folder; the newest time of change, and the paths."""
    newest, written = 0.0, []
    for path, content, when in members(archive):
        parts = path.parts
        inside = bool(parts) and not path.is_absolute() and not {"..", "", ".git"} & set(parts)
        made = any(PurePosixPath(part).suffix in _GENERATED for part in parts) or path.name.endswith(".min.js")
        if not inside or made or parts[0] in built or parts == ("PKG-INFO",) or b"\0" in content[:8000]:
            continue
        place = target.joinpath(*parts)
        if not place.resolve().is_relative_to(target.resolve()):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        newest = max(newest, when)
        written.append(path.as_posix())
    return newest, written


def message(repository: Path, version: str, paths: Sequence[str]) -> str:
    subject = f"Release {version}"
    place = grounding_changelog.changelog_path(paths)
    if place is None:
        return subject
    told = grounding_changelog.section((repository / place).read_text("utf-8", "replace"), version)
    return f"{subject}\n\n{told.body}" if told is not None and told.body else subject


def git(repository: Path, *arguments: str, when: float | None = None, told: str | None = None) -> str:
    """What git answers, with no configuration but its own."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    if when is not None:
        stamp = f"{int(when)} +0000"
        settings |= {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
        for role in ("AUTHOR", "COMMITTER"):
            settings |= {f"GIT_{role}_NAME": NOBODY[0], f"GIT_{role}_EMAIL": NOBODY[1]}
    command = ["git", "-C", str(repository), *arguments]
    environment = os.environ | settings
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, input=told).stdout


def make(package: Package, folder: Path) -> list[str]:
    """Make the repository of a package; what was left out, each in a line."""
    target = folder / package.name
    if (target / ".git").is_dir() and git(target, "tag").split():
        return [f"{package.name}: kept, {len(git(target, 'tag').split())} releases"]
    archives = folder / ARCHIVES
    archives.mkdir(parents=True, exist_ok=True)
    left: list[str] = []
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        repository = Path(scratch) / package.name
        repository.mkdir()
        git(repository, "init", "-q", "-b", "main")
        last = 946_684_800.0
        for version in package.versions:
            try:
                archive = fetched(package, version, archives)
            except (OSError, subprocess.SubprocessError) as failed:
                left.append(f"{package.name} {version}: left out, it could not be had ({type(failed).__name__})")
                continue
            for old in repository.iterdir():
                if old.name != ".git":
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
            newest, paths = unpack(archive, repository, package.built)
            last = max(newest, last + 3600)
            git(repository, "add", "-A", "-f")
            told = message(repository, version, paths)
            git(repository, "commit", "-q", "--cleanup=whitespace", "-F", "-", when=last, told=told)
            git(repository, "tag", f"v{version}")
        made = git(repository, "tag").split()
        if len(made) < 2:
            return [*left, f"{package.name}: not made, {len(made)} of {len(package.versions)} releases could be had"]
        shutil.move(repository, target)
    return [*left, f"{package.name}: made, {len(made)} releases"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("packages", nargs="*", help="only these (default: all)")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.packages) - {package.name for package in PACKAGES}
    if unknown:
        print(f"Unknown: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen.folder.mkdir(parents=True, exist_ok=True)
    worst = 0
    for package in PACKAGES:
        if not chosen.packages or package.name in chosen.packages:
            for line in make(package, chosen.folder):
                print(line, flush=True)
                worst = max(worst, int("left out" in line or "not made" in line))
    return worst


if __name__ == "__main__":
    sys.exit(main())
