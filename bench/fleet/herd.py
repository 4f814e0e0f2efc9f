"""Simulation in virtual time of agents, gateways and a provider with an outage, by cohorts of calls.

Breakers, retry budgets, backoff, circuits and slices are the real ones of `rung.core` and `rung.engine`; agents, the
provider and the database are simulated. One step is one second, which is also how often gateways exchange with the database
of their cell. Calls of one gateway in one step are counted, not simulated one by one. The same seed gives the same run.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from rung.core.policy.backoff import Backoff
from rung.core.policy.breaker import CallVerdict, CircuitState, Permit
from rung.core.policy.budget import RetryBudget
from rung.core.policy.shared_circuits import SharedCircuit, merge_circuits
from rung.core.policy.shared_retry_budget import SharedRetryBudget
from rung.core.policy.slices import SharedUse, exchange, unused
from rung.engine.loop.process_state import BreakerRegistry
from rung.engine.loop.shared_breakers import SharedBreakers
from rung.gateway.circuit_waits import _RELEASED_PER_SECOND as RELEASED_PER_SECOND
from rung.gateway.fleet import _RETRIES as RETRY_SETTINGS
from rung.gateway.gateway import BREAKER_SETTINGS

if TYPE_CHECKING:
    from rung.core.policy.breaker import Breaker

Cohorts: TypeAlias = defaultdict[int, float]  # calls by the number of their retry
KEY = "provider"
RETRIES = 3
SPREAD = 20  # parts of a cohort, each with its own jitter
WINDOW = 100  # calls that a breaker remembers: more need not be recorded
SDK_BACKOFF, SDK_RETRIES = Backoff(base=0.5, cap=8.0), 2  # of the providers' own SDKs


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Sizes and times of a simulation. `mode`: "sdk" has no gateway, "own" gateways share nothing, "shared" all limits."""

    mode: str
    cells: int = 50  # each has its own database
    gateways: int = 20  # of a cell
    agents: int = 1_000  # of a gateway
    think_seconds: float = 10.0  # between two calls of an agent
    calm_seconds: int = 10
    outage_seconds: int = 600
    after_seconds: int = 90
    capacity: float = 1.5  # of the provider, relative to the normal load
    patience_seconds: int = 285  # that a call waits in its gateway
    seed: int = 1

    @property
    def normal(self) -> float:
        """Return the calls per second without trouble."""
        return self.cells * self.gateways * self.agents / self.think_seconds

    @property
    def seconds(self) -> int:
        """Return the length of the simulation."""
        return self.calm_seconds + self.outage_seconds + self.after_seconds

    def is_down(self, now: int) -> bool:
        """Return whether the provider answers nothing."""
        return self.calm_seconds <= now < self.calm_seconds + self.outage_seconds


