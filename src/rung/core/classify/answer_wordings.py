"""Wordings: how answers say that they decline, give up, are unfinished, or claim what they do not show.

A wording is a regular expression over lower-case prose, after the substrings one of which it needs: most texts have
none of them, which saves the search. These names stand for parts of an expression: `~` for up to 60 characters of the
same sentence, `SELF` for the speaker, `CANNOT` for the speaker's inability, `WORK` for doing the task, `SEARCH` and
`SOUGHT` for looking for something and what was looked for, `DONE` for a success, `POLICY` for a reason of policy.
"""

from __future__ import annotations

from typing import Final

PARTS: Final = {
    "CANNOT": (
        r"SELF(?:'m|'ve|'re|'d)?(?: am| was| were| are| have| has| been| still| currently| simply| unfortunately| ultimately"
        r"| just| really| honestly| therefore| regrettably| also| actually| apologize but)*? (?:unable to|not able to|couldn't"
        r"|could not|can't|cannot|can not|can no longer|failed to|wasn't able to|weren't able to|not been able to"
        r"|haven't been able to|don't (?:know|see) how to|do not know how to)(?: seem to| even| yet| be able to)?"
    ),
    "SELF": r"\b(?:i|we|the (?:agent|assistant|model))",
    "WORK": (
        r"(?:complet|finish|solv|fix|resolv|accomplish|achiev|implement|continu|proceed|mak\w* (?:any )?(?:further |more )?progress"
        r"|get (?:it|this|that) (?:to )?work|do (?:any )?(?:more|this|that|the task)|carry out|fulfil+ (?:the|this|your) task"
        r"|debug|go (?:on|further)|perform (?:this|the) task|help (?:you )?further)\w*"
    ),
    "SEARCH": (
        r"(?:find|determin|locat|identif|obtain|retriev|extract|answer|provid|verif|confirm|get|reach|view|load|download"
        r"|process|deduc|ascertain|pinpoint|establish|comput|calculat|gather)\w*"
    ),
    "SOUGHT": (
        r"(?:answer|information|data|result|value|content|solution|cause|way|page|article|paper|video|image|file|audio"
        r"|document|website|source|version|copy|record|report|dataset|location|reference|sentence|passage|quote|link|name|number|date|count|title|word|text|database|conclusi|detail|exact|specific|news|stor(?:y|ies)|price|who |what |when "
        r"|definitive|reliable|precise|final)\w*"
    ),
    "POLICY": (
        r"(?:polic(?:y|ies)|guideline|ethic|illegal|unlawful|harm|dangerous|malicious|copyright|inappropriate|unsafe|against my"
        r"|violat|safety|sensitive (?:data|information|topic|content)|privacy|personal (?:data|information)|hate|explicit (?:content|material)|sexual|violen|weapon|hacking"
        r"|cheat|decepti|fraud|abus|discriminat|offensive|principles|responsibly|licen[cs]ed|not appropriate|misus"
        r"|misinformation)"
    ),
    "DONE": (
        r"\b(?:fixed|works?|working|pass(?:es|ing|ed)?|resolved|implemented|verified|tested|operational|deployed|functional"
        r"|match(?:es|ing)|shows?|displays?|ready|success(?:ful|fully)?|completed?|done|achieved|solved|eliminated|live)\b"
    ),
    "MARK": "[\u2705\u2713\u2714\U0001f389\U0001f680\U0001f3af]",
    "~": r"[^.!?\n\u3002\uff01\uff1f]{0,60}",
}

