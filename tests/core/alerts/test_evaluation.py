"""Rules fire, rest and resolve as their settings say, for any sequence of readings."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rung.core.alerts.evaluation import AlertChange, AlertState, Evaluation, Reading, cooling_until, evaluate
from rung.core.alerts.rules import AlertRule, Metric

RULE = AlertRule(when=Metric.STUCK, threshold=3, cooldown=600.0, name="stuck")
ROUNDING = 1e-6  # of sums of times, in seconds
# Seconds until the reading, the reading, and the seconds of a silence that begins with it.
steps = st.lists(
    st.tuples(st.floats(0, 900), st.none() | st.integers(0, 6), st.sampled_from([0.0, 0.0, 0.0, 450.0])), max_size=40
)


def play(
    given_steps: list[tuple[float, int | None, float]],
) -> list[tuple[float, int | None, AlertState, Evaluation]]:
    """Evaluate the readings one after the other: time, value, state before, evaluation."""
    state, now, played = AlertState(), 1_000.0, []
    for number, (later, value, silence) in enumerate(given_steps):
        now += later
        if silence:
            state = replace(state, silenced_until=now + silence)
        done = evaluate(RULE, Reading(value), state, now, f"alert-{number}")
        played.append((now, value, state, done))
        state = done.state
    return played


@given(steps)
def test_an_alert_fires_and_is_resolved_in_turn(given_steps: list[tuple[float, int | None, float]]) -> None:
    """Recorded changes alternate, the first is a firing, and both have the same id."""
    changes = [(done.change, done.state.alert) for _, _, _, done in play(given_steps) if done.change is not None]
    assert [change for change, _ in changes] == [
        (AlertChange.FIRED, AlertChange.RESOLVED)[n % 2] for n in range(len(changes))
    ]
    for fired, resolved in zip(changes[::2], changes[1::2], strict=False):
        assert fired[1] == resolved[1]
    assert len({alert for _, alert in changes[::2]}) == len(changes[::2])


@given(steps)
def test_two_firings_are_a_cooldown_apart(given_steps: list[tuple[float, int | None, float]]) -> None:
    """An alert never fires again within the cooldown."""
    times = [now for now, _, _, done in play(given_steps) if done.change is AlertChange.FIRED]
    assert all(later - earlier >= RULE.cooldown for earlier, later in pairwise(times))


@given(steps)
def test_the_state_follows_the_reading(given_steps: list[tuple[float, int | None, float]]) -> None:
    """Below the threshold nothing fires, an unknown reading changes nothing, and nothing fires that is not breached."""
    for _, value, before, done in play(given_steps):
        if value is None:
            assert done == Evaluation(before)
        elif value < RULE.threshold:
            assert not done.state.is_firing
        if done.change is AlertChange.FIRED:
            assert value is not None
            assert value >= RULE.threshold


@given(steps)
def test_each_beginning_that_is_notified_has_an_end_that_is_notified(
    given_steps: list[tuple[float, int | None, float]],
) -> None:
    """Notifications of one alert are one beginning and at most one end, and no beginning is sent in a silence."""
    sent = [(now, before, done) for now, _, before, done in play(given_steps) if done.notify is not None]
    assert [done.notify for _, _, done in sent] == [
        (AlertChange.FIRED, AlertChange.RESOLVED)[n % 2] for n in range(len(sent))
    ]
    for now, before, done in sent:
        if done.notify is AlertChange.FIRED:
            assert not before.is_silenced(now)


def test_a_silence_holds_the_notification_back() -> None:
    """An alert that fires in a silence is recorded at once and notified when the silence has ended."""
    silenced = AlertState(silenced_until=2_000.0)
    fired = evaluate(RULE, Reading(5), silenced, 1_000.0, "a")
    assert (fired.change, fired.notify) == (AlertChange.FIRED, None)
    still = evaluate(RULE, Reading(5), fired.state, 1_999.0, "b")
    assert not still.is_new
    late = evaluate(RULE, Reading(4), still.state, 2_000.0, "c")
    assert (late.change, late.notify, late.state.alert) == (None, AlertChange.FIRED, "a")


def test_an_alert_that_nobody_heard_of_ends_silently() -> None:
    """An alert that fired and ended in a silence is notified neither then nor later."""
    fired = evaluate(RULE, Reading(5), AlertState(silenced_until=2_000.0), 1_000.0, "a")
    ended = evaluate(RULE, Reading(0), fired.state, 1_500.0, "b")
    assert (ended.change, ended.notify) == (AlertChange.RESOLVED, None)


def test_it_fires_when_the_cooldown_has_ended() -> None:
    """A figure that is still too high after the cooldown fires then."""
    ended = AlertState(fired_at=1_000.0, since=1_100.0)
    assert not evaluate(RULE, Reading(9), ended, 1_599.0, "a").is_new
    assert evaluate(RULE, Reading(9), ended, 1_600.0, "a").change is AlertChange.FIRED


@given(steps)
def test_an_alert_cools_down_exactly_while_only_the_cooldown_holds_it_back(
    given_steps: list[tuple[float, int | None, float]],
) -> None:
    """A rule is cooling down if and only if it is over the threshold and not firing, and it fires at the time that is shown."""
    for now, value, _, done in play(given_steps):
        until = cooling_until(RULE, Reading(value), done.state, now)
        is_over = value is not None and value >= RULE.threshold
        assert (until is not None) == (is_over and not done.state.is_firing)
        if until is not None:
            assert until > now - ROUNDING
            assert evaluate(RULE, Reading(value), done.state, until + ROUNDING, "x").change is AlertChange.FIRED


@given(
    st.builds(
        AlertState,
        is_firing=st.booleans(),
        since=st.none() | st.floats(0, 1e9),
        fired_at=st.none() | st.floats(0, 1e9),
        alert=st.text(),
        is_notified=st.booleans(),
        silenced_until=st.floats(0, 1e9),
        value=st.none() | st.floats(0, 1e9),
    )
)
def test_a_state_survives_its_json(state: AlertState) -> None:
    """A state is read back as it was stored, and fields of a newer version are left out."""
    assert AlertState.from_json({**state.to_json(), "newer": 1}) == state
