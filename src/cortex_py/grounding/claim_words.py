"""The words that tell what kind of claim a clause makes, and which clauses cannot be checked. Pure.

The words are English. A clause of another language has none of them: it is a reference where it mentions code, and
otherwise not understood, which says less but nothing wrong.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from ..memory.opposites import COMMON, FOREIGN, NEGATIONS, word_set

__all__ = [
    "CHANGES",
    "ClaimType",
    "HeadingType",
    "Reason",
    "Verb",
    "does",
    "first_verb",
    "heading_type",
    "is_doubt",
    "is_finite",
    "is_negated",
    "reason_for",
]

ClaimType = Literal[
    "implemented", "modified", "fixed", "removed", "exists", "value", "version", "dependency", "test_result",
    "behaviour", "reference",
]  # fmt: skip
Reason = Literal["question", "plan", "opinion", "instruction", "quotation", "heading", "not understood"]
HeadingType = Literal["plan", "instruction", "told", "implemented", "modified", "fixed", "removed"]
CHANGES = frozenset(("implemented", "modified", "fixed", "removed"))

# The verb, its form with -s, its past, its participle where that is another.
_VERBS: dict[ClaimType, str] = {
    "implemented": """add adds added, implement implements implemented, create creates created, introduce introduces
        introduced, write writes wrote written, build builds built, integrate integrates integrated, enable enables
        enabled, expose exposes exposed, include includes included, register registers registered, wire wires wired,
        generate generates generated, complete completes completed, finish finishes
        finished, provide provides provided""",
    "modified": """update updates updated, change changes changed, modify modifies modified, refactor refactors
        refactored, rename renames renamed, move moves moved, replace replaces replaced, extract extracts extracted,
        convert converts converted, migrate migrates migrated, adjust adjusts adjusted, improve improves improved,
        rewrite rewrites rewrote rewritten, simplify simplifies simplified, optimize optimizes optimized, optimise
        optimises optimised, rework reworks reworked, switch switches switched, extend extends extended, bump bumps
        bumped, upgrade upgrades upgraded, downgrade downgrades downgraded, increase increases increased, decrease
        decreases decreased, reduce reduces reduced, lower lowers lowered, tweak tweaks tweaked, configure configures
        configured, edit edits edited, restructure restructures restructured, clean cleans cleaned, set sets set,
        document documents documented, reorganize reorganizes reorganized, cover covers covered, split splits split,
        make makes made, pin pins pinned, inline inlines inlined""",
    "fixed": """fix fixes fixed, resolve resolves resolved, correct corrects corrected, repair repairs repaired, patch
        patches patched, address addresses addressed, solve solves solved""",
    "removed": """remove removes removed, delete deletes deleted, drop drops dropped, eliminate eliminates eliminated,
        strip strips stripped, revert reverts reverted, disable disables disabled, purge purges purged""",
    "exists": """contain contains contained, exist exists existed, live lives lived, reside resides resided, define
        defines defined, declare declares declared, locate locates located""",
    "behaviour": """handle handles handled, return returns returned, raise raises raised, throw throws threw thrown,
        validate validates validated, accept accepts accepted, reject rejects rejected, support supports supported,
        parse parses parsed, store stores stored, send sends sent, receive receives received, expire expires expired,
        require requires required, produce produces produced,
        ignore ignores ignored, skip skips skipped, convert converts
        converted, compute computes computed, invalidate invalidates invalidated, retry retries
        retried, depend depends depended, inherit inherits inherited, implement implements, default defaults defaulted,
        equal equals equaled, rotate rotates rotated, take takes took taken, wrap wraps wrapped, emit emits emitted""",
}
# Their -s form is as often a noun; they make a statement only where nothing else does.
_NOUNS_TOO = word_set(
    """uses calls checks logs caches tests runs works loads saves needs reads writes falls matches starts stops keeps
    lets allows means fails passes gives gets goes shows listens connects creates opens closes prevents"""
)
_FINITE = word_set(
    """is are was were has have had does do did can cannot could will would should might may must isn't aren't wasn't
    weren't hasn't haven't doesn't don't didn't can't won't couldn't shouldn't it's there's they're that's contains used
    called ran worked failed passed kept"""
)


class Verb(NamedTuple):
    """A verb where it stands in the text; `past` for forms that tell what was done."""

    start: int
    end: int
    type: ClaimType
    form: Literal["base", "s", "past", "noun"]  # a noun as well, so that it is only a verb where there is no other


def _forms() -> dict[str, tuple[ClaimType, Literal["base", "s", "past"]]]:
    table: dict[str, tuple[ClaimType, Literal["base", "s", "past"]]] = {}
    for kind, rows in _VERBS.items():
        for row in rows.split(","):
            base, s, *past = row.split()
            table.setdefault(base, (kind, "base"))
            table.setdefault(s, (kind, "s"))
            table.update({word: (kind, "past") for word in past if table.get(word, (kind, "base"))[1] != "past"})
    return table


_FORMS = _forms()
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?|`[^`\n]*`|\"[^\"\n]*\"|[A-Za-z0-9_./-]*[_./\d][A-Za-z0-9_./-]*")
_BEFORE_NOUNS = word_set("the a an this that these those newly recently its our your their my of each any every to by")
_THE_CHANGE = re.compile(
    r"^\W*(?:(?:this|the|that|my|our)\s+)?(?:new\s+)?(?:commit|pr|patch|change|changes|diff|update|fix"
    r"|refactor(?:ing)?|pull request|merge request|branch|this|it)\s*"
    r"(?:(?:also|now|will|may|might|should|could|can|does|did|not|doesn['’]t)\s*){0,3}$",
    re.IGNORECASE,
)
_NO_SUBJECTS = _BEFORE_NOUNS - {"this", "that"}
_BEFORE_DOING = word_set("now always never longer")  # "now compiles"
_TRYING = word_set("tried attempted managed able helped")
_MANY = re.compile(r"[a-z]{2,}(?<!thi)(?<!\bi)(?<!s)s")
_WE = re.compile(r"\b(?:I|we)\b", re.IGNORECASE)
_ASIDE = word_set("also now then finally just already successfully properly correctly additionally not never")


def first_verb(text: str, start: int, end: int, listed: bool = False) -> Verb | None:
    """The verb that says what the clause claims; "the added test" has none, "Add a test" only as an entry of a list."""
    before, earlier, previous, weak = "", "", "", None
    for match in _WORD.finditer(text, start, end):
        word = match[0].lower()
        known = _FORMS.get(word)
        if known is None and word in _NOUNS_TOO and weak is None and before and before not in _NO_SUBJECTS:
            weak = Verb(match.start(), match.end(), "behaviour", "noun")
        if known is not None and known[1] == "base" and before == "to" and earlier in _TRYING:
            return Verb(match.start(), match.end(), known[0], "past")
        said = known is not None and known[1] == "s" and before in ("this", "that", "which")
        if known is not None and (said or before not in _BEFORE_NOUNS):
            kind, form = known
            if form == "s" and not before and _IS.match(text, match.end(), end):
                continue  # "Retries are enabled"
            if form != "base":
                return _turned(text, start, Verb(match.start(), match.end(), kind, form))
            if form == "base" and (before in _AUXILIARIES or (listed and not before)):
                return _turned(text, start, Verb(match.start(), match.end(), kind, form))
            if form == "base" and weak is None and _MANY.fullmatch(before):
                weak = Verb(match.start(), match.end(), "behaviour", "s")
        if weak is None and previous in _BEFORE_DOING and word.endswith("s"):
            weak = Verb(match.start(), match.end(), "behaviour", "s")
        previous = word
        if word not in _ASIDE or not before:
            before, earlier = word, before
    return weak


_IS = re.compile(r"\s+(?:is|are|was|were|have|aren['’]t|weren['’]t)\b", re.IGNORECASE)
_AUXILIARIES = word_set(
    "will can could should might may must did does do didn't doesn't don't cannot can't would won't not"
)


def _turned(text: str, start: int, verb: Verb) -> Verb:
    """What code does is behaviour: "`login()` creates a session", but "this commit creates a table"."""
    alone = not text[start : verb.start].strip()  # "Fixes the crash", as commits say it
    before = text[start : verb.start]
    own = _THE_CHANGE.match(before) or (verb.form == "base" and _WE.search(before))
    if verb.form != "past" and verb.type in CHANGES and not alone and not own:
        return verb._replace(type="behaviour")
    return verb


def does(text: str, start: int, end: int) -> bool:
    """Whether the words begin with what something does: "drops an index"."""
    word = _WORD.match(text, start, end)
    known = _FORMS.get(word[0].lower()) if word else None
    return word is not None and (word[0].lower() in _NOUNS_TOO or (known is not None and known[1] == "s"))


def is_finite(text: str) -> bool:
    """Whether there is a word that makes a statement of the text; "will" and "was" are words of German too."""
    words = [found[0].lower().replace("’", "'") for found in _WORD.finditer(text)]
    if not _FINITE.intersection(words):
        return False
    return sum(word in FOREIGN for word in words) <= sum(word in COMMON or word in _FINITE for word in words) // 2


def is_negated(text: str) -> bool:
    """Whether the clause denies something; "not only" and "without" do not, nor does the value `None`.

    What a clause inside denies, this one does not: "raises for anything that is not a token".
    """
    main = _INNER.split(_NONE.sub(" ", text), maxsplit=1)[0]
    words = [found[0].lower().replace("’", "'") for found in _WORD.finditer(main)]
    following = [*words[1:], ""]
    return any(
        (word in NEGATIONS or word.endswith("n't"))
        and word not in ("without", "non")
        and (word, after) not in _NO_DENIAL
        for word, after in zip(words, following, strict=True)
    )


_INNER = re.compile(
    r"(?<=\S)\s+(?:when(?:ever)?|if|unless|because|while|where|until|in case|which|whose|who"
    r"|(?<!verified )(?<!confirmed )(?<!checked )(?<!ensured )(?<!ensures )(?<!means )(?<!shows )(?<!sure )(?<!know )"
    r"(?<!found )(?<!so )(?<!think )(?<!believe )(?<!say )(?<!says )(?<!note )(?<!guarantees )that)\s",
    re.IGNORECASE,
)
_NONE = re.compile(r"(?<=[\w=:`] )None\b(?!\s+of\b)|(?<=[=(:,])\s*None\b")  # inside a sentence, with its capital


_DOUBT = re.compile(
    r"\W*(?:although\s+|though\s+|but\s+)?(?:(?:I|it|this|that|these|they|everything|all of (?:it"
    r"|this))(?:['’]\w+)?\s+)?"
    r"(?:(?:am|is|are|was|has|have|remains?|been|still|yet|so far|just|I|it)\s+){0,4}(?:haven['’]t\s+|hasn['’]t\s+"
    r"|isn['’]t\s+|not\s+)?"
    r"(?:been\s+|fully\s+|really\s+|\d*%?\s*){0,2}(?:untested|unverified|unsure|uncertain|tested|verified|sure"
    r"|certain|confirmed|checked)"
    r"(?:\s+(?:it|this|that|yet|though|so far|though|about (?:it|this|that)))?[.!]*",
    re.IGNORECASE,
)
_DENIES = re.compile(r"\bun|n['’]t\b|\bnot\b", re.IGNORECASE)


def is_doubt(text: str) -> bool:
    """Whether the clause only takes back what is said beside it: "but it is untested"."""
    return _DOUBT.fullmatch(text) is not None and _DENIES.search(text) is not None


_NO_DENIAL = frozenset((("not", "only"), ("no", "doubt"), ("no", "problem"), ("not", "sure"), ("not", "just")))

_QUOTED_ERROR = re.compile(
    r"^\W*(?:Traceback \(|(?:[\w.]*(?:Error|Exception|Warning)|error|fatal|panic|E)\s*(?:\[\w+\])?:\s"
    r"|(?:the|this|your|an?)\s+(?:error|exception|warning|traceback|output|log|message"
    r"|stack trace)s?\b[^.]{0,40}\b(?:says?|said|reads?|reports?|states?|was|is)\b\s*:?\s*[`\"“'])",
    re.IGNORECASE,
)
_MADE = (
    r"(?:add|implement|creat|refactor|renam|mov|replac|remov|delet|updat|chang|split|extract|migrat|writ|drop"
    r"|introduc|deprecat"
    r"|document|rewrit|rewritt|done|investigat|revisit|extend|clean)\w*"
)
_PLAN = re.compile(
    r"\b(?:I|we)(?:['’]ll|\s+(?:will|shall|plan|intend|want|need|should|would|can|could|may|might)(?:\s+(?:also|now"
    r"|then|next|still|like))*\s+(?!(?:have|say|guess|think|expect|assume|believe|argue|be)\b)\w+"
    r"|(?:['’]d)\s+(?:suggest|recommend|propose|like)\b|\s+(?:suggest|recommend|propose)\b|(?:\s+am|['’]m|\s+are"
    r"|['’]re)\s+(?:(?:now|currently)\s+)?(?:going|planning|about)\s+to\b)"
    r"|\blet['’]?s\b|\blet me\b(?!\s+know)|\b(?:TODO|FIXME|TBD)\b|\bnext,?\s+(?:I|we|up|step)\b|\bgoing to\b"
    r"|\bnext steps?\b"
    rf"|\b(?:will|should|must|could|can|needs? to|has to|have to|still needs? to|remains? to)\s+(?:also\s+|then\s+"
    rf"|still\s+|later\s+)*be\s+(?:\w+ly\s+)?{_MADE}(?!\s+now)\b(?!\s+now)"
    r"|\b(?:in a (?:follow[- ]up|later|future)|later on|at a later|future work|remains? to be|yet to be"
    r"|still (?:needs?|to do)|plan(?:s|ned)? to|not yet (?:done|implemented))\b"
    r"|^\W*(?:then\s+|also\s+)?will\s+\w+",
    re.IGNORECASE,
)
_NOT_YET = re.compile(r"\bnot yet (?:done|implemented)\b", re.IGNORECASE)
_INSTRUCTION = re.compile(
    r"^\W*(?:(?:then|now|next|finally|first|also|to \w+(?: \w+){0,4}|if [^,]{1,80}|after that"
    r"|once [^,]{1,80}),?\s+)?(?:please|make sure|be sure|ensure|run|try|check(?: out)?|use|see|open|restart"
    r"|install|set|remember|don['’]?t forget"
    r"|do not|consider|copy|paste|replace|add|create|change|update|edit|delete|remove|move|rename|go to|navigate"
    r"|click|verify|test|review|keep in mind|note"
    r"|start|stop|visit|refer|call|write|define|import|export|configure|avoid|commit|push|pull|merge|execute"
    r"|implement|follow|look|read|wrap|put|pass)\b(?!\s*[:(])(?!\w*`?\s+(?:is|are|was|were|has|now)\b)"
    r"|\byou(?:['’]ll|['’]d)?\s+(?:can|could|should|need|may|might|must|want|will|have to|need to)\b"
    r"|\blet me know\b|\bfeel free\b|\b(?:would|do) you (?:like|want)\b"
    r"|\bif you (?:want|need|like|prefer|['’]d like)\b|\byou(?:['’]re| are) (?:welcome|free|ready)\b",
    re.IGNORECASE,
)
_OPINION = re.compile(
    r"\b(?:looks?|sounds?|feels?|seems?|is|are|was|be|it['’]s|that['’]s|makes?|now)\s+(?:\w+\s+){0,4}?(?:good|great"
    r"|fine|nice|nicer|clean|cleaner|better|best|elegant|solid|robust|excellent|reasonable|readable|maintainable"
    r"|simpler|clearer|awesome"
    r"|perfect|worth|important|recommended|preferable|idiomatic|straightforward|beautiful|amazing|ugly|messy|tidier"
    r"|easier|well[- ](?:structured|written|designed|organi[sz]ed)|interesting|a good|a nice|a great|sensible"
    r"|helpful|useful)\b"
    r"|^\W*(?:great|good|nice|excellent|perfect|awesome|sure|okay|ok|absolutely|certainly|thanks?|thank you|sorry"
    r"|hello|hi|happy to|glad|of course|congratulations|done|all done|all set|you['’]re welcome)\b[^.]{0,40}[.!]*$"
    r"|\bI (?:like|love|prefer|hate|dislike|appreciate|agree|disagree)\b|\b(?:in my opinion|imho|personally"
    r"|best practice|I['’]m (?:happy|glad|sorry|afraid))\b",
    re.IGNORECASE,
)


def reason_for(text: str, listed: bool, change_below: bool, verb: Verb | None) -> Reason | None:
    """Why a clause cannot be checked, or None; hedging is no reason.

    In a list of changes, or right after a lead-in that tells of them, "Add x" tells what was done and asks for nothing.
    """
    if text.rstrip(" *_`\"')”’").endswith(("?", "？", "؟")):
        return "question"
    if _QUOTED_ERROR.match(text):
        return "quotation"
    if _PLAN.search(text) and not _NOT_YET.search(text):
        return "plan"
    told = listed and change_below
    if not told and _INSTRUCTION.search(text):
        return "instruction"
    done = verb is not None and verb.form == "past"
    return "opinion" if not done and _OPINION.search(text) else None


_HEADING_WORDS: tuple[tuple[HeadingType, str], ...] = (
        ("plan", r"\b(?:next steps?|to-?dos?|remaining|future|follow[- ]?ups?|planned|plan|roadmap|outstanding"
            r"|still to do|not done|upcoming|left to do|proposal|suggestions?|recommendations?|ideas?)\b"),
        ("instruction", r"\b(?:how to|usage|instructions?|getting started|to (?:run|test|use|try|verify|reproduce)"
            r"|you (?:can|should|need)|steps to|prerequisites)\b"),
        ("removed", r"\b(?:removed?|removals?|deleted?|deletions?|dropped)\b"),
        ("fixed", r"\b(?:fix(?:ed|es)?|bug ?fix(?:es)?|resolved?|bugs)\b"),
        ("implemented", r"\b(?:added|adds?|additions?|new|implement(?:ed|ation|s)?|created?|features?|introduced)\b"),
        ("modified", r"\b(?:chang(?:ed|es?)|modif(?:ied|ications?)|updat(?:ed|es?)|refactor(?:ed|ing)?|improve(?:d"
            r"|ments?)|edits?|renamed|moved)\b"),
        ("told", r"\b(?:summary|what (?:i|we) did|what was done|done|completed|accomplished|overview|results?|work"
            r"|did|i['’]ve|we['’]ve)\b"),
)  # fmt: skip
_HEADINGS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _HEADING_WORDS)
_NAME = re.compile(r"`[^`]*`|\S*[./_]\w\S*")


def heading_type(text: str) -> HeadingType | None:
    """What the lines below a heading or lead-in are, by its words; the name of a file is none of them."""
    bare = _NAME.sub(" ", text)
    return next((kind for kind, pattern in _HEADINGS if pattern.search(bare)), None)
