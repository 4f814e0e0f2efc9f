"""A first repeat with a journal: what failed and what was decided is safe before the attempt is made again.

The run is a real one: the attempt can spend, report, and hold recoveries of its own. But most such calls go well now,
and for those the steps are few and always the same, so they are written out here. Whatever is less simple goes on
the long way from where it stands (`Rest`). Nothing about recovery is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core import events as ev
from rung.core.decide import seconds_left
from rung.engine import interrupt
from rung.engine.step import LOOK

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.failures import Failure
    from rung.engine.run import Run

SOON: Final = 0.25  # seconds: nobody gives an order in a shorter pause


class Rest(NamedTuple):
    """Where the long way takes over."""

    failure: Failure | None = None
    decision: ev.Decision | None = None
    wait: float = 0.0


def repeat(run: Run, attempt: Callable[..., Any]) -> Rest | None:
    """Write down, wait, attempt once more; None when it went well, and that is handed over."""
    kept, pause = _hand_over(run), _pause(run)
    if pause > 0:
        until = run.clock.now() + pause
        while not _ordered(run, pause) and (left := until - run.clock.now()) > 0:
            run.clock.sleep(min(left, LOOK))
        if run.order is not None:
            return Rest(wait=pause)
    seconds = _admitted(run)
    if isinstance(seconds, Rest):
        return seconds
    if kept is not None and not kept.done():
        try:
            kept.result()
        except Exception as error:  # not safe, but the work goes on
            run.crashed("journal", error)
    try:
        value = interrupt.limited(attempt, (run.incident.request,), seconds)
    except Exception as error:
        return _failed(run, error)
    run.succeeded(value)
    _hand_over_last(run)
    return None


async def arepeat(run: Run, attempt: Callable[..., Any]) -> Rest | None:
    """The same, awaiting."""
    from rung.engine import timer

    kept, pause = _hand_over(run), _pause(run)
    if pause > 0:
        until = run.clock.now() + pause
        while not _ordered(run, pause) and (left := until - run.clock.now()) > 0:
            await run.clock.asleep(min(left, LOOK))
        if run.order is not None:
            return Rest(wait=pause)
    seconds = _admitted(run)
    if isinstance(seconds, Rest):
        return seconds
    if kept is not None and not kept.done():
        try:
            await kept
        except Exception as error:  # as above
            run.crashed("journal", error)
    try:
        value = await timer.limited(attempt(run.incident.request), seconds)
    except Exception as error:
        return _failed(run, error)
    run.succeeded(value)
    _hand_over_last(run)
    return None


def _hand_over(run: Run) -> Any:
    """Give the journal what is new; what it returns may have to be waited for."""
    first, journal = run.published, run.journal
    assert journal is not None  # noqa: S101  # such calls come here
    try:
        return journal.append(run.incident.id, first, run.unpublished())
    except Exception as error:  # an extension must not break the loop
        run.crashed("journal", error)
        return None


def _pause(run: Run) -> float:
    decision = run.incident.decision
    return decision.wait if isinstance(decision, ev.Repeat) else 0.0


def _ordered(run: Run, pause: float) -> bool:
    """Has a person said something?"""
    look = getattr(run.journal, "order", None)
    if look is not None and pause > SOON:
        try:
            run.order = look(run.incident.id)
        except Exception as error:  # as above
            run.crashed("orders", error)
    return run.order is not None


def _admitted(run: Run) -> float | Rest | None:
    """The seconds an attempt may take; or there is none to be made: the circuit is open, or there is no time left."""
    error: Exception | None = run.admit()
    if error is None:
        seconds = seconds_left(run.incident, run.policy, run.began)
        if seconds is None or seconds > 0:
            return seconds
        error = run.too_late()
    return _failed(run, error)


def _failed(run: Run, error: Exception) -> Rest:
    failure = run.failed(error)
    return Rest(failure, run.decide(failure))


def _hand_over_last(run: Run) -> None:
    """Give the journal how it ended; one that knows how takes its time with that."""
    last = getattr(run.journal, "append_last", None)
    if last is None:
        _hand_over(run)
        return
    first = run.published
    try:
        last(run.incident.id, first, run.unpublished())
    except Exception as error:  # as above
        run.crashed("journal", error)
