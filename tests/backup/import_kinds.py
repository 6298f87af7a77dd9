"""A small source of every kind that can be imported, and what comes out of it.

`import_samples/kinds.json` says for each kind which files it has, what real programs wrote beside it, the path to
import, and the texts of the memories or turns that come out, in order.
"""

from __future__ import annotations

import json
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile, copytree
from typing import Any

SAMPLES = Path(__file__).with_name("import_samples")


@dataclass(frozen=True)
class Kind:
    """Makes a source below a folder; `contents` are the texts of the memories or turns that it gives, in order."""

    name: str
    given: dict[str, Any]

    @property
    def contents(self) -> tuple[str, ...]:
        return tuple(self.given["contents"])

    @property
    def is_turn(self) -> bool:
        return bool(self.given.get("turn"))

    def make(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.given.get("files", {}).items():
            text(folder / name, _text_of(name, content))
        for name, written in self.given.get("copied", {}).items():
            (copytree if (SAMPLES / written).is_dir() else copyfile)(SAMPLES / written, folder / name)
        if dumps := self.given.get("database"):
            database(folder, *dumps)
        source = folder / self.given["source"]
        if source.suffix == ".zip":
            with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
                for name in self.given["files"]:
                    archive.write(folder / name, name)
                    (folder / name).unlink()
        return source


def _text_of(name: str, content: Any) -> str:
    """The text of a file: a JSON value, or lines, which in JSON Lines are values too."""
    if isinstance(content, dict):
        return json.dumps(content["json"], indent=2 if name == "export.json" else None)
    is_json = name.endswith(".jsonl")
    return "".join(f"{json.dumps(line, separators=(',', ':')) if is_json else line}\n" for line in content)


def database(folder: Path, name: str, *dumps: str) -> Path:
    """Make databases from what was dumped of some that the real program wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    for n, dump in enumerate(dumps):
        with closing(sqlite3.connect(folder / f"{n}-{name}")) as connection:
            connection.executescript((SAMPLES / dump).read_text("utf-8"))
    return folder


def lines(path: Path, *values: Any) -> Path:
    return text(path, "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in values))


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")
    return path


def claude_line(kind: str, uuid: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": None,
        "isSidechain": False,
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": uuid,
        "timestamp": "2026-03-04T05:06:07.000Z",
        "sessionId": "s-1",
        "version": "2.1.0",
        "gitBranch": "main",
        **more,
    }


KINDS = tuple(Kind(name, given) for name, given in json.loads((SAMPLES / "kinds.json").read_text("utf-8")).items())


def made(name: str, folder: Path) -> Path:
    """The sample of a kind below a folder."""
    return next(one for one in KINDS if one.name == name).make(folder)


def chatgpt_conversations() -> list[dict[str, Any]]:
    (kind,) = (one for one in KINDS if one.name == "chatgpt")
    found: list[dict[str, Any]] = kind.given["files"]["conversations.json"]["json"]
    return found
