"""A crew in simulated time whose service has outages: what its agents meet, and how its workers tell of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rung.core.crew.handoff import Handoff
from rung.core.crew.liveness import DEFAULT_LIMITS
from rung.core.crew.service_trouble import EX_TEMPFAIL, Trouble, hand_back_text
from tests.crew.simulated import SimulatedProcesses, Worker, World

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from rung.crew.conductor import Conductor
    from rung.store.crew.rows import TaskLease
    from rung.store.crew.table import CrewTable

HOUR = 3_600.0
CLOSE = 600.0  # seconds before the end of a limit in which the conductor polls as often as ever
MANNERS = ("hands back", "reports", "dies", "exits 75")  # how a worker tells that the service is unavailable
OVERLOADED = 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'


@dataclass(frozen=True)
class Outage:
    """A time in which the service refuses all work, and whether it says until when."""

    begin: float
    end: float
    is_limit: bool = False

    def refusal(self, now: float) -> str:
        """Return what an agent prints at this time."""
        return f"Claude AI usage limit reached|{int(self.end)}" if self.is_limit else OVERLOADED


@dataclass
class ServedWorker(Worker):
    """A worker whose agent needs the service at every step."""

    world: OutageWorld | None = None
    manner: str = ""
    exit_code: int | None = None
    printed: str = ""

    def _work(self, table: CrewTable, claim: TaskLease) -> None:
        assert self.world is not None
        if self.task_id in self.world.always_refused:
            table.report_error(claim, OVERLOADED)
            return
        outage = self.world.outage()
        if outage is None:
            super()._work(table, claim)
            return
        self.world.refusals += 1
        text = outage.refusal(self.world.now)
        if self.manner == "reports":
            table.report_error(claim, text)
        elif self.manner == "hands back":
            trouble = Trouble(reason=text, until=outage.end if outage.is_limit else None)
            table.hand_off(claim, Handoff(session=self.session, reason=hand_back_text(trouble)).body())
            self.alive, self.exit_code = False, EX_TEMPFAIL
        else:
            self.alive, self.exit_code = False, EX_TEMPFAIL if self.manner == "exits 75" else 1
            self.printed = text if self.manner == "dies" or outage.is_limit else ""


@dataclass
class ServedProcesses(SimulatedProcesses):
    """Processes that keep what a dead worker printed, and when each was launched."""

    launches: list[tuple[float, str, bool]] = field(default_factory=list)  # time, task, whether its pool was open
    printed: dict[str, str] = field(default_factory=dict)

    def launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], workdir: Path | None
    ) -> None:  # the port's
        world = self.world
        assert isinstance(world, OutageWorld)
        pool = world.table.pools().get(world.table.pool_of(name))
        self.launches.append((world.now, name, pool is None or pool.is_open))
        self.running[name] = ServedWorker(
            name, environment["RUNG_SESSION"], "well", world.rng, steps_needed=world.rng.randint(*world.steps),
            world=world, manner=world.rng.choice(MANNERS),
        )  # fmt: skip

    def output(self, name: str, *, latest: bool = False) -> str:  # the port's
        return self.printed.get(name, "")

    def end(self, name: str, grace: float = 0.0) -> int | None:
        worker = self.running.get(name)
        super().end(name, grace)
        if not isinstance(worker, ServedWorker):
            return None
        self.printed[name] = worker.printed
        return worker.exit_code


class OutageWorld(World):
    """Workers with the default restart limits, before a service with outages."""

    def __init__(
        self,
        place: Path,
        seed: int,
        outages: Sequence[tuple[float, float, bool]],
        *,
        tasks: int = 8,
        workers: int = 8,
        steps: tuple[int, int] = (20, 60),  # of a worker, at least and at most
        always_refused: Collection[str] = (),  # tasks that meet trouble when the service has none
    ) -> None:
        self.refusals, self.workers, self.steps, self.always_refused = 0, workers, steps, always_refused
        super().__init__(place, seed, stormy=False, tasks=tasks)
        for row in self.table.tasks():
            self.table.update_columns(row.task_id, depends_on=[])
        self.outages = [Outage(self.now + begin, self.now + end, limit) for begin, end, limit in outages]
        self.served = ServedProcesses(self)
        self.processes = self.served
        self.conductor = self.new_conductor()

    def new_conductor(self) -> Conductor:
        conductor = super().new_conductor()
        conductor.crew.settings = replace(conductor.crew.settings, workers=self.workers, limits=DEFAULT_LIMITS)
        conductor.crew.jitter = self.rng.random
        return conductor

    def _advance(self) -> None:
        """Let some seconds pass; more of them while nobody works and the limit is far from its end."""
        super()._advance()
        outage = self.outage()
        if not self.processes.running and outage is not None and outage.is_limit and self.now < outage.end - CLOSE:
            self.now += self.rng.uniform(60, 120)

    def outage(self) -> Outage | None:
        """Return the current outage, if there is one."""
        return next((one for one in self.outages if one.begin <= self.now < one.end), None)

    def kill_everything(self) -> None:
        """Kill the conductor and every worker; the next conductor starts from the table alone."""
        for worker in self.processes.running.values():
            worker.alive = False
        self.conductor = self.new_conductor()

    def run_until(self, at: float) -> None:
        """Run the crew until a time."""
        while self.now < at:
            self.turn()

    def probes(self) -> list[float]:
        """Return the launch times of probes."""
        return [at for at, _, is_open in self.served.launches if not is_open]

    def most_probes_in_a_minute(self) -> int:
        """Return the largest number of probes within any minute."""
        probes = self.probes()
        return max((sum(at <= other < at + 60 for other in probes) for at in probes), default=0)
