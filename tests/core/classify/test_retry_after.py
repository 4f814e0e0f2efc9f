"""Waits requested by headers, bodies and sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.classify.classifier import classify
from rung.core.classify.retry_after import MAX_WAIT_SECONDS, parse_duration, wait_in_headers, wait_in_text
from rung.core.domain.failures import Kind

SENT = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": SENT}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:30 GMT", "date": SENT}, 0.0),  # over already
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),  # no clock of theirs to measure from
        ({"retry-after": "Wed, 41 Oct 2026 07:28:30 GMT", "date": SENT}, None),
        ({"retry-after": "Wed, 21 Foo 2026 07:28:30 GMT", "date": SENT}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2m59.56s"}, 179.56),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "2m59.56s"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "12"}, 12.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1792567740", "date": SENT}, 60.0),
        ({"x-ratelimit-remaining": "0"}, None),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2026-10-21T07:29:00Z",
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-10-21T07:28:10",
                "date": SENT,
            },
            60.0,
        ),
    ],
)
def test_headers(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds, dates by the response's clock, and the longest exhausted window."""
    assert wait_in_headers(headers) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 1m3.5s.", 63.5),
        ("Please try again in 20ms.", 0.02),
        ("retry after 20 seconds", 20.0),
        ("Please wait 8 seconds before trying again", 8.0),
        ("Please wait 663 hours 23 minutes", 2_388_180.0),
        ("Resets in 6hr 29min.", 23_340.0),
        ("Try again in 2 days, 3 hours and 1 minute", 183_660.0),
        ('{"resets_in_seconds": 7139}', 7139.0),
        ('{"retryDelay": "36s"}', 36.0),
        ('{\\"retryDelay\\": \\"36.5s\\"}', 36.5),
        ("{'retry_after_ms': 1500}", 1.5),
        ('{"retryAfter": "250ms"}', 0.25),
        ("Please wait -9223372036 seconds", None),
        ("Please wait a moment", None),
        ("try again in 5 minutestones", None),
        ("try again in 99999999999 days", None),
        ("nothing here", None),
        ('{"retry_after": null}', None),
    ],
)
def test_words(text: str, seconds: float | None) -> None:
    """A JSON field or a sentence gives the wait; implausible values are ignored."""
    assert wait_in_text(text) == (None if seconds is None else pytest.approx(seconds))


@given(st.text())
def test_a_wait_is_sane(text: str) -> None:
    """Any text gives no wait, or one of at most a year."""
    for wait in (parse_duration(text), wait_in_text(text), wait_in_headers({"retry-after": text, "date": text})):
        assert wait is None or 0 <= wait <= MAX_WAIT_SECONDS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ('{"totalRetryDelay": 787, "attempts": 3}', None),
        ('{"error": "Model m-1 is currently loading", "estimated_time": 20.5}', 20.5),
        ('{"retryDelay": "36s"}', 36.0),
    ],
)
def test_fields_that_tell_a_wait(text: str, seconds: float | None) -> None:
    """An estimated time is a wait; the time already waited is not."""
    assert wait_in_text(text) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:30 GMT"}, None),  # our clock may be ahead of theirs: back off instead
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:20 GMT"}, 10.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2026-10-21T07:29:00Z"}, 60.0),
    ],
)
def test_a_date_without_a_date_header_is_measured_by_our_clock(headers: dict[str, str], seconds: float | None) -> None:
    """Without the server's own time, a date in the future is compared with the clock that is passed in."""
    assert wait_in_headers(headers, 1_792_567_680.0) == seconds
    failure = classify({"status": 429, "headers": headers}, 1_792_567_680.0)
    assert (failure.kind, failure.retry_after) == (Kind.RATE_LIMIT, seconds)


