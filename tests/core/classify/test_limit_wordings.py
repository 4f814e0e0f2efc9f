"""The reset that real messages about plan limits name is read right."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from rung.core.classify.classifier import classify
from rung.core.domain.failures import Kind
from tests.core.classify.limit_wordings import CONFIRMING, FRESH, HELD_OUT, NOT_READ, SECOND, TUNED, Wording

WORDINGS = (*TUNED, *HELD_OUT, *CONFIRMING, *FRESH, *SECOND)
LIMITS = {Kind.RATE_LIMIT, Kind.QUOTA_EXHAUSTED}


def read(wording: Wording) -> tuple[Kind, float | None, float | None]:
    """What the classifier says about a message, and the expected wait."""
    zone = ZoneInfo(wording.zone)
    now = datetime.fromisoformat(wording.at).replace(tzinfo=zone).timestamp()
    error = {"message": wording.text, "headers": wording.headers, "status": 429 if wording.headers else None}
    failure = classify(error, now, zone)
    if wording.reset is None:
        return failure.kind, failure.retry_after, wording.seconds
    reset = datetime.fromisoformat(wording.reset).replace(tzinfo=zone).timestamp()
    return failure.kind, failure.retry_after, reset - now


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.source)
def test_a_real_message(wording: Wording) -> None:
    """The message is a limit, and its reset is the one that it names; a known gap is not read, rather than wrong."""
    kind, wait, expected = read(wording)
    assert kind in LIMITS
    if wording.source in NOT_READ:
        assert wait is None
    else:
        assert wait == (None if expected is None else pytest.approx(expected, abs=1.0))


def test_the_goal() -> None:
    """At least 95 % of the messages are read right."""
    assert len(NOT_READ) <= 0.05 * len(WORDINGS)
