"""Records the command that continues an agent's session which ended in failure, so that a person can have it retried."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from rung.core.agents.agent_call import SESSION_ID
from rung.core.agents.recognise import recognise
from rung.core.domain.incident import Incident
from rung.core.domain.outcome import SUCCESS_STATUSES
from rung.core.domain.reporting_agents import COMMANDS
from rung.store.recorded_calls import COMMAND, RecordedCall, command_table, record_call
from rung.wiring.recording import recording_settings
from rung.wiring.settings_file import find

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal


def record_session(journal: Journal, incident_id: str, cwd: str) -> None:
    """Record how the session of a failed incident is continued, unless settings forbid it or its agent has no command."""
    incident = Incident.of(journal.events(incident_id))
    request, session = incident.first_request, incident.terms.session
    if request is None or incident.status is None or incident.status in SUCCESS_STATUSES:
        return
    call = recognise(COMMANDS.get(request.agent, ()))
    file = find(cwd, quiet=True) if cwd else None
    settings = recording_settings() if file is None else file.recording()
    if call is None or not settings.requests or not SESSION_ID.fullmatch(session):
        return
    words = ("run", "--", *call.resumed(session))
    content = command_table(words, cwd, os.environ.get("PATH", ""), socket.gethostname(), request.prompt.encode())
    record_call(journal, session, incident_id, RecordedCall(COMMAND, content), settings.keep_seconds)
