"""The Temporal plugin and the real development server: what activities raise, and what Temporal does about it."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from importlib.resources import files
from json import loads
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError

import rung
from rung.adapters.durable.temporal import failure_of
from rung.testing import HttpError
from tests.adapters.durable.temporal_rig import rig, until, waiting_activity
from tests.adapters.durable.temporal_workflows import Once, OncePolicy, Patient

if TYPE_CHECKING:
    from collections.abc import Callable

QUOTA = HttpError(
    429, "You exceeded your current quota, please check your plan and billing details.", code="insufficient_quota"
)


class Calls:
    """The activity `call`: raises what a function makes, and counts."""

    def __init__(self, make: Callable[[], BaseException]) -> None:
        self.make, self.count = make, 0

    @activity.defn
    async def call(self) -> None:
        self.count += 1
        raise self.make()


async def failed(address: str, calls: Calls, workflow: Any = Once, *arguments: Any) -> ApplicationError:
    """Return the error with which the activity of a workflow failed in the end."""
    async with rig(address, [calls.call]) as made:
        with pytest.raises(WorkflowFailureError) as raised:
            await made.run(workflow.run, *arguments)
    error = raised.value.cause.__cause__
    assert isinstance(error, ApplicationError)
    return error


def test_an_exhausted_quota_is_not_retried(temporal: str) -> None:
    """With the plugin the activity runs once, and its error has the kind and the failure."""
    calls = Calls(lambda: QUOTA)
    error = asyncio.run(failed(temporal, calls))
    assert (error.type, error.non_retryable, calls.count) == ("rung.quota_exhausted", True, 1)
    failure = failure_of(error)
    assert failure is not None
    assert (failure.kind, failure.evidence.status) == (rung.Kind.QUOTA_EXHAUSTED, 429)


def test_without_the_plugin_it_is_retried(temporal: str) -> None:
    """Temporal itself repeats the same error until somebody stops it."""
    calls = Calls(lambda: QUOTA)

    async def run() -> None:
        async with rig(temporal, [calls.call], plugins=[]) as made:
            handle = await made.start(Once.run)
            info = await waiting_activity(handle)
            assert not info.last_failure.application_failure_info.non_retryable
            await until(lambda: asyncio.sleep(0, calls.count > 1))
            await handle.terminate()

    asyncio.run(run())


@pytest.mark.parametrize("form", ["date", "seconds"])
def test_a_wait_of_the_provider_is_the_next_delay(temporal: str, form: str) -> None:
    """A Retry-After, as a date or in seconds, becomes the delay before Temporal's next attempt."""

    def busy() -> HttpError:
        then = datetime.now(UTC) + timedelta(hours=1)
        value = format_datetime(then, usegmt=True) if form == "date" else "3600"
        return HttpError(429, "slow down", {"retry-after": value})

    async def run() -> Any:
        async with rig(temporal, [Calls(busy).call]) as made:
            handle = await made.start(Once.run)
            info = await waiting_activity(handle)
            await handle.terminate()
            return info

    info = asyncio.run(run())
    error = info.last_failure.application_failure_info
    assert (error.type, error.non_retryable) == ("rung.rate_limit", False)
    assert 3_500 < error.next_retry_delay.seconds <= 3_600
    assert 3_500 < info.current_retry_interval.seconds <= 3_600


def test_the_output_contract_is_in_the_details(temporal: str) -> None:
    """The last detail holds an outcome of the documented schema, with the steps and costs of the attempt."""

    def fail() -> BaseException:
        rung.report_step("fetched")
        rung.report_cost(0.5)
        return QUOTA

    error = asyncio.run(failed(temporal, Calls(fail)))
    outcome = error.details[-1]["rung"]["outcome"]
    jsonschema.validate(outcome, loads((files("rung.schemas") / "outcome.json").read_text()))
    assert outcome["completedSteps"] == ["fetched"]
    assert (outcome["status"], outcome["attempts"], outcome["failedAt"]) == ("failed", 1, "call")
    assert (outcome["errorType"], outcome["dollars"]) == ("quota_exhausted", 0.5)


def wrapped(wrapper: ApplicationError, cause: BaseException | None) -> ApplicationError:
    wrapper.__cause__ = cause
    return wrapper


