"""Recoveries that die before or after a chosen write, and are resumed: one seed is one recovery and its deaths."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import rung
from rung.core.domain.failures import PROCESS_DEATH_RULE, Kind
from rung.core.policy.presets import LADDERS
from rung.engine.loop.run import CURRENT
from rung.errors import AttemptError
from rung.store.durable_runs import DurableRunLease, DurableRunStore
from rung.testing import FakeClock

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

TOKEN: Final = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
API_KEY: Final = "sk-ant-api03-" + "Zk9Lm2Qx7" * 10
NEW_KEY: Final = "sk-ant-api03-" + "Qw3Er5Ty8" * 10  # of the planner, not of the caller
LONG: Final = "The whole history of the project, word by word. " * 1_500  # more than the journal keeps of a text
LONG_EVERY: Final = 11  # seeds: long texts take most of the time
NAMES: Final = sorted(LADDERS)


class Died(BaseException):
    """The process is gone: nothing after it happens."""


@dataclass
class Death:
    """Counts the writes of a process, and ends it before or after one of them."""

    at: int = 1_000_000
    is_after: bool = False
    writes: int = 0
    is_dead: bool = False

    def before(self) -> None:
        """End the process here if this write is the one."""
        if self.is_dead or (self.writes == self.at and not self.is_after):
            self.is_dead = True
            raise Died

    def after(self) -> None:
        """Count the write, and end the process if it was the one."""
        self.writes += 1
        if self.writes - 1 == self.at:
            self.is_dead = True
            raise Died


class MortalLease(DurableRunLease):
    """Lease of a process that dies at a write."""

    death: Death

    def record(self, key: str, result: Any) -> None:
        """Record a step."""
        self.death.before()
        super().record(key, result)
        self.death.after()

    def append(self, *arguments: Any) -> Any:
        """Append events, durably before the process dies."""
        self.death.before()
        future = super().append(*arguments)
        future.result()
        self.death.after()
        return future

    def finish(self, result: Any) -> None:
        """Record the end."""
        self.death.before()
        super().finish(result)
        self.death.after()

    def __exit__(self, *_: object) -> None:
        """Release nothing: a dead process does not."""
        self._stop.set()


class MortalRuns(DurableRunStore):
    """Runs whose claims end with their process: a dead one owns nothing."""

    death: Death

    def claim(self, run: str, task: str = "", arguments: Any = None) -> DurableRunLease:
        """Claim a run."""
        claim = super().claim(run, task, arguments)
        lease = MortalLease(self, claim.run, claim.epoch, done=claim.done, exhausted=claim.exhausted)
        lease.death = self.death
        return lease


class MortalJournal:
    """Journal as one process sees it."""

    def __init__(self, journal: Journal, death: Death) -> None:
        self.runs = MortalRuns(journal, lease=0.0)
        self.runs.death = death
        self.events = journal.events


@dataclass
class Made:
    """What the attempts of a recovery were given, by the number of failures before each."""

    requests: dict[int, set[str]] = field(default_factory=dict)
    calls: int = 0
    reported: float = 0.0  # dollars of reports that returned
    tried: float = 0.0  # dollars of all reports


class Scenario:
    """One recovery: its ladder, its request, what its attempts come to, and who helps it."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.seed = seed
        self.long = LONG if seed % LONG_EVERY == 0 else "A short history. "
        self.is_async = chance.random() < 0.3
        ladder = NAMES[seed % len(NAMES)]
        self.policy = rung.policy(
            ladder, models=["small", "large", "huge"], attempts=60, seconds=1e9, unattended=chance.random() < 0.3
        )
        self.fates = [self._fate(chance) for _ in range(chance.randrange(1, 9))]
        self.request = self._request(chance)
        self.has_planner = chance.random() < 0.5
        self.has_operator = chance.random() < 0.6
        self.choice = chance.randrange(3)

    def _fate(self, chance: random.Random) -> tuple[Exception, float, str]:
        kind = chance.choice(
            [*Kind, Kind.OUTPUT_LIMIT, Kind.PARTIAL_OUTPUT, Kind.NOT_FOUND, Kind.TIMEOUT, Kind.CONTEXT_LIMIT]
        )
        output = chance.choice(["", "", "half of it", f"half, with {TOKEN}", self.long])
        text = chance.choice(["it failed", f"it failed with {API_KEY}", "failed " + self.long[:9_000]])
        error = AttemptError(text, finding=kind, output=output, missing=("tests", "docs")[: chance.randrange(3)])
        return error, chance.randrange(3) / 4, chance.choice(["", "parsed", f"logged in with {TOKEN}"])

    def _request(self, chance: random.Random) -> rung.Request:
        task = chance.choice(["Do it.", f"Deploy with the token {TOKEN}.", self.long + "Do it."])
        said = [{"role": "user", "content": task}, *({"role": "user", "content": f"part {n}"} for n in range(5))]
        messages = tuple(said) if chance.random() < 0.4 else ()
        return rung.Request(
            prompt="" if messages else task,
            messages=messages,
            model="small",
            max_tokens=chance.choice([None, 100]),
            max_turns=chance.choice([None, 5]),
            params={"api_key": API_KEY, "seed": self.seed},
            idempotent=True,
        )

    def run(self, journal: Journal, run_id: str, made: Made, death: Death) -> rung.Outcome[Any]:
        """Run the recovery in one process."""
        ports: dict[str, Any] = {
            "policy": self.policy, "journal": MortalJournal(journal, death), "run_id": run_id, "clock": FakeClock(),
            "jitter": lambda: 0.0, "retry_budget": None, "breakers": rung.BreakerRegistry(), "checkpoint": self,
            "key": lambda _: f"{made.calls} {death.writes}",  # no circuit opens: its state is the process's
        }  # fmt: skip
        if self.has_planner:
            ports["rung_handlers"] = {"replan": self._plan}
        if self.has_operator:
            ports["ask"] = lambda question, _: question.options[self.choice % len(question.options)].id
        if self.is_async:
            return asyncio.run(rung.durable.recover(self._attempts(made), self.request, **ports))
        return rung.durable.recover_sync(self._attempts(made), self.request, **ports)

    def _attempts(self, made: Made) -> Any:
        def attempt(request: rung.Request) -> str:
            run = CURRENT.get()
            assert run is not None
            number = sum(failure.rule != PROCESS_DEATH_RULE for failure in run.incident.failures)
            seen = f"{request.digest()} {request.model} {request.max_tokens} {request.max_turns} {hash(request.prompt)}"
            made.requests.setdefault(number, set()).add(seen)
            made.calls += 1
            if number >= len(self.fates):
                return f"done with {TOKEN}"
            error, dollars, step = self.fates[number]
            if dollars:
                made.tried += dollars
                rung.report_cost(dollars)
                made.reported += dollars
            if step:
                rung.report_step(step)
            raise error.with_traceback(None)

        return attempt

    def _plan(self, request: rung.Request, _: object) -> rung.Request:
        plan = f"Another plan: log in with {TOKEN} and the new key {NEW_KEY}.\n{request.prompt}"
        return request.replace(prompt=plan, params={**request.params, "plan": [plan]})

    def take(self, label: str) -> str:
        """Take a checkpoint."""
        return label

    def restore(self, reference: str) -> None:
        """Restore a checkpoint."""


