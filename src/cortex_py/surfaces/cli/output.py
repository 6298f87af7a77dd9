"""How commands print: lines, tables, JSON and long texts, for a person at a terminal or for the next program in a pipe.

All output of commands passes `say`, so that an escape sequence in a stored text never reaches a terminal. In a pipe,
tables are lines of cells between tabs, and texts are as they were stored.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ...core.clock import iso, memory_uri, memory_urn

if TYPE_CHECKING:
    from ...core.records import Contradiction, Hit, Memory

__all__ = [
    "SHORT_ID",
    "counted",
    "hit_as_dict",
    "memory_as_dict",
    "note",
    "page",
    "print_json",
    "print_memories",
    "print_table",
    "print_warnings",
    "quiet",
    "say",
    "score_colour",
    "shorten",
    "stdout_bytes",
    "verdict_colour",
    "visible",
]

# Ids of earlier versions count time in their first 16 digits, so no two of one process have these in common.
SHORT_ID = 16

_GAP = 2
# Less than this, and lines of a table are harder to read than one line per cell.
_NARROWEST = 16
_PIPE_CLOSED = 141

# Control characters, and those that turn the direction of writing: a terminal acts on them. Spelled as JSON does.
_ACTING = {
    code: f"\\u{code:04x}"
    for code in (*range(32), *range(127, 160), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if chr(code) not in "\n\t"
}
_IN_CELL = {**_ACTING, ord("\n"): "\\n", ord("\t"): "\\t"}

Tint = Callable[[str], str | None]


def visible(text: str) -> str:
    """The text with every character spelled out that a terminal would act on, except line breaks and tabs."""
    return text.replace("\r\n", "\n").translate(_ACTING)


def say(text: str = "", *, err: bool = False, nl: bool = True, bold: bool = False, fg: str | None = None) -> None:
    """Print a line: made visible and perhaps coloured on a terminal, and as it is in a pipe."""
    if (sys.stderr if err else sys.stdout).isatty():
        text = _painted(visible(text), fg, bold=bold)
    _write(text, err=err, nl=nl)


def note(text: str) -> None:
    """Print on standard error what is no result: a hint, a count. `--quiet` leaves it out."""
    if not quiet():
        say(text, err=True)


def quiet() -> bool:
    return bool(_option("quiet"))


def _option(name: str) -> object:
    context = click.get_current_context(silent=True)
    return getattr(context.find_root().obj, name, None) if context else None


def _write(text: str, *, err: bool = False, nl: bool = True) -> None:
    try:
        # Otherwise it would strip from texts what looks like a colour.
        click.echo(text, err=err, nl=nl, color=True)
    except BrokenPipeError:
        _leave()


def _leave() -> None:
    """End without a word, as a program does whose reader has seen enough."""
    closed = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            # What is left in its buffer is written at the end.
            os.dup2(closed, stream.fileno())
    sys.exit(_PIPE_CLOSED)


class _StandardOutput:
    """Standard output for the library to write texts to as bytes: made visible on a terminal.

    A pipe that is closed is no error of its own.
    """

    def __init__(self) -> None:
        # Characters of several bytes may come in parts.
        self._decoder = getincrementaldecoder("utf-8")("replace") if sys.stdout.isatty() else None

    def write(self, data: bytes) -> int:
        shown = visible(self._decoder.decode(data)).encode() if self._decoder else data
        try:
            sys.stdout.buffer.write(shown)
            return len(data)
        except BrokenPipeError:
            _leave()
            raise

    def flush(self) -> None:
        try:
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            _leave()


def stdout_bytes() -> BinaryIO:
    return _StandardOutput()  # type: ignore[return-value]  # only written to


# -- colours ---------------------------------------------------------------------------------------------


def _painted(text: str, fg: str | None = None, *, bold: bool = False) -> str:
    plain = _option("no_color") or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or not text or not (fg or bold) else click.style(text, fg=fg, bold=bold or None)


def score_colour(text: str) -> str | None:
    """Green, yellow or red for a score from 0 to 1, by the limits of `verify`."""
    try:
        score = float(text)
    except ValueError:
        return None
    return "green" if score >= 0.7 else "yellow" if score >= 0.3 else "red"


_VERDICTS = {
    **dict.fromkeys(("ACCEPT", "yes", "ok", "active"), "green"),
    **dict.fromkeys(("WARN", "?", "pending"), "yellow"),
    **dict.fromkeys(("REJECT", "NO", "!", "revoked", "expired"), "red"),
}


def verdict_colour(text: str) -> str | None:
    return _VERDICTS.get(text)


# -- words -----------------------------------------------------------------------------------------------


_PLURALS = {"line of work": "lines of work", "push": "pushes"}


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 memory`, `1,024 memories`."""
    regular = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else _PLURALS.get(noun, regular)}"


