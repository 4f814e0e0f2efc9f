"""Policies: presets, templates, the model ladder, and the worst case."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain.errors import ConfigError
from rung.core.domain.failures import NEVER_RETRYABLE, TRANSIENT, Evidence, Failure, Kind
from rung.core.domain.ladder import MAX_PARKS, Action, Ladder, Rung, RungScope
from rung.core.policy.backoff import Backoff
from rung.core.policy.budget import Budget
from rung.core.policy.parser import parse_policy
from rung.core.policy.policy import Confirm, Model, Policy, Sticky
from rung.core.policy.presets import LADDERS
from rung.core.policy.templates import TEMPLATES, preset
from rung.core.policy.worst_case import WorstCase, worst_case

MODELS = (Model(name="small", cost=0.01), Model(name="middle", cost=0.1), Model(name="large", cost=1.0))
COUNTS: dict[str, tuple[int, int | None]] = {
    "task": (20, 3600),
    "call": (12, 600),
    "pipeline": (20, 7200),
    "model": (16, 3600),
    "crew": (30, None),
}
# As the reference has them, for no models and no agents: attempts, seconds.
AT_MOST: dict[str, dict[str, tuple[int, int | None]]] = {
    "task": {"default": (18, 3600), "conservative": (6, 3600), "aggressive": (30, 7200), "unattended": (18, 86400)},
    "call": {"default": (12, 600), "conservative": (6, 600), "aggressive": (24, 1200), "unattended": (12, 86400)},
    "pipeline": {
        "default": (17, 7200),
        "conservative": (6, 7200),
        "aggressive": (37, 14400),
        "unattended": (17, 86400),
    },
    "model": {"default": (12, 3600), "conservative": (6, 3600), "aggressive": (21, 7200), "unattended": (12, 86400)},
    "crew": {"default": (12, None), "conservative": (6, None), "aggressive": (12, None), "unattended": (12, 86400)},
}


def retries(policy: Policy) -> set[int]:
    return {rung.tries for rung in policy.ladder.rungs if rung.action is Action.RETRY}


@pytest.mark.parametrize("name", LADDERS)
def test_presets(name: str) -> None:
    """Each ladder comes with caps of its own, one-second backoff, five minutes of patience, and nobody to ask for leave."""
    policy = preset(name)
    assert (policy.budget.attempts, policy.budget.seconds, policy.budget.dollars) == (*COUNTS[name], None)
    assert policy.replace(park=0, patience=0).ladder == LADDERS[name]
    assert policy.park == (21_600 if name in ("task", "pipeline", "model") else 0)
    assert policy.patience == (0 if name == "crew" else 300)
    assert policy.backoff == Backoff(base=1, multiplier=2, cap=30, jitter=True)
    assert (policy.name, policy.confirm, policy.sticky) == ("default", Confirm.NEVER, Sticky.CALL)
    assert policy.retry == TRANSIENT | {Kind.MALFORMED_OUTPUT, Kind.TOOL_ERROR}
    assert policy.retry_after_cap == 60
    assert not policy.unattended


def test_a_preset_of_an_own_ladder() -> None:
    """A ladder of one's own gets the general caps, unless it bears a preset's name."""
    own = replace(LADDERS["task"], name="mine")
    assert preset(own).budget == Budget()
    assert preset(own).ladder == own.with_waiting(park=0, patience=300)


@pytest.mark.parametrize("name", LADDERS)
def test_conservative(name: str) -> None:
    """Conservative: one retry, at most six attempts, longer waits, a dearer model only with a person's leave."""
    policy = preset(name, "conservative")
    assert policy.patience == preset(name).patience
    assert retries(policy) <= {1}
    assert policy.budget == replace(preset(name).budget, attempts=6)
    assert policy.backoff == Backoff(base=2, cap=60)
    assert (policy.confirm, policy.escalate_after, policy.name) == (Confirm.MORE_EXPENSIVE, 1, "conservative")


@pytest.mark.parametrize("name", LADDERS)
def test_aggressive(name: str) -> None:
    """Aggressive: six retries, twice the attempts, time and patience, shorter waits, and longer hints are waited for."""
    policy, default = preset(name, "aggressive"), preset(name)
    assert retries(policy) <= {6}
    assert policy.budget.attempts == 2 * (default.budget.attempts or 0)
    assert policy.budget.seconds == (None if name == "crew" else 2 * (default.budget.seconds or 0))
    assert policy.patience == 2 * default.patience
    assert policy.backoff == Backoff(base=0.5, cap=20)
    assert (policy.retry_after_cap, policy.name) == (180, "aggressive")


