"""Words with which messages say that a limit reopens: verbs and prepositions, of English and other languages."""

from __future__ import annotations

from typing import Final

FEW_WORDS: Final = r"(?:\s[\w'’-]+){0,4}"

# A time may follow at once: "resets 3pm", "Next reset: 16:20".
DIRECT: Final = (
    r"resets?|resetting|refresh(?:es)?|renews?|renewal|replenish(?:es)?|refills?|recharges?|re-?opens?|unlocks?|rolls over"
    r"|next (?:reset|refresh|renewal|window|available|retry|attempt|request|billing date|cycle|message)"
    r"|se (?:restablecer?á?n?|reinicia(?:rá)?n?|renueva|renovará)|redefinid[oa]s?|reinicia(?:do)?|renova(?:do)?|réinitialis\w+|renouvel\w+"
    r"|ripristin\w+|reimposta\w*|сброс\w*|сбрасыва\w+|обнов\w+|скин\w+|zresetuj\w*|odnow\w+|nollställs|nulstilles|sıfırlan\w*|direset"
)
# A preposition or a colon stands before the time: "will be available again in 3 hours".
INDIRECT: Final = (
    r"refreshed|renewed|replenished|refilled|restored?|resum(?:e|es|ed|ing)|re-?opened|unlocked|unblocked|lifted|clears?|cleared|recovers?"
    r"|reactivated|re-?enabled|available|accessible|usable|(?:come |be |check |try )?back|re-?try|retrying|continue"
    rf"|(?:try|trying|use|using|send|sending|chat|access|available|submit|request|message|prompt|start|ask|be){FEW_WORDS}\sa\s?gain"
    r"|(?:cycle|period|window|cool-?down|block|lockout|restriction|time-?out|penalty|limit|day)\s(?:ends?|starts?|begins?|expires?|is over)"
    r"|(?:next|new)\s(?:[\w-]+\s){0,2}(?:starts?|begins?|opens?)"
    r"|intent\w+|inténtalo|reintent\w+|disponible|disponível|tente|tentando|tentar|réessay\w+|riprov\w+|повтор\w*|попробу\w+|доступ\w*"
    r"|восстанов\w+|спробу\w+|spróbuj|ponow\w+|opnieuw|försök\w*|prøv|dene\w*|coba|thử lại|المحاولة"
)
# Only a duration follows: "please wait 5 minutes", "blocked for an hour".
WAITING: Final = (
    r"wait|waiting|cool-?\s?down|time (?:left|remaining)|remaining(?: time)?|time (?:until|till|to) (?:the |your )?(?:next )?reset"
    r"|(?:blocked|limited|paused|locked(?: out)?|suspended|unavailable|throttled|banned)(?=\sfor\s)"
    r"|espera|aguarde|attend\w*|patient\w*|warte\w*|attendi|подожди\w*"
)
# Words of a state that ends: "rate limited until 3pm".
BLOCKED: Final = (
    r"wait|limit(?:ed)?|reached|exceeded|exhausted|blocked|paused|unavailable|not available|locked(?: out)?|suspended|throttled|disabled"
    r"|rejected|used up|out of|no more|unable|can(?:no|['’])?t|restricted|cool-?down|cooling down|spent|banned|caps?|messages|credits"
)
PREPOSITION: Final = (
    r"(?P<duration>in|dans|nach|через|dentro de|for|another|~|≈|about|approximately|around|roughly|под|após|après|خلال|за|tra|om|sau|dalam)"
    r"|(?P<time>at|on|by|until|till|from|is|a las|às|à|um|am|в|el|le|il|den|op|kl\.|pada|lúc)"
    r"|(?P<either>after|en|em|after about|:|=|→|->)"
)
ABOUT: Final = r"about|approximately|around|roughly|the|exactly|ca\.?|less than|under"
NO_PREPOSITION: Final = r"(?:tomorrow|today|tonight|midnight|next|every|each|mon|tue|wed|thu|fri|sat|sun|завтра|сегодня|demain|mañana|amanhã|morgen)"
# Verbs at the end of their sentence, behind the time: Chinese, Japanese, Korean, German.
FINAL: Final = (
    r"重置|刷新|恢复|恢復|重试|重試|再试|再試|解除|可用|继续|リセット|再試行|再度|再開|利用可能|お試し|초기화|재설정|다시|갱신|zurückgesetzt|erneuert|verfügbar"
    r"|erneut"
)
LIMIT: Final = (
    r"limit|quota|usage|credits?\b|allowance|messages|exhausted|exceeded|requests|budget|capacity|\bcaps?\b|your plan|l[ií]mite|too many|throttl|cuota|\bcota|kontingent|nutzung|лимит|квот"
    r"|额度|限额|限額|配额|上限|限制|用量|频率|次数|制限|한도|할당량|사용량|الحد"
)
