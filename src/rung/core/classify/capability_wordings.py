"""Wordings of a missing capability: the answer's author has no tool for the work, or cannot do this kind of thing at all.

Only the present tense counts: "I couldn't open the page" is about one attempt, "I can't open pages" about the author.
"""

from __future__ import annotations

from typing import Final

_CANNOT: Final = r"(?:can't|cannot|can not|(?:'m| am) (?:currently |simply )?(?:unable|not able) to)(?: \w+ly| even)?"
_WEB: Final = r"(?:internet|web|online|google|website|browser)"
_CODE: Final = (
    r"(?:code|commands?|scripts?|programs?|tools?|python|bash|shell|terminal|javascript|sql|binaries|executables)"
)
_YOURS: Final = r"your (?:local |personal |own )*(?:files?|folders?|director(?:y|ies)|computer|machine|device|file ?system|screen|desktop|camera|email|inbox|calendar|hard drive|network|terminal)"
_LIVE: Final = r"(?:real[- ]time|live|current|up-to-date|external|local|private|online)"

LACKS_CAPABILITY: Final = (
    # no tool
    (
        "don't|do not|have no|haven't",
        (
            r"\bi(?: \w+ly)? (?:don't|do not|have no|haven't)(?: \w+ly)?(?: have| got)? ?(?:[^\s.,;]+ ){0,7}(?:tools?|capabilit(?:y|ies)|abilit(?:y|ies)|functionality|plugins?)\b"
            r"(?!,? (?:results?|outputs?|calls?|errors?|preference|yet|but i (?:did|used|worked)))"
        ),
    ),
    (
        "access",
        rf"\bi(?: \w+ly)? (?:don't|do not|have no)(?: \w+ly)?(?: have)? (?:any |direct )*access to (?:(?:the|a|an|any|my) )?(?:{_WEB}|{_LIVE} |{_YOURS}|terminal|shell|command line|file ?system|tools?\b)",
    ),
    (
        "access",
        r"\bi(?: \w+ly)? (?:don't|do not|have no)(?: \w+ly)?(?: have)? (?:any |direct )*access to [^.,;\n]{1,60} (?:on|in|of|from) your (?:\w+ )?(?:system|computer|machine|device|disk|drive|laptop|server|network|account)\b",
    ),
    (
        "access",
        r"\bi(?: \w+ly)? (?:don't|do not|have no)(?: \w+ly)?(?: have)?(?: (?:any|direct|live))* (?:internet|web|network|shell|terminal|command[- ]line|file ?system|browser|database|real-time|online) access\b",
    ),
    (
        "lack",
        r"\bi (?:currently )?lack (?:the |any )?(?:\w+ ){0,3}(?:access|tools?|abilit(?:y|ies)|capabilit(?:y|ies)|permissions?)\b",
    ),
    ("available to me", r"\b(?:is not|are not|isn't|aren't) available to me\b"),
    (
        "memory of",
        r"\bi (?:have no|don't have(?: any)?|do not have(?: any)?) memory of (?:earlier|previous|past|prior|our)\b",
    ),
    ("no way", r"\bi have no (?:\w+ )?way (?:to|of) (?:see|view|read|open|access|run|execut|reach|call|send|hear|listen|brows)\w*"),
    (
        "environment|sandbox|session|container|runtime|there is no|there are no|there's no",
        (
            r"\b(?:my|this|the) (?:environment|sandbox|session|container|runtime) (?:has|offers|provides) no (?:\w+ ){0,3}(?:access|tools?|browser|network|internet|shell|terminal)\b"
            r"|\bthere(?:'s| is| are) no (?:\w+ ){0,2}(?:tools?|browser|terminal|shell|internet)(?: \w+)? (?:in|for|available|here)\b"
        ),
    ),
    ("text model|text-only", r"\bi(?:'m| am) (?:only )?an? (?:text|text-only|language) (?:model|assistant)\b[^.!?\n]{0,30}\b(?:can't|cannot|can not|unable)\b"),
    (
        "access your|open your|reach your|read your|see your|control your|operate your|with your",
        rf"\bi ?{_CANNOT} (?:access|open|reach|read|see|control|operate|interact with) your (?:\w+ ){{0,2}}(?:terminal|drive|account|mailbox|server|database|workspace|cloud|phone|browser|system)\b",
    ),
    (
        "tool",
        (
            r"\b(?:tools?|functions?)(?: (?:that |which )?(?:i|you|we) (?:would )?(?:need|want|asked for))? (?:is|are)(?: currently)? (?:unavailable|not (?:\w+ )?(?:available|provided|enabled|configured|part of))\b"
            r"|\b(?:tools?|functions?) (?:isn't|aren't) (?:\w+ )?(?:available|provided|enabled|configured|part of)\b|\bno (?:such )?(?:tool|function) (?:is |was )?(?:available|provided)\b"
            r"|\bmy (?:available )?tools (?:only|just) (?:allow|let|support|permit|can|cover)|\bnone of (?:my|the) (?:available )?tools (?:can|support|allow|let)"
        ),
    ),
    (
        "cannot|can't|unable",
        r"\A\W{0,6}(?:(?:sorry|unfortunately|apologies),? )?(?:cannot|can't|unable to) (?:run|execute|access|browse) [^.!?\n]{1,40}\b(?:in|from|on) (?:this|my|the current) (?:\w+ )?(?:environment|sandbox|session|setup|context|chat)\b",
    ),
    (
        " mode",
        r"\bi(?:'m| am)(?: currently| running| still)? in (?:an? )?(?:read-only|readonly|plan|planning|ask|chat|view-only|restricted) mode\b[^.!?\n]{0,60}\b(?:can't|cannot|can not|unable|not able|only)\b",
    ),
    # not this kind of thing
    (
        "can't|cannot|can not|able to",
        (
            rf"\bi ?{_CANNOT} (?:(?:access|use|browse|search|surf|navigate)(?: on| in| to)? (?:the |any )*(?:{_WEB})|(?:perform|run|execute|make|do|conduct) (?:\w+ ){{0,3}}{_WEB} search"
            rf"|(?:run|execute|use|call|invoke) (?:(?:any|the|your|shell|terminal|live|system|external|arbitrary) )*{_CODE}\b(?! (?:as|for|until|without|yet))|browse\b"
            rf"|(?:access|open|read|see|view|browse|modify|edit) (?:(?:any|the) )*(?:{_YOURS}|{_LIVE} (?:data|information|files?|sites?|content|sources?|urls?|links?))"
            r"|(?:see|view|look at|process|analy[sz]e|interpret|open|generate|draw|create) (?:(?:any|the|your) )*(?:images?|pictures?|photos?|screenshots?|videos?|audio)\b(?! (?:because|until|yet|in \w+ format))"
            r"|(?:see|view|read|make out|interpret|transcribe)(?: or \w+)? (?:[^.,;\n]{0,24} )?(?:in|from|on) (?:an?|the|your|this) (?:images?|pictures?|photos?|screenshots?|videos?|audio)\b"
            r"|(?:access|open|read|see|view|browse|modify|edit|list)(?: or \w+)? (?:(?:any|the) )*(?:files?|folders?|director(?:y|ies)|documents?|data|contents?|anything) (?:\w+ )?(?:on|in|from) your\b"
            r"|(?:run|execute) (?:that|this|these|such)(?: \w+)? (?:commands?|code|scripts?|programs?) (?:in|from|on) (?:this|my|the current)\b"
            r"|(?:open|follow|visit|click) (?:(?:any|the|on) )*(?:links?|urls?|web ?sites?|web ?pages?)\b"
            r"|(?:open|read|view) (?:(?:any|the|your) )*(?:attachments|pdfs|spreadsheets|e-?mails|archives)\b"
            r"|(?:send|receive) (?:e-?mails?|messages|notifications)|make (?:phone )?calls|(?:hear|listen to|watch) (?:\w+ )?(?:audio|videos?|music|recordings?))"
        ),
    ),
    (
        "an ai|language model|text-based|text based|ai assistant|ai model",
        (
            r"\b(?:as an? (?:ai|artificial|large|text)|language model|text[- ]based|ai (?:assistant|model))~\b(?:can't|cannot|unable|not able|don't have|do not have|have no)~"
            r"\b(?:(?:read|access|open|see|edit|modify) (?:(?:the|your|any|local) )*(?:files?|folders?|documents?|disk|computer|system)\b|listen|hear|watch|view (?:images?|videos?)|see (?:images?|videos?)|images|audio|videos?|brows|internet|execut|run (?:code|commands?)|open (?:files?|links?)|real-time|physical|(?:web|internet) search|search the|access to (?:external|current|live|the internet))"
        ),
    ),
    # other languages
    (
        "没有",
        (
            "(?:对话|环境|会话|这里|这边|目前|当前|沙箱)[^\u3002\n]{0,20}没有(?:可用|可调用|任何|直接|提供)?的?[^\u3002\n]{0,24}(?:工具|通道|执行环境|终端|权限|接口|插件|浏览器|shell)"
            "|没有(?:终端|工具|浏览器|网络)可用"
        ),
    ),
    (
        "无法|不能|無法",
        (
            "(?:无法|不能|無法)(?:直接)?(?:在|进入|访问|查看|读取|操作|控制|登录)(?:您|你)[^\u3002\n]{0,24}(?:机器|电脑|环境|本地|本机|磁盘|文件|屏幕|账号|系统|服务器)"
            "|(?:无法|不能)(?:直接)?(?:在)?(?:当前|这个|该)的?[^\u3002\n]{0,8}(?:沙箱|对话|环境|会话)[^\u3002\n]{0,12}(?:读取|访问|调用|执行|运行)"
        ),
    ),
    (
        "无法|不能|没有|無法",
        "我?(?:无法|不能|無法)(?:直接)?(?:访问|浏览|打开|读取|查看|上网|搜索|存取|訪問)(?:您|你|互联网|网络|网页|网站|外部|链接|本地|实时|網)|我?(?:无法|不能)(?:直接)?(?:执行|运行)(?:命令|代码|程序|脚本)|我没有(?:[^\u3002\n]{0,12})(?:工具|能力)",
    ),
    (
        "できません|できない|持っていません",
        "(?:インターネット|ウェブ|ファイル|コマンド|コード|画像|リンク|外部)[^\u3002\n]{0,20}(?:アクセス|閲覧|実行|検索|表示)[^\u3002\n]{0,10}(?:できません|できない)|(?:ツール|機能|能力)[^\u3002\n]{0,6}(?:持っていません|ありません)",
    ),
    ("수 없|없습니다", "(?:인터넷|웹|파일|명령|이미지)[^.\n]{0,16}(?:접속|접근|검색|실행|볼)[^.\n]{0,6}수 없|(?:도구|기능|능력)[이가은는] 없"),
    (
        "zugriff|kann|werkzeug|fähigkeit",
        r"\bich (?:habe|besitze) (?:leider )?(?:keinen (?:direkten )?zugriff auf (?:das internet|das web|ihren|deinen|ihre|deine|ihr |dein |echtzeit)|kein(?:e|en)? (?:\w+ )?(?:werkzeug|tool|fähigkeit|möglichkeit))|\bich kann (?:leider )?(?:nicht im (?:internet|web)|keine (?:befehle|bilder|webseiten|links|dateien auf))",
    ),
    (
        "peux pas|n'ai pas|n'ai aucun",
        r"\bje n'ai (?:pas|aucun)(?: d'| de | la | l')?\s?(?:accès (?:direct )?(?:à internet|au web|aux données en temps)|outil|capacité)|\bje ne peux pas (?:accéder à internet|naviguer|exécuter (?:de|des|du)|rechercher sur|voir (?:les|des) images|ouvrir (?:les|des) liens)",
    ),
    (
        "no puedo|no tengo|não posso|não tenho|non posso|non ho",
        (
            r"\bno tengo (?:acceso (?:directo )?a (?:internet|la web|datos en tiempo)|(?:una |ninguna )?(?:herramienta|capacidad))|\bno puedo (?:acceder a internet|navegar|ejecutar (?:código|comandos)|buscar en (?:internet|la web)|ver imágenes|abrir enlaces)"
            r"|\bnão tenho (?:acesso (?:direto )?à (?:internet|web)|(?:uma |nenhuma )?(?:ferramenta|capacidade))|\bnão posso (?:acessar a internet|navegar|executar (?:código|comandos)|ver imagens)"
            r"|\bnon ho (?:accesso (?:diretto )?a internet|(?:uno |alcuno )?strument|la capacità)|\bnon posso (?:accedere a internet|navigare|eseguire (?:codice|comandi)|vedere immagini)"
        ),
    ),
    (
        "не могу|нет ",
        r"\bу меня нет (?:прямого )?(?:доступа к (?:интернет|сети|вашему|вашим)|инструмент|возможности)|\bне могу (?:выполнять (?:команды|код)|искать в (?:интернете|сети)|просматривать (?:сайты|изображения)|открывать (?:ссылки|сайты)|выходить в интернет)",
    ),
)  # fmt: skip
