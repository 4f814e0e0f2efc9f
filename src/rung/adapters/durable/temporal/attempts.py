"""Attempts of a recovery as activities of Temporal."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from temporalio import activity

from rung.core.domain.event_codec import record_from_json
from rung.core.domain.request import Request
from rung.engine.durable.step_reports import StepReports
from rung.engine.durable.workflow import attempt_result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

RESULT: Final = "rung.attempt"  # key of an attempt's result, or of its reports so far, in what its activity sends
HEARTBEAT_TIMEOUT: Final = timedelta(seconds=30)
GRACE: Final = timedelta(seconds=10)  # an attempt ends by its own time limit before Temporal gives its activity up


def attempt_activity(function: Callable[[Request], Any], *, name: str | None = None) -> Callable[..., Any]:
    """Turn a function of a request into an activity for `recover`: its failure is a value, and it heartbeats.

    A plain function runs in a thread. The value must be one that the client's data converter can encode.
    """

    @activity.defn(name=name or function.__name__)
    async def attempt(request: dict[str, Any]) -> dict[str, Any]:
        info, reports = activity.info(), StepReports()
        limit = None if info.start_to_close_timeout is None else info.start_to_close_timeout - GRACE
        seconds = None if limit is None or limit <= timedelta() else limit.total_seconds()
        async with _heartbeats(info.heartbeat_timeout, reports):
            given = record_from_json(Request, request)
            return {RESULT: await attempt_result(function, given, seconds=seconds, reports=reports)}

    return attempt


def is_attempt_activity(function: object) -> bool:
    """Return whether `attempt_activity` made this activity."""
    return getattr(function, "__module__", "") == __name__


@asynccontextmanager
async def _heartbeats(expected: timedelta | None, reports: StepReports) -> AsyncIterator[None]:
    """Heartbeat while the attempt runs, with what it reported so far: it counts even if the worker dies."""
    if expected is None:
        yield
        return

    async def beat() -> None:
        while True:
            activity.heartbeat({RESULT: reports.to_json()})
            await asyncio.sleep(expected.total_seconds() / 3)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


def sent_by_attempt(value: object) -> dict[str, Any] | None:
    """Return the result or the reports in what an activity sent; None if no `attempt_activity` sent it."""
    return value[RESULT] if isinstance(value, dict) and value.keys() == {RESULT} else None
