"""A note in better form: lists, fenced code, labels on the parts of a decision, a title. Pure, without a model.

Every word stays, in its order; only line breaks and Markdown marks are added, and only where the text clearly has the
form already. A text with any structure of its own is left as it is, which is why structuring twice changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .dialogue import turns

__all__ = ["structure"]

LONGEST = 100_000  # characters; what is longer is a document and no note
_TITLE_LENGTH = 60
_TITLE_WORDS = 9
_TITLED_FROM = 5  # sentences
_WRAPPED_FROM = 50  # characters of a line that ends for want of room
_JSON_LINES = 100
_CODE_WIDTH = 2_000  # characters; a longer line is no code that a person wrote

_STRUCTURED = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}\s|>|\|.*\||[-*+•‣◦]\s|\(?\d{1,3}[.)]\s|\[[ xX]\]\s|(?:[-=*_][ \t]*){3,}$"
    r"|\*\*[^*\n]{1,80}\*\*|__[^_\n]{1,80}__)",
    re.MULTILINE,
)
_LABEL_LINE = re.compile(r"^[ \t]{0,3}[^\W\d_][\w /-]{0,30}:[ \t]+\S", re.MULTILINE)


def structure(text: str) -> str:
    """The same statements in better form, or the very same text where nothing is clearly better."""
    plain = text.replace("\r\n", "\n")
    if len(text) > LONGEST or "\r" in plain or not plain.strip():
        return text
    blocks = list(_blocks(plain.split("\n")))
    one_item = "\n" not in plain.strip() and _ITEM_START.match(plain)
    result = _listed(plain) if one_item else _restructured(plain, blocks)
    # What would not be taken for structured would be taken apart again the next time.
    if result == plain or not _is_structured(result, list(_blocks(result.split("\n")))):
        return text
    return result.replace("\n", "\r\n") if "\r\n" in text else result


class _Block(NamedTuple):
    """Lines that stand together; `language` is None for prose, and may be empty for code."""

    lines: list[str]
    language: str | None


def _is_structured(text: str, blocks: list[_Block]) -> bool:
    if "```" in text or "~~~" in text:
        return True
    prose = "\n".join("\n".join(block.lines) for block in blocks if block.language is None)
    return bool(_STRUCTURED.search(prose)) or len(_LABEL_LINE.findall(prose)) > 1 or len(turns(prose)) > 1


def _restructured(text: str, blocks: list[_Block]) -> str:
    if _is_structured(text, blocks):
        return text
    if any(block.language is not None for block in blocks):
        return "\n".join(_fenced(block) for block in blocks if block.lines)
    parts = re.split(r"(\n[ \t]*\n\s*)", text)
    listed = "".join(map(_listed, parts))
    if listed != text:
        return listed
    labelled = _labelled(text) if len(parts) == 1 else text
    return labelled if labelled != text else _titled(text)


def _fenced(block: _Block) -> str:
    body = "\n".join(block.lines)
    return body if block.language is None else f"```{block.language}\n{body}\n```"


_COMMAND = re.compile(r"[ \t]*(?:[\w.-]+@[\w.-]+:\S*)?\$ [a-z./~]\S*")
_PYTHON_TRACE = re.compile(r"\s*Traceback \(most recent call last\):\s*$")
_EXCEPTION = re.compile(r"[\w.$]+(?:Error|Exception|Warning|Interrupt|Exit)?(?::|$)")
_THROWN = re.compile(r"(?:Exception in thread |Uncaught |Caused by: )?[\w.$]*(?:Error|Exception)\b")
_FRAME = re.compile(r"\s*(?:at \S.*[)\d]$|Caused by: |\.\.\. \d+ more)")
_SQL_START = re.compile(
    r"(?:SELECT|INSERT INTO|UPDATE \S+ SET|DELETE FROM|CREATE (?:OR REPLACE |UNIQUE )?(?:TABLE|INDEX|VIEW|FUNCTION)"
    r"|ALTER TABLE|DROP (?:TABLE|INDEX)|WITH \w+ AS)\b"
)
_SQL_MORE = re.compile(r"[ \t]+\S|\)|[A-Z]{2,}\b")
_YAML_LINE = re.compile(r"\s*(?:- )?[\w./-]+:(?:\s+\S.*)?$|\s*- \S.*$")
_YAML_START = re.compile(r"[a-z_][\w.-]*:(?:\s|$)")
_YAML_NESTED = re.compile(r"\s+(?:- )?[\w./-]+: +\S|- [\w./-]+: +\S")
_STATEMENT = re.compile(
    r"(?:(?:async )?def \w+\(.*:|class [A-Z]\w*[(:{].*|@\w[\w.]*(?:\(.*\))?|(?:import|from) [\w.]+(?: import .+)?"
    r"|(?:export )?(?:const|let|var) [\w{[].* =.*|(?:export )?(?:async )?function \w*\(.*|func \w*[( ].*\{"
    r"|(?:pub )?fn \w+.*|(?:public|private|protected|static) .*[({;]|#include\b.*|(?=.*[()=<>]).*[;{])\s*$"
)
_STATEMENT_MORE = re.compile(r"[ \t]+\S|[)}\]]+[;,]?\s*$")
_CODE_SIGN = re.compile(r"[(){}\[\];=<>]|^\s*(?:\$ |return\b|import |if .*:$|for .*:$|else:)")
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_LANGUAGES = (
    ("python", re.compile(r"^\s*(?:(?:async )?def .*:$|class \w+.*:$|from [\w.]+ import |import [\w.]+$)", re.M)),
    ("javascript", re.compile(r"\b(?:const|let) [^\n=]{1,80} = |=> |\bfunction \w*\(", re.M)),
)


def _blocks(lines: list[str]) -> Iterator[_Block]:
    prose: list[str] = []
    at = 0
    while at < len(lines):
        end, language = _code(lines, at)
        if end > at:
            yield from (_Block(prose, None), _Block(lines[at:end], language))
            prose = []
        else:
            prose.append(lines[at])
        at = max(end, at + 1)
    yield _Block(prose, None)


def _code(lines: list[str], at: int) -> tuple[int, str]:
    """Where the code that begins with a line ends, and its language; the same line where none begins."""
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
    return _while(lines, at, _COMMAND)


def _trace_end(lines: list[str], at: int) -> int:
    if _PYTHON_TRACE.match(lines[at]):
        end = _while(lines, at + 1, re.compile(r"\s+\S"))
        thrown = end < len(lines) and _EXCEPTION.match(lines[end])
        return end + 1 if thrown else end if end > at + 1 else at
    if _THROWN.match(lines[at]) and at + 1 < len(lines) and _FRAME.match(lines[at + 1]):
        return _while(lines, at + 1, _FRAME)
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
    if not _SQL_START.match(lines[at]):
        return at
    end = at + 1
    while not lines[end - 1].rstrip().endswith(";"):
        if end == len(lines) or not _SQL_MORE.match(lines[end]) or lines[end].rstrip().endswith("."):
            return end if end > at + 1 else at
        end += 1
    return end


def _yaml_end(lines: list[str], at: int) -> int:
    if not _YAML_START.match(lines[at]) or (at and _YAML_LINE.match(lines[at - 1])):
        return at
    end = _while(lines, at, _YAML_LINE)
    inside = lines[at:end]
    opened = any(line.rstrip().endswith(":") for line in inside)
    return end if len(inside) > 2 and opened and any(map(_YAML_NESTED.match, inside)) else at


def _indented_end(lines: list[str], at: int) -> int:
    if at and lines[at - 1].strip():
        return at
    end = _while(lines, at, _INDENTED)
    signs = sum(bool(_CODE_SIGN.search(line)) for line in lines[at:end])
    return end if signs * 2 >= end - at else at


def _statements_end(lines: list[str], at: int) -> int:
    end = at
    while end < len(lines) and (_STATEMENT.match(lines[end]) or (end > at and _STATEMENT_MORE.match(lines[end]))):
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


def _listed(text: str) -> str:
    """A paragraph with its run-on enumeration as a list."""
    starts, mark = _numbered(text) or _dashed(text), ""
    if not starts:
        starts, mark = _ordinals(text), "- "
    elif text[starts[0]] == "(":
        mark = "- "
    return _as_list(text, starts, mark) if starts else text


def _numbered(text: str) -> list[int]:
    """Where the items 1, 2, 3… of one style begin."""
    starts: list[int] = []
    style: tuple[str, str] | None = None
    for match in _NUMBER.finditer(text):
        if int(match[2]) == len(starts) + 1 and style in (None, (match[1], match[3])):
            starts.append(match.start())
            style = (match[1], match[3])
    # A full stop behind a number ends many a sentence; a bracket is no accident.
    return starts if len(starts) >= (3 if style and style[1] == "." else 2) else []


def _dashed(text: str) -> list[int]:
    """Where the items begin that dashes set off, if the first opens the text or follows a colon."""
    starts = [match.start() for match in _DASH.finditer(text)]
    if not starts:
        return []
    lead = text[: starts[0]].strip()
    return starts if (not lead and len(starts) > 2) or (lead.endswith(":") and len(starts) > 1) else []


def _ordinals(text: str) -> list[int]:
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
        # What follows the last item's only sentence is no longer about that item.
        last, *more = _sentences(items[-1])
        items[-1], rest = last, " ".join(more)
    listed = "\n".join(mark + item for item in items)
    return "\n\n".join(part for part in (lead, listed, rest) if part) + tail


_PAUSE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]`]*+\s++(?=[^a-z\s])|\n[ \t]*\n\s*")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|cf|vs|approx|no|nr|fig|dr|mrs?|ms|prof|st|etc|incl|resp|[a-z]|\(?\d{1,3})\.\s+$", re.I
)


def _sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed; together they hold all its words."""
    found: list[str] = []
    at = 0
    for match in _PAUSE.finditer(text):
        if not _ABBREVIATION.search(text, max(at, match.start() - 12), match.end()):
            found.append(text[at : match.end()].strip())
            at = match.end()
    return [sentence for sentence in (*found, text[at:].strip()) if sentence]


