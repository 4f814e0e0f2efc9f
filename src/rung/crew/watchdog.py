"""The watchdog (`souffleur`): relaunches the conductor when it is gone. The conductor supervises it in turn."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CONDUCTOR, WATCHDOG, MessageType, TaskState
from rung.core.crew.liveness import TableView
from rung.core.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence

    from rung.adapters.system.worker_processes import Processes
    from rung.crew.settings import ConductorSettings
    from rung.store.crew.table import CrewTable

CONDUCTOR_PROCESS: Final = "conductor"  # names of the processes and of their PID files
WATCHDOG_PROCESS: Final = "souffleur"
RELAUNCHES_KEY: Final = "relaunches"  # fact of the crew: relaunches since the last progress
PROGRESS_KEY: Final = "progress_at_relaunch"  # fact of the crew: digest of all task states at the last relaunch
ENDED_STATES: Final = (TaskState.COMPLETE, TaskState.EXIT_REQUESTED)


@dataclass(slots=True, kw_only=True)
class ConductorWatchdog:
    """Checks the conductor repeatedly until the crew has ended or relaunches no longer help."""

    table: CrewTable
    processes: Processes
    settings: ConductorSettings
    command: Sequence[str]  # of the conductor
    environment: Mapping[str, str]
    log: Callable[[str], None] = lambda _: None
    now: Callable[[], float] = time.time
    view: TableView = field(default_factory=TableView)

    def confirm(self) -> None:
        """Report that the watchdog runs. The conductor acts only after this."""
        self.table.heartbeat_self(WATCHDOG, TaskState.CONFIRMED)

    def check(self) -> bool:
        """Send a heartbeat, check the conductor, relaunch it if necessary. Return whether to continue watching."""
        self.table.heartbeat_self(WATCHDOG)
        row = self.table.task(CONDUCTOR)
        if row is None or row.state in ENDED_STATES:
            self.table.heartbeat_self(WATCHDOG, TaskState.COMPLETE)
            return False
        self.view = self.view.read(self.now(), self.settings.conductor_stale)
        reason = self.relaunch_reason(row.state, self.view.silence(row.heartbeat_age))
        if not reason:
            return True
        return self.relaunch(reason)

    def relaunch_reason(self, state: TaskState, heartbeat_age: float | None) -> str:
        """Return why the conductor must be relaunched; empty if it is healthy."""
        if state is TaskState.CONTEXT_RECOVERY:
            return "it asked for a successor"
        if not self.processes.alive(CONDUCTOR_PROCESS):
            return "its process is gone"
        if heartbeat_age is None or heartbeat_age > self.settings.conductor_stale:
            return f"no heartbeat for more than {self.settings.conductor_stale:g} s"
        return ""

    def relaunch(self, reason: str) -> bool:
        """Launch a new conductor. Give up and return False after too many relaunches without progress."""
        digest = progress_digest(self.table)
        has_progress = digest != self.table.get_fact(PROGRESS_KEY)
        number = 1 if has_progress else int(self.table.get_fact(RELAUNCHES_KEY) or 0) + 1
        if number > self.settings.relaunches:
            text = f"relaunched {self.settings.relaunches} times without progress; last reason: {reason}"
            self.table.post_message(WATCHDOG, WATCHDOG, f"GIVEN UP: {text}", MessageType.EMERGENCY)
            self.processes.end(CONDUCTOR_PROCESS, self.settings.grace)
            self.table.heartbeat_self(WATCHDOG, TaskState.ERROR)
            self.log(text)
            return False
        self.table.set_fact(RELAUNCHES_KEY, str(number))
        self.table.set_fact(PROGRESS_KEY, digest)
        self.processes.end(CONDUCTOR_PROCESS, self.settings.grace)
        self.table.post_message(WATCHDOG, WATCHDOG, f"RELAUNCH {number}: {reason}", MessageType.WARNING)
        self.table.heartbeat_self(CONDUCTOR, TaskState.WATCHING)
        self.processes.launch(CONDUCTOR_PROCESS, self.command, self.environment, None)
        self.log(f"conductor relaunched: {reason}")
        return True

    def run(self, stop: threading.Event) -> bool:
        """Watch until the crew ends, the watchdog gives up or `stop` is set. Return whether the crew ended."""
        self.confirm()
        while not stop.wait(self.settings.poll):
            try:
                if self.check():
                    continue
                row = self.table.task(WATCHDOG)
            except StoreUnavailable as error:
                self.log(f"the table is unavailable, trying again: {error}")
                continue
            return row is not None and row.state is TaskState.COMPLETE
        return False


def progress_digest(table: CrewTable) -> str:
    """Return a digest that changes when any task changes its state or its worker."""
    rows = sorted((row.task_id, row.state.value, row.generation) for row in table.tasks())
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
