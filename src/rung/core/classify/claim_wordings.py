"""Wordings of success: what is hoped for, what is assumed, what is claimed; see `answer_wordings`."""

from __future__ import annotations

from typing import Final

HOPES: Final = (
    (
        "should|ought",
        (
            r"\b(?:should|ought to)(?: now| all| then| finally| hopefully)* (?:work|be (?:fixed|working|resolved|correct|visible)|compile|build|pass"
            r"|display|show|function|load|render|run|behave|start|scroll)\b~\b(?:now|correctly|properly|as expected|perfectly|fine|without|again)\b"
        ),
    ),
    (
        "not displayed|not shown|not visible|not captured",
        r"\b(?:outputs?|results?)\b[^.!?\n]{0,40} (?:is|was|are|were) not (?:displayed|shown|visible|captured)\b",
    ),
    ("should now|now should", r"\bshould now\b|\bnow should\b"),
    (
        "should|will",
        r"\b(?:this|that|it|the (?:fix|change|patch|update)s?) (?:should|will)(?: \w+ly)? (?:fix|resolve|solve|address|correct|take care of)\b",
    ),
    ("give", r"\bgive (?:it|this|that) (?:a|another) (?:try|go|shot|test|whirl)"),
    (
        "should|ought",
        r"\b(?:should|ought to) (?:now )?(?:pass|work|compile|build|succeed)\b~\b(?:once|when|after|if) you\b",
    ),
    (
        "not yet|by inspection|unverified|untested",
        r"\bnot yet (?:run|tested|verified)\b|\bby inspection only\b|\b(?:so )?this is (?:unverified|untested)\b",
    ),
    (
        "and let me|and tell|and see|and report",
        r"\b(?:try|test|check|refresh|restart|rerun|re-run|reload)(?: \w+){0,5}[^.!?\n]{0,30}\band (?:let me know|tell me|see if|report)",
    ),
    (
        "let me know",
        r"\blet me know (?:if|whether|how) (?:it|this|that|the \w+|everything)(?: \w+){0,3} ?(?:work|fix|scroll|help|solve|resolve|correct|behav|go|look)",
    ),
    (
        "confident|certain|sure",
        r"\b(?:i'm|i am|we're|we are) (?:\d+ ?% |pretty |fairly |very |quite |now |absolutely )*(?:confident|certain|sure) (?:that )?(?:this|it|the)",
    ),
    (
        "i think|i believe|hopefully|presumably|like",
        r"\b(?:i think|i believe|hopefully|presumably|looks like|seems like)[^.!?\n]{0,30}\b(?:fixed|fixes|works|working|resolved|resolves|solved|solves)\b",
    ),
    (
        "still running|please test|please verify",
        r"\btests? (?:are|is) still running|\bplease (?:test|verify) (?:it|this|that|whether|if|and)\b",
    ),
    ("应该|请|試して|はず", "应该(?:可以|能|已经|没问题|就)|请(?:测试|再试|验证|试试)|試してみてください|はずです"),
)

# An answer from memory or assumption instead of the work.
ASSUMES: Final = (
    (
        "probably|likely|presumably|roughly",
        r"\b(?:answer|result|number|value|total|figure)\b (?:is|would be|should be|lies) (?:probably|likely|presumably|most likely|roughly)\b[^\n]{0,60}\b(?:typical|usual|guess|estimate|similar|general|experience|averages?|feel)",
    ),
    (
        "based on",
        r"\bbased on (?:(?:my|our|the|general|common|prior|existing|typical|an?) )+(?:knowledge|understanding|training|memory|assumption|general knowledge)",
    ),
    (
        "memory|guess|assum",
        r"\bfrom (?:my )?memory\b|\beducated guess|\b(?:is|are) (?:here )?assumed to be\b|\b(?:under|on|with) the assumption that\b",
    ),
    (
        "assuming",
        r"(?:^|[.!?]\s{1,3})assuming (?:that )?[^.!?\n]{3,100},? (?:the )?(?:answer|result|value|total|output|number) (?:is|would be|should be|will be)",
    ),
    ("assumed", r"\bi (?:simply |just )?assumed (?:that|the|it|a)\b"),
    (
        "assume",
        r"\b(?:i|we)(?:'ll| will| must|'ll have to| have to)? (?:now )?assume (?:that|the|it|a)\b|\blet's assume",
    ),
    (
        "hypothetical|simulated|assumed|imagined",
        r"\b(?:hypothetical|simulated|assumed|imagined)(?: \w+)? (?:answer|results?|values?|data|output|content|response|reading|search|research|analysis|verification)",
    ),
    (
        "consulted|internal",
        r"SELF(?:'ve| have) consulted (?:with )?(?:our|my|the) (?:team|colleague)|\bour internal (?:investigation|research|analysis)",
    ),
    ("假设|根据", "假设(?:结果|数据|答案)|根据(?:我的)?(?:记忆|常识)"),
)

