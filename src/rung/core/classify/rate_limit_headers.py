"""Read when a rate limit or plan window reopens from the providers' response headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.durations import parse_duration, plausible
from rung.core.classify.lazy_regex import LazyPattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FIRST_TIMESTAMP: Final = 1_000_000_000.0  # a larger number is a Unix timestamp, not a number of seconds to wait
_FIRST_MILLISECONDS: Final = 100_000_000_000.0  # a larger one is in milliseconds
_SPENT: Final = frozenset({"0", "0.0", "0.00"})
_FULL_PERCENT: Final = 100.0


def window_wait(headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the seconds until the last of the spent windows reopens: until then, every call is refused."""
    waits = [
        wait
        for name, value in headers.items()
        if "limit" in name or name.startswith(("x-codex-", "x-quota-"))
        for reset in _resets_of(name, value, headers)
        if (wait := _wait_until(reset, headers, now)) is not None
    ]
    return max(waits, default=None)


_REMAINING: Final = LazyPattern(r"ratelimit-(?:.*-)?remaining")
_UNIFIED: Final = "anthropic-ratelimit-unified-"
_ACCOUNT_STATUSES: Final = frozenset({f"{_UNIFIED}status", f"{_UNIFIED}overage-status"})  # of no window
_CODEX_USED: Final = LazyPattern(r"x-codex-([a-z-]{1,40})-used-percent$")
_PARAMETERS: Final = LazyPattern(r"(?:^|[&;\s])(rem|r|rst|t)=([^&;\s]{1,60})")


def _resets_of(name: str, value: str, headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the reset of the window that this header declares spent."""
    if name.startswith(_UNIFIED):
        yield from _unified_reset(name, value, headers)
    elif _REMAINING.search(name):
        if value.strip() in _SPENT:
            yield headers.get(name.replace("remaining", "reset"), "")
    elif (codex := _CODEX_USED.match(name)) is not None:
        if _number(value) >= _FULL_PERCENT:
            window = f"x-codex-{codex[1]}-reset-"
            yield headers.get(f"{window}after-seconds") or headers.get(f"{window}at", "")
    elif name.startswith(("x-usage-ratelimit-", "x-quota-snapshot-")) or name == "ratelimit":
        found = {match[1]: match[2] for match in _PARAMETERS.finditer(value)}
        if found.get("rem", found.get("r")) in _SPENT:
            yield found.get("rst", found.get("t", "")).replace("%3A", ":").replace("%3a", ":")


def _unified_reset(name: str, value: str, headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the reset of an Anthropic plan window with the status "rejected".

    `unified-reset` is that of the representative window. It counts only if no window says which one is rejected, and
    not where the account as a whole is allowed: then another limit refused the call.
    """
    if _is_rejected_window(name, value):
        yield headers.get(name.removesuffix("status") + "reset", "")
    elif name == f"{_UNIFIED}reset":
        is_rejected = headers.get(f"{_UNIFIED}status", "rejected").strip() == "rejected"
        if is_rejected and not any(_is_rejected_window(*header) for header in headers.items()):
            yield value


def _is_rejected_window(name: str, value: str) -> bool:
    is_window = name.startswith(_UNIFIED) and name.endswith("-status") and name not in _ACCOUNT_STATUSES
    return is_window and value.strip() == "rejected"


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0


def _wait_until(reset: str, headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the seconds until a reset: a number of seconds, a duration, a timestamp or a date."""
    try:
        number = float(reset)
    except ValueError:
        seconds = parse_duration(reset)
        return seconds_until(parse_date(reset), headers, now) if seconds is None else seconds
    return plausible(number) if number < _FIRST_TIMESTAMP else seconds_until(from_timestamp(number), headers, now)


def from_timestamp(number: float) -> float:
    """Return a Unix timestamp in seconds, also if it was written in milliseconds."""
    return number / 1_000 if number >= _FIRST_MILLISECONDS else number


def seconds_until(at: float | None, headers: Mapping[str, str], now: float | None) -> float | None:
    """Return the seconds from the response (its `Date`, else `now`) to a time; None if that time has passed by `now`."""
    sent = parse_date(headers.get("date", ""))
    if at is not None and sent is not None:
        return plausible(max(0.0, at - sent))
    return None if at is None or now is None or at <= now else plausible(at - now)


MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_HTTP_DATE: Final = LazyPattern(r"(?:\w+,? )?(\d{1,2})[ -](\w{3})[ -](\d{4}) (\d\d):(\d\d):(\d\d)")


def parse_date(value: str) -> float | None:
    """Return an HTTP date, an RFC 3339 time or a Unix timestamp as a Unix timestamp."""
    from datetime import UTC, datetime

    try:
        match = _HTTP_DATE.match(value)
        if match is not None:
            day, month, year, hours, minutes, seconds = match.groups()
            midnight = datetime(int(year), MONTHS[month.lower()], int(day), tzinfo=UTC).timestamp()
            return midnight + int(hours) * 3_600 + int(minutes) * 60 + int(seconds)
        if value[4:5] == "-":
            at = datetime.fromisoformat(value.strip())
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        return from_timestamp(float(value))
    except (ValueError, KeyError, OverflowError):
        return None
