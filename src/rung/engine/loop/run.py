"""The working state of one recovery: its ports, its log of events, and the incident they fold into."""

from __future__ import annotations

from contextvars import ContextVar
from random import random
from threading import get_ident
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rung.core.classify.classifier import FAILURE_CACHE, classify
from rung.core.domain import events as ev
from rung.core.domain.errors import AttemptTimeout, CircuitOpenError
from rung.core.domain.failures import PROVIDER_KINDS, Phase
from rung.core.domain.incident import FOLDS, Incident
from rung.core.domain.outcome import build_outcome
from rung.core.policy.breaker import CallVerdict, CircuitState, Permit
from rung.core.policy.policy import Sticky
from rung.core.recovery.decide import decide, decision_from_answer
from rung.engine.loop.ids import NUMBERS
from rung.engine.ports import EPOCH, SystemClock
from rung.engine.timeouts.attempt_reports import MAIN_THREAD, any_since, collect, listeners
from rung.engine.timeouts.sync_timeout import MAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.domain.failures import Failure
    from rung.core.domain.outcome import Outcome
    from rung.core.domain.request import Request
    from rung.core.policy.breaker import Breaker
    from rung.core.policy.budget import RetryBudget
    from rung.core.policy.policy import Policy
    from rung.core.recovery.decide import FirstRetryCache
    from rung.core.recovery.interventions import Intervention
    from rung.engine.loop.process_state import BreakerRegistry
    from rung.engine.ports import (
        AttemptRecorder,
        Checkpoint,
        Clock,
        EventLog,
        Interventions,
        LazyEventLog,
        Listener,
        Operator,
        Remedies,
        ResultValidator,
        RungHandler,
    )
    from rung.engine.session import Session

SYSTEM_CLOCK: Final = SystemClock()
NO_CHANGES: Final[Mapping[str, RungHandler]] = MappingProxyType({})

D = TypeVar("D", bound=ev.Decision)
_CLOSED: Final = CircuitState.CLOSED
_GOOD: Final = CallVerdict.GOOD
_BAD: Final = CallVerdict.BAD
_NEUTRAL: Final = CallVerdict.NEUTRAL
_TOOL: Final = Phase.TOOL
_NEVER: Final = float("inf")
# The events of every recovery are made without the constructor of their class, which costs three times as much.
_event: Final = tuple.__new__

CURRENT: ContextVar[RecoveryRun | None] = ContextVar("rung_run", default=None)


