"""Functions of permissively licensed packages with what they do: docstrings, and queries as one types them.

A function is stored with its docstring or without it. Functions that occur in the code search benchmark, by name and
docstring or by body, are left out.
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

from sources import WORDS, Collection, clean, cut, draw

HELD_OUT = ("boltons", "nltk", "pypdf")
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


def _collection(name: str, place: dict[str, int], questions: dict[str, list[int]], held_out: bool) -> Collection:
    kept = [(query, places) for query, places in questions.items() if len(places) <= 3]
    return Collection(name, "code", list(place.items()), kept, held_out)
