"""Relaunches of a conductor by its watchdog, without the processes of a crew."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rung.adapters.system.worker_processes import RealProcesses
from rung.core.crew.contract import CONDUCTOR, WATCHDOG, MessageType, TaskState
from rung.crew.settings import ConductorSettings
from rung.crew.watchdog import CONDUCTOR_PROCESS, ConductorWatchdog
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from pathlib import Path


def test_a_conductor_that_still_ends_is_waited_for(tmp_path: Path) -> None:
    """A conductor that handed over and is slow to exit keeps its lease; waiting for it spends no relaunch."""
    file, processes, said = str(tmp_path / "crew.db"), RealProcesses(tmp_path / "runtime"), list[str]()
    settings = ConductorSettings(poll=0.02, grace=0.0)
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with CrewTable.open(file, create=True) as conductor, CrewTable.open(file) as table:
        conductor.acquire_lease(60.0)
        conductor.heartbeat_self(CONDUCTOR, TaskState.CONTEXT_RECOVERY)
        watchdog = ConductorWatchdog(
            table=table, processes=processes, settings=settings, command=command, environment={}, log=said.append
        )
        for _ in range(settings.relaunches + 2):
            assert watchdog.check()
        assert all("not relaunched: this crew is already conducted" in line for line in said)
        assert not processes.alive(CONDUCTOR_PROCESS)
        conductor.release_lease(TaskState.CONTEXT_RECOVERY)
        assert watchdog.check()
        assert processes.alive(CONDUCTOR_PROCESS)
        processes.end(CONDUCTOR_PROCESS, grace=0.0)
        warnings = [message.message for message in table.messages(WATCHDOG, types=(MessageType.WARNING,))]
        assert warnings == ["RELAUNCH 1: it asked for a successor"]