class Node:
    """The agents behind one gateway, or as many without one, and the calls that they have under way."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan, self.name = plan, name
        self.backoff, self.retries = (SDK_BACKOFF, SDK_RETRIES) if plan.mode == "sdk" else (Backoff(), RETRIES)
        self.registry = BreakerRegistry(BREAKER_SETTINGS)
        self.budget = SharedRetryBudget(**RETRY_SETTINGS) if plan.mode == "shared" else RetryBudget(**RETRY_SETTINGS)
        self.shared = SharedBreakers(self.registry, name, lambda _: bool(self.waiting))
        self.thinking = float(plan.agents)
        self.due: dict[int, Cohorts] = {}  # retries by second and number
        self.waiting: deque[list[float]] = deque()  # deadline and calls, oldest first
        self.sent: Cohorts = defaultdict(float)  # in this step, by retry number; -1: the probe
        self.permit: Permit | None = None
        self.errors = 0.0  # calls that ended with an error
        self.charged = self.credited = 0.0  # tokens of the retry budget

    @property
    def breaker(self) -> Breaker:
        return self.registry.get(KEY)

    def send(self, now: int, random: Random) -> float:
        """Decide which calls go to the provider in this step; return how many."""
        exact = self.thinking / self.plan.think_seconds
        new = min(self.thinking, int(exact) + (random.random() < exact % 1))
        self.thinking -= new
        if self.plan.mode != "sdk":
            self.budget.credit(min(new * self.budget.per_call, self.budget.capacity))
            self.credited += new * self.budget.per_call
        calls = self.due.pop(now, defaultdict(float))
        calls[0] += new
        self.sent, self.permit = defaultdict(float), None
        if self.plan.mode == "sdk":
            self.sent = calls
        else:
            self._through_circuit(now, calls)
        return sum(self.sent.values())

    def _through_circuit(self, now: int, calls: Cohorts) -> None:
        if self.breaker.circuit is CircuitState.CLOSED:
            calls[self.retries] += self._released(RELEASED_PER_SECOND)
            self.sent = calls
            return
        if any(calls.values()):
            self.waiting.append([now + self.plan.patience_seconds, sum(calls.values())])
        while self.waiting and self.waiting[0][0] <= now:
            self._fail(self.waiting.popleft()[1])
        may_probe = self.plan.mode != "shared" or self.shared.may_probe(KEY, float(now))
        if may_probe and self.waiting:
            permit = self.breaker.admit(float(now))
            if isinstance(permit, Permit):
                self.permit, self.sent[-1] = permit, self._released(1)

    def _released(self, most: float) -> float:
        """Take waiting calls, those that have waited longest first."""
        taken = 0.0
        while self.waiting and taken < most:
            part = min(self.waiting[0][1], most - taken)
            self.waiting[0][1] -= part
            taken += part
            if self.waiting[0][1] <= 0:
                self.waiting.popleft()
        return taken

    def receive(self, now: int, share: float) -> float:
        """Take the provider's answers, a share of which is good; return the number of good ones."""
        if self.permit is not None:
            is_good = share >= 1.0
            self.breaker.record(self.permit, float(now), float(now), CallVerdict.GOOD if is_good else CallVerdict.BAD)
            self._end(self.sent[-1]) if is_good else self.waiting.append(
                [now + self.plan.patience_seconds, self.sent[-1]]
            )
            return self.sent[-1] * is_good
        total = sum(self.sent.values())
        if self.plan.mode != "sdk":
            self._record(now, total * share, total * (1 - share))
        self._end(total * share)
        for retry, count in sorted(self.sent.items()):
            self._failed(now, retry, count * (1 - share))
        return total * share

    def _record(self, now: int, good: float, bad: float) -> None:
        """Record as many calls as the breaker remembers, good and bad ones mixed evenly."""
        total, share, credit = good + bad, bad / (good + bad) if good + bad else 0.0, 0.5
        for _ in range(min(WINDOW, round(total))):
            credit += share
            is_bad = credit >= 1
            credit -= is_bad
            verdict = CallVerdict.BAD if is_bad else CallVerdict.GOOD
            self.breaker.record(None, float(now), float(now), verdict)

    def _failed(self, now: int, retry: int, count: float) -> None:
        """Schedule the next retry of calls that failed, as far as the budget goes; the others wait, or end."""
        if count <= 0:
            return
        affordable = count if retry < self.retries else 0.0
        if self.plan.mode != "sdk":
            affordable = min(affordable, self._charged(now, affordable))
        for part in range(SPREAD if affordable else 0):
            wait = self.backoff.wait(retry + 1, (part + 0.5) / SPREAD)
            self.due.setdefault(now + 1 + int(wait), defaultdict(float))[retry + 1] += affordable / SPREAD
        rest = count - affordable
        if self.plan.mode == "sdk":
            self._fail(rest)
        elif rest > 0:
            self.breaker.open_if_failing(float(now), float(now), self.breaker.settings.pause)
            self.waiting.append([now + self.plan.patience_seconds, rest])

    def _charged(self, now: int, most: float) -> float:
        """Take tokens of the retry budget for this many retries; return for how many there were some."""
        taken = 0
        while taken < most and self.budget.affords(float(now)):
            self.budget.charge()
            self.charged += self.budget.price
            taken += 1
        return float(taken)

    def _fail(self, count: float) -> None:
        self.errors += count
        self._end(count)

    def _end(self, count: float) -> None:
        self.thinking += count