DECLINES: Final = (
    # inability or unwillingness, and a reason of policy in this sentence or the next
    (
        "can't|cannot|can not|won't|will not|unable|able to|decline|refuse|not going|comfortable|willing",
        (
            r"\b(?:i|we)(?:'m| am| must| have to|'ll have to)? (?:can't|cannot|can not|won't|will not|unable to|not able to|won't be able to"
            r"|decline to|refuse to|not going to|not comfortable|not willing to)(?: \w+ly| be able to| to)*? (?:help|assist|comply|provid|fulfil|creat"
            r"|generat|writ|produc|shar|discuss|engag|participat|support|reproduc|do that|do this|answer|translat|respond|offer"
            r"|perform|execut|giv|recommend|disclos|reveal|identif)\w*[^.!?\n]{0,200}(?:[.!?]\s{0,3}[^.!?\n]{0,200})?\bPOLICY"
        ),
    ),
    # no reason at all: the sentence ends after the request
    (
        "can't|cannot|can not|won't|will not|unable|able to",
        (
            r"\b(?:i|we)(?:'m| am)? (?:can't|cannot|can not|won't|will not|unable to|not able to|won't be able to) (?:help|assist|comply"
            r"|engage|fulfil+|participate|support|discuss|respond|do that|process(?= that| this| such)|provide (?:that|this|assistance|help))(?: you)?(?: (?:with|in|to|on|by))?"
            r"(?: (?:that|this|your|the|those|these|such|any|requests?|task|topic|kind|type|of|content|here|it|further|same|doing|creating"
            r"|particular|question|query|matter|conversation))* ?(?:[.!,;]|$)"
        ),
    ),
    ("decline|refuse", r"\bi (?:must|have to|need to|will have to) (?:respectfully |politely )?(?:decline|refuse)"),
    (
        "comfortable|prohibited",
        r"\bi(?:'m| am) (?:not comfortable|prohibited from)",
    ),
    (
        "boundary|line i|limit for me",
        r"\b(?:hard|firm|red|absolute) (?:boundary|line|limit)(?: (?:for me|of mine)\b| (?:that )?i (?:won't|will not|don't|do not|can't|cannot)\b)|\ba line i (?:won't|will not|don't) cross\b",
    ),
    # an inability, and the offer of something else
    (
        "something else|anything else|another way",
        (
            r"\b(?:hard time|trouble|difficult\w*|unable|not able|can't|cannot|won't)\b[^.!?\n]{0,60}\b(?:request|question|that|this|it)\s?[.!,;]\s{0,3}"
            r"(?:but )?(?:can|could|may|is there|would you|how about)\b[^.!?\n]{0,40}\b(?:(?:something|anything) else|another way)\b"
        ),
    ),
    # a model that speaks of itself as one
    (
        "an ai|language model",
        r"\b(?:as an? (?:ai|artificial|large)|language model)~\b(?:can't|cannot|unable to|not able to) (?!find|determine|locate|verify)",
    ),
    ("ki-sprachmodell|sprachmodell", r"\bals (?:ein )?(?:ki-)?sprachmodell~\b(?:kann|darf) ich"),
    ("языковая модель", "как языковая модель,? [^.!?\n]{0,30}не могу"),
    ("modelo de lenguaje", r"\bcomo modelo de lenguaje~\bno puedo"),
    ("modèle de langage", r"\ben tant que modèle de langage~\bne peux pas"),
    ("作为", "作为(?:一个|一名)?(?:ai|人工智能|语言模型)[^\u3002\n]{0,20}(?:无法|不能)"),
    ("ethical|appropriate", r"\bit (?:is|would be) (?:not (?:ethical|appropriate)|unethical|inappropriate)\b"),
    ("against my", r"\bagainst my (?:guidelines|programming|principles|policy|values)"),
    ("decline|refuse", r"\bi (?:therefore )?(?:decline|refuse)(?: to |\W{0,3}(?:$|\Z))"),
    ("feel comfortable", r"\bi (?:don't|do not) feel comfortable\b"),
    ("'d rather|'d prefer", r"\bi'd (?:rather|prefer) not "),
    (
        "prevent|allow|prohibit",
        r"\bmy (?:guidelines|safety|policies|programming)~(?:prevent|don't allow|do not allow|prohibit)",
    ),
    (
        "sorry|apologi",
        (
            r"\b(?:sorry|apologi[sz]e)[^.!?\n]{0,20}\b(?:i|we)(?:'m| am)? (?:can't|cannot|won't|unable to|not able to) (?:follow|do (?:that|this)|accept|allow"
            r"|accommodate|honou?r|reveal|say|tell|comply|complete your request)"
        ),
    ),
    # an apology and an inability, in other languages
    (
        "无法|不能|抱歉|对不起|遗憾|不好意思|拒绝|换个",
        (
            "无法给到|(?:抱歉|对不起|很遗憾|不好意思)[^\u3002\n]{0,24}(?:无法|不能|不可以|没办法)(?!访问|找到|完成|继续|打开|读取|执行|确定|获取|连接|解决)|(?:无法|不能)(?:为[您你])?(?:提供|回答|协助|帮助|满足|讨论|生成)"
            "|拒绝(?:回答|提供)|换个话题"
        ),
    ),
    (
        "申し訳|お手伝い|お答え|応じ|ご要望",
        "申し訳[^\u3002\n]{0,40}(?:できません|いたしかねます|できかねます)|お手伝い(?:は)?できません|お答え(?:は)?できません|応じられません|ご要望にはお応え",
    ),
    ("죄송|수 없", "죄송[^.\n]{0,40}(?:수 없|어렵)|도와드릴 수 없|제공할 수 없|답변할 수 없"),
    ("puedo", r"lo siento[^.\n]{0,40}no puedo|no puedo (?:ayudar|asistir|proporcionar|cumplir|generar|crear)"),
    (
        "posso",
        r"(?:desculpe|sinto muito|lamento)[^.\n]{0,40}não posso|não posso (?:ajudar|fornecer|criar|gerar|atender)",
    ),
    (
        "peux|désol",
        r"désolée?[^.\n]{0,40}je ne (?:peux|suis) pas|je ne peux pas (?:vous )?(?:aider|fournir|répondre|générer|créer)",
    ),
    ("posso", r"mi dispiace[^.\n]{0,40}non posso|non posso (?:aiutar|fornire)"),
    (
        "leid|kann",
        (
            r"tut mir leid[^.\n]{0,60}(?:kann|darf)[^.\n]{0,30}nicht|kann (?:ich )?(?:ihnen |dir |dabei |leider |damit )*nicht (?:helfen|weiterhelfen|dienen)"
            r"|dabei kann ich (?:dir |ihnen |leider )*nicht"
        ),
    ),
    (
        "не могу",
        r"(?:извините|простите|к сожалению)[^.\n]{0,40}не могу|не могу (?:помочь|предоставить|ответить|выполнить)",
    ),
)

