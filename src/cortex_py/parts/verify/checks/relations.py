"""Checks of what one piece of code has to do with another: inherits, raises, catches, returns, calls, imports.

Each check reads the syntax of the subject's definition. It answers that the relation is there, that something else is
there instead, or nothing. Silence is never support.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from ....worktree.code.behaviour import CodeFact
from ....worktree.manifests.manifests import is_dependency_file
from ..words import distinctive_words, load_pattern
from .ancestry import BUILT_IN, are_related, find_ancestors, is_exception, is_kind, may_lead_to
from .check import Check
from .scene import (
    HOLDERS,
    Object,
    Scene,
    Subject,
    decide,
    is_error_name,
    last_part,
    number_meanings,
    read_numbers,
    same_number,
)

__all__ = ["check_relations"]

_LESS_SURE = 0.7
_SAME_CASE = 0.4  # the share of a claim's words in the condition and the message of an exception that it means
_BASE = load_pattern("checks", "base")
_REVERSED = load_pattern("checks", "reversed")
_RAISE = load_pattern("checks", "raise")
_ALWAYS = load_pattern("checks", "always")
_CATCH = load_pattern("checks", "catch")
_FAILS = load_pattern("checks", "fails_with")
_NO_RAISE = load_pattern("checks", "no_raise")
_CALL = load_pattern("checks", "call")
_DECORATOR = load_pattern("checks", "decorator")
_IMPORT = load_pattern("checks", "import")
_MEMBER = load_pattern("checks", "member")
_PARAMETER = load_pattern("checks", "parameter")
_ASYNC = load_pattern("checks", "async")
_SYNC = load_pattern("checks", "sync")
_RETURN = load_pattern("checks", "return")
_DEFAULT = load_pattern("checks", "default")
_EMBEDS = re.compile(r"\bembed", re.I)
_DIRECTLY = re.compile(r"\b(?:direct(?:ly)?|immediate)\b", re.I)


def check_relations(scene: Scene) -> Iterator[Check]:
    """The checks for the relations that the claim's words express, the most specific first."""
    said = scene.said
    readers: tuple[tuple[re.Pattern[str], Callable[[Scene], Iterator[Check]]], ...] = (
        (_DECORATOR, _check_decorator),
        (_CATCH, _check_catches),
        (_RAISE, _check_raises),
        (_BASE, _check_base),
        (_IMPORT, _check_imports),
        (_RETURN, _check_returns),
        (_CALL, _check_calls),
        (_MEMBER, _check_member),
    )
    yield from _check_async(scene)
    yield from _check_refusal(scene)
    yield from _check_owned(scene)
    if _ALWAYS.search(scene.text):
        return  # what the claim says of a condition is what counts
    for cue, read in readers:
        if cue.search(said) or (cue is _RAISE and (_FAILS.search(scene.text) or _ERROR_WORDS.search(scene.text))):
            found = list(read(scene))
            yield from found
            if found:
                return


# -- Inheritance ---------------------------------------------------------------------------------------


_APART = re.compile(r",?\s(?:whereas|while|but)\s", re.I)
_PLAIN_BASE = re.compile(
    r"\b(?:extend(?:s|ing)|inherit(?:s|ing) from|subclass(?:es)?(?: of)?|derive[sd]? from|implement(?:s|ing)"
    r"|embed(?:s|ding))"
    r"\s+(?:the\s+|an?\s+)?(?:built-?in\s+)?(?:standard\s+)?([A-Z][A-Za-z0-9]+|tuple|dict|list|str|int|set|float|bytes)\b"
)


def _check_base(scene: Scene) -> Iterator[Check]:
    names = [one for one in scene.objects if re.fullmatch(r"[\w.:]+", one.text)]
    if len(names) == 1 and (plain := _PLAIN_BASE.search(scene.text)) and plain[1] != names[0].text:
        names.append(Object(plain[1], plain.start(1), False, False))
    if len(names) < 2:
        return
    names = [
        one
        for one in names
        if one.last.lstrip("_")[:1].isupper()
        or one.last in BUILT_IN
        or _EMBEDS.search(scene.said)
        or any(found.kind in HOLDERS for found in scene.lookup.definitions(one.last)[:4])
    ]
    if len(names) < 2:
        return
    # "`A` extends `B`, whereas `C` extends `D`" says nothing of `A` and `D`.
    end = apart.start() if (apart := _APART.search(scene.text)) else len(scene.text)
    names = [one for one in names if one.at < end] if names[0].at < end else names
    if len(names) < 2:
        return
    if _REVERSED.search(scene.said) and len(names) == 2:
        children, bases = names[1:], names[:1]
    else:
        # "`A` and `B` derive from `C`": what comes before the relation does not stand in it.
        cue = next((one.start() for one in _BASE.finditer(scene.text) if one.start() > names[0].at), 0)
        children = [one for one in names if one.at < cue] or names[:1]
        children = children if len(children) < len(names) else names[:1]
        bases = names[len(children) :]
    for child in children:
        own = [one for one in scene.named if one.definition.name == child.last and one.definition.kind in HOLDERS]
        for base in bases:
            denied = base.denied or scene.denies(_BASE)
            direct = _DIRECTLY.search(scene.text) is not None and not base.denied
            yield from decide(_compare_base(scene, subject, base, denied, direct) for subject in own)


