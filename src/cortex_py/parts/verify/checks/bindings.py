"""Checks of values: defaults, constants, settings, parameters, counts, conditions and the order of steps.

A value is compared with the values that the source gives to the names that the claim speaks of, by meaning and not by
spelling: `14 * 24 * 60 * 60` is 14 days, and `True` is "on".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ....core.security.secrets.secrets import redact
from ....worktree.code.behaviour import CodeFact
from ..claims.verbs import CHANGES
from ..index.facts import Definition
from ..words import distinctive_words, load_pattern, load_words, name_parts, stem_words
from .check import Check
from .names import is_auxiliary, is_configuration
from .scene import HOLDERS, Scene, Subject, last_part, number_meanings, read_numbers, same_number

__all__ = ["check_bindings", "check_counts", "check_guards", "check_order", "check_parameters"]

_CONSTRUCTORS = frozenset(("__init__", "constructor", "__new__", "new", "initialize", "New"))
_DEFAULT = load_pattern("checks", "default")
_PARAMETER = load_pattern("checks", "parameter")
_OFF = load_pattern("checks", "off")
_ON = load_pattern("checks", "on")
_TRUE, _FALSE, _NONE = (
    re.compile(rf"(?<![\w`]){words}(?!\w)")
    for words in (r"`?(?:True|true|yes)`?", r"`?(?:False|false|no)`?", r"`?(?:None|null|nil|undefined)`?")
)
_BOOLEAN = {"True": True, "true": True, "False": False, "false": False}
_STRING = re.compile(r"[rbuf]{0,2}([\"'`])(.{0,200})\1", re.S)
_NUMERIC = re.compile(
    r"[-\d_.\s*+/()<xXa-fA-F]{1,40}|[\d_.]+\s*\*\s*[\w.]+|[\w.]+\s*\*\s*[\d_.]+|[\d_.]+[a-zA-Z]\w{0,6}"
)
_OF_ONE_NUMBER = re.compile(r"[\"'`]?[A-Za-z_.:&]*[\s(]*[\d_.]+\s*[A-Za-z%]{0,12}[)\s]*[\"'`]?")
_IS = re.compile(r"(?:\b(?:is|are|to|as|equals?|becomes?|of)|=)\s*`?$", re.I)
_STUB = re.compile(r"\.\.\.|…")


class Binding(NamedTuple):
    """A name that is given a value somewhere: a parameter, a constant, a setting, an entry."""

    name: str
    value: str
    path: str
    line: int
    entries: int | None
    is_default: bool
    fit: float
    """How far the claim speaks of it."""


# -- Values ---------------------------------------------------------------------------------------------


def check_bindings(scene: Scene) -> Iterator[Check]:
    """Whether the names that the claim speaks of have the values that it gives."""
    absent = scene.claim.type == "exists" and scene.claim.negated  # what is not there has no value
    if absent or scene.claim.type in ("version", "removed", "test_result"):
        return
    found = [*_setting_bindings(scene)]
    for subject in scene.subjects[:4]:
        found += _code_bindings(scene, subject)
    found += _assigned_in_files(scene) if not found else []
    if _states_value(scene):
        found += _written_bindings(scene, {last_part(one.name) for one in found if one.fit == 1.0})
    # A name that the claim writes out is not another one with the same words.
    written = {item.last for item in scene.objects}
    found = [one for one in found if one.fit == 1.0 and last_part(one.name) in written] or found
    if scene.found.paths:
        found = [
            one for one in found if one.path in scene.found.paths
        ]  # the README may say another value than the code
    if not found:
        return
    numbers = [number_meanings(mention) for mention in scene.numbers]
    answer = _compare_stated(scene, found)
    if answer is None and numbers:
        answer = _compare_numbers(scene, found, numbers)
    if answer is None and _BY_DEFAULT.search(scene.said):
        answer = _compare_switch(scene, found)
    if answer is None and (_DEFAULT.search(scene.said) or any(is_configuration(path) for path in scene.found.paths)):
        answer = _compare_words(scene, found)
    # Without a name or a file, another thing with the same words may be meant.
    is_resolved = scene.named or scene.found.paths or scene.found.terms or any(one.fit >= _WHOLE for one in found)
    if answer is not None and (answer.holds or is_resolved):
        yield answer


def _code_bindings(scene: Scene, subject: Subject) -> list[Binding]:
    one, found = subject.definition, []
    is_holder = one.kind in HOLDERS
    for fact in scene.facts(subject):
        if fact.role not in ("parameter", "value") or not fact.value or _STUB.fullmatch(fact.value):
            continue
        if is_holder and fact.role == "parameter" and fact.owner not in _CONSTRUCTORS and fact.owner != one.name:
            continue
        fit = _fit(scene, fact.name)
        if fit or not subject.named:
            found.append(
                Binding(
                    fact.name,
                    fact.value,
                    one.path,
                    fact.line,
                    fact.count,
                    fact.role == "parameter",
                    fit * (1.0 if subject.named else 0.8 * subject.weight),
                )
            )
        elif fact.role == "parameter":
            found.append(Binding(fact.name, fact.value, one.path, fact.line, fact.count, True, 0.05))
    return found


def _fit(scene: Scene, name: str) -> float:
    """The share of a name's words that the claim has; one for a name that the claim writes as it is."""
    last = last_part(name)
    if last and any(item.last == last for item in scene.objects):
        return 1.0
    parts = [part for part in name_parts(last) if len(part) > 1]
    stems = stem_words(parts)
    if not stems:
        return 0.0
    return sum(_is_said(scene, stem) for stem in stems) / len(stems) * (0.9 if len(stems) > 1 else 0.8)


