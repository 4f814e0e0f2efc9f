"""One conductor, 10,000 tasks and 500 workers: what its turns cost, and how soon a silent worker is found.

The table is a real file, its time is real time. The workers are simulated by a process of their own that beats, errs,
asks for reviews and completes through the same table as real ones would; the conductor looks every poll, exactly as the
real one does (`Conductor.handle` for what waits, `Conductor.care` for who is in trouble and what can begin), with
processes that are numbers. Counted is the processor time of those turns in their own thread (time.thread_time), as a
share of the time that passed. Then some workers fall silent, and the first turn after their time is up must take
their tasks away.
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
from rung.crew.judgement import RuleJudgement
from rung.crew.settings import ConductorSettings
from rung.crew.task_recovery import TaskRecoveries
from rung.store.crew.rows import TaskLease
from rung.store.crew.table import CrewTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHARE = 5.0  # per cent of one core
REVIEW = ReviewRequest(
    checkpoint=1, context=20.0, self_correction=False, deviations="none", agents_remaining="0", proposal="N/A",
    summary="done", files_modified="1", tests="12 passed", smoothness=2, reason="as planned", key_outputs="none",
).body()  # fmt: skip


@dataclass
class Numbers:
    """Processes that are only numbers: those of workers live until they are ended."""

    started: set[str] = field(default_factory=set)

    def launch(self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None) -> Any:
        """Somebody begins; the simulated workers find the task in the table."""
        self.started.add(name)

    def alive(self, name: str) -> bool:
        """Until it is ended."""
        return name in self.started

    def end(self, name: str, grace: float = 5.0) -> None:
        """No more."""
        self.started.discard(name)

    def known(self) -> list[str]:
        """Who was started."""
        return sorted(self.started)

    def stands_still(self, name: str) -> bool:
        """Never."""
        return False

    def output(self, name: str) -> str:
        """It said nothing."""
        return ""


def crew_at(place: str, workers: int) -> ConductorContext:
    """A crew as `rung crew run` has it, but for its processes."""
    settings = ConductorSettings(
        workers=workers, command=("worker",), claim_within=1e9,
        limits=RestartLimits(redispatches=10**6, restarts=RestartIntensity(restarts=10**6, seconds=1.0), deaths=RestartIntensity(restarts=10**6, seconds=1.0)),
    )  # fmt: skip
    table = CrewTable.open(place)
    return ConductorContext(
        table=table, place=place, runtime=Path(place).with_suffix(".d"), settings=settings, processes=Numbers(),
        judgement=RuleJudgement(), stories=TaskRecoveries(policy("crew"), time.time), now=time.time,
    )  # fmt: skip


# -- the workers, in a process of their own -----------------------------------------------------------


def work(place: str, workers: int, beat: float, seconds: float, silent: int, stale: float, seed: int) -> None:
    """Beat for everybody, spread over the beat's seconds; now and then an error, a review, a completion.

    At the end some fall silent: their names are printed, and when they were last heard.
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
            _one(table, held, chance)
            time.sleep(max(0.0, due - time.monotonic()))
        quiet = set(chance.sample(sorted(held), min(silent, len(held))))
        for name in quiet:
            table.update_columns(name, stale_after=stale)
            _beat(table, held, name, held[name])
        print("silent", *sorted(quiet), flush=True)
        while True:  # the others go on until this process is ended
            for name, claim in list(held.items()):
                if name not in quiet:
                    _beat(table, held, name, claim)
                time.sleep(beat / workers / 2)


def _beat(table: CrewTable, held: dict[str, TaskLease], name: str, claim: TaskLease) -> TaskState | None:
    try:
        return table.heartbeat(claim, progress=f"{time.monotonic():.0f}")
    except RungError:  # it is another's by now
        held.pop(name, None)
        return None


def _one(table: CrewTable, held: dict[str, TaskLease], chance: random.Random) -> None:
    """One thing that one worker does."""
    new = table.unclaimed_sessions() if not held or chance.random() < 0.1 else ()
    for process in table.processes() if new else ():
        if process.session_id in new:
            with suppress(RungError):  # it was given to another meanwhile
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
    """So many tasks; one in three waits for the one before."""
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {tasks - 1})"
    with CrewTable.open(place, create=True) as table:
        table.connection.begin()
        table.connection.execute(
            f"{numbers} INSERT INTO orchestration_tasks (task_id, state, title, depends_on) SELECT printf('t%05d', i),"
            " 'watching', 'work ' || i, CASE WHEN i % 3 = 1 THEN json_array(printf('t%05d', i - 1)) END FROM n"
        )
        table.connection.execute(
            f"{numbers} INSERT INTO orchestration_messages (task_id, from_session, message, message_type)"
            " SELECT printf('t%05d', i), 'task-00', 'do it', 'instruction' FROM n"
        )
        table.connection.commit()