def _compare_base(scene: Scene, subject: Subject, base: Object, denied: bool, direct: bool) -> Iterator[Check]:
    one = subject.definition
    chain = list(find_ancestors(scene, one))
    place = next((row for row in chain if row[1] == base.last and (not direct or row[0] == 1)), None)
    if place is not None:
        path, line = (place[3], place[2]) if place[0] == 1 else (one.path, one.line)
        yield scene.answer("inherits", not denied, f"{subject.shown} inherits from `{base.last}`", path, line)
        return
    head = scene.lookup.lines(one.path)[one.line - 1]
    if re.search(rf"(?<!\w){re.escape(base.last)}(?!\w)", head.partition(one.name)[2]):
        if one.kind == "trait":  # "trait A: B"
            yield scene.answer("inherits", not denied, f"{subject.shown} requires `{base.last}`", one.path, one.line)
        return
    first = [name for depth, name, _, _ in chain if depth == 1]
    shown = f"inherits from {', '.join(f'`{name}`' for name in first[:3])}" if first else "has no base class"
    if not scene.lookup.facts(one) or (not direct and may_lead_to(scene, base.last, [row[1] for row in chain])):
        return
    beside = set(scene.lookup.lines_with(one.path, base.last))
    if beside.intersection(scene.lookup.lines_with(one.path, one.name)):
        return  # joined to it outside its head
    yield scene.answer("inherits", denied, f"{subject.shown} {shown}, not `{base.last}`", one.path, one.line)


# -- Exceptions ----------------------------------------------------------------------------------------


_PART = re.compile(r"\w+")
_IS_A = re.compile(r"\W*(?:class\W+)?(?:is|are)\s+(?:also\s+|not\s+)?an?\b", re.I)


_ERROR_WORDS = re.compile(r"\b([a-z]+(?:[- ][a-z]+){0,2})[- ](?:error|exception)\b")


def _spoken_errors(scene: Scene) -> Iterator[Object]:
    """Exceptions in words: "an illegal-state error" is an `IllegalStateException`."""
    for match in _ERROR_WORDS.finditer(scene.text):
        parts = re.split(r"[- ]", match[1])
        for first in range(len(parts)):
            plain = "".join(part.capitalize() for part in parts[first:])
            for name in (f"{plain}Error", f"{plain}Exception"):
                if name in BUILT_IN or scene.lookup.knows(name):
                    yield Object(name, match.start(), False, False)
                    return


def _check_raises(scene: Scene) -> Iterator[Check]:
    errors = [one for one in scene.objects if is_error_name(one.last) or is_exception(one.last, scene)]
    errors = errors or list(_spoken_errors(scene))
    if re.search(r"\bpanic", scene.said, re.I):
        errors.append(Object("panic", 0, False, False))
    if errors and scene.objects[:1] == errors[:1] and _IS_A.match(scene.said):
        return  # "`ReadTimeout` is a `ConnectionError`" is about what it inherits from
    denied = scene.denies(_RAISE) or _NO_RAISE.search(scene.main) is not None
    subjects = [one for one in scene.subjects if one.definition.name not in {e.last for e in errors}]
    # A getter beside its setter raises nothing and calls nothing.
    able = [one for one in subjects if {fact.role for fact in scene.facts(one)} & {"raise", "call"}] or subjects
    names = list(dict.fromkeys(one.definition.name for one in able)) if _BOTH.search(scene.said) else [""]
    rows = [decide(_compare_raises(scene, one, errors, denied) for one in able[:4] if name in ("", one.definition.name))
            for name in names]  # fmt: skip
    # "`f` and `g` both raise it": each of them must.
    yield from [one for row in rows for one in row if not one.holds][:1] or (rows[0] if rows and all(rows) else [])


_BOTH = re.compile(r"\bboth\b", re.I)
_REFUSES = load_pattern("checks", "refuses")
_REFUSING = load_pattern("checks", "refusing")


def _check_refusal(scene: Scene) -> Iterator[Check]:
    """Whether a function refuses something, in words: an exception whose condition and message speak of it."""
    if not _REFUSES.search(scene.said) or any(is_error_name(item.last) for item in scene.objects):
        return
    own = {stem for one in scene.named for stem in distinctive_words(one.definition.name)}
    words = [word for word in distinctive_words(_REFUSING.sub(" ", scene.text)) if word not in own]
    if len(words) < 1:
        return
    best: tuple[float, Subject, CodeFact] | None = None
    for subject in scene.subjects[:3]:
        for fact in scene.facts(subject):
            if fact.role == "raise":
                fit = scene.overlap(words, " ".join((*fact.guards[-2:], fact.value)))
                if best is None or fit > best[0]:
                    best = (fit, subject, fact)
    if best is not None and best[0] >= (0.5 if best[1].named else 0.7):
        fit, subject, fact = best
        shown = f"{subject.shown} raises `{last_part(fact.name)[:40]}` if `{' and '.join(fact.guards[-1:])[:60]}`"
        yield scene.answer("raises", True, shown, subject.definition.path, fact.line, sure=round(fit, 3))


