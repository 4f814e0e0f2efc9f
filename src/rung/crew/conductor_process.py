"""The conductor process and the watchdog process: start, heartbeats, signals and shutdown."""

from __future__ import annotations

import signal
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from rung.adapters.system.pid_file import read_pid, remove_pid, write_pid
from rung.adapters.system.worker_processes import RealProcesses
from rung.core.crew.contract import CONDUCTOR, HAND_OVER_PREFIX, STOP_KEY, TaskState
from rung.core.domain.errors import ConductorReplaced, StoreUnavailable
from rung.core.policy.parser import policy
from rung.crew.conductor import Conductor
from rung.crew.context import ConductorContext
from rung.crew.judgement import CommandJudgement
from rung.crew.lock_release import release_locks
from rung.crew.plan_sync import current_plan
from rung.crew.runtime_dir import record_runtime_dir
from rung.crew.settings import ConductorSettings
from rung.crew.shutdown import shut_down
from rung.crew.standby import lease_seconds
from rung.crew.task_recovery import TaskRecoveries
from rung.crew.watchdog import CONDUCTOR_PROCESS, WATCHDOG_PROCESS, ConductorWatchdog
from rung.crew.watchdog_care import WatchdogCare
from rung.engine.process_identity import current_machine, current_process
from rung.engine.signal_flag import SignalFlag
from rung.store.crew.table import CrewTable
from rung.store.crew.table_patience import patiently

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal

_JOIN_SECONDS: Final = 60.0  # for a supervision turn in progress
_START_POLL_SECONDS: Final = 0.2  # between two heartbeats until the watchdog has confirmed
_OWN_STATES: Final = (TaskState.WATCHING, TaskState.REVIEWING, TaskState.CONTEXT_RECOVERY)  # of a running conductor


def open_context(
    table_url: str, *, journal: Journal | None = None, log: Callable[[str], None] = print
) -> ConductorContext:
    """Open the crew's table and build the context that its plan describes."""
    table = CrewTable.open(table_url)
    plan = current_plan(table)
    settings = ConductorSettings.from_plan(plan.settings) if plan is not None else ConductorSettings()
    directory = record_runtime_dir(table_url, table)
    return ConductorContext(
        table=table,
        table_url=table_url,
        runtime_dir=directory,
        settings=settings,
        processes=RealProcesses(directory),
        judgement=CommandJudgement.of_plan(plan),
        recoveries=TaskRecoveries(policy("crew"), time.time, journal, attended=settings.attended, log=log),
        now=time.time,
        log=log,
        machine=current_machine(),
    )


def rung_command(subcommand: str, table_url: str, *options: str) -> list[str]:
    """Return the command line of `rung crew SUBCOMMAND` for this crew."""
    return [sys.executable, "-P", "-m", "rung", "crew", subcommand, "--db", table_url, *options]


@dataclass(slots=True)
class _Ending:
    """Why the threads of a conductor end: it is to stop, or another conductor has the lease."""

    stop: SignalFlag = field(default_factory=SignalFlag)
    replaced: ConductorReplaced | None = None

    def replace(self, error: ConductorReplaced) -> None:
        self.replaced = error
        self.stop.set()


def run_conductor(crew: ConductorContext, *, succeeds: str = "") -> bool:
    """Run the conductor until the crew has ended. Return whether every task is complete.

    Raises ConductorLeaseHeld if another process conducts, unless it is the holder that this one `succeeds`. Raises
    ConductorReplaced if another conductor takes the lease later: then this one writes nothing and signals nobody.
    """
    processes = crew.processes
    assert isinstance(processes, RealProcesses)  # noqa: S101  # a real conductor has real processes
    lease = patiently(lambda: crew.table.acquire_lease(lease_seconds(crew.settings), succeeds=succeeds), crew.log)
    write_pid(processes.pid_file(CONDUCTOR_PROCESS), current_process())
    ending, ready = _Ending(), threading.Event()
    try:
        patiently(lambda: crew.table.heartbeat_self(CONDUCTOR, TaskState.WATCHING, session=lease.holder), crew.log)
        return _conduct(crew, processes, ending, ready)
    finally:
        ending.stop.set()
        crew.helpers.end_all()
        if read_pid(processes.pid_file(CONDUCTOR_PROCESS)) == current_process():  # not that of a successor
            remove_pid(processes.pid_file(CONDUCTOR_PROCESS))


def _conduct(crew: ConductorContext, processes: RealProcesses, ending: _Ending, ready: threading.Event) -> bool:
    """Start the threads, handle messages until the end, and shut down."""
    supervision = threading.Thread(
        target=_supervision_loop, args=(replace(crew, table=patiently(crew.table.clone)), ending, ready), daemon=True
    )
    supervision.start()
    _start_lock_release(crew, processes, ending.stop)
    care = WatchdogCare(crew, processes, rung_command("watch", crew.table_url))
    patiently(lambda: care.await_confirmation(ending.stop), crew.log)
    ready.set()
    reason, to = _handle_until_done(crew, ending)
    ending.stop.set()
    supervision.join(_JOIN_SECONDS)  # otherwise it could launch workers that nobody ends
    if ending.replaced is not None:
        raise ending.replaced
    if reason:
        patiently(lambda: shut_down(crew, reason, to=to), crew.log)
    if to is not TaskState.CONTEXT_RECOVERY:  # a successor on this machine takes the lease over at once
        patiently(lambda: crew.table.release_lease(to), crew.log)
    return to is TaskState.COMPLETE


