"""Cue words: the patterns by which a summary tells wishes, decisions, reports, questions, plans and obstacles apart.

English has the most; German, French, Spanish, Chinese, Japanese and Korean have the commonest. What follows from a
pattern is decided in `summary_reading.py`.
"""

from __future__ import annotations

import re

__all__ = [
    "AGREES",
    "AHEAD",
    "ALTERNATIVES",
    "ANSWER",
    "ASK_NEXT",
    "AWAITED",
    "BLOCKED",
    "BLOCKERS",
    "CHOICE",
    "CLAUSE_END",
    "COMMAND",
    "COMMIT",
    "COMMON",
    "COURTESY",
    "DECIDED",
    "DECISIONS",
    "DONE",
    "FIRST_PERSON",
    "GOAL",
    "GOAL_ITSELF",
    "HEADED",
    "INSTRUCTS",
    "INVISIBLE",
    "IT_IS",
    "LABEL",
    "LEADING",
    "LETS",
    "MADE",
    "MADE_FIRST",
    "MADE_LAST",
    "MADE_LATER",
    "MAKE",
    "MAYBE",
    "NEXT",
    "NOT_DONE",
    "OPEN",
    "RECENT",
    "REQUEST",
    "RESOLVED",
    "REVERSED",
    "SECTIONS",
    "STRONGLY_AHEAD",
    "TAKEN_BACK",
    "UNBLOCKED",
    "UNDECIDED",
    "UNDO",
    "WISH",
]

SECTIONS = ("goal", "decisions", "done", "blockers", "open_questions", "next_step")
GOAL, DECISIONS, DONE, BLOCKERS, OPEN, NEXT = SECTIONS
RECENT = "recent"
ANSWER = "answer"  # an "A:" line: nothing to show, but it settles the question before it


def _cues(latin: str, other: str = "") -> re.Pattern[str]:
    """Words between boundaries; scripts written without spaces have none."""
    words = re.sub(r"\s*\n\s*", "", latin)  # a line breaks before a bar
    words = rf"(?<!\w)(?:{words})(?!\w)"
    return re.compile(words + (f"|{other}" if other else ""), re.IGNORECASE)


MAKE = (
    "add|allow|analy[sz]e|automate|build|carry out|compare|bump|change|check|clean up|configure|convert|cover"
    "|create|debug|delete|deploy|design|document|draft|enable|expose|extend|extract|figure out|find|finish|fix"
    "|generate|handle|implement|import|improve|integrate|introduce|investigate|look into|make|measure|merge|migrate"
    "|move|optimi[sz]e|plan|port|prepare|profile|publish|refactor|release|remove|rename|replace|rewrite|run"
    "|schedule|send|set up|ship|show|split|support|test|translate|update|upgrade|validate|verify|wire|write"
)
MADE = (
    "added|addressed|adjusted|automated|backfilled|built|bumped|changed|cleaned up|closed|completed|configured"
    "|converted|corrected|covered|created|cut|debugged|deleted|deployed|documented|drafted|enabled|exposed|extended"
    "|extracted|finished|fixed|found|generated|handled|hooked up|implemented|imported|improved|installed|integrated"
    "|introduced|investigated|landed|made|measured|merged|migrated|moved|optimi[sz]ed|ordered|patched|ported"
    "|profiled|published|pushed|ran|rebuilt|received|recorded|reduced|refactored|released|removed|renamed|repaired"
    "|replaced|resolved|restored|reverted|rewrote|rolled (?:out|back)|scheduled|sent|set up|shipped|signed|solved"
    "|sorted|split|submitted|tested|tightened|trained|translated|tuned|turned (?:on|off)|unblocked|updated|upgraded"
    "|uploaded|validated|verified|wired(?: up)?|wrote|written|done"
)

