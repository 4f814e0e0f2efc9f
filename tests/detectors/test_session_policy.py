"""Policy of a session that is influenced only by messages."""

from __future__ import annotations

import pytest

from rung.core.domain import events as ev
from rung.core.domain.failures import Evidence, Kind
from rung.core.domain.ladder import Action
from rung.detectors.loop_settings import LoopSettings
from rung.detectors.session_policy import MAX_DENIALS, session_policy
from rung.engine.external_loop import ExternalRecovery


def loop(repeats: int) -> Evidence:
    return Evidence(finding=Kind.LOOP_DETECTED, repeats=repeats)


def rung_of(decision: ev.Decision) -> str:
    return session_policy().ladder.rungs[decision.rung].name


@pytest.mark.parametrize(("repeats", "rung"), [(3, "replan"), (5, "explore"), (7, "explore"), (8, "force-done")])
def test_a_loop_enters_by_its_repeats(repeats: int, rung: str) -> None:
    """Three repeats ask for a new plan, five for another method, eight for an end."""
    assert rung_of(ExternalRecovery(session_policy()).failed(loop(repeats))) == rung


def test_the_settings_move_the_entries() -> None:
    """The thresholds are those of the loop settings."""
    policy = session_policy(LoopSettings(replan=2, explore=4, force_done=6))
    assert rung_of(ExternalRecovery(policy).failed(loop(4))) == "explore"


@pytest.mark.parametrize("trouble", ["No such file", Evidence(text="429", status=429, retry_after=86_400.0)])
def test_a_failure_is_a_nudge_however_long_a_server_wants_to_wait(trouble: object) -> None:
    """An ordinary failure enters at the nudge, and a retry-after hint closes no rung."""
    decision = ExternalRecovery(session_policy()).failed(trouble)
    assert isinstance(decision, ev.Change)
    assert decision.action is Action.NUDGE


def test_nudges_are_counted() -> None:
    """After its nudges a session that still fails is told to end."""
    recovery = ExternalRecovery(session_policy(nudges=2))
    assert [rung_of(recovery.failed("No such file")) for _ in range(3)] == ["nudge", "nudge", "force-done"]


def test_calls_after_the_end_are_denied_three_times_and_then_the_agent_is_stopped() -> None:
    """The end and each denial are changes; the fourth denial is a Finish, and so is every one after it."""
    recovery = ExternalRecovery(session_policy())
    decisions = [recovery.failed(loop(8), close=False) for _ in range(1 + MAX_DENIALS + 2)]
    assert [type(decision) for decision in decisions] == [ev.Change] * 4 + [ev.Finish] * 2
    assert MAX_DENIALS == 3
