"""Short notes of developers: commits, change logs, documentation and command pages, with what one would ask for them.

A commit's subject is paired with its body and with the change log lines that the same commit added: two people's words
for one thing, or one person's twice. A heading is paired with its first paragraph, a task with its command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

from sources import WORDS, Collection, Snapshot, clean, cut, draw

# Repository, licence, and where its change log is.
HISTORIES = (
    ("django/django", "BSD-3-Clause", "docs/releases"),
    ("pallets/flask", "BSD-3-Clause", "CHANGES.rst"),
    ("pallets/click", "BSD-3-Clause", "CHANGES.rst"),
    ("pallets/itsdangerous", "BSD-3-Clause", "CHANGES.rst"),
    ("psf/requests", "Apache-2.0", "HISTORY.md"),
    ("pydantic/pydantic", "MIT", "HISTORY.md"),
    ("coleifer/peewee", "MIT", "CHANGELOG.md"),
    ("encode/httpx", "BSD-3-Clause", "CHANGELOG.md"),
    ("encode/starlette", "BSD-3-Clause", "docs/release-notes.md"),
    ("python-attrs/attrs", "MIT", "CHANGELOG.md"),
    ("hynek/structlog", "MIT OR Apache-2.0", "CHANGELOG.md"),
    ("jd/tenacity", "Apache-2.0", "releasenotes"),
    ("expressjs/express", "MIT", "History.md"),
    ("tj/commander.js", "MIT", "CHANGELOG.md"),
    ("google/gson", "Apache-2.0", "CHANGELOG.md"),
    ("apache/commons-cli", "Apache-2.0", "src/changes"),
    ("spf13/cobra", "Apache-2.0", "CHANGELOG.md"),
    ("go-chi/chi", "MIT", "CHANGELOG.md"),
    ("celery/celery", "BSD-3-Clause", "Changelog.rst"),
    ("koajs/koa", "MIT", "History.md"),
)
HELD_OUT = ("celery/celery", "koajs/koa")
COMMANDS = ("tldr-pages/tldr", "CC-BY-4.0")

_MOST_COMMITS, _MOST_SECTIONS, _TOGETHER = 3500, 2500, 1500
_NOISE = re.compile(
    r"(?im)^\s*((signed-off-by|co-authored-by|reviewed-by|closes|fixes|refs?|thanks|backport|git-svn-id|change-id|see)\b"
    r".*|\(?cherry picked.*|[*-]+\s*)$"
)
_MARK = re.compile(r"\(?#\d+\)?|</?\w[^>]*>|\bgh-\d+\b:?|:\w+:|`+|\*\*|https?://\S+|\bGH-?\d+\b")
_START = re.compile(r"^(?:\[[^\]]+\]\s*)?(?:(?:fixed|refs|fixes|closes|bpo-|issue)\s*#?\d*\s*(?:--|:)\s*)+", re.I)
_KIND = re.compile(r"^(?:feat|fix|docs|chore|refactor|test|perf|style|ci|build|deps)(?:\([^)]*\))?!?:\s*", re.I)
_USELESS = re.compile(
    r"(?i)^(merge|bump|release|version|v?\d+\.|wip|prepare|revert)\b|change.?log|history|authors|typo"
)
_PLAIN = set(WORDS["plain"])
_VERBS = {
    "add": ("added", "Did we add {}?", "When was {} added?", "Is there {} now?"),
    "fix": ("fixed", "Was {} fixed?", "What did we do about {}?", "How was {} solved?"),
    "remove": ("removed", "Did we remove {}?", "Why is {} gone?", "Can {} still be used?"),
    "drop": ("dropped", "Did we drop {}?", "Why is {} gone?", "Do we still have {}?"),
    "allow": ("allowed", "Can we have {}?", "Is {} possible?", "How is {} allowed?"),
    "use": ("used", "Do we use {}?", "Why do we use {}?", "What uses {}?"),
    "make": ("made", "Did we make {}?", "Why did we make {}?", "What was made of {}?"),
    "improve": ("improved", "What got better about {}?", "Did we improve {}?", "How is {} better?"),
    "change": ("changed", "What changed in {}?", "Why did {} change?", "Did we change {}?"),
    "update": ("updated", "What was updated in {}?", "Did we update {}?", "Why was {} updated?"),
    "support": ("supported", "Is {} supported?", "Do we support {}?", "Since when do we support {}?"),
    "prevent": ("prevented", "How do we prevent {}?", "Can {} still happen?", "What stops {}?"),
    "deprecate": ("deprecated", "Is {} deprecated?", "What replaces {}?", "Should we still use {}?"),
    "rename": ("renamed", "What is the new name of {}?", "Was {} renamed?", "What happened to {}?"),
    "refactor": ("refactored", "Did we restructure {}?", "Why was {} restructured?", "What happened to {}?"),
}


def plain(text: str) -> str:
    return clean(_MARK.sub("", text)).strip(" -*.:")


def keywords(text: str, chance: Random) -> str:
    """A few of a text's telling words, as one types them into a search box."""
    found = [word for word in dict.fromkeys(re.findall(r"[A-Za-z_][\w.]{2,}", text)) if word.lower() not in _PLAIN]
    if len(found) < 2:
        return text
    count = min(len(found), chance.randint(2, 5))
    kept = sorted(chance.sample(range(len(found)), count))
    return " ".join(found[n].strip(".").lower() for n in kept)


