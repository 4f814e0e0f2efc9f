"""The two loops: they do what the step says and tell it what came of it. No rule of recovery is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.engine import interrupt
from rung.engine.step import Attempt, Call, Raised, Reply, Returned, Wait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rung.engine.ports import Clock
    from rung.engine.step import Steps


def drive(steps: Steps, attempt: Callable[..., Any], clock: Clock) -> None:
    """Carry a recovery through, blocking.

    A reply is never kept in a variable: an error's traceback holds this frame, and that would be a cycle.
    """
    try:
        move = next(steps)
        while True:
            if isinstance(move, Attempt):
                move = steps.send(_result(interrupt.limited, attempt, (move.request,), move.seconds))
            elif isinstance(move, Wait):
                clock.sleep(move.seconds)
                move = steps.send(Returned(None))
            else:
                move = steps.send(_result(_done, move.function, *move.arguments))
    except StopIteration:
        return
    except BaseException:
        steps.close()
        raise


async def adrive(steps: Steps, attempt: Callable[..., Any], clock: Clock) -> None:
    """Carry a recovery through, awaiting."""
    from rung.engine import timer

    try:
        move = next(steps)
        while True:
            if isinstance(move, Attempt):
                move = steps.send(await _aresult(timer.limited(_started(attempt, move), move.seconds)))
            elif isinstance(move, Wait):
                await clock.asleep(move.seconds)
                move = steps.send(Returned(None))
            else:
                move = steps.send(await _aresult(_called(move)))
    except StopIteration:
        return
    except BaseException:
        steps.close()
        raise


def _done(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a port returns; a future is waited for, as the other loop awaits it."""
    value = function(*arguments)
    return value.result() if hasattr(value, "add_done_callback") else value


def _result(function: Callable[..., Any], *arguments: Any) -> Reply:
    try:
        return Returned(function(*arguments))
    except Exception as error:  # the one place where an attempt's failure becomes a value
        return Raised(error)


async def _aresult(work: Awaitable[Any]) -> Reply:
    try:
        return Returned(await work)
    except Exception as error:  # the same, awaited
        return Raised(error)


async def _started(attempt: Callable[..., Any], move: Attempt) -> Any:
    value = attempt(move.request)
    return await value if hasattr(value, "__await__") else value


async def _called(move: Call) -> Any:
    value = move.function(*move.arguments)
    return await value if hasattr(value, "__await__") else value
