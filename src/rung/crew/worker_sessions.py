"""Session of the agent that works on a task, noted on this machine: the next worker of the task continues it."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rung.core.agents.agent_call import SESSION_ID
from rung.core.domain.agent_session import AgentSession, survives_failure
from rung.core.domain.failures import Evidence, Failure, Kind
from rung.core.domain.incident import Incident
from rung.core.policy.prompts import render
from rung.core.recovery.session_resume import CONTINUE_PROMPT
from rung.wiring.journals import default_path

if TYPE_CHECKING:
    from pathlib import Path

_TEXT = "the worker before this one ended"
_INTERRUPTED = Failure(Kind.WORKER_DEAD, False, "worker", _TEXT, evidence=Evidence(text=_TEXT))


class WorkerSessions:
    """Sessions of the agent of one task. The first worker of a task continues nothing, whatever was noted before.

    A session lies in files of this machine, and so does the note. It vanishes when the task is complete.
    """

    def __init__(self, table: str, task: str, *, is_first: bool) -> None:
        self._path = note_path(table, task)
        self._instructions_digest = ""  # digest of the instructions that the session has
        self._instructions = ""
        self._text = render(CONTINUE_PROMPT, Incident(), _INTERRUPTED, {})
        self._failure: Failure | None = None
        self._session = None if is_first else self._read()
        self.is_first = is_first

    def to_continue(self) -> AgentSession | None:
        """Return the session that the next run continues; None if it starts afresh."""
        return self._session

    def prompt(self) -> str:
        """Return the text for the agent: the answer about its work, and instructions that it has not seen."""
        has_instructions = _digest(self._instructions) == self._instructions_digest
        return self._text if has_instructions else f"{self._text}\n\n{self._instructions}"

    def opened(self, program: str, session: str, *, continued: bool) -> None:
        """Note the session in which the agent works."""
        before = self._session if continued else None
        self._session = AgentSession(program, session, 0 if before is None else before.continued + 1)
        self._instructions_digest = _digest(self._instructions)
        self.is_first = False
        note = {
            "program": program,
            "session": session,
            "continued": self._session.continued,
            "told": self._instructions_digest,
        }
        with suppress(OSError):  # without a note the next worker starts afresh
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = self._path.with_suffix(".new")
            handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(note, file)
                file.flush()
                os.fsync(handle)
            new.replace(self._path)

    def instruct(self, instructions: str, answer: str = "") -> None:
        """Set the instructions of the task, and the answer about the last run; without one, the work was interrupted."""
        self._instructions = instructions
        self._text = answer or self._text

    def failed(self, failure: Failure) -> None:
        """Forget the session if it cannot be continued after this failure."""
        if self._session is not None and not survives_failure(self._session, failure, self._failure):
            self.forget()
        self._failure = failure

    def forget(self) -> None:
        """Forget the session."""
        self._session = None
        self._path.unlink(missing_ok=True)

    def _read(self) -> AgentSession | None:
        try:
            note: Any = json.loads(self._path.read_bytes())
            session = AgentSession(str(note["program"]), str(note["session"]), int(note["continued"]))
            self._instructions_digest = str(note["told"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return session if SESSION_ID.fullmatch(session.id) else None


def note_path(table: str, task: str) -> Path:
    """Return the file for the session of a task, beside this machine's journal."""
    return default_path().parent / "agent-sessions" / f"{_digest(json.dumps([table, task]))}.json"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