@pytest.mark.parametrize("name", LADDERS)
def test_unattended(name: str) -> None:
    """Unattended: nobody is asked, there is a day's time, and limits are parked for up to eight days."""
    policy = preset(name, "unattended")
    assert policy.unattended
    assert policy.budget.seconds == 86_400
    assert (policy.retry_after_cap, policy.park) == (300, 8 * 86_400)
    assert policy.backoff == Backoff(cap=300)
    assert all(rung.seconds is None for rung in policy.ladder.rungs if rung.is_retry)
    assert policy.patience == (0 if name == "crew" else 21_600)
    assert [r.seconds for r in policy.replace(park=0, patience=0).ladder.rungs if not r.is_retry] == [
        r.seconds for r in LADDERS[name].rungs if not r.is_retry
    ]


@pytest.mark.parametrize("name", LADDERS)
def test_helper(name: str) -> None:
    """Helper: a conductor's own helpers get three fixes where its workers get four; all else is as it was."""
    policy, default = preset(name, "helper"), preset(name)
    assert [rung.tries for rung in policy.ladder.rungs if rung.action is Action.FIX] == [3] * (name == "crew")
    assert policy.with_tries(Action.FIX, 4) == default.replace(name="helper")


@pytest.mark.parametrize("name", LADDERS)
def test_off(name: str) -> None:
    """Off: every failure goes straight to the ladder's ending, which has no try, and nothing is repeated."""
    policy = preset(name, "off")
    (only,) = policy.ladder.rungs
    assert (only.name, only.tries) == (LADDERS[name].rungs[-1].name, 0)
    assert (policy.retry, policy.patience) == (frozenset(), 0)
    for kind in Kind:
        failure = Failure(kind=kind, retryable=True, rule="x", evidence=Evidence(repeats=99))
        assert policy.ladder.entry_index(failure) == 0
    assert worst_case(policy).attempts == 1


@pytest.mark.parametrize("settings", [{"retries": 0}, {"retry": []}])
def test_without_retries_the_worst_case_is_one_attempt(settings: dict[str, object]) -> None:
    """A policy that disables retrying makes one attempt, on no other model, whatever its ladder has above."""
    worst = worst_case(parse_policy({"ladder": "task", "models": ["a", "b"], "attempt_seconds": 9, **settings}))
    assert worst == WorstCase(attempts=1, seconds=9, dollars=0)


def test_templates_without_a_cap_on_attempts() -> None:
    """Where there is no cap on attempts, conservative sets one and aggressive leaves it so."""
    free = preset().replace(budget=Budget(attempts=None))
    assert TEMPLATES["conservative"](free).budget.attempts == 6
    assert TEMPLATES["aggressive"](free).budget.attempts is None
    few = preset().replace(budget=Budget(attempts=3))
    assert TEMPLATES["conservative"](few).budget.attempts == 3


def test_unknown_presets() -> None:
    """A ladder or template that does not ship is an error that names those that do."""
    with pytest.raises(ConfigError) as raised:
        preset("stairs")
    assert (raised.value.key, raised.value.allowed) == ("ladder", "one of task, call, pipeline, model, crew")
    with pytest.raises(ConfigError) as raised:
        preset("task", "brave")
    assert raised.value.key == "template"
    assert "conservative" in raised.value.allowed


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retry_after_cap", -1),
        ("retry_after_cap", math.nan),
        ("retry_after_cap", math.inf),
        ("retry_after_cap", 10**400),
        ("attempt_seconds", 0),
        ("attempt_seconds", -1),
        ("attempt_seconds", math.nan),
        ("attempt_seconds", math.inf),
        ("escalate_after", -1),
    ],
)
def test_what_a_policy_cannot_be(key: str, value: Any) -> None:
    """A setting that cannot be used is refused at once, with its key and its value."""
    with pytest.raises(ConfigError) as raised:
        preset().replace(**{key: value})
    assert raised.value.key == key
    assert raised.value.value is value


@pytest.mark.parametrize("kind", sorted(NEVER_RETRYABLE))
def test_what_is_never_repeated(kind: Kind) -> None:
    """A kind that a repeat never helps cannot be listed as one to repeat."""
    with pytest.raises(ConfigError) as raised:
        preset().replace(retry=frozenset({Kind.TIMEOUT, kind}))
    assert (raised.value.key, raised.value.value) == ("retry", kind)


def test_each_model_once() -> None:
    """A model ladder cannot hold the same model twice."""
    with pytest.raises(ConfigError) as raised:
        preset().replace(models=(*MODELS, Model(name="small")))
    assert (raised.value.key, raised.value.value) == ("models", "small")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", ""),
        ("cost", -1),
        ("cost", math.nan),
        ("cost", math.inf),
        ("cost", 10**400),
        ("max_tokens", 0),
        ("max_tokens", 1.5),
        ("max_tokens", True),
    ],
)
def test_what_a_model_cannot_be(key: str, value: Any) -> None:
    """A model without a name, a price or room for an answer is refused at once."""
    with pytest.raises(ConfigError) as raised:
        Model(**{"name": "x", key: value})
    assert raised.value.key.endswith(key)
    assert raised.value.value is value


