"""Three signals, and what they say together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.liveness import (
    PAUSED,
    TROUBLE,
    Liveness,
    LivenessSignals,
    LivenessThresholds,
    RestartLimits,
    look,
    stop_restarting,
)
from rung.core.domain.errors import ConfigError
from rung.core.policy.restart_intensity import RestartIntensity

PATIENCE = LivenessThresholds(stale=540, slow=600, hung=1800)
AGES = st.one_of(st.none(), st.floats(0, 10_000))
SIGNALS = st.builds(
    LivenessSignals,
    process_alive=st.sampled_from([True, False, None]),
    heartbeat_age=AGES,
    progress_age=AGES,
    looping=st.booleans(),
    asked=st.booleans(),
    state=st.sampled_from(["working", "needs_review", "error", "fix_proposed", "review_approved"]),
)


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        (LivenessSignals(process_alive=True, heartbeat_age=1, progress_age=1), Liveness.WELL),
        (LivenessSignals(process_alive=True, heartbeat_age=540, progress_age=600), Liveness.WELL),
        (LivenessSignals(process_alive=False, heartbeat_age=1), Liveness.DEAD),
        (LivenessSignals(process_alive=True, heartbeat_age=540.1), Liveness.HUNG),
        (LivenessSignals(process_alive=None, heartbeat_age=540.1), Liveness.DEAD),
        (LivenessSignals(process_alive=True, heartbeat_age=None), Liveness.HUNG),
        (LivenessSignals(process_alive=None, heartbeat_age=None), Liveness.DEAD),
        (LivenessSignals(process_alive=True, heartbeat_age=1, progress_age=601), Liveness.SLOW),
        (LivenessSignals(process_alive=True, heartbeat_age=1, progress_age=1801), Liveness.HUNG),
        (LivenessSignals(process_alive=True, heartbeat_age=1, progress_age=1801, state="needs_review"), Liveness.WELL),
        (LivenessSignals(process_alive=True, heartbeat_age=1, progress_age=9999, asked=True), Liveness.WAITING),
        (LivenessSignals(process_alive=True, heartbeat_age=999, asked=True), Liveness.HUNG),
        (LivenessSignals(process_alive=True, heartbeat_age=1, looping=True), Liveness.LOOPING),
        (LivenessSignals(process_alive=True, heartbeat_age=1), Liveness.WELL),
    ],
)
def test_what_the_signals_say(signals: LivenessSignals, expected: Liveness) -> None:
    """Each verdict at its threshold; a paused worker is not expected to get on, but to beat."""
    assert look(signals, PATIENCE) is expected


@given(SIGNALS)
def test_a_fresh_worker_is_never_in_trouble(signals: LivenessSignals) -> None:
    """Whose process lives, who beats, gets on and does not loop is left alone, whatever its state."""
    fresh = replace(signals, process_alive=True, heartbeat_age=1.0, progress_age=1.0, looping=False)
    assert look(fresh, PATIENCE) not in TROUBLE


@given(SIGNALS)
def test_a_dead_process_is_dead_in_every_state(signals: LivenessSignals) -> None:
    """No state, paused ones neither, hides a death or a missing beat."""
    assert look(replace(signals, process_alive=False), PATIENCE) is Liveness.DEAD
    assert look(replace(signals, heartbeat_age=None), PATIENCE) in {Liveness.DEAD, Liveness.HUNG}


@pytest.mark.parametrize("state", sorted(PAUSED))
def test_a_paused_worker_that_does_not_beat_is_hung(state: str) -> None:
    """A paused worker need not get on, but a missing beat is found in each paused state."""
    paused = LivenessSignals(process_alive=True, heartbeat_age=1.0, progress_age=9_999.0, state=state)
    assert look(paused, PATIENCE) is Liveness.WELL
    assert look(replace(paused, heartbeat_age=PATIENCE.stale + 1), PATIENCE) is Liveness.HUNG


IN_TROUBLE = SIGNALS.filter(lambda signals: signals.heartbeat_age is not None and look(signals, PATIENCE) in TROUBLE)


@given(IN_TROUBLE, st.floats(0, 10_000))
def test_silence_never_helps(signals: LivenessSignals, longer: float) -> None:
    """A longer silence never turns trouble into health."""
    later = replace(signals, heartbeat_age=(signals.heartbeat_age or 0.0) + longer)
    assert look(later, PATIENCE) in TROUBLE


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"stale": 0}, "patience.stale"),
        ({"slow": -1}, "patience.slow"),
        ({"hung": "long"}, "patience.hung"),
        ({"slow": 100, "hung": 99}, "patience.hung"),
        ({"stale": math.nan}, "patience.stale"),
    ],
)
def test_what_patience_cannot_be(settings: dict[str, Any], key: str) -> None:
    """A patience that cannot be used is refused with its key."""
    with pytest.raises(ConfigError) as raised:
        LivenessThresholds(**settings)
    assert raised.value.key == key
    assert LivenessThresholds(hung=math.inf).hung == math.inf


def test_limits_can_be_ones_own() -> None:
    """Other limits hold as they are set, and say how far back they look."""
    limits = RestartLimits(
        redispatches=1,
        restarts=RestartIntensity(restarts=1, seconds=60),
        deaths=RestartIntensity(restarts=9, seconds=120),
    )
    assert limits.longest == 120
    assert "1 is the limit" in stop_restarting(1, [], [], 0, limits)
    assert "1 restarts within 1 minutes" in stop_restarting(0, [1.0], [], 10, limits)


def test_when_nothing_is_started_again() -> None:
    """A fourth dispatch of a task, a sixth restart in 15 minutes, a third death within 30 s end it, and say so."""
    assert stop_restarting(2, [0.0, 1.0, 2.0, 3.0], [0.0, 1.0], 10) == ""
    assert "dispatched again 3 times" in stop_restarting(3, [], [], 10)
    assert "one cause" in stop_restarting(0, [], [1.0, 2.0, 3.0], 10)
    assert stop_restarting(0, [], [1.0, 2.0, 3.0], 31) == ""
    assert "15 minutes" in stop_restarting(0, [1.0, 2.0, 3.0, 4.0, 5.0], [], 800)
    assert stop_restarting(0, [1.0, 2.0, 3.0, 4.0, 5.0], [], 901) == ""
