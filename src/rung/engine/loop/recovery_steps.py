"""Steps of one recovery, from its start to its end, as a generator of moves.

The generator holds the whole path of a failure: attempt, classify, fold, decide, persist, act. It performs no I/O: it
yields moves (attempt, wait, call a port) and receives their results. So the blocking and the async driver share it, and
neither has rules of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptTimeout
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.recovery.limits import seconds_left
from rung.core.recovery.target_compaction import stays_with_target
from rung.core.recovery.written_answer import answers
from rung.engine.local_zone import local_zone
from rung.engine.loop.abandoned_approach import abandon_approach
from rung.engine.loop.attempt_hooks import after_attempt, before_attempt
from rung.engine.loop.event_publishing import await_persisted, persist_and_notify, publish
from rung.engine.loop.interruptible_wait import (
    take_intervention,
    take_last_intervention,
    wait_before_attempt,
    wait_before_repeat,
    wait_interruptible,
)
from rung.engine.loop.moves import ATTEMPT, CallPort, call_port
from rung.engine.loop.project_notes import note_first_request, noted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rung.core.domain.failures import Evidence, Failure
    from rung.engine.loop.moves import Move, Reply, Steps
    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports.recovery import ResultValidator

# Actions that may change the work extensively: a checkpoint is taken before them.
_CHECKPOINTED: Final = frozenset({Action.REPLAN, Action.RESPAWN, Action.RESTRUCTURE, Action.FALLBACK, Action.ESCALATE})


def recovery(
    run: RecoveryRun, failure: Failure | None = None, decision: ev.Decision | None = None, wait: float = 0.0
) -> Steps:
    """Make attempts and recover until the incident is closed. Optionally start from a failure and its decision, or a wait."""
    try:
        if run.notes is not None:
            yield from note_first_request(run, run.notes)
        if run.has_observers:
            yield from persist_and_notify(run)
        over = (
            (yield from wait_before_attempt(run, wait)) if wait > 0 or run.incident.parked_until is not None else False
        )
        if run.intervention is not None and not over:  # a person asks for this run
            over = bool((yield from take_intervention(run)))
        while not over:
            if failure is None or decision is None:
                failure = yield from _attempt(run)
                if failure is None:
                    break
                decision = run.decide(failure)
            if run.has_observers:
                yield from persist_and_notify(run)
            if isinstance(decision, ev.Repeat):
                over = yield from wait_before_repeat(run, decision)
                decision = None
            else:
                over, decision = yield from _act(run, failure, decision)
        if run.has_observers:
            yield from persist_and_notify(run, final=True)
    except BaseException as error:
        # Closed by its driver, or interrupted by Ctrl-C in here: record the end in either case.
        run.record_cancelled(
            "stopped from outside" if not isinstance(error, Exception) else f"internal error in Rung: {error!r}"
        )
        raise


def _act(
    run: RecoveryRun, failure: Failure, decision: ev.Decision
) -> Generator[Move, Reply, tuple[bool, ev.Decision | None]]:
    """Carry out a decision that is not a retry.

    Return whether the incident is closed, and the next decision. If neither, the next step is an attempt.
    """
    yield from _roll_back(run, decision)
    if isinstance(decision, ev.Finish):
        closes = yield from take_last_intervention(run)
        if closes is None:
            run.close(decision)
        return closes is not False, None
    if isinstance(decision, ev.Ask):
        chosen = yield from _ask(run, decision)
        return False, run.decide(failure) if chosen is None else chosen
    assert not isinstance(decision, ev.Repeat)  # noqa: S101  # the caller handles retries
    if not (yield from _make_request(run, decision, failure)):
        return False, run.decide(failure)
    yield from publish(run)  # the wait may be long, and a planner's request cannot be made again
    over = yield from wait_interruptible(run, decision.wait if isinstance(decision, ev.Change) else 0.0)
    return over, None


def _attempt(run: RecoveryRun) -> Generator[Move, Reply, Failure | None]:
    """Make and validate one attempt. Return its failure, or None if its result is good."""
    yield from publish(run)
    refusal = run.admit()
    if refusal is not None:
        return run.record_error(refusal)
    hooks = run.attempt_hooks
    blocked = None if hooks is None else (yield from before_attempt(run, hooks))
    if blocked is not None:
        return run.record_error(blocked)
    run.seconds = seconds = seconds_left(run.incident, run.policy, run.began)
    if seconds is not None and seconds <= 0:
        return run.record_error(run.deadline_error())
    if run.pending_append is not None:
        yield from await_persisted(run)
    run.watch_progress()
    if run.attempt_recorder is not None:
        yield from call_port(run, "journal", run.attempt_recorder.attempt_started)
    value, error = yield ATTEMPT
    if run.attempt_recorder is not None:  # outside the attempt: no time limit interrupts the write
        yield from call_port(run, "journal", run.attempt_recorder.attempt_finished, value, error)
    if hooks is not None:
        yield from after_attempt(run, hooks, error)
    if error is not None:
        return run.record_error(error)
    defect = None if run.check is None else (yield from _validate(run, run.check, value))
    if defect is None:
        run.record_success(value)
        return None
    from rung.core.classify.classifier import classify

    return run.record_rejected(classify(defect, run.clock.now(), local_zone()))


def _validate(
    run: RecoveryRun, check: ResultValidator, value: Any
) -> Generator[Move, Reply, Evidence | Failure | None]:
    """Return the evidence or failure that a check reports about a result, or None if the result is good.

    A check that raises has verified nothing, so its result is not a success (fail closed).
    """
    from rung.core.recovery.check_result import evidence_of_check, evidence_of_crash

    answer, error = yield _limited(run, check, value)
    if error is None:
        return evidence_of_check(answer, value)
    if isinstance(error, AttemptTimeout):
        error = AttemptTimeout(error.seconds, left_behind=error.left_behind, what="check")
    run.record_crash("check", error, "so the result is not accepted")
    return evidence_of_crash(error, value)


def _limited(run: RecoveryRun, function: Callable[..., Any], *arguments: Any) -> CallPort:
    """Return the call of a check or rung handler: it has as much time as an attempt would have now."""
    return CallPort(function, arguments, seconds_left(run.incident, run.policy, run.clock.now()))


def _roll_back(run: RecoveryRun, decision: ev.Decision) -> Steps:
    """Undo the previous rung, which has failed: restore the model and, if the rung says so, the checkpoint."""
    before = run.previous_decision
    incident = run.incident
    if before is None or stays_with_target(before, decision, incident):
        return
    if incident.first_request is not None and incident.handed_over:
        run.append(ev.ModelRestored(run.clock.now(), incident.first_request.model, incident.first_request.agent))
    reference = incident.checkpoints.get(before.rung)
    if reference is None or not run.policy.ladder.rungs[before.rung].rollback or run.checkpoint is None:
        return
    _, error = yield from call_port(run, "checkpoint", run.checkpoint.restore, reference)
    if error is None:
        run.append(ev.RolledBack(run.clock.now(), before.rung, reference))


def _make_request(
    run: RecoveryRun, decision: ev.Change | ev.HandOver, failure: Failure
) -> Generator[Move, Reply, bool]:
    """Make the new request of a rung. Return False, and record a skipped rung, if it fails or is not a new request."""
    from rung.core.recovery.apply_rung import apply_rung

    incident = run.incident
    rung = run.policy.ladder.rungs[decision.rung]
    action = decision.action if isinstance(decision, ev.Change) else rung.action
    if action in _CHECKPOINTED and decision.rung not in incident.checkpoints:
        yield from _take_checkpoint(run, decision.rung, rung.name)
    yield from abandon_approach(run, decision, failure)
    before = incident.request
    assert before is not None  # noqa: S101  # decide changes a request only if there is one
    handler = run.rung_handlers.get(action.value)
    prompt = ""
    try:
        if handler is None or isinstance(decision, ev.HandOver):
            after, prompt = apply_rung(decision, incident, failure, run.policy)
            if handler is not None:
                after = yield from _call_rung_handler(run, handler, after)
        else:
            after, prompt = (yield from _call_rung_handler(run, handler, before)), f"own.{action}"
    except Exception as error:  # the user's planner or compactor failed: only the rung fails
        from rung.core.classify.evidence import describe_error

        return _skip(run, decision.rung, f"{rung.name} raised {describe_error(error)}")
    after = yield from noted(run, action, after, failure, prompt)
    digest = after.digest()
    if digest in incident.digests:
        return _skip(run, decision.rung, "its request was already tried")
    if action is Action.COMPACT and after.size() >= before.size():
        return _skip(run, decision.rung, "compaction did not shrink the request")
    run.append(ev.Changed(run.clock.now(), after, digest, before.changed(after), prompt))
    return True


def _call_rung_handler(
    run: RecoveryRun, handler: Callable[..., Any], request: Request
) -> Generator[Move, Reply, Request]:
    new_request, error = yield _limited(run, handler, request, run.incident)
    if isinstance(error, AttemptTimeout):
        raise AttemptTimeout(error.seconds, left_behind=error.left_behind, what="rung's handler")
    if error is not None:
        raise error
    if isinstance(new_request, Request):
        return new_request
    raise TypeError("a rung handler must return a rung.Request")


def _skip(run: RecoveryRun, rung: int, reason: str) -> bool:
    run.append(ev.Skipped(run.clock.now(), rung, reason))
    return False


def _take_checkpoint(run: RecoveryRun, rung: int, label: str) -> Steps:
    if run.checkpoint is None or not run.policy.checkpoints:
        return
    seconds = seconds_left(run.incident, run.policy, run.clock.now())
    reference, error = yield from call_port(run, "checkpoint", run.checkpoint.take, label, seconds=seconds)
    if error is None:
        run.append(ev.CheckpointTaken(run.clock.now(), rung, reference))
        yield from publish(run)  # a planner may run next


def _ask(run: RecoveryRun, question: ev.Ask) -> Generator[Move, Reply, ev.Decision | None]:
    """Ask the operator. Without an answer the incident ends blocked; the engine never guesses."""
    assert run.operator is not None  # noqa: S101  # decide asks only if there is an operator
    deadline = run.incident.deadline
    seconds = None if deadline is None else max(0.0, deadline - run.clock.now())
    answer, _ = yield from call_port(run, "operator", run.operator, question, run.incident, seconds=seconds)
    if not answers(question, str(answer)):
        return run.append_decision(ev.Finish(question.rung, ev.Status.BLOCKED, f"nobody answered: {question.question}"))
    return run.record_answer(answer)
