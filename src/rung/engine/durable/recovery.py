"""Recoveries that survive their process: every attempt is a step that is written down, and none is made twice."""

from __future__ import annotations

import json
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rung.core.classify.evidence import evidence_of, without_secrets
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptError, ConfigError, StoreUnavailable
from rung.core.domain.event_codec import record_from_json, record_to_json
from rung.core.domain.failures import Evidence
from rung.core.domain.incident import Incident
from rung.core.recovery.resume_point import decide_after_process_death, find_resume_point, process_death_failure
from rung.engine.durable.store_retry import apatiently, patiently
from rung.engine.ports import DurableJournal
from rung.engine.recover import arun_to_end, finish_run, new_run, run_to_end

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Unpack

    from rung.core.domain.events import Event
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.policy import Policy
    from rung.core.recovery.resume_point import ResumePoint
    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports import RunLease
    from rung.engine.recover import RunPorts

T = TypeVar("T")


class DurableRecovery:
    """One durable recovery: what its attempts came to, now or before the crash."""

    def __init__(self, claim: RunLease, run: RecoveryRun) -> None:
        self.claim = claim
        self.run = run
        self.known = claim.steps()

    def key(self) -> str:
        """The step of the attempt that comes next."""
        return f"attempt.{self.run.incident.attempts + 1}"

    def begun(self) -> Awaitable[None] | None:
        """An attempt that is about to be made is written down first; one that is known is not made."""
        key = self.key()
        return None if key in self.known else self._keep(f"{key}.begun", True)

    def came_to(self, value: Any, error: Exception | None) -> Awaitable[None] | None:
        """What it came to is written down, and then it is never made again."""
        key = self.key()
        if key in self.known:
            return None
        return self._keep(key, self._kept(value) if error is None else _failure(error))

    def _keep(self, key: str, result: Any) -> Awaitable[None] | None:
        """Write a step down; the store's own waits are taken off the loop."""
        record = partial(self.claim.record, key, result)
        if self.run.awaited:
            return apatiently(record, self.run.clock.asleep)
        patiently(record, self.run.clock.sleep)
        return None

    def once(self, attempt: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """The attempt, or what it came to before."""

        def step(request: Request) -> Any:
            known = self.known.get(self.key())
            return attempt(request) if known is None else _again(known)

        return step

    def _kept(self, value: Any) -> dict[str, Any]:
        """The value, to be given to whoever asks later; what JSON cannot hold is given to this caller alone."""
        if _is_json(value):
            return {"value": value}
        what = f"the result of {self.claim.run!r} is a {type(value).__name__}"
        warnings.warn(
            f"rung: {what}, which JSON cannot hold: it is returned, but not kept", RuntimeWarning, stacklevel=2
        )
        return {"value": None}

    def begin(self, events: Sequence[Event]) -> ResumePoint | None:
        """Take up where the events leave off; None when there is nothing left to do."""
        run, now = self.run, self.run.clock.now()
        if events:
            run.log[:] = events
            run.incident = Incident.of(events)
            run.incident.terms = run.terms  # who is there to be asked, and what may be repeated, is told anew
            run.published = len(events)
        if run.incident.status is not None:
            run.value = self.known.get(f"attempt.{run.incident.attempts}", {}).get("value")
            return None
        at = find_resume_point(run.log, run.policy, now)
        run.before = at.previous_decision
        key = self.key()
        if key in self.known:
            return self._decided(at)  # it had ended: what it came to is taken in first, however often it was taken up
        if f"{key}.begun" in self.known:
            failure = process_death_failure(run.incident)
            run.began = now
            run.record_failure(failure)
            if not self.claim.exhausted:
                return at._replace(
                    failure=failure,
                    decision=run.append_decision(decide_after_process_death(run.incident, run.policy)),
                    wait=0.0,
                )
        if self.claim.exhausted:
            last = len(run.policy.ladder.rungs) - 1
            run.close(ev.Finish(last, ev.Status.PARTIAL, "it was taken up three times and got no further"))
            return None
        return self._decided(at)

    def _decided(self, at: ResumePoint) -> ResumePoint:
        """The same with a decision that is written down, where none was yet."""
        if at.is_unrecorded and at.decision is not None:
            return at._replace(decision=self.run.append_decision(at.decision))
        if at.needs_decision and at.failure is not None:
            return at._replace(decision=self.run.decide(at.failure))
        return at

    def past(self, events: Sequence[Event]) -> Outcome[Any]:
        """How a run that has ended did end."""
        self.begin(events)
        self.run.value = self.claim.done.get("value")
        return finish_run(self.run)

    def finish(self, outcome: Outcome[Any]) -> Outcome[Any]:
        """Keep how it ended; what comes to this run later is told that."""
        run = self.run
        first = run.published
        fresh = run.drain()
        if fresh:  # it ended without another step: given up
            self.claim.append(run.incident.id, first, fresh)
            run.notify(fresh)
        value = outcome.value if _is_json(outcome.value) else None
        told = {"status": outcome.status.value, "reason": outcome.reason, "value": value}
        try:
            patiently(partial(self.claim.finish, told), run.clock.sleep)
        except (
            StoreUnavailable
        ) as error:  # the work is done; taken up again, the run comes to the same without an attempt
            run.crashed("journal", error)
        return outcome


async def recover(
    attempt: Callable[[Request], Awaitable[T] | T],
    request: Request | str,
    *,
    run_id: str,
    journal: DurableJournal,
    policy: Policy | str = "task",
    **ports: Unpack[RunPorts],
) -> Outcome[T]:
    """Recover a run that survives its process: called again, it goes on where it was interrupted.

    A run that has ended returns how it ended. See `rung.recover` for the other arguments.
    """
    from asyncio import to_thread

    claim, events = await to_thread(_claimed, run_id, journal)
    run, durable = await to_thread(_ready, claim, request, policy, ports)
    if claim.done is not None:
        return durable.past(events)
    with claim:
        at = durable.begin(events)
        if at is not None:
            await arun_to_end(run, durable.once(attempt), at.failure, at.decision, at.wait)
        return await to_thread(durable.finish, finish_run(run))


def recover_sync(
    attempt: Callable[[Request], T],
    request: Request | str,
    *,
    run_id: str,
    journal: DurableJournal,
    policy: Policy | str = "task",
    **ports: Unpack[RunPorts],
) -> Outcome[T]:
    """Recover a run that survives its process, blocking."""
    claim, events = _claimed(run_id, journal)
    run, durable = _ready(claim, request, policy, ports)
    if claim.done is not None:
        return durable.past(events)
    with claim:
        at = durable.begin(events)
        if at is not None:
            run_to_end(run, durable.once(attempt), at.failure, at.decision, at.wait)
        return durable.finish(finish_run(run))


def _claimed(run_id: str, journal: DurableJournal) -> tuple[RunLease, Sequence[Event]]:
    """The run, owned by this process, and its events so far."""
    if not isinstance(run_id, str) or not run_id:
        raise ConfigError("run_id", run_id, "a text that names the run")
    if not isinstance(journal, DurableJournal):
        raise ConfigError("journal", journal, "a journal (rung.journal(PATH)): a run id means something only there")
    return journal.runs.claim(run_id), journal.events(run_id)


def _ready(
    claim: RunLease, request: Request | str, policy: Policy | str, ports: RunPorts
) -> tuple[RecoveryRun, DurableRecovery]:
    run = new_run(request, policy, {**ports, "journal": claim}, claim.run)
    run.keeper = durable = DurableRecovery(claim, run)
    return run, durable


def _failure(error: Exception) -> dict[str, Any]:
    return {"error": record_to_json(without_secrets(evidence_of(error)))}


def _again(kept: Mapping[str, Any]) -> Any:
    """What an attempt that had ended before the crash came to."""
    if "error" in kept:
        raise AttemptError.of(record_from_json(Evidence, kept["error"]))
    return kept["value"]


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
