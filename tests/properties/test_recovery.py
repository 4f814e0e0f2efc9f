"""What holds for any ladder, any policy and any sequence of failures."""

from __future__ import annotations

import asyncio
import json
import math
import os
from importlib import resources
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rung
from rung.core.domain import events as ev
from rung.core.domain.event_codec import from_json, to_json
from rung.core.domain.failures import Kind
from rung.core.domain.incident import Incident
from rung.core.domain.ladder import ENDING_ACTIONS, HANDOVER_ACTIONS, WAITING_ACTIONS, Action, Ladder, Rung, RungScope
from rung.core.domain.level_record import level_records
from rung.core.domain.outcome import report_text
from rung.core.policy.parser import parse_policy
from rung.core.policy.policy import Confirm, Policy
from rung.core.policy.worst_case import worst_case
from rung.core.recovery.decide import decide
from rung.core.recovery.target_compaction import stays_with_target
from rung.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.uncovered
KINDS = list(Kind)
# Time limits of attempts are real, although the clock is not: all times are whole ticks, so that an attempt that is
# made at all has at least a tick of real time for its microseconds.
TICK_SECONDS = 8.0


def ticks(most: int, least: int = 0) -> st.SearchStrategy[float]:
    """Whole numbers of ticks, in seconds."""
    return st.integers(least, most).map(lambda number: number * TICK_SECONDS)


amounts = st.none() | ticks(60)


def schema(name: str) -> Any:
    return json.loads(resources.files("rung").joinpath(f"schemas/{name}.json").read_text())


OUTCOME, PARTIAL, LEVEL, PIPELINE, EVENT = (
    jsonschema.Draft202012Validator(schema(name))
    for name in ("outcome", "partial", "level-record", "pipeline-failure", "event")
)


@st.composite
def rungs(draw: st.DrawFn, action: Action, name: str) -> Rung:
    repeats = action is Action.RETRY and draw(st.booleans())
    return Rung(
        action=action,
        name=name,
        tries=draw(st.integers(0, 4)),
        seconds=draw(amounts),
        scope=RungScope.ACTION if repeats else draw(st.sampled_from([RungScope.INCIDENT, RungScope.SESSION])),
        cost=draw(st.sampled_from([0.0, 0.1, 1.0])),
        applies_to=draw(st.none() | st.frozensets(st.sampled_from(KINDS), max_size=30)),
        max_missing_sections=draw(st.none() | st.integers(0, 3)),
        rollback=draw(st.booleans()),
    )


@st.composite
def ladders(draw: st.DrawFn) -> Ladder:
    middle = draw(
        st.lists(st.sampled_from([a for a in Action if a not in (*ENDING_ACTIONS, *WAITING_ACTIONS)]), max_size=6)
    )
    actions = [*middle, draw(st.sampled_from(sorted(ENDING_ACTIONS)))]
    steps = tuple(draw(rungs(action, f"{n}-{action}")) for n, action in enumerate(actions))
    names = [step.name for step in steps]
    return Ladder(
        name="random",
        rungs=steps,
        entry=draw(st.dictionaries(st.sampled_from(KINDS), st.sampled_from(names), max_size=20)),
        default_entry=draw(st.sampled_from(names)),
        loops=tuple(draw(st.dictionaries(st.integers(1, 9), st.sampled_from(names), max_size=3)).items()),
        base_level=draw(st.integers(0, 1)),
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    names = draw(st.lists(st.sampled_from(["tiny", "small", "large", "huge"]), unique=True, max_size=4))
    base = rung.policy(draw(ladders() | st.sampled_from(["task", "call", "pipeline", "model", "crew"])))
    return base.replace(
        models=tuple(rung.policies.Model(name=n, cost=draw(st.sampled_from([0.0, 0.2, 2.0]))) for n in names),
        agents=tuple(draw(st.lists(st.sampled_from(["a", "b"]), unique=True))),
        budget=rung.policies.Budget(
            attempts=draw(st.none() | st.integers(1, 30)),
            seconds=draw(amounts),
            dollars=draw(st.none() | st.floats(0, 5, allow_nan=False)),
        ),
        backoff=rung.policies.Backoff(
            base=draw(st.sampled_from([0.0, TICK_SECONDS, 7 * TICK_SECONDS])),
            cap=60 * TICK_SECONDS,
            jitter=draw(st.booleans()),
        ),
        retry_after_cap=draw(st.sampled_from([0.0, 60.0, 1e6])),
        patience=draw(st.sampled_from([0.0, 200 * TICK_SECONDS])),
        park=draw(st.sampled_from([0.0, 10 * TICK_SECONDS, 1e6])),
        attempt_seconds=draw(st.none() | ticks(12, 1)),
        confirm=draw(st.sampled_from(Confirm)),
        auto_escalate=draw(st.booleans()),
        escalate_after=draw(st.integers(0, 3)),
        unattended=draw(st.booleans()),
        report="",
    )


troubles = st.fixed_dictionaries(
    {
        "finding": st.sampled_from(KINDS),
        "retry_after": st.none() | ticks(250),
        "output_started": st.booleans(),
        "repeats": st.integers(0, 12),
        "missing": st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=4).map(tuple),
        "output": st.sampled_from(["", "so far"]),
    }
)
steps = st.tuples(troubles, ticks(40), st.sampled_from([0.0, 0.01, 0.7]))


