"""Wordings of giving up: how answers say that the work could not be done; see `answer_wordings`."""

from __future__ import annotations

from typing import Final

GIVES_UP: Final = (
    (
        "think i can|believe i can|see myself",
        r"\bi (?:don't|do not) (?:think|believe)(?: that)? i(?: can|'ll be able to| will be able to| could) (?:get|make|finish|solve|fix|do|complete|resolve|manage|pull)\b",
    ),
    (
        "none of",
        r"\bnone of (?:them|these|those|it|my (?:attempts|fixes|changes))(?: \w+)? (?:compiles?|works?|helps?|runs?|pass(?:es)?|builds?|succeeds?|did)\b",
    ),
    (
        "none of",
        r"\b(?:tried|tested|attempted)\b[^!?\n]{0,160}\bnone of (?:them|these|those|it)(?: \w+)? (?:reads?|opens?|loads?|parses?|connects?|answers?|responds?)\b",
    ),
    (
        "reverted|undid|rolled back",
        r"SELF(?:'ve| have)? (?:reverted|undid|undone|rolled back) (?:all )?(?:of )?(?:my|the|these) (?:\w+ )?(?:changes|edits|work)\b[^.!?\n]{0,40}\b(?:left|leaving|as (?:it|they) (?:was|were))\b",
    ),
    (
        "lost|confused",
        r"\bi(?:'m| am| was| got)(?: a (?:bit|little)| completely| totally| somewhat)? (?:lost|confused) (?:while|trying|working|processing|here\b|in (?:this|the) (?:task|code|steps))",
    ),
    (
        "encountered|ran into|something went wrong",
        (
            r"\b(?:i|we)(?:'ve| have)? (?:encountered|ran into|run into|hit) (?:an?|some) (?:\w+ ){0,2}(?:errors?|issues?|problems?|difficult\w*)\b[^.!?\n]{0,80}[.!]\s{1,3}"
            r"(?:please )?(?:try|retry|rephras|repeat|ask|contact)"
        ),
    ),
    (
        "stopping here|feasible",
        r"\bi(?:'m| am) stopping (?:here|now|at this point)\b|\b(?:isn't|is not|wasn't|was not) feasible\b[^.!?\n]{0,40}(?:\.|$)",
    ),
    ("nicht möglich", r"\bmir (?:leider )?nicht möglich\b"),
    (
        "nothing left|nothing else|leave it",
        r"\b(?:nothing (?:left|else|more) (?:to|i can|that i can) (?:try|do)|(?:would|will|'ll|have to) leave it (?:at (?:this|that)|here|there))\b",
    ),
    (
        "remain|stays|still",
        (
            r"\b(?:question|problem|bug|issue|cause|riddle)\b[^.!?\n]{0,30} (?:(?:remains?|stays?) (?:unanswered|unsolved|unresolved|elusive|unclear|unknown|open|unfixed|a mystery)|is still (?:there|unsolved|unresolved|unfixed))\b"
        ),
    ),
    (
        "could be|can be",
        r"\bno (?:\w+ ){1,3}(?:could|can) be (?:produced|obtained|retrieved|extracted|generated|determined|reached|made|given)\b",
    ),
    (
        "not be|n't be",
        (
            r"\b(?:cannot|can't|could not|couldn't) be (?:opened|read|accessed|loaded|processed|viewed|downloaded|played|reached|parsed)\b[^.!?\n]{0,30}"
            r"\b(?:with (?:the|my) tools|in (?:my|this) (?:environment|session)|from here|by me|therefore|(?:,|;) so (?:the|i|no))\b"
        ),
    ),
    (
        "way for me|successful",
        r"\bthere(?:'s| is| was) no way for me to\b|\b(?:have|was|were|had) not (?:been )?successful (?:in|at|with)\b",
    ),
    (
        "keeps failing|keep failing|still fails|still failing",
        r"\b(?:keeps? failing|still fail(?:s|ing))\b[^.!?\n]{0,60}\b(?:and (?:i|its|the)|cause|no idea|unclear)\b",
    ),
    ("autre|toujours pas", r"\bne vois pas d'autre\b|\bne (?:démarre|marche|fonctionne|compile|passe) toujours pas\b"),
    ("nicht weiter", r"\bkomme (?:\w+ ){0,5}nicht weiter\b"),
    (
        "attempt|tried|trying|tries|debugging",
        r"\bafter (?:extensive|several|multiple|many|countless|repeated|hours of|a lot of) (?:debugging|attempts|tries|trying|searching|searches|efforts?)\b[^.!?\n]{0,80}\b(?:still|keeps?|remains?|not|no|never|same)\b",
    ),
    (
        "moment|this time|right now",
        (
            r"CANNOT (?:generat|process|provid|creat|complet|respond|answer|handl|produc|deliver)\w*~"
            r"\b(?:at (?:the|this) (?:moment|time)|right now)"
        ),
    ),
    ("unable to|able to|n't|cannot|could not|can not|no longer|failed to|how to", r"CANNOT (?:\w+ly )?WORK"),
    ("unable to|able to|n't|cannot|could not|can not|no longer|failed to|how to", r"CANNOT (?:\w+ly )?SEARCH~\bSOUGHT"),
    (
        "unable|possible|failed",
        r"\b(?=unable|not |impossible|failed)(?:^|(?<=[.!?:,] )|(?<=[.!?:,] {2})|(?<=[.!?:,] {3})|(?<=\bwas )|(?<=\bis )|(?<=\bbeen )|(?<=\bwere ))(?:unable|not possible|impossible|failed) to (?:\w+ly )?(?:WORK|SEARCH~\bSOUGHT)",
    ),
    (
        "not be",
        r"\b(?:could|can) ?not be (?:\w+ly )?(?:determined|completed|solved|accomplished|answered|ascertained|deduced)",
    ),
    # what was given does not hold the answer
    (
        "context|provided|given|retrieved|available",
        (
            r"\b(?:(?:provided|given|retrieved|available|supplied) (?:context|documents?|sources?|texts?|passages?|snippets?|materials?|information|excerpts?|chunks?)|(?:^|the )context(?: provided| given)?|(?:documents?|sources?|texts?|passages?|excerpts?|snippets?) (?:provided|given))"
            r" (?:does not|doesn't|do not|don't|did not) (?:\w+ly )?(?:cover|include|specify|mention|contain|provide|state|address|say|have|give|answer|discuss)\b"
        ),
    ),
    # the first sentence says that what was looked for is not there
    (
        "not be",
        r"\A(?:#[^\n]*\n|\W)*[^.!?\n]{0,160}\b(?:could|can) ?not be (?:\w+ly )?(?:retrieved|located|obtained|identified|extracted|accessed|opened|found|loaded|verified)\b",
    ),
    (
        "no ",
        r"\bno (?:clear|definitive|exact|suitable|matching|reliable|conclusive|such) (?:[^\s.!?]+ ){1,8}(?:has been|was|were|could be|can be) (?:found|identified|located|determined)\b",
    ),
    (
        "human|support|customer service",
        r"(?:^|[.!?]\s{1,3})(?:i|we)(?:'d| would)? (?:recommend|suggest|advise) (?:speaking|contacting|reaching out|talking|getting in touch|connecting|escalating)\b[^.!?\n]{0,20}\b(?:human|support|customer service)\b",
    ),
    ("transfer you", r"\btransfer(?:ring)? you to an? (?:human|live)\b"),
    (
        "insufficient|not enough",
        r"\b(?:insufficient|not enough) (?:data|information|evidence)\b~\bto (?:determin|answer|conclud|complet|provid|identif)",
    ),
    (
        "tried|worked|helped",
        r"\b(?:nothing|none of (?:what|the things)) (?:that )?(?:i|we)(?:'ve| have)? tried (?:has |have )?(?:work|help|fix|solv|ma)|\bnone of (?:this|these|that|it|them) (?:has |have )?(?:worked|helped)",
    ),
    ("as far as", r"\b(?:this|that|here) is as far as (?:i|we) (?:can|could|got|was able)"),
    (
        "no answer|no solution",
        r"\bno (?:definitive |final |clear )?(?:answer|solution|result) (?:can|could) be (?:given|found|provided|determined|reached)|\bno (?:answer|solution) (?:was )?found\b",
    ),
    (
        "answer",
        r"(?:\bfinal answer\b\W{1,4}(?:is )?|^answer ?[:=]\W{0,3}|<answer>\s{0,3})(?:unable|unknown|i (?:don't|do not) know|not found|none\b|n/?a\b|cannot|could not|couldn't|no answer|inconclusive|undetermined|not enough|insufficient|not (?:available|determin|possible))",
    ),
    (
        "i don't know|i do not know",
        r"\A\W{0,9}(?:sorry,? |unfortunately,? )?i (?:don't|do not) know(?: the answer)?\W{0,9}\Z",
    ),
    (
        "ideas|options",
        r"\b(?:don't|do not) have any (?:other|more|further)? ?(?:ideas|options)|\bno (?:other|more|further) ideas\b|\bi(?:'ve| have) no (?:more |other |further )?ideas?\b",
    ),
    (
        "take over|takes over|specialist|expert|human|engineer",
        (
            r"\b(?:recommend|suggest|advise|needs?|requires?|best)\b[^.!?\n]{0,60}\b(?:someone|somebody|an? (?:human|expert|specialist|engineer|developer|senior \w+|maintainer))\b[^.!?\n]{0,60}"
            r"(?:take over|takes over|look(?:s)? (?:at|into)|investigat|step in|for the rem|to (?:finish|fix|solve|complete|debug))"
            r"|\bhir(?:e|ing) an? (?:expert|specialist|professional|developer)"
        ),
    ),
    (
        "yourself|manually|by hand|your own",
        r"\b(?:so|therefore|thus|hence),? you(?:'ll| will| would)? (?:need|have) to [^.!?\n]{3,80}\b(?:yourself|on your own|on your (?:side|machine|end))\b",
    ),
    ("give|gave|giving|quit", r"\bi (?:give|gave|am giving|have given|'ve given) up\b|\bgiving up\b|\bi quit\b"),
    (
        "stuck|a loss|out of ideas|in circles|a failure|a disgrace|progress|defeated",
        (
            r"\bi(?:'m| am) (?:completely |totally |really )?(?:stuck|at a loss|out of ideas|going (?:around |round )?in circles|a failure"
            r"|a disgrace|not making progress|defeated)"
        ),
    ),
    (
        "exhausted|out of|hit a|failed|in circles|everything",
        r"\bi(?:'ve| have) (?:exhausted|run out of|hit a (?:wall|dead end)|failed (?:you|at this|to)|been going in circles|tried everything)",
    ),
    (
        "worked|failed",
        r"\b(?:none of|all)(?: of)? (?:the|my|these|those|our)? ?(?:approaches|attempts|methods|fixes|efforts|strategies) (?:have |has )?(?:worked|failed)",
    ),
    (
        "wall|dead end|nothing more|nothing else|nothing left|beyond me|abandon|concede",
        (
            r"\b(?:ran into|hit|reached) a (?:wall|dead end)\b|\bhave nothing (?:more|else|left)\b|\bis beyond me\b|\bi (?:have to |must )?concede\b"
            r"|SELF(?:'ve| have)? (?:\w+ ){0,8}abandon(?:ed|ing) (?:the|this|that|my|our) (?:approach|attempt|task|effort|work|idea)\b"
        ),
    ),
    (
        "exhausted|blocked",
        r"\b(?:have|having) exhausted (?:all|every|my)\b|\bi(?:'m| am)(?: now| currently| \w+ly)* blocked\b(?! (?:time|out))",
    ),
    ("no idea|no clue", r"\b(?:i|we) (?:still )?have (?:still )?no (?:idea|clue) (?:why|how|what|where)\b"),
    (
        "attempt|effort|tries",
        r"\bmy (?:\w+ )?(?:attempts?|efforts?|tries)\b[^.!?\n]{0,40}\b(?:failed|were unsuccessful|was unsuccessful|did not work|didn't work|led nowhere)\b",
    ),
    ("out of", r"\bi (?:ran|have run) out of (?:time|turns|steps|ideas|context|options)"),
    (
        "stop|end|leave|pause",
        r"\bi (?:have to|must|will|should|need to) (?:stop|end|leave it|pause) (?:here|now|at this point)",
    ),
    (
        "beyond|further progress",
        r"\bbeyond (?:what i can|my (?:current )?(?:capabilit|abilit))|\bno further progress\b",
    ),
    ("the rest", r"\bthe rest is left to (?:you|the)|\bi(?:'ll| will) leave the rest"),
    (
        "yourself|manually|by hand|your own",
        r"\byou(?:'ll| will| would| may)? (?:need|have) to (?:do|finish|complete|implement|fix|write|handle|make|solve)~\b(?:yourself|manually|by hand|on your own)",
    ),
    (
        "unable to|able to|n't|cannot|can not|could not",
        r"CANNOT (?:directly |currently )?(?:access|browse|open|view|connect to|interact with|log ?in|watch|listen to)\b",
    ),
    (
        "as an ai|language model",
        r"\b(?:as an ai|language model)~\b(?:can't|cannot|unable|not able|don't have|do not have)~\b(?:access|browse|execute|run|open|view|abilit|capabilit|real-time)",
    ),
    # what was looked for is not in the sources
    (
        "not specified|not mentioned|not provided|not stated|not given",
        r"\b(?:is|was|are|were) not (?:explicitly )?(?:specified|mentioned|provided|stated|given) in (?:the|any|my)~\b(?:text|snippet|context|reference|website|document|source|material|article)",
    ),
    (
        "encontr|acceso|proporcion",
        r"\bno (?:se encontr[óo]|encontr[ée]|pude encontrar|tengo acceso a) (?:\w+ ){0,2}informaci[óo]n",
    ),
    (
        "keine antwort|nicht sehen|keinen zugriff",
        r"\bkann (?:ich )?[^.\n]{0,60}(?:keine antwort geben|nicht sehen)|\bkeinen zugriff auf",
    ),
    (
        "无法|不能",
        "(?:^|[\u3002\uff0c,;\uff1b!\uff01 ]|我|目前|现在|暂时|当前|抱歉|遗憾|因此|所以)(?:目前|现在|暂时|当前|也|还|仍)*(?:无法|不能)(?:直接)?(?:访问|打开|读取|执行|获取|连接)|没有?(?:成功)?拿到|还?没(?:有|能)?(?:成功)?(?:拿到|获取到|读到)",
    ),
    (
        "despite",
        r"\bdespite (?:multiple|several|many|repeated|numerous|extensive|all|my|our|\d+) ~\b(?:attempt|effort|tries|search|try)",
    ),
    (
        "me to|me from",
        r"\b(?:do|does|did)(?:n't| not) (?:allow|let|enable|permit) me to\b|\bprevent(?:s|ed|ing)? me from\b",
    ),
    (
        "i don't|i do not",
        r"\bi (?:don't|do not) (?:have|know) (?:a|any|the) (?:definitive |final |other |more )?(?:answer|solution|idea|way forward)",
    ),
    (
        "know what|intervention",
        r"\bi don't know what (?:else )?to (?:do|try)|\b(?:needs?|requires?) (?:human|manual) intervention",
    ),
    (
        "would",
        r"\bin a real (?:scenario|environment|setting|execution), (?:i|we) would|\b(?:i|we) would (?:now |then |normally )+(?:call|use|run|execute|invoke|ask)",
    ),
    (
        "designed for|would|beyond",
        r"\b(?:challenge|task|problem|exercise)\b~\b(?:designed for|would (?:typically|normally|usually)|is beyond)~\b(?:advanced|specialis|specializ|expert|manual|solved|require)",
    ),
    ("no response", r"\A\W{0,9}no response (?:requested|needed|required)\W{0,9}\Z"),
    (
        "放弃|无法|没有办法|没能",
        "我(?:已经)?放弃|无法(?:继续|完成|解决|找到|确定)|没有办法(?:完成|继续|解决)|没能(?:完成|找到|解决)",
    ),
    (
        "できません|ませんでした|수 없",
        "見つけることができません|完了できません|できませんでした|見つかりませんでした|찾을 수 없었|완료할 수 없",
    ),
    (
        "não consegui|no pude|no he|no logr",
        r"não consegui (?:concluir|completar|encontrar|resolver)|no (?:pude|he podido|logré) (?:completar|encontrar|resolver|terminar)",
    ),
    (
        "pas|nicht|не ",
        r"je n'ai pas (?:pu|réussi)|konnte (?:ich )?(?:die aufgabe |das |es )?(?:leider )?nicht (?:abschließen|lösen|finden|fertig)|не удалось|не смог",
    ),
)