def _check_catches(scene: Scene) -> Iterator[Check]:
    """Whether a function catches an exception."""
    errors = [one for one in scene.objects if is_error_name(one.last) or is_exception(one.last, scene)]
    for error in errors[:2]:
        subjects = [one for one in scene.subjects if one.definition.name != error.last]
        answers: list[list[Check]] = []
        for subject in subjects[:3]:
            caught = [fact for fact in scene.facts(subject) if fact.role == "catch"]
            here = next((fact for fact in caught if error.last in re.findall(r"\w+", fact.name)), None)
            one, denied = subject.definition, scene.denies(_CATCH) or error.denied
            if here is not None and bool(_RAISED_AGAIN.search(scene.said)) != bool(_THROWS.search(here.value)):
                answers.append([])
            elif here is not None:
                shown = f"{subject.shown} catches `{error.last}`"
                answers.append([scene.answer("catches", not denied, shown, one.path, here.line, here.end_line, 0.9)])
            elif len(caught) == 1 and subject.named and any(n[:1].isupper() for n in _PART.findall(caught[0].name)):
                # A variable that takes whatever is thrown names no exception.
                shown = f"{subject.shown} catches `{caught[0].name[:60]}`, not `{error.last}`"
                silent = scene.reaches(subject, error.last) or are_related(scene, caught[0].name, error.last)
                failing = scene.answer("catches", denied, shown, one.path, caught[0].line, sure=0.7)
                answers.append([] if silent else [failing])
            else:
                answers.append([])
        yield from decide(answers)


_RAISED_AGAIN = re.compile(r"\bre-?(?:rais|throw)|\bturn|\bconvert|\bwrap|\btranslat|\bpropagat|\bthrough\b", re.I)
_THROWS = re.compile(r"\b(?:raise|throw)\b")


def _compare_raises(scene: Scene, subject: Subject, errors: Sequence[Object], denied: bool) -> Iterator[Check]:
    one = subject.definition
    facts = scene.facts(subject)
    if not facts:
        return
    own = [fact for fact in facts if fact.role == "raise" and fact.name]
    for error in errors[:3]:
        wrong = denied or error.denied
        here = [fact for fact in own if last_part(fact.name) == error.last]
        here = here or [fact for fact in own if is_kind(last_part(fact.name), error.last, scene)]
        other = _better_raise(scene, subject, own, here) if here else None
        if other is not None and not wrong:
            if not subject.named:
                continue
            yield scene.answer(
                "raises", False, f"{subject.shown} raises `{other.name}` there", one.path, other.line, sure=0.8
            )
        elif here:
            best = max(here, key=lambda fact: scene.overlap(scene.words, " ".join((*fact.guards, fact.value))))
            if not subject.named and scene.overlap(scene.words, " ".join((*best.guards, best.value))) < _SAME_CASE:
                continue  # somewhere, for some other reason
            yield scene.answer(
                "raises", not wrong, f"{subject.shown} raises `{last_part(best.name)}`", one.path, best.line
            )
        else:
            yield from _elsewhere(scene, subject, facts, own, error, wrong)
    if not errors and denied and own and not scene.condition[0]:
        yield scene.answer(
            "raises", False, f"{subject.shown} raises `{own[0].name}`", one.path, own[0].line, sure=_LESS_SURE
        )


def _elsewhere(
    scene: Scene, subject: Subject, facts: Sequence[CodeFact], own: Sequence[CodeFact], error: Object, denied: bool
) -> Iterator[Check]:
    """An exception that the subject does not raise itself: what it calls may, or its documentation names it."""
    one = subject.definition
    for callee, more in scene.callees(facts, one.path):
        inner = next((fact for fact in more if fact.role == "raise" and last_part(fact.name) == error.last), None)
        if inner is not None:
            shown = f"{subject.shown} calls `{callee.qualified}`, which raises `{error.last}`"
            sure = 0.4 if _GIVES.search(scene.said) else _LESS_SURE
            yield scene.answer("raises", not denied, shown, callee.path, inner.line, sure=sure)
            return
    if not scene.is_read(subject) or scene.names(subject, error.last):
        return  # a declaration; or named but not raised: caught, compared or documented
    raised = [fact for other in scene.near(subject) for fact in scene.lookup.facts(other) if fact.role == "raise"]
    if any(is_kind(last_part(fact.name), error.last, scene) for fact in raised):
        return
    if not denied and (not subject.named or not own or error.text == "panic" or not _is_same_case(scene, own)):
        return  # another function may be meant, or another way to fail
    if any(are_related(scene, fact.name, error.last) for fact in own):
        return
    instead = f"raises `{last_part(own[0].name)}`" if own else "raises nothing"
    sure = 1.0 if own else 0.5
    # That something is missing is a fact about the whole definition.
    shown = f"{subject.shown} {instead}, not `{error.last}`"
    yield scene.answer("raises", denied, shown, one.path, one.line, one.end_line, sure)


