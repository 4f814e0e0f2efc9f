"""Rules with their state, and rows of the history, as the command line and the service show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.core.alerts.evaluation import cooling_until
from rung.store.alerts.states import load_scopes, load_state
from rung.store.fleet.database_clock import time_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.core.alerts.evaluation import AlertState, Reading
    from rung.core.alerts.rules import AlertRule, AlertSettings
    from rung.store.alerts.states import AlertEntry
    from rung.store.journal.journal import Journal


def rule_views(
    journal: Journal, settings: AlertSettings, figure: Callable[[AlertRule], Reading]
) -> list[dict[str, Any]]:
    """Return each rule with its settings, its state, and its figure now."""
    now = time_of(journal)
    return [_rule_view(journal, rule, figure(rule), now) for rule in settings.rules.values()]


def _rule_view(journal: Journal, rule: AlertRule, reading: Reading, now: float) -> dict[str, Any]:
    state = load_state(journal, rule.name)
    return {
        "name": rule.name,
        "when": rule.when.value,
        "threshold": rule.threshold,
        "window": rule.window_seconds,
        "cooldown": rule.cooldown,
        "minimum": rule.minimum,
        "project": rule.project,
        "severity": str(rule.severity),
        "channels": list(rule.channels),
        **_state_view(state),
        "cooling_until": cooling_until(rule, reading, state, now),
        "silenced_until": state.silenced_until or None,
        "value": reading.value,
        "detail": reading.detail,
        "scopes": [{"scope": scope, **_state_view(one)} for scope, one in load_scopes(journal, rule.name).items()],
    }


def _state_view(state: AlertState) -> dict[str, Any]:
    return {
        "state": "firing" if state.is_firing else "ok",
        "since": state.since,
        "fired_at": state.fired_at,
        "alert": state.alert,
    }


def entry_view(entry: AlertEntry) -> dict[str, Any]:
    """Return a row of the history: the notification, and what became of it."""
    made = entry.notification
    deliveries = [{"channel": channel, **one} for channel, one in entry.deliveries.items()]
    return {**made.to_json(), "silenced": entry.is_silenced, "deliveries": deliveries}
