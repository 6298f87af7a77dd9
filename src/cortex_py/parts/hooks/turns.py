"""The spool of raw turns: hooks append to it at once, and a reader works through it later.

The spool is a folder of files, one for each day, that only their owner may read. Each line is one JSON object with the
fields of `Turn`. Secrets are removed before a line is written, and so is what Cortex itself gave to the session. In an
encrypted home every line is sealed.

    position = ""
    for position, turn in read_turns(home, position):
        ...
    forget_turns(home, position)
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ...core.errors import BackupCorrupt, StoreLocked
from ...core.paths import open_regular
from ...core.security.home_key import SEALED_START, HomeKey
from ...core.security.policy import Screen
from ...core.security.spoken import spoken, without_given

__all__ = [
    "RawTurn", "append_turn", "forget_turns", "has_plain_turns", "read_turns", "recode_turns", "turns_folder",
    "turns_of",
]  # fmt: skip

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_SEALED_FOR = "hook turns"
_SEALED = b64encode(SEALED_START)[:10]
_LONGEST_LINE = 1_000_000  # bytes
# A hook that got no receipt in time hands its event over a second time. That happens within seconds.
_SEEN = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTurn:
    """One turn of a session. `role` is `user`, `assistant`, `tool`, or `event` for one that has no text."""

    id: str
    client: str
    session: str = ""
    turn: str = ""
    role: str
    text: str = ""
    cwd: str = ""
    git_branch: str = ""
    at: str
    # Of a tool: its name, the command or file it was given, and whether it failed.
    tool: str = ""
    command: str = ""
    path: str = ""
    failed: bool = False
    # Of an event: which, such as `compact` or `end`, and why the client says it came.
    event: str = ""
    source: str = ""
    # Ids of the memories that this session was given before, whose words are nothing new.
    given: tuple[str, ...] = ()

    @property
    def fetched(self) -> bool:
        """Whether a tool brought something from outside the project; any tool of another server may."""
        return bool(_FETCHES.search(f"{self.tool} {self.command}"))


_FETCHES = re.compile(r"web|fetch|brows|mcp|https?|curl|wget|://", re.IGNORECASE)
_FIELDS = {one.name: one.type for one in fields(RawTurn)}
_ROLES = {"prompt": "user", "answer": "assistant", "tool": "tool", "compact": "event", "end": "event"}
_SCREENED = ("text", "command", "path", "cwd", "git_branch")
# Short names that the client gives; the digest of a screened one keeps two of them apart.
_NAMES = ("id", "client", "session", "turn", "source", "tool")
_LONGEST_NAME = 200
_MOST_OF_NAME = 2_000  # a secret that would be cut is found whole


def turns_folder(home: Path) -> Path:
    return home / "hooks" / "turns"


def turns_of(event: Mapping[str, Any], screen: Screen, *, at: str, given: tuple[str, ...] = ()) -> list[RawTurn]:
    """The turns to keep of one event of a hook: none or one, without secrets and without what Cortex gave."""
    role = _ROLES.get(str(event.get("kind")))
    if role is None:
        return []
    values: dict[str, Any] = {
        name: value for name, value in event.items() if name in _FIELDS and isinstance(value, str | bool)
    }
    said = spoken if role in ("user", "assistant") else without_given
    values |= {name: screen.prose(said(str(values[name]))) for name in _SCREENED if values.get(name)}
    values |= {name: _plain_name(str(values[name]), screen) for name in _NAMES if values.get(name)}
    values |= {"role": role, "at": at, "given": given, "event": event["kind"] if role == "event" else ""}
    turn = RawTurn(**values)
    # An end without a session ends nothing.
    matters = turn.session if role == "event" else turn.text.strip() or turn.failed or turn.fetched
    return [turn] if matters else []


def _plain_name(text: str, screen: Screen) -> str:
    """A name on one line, without secrets."""
    line = "".join(one for one in text[:_MOST_OF_NAME] if one.isprintable())
    return screen.name(line)[:_LONGEST_NAME]


def append_turn(home: Path, turn: RawTurn, key: HomeKey | None = None) -> None:
    """Add a turn to the spool, in one write, so that processes can append at the same time."""
    folder = turns_folder(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(folder / f"{turn.at[:10]}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, _line(turn, key))
    finally:
        os.close(file)


def _line(turn: RawTurn, key: HomeKey | None) -> bytes:
    content = {name: value for name, value in asdict(turn).items() if value not in ("", False, ())}
    line = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return (b64encode(key.seal(line, _SEALED_FOR)) if key else line) + b"\n"


def read_turns(home: Path, after: str = "", key: HomeKey | None = None) -> Iterator[tuple[str, RawTurn]]:
    """Turns in the order they were written, each with the position behind it; `after` is such a position.

    A line that cannot be read is passed over. `StoreLocked` if the lines are sealed and there is no key.
    """
    day, _, offset = after.partition(":")
    seen: dict[str, None] = {}
    for path in _files(home):
        if path.stem < day:
            continue
        start = int(offset) if path.stem == day and offset.isdigit() else 0
        for end, line in _lines(path, start):
            turn = _read(line, key)
            if turn is None or turn.id in seen:
                continue
            seen[turn.id] = None
            if len(seen) > _SEEN:
                del seen[next(iter(seen))]
            yield f"{path.stem}:{end}", turn


def forget_turns(home: Path, until: str) -> int:
    """Remove the files that a reader has finished: those of days before its position. Returns how many."""
    day = until.partition(":")[0]
    done = [path for path in _files(home) if path.stem < day]
    for path in done:
        path.unlink(missing_ok=True)
    return len(done)


def recode_turns(home: Path, before: HomeKey | None, after: HomeKey | None) -> None:
    """Seal the lines of the spool, or unseal them: the home is being encrypted or decrypted."""
    for path in _files(home):
        # After a kill, some files may be done already.
        turns = [turn for _, line in _lines(path, 0) if (turn := _read(line, before or after))]
        draft = path.with_name(f".{path.name}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.writelines(_line(turn, after) for turn in turns)
        draft.replace(path)


def has_plain_turns(home: Path) -> bool:
    return any(line[:1] == b"{" for path in _files(home) for _, line in _lines(path, 0))


def _files(home: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(path for path in turns_folder(home).iterdir() if _DAY.fullmatch(path.stem))
    return []


def _lines(path: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines with the offset of their end; one that is still being written is left for the next time."""
    with open_regular(path, follow=False) as file:
        file.seek(start)
        while (line := file.readline(_LONGEST_LINE)).endswith(b"\n"):
            start += len(line)
            yield start, line


def _read(line: bytes, key: HomeKey | None) -> RawTurn | None:
    try:
        if line.startswith(_SEALED):
            if key is None:
                raise StoreLocked("The turns are encrypted.", remedy="Open the home with its key.")
            line = key.unseal(b64decode(line, validate=False), _SEALED_FOR)
        content = json.loads(line)
        values = {name: value for name, value in content.items() if name in _FIELDS}
        return RawTurn(**values | {"given": tuple(values.get("given", ()))})
    except (ValueError, TypeError, AttributeError, NotBase64, BackupCorrupt):
        return None
