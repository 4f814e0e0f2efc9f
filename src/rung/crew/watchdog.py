"""The watchdog (`souffleur`): sees to it that there is a conductor, and is itself seen to by the conductor."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import CONDUCTOR, WATCHDOG, MessageType, TaskState

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence

    from rung.adapters.system.worker_processes import Processes
    from rung.crew.settings import ConductorSettings
    from rung.store.crew.table import CrewTable

NAME: Final = "conductor"  # of its process
ITSELF: Final = "souffleur"
RELAUNCHES: Final = "relaunches"
SEEN: Final = "progress_at_relaunch"
ENDED: Final = (TaskState.COMPLETE, TaskState.EXIT_REQUESTED)


@dataclass(slots=True, kw_only=True)
class ConductorWatchdog:
    """One look at a time; `run` looks until the conductor has ended well, or cannot be helped."""

    table: CrewTable
    processes: Processes
    settings: ConductorSettings
    command: Sequence[str]  # that conducts
    environment: Mapping[str, str]
    say: Callable[[str], None] = lambda _: None

    def confirm(self) -> None:
        """Everything is in its place: from now on the conductor may act."""
        self.table.heartbeat_self(WATCHDOG, TaskState.CONFIRMED)

    def look(self) -> bool:
        """Beat, look, and relaunch if need be. False when there is nothing left to watch."""
        self.table.heartbeat_self(WATCHDOG)
        row = self.table.task(CONDUCTOR)
        if row is None or row.state in ENDED:
            self.table.heartbeat_self(WATCHDOG, TaskState.COMPLETE)
            return False
        why = self.wrong(row.state, row.heartbeat_age)
        if not why:
            return True
        return self.relaunch(why)

    def wrong(self, state: TaskState, heartbeat_age: float | None) -> str:
        """What is wrong with the conductor; nothing, if nothing is."""
        if state is TaskState.CONTEXT_RECOVERY:
            return "it asked for a successor"
        if not self.processes.alive(NAME):
            return "its process is gone"
        if heartbeat_age is None or heartbeat_age > self.settings.conductor_stale:
            return f"no heartbeat for more than {self.settings.conductor_stale:g} s"
        return ""

    def relaunch(self, why: str) -> bool:
        """A new conductor, unless the last three changed nothing."""
        mark = progress_mark(self.table)
        moved = mark != self.table.get_fact(SEEN)
        number = 1 if moved else int(self.table.get_fact(RELAUNCHES) or 0) + 1
        if number > self.settings.relaunches:
            words = f"relaunched {self.settings.relaunches} times without progress; last: {why}"
            self.table.post_message(WATCHDOG, WATCHDOG, f"GIVEN UP: {words}", MessageType.EMERGENCY)
            self.processes.end(NAME, self.settings.grace)
            self.table.heartbeat_self(WATCHDOG, TaskState.ERROR)
            self.say(words)
            return False
        self.table.set_fact(RELAUNCHES, str(number))
        self.table.set_fact(SEEN, mark)
        self.processes.end(NAME, self.settings.grace)
        self.table.post_message(WATCHDOG, WATCHDOG, f"RELAUNCH {number}: {why}", MessageType.WARNING)
        self.table.heartbeat_self(CONDUCTOR, TaskState.WATCHING)
        self.processes.launch(NAME, self.command, self.environment, None)
        self.say(f"conductor relaunched: {why}")
        return True

    def run(self, stop: threading.Event) -> bool:
        """Watch until the end; whether that was a good one."""
        self.confirm()
        while not stop.wait(self.settings.poll):
            if not self.look():
                row = self.table.task(WATCHDOG)
                return row is not None and row.state is TaskState.COMPLETE
        return False


def progress_mark(table: CrewTable) -> str:
    """Changes when a task is completed or changes its state."""
    rows = sorted((row.task_id, row.state.value, row.generation) for row in table.tasks())
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
