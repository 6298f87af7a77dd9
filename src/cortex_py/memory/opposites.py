"""Words that turn a statement into another: opposites, negations, names of environments. Plain data."""

from __future__ import annotations

__all__ = [
    "COMMON",
    "ENVIRONMENTS",
    "FOREIGN",
    "FOREIGN_NEGATIONS",
    "HEDGES",
    "NEGATIONS",
    "PARTICIPLES",
    "SCOPES",
    "SIDES",
    "THINGS",
    "VERBS",
    "word_set",
]


def word_set(text: str) -> frozenset[str]:
    """The words of a text, for lists of words."""
    return frozenset(text.split())


# One axis a line: what stands between two bars excludes what stands between two others. "=" marks words that may tell
# two things apart instead of two states of one, "?" those that tell how many are meant.
_AXES = """
over above exceeding exceeds exceed more greater larger higher beyond | under below less fewer smaller lower
minimum min minimal | maximum max maximal
before prior earlier | after later following
increase increases increased rise rises rose rising grew grow grows gain gains gained up raise raised climb climbs \
climbed jump jumped jumps | decrease decreases decreased fall falls fell falling drop drops dropped decline declines \
declined down reduce reduced reduces slip slips slipped dip dips lowered
enable enables enabled activate activates activated on | disable disables disabled deactivate deactivates deactivated \
off
allow allows allowed permit permits permitted accept accepts accepted grant grants granted | deny denies denied forbid \
forbids forbidden block blocks blocked reject rejects rejected refuse refuses refused prohibit prohibits prohibited \
ban bans banned disallow disallows disallowed
add adds added insert inserts inserted append appends appended create creates created | remove removes removed delete \
deletes deleted erase erases erased
start starts started begin begins began launch launches launched | stop stops stopped end ends ended halt halts halted \
finish finishes finished
open opens opened opening | close closes closed closing shut shuts
true | false
? always | sometimes rarely seldom occasionally
= first initial | last final
public | private
success succeed succeeds succeeded pass passes passed works worked working | failure fail fails failed failing broke \
broken
synchronous sync synchronously | asynchronous async asynchronously
internal internally inside | external externally outside
= client | server
= frontend | backend
= read reads reading | write writes writing
= input inputs | output outputs
= left | right
= old older oldest legacy | new newer newest young younger
buy buys bought purchase purchases purchased | sell sells sold
win wins won beat beats defeat defeats defeated | lose loses lost
= man men boy boys male father son brother husband he | woman women girl girls female mother daughter sister wife she
hot hotter | cold colder
fast faster fastest quick quicker quickly | slow slower slowest slowly
strong stronger | weak weaker
better best improve improves improved | worse worst degrade degrades degraded worsened
encrypted encrypt encrypts | plaintext decrypt decrypts decrypted
required mandatory compulsory | optional
include includes included including | exclude excludes excluded excluding
upgrade upgraded upgrades | downgrade downgraded downgrades rollback
= import imports imported | export exports exported
= upload uploads uploaded | download downloads downloaded
push pushes pushed | pull pulls pulled
horizontal horizontally | vertical vertically
= primary leader | replica secondary follower
manual manually | automatic automatically automated
static statically | dynamic dynamically
= north northern | south southern | east eastern | west western
positive favorable favourable | negative unfavorable unfavourable | mixed
= black | white | red | green | blue | yellow | brown | grey gray | orange | purple | pink
alive born living | dead died dies killed dying
majority | minority
? all every each everyone everything | some few several
? many | few
long longer longest | short shorter shortest
big large huge | small little tiny
low | medium | high
hourly | daily | nightly | weekly | monthly | quarterly | yearly annually annual
json | yaml | xml | csv | toml | protobuf
spring | summer | autumn | winter
permanent permanently | temporary temporarily
use uses using used keep keeps prefer prefers adopt adopts adopted | avoid avoids avoided abandon abandons abandoned
"""

SIDES: dict[str, tuple[tuple[int, int], ...]] = {}
THINGS: set[int] = set()
SCOPES: set[int] = set()
for _axis, _line in enumerate(_AXES.replace("\\\n", "").strip().splitlines()):
    if _line[0] in "=?":
        (THINGS if _line[0] == "=" else SCOPES).add(_axis)
    for _side, _words in enumerate(_line.lstrip("=? ").split("|")):
        for _word in _words.split():
            SIDES[_word] = (*SIDES.get(_word, ()), (_axis, _side))

