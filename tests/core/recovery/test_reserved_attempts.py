"""Retries leave an attempt for each listed fallback that the ladder can still reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.domain import events as ev
from rung.testing import HttpError, Script

if TYPE_CHECKING:
    from tests.conftest import World

BUSY = HttpError(503, "busy")
MODELS = ["small", "large"]


def models_asked(world: World, ladder: str, **policy: Any) -> list[str]:
    """Return the models of all attempts at a service that is down."""
    script = Script(*[BUSY] * 40)
    given = rung.policy(ladder, patience=0, **policy)
    world.recover(script, rung.Request(prompt="x", model="small"), policy=given)
    return [request.model for request in script.requests]


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        (1, ["small"]),
        (2, ["small", "large"]),
        (4, ["small", "small", "small", "large"]),
        (5, ["small", "small", "small", "small", "large"]),
        (6, ["small", "small", "small", "small", "large", "large"]),
    ],
)
@pytest.mark.parametrize("ladder", ["call", "task"])
def test_a_fallback_is_reached(world: World, ladder: str, attempts: int, expected: list[str]) -> None:
    """The last attempt is the fallback's, where the cap would end the incident before the retries are used up."""
    assert models_asked(world, ladder, models=MODELS, attempts=attempts) == expected


def test_without_a_fallback_all_attempts_are_retries(world: World) -> None:
    """A policy that lists no other model keeps no attempt back."""
    assert models_asked(world, "call", attempts=3) == ["small"] * 3
    assert models_asked(world, "call", models=["small"], attempts=3) == ["small"] * 3


def test_a_ladder_without_a_handover_keeps_nothing_back(world: World) -> None:
    """Models that the ladder cannot reach reserve nothing."""
    assert models_asked(world, "pipeline", models=MODELS, attempts=2) == ["small"] * 2


def test_each_model_of_a_longer_list_is_reached(world: World) -> None:
    """A ladder with several handovers keeps one attempt for each."""
    asked = models_asked(world, "model", models=["small", "large", "huge"], attempts=5, auto_escalate=True)
    assert list(dict.fromkeys(asked)) == ["small", "large", "huge"]
    assert len(asked) == 5


def test_a_fallback_that_the_budget_forbids_reserves_nothing(world: World) -> None:
    """A model that costs more than the remaining dollars is no fallback: its attempt is a retry."""
    models = ["small", {"name": "large", "cost": 5.0}]
    assert models_asked(world, "call", models=models, attempts=3, dollars=1.0) == ["small"] * 3


def test_the_reason_is_recorded(world: World) -> None:
    """The decision says why it does not retry."""
    script = Script(BUSY, "done")
    policy = rung.policy("call", models=MODELS, attempts=2, patience=0)
    outcome = world.recover(script, rung.Request(prompt="x", model="small"), policy=policy)
    (decided,) = [event.decision for event in outcome.events if isinstance(event, ev.Decided)]
    assert isinstance(decided, ev.HandOver)
    assert "kept for" in decided.skipped[0][1]
