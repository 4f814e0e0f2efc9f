"""Errors as errors of Restate, Inngest and Hatchet: one table over the classes of their SDKs."""

from __future__ import annotations

import asyncio
import traceback
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import hatchet_sdk
import inngest
import pytest
import restate
from restate.exceptions import RetryableError, SuspendedException

import rung
from rung.adapters.durable.hatchet import as_hatchet_error, hatchet_errors
from rung.adapters.durable.inngest import as_inngest_error, inngest_errors
from rung.adapters.durable.restate import as_restate_error, restate_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.engine.durable.raised_as import RaisedAs

SECRET = "sk-ant-api03-" + "q1W2e3R4" * 6


class Engine(NamedTuple):
    """What an engine's adapter must return."""

    convert: Callable[[Exception], Exception]
    errors: Callable[[], RaisedAs]
    terminal: type[Exception]
    delayed: type[Exception]
    repeated: type[Exception]
    delay: Callable[[Any], timedelta | None]
    own: tuple[Exception, ...]


ENGINES = {
    "restate": Engine(
        as_restate_error,
        restate_errors,
        restate.TerminalError,
        RetryableError,
        RetryableError,
        lambda error: error.retry_after,
        (restate.TerminalError("no"), RetryableError("later")),
    ),
    "inngest": Engine(
        as_inngest_error,
        inngest_errors,
        inngest.NonRetriableError,
        inngest.RetryAfterError,
        rung.AttemptError,
        lambda error: error.retry_after - datetime.now(),  # noqa: DTZ005  # as Inngest computes it
        (inngest.NonRetriableError("no"), inngest.RetryAfterError("later", 1), inngest.StepError("m", "n", None)),
    ),
    "hatchet": Engine(
        as_hatchet_error,
        hatchet_errors,
        hatchet_sdk.NonRetryableException,
        hatchet_sdk.RetryAfterException,
        rung.AttemptError,
        lambda error: error.after,
        (hatchet_sdk.NonRetryableException("no"), hatchet_sdk.RetryAfterException("later", after=timedelta(1))),
    ),
}
QUOTA = {"status": 429, "code": "insufficient_quota"}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (rung.AttemptError("You exceeded your current quota", **QUOTA), "quota_exhausted"),
        (rung.AttemptError("You exceeded your current quota", retry_after=60, **QUOTA), "quota_exhausted"),
        (rung.AttemptError("invalid x-api-key", status=401), "auth_error"),
        (RuntimeError("a bug"), "unknown"),
    ],
)
def test_an_error_that_no_repetition_fixes_is_terminal(engine: Engine, error: Exception, kind: str) -> None:
    """The engine does not retry a quota, a wrong key or a bug; the message starts with the kind."""
    converted = engine.convert(error)
    assert type(converted) is engine.terminal
    assert str(converted).startswith(f"{kind}: ")
    assert converted.__cause__ is error


@pytest.mark.parametrize(
    "error", [rung.AttemptError("Overloaded", status=529), ConnectionResetError("reset"), TimeoutError("slow")]
)
def test_a_passing_error_is_left_to_the_engines_backoff(engine: Engine, error: Exception) -> None:
    """A failure that may be repeated and names no delay is retried as the engine is configured."""
    converted = engine.convert(error)
    assert type(converted) is engine.repeated
    assert str(converted).startswith(rung.classify(error).kind)
    assert getattr(converted, "retry_after", None) is None
    assert converted.__cause__ is error
    assert str(engine.convert(converted)) == str(converted)


def test_a_delay_is_passed_on(engine: Engine) -> None:
    """The engine waits as long as the provider asks, in seconds or until a date."""
    seconds = engine.convert(rung.AttemptError("slow down", status=429, headers={"retry-after": "7200"}))
    assert type(seconds) is engine.delayed
    delay = engine.delay(seconds)
    assert delay is not None
    assert timedelta(hours=1) < delay <= timedelta(hours=2)
    date = datetime.now(UTC) + timedelta(days=2)
    header = {"retry-after": date.strftime("%a, %d %b %Y %H:%M:%S GMT")}
    delay = engine.delay(engine.convert(rung.AttemptError("slow down", status=429, headers=header)))
    assert delay is not None
    assert timedelta(days=1) < delay <= timedelta(days=2)


def test_an_absurd_delay_is_none(engine: Engine) -> None:
    """A delay that no engine can represent leaves the failure to the engine's backoff."""
    converted = engine.convert(rung.AttemptError("slow down", status=429, retry_after=1e30))
    assert type(converted) is engine.repeated
    assert getattr(converted, "retry_after", None) is None


@pytest.mark.parametrize("status", [401, 429, 529])
def test_secrets_are_not_in_the_message(engine: Engine, status: int) -> None:
    """The message is redacted, whatever becomes of the error."""
    converted = engine.convert(rung.AttemptError(f"key {SECRET} failed", status=status, retry_after=status % 2 or None))
    assert SECRET not in str(converted)
    assert SECRET not in repr(converted)


def test_the_engines_own_errors_pass(engine: Engine) -> None:
    """What the engine's SDK or the user raised for the engine stays what it is, and keeps its traceback."""
    for error in engine.own:
        assert engine.convert(error) is error
        with pytest.raises(type(error)) as raised, engine.errors():
            raise error
        assert raised.value is error
        assert error.__cause__ is None


def test_the_context_manager_converts(engine: Engine) -> None:
    """`with …_errors():` raises the engine's error, and passes a result through."""
    with pytest.raises(engine.terminal) as raised, engine.errors():
        raise KeyError("x")
    assert isinstance(raised.value.__cause__, KeyError)
    assert "KeyError" in "".join(traceback.format_exception(raised.value))
    with engine.errors():
        result = 1
    assert result == 1


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), SuspendedException()])
def test_cancellation_and_suspension_pass(engine: Engine, error: BaseException) -> None:
    """What is no Exception is not converted: the engine stops a handler with it."""
    with pytest.raises(type(error)), engine.errors():
        raise error
    with pytest.raises(TypeError, match="cancellation must propagate"):
        engine.convert(error)  # type: ignore[arg-type]  # misuse


def test_a_wrapped_suspension_of_restate_passes() -> None:
    """A framework that wraps Restate's suspension in an error of its own does not end the invocation."""
    error = RuntimeError("tool failed")
    error.__cause__ = SuspendedException()
    assert as_restate_error(error) is error


def test_a_terminal_error_of_restate_names_the_kind() -> None:
    """The kind is in the metadata, which Restate passes on to the caller."""
    error = as_restate_error(rung.AttemptError("no", status=401))
    assert isinstance(error, restate.TerminalError)
    assert error.metadata == {"rung.kind": "auth_error"}


@pytest.mark.parametrize(("misuse", "name"), [("text", "str"), (ValueError, "ValueError"), (None, "NoneType")])
def test_misuse_is_clear(engine: Engine, misuse: Any, name: str) -> None:
    """Anything but an exception is a TypeError that names it; the context manager is no decorator."""
    with pytest.raises(TypeError, match=f"must be an instance of Exception, not {name}"):
        engine.convert(misuse)
    with pytest.raises(TypeError, match="not callable"):
        engine.errors()(print)  # type: ignore[operator]  # misuse