def _is_said(scene: Scene, stem: str) -> bool:
    """Whether a claim has a word besides the names in it, or one that the word abbreviates: `auto`, "automatic"."""
    return stem in scene.spoken or (len(stem) > 3 and any(word.startswith(stem) for word in scene.spoken))


def _setting_bindings(scene: Scene) -> Iterator[Binding]:
    """The settings of the claim's files, or of those that configure the project, that the claim speaks of."""
    lookup = scene.lookup
    names = [symbol.name for symbol in scene.found.names] or list(scene.found.terms)
    for name in names[:4]:
        for path, one in lookup.settings(name)[:20]:
            configures = path.count("/") <= 1 and not path.endswith(".json") and not is_auxiliary(path)
            if path in scene.found.paths or (not scene.found.paths and configures):
                yield Binding(one.key, one.value, path, one.line, None, True, 1.0)
    for path in scene.found.paths[:2]:
        for one in lookup.settings_of(path):
            keys = [key for key in one.key.split(".") if not key.isdigit()]
            fit = max(_fit(scene, keys[-1]) if keys else 0.0, 0.0)
            around = sum(_fit(scene, key) > 0 for key in keys[:-1])
            if fit >= 0.5 or (fit and around):
                yield Binding(one.key, one.value, path, one.line, None, True, min(1.0, fit + 0.1 * around))


_SPOKEN = load_words("checks", "spoken_apart")


def _written_bindings(scene: Scene, known: set[str]) -> list[Binding]:
    """Values given anywhere to a name that the claim writes out, or whose every word it has."""
    written = {item.last.partition("=")[0] for item in scene.objects}
    wanted = {name for name in written if re.fullmatch(r"[A-Za-z_]\w{2,}", name)} - known
    by_words = _DEFAULT.search(scene.said) is not None and not known
    paths = [*scene.found.paths, *(one.definition.path for one in scene.named)]
    paths += [path for name in sorted(wanted) for path in scene.lookup.files_with(name)[:8]]
    paths += [one.path for one in scene.passages[:6]] if by_words else []
    found = []
    for path in [path for path in dict.fromkeys(paths) if not is_auxiliary(path)][:8]:
        syntax = scene.lookup.syntax(path)
        functions = {one.name for one in scene.lookup.in_file(path) if one.kind in ("function", "method")}
        for fact in syntax.every_fact() if syntax is not None else ():
            if fact.role not in ("parameter", "value") or not fact.value or _STUB.fullmatch(fact.value):
                continue
            last = last_part(fact.name)
            if fact.role == "value" and fact.owner in functions - _CONSTRUCTORS and "pair" not in fact.traits:
                continue  # what a function assigns on its way is no default
            fit = 1.0 if last in wanted else _WHOLE if by_words and _is_spoken(scene, last) else 0.0
            if fit:
                is_default = fact.role == "parameter"
                found.append(Binding(last, fact.value, path, fact.line, fact.count, is_default, fit))
    around = [one for one in scene.named if one.definition.kind in ("function", "method", *HOLDERS)]
    return [one for one in found if not around or any(_holds(subject, one) for subject in around)]


def _is_spoken(scene: Scene, name: str) -> bool:
    """Whether a claim has every word of a compound name."""
    stems = [stem for stem in stem_words(name_parts(name)) if stem not in _SPOKEN]
    return len(stems) > 1 and all(_is_said(scene, stem) for stem in stems)


def _holds(subject: Subject, one: Binding) -> bool:
    definition = subject.definition
    return definition.path == one.path and definition.line <= one.line <= definition.end_line


_ASSIGNED = (
    r"(?<![\w$.]){name}\s*(?::[^=\n]{{1,120}}?)?=(?!=)\s*(?P<value>[^,\n#]{{1,200}})"
    r"|(?<![\w$.])[\"']?{name}[\"']?\s*:\s*(?P<keyed>[^,\n#]{{1,200}})"
)


def _assigned_in_files(scene: Scene) -> list[Binding]:
    """Values on the lines of the claim's files, for languages whose syntax is not read."""
    found: list[Binding] = []
    for symbol in scene.found.names[:3]:
        pattern = re.compile(_ASSIGNED.format(name=re.escape(symbol.last)))
        paths = scene.found.paths[:3] or tuple(dict.fromkeys(one.path for one in symbol.defined[:3]))
        for path in paths:
            lines = scene.lookup.lines(path)
            for number in scene.lookup.lines_with(path, symbol.last)[:20]:
                if match := pattern.search(lines[number - 1]):
                    value = (match["value"] or match["keyed"] or "").strip().rstrip("):},; ")
                    if value and not _STUB.fullmatch(value):
                        found.append(Binding(symbol.last, value, path, number, None, False, 1.0))
    return found