def shorten(text: str, most: int = 60) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def print_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        say(warning, err=True)


def page(text: str, *, nl: bool = True) -> None:
    """Print a long text: through the pager if it does not fit the terminal."""
    if sys.stdout.isatty():
        _emit(visible(text))
    else:
        say(text, nl=nl and not text.endswith("\n"))


def _emit(text: str) -> None:
    """Print a text that is fit for the terminal, through the pager if it is longer."""
    size = shutil.get_terminal_size()
    lines = sum(1 + max(0, _cells(line) - 1) // max(1, size.columns) for line in text.splitlines())
    if lines < size.lines or not sys.stdin.isatty():
        _write(text, nl=not text.endswith("\n"))
    else:
        # Without a word about colour, click asks `less` for it, and leaves it out for pagers that would print codes.
        click.echo_via_pager(text)


# -- JSON ------------------------------------------------------------------------------------------------


def print_json(value: object) -> None:
    say(json.dumps(_plain(value), ensure_ascii=False, indent=2))


def _plain(value: object) -> object:
    """A result as JSON has it: at any depth, what has named fields becomes an object."""
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, PurePath):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, frozenset | set):
        return [_plain(item) for item in sorted(value)]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def memory_as_dict(memory: Memory, conflicts: Sequence[Contradiction] = ()) -> dict[str, object]:
    """A memory for JSON: its fields without the empty ones, what contradicts it, and its addresses."""
    filled: dict[str, Any] = {}
    for name, value in asdict(memory).items():
        filled[name] = value
        if name == "duplicate_of":
            filled["conflicts_with"] = [asdict(one) for one in conflicts]
    filled = {name: value for name, value in filled.items() if value not in (None, (), [])}
    filled.setdefault("tags", ())
    if memory.personal:
        filled["personal"] = dict(memory.personal)
    return {**filled, "urn": memory_urn(memory.domain, memory.namespace, memory.id), "uri": memory_uri(memory.id)}


def hit_as_dict(hit: Hit) -> dict[str, object]:
    outdated = {"outdated_by": hit.outdated_by} if hit.outdated_by else {}
    return {**memory_as_dict(hit.memory), "score": round(hit.score, 4), "snippet": hit.snippet, **outdated}


# -- memories and tables -----------------------------------------------------------------------------------


def print_memories(memories: Sequence[Memory]) -> None:
    page("\n\n".join(map(_described, memories)))