_DECISION, _REASON, _ALTERNATIVES, _CONSEQUENCE = "Decision", "Reason", "Alternatives", "Consequence"
_WRITTEN_LABELS = {
    _DECISION: re.compile(r"(?:Decision|Decided):(?=\s)", re.I),
    _REASON: re.compile(r"(?:Reasons?|Why|Rationale):(?=\s)", re.I),
    _ALTERNATIVES: re.compile(r"(?:Alternatives?(?: considered)?|Rejected):(?=\s)", re.I),
    _CONSEQUENCE: re.compile(r"(?:Consequences?|Impact|Result):(?=\s)", re.I),
}
_DECIDES = re.compile(
    r"(?:(?:so|then|finally|today),? )?(?:(?:we|i|the team)(?:'ve|'re|'ll| have| are| will)?(?: now| all| also)*"
    r" (?:decided|chose|chosen|picked|agreed|settled on|opted|went with|go with|going with|use|using|adopt(?:ed)?"
    r"|switch(?:ed)?|moved|migrated|replaced|dropped|keep|keeping|stick (?:with|to)|prefer)"
    r"|decided|agreed|going with|chose|picked|switched|moved|migrated|replaced|adopted|use|prefer)\b",
    re.I,
)
_OPEN = re.compile(
    r"\?$|\b(?:whether|should we|might|could|maybe|perhaps|considering|not (?:yet )?(?:decided|agreed))\b", re.I
)
_SENTENCE_CUES = {
    _ALTERNATIVES: r"(?:we|i|the team)(?: also)? (?:considered|rejected|ruled out|decided against)\b"
    r"|(?:the )?alternatives?\b|[^.,;]{1,60} (?:was|were) (?:rejected|ruled out|considered)\b",
    _REASON: r"(?:because|due to|the (?:main )?reasons?|(?:this|that) is because|in order to)\b",
    _CONSEQUENCE: r"(?:therefore|as a result|consequently|hence|thus|(?:this|that) means|from now on)\b"
    r"|[^.;]{1,80}\b(?:must now|now (?:must|has to|have to|needs? to))\b",
}
_CLAUSES = {
    _REASON: r"(?<!\s)\s++(?=(?:because|due to|owing to|in order to)\b)|(?<=,)\s+(?=since (?!\d|v\d|then|last|[A-Z]))",
    _ALTERNATIVES: r"(?<!\s)\s++(?=(?:instead of|rather than)\b)"
    r"|(?<!\S)(?:chose|chosen|picked|prefer)(?: (?!to )\S+){1,4}(?P<cut>\s+)(?=over (?!\d))",
    _CONSEQUENCE: r"(?<!\s)\s++(?=so that\b)|(?<=,)\s+(?=(?:so|which means|therefore)\s)"
    r"|(?<=;)\s+(?=(?:therefore|as a result|consequently|this means)\b)",
}
_LEADING = re.compile(
    r"(?:(because|since|due to|in order to)|instead of|rather than)\b[^,;]*,(?P<cut>\s+)(?=(?:we|i|the team)\b)", re.I
)


