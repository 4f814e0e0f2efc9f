"""The time at which a limit reopens, read from texts: dates, times of day, zones, timestamps; and what is not read."""

from __future__ import annotations

import time
import timeit
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify.classifier import classify
from rung.core.classify.clock_times import parse_time
from rung.core.classify.failure_cache import classify_cached
from rung.core.classify.reopening import MAX_RESET_SECONDS
from rung.core.classify.reset_times import names_reset, reset_wait
from rung.core.classify.retry_after import wait_in_text
from rung.core.domain.failures import Kind

LISBON = ZoneInfo("Europe/Lisbon")


def moment(text: str, zone: str = "Europe/Lisbon") -> float:
    """The timestamp of a local time."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def reset(text: str, now: str = "2026-07-13 14:00", zone: str = "Europe/Lisbon") -> str | None:
    """The local time of the reset in a text about a limit."""
    wait = reset_wait(f"Usage limit reached. It {text}", moment(now, zone), ZoneInfo(zone))
    return (
        None if wait is None else f"{datetime.fromtimestamp(moment(now, zone) + wait, ZoneInfo(zone)):%Y-%m-%d %H:%M}"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resets 3pm", "2026-07-13 15:00"),
        ("resets 4:20pm.", "2026-07-13 16:20"),
        ("resets at 16:20", "2026-07-13 16:20"),
        ("resets 12am", "2026-07-14 00:00"),
        ("resets 12pm", "2026-07-14 12:00"),
        ("resets 2:40 p.m.", "2026-07-13 14:40"),
        ("resets at 5:00\u202fPM", "2026-07-13 17:00"),  # as JavaScript prints it
        ("resets at midnight", "2026-07-14 00:00"),
        ("resets at noon", "2026-07-14 12:00"),
        ("resets automatically at midnight Pacific", "2026-07-14 08:00"),
        ("resets tomorrow at 9am", "2026-07-14 09:00"),
        ("resets 9am tomorrow", "2026-07-14 09:00"),
        ("resets at 8am next Monday", "2026-07-20 08:00"),
        ("resets at 3pm (UTC) on Jul 20", "2026-07-20 16:00"),
        ("resets tomorrow", None),  # at midnight of which zone
        ("resets on the 20th of next month", None),
        ("resets today at 6 PM", "2026-07-13 18:00"),
        ("resets Thursday", "2026-07-16 00:00"),
        ("resets Mon 9:00 AM", "2026-07-20 09:00"),  # this Monday's has passed
        ("resets Mon 3:00 PM", "2026-07-13 15:00"),
        ("resets Mon, Jul 20, 3pm", "2026-07-20 15:00"),
        ("resets on 20 July", "2026-07-20 00:00"),
        ("resets on the 20th", "2026-07-20 00:00"),
        ("resets 2026-07-13T14:30:00Z", "2026-07-13 15:30"),
        ("resets at 2026-07-13 16:30:00+02:00", "2026-07-13 15:30"),
        ("resets at 2026-07-13 16:30:00", None),  # a server's time without a zone
        ("resets at 1783955400", "2026-07-13 16:10"),
        ("resets at 1783955400000", "2026-07-13 16:10"),
        ("resets 7/20/2026", "2026-07-20 00:00"),
        ("resets 20/7/2026", "2026-07-20 00:00"),
        ("resets 8/8/2026", "2026-08-08 00:00"),
        ("resets 7/8/2026", None),  # in July or in August
        ("resets 2/8/2026", "2026-08-02 00:00"),  # February is long over
        ("resets on 08/01", "2026-08-01 00:00"),
        ("resets on 07/08", None),
        ("resets on 07/20 at 3pm", "2026-07-20 15:00"),
        ("is blocked: try again after 3:05 PM", "2026-07-13 15:05"),
        ("is blocked: wait\nuntil\nJul 14, 1am", "2026-07-14 01:00"),
        ("renews on August 1", "2026-08-01 00:00"),
        ("is available from 6pm", "2026-07-13 18:00"),
    ],
)
def test_forms(text: str, expected: str | None) -> None:
    """Times of day, weekdays, dates with and without a year, ISO times and timestamps; never an ambiguous one."""
    assert reset(text) == expected


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("(Europe/Lisbon)", "2026-07-13 18:00"),
        ("(Asia/Tokyo)", "2026-07-14 10:00"),
        ("(Asia/Calcutta)", "2026-07-14 13:30"),  # 18:00 there was half an hour ago
        ("(America/Argentina/Buenos_Aires)", "2026-07-13 22:00"),
        ("(Etc/GMT+5)", "2026-07-14 00:00"),
        ("(UTC)", "2026-07-13 19:00"),
        ("UTC", "2026-07-13 19:00"),
        ("GMT+2", "2026-07-13 17:00"),
        ("(UTC-03:30)", "2026-07-13 22:30"),
        ("+0200", "2026-07-13 17:00"),
        ("PT", "2026-07-14 02:00"),
        ("Eastern", "2026-07-13 23:00"),
        ("(local time)", "2026-07-13 18:00"),
        ("Or buy more.", "2026-07-13 18:00"),
        ("IST", None),  # India, Ireland or Israel
        ("(CST)", None),
        ("(Mars/Olympus)", None),
        ("(America)", "2026-07-13 18:00"),
        ("(America/Argentina)", None),  # a directory of the zone database
        ("(UTC+99)", None),
        ("(../../etc/passwd)", None),
    ],
)
def test_zones(zone: str, expected: str | None) -> None:
    """A zone is read by its name, abbreviation or offset; a time in an unknown zone is not read."""
    assert reset(f"resets 6pm {zone}") == expected


@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [
        ("2026-07-13 23:50", "resets 12:10am", "2026-07-14 00:10"),
        ("2026-12-31 23:50", "resets Jan 2, 9am", "2027-01-02 09:00"),
        ("2026-12-31 23:50", "resets 1am", "2027-01-01 01:00"),
        ("2027-02-27 10:00", "resets Feb 29", None),
        ("2028-02-27 10:00", "resets Feb 29", "2028-02-29 00:00"),
        ("2026-10-24 23:00", "resets 9am", "2026-10-25 09:00"),  # eleven hours: the clocks go back in between
        ("2026-03-28 23:00", "resets 9am", "2026-03-29 09:00"),  # nine hours
        ("2026-07-13 15:05", "resets 3pm", "2026-07-13 15:06"),  # passed: one minute, not a day
        ("2026-07-14 00:05", "resets 11:58pm", "2026-07-14 00:06"),
        ("2026-07-13 15:31", "resets 3pm", "2026-07-14 15:00"),
        ("2026-07-13 14:00", "resets Jul 13, 2026 11:00 AM", "2026-07-13 14:01"),  # passed: asked again soon
        ("2026-07-13 14:00", "resets Jul 12, 2026 1:59 PM", None),  # long over
        ("2026-07-13 14:00", "resets Jul 2", None),  # over, or in a year
        ("2026-07-13 14:00", "resets Dec 24", None),  # no plan has so long a window
        ("2026-07-13 14:00", "resets Jul 13, 2062 3pm", None),
    ],
)
def test_days(now: str, text: str, expected: str | None) -> None:
    """Midnight, the end of the year, leap years and summer time are counted; what has passed is not put off."""
    assert reset(text, now) == expected


def test_a_repeated_hour() -> None:
    """In the night when 1:30 comes twice, the one that is ahead counts."""
    second_pass = datetime(2026, 10, 25, 1, 10, tzinfo=UTC).timestamp()
    assert reset_wait("Usage limit reached, resets 1:30am", second_pass, LISBON) == 1_200.0


def test_a_session_ends_within_hours() -> None:
    """A session has five hours: a later time of day in its message is that of a session that is over."""
    now = moment("2026-07-13 14:00")
    assert reset_wait("You've hit your session limit · resets 6pm", now, LISBON) == 14_400.0
    assert reset_wait("You've hit your session limit · resets 9am", now, LISBON) is None
    assert reset_wait("You've hit your weekly limit · resets 9am", now, LISBON) == 68_400.0


def test_the_last_sentence_counts() -> None:
    """Of several messages in a log, the newest one is obeyed."""
    log = "You've hit your limit · resets 3pm\n❯ continue\nYou've hit your limit · resets 8:30pm\n"
    assert reset_wait(log, moment("2026-07-13 14:00"), LISBON) == 23_400.0


@pytest.mark.parametrize(
    "text",
    [
        "2026-07-13 14:30:05 ERROR 429 Too Many Requests: rate limit exceeded",
        "[15:30:05] rate limit exceeded; worker 3 started at 16:00",
        "rate limit exceeded\nDate: Mon, 13 Jul 2026 17:28:00 GMT",
        "rate limit exceeded: connection reset at 16:30:05 by peer",
        "quota exceeded; the counter was reset at 3:15pm",
        "usage limit: run it again on Tuesday with a smaller input",
        "usage limit reached, keep the logs until 6pm",
        "rate limit exceeded after 15:00 minutes of use",
        "usage limit reached for gemini-2.5-pro, resets 3 times a day",
        "usage limit reached, resets in a while",
        "usage limit resets 25:00",
        "usage limit resets 13pm",
        "usage limit resets Foo 3",
        "usage limit resets Jul 45",
        "the page resets at 3pm",
        "",
    ],
)
def test_other_times_are_not_resets(text: str) -> None:
    """The time of a log line, a date header, a connection's reset and a nonsense time give no wait."""
    assert reset_wait(text, moment("2026-07-13 14:00"), LISBON) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Claude AI usage limit reached|1783949400", 1_800.0),
        ('{"type": "usage_limit_reached", "resets_at": 1783949400}', 1_800.0),
        ('{"resetsAt": 1783949400000, "limit": "weekly"}', 1_800.0),
        ('{\\"error\\":{\\"type\\":\\"usage_limit_reached\\",\\"resets_at\\":1783949400}}', 1_800.0),
        ("{'message': 'quota', 'reset_time': '2026-07-13T13:30:00+00:00'}", 1_800.0),
        ('{"metadata": {"quotaResetTimeStamp": "2026-07-13T13:30:00Z"}}', 1_800.0),
        ('{"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1783949400000"}}', 1_800.0),
        ('{"limit": 5, "blocked_until": "2026-07-13T13:30:00Z"}', 1_800.0),
        ('{"limit": 5, "last_reset": 1783900000}', None),
        ('{"limit": 5, "reset_at": 17839494001}', None),
        ('{"page": 5, "reset_at": 1783949400}', None),
    ],
)
def test_fields(text: str, seconds: float | None) -> None:
    """A field with a timestamp or an ISO time gives the wait; one in the past or without a limit does not."""
    assert reset_wait(text, 1_783_947_600.0, None) == seconds


