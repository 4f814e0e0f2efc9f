"""Restate: an error as Restate's own, terminal or retryable after a delay."""

from __future__ import annotations

from restate.exceptions import RetryableError, TerminalError, is_internal_exception

from rung.engine.durable.raised_as import RaisedAs, delay_of, failure_of


def as_restate_error(error: Exception) -> Exception:
    """Return the error as a `TerminalError` or, if the same call may be repeated, as a `RetryableError`.

    A `RetryableError` carries the delay that the failure names; without one, Restate's retry policy applies. A
    `TerminalError` names the kind in its metadata (`rung.kind`). Restate's own errors are returned unchanged.
    """
    failure = failure_of(error)
    if _is_from_restate(error):
        return error
    converted: Exception
    if failure.retryable:
        converted = RetryableError(failure.headline(), retry_after=delay_of(failure))
    else:
        converted = TerminalError(failure.headline(), metadata={"rung.kind": failure.kind.value})
    converted.__cause__ = error
    return converted


def restate_errors() -> RaisedAs:
    """Return a context manager for the body of a handler or of a `run` action: its errors become Restate's."""
    return RaisedAs(as_restate_error)


def _is_from_restate(error: BaseException | None) -> bool:
    """Return whether the error or a cause is Restate's own, which its SDK looks for: a suspension must pass."""
    while error is not None:
        if isinstance(error, TerminalError | RetryableError) or is_internal_exception(error):
            return True
        error = error.__cause__
    return False
