"""Recovery of MCP sessions: each session's incident, its loop detectors, and the decision about the last report."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.classifier import classify
from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.request import Request
from rung.detectors.session_monitor import SessionMonitor
from rung.engine.external_loop import ExternalRecovery
from rung.mcp.schemas import NextStep, OutcomeReport, next_step
from rung.store.queries.incidents import open_incidents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.failures import Failure
    from rung.core.policy.policy import Policy
    from rung.detectors.finding import Finding
    from rung.detectors.step import Step
    from rung.store.journal.journal import Journal

SESSIONS: Final = 1_000  # kept in memory at once; the journal has the rest
AGENT: Final = "mcp"


class McpSession:
    """One session: its open incident, if any, and its loop detectors."""

    def __init__(self) -> None:
        self.recovery: ExternalRecovery | None = None
        self.watch = SessionMonitor()


class RecoveryService:
    """Serves every session over one journal. Threads may share it."""

    def __init__(
        self,
        journal: Journal,
        pick: Callable[[], Policy],
        *,
        project: str = "",
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        self.journal = journal
        self.project = project
        self._pick = pick
        self.now = now
        self._jitter = jitter
        self._cases: OrderedDict[str, McpSession] = OrderedDict()
        self._lock = threading.RLock()

    def failed(self, session: str, evidence: Evidence, task: str = "", model: str = "") -> NextStep:
        """Record a failure and return the next step."""
        return self._failed(session, classify(evidence), task, model)

    def found(self, session: str, finding: Finding, task: str = "") -> NextStep:
        """Record a detector's finding and return the next step."""
        return self._failed(session, finding.failure, task, "")

    def _failed(self, session: str, failure: Failure, task: str, model: str) -> NextStep:
        with self._lock:
            recovery = self._open(session, task, model)
            decision = recovery.failed(failure)
            text = recovery.change_request(decision)
            return next_step(recovery.incident, failure, decision, recovery.policy, text)

    def saw(self, session: str, step: Step) -> Finding | None:
        """Run the session's loop detectors over a call and its outcome."""
        with self._lock:
            return self._case(session).watch.check(step)

    def progressed(self, session: str, step: str, *, finished: bool) -> bool:
        """Record a finished part, or the end of the work; false when the session has no open incident."""
        with self._lock:
            recovery = self._case(session).recovery
            if recovery is None:
                return False
            recovery.step_completed(step)
            if finished:
                recovery.succeeded()
                self._cases.pop(session, None)
            return True

    def finished(self, session: str, done: list[str], reason: str, task: str = "") -> OutcomeReport:
        """Close the session's incident as partial."""
        with self._lock:
            recovery = self._open(session, task, "")
            for step in done:
                recovery.step_completed(step)
            recovery.close(ev.Status.PARTIAL, reason)
            self._cases.pop(session, None)
            return recovery.outcome().to_dict()  # type: ignore[return-value]  # the contract's schema is this type's

    def _case(self, session: str) -> McpSession:
        case = self._cases.get(session)
        if case is None:
            case = self._cases[session] = McpSession()
            case.recovery = self._load(session)
        self._cases.move_to_end(session)
        while len(self._cases) > SESSIONS:
            self._cases.popitem(last=False)
        if case.recovery is not None and case.recovery.incident.status is not None:
            case.recovery = None
        return case

    def _load(self, session: str) -> ExternalRecovery | None:
        """The session's open incident in the journal: used tries survive a restart of the server."""
        waiting = open_incidents(self.journal, session, agent=AGENT)
        return self._recovery(session, events=self.journal.events(waiting[0])) if waiting else None

    def _open(self, session: str, task: str, model: str) -> ExternalRecovery:
        """The session's open incident under the current policy; a new one where there is none."""
        case = self._case(session)
        if case.recovery is None:
            case.recovery = self._recovery(session, task, model)
        else:
            case.recovery.policy = self._pick()
        return case.recovery

    def _recovery(
        self, session: str, task: str = "", model: str = "", events: Sequence[ev.Event] = ()
    ) -> ExternalRecovery:
        policy = self._pick()
        return ExternalRecovery(
            policy,
            request=Request(prompt=task or "(the task you were given)", model=model, agent=AGENT),
            events=events,
            journal=self.journal,
            incident_id=f"{AGENT}-{os.urandom(8).hex()}",
            project=self.project,
            session=session,
            attended=not policy.unattended,
            now=self.now,
            jitter=self._jitter,
        )


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
