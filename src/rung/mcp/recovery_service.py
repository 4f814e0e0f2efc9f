"""Recovery of MCP sessions: each session's incident, its loop detectors, and the decision about the last report."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rung.core.classify.classifier import classify
from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Kind, Phase
from rung.core.domain.reporting_agents import MCP_AGENT
from rung.core.domain.request import Request
from rung.detectors.session_monitor import SessionMonitor
from rung.engine.external_loop import ExternalRecovery
from rung.engine.local_zone import local_zone
from rung.mcp.schemas import NextStep, OutcomeReport, next_step
from rung.store.queries.incidents import open_incidents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.domain.failures import Failure
    from rung.core.policy.policy import Policy
    from rung.detectors.finding import Finding
    from rung.detectors.step import Step
    from rung.engine.ports.recovery import Notes
    from rung.store.journal.journal import Journal

MAX_SESSIONS: Final = 1_000  # in memory; the journal has the rest


class McpSession:
    """State of one session: its open incident, if any, and its loop detectors."""

    def __init__(self) -> None:
        self.recovery: ExternalRecovery | None = None
        self.monitor = SessionMonitor()


class RecoveryService:
    """Recovery of all sessions over one journal. Thread-safe."""

    def __init__(
        self,
        journal: Journal,
        load_policy: Callable[[], Policy],
        *,
        project: str = "",
        notes: Notes | None = None,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        self.journal = journal
        self.notes = notes
        self.project = project
        self._load_policy = load_policy
        self.now = now
        self._jitter = jitter
        self._sessions: OrderedDict[str, McpSession] = OrderedDict()
        self._lock = threading.RLock()

    def report_failure(self, session: str, evidence: Evidence, task: str = "", model: str = "") -> NextStep:
        """Record a failure and return the next step."""
        return self._record_failure(session, classify(evidence, self.now(), local_zone()), task, model)

    def report_finding(self, session: str, finding: Finding, task: str = "") -> NextStep:
        """Record a detector's finding and return the next step."""
        return self._record_failure(session, finding.failure, task, "")

    def _record_failure(self, session: str, failure: Failure, task: str, model: str) -> NextStep:
        with self._lock:
            recovery = self._open(session, task, model)
            decision = recovery.failed(failure)
            text = recovery.change_request(decision)
            return next_step(recovery.incident, failure, decision, recovery.policy, text)

    def check_step(self, session: str, step: Step) -> Finding | None:
        """Run the session's loop detectors over a call and its outcome."""
        with self._lock:
            return self._session(session).monitor.check(step)

    def record_progress(self, session: str, step: str, *, finished: bool) -> bool:
        """Record a finished step, or the end of the work; false if the session has no open incident."""
        with self._lock:
            recovery = self._session(session).recovery
            if recovery is None:
                return False
            recovery.step_completed(step)
            if finished:
                recovery.succeeded()
                self._sessions.pop(session, None)
            return True

    def finish_partial(self, session: str, done: list[str], reason: str, task: str = "") -> OutcomeReport:
        """Close the session's incident as partial. Return the contract of the incident that was told to finish, if any."""
        with self._lock:
            state = self._sessions.get(session)
            recovery = None if state is None else state.recovery
            if recovery is None or recovery.incident.status is None:
                recovery = self._open(session, task, "")
                for step in done:
                    recovery.step_completed(step)
                recovery.close(ev.Status.PARTIAL, reason)
            self._sessions.pop(session, None)
            outcome = recovery.outcome()
            steps = tuple(dict.fromkeys((*outcome.steps, *done)))  # reported after the end: in the contract only
            return replace(outcome, steps=steps).to_dict()  # type: ignore[return-value]  # the contract's schema is this type's

    def _session(self, session: str) -> McpSession:
        state = self._sessions.get(session)
        if state is None:
            state = self._sessions[session] = McpSession()
            state.recovery = self._load(session)
        self._sessions.move_to_end(session)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        if state.recovery is not None and state.recovery.incident.status is not None:
            state.recovery = None
        return state

    def _load(self, session: str) -> ExternalRecovery | None:
        """Load the session's open incident from the journal: used tries survive a restart of the server."""
        incidents = open_incidents(self.journal, session, agent=MCP_AGENT)
        return self._recovery(session, events=self.journal.events(incidents[0])) if incidents else None

    def _open(self, session: str, task: str, model: str) -> ExternalRecovery:
        """Return the session's open incident under the current policy; open a new one if there is none."""
        state = self._session(session)
        if state.recovery is None:
            state.recovery = self._recovery(session, task, model)
        else:
            state.recovery.policy = self._load_policy()
        return state.recovery

    def _recovery(
        self, session: str, task: str = "", model: str = "", events: Sequence[ev.Event] = ()
    ) -> ExternalRecovery:
        policy = self._load_policy()
        return ExternalRecovery(
            policy,
            request=Request(prompt=task or "(the task you were given)", model=model, agent=MCP_AGENT),
            events=events,
            journal=self.journal,
            incident_id=f"{MCP_AGENT}-{os.urandom(8).hex()}",
            project=self.project,
            session=session,
            attended=not policy.unattended,
            now=self.now,
            jitter=self._jitter,
            listeners=() if self.notes is None else (self.notes,),
        )


def evidence(error: str, tool: str, exit_code: int | None, status: int | None, output: str) -> Evidence:
    """Return an agent's report of a failure as evidence."""
    return Evidence(
        text=error,
        tool=tool,
        exit_code=exit_code,
        status=status,
        output=output,
        phase=Phase.TOOL if tool or exit_code is not None else Phase.CALL,
    )


def escalation_evidence(reason: str) -> Evidence:
    """Return the evidence that the task is beyond the agent's capabilities."""
    return Evidence(text=reason, finding=Kind.CAPABILITY_MISMATCH, phase=Phase.RESULT)


def to_json_text(value: Any) -> str:
    """Return a resource's content as JSON text."""
    import json

    return json.dumps(value, ensure_ascii=False, default=str)
