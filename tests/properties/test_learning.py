"""What holds for any policy that learns, whatever its journal has counted."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.domain import events as ev
from rung.core.domain.failures import Kind
from rung.core.domain.incident import Incident
from rung.core.policy.parser import policy as make
from rung.core.policy.worst_case import worst_case
from rung.core.recovery.backtest import replay
from rung.core.recovery.learned_skips import RungCount
from tests.core.recovery.test_backtest import RECORDED, Honest, Remembering
from tests.properties.test_recovery import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    import rung
    from rung.core.policy.policy import Policy

pytestmark = pytest.mark.uncovered


MODELS = ["small", "medium", "large"]
BUILT_IN = st.sampled_from([make(name, models=MODELS, report="") for name in ("task", "model", "call", "pipeline")])
ANY = {**RECORDED, "policy": BUILT_IN | RECORDED["policy"]}


class Counting(Remembering):
    """A journal that remembers no rung, and has counts."""

    def __init__(self, counts: Sequence[RungCount]) -> None:
        super().__init__("")
        self.counts = counts

    def suggest_rung(self, *_: object) -> Any:
        """Return no rung."""

    def rung_counts(self, *_: object) -> Sequence[RungCount]:
        """Return the counts, whatever the project and the ladder."""
        return self.counts


def any_counts(policy: Policy, seed: int) -> list[RungCount]:
    """Counts of every kind and rung with very different rates, mostly higher on higher rungs."""
    random = Random(seed)
    return [
        RungCount(
            "small", kind.value, each.name, number, 200, random.choice([0, min(180, 40 * index), 40 * index, 198])
        )
        for kind in Kind
        for index, each in enumerate(policy.ladder.rungs[:5])
        for number in (1, 2)
    ]


def recorded(policy: Policy, script: list[Any], answers: list[str], mends: bool, counts: Sequence[RungCount]) -> Any:
    world = Honest(script, answers, mends=mends)
    world.journal = Counting(counts)
    return world.record(policy)


def decisions(outcome: rung.Outcome[Any]) -> list[ev.Decision]:
    return [event.decision for event in outcome.events if isinstance(event, ev.Decided)]


@many(300)
@given(**ANY, seed=st.integers(0, 10_000), explore=st.sampled_from([0.0, 0.5]))
def test_learning_only_leaves_out(
    policy: Policy, script: list[Any], answers: list[str], mends: bool, seed: int, explore: float
) -> None:
    """Never more attempts than the ladder allows at worst; every skip is told; a replay decides the same."""
    policy = policy.replace(learn=type(policy.learn)(enabled=True, explore=explore))
    outcome = recorded(policy, script, answers, mends, any_counts(policy, seed))
    incident = Incident.of(outcome.events)
    most = worst_case(policy).attempts
    assert most is None or incident.attempts - incident.probes <= most
    found = replay(outcome.events, policy)
    assert found.is_same, found.describe()
    reasons = {skip.reason for event in outcome.events if isinstance(event, ev.Learned) for skip in event.skips}
    told = {
        reason for decision in decisions(outcome) for _, reason in decision.skipped if reason.startswith("learned: ")
    }
    assert told <= reasons
    rungs = policy.ladder.rungs
    for decision in decisions(outcome):
        for index, reason in decision.skipped:
            assert not reason.startswith("learned: ") or index < decision.rung < len(rungs)


@many(200)
@given(**ANY)
def test_an_empty_journal_changes_nothing(policy: Policy, script: list[Any], answers: list[str], mends: bool) -> None:
    """With nothing counted, a policy that learns decides exactly as one that does not."""
    learning = policy.replace(learn=True)
    empty, plain = (recorded(each, script, answers, mends, ()) for each in (learning, policy))
    assert decisions(empty) == decisions(plain)
    assert not any(isinstance(event, ev.Learned) for event in empty.events)
