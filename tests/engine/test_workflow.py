"""Recovery inside a workflow of a durable engine, with an engine of a few lines."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events
from rung.core.domain.event_codec import to_json
from rung.engine.durable.workflow import attempt_result, recover

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain import events as ev


class Crash(BaseException):
    """The process died."""


class ScriptedWorkflow:
    """Engine in memory: records steps and timers by key, and dies before or after the step that a test names."""

    id = "run-1"

    def __init__(self, attempt: Callable[[rung.Request], Any], answer: str | None = None) -> None:
        self.function, self.answer = attempt, answer
        self.recorded: dict[str, Any] = {}
        self.made: list[str] = []
        self.dies_in: str | None = None
        self.time = 1_000.0
        self._random = random.Random(7)

    def replay(self) -> ScriptedWorkflow:
        """Return the workflow as another process sees it: the same records, and nothing else."""
        again = ScriptedWorkflow(self.function, self.answer)
        again.recorded, again.made = self.recorded, self.made
        return again

    def now(self) -> float:
        return self.time

    def random(self) -> float:
        return self._random.random()

    async def attempt(self, key: str, request: rung.Request, seconds: float | None) -> Mapping[str, Any]:
        if key not in self.recorded:
            self.made.append(key)
            if key == self.dies_in:
                raise Crash
            self.recorded[key] = (await attempt_result(self.function, request), self.time + 1)
        result, self.time = self.recorded[key]
        return dict(result)

    async def sleep(self, key: str, seconds: float) -> None:
        self.time = self.recorded.setdefault(key, self.time + seconds)

    async def ask(self, key: str, question: ev.Ask, seconds: float | None) -> str | None:
        return self.recorded.setdefault(key, self.answer)


class Flaky:
    """Fails with these errors in turn, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def __call__(self, request: rung.Request) -> str:
        rung.report_step(f"step of {request.model or 'nobody'}")
        rung.report_cost(0.25)
        if self.errors:
            raise self.errors.pop(0)
        return f"{request.prompt}!"


def flaky_four_times() -> Flaky:
    return Flaky(ConnectionError("reset"), TimeoutError(), ValueError("bad json"), ValueError("bad json"))


def run(workflow: ScriptedWorkflow, **options: Any) -> rung.Outcome[Any]:
    return asyncio.run(recover(workflow, rung.Request(prompt="p", idempotent=True), **options))


def test_failures_are_retried_and_reports_count() -> None:
    """Failed attempts are repeated as steps of the engine; costs and steps that they reported are in the outcome."""
    workflow = ScriptedWorkflow(Flaky(ConnectionError("reset"), rung.AttemptError("busy", status=529)))
    outcome = run(workflow)
    assert (outcome.status, outcome.value, outcome.attempts) == (rung.Status.RECOVERED, "p!", 3)
    assert outcome.dollars == pytest.approx(0.75)
    assert outcome.steps == ("step of nobody",)
    assert workflow.made == ["attempt.1", "attempt.2", "attempt.3"]
    assert outcome.id == "run-1"


@pytest.mark.parametrize("dies_in", [f"attempt.{n}" for n in range(1, 6)])
def test_a_replay_makes_the_same_decisions(dies_in: str) -> None:
    """After a crash in any attempt, finished attempts are not made again, and the events are those of a run without it."""
    whole = run(ScriptedWorkflow(flaky_four_times()))
    workflow = ScriptedWorkflow(flaky_four_times())
    workflow.dies_in = dies_in
    with pytest.raises(Crash):
        run(workflow)
    outcome = run(workflow.replay())
    assert [to_json(event) for event in outcome.events] == [to_json(event) for event in whole.events]
    assert sorted(workflow.made) == sorted([*{*workflow.made}, dies_in])


def test_a_failure_is_classified_where_it_happened() -> None:
    """A replay reads the recorded failure, whatever the classifier would say now."""
    workflow = ScriptedWorkflow(Flaky(rung.AttemptError("no", status=401)))
    first = run(workflow)
    assert first.failure is not None
    assert first.failure.kind is rung.Kind.AUTH_ERROR
    recorded, at = workflow.recorded["attempt.1"]
    workflow.recorded["attempt.1"] = ({**recorded, "failure": {**recorded["failure"], "kind": "quota_exhausted"}}, at)
    again = run(workflow.replay())
    assert again.failure is not None
    assert again.failure.kind is rung.Kind.QUOTA_EXHAUSTED


def test_a_question_is_asked_once() -> None:
    """A question goes to the engine, and its answer decides; without a person the run ends blocked or partial."""
    errors = [rung.AttemptError("which one?", finding="strategic_ambiguity")] * 9
    asked = ScriptedWorkflow(Flaky(*errors), "stop")
    outcome = run(asked, policy="pipeline", attended=True)
    assert "ask.1" in asked.recorded
    assert not outcome.ok
    unasked = ScriptedWorkflow(Flaky(*errors), "stop")
    assert run(unasked, policy="pipeline").status is rung.Status.BLOCKED
    assert "ask.1" not in unasked.recorded


def test_a_check_rejects_a_result() -> None:
    """A check in the workflow makes a bad result a failed attempt."""
    outcome = run(
        ScriptedWorkflow(Flaky()),
        check=lambda value: rung.Evidence(text="not good", finding=rung.Kind.LOW_QUALITY),
        policy="task",
    )
    assert not outcome.ok
    assert outcome.attempts > 1


def test_cancellation_passes() -> None:
    """A cancelled workflow is not recorded as an outcome."""

    class CancelledWorkflow(ScriptedWorkflow):
        async def attempt(self, key: str, request: rung.Request, seconds: float | None) -> Mapping[str, Any]:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run(CancelledWorkflow(Flaky()))