def _start_lock_release(crew: ConductorContext, processes: RealProcesses, stop: SignalFlag) -> None:
    """Watch the table's lock in a thread that never waits for it. Conductor and watchdog both do: either may be stopped."""
    threading.Thread(target=release_locks, args=(crew.table_url, processes, stop, crew.log), daemon=True).start()


def _supervision_loop(crew: ConductorContext, ending: _Ending, ready: threading.Event) -> None:
    """Send heartbeats, supervise workers and dispatch tasks, in a thread: handlers can block for a long time."""
    conductor = Conductor(crew)
    care = WatchdogCare(crew, RealProcesses(crew.runtime_dir), rung_command("watch", crew.table_url))
    while not ending.stop.wait(crew.settings.poll if ready.is_set() else _START_POLL_SECONDS):
        try:
            _beat(crew)
            if ready.is_set():
                care.ensure()
                conductor.supervise_and_dispatch()
        except StoreUnavailable:
            crew.view = crew.view.missed()  # nobody could write a heartbeat; the next turn tries again
        except ConductorReplaced as error:
            ending.replace(error)
        except Exception as error:  # noqa: BLE001  # without heartbeats the watchdog would replace this conductor
            crew.log(f"supervision failed: {error!r}")
    crew.table.close()


def _beat(crew: ConductorContext) -> None:
    """Send a heartbeat, which renews the lease. A state that somebody else set is corrected: the lease says who conducts."""
    row = crew.table.task(CONDUCTOR)
    if row is None or row.state in _OWN_STATES:
        crew.table.heartbeat_self(CONDUCTOR)
        return
    crew.log(f"somebody set {CONDUCTOR} to {row.state}; it is set to {TaskState.WATCHING} again")
    crew.table.heartbeat_self(CONDUCTOR, TaskState.WATCHING)


def _handle_until_done(crew: ConductorContext, ending: _Ending) -> tuple[str, TaskState]:
    """Handle messages until the crew has ended or must stop.

    Return the reason to stop (empty if the crew has ended) and the conductor's last state.
    """
    conductor = Conductor(crew)

    def request_stop(*_: object) -> None:
        ending.stop.set()
        crew.helpers.wake()

    signal.signal(signal.SIGTERM, request_stop)
    try:
        while not ending.stop.is_set():
            try:
                end, handled = _handle_turn(conductor)
            except StoreUnavailable as error:
                crew.log(f"the table is unavailable, trying again: {error}")
                end, handled = None, 0
            if end is not None:
                return end
            if not handled:
                crew.helpers.wait(crew.settings.poll)
        return "stopped by a signal", TaskState.EXIT_REQUESTED
    finally:
        conductor.close()


def _handle_turn(conductor: Conductor) -> tuple[tuple[str, TaskState] | None, int]:
    """Handle what is pending. Return the end, if the crew has ended or must stop, and how many tasks were handled."""
    table = conductor.crew.table
    request = table.get_fact(STOP_KEY)
    if request:
        table.set_fact(STOP_KEY, "")
        hands_over = request.startswith(HAND_OVER_PREFIX)
        state = TaskState.CONTEXT_RECOVERY if hands_over else TaskState.EXIT_REQUESTED
        return (request.removeprefix(HAND_OVER_PREFIX), state), 0
    handled = conductor.handle_pending()
    if not handled and conductor.finish_if_idle():
        return ("", TaskState.COMPLETE if conductor.is_complete() else TaskState.EXIT_REQUESTED), 0
    return None, handled


def run_watchdog(table_url: str, log: Callable[[str], None] = print) -> bool:
    """Run the watchdog until the crew has ended. Return False if it gave up or was stopped."""
    crew = patiently(lambda: open_context(table_url, log=log), log)
    processes = crew.processes
    assert isinstance(processes, RealProcesses)  # noqa: S101  # `open_context` makes these
    write_pid(processes.pid_file(WATCHDOG_PROCESS), current_process())
    stop = SignalFlag()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    _start_lock_release(crew, processes, stop)
    watchdog = ConductorWatchdog(
        table=crew.table,
        processes=processes,
        settings=crew.settings,
        command=rung_command("conduct", table_url),
        environment={},
        log=log,
    )
    try:
        return watchdog.run(stop)
    finally:
        if read_pid(processes.pid_file(WATCHDOG_PROCESS)) == current_process():
            remove_pid(processes.pid_file(WATCHDOG_PROCESS))
