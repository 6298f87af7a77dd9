"""A better form for a note, without a model: lists, fenced code, labelled parts of a decision, a title.

Every word stays in its order; only line breaks and Markdown marks are added, and only where the text clearly has that
form. A text that is already structured is left alone, so structuring twice changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..text import split_turns

__all__ = ["structure"]

LONGEST = 100_000  # characters; a longer text is a document, not a note
_TITLE_LENGTH = 60
_TITLE_WORDS = 9
_TITLED_FROM = 5  # sentences
_WRAPPED_FROM = 50  # characters from which a line may have been wrapped
_JSON_LINES = 100
_CODE_WIDTH = 2_000  # characters; nobody writes longer lines of code

_STRUCTURED = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}\s|>|\|.*\||[-*+•‣◦]\s|\(?\d{1,3}[.)]\s|\[[ xX]\]\s|(?:[-=*_][ \t]*){3,}$"
    r"|\*\*[^*\n]{1,80}\*\*|__[^_\n]{1,80}__)",
    re.MULTILINE,
)
_LABEL_LINE = re.compile(r"^[ \t]{0,3}[^\W\d_][\w /-]{0,30}:[ \t]+\S", re.MULTILINE)


def structure(text: str) -> str:
    """The text in a better form, or unchanged if none is clearly better."""
    plain = text.replace("\r\n", "\n")
    if len(text) > LONGEST or "\r" in plain or not plain.strip():
        return text
    blocks = list(_blocks(plain.split("\n")))
    one_item = "\n" not in plain.strip() and _ITEM_START.match(plain)
    result = _format_list(plain) if one_item else _restructure(plain, blocks)
    # A result that does not count as structured would be changed again by the next call.
    if result == plain or not _is_structured(result, list(_blocks(result.split("\n")))):
        return text
    return result.replace("\n", "\r\n") if "\r\n" in text else result


class _Block(NamedTuple):
    """Consecutive lines; `language` is None for prose and may be empty for code."""

    lines: list[str]
    language: str | None


def _is_structured(text: str, blocks: list[_Block]) -> bool:
    if "```" in text or "~~~" in text:
        return True
    prose = "\n".join("\n".join(block.lines) for block in blocks if block.language is None)
    return bool(_STRUCTURED.search(prose)) or len(_LABEL_LINE.findall(prose)) > 1 or len(split_turns(prose)) > 1


def _restructure(text: str, blocks: list[_Block]) -> str:
    if _is_structured(text, blocks):
        return text
    if any(block.language is not None for block in blocks):
        return "\n".join(_fence_block(block) for block in blocks if block.lines)
    parts = re.split(r"(\n[ \t]*\n\s*)", text)
    listed = "".join(map(_format_list, parts))
    if listed != text:
        return listed
    labelled = _label_decision(text) if len(parts) == 1 else text
    return labelled if labelled != text else _add_title(text)


def _fence_block(block: _Block) -> str:
    body = "\n".join(block.lines)
    return body if block.language is None else f"```{block.language}\n{body}\n```"


# Patterns of code, and the words that mark the parts of a decision.
_TABLES = json.loads(Path(__file__).with_name("structuring.json").read_text("utf-8"))
_CODE: dict[str, re.Pattern[str]] = {name: re.compile(pattern) for name, pattern in _TABLES["code"].items()}
_LANGUAGES = [(name, re.compile(pattern, re.MULTILINE)) for name, pattern in _TABLES["languages"].items()]


def _blocks(lines: list[str]) -> Iterator[_Block]:
    prose: list[str] = []
    at = 0
    while at < len(lines):
        end, language = _code_end(lines, at)
        if end > at:
            yield from (_Block(prose, None), _Block(lines[at:end], language))
            prose = []
        else:
            prose.append(lines[at])
        at = max(end, at + 1)
    yield _Block(prose, None)


def _code_end(lines: list[str], at: int) -> tuple[int, str]:
    """The end of the code that begins at a line, and its language; the same line if none begins there."""
    for end_of, language in _KINDS if len(lines[at]) <= _CODE_WIDTH else ():
        end = end_of(lines, at)
        if end > at:
            body = "\n".join(lines[at:end])
            guessed = next((name for name, sign in _LANGUAGES if sign.search(body)), "")
            return end, guessed if language is None else language
    return at, ""


def _while(lines: list[str], at: int, fits: re.Pattern[str]) -> int:
    """The first line from `at` on that does not fit."""
    while at < len(lines) and fits.match(lines[at]):
        at += 1
    return at


def _commands_end(lines: list[str], at: int) -> int:
    return _while(lines, at, _CODE["command"])


def _trace_end(lines: list[str], at: int) -> int:
    if _CODE["python_trace"].match(lines[at]):
        end = _while(lines, at + 1, re.compile(r"\s+\S"))
        thrown = end < len(lines) and _CODE["exception"].match(lines[end])
        return end + 1 if thrown else end if end > at + 1 else at
    if _CODE["thrown"].match(lines[at]) and at + 1 < len(lines) and _CODE["frame"].match(lines[at + 1]):
        return _while(lines, at + 1, _CODE["frame"])
    return at


def _json_end(lines: list[str], at: int) -> int:
    first = lines[at].strip()
    if not first.startswith(("{", "[")) or (at and lines[at - 1].strip() in ("{", "[")):
        return at
    margin = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    closing = (margin + "}", margin + "]")
    ends = (end for end in range(at, min(len(lines), at + _JSON_LINES)) if lines[end].rstrip() in closing)
    end = at if first.endswith(("}", "]")) else next(ends, -1)
    body = "\n".join(lines[at : end + 1])
    if end < 0 or '"' not in body or ":" not in body:
        return at
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return at
    return end + 1


def _sql_end(lines: list[str], at: int) -> int:
    if not _CODE["sql_start"].match(lines[at]):
        return at
    end = at + 1
    while not lines[end - 1].rstrip().endswith(";"):
        if end == len(lines) or not _CODE["sql_more"].match(lines[end]) or lines[end].rstrip().endswith("."):
            return end if end > at + 1 else at
        end += 1
    return end


def _yaml_end(lines: list[str], at: int) -> int:
    if not _CODE["yaml_start"].match(lines[at]) or (at and _CODE["yaml_line"].match(lines[at - 1])):
        return at
    end = _while(lines, at, _CODE["yaml_line"])
    inside = lines[at:end]
    opened = any(line.rstrip().endswith(":") for line in inside)
    return end if len(inside) > 2 and opened and any(map(_CODE["yaml_nested"].match, inside)) else at


def _indented_end(lines: list[str], at: int) -> int:
    if at and lines[at - 1].strip():
        return at
    end = _while(lines, at, _CODE["indented"])
    signs = sum(bool(_CODE["code_sign"].search(line)) for line in lines[at:end])
    return end if signs * 2 >= end - at else at


def _statements_end(lines: list[str], at: int) -> int:
    end = at
    while end < len(lines) and (
        _CODE["statement"].match(lines[end]) or (end > at and _CODE["statement_more"].match(lines[end]))
    ):
        end += 1
    return end if end > at + 1 else at


_KINDS: tuple[tuple[Callable[[list[str], int], int], str | None], ...] = (
    (_commands_end, "console"),
    (_trace_end, ""),
    (_json_end, "json"),
    (_sql_end, "sql"),
    (_yaml_end, "yaml"),
    (_indented_end, None),
    (_statements_end, None),
)

_NUMBER = re.compile(r"(?<!\S)(\(?)(\d{1,2})([.)])(?=\s+\S)")
_DASH = re.compile(r"(?<!\S)-(?= +\S)")
_ORDINAL = re.compile(
    r"(?:^|(?<=[.;:!?,]\s))(?:and )?(?:(first)|(second)|(third)|(fourth)|(fifth)|(finally|lastly))(?:ly)?[,:](?=\s+\S)",
    re.IGNORECASE,
)
_ITEM_START = re.compile(r"- |\(?1[.)] ")


def _format_list(text: str) -> str:
    """A paragraph with its inline enumeration as a list."""
    starts, mark = _numbered_starts(text) or _dashed_starts(text), ""
    if not starts:
        starts, mark = _ordinal_starts(text), "- "
    elif text[starts[0]] == "(":
        mark = "- "
    return _as_list(text, starts, mark) if starts else text


def _numbered_starts(text: str) -> list[int]:
    """The starts of the items 1, 2, 3… of one style."""
    starts: list[int] = []
    style: tuple[str, str] | None = None
    for match in _NUMBER.finditer(text):
        if int(match[2]) == len(starts) + 1 and style in (None, (match[1], match[3])):
            starts.append(match.start())
            style = (match[1], match[3])
    # A number with a full stop may end a sentence; a bracket is unambiguous.
    return starts if len(starts) >= (3 if style and style[1] == "." else 2) else []


def _dashed_starts(text: str) -> list[int]:
    """The starts of items marked by dashes, if the first opens the text or follows a colon."""
    starts = [match.start() for match in _DASH.finditer(text)]
    if not starts:
        return []
    lead = text[: starts[0]].strip()
    return starts if (not lead and len(starts) > 2) or (lead.endswith(":") and len(starts) > 1) else []


def _ordinal_starts(text: str) -> list[int]:
    starts: list[int] = []
    for match in _ORDINAL.finditer(text):
        if match.lastindex == len(starts) + 1 or (match.lastindex == 6 and len(starts) > 1):
            starts.append(match.start())
    return starts if len(starts) > 1 else []


def _as_list(text: str, starts: list[int], mark: str) -> str:
    lead, tail = text[: starts[0]].rstrip(), text[len(text.rstrip()) :]
    ends = [*starts[1:], len(text)]
    items = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    rest = ""
    if all(len(_sentences(item)) == 1 for item in items[:-1]):
        # What follows the first sentence of the last item does not belong to it.
        last, *more = _sentences(items[-1])
        items[-1], rest = last, " ".join(more)
    listed = "\n".join(mark + item for item in items)
    return "\n\n".join(part for part in (lead, listed, rest) if part) + tail


_PAUSE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]`]*+\s++(?=[^a-z\s])|\n[ \t]*\n\s*")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|cf|vs|approx|no|nr|fig|dr|mrs?|ms|prof|st|etc|incl|resp|[a-z]|\(?\d{1,3})\.\s+$", re.I
)


def _sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed; together they contain all its words."""
    found: list[str] = []
    at = 0
    for match in _PAUSE.finditer(text):
        if not _ABBREVIATION.search(text, max(at, match.start() - 12), match.end()):
            found.append(text[at : match.end()].strip())
            at = match.end()
    return [sentence for sentence in (*found, text[at:].strip()) if sentence]


