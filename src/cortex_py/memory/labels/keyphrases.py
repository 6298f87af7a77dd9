"""Key phrases of a short technical note, and the tags that could stand on it. Pure, without a model.

A phrase is up to three words that stand together and are no stop words, verbs or numbers. What a phrase is worth
follows from how early and how often it is said, how its words are written, and how many words stand together. English
is read best; of other languages only what is written as a name, and of scripts without spaces nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2

from ..security.secret_values import is_digest, is_random
from ..security.secrets import find_secrets, redact
from .terms import STOP_WORDS, terms

__all__ = ["KeyPhrase", "file_type_tags", "key_phrases", "suggest_tags", "tag_for"]

LOOKED_AT = 20_000  # characters; what a note is about stands before that
LONGEST_TAG = 40
MOST_NEW = 5
MOST_IN_ALL = 8
_LONGEST_PHRASE = 3
_LEAST_SHARE = 0.65  # of the best phrase's score; what scores less is not worth a tag

# Words that never are a subject of their own, by their common forms; verbs are met in all their forms.
_VERBS = """
    accept achieve admit affect agree aim allow announce answer appear apply argue arrive ask assume attempt avoid be
    became become began begin begun believe belong bring broke broken brought came cause choose chose claim come
    confirm consider contain continue cost cover decide declare demand depend describe determine die differ disagree
    discover discuss do done drew drop ensure enter exist expect explain fail fall feel fell felt find finish follow
    forget found gave get give gone got grew grow guess had hang happen have hear held help hide hold hope include
    indicate insist intend introduce invoke join keep kept knew know known laid lead learn leave led left let lie look
    lose lost made maintain make mean meant mention met need notice observe obtain occur offer open ought pass perform
    persist plan prefer prepare prevent promise propose prove provide put raise ran reach realise realize receive
    recommend reduce refer refuse regard reject rely remain remember remind remove rename replace reply report require
    respond rewrite said saw say see seem seen send sent serve set shall shipped show shown shrank shrunk solve speak
    spend spent spoke start state stay stick stood stop suggest suppose take taken talk tell tend think thought told
    took treat tried try turn understand understood use used want warn went wish wonder work write written wrote
"""
_GENERIC = """
    able actual additional almost alone already always among amount another anybody anyone anything april area aspect
    august available back bad basic best better big bit brief case certain chance change clear common complete correct
    current date day december decision detail different difficult direct due earlier early easy effect eight eleven
    else empty end enough entire etc even evening everyone everything exact example existing extra fact false far fast
    february final fine first five four free friday full gb general gib goal good great half hard high hour idea
    important instance instead issue item january job july june kb kib kind large last late later latest least less
    like likely little local long longer lot low main many march matter maximum may maybe mb mib might millisecond min
    minimum minute moment monday month morning ms multiple near necessary never new newer next nice night nine nobody
    none normal note nothing november null number october often okay old older one option optional original others
    otherwise overall part particular people per percent perhaps person piece place please plus point possible pretty
    previous problem proper public px question quick quite rather ready real reason recent relevant result right safe
    saturday sec second separate september seven several short side similar simple since single six size slow small
    solution somebody someone something sometimes soon sort special specific step still strict stuff sunday sure task
    tb team ten therefore thing third three thursday time today todo together tomorrow topic total true tuesday twelve
    twice two type unable unless unlike useful usual value various version via way wednesday week well whatever
    whenever whereas whole wide world wrong year yesterday
