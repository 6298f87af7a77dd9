"""Get the real histories that `suggestions` is measured on: which files changed together, and what was said of it.

    python bench/suggestion_histories.py [PACKAGE ...]

Run by hand, once: it fetches pinned archives, checked by their hash, into `.make/histories`. Each holds the log of its
project's version control, as it was written out for a release: one entry for each commit with its message and its
files. The benchmark never fetches anything. The history of this repository needs no fetching.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".make" / "histories"
# Where the archives lie is not ours to say: the folder of files of a package registry.
SERVER = os.environ.get("CORTEX_BENCH_ARCHIVES", "")
OWN = "this repository"
MOST_FILES = 40
_LONGEST_TASK = 200
_LONGEST_TEXT = 700
_SYMBOLS = 15


@dataclass(frozen=True)
class Package:
    """An archive with a log of commits, and how that is written.

    `stat`: git's own log with its list of files. `entries`: one entry of a dated block for each commit. `blocks`: a
    dated block is one piece of work, an entry for each of its files.
    """

    name: str
    kept_in: str
    form: str
    address: str
    sha256: str


PACKAGES = (
    Package(
        "qscintilla", "mercurial", "entries",
        "0e/70/2a71e5d6ac04fbf743e509c92dcd15cf114b1a223272702e373653c7bbd9/"
        "QScintilla-2.13.2.tar.gz",
        "355ad3d5375ae3ced454446971aa1f084a2c95613979f1ad204052079b7145dc",
    ),
    Package(
        "pyqt-builder", "mercurial", "entries",
        "22/c9/862c300cc29ab43664f539451c69aaf0d45766818a3a7671d6ec01635430/"
        "PyQt-builder-1.9.1.tar.gz",
        "8d669fe8fa434a3e47abde3b40d924d91932e8e19d88b20c778a3e1c77621ebc",
    ),
    Package(
        "dbus-python", "git", "stat",
        "af/6d/6ef666713c9903645aa76b4c4c888c17b7f5d77c636756a6c630647edfdd/"
        "dbus-python-0.84.0.tar.gz",
        "b85bc7aaf1a976627ca461b1ca7b0c4ddddff709f52fe44c9b2d1d7d8fac5906",
    ),
    Package(
        "pygtk", "git", "stat",
        "7c/18/fa4f2de77500dd62a314fd845ff6e903ac2ce551164cb421c5750969f799/"
        "pygtk-2.24.0.tar.bz2",
        "cd1c1ea265bd63ff669e92a2d3c2a88eb26bcd9e5363e0f82c896e649f206912",
    ),
    Package(
        "pycdio", "git", "entries",
        "73/02/e482cd03681c641aba3863216029814443c023ac772ea5c638b3ff8e699f/"
        "pycdio-2.1.1.tar.gz",
        "61734db8c554b7b1a2cb2da2e2c15d3f9f5973a57cfb06f8854c38029004a9f8",
    ),
    Package(
        "sip", "mercurial", "entries",
        "98/3a/f1b69503d6129ba3b06cf066740f5188aa20bd32cfd2e788ca58c073b2ba/"
        "sip-6.2.0.tar.gz",
        "34d2270b4ed8d7f8e55cc4ba821d718ee40d9bb2449c6b5cf8a10139d5c121ac",
    ),
    Package(
        "pyqt5", "mercurial", "entries",
        "8e/a4/d5e4bf99dd50134c88b95e926d7b81aad2473b47fde5e3e4eac2c69a8942/"
        "PyQt5-5.15.4.tar.gz",
        "2a69597e0dd11caabe75fae133feca66387819fc9bc050f547e5551bce97e5be",
    ),
    Package(
        "pyxmpp", "subversion", "entries",
        "9a/33/beaf45c4fe9ef4ff3e337b020d0f92bfabc72a7486afe4d07f43fb12c964/"
        "pyxmpp-1.1.0.tar.gz",
        "118bc9f96d84dff9d52bb600f5154fdfd7f853a965dc9a60322f681ca952eb14",
    ),
    Package(
        "pyopenssl", "bazaar", "blocks",
        "8b/20/8f4230b281a2a9d0ee9e24fd89aeded0b25d40c84b3d61100a96438e1626/"
        "pyOpenSSL-0.13.tar.gz",
        "21e12b03abaa0e04ecc8cd9c251598f71bae11c9f385304234e4ea5618c6163b",
    ),
    Package(
        "psycopg2", "subversion", "blocks",
        "e0/1c/f0843f50a69fba3db880e9b267d36f6709bbf31a36fc46b82f75e8975ede/"
        "psycopg2-2.0.14.tar.gz",
        "902607cdbe1195a00694d2b477eed8429eda433caaa0eb6ff7f80883e1c17ac7",
    ),
)  # fmt: skip
STUDIED = ("qscintilla", "pyqt-builder")
"""What settings may be judged by, besides this repository; the others are for the report alone."""


@dataclass(frozen=True)
class Step:
    """One commit: what was said of it, and the files it changed, in the order of its log."""

    task: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class History:
    """The steps of a project, the oldest first, and a text for each of its files."""

    name: str
    steps: tuple[Step, ...]
    texts: dict[str, str]


def latest(steps: Sequence[Step], most: int) -> tuple[Step, ...]:
    """The newest steps, so many of them with two files and more."""
    left = most
    for number in range(len(steps) - 1, -1, -1):
        left -= len(steps[number].files) > 1
        if left == 0:
            return tuple(steps[number:])
    return tuple(steps)


def packaged(package: Package, most: int, folder: Path = FOLDER) -> History | None:
    """The history in an archive; None where it was not fetched."""
    place = folder / package.address.rsplit("/", 1)[-1]
    if not place.is_file():
        return None
    contents: dict[str, str] = {}
    with tarfile.open(place) as tar:
        for member in tar:
            opened = tar.extractfile(member) if member.isfile() and member.size < 2_000_000 else None
            if opened is not None:
                contents[member.name.partition("/")[2]] = opened.read().decode("utf-8", "replace")
    log = contents["ChangeLog"]
    found = list(_stat(log)) if package.form == "stat" else list(_dated(log, package.form == "blocks"))
    steps = latest([step for step in reversed(found) if len(step.files) <= MOST_FILES], most)
    files = sorted({file for step in steps for file in step.files})
    # A file that was moved since is known by its name, where only one has it.
    named: dict[str, list[str]] = {}
    for path in contents:
        named.setdefault(path.rsplit("/", 1)[-1], []).append(path)
    texts = {}
    for file in files:
        moved = named.get(file.rsplit("/", 1)[-1], [])
        path = file if file in contents or len(moved) != 1 else moved[0]
        texts[file] = told(file, contents.get(path, ""))
    return History(package.name, steps, texts)


def own(most: int) -> History:
    """The history of this repository, without the commits that change very many files at once."""
    log = _git("log", "--reverse", "--no-merges", "--format=%x01%s", "--name-only")
    steps = []
    for block in log.split("\x01")[1:]:
        subject, *files = [line for line in block.splitlines() if line]
        if 1 <= len(files) <= MOST_FILES:
            steps.append(Step(subject[:_LONGEST_TASK], tuple(files)))
    kept = latest(steps, most)
    names = sorted({file for step in kept for file in step.files})
    texts = {}
    for file in names:
        shown = subprocess.run(["git", "-C", str(ROOT), "show", f"HEAD:{file}"], check=False, capture_output=True)
        texts[file] = told(file, shown.stdout.decode("utf-8", "replace"))
    return History(OWN, kept, texts)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


# -- reading logs --------------------------------------------------------------------------------

_COMMIT = re.compile(r"^commit [0-9a-f]{7,40}.*$", re.MULTILINE)
_CHANGED = re.compile(r"^ (\S+) +\| +(?:\d+|Bin)", re.MULTILINE)
_DATE = re.compile(r"^\d{4}-\d\d-\d\d\b.*$", re.MULTILINE)
_ENTRY = re.compile(r"^\s+\* ", re.MULTILINE)
_ASIDE = re.compile(r" ?\([^()]*\)")
_NAME = re.compile(r"[\w.+~/-]+")
_MARKS = re.compile(r"\s*(?:\[[^\]]*\]|<[^>]*>)\s*$")


def _stat(log: str) -> Iterator[Step]:
    for commit in _COMMIT.split(log)[1:]:
        lines = [line.strip() for line in commit.splitlines() if line.startswith("    ")]
        subject = " ".join(" ".join(lines).split())[:_LONGEST_TASK]
        files = tuple(file for file in _CHANGED.findall(commit) if not file.startswith("..."))
        if subject and files:
            yield Step(subject, files)


def _dated(log: str, whole: bool) -> Iterator[Step]:
    for block in _DATE.split(log)[1:]:
        steps = [step for entry in _ENTRY.split(block)[1:] if (step := _entry(entry)) is not None]
        if whole and steps:
            task = " ".join(step.task for step in steps)[:_LONGEST_TASK]
            yield Step(task, tuple(dict.fromkeys(file for step in steps for file in step.files)))
        elif not whole:
            yield from steps


def _entry(entry: str) -> Step | None:
    # A name that was too long for its line goes on in the next.
    joined = " ".join(entry.split()).replace(" /", "/")
    head, colon, task = joined.partition(": ")
    files = [name.strip() for name in _ASIDE.sub("", head).split(",")]
    if not colon or not all(_NAME.fullmatch(file) for file in files):
        return None
    task = task.removeprefix("- ")
    while (short := _MARKS.sub("", task)) != task:
        task = short
    named = [file for file in files if "/" in file or "." in file or file.isupper() or file[:1].isupper()]
    return Step(task[:_LONGEST_TASK], tuple(dict.fromkeys(named))) if task.strip() and named else None


# -- what a file is remembered as ----------------------------------------------------------------

_COMMENT = re.compile(r'^\s*(?:#(?!!|include|if|def|end)|//+|/?\*+|"""|\'\'\'|<!--|\.\. )\s*(\S.*)$')
_LEGAL = re.compile(r"copyright|licen[sc]e|permission|warrant|redistribut|all rights|coding:|vim:|-\*-", re.IGNORECASE)
_DEFINED = re.compile(
    r"^\s*(?:(?:async )?def|class|struct|interface|%\w+|function)\s+(\w{3,})|^(\w{4,}) ?\(", re.MULTILINE
)


