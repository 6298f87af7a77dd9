"""Code with what people call it: functions with their docstrings, recipes with their titles, snippets with questions.

A function is stored with its docstring or without it. Queries are written as one types them into a search box.
Functions that occur in the code search benchmark, by name and docstring or by body, are left out.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from sources import WORDS, Collection, Snapshot, clean, cut, draw

HELD_OUT = ("boltons", "nltk", "pypdf")
RECIPES, SHORT, QUESTIONS, TASKS = (
    "ActiveState/code",  # recipes, each with its own licence
    "30-seconds/30-seconds-of-python",  # CC0
    "shilliscmu/TranxConalaBaseline",  # CoNaLa: questions of Stack Overflow, CC BY-SA
    "zorazrw/odex",  # questions of Stack Overflow, CC BY-SA 4.0
)
PERMISSIVE = re.compile(r"(?i)\b(mit|bsd|apache|psf|python software foundation|isc|unlicense|hpnd|0bsd)\b")
_RESTRICTED = re.compile(r"(?i)\b[al]?gpl|general public|mozilla|mpl\b|proprietary|non.?commercial")
_MOST_OF_ONE, _TOGETHER = 1400, 1500
_SKIPPED = re.compile(r"(^|/)(tests?|testing|_vendor|vendored?|extern|conftest|examples?|migrations)(/|\.py)")
_STOP = set(WORDS["stop"])


def licence(wheel: zipfile.ZipFile) -> str | None:
    """What the package declares, if it is a licence that lets its text be used freely."""
    path = next((n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")), None)
    if path is None:
        return None
    head = wheel.read(path).decode("utf-8", "replace").split("\n\n")[0]
    told = re.findall(r"(?m)^(?:License-Expression|License|Classifier: License ::) ?:? ?(.{2,100})$", head)
    text = "; ".join(told)
    if not PERMISSIVE.search(text) or _RESTRICTED.search(text):
        return None
    return clean(told[0].removeprefix("OSI Approved :: "))


def known(data: Path) -> set[str]:
    """Digests of the benchmark's functions: their name with the docstring's begin, and their bodies."""
    found = set()
    with gzip.open(data / "cosqa_code.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            found |= digests(json.loads(line)["code"])
    return found


def digests(code: str) -> set[str]:
    name = re.search(r"def\s+(\w+)", code)
    body = re.sub(r"(?s)(\"\"\"|''').*?\1", "", code, count=1)
    doc = re.search(r"(?s)(\"\"\"|''')(.*?)\1", code)
    keys = [re.sub(r"\W+", "", body)[:400]]
    if doc and name:
        keys.append(name[1] + re.sub(r"\W+", "", doc[2])[:60].lower())
    return {hashlib.blake2b(key.encode(), digest_size=8).hexdigest() for key in keys if len(key) > 20}


def said_first(doc: str) -> str:
    """The first sentence of a docstring."""
    text = re.sub(r"(?s)\n\s*\n.*", "", doc.strip())
    text = re.sub(r":\w+:`~?([^`]+)`", r"\1", text).replace("``", "").replace("`", "")
    return clean(re.split(r"(?<=[a-z)])\.(?:\s|$)", clean(text))[0]).rstrip(".: ")


def typed(sentence: str, name: str, chance: Random) -> str:
    """The sentence as it stands, or as one would type it into a search box."""
    form = chance.random()
    if form < 0.3:
        return sentence
    telling = [w for w in re.findall(r"[A-Za-z0-9_+#.-]+", sentence.lower()) if w.strip(".-") not in _STOP]
    short = " ".join(telling[: chance.randint(4, 9)]).strip(".- ")
    short = re.sub(r"^(returns|gets|computes|creates|checks|converts|removes|finds|reads|writes|loads|parses)\b",
                   lambda m: m[1].rstrip("s"), short)  # fmt: skip
    if form < 0.75:
        return chance.choice(("python {}", "{} python", "how to {} in python", "python how to {}", "{}")).format(short)
    split = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).replace("_", " ").strip().lower()
    return chance.choice(("python {}", "{} in python", "function to {}", "{}")).format(split if " " in split else short)


def functions(source: str) -> Iterator[tuple[str, str, str, str]]:
    """Name, docstring, code and code without docstring of every documented function."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = source.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("__"):
            continue
        doc = ast.get_docstring(node)
        body = node.body[1:]
        if not doc or not body or node.end_lineno is None:
            continue
        first = node.body[0]
        whole = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        bare = "\n".join(lines[node.lineno - 1 : first.lineno - 1] + lines[(first.end_lineno or 0) : node.end_lineno])
        yield node.name, doc, _dedented(whole), _dedented(bare)