UNIFIED = "anthropic-ratelimit-unified-"
NOW = 1_792_567_680.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({f"{UNIFIED}reset": "1792567740"}, 60.0),  # no status at all
        ({f"{UNIFIED}status": "rejected", f"{UNIFIED}reset": "1792567740"}, 60.0),
        ({f"{UNIFIED}status": "rejected", f"{UNIFIED}reset": "2026-10-21T07:29:00Z"}, 60.0),
        ({f"{UNIFIED}status": "allowed", f"{UNIFIED}reset": "1792567740"}, None),  # another limit refused the call
        ({f"{UNIFIED}status": "allowed_warning", f"{UNIFIED}5h-reset": "1792567740"}, None),
        (
            {
                f"{UNIFIED}status": "rejected",
                f"{UNIFIED}5h-status": "rejected",
                f"{UNIFIED}5h-reset": "1792567740",
                f"{UNIFIED}7d-status": "allowed",
                f"{UNIFIED}7d-reset": "1792999999",
                f"{UNIFIED}reset": "1792999999",
            },
            60.0,
        ),
        (
            {
                f"{UNIFIED}5h-status": "rejected",
                f"{UNIFIED}5h-reset": "1792567740",
                f"{UNIFIED}7d_opus-status": "rejected",
                f"{UNIFIED}7d_opus-reset": "1792567780",
            },
            100.0,  # until both are open
        ),
        ({f"{UNIFIED}overage-status": "rejected", f"{UNIFIED}overage-reset": "1792567740"}, None),
        ({f"{UNIFIED}5h-status": "rejected"}, None),
        ({f"{UNIFIED}reset": "1792567740", "retry-after": "7"}, 7.0),
        ({"x-codex-primary-used-percent": "100", "x-codex-primary-reset-after-seconds": "600"}, 600.0),
        ({"x-codex-primary-used-percent": "100.0", "x-codex-primary-reset-at": "1792567740"}, 60.0),
        ({"x-codex-primary-used-percent": "99", "x-codex-primary-reset-after-seconds": "600"}, None),
        ({"x-codex-primary-used-percent": "much", "x-codex-primary-reset-after-seconds": "600"}, None),
        ({"x-codex-bengalfox-primary-used-percent": "100", "x-codex-bengalfox-primary-reset-at": "1792567740"}, 60.0),
        ({"x-usage-ratelimit-session": "ent=50&rem=0&rst=2026-10-21T07%3A29%3A00Z"}, 60.0),
        ({"x-usage-ratelimit-weekly": "rem=5.7&rst=2026-10-21T07%3A29%3A00Z"}, None),
        ({"x-quota-snapshot-premium_interactions": "ent=300&ov=0.0&rem=0.0&rst=2026-10-21T07:29:00Z"}, 60.0),
        ({"x-quota-snapshot-chat": "rem=0"}, None),
        ({"ratelimit": '"default";r=0;t=30'}, 30.0),
        ({"ratelimit": '"default";r=3;t=30'}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1792567740000"}, 60.0),  # milliseconds
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "nan"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, None),
    ],
)
def test_plan_windows(headers: dict[str, str], seconds: float | None) -> None:
    """The reset of a spent window of Anthropic, Codex, Copilot or the RateLimit field counts; that of an open one does not."""
    assert wait_in_headers(headers, NOW) == (None if seconds is None else pytest.approx(seconds))
    failure = classify({"status": 429, "headers": headers}, NOW)
    assert failure.retry_after == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ('{"retryDelay": "1h2m3s"}', 3_723.0),
        ('{"quotaResetDelay": "539.477544ms"}', 0.539477544),
        ('{"resetsInSeconds": 90}', 90.0),
        ("429 quota exceeded. retry_delay {\n  seconds: 34\n}\n", 34.0),
        ("quota exceeded [retrying in ~1 week attempt #1]", 604_800.0),
        ("Free usage exceeded, subscribe to Go [retrying in 6h16m - attempt #1]", 22_560.0),
        ("Connection error. Retrying in 1 seconds… (attempt 1/10)", None),  # a client's own backoff
        ("rate limit: retrying in a moment", None),
        ("或请等待 70 seconds，然后重试。", 70.0),
        ("try again in 5 days 22 hours 11\nminutes.", 511_860.0),
        ('{"retry_delay": {"seconds": 5}}', None),
    ],
)
def test_more_durations(text: str, seconds: float | None) -> None:
    """Durations in fields, in Google's protobuf text, over a line break, and announced by a client for a limit."""
    assert wait_in_text(text) == (None if seconds is None else pytest.approx(seconds))
