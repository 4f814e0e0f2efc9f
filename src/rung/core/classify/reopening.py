"""Find where a text says when a limit reopens: behind a verb of reopening; in some languages before it.

A verb ("resets", "try again", "blocked until") is followed by the time itself, or by a few words without a digit and a
preposition. Which words stand between is not listed: services invent new sentences.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.classify import reopening_words as words
from rung.core.classify.lazy_regex import LazyPattern
from rung.core.classify.written_durations import durations_in, read_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


MAX_RESET_SECONDS: Final = 62 * 86_400.0  # plans reset monthly at the latest; a later time is something else
_NEAR: Final = 300  # a limit is named at most so many characters from its time


class Opening(NamedTuple):
    """A place where the time of a reopening may be written, and in which form."""

    verb: int  # where the verb begins
    start: int  # where the time may begin
    duration: bool
    time: bool
    american: bool = False  # a date is written month first
    before: int = 0  # the verb follows the time: the time ends before here


_REACH: Final = 70  # characters between a verb and its time
_BEFORE: Final = 130  # characters before a time in which its verb is searched
_MAX_SPOTS: Final = 12
_MAX_VERBS: Final = 16
_VERB: Final = LazyPattern(
    rf"\b(?:(?P<direct>{words.DIRECT})|(?P<indirect>{words.INDIRECT})|(?P<waiting>{words.WAITING})|(?P<until>until|till))(?![\w-])",
    re.IGNORECASE,
)
_BLOCKED: Final = LazyPattern(rf"\b(?:{words.BLOCKED})(?:\s[\w'’-]{{1,20}}){{0,4}}\s{{1,3}}$", re.IGNORECASE)
_NOT_COMING: Final = LazyPattern(  # of a reset that has happened, of something else, or that does not come
    r"(?:\b(?:was|were|been|got|last|previous(?:ly)?|connection|stream|password|socket|peer|since|just|never|not|no|had|did|factory|hard|fell|falls?|falling|rolled|switch(?:ed|ing)?|going|go|call(?:ed)?|sent"
    r"|last_|max|maximum)|n['’]t|no longer)[\s:]{1,3}$",
    re.IGNORECASE,
)
_SENTENCE_END: Final = LazyPattern(r"[.!?;。！？](?=\s|$)|\n\s*\n|[{}<>]|\\n")
_ADJACENT: Final = LazyPattern(r"[\s:=·–—→~≈*`\"'(│|-]{0,8}")
_LEADS: Final = LazyPattern(  # what stands before a time
    rf"(?<![^\W\d_])(?:(?P<bare>(?={words.NO_PREPOSITION}))"
    rf"|(?:{words.PREPOSITION})(?![a-zà-ÿа-я])[\s:~≈*`\"'(]{{0,6}}(?:(?:{words.ABOUT})\s)?)",
    re.IGNORECASE,
)
_DIGIT: Final = LazyPattern(r"\d")
_EVERY: Final = LazyPattern(r"\b(?:every|each|per|of|up to|within|than)\s(?:the\s)?$", re.IGNORECASE)


def openings(text: str, spots: Iterable[re.Match[str]]) -> Iterator[Opening]:
    """Yield the places at these spots where a time of reopening may be written, the last first: the newest of a log.

    A spot is something that looks like a time, or a part of one.
    """
    for low, high in reversed(_windows([*spots][-_MAX_SPOTS:])):
        for verb in reversed([*_VERB.finditer(text, low, high)][-_MAX_VERBS:]):
            yield from _around(text, verb)
        if not text.isascii():
            yield from _before(text, low, high)


def _windows(spots: Iterable[re.Match[str]]) -> list[tuple[int, int]]:
    """Return the parts of the text around the spots; parts that overlap are one."""
    windows: list[tuple[int, int]] = []
    for spot in spots:
        low, high = max(0, spot.start() - _BEFORE), spot.end() + _REACH
        if windows and windows[-1][1] >= low:
            low = windows.pop()[0]
        windows.append((low, high))
    return windows


def _around(text: str, verb: re.Match[str]) -> Iterator[Opening]:
    start = verb.start()
    if verb["until"]:
        if _BLOCKED.search(text, max(0, start - 70), start):
            yield from _behind(text, verb)
        return
    left = _LEFT.search(text, max(0, start - 90), start)
    if left is not None:
        yield Opening(start, left.start(), duration=True, time=False)
    elif not _NOT_COMING.search(text, max(0, start - 24), start):
        yield from _behind(text, verb)


# Behind it follows the verb: 3h 20m left until your limit resets.
_LEFT: Final = LazyPattern(
    r"(?<![\w.:])\d[\w,]{0,12}(?:\s[\w,]{1,12}){0,7}?(?:\sleft|\sremaining)?\s(?:until|till|before)\s(?:[\w'’-]{1,20}\s){0,5}$",
    re.IGNORECASE,
)
_LIMIT: Final = LazyPattern(words.LIMIT, re.IGNORECASE)


def names_limit(text: str, start: int, end: int) -> bool:
    """Return whether a limit is named near this part of the text."""
    return _LIMIT.search(text, max(0, start - _NEAR), end + _NEAR) is not None


def reopening_wait(text: str) -> float | None:
    """Return the seconds until a limit reopens, if a sentence about it names a duration."""
    for opening in openings(text, durations_in(text)):
        if not opening.duration or _EVERY.search(text, max(0, opening.start - 12), opening.start):
            continue
        found = read_duration(text, opening.start)
        if found is None or not 0 < found[0] <= MAX_RESET_SECONDS or not names_limit(text, opening.verb, opening.start):
            continue
        if not opening.before or _LATER.match(text, found[1]):
            return found[0]
    return None


def _behind(text: str, verb: re.Match[str]) -> Iterator[Opening]:
    """Yield the places behind a verb, in the same sentence and up to its first digit."""
    group, start = verb.lastgroup, verb.end()
    stop = _SENTENCE_END.search(text, start, start + _REACH)
    end = start + _REACH if stop is None else stop.start()
    digit = _DIGIT.search(text, start, end)
    end = end if digit is None else digit.start()
    if group != "indirect":
        adjacent = _ADJACENT.match(text, start)
        at = start if adjacent is None else adjacent.end()
        yield Opening(verb.start(), at, group != "until", group != "waiting", american=False)
    american = verb[0].lower().startswith("cycle")
    for found in _LEADS.finditer(text, start, end):
        sort = found.lastgroup
        if found["duration"] == "for" and group != "waiting":
            continue
        is_duration = sort in {"duration", "either"} and group != "until"
        is_time = sort != "duration" and group != "waiting"
        yield Opening(verb.start(), found.end(), is_duration, is_time, american)


_FINAL: Final = LazyPattern(words.FINAL)
_FINAL_REACH: Final = 50
_FINAL_START: Final = LazyPattern(
    r"(?:北京时间|北京時間|上午|下午|凌晨|晚上|早上|今天|明天|今日|明日|午前|午後|오전|오후|오늘|내일)|(?<![\d:./年月日년월T-])\d|(?<=\d[日号일] )\d"
)
_CLAUSE_END: Final = LazyPattern(r"[。！？\n；;]|[.!?](?=\s)")
_LATER: Final = LazyPattern(r"\s?(?:之?后|之?後|以后|以後|후|뒤|이후|zurück|erneut|wieder|verfügbar)")
_GERMAN: Final = LazyPattern(r"\b(?:um|am|in|nach)\s", re.IGNORECASE)


def _before(text: str, low: int, high: int) -> Iterator[Opening]:
    """Yield the places before a verb that ends its sentence."""
    for verb in reversed([*_FINAL.finditer(text, low, high)]):
        first = max(low, verb.start() - _FINAL_REACH)
        for clause in _CLAUSE_END.finditer(text, first, verb.start()):
            first = clause.end()
        pattern = _GERMAN if verb[0][0].isascii() else _FINAL_START
        for found in pattern.finditer(text, first, verb.start()):
            at = found.end() if pattern is _GERMAN else found.start()
            yield Opening(verb.start(), at, duration=True, time=True, before=verb.start())
        colon = _BEHIND_FINAL.match(text, verb.end())
        if colon is not None:
            yield Opening(verb.start(), colon.end(), duration=True, time=True)
    for wait in reversed([*_WAIT.finditer(text, low, high)]):
        yield Opening(wait.start(), wait.end(), duration=True, time=False)


_BEHIND_FINAL: Final = LazyPattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{0,6}\s?[:：于在]\s{0,3}")
_WAIT: Final = LazyPattern(r"(?:等待|等候|稍候|请等|대기)\s{0,2}(?:约|大约|約)?\s?")
