"""Recovery inside a workflow of a durable engine: an attempt is one of its steps, a wait one of its timers.

Time, chance and results come from the engine, so a replay after a crash makes the same decisions and repeats nothing
that has finished. An attempt is classified where it is made: its failure is recorded as a value, and a replay on another
machine or a newer version reads the same one.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import evidence_of, without_secrets
from rung.core.classify.stack_trace import with_stack
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptError
from rung.core.domain.event_codec import record_from_json, record_to_json
from rung.core.domain.failures import PROCESS_DEATH_RULE, Failure
from rung.core.policy.parser import policy as make_policy
from rung.core.recovery.resume_point import decide_after_process_death, process_death_failure
from rung.engine.arguments import check_policy, check_ports, check_request, is_coroutine_function
from rung.engine.durable.step_reports import StepReports
from rung.engine.local_zone import local_zone
from rung.engine.loop.moves import ATTEMPT, NOTHING, CallPort, Wait
from rung.engine.loop.recovery_steps import recovery
from rung.engine.loop.run import RecoveryRun
from rung.engine.loop.run_factory import request_of, run_attributes
from rung.engine.loop.run_to_end import finish_run
from rung.engine.ports.clock import SYSTEM_CLOCK
from rung.engine.recover import DEFAULT_LADDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.incident import Incident
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.engine.loop.moves import Reply
    from rung.engine.ports.journal import EventLog
    from rung.engine.ports.recovery import Listener, ResultValidator, RungHandler
    from rung.engine.recovery_arguments import Ports


class Workflow(Protocol):
    """Running workflow of a durable engine. A replay must return the same values. Keys are unique within the workflow."""

    @property
    def id(self) -> str:
        """Name of the workflow: it also names the incident."""
        ...

    def now(self) -> float:
        """Return UTC seconds, the same on a replay."""
        ...

    def random(self) -> float:
        """Return a number from 0 to 1, the same on a replay."""
        ...

    async def attempt(self, key: str, request: Request, seconds: float | None) -> Mapping[str, Any]:
        """Make an attempt as a step, within `seconds`. Return what `attempt_result` returned there.

        An attempt whose process died is `{"died": True}`.
        """
        ...

    async def sleep(self, key: str, seconds: float) -> None:
        """Wait. A replay waits only until the time that was recorded first."""
        ...

    async def ask(self, key: str, question: ev.Ask, seconds: float | None) -> str | None:
        """Return the id of the option that a person chose, or None if nobody answers."""
        ...


async def recover(
    workflow: Workflow,
    request: Request | str,
    *,
    policy: Policy | str = DEFAULT_LADDER,
    attended: bool = False,
    check: ResultValidator | None = None,
    rung_handlers: Mapping[str, RungHandler] | None = None,
    journal: EventLog | None = None,
    listeners: Sequence[Listener] = (),
) -> Outcome[Any]:
    """Attempt a request and recover on the policy's ladder, inside a workflow.

    `attended`: questions go to `workflow.ask`. `check`, `rung_handlers` and `listeners` run in the workflow, also on
    a replay: they must be deterministic. A journal is only written: orders of operators, earlier recoveries, and the circuit
    breakers and the retry budget of a process do not apply here.
    """
    ports: Ports = {
        "check": check,
        "rung_handlers": rung_handlers or {},
        "journal": journal,
        "listeners": listeners,
        "breakers": None,
        "retry_budget": None,
    }
    request, policy = checked(request, policy, ports)
    driver = _WorkflowDriver(workflow)
    attributes = run_attributes(
        policy,
        {**ports, "clock": driver, "jitter": workflow.random, "ask": driver.ask if attended else None},
        idempotent=request.idempotent,
    )
    run = WorkflowRun.create(attributes)
    # What a journal holds and the name of the process differ on a replay: neither may decide.
    run.interventions = run.remedies = run.statistics = run.history = None
    run.terms = run.terms._replace(session=workflow.id if journal is not None else "")
    run.is_async = True
    run.is_logged = False  # a replay would log everything again; the engine has a history of its own
    run.open(request, workflow.now(), workflow.id)
    await driver.drive(run)
    return finish_run(run)


def checked(request: Request | str, policy: Policy | str, ports: Mapping[str, Any]) -> tuple[Request, Policy]:
    """Return the request and the policy, made of their short forms. Misuse is an error before the first step."""
    check_request(request)
    check_policy(policy)
    check_ports(ports, blocking=False)
    policy = make_policy(policy) if isinstance(policy, str) else policy
    return request_of(request, policy) if isinstance(request, str) else request, policy


class RecordedFailureError(AttemptError):
    """Failure of an attempt that was classified where it was made."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.evidence = failure.evidence
        self.failure = failure