def _compare_numbers(scene: Scene, found: Sequence[Binding], wanted: Sequence[frozenset[float]]) -> Check | None:
    numeric = [(one, read_numbers(one.value)) for one in found]
    numeric = [
        (one, values)
        for one, values in numeric
        if values
        and (_NUMERIC.fullmatch(one.value) or one.fit >= 0.8)
        and len(one.value) <= 60
        and "{" not in one.value
    ]
    if not numeric:
        return None
    for meaning in wanted:
        same = [one for one, values in numeric if any(same_number(a, b) for a in values for b in meaning)]
        if same:
            best = max(same, key=lambda one: (one.fit, one.is_default))
            distinctive = max(meaning) > 12
            is_placed = scene.named or scene.found.paths  # elsewhere a number alone proves nothing
            if best.fit >= 0.3 or (is_placed and distinctive and (best.is_default or best.fit > 0)):
                # Another name that fits better has another value.
                rival = max(numeric, key=lambda row: row[0].fit)[0]
                if rival.fit < best.fit + 0.3:
                    return _answer(
                        scene,
                        best,
                        True,
                        min(1.0, 0.6 + best.fit / 2) if is_placed else best.fit,
                    )
    # What a test gives to the name says nothing of the code.
    own = [one for one, _ in numeric if not is_auxiliary(one.path) or one.path in scene.found.paths]
    # What is computed from numbers may have any value.
    own = [one for one in own if _NUMERIC.fullmatch(one.value) or _OF_ONE_NUMBER.fullmatch(one.value)]
    likeliest = max(own, key=lambda one: (one.fit, one.is_default), default=None)
    if likeliest is None or not _is_meant(scene, likeliest) or len(wanted) != 1:
        return None
    if re.sub(r"[,_]", "", scene.numbers[0].text) not in re.sub(r"[,_]", "", scene.main):
        return None  # a condition gives it
    if scene.numbers[0].value.startswith(("<", ">")):
        return None  # a bound, which other values meet
    rivals = {tuple(values) for one, values in numeric if one.fit >= likeliest.fit}
    return _answer(scene, likeliest, False, likeliest.fit) if len(rivals) == 1 else None


_VALUE = (
    r"(?:an? |the )?(?:(?:string|value|literal|number|constant|integer|level|method) )?"
    r"(?P<{}>`[^`\n]{{1,80}}`|\"[^\"\n]{{0,80}}\"|'[^'\n]{{0,80}}'|empty [a-z]{{3,12}}|(?<![\w.+-])\w[\w.+-]{{0,60}})"
)
_STATED = re.compile(
    r"\b(?:defaults? (?:to|is|of|value (?:is|of))|with default|set to|sets? it to|falls? back (?:to|on)|equals"
    r"|starts? (?:out )?(?:as|with|at)|initiali[sz]ed (?:to|with|as)|has the value|is)(?: (?:by default|initially))? "
    + _VALUE.format("after")
    + r"|"
    + _VALUE.format("before")
    + r" (?:by default|unless [a-z]{2,12} otherwise)",
    re.I,
)
_WORDS_OF = {
    "true": "true", "yes": "true", "on": "true", "enabled": "true", "active": "true",
    "false": "false", "off": "false", "disabled": "false", "inactive": "false", "no": "false",
    "none": "none", "null": "none", "nil": "none", "undefined": "none", "unset": "none",
}  # fmt: skip
_EMPTY = re.compile(r"empty [a-z]+", re.I)
_EMPTY_VALUE = re.compile(r"\"\"|''|``|\[\]|\{\}|\(\)|new \w+\(\)|\w+\(\)|\[\]\w+\{\}|map\[\w+\]\w+\{\}")
_NAME = re.compile(r"[\w$]+(?:(?:\.|::)[\w$]+)*")


def _compare_stated(scene: Scene, found: Sequence[Binding]) -> Check | None:
    """The value that the claim gives to a name it writes out: "`x` defaults to `y`", "`x` is 5"."""
    exact = [one for one in found if one.fit == 1.0 and (one.path in scene.found.paths or not is_auxiliary(one.path))]
    for item in [item for item in scene.objects if re.fullmatch(r"\w+=[^=].*", item.text)]:
        # What is passed on in a call; a condition may say the same of what is given.
        name, _, value = item.text.partition("=")
        passed = [one for one in exact if one.name == name and not one.is_default and _is_value(value, one.value)]
        if passed:
            return _answer(scene, passed[0], not scene.claim.negated, 0.9)
    for stated in (
        [(match["after"] or match["before"]).rstrip(".") for match in _STATED.finditer(scene.main)] if exact else []
    ):
        plain = stated.strip("`\"'")
        own = [one for one in exact if last_part(one.name) != last_part(plain)]
        same = [(one, _is_value(stated, one.value)) for one in own]
        if holding := [one for one, way in same if way]:
            return _answer(scene, holding[0], not scene.claim.negated, 1.0)
        # Another value refutes it only where there is no other thing of that name, with another value.
        if (
            _is_literal(stated)
            and own
            and len({one.value for one in own}) == 1
            and all(way is False for _, way in same)
        ):
            return _answer(scene, own[0], scene.claim.negated, 1.0)
    return None