_HEADINGS = {
    NEXT: r"next(?: steps?| up| actions?)?|upcoming|coming up|left to do|to[- ]?dos?|fixme|remaining(?: work)?"
    r"|still to do|follow[- ]?ups?|action items?|plan|what(?:'s| is) (?:next|left)|n[äa]chste schritte?"
    r"|offen(?:e aufgaben)?|aufgaben|prochaines? [ée]tapes?|[àa] faire|pr[óo]ximos? pasos?|pendientes?|下一步"
    r"|待办(?:事项)?|接下来|次のステップ|次の作業|残作業|다음 단계|할 일",
    OPEN: r"open (?:questions?|points?|issues?)|questions?|q|unresolved|tbd|offene (?:fragen|punkte)|frage"
    r"|questions? ouvertes?|preguntas?(?: abiertas?)?|问题|未解决(?:问题)?|疑问|未解決|質問|미해결|질문",
    DONE: r"done(?: so far| today)?|completed|finished|what (?:i|we) did|what changed|changes(?: made)?|changed"
    r"|progress|shipped|implemented|erledigt|fertig|umgesetzt|fait|termin[ée]|hecho|listo|已完成|完成|完了(?:済み)?"
    r"|対応済み|완료",
    DECISIONS: r"decisions?(?: made| taken)?|decided|agreed|agreements?|conclusion|entscheidung(?:en)?|beschlossen"
    r"|beschl[üu]sse|d[ée]cisions?(?: prises?)?|decisi[óo]n(?:es)?|acuerdos?|决定|决策|決定(?:事項)?|結論"
    r"|결정(?: ?사항)?",
    BLOCKERS: r"block(?:ers?|ed|ing)(?: (?:on|by))?|impediments?|stuck|blockiert|hindernisse?|blocages?|bloqu[ée]"
    r"|bloque(?:o|os|ado)|阻塞|障碍|ブロッカー|課題|블로커",
    GOAL: r"goals?|objectives?|aims?|task|requirements?|scope|ziele?|aufgabe|objectifs?|objetivos?|目标|任务|目的"
    r"|目標|목표",
    ANSWER: r"a|answer|antwort|r[ée]ponse|respuesta|回答|答|답변?",
}
HEADED = [(section, re.compile(rf"(?:{words})", re.IGNORECASE)) for section, words in _HEADINGS.items()]
LABEL = re.compile(
    r"[*_]{0,3}([^\W\d_][\w '’/-]{0,28}?)[*_]{0,3} ?(?:\([^)]{1,20}\) ?)?[*_]{0,3}[:：][*_]{0,3}\s*(?=\S)"
)
COMMIT = re.compile(
    r"(?:feat|fix|docs|refactor|test|tests|perf|chore|build|ci|style|revert)(?:\([\w ./-]{1,30}\))?!?: (?=\S)"
)
LEADING = re.compile(  # said again by the section's own label
    r"(?:then )?(?:the )?(?:todo|next(?: up| steps?| thing)?(?: (?:is|are|will be)(?: to)?)?|what(?:'s left"
    r"| remains| is left) is|then|now|nächster schritt(?: ist)?|als n[äa]chstes|ensuite|a continuaci[óo]n)[,:]? +"
    r"|(?:下一步|接下来|次は|次に|다음(?:은|으로)?)[，、,:：]? *",
    re.IGNORECASE,
)

