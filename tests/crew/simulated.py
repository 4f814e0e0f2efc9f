"""A crew in simulated time: its clock, its table, its workers and its conductor."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rung.core.crew.contract import MessageType, TaskState
from rung.core.crew.handoff import Handoff
from rung.core.crew.liveness import RestartLimits
from rung.core.domain.errors import ClaimBlocked, IllegalTransition, LeaseExpired
from rung.core.policy.parser import policy
from rung.core.policy.restart_intensity import RestartIntensity
from rung.crew.conductor import Conductor
from rung.crew.context import ConductorContext
from rung.crew.judgement import CommandJudgement
from rung.crew.settings import ConductorSettings
from rung.crew.task_recovery import TaskRecoveries
from rung.store.crew.briefing import worker_instructions
from rung.store.crew.rows import NewTask
from rung.store.crew.table import CrewTable
from tests.crew.review_text import review

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rung.store.crew.rows import TaskLease

TASKS = 40
WORKERS = 8
STALE = 120.0


class Killed(BaseException):
    """Kills the simulated conductor at a database write."""


@dataclass
class Worker:
    """A simulated worker process, which acts one step at a time."""

    task_id: str
    session: str
    fault: str
    rng: random.Random
    claim: TaskLease | None = None
    alive: bool = True
    stopped_until: float = 0.0
    steps: int = 0
    steps_needed: int = 3
    requested_review: bool = False
    beat_at: float = 0.0
    told: str = ""

    def act(self, table: CrewTable, now: float) -> None:
        if not self.alive or now < self.stopped_until:
            return
        try:
            if self.claim is None:
                if self.fault == "never claims":
                    self.alive = False
                    return
                self.claim = table.claim(self.task_id, self.session)
                self.told = worker_instructions(table, table.require_task(self.task_id))
                self.beat_at = now
                return
            claim = self.claim
            state = table.heartbeat(claim, progress=self._progress())
            self.beat_at = now
            if state is TaskState.EXIT_REQUESTED:
                table.hand_off(claim, Handoff(session=self.session, reason="asked to", context=50.0).body())
                self.alive = False
            elif state in (TaskState.FIX_PROPOSED, TaskState.REVIEW_FAILED):
                table.resume(claim)
            elif state is TaskState.REVIEW_APPROVED:
                table.resume(claim)
                if self.requested_review:
                    table.complete(claim)
                    self.alive = False
            elif state is TaskState.WORKING:
                self._work(table, claim)
        except (ClaimBlocked, IllegalTransition, LeaseExpired):
            self.alive = False

    def _progress(self) -> str:
        if self.fault == "loops":
            return json.dumps(
                {"tool": "bash", "args": {"command": "make"}, "result": "error: no rule", "i": self.steps}
            )
        return f"step {self.steps}"

    def _work(self, table: CrewTable, claim: TaskLease) -> None:
        self.steps += 1
        if self.fault == "loops":
            return
        if self.fault == "dies" and self.steps >= 2:
            self.alive = False
        elif self.fault == "stands still" and self.steps >= 2:
            self.stopped_until = float("inf")
        elif self.fault == "errs" and self.rng.random() < 0.6:
            table.report_error(claim, self.rng.choice(ERRORS))
        elif self.fault == "warns" and self.steps == 1:
            table.warn_context(claim, "Context Usage: 70%\nProposal: go on")
        elif self.fault == "nonsense" and self.rng.random() < 0.5:
            table.request_review(claim, "done!!", checkpoint=1)
            self.requested_review = True
        elif self.steps >= self.steps_needed:
            table.request_review(claim, review(self.rng.choice((0, 1, 2, 3, 5, 6))), checkpoint=1)
            self.requested_review = True


def instruction(number: int) -> str:
    return f"Do task {number}, and only task {number}."


ERRORS = (
    "ImportError: No module named foo",
    "3 tests failed: integration failure",
    "Connection reset by peer",
    "the cause is unclear",
)


@dataclass
class SimulatedProcesses:
    """Simulated processes. Ending a healthy worker is recorded as a mistake."""

    world: World
    running: dict[str, Worker] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)

    def launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None
    ) -> None:  # the port's
        rng = self.world.rng
        self.running[name] = Worker(name, environment["RUNG_SESSION"], "well", rng, steps_needed=rng.randint(1, 4))

    def alive(self, name: str) -> bool:
        worker = self.running.get(name)
        return worker is not None and worker.alive

    def output(self, name: str, *, latest: bool = False) -> str:  # the port's
        return f"{name} worked"

    def end(self, name: str, grace: float = 0.0) -> int | None:  # the port's
        worker = self.running.pop(name, None)
        if worker is not None and worker.claim is not None and instruction(int(name[5:])) not in worker.told:
            self.mistakes.append(f"{name}: generation {worker.claim.generation} was not told its task: {worker.told}")
        if worker is None or not worker.alive:
            return None
        row = self.world.table.task(name)
        assert row is not None
        owns = (
            worker.claim is not None and row.session_id == worker.session and row.generation == worker.claim.generation
        )
        if owns and row.state not in (TaskState.EXITED, TaskState.COMPLETE):
            self.mistakes.append(f"{name}: ended in state {row.state}, before it was marked")
        fresh = self.world.now - worker.beat_at < STALE
        if owns and fresh and worker.fault != "loops" and not row.outcome and row.state is TaskState.EXITED:
            self.mistakes.append(f"{name}: was well ({worker.fault}), and was ended: {row.note}")
        worker.alive = False
        return None


class World:
    """The clock, the table, the workers and the current conductor."""

    def __init__(self, place: Path, seed: int, *, stormy: bool = True, tasks: int = TASKS) -> None:
        self.rng = random.Random(seed)
        self.now = 1_800_000_000.0
        self.stormy = stormy
        self.table = CrewTable.open(str(place / "crew.db"), create=True, clock=lambda: self.now)
        for pragma in ("synchronous=OFF", "journal_mode=MEMORY"):
            self.table.connection.execute(f"PRAGMA {pragma}")
        self.place = place
        self.processes = SimulatedProcesses(self)
        for n in range(1, tasks + 1):
            needs = tuple(f"task-{m:02}" for m in self.rng.sample(range(1, n), min(n - 1, self.rng.choice((0, 0, 1)))))
            self.table.add_task(
                NewTask(task_id=f"task-{n:02}", instruction=instruction(n), depends_on=needs, stale_after=STALE)
            )
        self.poll = 5.0
        self.conductor = self.new_conductor()
        self.kills = 0

    def new_conductor(self) -> Conductor:
        """Return a conductor that knows nothing but the table."""
        limits = RestartLimits(
            redispatches=3,
            restarts=RestartIntensity(restarts=200, seconds=900),
            deaths=RestartIntensity(restarts=60, seconds=30),
        )
        settings = ConductorSettings(
            workers=WORKERS, command=("worker",), limits=limits, grace=0.0, claim_within=60.0, poll=self.poll
        )
        crew = ConductorContext(
            table=self.table,
            table_url=str(self.place),
            runtime_dir=self.place / "runtime",
            settings=settings,
            processes=self.processes,
            judgement=CommandJudgement(),
            recoveries=TaskRecoveries(policy("crew"), lambda: self.now),
            now=lambda: self.now,
        )
        return Conductor(crew)

    def run(self, hours: float = 48.0) -> None:
        until = self.now + hours * 3600
        while self.now < until:
            self._advance()
            busy = self.conductor.run_once()
            if not busy and self.conductor.finish_if_idle():
                return
        raise AssertionError(f"not over after {hours} hours: {self.table.counts()}")

    def turn(self) -> None:
        """Let some seconds pass, and every worker and the conductor act once."""
        self._advance()
        self.conductor.run_once()

    def watch(self, seconds: float) -> int:
        """Let time pass while the conductor supervises as often as usual; return the number of its actions."""
        until, actions = self.now + seconds, self.conductor.supervise_and_dispatch()
        while self.now < until:
            self.now = min(self.now + self.poll, until)
            actions += self.conductor.supervise_and_dispatch()
        return actions

    def _advance(self) -> None:
        self.now += self.rng.uniform(2, 20)
        for worker in self.rng.sample(list(self.processes.running.values()), len(self.processes.running)):
            worker.act(self.table, self.now)
            if self.stormy and worker.alive and worker.claim and self.rng.random() < 0.002:
                worker.alive = False

    def kill_during_a_write(self, action: Callable[[], object] | None = None) -> None:
        """Kill the conductor at one of its writes, in a turn or another action; the next one starts from the table alone."""
        left = self.rng.randint(0, 30)
        connection = self.conductor.crew.table.connection
        execute = connection.execute

        def dying(sql: str, values: Sequence[Any] = ()) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return execute(sql, values)

        connection.execute = dying  # type: ignore[method-assign]  # injected fault
        try:
            (action or self.conductor.run_once)()
        except Killed:
            self.kills += 1
        finally:
            connection.execute = execute  # type: ignore[method-assign]  # as above
            connection.rollback()  # as SQLite does when the next process opens the file
        self.conductor = self.new_conductor()

    def check(self) -> None:
        """Assert that every task is complete or escalated, none twice, and that no process or row is left over."""
        assert self.processes.mistakes == []
        for row in self.table.tasks():
            done = self.table.messages(row.task_id, types=(MessageType.COMPLETION,))
            if row.state is TaskState.COMPLETE:
                assert len(done) == 1, row.task_id
                assert row.outcome == "complete", row
            else:
                assert row.state is TaskState.EXITED, row
                assert row.outcome == "escalated", row
                assert done == [], row.task_id
                assert (self.place / "runtime" / "escalations" / f"{row.task_id}.md").exists()
        assert [worker for worker in self.processes.running.values() if worker.alive] == []
        assert self.table.processes() == []
        assert self.table.fallbacks() == []