"""
_OTHER_STOPS = {
    "german": """aber alle als am an auch auf aus bei bis da damit dann das dass dem den der des die diese doch durch
        ein eine einem einen einer er es für hat haben ich im in ist jede jetzt kann kein keine man mehr mit muss nach
        nicht noch nur oder ohne sein sich sie sind soll über um und uns von vor war weil wenn wir wird wurde zu zum
        zur""",
    "french": """alors au aux avec ce ces cette chaque comme dans de depuis des donc du elle en entre est et été il ils
        je la le les leur mais même ne notre nous on ont ou où par parce pas plus pour que qui quand sa sans se ses si
        son sont sous sur tous tout très un une votre vous""",
}
_AROUND = {
    "determiners": "a an the this these those its our your my his her their it them us me",
    "before nouns": "of in on at for from with by per and or via into",
    "before verbs": "can cannot could may might must shall should will would not never don't doesn't didn't to",
    "subjects": "i we you he she they who which",
    "being": "am is are was were be been being",
    "after verbs": "to in from when while until after before on with at by into if because so as",
    "no adverbs": "assembly anomaly family reply supply multiply",
    "no past": "need speed feed seed embed embedded shed typed distributed unified weighted",
}

_FENCE = re.compile(r"^[ \t]{0,3}(```|~~~)[^\n]*\n.*?(?:^[ \t]{0,3}\1[^\n]*$|\Z)", re.M | re.S)
_INLINE_CODE = re.compile(r"`(?![\w.-]+`)[^`\n]*`")
_MARKER = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]")
_TOKEN = re.compile(
    r"(?P<gone>\w+://\S+|[\w.+-]{1,64}@[\w.-]+|(?:[~.]{0,2}[/\\])?(?:[\w.@+-]{1,80}[/\\])+[\w.@+-]*|--?[A-Za-z][\w-]*)"
    r"|(?P<word>[^\W\d]\w*(?:['’.-]\w+)*(?:\+\+|#)?)"
    r"|(?P<end>[.!?…](?=\s|$)|\n\s*\n|\n(?=[ \t]*[-*•#>\d]))"
    r"|(?P<gap>\w[\w.,:%-]*|[^\s\w])"
)
_DOTTED_NAME = re.compile(r"[^\W_]+\.(?:js|io|ai|net)", re.I)
_OWNER = re.compile(r"['’]s$")
_LATIN = re.compile(r"[A-Za-zÀ-ɏ0-9_.+#'’-]+")
_IDENTIFIER = re.compile(r"_|(?<=\w)[A-Z]|(?<=[A-Za-z])\d")
_NOUN = re.compile(r"(?:[st]ion|ment|[ae]nce)s?$")
_ADJECTIVE = re.compile(r"(?:[a-z]{3}(?:[ai]ble|ous|ful|ical|tial))(?<!variable)(?<!executable)(?<!credential)")


@dataclass(frozen=True, slots=True)
class KeyPhrase:
    """A phrase as the note writes it first, and what it is worth; scores compare within one note."""

    phrase: str
    score: float


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    stem: str
    sentence: int
    opens: bool  # it is the first word of its sentence, where a capital means nothing
    doubt: bool = False  # it may as well be the verb of its sentence


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a phrase stands: alone between other words or not, at the very start of the note or not."""

    words: tuple[_Word, ...]
    whole: bool
    opens: bool


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    return next(iter(terms(word)), word)


_VERB_STEMS = frozenset(map(_stem, _VERBS.split())) | frozenset(_VERBS.split())
_GENERIC_STEMS = frozenset(map(_stem, _GENERIC.split())) | frozenset(_GENERIC.split())
_STOPS_BY_LANGUAGE = {name: frozenset(words.split()) for name, words in _OTHER_STOPS.items()}
_WORDS = {name: frozenset(words.split()) for name, words in _AROUND.items()}


def key_phrases(text: str, *, most: int = 5) -> tuple[KeyPhrase, ...]:
    """The phrases that say best what a note is about, best first; no two share a word."""
    ranked = _ranked(list(_runs(_prose(text[:LOOKED_AT]))))
    chosen: list[KeyPhrase] = []
    taken: set[str] = set()
    for phrase, stems in ranked:
        if len(chosen) >= most or phrase.score < _LEAST_SHARE * ranked[0][0].score:
            break
        if taken.isdisjoint(stems):
            chosen.append(phrase)
            taken.update(stems)
    return tuple(chosen)


def _prose(text: str) -> str:
    """The text without what is code or secret; a full stop stands where something was."""
    text = redact(text).text
    for pattern in (_FENCE, _INLINE_CODE, _MARKER):
        text = pattern.sub(" . ", text)
    return text


