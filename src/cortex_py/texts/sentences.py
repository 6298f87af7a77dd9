"""Splits the prose of a turn into sentences, without its code, diffs, traces, tables and logs.

A turn is usually Markdown. Each sentence knows whether it is a list entry, whether its checkbox is ticked, and the
heading or lead-in line above it, because "Next steps:" says what the lines below it are. Search has its own passages
(`core/memory/text.py`), which keep code and join short sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = ["Sentence", "one_line", "sentences", "shorten", "typed"]

# The parts of a long turn that are read: people say what they want first and what they found last.
HEAD = 16_000
TAIL = 8_000
LONGEST_LINE = 2_000
LONGEST_SENTENCE = 1_000
FIRST = 200
LAST = 100

_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_FENCE = re.compile(r"\s{0,6}(`{3,}|~{3,})")
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)[^\n]*", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"#{1,6} (.+)$")
_BOLD_TITLE = re.compile(r"(?:\*\*|__)([^*_]{2,60})(?:\*\*|__):?$")
_LEAD_IN = re.compile(r"(\S[^.!?。！？]{0,58})[:：]$")
_BULLET = re.compile(r"(\s*)(?:[-*+•‣◦–]|\d{1,3}[.)])\s+(.*)$")
_BOX = re.compile(r"\[([ xX✓✔])\]\s+")
_LABELLED = re.compile(r"\s{0,3}[*_]{0,3}[^\W\d_][\w ./()!-]{0,30}[*_]{0,3}: ")
_RULE = re.compile(r"\s*[-=*_~#]{3,}\s*$")
_DIFF = re.compile(r"diff --git |index [0-9a-f]{6,}\.\.|@@ .*@@|(?:---|\+\+\+) \S+$")
_CODE = re.compile(
    r"\s*(?:\|.*\||\+[-=+]{3,}|>|<[/!]?[a-zA-Z][^>]*>\s*$"  # a table, a quotation, markup
    r"|at [\w.$<>/-]+\(|File \".*\", line \d+|Traceback \(|Caused by: |\.\.\. \d+ more|goroutine \d+|#\d+ +0x"
    r"|[\w.$]*(?:Error|Exception|Warning)(?::|$)|panic: |Segmentation fault"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:|\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE|FATAL)\b[\]:\s]"
    r"|\$ \S|>>> |(?:import|from) [\w.]+(?: import |;?$)|(?:export |async )?"
    r"(?:const|let|var|function|def|class|fn|func) \w+ ?[=(:{<]"
    r"|(?:public|private|static|return|#include|using namespace) ?[\w<][^.!?]*[;{(:>]$"
    r"|[+-][^\s\d]\S*\s.*[;{}()=]$)"
)
_CODE_END = re.compile(r"[;{}]\s*$")
_LETTER = re.compile(r"[^\W\d_]")
_LONG_WORD = re.compile(r"[!-~]{100,}")
_PAUSE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_`]*+\s++|[。！？｡．।؟۔]+[\"'”’」』）】]*\s*")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|cf|vs|approx|nr|dr|mrs?|prof|incl|resp|z\.\s?b|d\.\s?h|bzw|ca|usw|p\.\s?ej"
    r"|[^\W\d_]|\d{1,3})\.\s+$",
    re.IGNORECASE,
)
_EDGES = " \t*_~"
_OPENS = re.compile(r"\s*<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>")
_CLOSES = re.compile(r"</([A-Za-z][\w:.-]*)>")
# With this a client begins a new conversation, followed by the plan of the one before.
_HANDED_OVER = "Implement the following plan:"
# What programs print: titles and results of steps, marks of terminals, prompts of shells, commits, fields of JSON.
_PRINTED = re.compile(
    r"\s*(?:={3,} [^=\n]+ ={3,}|(?:---|===) (?:FAIL|PASS|SKIP|RUN|NAME|CONT)\b|(?:FAIL|ok)\t"
    r"|[\u2139\u23bf\u23fa\u2500-\u257f\u2600-\u27bf\u2a2f\U0001f300-\U0001faff]"
    r"|[^\s@]{1,64}@[^\s@]{1,64}[ :][^\n]{0,80}[%$#] \S|\[[^\]\n]{0,100}[ :]~?/[^\]\n]{0,200}\]\s+\S"
    r"|[0-9a-f]{7,40} \S|(?:create|delete) mode \d{6} |\"[\w .-]{1,60}\": )"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with normalised white space; `box` is the state of its checkbox, None without one."""

    text: str
    heading: str = ""
    listed: bool = False
    box: bool | None = None
    block: int = 0  # the paragraph or list entry it is part of, by number
    follows: bool = False  # the whole sentence before precedes it, separated by one space


def one_line(text: str) -> str:
    """The text on one line: white space and control characters become single spaces."""
    return _SURROGATE.sub("\ufffd", _SPACE.sub(" ", text)).strip()


def shorten(text: str, length: int) -> str:
    """At most `length` characters, cut between words if possible, with … where text is missing."""
    if len(text) <= length:
        return text
    kept = text[: max(0, length - 1)]
    space = kept.rfind(" ")
    if space >= len(kept) // 2:
        kept = kept[:space]
    return kept.rstrip(" ,;:(") + "…" if kept else ""


