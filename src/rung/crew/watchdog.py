"""The watchdog (`souffleur`): relaunches the conductor when it is gone. The conductor supervises it in turn."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CONDUCTOR, WATCHDOG, MessageType, TaskState
from rung.core.crew.liveness import TableView
from rung.core.domain.errors import ConductorLeaseHeld, ConductorReplaced, IllegalTransition, StoreUnavailable
from rung.engine.process_identity import is_elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.adapters.system.worker_processes import Processes
    from rung.crew.settings import ConductorSettings
    from rung.engine.signal_flag import SignalFlag
    from rung.store.crew.conductor_lease import ConductorLease
    from rung.store.crew.table import CrewTable

CONDUCTOR_PROCESS: Final = "conductor"  # names of the processes and of their PID files
WATCHDOG_PROCESS: Final = "souffleur"
RELAUNCHES_KEY: Final = "relaunches"  # fact of the crew: relaunches since the last progress
PROGRESS_KEY: Final = "progress_at_relaunch"  # fact of the crew: digest of all task states at the last relaunch
START_SECONDS: Final = 60.0  # for a conductor to start and take the lease of the process that launched it
SUCCEEDS_OPTION: Final = "--succeeds"  # of `rung crew conduct`: the holder of the lease that it takes over
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
    started: str = ""  # holder of the lease that its last conductor takes over

    def confirm(self) -> None:
        """Report that the watchdog runs, with a heartbeat. The conductor begins after this.

        A state that somebody else set is corrected: it would look like a watchdog that has not started, or has given up.
        """
        row = self.table.task(WATCHDOG)
        if row is not None and row.state not in (TaskState.WATCHING, TaskState.CONFIRMED):
            self.log(f"somebody set {WATCHDOG} to {row.state}; it is set to {TaskState.CONFIRMED} again")
            self.table.heartbeat_self(WATCHDOG, TaskState.WATCHING)
        self.table.heartbeat_self(WATCHDOG, TaskState.CONFIRMED)

    def check(self) -> bool:
        """Send a heartbeat, check the conductor, relaunch it if necessary. Return whether to continue watching."""
        lease = self.table.conductor_lease()
        if lease.is_live and is_elsewhere(lease.process):
            self.log(f"the crew is conducted by {lease.describe()}: this watchdog ends")
            return False
        self.table.fence(lease.term)  # of two watchdogs, the one on the machine of the conductor writes
        row = self.table.task(CONDUCTOR)
        if row is None or (row.state in ENDED_STATES and not lease.is_live):
            self.table.heartbeat_self(WATCHDOG, TaskState.COMPLETE)
            return False
        self.confirm()
        self.view = self.view.read(self.now(), self.settings.conductor_stale, self.settings.poll)
        reason = self.relaunch_reason(row.state, self.view.silence(row.heartbeat_age), lease)
        if not reason:
            return True
        return self.relaunch(reason)

    def relaunch_reason(self, state: TaskState, heartbeat_age: float | None, lease: ConductorLease) -> str:
        """Return why the conductor must be relaunched; empty if it is healthy."""
        if state is TaskState.CONTEXT_RECOVERY:
            return "it asked for a successor"
        is_started_by_other = lease.is_live and lease.holder != self.started
        if not self.processes.alive(CONDUCTOR_PROCESS) and not is_started_by_other:
            return "its process is gone"
        if lease.is_live and lease.holder == self.started:
            return ""  # it starts: until it takes over the lease of this watchdog, it cannot send a heartbeat
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
        # At once: on SIGTERM a conductor ends its workers, which the next one is to adopt.
        self.processes.end(CONDUCTOR_PROCESS, grace=0.0)
        try:
            lease = self.table.acquire_lease(START_SECONDS, succeeds=self.started)
        except ConductorLeaseHeld as error:  # its process still ends: no relaunch yet, and none to count
            self.log(f"conductor not relaunched: {error}")
            return True
        self.table.set_fact(RELAUNCHES_KEY, str(number))
        self.table.set_fact(PROGRESS_KEY, digest)
        self.started = lease.holder
        self.table.post_message(WATCHDOG, WATCHDOG, f"RELAUNCH {number}: {reason}", MessageType.WARNING)
        self.table.heartbeat_self(CONDUCTOR, TaskState.WATCHING)
        command = [*self.command, SUCCEEDS_OPTION, lease.holder]
        self.processes.launch(CONDUCTOR_PROCESS, command, self.environment, None)
        self.log(f"conductor relaunched: {reason}")
        return True

    def run(self, stop: SignalFlag) -> bool:
        """Watch until the crew ends, the watchdog gives up or `stop` is set. Return whether the crew ended."""
        wait = 0.0
        while not stop.wait(wait):
            wait = self.settings.poll
            try:
                if self.check():
                    continue
                row = self.table.task(WATCHDOG)
            except StoreUnavailable as error:
                self.view = self.view.missed()
                self.log(f"the table is unavailable, trying again: {error}")
                continue
            except (ConductorReplaced, IllegalTransition) as error:
                self.log(f"checking again: {error}")  # the lease or a row changed meanwhile
                continue
            return row is not None and row.state is TaskState.COMPLETE
        return False


def unfinished_reason(table: CrewTable) -> str:
    """Return why nobody conducts a crew that has not ended; empty if it has ended."""
    conductor, watchdog = table.task(CONDUCTOR), table.task(WATCHDOG)
    if conductor is None or conductor.state in ENDED_STATES:
        return ""
    if watchdog is not None and watchdog.state is TaskState.ERROR:
        given_up = table.messages(WATCHDOG, types=[MessageType.EMERGENCY])
        return given_up[-1].message if given_up else "the watchdog has given up"
    return "the conductor and its watchdog are gone"


def progress_digest(table: CrewTable) -> str:
    """Return a digest that changes when any task changes its state or its worker."""
    rows = sorted((row.task_id, row.state.value, row.generation) for row in table.tasks())
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