class WorkflowRun(RecoveryRun):
    """Running recovery whose attempts are classified where they are made."""

    def record_error(self, error: Exception) -> Failure:
        """Record the error of the attempt."""
        if not isinstance(error, RecordedFailureError):
            return super().record_error(error)
        self.error, failure = error, error.failure
        if self.has_side_effects:
            failure = failure._replace(evidence=failure.evidence._replace(side_effects=True))
        return self.record_failure(failure)

    def decide(self, failure: Failure) -> ev.Decision:
        """Decide as a resumed run does if the process of the attempt died."""
        if failure.rule != PROCESS_DEATH_RULE or not isinstance(self.log[-1], ev.AttemptFailed):
            return super().decide(failure)
        return self.append_decision(decide_after_process_death(self.incident, self.policy, self.clock.now()))

    def record_cancelled(self, reason: str = "stopped from outside") -> None:
        """Record nothing: the engine replays a workflow that it evicts, and knows which ones are cancelled."""


class _WorkflowDriver:
    """Carries out the moves of a recovery with the steps and timers of a workflow. Its clock as well."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.now = workflow.now
        self._waits, self._questions = count(1), count(1)

    async def drive(self, run: RecoveryRun) -> None:
        """Drive the run to its end. Unlike the engine's own driver, it starts no thread and no timer."""
        steps = recovery(run)
        try:
            move = next(steps)
            while True:
                if move is ATTEMPT:
                    move = steps.send(await self._attempt(run))
                elif isinstance(move, Wait):
                    await self.asleep(move.seconds)
                    move = steps.send(NOTHING)
                elif isinstance(move, CallPort):
                    move = steps.send(await _called(move))
        except StopIteration:
            return
        except BaseException:
            steps.close()
            raise

    async def _attempt(self, run: RecoveryRun) -> Reply:
        request = run.incident.request
        assert request is not None  # noqa: S101  # the run was opened with one
        result = await self.workflow.attempt(f"attempt.{run.incident.attempts + 1}", request, run.seconds)
        run.attempt_dollars += result.get("dollars", 0.0)
        run.has_visible_effects |= result.get("side_effects", False)
        for step in result.get("steps", ()):
            run.append(ev.StepCompleted(self.now(), step))
        if "died" in result:
            return None, RecordedFailureError(process_death_failure(run.incident))
        if "failure" in result:
            return None, RecordedFailureError(record_from_json(Failure, result["failure"]))
        return result.get("value"), None

    def sleep(self, seconds: float) -> None:
        """Refuse to block: a workflow only awaits."""
        raise RuntimeError(f"a workflow cannot block for {seconds} s")

    async def asleep(self, seconds: float) -> None:
        """Wait by a timer of the engine."""
        await self.workflow.sleep(f"wait.{next(self._waits)}", seconds)

    async def ask(self, question: ev.Ask, incident: Incident) -> str | None:
        """Ask a person through the engine, until the deadline of the incident."""
        seconds = None if incident.deadline is None else max(0.0, incident.deadline - self.now())
        return await self.workflow.ask(f"ask.{next(self._questions)}", question, seconds)


async def _called(move: CallPort) -> Reply:
    try:
        value = move.function(*move.arguments)
        return await value if hasattr(value, "__await__") else value, None
    except Exception as error:  # becomes a value, as for an attempt
        return None, error


async def acall(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a coroutine function, or a plain function in a thread."""
    from asyncio import to_thread

    value = function(*arguments) if is_coroutine_function(function) else await to_thread(function, *arguments)
    return await value if hasattr(value, "__await__") else value


async def attempt_result(
    attempt: Callable[..., Any],
    *arguments: Any,
    seconds: float | None = None,
    reports: StepReports | None = None,
) -> dict[str, Any]:
    """Make an attempt inside a step, within `seconds`. Return its value or its failure, and what it reported, as JSON.

    A plain function runs in a thread. Cancellation propagates. `reports` shows what is reported while the attempt runs.
    """
    from rung.engine.timeouts.thread_timeout import acall_with_timeout

    reports = reports or StepReports()
    limited = seconds is not None
    with reports:
        try:
            value = await (acall_with_timeout(attempt, arguments, seconds) if limited else acall(attempt, *arguments))
        except Exception as error:  # the failure of an attempt is a value
            return {"failure": failure_to_json(error), **reports.to_json()}
    return {"value": value, **reports.to_json()}


def failure_to_json(error: BaseException) -> dict[str, Any]:
    """Classify an error here and now. Return the failure as JSON, without secrets."""
    evidence = with_stack(without_secrets(evidence_of(error)), error)
    return record_to_json(classify(evidence, SYSTEM_CLOCK.now(), local_zone()))