def _is_value(stated: str, value: str) -> bool | None:
    """Whether a value in source is the one that a claim states; None if it may be, as what is computed."""
    plain, own = stated.strip("`\"'"), value.strip().rstrip(";")
    said, there = _WORDS_OF.get(plain.lower()), _WORDS_OF.get(own.strip("\"'").lower())
    if _EMPTY.fullmatch(plain):
        return True if _EMPTY_VALUE.fullmatch(own) else False if _STRING.fullmatch(own) else None
    if said is not None or there is not None:
        # What stands in for nothing may be set later.
        return True if said == there else None if there == "none" or not _is_plain(own) else False
    if not plain or not re.search(r"\w", plain):
        return own.strip("\"'`") == plain if _STRING.fullmatch(own) else None
    flat = [re.sub(r"[\W_]+", "", last_part(one.strip("\"'`")) or one).lower() for one in (plain, own)]
    if flat[0] == flat[1] or plain == own:
        return True
    return False if _is_plain(own) and not _NUMERIC.fullmatch(plain) else None


def _is_plain(value: str) -> bool:
    """Whether a value is a literal, so that it is what it says."""
    return bool(_STRING.fullmatch(value) or _NUMERIC.fullmatch(value) or value in _BOOLEAN)


def _compare_switch(scene: Scene, found: Sequence[Binding]) -> Check | None:
    """What happens by default, where a parameter or setting of that name is on or off."""
    named = {one.definition.name for one in scene.named}
    switches = [one for one in found if one.value in _BOOLEAN and _is_meant(scene, one) and one.name not in named]
    best = max(switches, key=lambda one: one.fit, default=None)
    if best is None or len({one.value for one in switches if one.fit == best.fit}) > 1 or _INVERSE.search(best.name):
        return None
    spoken = {*stem_words(name_parts(best.name)), *_SWITCHING}
    spoken |= {stem for one in scene.named for stem in distinctive_words(one.definition.name)}
    main = _UNLESS.split(scene.text, maxsplit=1)[0]
    left = [word for word in distinctive_words(main) if word not in spoken]
    if len(left) > _LEFT:
        return None  # it says more than that it is on or off
    says_off = (_OFF.search(main) is not None or scene.claim.negated) and not _ON.search(main)
    return _answer(scene, best, _BOOLEAN[best.value] != says_off, best.fit)


def _is_meant(scene: Scene, one: Binding) -> bool:
    """Whether a claim speaks of the whole name: of a short one only for a parameter or setting of what it names."""
    placed = one.is_default and (one.path in scene.found.paths or bool(scene.named))
    return one.fit >= _WHOLE or (one.fit >= 0.8 and placed)


_BY_DEFAULT = re.compile(r"\b(?:by default|out of the box|initially|defaults?|unless)\b", re.I)
_UNLESS = re.compile(r"\b(?:unless|until)\b", re.I)
_LEFT = 4  # words besides a name and its switch
_SWITCHING = load_words("checks", "switch_words")


def _states_value(scene: Scene) -> bool:
    """Whether a claim gives a value at all, so that it pays to look for its names in other files."""
    if scene.numbers or _DEFAULT.search(scene.said) or any("=" in item.text for item in scene.objects):
        return True
    return any(_is_literal((match["after"] or match["before"]).rstrip(".")) for match in _STATED.finditer(scene.main))


def _is_literal(stated: str) -> bool:
    plain = stated.strip("`\"'")
    return stated[0] in "`\"'" or plain.lower() in _WORDS_OF or _EMPTY.fullmatch(plain) is not None


_WHOLE = 0.9  # the fit from which the claim has every word of a name
# On is off: `disable_cache`, `no_color`.
_INVERSE = re.compile(
    r"(?:^|_|\b)(?:no|not|non|disable|skip|ignore|suppress|without|exclude|hide|deny|omit)(?=_|[A-Z]|d)"
)


def _compare_words(scene: Scene, found: Sequence[Binding]) -> Check | None:
    """A value in words: a setting whose text the claim has, or another one in its place."""
    placed = [one for one in found if one.fit == 1.0 or one.path in scene.found.paths or scene.named]
    texts = [(one, match[2]) for one in placed if one.fit >= 0.6 and (match := _STRING.fullmatch(one.value.strip()))]
    texts += [(one, one.value) for one in found if one.fit >= 0.6 and one.path in scene.found.paths and "." in one.name]
    texts = [(one, text) for one, text in texts if re.fullmatch(r"[\w .:/<>=~^-]{2,60}", text)]
    if not texts:
        return None
    for one, text in texts:
        words = distinctive_words(text)
        if (
            words
            and all(word in scene.stems for word in words)
            and not set(words) <= set(stem_words(name_parts(one.name)))
        ):
            return _answer(scene, one, not scene.claim.negated, 0.9 * one.fit)
    return None


