"""What a clause mentions: files and lines, symbols, numbers, versions, commands, commits, packages, tests. Pure.

A mention has its place in the text and a normalised `value` to look up: the path of a file, "3-7" for lines, a name
without brackets, "30 s" for half a minute, "12 passed" for tests. Mentions look like code, so they are found in any
language; only the words around tests and packages are English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ....core.memory.comparison.opposites import COMMON
from ....core.memory.comparison.statements import NUMBER_WORDS, STARTERS, UNITS, Token, measure_at, one_of_unit_at
from ..words import alternatives, load_pattern, load_words

__all__ = ["Mention", "mentions"]

Kind = Literal[
    "file", "line", "symbol", "number", "version", "command", "commit", "quote", "dependency", "tests", "url"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mention:
    """`text` is at `start` to `end`; `value` is its normalised form."""

    kind: Kind
    text: str
    start: int
    end: int
    value: str


_EXTENSIONS = alternatives("claims", "extensions")
_NAMED = alternatives("claims", "file_names")
_PROGRAMS = alternatives("claims", "programs")
_TEST_WORDS = r"(?:(?:new|unit|integration|existing|regression|e2e|the|of|our|other|end-to-end|\d+)\s+){0,3}"
_MASTER = re.compile(
    rf"""
    (?P<tick>`[^`\n]{{1,200}}`)
  | (?P<url>\b[a-z][a-z0-9+.-]{{1,12}}://[^\s<>"'`)\]]+)
  | (?P<quote>["“„«][^"“”„«»\n]{{2,200}}["”“»])
  | (?P<tests>\b(?P<count>\d+(?:\s*/\s*\d+)?
        |(?i:all|every|no|none|some|both|two|three|four|five|six|seven|eight|nine|ten))
        \s+{_TEST_WORDS}(?:tests?|specs?|test\s+cases?|test\s+suites?|checks)
        (?:\s+(?:are|is|were|have|has|now|still|all|currently|should|will|might|may|must|probably|likely|also|cases|in
            |\(|[\w/.-]{{1,60}}\.\w{{1,4}})){{0,4}}
        \s+(?:(?P<not>not|don['’]t|do\s+not|doesn['’]t)\s+)?
        (?P<result>pass(?:ed|es|ing)?|green|succeed(?:ed|s)?|fail(?:ed|s|ing)?|red|broken|skipped|error(?:ed)?)\b)
  | (?P<counted>\b(?P<counted_n>\d+)\s+(?:tests?\s+)?
        (?P<counted_result>passed|failed|skipped|passing|failing|failures?|xfailed|deselected)\b)
  | (?P<suite>\b(?:test\s+suite|tests|specs)\s+
        (?:(?:are|is|now|all|still|have|has|currently|should|will|might|may|must|probably|likely|also)\s+){{0,3}}
        (?P<suite_not>(?:not|don['’]t|doesn['’]t)\s+)?
        (?P<suite_result>pass(?:ed|es|ing)?|green|fail(?:ed|s|ing)?|red|broken)\b)
  | (?P<file>(?<![A-Za-z0-9_@/.-])(?:~?/|\.{{1,2}}/)?(?:[A-Za-z0-9_@.\[\]()-]{{1,80}}/){{0,20}}
        (?:[A-Za-z0-9_.@-]{{0,80}}[A-Za-z0-9_-]\.(?:{_EXTENSIONS})|{_NAMED})(?![A-Za-z0-9_/]|\.[A-Za-z0-9]|\()
        (?P<at>:\d+(?:[-–:]\d+)?|\#L\d+(?:-L?\d+)?)?)
  | (?P<folder>(?<![A-Za-z0-9_@/.-])(?:\.{{0,2}}/|src/|tests?/|lib/|docs?/|app/|packages/)
        (?:[A-Za-z0-9_@.-]{{1,80}}/){{0,20}}
        [A-Za-z0-9_@-]{{0,80}}(?![A-Za-z0-9_]))
  | (?P<line>\b(?:[Ll]ines?|L(?=\d))\s*(?P<lines>\d+(?:\s*(?:-|–|to|through|and)\s*L?\d+)?)\b)
  | (?P<command>(?:(?<=\$\s)|(?<=run\s)|(?<=ran\s)|(?<=running\s)|(?<=via\s)|(?<=executed\s))(?:{_PROGRAMS})
        (?:\s+(?:--?[A-Za-z][\w=./-]*|[\w@.-]*/[\w./@-]*
            |(?!and\b|to\b|in\b|on\b|with\b|then\b|for\b|from\b|again\b|it\b|but\b|the\b|or\b)[a-z][\w.:-]*)){{0,6}})
  | (?P<pinned>(?<![\w.-])(?P<pin>@?[A-Za-z][A-Za-z0-9_.-]{{0,60}}(?:\[[\w,]+\])?)
        (?:[=~<>^!]=|@\^?~?)(?P<pin_version>v?\d[\w.*+-]*\w|\d))
  | (?P<commit>(?<![\w-])(?:[0-9a-f]{{7,40}})(?![\w-]))
  | (?P<version>(?<![\w.])(?:v(?:ersion\s+)?\d+(?:\.\d+){{0,3}}|\d+\.\d+\.\d+)(?:\.\d+)*
        (?:[-+]?(?:rc|alpha|beta|a|b|dev|post)[.\d]*)?(?![\w]))
  | (?P<call>(?<![\w.])[A-Za-z_][\w.]{{0,120}}\(\))
  | (?P<name>(?<![\w.@/-])(?:__\w{{1,60}}__|_{{0,2}}[A-Za-z]\w{{0,80}}(?:(?:\.|::|\#)_{{0,2}}[A-Za-z]\w{{0,80}}){{1,8}}
        |_?[A-Za-z0-9]{{1,40}}(?:_[A-Za-z0-9]{{1,40}}){{1,12}}|_[A-Za-z]\w{{1,60}}
        |[a-z]{{1,40}}(?:[A-Z][a-z0-9]{{0,40}}){{1,12}}
        |[A-Z]{{3,8}}[a-z]{{3,40}}|(?:[A-Z]{{1,8}}[a-z0-9]{{1,40}}){{2,12}}[A-Z]{{0,4}})(?![\w/-]))
  | (?P<kinded>\b(?:class|function|method|def|struct|interface|enum|variable|constant|module|decorator|fixture)\s+
        (?![A-Za-z0-9_@./-]*\.(?:{_EXTENSIONS})(?!\w))(?P<kinded_name>[A-Za-z_]\w{{1,60}}(?:\.[A-Za-z_]\w{{1,60}}){{0,4}})(?!\w))
  | (?P<titled>\b(?!(?:The|This|A|An|Each|Every|New|No|That|One|Its|Our|Base|Added)\s)
        (?P<titled_name>[A-Z][A-Za-z0-9]{{1,40}})\s+
        (?:class|struct|interface|enum|method|function|component|decorator)\b)
    """,
    re.VERBOSE,
)  # fmt: skip
_INSIDE_FILE = re.compile(
    rf"((?:~?/|\.{{1,2}}/)?(?:[^\s/`]{{1,80}}/){{0,20}}(?:[^\s/`]{{0,80}}\.(?:{_EXTENSIONS})|{_NAMED})|[^\s`]*/)"
    r"(:\d+(?:[-–:]\d+)?|#L\d+(?:-L?\d+)?)?"
)
_INSIDE_SYMBOL = re.compile(r"@?#?\$*[A-Za-z_][\w$]*(?:(?:\.|::|#|->)[A-Za-z_]\w*)*(?:\([^()]{0,80}\))?")
_INSIDE_COMMAND = re.compile(rf"(?:\$\s+)?(?:(?:{_PROGRAMS})(?:\s|$)|\S+\s+--?\w).*|\./\S+.*")
_INSIDE_VERSION = re.compile(r"v\d+(?:\.\d+)*|\d+(?:\.\d+){2,}\S*")
_INSIDE_NUMBER = re.compile(r"[-+]?\d[\d_.,]*(?:\s?(?:ms|s|min|h|kb|mb|gb|%))?", re.I)
_INSIDE_HASH = re.compile(r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}")
_PACKAGE = load_pattern("claims", "package", 0)
_AS_PACKAGE = load_pattern("claims", "as_package", 0)
_AND_PACKAGE = load_pattern("claims", "and_package", 0)
_DEPENDS = re.compile(r"depend|install|requirement", re.I)
_NAME_VERSION = load_pattern("claims", "name_version", 0)
_WORD = load_pattern("claims", "word", 0)
_PRODUCTS = load_words("claims", "products")
_NOT_NAMES = load_words("claims", "not_names")
_TEST_FAIL = re.compile(r"fail|red|broken|error", re.I)


_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?:_\d{3}){1,6}(?![\w,])")


def mentions(text: str, start: int = 0, end: int | None = None) -> list[Mention]:
    """The mentions between two offsets, in order; their own offsets refer to the whole text."""
    end = len(text) if end is None else end
    # `12_000` is 12,000, at the same place. Only this part is read: a text has as many parts as sentences.
    around = slice(max(start - 1, 0), end + 1)
    part = _GROUPED.sub(lambda number: number[0].replace("_", ","), text[around])
    if part != text[around]:
        text = text[: around.start] + part + text[around.stop :]
    found = [mention for match in _MASTER.finditer(text, start, end) for mention in _read(match)]
    files = {mention.start for mention in found if mention.kind == "file"}
    packages = [package for package in _packages(text, start, end) if package.start not in files]
    named = {(package.start, package.end) for package in packages}
    found = [mention for mention in found if mention.kind != "symbol" or (mention.start, mention.end) not in named]
    found += packages
    found += _named_versions(text, start, end, found)
    found += _numbers(text, start, end, found)
    return sorted(set(found), key=lambda mention: (mention.start, mention.end, mention.kind))


def _read(match: re.Match[str]) -> Iterator[Mention]:
    kind = match.lastgroup or ""
    if match["tick"]:
        yield from _ticked(match)
    elif match["file"]:
        yield from _file(match, "file", "at")
    elif match["tests"] or match["counted"] or match["suite"]:
        yield _tests(match)
    elif match["pinned"]:
        yield _group(match, "dependency", "pin", match["pin"].partition("[")[0].lower())
        yield _group(match, "version", "pin_version", match["pin_version"].removeprefix("v"))
    elif match["commit"]:
        if _is_commit(match):
            yield _group(match, "commit", "commit", match["commit"])
    elif match["kinded"] or match["titled"]:
        kind = "kinded_name" if match["kinded"] else "titled_name"
        called = match.string.startswith("()", match.end(kind))
        if called or not _is_word(match[kind]):
            yield _group(match, "symbol", kind, match[kind])
    elif match["name"]:
        if match["name"].lower() not in _PRODUCTS:
            yield _group(match, "symbol", "name", match["name"])
    else:
        yield from _plain(match)


def _is_word(name: str) -> bool:
    """Whether the word beside "function" is an ordinary word and no name."""
    lower = name.lower()
    return lower in _NOT_NAMES or lower in COMMON or re.fullmatch(r"[a-z]+(?:s|ed)", name) is not None


def _plain(match: re.Match[str]) -> Iterator[Mention]:
    """The kinds that one group identifies."""
    if match["url"]:
        shown = match["url"].rstrip(".,;:!?")
        yield Mention("url", shown, match.start(), match.start() + len(shown), shown)
    elif match["quote"]:
        yield _group(match, "quote", "quote", match["quote"][1:-1].strip())
    elif match["folder"]:
        shown = match["folder"].rstrip(".")
        if len(shown) > 1 and shown.strip("./"):
            yield Mention("file", shown, match.start(), match.start() + len(shown), _path(shown))
    elif match["line"]:
        yield _group(match, "line", "lines", _lines(match["lines"]))
    elif match["command"]:
        yield _group(match, "command", "command", " ".join(match["command"].split()))
    elif match["version"]:
        yield _group(match, "version", "version", _version(match["version"]))
    elif match["call"]:
        yield _group(match, "symbol", "call", match["call"][:-2])


def _group(match: re.Match[str], kind: Kind, group: str, value: str) -> Mention:
    return Mention(kind, match[group], match.start(group), match.end(group), value)


def _path(written: str) -> str:
    return written.replace("\\", "/").removeprefix("./")


def _lines(written: str) -> str:
    return "-".join(re.findall(r"\d+", written)[:2])


def _version(written: str) -> str:
    return re.sub(r"^v(?:ersion\s+)?", "", written)


def _file(match: re.Match[str], group: str, at: str) -> Iterator[Mention]:
    suffix = match[at] or ""
    end = match.end(group) - (len(suffix) if group == "file" else 0)
    start = match.start(group)
    shown = match.string[start:end]
    # An open bracket before a path is not part of it, unlike the brackets of a route folder.
    dropped = len(shown) - len(shown.lstrip("([")) if shown.count("(") != shown.count(")") else 0
    yield Mention("file", shown[dropped:], start + dropped, end, _path(shown[dropped:]))
    if suffix:
        # "12:5" is line and column, "12-15" is a range.
        numbers = suffix.split(":")[1] if suffix.count(":") == 2 else suffix
        yield Mention("line", suffix, end, end + len(suffix), _lines(numbers))


def _ticked(match: re.Match[str]) -> Iterator[Mention]:
    """Classify text in backticks by its form; an unknown form is a quotation."""
    start, inside = match.start() + 1, match["tick"][1:-1]
    end = start + len(inside)
    if found := _INSIDE_FILE.fullmatch(inside):
        shown, suffix = found[1], found[2] or ""
        yield Mention("file", shown, start, start + len(shown), _path(shown))
        if suffix:
            yield Mention(
                "line", suffix, start + len(shown), end, _lines(suffix.split("-")[0] if ":" in suffix[1:] else suffix)
            )
        return
    kind: Kind = "quote"
    value = inside.strip()
    if _INSIDE_VERSION.fullmatch(inside):
        kind, value = "version", inside.removeprefix("v")
    elif _INSIDE_HASH.fullmatch(inside):
        kind = "commit"
    elif _INSIDE_NUMBER.fullmatch(inside):
        return  # the numbers are read below, with their units
    elif pinned := re.fullmatch(r"(@?[\w./-]+?)(?:==|@|>=|~=|\^)(v?\d[\w.*]*)", inside):
        yield Mention("dependency", pinned[1], start, start + len(pinned[1]), pinned[1].lower())
        yield Mention("version", pinned[2], start + pinned.start(2), end, pinned[2].removeprefix("v"))
        return
    elif _INSIDE_SYMBOL.fullmatch(inside):
        kind, value = "symbol", inside.partition("(")[0].lstrip("@$#")
    elif _INSIDE_COMMAND.fullmatch(inside):
        kind, value = "command", " ".join(inside.removeprefix("$").split())
    yield Mention(kind, inside, start, end, value)


def _tests(match: re.Match[str]) -> Mention:
    group = "tests" if match["tests"] else "counted" if match["counted"] else "suite"
    names = {"tests": ("count", "result"), "counted": ("counted_n", "counted_result"), "suite": ("", "suite_result")}
    count_group, result_group = names[group]
    count = " ".join(match[count_group].lower().split()) if count_group else "all"
    if not count[0].isdigit() and (number := re.search(r"\d+(?=\D*\btests?\b)", match[group])):
        count = number[0]  # "all 12 tests"
    result = match[result_group]
    failed = bool(_TEST_FAIL.search(result)) != bool(match["not"] or match["suite_not"])
    shown = "skipped" if result.startswith(("skip", "xfail", "desel")) else "failed" if failed else "passed"
    return _group(match, "tests", group, f"{_count(count)} {shown}")


def _count(word: str) -> str:
    small = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    if word in small:
        return str(small.index(word))
    return {"every": "all", "none": "no"}.get(word, word.replace(" ", ""))


def _is_commit(match: re.Match[str]) -> bool:
    shown = match["commit"]
    said = match.string[max(0, match.start() - 12) : match.start()].lower().rstrip(" `(#:")
    if said.endswith(("commit", "sha", "revision")):
        return True
    return any(map(str.isdigit, shown)) and any(map(str.isalpha, shown))


def _packages(text: str, start: int, end: int) -> Iterator[Mention]:
    for match in _PACKAGE.finditer(text, start, end):
        # "uses" and "added" fit anything: only a version or an unambiguous word makes it a package.
        if match[1].lower() in _RUNTIMES or match[1].lower() in _ARTICLES:
            continue
        if match[2]:
            yield from _and_packages(text, match.end(1), end)
        if match[2] or _DEPENDS.search(match[0]):
            yield Mention("dependency", match[1], match.start(1), match.end(1), match[1].lower())
    for match in _AS_PACKAGE.finditer(text, start, end):
        if match[1].lower() not in _ARTICLES:
            yield Mention("dependency", match[1], match.start(1), match.end(1), match[1].lower())


def _and_packages(text: str, at: int, end: int) -> Iterator[Mention]:
    """The further packages in "FastAPI 0.110 and SQLAlchemy 2.0"."""
    while match := _AND_PACKAGE.match(text, at, end):
        yield Mention("dependency", match[1], match.start(1), match.end(1), match[1].lower())
        at = match.end(1)


_RUNTIMES = load_words("claims", "runtimes")
_ARTICLES = load_words("claims", "articles")


def _named_versions(text: str, start: int, end: int, known: list[Mention]) -> Iterator[Mention]:
    """Versions right after a name: "Python 3.11", "PostgreSQL 15"."""
    taken = {mention.start for mention in known if mention.kind in ("version", "file", "line", "tests", "quote")}
    for match in _NAME_VERSION.finditer(text, start, end):
        short = "." in match[1] or len(match[1]) < 3  # a long number is a port or a year
        if short and match.start(1) not in taken and match[0].split()[0].lower() not in _COUNTED:
            yield Mention("version", match[1], match.start(1), match.end(1), match[1])
    for package in (mention for mention in known if mention.kind == "dependency"):
        after = _ITS_VERSION.match(text, package.end, end)
        if after is not None and after.start(1) not in taken:
            yield Mention("version", after[1], after.start(1), after.end(1), after[1])


_ITS_VERSION = re.compile(r"`?\s+(?:from\s+\S{1,20}\s+)?(?:to\s+)?(?:version\s+)?`?v?(\d+\.\d+)(?![\w]|\.\d)")
_COUNTED = load_words("claims", "not_products")


_COUNTABLE = re.compile(rf"\d|\b(?:{'|'.join(NUMBER_WORDS)}|an?\s+(?:{'|'.join(UNITS)}))\b", re.I)


def _numbers(text: str, start: int, end: int, known: list[Mention]) -> Iterator[Mention]:
    """Numbers with their units, outside the other mentions."""
    if not _COUNTABLE.search(text, start, end):
        return
    tokens, places = _tokens(text, start, end, [m for m in known if m.kind not in ("dependency", "quote")])
    at = 0
    while at < len(tokens):
        token = tokens[at]
        starts = token.kind == "number" or token.lower in STARTERS
        found = measure_at(tokens, at) if starts else one_of_unit_at(tokens, at)
        if found is not None:
            first, last = places[at][0], places[found.end - 1][1]
            if found.kind != "date" or any(map(str.isdigit, text[first:last])):
                yield Mention(
                    "version" if found.kind == "version" else "number", text[first:last], first, last, found.key
                )
        at = found.end if found is not None else at + 1


def _tokens(text: str, start: int, end: int, known: list[Mention]) -> tuple[list[Token], list[tuple[int, int]]]:
    """The words with their places; other mentions become gaps, so that no number spans one."""
    covered = sorted((mention.start, mention.end) for mention in known)
    tokens, places, at = [], [], 0
    for match in _WORD.finditer(text, start, end):
        while at < len(covered) and covered[at][1] <= match.start():
            at += 1
        hidden = at < len(covered) and covered[at][0] < match.end()
        written = "" if hidden else match[0]
        tokens.append(Token("end" if hidden else match.lastgroup or "", written, written.lower()))
        places.append(match.span())
    return tokens, places
