"""The local zone follows the operating system, and failures of the engine are classified with it."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from rung.core.domain.events import AttemptFailed
from rung.core.domain.failures import Kind
from rung.core.policy.templates import preset
from rung.engine.external_loop import ExternalRecovery
from rung.engine.local_zone import local_zone
from rung.engine.recover import recover_sync
from rung.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rung.core.domain.request import Request

MESSAGE = "You've hit your limit · resets 3pm"


@pytest.fixture
def lisbon() -> Iterator[None]:
    """A machine in Lisbon."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Lisbon"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("lisbon")
def test_offsets() -> None:
    """Summer and winter have their own offsets, in both directions, and a name."""
    zone = local_zone()
    for month, hours in ((7, 1), (1, 0)):
        local = datetime(2026, month, 13, 14, tzinfo=zone)
        assert local.utcoffset() == timedelta(hours=hours)
        assert local.timestamp() == datetime(2026, month, 13, 14 - hours, tzinfo=UTC).timestamp()
        assert datetime.fromtimestamp(local.timestamp(), zone) == local
        assert local.tzname() in {"WEST", "WET"}
        assert local.dst() is None
    assert zone.utcoffset(None) is None
    assert zone.tzname(None) is None


@pytest.mark.usefixtures("lisbon")
def test_an_attempt_that_meets_a_plan_limit() -> None:
    """The failure of a run carries the seconds until the reset that a client printed in local time."""
    clock = FakeClock(datetime(2026, 7, 13, 13, tzinfo=UTC).timestamp())

    def attempt(_request: Request) -> None:
        raise ConnectionError(MESSAGE)

    outcome = recover_sync(attempt, "do it", policy="call", clock=clock)
    failure = next(event.failure for event in outcome.events if isinstance(event, AttemptFailed))
    assert (failure.kind, failure.retry_after) == (Kind.QUOTA_EXHAUSTED, 3_600.0)


@pytest.mark.usefixtures("lisbon")
def test_a_loop_of_somebody_else() -> None:
    """A failure that a framework reports carries the seconds until the reset, too."""
    recovery = ExternalRecovery(preset("call"), now=lambda: datetime(2026, 7, 13, 13, tzinfo=UTC).timestamp())
    recovery.failed(MESSAGE)
    assert recovery.incident.failure is not None
    assert recovery.incident.failure.retry_after == 3_600.0