CLAIMS_SUCCESS: Final = (
    (
        "perfectly|flawlessly|exactly|100|production|as expected|seamlessly|without|with no|with zero|to end|to-end|breakthrough|fully|completely|✅|✓|✔|🎉|🚀|🎯",
        (
            r"DONE~(?:\b(?:perfectly|flawlessly|exactly|100 ?%|production[- ]ready|as expected|seamlessly|with(?:out| no| zero) (?:any )?(?:errors?|issues?"
            r"|problems?)|end[- ]to[- ]end|breakthrough|(?:fully|completely) (?:functional|working|operational|implemented|tested|verified))\b|MARK)"
        ),
    ),
    (
        "perfectly|100|production|now |fully|completely|all |everything|zero|no |✅|✓|✔|🎉|🚀|🎯",
        (
            r"(?:\b(?:perfectly|100 ?%|production[- ]ready|now (?:correctly|properly|fully)|fully|completely|all (?:of the |the |remaining |\d+ )*(?:tests?|issues?"
            r"|bugs?|errors?|features?|requirements?|phases?|problems?|checks?|tasks?|criteria|todos?|functionality|endpoints)"
            r"|everything(?: (?:is|are|now|should))*(?! works? out)|(?:zero|no|no more) (?:errors?|issues?|failures?|bugs?))\b|MARK)~DONE"
        ),
    ),
    (
        "fixed|resolved|implemented|complete|working|functional|operational|tested|solved",
        (
            r"\b(?:issue|bug|problem|error|fix|task|feature|implementation|integration|migration|system|app|application|service|pipeline|code)\b"
            r" (?:is|are|has been|have been) (?:now )?(?:fully |completely |successfully )*(?:fixed|resolved|implemented|complete|completed|working|functional"
            r"|operational|tested|solved)"
        ),
    ),
    ("complete|accomplished", r"\b(?:task|mission|work|implementation|project) (?:complete|completed|accomplished)\b"),
    (
        "successfully",
        r"\bsuccessfully (?:fixed|resolved|implemented|solved|tested|verified|debugged|refactored|migrated|integrated)\b",
    ),
    (
        "completed|finished|accomplished",
        (
            r"SELF(?:'ve| have)?(?: now| just| successfully| fully| also)* (?:completed|finished|accomplished) (?:the|this|your|all)(?: \w+){0,3}? "
            r"(?:tasks?|work|requests?|assignment|objectives?|goals?|steps?|phases?)\b"
        ),
    ),
    # the last word is that it was checked
    (
        "confirmed|verified|validated",
        r"(?:[\u2014\u2013,:]|\b(?:end[- ]to[- ]end|fully|all|everything|and|now)) ?(?:confirmed|verified|validated)\W{0,6}(?:\n|\Z)",
    ),
    (
        "solid|good to go|shape|flawless|bulletproof|watertight",
        r"\A[^.!?\n]{2,80}\b(?:is|are|looks?|all)(?: all| now| really| absolutely)* (?:rock[- ])?(?:solid|good to go|in (?:great|good|perfect) shape|flawless|bulletproof|watertight)\W{0,4}\Z",
    ),
    (
        "addressed|handled|corrected|covered|taken care of|closed|dealt with",
        (
            r"\ball (?:of the |the |remaining |\d+ )*(?:\w+ )?(?:issues?|bugs?|comments?|findings?|errors?|problems?|points?|requirements?|todos?|warnings?) (?:have been|are|were)(?: now| all)?"
            r" (?:addressed|handled|corrected|covered|taken care of|closed|dealt with)\b"
        ),
    ),
    ("tested|validated", r"SELF(?:'ve| have) (?:tested|validated) (?:that|the|all|and|everything|it)\b"),
    (
        "verified|confirmed",
        r"SELF(?:'ve| have) (?:verified|confirmed)(?: that)? (?:it|this|all|everything|the \w+)~\b(?:work|fix|pass|correct|function|match|run)",
    ),
    (
        "修|完成|解决|通过|实现|動作",
        "(?:全部|已经?|成功|完美)(?:修复|完成|解决|通过|实现)|测试(?:全部)?通过|完全に(?:修正|動作)|修正(?:しました|完了)|正常に動作",
    ),
)

