"""Wordings of progress: what is left, and whether to go on with it; see `answer_wordings`."""

from __future__ import annotations

from typing import Final

ASKS_TO_CONTINUE: Final = (
    (
        "me to|shall i|should i|may i|let me know",
        (
            r"\b(?:do you want me to|would you like me to|shall i|should i|want me to|may i|let me know if you(?:'d| would)? (?:like|want)(?: me)? to)"
            r"[^.!?\n]{0,40}\b(?:continue|keep going|carry on|do the rest|start (?:implement|cod|work|writ)|begin (?:implement|cod|work|writ)|implement"
            r"|proceed|go ahead|move on|next (?:step|part|phase|file|item)|remaining|the rest|finish)"
        ),
    ),
    (
        "wait|moment|minute|second|hold on|stand by",
        (
            r"\A[^?]{0,300}(?:\bplease (?:wait|hold on|stand by)|\bhold on|\b(?:one|just a|give me a|hold on a|wait a) (?:moment|minute|second|sec))(?:,? please)?(?:[.!\u2026]+(?:\s|$)|,? (?:while|as) i\b)"
        ),
    ),
    ("continue", r"\b(?:i|we) (?:could|can) (?:now )?continue (?:by|with|to)\b"),
    (
        "once you|when you|if you|as soon as you",
        (
            r"\b(?:happy|ready|glad|able) to (?:continue|proceed|start|begin|go ahead|move on|implement)~\b(?:once|when|if|as soon as) you\b"
            r"|\b(?:once|when|if|as soon as) you(?:'re| are)? (?:\w+ ){0,3}(?:ready|confirm|approve|agree|want|say so)\w*,? ~\bi (?:can|will|could)"
            r" (?:start|begin|continue|proceed|implement|take|move)"
        ),
    ),
    (
        "should i|shall i|want me to|would you like me to|may i",
        (
            r"\b(?:should|shall|may) i (?:also )?(?:go ahead|proceed|go on|move on|start|begin|tackle|take on|do|apply|work on)\b[^.!?\n]{0,60}\b(?:phase|step|part|next|other|remaining"
            r"|rest|section|chapter|modules?|files?|batch|items?|ones)\b[^.!?\n]{0,30}\?"
        ),
    ),
    (
        "soll ich|dois-je|voulez|souhaite|quieres|desea|debo|vuoi|quer que|хотите|продолж",
        (
            r"\bsoll ich [^.!?\n]{0,60}(?:weitermach|fortfahr|weiter|fortsetz|übrigen|restlichen|rest\b|nächsten)"
            r"|\b(?:dois-je|voulez-vous que je|souhaitez-vous que je) [^.!?\n]{0,30}(?:contin|poursui|reste)|\b(?:quieres|desea|debo)[^.!?\n]{0,30}(?:contin|siga|seguir|resto)"
            r"|\bvuoi che [^.!?\n]{0,20}contin|\bquer que [^.!?\n]{0,20}contin|\bпродолж(?:ать|ить) ли|\bхотите,? чтобы я продолж"
        ),
    ),
    ("继续|接着|続け", "(?:要我|是否需要我|需要我|要不要我)(?:继续|接着)|是否继续|続けますか|続けましょうか"),
)

