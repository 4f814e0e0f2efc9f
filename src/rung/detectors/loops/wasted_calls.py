"""Wasted calls: the same intent with slightly changed arguments, and trouble of the same class each time.

The other loop rules need equal outcomes. This one needs more repeats and compares less: the words of the call without
options, and the class of the trouble (a time-out, a missing thing, a refusal, an empty result).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from rung.detectors.loops import normalize
from rung.detectors.loops.side_effects import Effect, script_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.detectors.loop_settings import LoopSettings
    from rung.detectors.loops.observed_step import ObservedStep

RULE: Final = "wasted-calls"
_MAX_CLASS_CHARS: Final = 600
_EMPTY: Final = re.compile(
    r"\W*(?:no (?:results?|matches|match(?:ing)?|records?|rows|hits|files?|data|entries)\b.{0,80}"
    r"|0 (?:results?|matches|rows|hits)\b.{0,40}|nothing (?:was )?found\W*|\[\s*\]|\{\s*\}|null|none)\W*",
    re.IGNORECASE | re.DOTALL,
)
# Classes of trouble by words of the error; the first that matches counts.
_CLASSES: Final = tuple(
    (name, re.compile(words, re.IGNORECASE))
    for name, words in (
        ("timeout", r"\btim(?:ed|e)[ -]?out\b|deadline exceeded|\b504\b"),
        ("refused-connection", r"connection (?:refused|reset)|unreachable|could not connect|name or service not known"),
        ("denied", r"permission denied|access denied|forbidden|unauthori[sz]ed|\b40[13]\b|not permitted|captcha"),
        ("missing", r"no such file|not found|does not exist|no module named|cannot find|\b404\b|unknown (?:command|option)"),
        ("limit", r"rate limit|too many requests|quota|\b429\b|out of memory|no space left"),
        ("syntax", r"syntax ?error|unexpected token|parse error|invalid json|indentation ?error"),
    )
)  # fmt: skip
_EXCEPTION: Final = re.compile(r"\b([A-Z]\w*(?:Error|Exception))\b")
_OPTION: Final = re.compile(r"(?:^|\s)-{1,2}[A-Za-z][\w-]*(?:=\S+)?")
_PAUSE: Final = re.compile(r"\b(?:sleep|timeout)\s+[\d.]+[smh]?\b|\d?>&\d|\|\|?\s*(?:true|head|tail)\b.*")
_INTENT_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_WITH_DIGIT: Final = re.compile(r"[\w.:-]*\d[\w.:-]*")
_MIN_INTENT_WORDS: Final = 3
_MAX_INTENT_WORDS: Final = 48


def trouble_of(result: str, *, failed: bool, fault: str) -> str:
    """Return the class of a call's trouble; empty if it had none."""
    start = result[:_MAX_CLASS_CHARS]
    if not failed:
        return "empty" if looks_empty(start) else ""
    for name, pattern in _CLASSES:
        if pattern.search(start):
            return name
    exception = _EXCEPTION.search(result[-_MAX_CLASS_CHARS:])
    return exception[1] if exception else f"error {fault}"


def looks_empty(result: str) -> bool:
    """Return whether a result says that there is nothing."""
    return len(result) <= _MAX_EMPTY_CHARS and _EMPTY.fullmatch(result) is not None


_MAX_EMPTY_CHARS: Final = 120


def intent_of(tool: str, arguments: Any, significant: Any) -> tuple[frozenset[int], str]:
    """Return the hashed words of a call without options and pauses, and its subject: the numbers and ids it names.

    A command has no subject: its numbers are limits and counters. For any other tool, another number is another record.
    """
    script = script_of(tool, arguments)
    if script is not None:
        return _word_hashes(_OPTION.sub(" ", _PAUSE.sub(" ", script))), ""
    text = significant if isinstance(significant, str) else " ".join(_texts(significant))
    return _word_hashes(text), normalize.digest(" ".join(_WITH_DIGIT.findall(text)))


def _word_hashes(text: str) -> frozenset[int]:
    return frozenset(crc32(word.encode()) for word in _INTENT_WORD.findall(text.lower())[:_MAX_INTENT_WORDS])


def _texts(value: Any) -> list[str]:
    """Return the values of arguments, without their names."""
    if isinstance(value, Mapping):
        return [text for name in sorted(value) for text in _texts(value[name])]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [str(value)]


def has_same_intent(one: ObservedStep, other: ObservedStep, similarity: float) -> bool:
    """Return whether both calls want the same: nearly the same words, in both directions."""
    if one.action != other.action or one.subject != other.subject:
        return False
    if one.call == other.call:
        return True
    if min(len(one.intent), len(other.intent)) < _MIN_INTENT_WORDS:
        return False
    return len(one.intent & other.intent) / len(one.intent | other.intent) >= similarity


def wasted_calls(window: Sequence[ObservedStep], settings: LoopSettings) -> tuple[int, int] | None:
    """Return how often the last intent met the same class of trouble without progress, and the extra repeats needed."""
    last = window[-1]
    if not last.trouble:
        return None
    count, calls, waited = 1, {last.call}, last.waits
    for one in reversed(window[:-1]):
        if has_same_intent(one, last, settings.similarity):
            if one.trouble != last.trouble:
                break
            count += 1
            calls.add(one.call)
        elif one.effect is Effect.TALK or (one.effect is Effect.CHANGE and not one.failed):
            break  # somebody may have asked for it, or something has changed
        waited = waited or one.waits or one.effect is Effect.WAIT
    bonus = settings.wasted_calls - settings.replan + (settings.extra_repeats_when_waiting if waited else 0)
    return (count, max(0, bonus)) if len(calls) > 1 else None