def _dedented(code: str) -> str:
    margin = len(code) - len(code.lstrip())
    return re.sub(rf"(?m)^ {{0,{margin}}}", "", code)


def packages(wheels: Path, data: Path) -> Iterator[Collection]:
    benchmark = known(data)
    place: dict[str, int] = {}
    questions: dict[str, list[int]] = {}
    count = 0
    for path in sorted(wheels.glob("*.whl")):
        name = path.name.split("-")[0]
        with zipfile.ZipFile(path) as wheel:
            if licence(wheel) is None:
                continue
            chance = draw(f"code/{name}")
            found = _documented(wheel, benchmark, chance)
        held = name in HELD_OUT
        if held:
            held_place: dict[str, int] = {}
            held_questions: dict[str, list[int]] = {}
            _add(found, held_place, held_questions, chance)
            yield _collection(f"code/{name}", held_place, held_questions, True)
            continue
        _add(found, place, questions, chance)
        if len(place) >= _TOGETHER:
            yield _collection(f"code/{count}", place, questions, False)
            place, questions, count = {}, {}, count + 1
    if place:
        yield _collection(f"code/{count}", place, questions, False)


def _documented(wheel: zipfile.ZipFile, benchmark: set[str], chance: Random) -> list[tuple[str, str, str, str]]:
    found: dict[str, tuple[str, str, str, str]] = {}
    for file in sorted(wheel.namelist()):
        if not file.endswith(".py") or _SKIPPED.search(file):
            continue
        for name, doc, whole, bare in functions(wheel.read(file).decode("utf-8", "replace")):
            sentence = said_first(doc)
            useful = 4 <= len(sentence.split()) <= 24 and sentence.isascii() and len(bare) >= 60
            if useful and not digests(whole) & benchmark:
                found.setdefault(sentence, (name, sentence, whole, bare))
    chosen = list(found.values())
    return chance.sample(chosen, min(len(chosen), _MOST_OF_ONE))


def _add(
    found: list[tuple[str, str, str, str]], place: dict[str, int], questions: dict[str, list[int]], chance: Random
) -> None:
    for name, sentence, whole, bare in found:
        # A query made of the docstring must not be found by the docstring alone.
        n = place.setdefault(cut(bare if chance.random() < 0.65 else whole, 450), len(place))
        for query in dict.fromkeys(typed(sentence, name, chance) for _ in range(2)):
            places = questions.setdefault(query, [])
            if n not in places:
                places.append(n)


def _collection(
    name: str, place: dict[str, int], questions: dict[str, list[int]], held_out: bool, kind: str = "code"
) -> Collection:
    kept = [(query, places) for query, places in questions.items() if len(places) <= 3]
    return Collection(name, kind, list(place.items()), kept, held_out)


def searched(title: str, chance: Random) -> str:
    """A title or question as one types it: sometimes without its small words, often with the language's name."""
    text = re.sub(r"(?i)\s*\b(in|with|using)? ?python\b\s*", " ", title).strip(" ?.:!-")
    text = text[0].lower() + text[1:] if text[1:2].islower() else text
    if chance.random() < 0.4:
        telling = [word for word in text.split() if word.lower() not in _STOP]
        text = " ".join(telling) if len(telling) > 1 else text
    if chance.random() < 0.35:
        return text
    return chance.choice(("python {}", "{} python", "{} in python", "how to {} in python")).format(
        re.sub(r"(?i)^how (?:to|do i|can i) ", "", text)
    )