def told(path: str, content: str) -> str:
    """A file as a memory: its path, what its first comments say, and what it defines."""
    comments = []
    for line in content[:6_000].splitlines():
        match = _COMMENT.match(line)
        if match is not None and not _LEGAL.search(line):
            comments.append(match[1].strip("*/-\"' "))
        if len(comments) == 4:
            break
    names = dict.fromkeys(a or b for a, b in _DEFINED.findall(content[:60_000]))
    parts = [path, *filter(None, comments), " ".join(list(names)[:_SYMBOLS])]
    return "\n".join(part for part in parts if part)[:_LONGEST_TEXT]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("packages", nargs="*", help="only these (default: all)")
    chosen = parser.parse_args(arguments)
    if not SERVER:
        print("Set CORTEX_BENCH_ARCHIVES to the address below which a package registry keeps its files, with a slash.")
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    worst = 0
    for package in PACKAGES:
        place = FOLDER / package.address.rsplit("/", 1)[-1]
        if (chosen.packages and package.name not in chosen.packages) or place.is_file():
            continue
        try:
            with urllib.request.urlopen(SERVER + package.address, timeout=120) as answer:
                content = answer.read()
        except OSError as failed:
            print(f"{package.name}: could not be had ({type(failed).__name__})")
            worst = 1
            continue
        if hashlib.sha256(content).hexdigest() != package.sha256:
            print(f"{package.name}: not what was pinned, left out")
            worst = 1
            continue
        place.write_bytes(content)
    for package in PACKAGES:
        found = packaged(package, 10**9)
        if found is not None:
            several = [step for step in found.steps if len(step.files) > 1]
            print(
                f"{package.name}: {len(found.steps)} commits, {len(several)} of several files, {len(found.texts)} files"
            )
    return worst


if __name__ == "__main__":
    sys.exit(main())
