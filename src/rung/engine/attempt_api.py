"""What can be said from inside an attempt: what it costs, what of it is done, and that it can be seen."""

from __future__ import annotations

from rung.core.classify.evidence import clip
from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError, is_number
from rung.engine.loop.run import CURRENT, SYSTEM_CLOCK
from rung.engine.timeouts.attempt_reports import listeners


def report_step(step: str) -> None:
    """Report a finished part of the work from inside an attempt: kept when it ends partial."""
    if not isinstance(step, str):
        raise ConfigError("step", step, "a text")
    run, now = CURRENT.get(), SYSTEM_CLOCK.now()
    if run is not None:
        run.append(ev.StepCompleted(run.clock.now(), clip(step, 500)))
        return
    here = listeners()[0]
    here.at = now
    here.steps.append((now, clip(step, 500)))


def report_cost(dollars: float) -> None:
    """Report what the running attempt has cost so far, in US dollars; adds up."""
    if not is_number(dollars):
        raise ConfigError("dollars", dollars, "a finite number of US dollars, 0 or more")
    run = CURRENT.get()
    if run is not None:
        run.spent += dollars
        return
    said = (SYSTEM_CLOCK.now(), float(dollars))
    for reports in listeners():
        reports.spent(said)


def mark_side_effect() -> None:
    """Say from inside an attempt that its effects can be seen: it will not be replayed as it was.

    Tasks and threads that the attempt started are heard, too, where they have its context: tasks and
    `asyncio.to_thread` do; another thread is given it with `contextvars.copy_context().run`. One without it
    is heard by the blocking calls that are at work in the main thread.
    """
    run = CURRENT.get()
    while run is not None:
        run.visible = True
        run = run.parent
    now = SYSTEM_CLOCK.now()
    for reports in listeners():
        reports.at = reports.touched = now
