"""A storm in simulated time: faults of workers and helpers by chance, and a conductor that is killed anywhere."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.core.crew.contract import SHUTDOWN_PREFIX, MessageType, TaskState
from rung.core.crew.handoff import Handoff
from rung.core.domain.errors import AttemptError, ClaimBlocked, ConductorReplaced, IllegalTransition, LeaseExpired
from rung.core.policy.parser import policy
from rung.crew.conductor import Conductor
from rung.crew.context import ConductorContext
from rung.crew.helper_runs import HelperRun, HelperRuns, RunningHelper
from rung.crew.instruction_file import full_instructions
from rung.crew.judgement import CommandJudgement
from rung.crew.plan_sync import PLAN_KEY, current_plan, insert_plan
from rung.crew.settings import ConductorSettings
from rung.crew.shutdown import shut_down
from rung.crew.task_recovery import TaskRecoveries
from tests.crew.simulated import STALE, Killed, SimulatedProcesses, Worker, World
from tests.crew.storm.storm_plan import make_tasks, plan_tasks
from tests.crew.storm.stormy_worker import FULL_HANDOVER, HANDOVER, REVIEW, WARNING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.store.crew.rows import TaskLease
    from rung.store.crew.table import CrewTable

ERRORS = (
    "ImportError: No module named foo",
    "3 tests failed: integration failure",
    "Connection reset by peer",
    "the cause is unclear",
    "the fix needs an architectural decision",
)
FAULTS = ("well",) * 14 + (
    "dies", "stands still", "errs", "errs for ever", "warns", "warns at its end", "nonsense", "renumbers", "loops",
    "never claims", "lies", "lies about tests", "completes too early", "hands over in free text", "hands over in full",
    "leaves", "ignores everything",
)  # fmt: skip
LEASE_SECONDS = 300.0
MAY_BE_ENDED = ("loops", "ignores everything")  # by the conductor, although they beat


@dataclass
class StormWorker(Worker):
    """A worker that does its work only if it was told what it is."""

    world: StormWorld | None = None
    way: str = "library"
    checkpoint: int = 1
    handed_over: str = ""

    @property
    def place(self) -> StormWorld:
        assert self.world is not None
        return self.world

    def act(self, table: CrewTable, now: float) -> None:
        if not self.alive or now < self.stopped_until:
            return
        try:
            self._act(table, now)
        except (ClaimBlocked, IllegalTransition, LeaseExpired):
            self.alive = False

    def _act(self, table: CrewTable, now: float) -> None:
        if self.claim is None:
            self._claim(table, now)
            return
        state = table.heartbeat(self.claim, progress=self._progress())
        self.beat_at = now
        if self.fault == "ignores everything":
            return
        if state is TaskState.EXIT_REQUESTED:
            self._hand_off(table, Handoff(session=self.session, reason="asked to", context=50.0).body())
        elif state in (TaskState.FIX_PROPOSED, TaskState.REVIEW_FAILED):
            table.resume(self.claim)
            self._do_work()
        elif state is TaskState.REVIEW_APPROVED:
            table.resume(self.claim)
            self._continue(table, self.claim)
        elif state is TaskState.WORKING:
            self._work(table, self.claim)

    def _claim(self, table: CrewTable, now: float) -> None:
        if self.fault == "never claims":
            self.alive = False
            return
        self.claim = table.claim(self.task_id, self.session)
        self.beat_at = now
        row = table.require_task(self.task_id)
        if self.way == "sql":
            given = table.messages(self.task_id, types=(MessageType.INSTRUCTION,))
            self.told = given[-1].message + (Path(row.instruction_path).read_text() if row.instruction_path else "")
        else:
            self.told = full_instructions(table, row)
        self.place.check_told(self)

    def _do_work(self) -> None:
        """Do the work, as far as the worker was told what it is."""
        if self.place.words[self.task_id] in self.told:
            self.place.out.add(self.task_id)

    def _continue(self, table: CrewTable, claim: TaskLease) -> None:
        """Complete the task, or go on to the next checkpoint."""
        row = table.require_task(self.task_id)
        if row.approved and row.reviews_approved > row.checkpoints:
            table.complete(claim)
            self.alive = False

    def _hand_off(self, table: CrewTable, body: str) -> None:
        assert self.claim is not None
        table.hand_off(self.claim, body)
        self.place.handovers[self.task_id] = body
        self.alive = False

    def _work(self, table: CrewTable, claim: TaskLease) -> None:
        self.steps += 1
        if self.fault == "loops" or self._misbehaves(table, claim):
            return
        if self.steps >= self.steps_needed:
            if not self.fault.startswith("lies"):
                self._do_work()
            self._request_review(table, claim)

    def _request_review(self, table: CrewTable, claim: TaskLease) -> None:
        row = table.require_task(self.task_id)
        grade = 0 if self.fault.startswith("lies") else self.rng.choice((0, 1, 2, 3, 5, 6))
        tests = "not run" if self.fault == "lies about tests" else "all pass"
        number = row.reviews_approved + 1
        body = REVIEW.format(checkpoint=number, summary="did it", tests=tests, smoothness=grade)
        table.request_review(claim, body, checkpoint=number)

    def _misbehaves(self, table: CrewTable, claim: TaskLease) -> bool:
        """Act out the fault; return whether this step is over."""
        rng = self.rng
        if self.fault == "dies" and self.steps >= 2:
            self.alive = False
        elif self.fault == "stands still" and self.steps >= 2:
            self.stopped_until = float("inf")
        elif (self.fault == "errs" and rng.random() < 0.6) or self.fault == "errs for ever":
            table.report_error(claim, rng.choice(ERRORS))
        elif self.fault.startswith("warns") and self.steps == 1:
            table.warn_context(claim, WARNING.format(usage=62 if self.fault == "warns" else 91))
        elif self.fault in ("nonsense", "renumbers") and rng.random() < 0.5:
            table.request_review(claim, "done!!", checkpoint=1 if self.fault == "nonsense" else rng.randint(1, 99))
        elif self.fault == "completes too early" and self.steps == 1:
            self._complete_too_early(table, claim)
        elif self.fault.startswith("hands over"):
            text = HANDOVER if self.fault.endswith("free text") else FULL_HANDOVER
            self._hand_off(table, text.format(task=self.task_id, number=claim.generation, session=self.session))
        elif self.fault == "leaves":
            self.alive = False
        else:
            return False
        return True

    def _complete_too_early(self, table: CrewTable, claim: TaskLease) -> None:
        row = table.require_task(self.task_id)
        if row.approved:
            return
        try:
            table.complete(claim)
        except IllegalTransition:
            return
        self.place.processes.mistakes.append(f"{self.task_id}: completed without a review")


@dataclass
class StormProcesses(SimulatedProcesses):
    """Processes whose workers have faults by chance; the number of launches of each task decides how many."""

    launches: dict[str, int] = field(default_factory=dict)

    def launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None
    ) -> None:  # the port's
        world = self.world
        assert isinstance(world, StormWorld)
        rng = world.rng
        self.launches[name] = self.launches.get(name, 0) + 1
        fault = rng.choice(FAULTS) if rng.random() < 1.2 / self.launches[name] else "well"
        self.running[name] = StormWorker(
            name, environment["RUNG_SESSION"], fault, rng, steps_needed=rng.randint(1, 4), world=world,
            way=world.planned[name].way,
        )  # fmt: skip

    def end(self, name: str, grace: float = 0.0) -> int | None:  # the port's
        worker = self.running.pop(name, None)
        if worker is None or not worker.alive:
            return None
        worker.alive = False
        row = self.world.table.require_task(name)
        owns = worker.claim is not None and (row.session_id, row.generation) == (
            worker.session,
            worker.claim.generation,
        )
        if owns and row.state not in (TaskState.EXITED, TaskState.COMPLETE):
            self.mistakes.append(f"{name}: ended in state {row.state}, before it was marked")
        fresh = self.world.now - worker.beat_at < STALE
        said = self.world.table.messages(name, types=(MessageType.SYSTEM,))
        is_revised = bool(said) and said[-1].message.startswith("REVISED")
        is_excused = worker.fault in MAY_BE_ENDED or row.note.startswith(SHUTDOWN_PREFIX) or is_revised
        if owns and fresh and row.state is TaskState.EXITED and not (is_excused or row.outcome):
            self.mistakes.append(f"{name}: was well ({worker.fault}), and was ended: {row.note}")
        return None


class SimulatedHelpers(HelperRuns):
    """Helpers that answer after some simulated time: right, wrong, or not at all."""

    def __init__(self, world: StormWorld) -> None:
        super().__init__()
        self.world = world
        self.pending: list[tuple[float, RunningHelper]] = []

    def start(self, task_id: str, run: HelperRun) -> RunningHelper:
        helper = RunningHelper(task_id=task_id, run=run)
        manner = self.world.rng.choices(("right", "slow", "nonsense", "fails"), (6, 2, 1, 1))[0]
        question = json.loads(run.prompt)
        if manner == "nonsense":
            helper.output = self.world.rng.choice(
                ("As I see it, all is well.", "{}", "[1", '{"approve": "maybe", "fix": []}')
            )
        elif manner == "fails":
            helper.error = AttemptError("Connection reset by peer", exit_code=1)
        else:
            helper.output = json.dumps(self.world.answer(question))
        wait = run.delay + self.world.rng.uniform(1, 30) + (90.0 if manner == "slow" else 0.0)
        self.pending.append((self.world.now + wait, helper))
        return helper

    def settle(self) -> None:
        """End the helpers whose time has come."""
        for at, helper in self.pending:
            if at <= self.world.now:
                helper.done.set()
        self.pending = [(at, helper) for at, helper in self.pending if at > self.world.now]


class StormWorld(World):
    """Eight workers, forty tasks with dependencies, checkpoints and texts, and faults everywhere."""

    def __init__(self, place: Path, seed: int, *, tasks: int = 40) -> None:
        self.planned: dict[str, Any] = {}
        self.out: set[str] = set()
        self.handovers: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.stopped: list[Conductor] = []  # conductors that were replaced, and do not know it
        self.dead: list[Conductor] = []  # kept: a killed process runs no clean-up code
        super().__init__(place, seed, stormy=True, tasks=0)
        self.storm_processes = StormProcesses(self)
        self.processes = self.storm_processes
        made = make_tasks(seed, tasks, place)
        self.planned = {task.id: task for task in made}
        self.words = {task.id: task.word for task in made}
        (place / "texts").mkdir()
        for task in made:
            if task.in_file:
                (place / "texts" / f"{task.id}.md").write_text(task.text)
        self.plan = {
            "crew": {
                "name": "storm", "workers": 8, "worker": ["true"], "judge": ["true"], "replanner": ["true"], "review": ["true"],
                "stale_after": STALE, "claim_within": 60.0, "redispatches": 5, "restarts": 400, "deaths": 100,
                "death_seconds": 30.0, "hung": 3600.0,
            },
            "task": plan_tasks(made),
        }  # fmt: skip
        insert_plan(self.table, self.plan, place)
        self.conductor = self.new_conductor()

    def new_conductor(self) -> Conductor:
        self.helpers = SimulatedHelpers(self)
        plan = current_plan(self.table)
        if plan is None:  # not inserted yet
            return super().new_conductor()
        self.dead.append(self.conductor)
        table = self.table.clone()
        for pragma in ("synchronous=OFF", "journal_mode=MEMORY"):
            table.connection.execute(f"PRAGMA {pragma}")
        self.term = table.acquire_lease(LEASE_SECONDS, is_free=lambda _: True).term
        crew = ConductorContext(
            table=table,
            table_url=str(self.place),
            runtime_dir=self.place / "runtime",
            settings=ConductorSettings.from_plan(plan.settings),
            processes=self.processes,
            judgement=CommandJudgement.of_plan(plan),
            recoveries=TaskRecoveries(policy("crew"), lambda: self.now),
            now=lambda: self.now,
            jitter=self.rng.random,
            helpers=self.helpers,
        )
        return Conductor(crew)

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the right answer of a helper."""
        kind, task = question["question"], question["task"]
        if kind == "review":
            return {"approve": task in self.out, "reason": "the word is not in the file"}
        if kind == "replan":
            return {"plan": self.revised(task)}
        return {"root_cause": "the door was locked", "fix": "open the door", "afterwards": "go on"}

    def revised(self, task: str) -> dict[str, Any]:
        """Return the current plan with more text for the task that is blocked."""
        plan: dict[str, Any] = json.loads(self.table.get_fact(PLAN_KEY) or "{}")
        plan["crew"]["revision"] = plan["crew"].get("revision", 1) + 1
        for row in plan["task"]:
            row.pop("mark", None)
            if row["id"] == task:
                row.pop("instruction_path", None)
                row |= {"instruction": f"{self.planned[task].text}\nREVISED: leave the door open.", "mark": "REVISED"}
        return plan

    def check_told(self, worker: StormWorker) -> None:
        """Every worker is given the whole task, and the hand-over of the worker before it."""
        assert worker.claim is not None
        name = f"{worker.task_id}: {worker.way} worker of generation {worker.claim.generation}"
        if self.planned[worker.task_id].text not in worker.told:
            self.processes.mistakes.append(f"{name} was not told its task: {worker.told}")
        left = self.handovers.pop(worker.task_id, "").strip()
        if left not in worker.told:
            self.processes.mistakes.append(f"{name} was not given the hand-over {left!r}: {worker.told}")

    def run(self, hours: float = 48.0) -> None:
        """Run the crew to its end, and kill its conductor at any time."""
        until = self.now + hours * 3600
        while self.now < until:
            self._advance()
            self.helpers.settle()
            self._hurt_the_conductor()
            busy = self.conductor.run_once()
            self._check_generations()
            if not busy and self.conductor.finish_if_idle():
                return
        raise AssertionError(f"not over after {hours} hours: {self.table.counts()}")

    def _hurt_the_conductor(self) -> None:
        chance = self.rng.random()
        is_asking = bool(self.conductor.suspended.names())
        if chance < 0.01:
            self.kill_during_a_write()
        elif chance < (0.025 if is_asking else 0.015):  # while a helper works, or a consultation
            self.kills += 1
            self.conductor = self.new_conductor()
        elif chance < 0.028:
            self._kill_in_shutdown()
        elif chance < 0.034:  # stopped for longer than its lease: it goes on when another one conducts
            self.stopped.append(self.conductor)
            self.conductor = self.new_conductor()
        elif self.stopped and chance < 0.2:
            self._wake_a_stopped_conductor()

    def _wake_a_stopped_conductor(self) -> None:
        """Let a conductor go on that was replaced while it stood still: it must change nothing."""
        conductor = self.stopped.pop()
        before = self._state()
        with suppress(ConductorReplaced):
            conductor.run_once()
            conductor.finish_if_idle()
        if self._state() != before:
            self.processes.mistakes.append("a conductor that was replaced has changed something")

    def _state(self) -> tuple[object, ...]:
        """Return what changes with every write of another connection, and with every process."""
        ((version,),) = self.table.connection.execute("PRAGMA data_version")
        running = self.processes.running
        return version, dict(self.storm_processes.launches), {name: worker.alive for name, worker in running.items()}

    def _kill_in_shutdown(self) -> None:
        """Shut the conductor down, and kill it at any of its writes."""
        conductor = self.conductor
        self.kill_during_a_write(lambda: shut_down(conductor.crew, "handed over"))

    def _check_generations(self) -> None:
        for name, generation in self.table.connection.execute("SELECT task_id, generation FROM orchestration_tasks"):
            if generation < self.generations.get(name, 0):
                self.processes.mistakes.append(f"{name}: generation {generation} after {self.generations[name]}")
            self.generations[name] = generation
        term = self.table.conductor_lease().term
        if term != self.term:
            self.processes.mistakes.append(f"the term is {term}, after {self.term}")

    def close(self) -> None:
        """Close everything. Clean-up code of dead conductors finds that they were replaced."""
        for conductor in self.dead:
            while conductor.suspended:
                with suppress(ConductorReplaced):
                    conductor.close()
            conductor.crew.table.close()
        self.conductor.crew.table.close()
        self.table.close()

    def check(self) -> None:
        """Assert what must hold after any storm."""
        super().check()
        for row in self.table.tasks(TaskState.COMPLETE):
            assert row.task_id in self.out, f"{row.task_id} is complete, but nothing was done"
            assert row.reviews_approved > row.checkpoints, row
        for name in self.planned:
            kept = [message.message_type for message in self.table.messages(name)]
            reports = [n for n, kind in enumerate(kept) if kind in REPORTS]
            answers = [n for n, kind in enumerate(kept) if kind not in REPORTS]
            assert not reports or answers[-1] > reports[-1], (name, kept)


REPORTS = (MessageType.ERROR, MessageType.CONTEXT_WARNING, MessageType.REVIEW_REQUEST)
__all__ = ["Killed", "StormWorld"]