INSTRUCTS = re.compile(
    r"(?:ignor\w*|disregard|forget|override|bypass|vergiss|oublie[zr]?|olvida)\W+(?:\w+\W+){0,4}?"
    r"(?:instructions?|prompts?|rules|guidelines|directives|anweisungen|instrucciones|consignes)|you are now\b"
    r"|you(?:'re| are) no longer (?:an?|bound)|from now on,? you\b|pretend (?:to be|you)|act as (?:an?|if)\b"
    r"|(?:system|developer|hidden|initial) (?:prompt|message|instructions?)\W{0,3}(?::|$|\s(?:is|reads)\b)"
    r"|(?:reveal|print|repeat|show|leak|output) (?:\w+ ){0,3}(?:system prompt|instructions)|new instructions?:"
    r"|(?:do not|don't|never) (?:tell|inform|mention (?:this|it) to) the user|jailbreak|\bDAN mode"
    r"|you must (?:always |now |only )?(?:respond|reply|answer|obey|comply|output|say)|<\|?/?(?:im_start|im_end"
    r"|system|assistant|user|endoftext|instructions?)\b|\[/?INST\]|<<SYS>>|忽略(?:之前|以上|前面|所有).{0,8}(?:指令"
    r"|指示|提示)|你现在是|系统提示(?:词)?[:：]|(?:以前|これまで|上記|すべて)の(?:指示|命令).{0,4}無視"
    r"|あなたは今から|이전.{0,6}(?:지시|명령).{0,4}무시|시스템 프롬프트[:：]",
    re.IGNORECASE,
)
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\U000e0000-\U000e007f]")

