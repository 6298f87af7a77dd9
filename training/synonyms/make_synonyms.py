"""Make `synonyms.tsv` and `verbs.json`: which words mean nearly the same, and which are mostly verbs, by WordNet 3.0.

    python training/synonyms/make_synonyms.py FOLDER

FOLDER holds WordNet's `data.*`, `index.*` and `cntlist.rev`, and the notice of its licence as `LICENSE`. The licence
allows copying and changing for any purpose with that notice, which becomes the head of the file. Taken are the words
that occur in WordNet's tagged texts or in the vocabulary of the embedding model, each with its first senses, and for a
sense those above it by one or two steps, similar to it or derived from it. Words are kept as the stems by which
statements are compared, senses as numbers.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

from cortex_py.core.embedding.shipped_model import SHIPPED, read_manifest, read_vocabulary
from cortex_py.core.memory.comparison import synonyms
from cortex_py.core.memory.comparison.opposites import COMMON
from cortex_py.core.memory.labels import keyphrases
from cortex_py.core.memory.text import stem

TARGET = Path(synonyms.__file__).with_name("synonyms.tsv")
VERBS = Path(keyphrases.__file__).with_name("verbs.json")
PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
SENSES = 4  # the first ones of a word in each part of speech: rarer ones make unlike words alike
UP = frozenset({"@", "@i"})  # to a broader word
NEAR = UP | {"&", "$", "*", "+", "\\"}  # to a similar word, a related verb, a derived form
_NOUN, _VERB = "1", "2"  # in the keys of `cntlist.rev`
_MOSTLY = 3  # times as often
_WORD = re.compile(r"[a-z]{2,30}")


def senses(folder: Path) -> dict[str, list[str]]:
    """The senses near to each sense."""
    found: dict[str, list[str]] = {}
    above: dict[str, list[str]] = {}
    for part, name in PARTS.items():
        for line in _lines(folder / f"data.{name}"):
            fields = line.partition("|")[0].split()
            at = 4 + 2 * int(fields[3], 16)
            pointers = [fields[at + 1 + 4 * n : at + 4 + 4 * n] for n in range(int(fields[at]))]
            found[part + fields[0]] = [kind.replace("s", "a") + to for sign, to, kind in pointers if sign in NEAR]
            above[part + fields[0]] = [kind + to for sign, to, kind in pointers if sign in UP]
    return {one: near + [top for up in above[one] for top in above[up]] for one, near in found.items()}


def words(folder: Path) -> dict[str, list[str]]:
    """The first senses of each word that occurs in the tagged texts, by its stem."""
    tagged: Counter[str] = Counter()
    for line in (folder / "cntlist.rev").read_text("latin-1").splitlines():
        key, _, count = line.split()
        tagged[key.partition("%")[0]] += int(count)
    tagged.update(read_vocabulary(SHIPPED, read_manifest()))
    found: dict[str, list[str]] = defaultdict(list)
    for part, name in PARTS.items():
        for line in _lines(folder / f"index.{name}"):
            word, _, count, *rest = line.split()
            if _WORD.fullmatch(word) and tagged[word] and word not in COMMON:
                found[stem(word)] += [part + one for one in rest[-int(count) :][:SENSES]]
    return found


def verbs(folder: Path) -> list[str]:
    """The stems of the words that the tagged texts have far more often as a verb than as a noun."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in (folder / "cntlist.rev").read_text("latin-1").splitlines():
        key, _, count = line.split()
        word, _, sense = key.partition("%")
        if _WORD.fullmatch(word):
            counts[stem(word)][sense[0]] += int(count)
    known = {name: {line.split()[0] for line in _lines(folder / f"index.{name}")} for name in ("noun", "verb")}
    only = {stem(word) for word in known["verb"] - known["noun"] if _WORD.fullmatch(word)}
    return sorted(only | {word for word, times in counts.items() if times[_VERB] > _MOSTLY * times[_NOUN]})


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("latin-1").splitlines() if not line.startswith("  ")]


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    near, spoken = senses(folder), words(folder)
    used = {one for some in spoken.values() for one in some}
    above = {one: [other for other in dict.fromkeys(near[one]) if other in used] for one in used}
    number = {one: format(n, "04x") for n, one in enumerate(sorted(used))}
    notice = [f"# {line}".rstrip() for line in (folder / "LICENSE").read_text("utf-8").splitlines()]
    rows = [f"{word}\t{' '.join(number[one] for one in dict.fromkeys(some))}" for word, some in sorted(spoken.items())]
    rows.append("")
    rows += [f"{number[one]}\t{' '.join(number[other] for other in above[one])}" for one in sorted(used) if above[one]]
    TARGET.write_text("\n".join([*notice, *rows]) + "\n", encoding="utf-8")
    found = verbs(folder)
    about = "Words that are mostly verbs, by the tagged texts of WordNet 3.0; its notice is in synonyms.tsv."
    VERBS.write_text(json.dumps({"about": about, "verbs": found}, indent=0) + "\n", encoding="utf-8")
    print(f"{len(found)} verbs")
    print(f"{len(spoken)} words, {len(used)} senses, {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
