"""A crew whose table is locked: by a stopped worker, or for a while."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from rung.adapters.system.file_locks import lock_holders
from rung.adapters.system.worker_processes import RealProcesses
from rung.core.crew.contract import CONDUCTOR, WATCHDOG, MessageType, TaskState
from rung.core.domain.errors import StoreUnavailable
from rung.crew import lock_release
from rung.crew.lock_release import release_locks, stopped_holders
from rung.crew.settings import ConductorSettings
from rung.crew.watchdog import CONDUCTOR_PROCESS, ConductorWatchdog
from rung.engine.process_identity import is_stopped
from rung.engine.signal_flag import SignalFlag
from rung.store.crew.connection import SqliteCrewConnection
from rung.store.crew.table import CrewTable
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rung.store.crew.connection import CrewConnection

# Takes the lock, is stopped while it has it, and releases it when it is resumed.
HOLDER = """
import os, signal, sqlite3, sys, time
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("BEGIN EXCLUSIVE")
os.kill(os.getpid(), signal.SIGSTOP)
file.execute("ROLLBACK")
time.sleep(600)
"""


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[tuple[Path, RealProcesses]]:
    """Return a new table and the processes of its crew, which the test ends."""
    CrewTable.open(str(tmp_path / "crew.db"), create=True).close()
    processes = RealProcesses(tmp_path / "crew.db.d")
    yield tmp_path / "crew.db", processes
    for name in processes.names():
        processes.end(name, 0.0)


def impatient(file: Path, clock: Callable[[], float] | None = None) -> CrewTable:
    """Open the table without waiting for its lock."""

    def connect() -> CrewConnection:
        return SqliteCrewConnection(str(file), create=False, clock=clock, busy_timeout_ms=1)

    return CrewTable(connect(), connect)


def test_a_stopped_worker_gives_the_table_back(
    crew: tuple[Path, RealProcesses], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is stopped while it holds the table's lock is resumed, and so everybody else goes on."""
    file, processes = crew
    monkeypatch.setattr(lock_release, "LOOK_SECONDS", 0.2)
    stop, said = threading.Event(), list[str]()
    thread = threading.Thread(target=release_locks, args=(str(file), processes, stop, said.append), daemon=True)
    with impatient(file) as table:
        processes.launch("task-01", [sys.executable, "-c", HOLDER, str(file)], {}, None)
        worker = processes.pid("task-01")
        assert worker is not None
        wait_until(lambda: is_stopped(worker.number))
        assert stopped_holders(file, processes) == {worker: "task-01"}
        with pytest.raises(StoreUnavailable, match="locked"):
            table.counts()
        thread.start()
        wait_until(lambda: not is_stopped(worker.number))
        wait_until(lambda: not lock_holders(file))
        table.counts()
    stop.set()
    thread.join()
    assert said == [f"task-01: process {worker.number} was stopped while it held the table's lock; resumed it"]
    assert processes.alive("task-01")


def test_no_other_process_is_resumed(crew: tuple[Path, RealProcesses]) -> None:
    """A stopped process of somebody else keeps its lock, and a stopped worker without the lock stays stopped."""
    file, processes = crew
    processes.launch("task-01", [sys.executable, "-c", "import time; time.sleep(600)"], {}, None)
    worker = processes.pid("task-01")
    assert worker is not None
    os.kill(worker.number, signal.SIGSTOP)
    wait_until(lambda: is_stopped(worker.number))
    stranger = subprocess.Popen([sys.executable, "-c", HOLDER, str(file)])
    try:
        wait_until(lambda: is_stopped(stranger.pid))
        assert lock_holders(file) == {stranger.pid}
        assert stopped_holders(file, processes) == {}
    finally:
        stranger.kill()
        stranger.wait()
    assert lock_holders(file.with_name("missing.db")) == set()
    assert not is_stopped(stranger.pid)


def test_a_server_needs_no_help(tmp_path: Path) -> None:
    """With a database server nothing is watched: it ends the transactions of lost clients itself."""
    release_locks("postgresql://host/crew", RealProcesses(tmp_path), SignalFlag(), print)


class WatchdogClock:
    """The watchdog's time."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_the_watchdog_outlives_a_locked_table(crew: tuple[Path, RealProcesses]) -> None:
    """A locked table ends no watchdog, and its conductor, which could write no heartbeat, is not replaced for it."""
    file, processes = crew
    clock, said = WatchdogClock(), list[str]()
    processes.launch(CONDUCTOR_PROCESS, [sys.executable, "-c", "import time; time.sleep(600)"], {}, None)
    before = processes.pid(CONDUCTOR_PROCESS)
    settings = ConductorSettings(poll=0.02, conductor_stale=30.0)
    with CrewTable.open(str(file), clock=clock) as owner, impatient(file, clock) as table:
        owner.heartbeat_self(CONDUCTOR, TaskState.WATCHING)
        watchdog = ConductorWatchdog(
            table=table, processes=processes, settings=settings, command=(), environment={}, log=said.append, now=clock
        )
        results: list[bool] = []
        watch = threading.Thread(target=lambda: results.append(watchdog.run(SignalFlag())), daemon=True)
        watch.start()
        wait_until(lambda: watchdog.view.at is not None)
        owner.connection.execute("BEGIN EXCLUSIVE")
        wait_until(lambda: said)
        clock.now += 3_600.0
        owner.connection.rollback()
        wait_until(lambda: watchdog.view.at == clock.now)
        owner.heartbeat_self(CONDUCTOR, TaskState.COMPLETE)
        watch.join()
        assert results == [True]
        assert "the table is unavailable, trying again: " in said[0]
        assert owner.messages(WATCHDOG, types=(MessageType.WARNING,)) == []
    assert processes.pid(CONDUCTOR_PROCESS) == before