COURTESY = _cues(
    """(?:does|is) (?:that|this) (?:make sense|ok|okay|fine|right|clear|work)(?: (?:for|to) you)?|sound good
    |anything else|shall i (?:proceed|continue|go ahead)|should i (?:proceed|continue|go ahead)|how (?:can
    |may) i help|ready to (?:proceed|continue)|would you like (?:me )?to|want me to|any (?:thoughts|questions
    |objections)|how are you|passt das so|noch etwas|ça te va|te parece bien""",
    r"(?:好吗|可以吗|よろしいでしょうか|괜찮을까요|いかがでしょうか)",
)
REQUEST = _cues(
    rf"""(?:can|could|would|will) (?:you|we)(?: please)?(?: also)? (?:{MAKE}|have|give|take|use|do|look|help)
    |(?:k[öo]nntest|kannst|k[öo]nnen|w[üu]rdest) (?:du|sie|wir)|(?:peux|pourrais)[- ]tu|pouvez[- ]vous
    |pourriez[- ]vous|puedes|podr[íi]as""",
    r"(?:帮我|能不能|请你|してもらえ|していただけ|してください|お願い|해\s?주세요|해\s?줄\s?수)",
)
UNDECIDED = _cues(
    """open questions?|not (?:yet )?(?:sure|clear|certain|decided)|unclear|unsure|undecided|tbd|to be (?:decided
    |agreed)|(?:need|have|want) to (?:decide|clarify|agree|find out|figure out|ask)|still (?:undecided|unclear
    |open)|wonder(?:ing)?|(?:would|will) need|haven't decided|(?:don't|do not) (?:know|have)
    |for .{1,30} to (?:say|decide)|depends on (?:legal|what|how|who)|remains open|nicht (?:sicher|klar
    |entschieden)|unklar|noch offen|[àa] clarifier|pas (?:s[ûu]r|d[ée]cid[ée])|por (?:decidir|aclarar)
    |no est[áa] claro""",
    r"不确定|不清楚|待定|尚未决定|未定|不明|まだ決まって|確認が必要|미정|불확실|정해지지 않",
)
DECIDED = _cues(
    """decided|decision|agreed|settled on|(?:go|going|went) with|opt(?:ed|ing) for|chose|chosen|we(?:'re
    | are) (?:using|keeping)|we(?:'ll| will) (?:use|keep|stick|stay|go)|let(?:'|’)?s (?:use|keep|stick|stay|go
    |drop|skip|not)|stick(?:ing)? (?:with|to)|stay(?:ing)? with|signed off on|approved|changed my mind|picked
    |(?:go|going|went) back to|ruled out|entschieden|entschieden uns|beschlossen|einigten|geeinigt|wir (?:nehmen
    |nutzen|verwenden|bleiben bei)|festgelegt|d[ée]cidé|choisi|retenu|on (?:part sur|garde|utilise)
    |nous (?:utilisons|gardons)|convenu|decidido|decidimos|elegimos|acordamos|optamos|vamos a usar|usaremos
    |nos quedamos con""",
    r"决定|确定(?:使用|采用)|选择了|采用|改用|就用|にしました|に決め|決定し|採用し|することにし|方針とし|하기로"
    r"|결정했|채택|선택했",
)
CHOICE = re.compile(
    r"(?:(?:yes|yeah|no|ok|okay|right|good|fine|sure|actually|hmm|then|ja|nein|oui|non|sí)[,.;:]? +)*(?:please )?"
    r"(?:use|keep|go with|stick with|stay with|drop|skip|don't|do not|never|always|prefer|choose|avoid|nimm|nutze"
    r"|verwende|utilise|garde|prends|usa|mant[ée]n)\b",
    re.IGNORECASE,
)
IT_IS = re.compile(r".{1,40} it is[.!]?$", re.IGNORECASE)
LETS = re.compile(
    rf"(?:(?:ok|okay|yes|no|then|actually)[,.]? +)*let['’]?s (?!{MAKE}|see|start|look|talk|try|do|get|have)\w+",
    re.IGNORECASE,
)
REVERSED = _cues(
    """instead of(?! [\\d,]+)|rather than|no longer|(?:switch|switched|switching|moved|changed
    |migrated)(?: away)? from|scrap(?:ped)?|on second thought|not (?:going|doing) .{1,30} any ?more|statt
    |anstelle|anstatt|nicht mehr|au lieu de|plut[ôo]t que|en lugar de|en vez de|ya no""",
    r"而不是|不再|の代わりに|ではなく|をやめ|대신",
)
MAYBE = _cues(
    """if|would|could|might|may|maybe|perhaps|consider|suggest|recommend|propose|options?|should|falls|wenn
    |k[öo]nnten|vielleicht|peut-[êe]tre|pourrait|quiz[áa]s|podr[íi]a""",
    r"可能|也许|如果|かもしれ|もし|아마|만약",
)
BLOCKED = _cues(
    """block(?:ed|er|ing)|waiting (?:for|on)|stuck|can(?:'t|not| not) (?:proceed|continue|start|test|deploy|merge
    |finish|ship)|still (?:fail(?:s|ing)?|broken|crash(?:es|ing)?|red|missing|waiting)|held up|on hold|(?:is|are
    |been) down(?! \\d| by| to| from)|no (?:reply|answer|response|word)|can(?:'t|not) \\w+ .{0,40}(?:without
    |until|before)|(?:need|needs|lack|lacks|without|no) access|pending (?:approval|review)|depends on (?:an?
    |the) (?:upstream|other team)|keeps? (?:failing|crashing|timing out)|blockiert|warten? (?:noch )?auf
    |h[äa]ngt (?:an|fest)|komm(?:e|en) nicht weiter|bloqu[ée]e?s?|en attente|attendons|bloquead[oa]s?|esperando
    |a la espera""",
    r"阻塞|卡住|卡在|等待|被.{0,6}阻|無法继续|待ちです|待っています|待ち。?$|ブロックされ|進められ|막혀|막힌|기다리"
    r"|대기\s?중",
)
UNBLOCKED = _cues("unblock(?:ed|s)?|(?:no longer|not) blocked|nicht mehr blockiert|débloqué|desbloqueado")
TAKEN_BACK = _cues(
    "revert(?:ed|s)?|rolled back|removed|undid|undone|backed out|zurückgenommen|entfernt|annulé|revertido"
)
RESOLVED = _cues(
    """fixed|fix|resolved|resolves|solved|unblocked|no longer|works(?: now| again| fine)?|working(?: now| again)
    |green|pass(?:es|ed|ing)?|granted|arrived|came(?: in)?|(?:is|are) .{1,40} (?:now|again)|received|got
    |came (?:back|through)|sorted|cleared|approved|restored|gone|(?:is|are) (?:back|up)|closed|back (?:up
    |online)|found the|answered|delivered|behoben|gel[öo]st|funktioniert|da|erhalten|bekommen|freigegeben
    |erteilt|genehmigt|geht (?:jetzt|wieder)|eingetroffen|r[ée]solue?s?|corrig[ée]e?s?|d[ée]bloqu[ée]e?s?
    |valid[ée]e?s?|accept[ée]e?s?|re[çc]ue?s?|fonctionne|resuelt[oa]s?|corregid[oa]s?|arreglad[oa]s?
    |desbloquead[oa]s?|recibid[oa]s?|funciona|lleg[óo]""",
    r"解决|修复|已收到|恢复|正常了|解決|修正し|直し|直り|届き|解消|통과|해결|수정했|고쳤|받았",
)
AHEAD = _cues(
    """next(?! to)|upcoming|what remains|todo|fixme|remaining|left to do|still (?:need|needs|have|has|to)
    |follow[- ]?up|up next|after that|(?:i|we)(?:'ll| will) (?:now |then |also )?\\w+|(?:i'm|i am|we're
    |we are) (?:now )?going to|plan(?:ning)? to|tomorrow|als n[äa]chstes|n[äa]chster schritt|danach|morgen
    |(?:muss|m[üu]ssen) noch|steht noch|ensuite|prochaine [ée]tape|demain|reste [àa]|il reste|pr[óo]ximo paso
    |a continuaci[óo]n|ma[ñn]ana|falta|queda por""",
    r"下一步|接下来|还需要|待办|明天|次は|次に|これから|明日|残りは|予定です|다음(?:은|으로|에)?\s|앞으로|내일|남은"
    r"|예정",
)
STRONGLY_AHEAD = _cues(
    """next(?! to)|upcoming|what remains|todo|fixme|remaining|als n[äa]chstes|n[äa]chster schritt|ensuite
    |prochaine [ée]tape|pr[óo]ximo paso|a continuaci[óo]n""",
    r"下一步|接下来|次は|次に|다음",
)
ASK_NEXT = re.compile(
    rf"(?:(?:ok|okay|great|good|thanks|nice|perfect)[,.!]? +)*(?:next|now|then|after that),? (?:let's "
    rf"|please )*(?:{MAKE})\b",
    re.I,
)
NOT_DONE = _cues(
    """not (?:yet )?(?:done|finished|implemented|fixed|tested|merged|deployed)|(?:haven't|hasn't|have not|has not
    |wasn't|isn't|aren't) (?:yet )?(?:been )?\\w+|will|must|needs? to|has to|have to|should|to be|noch nicht
    |muss|pas encore|todav[íi]a no|a[úu]n no|before""",
    r"还没|尚未|没有完成|まだ|していません|아직",
)
# Any past form that opens a sentence reports; these only look like one, or tell no work.
_NOT_MADE = (
    "need|speed|feed|seed|exceed|proceed|succeed|indeed|embed|shed|based|related|supposed|agreed|decided|noted"
    "|blocked|wanted|needed|required|expected|planned|estimated|used|failed|undecided|limited|detailed|advanced"
    "|shared|liked|hoped|wished|noticed|wondered|loved|hated|missed|asked"
)
_IRREGULAR = "re-?(?:ran|wrote|did|built|made)|drew|bought|paid|put|took|gave|told|brought|met|sold|laid"
_ANY_MADE = rf"(?:{MADE}|{_IRREGULAR}|(?!(?:{_NOT_MADE})\b)[a-z]{{2,}}ed)"
# What stands after a verb: "Prepared statements break" opens with no report, "Prepared the release" does.
_OBJECT = (
    r"(?=[,.:]| (?:the|an?|all|both|each|every\w*|it|them|this|that|these|those|my|our|your|its|up|out|to|from|with"
    r"|for|on|in|at|into|by|over|and|more|some|one|two|three|new|most|nothing)\b| (?:\d|[`\"'(]|(?-i:[A-Z])))"
)
MADE_FIRST = re.compile(
    rf"(?:(?:ok|okay|done|great|good|yes|right|all right|today|update|also|and|then|so|finally|just|now|yesterday"
    rf"|meanwhile|in the meantime)[,:.!]? +|(?:i|we)(?:'ve| have|'d)? +(?:now |just |also |already |finally )*|(?:i"
    rf"|we)'m )*"
    rf"(?:(?:{MADE}|re-?(?:ran|wrote|did|built|made))\b|(?<=i ){_ANY_MADE}\b|(?<=we ){_ANY_MADE}\b"
    rf"|{_ANY_MADE}{_OBJECT})",
    re.IGNORECASE,
)
MADE_LAST = re.compile(rf"(?:(?!to |be |not |no )[\w./'’`#-]+ ){{1,5}}(?:{MADE})(?:[.!,;:]|$)", re.IGNORECASE)
MADE_LATER = _cues(
    f"""(?:has|have) been {_ANY_MADE}|(?:is|are) (?:on|at|in) .{{1,30}} (?:now|since)|(?:is|are) in(?=[:.,]|$)
    |(?:(?:is|are|was|were|has been|have been|been|got)(?: now| all| also| finally)? (?:{MADE}|in place|live
    |complete|ready|green|working|available|online|running))|(?:i|we)(?:'ve| have)? (?:also )?{_ANY_MADE}
    |(?:tests?|suite|build|ci) (?:now )?(?:pass|passes|passed|is green)|finished|completed|succeeded|landed
    |went (?:through|live)|works now|now (?:works?|returns?|supports?|uses?|runs?|handles?|shows?|has|have
    |passes)|(?:habe|haben|hat|ist|sind|wurde|wurden) .{{0,80}}(?:ge\\w+t|ge\\w+en|\\w+iert|be\\w+t|er\\w+t
    |eingebaut|umgesetzt|behoben|erg[äa]nzt|hinzugef[üu]gt|angelegt|erstellt|fertig|erledigt|eingerichtet
    |abgeschlossen)|fertig|erledigt|behoben|(?:j'ai|on a|nous avons|a été|ont été|est|sont) .{{0,20}}\\w+(?:é|ée
    |és|ées)|(?:j'ai|nous avons) (?:mis|écrit|fait|reçu|résolu)|termin[ée]|(?:he|hemos|ha sido|han sido|está
    |quedó) .{{0,20}}\\w+(?:ad[oa]s?|id[oa]s?)|(?:he|hemos) (?:hecho|escrito|puesto|resuelto)|a[ñn]ad[íi]
    |agregu[ée]|implement[ée]|correg[íi]|termin[ée]|listo""",
    r"已经|已(?:完成|实现|修复|添加|部署|合并|上线|更新|删除|创建|支持|通过)|完成了|实现了|修复了|添加了|加了|写好"
    r"|做好|部署了|合并了|しました|できました|完了|済みです|済み。?$|終わり|直しました|했습니다|했어요|완료|마쳤"
    r"|추가했|구현했|수정했|고쳤|됐습니다|되었습니다",
)
WISH = _cues(
    """(?:i|we)(?:'d| would)? (?:want|need|like|love|wish|have) (?:to|an?|the|our|your?|it|this|some|users?|help)
    |(?:i|we) (?:want|need)|the (?:goal|aim|idea|task) is|(?:i'm|i am|we're|we are) (?:trying|building|working
    |looking|planning|writing|migrating|setting)|it should|users? should|should (?:be able|support|also|work)
    |must (?:be|work|support|not)|let(?:'|’)?s \\w+|please|would be (?:nice|great|good)|ich (?:m[öo]chte|will
    |brauche|h[äa]tte gern)|wir (?:m[öo]chten|wollen|brauchen|m[üu]ssen|sollten)|bitte|ziel ist|je (?:veux
    |voudrais|souhaite)|j'aimerais|nous (?:voulons|devons|avons besoin)|on (?:veut|doit|voudrait)|il (?:faut
    |faudrait)|merci de|quiero|necesito|necesitamos|queremos|hay que|me gustar[íi]a|por favor|objetivo es""",
    r"想要?|我要|我们要|希望|需要|请|帮我|目标是|したい|ほしい|欲しい|お願い|してください|必要があ|目的は|하고\s?싶"
    r"|원해|필요해|필요합니다|해\s?주세요|부탁|목표는",
)
FIRST_PERSON = _cues("i|we|i've|we've|ich|wir|je|j'ai|nous|hemos|he")
GOAL_ITSELF = _cues(
    "(?:goal|aim|objective|task|idea) (?:is|here)|ziel ist|objectif est|objetivo es", "目标是|目的は|목표는"
)
COMMAND = re.compile(
    rf"(?:(?:please|also|and|then|so|ok|okay|great|good|thanks|perfect|first|hi|hey)[,.!]? +)*(?:{MAKE})\b",
    re.IGNORECASE,
)

