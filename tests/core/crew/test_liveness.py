"""Liveness from process, heartbeat and progress; limits on restarts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rung.core.crew.liveness import (
    UNHEALTHY,
    WAITING_STATES,
    Liveness,
    LivenessSignals,
    LivenessThresholds,
    RestartLimits,
    TableView,
    WorkerRestart,
    check_liveness,
    restart_block_reason,
)
from rung.core.domain.errors import ConfigError
from rung.core.policy.restart_intensity import RestartIntensity

THRESHOLDS = LivenessThresholds(stale=540, slow=600, hung=1800)
AGES = st.one_of(st.none(), st.floats(0, 10_000))
SIGNALS = st.builds(
    LivenessSignals,
    process_alive=st.sampled_from([True, False, None]),
    heartbeat_age=AGES,
    progress_age=AGES,
    is_looping=st.booleans(),
    waits_for_person=st.booleans(),
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
        (
            LivenessSignals(process_alive=True, heartbeat_age=1, progress_age=9999, waits_for_person=True),
            Liveness.WAITING,
        ),
        (LivenessSignals(process_alive=True, heartbeat_age=999, waits_for_person=True), Liveness.HUNG),
        (LivenessSignals(process_alive=True, heartbeat_age=1, is_looping=True), Liveness.LOOPING),
        (LivenessSignals(process_alive=True, heartbeat_age=1), Liveness.WELL),
        (LivenessSignals(process_alive=True, heartbeat_age=1, state="exit_requested", state_age=120), Liveness.WELL),
        (LivenessSignals(process_alive=True, heartbeat_age=1, state="exit_requested", state_age=121), Liveness.OVERDUE),
        (LivenessSignals(process_alive=True, heartbeat_age=1, state="working", state_age=9999), Liveness.WELL),
    ],
)
def test_what_the_signals_say(signals: LivenessSignals, expected: Liveness) -> None:
    """Each verdict at its threshold; a worker that waits for an answer needs heartbeats but no progress."""
    assert check_liveness(signals, THRESHOLDS) is expected


@given(SIGNALS)
def test_a_fresh_worker_is_never_in_trouble(signals: LivenessSignals) -> None:
    """A worker with a live process, heartbeats and progress, and without a loop, is healthy in every state."""
    fresh = replace(signals, process_alive=True, heartbeat_age=1.0, progress_age=1.0, is_looping=False)
    assert check_liveness(fresh, THRESHOLDS) not in UNHEALTHY


@given(SIGNALS)
def test_a_dead_process_is_dead_in_every_state(signals: LivenessSignals) -> None:
    """A dead process or a missing heartbeat is detected in every state."""
    assert check_liveness(replace(signals, process_alive=False), THRESHOLDS) is Liveness.DEAD
    assert check_liveness(replace(signals, heartbeat_age=None), THRESHOLDS) in {Liveness.DEAD, Liveness.HUNG}


@pytest.mark.parametrize("state", sorted(WAITING_STATES))
def test_a_paused_worker_that_does_not_beat_is_hung(state: str) -> None:
    """A worker that waits for an answer needs no progress, but a missing heartbeat is detected."""
    paused = LivenessSignals(process_alive=True, heartbeat_age=1.0, progress_age=9_999.0, state=state)
    assert check_liveness(paused, THRESHOLDS) is Liveness.WELL
    assert check_liveness(replace(paused, heartbeat_age=THRESHOLDS.stale + 1), THRESHOLDS) is Liveness.HUNG


IN_TROUBLE = SIGNALS.filter(
    lambda signals: signals.heartbeat_age is not None and check_liveness(signals, THRESHOLDS) in UNHEALTHY
)


@given(IN_TROUBLE, st.floats(0, 10_000))
def test_silence_never_helps(signals: LivenessSignals, longer: float) -> None:
    """A longer silence never makes an unhealthy worker healthy."""
    later = replace(signals, heartbeat_age=(signals.heartbeat_age or 0.0) + longer)
    assert check_liveness(later, THRESHOLDS) in UNHEALTHY


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"stale": 0}, "thresholds.stale"),
        ({"slow": -1}, "thresholds.slow"),
        ({"hung": "long"}, "thresholds.hung"),
        ({"slow": 100, "hung": 99}, "thresholds.hung"),
        ({"stale": math.nan}, "thresholds.stale"),
    ],
)
def test_what_patience_cannot_be(settings: dict[str, Any], key: str) -> None:
    """An invalid threshold is rejected with its key."""
    with pytest.raises(ConfigError) as raised:
        LivenessThresholds(**settings)
    assert raised.value.key == key
    assert LivenessThresholds(hung=math.inf).hung == math.inf


def test_limits_can_be_ones_own() -> None:
    """Custom limits apply, and `window_seconds` is the longest of their windows."""
    limits = RestartLimits(
        redispatches=1,
        restarts=RestartIntensity(restarts=1, seconds=60),
        deaths=RestartIntensity(restarts=9, seconds=120),
    )
    assert limits.window_seconds == 120
    assert "the limit is 1" in restart_block_reason(1, [], 0, limits)
    assert "1 restarts within 1 minutes is reached" in restart_block_reason(0, restarted(1.0), 10, limits)


def restarted(*times: float, is_death: bool = False, tasks: int = 9) -> list[WorkerRestart]:
    return [
        WorkerRestart(task_id=f"task-{number % tasks}", at=at, is_death=is_death) for number, at in enumerate(times)
    ]


def test_when_nothing_is_started_again() -> None:
    """The default limits: three redispatches, five restarts in 15 minutes, three dead tasks in 30 s."""
    assert restart_block_reason(2, [*restarted(2.0, 3.0), *restarted(0.0, 1.0, is_death=True)], 10) == ""
    assert "redispatched 3 times" in restart_block_reason(3, [], 10)
    assert "common cause" in restart_block_reason(0, restarted(1.0, 2.0, 3.0, is_death=True), 10)
    assert restart_block_reason(0, restarted(1.0, 2.0, 3.0, is_death=True), 31) == ""
    assert "15 minutes" in restart_block_reason(0, restarted(1.0, 2.0, 3.0, 4.0, 5.0), 800)
    assert restart_block_reason(0, restarted(1.0, 2.0, 3.0, 4.0, 5.0), 901) == ""


def test_one_task_does_not_reach_the_limits_of_the_crew() -> None:
    """Ten deaths of one task block no other; two tasks that die in turn do not either, three do."""
    times = [float(number) for number in range(10)]
    for tasks, is_blocked in ((1, False), (2, False), (3, True)):
        reason = restart_block_reason(0, restarted(*times, is_death=True, tasks=tasks), 10)
        assert bool(reason) is is_blocked, (tasks, reason)


def test_a_locked_table_is_nobodys_silence() -> None:
    """Heartbeats that nobody could write do not count: silence begins when the observer can read the table again."""
    stale, poll = 100.0, 10.0
    view = TableView().read(1_000.0, stale, poll)
    assert view.silence(90.0) == 0.0  # the first read says nothing about the time before
    view = view.read(1_010.0, stale, poll).read(1_022.0, stale, poll)  # as often as usual
    assert view.silence(140.0) == 22.0
    view = view.read(1_500.0, stale, poll)  # the table was locked, or the machine was suspended
    assert view.silence(450.0) == 0.0
    view = view.read(1_510.0, stale, poll)
    assert view.silence(490.0) == 10.0
    assert view.silence(1.0) == 1.0
    assert view.silence(None) is None
    assert view.missed().read(1_520.0, stale, poll).silence(490.0) == 0.0


def test_late_reads_count_in_part() -> None:
    """On a busy machine, reads that are late count for an eighth of the threshold; a clock that is set back for nothing."""
    view = TableView().read(0.0, 80.0, 1.0)
    for now in (30.0, 60.0, 90.0):
        view = view.read(now, 80.0, 1.0)
    assert view.silence(90.0) == 30.0
    assert view.read(50.0, 80.0, 1.0).silence(90.0) == 30.0


def test_a_poll_longer_than_the_threshold_is_no_gap() -> None:
    """An observer that reads less often than half of the threshold, because it was told to, still sees silence."""
    view = TableView().read(0.0, 3.0, 2.0).read(2.1, 3.0, 2.0).read(4.2, 3.0, 2.0)
    assert view.silence(4.2) == pytest.approx(4.2)
