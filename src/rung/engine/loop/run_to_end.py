"""Drives a run to its end, and what follows it: the last event is flushed, a blocked run appends its report."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from rung.core.domain.events import Status
from rung.core.domain.outcome import report_text
from rung.engine.loop.attempt_hooks import aafter_stop, after_stop, use_hooks
from rung.engine.loop.drivers import adrive, drive
from rung.engine.loop.recovery_steps import recovery
from rung.engine.loop.run import CURRENT, RecoveryRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.events import Decision
    from rung.core.domain.failures import Failure
    from rung.core.domain.outcome import Outcome
    from rung.core.policy.policy import Policy

LAST_EVENT_TIMEOUT_SECONDS: Final = 2.0


def run_to_end(
    run: RecoveryRun,
    attempt: Callable[..., Any],
    failure: Failure | None = None,
    decision: Decision | None = None,
    wait: float = 0.0,
) -> None:
    """Drive a run to its end, from its start or from a failure and the decision about it."""
    outer = CURRENT.get()
    use_hooks(run, attempt)
    try:
        CURRENT.set(run)  # inside the try: the timeout of an outer attempt can strike at any call
        drive(run, recovery(run, failure, decision, wait), attempt)
    except BaseException as error:
        run.record_cancelled()  # does nothing if the steps have already recorded it
        _flush_last_event(run)
        attach_outcome(error, run)
        after_stop(run, error)
        raise
    finally:
        CURRENT.set(outer)


async def arun_to_end(
    run: RecoveryRun,
    attempt: Callable[..., Any],
    failure: Failure | None = None,
    decision: Decision | None = None,
    wait: float = 0.0,
) -> None:
    """Drive a run to its end, awaiting."""
    run.is_async = is_driven = True
    outer = CURRENT.get()
    use_hooks(run, attempt)
    try:
        CURRENT.set(run)
        await adrive(run, recovery(run, failure, decision, wait), attempt)
    except GeneratorExit:  # the coroutine was dropped: nothing can be awaited, and the context may be another one
        is_driven = False
        run.record_cancelled()
        if hasattr(run.last_append, "close"):
            run.last_append.close()
        raise
    except BaseException as error:
        run.record_cancelled()
        await _aflush_last_event(run)
        attach_outcome(error, run)
        await aafter_stop(run, error)
        raise
    finally:
        if is_driven:
            CURRENT.set(outer)


def attach_outcome(error: BaseException, run: RecoveryRun) -> None:
    """Give the outcome so far to whoever catches the error that stopped the run."""
    with suppress(Exception):  # a third-party class may refuse
        error.__dict__["__rung_outcome__"] = run.outcome()


def finish_run(run: RecoveryRun) -> Outcome[Any]:
    """Return the outcome of a run. A blocked run also appends to the policy's report file."""
    outcome = run.outcome()
    if run.policy.budget.dollars is not None:
        from rung.engine.loop.recovery_log import warn_unheard_costs

        warn_unheard_costs(run)
    run.error = None  # its traceback references the frames that reference the run: a reference cycle
    if outcome.status is Status.BLOCKED and run.policy.report:
        try:
            _append_report(run.policy, outcome)
        except OSError as error:
            run.record_crash("report", error)
    return outcome


def _append_report(policy: Policy, outcome: Outcome[Any]) -> None:
    """Append a report of the attempts, the failures and the options to the policy's file.

    A link below the working directory is not followed: a cloned repository could lead the report to any of the user's files.
    """
    import os.path
    from pathlib import Path

    from rung.core.text.printable import printable

    target = Path(policy.report)
    expected = os.path.normpath(Path.cwd().resolve() / target)
    if not target.is_absolute() and os.path.realpath(expected) != expected:
        raise OSError(f"{target}: not written, because a link leads to another place")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("a", encoding="utf-8") as file:
        file.write(printable(report_text(outcome, policy.ladder)))


def _flush_last_event(run: RecoveryRun) -> None:
    """Wait briefly until the last event is persisted. The caller is being stopped, so the wait is bounded."""
    append = run.last_append
    if not hasattr(append, "add_done_callback"):
        return
    try:
        error = append.exception(LAST_EVENT_TIMEOUT_SECONDS)
    except Exception as late:  # timed out, or cancelled
        error = late
    _record_journal_error(run, error)


async def _aflush_last_event(run: RecoveryRun) -> None:
    """Await the persistence of the last event, bounded. A second cancellation ends the wait, not the write."""
    import asyncio

    append = run.last_append
    if not hasattr(append, "__await__"):
        return
    writing = asyncio.ensure_future(append)
    await asyncio.wait({writing}, timeout=LAST_EVENT_TIMEOUT_SECONDS)
    finished = writing.done() and not writing.cancelled()
    _record_journal_error(
        run,
        writing.exception() if finished else TimeoutError(f"append timed out after {LAST_EVENT_TIMEOUT_SECONDS:g} s"),
    )


def _record_journal_error(run: RecoveryRun, error: BaseException | None) -> None:
    if isinstance(error, Exception):
        run.record_crash("journal", error)
