"""Recognise answers that end with the announcement of a step: nothing follows it, so the step was not taken."""

from __future__ import annotations

from typing import Final

from rung.core.classify.lazy_regex import LazyPattern

_LEAD: Final = (
    r"(?:(?:ok(?:ay)?|now|next|good|great|perfect|first|alright|so|then|excellent|sure|absolutely|certainly|of course|understood|got it)"
    r"[,.!]* (?:[\u2014\u2013-] )?)*(?:to (?:do|start|begin|answer|find|get|understand)\b[^,.!?\n]{0,60}, )?"
)
# The last sentence announces a step: nothing follows it.
_ANNOUNCES: Final = LazyPattern(
    rf"{_LEAD}(?:let me (?!know|help)|i'll |i will |i'm going to |i am going to |now i |next,? i |let's |i can now )[^:]{{3,200}}(?:[:\uff1a]|\.{{3}}|\u2026)\Z"
    rf"|{_LEAD}(?:let me|i'll|i will|i'm going to|i am going to|i need to|we need to|let's)(?: (?:now|also|first|then|next|try|quickly|continue"
    r"|proceed|go ahead|start|begin|need|to|and|by|have))* (?:check|fix|update|run|implement|create|look|read|writ|add|search|test|verify"
    r"|examin|investigat|analy|edit|modify|refactor|find|explor|review|build|set up|install|mak|remov|replac|rewrit|generat|process|visit"
    r"|open|us|inspect|navigat)\w*\b.{0,200}\Z"
    rf"|{_LEAD}(?:i'll|i will) do (?:this|that|it|so) .{{3,160}}\Z"
    r"|(?!please\b|if\b|once\b|when\b|let me know|just\b|tell\b|confirm\b|send\b)[^:?]{3,200}[,;] (?:so|and) (?:now )?(?:i'll|i will|i'm going to) (?:now |also |first )?(?:commit|run|check|fix|update|add|create|write|push|look|search|start|continue|proceed|build|test|verify|read"
    r"|edit|remove|install|try|rebuild|rerun|implement|apply)\b[^.!?]{0,80}\.?\Z"
    r"|now (?:for )?an? (?:[\w-]+ ){0,3}[\w-]+ (?:of|for|at|over|through|before|after) [^.!?,]{2,60}\.?\Z"
    r"|(?:now|next,?|then|on to)(?: for| to| on to)? the [a-z][\w-]*(?: [\w-]+[^s\W])?[.:\u2026]?\Z"
    rf"|{_LEAD}(?:i'll|i will|i'm going to|i am going to) (?:now|next|then|continue|go through|work through|get started|start)(?! (?:transfer|connect|be|leave|stop|wait|let)\b).{{3,200}}\Z"
    "|.{0,40}(?:我(?:将|来|用|先|现在|会|需要|要)|现在|接下来|让我|下面|次に|まず|これから).{2,120}[:\uff1a]\\Z"
)
_LAST_SENTENCE: Final = LazyPattern(r"(?:[.!?]\s+|\n\s*|[\u3002\uff01\uff1f])(?=\S)")
_MAX_LAST_CHARS: Final = 400
# A short answer that only announces: no work is in it, so any step will do.
_MAX_ANNOUNCEMENT_CHARS: Final = 240
_ONLY_ANNOUNCES: Final = LazyPattern(
    rf"{_LEAD}(?:let me|i'll|i will|i'm going to|i am going to) (?!know\b|help\b|be\b|not\b|never\b|keep\b|wait\b|remember\b|explain\b|leave\b|pass\b|have to\b|give\b|need\b|put it\b).{{3,220}}\Z"
    r"|(?:doing|fixing|starting|working on|running|checking|continuing|proceeding|beginning|looking into)\b(?: \w+){0,3} ?(?:now|with|next|right away|this|that|it)\b[^?,:]{0,40}\Z"
    "|(?:好的[,，]?)?(?:我(?:来|先|现在|这就|马上|将)|让我)[^\u3002?\uff1f]{2,60}\u3002?\\Z"
)
# A sentence without a verb that is inflected: "Fetching the next page."
_STEPS: Final = (
    r"(?:fetch|read|writ|updat|runn|check|creat|search|install|open|load|download|retriev|apply|build|test|look|scann|query|execut|send|generat|edit"
    r"|fix|continu|proceed|start|analy[sz]|inspect|pars|process|mov|add|implement|verify|review|gather|collect|prepar|navigat|brows|compil|deploy"
    r"|spawn|delegat|launch|pull|clon|merg|rebas|committ|push|retry|switch|convert|port|migrat|translat|explor|investigat|refactor)ing"
)
_INFLECTED: Final = (
    r"(?:is|are|was|were|be|been|will|would|can|could|should|must|may|might|has|have|had|does|do|did|requires?|needs?|makes?|takes?|helps?|gives?|allows?"
    r"|lets?|fails?|failed|works?|worked|returns?|shows?|means?|leads?|costs?|uses?|used|pass(?:es|ed)?|succeed(?:s|ed)?|completed?|finished|done"
    r"|depends?|happens?|starts?|stops?|keeps?|avoids?|ensures?|reduces?|improves?|causes?|prevents?)"
)
# Behind its object, a word on "s" or "ed" is likely a verb: "Running the tool prints a list." is a statement.
_BARE_STEP: Final = LazyPattern(
    rf"{_LEAD}{_STEPS}\b(?!.*\b{_INFLECTED}\b)(?: (?:up|on|in|into|at|for|through|to|with|from|out|over))?"
    r" (?:the|a|an|this|that|these|those|all|more|my|your|next|remaining|now|issue|page|file|step|part|item|\d+)\b(?: [^\s?,;:]+)?"
    r"(?: (?!\w+(?:s|ed)\b)[^\s?,;:]+){0,6}(?: [^\s?,;:]+)?(?:\.{1,3}|\u2026|!)\Z"
    rf"|{_LEAD}{_STEPS} [^?,;:.]{{2,80}}(?:\.{{3}}|\u2026)\Z"
)
# "I will" in other languages, as the whole last sentence of a short answer.
_OTHER_ANNOUNCES: Final = LazyPattern(
    r"(?:(?:jetzt|nun|als nächstes|zunächst|dann|ok(?:ay)?),? )?(?:ich werde|werde ich|lass mich) (?!nicht\b)[^?]{3,120}(?:en|eln|ern)[.\u2026]{0,3}\Z"
    r"|(?:(?:maintenant|ensuite|d'abord|bien),? )?je vais (?:\w+(?:ant|ord|ite|ment) )?\w+(?:er|ir|re)\b[^?]{3,120}\Z"
    r"|(?:(?:ahora|a continuación|bien|primero|agora|em seguida),? )?(?:voy a|vou) (?:\w+mente |ahora |agora )?\w+[aei]r\b[^?]{3,120}\Z"
    r"|(?:сейчас|теперь|далее|секунду|минуту)[,.]?(?: я)? \w+[юу]\b[^?]{3,120}\Z|[^?\n]{3,80}겠습니다[.\u2026]{0,3}\Z"
    "|(?:好的[,，]?)?(?:(?:接下来|下一步|随后|马上)|(?:继续|开始|正在)(?:把|将|处理|读|检查|执行|完成|分析|查看|编写|修改|运行|测试|搜索|下载|安装|生成|更新|创建|获取))"
    "(?:(?!可以|已经|已|了|请|吗|您|你|的|会|很)[^\u3002?\uff1f\n]){2,60}[\u3002\u2026]{0,2}\\Z"
    "|(?:次に|続いて|これから|まず|では)[^\u3002\n]{2,60}(?:します|いきます)\u3002?\\Z"
)
# The answer breaks off where a call, a list or a text should follow.
_OPEN_END: Final = LazyPattern(
    r"(?![^\n]*[{}();=<>])(?!\W{0,4}(?:please|could|can|would|paste|enter|provide|share|type|send|tell|def|class|if|for|while|try|else|elif|except|case|with|async)\b)"
    "(?:[^\\s:]+[ \t]+){1,40}[^\\s:]+[:\uff1a]\\Z|(?![^\\n]*[{}();=<>])[^\x00-\x7f\\n][^\\n:\uff1a]{2,80}\uff1a\\Z"
)


def announces_only(prose: str, raw: str) -> bool:
    """Return whether an answer ends with an announcement; `prose` is its text in lower case, `raw` as written."""
    last = _last_sentence(prose)
    if _ANNOUNCES.match(last) or _OPEN_END.match(_last_line(raw)):
        return True
    if len(prose) > _MAX_ANNOUNCEMENT_CHARS:
        return False
    return any(pattern.match(last) for pattern in (_ONLY_ANNOUNCES, _BARE_STEP, _OTHER_ANNOUNCES))


def _last_sentence(prose: str) -> str:
    tail = prose.rstrip()[-_MAX_LAST_CHARS:]
    starts = [found.end() for found in _LAST_SENTENCE.finditer(tail)]
    return tail[starts[-1] :] if starts else tail


def _last_line(raw: str) -> str:
    return raw.rstrip()[-_MAX_LAST_CHARS:].rpartition("\n")[2].strip().lower()