def _is_same_case(scene: Scene, own: Sequence[CodeFact]) -> bool:
    """Whether the exceptions of a function stand for what the claim speaks of: under its condition, if it has one."""
    words = distinctive_words(scene.condition[1])
    return not words or any(scene.overlap(words, " ".join((*fact.guards, fact.value))) >= _SAME_CASE for fact in own)


def _better_raise(scene: Scene, subject: Subject, own: Sequence[CodeFact], here: Sequence[CodeFact]) -> CodeFact | None:
    """Another exception whose condition and message fit the claim's condition clearly better."""
    words = distinctive_words(scene.said.replace("`", " "))
    idents = [
        item.last for item in scene.objects if not is_error_name(item.last) and item.last != subject.definition.name
    ]
    words = [*words, *(word for name in idents for word in distinctive_words(name))]
    if not words:
        return None
    one = subject.definition
    lines = {line for name in idents for line in scene.lookup.lines_with(one.path, name, one.line + 1, one.end_line)}

    def fit(fact: CodeFact) -> float:
        near = any(fact.line - 3 <= line <= fact.line for line in lines)
        return scene.overlap(words, " ".join((*fact.guards[-3:], fact.value))) + 0.3 * near

    best = max(own, key=fit)
    return best if best not in here and fit(best) >= max(fit(fact) for fact in here) + 0.2 else None


# -- Return values -------------------------------------------------------------------------------------

_LITERALS: tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"(?<![\w`'\"])(?:{said})(?![\w])", re.I), re.compile(source))
    for name, said, source in (
        ("None", r"`?None`?|`?nil`?|`?null`?|`?undefined`?|nothing", r"None|nil|null|undefined|\(\)|"),
        ("True", r"`?True`?", r"True|true"),
        ("False", r"`?False`?", r"False|false"),
        ("the object itself", r"itself|`?self`?|`?this`?|(?:the )?same (?:instance|object)", r"self|this|cls"),
        (
            "an empty value",
            r"an? (?:new )?empty \w+",
            r"\[\]|\{\}|\"\"|''|``|\(\)|new \w+\(\)|[A-Za-z_.]+\(\)|String::new\(\)|vec!\[\]",
        ),
    )
)


def _check_returns(scene: Scene) -> Iterator[Check]:
    functions = [one for one in scene.named if one.definition.kind in ("function", "method") and one.weight == 1.0]
    answers: list[list[Check]] = []
    for subject in [one for one in functions if one.definition.name == functions[0].definition.name]:
        one = subject.definition
        facts = scene.facts(subject)
        own = [fact for fact in facts if fact.role == "return" and fact.owner in (one.name, "")]
        result = next((fact.value for fact in facts if fact.role == "result" and fact.owner == one.name), "")
        answers.append(list(_compare_returns(scene, subject, own, result)) if own or result else [])
    yield from decide(answers)


def _compare_returns(scene: Scene, subject: Subject, own: Sequence[CodeFact], result: str) -> Iterator[Check]:
    one = subject.definition
    if _DEFAULT.search(scene.said) and not _GIVES.search(scene.said):
        return  # "the default of `x` in `f` is None" is about a parameter
    match = _GIVES.search(scene.said) or _RETURN.search(scene.said)
    after = scene.text[scene.text.lower().find(match[0].lower().strip()) :] if match else scene.text
    after = re.split(
        r"\b(?:when|if|unless|for|while|because|so that|instead of|rather than)\b|[,;]", after, maxsplit=1
    )[0]
    errors = [item for item in scene.objects if item.text in after and is_error_name(item.last)]
    if errors and one.path.endswith((".go", ".rs")):
        yield from _compare_raises(scene, subject, errors, scene.denies(_RETURN))
        return
    for name, said, source in _LITERALS:
        literal = said.search(after)
        # "is called with None" does not say what it gives.
        if literal and (_GIVES.search(scene.said) or not _PARTICIPLE.search(after[: literal.start()])):
            here = [fact for fact in own if any(source.fullmatch(part) for part in _elements(fact.value))]
            if "no error" in after:
                here = [fact for fact in here if _elements(fact.value)[-1] in ("nil", "None")]
            if name == "the object itself":
                here += [fact for fact in own if re.fullmatch(r"[a-z]\w?", fact.value)]
            # What is computed may be anything.
            if here or all(_PLAIN_VALUE.fullmatch(fact.value) for fact in own):
                yield from _answer_return(scene, subject, own, here, name)
            return
    numbers = [number_meanings(one) for one in scene.numbers if one.text in after]
    if numbers and own and _GIVES.search(scene.said):
        plain = [(fact, read_numbers(fact.value)) for fact in own if re.fullmatch(r"-?[\d_.]+", fact.value)]
        here = [fact for fact, values in plain if any(same_number(a, b) for a in values for b in numbers[0])]
        if here or (plain and len(plain) == len(own)):
            yield from _answer_return(scene, subject, own, here, scene.numbers[0].text)
        return
    yield from _compare_given(scene, subject, own, result, after)


