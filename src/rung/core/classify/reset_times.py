"""Find the time at which a limit reopens in an error's text, and return the seconds until then.

Read are timestamps and ISO times in fields ("resets_at"), the suffix of Claude Code's "limit reached|1760004000", and
times in sentences about a limit: "resets 3pm (Europe/Lisbon)", "try again at Nov 20th, 2025 6:34 AM". Other times, as
those of log lines, are not: a wrong time would make a run wait for nothing.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from rung.core.classify.lazy_regex import LazyPattern

if TYPE_CHECKING:
    from datetime import tzinfo

MAX_RESET_SECONDS: Final = 62 * 86_400.0  # plans reset monthly at the latest; a later time is something else
_LATE_SECONDS: Final = 60.0  # the wait for a reset that has just passed: clients round to minutes
_HEAD: Final = 3_000  # characters of a long text that are searched
_TAIL: Final = 5_000
_NEAR: Final = 300  # a limit is named at most so many characters before the time
_MAX_TIMES: Final = 20
# Beginnings of the forms below, without their first letter, so that case does not matter.
_MARKERS: Final = (
    "eset", "gain at", "gain on", "gain after", "gain from", "gain\n", "eached|", "ntil", " ends", "enews ",
    "vailable at", "vailable on", "vailable from", "retry_at", "establece ", "edefinido ",
)  # fmt: skip


def names_reset(text: str) -> bool:
    """Return whether the text may name a time at which a limit reopens: then the wait depends on the clock."""
    for marker in _MARKERS:  # noqa: SIM110  # three times as fast as any()
        if marker in text:
            return True
    return False


def reset_wait(text: str, now: float, zone: tzinfo | None) -> float | None:
    """Return the seconds from `now` until the limit in this text reopens; None if the text does not say it clearly.

    `zone` is the local zone, in which command-line clients print their times. Without it, only times that carry a zone
    of their own are read. Of several sentences the last one counts: it is the newest of a log.
    """
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    at = _field_time(text, now, zone)
    if at is None:
        at = _phrase_time(text, now, zone)
    if at is None:
        return None
    return at - now if at > now else _LATE_SECONDS


_LIMIT: Final = LazyPattern(
    r"limit|quota|usage|credits|allowance|messages|exhausted|exceeded|requests|l[ií]mite", re.IGNORECASE
)
_FIELD: Final = LazyPattern(
    r"(?:reset|retry_at|available_at|until)[\w-]{0,24}\\{0,8}[\"']\s?:\s?\\{0,8}[\"']?(?=\d{10}|20\d\d-\d\d-\d\d[T ]\d\d)"
    r"|limit reached\|(?=\d{10})",
    re.IGNORECASE,
)


def _field_time(text: str, now: float, zone: tzinfo | None) -> float | None:
    """Return the first time in a field that can be that of a reset."""
    for match in islice(_FIELD.finditer(text), _MAX_TIMES):
        if _LIMIT.search(text, max(0, match.start() - _NEAR), match.end() + _NEAR):
            at = _coming_time(text, match.end(), now, zone)
            if at is not None:
                return at
    return None


_ON: Final = r"(?:(?:at|on|by|after|time|is):?\s{1,8}){0,2}"
_PHRASE: Final = LazyPattern(
    r"\b(?:(?<!connection )(?<!stream )(?<!was )(?<!been )(?<!password )resets?"
    rf"(?:\sautomatically)?:?\s{{1,8}}{_ON}"
    r"|(?:try|trying|available|back)\s{1,3}a\s?gain\s{1,3}(?:at|on|after|from)\s{1,3}"
    r"|(?:wait|reached|limited|exceeded|exhausted|blocked|paused|unavailable)\s{1,3}until\s{1,3}"
    r"|(?:renews|available)\s{1,3}(?:at|on|from)\s{1,3}"
    r"|(?P<cycle>cycle)\s{1,3}ends\s{1,3}on\s{1,3}"
    r"|se restablece el\s|redefinido em\s)",
    re.IGNORECASE,
)
_SHORT_WINDOW: Final = LazyPattern(r"session limit|5[- ]?hour limit", re.IGNORECASE)
_SHORT_SECONDS: Final = 5.5 * 3_600.0  # a session has five hours: a time of day further ahead has passed already
_SAME_SENTENCE: Final = 60


def _phrase_time(text: str, now: float, zone: tzinfo | None) -> float | None:
    """Return the last time in a sentence about a limit that can be that of its reset."""
    for match in reversed([*_PHRASE.finditer(text)][-_MAX_TIMES:]):
        start = match.start()
        if not _LIMIT.search(text, max(0, start - _NEAR), match.end()):
            continue
        at = _coming_time(text, match.end(), now, zone, american=match["cycle"] is not None)
        is_short = _SHORT_WINDOW.search(text, max(0, start - _SAME_SENTENCE), start) is not None
        if at is not None and not (is_short and at - now > _SHORT_SECONDS):
            return at
    return None


def _coming_time(text: str, start: int, now: float, zone: tzinfo | None, *, american: bool = False) -> float | None:
    from rung.core.classify.clock_times import JUST_PASSED_SECONDS, parse_time

    at = parse_time(text, start, now, zone, american=american)
    return at if at is not None and -JUST_PASSED_SECONDS < at - now <= MAX_RESET_SECONDS else None
