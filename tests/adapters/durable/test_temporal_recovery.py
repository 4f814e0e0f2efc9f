"""Recovery inside workflows on the real Temporal server: attempts are activities, waits are timers, answers are signals."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import CancelledError
from temporalio.worker import Replayer

import rung
from rung.adapters.durable.temporal import RungPlugin, attempt_activity
from rung.testing import HttpError, Script
from tests.adapters.durable.temporal_replays import EVENTS
from tests.adapters.durable.temporal_rig import WORKFLOWS, Rig, rig, until
from tests.adapters.durable.temporal_workflows import Misused, Recovering
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from temporalio.client import WorkflowHandle

BUSY = HttpError(429, "slow down", {"retry-after": "1"})
QUOTA = HttpError(429, "You exceeded your current quota.", code="insufficient_quota")


def scripted(*items: Any) -> tuple[Script, Any]:
    script = Script(*items)
    return script, attempt_activity(script.attempt, name="attempt")


async def recovered(made: Rig, options: dict[str, Any], name: str = "attempt") -> tuple[dict[str, Any], Any]:
    """Run a recovery to its end. Return its outcome and its history, which a replay must accept."""
    handle = await made.start(Recovering.run, name, options)
    outcome = await handle.result()
    return outcome, await replayed(handle)


async def replayed(handle: WorkflowHandle[Any, Any]) -> Any:
    """Return the history of a workflow, after a replay that recorded the same events, times and waits included."""
    history = await handle.fetch_history()
    EVENTS.pop(handle.id, None)
    await Replayer(workflows=WORKFLOWS, plugins=[RungPlugin()]).replay_workflow(history)
    assert EVENTS[handle.id] == (await handle.result())["events"]
    return history


def timers(history: Any) -> list[float]:
    """Return the seconds of the timers in a history."""
    started = [event for event in history.events if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED]
    times = [event.timer_started_event_attributes.start_to_fire_timeout for event in started]
    return [time.seconds + time.nanos / 1e9 for time in times]


def test_a_rate_limit_is_waited_out_by_a_timer(temporal: str) -> None:
    """The server's wait is a timer of the workflow, and the second attempt another activity."""
    script, attempt = scripted(BUSY, "five")

    async def run() -> tuple[dict[str, Any], Any]:
        async with rig(temporal, [attempt]) as made:
            return await recovered(made, {})

    outcome, history = asyncio.run(run())
    assert (outcome["status"], outcome["value"], outcome["attempts"]) == ("recovered", "five", 2)
    (wait,) = timers(history)
    assert 1.0 <= wait < 1.5
    assert len(script.requests) == 2


def test_a_ladder_ends_at_another_model(temporal: str) -> None:
    """A model that stays overloaded is left for the next one: a new activity with a changed request."""
    script, attempt = scripted(*[HttpError(529, "busy")] * 4, lambda request: f"by {request.model}")

    async def run() -> tuple[dict[str, Any], Any]:
        async with rig(temporal, [attempt]) as made:
            options = {"ladder": "call", "models": ["small", "large"], "model": "small", "idempotent": True}
            return await recovered(made, options)

    outcome, _ = asyncio.run(run())
    assert (outcome["status"], outcome["value"], outcome["model"]) == ("recovered", "by large", "large")
    assert [request.model for request in script.requests] == ["small"] * 4 + ["large"]


def test_a_plain_activity_takes_the_request_as_a_dict(temporal: str) -> None:
    """An ordinary activity that raises is attempted once per rung, and the failure that the plugin named is used."""
    given: list[dict[str, Any]] = []

    @activity.defn
    async def plain(request: dict[str, Any]) -> dict[str, Any]:
        given.append(request)
        if len(given) == 1:
            raise HttpError(500, "down")
        return {"prompt": request["prompt"]}

    async def run() -> tuple[dict[str, Any], Any]:
        async with rig(temporal, [plain]) as made:
            return await recovered(made, {}, "plain")

    outcome, _ = asyncio.run(run())
    assert (outcome["status"], outcome["value"]) == ("recovered", {"prompt": "count"})
    assert outcome["errorType"] == "server_error"
    assert len(given) == 2


def test_an_exhausted_quota_ends_the_recovery(temporal: str) -> None:
    """What cannot be repeated is attempted once, and the outcome says what a person should do."""
    script, attempt = scripted(QUOTA)

    async def run() -> tuple[dict[str, Any], Any]:
        async with rig(temporal, [attempt]) as made:
            return await recovered(made, {"ladder": "call"})

    outcome, _ = asyncio.run(run())
    assert (outcome["errorType"], outcome["completedSteps"], len(script.requests)) == ("quota_exhausted", [], 1)
    assert "credit" in outcome["recommendation"]


@pytest.mark.parametrize("by_id", [True, False])
def test_a_question_is_answered_by_a_signal(temporal: str, by_id: bool) -> None:
    """An open question can be queried; a signal that does not answer it is ignored, the next one decides."""
    _, attempt = scripted(rung.AttemptError("which one?", finding="strategic_ambiguity"))

    async def run() -> tuple[dict[str, Any], list[Any]]:
        async with rig(temporal, [attempt]) as made:
            handle = await made.start(Recovering.run, "attempt", {"ladder": "pipeline", "attended": True})
            await until(lambda: _attempted(handle))
            questions = await until(lambda: handle.query("rung.questions", result_type=list))
            await handle.signal("rung.answer", "no such option")
            await handle.signal("rung.answer", args=["stop", "no such question"])
            (question,) = await handle.query("rung.questions", result_type=list)
            option = question["options"][-1]["id"]
            await handle.signal("rung.answer", args=[option, question["id"]] if by_id else [option])
            outcome = await handle.result()
            await replayed(handle)
            return outcome, questions

    outcome, questions = asyncio.run(run())
    assert questions[0]["id"].endswith("/ask.1")
    assert not outcome["failureReason"].startswith("nobody answered")
    assert outcome["status"] in {"blocked", "partial", "failed"}