def test_async_attempts_and_side_effects() -> None:
    """A coroutine function is awaited; its side effect keeps it from being repeated unchanged."""

    async def act(request: rung.Request) -> str:
        rung.mark_side_effect()
        raise ConnectionError("reset")

    result = asyncio.run(attempt_result(act, rung.Request(prompt="p")))
    assert result["side_effects"] is True
    assert result["failure"]["kind"] == "network"


@pytest.mark.parametrize(("idempotent", "status"), [(True, "recovered"), (False, "partial")])
def test_an_attempt_whose_process_died(idempotent: bool, status: str) -> None:
    """It is made again if the request is idempotent, without the use of a try; else the run ends partial."""

    class Dying(ScriptedWorkflow):
        async def attempt(self, key: str, request: rung.Request, seconds: float | None) -> Mapping[str, Any]:
            return {"died": True} if key == "attempt.1" else await super().attempt(key, request, seconds)

    outcome = asyncio.run(recover(Dying(Flaky()), rung.Request(prompt="p", idempotent=idempotent)))
    assert (outcome.status, outcome.path) == (status, () if idempotent else outcome.path)
    assert outcome.events[1].failure.kind is rung.Kind.WORKER_DEAD  # type: ignore[union-attr]  # the failed attempt


@pytest.mark.parametrize(("idempotent", "attempts"), [(True, 2), (False, 1)])
def test_an_attempt_with_a_side_effect_is_not_repeated(idempotent: bool, attempts: int) -> None:
    """A side effect that a failed attempt reported keeps the request from being repeated, unless it is idempotent."""
    made: list[str] = []

    def act(request: rung.Request) -> str:
        rung.mark_side_effect()
        made.append(request.prompt)
        if len(made) == 1:
            raise ConnectionError("reset")
        return "done"

    asyncio.run(recover(ScriptedWorkflow(act), rung.Request(prompt="p", idempotent=idempotent), policy="call"))
    assert len(made) == attempts


def test_misuse_is_an_error_before_anything_runs() -> None:
    """A wrong request or policy raises before the first step."""
    workflow = ScriptedWorkflow(Flaky())
    with pytest.raises(TypeError):
        asyncio.run(recover(workflow, 7))  # type: ignore[arg-type]  # misuse
    with pytest.raises(rung.errors.ConfigError):
        run(workflow, policy="no-such-ladder")
    for port in ("check", "rung_handlers", "journal", "listeners"):
        with pytest.raises(TypeError, match=f"^{port}: must be"):
            run(workflow, **{port: 7})
    assert not workflow.made


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_an_attempt_has_a_time_limit(kind: str) -> None:
    """An attempt beyond its seconds ends as a timeout, as a value; a plain function is left behind in its thread."""
    release = threading.Event()

    async def hang(request: rung.Request) -> None:
        await asyncio.Event().wait()

    def block(request: rung.Request) -> None:
        release.wait()

    attempt = hang if kind == "async" else block
    try:
        result = asyncio.run(attempt_result(attempt, rung.Request(prompt="p"), seconds=0.05))
    finally:
        release.set()
    assert result["failure"]["kind"] == "timeout"


def test_a_question_waits_no_longer_than_the_budget() -> None:
    """A question is open for what is left of the policy's seconds."""

    class Patient(ScriptedWorkflow):
        async def ask(self, key: str, question: ev.Ask, seconds: float | None) -> str | None:
            self.asked = seconds
            return None

    workflow = Patient(Flaky(*[rung.AttemptError("which one?", finding="strategic_ambiguity")] * 9))
    run(workflow, policy=rung.policy("pipeline", seconds=60), attended=True)
    assert workflow.asked is not None
    assert 0 < workflow.asked < 60
    assert workflow.asked == 1_000.0 + 60 - workflow.time


class LiveJournal:
    """Journal in memory that also offers what other recoveries and people have written meanwhile."""

    project = "shop"

    def __init__(self) -> None:
        self.appended: list[ev.Event] = []
        self.read: list[str] = []

    def append(self, incident: str, first: int, events: Sequence[ev.Event]) -> None:
        self.appended[first:] = events

    def intervention(self, incident: str) -> None:
        self.read.append("intervention")

    def model_for(self, session: str) -> str:
        self.read.append("model_for")
        return "pinned"

    def suggest_rung(self, project: str, failure: rung.Failure) -> str | None:
        self.read.append("suggest_rung")
        return None

    def similar_durations(self, incident: str, model: str, agent: str) -> Sequence[float]:
        self.read.append("similar_durations")
        return ()


def test_a_journal_is_only_written() -> None:
    """What a journal holds changes between a run and its replay: a workflow reads none of it, and names no process."""
    journal = LiveJournal()
    outcome = run(ScriptedWorkflow(flaky_four_times()), journal=journal)
    assert journal.read == []
    assert tuple(journal.appended) == outcome.events
    opened = journal.appended[0]
    assert isinstance(opened, events.Opened)
    assert (opened.terms.project, opened.terms.session) == ("shop", "run-1")


def test_a_failing_port_does_not_end_the_workflow() -> None:
    """A rung handler that raises skips its rung; a listener that raises is recorded."""

    def broken(request: rung.Request, incident: Any) -> rung.Request:
        raise ValueError("no plan")

    workflow = ScriptedWorkflow(Flaky(*[ValueError("bad json") for _ in range(9)]))
    with pytest.warns(RuntimeWarning, match="listener"):
        outcome = run(workflow, rung_handlers={"replan": broken}, listeners=[lambda event, incident: 1 / 0])
    assert not outcome.ok
    assert any("no plan" in reason for _, reason in outcome.skipped)