_DECISION, _REASON, _ALTERNATIVES = "Decision", "Reason", "Alternatives"
_WRITTEN_LABELS = {label: re.compile(words, re.IGNORECASE) for label, words in _TABLES["written_labels"].items()}
_SENTENCE_CUES: dict[str, str] = _TABLES["sentence_cues"]
_CLAUSES: dict[str, str] = _TABLES["clauses"]
_DECIDES, _OPEN, _LEADING = (re.compile(_TABLES[name], re.IGNORECASE) for name in ("decides", "open", "leading"))


def _label_decision(text: str) -> str:
    """A decision with its parts on lines of their own, if it has at least two."""
    lines = text.strip().split("\n")
    if any(len(line) < _WRAPPED_FROM for line in lines[:-1]):
        return text
    parts: list[tuple[str | None, str]] = []
    decided = False
    for sentence in _sentences(text):
        clauses = _split_decision(sentence, decided=decided)
        decided = decided or any(label == _DECISION for label, _ in clauses)
        parts += clauses
    labels = [label for label, _ in parts if label]
    if _DECISION not in labels[:2] or len(set(labels)) < 2:
        return text
    shown: list[str] = []
    for place, (label, part) in enumerate(parts):
        if place and parts[place - 1][0] == label and not (label and _WRITTEN_LABELS[label].match(part)):
            shown[-1] += f" {part}"
        else:
            shown.append(part if label is None else _with_label(label, part))
    return "\n\n".join(shown) + text[len(text.rstrip()) :]