class Cell:
    """Gateways that share one database: their circuits and the retry budget that they lease slices of."""

    def __init__(self, plan: Plan, number: int) -> None:
        self.nodes = [Node(plan, f"{number}/{n}") for n in range(plan.gateways)]
        self.circuits: dict[str, SharedCircuit] = {}
        self.use: SharedUse | None = None
        self.most_out = 0.0

    def exchange(self, now: float) -> int:
        """Let every gateway exchange with the database; return the number of its operations."""
        for node in self.nodes:
            budget = node.budget
            assert isinstance(budget, SharedRetryBudget)
            self.circuits = merge_circuits(self.circuits, node.name, node.shared.collect(now), now)
            use = self.use or unused(budget.limit, now)
            self.use, lease = exchange(budget.limit, use, node.name, budget.request(now), now)
            budget.apply(lease)
            node.shared.apply(self.circuits, now, now)
            self.most_out = max(self.most_out, self.use.out)
        return len(self.nodes)

    @property
    def overspent(self) -> float:
        """Return the tokens that were taken beyond those that were there at first and that calls have brought."""
        credited = sum(node.credited for node in self.nodes)
        return sum(node.charged for node in self.nodes) - credited - float(RETRY_SETTINGS["initial"])


@dataclass(slots=True, kw_only=True)
class Result:
    """What happened, in calls unless it says otherwise."""

    plan: Plan
    to_dead: float = 0.0  # requests to the provider while it was down
    peak_to_dead: float = 0.0  # in one second, after the first ten
    peak_after: float = 0.0  # in one second after its return, relative to the normal load
    refused_after: float = 0.0  # requests that the provider refused after its return: too many at once
    recovered_after: int | None = None  # seconds until its load was normal again, and nobody waited
    errors: float = 0.0  # that agents saw
    exchanges_per_second: float = 0.0
    most_slices_out: float = 0.0  # of the retry budget of one cell, in tokens
    overspent: float = 0.0  # tokens of one cell taken beyond what there was; negative: so many were left
    history: list[tuple[float, float]] = field(default_factory=list)  # requests and good answers, by second


def simulate(plan: Plan) -> Result:
    """Run a simulation."""
    random, result = Random(plan.seed), Result(plan=plan)
    cells = [Cell(plan, number) for number in range(plan.cells)]
    if plan.mode == "sdk":  # without a gateway nothing tells agents apart
        everybody = plan.cells * plan.gateways * plan.agents
        cells = [Cell(replace(plan, cells=1, gateways=1, agents=everybody), 0)]
    nodes = [node for cell in cells for node in cell.nodes]
    back_at, operations = plan.calm_seconds + plan.outage_seconds, 0
    for now in range(plan.seconds):
        sent = sum(node.send(now, random) for node in nodes)
        share = 0.0 if plan.is_down(now) else min(1.0, plan.capacity * plan.normal / sent) if sent else 1.0
        good = sum(node.receive(now, share) for node in nodes)
        if plan.mode == "shared":
            operations += sum(cell.exchange(float(now)) for cell in cells)
        _count(result, now, sent, good)
        is_quiet = not any(node.waiting or node.due for node in nodes)
        if result.recovered_after is None and now >= back_at and is_quiet and good >= 0.9 * plan.normal:
            result.recovered_after = now - back_at
    result.errors = sum(node.errors for node in nodes)
    result.exchanges_per_second = operations / plan.seconds / plan.cells
    result.most_slices_out = max(cell.most_out for cell in cells)
    result.overspent = max(cell.overspent for cell in cells)
    return result


def _count(result: Result, now: int, sent: float, good: float) -> None:
    plan = result.plan
    result.history.append((sent, good))
    if plan.is_down(now):
        result.to_dead += sent
        if now >= plan.calm_seconds + 10:
            result.peak_to_dead = max(result.peak_to_dead, sent)
    elif now >= plan.calm_seconds:
        result.peak_after = max(result.peak_after, sent / plan.normal)
        result.refused_after += sent - good