def _answer(scene: Scene, one: Binding, holds: bool, sure: float) -> Check:
    # Half a secret is hard to recognise, so secrets are removed before the value is cut.
    shown = f"`{one.name[-60:]}` is {redact(one.value).text[:60]}"
    return scene.answer("value", holds, shown, one.path, one.line, sure=round(sure, 3))


# -- Parameters -----------------------------------------------------------------------------------------

_NUMBERS = {
    "no": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}
_ARITY = re.compile(
    r"\b(\d{1,3}|no|one|two|three|four|five|six|seven|eight|nine|ten)\s+"
    r"(?:(?:required|mandatory|positional|formal|named)\s+)?(?:parameter|argument)s?\b",
    re.I,
)
_KEYWORD_ONLY = re.compile(r"\bkeyword[- ]only\b|\bby keyword\b|\bonly (?:as|by) keywords?\b", re.I)
_POSITIONAL = re.compile(r"\bpositional\b", re.I)
_REQUIRES = re.compile(r"\brequire[sd]?\b|\bneeds?\b|\bmandatory\b|\bmust be (?:given|passed)\b|\binsists? on\b", re.I)
_OTHER_VERBS = load_pattern("checks", "not_of_signatures")
_OPTIONAL = re.compile(r"\boptional(?:ly)?\b", re.I)


def check_parameters(scene: Scene) -> Iterator[Check]:
    """Whether a function takes the parameters that the claim gives, and in the way that it says."""
    cues = (_PARAMETER, _KEYWORD_ONLY, _TAKES)
    if not any(cue.search(scene.said) for cue in cues):
        return
    if _OTHER_VERBS.search(scene.said) or _TYPE_PARAMETER.search(scene.said) or scene.claim.type in CHANGES:
        return
    answers: list[list[Check]] = []
    every = [one for one in scene.named if one.definition.kind in ("function", "method", *HOLDERS)]
    for subject in [one for one in every if one.definition.name == every[0].definition.name]:
        facts = scene.facts(subject)
        own = [fact for fact in facts if fact.role == "parameter" and _is_own(fact, subject)]
        answers.append(list(_compare_parameters(scene, subject, own)) if facts else [])
    # One of several definitions with that name, or of its signatures, is enough; all of them must refute.
    holding = next((found for found in answers if found and all(one.holds for one in found)), None)
    yield from holding or (answers[0] if answers and all(answers) else [])


def _is_own(fact: CodeFact, subject: Subject) -> bool:
    one = subject.definition
    return fact.owner in _CONSTRUCTORS if one.kind in HOLDERS else fact.owner in (one.name, "")


def _compare_parameters(scene: Scene, subject: Subject, own: Sequence[CodeFact]) -> Iterator[Check]:
    one, denied = subject.definition, scene.claim.negated
    plain = [fact for fact in own if "variadic" not in fact.traits]
    stated = _ARITY.search(scene.text)
    if stated and len(scene.found.names) == 1 and "optional" not in scene.text:
        wanted = int(stated[1]) if stated[1].isdigit() else _NUMBERS[stated[1].lower()]
        required = [fact for fact in plain if "required" in fact.traits]
        counts = (len(required),) if _REQUIRES.search(scene.main) else (len(own), len(plain))
        yield scene.answer(
            "count",
            (wanted in counts) != (denied and stated[1].lower() != "no"),
            f"{subject.shown} takes {len(own)} parameters",
            one.path,
            one.line,
        )
        return
    every_one = re.search(r"\b(?:all|every|each|only)\b", scene.said, re.I)
    if (
        _KEYWORD_ONLY.search(scene.said)
        and every_one
        and plain
        and not [i for i in scene.objects if i.last != one.name]
    ):
        every = all("keyword" in fact.traits for fact in plain)
        yield scene.answer(
            "signature",
            every != denied,
            f"the parameters of {subject.shown} are {'' if every else 'not all '}keyword-only",
            one.path,
            one.line,
            plain[-1].line,
        )
        return
    if listed := list(_compare_listed(scene, subject, own)):
        yield from listed
        return
    names = {fact.name: fact for fact in own}
    items = [
        item
        for item in scene.objects
        if re.fullmatch(r"\*{0,2}[A-Za-z_]\w*(?:=.*)?", item.text) and item.last != one.name
    ]
    items = [item for item in items if not _NO_PARAMETER.fullmatch(item.text)]
    for item in items[:5]:
        fact = names.get(item.text.partition("=")[0].strip("*"))
        if fact is not None:
            yield from _compare_traits(scene, subject, fact)
        elif any("variadic" in fact.traits or not fact.name.isidentifier() for fact in own):
            continue  # it may be among the others, or inside an object
        elif not own or scene.reaches(subject, item.last) or scene.lookup.definitions(item.last):
            continue  # its signature was not read, it is there in another way, or it is a thing of its own
        elif item.ticked and len(scene.objects) <= 4:
            shown = f"{subject.shown} takes {', '.join(f'`{name}`' for name in list(names)[:6]) or 'no parameters'}"
            yield scene.answer("signature", denied or item.denied, f"{shown}, not `{item.text}`", one.path, one.line)


