"""Wordings of progress and success: what is left, what is hoped for, what is claimed; see `answer_wordings`."""

from __future__ import annotations

from typing import Final

ASKS_TO_CONTINUE: Final = (
    (
        "me to|shall i|should i|may i|let me know",
        (
            r"\b(?:do you want me to|would you like me to|shall i|should i|want me to|may i|let me know if you(?:'d| would)? (?:like|want)(?: me)? to)"
            r"[^.!?\n]{0,40}\b(?:continue|keep going|carry on|do the rest|start (?:implement|cod|work|writ)|begin (?:implement|cod|work|writ)|implement"
            r"|move on|next (?:step|part|phase|file|item)|remaining|the rest|finish)"
        ),
    ),
    ("continue", r"\b(?:i|we) (?:could|can) (?:now )?continue (?:by|with|to)\b"),
    ("继续|接着|続け", "(?:要我|是否需要我|需要我|要不要我)(?:继续|接着)|是否继续|続けますか|続けましょうか"),
)

UNFINISHED: Final = (
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
        "not yet",
        r"\bnot yet (?:implemented|complete|completed|done|finished|started|migrated|converted|translated|covered)",
    ),
    (
        "%|progress|status",
        r"\b(?:progress|status)\W{1,3}(?:in progress|partial|incomplete|\d{1,2} ?%)|\b[1-9]\d?% (?:complete|done|finished)",
    ),
    (
        "未|还没|剩余|其余|省略",
        "(?:尚未|还没有?|未)(?:完成|实现|处理)|剩余(?:的)?(?:部分|任务|工作|文件)|其余(?:部分)?(?:类似|省略|略)|以下省略|未完待续",
    ),
    ("まだ|残り|以下同様", "まだ(?:完了|実装)|残りの(?:作業|タスク|部分)|以下同様"),
)

HOPES: Final = (
    (
        "should|ought",
        (
            r"\b(?:should|ought to)(?: now| all| then| finally| hopefully)* (?:work|be (?:fixed|working|resolved|correct|visible)|compile|build|pass"
            r"|display|show|function|load|render|run|behave|start|scroll)\b~\b(?:now|correctly|properly|as expected|perfectly|fine|without|again)\b"
        ),
    ),
    ("should now|now should", r"\bshould now\b|\bnow should\b"),
    (
        "should|will",
        r"\b(?:this|that|it|the (?:fix|change|patch|update)s?) (?:should|will) (?:fix|resolve|solve|address|correct|take care of)\b",
    ),
    ("give", r"\bgive (?:it|this|that) (?:a|another) (?:try|go|shot|test|whirl)"),
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
        r"\b(?:i think|i believe|hopefully|presumably|looks like|seems like)[^.!?\n]{0,30}\b(?:fixed|works|working|resolved|solved)\b",
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
        "based on",
        r"\bbased on (?:(?:my|our|the|general|common|prior|existing|typical|an?) )+(?:knowledge|understanding|training|memory|assumption|general knowledge)",
    ),
    (
        "memory|guess|assum",
        r"\bfrom (?:my )?memory\b|\beducated guess|\b(?:is|are) (?:here )?assumed to be\b|\b(?:under|on|with) the assumption that\b",
    ),
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
        "did not|didn't|failed to",
        r"\A\W{0,9}(?:\w+: )?(?:i|the (?:model|assistant)|it) (?:did not|didn't|failed to) (?:provide|generate|return|produce|give) (?:a|any) (?:response|output|answer|content)\W{0,9}\Z",
    ),
)