def _compare_given(scene: Scene, subject: Subject, own: Sequence[CodeFact], result: str, after: str) -> Iterator[Check]:
    """What a function gives, by its type and by the names of the returned expressions."""
    one = subject.definition
    if not _GIVES.search(scene.said):
        return
    wanted = [fact for fact in scene.objects if fact.at >= scene.text.find(after) and fact.text in after]
    said_plainly = re.sub(r"`[^`]*`|\b\w*[a-z][A-Z]\w*", " ", after)  # "error" in a name says nothing of the type
    words = [word for word in distinctive_words(said_plainly) if word not in _PLAIN]
    only_nothing = own and all(re.fullmatch(r"None|undefined|nil", fact.value) for fact in own)
    if only_nothing and (wanted or words) and not result.strip("() "):
        last = own[-1]
        shown = f"{subject.shown} returns nothing"
        yield scene.answer("returns", scene.denies(_RETURN), shown, one.path, one.line, last.end_line, _LESS_SURE)
        return
    primitive = _PRIMITIVE.search(after.replace("`", " "))
    if primitive and (there := _PRIMITIVE.findall(result)):
        shown = f"{subject.shown} returns `{result[:60]}`"
        holds = (primitive[0] in there) != scene.denies(_RETURN)
        yield scene.answer("returns", holds, shown, one.path, one.line, sure=0.9)
        return
    yield from _compare_types(scene, subject, own, result, words)
    for item in wanted[:2]:
        here = [fact for fact in own if re.search(rf"(?<!\w){re.escape(item.last)}(?!\w)", fact.value)]
        if here or re.search(rf"(?<!\w){re.escape(item.last)}(?!\w)", result):
            yield from _answer_return(scene, subject, own, here or list(own[:1]), item.text)
        elif item.ticked and last_part(item.text) != one.name and _is_other(scene, own, result, item.last):
            yield from _answer_return(scene, subject, own, [], item.text)


def _is_other(scene: Scene, own: Sequence[CodeFact], result: str, wanted: str) -> bool:
    """Whether what a function returns is known and something else: literals alone, or another class of the project."""
    if own and all(_PLAIN_VALUE.fullmatch(fact.value) and wanted not in fact.value for fact in own):
        return True
    classes = [name for name in (result.strip("\"'&*"), wanted)
               if any(one.kind in HOLDERS for one in scene.lookup.definitions(name))]  # fmt: skip
    return len(classes) == 2 and not are_related(scene, *classes)


_PRIMITIVE = re.compile(
    r"(?<![\w.])(?:u?int(?:8|16|32|64)?|float(?:32|64)|[iuf](?:8|16|32|64|128)|[iu]size|rune)(?!\w)"
)
_PARTICIPLE = re.compile(r"\b\w+(?:ed|en|ing)\b", re.I)


def _elements(value: str) -> list[str]:
    """The values of a returned tuple, or the one value."""
    plain = value.strip()
    return [part.strip() for part in plain.strip("()").split(",")] if "," in plain and "(" not in plain[1:] else [plain]


_GIVES = re.compile(r"\b(?:return|gives?\b|gave\b|giving\b|hand|yield|reports?\b|comes? back|produces?\b)", re.I)
_PLAIN_VALUE = re.compile(
    r"None|nil|null|undefined|True|False|true|false|self|this|-?[\d.]+|f?[\"'`].*|\[.*\]|\{.*\}|\(.*\)", re.S
)


_PLAIN = frozenset(("return", "give", "back", "yield", "valu", "get", "it"))


_MORE = 2  # words besides a type that a claim may have
_SIMPLE_TYPE = re.compile(
    r"str|int|bool|float|bytes|string|boolean|number|usize|u\d+|i\d+|&?str|String|double|long|byte"
)
_TYPES: dict[str, str] = {
    "dictionari": r"dict|Dict|Mapping|map\[|\{.*:.*\}|HashMap|Map<|Record<",
    "dict": r"dict|Dict|Mapping|\{.*:.*\}",
    "list": r"list|List|\[.*\]|Sequence|Vec<|Array|\[\]",
    "array": r"\[.*\]|Array|\[\]",
    "slice": r"^\[\]|&\[",
    "string": r"str\b|String|string|[\"'`].*[\"'`]",
    "boolean": r"bool|Boolean|True|False|true|false|^not |^!",
    "bool": r"bool|Boolean|True|False|true|false",
    "integ": r"\bint|Int|usize|u\d\d|i\d\d|number|^\d+$",
    "number": r"\bint|float|number|Number|^\d+",
    "tupl": r"tuple|Tuple|^\(.*,",
    "byte": r"bytes|\[\]byte|Buffer|byte\[\]",
    "error": r"error|Error|Result<|Err\(",
    "promis": r"Promise|async",
    "gener": r"Iterator|Generator|Iterable|yield",
    "iter": r"Iterator|Generator|Iterable|iter",
    "usiz": r"usize",
}


