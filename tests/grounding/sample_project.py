"""A small project of several languages with a history of eight commits, made for each test that needs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cortex_py import Cortex
from cortex_py.parts.verify.verification import Finding, Verification

from helpers import git
from stub_backend import StubBackend

AUTH = '''"""Who a user is."""

from __future__ import annotations

import hashlib
import time

from app.store import Store

MAX_ATTEMPTS = 5
SESSION_SECONDS = 900


class AuthError(Exception):
    """A login that was refused."""


class Sessions:
    """The sessions that are open."""

    def __init__(self, store: Store, lifetime: int = SESSION_SECONDS) -> None:
        self.store = store
        self.lifetime = lifetime

    def open_session(self, user: str) -> str:
        token = hashlib.sha256(f"{user}{time.time()}".encode()).hexdigest()
        self.store.put(token, user)
        return token

    def close_session(self, token: str) -> None:
        self.store.drop(token)


def login(user: str, password: str, attempts: int = 0) -> bool:
    """Check a password; refused after too many attempts."""
    if attempts >= MAX_ATTEMPTS:
        raise AuthError(user)
    return len(password) > 8


def rotate_token(sessions: Sessions, token: str) -> str:
    user = sessions.store.get(token)
    sessions.close_session(token)
    return sessions.open_session(user)
'''
STORE = '''"""What is kept."""

import sqlite3


class Store:
    def __init__(self, path: str) -> None:
        self.path = path
        self.rows: dict[str, str] = {}

    def put(self, key: str, value: str) -> None:
        self.rows[key] = value

    def get(self, key: str) -> str:
        return self.rows[key]

    def drop(self, key: str) -> None:
        self.rows.pop(key, None)


def connect(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=30)
'''
LEGACY = '''"""What nobody uses any more."""


def old_login(user):
    return bool(user)
'''
CLIENT = """import axios from "axios";

export interface SessionView {
  token: string;
  expires: number;
}

export class ApiClient {
  constructor(private readonly base: string) {}

  async fetchSession(token: string): Promise<SessionView> {
    const answer = await axios.get(`${this.base}/session/${token}`);
    return answer.data;
  }
}

export function formatExpiry(view: SessionView): string {
  return new Date(view.expires).toISOString();
}
"""
SERVER = """package main

import "fmt"

const DefaultPort = 8080

type Handler struct {
	Name string
}

func (h *Handler) ServeSession(token string) error {
	fmt.Println(token)
	return nil
}

func main() {
	h := &Handler{Name: "main"}
	_ = h.ServeSession("x")
}
"""
PYPROJECT = """[project]
name = "sample"
version = "{version}"
requires-python = ">=3.11"
dependencies = [
    "requests>=2.31",
    "pydantic==2.7.1",
]
"""
PACKAGE = """{
  "name": "sample-web",
  "version": "0.4.0",
  "dependencies": {"axios": "^1.6.2"},
  "devDependencies": {"vitest": "1.4.0"}
}
"""
CONFIG = """server:
  port: 8080
  workers: 4
cache:
  ttl_seconds: 300
"""
CHANGELOG = """# Changelog

## 1.1.0

- `rotate_token` replaces a session's token.
- `old_login` is gone.

## 1.0.0

- `login` and `Sessions`.
"""
JUNIT = """<?xml version="1.0"?>
<testsuites>
  <testsuite name="pytest" tests="12" failures="2" errors="0" skipped="1">
{cases}
  </testsuite>
</testsuites>
"""


def junit(passed: int = 9, failed: int = 2, skipped: int = 1) -> str:
    inner = {"": passed, "<failure/>": failed, "<skipped/>": skipped}
    cases = [
        f'    <testcase classname="t" name="{at}{number}">{tag}</testcase>'
        for at, (tag, count) in enumerate(inner.items())
        for number in range(count)
    ]
    return JUNIT.format(cases="\n".join(cases))


def fill(root: Path, contents: dict[str, str | bytes | None]) -> Path:
    for path, content in contents.items():
        place = root / path
        if content is None:
            place.unlink()
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def commit(root: Path, contents: dict[str, str | bytes | None], message: str, day: int = 1) -> str:
    """One commit, made on a day of January 2026."""
    fill(root, contents)
    git(root, "add", "--all")
    date = {"GIT_AUTHOR_DATE": f"2026-01-{day:02} 12:00 +0000", "GIT_COMMITTER_DATE": f"2026-01-{day:02} 12:00 +0000"}
    subprocess.run(
        ["git", "-C", root, "commit", "-q", "--allow-empty", "-m", message], check=True, env={**os.environ, **date}
    )
    return git(root, "rev-parse", "HEAD")


def make_repository(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    return root


def make_sample(root: Path) -> dict[str, str]:
    """The project; the ids of its commits by a short word for each."""
    make_repository(root)
    before = AUTH[: AUTH.index("\n\ndef rotate_token")].replace("MAX_ATTEMPTS = 5", "MAX_ATTEMPTS = 3") + "\n"
    ids = {}
    ids["first"] = commit(root, {"README.md": "# Sample\n\nSessions for small services.\n"}, "Start the project", 1)
    ids["store"] = commit(root, {"app/__init__.py": "", "app/store.py": STORE}, "Add the store", 2)
    ids["auth"] = commit(
        root,
        {"app/auth.py": before, "app/legacy.py": LEGACY, "pyproject.toml": PYPROJECT.format(version="1.0.0")},
        "Add login and sessions",
        3,
    )
    git(root, "tag", "v1.0.0")
    ids["web"] = commit(root, {"web/src/client.ts": CLIENT, "web/package.json": PACKAGE}, "Add the web client", 4)
    ids["server"] = commit(root, {"cmd/server.go": SERVER, "config.yaml": CONFIG}, "Add the Go server", 5)
    ids["rotate"] = commit(root, {"app/auth.py": AUTH}, "Rotate tokens and allow five attempts", 6)
    ids["legacy"] = commit(root, {"app/legacy.py": None}, "Remove the legacy login", 7)
    ids["release"] = commit(
        root, {"pyproject.toml": PYPROJECT.format(version="1.1.0"), "CHANGELOG.md": CHANGELOG}, "Release 1.1.0", 8
    )
    git(root, "tag", "-a", "-m", "1.1.0", "v1.1.0")
    return ids


def open_at(home: Path, root: Path) -> Cortex:
    return Cortex.open(home, project=root, backend=StubBackend())


def only(found: Verification) -> Finding:
    """The one finding of a text with one claim."""
    (finding,) = found.findings
    return finding


def locations(finding: Finding) -> list[str]:
    return [one.location for one in finding.evidence]