ADMITS_DISOBEDIENCE: Final = (
    (
        "banned|forbidden|prohibited|off limits|off-limits",
        r"SELF(?:'ve| have)? (?:used|ran|run|called|executed|did|changed|touched)~\b(?:which|that) (?:is|was|are|were) (?:\w+ly )?(?:banned|forbidden|prohibited|off[- ]limits)\b",
    ),
    (
        "my fault|my mistake",
        r"\bmy (?:fault|mistake)\b[^?]{0,120}\bi (?:overwrote|deleted|removed|wiped|dropped|destroyed|force-pushed)\b",
    ),
    (
        "have asked|'ve asked|have waited|checked with you",
        r"SELF should(?:'ve| have) (?:asked(?: you)?|checked with you|waited|consulted you)(?: \w+)? (?:before|first\b|for your)",
    ),
    ("you asked for", r"\byou asked for [^.!?\n]{1,60}, but i (?:wrote|did|used|made|built|created|chose|gave|went)\b"),
    (
        "instead of",
        r"\binstead of (?:the |what |doing )?[^.!?\n]{0,40}\byou (?:asked|requested|wanted|told)[^.!?\n]{0,20}, (?:i|we)\b",
    ),
    (
        "beyond|outside|exceeded",
        r"SELF (?:\w+ )?(?:went beyond|acted outside|exceeded|overstepped|ignored) (?:of )?(?:the |my |your )?(?:scope|task|request|instructions?|mandate|authority)\b",
    ),
    (
        "forbid|forbad|prohibited|ruled out",
        r"\b(?:which|that|what|although|though) you (?:had |have |explicitly )*(?:forbidden|forbade|prohibited|ruled out|told me not to)\b",
    ),
    (
        "ignor|disregard|violat|disobey|broke|deviat|against|overstepp|contradict|follow|respect|obey|listen|opposite",
        (
            r"SELF(?:'ve| have| had)?(?: (?:completely|clearly|explicitly|directly|repeatedly|again|just|blatantly|also))* (?:ignor|disregard"
            r"|violat|disobey|broke|deviat|went against|overstepp|contradict|fail(?:ed)? to follow|did not follow|didn't follow"
            r"|didn't (?:respect|obey|listen)|did the opposite)~\b(?:instruct|rule|request|order|constraint|guideline|plan\b|claude\.md"
            r"|agents\.md|directive|requirement|protocol|polic|command|style guide|convention|what you|you (?:asked|said|told)|your )"
        ),
    ),
    (
        "apologi|sorry",
        r"\b(?:apologi[sz]e|apologies|sorry) for (?:\w+ly )?(?:violat|ignor|break|disregard|not follow|not respect|deviat|overstepp|going against|exceed|disobey|doing (?:that|this|it) without)\w*",
    ),
    (
        "follow|stick to|respect|obey",
        (
            r"\bi (?:did not|didn't|failed to|do not|don't|cannot|can't|could not|couldn't|never) follow(?:ed)? (?:it|them|that|this|these|those|your|instructions?|directions?|the (?:\w+ )?(?:rules?|instructions?|plan|guidelines?|spec\w*|order))\b"
            r"|\bi (?:said|promised|agreed|stated)[^.!?\n]{0,30}\b(?:would|to) (?:follow|stick to|respect|obey)[^.!?\n]{0,40}\bbut\b"
        ),
    ),
    (
        "asked|told|instructed|said",
        (
            r"\byou (?:explicitly |specifically |clearly |already |had |have )*(?:asked|told|instructed|said)(?: me)?[^.!?\n]{0,30}"
            r"\b(?:not to|to not|never|only to|don't|do not)\b"
        ),
    ),
    (
        "although|even though|despite|when you|after you",
        (
            r"SELF (?:\w+ )?(?:delet|modif|chang|commit|push|remov|overwr|edit|revert|dropp|ran|rewr|install|merg|start|creat|deploy|sent)\w*~\b(?:although|even though|despite|after|when) you"
            r"(?:r (?:instruction|request)|(?: had| have| explicitly| clearly)* (?:told|asked|said|instructed|forb))"
        ),
    ),
    (
        "only",
        r"\byou (?:had |have )?asked(?: me)? (?:only|just) (?:to|for)\b[^.!?\n]{0,60}\bbut (?:i|we)\b|\byou (?:only|just) asked(?: me)? (?:to|for)\b[^.!?\n]{0,60}\bbut (?:i|we)\b",
    ),
    (
        "should not|shouldn't|no right|supposed to",
        (
            r"SELF (?:should not|shouldn't|had no right to|was not supposed to|wasn't supposed to)(?: have)? (?:delet|modif|chang|touch|commit"
            r"|push|remov|run|ran|overwr|edit|creat|add|made|make|start|act|revert|drop)"
        ),
    ),
    (
        "without",
        r"\bi\b[^.!?\n]{3,80}\bwithout (?:your |any |explicit |prior |user |first )*(?:permission|approval|consent|authori[sz]ation)\b",
    ),
    (
        "although you|even though you|despite you",
        r"\bi \w+[^.!?\n]{3,80}\b(?:although|even though|despite) you (?:had |have |explicitly |clearly |specifically )*(?:told|asked|said|instructed|warned|forbade|wanted|requested)\b",
    ),
    (
        "anyway|regardless|nonetheless|all the same",
        r"\byou[^!?\n]{3,140}[;,.]\s?(?:and |but )?i \w+(?: \w+){0,5} (?:anyway|regardless|nonetheless|all the same)\b",
    ),
    (
        "should",
        r"\bi (?:never should have|should never have|shouldn't have|should not have) (?!been\b|expected\b|needed\b|taken\b)\w+",
    ),
    (
        "overstepped|overreached|too far|acted outside",
        r"\bi (?:\w+ly )?(?:overstepped|overreached|went too far|acted outside)\b",
    ),
    (
        "you ",
        (
            r"\byou (?:had |have |clearly |explicitly |specifically )*(?:said|asked|told|wanted|requested|required|specified|instructed)\b[^.!?\n]{3,100}\b(?:but|yet) i"
            r"\b(?! (?:could|can|cannot|can't|was|am|had to|don't|do not|didn't find|found|think|need|recommend|suggest|believe|have not|haven't|will|would))"
        ),
    ),
    (
        "instruction|rule|request|constraint|confirmation|approval|limit|requirement|guideline|freeze|restriction",
        (
            r"\bi (?:\w+ly )?(?:skipped|missed|forgot|overlooked|bypassed|overrode|circumvented|failed to (?:respect|honou?r|obey|observe|adhere to|stick to|comply with|meet))\b[^.!?\n]{0,30}"
            r"\b(?:your|the|my) (?:\w+ ){0,2}(?:instructions?|rules?|requests?|constraints?|confirmation|approval|limits?|requirements?|guidelines?|freeze|restrictions?)\b"
        ),
    ),
    (
        "not part of|not within|not in |never asked|never requested|not ask|n't ask|not authori|n't authori|not request|n't request",
        (
            r"\bi [^.!?\n]{3,80}[,;]? (?:which|that|it) (?:was|is|were) not (?:part of|within|in) (?:the |your )?(?:\w+ )?(?:request|scope|task|brief|instructions?)\b"
            r"|\bi [^.!?\n]{3,80}\byou (?:never|didn't|did not) (?:ask|request|authori[sz]e|approve)\w*\b(?! (?:me )?(?:about|whether|if|how|what))"
        ),
    ),
    (
        "even though|although",
        (
            r"\bi (?:\w+ly )?(?:went ahead|proceeded|acted|deployed|pushed|merged|changed|deleted|continued|ran|edited|added|sent)\b[^.!?\n]{0,60}\b(?:even though|although) [^.!?\n]{0,60}"
            r"\b(?:freeze|frozen|forbid\w*|forbade|prohibit\w*|not allowed|off[- ]limits|told|asked|rules?|instructions?|approval|permission|on hold|locked)\b"
        ),
    ),
    (
        "violat|contrary to",
        (
            r"\bi (?:\w+ )?(?:attempted|tried|executed|committed|pushed|ran|implemented|deployed|merged|changed|deleted|wrote|edited)\b[^.!?\n]{0,160}"
            r"\b(?:violating|in violation of|contrary to)\b[^.!?\n]{0,60}\b(?:rules?|instructions?|guidelines?|polic\w+|conventions?|constraints?|requests?)\b"
        ),
    ),
    (
        "despite|instead of",
        (
            r"\bdespite [^.!?\n]{0,80}\b(?:forbid|prohibit|instruct|rule|guardrail|told|asked|request)\w*[^.!?\n]{0,120}, i\b(?! (?:can|could|am|was) )"
            r"|\binstead of [^.!?\n]{3,80}, i (?:erroneously|mistakenly|wrongly|incorrectly)\b"
        ),
    ),
    (
        "without",
        (
            r"SELF (?:delet|modif|chang|commit|push|remov|overwr|edit|revert|dropp|ran|wip|install|made|went ahead|proceeded|acted|deploy|merg)~\bwithout (?:your |any |explicit |first "
            r"|user )*(?:permission|approval|consent|authori[sz]ation|confirmation|asking|being asked)"
        ),
    ),
)

