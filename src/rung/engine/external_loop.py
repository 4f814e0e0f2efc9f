"""Recovery of a loop that Rung does not run: the caller reports each failure and carries out the decision.

`ExternalRecovery` is the only driver of `decide` outside the engine's own loop. It serves MCP sessions, the hooks of
coding agents, framework adapters and the conductor's tasks. It opens the incident, records events, honours the shared
retry budget and decides. It makes no attempt and never waits.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from rung.core.classify.classifier import classify
from rung.core.classify.redaction import redacted
from rung.core.domain import events as ev
from rung.core.domain.incident import Incident
from rung.core.domain.request import Request
from rung.core.recovery.decide import decide
from rung.engine.local_zone import local_zone
from rung.engine.loop.ids import INCIDENT_IDS
from rung.engine.loop.process_state import RETRY_BUDGET

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.outcome import Outcome
    from rung.core.policy.budget import RetryBudget
    from rung.core.policy.policy import Policy
    from rung.engine.ports.recovery import Listener


class Pending(Protocol):
    """An append that may still be under way."""

    def result(self) -> object:
        """Wait until the events are durable."""
        ...


class EventSink(Protocol):
    """Storage for an incident's events: a journal, or the state of the caller's loop."""

    def append(self, incident: str, first: int, events: Sequence[ev.Event], /) -> Pending | None:
        """Append events to an incident. The first one has the sequence number `first`."""
        ...


class ExternalRetryBudget:
    """Shared retry budget as external loops use it: a charge is returned after `seconds`.

    Such a loop reports its failures and few of its successes, so successes alone would never refill the budget.
    """

    def __init__(
        self,
        budget: RetryBudget = RETRY_BUDGET,
        *,
        seconds: float = 600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget, self._seconds, self._clock = budget, seconds, clock
        self._charges: deque[tuple[float, int]] = deque()  # when each is returned, and its tokens

    def affords(self) -> bool:
        """Return whether the budget allows one more retry."""
        now = self._clock()
        with suppress(IndexError):  # none is left
            while self._charges[0][0] <= now:
                self.budget.credit(self._charges.popleft()[1])
        return self.budget.affords()

    def charge(self) -> None:
        """Charge a scheduled retry."""
        self._charges.append((self._clock() + self._seconds, self.budget.price))
        self.budget.charge()

    def credit(self) -> None:
        """Count a success."""
        self.budget.credit()


PROCESS_BUDGET: Final = ExternalRetryBudget()


class ExternalRecovery:
    """One incident whose attempts are made by the caller.

    Events reach `journal` before a method returns; if the journal raises, the incident is as it was before the call.
    `events` continues a persisted incident; without them a new one is opened. `retry_budget` defaults to the one that
    the process shares; None means unlimited retries. `used` holds the tries that the session has already used on
    per-session rungs. `policy` may be replaced between two calls. `listeners` are called for each event.
    """

    def __init__(
        self,
        policy: Policy | str = "call",
        *,
        request: Request | None = None,
        events: Sequence[ev.Event] = (),
        journal: EventSink | None = None,
        incident_id: str = "",
        project: str = "",
        session: str = "",
        attended: bool = False,
        used: tuple[tuple[str, int], ...] = (),
        retry_budget: ExternalRetryBudget | None = PROCESS_BUDGET,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self._listeners = listeners
        self.policy = _policy_by_name(policy) if isinstance(policy, str) else policy
        self.events: list[ev.Event] = list(events)
        self.incident = Incident.of(self.events)
        self._journal, self._now = journal, now
        self._retry_budget = retry_budget if self.policy.retry_budget else None
        self._jitter = jitter or _random()
        if self.events:
            return
        ladder, budget, began = self.policy.ladder, self.policy.budget, now()
        terms = ev.IncidentContext(
            ladder.name,
            self.policy.name,
            attended=attended,
            rungs=tuple(rung.name for rung in ladder.rungs),
            project=project,
            session=session,
            tries=tuple(rung.tries for rung in ladder.rungs),
        )
        deadline = None if budget.seconds is None else began + budget.seconds
        name = incident_id or INCIDENT_IDS.next()
        self._append(ev.Opened(began, name, terms, request or Request(), deadline, budget.dollars, used=used))

    def failed(self, error: object, *, close: bool = True) -> ev.Decision:
        """Classify and record a failed attempt, then record and return the decision.

        A `Finish` also closes the incident, unless `close` is false because the caller's loop may continue.
        """
        now = self._now()
        failed = self._attempt_failed(error, now)
        self.incident.fold(failed)
        decision = decide(self.incident, failed.failure, self.policy, now, self._jitter())
        fresh: list[ev.Event] = [failed, ev.Decided(now, decision)]
        if close and isinstance(decision, ev.Finish):
            fresh.append(ev.Closed(now, decision.status, decision.reason))
        self._append(*fresh, folded=1)
        self._charge(decision)
        return decision

    def record_failure(self, error: object) -> None:
        """Record a failed attempt without making a decision."""
        self._append(self._attempt_failed(error, self._now()))

    def skip_rung(self, name: str, reason: str) -> None:
        """Record that the rung of this name cannot be taken any more. Done once."""
        index = self.policy.ladder.index(name)
        if index not in self.incident.exhausted:
            self._append(ev.Skipped(self._now(), index, reason))

    def record_decision(self, decision: ev.Decision) -> None:
        """Record a decision that was made and carried out elsewhere."""
        self._append(ev.Decided(self._now(), decision))
        self._charge(decision)

    def change_request(self, decision: ev.Decision) -> str:
        """Record the new request of the decided rung. Return the text for the model, or an empty string."""
        from rung.core.policy.prompts import prompt_id, render
        from rung.core.recovery.apply_rung import apply_rung
        from rung.core.recovery.known_bad import abandons, describe_approach, is_recorded

        failure, before = self.incident.failure, self.incident.request
        if not isinstance(decision, ev.Change | ev.HandOver) or before is None or failure is None:
            return ""
        if abandons(decision, self.policy.ladder, failure) and not is_recorded(self.incident, decision.rung):
            approach = describe_approach(self.incident, failure)
            self._append(ev.Abandoned(self._now(), decision.rung, approach))
        request, prompt = apply_rung(decision, self.incident, failure, self.policy)
        digest = request.digest()
        if digest not in self.incident.digests:
            self._append(ev.Changed(self._now(), request, digest, before.changed(request), prompt))
        if request.recovery and request.recovery != before.recovery:
            return request.recovery
        action = self.policy.ladder.rungs[decision.rung].action
        return render(prompt_id(action, failure), self.incident, failure, self.policy.prompts)

    def step_completed(self, step: str) -> None:
        """Record a finished part of the work."""
        self._append(ev.StepCompleted(self._now(), redacted(step)))

    def succeeded(self) -> None:
        """Record a successful attempt; it ends the incident."""
        self._append(ev.AttemptSucceeded(self._now(), 0.0, 0.0))
        if self._retry_budget is not None:
            self._retry_budget.credit()

    def close(self, status: ev.Status, reason: str) -> None:
        """End the incident without a success."""
        self._append(ev.Closed(self._now(), status, reason))

    def outcome(self) -> Outcome[None]:
        """Build the outcome of the closed incident."""
        from rung.core.domain.outcome import build_outcome

        events, ladder = tuple(self.events), self.policy.ladder
        return build_outcome(self.incident, ladder, events, value=None, error=None, now=self._now())

    def _attempt_failed(self, error: object, now: float) -> ev.AttemptFailed:
        failure = classify(error, now, local_zone())
        budget = self._retry_budget
        return ev.AttemptFailed(now, failure, 0.0, 0.0, budget is None or budget.affords())

    def _charge(self, decision: ev.Decision) -> None:
        """Charge a scheduled retry to the shared budget."""
        if self._retry_budget is not None and ev.is_retry(decision) and self.incident.failure is not None:
            self._retry_budget.charge()

    def _append(self, *fresh: ev.Event, folded: int = 0) -> None:
        """Persist new events, then fold those that are not folded yet."""
        opened = fresh[0]
        name = opened.id if isinstance(opened, ev.Opened) else self.incident.id
        if self._journal is not None:
            try:
                pending = self._journal.append(name, len(self.events), fresh)
                if pending is not None:
                    pending.result()
            except BaseException:
                self.incident = Incident.of(self.events)
                raise
        self.events += fresh
        for event in fresh[folded:]:
            self.incident.fold(event)
        for listener in self._listeners:
            for event in fresh:
                self._notify(listener, event)

    def _notify(self, listener: Listener, event: ev.Event) -> None:
        try:
            listener(event, self.incident)
        except Exception as error:  # a listener must not end the recovery
            import warnings

            warnings.warn(f"rung: a listener failed and was ignored: {error!r}", RuntimeWarning, stacklevel=2)


def _policy_by_name(name: str) -> Policy:
    from rung.core.policy.parser import policy

    return policy(name)


def _random() -> Callable[[], float]:
    from random import random  # loads hashlib: imported only if the caller passes no jitter

    return random