UNFINISHED: Final = (
    ("ran out|run out", r"SELF(?:'ve| have)? (?:ran|run) out of (?:time|turns|steps|context|budget|tokens) before\b"),
    (
        "template|skeleton|outline|boilerplate|starting point",
        r"\A[^.!?\n]{0,60}\b(?:template|skeleton|outline|boilerplate|starting point)\b[^.!?\n]{0,40}\b(?:fill|filled|filling|complete|extend|flesh|build on)\b",
    ),
    (
        "first |only ",
        r"SELF(?:'ve| have)?(?: now| only| just)* (?:finished|completed|translated|converted|wrote|did|done|covered|fixed|read|processed|implemented|ported|checked) (?:the )?(?:first|only) (?:one|two|three|four|five|six|seven|eight|nine|ten|\d{1,4}) (?:\w+ )?(?:of|out of) (?:the |all )?(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,4}) \w+",
    ),
    ("still", r"\b(?:is|are) still (?:on|in|using|at) the (?:old|previous|former|legacy)\b"),
    ("todo", r"[.!?]\s{1,3}todo ?: ?\w"),
    (
        " yet",
        r"\b(?:is|are|isn't|aren't|was|were)(?: not)? (?:implemented|complete|completed|done|finished|started|handled|covered|migrated|converted|translated|wired up|ported)(?: \w+)? yet\b",
    ),
    (
        "fill in",
        r"\byou (?:can|could|should|need to|will need to|have to|may) (?:now |then )?fill in (?:the |your |out )*(?:\w+ )?(?:logic|rest|blanks|gaps|missing|implementation|bodies|remaining)\b",
    ),
    (
        "still needs|still need",
        (
            r"(?<!you )\bstill needs? (?!to be\b)(?:\w{3,}ing\b|work\b|attention\b|an? (?:fix|change|rewrite|update|review)\b"
            r"|to (?:migrate|convert|port|fix|handle|cover|wire|implement|finish|complete|clean|address)\b)"
        ),
    ),
    (
        "still|noch|sigo|encore|仍在|还在|作業中",
        (
            r"\bi(?:'m| am) still (?:working|processing|looking|investigating|analy[sz]ing|searching|waiting|running|busy)\b|\bich arbeite noch\b|\bsigo trabajando\b"
            r"|\bje travaille encore\b|(?:仍在|还在)(?:处理|进行|执行|运行)|まだ作業中"
        ),
    ),
    # the reader is told to do the rest
    (
        "the remaining|all remaining|your remaining|the rest of|fill in the missing",
        (
            r"(?:\A|[.!?:]\s{1,3}|\n\W{0,6})(?:then |now |next,? |finally,? |you (?:can|should|must|need to|will need to|have to) (?:now |then )?)*(?:implement|complete|finish|fill in|write|port|convert|migrate|translate)"
            r" (?:all )?(?:the |your |out )*(?:remaining|rest of) \w+|\bfill in the missing \w+"
        ),
    ),
    (
        "continue|next|go on",
        r"\b(?:reply|type|say|write|answer)(?: with)? [\"'\u201c\u2018](?:continue|next|go on|more)\b",
    ),
    ("remain", r"\bfollowing (?:\w+ )?(?:steps|items|tasks|files|parts|points|pieces)(?: still)? remain\b"),
    (
        "next on|are next|is next|for later|keep this short|keep it short|same treatment|only show|just show",
        (
            r"\b(?:is|are|comes?) next(?: on (?:my|the) list| in line)?\s{0,2}[.!]?\s{0,3}\Z|\bnext on (?:my|the) list\b|\b(?:left|leave|leaving|saved|postponed)(?: \w+){0,3} for later\b"
            r"|\b(?:only|just) shown? the (?:changed|relevant|first|main|new)|\bwould need the same (?:treatment|change|fix)\b|\bcopy the (?:others|rest) from\b"
        ),
    ),
    (
        "half of",
        r"\b(?:about|roughly|around|nearly|almost|only) (?:a |one )?(?:half|third|quarter|two thirds) of the (?:\w+ ){1,3}(?:now|are|is|have|has|use|were)\b",
    ),
    (
        "next up|continu",
        r"\bnext up\b|\bto be continued\b|\bcontinu(?:e|ed|ing) in (?:the )?(?:next|part|a (?:new|separate|follow))",
    ),
    (" 1 ", r"\b(?:part|phase|batch|step|chunk) 1 (?:of|/) [2-9]"),
    (
        " for ",
        r"\b(?:omitted|shortened|abbreviated|left out|condensed|skipped|truncated)[^.!?\n]{0,20} for (?:the sake of )?(?:brevity|space)",
    ),
    (
        "brevity|due to",
        (
            r"\b(?:for (?:the sake of )?brevity|due to (?:the )?(?:length|space|token|size|character|response|output|context|time|message)(?: length)?"
            r" (?:constraint|limit|restriction)\w*), ~\b(?:i|we|only|omit|not|rest|remaining|first|here)\b"
        ),
    ),
    (
        "rest|remain",
        (
            r"\b(?:rest|remainder|remaining \w+)(?: of (?:the )?\w+)? (?:is|are|would be|follows?|remains?)(?: still)? (?:omitted|similar|left|the same"
            r"|truncated|analogous|pending|to be)"
        ),
    ),
    (
        "similar|and so on|etc",
        r"\bsimilar(?:ly)? for (?:the )?(?:other|rest|remaining)|\b(?:and so on|etc\.?) for (?:the )?(?:other|rest|remaining)",
    ),
    # the plan of the next steps is the end
    (
        "let me|i'll|i will|i'm going to",
        r"\b(?:let me|i'll|i will|i'm going to)(?: now| next| then| first)*[^.!?:\n]{0,60}:\s{0,3}\n(?:\s*(?:\d{1,2}[.)]|[-*\u2022]) [^\n]{1,200}\n?){1,8}\s*\Z",
    ),
    ("repeat", r"\brepeat (?:this|the same|these)(?: \w+)? for (?:the |each |all )?(?:other|rest|remaining)"),
    ("production|implementation", r"\bnot production[- ]ready|\b(?:incomplete|partial) implementation"),
    (
        "partially|half|fully|completely",
        (
            r"\b(?:is|are|isn't|aren't)(?: not| still not)? (?:only |just )?(?:partially|half|not fully|not completely) (?:complete|implemented|done"
            r"|finished|working|functional|integrated|migrated|translated)"
        ),
    ),
    (
        "mock|stub|placeholder|simulated|coded|dummy",
        r"\b(?:is|are) (?:still |just |only |currently |all |essentially |basically )+(?:a |an )?(?:mock|stub|placeholder|simulated|hard-?coded|dummy)",
    ),
    (
        "exercise|basic|general|rough",
        r"\bleft as an exercise|\b(?:basic|general|rough) (?:structure|skeleton|outline|framework) (?:of|for) (?:the|your|a|an)\b",
    ),
    (
        "in a real|actual implementation",
        r"\bin a real(?:[- ]world)? (?:implementation|application|system)|\bactual implementation (?:would|is|will|depends)",
    ),
    (
        "still",
        r"\bstill (?:to do|todo|to be done|outstanding|needs? to be (?:done|implemented|completed|written|migrated))",
    ),
    (
        "remaining|outstanding|left|missing",
        r"\b(?:remaining|outstanding) (?:work|tasks?|steps?|todos?)\b|\bleft to do\b|\bwhat(?:'s| is) (?:left|missing|remaining)\b",
    ),
    (
        "only|just",
        (
            r"SELF (?:only|just) (?:implement|did\b|complet|fix|translat|process|read|convert|updat|cover|finish|look|check|wrote|migrat|handl)~\b(?:of|first"
            r"|one|two|three|some|part|half|few)\b"
        ),
    ),
    (
        "skipped|left out|stopped|finish|haven't|have not|will",
        (
            r"SELF(?:'ve| have)? (?:skipped|left out|stopped (?:at|after|halfway|short|early|before)|did not finish|didn't finish|haven't (?:finished"
            r"|completed|implemented|done|started)|have not (?:finished|completed|implemented|done|started)|will (?:continue|finish|do|complete"
            r"|implement) (?:the (?:rest|remaining)|this|it) (?:later|next|in (?:the|a)))"
        ),
    ),
    (
        "other|rest|remaining",
        (
            r"\b(?:the )?(?:other|rest|remainder|remaining|others)(?: \d+)?(?: of (?:the |them )?)? ?(?:\w+ )?(?:follows? (?:the same|a similar|later|soon)|can be (?:done|converted|migrated|handled|ported|filled)"
            r"|(?:are|is|will be) (?:analogous|still|next|up next|to (?:do|follow|be done)|not (?:yet )?(?:done|converted|migrated|covered|included|translated)))"
        ),
    ),
    ("to follow|to come|tbd|tbc", r"\b(?:to follow|(?:more|rest) to come|coming (?:next|soon)|tb[dc])\W{0,3}$"),
    (
        "still",
        r"\b(?:is|are) still (?:missing|pending|open|incomplete|untranslated|to come|a stub|stubbed|unimplemented)\b|\bstill(?<!to still) (?:has|have|needs?) to be\b",
    ),
    (
        "for now|so far|at the moment",
        r"\b(?:is|are) (?:missing|not (?:covered|included|handled|supported|implemented)|left out|skipped|stubbed(?: out)?)(?: \w+){0,2} (?:for now|so far|at the moment)",
    ),
    (
        "haven't|have not",
        r"SELF (?:haven't|have not)(?: yet| really)? (?:look(?:ed)? (?:at|into)|gotten (?:to|around)|got to|converted|migrated|addressed|tackled|translated|written|covered|ported|handled)",
    ),
    (
        "noch|reste|falt|queda|manca|осталось|ещё",
        (
            r"\bnoch nicht (?:fertig|umgesetzt|implementiert|erledigt|abgeschlossen|übersetzt)|\b(?:ist|sind|steht|stehen) noch (?:offen|aus)\b|\bnoch zu tun\b|\breste(?:nt)? (?:encore )?à (?:faire|traduire|implémenter|terminer)"
            r"|\bfaltan? por |\bquedan? por |\bmanca(?:no)? ancora|\bосталось (?:сделать|доделать)|\bещё не (?:готов|реализован|сделан|законч)"
        ),
    ),
    (
        "not yet",
        r"\bnot yet (?:implemented|complete|completed|done|finished|started|migrated|converted|translated|covered)",
    ),
    (
        "%|progress|status",
        r"\b(?:progress|status)\W{1,3}(?:in progress|partial|incomplete|\d{1,2} ?%)|\b[1-9]\d?% (?:complete|done|finished)",
    ),
    (
        "未|还没|剩余|其余|省略",
        "(?:尚未|还没有?)(?:真正|实际|完全|完整|被)*(?:完成|实现|处理|执行|运行|测试|调用|读取|读到|回答|查看|开始)|(?:^|[\u3002\uff0c,])(?:任务|工作)?未完成[:\uff1a\u3002]|剩余(?:的)?(?:部分|任务|工作|文件)|其余(?:部分)?(?:类似|省略|略)|以下省略|未完待续",
    ),
    ("まだ|残り|以下同様", "まだ(?:完了|実装)|残りの(?:作業|タスク|部分)|以下同様"),
)
