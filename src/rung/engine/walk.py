"""A ladder walked in somebody else's loop: told of each failure, it says what to do next. For frameworks that retry themselves."""

from __future__ import annotations

import random
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rung.core import events as ev
from rung.core.classify import classify
from rung.core.config import policy as make_policy
from rung.core.decide import decide
from rung.core.incident import Incident
from rung.core.request import Request
from rung.engine.numbers import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.failures import Failure
    from rung.core.policy import Policy


class Walk:
    """One recovery in which somebody else makes the attempts. The events go to `journal`, before they are acted on."""

    def __init__(
        self,
        policy: Policy | str = "call",
        *,
        model: str = "",
        journal: Any = None,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        import_module("rung.wiring.readers").register()  # what names failures knows the SDKs' own classes
        self.policy = make_policy(policy) if isinstance(policy, str) else policy
        self.incident = Incident()
        self.failure: Failure | None = None
        self._journal, self._now, self._jitter = journal, now, jitter
        self._told = 0
        ladder = self.policy.ladder
        terms = ev.Terms(ladder.name, self.policy.name, rungs=tuple(rung.name for rung in ladder.rungs))
        seconds = self.policy.budget.seconds
        began = now()
        deadline = None if seconds is None else began + seconds
        self._tell(ev.Opened(began, NUMBERS.next(), terms, Request(model=model), deadline, self.policy.budget.dollars))

    def failed(self, trouble: object) -> ev.Decision:
        """Name it, and decide about it."""
        now = self._now()
        self.failure = classify(trouble)
        self._tell(ev.AttemptFailed(now, self.failure, 0.0, 0.0, may_retry=True))
        decision = decide(self.incident, self.failure, self.policy, now, self._jitter())
        self._tell(ev.Decided(now, decision))
        if isinstance(decision, ev.Finish):
            self._tell(ev.Closed(now, decision.status, decision.reason))
        return decision

    def succeeded(self) -> None:
        """It went well in the end."""
        self._tell(ev.AttemptSucceeded(self._now(), 0.0, 0.0))

    def _tell(self, event: ev.Event) -> None:
        name = event.id if isinstance(event, ev.Opened) else self.incident.id
        if self._journal is not None:
            self._journal.append(name, self._told, (event,)).result()
        self._told += 1
        self.incident.fold(event)