@dataclass
class Found:
    """What was measured."""

    share: float = 0.0  # per cent of a core, by the turns
    turns: int = 0
    slowest: float = 0.0
    middle: float = 0.0
    done: int = 0
    late: list[float] = field(default_factory=list)  # polls after its time was up, in which each silent one was found


def measure(place: str, options: argparse.Namespace) -> Found:
    """Warm up until everybody has a task, then count the turns; then wait for the silent."""
    crew = crew_at(place, options.workers)
    conductor = Conductor(crew)
    print(f"filling {options.tasks:,} tasks, launching {options.workers} workers", file=sys.stderr)
    conductor.care()
    _claim_all(place)
    command = [sys.executable, "-m", "bench.crew.scale", "--work", place, *(f"--{name}={getattr(options, name)}" for name in ("workers", "beat", "seconds", "silent", "stale", "seed"))]  # fmt: skip
    workers = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        return _watched(conductor, options, workers)
    finally:
        workers.kill()
        workers.wait()


def _claim_all(place: str) -> None:
    with CrewTable.open(place) as table:
        table.connection.execute("PRAGMA synchronous=OFF")
        for process in table.processes():
            table.claim(process.task_id, process.session_id)


def _watched(conductor: Conductor, options: argparse.Namespace, workers: subprocess.Popen[str]) -> Found:
    found, costs = Found(), list[float]()
    began, cpu = time.monotonic(), 0.0
    while time.monotonic() - began < options.seconds:
        used = time.thread_time()
        found.done += conductor.handle() + conductor.care()
        conductor.over()
        costs.append(time.thread_time() - used)
        cpu += costs[-1]
        time.sleep(options.poll)
    found.share = 100 * cpu / (time.monotonic() - began)
    found.turns, found.slowest, found.middle = len(costs), max(costs), median(costs)
    assert workers.stdout is not None
    silent = set(workers.stdout.readline().split()[1:])
    found.late = _until_found(conductor, silent, options)
    return found


def _until_found(conductor: Conductor, silent: set[str], options: argparse.Namespace) -> list[float]:
    """How many polls after its time was up each silent worker's task was taken away."""
    table, late = conductor.crew.table, dict[str, float]()
    until = time.monotonic() + options.stale + 20 * options.poll
    while len(late) < len(silent) and time.monotonic() < until:
        overdue = {
            row.task_id: (row.heartbeat_age or 0.0) - row.stale_after for row in table.claimed_tasks() if row.is_stale
        }
        conductor.handle()
        conductor.care()
        for name in silent - late.keys():
            row = table.require_task(name)
            if row.session_id == "" or row.state is TaskState.EXITED:
                late[name] = max(0.0, overdue.get(name, 0.0)) / options.poll
        time.sleep(options.poll)
    return [late.get(name, float("inf")) for name in sorted(silent)]


def main() -> int:
    """Measure, print, and say whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=500)
    parser.add_argument("--beat", type=float, default=60.0)
    parser.add_argument("--poll", type=float, default=5.0)
    parser.add_argument("--stale", type=float, default=30.0, help="seconds that the silent ones are allowed")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--silent", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", action="store_true", help="where the turns spend their time")
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


def _profiled(place: str, options: argparse.Namespace) -> Found:
    import cProfile
    import pstats

    with cProfile.Profile(time.thread_time) as profile:
        found = measure(place, options)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(35)
    return found


def report(found: Found, options: argparse.Namespace) -> int:
    """Figure, goal, met or missed."""
    worst = max(found.late, default=float("inf"))
    print(
        f"{options.tasks:,} tasks, {options.workers} workers, a turn every {options.poll:g} s for {options.seconds:g} s;"
    )
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{found.turns} turns, {found.done} things done; a turn took {found.middle * 1e3:.1f} ms of processor time, at most {found.slowest * 1e3:.1f}")  # fmt: skip
    goals = (
        ("processor time of the turns, per cent of a core", found.share, SHARE),
        (f"polls after which the last of {len(found.late)} silent workers was found", worst, 1.0),
    )
    for name, measured, goal in goals:
        print(f"{name}: {measured:.2f} (goal: at most {goal:g}) {'met' if measured <= goal else 'MISSED'}")
    return 0 if all(measured <= goal for _, measured, goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