def test_without_a_local_zone() -> None:
    """Without the local zone, only a time with a zone of its own is read."""
    now = moment("2026-07-13 14:00")
    assert reset_wait("usage limit resets 3pm", now, None) is None
    assert reset_wait("usage limit resets 3pm (UTC)", now, None) == 7_200.0


def test_a_limit_is_classified_with_its_reset() -> None:
    """A plan limit has its wait where the clock is known, stays not retryable, and has none where it is not known."""
    text, now = "You've hit your limit · resets 3pm (Europe/Lisbon)", moment("2026-07-13 14:00")
    failure = classify(text, now)
    assert (failure.kind, failure.retryable, failure.retry_after) == (Kind.QUOTA_EXHAUSTED, False, 3_600.0)
    assert classify(text).retry_after is None
    assert classify(text, now + 600).retry_after == 3_000.0
    assert classify("Connection reset at 3pm by peer, limit 3", now, LISBON).retry_after is None


def test_a_reset_is_not_cached() -> None:
    """Equal exceptions share a failure, but not the wait until a time of day."""
    error = ConnectionError("429 usage limit reached, resets 3pm")
    waits = [
        classify_cached(error, moment(now), lambda: LISBON).retry_after
        for now in ("2026-07-13 14:00", "2026-07-13 14:30")
    ]
    assert waits == [3_600.0, 1_800.0]