def test_the_model_ladder() -> None:
    """Models are found by name and stand in the order given; one that is not listed stands below all."""
    policy = preset().replace(models=MODELS)
    assert policy.model("middle") is MODELS[1]
    assert policy.model("other") is None
    assert [policy.rank(name) for name in ("small", "large", "other")] == [0, 2, -1]


@given(st.lists(st.floats(0, 10), min_size=2, max_size=4))
def test_dearer(costs: list[float]) -> None:
    """A model is dearer by its price where both are known, else by its place; none is dearer than itself."""
    models = tuple(Model(name=str(n), cost=cost) for n, cost in enumerate(costs))
    policy = preset().replace(models=models)
    for n, one in enumerate(costs):
        for m, other in enumerate(costs):
            expected = one > other if one and other else n > m
            assert policy.costs_more(str(n), str(m)) is expected
        assert policy.costs_more(str(n), "unlisted")
        assert not policy.costs_more("unlisted", str(n))


def test_tries_of_an_action() -> None:
    """The tries of all rungs of one action can be set, and no other rung changes."""
    policy = preset("task").replace(patience=0).with_tries(Action.NUDGE, 7)
    assert [rung.tries for rung in policy.ladder.rungs] == [3, 7, 1, 9, MAX_PARKS, 1]
    assert preset("crew").with_tries(Action.RETRY, 7).ladder == LADDERS["crew"]


@pytest.mark.parametrize("name", AT_MOST)
def test_the_worst_case(name: str) -> None:
    """Without other models a ladder takes at most as many attempts and seconds as the reference says."""
    found = {template: worst_case(preset(name, template)) for template in AT_MOST[name]}
    assert {template: (case.attempts, case.seconds) for template, case in found.items()} == AT_MOST[name]
    assert {case.dollars for case in found.values()} == {0}


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"models": ["small", "large"]}, 0.0),
        ({"models": ["small", "large"], "dollars": 2.0}, 2.0),
        ({"models": [{"name": "small", "cost": 0.01}, {"name": "large", "cost": 0.2}], "dollars": 0.5}, 0.5),
    ],
    ids=["no costs", "a limit alone", "both"],
)
def test_the_most_dollars_of_an_incident(settings: dict[str, object], most: float) -> None:
    """A limit bounds the cost, also where the policy names no costs."""
    assert worst_case(parse_policy({"ladder": "task", **settings})).dollars == pytest.approx(most)


def test_the_worst_case_without_caps() -> None:
    """Without caps the rungs alone bound an incident, and in time only if each of them and the first attempt has a limit."""
    free = Budget(attempts=None, seconds=None)
    policy = preset("task").replace(budget=free, models=MODELS)
    worst = worst_case(policy)
    assert (worst.attempts, worst.seconds) == (30, None)
    assert worst.dollars == pytest.approx(1.11 * 4)
    limited = policy.replace(attempt_seconds=10)
    waits = 61 + 62 + 64
    assert worst_case(limited.replace(patience=0)).seconds == 10 * 4 + waits + 300 + 900 + 1200 + 60
    assert worst_case(limited).seconds == 10 * 5 + waits + 300 + 900 + 1200 + 60 + 300
    assert worst_case(limited.replace(budget=replace(free, seconds=100))).seconds == 100
    assert worst_case(preset("call").replace(budget=free, attempt_seconds=10)).seconds is None


def test_the_worst_case_in_dollars() -> None:
    """Each try of a priced rung is counted with the repeats that may follow it, up to the cap."""
    ladder = Ladder(
        name="priced",
        rungs=(
            Rung(action=Action.RETRY, tries=2, scope=RungScope.ACTION),
            Rung(action=Action.REPLAN, tries=3, cost=0.5),
            Rung(action=Action.NUDGE, tries=0, cost=9.0),
            Rung(action=Action.SURFACE, tries=0),
        ),
        entry={},
        default_entry="retry",
    )
    policy = preset(ladder)
    assert worst_case(policy) == WorstCase(attempts=1 + 2 + 3 + 2, seconds=3600, dollars=0.5 * (3 + 2))
    assert worst_case(policy.replace(budget=Budget(dollars=1))).dollars == 1


def test_hand_overs_are_bounded_by_who_is_there() -> None:
    """A ladder of models can be climbed only as far as there are models."""
    policy = preset("model").replace(budget=Budget(attempts=None), models=MODELS)
    assert worst_case(policy).attempts == 1 + 3 + (1 + 3) + 3 * (1 + 3) + (1 + 3)
    assert worst_case(policy.replace(agents=("a", "b"))).attempts == 1 + 3 + (1 + 3) + 5 * (1 + 3) + (1 + 3)
    assert worst_case(preset("crew").replace(models=MODELS)).dollars == 0
    assert worst_case(policy).dollars == pytest.approx(1.11 * 4)