def ask(title: str, chance: Random) -> str:
    """The title itself, a question made of it, or its telling words."""
    form = chance.random()
    if form < 0.4:
        return title
    if form < 0.65:
        return keywords(title, chance)
    first, _, rest = title.partition(" ")
    verb = first.lower()
    base = next((b for b, (past, *_) in _VERBS.items() if verb in (b, past, f"{b}s", f"{b}es", f"{b[:-1]}ing")), None)
    if base and rest:
        return chance.choice(_VERBS[base][1:]).format(rest)
    lower = title[0].lower() + title[1:] if title[1:2].islower() else title
    return chance.choice(("what do we know about {}", "why {}?", "notes on {}", "how did we handle {}")).format(lower)


def _subject(text: str) -> str:
    return plain(_KIND.sub("", _START.sub("", text.strip())))


def _pairs(name: str, found: list[tuple[str, str]], kind: str, held_out: bool) -> Iterator[Collection]:
    """Collections of pairs of a title and a text; records have no neighbours."""
    chance = draw(f"notes/{name}/{kind}")
    for first in range(0, len(found), _TOGETHER):
        place: dict[str, int] = {}
        questions: dict[str, list[int]] = {}
        for title, text in found[first : first + _TOGETHER]:
            n = place.setdefault(text, len(place))
            for query in dict.fromkeys((ask(title, chance), title if chance.random() < 0.3 else ask(title, chance))):
                places = questions.setdefault(query, [])
                if n not in places:
                    places.append(n)
        records = list(place.items())
        yield Collection(f"{name}/{kind}{first}", "note", records, list(questions.items()), held_out)


def _commits(repo: Snapshot) -> Iterator[tuple[str, str]]:
    log = repo.git("log", "--no-merges", "--format=%s%x00%b%x01")
    for entry in log.split("\x01"):
        subject, _, body = entry.partition("\x00")
        title, text = _subject(subject), plain(_NOISE.sub("", body))
        if 12 <= len(title) <= 120 and len(text) >= 60 and not _USELESS.match(title):
            yield title, cut(text, 500)


def _changes(repo: Snapshot, path: str) -> Iterator[tuple[str, str]]:
    """Subjects with the change log entry that the commit added."""
    log = repo.git("log", "--no-merges", "--format=\x01%s", "-p", "-U0", "--", path)
    for entry in log.split("\x01")[1:]:
        subject, _, patch = entry.partition("\n")
        added = [line[1:].strip() for line in patch.splitlines() if line.startswith("+") and line[1:2] != "+"]
        title, text = _subject(subject), plain(" ".join(added))
        if 12 <= len(title) <= 120 and 30 <= len(text) <= 500 and not _USELESS.match(title):
            yield title, text


def _sections(repo: Snapshot) -> Iterator[tuple[str, str]]:
    """Headings of documentation pages with the paragraph below them."""
    pages = [f for f in repo.files() if re.search(r"(?i)\.(rst|md|txt)$", f) and re.search(r"(?i)docs?/|readme", f)]
    pages = [f for f in pages if not re.search(r"(?i)release|change|history|locale|test", f)]
    for path, body in repo.read(pages):
        topic = Path(path).stem.replace("-", " ").replace("_", " ")
        heads = re.findall(
            r"(?m)^(?:#+ (.{6,80})|(.{6,80})\n(?:=|-|~|\^|\"){6,})\n+((?:[A-Z].*\n)(?:\S.*\n){1,8})", body
        )
        for marked, underlined, paragraph in heads:
            title, text = plain(marked or underlined), plain(paragraph)
            if len(text) >= 60 and title:
                yield (title if len(title) > 25 else f"{topic}: {title}"), cut(text, 500)


def histories(snapshots: Path) -> Iterator[Collection]:
    for name, _, log in HISTORIES:
        repo, held = Snapshot(snapshots, name), name in HELD_OUT
        for kind, found, most in (
            ("commits", _commits(repo), _MOST_COMMITS),
            ("changes", _changes(repo, log), _MOST_COMMITS),
            ("sections", _sections(repo), _MOST_SECTIONS),
        ):
            once = list(dict.fromkeys(found))
            if len(once) > most:
                once = draw(f"{name}/{kind}").sample(once, most)
            if len(once) >= 40:
                yield from _pairs(name, once, kind, held)


def commands(snapshots: Path) -> Iterator[Collection]:
    """What one wants to do, and the command that does it, written down as a note."""
    repo = Snapshot(snapshots, COMMANDS[0])
    pages = [f for f in repo.files("pages") if re.match(r"pages/(common|linux)/", f)]
    chance = draw("tldr")
    found: list[tuple[str, str]] = []
    for _, body in repo.read(sorted(pages)):
        name = body.splitlines()[0].strip("# ")
        about = plain(" ".join(line[2:] for line in body.splitlines() if re.match(r"> (?!More inf|See also)", line)))
        tasks = [
            (plain(task), re.sub(r"\{\{\[?(.*?)\]?\}\}", r"\1", command))
            for task, command in re.findall(r"(?m)^- (.+?):?\n+`(.+)`", body)
        ]
        if len(about) > 20:
            found.append((about, f"{name}: " + "; ".join(f"{task}: {command}" for task, command in tasks[:3])))
        for task, command in chance.sample(tasks, min(len(tasks), 2)):
            note = chance.choice(("{t}: {c}", "{c} ({n}: {a})", "Run {c}. {a}", "{n}: {c}. {a}"))
            query = task if chance.random() < 0.6 else f"how to {task[0].lower()}{task[1:]}"
            found.append((query, note.format(t=task, c=command, n=name, a=about)))
    once = chance.sample(sorted(set(found)), min(len(set(found)), 7000))
    yield from _pairs(COMMANDS[0], [(title, cut(text, 500)) for title, text in once], "tasks", False)