@given(
    st.text(), st.floats(0, 4e9), st.sampled_from(["", "limit resets ", "usage limit, try again at ", "limit reached|"])
)
def test_a_reset_is_sane(text: str, now: float, marker: str) -> None:
    """Any text gives no wait, or one of at most two months."""
    wait = reset_wait(marker + text, now, LISBON)
    assert wait is None or 0 < wait <= MAX_RESET_SECONDS


@given(st.datetimes(datetime(2024, 1, 1), datetime(2035, 1, 1)), st.integers(1, 59 * 24))  # noqa: DTZ001  # local
def test_a_printed_date_is_read_back(now: datetime, hours: int) -> None:
    """A time within two months, printed as Codex does, is read back to the minute."""
    start = now.replace(tzinfo=UTC).timestamp()
    at = datetime.fromtimestamp(start + hours * 3_600, UTC)
    text = f"You've hit your usage limit, or try again at {at:%b} {at.day}th, {at.year} {at:%I:%M %p}."
    assert reset_wait(text, start, UTC) == pytest.approx(at.timestamp() - start, abs=60.0)


BAIT = [
    "reset ", "resets at ", 'reset": ', "limit resets 1", "limit reset 3pm ", "try again at ", "until ", "reset\\", "resets Jan 1 ",
    "limit reached|", 'reset" : "2026-01-01T00', "limit resets at at 1:", "limit resets (", "limit resets 3pm (", "resets mon ",
    "limit wait a b c until ", "limited limited until ", "try x y z again ", "5h left until a b ", "in 1 2 3 until ", "限额 5 重置 ", "limit reset 1:1:1 ",
    "resets in in in ", "cycle ends on 1/", "next next reset ", "Stunden zurückgesetzt um ", "reset " + "a" * 70 + " ",
]  # fmt: skip


@pytest.mark.parametrize("bait", BAIT)
def test_bait_takes_linear_time(bait: str) -> None:
    """64 KiB made to trap a pattern take milliseconds (ten times the bound here), as any other text."""
    text = (bait * 65_536)[:65_536]
    seconds = min(
        timeit.repeat(
            lambda: (names_reset(text), reset_wait(text, 1.7e9, LISBON), wait_in_text(text)),
            number=1,
            repeat=7,
            timer=time.process_time,
        )
    )
    assert seconds < 0.03


def test_no_time() -> None:
    """A text without a time at the place that is looked at has none."""
    assert parse_time("", 0, 0.0, UTC) is None
    assert parse_time("3pm", 3, 0.0, UTC) is None
    assert parse_time("resets 99999999999999", 7, 0.0, UTC) is None
