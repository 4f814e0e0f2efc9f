"""One conductor, 10,000 tasks and 500 workers: CPU time of its turns, and time to detect a silent worker.

The database is a real file, in real time. A separate process simulates the workers: it sends heartbeats, errors, review
requests and completions through the same table. The conductor polls as in production (`Conductor.handle`,
`Conductor.care`), with simulated processes. Measured is the CPU time of the turns (time.thread_time) as a share of the
elapsed time. Then some workers become silent, and the first poll after their heartbeat timeout must reassign their
tasks.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rung.core.crew.contract import TaskState
from rung.core.crew.liveness import RestartLimits
from rung.core.crew.review import ReviewRequest
from rung.core.domain.errors import RungError
from rung.core.policy.parser import policy
from rung.core.policy.restart_intensity import RestartIntensity
from rung.crew.conductor import Conductor
from rung.crew.context import ConductorContext
from rung.crew.judgement import CommandJudgement
from rung.crew.settings import ConductorSettings
from rung.crew.task_recovery import TaskRecoveries
from rung.store.crew.conductor_key import load_key
from rung.store.crew.rows import TaskLease
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_CPU_PERCENT = 5.0  # of one core
REVIEW = ReviewRequest(
    checkpoint=1, context=20.0, self_correction=False, deviations="none", agents_remaining="0", proposal="N/A",
    summary="done", files_modified="1", tests="12 passed", smoothness=2, reason="as planned", key_outputs="none",
).body()  # fmt: skip


@dataclass
class SimulatedProcesses:
    """Simulated processes; a worker's process is alive until it is ended."""

    started: set[str] = field(default_factory=set)

    def launch(self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None) -> Any:
        """Mark a process as started; the simulated workers find the task in the table."""
        self.started.add(name)

    def alive(self, name: str) -> bool:
        """Return whether the process was started and not ended."""
        return name in self.started

    def end(self, name: str, grace: float = 5.0) -> None:
        """Mark a process as ended."""
        self.started.discard(name)

    def known(self) -> list[str]:
        """Return the names of the started processes."""
        return sorted(self.started)

    def stands_still(self, name: str) -> bool:
        """Return false: simulated processes do not hang."""
        return False

    def output(self, name: str, *, latest: bool = False) -> str:
        """Return no output."""
        return ""


def crew_at(place: str, workers: int) -> ConductorContext:
    """Return the context of a crew as in `rung crew run`, with simulated processes."""
    settings = ConductorSettings(
        workers=workers, command=("worker",), claim_within=1e9,
        limits=RestartLimits(redispatches=10**6, restarts=RestartIntensity(restarts=10**6, seconds=1.0), deaths=RestartIntensity(restarts=10**6, seconds=1.0)),
    )  # fmt: skip
    table = CrewTable.open(place)
    return ConductorContext(
        table=table, table_url=place, runtime_dir=Path(place).with_suffix(".d"), settings=settings, processes=SimulatedProcesses(),
        judgement=CommandJudgement(), recoveries=TaskRecoveries(policy("crew"), time.time), now=time.time,
    )  # fmt: skip


# -- the workers, in a process of their own -----------------------------------------------------------


def work(place: str, workers: int, beat: float, seconds: float, silent: int, stale: float, seed: int) -> None:
    """Send heartbeats for all workers, spread over the interval, with some errors, reviews and completions.

    At the end some workers become silent; their names are printed.
    """
    chance = random.Random(seed)
    held: dict[str, TaskLease] = {}
    with CrewTable.open(place) as table:
        for row in table.claimed_tasks():
            held[row.task_id] = TaskLease(task_id=row.task_id, session=row.session_id, generation=row.generation)
        until = time.monotonic() + seconds
        due = time.monotonic()
        while time.monotonic() < until:
            due += beat / workers
            _worker_step(table, held, chance)
            time.sleep(max(0.0, due - time.monotonic()))
        quiet = set(chance.sample(sorted(held), min(silent, len(held))))
        for name in quiet:
            table.update_columns(name, stale_after=stale)
            _beat(table, held, name, held[name])
        print("silent", *sorted(quiet), flush=True)
        while True:  # the others continue until this process is killed
            for name, claim in list(held.items()):
                if name not in quiet:
                    _beat(table, held, name, claim)
                time.sleep(beat / workers / 2)


def _beat(table: CrewTable, held: dict[str, TaskLease], name: str, claim: TaskLease) -> TaskState | None:
    try:
        return table.heartbeat(claim, progress=f"{time.monotonic():.0f}")
    except RungError:  # the lease has expired
        held.pop(name, None)
        return None


def _worker_step(table: CrewTable, held: dict[str, TaskLease], chance: random.Random) -> None:
    """Run one step of a random worker."""
    new = table.unclaimed_sessions() if not held or chance.random() < 0.1 else ()
    for process in table.processes() if new else ():
        if process.session_id in new:
            with suppress(RungError):  # claimed by another worker
                held[process.task_id] = table.claim(process.task_id, process.session_id)
    if not held:
        return
    name = chance.choice(list(held))
    claim = held[name]
    state = _beat(table, held, name, claim)
    if state is TaskState.WORKING and chance.random() < 0.05:
        table.report_error(claim, chance.choice(("ImportError: No module named foo", "Connection reset by peer")))
    elif state is TaskState.WORKING and chance.random() < 0.2:
        table.request_review(claim, REVIEW, checkpoint=1)
    elif state is TaskState.REVIEW_APPROVED:
        table.complete(claim)
        held.pop(name, None)
    elif state in (TaskState.FIX_PROPOSED, TaskState.REVIEW_FAILED):
        table.resume(claim)


# -- the measurement ----------------------------------------------------------------------------------