def _sentences(text: str) -> Iterator[list[str]]:
    """Each sentence as its words; an empty string stands where words do not stand together."""
    sentence: list[str] = []
    for match in _TOKEN.finditer(text):
        word = match["word"]
        if word:
            owner = _OWNER.sub("", word)
            # A phrase does not reach over an owner ("the balancer's timeout") or take in an identifier.
            sentence += ("", word, "") if "_" in word else (owner, "") if owner != word else (word,)
        elif match["end"]:
            yield sentence
            sentence = []
        else:
            sentence.append("")
    yield sentence


def _runs(text: str) -> Iterator[list[_Word]]:
    """The stretches of words that may make up phrases."""
    sentences = [sentence for sentence in _sentences(text) if any(sentence)]
    lowered = [word.lower() for sentence in sentences for word in sentence if word]
    language = _language(lowered)
    stops = STOP_WORDS | _STOPS_BY_LANGUAGE.get(language, frozenset())
    for number, sentence in enumerate(sentences):
        run: list[_Word] = []
        lowers = [word.lower() for word in sentence]
        for place, word in enumerate(sentence):
            opens = not any(sentence[:place][-3:])
            if _is_telling(word, stops) and _fits(sentence, lowers, place, language, opens=opens):
                run.append(_Word(word, _stem(lowers[place]), number, opens, bool(run) and _may_be_verb(lowers, place)))
            elif run:
                yield run
                run = []
        if run:
            yield run


def _language(words: Sequence[str]) -> str:
    """`english` unless the little words say otherwise; `other` where no known ones are met in a long text."""
    counts = {name: sum(word in stops for word in words) for name, stops in _STOPS_BY_LANGUAGE.items()}
    counts["english"] = sum(word in STOP_WORDS for word in words)
    best = max(counts, key=lambda name: (counts[name], name == "english"))
    return "other" if len(words) >= 12 and counts[best] * 12 < len(words) else best


def _is_telling(word: str, stops: frozenset[str]) -> bool:
    """Whether a word could be part of a subject at all, wherever it stands."""
    lower = word.lower()
    if len(word) < 2 or len(word) > LONGEST_TAG or not _LATIN.fullmatch(word) or lower.replace("’", "'") in stops:
        return False
    if "'" in word or "’" in word or ("." in word and not _DOTTED_NAME.fullmatch(word)):
        return False
    if is_random(word, least=12) or (len(word) >= 7 and is_digest(lower) and re.search(r"\d", word)):
        return False
    if lower in _GENERIC_STEMS or _stem(lower) in _GENERIC_STEMS:
        return False
    return len(word) > 2 or word.isupper() or not word.isalpha()


def _fits(sentence: list[str], lowers: list[str], place: int, language: str, *, opens: bool) -> bool:
    """Whether a telling word is a name or a noun where it stands, as far as its neighbours tell."""
    if _is_named(sentence[place], opens=opens):
        return True
    if language != "english":
        return False
    word = lowers[place]
    before = lowers[place - 1] if place else ""
    after = lowers[place + 1] if place + 1 < len(lowers) else ""
    if _is_verb(word) or (word.endswith("ly") and word not in _WORDS["no adverbs"]):
        return False
    if word.endswith("ed") and len(word) > 4 and word not in _WORDS["no past"]:
        return False
    if after in _WORDS["determiners"] and (
        before not in _WORDS["before nouns"] | _WORDS["determiners"] or word.endswith("ing")
    ):
        return False
    if before in _WORDS["before verbs"] and not (before == "to" and after not in _WORDS["determiners"]):
        return False
    if word.endswith("ing") and (before in _WORDS["being"] or _is_verb(before)):
        return False
    return before not in _WORDS["subjects"]


def _is_verb(word: str) -> bool:
    """Whether a word is a form of a common verb; "requirement" is none of "require"."""
    return word in _VERB_STEMS or (_stem(word) in _VERB_STEMS and not _NOUN.search(word))


