"""The conductor's care for its watchdog: launches it, waits for it to confirm, and replaces it when it is gone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rung.core.crew.contract import WATCHDOG, TaskState
from rung.crew.watchdog import WATCHDOG_PROCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rung.adapters.system.worker_processes import Processes
    from rung.crew.context import ConductorContext
    from rung.engine.signal_flag import SignalFlag

CONFIRM_SECONDS: Final = 60.0  # for the watchdog to start; then the conductor begins without it
MAX_PAUSE_SECONDS: Final = 60.0  # between two launches of a watchdog that never confirms
_POLL_SECONDS: Final = 0.05


@dataclass(slots=True)
class WatchdogCare:
    """Keeps one watchdog running on this machine."""

    crew: ConductorContext
    processes: Processes
    command: Sequence[str]
    clock: Callable[[], float] = time.monotonic
    launches: int = 0  # since a watchdog last confirmed
    next_launch: float = 0.0

    def ensure(self) -> bool:
        """Launch a watchdog, unless one is alive and sends heartbeats. Return whether it has confirmed."""
        crew = self.crew
        row = crew.table.task(WATCHDOG)
        silence = None if row is None else crew.view.silence(row.heartbeat_age)
        if self.processes.alive(WATCHDOG_PROCESS) and (silence is None or silence <= crew.settings.watchdog_stale):
            if row is not None and row.state is TaskState.CONFIRMED:
                self.launches = 0
                return True
            return False
        if self.clock() >= self.next_launch:
            self._launch()
        return False

    def _launch(self) -> None:
        crew = self.crew
        if self.launches:
            crew.log(f"the watchdog is gone before it confirmed; launch {self.launches + 1}")
        self.next_launch = self.clock() + min(crew.settings.poll * 2.0**self.launches, MAX_PAUSE_SECONDS)
        self.launches += 1
        self.processes.end(WATCHDOG_PROCESS, crew.settings.grace)
        crew.table.heartbeat_self(WATCHDOG, TaskState.WATCHING)
        self.processes.launch(WATCHDOG_PROCESS, self.command, {}, None)

    def await_confirmation(self, stop: SignalFlag) -> None:
        """Wait until the watchdog has confirmed. After a minute, begin without it: `ensure` goes on trying."""
        deadline = self.clock() + CONFIRM_SECONDS
        while not self.ensure() and not stop.is_set():
            if self.clock() > deadline:
                self.crew.log(f"the watchdog did not confirm within {CONFIRM_SECONDS:g} s: beginning without it")
                return
            time.sleep(_POLL_SECONDS)
