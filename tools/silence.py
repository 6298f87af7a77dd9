"""What the packages that Cortex runs on do by themselves: files that they write, connections, names that they look up.

    python tools/silence.py        import each locked package under strace and write tools/silence.json

`make silence` runs it. Needs strace, and what `make test` installs. A test fails while a locked version is not in
tools/silence.json: run this, read what it prints, and correct docs/explain/dependencies.md where it is no longer so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import lock

ROOT = Path(__file__).parents[1]
LOOKED = ROOT / "tools" / "silence.json"
_CALLS = (
    *("open", "openat", "openat2", "creat", "mkdir", "mkdirat", "mknod", "mknodat", "truncate"),
    *("rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rmdir"),
    *("connect", "bind", "sendto", "sendmsg", "sendmmsg"),
)
# An unfinished line holds all arguments; the one that resumes it begins with `<...` and only has the result.
_LINE = re.compile(rf"^\d+ +({'|'.join(_CALLS)})\((.*)")
_PATH = re.compile(r'(?:(?:\d+|AT_FDCWD)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_ADDRESS = re.compile(r'sa_family=AF_(\w+)(?:.*?htons\((\d+)\))?(?:.*?"([^"]*)")?')
_NAMES = ("/etc/resolv.conf", "/etc/hosts", "/var/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve")
_WORDS = re.compile(
    rb"telemetry|analytics|posthog|sentry[._-]?sdk|segment\.io|mixpanel|amplitude|do_not_track|deviceid"
    rb"|check_for_update|update_check|OneCollector",
    re.IGNORECASE,
)
_CODE = {".py", ".so"}
# What has to be imported before a module.
_BEFORE = {"psycopg_binary": "psycopg"}
# What differs from one run to the next.
_CHANGING = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=_)\d{8}T[\d+]+_\d+")


def traced(log: Path) -> list[str]:
    """The words before a command that write what it and its children do to `log`. The command is the process itself."""
    calls = ",".join(f"?{name}" for name in _CALLS)
    return ["strace", "-D", "-f", "-qq", "-y", "--seccomp-bpf", "-e", f"trace={calls}", "-o", str(log)]


def noises(log: Path, allowed: Iterable[Path]) -> list[str]:
    """What a traced command changed outside the allowed folders or said to somebody off this machine."""
    inside = [*map(str, allowed), "/dev/null", "/dev/tty", "/proc/self"]
    with log.open(encoding="utf-8", errors="replace") as lines:
        return list(dict.fromkeys(noise for line in lines if (noise := _noise(line, inside))))


def _noise(line: str, inside: list[str]) -> str | None:
    if not (match := _LINE.match(line)):
        return None
    name, words = match.groups()
    if name in ("connect", "sendto", "sendmsg", "sendmmsg", "bind"):
        return _talk(name, words)
    paths = [os.path.normpath(Path(folder, path)) for folder, path in _PATH.findall(words)]
    for path in paths[name.startswith("symlink") :]:
        if path in _NAMES:
            return f"looks a name up: {path}"
        reads = name.startswith("open") and not re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC)", words)
        if not reads and not any(path == one or path.startswith(f"{one}/") for one in inside):
            return f"{name} {path}"
    return None


def _talk(name: str, words: str) -> str | None:
    for family, port, host in _ADDRESS.findall(words):
        here = family == "UNIX" or (family in ("INET", "INET6") and host.startswith(("127.", "::1", "::ffff:127.")))
        if not here or port == "53" or host in _NAMES:
            return f"{name} {family} {host} {port}".rstrip()
    return None


def locked() -> dict[str, str]:
    """Each package that an installation may have, with its version: the default one, a server's, and the extras."""
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", lock.part(["runtime", "server", "extras"]), re.MULTILINE)
    return {_plain(name): version for name, version in sorted(found)}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _modules(package: str) -> Iterator[str]:
    """What can be imported of a package: its topmost packages and modules."""
    listed = [Path(one) for one in files(package) or () if one.suffix in _CODE and ".." not in one.parts]
    packages = {one.parent for one in listed if one.name.startswith("__init__.")}
    yield from (".".join(one.parts) for one in sorted(packages) if not packages & set(one.parents))
    yield from (one.name.partition(".")[0] for one in sorted(listed) if len(one.parts) == 1)


def _look(package: str, folder: Path) -> dict[str, list[str]] | None:
    """What importing a package does in an environment of its own, and the words of telemetry in its code."""
    try:
        code = [Path(str(one.locate())) for one in files(package) or () if one.suffix in _CODE]
    except PackageNotFoundError:
        return None
    seen: set[str] = set()
    home, log = folder / "home", folder / "log"
    for module in _modules(package):
        home.mkdir(exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [*traced(log), sys.executable, "-c", f"import {_BEFORE.get(module, module)}"],
            env=environment,
            cwd=folder,
            capture_output=True,
        )
        seen |= {f"{module}: {_CHANGING.sub('*', one.replace(str(folder), ''))}" for one in noises(log, ())}
        if done.returncode:
            print(f"{package}: import {module} fails: {done.stderr.decode().strip().splitlines()[-1]}")
        shutil.rmtree(home)
    texts = (one.read_bytes() for one in code if one.is_file())
    words = {word.decode().lower() for text in texts for word in _WORDS.findall(text)}
    return {"seen": sorted(seen), "words": sorted(words)}


def main() -> None:
    before = json.loads(LOOKED.read_text("utf-8")) if LOOKED.exists() else {}
    after = {}
    with tempfile.TemporaryDirectory(prefix="cortex-silence-") as folder:
        for package, version in locked().items():
            found = _look(package, Path(folder))
            after[package] = {"version": version, **(found or {"seen": ["not installed here"], "words": []})}
            if after[package] != before.get(package):
                print(f"{package} {version}: {after[package]['seen'] or 'silent'}, words {after[package]['words']}")
    lines = ",\n".join(f"{json.dumps(package)}: {json.dumps(found)}" for package, found in after.items())
    LOOKED.write_text(f"{{\n{lines}\n}}\n", "utf-8")


if __name__ == "__main__":
    main()
