"""Alerts over a journal: from a figure to every channel, once, and until it has arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import orjson
import pytest

from rung import schemas
from rung.core.alerts.evaluation import Reading
from rung.core.alerts.rules import AlertRule, read_alerts
from rung.core.domain.errors import ConfigError
from rung.store.alerts.outbox import RETRY_SECONDS
from rung.store.alerts.states import history, load_scopes, load_state, silence
from rung.store.fleet.database_clock import time_of
from rung.testing import HttpError
from rung.wiring.alerts import Alerts
from tests.store.recorded import START, Recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal
    from tests.adapters.alerts.receiver import Receiver

CHANNELS: dict[str, Any] = {
    "slack": {"type": "slack", "url_env": "SLACK_URL"},
    "teams": {"type": "teams", "url_env": "TEAMS_URL"},
    "pagerduty": {"type": "pagerduty", "url_env": "PAGERDUTY_URL", "key_env": "PAGERDUTY_KEY"},
    "webhook": {"type": "webhook", "url_env": "HOOK_URL", "secret_env": "HOOK_SECRET"},
}
FAILING: dict[str, Any] = {
    "when": "failure_rate",
    "threshold": 0.5,
    "minimum": 2,
    "cooldown": 0,
    "channels": list(CHANNELS),
}


def alerts_of(journal: Journal, receiver: Receiver, **options: Any) -> Alerts:
    """Return the alerts of one process, with every channel."""
    rules = {"failing": {**FAILING, **options.pop("rule", {})}, **options.pop("rules", {})}
    table = {"channels": CHANNELS, "rules": rules, "allow_hosts": ["127.0.0.1"]}
    return Alerts(journal, read_alerts(table), environment=receiver.environment(), **options)


def fail(journal: Journal) -> float:
    """Record two failures and a success; return the time afterwards."""
    recorded = Recorded(journal)
    recorded.recover(HttpError(529, "overloaded"), HttpError(529, "overloaded"), "fine")
    return recorded.clock.now()


def test_an_alert_reaches_every_channel_and_is_resolved(journal: Journal, receiver: Receiver) -> None:
    """Each service accepts the beginning and the end, and the history says that they were sent."""
    alerts = alerts_of(journal, receiver)
    alerts.evaluate(START)
    assert alerts.send_due(START) == 0
    now = fail(journal)
    alerts.evaluate(now)
    assert alerts.send_due(now) == 4
    assert {one.service for one in receiver.accepted} == set(CHANNELS)
    assert len(receiver.open_pages) == 1
    alerts.evaluate(now + 86_400)
    assert alerts.send_due(now + 86_400) == 4
    assert receiver.open_pages == {}
    assert receiver.refused == []
    for entry in history(journal):
        assert {one["state"] for one in entry.deliveries.values()} == {"sent"}
    fired, resolved = receiver.events("webhook")
    assert (fired["event"], resolved["event"], fired["alert"]) == ("fired", "resolved", resolved["alert"])
    assert "Most frequent failure: overloaded" in fired["summary"]
    assert "Most frequent" not in resolved["summary"]
    for body in (fired, resolved):
        jsonschema.validate(body, orjson.loads(schemas.text("alert")))


def test_several_processes_notify_once(make_journal: Callable[[], Journal], receiver: Receiver) -> None:
    """However many processes watch one journal, every channel gets each notification once."""
    all_alerts = [alerts_of(make_journal(), receiver) for _ in range(3)]
    now = fail(make_journal())
    for alerts in all_alerts:
        alerts.evaluate(now)
    for alerts in all_alerts:
        alerts.send_due(now)
    assert len(receiver.accepted) == len(CHANNELS)


def test_a_process_that_ends_between_decision_and_delivery_loses_nothing(
    make_journal: Callable[[], Journal], receiver: Receiver
) -> None:
    """What one process decided and did not send, another one sends, and the alert does not fire again."""
    first = make_journal()
    now = fail(first)
    alerts_of(first, receiver).evaluate(now)
    first.close()  # it dies here
    second = alerts_of(make_journal(), receiver)
    second.evaluate(now + 1)
    assert second.send_due(now + 1) == 4
    assert len(receiver.accepted) == 4
    assert len(history(make_journal())) == 1


def test_a_service_that_is_away_is_tried_again(journal: Journal, receiver: Receiver) -> None:
    """Failed deliveries are told and tried again after a pause; other channels do not wait for them."""
    told: list[str] = []
    alerts = alerts_of(journal, receiver, warn=told.append)
    now = fail(journal)
    alerts.evaluate(now)
    receiver.failing = 2
    assert alerts.send_due(now) == 4
    assert len(receiver.accepted) == 2
    assert len(told) == 2
    assert "503" in told[0]
    assert alerts.send_due(now + 1) == 0
    assert alerts.send_due(now + RETRY_SECONDS[0]) == 2
    assert {one.service for one in receiver.accepted} == set(CHANNELS)
    assert {one["attempts"] for one in history(journal)[0].deliveries.values()} == {1, 2}


def test_a_test_goes_to_every_channel_and_changes_no_state(journal: Journal, receiver: Receiver) -> None:
    """A test is sent at once and recorded; the alert does not fire."""
    alerts = alerts_of(journal, receiver)
    assert alerts.send_test("failing").errors == dict.fromkeys(CHANNELS, "")
    (entry,) = history(journal)
    assert (entry.notification.event, {one["state"] for one in entry.deliveries.values()}) == ("test", {"sent"})
    assert not load_state(journal, "failing").is_firing
    assert receiver.open_pages == {}
    with pytest.raises(ConfigError, match="did you mean failing"):
        alerts.send_test("failin")


def test_a_crew_has_an_alert_of_its_own(journal: Journal, receiver: Receiver) -> None:
    """The figures of a crew fire and resolve a rule for that crew alone, beside those of the journal."""
    waiting = {"when": "unanswered", "threshold": 1, "cooldown": 0, "channels": ["webhook"]}
    readings = [Reading(2.0, "Tasks: a, b."), Reading(0.0)]

    def figures(rule: AlertRule) -> Reading | None:
        return readings[0] if rule.name == "waiting" else None

    alerts = alerts_of(journal, receiver, rules={"waiting": waiting}, figures={"crew:/c.db": figures})
    other = alerts_of(journal, receiver, rules={"waiting": waiting})
    for each in (alerts, other, alerts):
        each.evaluate(START)
    assert alerts.send_due(START) == 1
    assert receiver.events("webhook")[0]["scope"] == "crew:/c.db"
    assert not load_state(journal, "waiting").is_firing
    assert load_scopes(journal, "waiting")["crew:/c.db"].is_firing
    readings.pop(0)
    alerts.evaluate(START + 1)
    assert alerts.send_due(START + 1) == 1
    assert receiver.events("webhook")[1]["event"] == "resolved"


def test_a_silenced_rule_sends_nothing(journal: Journal, receiver: Receiver) -> None:
    """In a silence the history alone hears of an alert."""
    alerts = alerts_of(journal, receiver)
    now = fail(journal)
    silence(journal, "failing", 600.0, now=now)
    alerts.evaluate(now)
    assert alerts.send_due(now) == 0
    assert [entry.is_silenced for entry in history(journal)] == [True]


def test_the_thread_evaluates_sends_and_ends(journal: Journal, receiver: Receiver) -> None:
    """Started, it needs nobody; stopped, it evaluates once more and sends what is left."""
    recorded = Recorded(journal)
    recorded.clock.time = time_of(journal) - 60
    recorded.recover(HttpError(529, "overloaded"), HttpError(529, "overloaded"), "fine")
    with alerts_of(journal, receiver):
        pass
    assert {one.service for one in receiver.accepted} == set(CHANNELS)


def test_a_broken_store_is_told_once(journal: Journal, receiver: Receiver) -> None:
    """A store that fails does not end the process, and is told once until it works again."""
    told: list[str] = []
    journal.write(lambda connection: connection.execute("ALTER TABLE message RENAME TO away"), lambda _: False).result()
    with alerts_of(journal, receiver, warn=told.append):
        pass
    (line,) = told
    assert line.startswith("alerts are not evaluated, trying again:")
    assert "message" in line