def _may_be_verb(lowers: list[str], place: int) -> bool:
    """Whether a word behind a noun could go on "the client converts to" as well as "the client tokens in"."""
    word, after = lowers[place], lowers[place + 1] if place + 1 < len(lowers) else ""
    return after in _WORDS["after verbs"] and word.endswith("s") and not word.endswith(("ss", "us", "is"))


def _is_named(word: str, *, opens: bool) -> bool:
    """Whether a word is written as names are."""
    if _IDENTIFIER.search(word) or word.endswith(("+", "#")) or (len(word) > 1 and word.isupper()):
        return True
    return word[0].isupper() and not opens


def _ranked(runs: list[list[_Word]]) -> list[tuple[KeyPhrase, tuple[str, ...]]]:
    """Every stretch of up to three words with its score and its stems, best first."""
    counts = Counter(word.stem for run in runs for word in run)
    named = {word.stem for run in runs for word in run if _is_named(word.text, opens=word.opens)}
    places: dict[tuple[str, ...], list[_Place]] = {}
    for number, run in enumerate(runs):
        for length in range(1, _LONGEST_PHRASE + 1):
            for start in range(len(run) - length + 1):
                words = tuple(run[start : start + length])
                stems = tuple(word.stem for word in words)
                if len(set(stems)) == length and not _ADJECTIVE.search(words[-1].text):
                    place = _Place(words, whole=length == len(run), opens=number == 0 and start == 0)
                    places.setdefault(stems, []).append(place)
    scored = [
        (KeyPhrase(" ".join(word.text for word in found[0].words), _score(found, counts, named)), stems)
        for stems, found in places.items()
    ]
    return sorted(scored, key=lambda entry: -entry[0].score)


def _score(found: list[_Place], counts: Counter[str], named: set[str]) -> float:
    words = found[0].words
    weights = [_weight(word, counts[word.stem], named=word.stem in named) for word in words]
    together = (1.0, 1.3, 1.3)[len(words) - 1]
    whole = 1.1 if any(place.whole for place in found) else 1.0
    first = 1.25 if found[0].opens else 1.0
    early = max(0.6, 1 - 0.12 * words[0].sentence)
    return sum(weights) / len(words) * together * whole * first * early


def _weight(word: _Word, count: int, *, named: bool) -> float:
    shape = 1.2 if "_" in word.text or "-" in word.text else 1.6 if named else 1.0
    return shape * (0.6 if word.doubt else 1.0) * (1 + 0.3 * log2(count))


# What a file's ending or name says about its language or tool.
_ENDINGS = {
    ending: tag
    for tag, endings in {
        **{"python": "py pyi ipynb", "typescript": "ts tsx mts", "javascript": "js jsx mjs cjs", "c": "c h"},
        **{"cpp": "cc cpp cxx hpp", "shell": "sh bash zsh", "kotlin": "kt kts", "yaml": "yaml yml", "terraform": "tf"},
        **{"css": "css scss", "html": "html htm", "elixir": "ex exs", "rust": "rs", "ruby": "rb", "csharp": "cs"},
        **{"haskell": "hs", "markdown": "md", "powershell": "ps1", "protobuf": "proto", "graphql": "graphql gql"},
        **{"csv": "csv", "go": "go", "java": "java", "json": "json", "lua": "lua", "php": "php", "scala": "scala"},
        **{"sql": "sql", "svelte": "svelte", "swift": "swift", "toml": "toml", "vue": "vue", "xml": "xml"},
    }.items()
    for ending in endings.split()
}
_NAMES = {
    **{"dockerfile": "docker", ".dockerignore": "docker", "docker-compose.yml": "docker", "makefile": "make"},
    **{"cmakelists.txt": "cmake", "package.json": "npm", "pyproject.toml": "python", "requirements.txt": "python"},
    **{"cargo.toml": "rust", "go.mod": "go", "gemfile": "ruby", "tsconfig.json": "typescript", "pom.xml": "maven"},
    **{"jenkinsfile": "jenkins", ".gitignore": "git", ".gitlab-ci.yml": "gitlab"},
}
_URL = re.compile(r"\b\w+://\S+")
_FILE = re.compile(r"(?<![\w@.\\/-])[\w@./\\-]*\w(?![\w(@-])")
_PRODUCT = re.compile(r"[A-Z]\w*\.js")  # Node.js, not a file