_TYPE_PARAMETER = re.compile(r"\b(?:type|generic) (?:parameter|argument)", re.I)
_NO_PARAMETER = re.compile(r"[A-Z]\w+(?:Error|Exception)|None|True|False|self|cls|this")
_TAKES = re.compile(
    r"\b(?:takes?|accepts?|expects?|needs?|requires?|wants?|receives?|(?:constructed|built|made|created) from)\s+"
    r"(?:only\s+)?([^.;:]{3,160})",
    re.I,
)
_EVERY_DEFAULT = re.compile(r"\b(?:all|every|each)\b.*\b(?:default|optional)", re.I)
_VARIADIC = re.compile(r"\bany number of\b|\bvariadic\b|\bvariable number\b", re.I)


def _compare_listed(scene: Scene, subject: Subject, own: Sequence[CodeFact]) -> Iterator[Check]:
    """Parameters in words: "takes the depth, the path and the error"."""
    one, denied = subject.definition, scene.denies(_PARAMETER)
    if own and _EVERY_DEFAULT.search(scene.said):
        holds = all("required" not in fact.traits for fact in own)
        yield scene.answer(
            "signature",
            holds != denied,
            f"{subject.shown} has {'only optional' if holds else 'required'} parameters",
            one.path,
            one.line,
            own[-1].line,
            0.9,
        )
        return
    if own and _VARIADIC.search(scene.said):
        holds = any("variadic" in fact.traits for fact in own)
        yield scene.answer(
            "signature",
            holds != denied,
            f"{subject.shown} takes {'any number of' if holds else len(own)} arguments",
            one.path,
            one.line,
            sure=0.8,
        )
        return
    match = _TAKES.search(scene.text)
    listed = _IN_ORDER.sub(" ", _CONDITIONAL.split(match[1])[0]) if match else ""
    phrases = re.split(r",\s*(?:and\s+)?|\s+and\s+|\s+or\s+", listed)
    stems = [[word for word in distinctive_words(phrase) if word not in _KIND_WORDS] for phrase in phrases]
    stems = [row for row in stems if row]
    if len(stems) < 2 or denied:
        return
    ordered = _IN_ORDER.search(scene.said) is not None
    places: list[int] = []
    left = [set(stem_words(name_parts(f"{fact.name} {' '.join(fact.traits)}"))) | {fact.name.lower()} for fact in own]
    for row in stems:
        place = next((n for n, have in enumerate(left) if any(_alike(word, have) for word in row)), None)
        if place is not None:
            left[place] = set()
            places.append(place)
    if len(places) == len(stems):
        holds = not ordered or places == sorted(places)
        shown = f"{subject.shown} takes {', '.join(f'`{fact.name}`' for fact in own[:6])}"
        yield scene.answer("signature", holds, shown, one.path, one.line, own[-1].line, 0.8)


_IN_ORDER = re.compile(r"\b(?:first|second|then|followed by|in (?:that|this|the given) order|last)\b", re.I)
_CONDITIONAL = re.compile(r"\b(?:and returns?|when|if|unless|so|because|which|that|next to|besides)\b", re.I)
_KIND_WORDS = frozenset(
    ("paramet", "argument", "flag", "option", "posit", "keyword", "custom", "one", "two", "three", "four")
)


def _alike(word: str, have: set[str]) -> bool:
    """Whether a word is a part of a name, or abbreviated in it: "message" and `msg`, "minimum" and `min`."""
    return any(word == part or (len(part) >= 3 and word.startswith(part)) or part.startswith(word) for part in have)


def _compare_traits(scene: Scene, subject: Subject, fact: CodeFact) -> Iterator[Check]:
    one = subject.definition
    holds = True
    if _DEFAULT.search(scene.main) and not _OPTIONAL.search(scene.main):
        return  # what stands in for it is read by its value
    if _REQUIRES.search(scene.main):
        holds = "required" in fact.traits
    elif _OPTIONAL.search(scene.main):
        holds = "required" not in fact.traits
    elif _KEYWORD_ONLY.search(scene.main):
        holds = "keyword" in fact.traits
    elif _POSITIONAL.search(scene.main):
        holds = "keyword" not in fact.traits
    shown = f"{subject.shown} takes `{fact.name}{'=' + fact.value[:40] if fact.value else ''}`"
    yield scene.answer("signature", holds != scene.claim.negated, shown, one.path, fact.line)


# -- Counts ---------------------------------------------------------------------------------------------

_COUNTED = re.compile(
    r"\b(\d{1,4}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\s+((?:[a-z-]+\s+){0,3}[a-z-]+)", re.I
)
_WORD_NUMBERS = _NUMBERS | {"eleven": 11, "twelve": 12}
_UNITS = load_words("checks", "units")