def _compare_types(
    scene: Scene, subject: Subject, own: Sequence[CodeFact], result: str, words: Sequence[str]
) -> Iterator[Check]:
    """A type in words ("a dictionary") against the annotation and the returned expressions."""
    wanted = [word for word in words if word in _TYPES]
    if not wanted or scene.denies(_RETURN):
        return
    one = subject.definition
    line = own[0].line if own else one.line
    starts = {fact.name: fact.value for fact in reversed(scene.facts(subject)) if fact.role == "value"}
    values = [starts.get(fact.value, fact.value) for fact in own if "implicit" not in fact.traits]
    fits = [
        bool(re.search(_TYPES[word], result)) or any(re.search(_TYPES[word], value) for value in values)
        for word in wanted
    ]
    if all(fits) and len([word for word in words if word not in _TYPES and word not in _PLAIN]) <= _MORE:
        yield scene.answer(
            "returns", True, f"{subject.shown} returns `{(result or values[0])[:60]}`", one.path, line, sure=0.8
        )
    elif len(wanted) == 1 and _SIMPLE_TYPE.fullmatch(result):
        yield scene.answer("returns", False, f"{subject.shown} returns `{result[:60]}`", one.path, line, sure=0.7)


def _is_other_case(scene: Scene, subject: Subject, here: Sequence[CodeFact]) -> bool:
    """Whether another way out of a function fits the claim's condition clearly better."""
    words = distinctive_words(scene.condition[1])
    if scene.condition[0] == "unless":
        return any(scene.overlap(words, " ".join(fact.guards)) >= 0.3 for fact in here)
    exits = [
        fact for fact in scene.facts(subject) if fact.role in ("return", "raise") and "implicit" not in fact.traits
    ]
    if not words or len(exits) < 2 or _NEGATIVE.search(scene.condition[1]):
        return False  # what is not so stands in no condition

    def fit(fact: CodeFact) -> float:
        before = scene.lookup.lines(subject.definition.path)[max(0, fact.line - 3) : fact.line]
        return scene.overlap(words, " ".join((*fact.guards[-2:], fact.value, *before)))

    return max(map(fit, exits)) > max(map(fit, here)) + _BETTER


_BETTER = 0.15
_NEGATIVE = re.compile(r"\b(?:no|not|without|cannot|never|nothing|neither|fails?|missing|absent)\b|n['’]t\b", re.I)


def _answer_return(
    scene: Scene, subject: Subject, own: Sequence[CodeFact], here: Sequence[CodeFact], shown: str
) -> Iterator[Check]:
    one = subject.definition
    if here and _is_other_case(scene, subject, here):
        return
    if here:
        best = max(
            here, key=lambda fact: (scene.overlap(scene.words, " ".join(fact.guards)), "implicit" not in fact.traits)
        )
        yield scene.answer(
            "returns",
            not scene.denies(_RETURN),
            f"{subject.shown} returns `{best.value[:60]}`",
            one.path,
            best.line,
            sure=1.0 if len(own) == len(here) else 0.8,
        )
    elif own:
        values = ", ".join(f"`{fact.value[:40]}`" for fact in own[:3])
        best = max(own, key=lambda fact: scene.overlap(scene.words, " ".join(fact.guards)))
        yield scene.answer(
            "returns", scene.denies(_RETURN), f"{subject.shown} returns {values}, not {shown}", one.path, best.line
        )


# -- Calls ---------------------------------------------------------------------------------------------


def _check_calls(scene: Scene) -> Iterator[Check]:
    subjects = [one for one in scene.named if not is_error_name(one.definition.name)]
    callables = [
        one
        for one in scene.objects
        if re.fullmatch(r"[@$]?[\w.:#]+(?:\(.*\))?!?", one.text)
        and not is_error_name(one.last)
        and one.text in scene.main
    ]
    if not subjects or not callables:
        return
    is_reversed = _REVERSED.search(scene.said) is not None
    if _PASSIVE.search(scene.said) and not is_reversed:
        return
    first = last_part(subjects[0].definition.qualified)
    own = [one for one in subjects if one.definition.name == first]
    others = [one for one in callables if one.last != first]
    if is_reversed and len(callables) >= 2:
        own = [one for one in scene.named if one.definition.name == callables[-1].last]
        others = callables[:-1]
    cue = _CALL.search(scene.text, scene.text.find(first) + len(first))
    for item in others[:4]:
        if item.at < scene.text.find(first) and not is_reversed:
            continue
        if cue is not None and item.at < cue.start() and not is_reversed:
            continue  # "`f` and `g` both call `h`"
        yield from decide(_compare_call(scene, subject, item) for subject in own)


def _compare_call(scene: Scene, subject: Subject, item: Object) -> Iterator[Check]:
    one = subject.definition
    facts = scene.facts(subject)
    if not facts or item.last in ("True", "False", "None"):
        return
    denied = item.denied or scene.denies(_CALL)
    here = next(
        (fact for fact in facts if fact.role in ("call", "raise", "decorator") and _is_call(fact.name, item.text)), None
    )
    if here is not None:
        yield scene.answer("calls", not denied, f"{subject.shown} calls `{here.name[:60]}`", one.path, here.line)
        return
    if not any(fact.role == "call" for fact in facts) or scene.reaches(subject, item.last):
        return  # only declared; or named in another way, there or by what it calls
    is_outside = (
        "." in item.text
        and _BY_MEANS.search(scene.text[: item.at]) is not None
        and not scene.lookup.lines_with(one.path, item.last)
    )
    if not denied and not is_outside and not (_CALLS.search(scene.main) and scene.lookup.knows(item.last)):
        return  # what "uses" something may do so in any way
    if not denied and not _is_object_of_call(scene, item):
        return
    shown, place = f"{subject.shown} does not call `{item.text}`", (one.path, one.line, one.end_line)
    if _REVERSED.search(scene.said) and (caller := _caller(scene, one.path, item.last)) is not None:
        shown, place = f"`{caller[0]}` calls `{item.text}`, {shown}", (one.path, caller[1], caller[1])
    yield scene.answer("calls", denied, shown, *place)