async def _attempted(handle: WorkflowHandle[Any, Any]) -> bool:
    """Whether the first attempt of a workflow has ended: from then on it has the query's handler."""
    history = await handle.fetch_history()
    return any(event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED for event in history.events)


def test_a_cancelled_workflow_is_cancelled(temporal: str) -> None:
    """Cancellation reaches the attempt and the caller; it is no outcome."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang(request: rung.Request) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def run() -> WorkflowFailureError:
        attempt = attempt_activity(hang, name="attempt")
        async with rig(temporal, [attempt], max_heartbeat_throttle_interval=timedelta(milliseconds=50)) as made:
            handle = await made.start(Recovering.run, "attempt", {"heartbeat": 1})
            await begun.wait()
            await handle.cancel()
            with pytest.raises(WorkflowFailureError) as raised:
                await handle.result()
            await ended.wait()
            return raised.value

    assert isinstance(asyncio.run(run()).cause, CancelledError)


@pytest.mark.parametrize("idempotent", [True, False])
def test_another_worker_finishes_what_a_killed_one_began(temporal: str, tmp_path: Path, idempotent: bool) -> None:
    """A worker is killed in mid-attempt: another one repeats the attempt if it is idempotent, else the run ends partial."""
    queue = f"q-{uuid.uuid4()}"
    command = [sys.executable, "-m", "tests.adapters.durable.temporal_worker", temporal, queue, str(tmp_path)]

    async def run() -> tuple[dict[str, Any], Any]:
        made = Rig(await Client.connect(temporal), queue)
        handle = await made.start(Recovering.run, "attempt", {"heartbeat": 2, "idempotent": idempotent})
        first = await asyncio.to_thread(subprocess.Popen, command)
        try:
            pid = await asyncio.to_thread(wait_until, lambda: begun(tmp_path))
            assert pid == first.pid
            await until(lambda: _beats(handle))
        finally:
            first.kill()
            first.wait()
        second = await asyncio.to_thread(subprocess.Popen, command)
        try:
            outcome = await handle.result()
        finally:
            second.kill()
            second.wait()
        return outcome, await replayed(handle)

    outcome, _ = asyncio.run(run())
    made = {int(path.name.partition("-")[2]) for path in tmp_path.glob("attempt-*")}
    if idempotent:
        assert (outcome["status"], outcome["value"], outcome["attempts"]) == ("recovered", "COUNT", 2)
        assert len(made) == 2
    else:
        assert (outcome["status"], outcome["errorType"], outcome["attempts"]) == ("partial", "worker_dead", 1)
        assert len(made) == 1
    assert outcome["dollars"] == 0.25


def begun(directory: Path) -> int | None:
    return next((int(path.name.partition("-")[2]) for path in directory.glob("attempt-*")), None)


async def _beats(handle: WorkflowHandle[Any, Any]) -> bool:
    """Whether the server has a heartbeat with the costs that the attempt reported."""
    pending = (await handle.describe()).raw_description.pending_activities
    return any(b"dollars" in payload.data for one in pending for payload in one.heartbeat_details.payloads)


def test_an_attempt_that_nobody_takes_is_a_timeout(temporal: str) -> None:
    """An attempt that no worker takes in time did nothing: it is a timeout on the ladder, also if it is not idempotent."""
    _, attempt = scripted("never")

    async def run() -> dict[str, Any]:
        async with rig(temporal, [attempt]) as made:
            handle = await made.start(Recovering.run, "attempt", {"nobody": True, "attempts": 2})
            outcome: dict[str, Any] = await handle.result()
            await replayed(handle)
            return outcome

    outcome = asyncio.run(run())
    assert (outcome["errorType"], outcome["attempts"]) == ("timeout", 2)


def test_an_attempt_is_limited_in_time(temporal: str) -> None:
    """The limit of the policy ends an attempt inside its activity: a known timeout, with no assumed side effects."""
    script, attempt = scripted(lambda request: asyncio.Event().wait(), "done")

    async def hang_once(request: rung.Request) -> str:
        value = script(request)
        return str(await value if asyncio.iscoroutine(value) else value)

    async def run() -> tuple[dict[str, Any], Any]:
        async with rig(temporal, [attempt_activity(hang_once, name="attempt")]) as made:
            return await recovered(made, {"seconds": 0.2, "direct": True})

    outcome, _ = asyncio.run(run())
    assert attempt is not None
    assert (outcome["status"], outcome["errorType"], outcome["value"]) == ("recovered", "timeout", "done")


@pytest.mark.parametrize("option", ["retry_policy", "activity_id", "summary"])
def test_options_that_recover_owns_are_refused(temporal: str, option: str) -> None:
    """A retry policy or a name for the attempts is an error before anything runs."""

    async def run() -> str:
        async with rig(temporal, [], workflows=[Misused]) as made:
            return str(await made.run(Misused.run, option))

    assert option in asyncio.run(run())