# Words that most reports share and that therefore say nothing about what is reported.
COMMON = """
    agree agreed updated
    use using used need want make work working works now new next step still also let get got try tried please open
    question decide decided decision go going option issue problem thing bit way one two first last time today
    tomorrow yesterday yet able like good better sure block blocked blocker wait waiting ready team resolved pass
    passes tests done instead longer switch switched keep start started end ein eine der die das und ist wir mit für
    auf den dem des nicht zu im von jetzt noch soll sollen wie le la les un une du de et est pour avec que qui dans
    sur el los las una y en con para por es se del lo como qué ich er sie habe haben hat wird warte warten nous vous
    on hemos ha
"""

UNDO = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:instead of|rather than|no longer(?: (?:using|use|need|want|going with"
        r"|relying on))?) +(?P<old>[^.;:!?]{2,60})",
        r"(?:switch|switched|switching|moved|moving|changed"
        r"|migrated)(?: [^.;:!?]{1,40}?)? from +(?P<old>[^.;:!?]{2,60}?) to\b",
        r"replac(?:ed|e|ing) +(?P<old>[^.;:!?]{2,60}?) (?:with|by)\b",
        r"\b(?:drop|dropped|dropping|scrap|scrapped|abandon|abandoned|ditch|ditched|reverted?|rolled back|removed"
        r"|skip|forget|gave up on|decided against|ruled out|don't use|do not use) +(?P<old>[^.;:!?]{2,60})",
        r",? (?:and )?not +(?P<old>[^.,;:!?]{2,40})[.!]?$",
        r"\b(?:statt|anstelle von|anstatt|nicht mehr|au lieu d[eu']|plutôt que|en lugar de|en vez de|ya no)"
        r" *(?P<old>[^.;:!?]{2,60})",
        r"(?:而不是|不再(?:使用|用)?)(?P<old>[^。，；]{1,30})|从(?P<from>[^。，；]{1,30}?)(?:改|换|切换|迁移)",
        r"(?P<old>[^。、；]{1,30}?)(?:の代わりに|ではなく|をやめ)|(?P<from>[^.,]{1,30}?) 대신",
    )
]
CLAUSE_END = re.compile(r",| (?:because|since|for|so|as|and|but|in|on|after|now|when|due) ", re.IGNORECASE)
AWAITED = re.compile(
    r"(?:waiting (?:for|on)|until|without|before|warten? (?:noch )?auf|en attente d[eu']"
    r"|esperando) +(?P<what>[^.;!?]{2,80})",
    re.IGNORECASE,
)
ALTERNATIVES = re.compile(r"\b(?:or|oder|ou|o)\b|还是|それとも|아니면", re.IGNORECASE)
AGREES = re.compile(
    r"(?:yes|yeah|yep|yup|no|nope|sure|ok|okay|go ahead|sounds good|correct|exactly|right|agreed|neither|both"
    r"|because|good (?:point|question|catch)|the (?:first|second|latter|former)|ja|nein|genau|oui|non|d'accord"
    r"|s[íi]|vale|claro)\b|是的|对(?=[，。,！]|$)|不是|好的|可以|はい|いいえ|네|아니",
    re.IGNORECASE,
)
