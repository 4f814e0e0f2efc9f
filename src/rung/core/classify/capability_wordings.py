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
        "tool",
        (
            r"\b(?:tools?|functions?)(?: (?:that |which )?(?:i|you|we) (?:would )?(?:need|want|asked for))? (?:is|are)(?: currently)? (?:unavailable|not (?:\w+ )?(?:available|provided|enabled|configured|part of))\b"
            r"|\b(?:tools?|functions?) (?:isn't|aren't) (?:\w+ )?(?:available|provided|enabled|configured|part of)\b|\bno (?:such )?(?:tool|function) (?:is |was )?(?:available|provided)\b"
            r"|\bmy (?:available )?tools (?:only|just) (?:allow|let|support|permit|can|cover)|\bnone of (?:my|the) (?:available )?tools (?:can|support|allow|let)"
        ),
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
            r"|(?:open|follow|visit|click) (?:(?:any|the|on) )*(?:links?|urls?|web ?sites?|web ?pages?)\b"
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
