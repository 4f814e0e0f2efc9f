"""Records the results of a durable recovery's attempts, and replays those from before a crash."""

from __future__ import annotations

import json
import warnings
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.evidence import evidence_of, without_secrets
from rung.core.classify.stack_trace import with_stack
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptError, RungError, StoreUnavailable
from rung.core.domain.event_codec import record_from_json, record_to_json
from rung.core.domain.failures import Evidence
from rung.core.domain.incident import Incident
from rung.core.recovery.resume_point import decide_after_process_death, find_resume_point, process_death_failure
from rung.engine.arguments import is_coroutine_function
from rung.engine.durable.restored_events import changes_of, restore_events
from rung.engine.durable.store_retry import awrite_with_retry, write_with_retry
from rung.engine.loop.attempt_hooks import use_hooks
from rung.engine.loop.run_to_end import finish_run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from rung.core.domain.events import Event
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.recovery.resume_point import ResumePoint
    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports.durable_runs import RunLease

MISSING: Final = object()
SESSION_STEP: Final = "session"  # in the key of the step that names the session of an attempt's agent


class DurableRecovery:
    """One durable recovery: records the results of its attempts, and replays those from before a crash.

    It is the event log of its run: a changed request is recorded in the transaction of its event.
    """

    def __init__(self, claim: RunLease, run: RecoveryRun) -> None:
        self.lease = claim
        self.run = run
        self.recorded_steps = claim.steps() if claim.done is None else {}
        self._report_numbers = count()
        self.attempt_tools: tuple[str, Any] | None = None  # of the running attempt, see `tools`

    def append(self, incident: str, first: int, events: Sequence[Event]) -> Awaitable[None]:
        """Append events, with the changed requests among them as changes to the caller's request."""
        return self.lease.append(incident, first, events, changes_of(first, events, self.run.incident.first_request))

    def next_step_key(self) -> str:
        """Return the step key of the next attempt."""
        return f"attempt.{self.run.incident.attempts + 1}"

    def interrupted_attempts(self) -> list[str]:
        """Return the step keys of the attempts right before the next one whose process died during them."""
        keys = []
        for number in range(self.run.incident.attempts, 0, -1):
            key = f"attempt.{number}"
            if key in self.recorded_steps or f"{key}.begun" not in self.recorded_steps:
                break
            keys.append(key)
        return keys

    def attempt_started(self) -> Awaitable[None] | None:
        """Record that the next attempt starts, unless its result is already recorded."""
        key = self.next_step_key()
        return None if key in self.recorded_steps else self._record_step(f"{key}.begun", True)

    def attempt_finished(self, value: Any, error: Exception | None) -> Awaitable[None] | None:
        """Record the result of the attempt, so that it is never made again."""
        key = self.next_step_key()
        if key in self.recorded_steps:
            return None
        if error is not None:
            return self._record_step(key, _error_step(error, has_side_effects=self.run.has_side_effects))
        return self._record_step(key, self._step_result(value))

    def reported(self, report: Mapping[str, Any]) -> None:
        """Record a step, a cost or a session that the running attempt reports. It is durable when this returns."""
        what = SESSION_STEP if "session" in report else "report"
        try:
            self.lease.record(f"{self.next_step_key()}.{what}.{next(self._report_numbers)}", report)
        except RungError as error:  # the attempt must not fail because of its report
            self.run.record_crash("journal", error)

    def _reports(self, key: str) -> list[Mapping[str, Any]]:
        """Return what an attempt of an earlier process reported. Its enclosing runs received the dollars then."""
        prefixes = (f"{key}.report.", f"{key}.{SESSION_STEP}.")
        names = [name for name in self.recorded_steps if name.startswith(prefixes)]
        return [self.recorded_steps[name] for name in sorted(names, key=lambda name: int(name.rpartition(".")[2]))]

    def _restore_reports(self, key: str) -> None:
        """Add what an attempt of an earlier process reported to the run."""
        for report in self._reports(key):
            self.run.attempt_dollars += report.get("dollars", 0.0)
            self.run.prompt_unread |= report.get("prompt_unread", False)
            if "step" in report:
                self.run.append(ev.StepCompleted(self.run.clock.now(), report["step"]))
            if "session" in report:
                self.run.append(ev.AgentSessionOpened(self.run.clock.now(), **report))

    def _record_step(self, key: str, result: Any) -> Awaitable[None] | None:
        """Record a step, with retries. In an async run the write does not block the event loop."""
        record = partial(self.lease.record, key, result)
        if self.run.is_async:
            return awrite_with_retry(record, self.run.clock.asleep)
        write_with_retry(record, self.run.clock.sleep)
        return None

    def will_replay(self) -> bool:
        """Whether the next attempt has a recorded result."""
        return self.next_step_key() in self.recorded_steps

    def replaying(self, attempt: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Return an attempt function that replays a recorded result instead of calling `attempt`."""

        def step(request: Request) -> Any:
            key = self.next_step_key()
            recorded = self.recorded_steps.get(key)
            if recorded is None:
                return attempt(request)
            self._restore_reports(key)
            self.run.has_visible_effects |= recorded.get("side_effects", False)
            return _replay(recorded)

        use_hooks(self.run, attempt)
        return step

    def areplaying(self, attempt: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Return `replaying(attempt)`, as a coroutine function if `attempt` is one: no thread starts for its time limit."""
        step = self.replaying(attempt)

        async def astep(request: Request) -> Any:
            value = step(request)
            return await value if hasattr(value, "__await__") else value

        return astep if is_coroutine_function(attempt) else step

    def _step_result(self, value: Any) -> dict[str, Any]:
        """Return the step result for a value. A value that JSON cannot represent is returned to the caller only."""
        if _is_json(value):
            return {"value": value}
        what = f"the result of {self.lease.run!r} is a {type(value).__name__}"
        warnings.warn(
            f"rung: {what}, which is not JSON serializable: it is returned, but not recorded",
            RuntimeWarning,
            stacklevel=2,
        )
        return {"value": None}

    def resume(self, events: Sequence[Event]) -> ResumePoint | None:
        """Restore the run from its events. Return the point to continue from, or None if the run has ended."""
        run, now = self.run, self.run.clock.now()
        if events:
            if self.lease.done is None:
                events = restore_events(self.lease.run, events, self.recorded_steps, run.incident.request)
            run.log[:] = events
            run.incident = Incident.of(events)
            run.incident.terms = run.terms  # the operator and the idempotency are those of this call
            run.published = len(events)
        if run.incident.status is not None:
            if any(isinstance(event, ev.AttemptSucceeded) for event in run.log):  # else a check rejected the last value
                run.value = run.whole_value(
                    self.recorded_steps.get(f"attempt.{run.incident.attempts}", {}).get("value")
                )
            return None
        at = find_resume_point(run.log, run.policy, now)
        run.previous_decision = at.previous_decision
        key = self.next_step_key()
        run.earlier_dollars = run.incident.dollars + sum(report.get("dollars", 0.0) for report in self._reports(key))
        if key in self.recorded_steps:
            return self._with_decision(
                at
            )  # the attempt had finished: its result is replayed, however often the run was resumed
        if f"{key}.begun" in self.recorded_steps:
            failure = process_death_failure(run.incident)
            run.began = now
            self._restore_reports(key)
            run.record_failure(failure)
            if not self.lease.exhausted:
                return at._replace(
                    failure=failure,
                    decision=run.append_decision(decide_after_process_death(run.incident, run.policy, now)),
                    wait=0.0,
                )
        if self.lease.exhausted:
            last = len(run.policy.ladder.rungs) - 1
            run.close(ev.Finish(last, ev.Status.PARTIAL, "the run was resumed three times without progress"))
            return None
        return self._with_decision(at)

    def _with_decision(self, at: ResumePoint) -> ResumePoint:
        """Make and append the decision of a resume point that has none recorded."""
        if at.is_unrecorded and at.decision is not None:
            return at._replace(decision=self.run.append_decision(at.decision))
        if at.needs_decision and at.failure is not None:
            return at._replace(decision=self.run.decide(at.failure))
        return at

    def outcome_of_ended_run(self, events: Sequence[Event]) -> Outcome[Any]:
        """Return the outcome of a run that ended earlier."""
        self.resume(events)
        self.run.value = self.lease.done.get("value")
        return finish_run(self.run)

    def finish(self, outcome: Outcome[Any]) -> Outcome[Any]:
        """Record the outcome, which later calls with this run id return."""
        run = self.run
        first = run.published
        fresh = run.drain()
        if fresh:  # the run was closed without another step
            self.append(run.incident.id, first, fresh)
            run.notify(fresh)
        value = outcome.value if _is_json(outcome.value) else None
        result = {"status": outcome.status.value, "reason": outcome.reason, "value": value}
        try:
            write_with_retry(partial(self.lease.finish, result), run.clock.sleep)
        except StoreUnavailable as error:
            # The work is done: a resumed run reaches the same outcome without an attempt.
            run.record_crash("journal", error)
        return outcome


def _error_step(error: Exception, *, has_side_effects: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"error": record_to_json(with_stack(without_secrets(evidence_of(error)), error))}
    return {**result, "side_effects": True} if has_side_effects else result


def _replay(step: Mapping[str, Any]) -> Any:
    """Return the recorded value of an attempt, or raise its recorded error."""
    if "error" in step:
        raise AttemptError.of(record_from_json(Evidence, step["error"]))
    return step["value"]


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