def sentences(content: str) -> list[Sentence]:
    """The sentences of a turn in order; of a long one those near its start and its end."""
    found = [
        replace(block, text=text, block=number, follows=follows)
        for number, block in enumerate(_Blocks().read(_looked_at(content)))
        for text, follows in _split(block.text)
    ]
    if len(found) <= FIRST + LAST:
        return found
    return [*found[:FIRST], replace(found[-LAST], follows=False), *found[1 - LAST :]]


def _looked_at(content: str) -> list[str]:
    if len(content) <= HEAD + TAIL:
        return content.splitlines()
    # The line at each cut is incomplete and left out, unless it is the only one.
    head, tail = content[:HEAD].splitlines(), content[-TAIL:].splitlines()
    return [*(head[:-1] or head), "", *(tail[1:] or [])]


def typed(content: str) -> str:
    """What a person typed of a prompt: no plan that an agent handed over, and no paragraph that a program printed."""
    if content.startswith(_HANDED_OVER):
        return ""
    # Code is left out first: a blank line in it ends no paragraph.
    parts = re.split(r"(\n\s*\n)", _FENCED.sub("\n\n", "\n".join(_looked_at(content))))
    return "".join(part for part in parts if not any(map(_is_printed, part.splitlines())))


def _is_printed(line: str) -> bool:
    return bool(_PRINTED.match(line)) or _is_code(line)


def _split(block: str) -> Iterator[tuple[str, bool]]:
    """The sentences of a block, each with whether it follows the one before without a gap."""
    joins = False
    for piece in _pieces(block):
        text = piece.strip(_EDGES)[:LONGEST_SENTENCE]
        telling = bool(_LETTER.search(text))
        if telling:
            yield text, joins and piece.startswith(text)
        joins = telling and piece.strip() == text and piece.endswith(" ")


def _pieces(block: str) -> Iterator[str]:
    at = 0
    for match in _PAUSE.finditer(block):
        if match.end() == len(block) or not _ABBREVIATION.search(block, max(at, match.start() - 12), match.end()):
            yield block[at : match.end()]
            at = match.end()
    yield block[at:]


class _Blocks:
    """Reads lines into blocks, each a paragraph or a list entry, as a `Sentence` that is not split yet."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.box: bool | None = None
        self.listed = False
        self.heading = ""
        self.lead_in = False
        self.blank = True
        self.fence = ""
        self.diff = False

    def read(self, lines: list[str]) -> Iterator[Sentence]:
        closes = {name: place for place, line in enumerate(lines) for name in _CLOSES.findall(line)}
        element = ""
        for place, line in enumerate(lines):
            opened = None if element or self.fence else _OPENS.match(line)
            if opened and closes.get(opened[1], -1) >= place:
                # Markup, as programs write it around what they add.
                yield from self._flush()
                element = opened[1]
            if not element:
                yield from self._line(line[:LONGEST_LINE])
            elif f"</{element}>" in line:
                element = ""
        yield from self._flush()

    def _line(self, line: str) -> Iterator[Sentence]:
        if self._in_code(line):
            yield from self._flush()
            return
        if not line.strip() or _RULE.match(line):
            yield from self._flush()
            self.blank, self.diff = True, False
            return
        bullet = _BULLET.match(line)
        indented = line.startswith(("    ", "\t"))
        if bullet is None and not indented and (title := _title(line)):
            yield from self._flush()
            self.heading, self.lead_in, self.blank = title, not line.lstrip().startswith("#"), False
            return
        if bullet is not None and not _DIFF.match(line):
            yield from self._flush()
            self._start_entry(bullet[2])
        elif indented and not (self.listed and self.lines):
            yield from self._flush()
        else:
            if _LABELLED.match(line):
                yield from self._flush()
            self._go_on(line)
        self.blank = False

    def _in_code(self, line: str) -> bool:
        fence = _FENCE.match(line)
        if self.fence:
            if fence and fence[1].startswith(self.fence):
                self.fence = ""
            return True
        if fence:
            self.fence = fence[1]
            return True
        if _DIFF.match(line):
            self.diff = True
        elif self.diff and line[:1] not in "+-\\ ":
            self.diff = False
        return self.diff or _is_code(line)

    def _start_entry(self, text: str) -> None:
        box = _BOX.match(text)
        self.listed, self.box = True, None if box is None else box[1] != " "
        self.lines = [text[box.end() :] if box else text]

    def _go_on(self, line: str) -> None:
        if not self.lines:
            # A paragraph after a blank line no longer belongs to the lead-in.
            if self.lead_in and self.blank:
                self.heading, self.lead_in = "", False
            self.listed, self.box = False, None
        self.lines.append(line)

    def _flush(self) -> Iterator[Sentence]:
        text = one_line(" ".join(self.lines))
        if text:
            yield Sentence(text, self.heading, self.listed, self.box)
        self.lines, self.listed, self.box = [], False, None


def _title(line: str) -> str:
    line = one_line(line)
    match = _TITLE.match(line) or _BOLD_TITLE.match(line) or _LEAD_IN.match(line)
    return match[1].strip(_EDGES + "#:：") if match else ""


def _is_code(line: str) -> bool:
    """Whether a line is not prose: code, a trace, a log, a table, a blob."""
    if _CODE.match(line) or _LONG_WORD.search(line):
        return True
    body = "".join(line.split())
    if len(body) < 20:
        return bool(_CODE_END.search(line))
    letters = len(_LETTER.findall(body))
    return letters < len(body) // 2 or (bool(_CODE_END.search(line)) and letters < len(body) * 4 // 5)
