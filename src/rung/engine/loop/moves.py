"""Moves of a recovery: the values that its steps yield to a driver, and the replies that the driver sends back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from rung.core.domain.errors import AttemptTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rung.engine.loop.run import RecoveryRun


class MakeAttempt:
    """Make an attempt with the run's request (`incident.request`) within its time limit (`run.seconds`)."""


class Wait(NamedTuple):
    """Wait for `seconds`."""

    seconds: float


class CallPort(NamedTuple):
    """Call a port, and await the result if it is awaitable. With `seconds` it is interrupted at this limit."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    seconds: float | None = None


ATTEMPT: Final = MakeAttempt()
Move: TypeAlias = MakeAttempt | Wait | CallPort
Reply: TypeAlias = tuple[Any, Exception | None]  # the value returned, or the exception raised
NOTHING: Final[Reply] = (None, None)
Steps: TypeAlias = "Generator[Move, Reply, None]"


def call_port(
    run: RecoveryRun, what: str, function: Callable[..., Any], *arguments: Any, seconds: float | None = None
) -> Generator[Move, Reply, Reply]:
    """Call a port whose errors must not end the recovery: an error is recorded and returned in the reply."""
    reply = yield CallPort(function, arguments, seconds)
    error = reply[1]
    if isinstance(error, AttemptTimeout) and seconds is not None:
        error = AttemptTimeout(error.seconds, left_behind=error.left_behind, what=what)
    if error is not None:
        run.record_crash(what, error)
    return reply
