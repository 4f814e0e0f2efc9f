"""Language of an answer: whether it surely is another one than the task demands."""

from __future__ import annotations

import re
from typing import Final

_FUNCTION_WORDS: Final = {
    "English": "the and of to is are was were that this with for from which not have has it be by as an at or",
    "German": "der die das und ist nicht ein eine mit von den dem zu auf für wird werden sich auch oder wir ich sind",
    "French": "le la les et est une des du dans que qui pour pas sur avec ce cette sont nous vous au aux par",
    "Spanish": "el la los las y es una de que en para con por no se del al como más pero son está este",
    "Italian": "il lo la gli e è una di che in per con non del della dei sono come più questo questa nel si",
    "Portuguese": "o a os as e é uma de que em para com não do da dos das no na por mais como são este",
    "Dutch": "de het een en van is dat niet met voor op zijn aan ook als bij dit deze worden naar wij te",
}
_WORDS: Final = {name: frozenset(words.split()) for name, words in _FUNCTION_WORDS.items()}
_SCRIPTS: Final = {
    "Chinese": re.compile(r"[\u4e00-\u9fff]"),
    "Japanese": re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]"),
    "Korean": re.compile(r"[\uac00-\ud7af]"),
    "Russian": re.compile(r"[\u0400-\u04ff]"),
    "Arabic": re.compile(r"[\u0600-\u06ff]"),
}
_NAMES: Final = "|".join((*_WORDS, *_SCRIPTS))
_DEMAND: Final = re.compile(rf"\b(?:answer|reply|respond)\b[^.]{{0,40}}\bin (?P<name>{_NAMES})\b", re.IGNORECASE)
_OWN_DEMANDS: Final = (
    (re.compile(r"\bantworte\w*\b[^.]{0,30}\bauf deutsch\b", re.IGNORECASE), "German"),
    (re.compile(r"\br[ée]pond\w*\b[^.]{0,30}\ben fran[çc]ais\b", re.IGNORECASE), "French"),
    (re.compile(r"\bresponde\w*\b[^.]{0,30}\ben espa[ñn]ol\b", re.IGNORECASE), "Spanish"),
)
_NEGATED: Final = re.compile(r"\b(?:not|never|or)\b|n['\u2019]t\b", re.IGNORECASE)
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`]*`", re.DOTALL)
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_MIN_WORDS: Final = 20
_MIN_LETTERS: Final = 60
_MAX_SHARE: Final = 0.03  # of words of the demanded language, in a text that is not in it
_MIN_SHARE: Final = 0.15  # of words of another language, in a text that is in it


def demanded_language(sentence: str) -> str:
    """Return the language in which a sentence demands the answer; empty if it demands none."""
    match = _DEMAND.search(sentence)
    if match and not _NEGATED.search(sentence):
        return match["name"].capitalize()
    return next((name for pattern, name in _OWN_DEMANDS if pattern.search(sentence)), "")


def is_other_language(answer: str, demanded: str) -> bool:
    """Return whether an answer surely is in another language than the demanded one; a short text is never sure."""
    text = _CODE.sub(" ", answer)
    script = _SCRIPTS.get(demanded)
    letters = sum(map(len, _LETTERS.findall(text)))
    if script is not None:
        return letters >= _MIN_LETTERS and script.search(text) is None
    if letters >= _MIN_LETTERS and any(len(one.findall(text)) > letters / 2 for one in _SCRIPTS.values()):
        return True
    words = [word.lower() for word in _LETTERS.findall(text)]
    if len(words) < _MIN_WORDS:
        return False
    shares = {name: sum(word in known for word in words) / len(words) for name, known in _WORDS.items()}
    own = sum(word in _WORDS[demanded] and not _is_shared(word, demanded) for word in words) / len(words)
    return own <= _MAX_SHARE and max(share for name, share in shares.items() if name != demanded) >= _MIN_SHARE


def _is_shared(word: str, language: str) -> bool:
    """Return whether another language has this function word too."""
    return any(word in known for name, known in _WORDS.items() if name != language)