class World:
    """Plays a sequence of failures; when it has run out, either succeeds or goes on failing the same way."""

    def __init__(self, script: list[Any], answers: list[str], *, mends: bool) -> None:
        self.clock = FakeClock()
        self.script = script
        self.answers = answers
        self.mends = mends
        self.starts: list[float] = []
        self.chance = 0

    def attempt(self, request: rung.Request) -> str:
        self.starts.append(self.clock.now())
        number = len(self.starts) - 1
        if number >= len(self.script) and self.mends:
            return "done"
        trouble, seconds, dollars = self.script[min(number, len(self.script) - 1)]
        self.clock.advance(seconds)
        rung.report_cost(dollars)
        raise rung.AttemptError("trouble", **trouble)

    def ask(self, question: ev.Ask, incident: Incident) -> str | None:
        self.chance += 1
        if not self.answers:
            return None
        wanted = self.answers[self.chance % len(self.answers)]
        return next((o.id for o in question.options if o.id.startswith(wanted)), None)

    def jitter(self) -> float:
        self.chance += 1
        return (self.chance % 2) / 2

    def play(self, policy: Policy, mode: str) -> rung.Outcome[str]:
        ports: dict[str, Any] = {
            "policy": policy,
            "clock": self.clock,
            "jitter": self.jitter,
            "breakers": rung.BreakerRegistry(),
            "retry_budget": rung.RetryBudget(),
            "ask": self.ask,
        }
        request = rung.Request(prompt="task", model="small", messages=({"role": "tool", "content": "x" * 99},) * 6)
        if mode == "sync":
            return rung.recover_sync(self.attempt, request, **ports)

        async def attempt(request: rung.Request) -> str:
            return self.attempt(request)

        return asyncio.run(rung.recover(attempt, request, **ports))


cases = {
    "policy": policies(),
    "script": st.lists(steps, min_size=1, max_size=8),
    "answers": st.lists(st.sampled_from(["approve", "decline", "retry", "replan", "stop", "model"]), max_size=4),
    "mends": st.booleans(),
    "mode": st.sampled_from(["sync", "async"]),
}


def many(number: int) -> settings:
    """So many examples in the gate; a fifth of them in the quick tier."""
    number = number // 5 if os.environ.get("RUNG_QUICK") else number
    return settings(max_examples=number)


@many(400)
@given(**cases)
def test_any_recovery(policy: Policy, script: list[Any], answers: list[str], mends: bool, mode: str) -> None:
    """It always ends, within its caps, without re-entering a spent rung or repeating a request above retry."""
    world = World(script, answers, mends=mends)
    opened = world.clock.now()
    outcome = world.play(policy, mode)
    ladder, budget = policy.ladder, policy.budget

    # never exceeds a cap
    assert outcome.attempts == len(world.starts)
    counted = outcome.attempts - Incident.of(outcome.events).probes  # attempts after waits are not limited in number
    if budget.attempts is not None:
        assert counted <= budget.attempts
    if budget.seconds is not None:
        parked = _parked(outcome)
        assert all(
            start < opened + budget.seconds + sum(end - begin for begin, end in parked if end <= start)
            for start in world.starts[1:]
        )
    most = worst_case(policy).attempts
    assert most is None or counted <= most
    spent = 0.0
    for number, event in enumerate(outcome.events):
        if isinstance(event, ev.AttemptFailed | ev.AttemptSucceeded):
            if budget.dollars is not None and number > 1:
                assert spent < budget.dollars
            spent += event.dollars
    assert math.isclose(spent, outcome.dollars, abs_tol=1e-9)

    # never sleeps past the deadline
    for event in outcome.events:
        if (
            budget.seconds is not None
            and isinstance(event, ev.Decided)
            and isinstance(event.decision, ev.Repeat | ev.Change)
            and not ev.is_park(event.decision)
        ):
            before = sum(end - begin for begin, end in _parked(outcome) if end <= event.at)
            assert event.at + event.decision.wait < opened + budget.seconds + before + 1e-6

    _check_rungs(outcome, ladder, policy)

    _check_requests(outcome)

    # the contracts hold, and the events fold and travel
    incident = Incident.of(outcome.events)
    assert incident.status == outcome.status
    travelled = [from_json(json.loads(json.dumps(to_json(event)))) for event in outcome.events]
    assert Incident.of(travelled) == incident
    for event in outcome.events:
        EVENT.validate(json.loads(json.dumps(to_json(event))))
    OUTCOME.validate(outcome.to_dict())
    if outcome.status == "partial":
        PARTIAL.validate(outcome.to_dict())
    if not outcome.ok:
        PIPELINE.validate(outcome.pipeline_failure())
        assert outcome.recommendation
        assert report_text(outcome, ladder)
    for record in level_records(outcome.events, ladder):
        LEVEL.validate(record)