def _with_label(label: str, part: str) -> str:
    written = _WRITTEN_LABELS[label].match(part)
    return f"**{written[0]}**{part[written.end() :]}" if written else f"**{label}:** {part}"


def _split_decision(sentence: str, *, decided: bool) -> list[tuple[str | None, str]]:
    """The clauses of a sentence with their labels; only a decision is split."""
    for label, written in _WRITTEN_LABELS.items():
        if written.match(sentence):
            return [(label, sentence)] if label != _DECISION else _split_clauses(sentence)
    if leading := _LEADING.match(sentence):
        label, rest = _REASON if leading[1] else _ALTERNATIVES, sentence[leading.end() :]
        if _DECIDES.match(rest) and not _OPEN.search(rest):
            return [(label, sentence[: leading.start("cut")]), *_split_clauses(rest)]
    if decided:
        cued = next((label for label, cue in _SENTENCE_CUES.items() if re.match(cue, sentence, re.I)), None)
        if cued or not _DECIDES.match(sentence):
            return [(cued, sentence)]
    return _split_clauses(sentence) if _DECIDES.match(sentence) and not _OPEN.search(sentence) else [(None, sentence)]


def _split_clauses(decision: str) -> list[tuple[str | None, str]]:
    """A decision split before the words that open another part, outside brackets, quotations and code."""
    cuts: dict[int, str] = {}
    for label, clause in _CLAUSES.items():
        if found := re.search(clause, decision):
            cuts[found.start("cut") if found.lastgroup else found.start()] = label
    parts: list[tuple[str | None, str]] = []
    label, at = _DECISION, 0
    for cut in sorted(cuts):
        before = decision[:cut]
        quoted = before.count("(") > before.count(")") or before.count("`") % 2 or before.count('"') % 2
        if quoted or len(decision[at:cut].split()) < (3 if at == 0 else 2):
            continue
        parts.append((label, decision[at:cut].strip()))
        label, at = cuts[cut], cut
    return [*parts, (label, decision[at:].strip())]


_NO_TITLE = re.compile(r"(?:i|we|you|he|she|it|they|this|that|these|those|there|then|so|and|but|also|yes|no)\b", re.I)


def _add_title(text: str) -> str:
    """A note of several sentences with the first in bold, if it is short and can serve as a title."""
    sentences = _sentences(text)
    first = sentences[0]
    if len(sentences) < _TITLED_FROM or len(first) > _TITLE_LENGTH or not 2 <= len(first.split()) <= _TITLE_WORDS:
        return text
    if _NO_TITLE.match(first) or "*" in first or "\n" in first or first.endswith(("?", ",", ";")):
        return text
    return f"**{first}**\n\n{text.lstrip()[len(first) :].lstrip()}"