def check_counts(scene: Scene) -> Iterator[Check]:
    """Whether a collection, an enumeration or a class has as many entries as the claim says."""
    match = _COUNTED.search(scene.text)
    if match is None or scene.claim.type in ("version", "test_result"):
        return
    if scene.claim.type in CHANGES:
        return
    yield from _count_in_file(scene, match)
    wanted = int(match[1]) if match[1].isdigit() else _WORD_NUMBERS[match[1].lower()]
    nouns = list(distinctive_words(match[2]))
    if not nouns or nouns[0] in _UNITS or (nouns[-1] in _UNITS):
        return
    for subject in [*scene.subjects[:3], *([] if scene.named else _values(scene))]:
        rows = list(_collections(scene, subject, nouns))
        if not rows:
            continue
        best = max(rows, key=lambda row: (row[0], row[1] == wanted))
        fit, count, name, (line, end_line) = best
        if fit >= 0.3:
            holds = (count == wanted) != scene.claim.negated
            if not holds and (not subject.named or fit < 1 or len({row[1] for row in rows if row[0] == fit}) > 1):
                return  # another collection may be meant
            yield scene.answer(
                "count",
                holds,
                f"`{name}` has {count} entries",
                subject.definition.path,
                line,
                end_line,
                0.9 if subject.named else 0.7,
            )
            return


def _values(scene: Scene) -> list[Subject]:
    """Constants, variables and types among the passages of a claim without a name."""
    found = [one for one in scene.passages if one.kind in ("constant", "variable", "type", "enum", "property")]
    return [
        Subject(Definition(one.path, last_part(one.name), one.name, one.kind, one.first, one.last), False, one.score)
        for one in found[:6]
        if not is_auxiliary(one.path)
    ]


_KINDS = {"class": HOLDERS, "function": ("function",), "method": ("method",), "except": HOLDERS, "error": HOLDERS}
_PACKAGES = frozenset(("depend", "requir", "packag", "librari"))


def _count_in_file(scene: Scene, match: re.Match[str]) -> Iterator[Check]:
    """How many classes, functions or tests a file defines, or dependencies a manifest lists."""
    nouns = distinctive_words(match[2])
    wanted = int(match[1]) if match[1].isdigit() else _WORD_NUMBERS[match[1].lower()]
    if scene.found.names or len(scene.found.paths) > 1:
        return
    manifests = [path for path in scene.lookup.paths if "/" not in path and scene.lookup.dependencies_of(path)]
    if not scene.found.paths and not (_PACKAGES.intersection(nouns) and len(manifests) == 1):
        return
    path = (scene.found.paths or manifests)[0]
    kinds = next((_KINDS[noun] for noun in reversed(nouns) if noun in _KINDS), None)
    if nouns[-1:] == ["test"]:
        lines = list(_tests(scene, path))
        if lines:
            holds = (len(lines) == wanted) != scene.claim.negated
            yield scene.answer("count", holds, f"{path} has {len(lines)} tests", path, lines[0], lines[-1], 0.8)
    elif kinds is not None:
        own = [one for one in scene.lookup.in_file(path) if one.kind in kinds and "." not in one.qualified]
        if any(noun in ("except", "error") for noun in nouns):
            own = [one for one in own if re.search(r"Error|Exception|Warning", one.name)]
        if own:
            shown = f"{path} defines {len(own)}"
            yield scene.answer("count", (len(own) == wanted) != scene.claim.negated, shown, path, own[0].line, sure=0.8)
    elif _PACKAGES.intersection(nouns):
        rows = scene.lookup.dependencies_of(path)
        rows = [row for row in rows if row.group != "language"]
        groups = {"peer": "peer", "dev": "dev", "develop": "dev", "option": "optional"}
        group = next((groups[noun] for noun in nouns if noun in groups), "runtime")
        direct = [row for row in rows if row.group.startswith(group)] or (rows if group == "runtime" else [])
        if direct:
            shown = f"{path} lists {len(direct)} dependencies"
            holds = wanted == len(direct)
            first, last = min(row.line for row in direct), max(row.line for row in direct)
            yield scene.answer("count", holds != scene.claim.negated, shown, path, first, last, 0.8)


def _tests(scene: Scene, path: str) -> Iterator[int]:
    """The lines on which the tests of a file begin."""
    for one in scene.lookup.in_file(path):
        if one.kind in ("function", "method") and re.match(r"test_|Test[A-Z_]|test[A-Z]", one.name):
            yield one.line
    syntax = scene.lookup.syntax(path)
    for fact in syntax.every_fact() if syntax is not None else ():
        if (fact.role == "call" and fact.name in ("it", "test")) or (
            fact.role == "decorator" and fact.name in ("Test", "test")
        ):
            yield fact.line


# "Five attributes of `C` are pickled" does not say how many it has.
_HAS = re.compile(
    r"\b(?:has|have|with|of|there are)\b(?!.*\b(?:is|are)\b)|\b(?:defin|declar|contain|consist|list)\w*\b", re.I
)


