"""Errors of attempts as errors of a durable engine that retries by itself: classified here, retried there."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from rung.core.classify.classifier import classify
from rung.core.classify.durations import plausible
from rung.core.domain.errors import AttemptError
from rung.engine.local_zone import local_zone
from rung.engine.ports.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.domain.failures import Failure


def failure_of(error: object) -> Failure:
    """Classify an error here and now, so that a time at which a limit reopens becomes a wait."""
    if not isinstance(error, Exception):
        name = getattr(error, "__qualname__", None) or type(error).__name__
        raise TypeError(f"error: must be an instance of Exception, not {name}; cancellation must propagate")
    return classify(error, SYSTEM_CLOCK.now(), local_zone())


def delay_of(failure: Failure) -> timedelta | None:
    """Return the delay that the failure names; None if it names none, or one of more than a year."""
    seconds = plausible(failure.retry_after)
    return None if seconds is None else timedelta(seconds=seconds)


def plain_error(failure: Failure) -> AttemptError:
    """Return an error that no engine knows, and that each retries with its own backoff."""
    error = AttemptError.of(failure.evidence)
    error.args = (failure.headline(),)
    return error


class RaisedAs:
    """Context manager that raises an error as another one. Cancellation and other exceptions of the engine propagate.

    It is no decorator: around a coroutine function, a decorator would end before the coroutine starts.
    """

    def __init__(self, convert: Callable[[Exception], Exception]) -> None:
        self._convert = convert

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception):
            converted = self._convert(error)
            if converted is not error:
                raise converted from error