def fill(place: str, tasks: int) -> None:
    """Create the tasks; one in three depends on the previous one."""
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {tasks - 1})"
    with CrewTable.open(place, create=True) as table:
        table.connection.begin()
        table.connection.execute("INSERT INTO crew_conductor (key) VALUES (?)", [load_key(table.connection)])
        table.connection.execute(
            f"{numbers} INSERT INTO orchestration_tasks (task_id, state, title, depends_on) SELECT printf('t%05d', i),"
            " 'watching', 'work ' || i, CASE WHEN i % 3 = 1 THEN json_array(printf('t%05d', i - 1)) END FROM n"
        )
        table.connection.execute(
            f"{numbers} INSERT INTO orchestration_messages (task_id, from_session, message, message_type)"
            " SELECT printf('t%05d', i), 'task-00', 'do it', 'instruction' FROM n"
        )
        table.connection.execute("DELETE FROM crew_conductor")
        table.connection.commit()


@dataclass
class Measurement:
    """Results of the benchmark."""

    share: float = 0.0  # per cent of a core
    turns: int = 0
    slowest: float = 0.0
    middle: float = 0.0
    done: int = 0
    late: list[float] = field(
        default_factory=list
    )  # polls from the heartbeat timeout to the detection, per silent worker


def measure(place: str, options: argparse.Namespace) -> Measurement:
    """Let every worker claim a task, measure the turns, then wait until silent workers are detected."""
    crew = crew_at(place, options.workers)
    conductor = Conductor(crew)
    print(f"filling {options.tasks:,} tasks, launching {options.workers} workers", file=sys.stderr)
    conductor.supervise_and_dispatch()
    _claim_all(place)
    command = [sys.executable, "-m", "bench.crew.scale", "--work", place, *(f"--{name}={getattr(options, name)}" for name in ("workers", "beat", "seconds", "silent", "stale", "seed"))]  # fmt: skip
    workers = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        return _measure_turns(conductor, options, workers)
    finally:
        workers.kill()
        workers.wait()


def _claim_all(place: str) -> None:
    with CrewTable.open(place) as table:
        table.connection.execute("PRAGMA synchronous=OFF")
        for process in table.processes():
            table.claim(process.task_id, process.session_id)


def _measure_turns(conductor: Conductor, options: argparse.Namespace, workers: subprocess.Popen[str]) -> Measurement:
    found, costs = Measurement(), list[float]()
    began, cpu = time.monotonic(), 0.0
    while time.monotonic() - began < options.seconds:
        used = time.thread_time()
        found.done += conductor.handle_pending() + conductor.supervise_and_dispatch()
        conductor.finish_if_idle()
        costs.append(time.thread_time() - used)
        cpu += costs[-1]
        time.sleep(options.poll)
    found.share = 100 * cpu / (time.monotonic() - began)
    found.turns, found.slowest, found.middle = len(costs), max(costs), median(costs)
    assert workers.stdout is not None
    silent = set(workers.stdout.readline().split()[1:])
    found.late = _wait_for_detection(conductor, silent, options)
    return found


def _wait_for_detection(conductor: Conductor, silent: set[str], options: argparse.Namespace) -> list[float]:
    """Return, per silent worker, the polls from the heartbeat timeout to the reassignment."""
    table, late = conductor.crew.table, dict[str, float]()
    until = time.monotonic() + options.stale + 20 * options.poll
    while len(late) < len(silent) and time.monotonic() < until:
        overdue = {
            row.task_id: (row.heartbeat_age or 0.0) - row.stale_after for row in table.claimed_tasks() if row.is_stale
        }
        conductor.handle_pending()
        conductor.supervise_and_dispatch()
        for name in silent - late.keys():
            row = table.require_task(name)
            if row.session_id == "" or row.state is TaskState.EXITED:
                late[name] = max(0.0, overdue.get(name, 0.0)) / options.poll
        time.sleep(options.poll)
    return [late.get(name, float("inf")) for name in sorted(silent)]


def main() -> int:
    """Measure, print, and return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=500)
    parser.add_argument("--beat", type=float, default=60.0)
    parser.add_argument("--poll", type=float, default=5.0)
    parser.add_argument("--stale", type=float, default=30.0, help="heartbeat timeout of the silent workers, in seconds")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--silent", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="profile the turns")
    parser.add_argument("--work", metavar="PLACE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.workers, options.beat, options.seconds, options.silent, options.stale, options.seed)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "crew.db")
        fill(place, options.tasks)
        found = _profiled(place, options) if options.profile else measure(place, options)
    return report(found, options)


def _profiled(place: str, options: argparse.Namespace) -> Measurement:
    import cProfile
    import pstats

    with cProfile.Profile(time.thread_time) as profile:
        found = measure(place, options)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(35)
    return found


def report(found: Measurement, options: argparse.Namespace) -> int:
    """Print each figure with its goal; return 1 if one was missed."""
    worst = max(found.late, default=float("inf"))
    print(
        f"{options.tasks:,} tasks, {options.workers} workers, a turn every {options.poll:g} s for {options.seconds:g} s;"
    )
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{found.turns} turns, {found.done} things done; a turn took {found.middle * 1e3:.1f} ms of processor time, at most {found.slowest * 1e3:.1f}")  # fmt: skip
    goals = (
        ("processor time of the turns, per cent of a core", found.share, MAX_CPU_PERCENT),
        (f"polls after which the last of {len(found.late)} silent workers was found", worst, 1.0),
    )
    for name, measured, goal in goals:
        print(f"{name}: {measured:.2f} (goal: at most {goal:g}) {'met' if measured <= goal else 'MISSED'}")
    return 0 if all(measured <= goal for _, measured, goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