def file_type_tags(text: str) -> tuple[str, ...]:
    """The languages and tools of the files that a text names, in the order of their first mention."""
    mentioned = (match[0] for match in _FILE.finditer(_URL.sub(" ", text[:LOOKED_AT])))
    return tuple(dict.fromkeys(tag for tag in map(_file_tag, mentioned) if tag))


def _file_tag(mention: str) -> str | None:
    name = re.split(r"[/\\]", mention)[-1]
    if name.lower() in _NAMES:
        return _NAMES[name.lower()]
    stem, dot, ending = name.rpartition(".")
    if not dot or _PRODUCT.fullmatch(mention):
        return None
    bare = mention == name and not stem
    # One letter behind a dot is an ending only where a file is clearly meant.
    if len(ending) == 1 and (len(stem) < 2 or "." in stem):
        return None
    return _ENDINGS.get(ending if bare else ending.lower())


_SPELLED = {"c++": "cpp", "c#": "csharp", "f#": "fsharp", ".net": "dotnet"}
_APOSTROPHE = re.compile(r"['’]s?\b")
_PLURAL = re.compile(r"(?<=\w\w)(s|x|ch|sh)es$|(?<=\w\w[^\Wsui])s$")
_SEPARATOR = re.compile(r"[\s_/\\:\-‐-―]+")


def tag_for(phrase: str) -> str | None:
    """The phrase as a tag: lower case, hyphens between words; None where nothing telling is left or it is too long."""
    if len(phrase) > 4 * LONGEST_TAG:
        return None
    words = _SEPARATOR.split(_APOSTROPHE.sub("", unicodedata.normalize("NFKC", phrase)))
    spelled = (_SPELLED.get(word.lower(), word.lower()) for word in words)
    kept = ("".join(c for c in word if unicodedata.category(c)[0] in "LMN") for word in spelled)
    tag = unicodedata.normalize("NFKC", "-".join(word for word in kept if word))
    if len(tag) > LONGEST_TAG or not any(map(str.isalpha, tag)) or any(map(_is_secret, [*words, *tag.split("-")])):
        return None
    return tag


def _is_secret(word: str) -> bool:
    return is_random(word, least=12) or (len(word) >= 16 and is_digest(word))


def suggest_tags(text: str, existing: Sequence[str], entities: Sequence[str] = ()) -> tuple[str, ...]:
    """Tags that a note lacks: the given names first, then its file types, then its key phrases.

    What is suggested at most does not depend on the tags that are there, so asking again suggests nothing more.
    """
    there = [_spelling(tag) for tag in existing]
    room = max(0, MOST_IN_ALL - len(existing))
    new = [tag for tag in _wanted(text, entities) if not any(_covers(old, _spelling(tag)) for old in there)]
    return tuple(new[:room])


def _wanted(text: str, entities: Sequence[str]) -> list[str]:
    """The tags that a note should have, best first, none covered by a better one."""
    phrases = [tag_for(found.phrase) for found in key_phrases(text, most=MOST_NEW)]
    names = [tag_for(name) for name in entities if not find_secrets(name)]
    wanted: list[str] = []
    for tag in [*names, *file_type_tags(text)[:2], *phrases]:
        if tag and not any(_covers(_spelling(better), _spelling(tag)) for better in wanted):
            wanted.append(tag)
    return wanted[:MOST_NEW]


def _spelling(tag: str) -> tuple[str, ...]:
    """The words of a tag without what spellings differ in."""
    words = (tag_for(tag) or tag.casefold()).split("-")
    return tuple(_ENDINGS.get(word) or _PLURAL.sub(r"\1", word) for word in words)


def _covers(better: tuple[str, ...], tag: tuple[str, ...]) -> bool:
    """Whether a tag says no more than another: the same words, joined or not, or a part of them."""
    if "".join(better) == "".join(tag):
        return True
    return any(better[start : start + len(tag)] == tag for start in range(len(better) - len(tag) + 1))