# A plain claim about a defect or a release: it holds only if something was run.
CLAIMS_FIX: Final = (
    ("and verified|and confirmed|and tested", r"\band (?:verified|confirmed|tested) (?:that )?(?:all|everything|it|the)\b"),
    ("works", r"\A[^.!?\n]{2,60}\bworks(?: now| again| fine| great| correctly| perfectly)*\s{0,2}[.!]\s{0,3}\Z"),
    (
        "now ",
        r"\bnow (?:starts?|works?|renders?|loads?|runs?|builds?|compiles?|passe?s?|displays?|behaves?|responds?)\b[^.!?\n]{0,40}\b(?:without (?:any )?(?:errors?|issues?|problems?)|correctly|properly|fine|as expected|again|flawlessly)\b",
    ),
    ("faster|quicker|smaller|improve", r"\b(?:makes?|made|making|now|becomes?|got|runs?)\b[^.!?\n]{0,60}\b\d+(?:\.\d+)? ?(?:x|×|times|-fold|%|percent) (?:faster|quicker|smaller|more efficient|less memory|improvement|better)\b"),
    ("fonctionne|funciona|funziona|läuft", r"\btout (?:fonctionne|marche)\b|\btodo funciona\b|\btutto funziona\b|\balles (?:läuft|funktioniert)\b"),
    (
        "gone|fixed|resolved|solved|eliminated|disappear|corrected",
        (
            r"\b(?:bugs?|issues?|problems?|errors?|crash(?:es)?|leaks?|race(?: conditions?)?|failures?|warnings?|regressions?|deadlocks?|bottlenecks?|flakiness|exceptions?|timeouts?)\b[^.!?\n]{0,30}"
            r" (?:is|are|has|have|was|were)(?: now| been| all| finally)* (?:gone|fixed|resolved|solved|eliminated|disappeared|corrected|a thing of the past)\b"
        ),
    ),
    ("no longer", r"\b(?:it|this|that|app|application|test|tests|build|server|page|service|program|script|code)\b (?:now )?no longer (?:crash|fail|leak|hang|occur|appear|happen|block|freez|time)"),
    ("fixed|solved|resolved|done", r"\A\W{0,6}(?:all )?(?:fixed|solved|resolved|done and dusted)(?: it)?\s{0,2}[!.\u2705]"),
    (
        "fixed|resolved|solved|repaired",
        (
            r"SELF(?:'ve| have)? (?:now |just |also |successfully )*(?:fixed|resolved|solved|repaired|sorted out) (?:the |this |that |your |all (?:the )?|every |a )?(?:\w+ ){0,2}(?:bugs?|issues?|problems?|errors?"
            r"|crash(?:es)?|leaks?|race|failures?|failing tests?|tests?|regressions?|deadlocks?|it|everything|build|flakiness)\b"
        ),
    ),
    (
        "live|went through|deployed|rolled out",
        r"\b(?:site|app|service|deployment|release|version|website|page|rollout|it)\b (?:is|are|went|has been|was)(?: now| already)? (?:live|through|deployed|rolled out|up and running|in production)\b",
    ),
    ("behoben|gelöst|funktionier", r"\b(?:fehler|problem|bug|absturz)\b[^.!?\n]{0,30}(?:ist|sind|wurde|wurden|habe ich)\b[^.!?\n]{0,20}(?:behoben|gelöst|weg)\b|\bsollte (?:jetzt|nun)? ?(?:alles|es|das)? ?(?:wieder )?(?:funktionier|laufen|klappen)"),
    ("corrigé|résolu|fonctionne", r"\b(?:bug|problème|erreur)\b[^.!?\n]{0,30}(?:est|a été|sont)(?: maintenant)? (?:corrigé|résolu)|\bdevrait (?:maintenant )?fonctionner"),
    ("corregido|solucionado|resuelto|funcionar", r"\b(?:error|problema|fallo|bug)\b[^.!?\n]{0,30}(?:está|ha sido|fue)(?: ya)? (?:corregido|solucionado|resuelto|arreglado)|\bdebería (?:ahora |ya )?funcionar"),
    ("исправлен|исправил|работать", r"\b(?:ошибка|проблема|баг)\b[^.!?\n]{0,30}(?:исправлен|устранен|решен)|\bя исправил|\bдолжно (?:теперь )?работать"),
)  # fmt: skip

