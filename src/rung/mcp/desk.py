"""Where agents come with their trouble: each session's incident, its watch, and the decision about what happened last."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from rung.core import events as ev
from rung.core.change import change
from rung.core.classify import classify
from rung.core.decide import decide
from rung.core.failures import Evidence, Kind, Phase
from rung.core.incident import Incident
from rung.core.outcome import conclude
from rung.core.prompts import prompt_id, render
from rung.core.request import Request
from rung.detectors.watch import Watch
from rung.mcp.answers import NextStep, Outcome, next_step
from rung.store.queries_incidents import open_incidents

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.failures import Failure
    from rung.core.policy import Policy
    from rung.detectors.finding import Finding
    from rung.detectors.step import Step
    from rung.store.journal import Journal

SESSIONS: Final = 1_000  # remembered at once; the journal has the rest


class Case:
    """One session: what is open, and everything it was told."""

    def __init__(self) -> None:
        self.incident: Incident | None = None
        self.events: list[ev.Event] = []
        self.watch = Watch()


class Desk:
    """Serves every session over one journal. Threads may share it."""

    def __init__(
        self,
        journal: Journal,
        pick: Callable[[], Policy],
        *,
        project: str = "",
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.journal = journal
        self.project = project
        self._pick = pick
        self.now = now
        self._jitter = jitter
        self._cases: OrderedDict[str, Case] = OrderedDict()
        self._lock = threading.RLock()

    def failed(self, session: str, evidence: Evidence, task: str = "", model: str = "") -> NextStep:
        """A failure: named, written down, decided about; what to do now."""
        return self._failed(session, classify(evidence), task, model)

    def found(self, session: str, finding: Finding, task: str = "") -> NextStep:
        """Trouble that a detector noticed, decided about like any other."""
        return self._failed(session, finding.failure, task, "")

    def _failed(self, session: str, failure: Failure, task: str, model: str) -> NextStep:
        with self._lock:
            policy, case, now = self._pick(), self._case(session), self.now()
            incident = self._open(case, session, policy, task, model, now)
            self._tell(case, ev.AttemptFailed(now, failure, 0.0, 0.0, may_retry=True))
            decision = decide(incident, failure, policy, now, self._jitter())
            self._tell(case, ev.Decided(now, decision))
            text = self._change(case, incident, decision, failure, policy, now)
            if isinstance(decision, ev.Finish):
                self._tell(case, ev.Closed(now, decision.status, decision.reason))
            return next_step(incident, failure, decision, policy, text)

    def _change(
        self, case: Case, incident: Incident, decision: ev.Decision, failure: Failure, policy: Policy, now: float
    ) -> str:
        """What is said to the model on this rung; the request it makes is written down too."""
        if not isinstance(decision, ev.Change | ev.HandOver) or incident.request is None:
            return ""
        before = incident.request
        request, name = change(decision, incident, failure, policy)
        if request.digest() not in incident.digests:
            self._tell(case, ev.Changed(now, request, request.digest(), before.changed(request), name))
        if request.recovery and request.recovery != before.recovery:
            return request.recovery
        action = policy.ladder.rungs[decision.rung].action
        return render(prompt_id(action, failure), incident, failure, policy.prompts)

    def saw(self, session: str, step: Step) -> Finding | None:
        """A call and its outcome, for the session's watch."""
        with self._lock:
            return self._case(session).watch.see(step)

    def progressed(self, session: str, step: str, *, finished: bool) -> bool:
        """A finished part, or all of it; false when nothing is open that it could count for."""
        with self._lock:
            case, now = self._case(session), self.now()
            if case.incident is None:
                return False
            self._tell(case, ev.StepCompleted(now, step))
            if finished:
                self._tell(case, ev.AttemptSucceeded(now, 0.0, 0.0))
                self._cases.pop(session, None)
            return True

    def finished(self, session: str, done: list[str], reason: str, task: str = "") -> Outcome:
        """An honest end with what there is."""
        with self._lock:
            policy, case, now = self._pick(), self._case(session), self.now()
            incident = self._open(case, session, policy, task, "", now)
            for step in done:
                self._tell(case, ev.StepCompleted(now, step))
            self._tell(case, ev.Closed(now, ev.Status.PARTIAL, reason))
            outcome = conclude(
                incident, policy.ladder, tuple(case.events), value=None, error=None, now=now, sticky=False
            )
            self._cases.pop(session, None)
            return outcome.contract()  # type: ignore[return-value]  # the contract's schema is this type's

    def _case(self, session: str) -> Case:
        case = self._cases.get(session)
        if case is None:
            case = self._cases[session] = self._taken_up(session)
        self._cases.move_to_end(session)
        while len(self._cases) > SESSIONS:
            self._cases.popitem(last=False)
        if case.incident is not None and case.incident.status is not None:
            case.incident, case.events = None, []
        return case

    def _taken_up(self, session: str) -> Case:
        """What the journal has open for this session: no spent try is forgotten when a server starts again."""
        case = Case()
        waiting = open_incidents(self.journal, session, agent="mcp")
        if waiting:
            case.events = self.journal.events(waiting[0])
            case.incident = Incident.of(case.events)
        return case

    def _open(self, case: Case, session: str, policy: Policy, task: str, model: str, now: float) -> Incident:
        if case.incident is not None:
            return case.incident
        case.incident, case.events = Incident(), []
        terms = ev.Terms(
            policy.ladder.name,
            policy.name,
            attended=not policy.unattended,
            rungs=tuple(rung.name for rung in policy.ladder.rungs),
            project=self.project,
            session=session,
        )
        request = Request(prompt=task or "(the task you were given)", model=model, agent="mcp")
        deadline = None if policy.budget.seconds is None else now + policy.budget.seconds
        name = f"mcp-{os.urandom(8).hex()}"
        self._tell(case, ev.Opened(now, name, terms, request, deadline, policy.budget.dollars))
        return case.incident

    def _tell(self, case: Case, event: ev.Event) -> None:
        """Into the journal, then into what is open: nothing is done that is not written down."""
        assert case.incident is not None  # noqa: S101  # opened before anything is told
        name = event.id if isinstance(event, ev.Opened) else case.incident.id
        self.journal.append(name, len(case.events), [event]).result()
        case.events.append(event)
        case.incident.fold(event)


def evidence(error: str, tool: str, exit_code: int | None, status: int | None, output: str) -> Evidence:
    """What an agent says of its trouble, as facts."""
    return Evidence(
        text=error,
        tool=tool,
        exit_code=exit_code,
        status=status,
        output=output,
        phase=Phase.TOOL if tool or exit_code is not None else Phase.CALL,
    )


def beyond(reason: str) -> Evidence:
    """That somebody else is needed."""
    return Evidence(text=reason, finding=Kind.CAPABILITY_MISMATCH, phase=Phase.RESULT)


def as_json(value: Any) -> str:
    """A resource's text."""
    import json

    return json.dumps(value, ensure_ascii=False, default=str)
