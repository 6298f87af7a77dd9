"""`requirements.txt`, the one lock file: each package once, with its hashes and the groups that install it.

    python tools/lock.py runtime build     print what these groups install, in the form that pip reads
    python tools/lock.py --merge FOLDER    write the lock file from FOLDER/GROUP.txt, as pip-compile left them

`make lock` resolves each group, `make setup` and `make test` install some. The whole file is one that pip reads, too.
Runs with the standard library alone, before anything is installed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements.txt"
GROUPS = ("runtime", "build", "server", "extras", "dev", "dist")
HEAD = """# The versions that `make` installs, locked with their hashes. Written by `make lock`, read by tools/lock.py.
# runtime: what Cortex needs; build: what installs it; server: with the extras postgres and otel; extras: with all that
# are locked; dev: tests and tools; dist: what builds and checks packages.
"""
_PACKAGE = re.compile(r"[A-Za-z0-9][\w.-]*==")
_MARK = "    # groups: "


def entries(text: str) -> dict[str, list[str]]:
    """The lines of each package, with its hashes and without comments, by the line that names it."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if _PACKAGE.match(line):
            lines = found[line] = []
        elif line.lstrip().startswith("--hash="):
            lines.append(line.removesuffix("\\").rstrip())
    return found


def part(groups: list[str]) -> str:
    """The packages of these groups."""
    unknown = set(groups) - set(GROUPS)
    if unknown or not groups:
        raise SystemExit(f"Name some of the groups {', '.join(GROUPS)}; {sorted(unknown)} are none.")
    kept = []
    for entry in re.split(rf"\n(?={_PACKAGE.pattern})", LOCK.read_text("utf-8"))[1:]:
        _, _, members = entry.partition(_MARK)
        if set(groups) & set(members.split()):
            kept.append(entry.rstrip() + "\n")
    return "".join(kept)


def merge(folder: Path) -> str:
    """One file of all groups; they must agree about the version of a package."""
    hashes: dict[str, set[str]] = {}
    members: dict[str, list[str]] = {}
    for group in GROUPS:
        for name, lines in entries((folder / f"{group}.txt").read_text("utf-8")).items():
            hashes.setdefault(name, set()).update(lines)
            members.setdefault(name, []).append(group)
    packages = [name.partition("==")[0] for name in hashes]
    if twice := {name for name in packages if packages.count(name) > 1}:
        raise SystemExit(f"Groups differ about the version of {', '.join(sorted(twice))}.")
    text = [HEAD]
    for name in sorted(hashes):
        text += [name, *(f"{line} \\" for line in sorted(hashes[name])[:-1]), max(hashes[name])]
        text.append(_MARK + " ".join(members[name]))
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--merge"]:
        LOCK.write_text(merge(Path(sys.argv[2])), "utf-8")
    else:
        sys.stdout.write(part(sys.argv[1:]))
