"""The working state of one recovery: its ports, its log of events, and the incident they fold into."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace
from itertools import count
from os import urandom
from random import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rung.core import events as ev
from rung.core.breaker import Permit, Vote
from rung.core.classify import classify
from rung.core.errors import Refused
from rung.core.evidence import clip
from rung.core.failures import SERVICE_TROUBLE, Kind
from rung.core.incident import Incident
from rung.core.outcome import conclude
from rung.core.policy import Sticky
from rung.engine.ports import SystemClock
from rung.engine.step import Raised, Returned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.breaker import Breaker
    from rung.core.budget import RetryBudget
    from rung.core.failures import Failure
    from rung.core.outcome import Outcome
    from rung.core.policy import Policy
    from rung.core.request import Request
    from rung.engine.ports import Asker, Changer, Check, Checkpoint, Clock, Journal, Listener
    from rung.engine.session import Session

SYSTEM_CLOCK: Final = SystemClock()
NO_CHANGES: Final[Mapping[str, Changer]] = MappingProxyType({})
_NOTHING_USED: Final[Mapping[str, int]] = MappingProxyType({})
_PROCESS: Final = urandom(4).hex()
_NUMBERS: Final = count(1)

CURRENT: ContextVar[Run | None] = ContextVar("rung_run", default=None)


class Run:
    """One recovery at work. Ports are class attributes with their defaults; set what is there."""

    clock: Clock = SYSTEM_CLOCK
    jitter: Callable[[], float] = staticmethod(random)
    listeners: Sequence[Listener] = ()
    journal: Journal | None = None
    asker: Asker | None = None
    check: Check | None = None
    checkpoint: Checkpoint | None = None
    changes: Mapping[str, Changer] = NO_CHANGES
    breaker: Breaker | None = None
    breaker_key: str = ""
    retry_budget: RetryBudget | None = None
    session: Session | None = None
    parent: Run | None = None

    value: Any = None
    error: Exception | None = None
    permit: Permit | None = None
    made: bool = True
    began: float = 0.0
    seconds: float = 0.0
    spent: float = 0.0  # dollars the running attempt has reported
    visible: bool = False  # the running attempt has reported output or a side effect
    published: int = 0

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.incident = Incident()
        self.log: list[ev.Event] = []

    def open(self, request: Request | None, now: float, *, idempotent: bool = False) -> None:
        """Begin, within the limits of an incident we are part of."""
        budget, parent, session = self.policy.budget, self.parent, self.session
        deadline = None if budget.seconds is None else now + budget.seconds
        dollars = budget.dollars
        if parent is not None:
            outer = parent.incident
            deadline = _least(deadline, outer.deadline)
            if outer.dollar_cap is not None:
                dollars = _least(dollars, max(0.0, outer.dollar_cap - outer.dollars - parent.spent))
        self.began = now
        self.record(
            ev.Opened(
                now,
                f"{_PROCESS}-{next(_NUMBERS)}",
                self.policy.ladder.name,
                self.policy.name,
                request,
                deadline,
                dollars,
                self.asker is not None and not self.policy.unattended,
                idempotent or (request is not None and request.idempotent),
                "" if parent is None else parent.incident.id,
                _NOTHING_USED if session is None else dict(session.used),
            )
        )

    def record(self, event: ev.Event) -> None:
        """A new fact."""
        self.log.append(event)
        self.incident.fold(event)

    def unpublished(self) -> Sequence[ev.Event]:
        """Events nobody has been told of yet; none are kept back for nobody."""
        if self.journal is None and not self.listeners:
            return ()
        fresh = self.log[self.published :]
        self.published = len(self.log)
        return fresh

    def tell(self, events: Sequence[ev.Event]) -> None:
        """Tell the listeners; one that breaks is recorded, shown and passed over."""
        for event in events:
            for listener in self.listeners:
                try:
                    listener(event, self.incident)
                except Exception as error:  # an extension must not break the loop
                    self.crashed(f"listener {_name(listener)}", error)

    def crashed(self, what: str, error: Exception) -> None:
        """An extension broke: fail open, and say so where the user will see it."""
        import warnings

        words = f"{type(error).__name__}: {error}"
        self.record(ev.Crashed(self.clock.now(), what, words))
        warnings.warn(f"rung: {what} broke and was ignored: {words}", RuntimeWarning, stacklevel=2)

    def admit(self) -> Refused | None:
        """Ask the breaker; a refusal is a failure without an attempt."""
        self.began = now = self.clock.now()
        self.spent = 0.0
        self.visible = False
        self.made = True
        if self.breaker is None:
            return None
        answer = self.breaker.admit(now)
        if isinstance(answer, Permit):
            self.permit = answer
            return None
        self.seconds = 0.0
        self.made = False
        return Refused(self.breaker_key, answer)

    def attempted(self, reply: Returned | Raised) -> None:
        """An attempt has ended, either way."""
        now = self.clock.now()
        self.seconds = now - self.began
        if isinstance(reply, Returned):
            self._vote(now, Vote.GOOD)

    def read(self, error: Exception) -> Failure:
        """Name the failure in an exception."""
        self.error = error
        failure = known(error)
        if failure is None:
            failure = classify(error)
            remember(error, failure)
        if self.visible:
            failure = replace(failure, evidence=replace(failure.evidence, side_effects=True))
        self._vote(self.clock.now(), Vote.BAD if failure.kind in SERVICE_TROUBLE else Vote.NEUTRAL)
        return failure

    def succeed(self, reply: Returned | Raised) -> None:
        """The result is good."""
        value = reply.value if isinstance(reply, Returned) else None
        incident = self.incident
        if incident.resuming and isinstance(value, str):
            value = incident.written + value
        self.value = value
        self.error = None
        self.record(ev.AttemptSucceeded(self.clock.now(), self.seconds, self.spent))
        if self.retry_budget is not None:
            self.retry_budget.credit()
        self._settle()

    def fail(self, failure: Failure) -> None:
        """The attempt failed so."""
        room = self.retry_budget is None or self.retry_budget.affords(failure.kind)
        self.record(ev.AttemptFailed(self.clock.now(), failure, self.seconds, self.spent, room, self.made))

    def charge(self, kind: Kind) -> None:
        """A retry is scheduled: it counts now, not when it runs."""
        if self.retry_budget is not None:
            self.retry_budget.charge(kind)

    def close(self, decision: ev.Finish) -> None:
        """It ends without a success."""
        self.record(ev.Closed(self.clock.now(), decision.status, decision.reason))
        self._settle()

    def stopped(self) -> None:
        """Stopped from outside (a cancellation, Ctrl-C): recorded and told, never held up."""
        now = self.clock.now()
        self._vote(now, Vote.NEUTRAL)
        self.record(ev.Cancelled(now, "stopped from outside"))
        self._settle()
        fresh = self.unpublished()
        if self.journal is not None:
            try:
                self.journal.append(self.incident.id, fresh)
            except Exception as error:  # the caller is on its way out; do not stand in the way
                self.crashed("journal", error)
        self.tell(fresh)

    def outcome(self) -> Outcome[Any]:
        """How it ended."""
        sticky = self.policy.sticky is Sticky.SESSION
        return conclude(
            self.incident,
            self.policy.ladder,
            tuple(self.log),
            value=self.value,
            error=self.error,
            now=self.clock.now(),
            sticky=sticky,
        )

    def _settle(self) -> None:
        """Tell the incident we are part of, and the session, what they have to remember."""
        if self.parent is not None:
            self.parent.spent += self.incident.dollars
        if self.session is not None:
            self.session.settle(self.incident, self.policy)

    def _vote(self, now: float, vote: Vote) -> None:
        if self.breaker is not None and self.permit is not None:
            self.breaker.record(self.permit, self.began, now, vote)
            self.permit = None


def completed(step: str) -> None:
    """Report a finished part of the work from inside an attempt: kept when it ends partial."""
    run = CURRENT.get()
    if run is not None:
        run.record(ev.StepCompleted(run.clock.now(), clip(step, 500)))


def spend(dollars: float) -> None:
    """Report what the running attempt has cost so far, in US dollars; adds up."""
    run = CURRENT.get()
    if run is not None:
        run.spent += dollars


def touched() -> None:
    """Say from inside an attempt that its effects can be seen: it will not be replayed as it was."""
    run = CURRENT.get()
    if run is not None:
        run.visible = True


# Naming is a pure function of the exception's class and arguments, where it carries nothing else.
_KNOWN: dict[tuple[Any, ...], Failure] = {}
_KNOWN_LIMIT: Final = 1_024


def _key(error: Exception) -> tuple[Any, ...] | None:
    if error.__cause__ is None and error.__context__ is None and not error.__dict__:
        return (type(error), error.args)
    return None


def known(error: Exception) -> Failure | None:
    """The failure an equal exception was named before."""
    key = _key(error)
    try:
        return None if key is None else _KNOWN.get(key)
    except TypeError:  # arguments that cannot be hashed
        return None


def remember(error: Exception, failure: Failure) -> None:
    """Keep the name for the next equal exception."""
    key = _key(error)
    if len(_KNOWN) >= _KNOWN_LIMIT:
        _KNOWN.clear()
    try:
        if key is not None:
            _KNOWN[key] = failure
    except TypeError:
        return


def _least(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


def _name(listener: object) -> str:
    return getattr(listener, "__qualname__", type(listener).__qualname__)
