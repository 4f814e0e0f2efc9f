"""One recovery from beginning to end, as a generator of moves.

It holds the whole path of a failure: attempt, classify, fold, decide, write down, act. It does nothing
itself: it yields what is to be done (attempt, wait, call) and is sent what came of it, so that the sync
and the async loop are the same few lines and neither has a rule of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from rung.core.classify.classifier import classify
from rung.core.classify.evidence import clip
from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Failure, Kind, Phase
from rung.core.domain.ladder import Action
from rung.core.domain.request import Request
from rung.core.recovery.decide import seconds_left
from rung.engine.loop.moves import ATTEMPT, CallPort, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from concurrent.futures import Future

    from rung.core.recovery.interventions import Intervention
    from rung.engine.loop.moves import Move, Reply, Steps
    from rung.engine.loop.run import RecoveryRun
    from rung.engine.ports import EventLog, ResultValidator

# From here on a rung may turn the work upside down: keep what there is.
_CHECKPOINTED: Final = frozenset({Action.REPLAN, Action.RESPAWN, Action.RESTRUCTURE, Action.FALLBACK, Action.ESCALATE})
LOOK: Final = 0.5  # seconds between looks for an order, while a recovery waits


def recovery(
    run: RecoveryRun, failure: Failure | None = None, decision: ev.Decision | None = None, wait: float = 0.0
) -> Steps:
    """Attempt, and recover until it has ended; or go on from a failure and the decision about it, or after a wait."""
    try:
        if run.observed:
            yield from _persist_and_notify(run)
        over = (yield from _wait_interruptible(run, wait)) if wait > 0 else False
        while not over:
            if failure is None or decision is None:
                failure = yield from _attempt(run)
                if failure is None:
                    break
                decision = run.decide(failure)
            if run.observed:
                yield from _persist_and_notify(run)
            if isinstance(decision, ev.Repeat):
                if decision.wait > 0 or run.interventions is not None:
                    over = yield from _wait_interruptible(run, decision.wait)
                decision = None
            else:
                over, decision = yield from _act(run, failure, decision)
        if run.observed:
            yield from _persist_and_notify(run, final=True)
    except BaseException as error:
        # Closed by its driver, or hit by Ctrl-C while in here: either way it is over, and that is recorded.
        run.stopped("stopped from outside" if not isinstance(error, Exception) else f"a fault in Rung: {error!r}")
        raise


def _act(
    run: RecoveryRun, failure: Failure, decision: ev.Decision
) -> Generator[Move, Reply, tuple[bool, ev.Decision | None]]:
    """Carry out a decision that is not a repeat: whether that is the end, and else the next decision, if there is one.

    Without a next decision the attempt is made.
    """
    yield from _roll_back(run)
    if isinstance(decision, ev.Finish):
        run.close(decision)
        return True, None
    if isinstance(decision, ev.Ask):
        chosen = yield from _ask(run, decision)
        return False, run.decide(failure) if chosen is None else chosen
    assert not isinstance(decision, ev.Repeat)  # noqa: S101  # the caller has seen to it
    if not (yield from _change(run, decision, failure)):
        return False, run.decide(failure)
    over = yield from _wait_interruptible(run, decision.wait if isinstance(decision, ev.Change) else 0.0)
    return over, None


def _attempt(run: RecoveryRun) -> Generator[Move, Reply, Failure | None]:
    """One attempt, judged; None when its result is good."""
    refusal = run.admit()
    if refusal is not None:
        return run.failed(refusal)
    run.seconds = seconds = seconds_left(run.incident, run.policy, run.began)
    if seconds is not None and seconds <= 0:
        return run.failed(run.deadline_error())
    if run.pending is not None:
        yield from _await_persisted(run)
    if run.keeper is not None:
        yield from _call(run, "journal", run.keeper.begun)
    value, error = yield ATTEMPT
    if run.keeper is not None:  # here, where no time limit can cut it short
        yield from _call(run, "journal", run.keeper.came_to, value, error)
    if error is not None:
        return run.failed(error)
    found = None if run.check is None else (yield from _checked(run, run.check, value))
    if found is None:
        run.succeeded(value)
        return None
    return run.record_failure(classify(found))


def _checked(run: RecoveryRun, check: ResultValidator, value: Any) -> Generator[Move, Reply, Evidence | Failure | None]:
    """What a check finds wrong with a result; None when it is good."""
    from rung.core.domain.verdict import Verdict

    found, _ = yield from _call(run, "check", check, value)
    if isinstance(found, Verdict):
        found = found.evidence
    if found is None or isinstance(found, Evidence | Failure):
        return found
    return Evidence(text=clip(str(found)), finding=Kind.LOW_QUALITY, phase=Phase.RESULT)


def _wait_interruptible(run: RecoveryRun, seconds: float) -> Generator[Move, Reply, bool]:
    """Let this much time pass, or until a person says otherwise; True when that was the end."""
    interventions = run.interventions
    if interventions is None:
        if seconds > 0:
            yield Wait(seconds)
        return False
    until = run.clock.now() + seconds
    while True:
        given, run.order = run.order, None
        if given is None:
            given, _ = yield from _call(run, "orders", interventions.intervention, run.incident.id)
        if given is not None:
            over = _apply_intervention(run, given)
            yield from _persist_and_notify(run)
            return over
        left = until - run.clock.now()
        if left <= 0:
            return False
        yield Wait(min(left, LOOK))


def _apply_intervention(run: RecoveryRun, order: Intervention) -> bool:
    """Do as a person ordered, and write it down first; True when that is the end."""
    from rung.core.recovery.interventions import InterventionType

    now, before = run.clock.now(), run.incident.request
    run.append(ev.Ordered(now, order.action.value, order.by, order.model, order.prompt))
    if order.action is InterventionType.CANCEL:
        run.close(ev.Finish(max(run.incident.rung, 0), ev.Status.PARTIAL, f"stopped by {order.by or 'a person'}"))
        return True
    if before is not None:
        after = order.apply_to(before)
        if after != before:
            run.append(ev.Changed(now, after, after.digest(), before.changed(after), "order"))
    return False


def _roll_back(run: RecoveryRun) -> Steps:
    """The rung of the decision before has failed: put back what it changed, where that is wanted."""
    before = run.before
    if before is None:
        return
    incident = run.incident
    if incident.first_request is not None and incident.handed_over:
        run.append(ev.ModelRestored(run.clock.now(), incident.first_request.model, incident.first_request.agent))
    reference = incident.checkpoints.get(before.rung)
    if reference is None or not run.policy.ladder.rungs[before.rung].rollback or run.checkpoint is None:
        return
    _, error = yield from _call(run, "checkpoint", run.checkpoint.restore, reference)
    if error is None:
        run.append(ev.RolledBack(run.clock.now(), before.rung, reference))


def _change(run: RecoveryRun, decision: ev.Change | ev.HandOver, failure: Failure) -> Generator[Move, Reply, bool]:
    """Make the new request and prove that it is one; False (and recorded) when that does not come off."""
    from rung.core.recovery.apply_rung import apply_rung

    incident = run.incident
    rung = run.policy.ladder.rungs[decision.rung]
    action = decision.action if isinstance(decision, ev.Change) else rung.action
    if action in _CHECKPOINTED and decision.rung not in incident.checkpoints:
        yield from _take_checkpoint(run, decision.rung, rung.name)
    before = incident.request
    assert before is not None  # noqa: S101  # decide changes nothing that is not a request
    changer = run.changes.get(action.value)
    prompt = ""
    try:
        if changer is None or isinstance(decision, ev.HandOver):
            after, prompt = apply_rung(decision, incident, failure, run.policy)
            if changer is not None:
                after = yield from _call_rung_handler(run, changer, after)
        else:
            after, prompt = (yield from _call_rung_handler(run, changer, before)), f"own.{action}"
    except Exception as error:  # the user's planner or compactor broke: the rung has failed, not we
        return _skip(run, decision.rung, f"{rung.name} broke: {type(error).__name__}: {error}")
    digest = after.digest()
    if digest in incident.digests:
        return _skip(run, decision.rung, "its request is one that was already tried")
    if action is Action.COMPACT and after.size() >= before.size():
        return _skip(run, decision.rung, "compacting did not make it smaller")
    run.append(ev.Changed(run.clock.now(), after, digest, before.changed(after), prompt))
    return True


def _call_rung_handler(
    run: RecoveryRun, changer: Callable[..., Any], request: Request
) -> Generator[Move, Reply, Request]:
    made, error = yield CallPort(changer, (request, run.incident))
    if error is not None:
        raise error
    if isinstance(made, Request):
        return made
    raise TypeError("a changer must return a rung.Request")


def _skip(run: RecoveryRun, rung: int, reason: str) -> bool:
    run.append(ev.Skipped(run.clock.now(), rung, reason))
    return False


def _take_checkpoint(run: RecoveryRun, rung: int, label: str) -> Steps:
    if run.checkpoint is None or not run.policy.checkpoints:
        return
    reference, error = yield from _call(run, "checkpoint", run.checkpoint.take, label)
    if error is None:
        run.append(ev.CheckpointTaken(run.clock.now(), rung, reference))


def _ask(run: RecoveryRun, question: ev.Ask) -> Generator[Move, Reply, ev.Decision | None]:
    """Put the question; nobody there means blocked, never a guess."""
    assert run.asker is not None  # noqa: S101  # decide asks only where somebody is there
    answer, _ = yield from _call(run, "asker", run.asker, question, run.incident)
    if answer not in {option.id for option in question.options}:
        return run.append_decision(ev.Finish(question.rung, ev.Status.BLOCKED, f"nobody answered: {question.question}"))
    return run.answered(answer)


def _persist_and_notify(run: RecoveryRun, *, final: bool = False) -> Steps:
    """Write new events to the journal, then notify the listeners, in this order, before every act.

    Nobody waits for the final events, so that a journal may write them later.
    """
    first = run.published
    fresh = run.drain()
    if not fresh:
        return
    if final and run.lazy_log is not None:
        yield from _call(run, "journal", run.lazy_log.append_final, run.incident.id, first, fresh)
    elif run.journal is not None:
        kept, _ = yield from _call(run, "journal", _append, run.journal, run.incident.id, first, fresh)
        if isinstance(kept, _Pending):
            run.pending = kept
    run.notify(fresh)


class _Pending(NamedTuple):
    """Events that are on their way to the journal."""

    future: Future[Any]


def _append(journal: EventLog, incident: str, first: int, events: Sequence[ev.Event]) -> Any:
    kept = journal.append(incident, first, events)
    return _Pending(cast("Future[Any]", kept)) if hasattr(kept, "add_done_callback") else kept


def _await_persisted(run: RecoveryRun) -> Steps:
    """What was decided is safe before it is acted on; the commit had the pause before the attempt to itself.

    Before a first attempt nothing was: it waits for nothing.
    """
    pending, run.pending = run.pending, None
    if pending is not None and run.incident.decision is not None and not pending.future.done():
        yield from _call(run, "journal", _itself, pending.future)


def _itself(future: Future[Any]) -> Future[Any]:
    return future  # both loops wait for what they are given


def _call(run: RecoveryRun, what: str, function: Callable[..., Any], *arguments: Any) -> Generator[Move, Reply, Reply]:
    """Call a port that must not break the recovery: an error is recorded, and the reply holds it."""
    reply = yield CallPort(function, arguments)
    error = reply[1]
    if error is not None:
        run.crashed(what, error)
    return reply