def _caller(scene: Scene, path: str, name: str) -> tuple[str, int] | None:
    """What calls something in a file instead, and where."""
    syntax = scene.lookup.syntax(path)
    facts = syntax.every_fact() if syntax is not None else ()
    return next((
        (fact.owner, fact.line) for fact in facts if fact.role == "call" and last_part(fact.name) == name and fact.owner
    ), None)  # fmt: skip


_BY_MEANS = re.compile(r"\b(?:with|through|via|using|by means of)\s+(?:an?\s+|the\s+)?$", re.I)
# "what was registered with `f`", "the function returned by `f`"
_OF_ANOTHER = re.compile(
    r"\b(?!call|invok|delegat|forward|hand)\w+(?:ed|en)\s+(?:with|by|in|from|through|via|on)\s+(?:the\s+)?`?$", re.I
)


def _is_object_of_call(scene: Scene, item: Object) -> bool:
    """Whether a claim says that the item itself is called: not "runs what was registered with `f`"."""
    if not item.ticked and item.text.isalpha() and item.text.islower():
        return False  # an ordinary word
    return _OF_ANOTHER.search(scene.text[: item.at]) is None


_CALLS = re.compile(r"\b(?:call|invok|delegat|forward|hands?\b|goes through)", re.I)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|gets?) (?:\w+ )?(?:called|invoked|used|run)\b", re.I)


def _is_call(called: str, wanted: str) -> bool:
    """Whether a call in the source is the one that the claim names; a given package or module must agree."""
    plain = re.sub(r"\(.*", "", wanted).lstrip("@$")
    if last_part(called) != last_part(plain):
        return False
    before, given = re.split(r"\.|::", called)[:-1], re.split(r"\.|::", plain)[:-1]
    if not given or not before or before[-1] in ("self", "this", "cls", "super()", "Self"):
        return True
    return given[-1] == before[-1] or not given[-1].islower() or not before[-1].islower() or len(before[-1]) <= 3


# -- Decorators, members, asynchronous functions -------------------------------------------------------


# "The `f` decorator takes a name" does not say that anything is decorated with it.
_DECORATED = re.compile(r"\bdecorat(?:ed|es|ing)\b|\bdecorators? (?:of|on|above)\b", re.I)


def _check_decorator(scene: Scene) -> Iterator[Check]:
    for subject in scene.named[:4]:
        one = subject.definition
        marks = [fact for fact in scene.facts(subject) if fact.role == "decorator" and fact.line <= one.line]
        others = [item for item in scene.objects if item.last != one.name]
        if not others or not scene.facts(subject):
            continue
        here = next((fact for fact in marks for item in others if last_part(fact.name) == item.last), None)
        if here is not None:
            yield scene.answer(
                "relation", not scene.denies(_DECORATOR), f"{subject.shown} has `@{here.name}`", one.path, here.line
            )
            return
        if len(scene.objects) == 2 and _DECORATED.search(scene.said) and not scene.reaches(subject, others[-1].last):
            shown = f"{subject.shown} is not decorated with `{others[-1].text}`"
            yield scene.answer("relation", scene.denies(_DECORATOR), shown, one.path, one.line)
            return


_OVERRIDES = re.compile(r"\boverr[io]d|\bredefin|\bown\b", re.I)


def _check_member(scene: Scene) -> Iterator[Check]:
    """Whether a class has a method, field or parameter of a name."""
    names = list(scene.found.names)
    pairs = [
        (a, b)
        for a in names
        for b in names
        if a is not b and a.last != b.last and any(one.kind in HOLDERS for one in a.placed or a.defined)
    ]
    for owner, other in pairs:
        inside = next((one for one in other.defined if owner.last in one.qualified.split(".")[:-1]), None)
        if inside is not None:
            shown = f"`{inside.qualified}` is defined"
            yield scene.answer("member", not scene.claim.negated, shown, inside.path, inside.line)
            return
    for owner, other in pairs:
        for subject in [one for one in scene.named if one.definition.name == owner.last]:
            place = next(
                (
                    fact
                    for fact in scene.facts(subject)
                    if fact.role in ("value", "parameter") and last_part(fact.name) == other.last
                ),
                None,
            )
            if place is not None:
                shown = f"{subject.shown} has `{other.last}`"
                yield scene.answer("member", not scene.claim.negated, shown, subject.definition.path, place.line)
                return
    if len(pairs) == 1 and len(names) == 2 and " | " not in scene.text and not _PARAMETER.search(scene.said):
        owner, other = pairs[0]
        one = owner.best or owner.defined[0]
        inherited = any(
            found.name == other.last
            for _, base, _, _ in islice(find_ancestors(scene, one), 20)
            for found in other.defined
            if base in found.qualified.split(".")
        )
        holds = inherited and not _OVERRIDES.search(scene.said)
        above = [base for _, base, _, _ in find_ancestors(scene, one)]
        own = (one.line, one.end_line) if _OVERRIDES.search(scene.said) else ()
        unknown = not own and may_lead_to(scene, "", above)
        if not holds and (unknown or scene.lookup.lines_with(one.path, other.last, *own)):
            return  # it may come from a class of another project, or be there in another way
        shown = f"`{one.qualified}` has no `{other.last}`" + (" of its own" if inherited else "")
        yield scene.answer("member", holds != scene.claim.negated, shown, one.path, one.line, one.end_line)