def _parked(outcome: rung.Outcome[str]) -> list[tuple[float, float]]:
    """Return when the run was parked, and taken up again."""
    begins = [e.at for e in outcome.events if isinstance(e, ev.Decided) and ev.is_park(e.decision)]
    ends = [e.at for e in outcome.events if isinstance(e, ev.Unparked)]
    assert len(begins) == len(ends)
    return list(zip(begins, ends, strict=True))


def _check_requests(outcome: rung.Outcome[str]) -> None:
    """No request above retry is unchanged, except that a handover may be repeated after a wait for the service."""
    folded = Incident()
    for event in outcome.events:
        if isinstance(event, ev.Changed):
            assert event.digest not in folded.digests
        folded.fold(event)


def _without_changes_for_targets(events: Iterable[ev.Event]) -> list[ev.Event]:
    """Leave out the changes of form for a model handed over to, which come below the handover's rung."""
    kept: list[ev.Event] = []
    before: ev.Decision | None = None
    folded = Incident()
    for event in events:
        decision = event.decision if isinstance(event, ev.Decided) else None
        if decision is None or not folded.handed_over or not stays_with_target(before, decision, folded):
            kept.append(event)
        folded.fold(event)
        if decision is not None and not isinstance(decision, ev.Repeat):
            before = decision
    return kept


def _check_rungs(outcome: rung.Outcome[str], ladder: Ladder, policy: Policy) -> None:
    used: dict[int, int] = {}
    again: dict[int, int] = {}
    highest = -1
    by_person = False
    for event in _without_changes_for_targets(outcome.events):
        if isinstance(event, ev.Answered):
            by_person = True
        if not isinstance(event, ev.Decided):
            continue
        decision = event.decision
        step = ladder.rungs[decision.rung]
        if isinstance(decision, ev.Repeat):
            if decision.until is not None and not decision.parked:  # after a wait, handovers are possible again
                used = {n: tries for n, tries in used.items() if ladder.rungs[n].action not in HANDOVER_ACTIONS}
            if not by_person:
                again[decision.rung] = again.get(decision.rung, 0) + 1
                assert step.is_retry or (step.action in WAITING_ACTIONS and decision.until is not None)
                assert again[decision.rung] <= step.tries or step.action is Action.WAIT
                assert decision.parked == (step.action is Action.PARK)
                if decision.until is not None and not decision.parked:
                    assert event.at + decision.wait <= decision.until
                if decision.until is not None and decision.parked:
                    assert event.at <= decision.until <= event.at + policy.park  # a limit may reopen at once
                    assert decision.until < event.at + decision.wait
        else:
            assert decision.rung >= highest
            if decision.rung > highest or isinstance(decision, ev.HandOver):  # each model has its own retries
                again.clear()
            is_offer = isinstance(decision, ev.Ask) and step.action in HANDOVER_ACTIONS
            highest = highest if is_offer else max(highest, decision.rung)  # a person may decline the handover
            counts = isinstance(decision, ev.Change | ev.HandOver) and not by_person
            if counts:
                used[decision.rung] = used.get(decision.rung, 0) + 1
                assert used[decision.rung] <= step.tries
            if isinstance(decision, ev.HandOver) and not by_person:
                assert step.action in HANDOVER_ACTIONS
                assert policy.model(decision.model) or decision.agent in policy.agents
        by_person = False


@many(150)
@given(**cases)
def test_same_inputs_same_decision(
    policy: Policy, script: list[Any], answers: list[str], mends: bool, mode: str
) -> None:
    """Played again it is decided the same; deciding changes nothing; the two modes agree."""
    first = World(script, answers, mends=mends).play(policy, "sync")
    second = World(script, answers, mends=mends).play(policy, "async")
    taken = [[e.decision for e in outcome.events if isinstance(e, ev.Decided)] for outcome in (first, second)]
    assert taken[0] == taken[1]
    incident = Incident()
    for event in first.events:
        if isinstance(event, ev.AttemptFailed):
            incident.fold(event)
            before = dict(incident.__dict__)
            one = decide(incident, event.failure, policy, event.at, 0.5)
            assert one == decide(incident, event.failure, policy, event.at, 0.5)
            assert incident.__dict__ == before
        else:
            incident.fold(event)


@many(100)
@given(policy=policies())
def test_a_policy_survives_its_table(policy: Policy) -> None:
    """A policy given as keyword arguments and as values is the same policy."""
    assert parse_policy({}, base=policy) == policy
