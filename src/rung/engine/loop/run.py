"""State of one running recovery: its ports, its event log, and the incident that the events fold into."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from functools import partial
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.classify.failure_cache import classify_cached
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptTimeout, CircuitOpenError
from rung.core.domain.failures import is_passing
from rung.core.domain.incident import FOLDS, Incident
from rung.core.domain.outcome import build_outcome
from rung.core.policy.breaker import CallVerdict, CircuitState, Permit
from rung.core.recovery.circuit import announced_wait, breaker_verdict, gives_up_service
from rung.engine.local_zone import local_zone
from rung.engine.loop.ids import INCIDENT_IDS
from rung.engine.loop.journal_consultation import consult_journal
from rung.engine.loop.run_attributes import NO_REPORTS, RunAttributes
from rung.engine.ports.clock import EPOCH, SYSTEM_CLOCK
from rung.engine.timeouts.attempt_reports import MAIN_THREAD_REPORTS, any_since, collect, listeners
from rung.engine.timeouts.patience import Patience
from rung.engine.timeouts.sync_timeout import MAIN_THREAD_ID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from rung.core.domain.failures import Failure
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.breaker import Breaker
    from rung.engine.ports.journal import JournalPorts

D = TypeVar("D", bound=ev.Decision)
_CLOSED: Final = CircuitState.CLOSED
_GOOD: Final = CallVerdict.GOOD
_NEUTRAL: Final = CallVerdict.NEUTRAL
SUSPEND: Final = "suspend"  # action of the event `ordered` of a durable run that was stopped from outside
# Frequent events are created without the constructor of their class, which costs three times as much.
_event: Final = tuple.__new__

CURRENT: ContextVar[RecoveryRun | None] = ContextVar("rung_run", default=None)


class RecoveryRun(RunAttributes):
    """One running recovery."""

    parent: RecoveryRun | None = None  # the enclosing one

    def __init__(self) -> None:
        self.incident = Incident()
        self.log: list[ev.Event] = []

    @classmethod
    def create(cls, attributes: Mapping[str, Any]) -> Self:
        """Create a run with its own policy and ports, by the names of the class attributes."""
        run = cls()
        run.__dict__.update(attributes)
        return run

    def use_journal(self, journal: JournalPorts) -> None:
        """Record this run, whose events are not published yet, in a journal that was opened after its creation."""
        self.terms = terms = self.terms._replace(
            project=journal.project, session=self.terms.session or INCIDENT_IDS.process_name
        )
        for name, port in journal.run_attributes().items():
            setattr(self, name, port)
        self.lazy_log, self.has_observers = journal.lazy_log, True
        if self.log and isinstance(self.log[0], ev.Opened):
            self.log[0] = self.log[0]._replace(terms=terms)
            self.incident.terms = terms

    def open(self, request: Request | None, now: float, name: str = "") -> None:
        """Open the incident, within the deadline and the dollar cap of the enclosing one."""
        budget = self.policy.budget
        deadline = None if budget.seconds is None else now + budget.seconds
        dollars = budget.dollars
        outer_id = ""
        used: tuple[tuple[str, int], ...] = ()
        parent = CURRENT.get()
        if parent is not None:
            self.parent = parent
            outer = parent.incident
            outer_id = outer.id
            outer_deadline = outer.deadline
            if outer_deadline is not None and self.clock is not parent.clock:
                outer_deadline += self.clock.now() - parent.clock.now()  # converted to this run's clock
            deadline = _min_known(deadline, outer_deadline)
            if outer.dollar_cap is not None:
                dollars = _min_known(dollars, max(0.0, outer.dollar_cap - outer.dollars - parent.attempt_dollars))
        if self.session is not None:
            used = tuple(self.session.tries_used.items())
        self.began = now
        values = (now, name or INCIDENT_IDS.next(), self.terms, request, deadline, dollars, outer_id, used)
        self.append(_event(ev.Opened, values))

    def append(self, event: ev.Event) -> None:
        """Append an event to the log and fold it into the incident."""
        self.log.append(event)
        FOLDS[type(event)](self.incident, event)

    def drain(self) -> Sequence[ev.Event]:
        """Return the events that are not published yet. Without a journal or listener, return none."""
        if not self.has_observers:
            return ()
        new_events = self.log[self.published :]
        self.published = len(self.log)
        return new_events

    def notify(self, events: Sequence[ev.Event]) -> None:
        """Call the listeners. An error of a listener is recorded, shown as a warning and ignored."""
        for event in events:
            for listener in self.listeners:
                what = f"listener {_listener_name(listener)}"
                if isinstance(event, ev.Crashed) and event.what == what:
                    continue  # a listener is not called for its own crash: it would crash again
                try:
                    listener(event, self.incident)
                except Exception as error:  # a listener must not end the recovery
                    self.record_crash(what, error)

    def record_crash(self, what: str, error: Exception, effect: str = "and was ignored") -> None:
        """Record the error of an extension and warn the user. The recovery continues."""
        import warnings

        from rung.core.classify.evidence import describe_error

        text = describe_error(error)
        self.append(ev.Crashed(self.clock.now(), what, text))
        warnings.warn(f"rung: {what} failed {effect}: {text}", RuntimeWarning, stacklevel=2)

    def admit(self) -> CircuitOpenError | None:
        """Prepare an attempt and ask the circuit breaker. An open circuit is a failure without an attempt."""
        self.began = now = self.clock.now()
        self.attempt_dollars = 0.0
        self.has_visible_effects = self.prompt_unread = False
        self.reports_since = NO_REPORTS if self.is_async or get_ident() != MAIN_THREAD_ID else EPOCH + monotonic()
        self.attempt_made = True
        self.error = None
        key = self.select_breaker()
        breaker = self.breaker
        if breaker is None or breaker.circuit is _CLOSED:
            self.permit = None
            return None
        answer = breaker.admit(now)
        if isinstance(answer, Permit):
            self.permit = answer
            return None
        self.attempt_made = False
        return CircuitOpenError(key, answer)

    def select_breaker(self) -> str:
        """Select the circuit breaker for the current request and return its key."""
        request, key = self.incident.request, self.breaker_key
        if not isinstance(key, str):
            key = key(request)
        key = key or (request.model if request is not None else "")
        if key and self.breakers is not None:
            self.breaker = self.breakers.get(key)
        return key

    def watch_progress(self) -> None:
        """Give the attempt that begins as much patience as the history of similar attempts allows."""
        history, request, limits = self.history, self.incident.request, self.policy.stalls
        self.patience = None
        if history is None or request is None or not limits.enabled:
            return
        if self.seconds is None or self.seconds > limits.min_seconds:
            self.patience = Patience(
                limits, partial(history.similar_durations, self.incident.id, request.model, request.agent)
            )

    def note_progress(self) -> None:
        """Note that the running attempt is at work, here and in the enclosing recoveries."""
        run: RecoveryRun | None = self
        while run is not None:
            if run.patience is not None:
                run.patience.note_progress()
            run = run.parent

    def note_cost(self) -> None:
        """Note that the running attempt has reported its cost, here and in the enclosing recoveries."""
        run: RecoveryRun | None = self
        while run is not None:
            run.has_heard_cost = True
            run = run.parent

    def deadline_error(self) -> AttemptTimeout:
        """Return the error of an attempt that is not made because the deadline has passed."""
        self.attempt_made = False
        return AttemptTimeout(0.0)

    @property
    def has_side_effects(self) -> bool:
        """Whether the running attempt, or a thread that may belong to it, has reported output or a side effect."""
        return self.has_visible_effects or MAIN_THREAD_REPORTS.side_effect_at >= self.reports_since

    def record_report(self, **report: Any) -> None:
        """Record a report of the running attempt in this run and the enclosing ones, if they are durable."""
        self.note_progress()
        run: RecoveryRun | None = self
        while run is not None:
            if run.attempt_recorder is not None:
                run.attempt_recorder.reported(report)
            run = run.parent if "dollars" in report else None

    def record_error(self, error: Exception) -> Failure:
        """Classify and record the error that the attempt raised."""
        self.error = error
        failure = with_stack(classify_cached(error, self.clock.now(), local_zone), error)
        if self.has_side_effects:
            failure = failure._replace(evidence=failure.evidence._replace(side_effects=True))
        return self.record_failure(failure)

    def record_rejected(self, failure: Failure) -> Failure:
        """Record an attempt whose result the check has rejected."""
        if self.prompt_unread:
            failure = failure._replace(evidence=failure.evidence._replace(prompt_unread=True))
        return self.record_failure(failure)

    def record_failure(self, failure: Failure) -> Failure:
        """Record a failed attempt, with the verdict for the circuit breaker."""
        if self.before_failure is not None:
            self.before_failure()
        now = self.clock.now()
        if self.breaker is not None and self.attempt_made:
            self.breaker.record(self.permit, self.began, now, breaker_verdict(failure))
            announced = None if self.permit is None else announced_wait(failure)
            if announced is not None and is_passing(failure):
                self.breaker.postpone_probe(now, min(announced, self.policy.retry_after_cap))
        budget = self.retry_budget
        room = budget is None or budget.affords(now)
        self.append(
            _event(ev.AttemptFailed, (now, failure, now - self.began, self.attempt_dollars, room, self.attempt_made))
        )
        return failure

    def decide(self, failure: Failure) -> ev.Decision:
        """Decide what to do about a failure, and append the decision."""
        from rung.core.recovery.decide import decide  # imported at the first failure, and with it the classifier

        if self.policy.learn.enabled:
            consult_journal(self, failure)
        now = self.clock.now()
        if self.session is None:
            decision = self.append_decision(decide(self.incident, failure, self.policy, now, self.jitter()), now)
        else:
            with self.session.lock:  # calls of one session in several threads: the session switches once
                target = self.session.target_of(self.incident)
                if target is not None:
                    self.append(ev.SessionSwitched(now, *target))
                decision = self.append_decision(decide(self.incident, failure, self.policy, now, self.jitter()), now)
        if self.is_logged:
            from rung.engine.loop.recovery_log import log_decision  # imported at the first failure

            log_decision(self, failure, decision, now)
        return decision

    def append_decision(self, decision: D, now: float | None = None) -> D:
        """Append a decision. A scheduled retry is charged to the retry budget now, not when it runs."""
        self.previous_decision = self.incident.active_decision
        tries = self.incident.tries_used.get(decision.rung, 0)
        now = self.clock.now() if now is None else now
        self.append(_event(ev.Decided, (now, decision)))
        if self.breaker is not None and self.breaker.settings.at_handover:
            self._open_if_left(self.breaker, decision, now)
        if self.session is not None and self.incident.tries_used.get(decision.rung, 0) > tries:
            self.session.record_try(self.incident, decision, self.policy.ladder.rungs[decision.rung])
        if self.retry_budget is not None and ev.is_retry(decision) and self.incident.failure is not None:
            self.retry_budget.charge()
        return decision

    def _open_if_left(self, breaker: Breaker, decision: ev.Decision, now: float) -> None:
        """Open the circuit of a service that a decision leaves because it is down, so that other calls do not try it as often."""
        failure = self.incident.failure
        if failure is None or not gives_up_service(decision, failure):
            return
        if isinstance(decision, ev.Repeat):
            self.select_breaker()
            if self.breaker is breaker:
                return  # it is the one that is waited for
        announced = min(announced_wait(failure) or 0.0, self.policy.retry_after_cap)
        breaker.open_if_failing(self.incident.opened_at, now, max(breaker.pause, announced))

    def record_answer(self, answer: str) -> ev.Decision | None:
        """Record an operator's answer. Return the decision it makes, or None if it only excludes an option."""
        from rung.core.recovery.decide import decision_from_answer  # as above

        now = self.clock.now()
        self.append(ev.Answered(now, answer))
        decision = decision_from_answer(self.incident, self.policy, now)
        return None if decision is None else self.append_decision(decision, now)

    def record_success(self, value: Any) -> None:
        """Record a successful attempt and its value."""
        now = self.clock.now()
        if self.breaker is not None:
            self.breaker.record(self.permit, self.began, now, _GOOD)
        self.value = self.whole_value(value)
        self.error = None
        self.append(_event(ev.AttemptSucceeded, (now, now - self.began, self.attempt_dollars, self.check is not None)))
        self._propagate()
        if self.incident.attempts > 1 and self.is_logged:
            from rung.engine.loop.recovery_log import log_recovered

            log_recovered(self.log_name, self.incident.attempts, now - self.incident.opened_at, self.incident)

    def whole_value(self, value: Any) -> Any:
        """Return the value of the last attempt with the truncated part before it, if the attempt continued one."""
        incident = self.incident
        joined = incident.partial_output and incident.resuming and isinstance(value, str)
        return incident.partial_output + value if joined else value

    def close(self, decision: ev.Finish) -> None:
        """Close the incident without a success."""
        now = self.clock.now()
        self.append(ev.Closed(now, decision.status, decision.reason))
        self._propagate()
        if self.is_logged:
            from rung.engine.loop.recovery_log import log_end

            log_end(self, now)

    def record_cancelled(self, reason: str = "stopped from outside") -> None:
        """Record and publish a cancellation or Ctrl-C. `recover` waits for the append in `last_append`.

        A run that can be resumed stays open in the journal: only its caller and the listeners are told that it has ended here.
        """
        if self.incident.status is not None:
            return
        now = self.clock.now()
        if self.incident.parked_until is not None:
            from rung.core.text.moments import rfc3339

            reason = f"parked until {rfc3339(self.incident.parked_until)}"
        elif self.breaker is not None:
            self.breaker.record(self.permit, self.began, now, _NEUTRAL)
        first = self.published
        if self.stays_open:
            self.append(ev.Ordered(now, SUSPEND, _stopped_by(sys.exc_info()[1])))
            new_events = self.drain()
            self.append(ev.Cancelled(now, reason))
            self.published = len(self.log)
        else:
            self.append(ev.Cancelled(now, reason))
            new_events = self.drain()
        self._propagate()
        if self.journal is not None:
            try:
                self.last_append = self.journal.append(self.incident.id, first, new_events)
            except Exception as error:  # the caller is being cancelled: do not delay it
                self.record_crash("journal", error)
        self.notify([*new_events, self.log[-1]] if self.stays_open else new_events)
        if self.is_logged and self.incident.failure is not None:
            from rung.engine.loop.recovery_log import log_cancelled

            log_cancelled(self, reason)

    def outcome(self) -> Outcome[Any]:
        """Build the outcome."""
        return build_outcome(
            self.incident,
            self.policy.ladder,
            tuple(self.log),
            value=self.value,
            error=self.error,
            now=self.clock.now(),
            provider=self._provider(),
        )

    def _provider(self) -> str:
        """Return the provider of the request's model, as the policy names it; empty if it does not."""
        request = self.incident.request
        model = None if request is None else self.policy.model(request.model)
        return "" if model is None else model.provider

    def collect_reports(self) -> None:
        """Collect the reports that the last attempt made while there was no run."""
        if self.clock is not SYSTEM_CLOCK:
            return  # such calls never take the fast path, and report times are of the system clock
        if not any_since(self.began, is_async=self.is_async):
            return
        reports = collect(self.began, is_async=self.is_async)
        for at, step in reports.steps:
            self.append(ev.StepCompleted(at, step))
        self.has_visible_effects = reports.has_side_effects
        self.attempt_dollars = self.reported_dollars = reports.dollars

    def _propagate(self) -> None:
        """Add the cost to the enclosing recovery, and the tries to the session."""
        dollars = self.incident.dollars - self.earlier_dollars
        if self.parent is not None:
            self.parent.attempt_dollars += dollars
        elif dollars > self.reported_dollars:  # an enclosing guarded call may have no run
            cost = (SYSTEM_CLOCK.now(), dollars - self.reported_dollars)
            for receiver in listeners():
                receiver.add_cost(cost)
        if self.session is not None:
            self.session.record_closed(self.incident, self.policy)


def with_stack(failure: Failure, error: BaseException, traceback: TracebackType | None = None) -> Failure:
    """Return the failure with the stack of its exception. Equal exceptions share a cached failure, but not a stack."""
    from rung.core.classify import stack_trace  # imported at the first failure: a success needs none of it

    evidence = stack_trace.with_stack(failure.evidence, error, traceback)
    return failure if evidence is failure.evidence else failure._replace(evidence=evidence)


def _stopped_by(error: BaseException | None) -> str:
    """Return who stopped a run: a signal or another cause that the interrupt names, Ctrl-C, or else the caller."""
    if isinstance(error, GeneratorExit):  # the driver closes its steps because of this
        error = error.__context__
    if not isinstance(error, KeyboardInterrupt):
        return "its caller"
    return str(error) or ("Ctrl-C" if type(error) is KeyboardInterrupt else "its caller")


def _min_known(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


def _listener_name(listener: object) -> str:
    return getattr(listener, "__qualname__", type(listener).__qualname__)
