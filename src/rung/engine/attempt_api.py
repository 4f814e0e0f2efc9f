"""Functions to call from inside an attempt: report its cost, its finished steps and its side effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rung.core.classify.evidence import clip
from rung.core.classify.redaction import redacted
from rung.core.domain import events as ev
from rung.core.domain.errors import ConfigError, is_number
from rung.engine.loop.run import CURRENT
from rung.engine.ports.clock import SYSTEM_CLOCK
from rung.engine.timeouts.attempt_reports import listeners

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_STEP_CHARS: Final = 500


def report_step(step: str) -> None:
    """Report a finished part of the work. A partial outcome lists the finished parts.

    Call it in an attempt. Outside of one it has no effect.

    Args:
        step: Description of the finished part, at most 500 characters. Secrets are removed.

    Raises:
        ConfigError: The step is not a string.

    Example:
        >>> import rung
        >>> def attempt(request: rung.Request) -> str:
        ...     rung.report_step("read the sources")
        ...     return "done"
        >>> rung.recover_sync(attempt, "go").steps
        ('read the sources',)
    """
    if not isinstance(step, str):
        raise ConfigError("step", step, "a string")
    step = redacted(clip(step, MAX_STEP_CHARS))  # it reaches contracts, reports and prompts
    run, now = CURRENT.get(), SYSTEM_CLOCK.now()
    if run is not None:
        run.append(ev.StepCompleted(run.clock.now(), step))
        run.record_report(step=step)
        return
    buffer = listeners()[0]
    buffer.last_report_at = now
    buffer.steps.append((now, step))


def report_cost(dollars: float) -> None:
    """Add to the cost of the running attempt, in US dollars.

    Args:
        dollars: US dollars, 0 or more.

    Raises:
        ConfigError: It is not a finite number, 0 or more.
    """
    if not is_number(dollars):
        raise ConfigError("dollars", dollars, "a finite number of US dollars, 0 or more")
    run = CURRENT.get()
    if run is not None:
        run.attempt_dollars += dollars
        run.note_cost()
        run.record_report(dollars=float(dollars))
        return
    cost = (SYSTEM_CLOCK.now(), float(dollars))
    for buffer in listeners():
        buffer.add_cost(cost)


def mark_side_effect() -> None:
    """Mark the running attempt as having visible side effects: it is not repeated unchanged.

    A task or thread started by the attempt reports to it if it has the attempt's context. Tasks and
    `asyncio.to_thread` inherit the context; pass it to another thread with `contextvars.copy_context().run`. A
    report from a thread without the context counts for the blocking calls that run in the main thread.
    """
    run = CURRENT.get()
    if run is not None:
        run.note_progress()
    while run is not None:
        run.has_visible_effects = True
        run = run.parent
    now = SYSTEM_CLOCK.now()
    for buffer in listeners():
        buffer.last_report_at = buffer.side_effect_at = now


def report_unread_prompt() -> None:
    """Report that the running attempt has read nothing of its prompt: it would not read another one either."""
    run = CURRENT.get()
    if run is not None:
        run.prompt_unread = True
        run.record_report(prompt_unread=True)


def report_progress() -> None:
    """Report that the running attempt is at work: it is not stalled, however long it takes."""
    run = CURRENT.get()
    if run is not None:
        run.note_progress()


def progress_reporter() -> Callable[[], None]:
    """Return `report_progress` for the running attempt, to be called from a thread without its context."""
    run = CURRENT.get()
    return _ignore if run is None else run.note_progress


def _ignore() -> None:
    return
