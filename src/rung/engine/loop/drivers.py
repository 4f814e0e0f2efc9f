"""Blocking and async drivers of a recovery: they carry out the moves that its steps yield, and decide nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.engine.arguments import refuse_coroutine
from rung.engine.loop.moves import ATTEMPT, NOTHING, CallPort, Wait
from rung.engine.loop.process_state import ATTEMPTS_IN_FLIGHT
from rung.engine.timeouts import sync_timeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.engine.loop.moves import Reply, Steps
    from rung.engine.loop.run import RecoveryRun


def drive(run: RecoveryRun, steps: Steps, attempt: Callable[..., Any]) -> None:
    """Drive a recovery to its end, blocking.

    A reply is never stored in a variable: an error's traceback references this frame, which would be a cycle.
    """
    try:
        move = next(steps)
        while True:
            if move is ATTEMPT:
                move = steps.send(_attempted(run, attempt))
            elif isinstance(move, Wait):
                run.clock.sleep(move.seconds)
                move = steps.send(NOTHING)
            elif isinstance(move, CallPort):
                move = steps.send(_called(move))
    except StopIteration:
        return
    except BaseException:
        steps.close()
        raise


async def adrive(run: RecoveryRun, steps: Steps, attempt: Callable[..., Any]) -> None:
    """Drive a recovery to its end, awaiting."""
    try:
        move = next(steps)
        while True:
            if move is ATTEMPT:
                move = steps.send(await _aattempted(run, attempt))
            elif isinstance(move, Wait):
                await run.clock.asleep(move.seconds)
                move = steps.send(NOTHING)
            elif isinstance(move, CallPort):
                move = steps.send(await _acalled(move))
    except StopIteration:
        return
    except BaseException:
        steps.close()
        raise


def _attempted(run: RecoveryRun, attempt: Callable[..., Any]) -> Reply:
    ATTEMPTS_IN_FLIGHT[run] = run.breaker
    try:
        value = sync_timeout.call_with_timeout(attempt, (run.incident.request,), run.seconds, run.patience)
    except Exception as error:  # the failure of an attempt becomes a value here
        return None, error
    finally:
        ATTEMPTS_IN_FLIGHT.pop(run, None)
    refuse_coroutine(value, "attempt")
    return value, None


async def _aattempted(run: RecoveryRun, attempt: Callable[..., Any]) -> Reply:
    from rung.engine.timeouts.thread_timeout import acall_with_timeout

    ATTEMPTS_IN_FLIGHT[run] = run.breaker
    try:
        return await acall_with_timeout(attempt, (run.incident.request,), run.seconds, run.patience), None
    except Exception as error:  # becomes a value, as for an attempt
        return None, error
    finally:
        ATTEMPTS_IN_FLIGHT.pop(run, None)


def _called(move: CallPort) -> Reply:
    """Return the result of a port, blocking on a future."""
    try:
        return sync_timeout.call_with_timeout(_result, (move.function, move.arguments), move.seconds), None
    except Exception as error:  # becomes a value, as for an attempt
        return None, error


def _result(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    value = function(*arguments)
    refuse_coroutine(value, getattr(function, "__qualname__", "a port"))
    return value.result() if hasattr(value, "add_done_callback") else value


async def _acalled(move: CallPort) -> Reply:
    from rung.engine.timeouts.thread_timeout import acall_with_timeout

    try:
        if move.seconds is not None:
            return await acall_with_timeout(move.function, move.arguments, move.seconds), None
        value = move.function(*move.arguments)
        return await value if hasattr(value, "__await__") else value, None
    except Exception as error:  # becomes a value, as for an attempt
        return None, error
