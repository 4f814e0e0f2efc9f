"""Command line of an attempt: one that starts a session of a known agent, or continues the one it had."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol
from uuid import uuid4

from rung.adapters.system.agent_sessions.session_files import continuable_session
from rung.adapters.system.agent_sessions.session_id_reader import SessionIdReader
from rung.core.agents.agent_call import Transcript
from rung.core.agents.recognise import recognise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.core.agents.agent_call import AgentCall
    from rung.core.agents.own_agents import OwnAgent
    from rung.core.domain.agent_session import AgentSession
    from rung.core.domain.errors import AttemptError

# An agent of a version that does not take an id of a session.
_REFUSED: Final = re.compile(
    r"\b(?:unknown|unexpected|unrecognized)\b.{0,20}\b(?:option|argument).{0,20}--session-id", re.IGNORECASE
)


class SessionLog(Protocol):
    """Durable record of the sessions of one agent."""

    @property
    def is_first(self) -> bool:
        """Whether no attempt was made before this one."""
        ...

    def to_continue(self) -> AgentSession | None:
        """Return the session that this attempt continues; None if it starts afresh."""
        ...

    def prompt(self) -> str:
        """Return the text for the agent that continues its session."""
        ...

    def opened(self, program: str, session: str, *, continued: bool) -> None:
        """Record the session in which this attempt works. It is durable when this returns."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCommand:
    """A command with placeholders. `prompt` replaces its whole input; None: the input is that of the request."""

    words: Sequence[str]
    call: AgentCall | None = None  # None: no agent is known
    session: str = ""  # its id, where it is known before the agent starts
    prompt: str | None = None
    reader: SessionIdReader | None = None

    @property
    def is_fresh(self) -> bool:
        """Whether a known agent starts without a session of its own."""
        return self.call is not None and self.prompt is None

    @property
    def records_steps(self) -> bool:
        """Whether a known agent writes each step to a session file that can be repaired after a kill."""
        return self.call is not None and self.call.transcript is not Transcript.NONE

    def lost_session(self, error: AttemptError) -> bool:
        """Whether the agent does not know the session that it was to continue: it has done nothing."""
        lost = None if self.prompt is None or self.call is None else self.call.lost
        return lost is not None and lost.search(_text(error)) is not None

    def refused_id(self, error: AttemptError) -> bool:
        """Whether the agent cannot be given the id of a session: it has done nothing."""
        return self.is_fresh and bool(self.session) and _REFUSED.search(_text(error)) is not None

    def finish(self) -> None:
        """Search the end of the output for the id of the session."""
        if self.reader is not None:
            self.reader.finish()

    def show(self, stream: str, show: Callable[[bytes], object] | None) -> Callable[[bytes], object] | None:
        """Return a function that shows output and looks for the id of the session in it."""
        reader = self.reader
        if reader is None:
            return show

        def read_and_show(chunk: bytes) -> None:
            reader.read(stream, chunk)
            if show is not None:
                show(chunk)

        return read_and_show


class AgentSessions:
    """Makes the commands of one run. `report` gets a line about each session that is continued."""

    def __init__(self, own: Sequence[OwnAgent] = (), report: Callable[[str], object] = lambda _: None) -> None:
        self._own = own
        self._report = report

    def continued(self, command: Sequence[str], log: SessionLog | None) -> SessionCommand:
        """Return the command that continues the agent's session, or starts one if there is none to continue."""
        call = None if log is None else recognise(command, self._own)
        if call is None or log is None:
            return SessionCommand(words=command)
        known = log.to_continue()
        if known is None or known.program != call.program:
            return self.started(command, log)
        session = continuable_session(call.transcript, known.id)
        if not session:
            return self.started(command, log)
        log.opened(call.program, session, continued=True)
        self._report(f"continues session {session} of {call.program}")
        return SessionCommand(
            words=call.resumed(session), call=call, session=session, prompt=_input(call, log.prompt())
        )

    def replacement(
        self, command: Sequence[str], ran: SessionCommand, error: AttemptError, log: SessionLog | None
    ) -> SessionCommand | None:
        """Return what to run in place of a command that was refused before it did anything; None after any other error."""
        if log is not None and ran.lost_session(error):
            return self.started(command, log)
        return SessionCommand(words=command) if ran.refused_id(error) else None

    def started(self, command: Sequence[str], log: SessionLog) -> SessionCommand:
        """Return the command that starts a session, with an id of ours where the agent takes one."""
        call = recognise(command, self._own)
        if call is None:
            return SessionCommand(words=command)
        if not call.names_session:
            reader = SessionIdReader(call.find_id, partial(log.opened, call.program, continued=False))
            return SessionCommand(words=call.start, call=call, reader=reader)
        session = call.session if call.session and log.is_first else str(uuid4())
        if call.session and not call.takes_session:
            session = call.session  # the command itself continues it
        log.opened(call.program, session, continued=False)
        return SessionCommand(words=call.started(session), call=call, session=session)


def _input(call: AgentCall, prompt: str) -> str:
    """Return the prompt as the agent reads it from standard input."""
    if not call.is_json_input:
        return prompt
    return json.dumps({"type": "user", "message": {"role": "user", "content": prompt}}) + "\n"


def _text(error: AttemptError) -> str:
    return f"{error.evidence.text}\n{error.evidence.output}"