def _labelled(text: str) -> str:
    """A decision with its parts on lines of their own, if it has at least two."""
    lines = text.strip().split("\n")
    if any(len(line) < _WRAPPED_FROM for line in lines[:-1]):
        return text
    parts: list[tuple[str | None, str]] = []
    for sentence in _sentences(text):
        parts += _parts(sentence, decided=any(label == _DECISION for label, _ in parts))
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


def _parts(sentence: str, *, decided: bool) -> list[tuple[str | None, str]]:
    """A sentence in its clauses, each with its label; only a decision is taken apart."""
    for label, written in _WRITTEN_LABELS.items():
        if written.match(sentence):
            return [(label, sentence)] if label != _DECISION else _clauses(sentence)
    if leading := _LEADING.match(sentence):
        label, rest = _REASON if leading[1] else _ALTERNATIVES, sentence[leading.end() :]
        if _DECIDES.match(rest) and not _OPEN.search(rest):
            return [(label, sentence[: leading.start("cut")]), *_clauses(rest)]
    if decided:
        cued = next((label for label, cue in _SENTENCE_CUES.items() if re.match(cue, sentence, re.I)), None)
        if cued or not _DECIDES.match(sentence):
            return [(cued, sentence)]
    return _clauses(sentence) if _DECIDES.match(sentence) and not _OPEN.search(sentence) else [(None, sentence)]


def _clauses(decision: str) -> list[tuple[str | None, str]]:
    """A decision cut before the words that open another part, outside brackets, quotation and code."""
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


def _titled(text: str) -> str:
    """A note of several sentences with its first in bold, if that is short and could stand for the rest."""
    sentences = _sentences(text)
    first = sentences[0]
    if len(sentences) < _TITLED_FROM or len(first) > _TITLE_LENGTH or not 2 <= len(first.split()) <= _TITLE_WORDS:
        return text
    if _NO_TITLE.match(first) or "*" in first or "\n" in first or first.endswith(("?", ",", ";")):
        return text
    return f"**{first}**\n\n{text.lstrip()[len(first) :].lstrip()}"
