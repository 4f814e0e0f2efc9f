"""Commands of `rung run` that have failed: recorded for a retry, and run again in their directory when a person asks.

Only a command that this account has recorded on this machine is run; none comes from a request. A journal that somebody else
can write to can therefore not make this account run a command.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.cli.run.due_runs import output_file, start_in_background
from rung.cli.run.parked_call import RETRY_VARIABLE, ParkedCall
from rung.core.domain.errors import ConfigError, SealedElsewhere, StoreDamaged
from rung.core.domain.incident import Incident
from rung.store.recorded_calls import COMMAND, RecordedCall, record_call
from rung.store.replay_orders import PROCESS, send_order, take_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.adapters.system.command_input import CommandInput
    from rung.store.journal.journal import Journal
    from rung.store.replay_orders import ReplayOrder
    from rung.wiring.recording import RecordingSettings

_INPUT_END_SECONDS: Final = 0.5


def record_command(
    journal: Journal, session: str, incident: str, given: CommandInput, settings: RecordingSettings
) -> None:
    """Record the command of this process, which has failed, unless the settings forbid it or its input has no end."""
    if not settings.requests or given.size > settings.max_bytes or not given.wait_for_end(_INPUT_END_SECONDS):
        return
    call = ParkedCall.of_this_process(b"".join(given.chunks()))
    record_call(journal, session, incident, RecordedCall(COMMAND, call.to_table()), settings.keep_seconds)


def ordered_retry(journal: Journal | None) -> ReplayOrder | None:
    """Return the order by which this process makes a run again; None if it is an ordinary one."""
    name = os.environ.pop(RETRY_VARIABLE, "")
    if not name:
        return None
    try:
        order = None if journal is None else take_order(journal, name, time.time(), PROCESS)
    except (SealedElsewhere, StoreDamaged) as error:
        raise ConfigError(RETRY_VARIABLE, name, f"an order of this account ({error})") from None
    if order is None:
        raise ConfigError(RETRY_VARIABLE, name, "set by `rung retry` or `rung serve`: there is no such order")
    return order


def prompt_of_order(journal: Journal, order: ReplayOrder, task: str) -> str:
    """Return the prompt of an order with this task in place of its recorded copy, which may be clipped or redacted."""
    first = Incident.of(journal.events(order.of)).first_request
    recorded, prompt = "" if first is None else first.prompt.strip(), order.intervention.prompt
    return prompt.removesuffix(recorded) + task.strip() if recorded and prompt.endswith(recorded) else prompt


class BackgroundCommands:
    """Runs recorded commands for a service, each as a process of its own, which goes on when the service ends."""

    def __init__(self, journal: Journal, journal_at: str) -> None:
        self._journal, self._journal_at = journal, journal_at

    def why_not(self, content: Mapping[str, Any], session: str) -> str:
        """Return why this command cannot be run here; empty if it can."""
        return why_not_here(ParkedCall.of_table(content), session)

    def start(self, content: Mapping[str, Any], order: ReplayOrder) -> None:
        """Run the command again; its output goes to a file of this account."""
        call = ParkedCall.of_table(content)
        send_order(self._journal, order, time.time(), PROCESS)
        environment = call.environment(order.id, self._journal_at, variable=RETRY_VARIABLE)
        process = start_in_background(call, output_file(order.id), environment)
        threading.Thread(target=process.wait, name=f"rung-{order.id}", daemon=True).start()  # reaps it


class ForegroundCommand:
    """Takes the command that a person retries in this terminal: it replaces this process."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.call: ParkedCall | None = None

    def why_not(self, content: Mapping[str, Any], session: str) -> str:
        """Return why this command cannot be run here; empty if it can."""
        return why_not_here(ParkedCall.of_table(content), session)

    def start(self, content: Mapping[str, Any], order: ReplayOrder) -> None:
        """Leave the order for the command, and remember the command."""
        self.call = ParkedCall.of_table(content)
        send_order(self._journal, order, time.time(), PROCESS)


def why_not_here(call: ParkedCall, session: str) -> str:
    """Return why a command cannot be run by this process; empty if it can."""
    if call.host != socket.gethostname():
        return f"the command ran on {call.host}: there, run: rung retry {session}"
    if not Path(call.folder).is_dir():
        return f"its directory {call.folder} no longer exists"
    return ""
