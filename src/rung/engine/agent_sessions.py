"""Sessions of the agents of the running recovery: which one to continue, and a durable note of each that is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.core.domain import events as ev
from rung.core.recovery.session_resume import continuation_prompt, handed_over_request, session_to_continue
from rung.engine.loop.run import CURRENT

if TYPE_CHECKING:
    from rung.core.domain.agent_session import AgentSession
    from rung.core.domain.request import Request
    from rung.engine.loop.run import RecoveryRun


class RunSessions:
    """Sessions of one recovery. A session is durable when `opened` returns; it may be called in any thread."""

    def __init__(self, run: RecoveryRun) -> None:
        self._run = run
        request = run.incident.request
        self._agent = "" if request is None else request.agent

    @property
    def is_first(self) -> bool:
        """Whether no attempt was made before this one."""
        return self._run.incident.failure is None

    def to_continue(self) -> AgentSession | None:
        """Return the session that this attempt continues; None if it starts afresh."""
        return session_to_continue(self._run.incident, self._run.policy)

    def prompt(self) -> str:
        """Return the text for the agent that continues its session."""
        return continuation_prompt(self._run.incident, self._run.policy)

    def opened(self, program: str, session: str, *, continued: bool) -> None:
        """Record the session in which this attempt works."""
        run = self._run
        run.append(ev.AgentSessionOpened(run.clock.now(), self._agent, program, session, continued))
        run.record_report(agent=self._agent, program=program, session=session, continued=continued)

    def handed_over(self, request: Request, changes: str) -> Request:
        """Return the request of an attempt that starts afresh, with what is known of the work so far."""
        return handed_over_request(request, self._run.incident, self._run.policy, changes)


def sessions_of_attempt() -> RunSessions | None:
    """Return the sessions of the running attempt's recovery; None outside of one, or if its policy resumes no sessions."""
    run = CURRENT.get()
    return None if run is None or not run.policy.resume_sessions else RunSessions(run)
