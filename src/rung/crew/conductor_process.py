"""The conductor as a process: confirmed by its watchdog, beating in a thread of its own, ended in order."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rung.adapters.system.worker_processes import RealProcesses, write_pid
from rung.core.crew.contract import CONDUCTOR, HAND_OVER, STOP, WATCHDOG, TaskState
from rung.core.domain.errors import RungError, StoreUnavailable
from rung.core.policy.parser import policy
from rung.crew.conductor import Conductor
from rung.crew.context import ConductorContext
from rung.crew.judgement import CommandJudgement
from rung.crew.plan_sync import current
from rung.crew.settings import ConductorSettings
from rung.crew.shutdown import end
from rung.crew.task_recovery import TaskRecoveries
from rung.crew.watchdog import ITSELF, NAME, ConductorWatchdog
from rung.engine.process_identity import current_process, is_alive
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Callable

_CONFIRMED: Final = 60.0  # seconds a watchdog may take to come up
_LAST_CARE: Final = 60.0  # seconds a look after the workers may take that was under way
_LOOK: Final = 0.05


def runtime_of(place: str) -> Path:
    """Where a crew keeps its files: beside its table, or here where that is on a server."""
    if "://" in place:
        return Path("rung-crew").resolve()
    path = Path(place).expanduser().resolve()
    return path.with_name(f"{path.name}.d")


def crew_at(place: str, *, journal: Any = None, say: Callable[[str], None] = print) -> ConductorContext:
    """The crew of this table, as its plan says."""
    table = CrewTable.open(place)
    plan = current(table)
    settings = ConductorSettings.of(plan.settings) if plan is not None else ConductorSettings()
    judge = plan.settings.judge if plan is not None else ()
    replanner = plan.settings.replanner if plan is not None else ()
    runtime = runtime_of(place)
    return ConductorContext(
        table=table,
        place=place,
        runtime=runtime,
        settings=settings,
        processes=RealProcesses(runtime),
        judgement=CommandJudgement(judge, replanner, report=runtime / "escalations" / "helpers.md"),
        stories=TaskRecoveries(policy("crew"), time.time, journal, attended=settings.attended, say=say),
        now=time.time,
        log=say,
    )


def command_of(what: str, place: str) -> list[str]:
    """The command that starts one of our own processes."""
    return [sys.executable, "-m", "rung", "crew", what, "--db", place]


def conduct(crew: ConductorContext) -> bool:
    """Be the conductor until everything has ended; whether all of it was done."""
    processes = crew.processes
    assert isinstance(processes, RealProcesses)  # noqa: S101  # of this machine
    _only_one(processes)
    crew.table.own_state(CONDUCTOR, TaskState.WATCHING, session=str(uuid.uuid4()))
    stop = threading.Event()
    beats = threading.Thread(target=_beats, args=(replace(crew, table=crew.table.clone()), stop), daemon=True)
    beats.start()
    try:
        _confirmed(crew, processes)
        why, to = _until_over(crew, stop)
        stop.set()
        beats.join(_LAST_CARE)  # or it would give out work to workers that nobody ends
        if why:
            end(crew, why, to=to)
        else:
            crew.table.own_state(CONDUCTOR, to)
        return to is TaskState.COMPLETE
    finally:
        stop.set()
        processes.pid_file(NAME).unlink(missing_ok=True)


def _only_one(processes: RealProcesses) -> None:
    """Two conductors would answer everything twice."""
    found = processes.pid(NAME)
    if found is not None and found.number != os.getpid() and is_alive(found):
        raise RungError(f"this crew has a conductor already: process {found.number}")
    write_pid(processes.pids / f"{NAME}.pid", current_process())


def _confirmed(crew: ConductorContext, processes: RealProcesses) -> None:
    """Nothing is done before the watchdog has said that it watches."""
    see_to_watchdog(crew, processes)
    until = time.monotonic() + _CONFIRMED
    while (row := crew.table.task(WATCHDOG)) is None or row.state is not TaskState.CONFIRMED:
        if time.monotonic() > until:
            raise RungError(f"the watchdog did not confirm within {_CONFIRMED:g} s: see {processes.logs}/{ITSELF}.log")
        time.sleep(_LOOK)


def see_to_watchdog(crew: ConductorContext, processes: RealProcesses) -> None:
    """A watchdog that is dead or silent is replaced: it, too, is watched."""
    row = crew.table.task(WATCHDOG)
    age = None if row is None else row.heartbeat_age
    if processes.alive(ITSELF) and (age is None or age <= crew.settings.watchdog_stale):
        return
    processes.end(ITSELF, crew.settings.grace)
    crew.table.own_state(WATCHDOG, TaskState.WATCHING)
    processes.launch(ITSELF, command_of("watch", crew.place), {}, None)


def _beats(crew: ConductorContext, stop: threading.Event) -> None:
    """Beat, look after the workers and give out work, whatever the handlers are busy with."""
    conductor = Conductor(crew)
    processes = RealProcesses(crew.runtime)
    row = None
    while not stop.wait(crew.settings.poll if row is not None else _LOOK):
        try:
            crew.table.own_state(CONDUCTOR)
            row = crew.table.task(WATCHDOG)
            if row is not None and row.state is TaskState.CONFIRMED:
                see_to_watchdog(crew, processes)
                conductor.care()
        except StoreUnavailable:
            continue  # somebody holds the table for long; the next beat will do
        except Exception as error:  # noqa: BLE001  # a beat that ended in silence would look like a death
            crew.log(f"could not look after the workers: {error!r}")
    crew.table.close()


def _until_over(crew: ConductorContext, stop: threading.Event) -> tuple[str, TaskState]:
    """Handle what comes until it is over, or has to end before: why (nothing: it is over), and in which state."""
    conductor = Conductor(crew)
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    while not stop.is_set():
        asked = crew.table.fact(STOP)
        if asked:
            crew.table.set_fact(STOP, "")
            hands_over = asked.startswith(HAND_OVER)
            return asked.removeprefix(HAND_OVER), TaskState.CONTEXT_RECOVERY if hands_over else TaskState.EXIT_REQUESTED
        busy = conductor.handle()
        if not busy and conductor.over():
            return "", TaskState.COMPLETE if conductor.complete() else TaskState.EXIT_REQUESTED
        if not busy:
            stop.wait(crew.settings.poll)
    return "told to end by a signal", TaskState.EXIT_REQUESTED


def watch(place: str, say: Callable[[str], None] = print) -> bool:
    """Be the watchdog until the crew has ended; whether well."""
    crew = crew_at(place, say=say)
    processes = crew.processes
    assert isinstance(processes, RealProcesses)  # noqa: S101  # of this machine
    write_pid(processes.pids / f"{ITSELF}.pid", current_process())
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    dog = ConductorWatchdog(
        table=crew.table,
        processes=processes,
        settings=crew.settings,
        command=command_of("conduct", place),
        environment={},
        say=say,
    )
    try:
        return dog.run(stop)
    finally:
        (processes.pids / f"{ITSELF}.pid").unlink(missing_ok=True)