def crash(journal: Journal, seed: int, name: str = "") -> None:
    """Compare the recovery of one seed, killed at one or two writes, with the same recovery undisturbed."""
    scenario = Scenario(seed)
    chance = random.Random(-seed - 1)
    expected, still = Made(), Death()
    undisturbed = scenario.run(journal, f"{name}{seed}", expected, still)
    made, killed = Made(), 0
    for _ in range(chance.choice([1, 1, 2])):
        try:
            outcome = scenario.run(
                journal, f"{name}{seed} killed", made, Death(chance.randrange(still.writes), chance.random() < 0.5)
            )
            break
        except Died:
            killed += 1
    else:
        outcome = scenario.run(journal, f"{name}{seed} killed", made, Death())
    where = f"seed {seed}"
    assert made.requests == expected.requests, where
    assert (outcome.ok, outcome.value, outcome.steps) == (undisturbed.ok, undisturbed.value, undisturbed.steps), where
    assert outcome.status == undisturbed.status or (outcome.ok and undisturbed.ok), where
    assert outcome.model == undisturbed.model, where
    assert made.calls <= expected.calls + killed, where
    assert made.reported - 1e-9 <= outcome.dollars <= made.tried + 1e-9, where
    again = scenario.run(journal, f"{name}{seed} killed", Made(), Death())
    assert (again.status, again.value) == (outcome.status, outcome.value), where
