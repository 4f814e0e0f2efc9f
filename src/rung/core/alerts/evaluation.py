"""Evaluation of a rule: a reading and the former state give the next state, and what is to be recorded and sent.

An alert fires when its figure reaches the threshold, and is resolved when the figure is below it again. After it has fired it
does not fire again within the cooldown. A silence holds notifications back: if the alert still fires at its end, it is notified
then. The end of an alert is notified if its beginning was, also during a silence: otherwise an incident of PagerDuty would stay
open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.core.alerts.rules import AlertRule


class AlertChange(StrEnum):
    """Change of an alert."""

    FIRED = "fired"
    RESOLVED = "resolved"


class Reading(NamedTuple):
    """Value of a figure; None if it could not be measured. `detail` says what it is made of."""

    value: float | None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertState:
    """State of one rule in one scope. Times are seconds since the epoch."""

    is_firing: bool = False
    since: float | None = None  # when it fired, or was resolved
    fired_at: float | None = None  # the last time
    alert: str = ""  # id of the alert that fires, or did last; the same in its beginning and its end
    is_notified: bool = False  # of the beginning of this alert
    silenced_until: float = 0.0
    value: float | None = None  # when it last changed

    def is_silenced(self, now: float) -> bool:
        """Return whether notifications are held back at this time."""
        return now < self.silenced_until

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> AlertState:
        """Return a stored state; unknown fields are left out."""
        return cls(**{name: values[name] for name in _FIELDS if name in values})


_FIELDS = ("is_firing", "since", "fired_at", "alert", "is_notified", "silenced_until", "value")


class Evaluation(NamedTuple):
    """Next state of an alert, the change to record, and the change to notify of; None if there is none."""

    state: AlertState
    change: AlertChange | None = None
    notify: AlertChange | None = None

    @property
    def is_new(self) -> bool:
        """Return whether anything is to be stored."""
        return self.change is not None or self.notify is not None


def evaluate(rule: AlertRule, reading: Reading, state: AlertState, now: float, fresh_id: str) -> Evaluation:
    """Return what a reading makes of a state. `fresh_id` becomes the id of the alert if it fires."""
    if reading.value is None:
        return Evaluation(state)  # unknown: neither better nor worse
    is_breached = reading.value >= rule.threshold
    if state.is_firing and not is_breached:
        ended = replace(state, is_firing=False, since=now, is_notified=False, value=reading.value)
        return Evaluation(ended, AlertChange.RESOLVED, AlertChange.RESOLVED if state.is_notified else None)
    may_notify = not state.is_silenced(now)
    if state.is_firing:
        if state.is_notified or not may_notify:
            return Evaluation(state)
        return Evaluation(replace(state, is_notified=True), None, AlertChange.FIRED)  # a silence has ended
    if not is_breached or is_cooling_down(rule, state, now):
        return Evaluation(state)
    fired = replace(
        state, is_firing=True, since=now, fired_at=now, alert=fresh_id, is_notified=may_notify, value=reading.value
    )
    return Evaluation(fired, AlertChange.FIRED, AlertChange.FIRED if may_notify else None)


def is_cooling_down(rule: AlertRule, state: AlertState, now: float) -> bool:
    """Return whether the alert has fired too recently to fire again. A clock that was set back does not count."""
    return state.fired_at is not None and 0 <= now - state.fired_at < rule.cooldown


def cooling_until(rule: AlertRule, reading: Reading, state: AlertState, now: float) -> float | None:
    """Return when an alert over its threshold may fire again; None if no cooldown holds it back."""
    is_breached = reading.value is not None and reading.value >= rule.threshold
    if state.is_firing or not is_breached or state.fired_at is None or not is_cooling_down(rule, state, now):
        return None
    return state.fired_at + rule.cooldown