def test_what_an_activity_decided_stays(temporal: str) -> None:
    """An ApplicationError without a cause, or with a type of its own, keeps its type, its flag and its details."""
    for made in (
        ApplicationError("no", 7, type="Mine", non_retryable=True),
        ApplicationError("no", 7, non_retryable=True),
        wrapped(ApplicationError("no", 7, type="Mine", non_retryable=True), HttpError(529, "busy")),
    ):
        error = asyncio.run(failed(temporal, Calls(partial(wrapped, made, made.__cause__))))
        assert (error.type, error.non_retryable, list(error.details)) == (made.type, True, [7])


def test_an_explicit_delay_stays(temporal: str) -> None:
    """A user's own error that is retried keeps its delay, also where its cause names another."""
    mine = ApplicationError("later", type="Mine", next_retry_delay=timedelta(minutes=7))
    plugins = ApplicationError("later", type="HttpError", next_retry_delay=timedelta(minutes=7))
    busy = HttpError(429, "slow down", {"retry-after": "3600"})

    async def run(error: ApplicationError) -> Any:
        async with rig(temporal, [Calls(lambda: error).call]) as made:
            handle = await made.start(Once.run)
            info = await waiting_activity(handle)
            await handle.terminate()
            return info.last_failure.application_failure_info

    for error, name in ((mine, "Mine"), (wrapped(plugins, busy), "rung.rate_limit")):
        found = asyncio.run(run(error))
        assert (found.type, found.next_retry_delay.seconds) == (name, 420)


def test_a_provider_error_that_a_plugin_wrapped_is_classified_by_its_cause(temporal: str) -> None:
    """A wrapper that has the class of its cause as its type, or none, hides no quota; its details stay first."""
    for name in ("HttpError", None):
        error = asyncio.run(failed(temporal, Calls(partial(wrapped, ApplicationError("x", 7, type=name), QUOTA))))
        assert (error.type, error.non_retryable) == ("rung.quota_exhausted", True)
        assert error.details[0] == 7
        assert "rung" in error.details[1]


def test_a_retry_policy_that_names_the_class_holds(temporal: str) -> None:
    """`non_retryable_error_types` of the workflow matches the error's own class, as without the plugin."""
    calls = Calls(lambda: HttpError(529, "busy"))
    error = asyncio.run(failed(temporal, calls, OncePolicy, "HttpError"))
    assert (error.type, error.non_retryable, calls.count) == ("rung.overloaded", True, 1)


def test_an_unknown_error_is_left_to_the_retry_policy(temporal: str) -> None:
    """An error that no rule recognizes is retried as Temporal would."""

    async def run() -> Any:
        async with rig(temporal, [Calls(lambda: ValueError("odd")).call]) as made:
            handle = await made.start(Once.run)
            info = await waiting_activity(handle)
            await handle.terminate()
            return info.last_failure.application_failure_info

    found = asyncio.run(run())
    assert (found.type, found.non_retryable) == ("rung.unknown", False)


@pytest.mark.parametrize("in_thread", [False, True])
def test_cancellation_passes(temporal: str, in_thread: bool) -> None:
    """A cancelled workflow cancels its activity, in the event loop or in a thread, and nothing of it is classified."""
    seen: list[BaseException] = []
    begun = threading.Event()

    async def beat() -> None:
        begun.set()
        try:
            while True:
                activity.heartbeat()
                await asyncio.sleep(0.02)
        except BaseException as error:
            seen.append(error)
            raise

    def beat_in_thread() -> None:
        begun.set()
        try:
            while True:
                activity.heartbeat()
                time.sleep(0.02)
        except BaseException as error:
            seen.append(error)
            raise

    function: Callable[..., Any] = beat_in_thread if in_thread else beat
    call = activity.defn(name="call")(function)

    async def run() -> WorkflowFailureError:
        options: dict[str, Any] = {"max_heartbeat_throttle_interval": timedelta(milliseconds=50)}
        with ThreadPoolExecutor(1) as pool:
            async with rig(temporal, [call], activity_executor=pool, workflows=[Patient], **options) as made:
                handle = await made.start(Patient.run)
                await asyncio.to_thread(begun.wait)
                await handle.cancel()
                with pytest.raises(WorkflowFailureError) as raised:
                    await handle.result()
                return raised.value

    error = asyncio.run(run())
    assert isinstance(error.cause, CancelledError)
    assert failure_of(error) is None
    assert [type(one) for one in seen] == [CancelledError if in_thread else asyncio.CancelledError]