def recipes(snapshots: Path, data: Path) -> Iterator[Collection]:
    """Recipes that people published: code of theirs under a title and a description of their own."""
    repo, benchmark = Snapshot(snapshots, RECIPES), known(data)
    bodies: dict[str, dict[str, str]] = {}
    wanted = [path for path in repo.files("recipes/Python") if path.count("/") == 3]
    for path, body in repo.read(wanted):
        folder, _, name = path.rpartition("/")
        bodies.setdefault(folder, {})["code" if name.endswith(".py") else name] = body
    found: list[tuple[list[str], str]] = []
    for files in bodies.values():
        terms = files.get("LICENSE.md", "")
        if not {"README.md", "code"} <= set(files) or not PERMISSIVE.search(terms) or _RESTRICTED.search(terms):
            continue
        lines = files["README.md"].splitlines()
        title = clean(lines[0].lstrip("# "))
        about = clean(" ".join(line for line in lines[1:] if not re.match(r"(?i)(originally|last|author)\b", line)))
        code = _telling_part(files["code"])
        if len(title.split()) >= 2 and title.isascii() and len(code) >= 60 and not digests(code) & benchmark:
            said = re.split(r"(?<=[a-z)])\.\s", about)[0].strip(" .")
            useful = 4 <= len(said.split()) <= 24 and said.isascii()
            found.append(([title, said] if useful else [title], code))
    short = Snapshot(snapshots, SHORT)
    for _, page in short.read(short.files("snippets")):
        title, text = re.search(r"(?m)^title: (.+)$", page), re.search(r"(?s)---\n\n(.+?)\n\n", page)
        code_block = re.search(r"(?s)```py\n(.+?)```", page)
        if title and text and code_block and not digests(code_block[1]) & benchmark:
            found.append(([clean(text[1]).rstrip("."), clean(title[1])], code_block[1]))
    yield from _titled("recipes", found, 350)


def snippets(snapshots: Path) -> Iterator[Collection]:
    """Questions of Stack Overflow with the line of code that answers them."""
    found: dict[str, tuple[list[str], str]] = {}
    for _, body in Snapshot(snapshots, QUESTIONS).read(["conala-train.json", "conala-test.json"]):
        for row in json.loads(body):
            found.setdefault(row["snippet"], ([clean(row["intent"]), clean(row["rewritten_intent"] or "")], ""))
    for _, body in Snapshot(snapshots, TASKS).read(["data/en_test.jsonl"]):
        for row in map(json.loads, body.splitlines()):
            code = clean(row["prompt"].strip()) + row["canonical_solution"]
            found.setdefault(code, ([clean(row["intent"])], ""))
    pairs = [([t for t in titles if 3 <= len(t.split()) <= 24], code) for code, (titles, _) in found.items()]
    yield from _titled("snippets", [(titles, code) for titles, code in pairs if titles and len(code) > 12], 500)


def _telling_part(code: str) -> str:
    """The first definition of a file, or its text without the comments at its head."""
    code = code.replace("\r", "").expandtabs(4)
    code = re.sub(r"(?m)\A(?:\s*#.*\n|\s*\n|(?:from|import) .*\n)+", "", code)
    begin = re.search(r"(?m)^(?:async )?def |^class ", code)
    return cut(code[begin.start() :] if begin and begin.start() < 1500 else code, 450)


def _titled(name: str, found: list[tuple[list[str], str]], together: int) -> Iterator[Collection]:
    chance = draw(f"code/{name}")
    chance.shuffle(found)
    for number, first in enumerate(range(0, len(found), together)):
        place: dict[str, int] = {}
        questions: dict[str, list[int]] = {}
        for titles, code in found[first : first + together]:
            n = place.setdefault(cut(code, 450), len(place))
            for title in titles:
                if n not in (places := questions.setdefault(searched(title, chance), [])):
                    places.append(n)
        yield _collection(f"{name}/{number}", place, questions, number == 0, "search")
