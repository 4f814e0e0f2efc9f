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
from rung.testing import FakeClock
from tests.store.durable_runs.mortal import Death, MortalJournal, killed_and_resumed

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

TOKEN: Final = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
API_KEY: Final = "sk-ant-api03-" + "Zk9Lm2Qx7" * 10
NEW_KEY: Final = "sk-ant-api03-" + "Qw3Er5Ty8" * 10  # of the planner, not of the caller
LONG: Final = "The whole history of the project, word by word. " * 1_500  # more than the journal keeps of a text
LONG_EVERY: Final = 11  # seeds: long texts take most of the time
NAMES: Final = sorted(LADDERS)


@dataclass
class Made:
    """What the attempts of a recovery were given, by the number of failures before each."""

    requests: dict[Any, set[str]] = field(default_factory=dict)
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
            ports["ask"] = self.answer
        if self.is_async:
            return asyncio.run(rung.durable.recover(self.attempts(made), self.request, **ports))
        return rung.durable.recover_sync(self.attempts(made), self.request, **ports)

    def attempts(self, made: Made) -> Any:
        """Return the attempt function."""

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

    def answer(self, question: Any, _: object) -> str:
        """Choose an option, as the operator does."""
        return str(question.options[self.choice % len(question.options)].id)

    def _plan(self, request: rung.Request, _: object) -> rung.Request:
        plan = f"Another plan: log in with {TOKEN} and the new key {NEW_KEY}.\n{request.prompt}"
        return request.replace(prompt=plan, params={**request.params, "plan": [plan]})

    def is_final(self, _: rung.Outcome[Any]) -> bool:
        """Whether a later call with the same id returns this outcome again."""
        return True

    def take(self, label: str) -> str:
        """Take a checkpoint."""
        return label

    def restore(self, reference: str) -> None:
        """Restore a checkpoint."""


def crash(journal: Journal, scenario: Scenario, name: str = "") -> None:
    """Compare a recovery that is killed at one or two writes with the same recovery undisturbed."""
    where = f"seed {scenario.seed}"
    run_id = f"{name}{scenario.seed}"
    expected, made, still = Made(), Made(), Death()
    undisturbed = scenario.run(journal, run_id, expected, still)
    outcome, killed = killed_and_resumed(
        lambda death: scenario.run(journal, f"{run_id} killed", made, death),
        still.writes,
        random.Random(-scenario.seed - 1),
        is_final=scenario.is_final(undisturbed),
    )
    assert made.requests == expected.requests, where
    assert (outcome.ok, outcome.value, outcome.steps) == (undisturbed.ok, undisturbed.value, undisturbed.steps), where
    assert outcome.status == undisturbed.status or (outcome.ok and undisturbed.ok), where
    assert outcome.model == undisturbed.model, where
    assert made.calls <= expected.calls + killed, where
    assert made.reported - 1e-9 <= outcome.dollars <= made.tried + 1e-9, where
    if scenario.is_final(outcome):
        again = scenario.run(journal, f"{run_id} killed", Made(), Death())
        assert (again.status, again.value) == (outcome.status, outcome.value), where
