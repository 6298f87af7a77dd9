"""The conformance suite: installed where git does not look, run against an address, its results read.

Nothing here knows about Cortex.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Check", "Requirements", "Suite", "SuiteUnavailable", "read_results"]

SUITE = "@modelcontextprotocol/conformance"
SUITE_VERSION = "0.2.0-alpha.12"
NODE_MAJOR = 22

_INSTALL_SECONDS = 600
_RUN_SECONDS = 600
_QUICK_SECONDS = 60
_RESULT = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


class SuiteUnavailable(Exception):
    """Node, npm or the suite cannot be had here. The message is one line."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `untestable` is the suite's own word for: the server lacks the fixture this needs."""

    id: str
    status: str
    message: str = ""
    untestable: bool = False

    @property
    def passed(self) -> bool:
        return self.status == "SUCCESS"

    @property
    def failed(self) -> bool:
        return self.status == "FAILURE"

    @property
    def objects(self) -> bool:
        """Whether it finds fault at all, be it a failure or a warning."""
        return self.status in ("FAILURE", "WARNING")


@dataclass(frozen=True, slots=True)
class Requirements:
    """The server scenarios of one revision: those that count, and those that are only reported."""

    scored: tuple[str, ...]
    unscored: tuple[str, ...]


class Suite:
    """The suite in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._node = folder / "node_modules" / ".bin" / "node"
        self._package = folder / "node_modules" / SUITE

    def install(self) -> None:
        """Make sure that the suite and a Node that can run it are there; the network is needed only once."""
        if self._complete():
            return
        npm = shutil.which("npm")
        if npm is None:
            raise SuiteUnavailable(f"there is no npm here to install Node {NODE_MAJOR} and {SUITE} with")
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._folder / "npm.log"
        command = [npm, "install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--prefix", "."]
        packages = [f"{SUITE}@{SUITE_VERSION}", f"node@{NODE_MAJOR}"]
        try:
            with log.open("wb") as output:
                done = subprocess.run(
                    [*command, *packages],
                    cwd=self._folder,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_INSTALL_SECONDS,
                    check=False,
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SuiteUnavailable(f"npm did not finish: {error}") from error
        if done.returncode != 0 or not self._complete():
            raise SuiteUnavailable(f"npm could not install {' and '.join(packages)}; see {log}")

    def requirements(self, revision: str) -> Requirements:
        """What a revision requires of a server."""
        required, _, reported = self._call("list", "--requirements", revision).partition("never scored")
        servers = required.partition("Server scenarios")[2].partition("Client scenarios")[0]
        scored = tuple(re.findall(r"^ +- (\S+)$", servers, re.MULTILINE))
        unscored = tuple(re.findall(r"^ +- (\S+) \[server\]$", reported, re.MULTILINE))
        if not scored:
            raise SuiteUnavailable(f"{SUITE} names no scenarios for {revision}")
        return Requirements(scored, unscored)

    def run(self, url: str, results: Path, *options: str) -> int:
        """Run against a server; each scenario leaves its findings in a folder. The suite's exit code."""
        results.mkdir(parents=True, exist_ok=True)
        command = [self._node, self._entry(), "server", "--url", url, "--output-dir", results, *options]
        with (results / "output.txt").open("ab") as output:
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=_RUN_SECONDS, check=False)
        return done.returncode

    def _complete(self) -> bool:
        manifest = self._package / "package.json"
        if not manifest.is_file() or json.loads(manifest.read_text("utf-8"))["version"] != SUITE_VERSION:
            return False
        try:
            told = subprocess.run([self._node, "--version"], capture_output=True, text=True, timeout=_QUICK_SECONDS)
        except OSError:
            return False
        return told.returncode == 0 and told.stdout.startswith(f"v{NODE_MAJOR}.")

    def _call(self, *arguments: str) -> str:
        command = [self._node, self._entry(), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=_QUICK_SECONDS, check=True).stdout

    def _entry(self) -> Path:
        return self._package / "dist" / "index.js"


def read_results(folder: Path) -> dict[str, list[Check]]:
    """The findings by scenario. A scenario that broke off has left a folder without any."""
    found: dict[str, list[Check]] = {}
    for place in sorted(folder.iterdir()):
        if match := _RESULT.fullmatch(place.name):
            found[match["scenario"]] = _checks(place / "checks.json")
    return found


def _checks(file: Path) -> list[Check]:
    if not file.is_file():
        return [Check("run", "FAILURE", "the scenario broke off")]
    return [
        Check(
            id=check["id"],
            status=check["status"],
            message=check.get("errorMessage") or "",
            untestable=bool((check.get("details") or {}).get("untestable")),
        )
        for check in json.loads(file.read_text("utf-8"))
    ]
