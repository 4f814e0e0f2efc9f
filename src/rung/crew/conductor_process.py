"""The conductor process and the watchdog process: start, heartbeats, signals and shutdown."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rung.adapters.system.pid_file import remove_pid, write_pid
from rung.adapters.system.worker_processes import RealProcesses
from rung.core.crew.contract import CONDUCTOR, HAND_OVER_PREFIX, STOP_KEY, WATCHDOG, TaskState
from rung.core.domain.errors import RungError, StoreUnavailable
from rung.core.policy.parser import policy
from rung.crew.conductor import Conductor
from rung.crew.context import ConductorContext
from rung.crew.judgement import CommandJudgement
from rung.crew.lock_release import release_locks
from rung.crew.plan_sync import current_plan
from rung.crew.settings import ConductorSettings
from rung.crew.shutdown import shut_down
from rung.crew.task_recovery import TaskRecoveries
from rung.crew.watchdog import CONDUCTOR_PROCESS, WATCHDOG_PROCESS, ConductorWatchdog
from rung.engine.process_identity import current_process, is_alive
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal

_CONFIRM_SECONDS: Final = 60.0  # for the watchdog to start
_JOIN_SECONDS: Final = 60.0  # for a supervision turn in progress
_POLL_SECONDS: Final = 0.05


def runtime_dir(table_url: str) -> Path:
    """Return the directory for a crew's files: beside its table, or in the working directory for a server URL."""
    if "://" in table_url:
        return Path("rung-crew").resolve()
    path = Path(table_url).expanduser().resolve()
    return path.with_name(f"{path.name}.d")


def open_context(
    table_url: str, *, journal: Journal | None = None, log: Callable[[str], None] = print
) -> ConductorContext:
    """Open the crew's table and build the context that its plan describes."""
    table = CrewTable.open(table_url)
    plan = current_plan(table)
    settings = ConductorSettings.from_plan(plan.settings) if plan is not None else ConductorSettings()
    judge = plan.settings.judge if plan is not None else ()
    replanner = plan.settings.replanner if plan is not None else ()
    directory = runtime_dir(table_url)
    return ConductorContext(
        table=table,
        table_url=table_url,
        runtime_dir=directory,
        settings=settings,
        processes=RealProcesses(directory),
        judgement=CommandJudgement(judge, replanner),
        recoveries=TaskRecoveries(policy("crew"), time.time, journal, attended=settings.attended, log=log),
        now=time.time,
        log=log,
    )


def rung_command(subcommand: str, table_url: str) -> list[str]:
    """Return the command line of `rung crew SUBCOMMAND` for this crew."""
    return [sys.executable, "-P", "-m", "rung", "crew", subcommand, "--db", table_url]


def run_conductor(crew: ConductorContext) -> bool:
    """Run the conductor until the crew has ended. Return whether every task is complete."""
    processes = crew.processes
    assert isinstance(processes, RealProcesses)  # noqa: S101  # a real conductor has real processes
    _ensure_single_conductor(processes)
    crew.table.heartbeat_self(CONDUCTOR, TaskState.WATCHING, session=str(uuid.uuid4()))
    stop = threading.Event()
    supervision = threading.Thread(
        target=_supervision_loop, args=(replace(crew, table=crew.table.clone()), stop), daemon=True
    )
    supervision.start()
    _start_lock_release(crew, processes, stop)
    try:
        _await_watchdog(crew, processes)
        reason, to = _handle_until_done(crew, stop)
        stop.set()
        supervision.join(_JOIN_SECONDS)  # otherwise it could launch workers that nobody ends
        if reason:
            shut_down(crew, reason, to=to)
        else:
            crew.table.heartbeat_self(CONDUCTOR, to)
        return to is TaskState.COMPLETE
    finally:
        stop.set()
        crew.helpers.end_all()
        remove_pid(processes.pid_file(CONDUCTOR_PROCESS))


def _start_lock_release(crew: ConductorContext, processes: RealProcesses, stop: threading.Event) -> None:
    """Watch the table's lock in a thread that never waits for it. Conductor and watchdog both do: either may be stopped."""
    threading.Thread(target=release_locks, args=(crew.table_url, processes, stop, crew.log), daemon=True).start()


def _ensure_single_conductor(processes: RealProcesses) -> None:
    """Write the PID file, or raise if another conductor runs: two would answer every message twice."""
    pid = processes.pid(CONDUCTOR_PROCESS)
    if pid is not None and pid.number != os.getpid() and is_alive(pid):
        raise RungError(f"this crew already has a conductor: process {pid.number}")
    write_pid(processes.pid_file(CONDUCTOR_PROCESS), current_process())


def _await_watchdog(crew: ConductorContext, processes: RealProcesses) -> None:
    """Launch the watchdog and wait until it has confirmed."""
    ensure_watchdog(crew, processes)
    deadline = time.monotonic() + _CONFIRM_SECONDS
    while (row := crew.table.task(WATCHDOG)) is None or row.state is not TaskState.CONFIRMED:
        if time.monotonic() > deadline:
            raise RungError(
                f"the watchdog did not confirm within {_CONFIRM_SECONDS:g} s: see"
                f" {processes.logs}/{WATCHDOG_PROCESS}.log"
            )
        time.sleep(_POLL_SECONDS)


def ensure_watchdog(crew: ConductorContext, processes: RealProcesses) -> None:
    """Launch a watchdog, unless one is alive and sends heartbeats."""
    row = crew.table.task(WATCHDOG)
    age = None if row is None else row.heartbeat_age
    if processes.alive(WATCHDOG_PROCESS) and (age is None or age <= crew.settings.watchdog_stale):
        return
    processes.end(WATCHDOG_PROCESS, crew.settings.grace)
    crew.table.heartbeat_self(WATCHDOG, TaskState.WATCHING)
    processes.launch(WATCHDOG_PROCESS, rung_command("watch", crew.table_url), {}, None)


def _supervision_loop(crew: ConductorContext, stop: threading.Event) -> None:
    """Send heartbeats, supervise workers and dispatch tasks, in a thread: handlers can block for a long time."""
    conductor = Conductor(crew)
    processes = RealProcesses(crew.runtime_dir)
    row = None
    while not stop.wait(crew.settings.poll if row is not None else _POLL_SECONDS):
        try:
            crew.table.heartbeat_self(CONDUCTOR)
            row = crew.table.task(WATCHDOG)
            if row is not None and row.state is TaskState.CONFIRMED:
                ensure_watchdog(crew, processes)
                conductor.supervise_and_dispatch()
        except StoreUnavailable:
            continue  # the table is locked; the next turn tries again
        except Exception as error:  # noqa: BLE001  # without heartbeats the watchdog would replace this conductor
            crew.log(f"supervision failed: {error!r}")
    crew.table.close()


def _handle_until_done(crew: ConductorContext, stop: threading.Event) -> tuple[str, TaskState]:
    """Handle messages until the crew has ended or must stop.

    Return the reason to stop (empty if the crew has ended) and the conductor's last state.
    """
    conductor = Conductor(crew)

    def request_stop(*_: object) -> None:
        stop.set()
        crew.helpers.wake()

    signal.signal(signal.SIGTERM, request_stop)
    try:
        while not stop.is_set():
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
    crew = open_context(table_url, log=log)
    processes = crew.processes
    assert isinstance(processes, RealProcesses)  # noqa: S101  # `open_context` makes these
    write_pid(processes.pid_file(WATCHDOG_PROCESS), current_process())
    stop = threading.Event()
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
        remove_pid(processes.pid_file(WATCHDOG_PROCESS))