_OWNS = re.compile(r"\b(?:owns?|holds?|keeps?|stores?|carries|maintains?|wraps?|has its own)\b", re.I)


def _check_owned(scene: Scene) -> Iterator[Check]:
    """Whether a class has a field of a type, or one that starts as one: "`C` owns a `Lock`"."""
    classes = [one for one in scene.named if one.definition.kind in HOLDERS]
    cue = _OWNS.search(scene.said)
    others = [item for item in scene.objects if item.last[:1].isupper() and item.ticked]
    others = [item for item in others if not classes or item.last != classes[0].definition.name]
    if cue is None or not classes or len(others) != 1 or scene.condition[0]:
        return
    for subject in [one for one in classes if one.definition.name == classes[0].definition.name]:
        one = subject.definition
        for fact in scene.facts(subject):
            if fact.role != "value" or fact.owner not in (one.name, "__init__", "constructor"):
                continue
            if others[0].last in re.findall(r"\w+", scene.lookup.lines(one.path)[fact.line - 1]):
                shown = f"{subject.shown} has `{fact.name}`"
                yield scene.answer("member", not scene.claim.negated, shown, one.path, fact.line, sure=0.8)
                return


def _check_async(scene: Scene) -> Iterator[Check]:
    is_async, is_sync = _ASYNC.search(scene.said) is not None, _SYNC.search(scene.said) is not None
    functions = [one for one in scene.named if one.definition.kind in ("function", "method")]
    if is_async == is_sync or not functions or len(scene.found.names) != 1:
        return
    subject = functions[0]
    one = subject.definition
    if len({other.definition.qualified for other in functions}) > 1:
        return
    head = scene.lookup.lines(one.path)[one.line - 1].split("{")[0]
    marked = any(
        fact.role == "modifier" and "async" in fact.name and fact.owner == one.name for fact in scene.facts(subject)
    )
    found = marked or re.search(r"\basync\b|\bsuspend\b|\bPromise<|\bFuture<", head) is not None
    if not found and not one.path.endswith((".py", ".rs")):
        return  # what returns a promise needs no mark
    shown = f"{subject.shown} is {'' if found else 'not '}asynchronous"
    yield scene.answer("relation", (found == is_async) != scene.claim.negated, shown, one.path, one.line)


# -- Imports -------------------------------------------------------------------------------------------

_IMPORTING = re.compile(r"^\s*(?:from|import|use|require|include|#include|export)\b|\b(?:require|import)\s*\(")


def _check_imports(scene: Scene) -> Iterator[Check]:
    """Whether the file imports the names of the claim."""
    found, lookup = scene.found, scene.lookup
    if any(is_dependency_file(path) for path in found.paths):
        return  # a manifest requires packages, it imports nothing
    packages = [mention.text.strip("`") for mention in scene.claim.mentions if mention.kind == "dependency"]
    wanted = [symbol.name for symbol in found.names] or list(found.terms) or packages
    for path in found.paths[:1]:
        for name in wanted[:4]:
            imports = lookup.imports(path)
            line = next((one.line for one in imports if _is_import(name, one.module, one.names)), None)
            lines = lookup.lines(path)
            line = line or next((n for n in lookup.lines_with(path, name) if _IMPORTING.search(lines[n - 1])), None)
            if line is not None:
                yield scene.answer("relation", not scene.denies(_IMPORT), f"{path} imports `{name}`", path, line)
            elif imports and " | " not in scene.text and not _names(scene, path, name):
                yield scene.answer(
                    "relation", scene.denies(_IMPORT), f"{path} does not import `{name}`", path, imports[0].line
                )


def _names(scene: Scene, path: str, name: str) -> bool:
    """Whether a file names something anywhere, or imports everything of some module."""
    last = re.split(r"\.|::|/", name)[-1]
    return bool(scene.lookup.lines_with(path, last)) or any("*" in one.names for one in scene.lookup.imports(path))


def _is_import(name: str, module: str, names: Sequence[str]) -> bool:
    last = re.split(r"\.|::|/", name)[-1]
    whole = module.strip("./")
    ends = whole.endswith((f".{name}", f"/{name}", f":{name}"))
    return last in names or module == name or whole == name or ends or re.split(r"[./]", whole)[0] == name