OFF_TASK: Final = (
    ("development team", r"\bour development team\b"),
    ("hand over|hand off", r"\bhand (?:over|off) (?:the project|this|it|everything) to (?:our|the)\b"),
    ("for choosing", r"\bthank you for choosing (?:our|us)\b"),
    (
        "get back|notify|keep you|update you",
        r"\bi will (?:get back to you|notify you|keep you (?:updated|posted|informed)|update you)\b",
    ),
    # the task was there; the answer is about the message instead
    (
        "message|request|prompt|conversation|question|chat",
        (
            r"\b(?:i (?:don't|do not|can't|cannot) see|there(?:'s| is| are| isn't| aren't)(?: no| not)?|you (?:haven't|have not|didn't|did not)"
            r"(?: actually)? (?:provid|includ|attach|shar|paste|upload)\w*)(?: any| an?| the)?~\b(?:in|with|to) (?:your|the|this|our)"
            r" (?:message|request|prompt|conversation|question|chat)"
        ),
    ),
    (
        "seems|looks like|appears|notice",
        (
            r"\b(?:it (?:seems|looks like|appears)(?: that)?|i notice) (?:you|your message|the (?:text|file|message)|there)~\b(?:empty|blank"
            r"|no (?:text|file|content|code|question)|not provided|missing|haven't|didn't|cut off|incomplete)"
        ),
    ),
    (
        "hello|hi|hey|welcome|greetings",
        r"\A\W{0,9}(?:hello|hi|hey|welcome|greetings)\b[^?\n]{0,120}\b(?:how can i|what can i|i'm ready|how may i|what would you like|what shall we|what are we|what do you (?:want|need))[^?\n]{0,80}\?\s{0,9}\Z",
    ),
    (
        "team will|business day|working day|be in touch",
        r"\bour (?:\w+ )?team will (?:review|get back|contact|respond|be in touch|look into|reach out)|\b(?:respond|reply|get back to you|answer|contact you)[^.!?\n]{0,30} within [^.!?\n]{1,20}(?:business|working) (?:day|hour)s?\b|\bwe will be in touch\b",
    ),
    ("let me know what", r"\blet me know what you(?:'d| would)? (?:like|want|need)(?: me)? to (?:do|work on|help)"),
    ("how can i", r"\bhow can i (?:help|assist) you(?: with this)?(?: today)?\?\s{0,9}\Z"),
)