def _collections(
    scene: Scene, subject: Subject, nouns: Sequence[str]
) -> Iterator[tuple[float, int, str, tuple[int, int]]]:
    one = subject.definition
    facts = scene.facts(subject)
    for fact in facts:
        if fact.role in ("value", "return", "parameter") and fact.count is not None and fact.count > 1:
            stems = stem_words(name_parts(fact.name))
            fit = sum(_alike(noun, set(stems)) for noun in nouns) / len(nouns)
            own = last_part(fact.name) == one.name
            yield (1.0 if own and subject.named else fit), fact.count, fact.name or one.name, (fact.line, fact.end_line)
    fields = [fact for fact in facts if fact.role == "value" and fact.owner == one.name and "pair" not in fact.traits]
    if (
        one.kind in ("struct", "interface", "enum", "class", "type")
        and {"field", "variant", "member", "attribut", "properti", "method"} & set(nouns)
        and _HAS.search(scene.said)
        and fields
    ):
        yield 1.0, len(fields), one.name, (one.line, one.end_line)
    bases = {last_part(fact.name) for fact in facts if fact.role == "base"}
    if one.kind == "enum" or any("Enum" in base or "Flag" in base for base in bases):
        members = [fact for fact in facts if fact.role == "value" and fact.owner in (one.name, "")]
        if members:
            yield 1.0, len(members), one.name, (one.line, one.end_line)


# -- Conditions -----------------------------------------------------------------------------------------

_ALWAYS = load_pattern("checks", "always")
_ONLY = load_pattern("checks", "only_if")


def check_guards(scene: Scene) -> Iterator[Check]:
    """Whether something happens only under a condition, or whether or not it holds, as the claim says."""
    always, only = _ALWAYS.search(scene.text), _ONLY.search(scene.text)
    match = always or only
    if match is None or (always and only):
        return
    after = scene.text[match.end() : match.end() + 80]
    names = list(re.findall(r"`?([A-Za-z_]\w+)`?", after))
    idents = [word for word in names if "_" in word or f"`{word}`" in after]
    words = distinctive_words(after)[:6]
    main = list(distinctive_words(scene.text[: match.start()]))
    for subject in scene.named[:2]:
        facts = [fact for fact in scene.facts(subject) if fact.role in ("raise", "return", "call", "value")]
        rows = [(scene.overlap(main, f"{fact.name} {fact.value}"), fact) for fact in facts]
        rows = [row for row in rows if row[0] >= 0.25]
        if not rows:
            continue
        top = max(row[0] for row in rows)
        tied = [fact for score, fact in rows if score == top]
        best = next((fact for fact in tied if any(name in " ".join(fact.guards) for name in idents)), tied[0])
        guards = " ".join(best.guards)
        here = any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", guards) for name in idents) or (
            not idents and scene.overlap(words, guards) >= 0.5
        )
        if here:
            holds = only is not None
            shown = f"{subject.shown} does so " + (f"if `{best.guards[-1][:60]}`" if best.guards else "always")
            yield scene.answer("guard", holds, shown, subject.definition.path, best.line, sure=0.7)
            return


# -- Order ----------------------------------------------------------------------------------------------

_BEFORE = re.compile(
    r"(.{4,160}?)\b(before|after|and only then|, then|and then|, followed by)\b(.{4,160})", re.I | re.S
)


def check_order(scene: Scene) -> Iterator[Check]:
    """Whether two steps of a function are in the order that the claim gives."""
    match = _BEFORE.search(scene.text)
    if match is None or not scene.named:
        return
    subject = scene.named[0]
    own = set(stem_words(name_parts(subject.definition.name)))
    left = [word for word in distinctive_words(match[1]) if word not in own]
    right = [word for word in distinctive_words(match[3]) if word not in own]
    left, right = [w for w in left if w not in right], [w for w in right if w not in left]
    facts = [fact for fact in scene.facts(subject) if fact.role in ("call", "return", "condition", "raise")]
    first, second = _step(scene, facts, left), _step(scene, facts, right)
    if first is None or second is None or first is second or first.line == second.line:
        return
    wants_before = match[2].lower() != "after"
    holds = (first.order < second.order) == wants_before
    manner = "before" if first.order < second.order else "after"
    shown = f"{subject.shown} has `{first.value[:40] or first.name}` {manner} `{second.value[:40] or second.name}`"
    yield scene.answer(
        "order",
        holds != scene.claim.negated,
        shown,
        subject.definition.path,
        min(first.line, second.line),
        max(first.line, second.line),
        sure=0.6,
    )


def _step(scene: Scene, facts: Sequence[CodeFact], words: Sequence[str]) -> CodeFact | None:
    if not words or not facts:
        return None
    rows = [(scene.overlap(words, f"{fact.name} {fact.value}"), -fact.order, fact) for fact in facts]
    best = max(rows, key=lambda row: row[:2])
    return best[2] if best[0] >= 0.3 else None