def _described(memory: Memory) -> str:
    head = f"{memory.id}  {memory.namespace}  {iso(memory.created_at)}"
    facts = {
        "tags": ", ".join(memory.tags),
        "source": memory.source,
        "branch": memory.branch_id or memory.git_branch,
        "status": None if memory.status == "active" else memory.status,
        "version": None if memory.version == 1 else memory.version,
        "expires": memory.expires_at and iso(memory.expires_at),
        "duplicate of": memory.duplicate_of,
        "superseded by": memory.superseded_by,
        "grounding": None if memory.grounding is None else f"{memory.grounding:.2f}",
        "redacted": ", ".join(memory.redactions),
        "personal data": ", ".join(f"{kind} {count}" for kind, count in memory.personal or ()),
    }
    return "\n".join([head, *(f"{name}: {value}" for name, value in facts.items() if value), "", memory.content])


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    wide: int | Sequence[int] = (),
    *,
    empty: str,
    tint: Mapping[int, Tint] | None = None,
) -> None:
    """Print a table; `wide` are the columns that share the remaining width, `empty` is said where there are no rows.

    In a pipe each row is a line, its cells between tabs. On a terminal that is too narrow, each cell is a line.
    """
    terminal = sys.stdout.isatty()
    if not rows:
        # In a pipe, a line would be taken for a record.
        say(empty) if terminal else note(empty)
        return
    if not terminal:
        say("\n".join("\t".join(cell.translate(_IN_CELL) for cell in row) for row in rows))
        return
    flowing = (wide,) if isinstance(wide, int) else tuple(wide)
    shown = [[visible(cell).expandtabs(4).strip("\n") for cell in row] for row in rows]
    screen = shutil.get_terminal_size().columns
    widths = _widths([columns, *shown], flowing, screen)
    lines = _as_lines(columns, shown, widths, tint or {}) if widths else _as_records(columns, shown, screen, tint or {})
    _emit("\n".join(lines))


def _widths(rows: Sequence[Sequence[str]], flowing: Sequence[int], screen: int) -> list[int] | None:
    """How wide each column is, so that all fit; None where they cannot."""
    widths = [max(max(map(_cells, row[at].split("\n"))) for row in rows) for at in range(len(rows[0]))]
    left = screen - sum(width for at, width in enumerate(widths) if at not in flowing) - _GAP * (len(widths) - 1)
    # The narrowest first: what they do not need is for the others.
    for number, at in enumerate(sorted(flowing, key=lambda at: widths[at])):
        share = left // (len(flowing) - number)
        if share < min(_NARROWEST, widths[at]):
            return None
        widths[at] = min(widths[at], share)
        left -= widths[at]
    return widths if left >= 0 else None


def _as_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], tint: Mapping[int, Tint]
) -> Iterator[str]:
    if any(columns):
        yield _painted(_joined(columns, widths), bold=True)
    for row in rows:
        wrapped = [list(_wrapped(cell, width)) for cell, width in zip(row, widths, strict=True)]
        for number in range(max(map(len, wrapped))):
            line = [lines[number] if number < len(lines) else "" for lines in wrapped]
            yield _joined(line, widths, {at: colour(row[at]) for at, colour in tint.items()})


def _joined(cells: Sequence[str], widths: Sequence[int], colours: Mapping[int, str | None] | None = None) -> str:
    parts = [
        _painted(cell, (colours or {}).get(at)) + " " * (widths[at] - _cells(cell)) for at, cell in enumerate(cells)
    ]
    return (" " * _GAP).join(parts).rstrip()


def _as_records(
    columns: Sequence[str], rows: Sequence[Sequence[str]], screen: int, tint: Mapping[int, Tint]
) -> Iterator[str]:
    for row in rows:
        for at, (name, cell) in enumerate(zip(columns, row, strict=True)):
            colour = tint[at](cell) if at in tint else None
            label = f"{name}: " if name else ""
            lines = [line for line in _wrapped(label + cell, max(1, screen)) if cell]
            for number, line in enumerate(lines):
                head = label if number == 0 else ""
                yield _painted(head, bold=True) + _painted(line[len(head) :], colour)
        if row is not rows[-1]:
            yield ""


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines of at most this width, broken between words where that is possible."""
    for line in text.split("\n"):
        rest = line
        while _cells(rest) > width:
            fit, used = 0, 0
            while used + (_cells(rest[fit]) or 0) <= width or fit == 0:
                used += _cells(rest[fit])
                fit += 1
            space = rest.rfind(" ", 1, fit + 1)
            cut = space if space > 0 and rest[:space].strip() else fit
            yield rest[:cut].rstrip()
            rest = rest[cut:].lstrip(" ")
        yield rest


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(one) or one in "\u200b\u200d\ufe0f"
        else 2
        if unicodedata.east_asian_width(one) in "WF"
        else 1
        for one in text
    )