class RecoveryRun:
    """One recovery at work.

    Ports and policy are class attributes: a guarded function has a subclass with its own, so that
    beginning a run costs no more than its incident and its log.
    """

    policy: Policy
    terms: ev.IncidentContext
    clock: Clock = SYSTEM_CLOCK
    jitter: Callable[[], float] = staticmethod(random)
    listeners: Sequence[Listener] = ()
    journal: EventLog | None = None
    lazy_log: LazyEventLog | None = None
    interventions: Interventions | None = None
    remedies: Remedies | None = None
    observed: bool = False  # there is a journal or a listener
    asker: Operator | None = None
    check: ResultValidator | None = None
    checkpoint: Checkpoint | None = None
    changes: Mapping[str, RungHandler] = NO_CHANGES
    breakers: BreakerRegistry | None = None
    breaker: Breaker | None = None  # of the running attempt
    breaker_key: str | Callable[[Request | None], str] = ""  # empty: each model has its own
    retry_budget: RetryBudget | None = None
    session: Session | None = None
    first_repeats: FirstRetryCache | None = None  # of a guarded function
    keeper: AttemptRecorder | None = None  # of a run that survives its process

    parent: RecoveryRun | None = None
    value: Any = None
    error: Exception | None = None
    permit: Permit | None = None
    before: ev.Decision | None = None  # what stood before the decision in force
    began: float = 0.0
    seconds: float | None = None  # time limit of the running attempt
    made: bool = True
    awaited: bool = False  # its attempts are coroutines
    heard_since: float = _NEVER  # what is reported to no run since then may be of the running attempt
    spent: float = 0.0  # dollars the running attempt has reported
    told: float = 0.0  # dollars that whoever we are part of has heard of, too
    visible: bool = False  # the running attempt has reported output or a side effect
    published: int = 0
    pending: Any = None  # events on their way to the journal
    last_word: Any = None  # that it was stopped, on its way there
    order: Intervention | None = None  # a person's, given while it waited, to be obeyed

    def __init__(self) -> None:
        self.incident = Incident()
        self.log: list[ev.Event] = []

    def open(self, request: Request | None, now: float, name: str = "") -> None:
        """Begin, within the limits of an incident we are part of."""
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
            ends = outer.deadline
            if ends is not None and self.clock is not parent.clock:
                ends += self.clock.now() - parent.clock.now()  # the same moment, on our own clock
            deadline = _least(deadline, ends)
            if outer.dollar_cap is not None:
                dollars = _least(dollars, max(0.0, outer.dollar_cap - outer.dollars - parent.spent))
        if self.session is not None:
            used = tuple(self.session.used.items())
        self.began = now
        values = (now, name or NUMBERS.next(), self.terms, request, deadline, dollars, outer_id, used)
        self.append(_event(ev.Opened, values))

    def append(self, event: ev.Event) -> None:
        """A new fact."""
        self.log.append(event)
        FOLDS[type(event)](self.incident, event)

    def drain(self) -> Sequence[ev.Event]:
        """Events nobody has been told of yet; none are kept back for nobody."""
        if not self.observed:
            return ()
        fresh = self.log[self.published :]
        self.published = len(self.log)
        return fresh

    def notify(self, events: Sequence[ev.Event]) -> None:
        """Tell the listeners; one that breaks is recorded, shown and passed over."""
        for event in events:
            for listener in self.listeners:
                what = f"listener {_called(listener)}"
                if isinstance(event, ev.Crashed) and event.what == what:
                    continue  # telling it of its own crash would only make another
                try:
                    listener(event, self.incident)
                except Exception as error:  # an extension must not break the loop
                    self.crashed(what, error)

    def crashed(self, what: str, error: Exception) -> None:
        """An extension broke: fail open, and say so where the user will see it."""
        import warnings

        words = f"{type(error).__name__}: {error}"
        self.append(ev.Crashed(self.clock.now(), what, words))
        warnings.warn(f"rung: {what} broke and was ignored: {words}", RuntimeWarning, stacklevel=2)

    def admit(self) -> CircuitOpenError | None:
        """Ask the breaker; a refusal is a failure without an attempt."""
        self.began = now = self.clock.now()
        self.spent = 0.0
        self.visible = False
        self.heard_since = _NEVER if self.awaited or get_ident() != MAIN else EPOCH + monotonic()
        self.made = True
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
        self.made = False
        return CircuitOpenError(key, answer)

    def select_breaker(self) -> str:
        """Take the breaker of the request being attempted; its key."""
        request, key = self.incident.request, self.breaker_key
        if not isinstance(key, str):
            key = key(request)
        key = key or (request.model if request is not None else "")
        if key and self.breakers is not None:
            self.breaker = self.breakers.get(key)
        return key

    def deadline_error(self) -> AttemptTimeout:
        """There is no time left to make an attempt in: a failure without one."""
        self.made = False
        return AttemptTimeout(0.0)

    def failed(self, error: Exception) -> Failure:
        """The attempt raised this: name it, count it, write it down."""
        self.error = error
        failure = classify_cached(error)
        if self.visible or MAIN_THREAD.touched >= self.heard_since:
            failure = failure._replace(evidence=failure.evidence._replace(side_effects=True))
        return self.record_failure(failure)

    def record_failure(self, failure: Failure) -> Failure:
        """The attempt failed so."""
        now = self.clock.now()
        if self.breaker is not None and self.made:
            self.breaker.record(self.permit, self.began, now, vote(failure))
        herd = self.retry_budget
        room = herd is None or herd.affords(failure.kind)
        self.append(_event(ev.AttemptFailed, (now, failure, now - self.began, self.spent, room, self.made)))
        return failure

    def decide(self, failure: Failure) -> ev.Decision:
        """What to do about it, written down before it is done."""
        if self.policy.learn and self.incident.decision is None:
            self._recall(failure)
        now = self.clock.now()
        if self.first_repeats is not None:
            return self.append_decision(self.first_repeats.decide(self.incident, failure, now, self.jitter()), now)
        return self.append_decision(decide(self.incident, failure, self.policy, now, self.jitter()), now)

    def _recall(self, failure: Failure) -> None:
        """Ask the journal, where it remembers anything, what helped with this failure before."""
        if self.remedies is None:
            return
        try:
            name = self.remedies.suggest_rung(self.terms.project, failure)
        except Exception as error:  # a memory that fails must not stand in the way
            self.crashed("memory", error)
            return
        if name is not None and name in self.terms.rungs:
            rung = self.terms.rungs.index(name)
            self.append(ev.Hinted(self.clock.now(), rung, f"{name} worked last time"))

    def append_decision(self, decision: D, now: float | None = None) -> D:
        """Write a decision down; a retry that it schedules is charged now, not when it runs."""
        self.before = self.incident.active_decision
        self.append(_event(ev.Decided, (self.clock.now() if now is None else now, decision)))
        if self.retry_budget is not None and isinstance(decision, ev.Repeat) and self.incident.failure is not None:
            self.retry_budget.charge(self.incident.failure.kind)
        return decision

    def answered(self, answer: str) -> ev.Decision | None:
        """A person chose; None when that only closed a way and the ladder goes on."""
        now = self.clock.now()
        self.append(ev.Answered(now, answer))
        decision = decision_from_answer(self.incident, self.policy, now)
        return None if decision is None else self.append_decision(decision, now)

    def succeeded(self, value: Any) -> None:
        """The result is good."""
        now = self.clock.now()
        if self.breaker is not None:
            self.breaker.record(self.permit, self.began, now, _GOOD)
        incident = self.incident
        if incident.partial_output and incident.resuming and isinstance(value, str):
            value = incident.partial_output + value
        self.value = value
        self.error = None
        self.append(_event(ev.AttemptSucceeded, (now, now - self.began, self.spent)))
        if self.retry_budget is not None:
            self.retry_budget.credit()
        self._settle()

    def close(self, decision: ev.Finish) -> None:
        """It ends without a success."""
        self.append(ev.Closed(self.clock.now(), decision.status, decision.reason))
        self._settle()

    def stopped(self, reason: str = "stopped from outside") -> None:
        """Ended before its time (a cancellation, Ctrl-C): recorded and told; see `recover` for the last word."""
        if self.incident.status is not None:
            return
        now = self.clock.now()
        if self.breaker is not None:
            self.breaker.record(self.permit, self.began, now, _NEUTRAL)
        self.append(ev.Cancelled(now, reason))
        self._settle()
        first = self.published
        fresh = self.drain()
        if self.journal is not None:
            try:
                self.last_word = self.journal.append(self.incident.id, first, fresh)
            except Exception as error:  # the caller is on its way out; do not stand in the way
                self.crashed("journal", error)
        self.notify(fresh)

    def outcome(self) -> Outcome[Any]:
        """How it ended."""
        return build_outcome(
            self.incident,
            self.policy.ladder,
            tuple(self.log),
            value=self.value,
            error=self.error,
            now=self.clock.now(),
            sticky=self.policy.sticky is Sticky.SESSION,
        )

    def take_reports(self) -> None:
        """What the attempt just made reported while there was no run to tell."""
        if self.clock is not SYSTEM_CLOCK:
            return  # such calls never take the fast path, and their times mean nothing here
        if not any_since(self.began, awaited=self.awaited):
            return
        heard = collect(self.began, awaited=self.awaited)
        for at, step in heard.steps:
            self.append(ev.StepCompleted(at, step))
        self.visible = heard.touched
        self.spent = self.told = heard.dollars

    def _settle(self) -> None:
        """Tell the incident we are part of, and the session, what they have to remember."""
        if self.parent is not None:
            self.parent.spent += self.incident.dollars
        elif self.incident.dollars > self.told:  # we may be part of a call that has no run
            said = (SYSTEM_CLOCK.now(), self.incident.dollars - self.told)
            for reports in listeners():
                reports.spent(said)
        if self.session is not None:
            self.session.settle(self.incident, self.policy)


def vote(failure: Failure) -> CallVerdict:
    """What a failure says about the service; a tool's trouble, or the caller's own fault, says nothing."""
    return _BAD if failure.kind in PROVIDER_KINDS and failure.evidence.phase is not _TOOL else _NEUTRAL


# Naming is a pure function of an exception's class and arguments, where it carries nothing else.
_NAMED_LIMIT: Final = 1_024


def classify_cached(error: Exception) -> Failure:
    """The failure in an exception; one that is equal to an earlier one has its name."""
    if error.__cause__ is not None or error.__context__ is not None or error.__dict__:
        return classify(error)
    key = (type(error), error.args)
    try:
        failure = FAILURE_CACHE.get(key)
    except TypeError:  # arguments that cannot be hashed
        return classify(error)
    if failure is None:
        failure = classify(error)
        if isinstance(error, OSError) and error.filename is not None:
            return failure  # the name is in its text, but not among its arguments
        if len(FAILURE_CACHE) >= _NAMED_LIMIT:
            FAILURE_CACHE.clear()
        FAILURE_CACHE[key] = failure
    return failure


def _least(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


def _called(listener: object) -> str:
    return getattr(listener, "__qualname__", type(listener).__qualname__)