ADMITS_FALSE_CLAIM: Final = (
    (
        "fak|fabricat|made|lied|lying|pretend|hallucinat|invented|falsely|incorrectly|prematurely|misled|misrepresent|overstated|exaggerat|claimed",
        (
            r"SELF(?:'ve| have| had| was| were|'m| am)?(?: (?:actually|just|only|basically|simply|completely|been|essentially))* (?:fak(?:ed|ing)"
            r"|fabricat|made (?:it|that|this|them|those) up|made up|lied\b|lying|pretend|hallucinat|invented|falsely"
            r"|incorrectly (?:claimed|stated|reported|said)|prematurely|misled|misrepresent|overstated|exaggerat|claimed)"
        ),
    ),
    (
        "didn't|did not|never|haven't|have not|hadn't|had not",
        (
            r"SELF(?:'ve)? (?:didn't|did not|never|haven't|have not|hadn't|had not)(?: even| actually| really| properly| fully| yet| get around to| have time to| got around to)* (?:test|running\b"
            r"|run\b|ran\b|verif|check|validat|confirm|execut|compil)"
        ),
    ),
    (
        "fake|fabricated|invented|made-up|made up|misleading|simulated|hardcoded|hard-coded",
        (
            r"SELF(?:'ve| have)? (?:presented|gave|given|showed|shown|provided|used|reported|wrote|delivered|inserted)[^.!?\n]{0,30}\b(?:fake|fabricated|invented|made[- ]up|misleading|simulated|hard-?coded)"
            r" (?:\w+ )?(?:proof|evidence|results?|data|tests?|outputs?|numbers?|claims?|reports?|references?|sources?|citations?|values?)\b"
        ),
    ),
    (
        "should|need",
        r"SELF (?:should(?:'ve| have)|need(?:ed)? to have) (?:actually |properly |first )*(?:test|verif|check|run|validat|confirm)",
    ),
    (
        "without",
        (
            r"\b(?:done|fixed|claim\w*|said|stated|reported|report|assum\w*|(?:is|are|as|was) complete)\b~\bwithout (?:actually |even |really |properly |first )*"
            r"(?:test|verify|checking|running|validat|looking|reading|confirming|measuring)"
        ),
    ),
)