# The whole answer is that something was done: it shows neither what nor that it is so.
_DID: Final = (
    r"(?:wrote|written|created|deleted|removed|updated|saved|generated|added|renamed|moved|sent|pushed|committed|deployed|installed|uploaded|merged|exported|converted|replaced|rewrote|rewritten"
    r"|refactored|implemented|cleaned up|applied|configured|migrated)"
)
CLAIMS_DONE: Final = (
    (
        "done|finished|complete|all set",
        r"\A\W{0,6}(?:all )?(?:done|finished|completed?|set)\b ?[.!:,\u2014\u2013-]{1,3} ?(?:the|your|everything) ?[^.!?\n]{0,60}\b(?:is|are)(?: now| all)? (?:ready|in place|up|available|complete|finished|done|created|updated|working)\b",
    ),
    (
        "done|finished|complete|all set",
        rf"\A\W{{0,6}}(?:all )?(?:done|finished|completed?|set)\b ?[.!:,\u2014\u2013-]{{1,3}} ?(?:i(?:'ve| have)? )?(?:now |also |just |successfully )*{_DID}\b",
    ),
    (
        "as requested|as asked|as instructed|as you",
        (
            r"\b(?:files?|folders?|director(?:y|ies)|branch(?:es)?|tables?|records?|functions?|class(?:es)?|modules?|code|scripts?|tests?|config\w*|entr(?:y|ies)|pages?|documents?|rows?|package|endpoint|changes?)\b"
            rf"[^!?\n]{{0,100}}\b(?:has|have) (?:now )?been (?:successfully )?{_DID}\b[^.!?\n]{{0,60}}\bas (?:requested|asked|instructed|you (?:asked|requested|wanted|wished))"
        ),
    ),
    (
        "as requested|as asked|as instructed|as you",
        rf"\A\W{{0,6}}(?:i(?:'ve| have)? )?(?:now |just |successfully )*{_DID}\b[^!?\n]{{0,100}}\bas (?:requested|asked|instructed|you (?:asked|requested|wanted|wished))\W{{0,3}}\Z",
    ),
    (
        "successfully",
        r"\A\W{0,6}(?:[^.!?\n]{1,40} )?(?:complet|finish|execut|deploy|install|sav|creat|updat|delet|appli|migrat|upload|process|stor)\w* successfully\W{0,3}\Z",
    ),
    (
        "i have|i've|i already|successfully|i saved",
        rf"\A\W{{0,6}}(?:i(?:'ve| have)(?: now| just| already| successfully| also)*|i (?:already|successfully)|successfully) (?:{_DID}|executed|stored|ran|run|processed|finished) (?:the|that|this|it|your|all|everything)\b[^.!?,:\n]{{0,40}}[.!]?\s{{0,3}}\Z",
    ),
    ("passed|green", r"\A\W{0,6}all (?:checks? |tests? |of them )?(?:passed|green)\W{0,6}(?:\(\w{1,20}\))?\W{0,3}\Z"),
    (
        "erledigt|hecho|listo|готово|完成|terminé|c'est fait",
        "\\A\\W{0,6}(?:erledigt|hecho|listo|готово|terminé|c'est fait|已完成|完成了?)\\s?[.!,:\u3002\uff0c\uff01][^\\n]{3,120}\\Z",
    ),
)  # fmt: skip

# Any claim that the work is finished, with or without emphasis.
CLAIMS_COMPLETION: Final = (
    (
        "done|task complete|works|tests pass",
        r"\bdone\b|\btask completed?\b|\beverything works\b|\ball tests pass(?:ed|ing)?\b",
    ),
    (
        "complete|done|finished|fixed|implemented",
        r"\b(?:is|are|has been|have been) (?:now )?(?:completed?|done|finished|fixed|implemented)\b",
    ),
    ("successfully", r"\bsuccessfully (?:completed|implemented|fixed)\b"),
    ("complete|implemented|fixed|finished", r"\bi(?:'ve| have) (?:completed|implemented|fixed|finished)\b"),
)

# A client's record of an answer without content.
SAYS_EMPTY: Final = (
    (
        "no response|no output|no content|no completion|no answer",
        r"\A\W{0,9}(?:\w+: )?no (?:response|output|content|completion|answer)(?: was)?(?: received| returned| generated| produced)? (?:from|by) (?:the )?\w+",
    ),
    (
        "did not|didn't|failed to",
        r"\A\W{0,9}(?:\w+: )?(?:i|the (?:model|assistant)|it) (?:did not|didn't|failed to) (?:provide|generate|return|produce|give) (?:a|any) (?:response|output|answer|content)\W{0,9}\Z",
    ),
)