# Environments by spelling. Whether the name is telling wherever it stands: "production" may be that of a film.
ENVIRONMENTS: dict[str, tuple[str, bool]] = {
    spelling: (name, telling)
    for name, telling, spellings in (
        ("production", True, "prod"),
        ("production", False, "production live"),
        ("staging", True, "staging preprod preproduction uat"),
        ("development", True, "dev"),
        ("development", False, "development"),
        ("testing", True, "qa"),
        ("local", True, "localhost"),
        ("local", False, "local locally"),
        ("ci", True, "ci"),
        ("canary", True, "canary"),
    )
    for spelling in spellings.split()
}

NEGATIONS = word_set(
    """not no never none neither nor nobody nothing nowhere cannot without non isnt arent wasnt werent dont doesnt
    didnt wont wouldnt cant couldnt shouldnt mustnt hasnt havent hadnt"""
)
HEDGES = word_set(
    "might maybe perhaps possibly consider considering considered propose proposes proposed proposal wonder"
)
# Verbs whose past no rule of endings leads back to the verb: the verb, its past, its participle where that is another.
_IRREGULAR = """
begin began begun, blow blew blown, break broke broken, bring brought, build built, buy bought, catch caught, choose
chose chosen, come came, deal dealt, draw drew drawn, drink drank drunk, drive drove driven, eat ate eaten, fall fell
fallen, feed fed, feel felt, fight fought, find found, fly flew flown, forget forgot forgotten, freeze froze frozen,
give gave given, go went gone, grow grew grown, hide hid hidden, hold held, keep kept, know knew known, lead led, lend
lent, lose lost, make made, mean meant, meet met, pay paid, ride rode ridden, rise rose risen, run ran, say said, see
saw seen, seek sought, sell sold, send sent, shoot shot, show showed shown, sing sang sung, sit sat, sleep slept, speak
spoke spoken, spend spent, stand stood, steal stole stolen, swear swore sworn, swim swam swum, take took taken, teach
taught, tell told, think thought, throw threw thrown, understand understood, wear wore worn, win won, write wrote
written
"""
VERBS: dict[str, str] = {}
for _verb, *_pasts in (_line.split() for _line in _IRREGULAR.split(",")):
    VERBS.update(dict.fromkeys(_pasts, _verb))
# A form of "be" before one of these tells that the subject is what is acted on, as it does before "-ed".
PARTICIPLES = frozenset({*VERBS, *word_set("come cut hit put read run set shut split")})

# Words that carry grammar or announce a note, and not what is said.
COMMON = word_set(
    """a an the of in on at to for with by and or but is are was were be been being am this that these those it its as
    from his her their our your my we you i he she they them us me him there here has have had having do does did
    done will would can could shall should may must if then than so such which who whom whose what when where while
    also just very too into onto about over under again out up down off any each every all own same both upon per
    via s t d ll re ve m get gets got getting gotten now currently please need needs needed note decision decided
    decide agreed agree only around roughly approximately exactly like let always mr mrs
    ms dr until unless because since although though whereas"""
)
# Small words of other languages, by which a text is taken as not English.
FOREIGN = word_set(
    """der das den dem des ein eine einen einem einer und oder nicht ist sind wird werden wir ihr sie es im ins zum zur
    für fur mit auf aus bei von vom nach über uber unter kein keine keinen als wenn dass daß auch nur noch le la les
    du un une et ou est sont nous vous il elle dans sur pour par avec pas ne que qui ce cette ces au aux el los las
    del y o es son en con por para como se su lo gli della di e che non è sono nel una uno per het een van niet zijn
    wordt met voor op te och att är som inte det på med og ikke er til av az nie jest są nao não os na no em com um
    uma"""
) - {"no", "met", "son", "con", "per", "op", "on", "o", "y", "e", "es", "se", "te", "en", "er", "na", "em", "az", "um"}
FOREIGN_NEGATIONS = word_set(
    """nicht kein keine keinen keinem keiner nie niemals ohne nichts pas jamais sans aucun aucune rien nunca sin
    ninguno ninguna nada mai senza nessuno nessuna não nao sem nenhum niet geen nooit zonder inte aldrig utan ikke
    aldri uden nie bez не нет без никогда нельзя"""
)
