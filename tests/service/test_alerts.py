"""The alert routes: rules with their state, history, tests and silences."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import rung
from rung.core.alerts.evaluation import Reading
from rung.core.alerts.rules import read_alerts
from rung.store.alerts.states import record
from rung.testing import HttpError, Script
from rung.wiring.alerts import Alerts

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal
    from tests.service.conftest import Running

pytestmark = pytest.mark.usefixtures("alerts")  # the service has them
TABLE: dict[str, Any] = {
    "channels": {
        "good": {"type": "command", "run": [sys.executable, "-c", "import sys; sys.stdin.read()"]},
        "bad": {"type": "command", "run": ["false"]},
    },
    "rules": {
        "failing": {
            "when": "failure_rate", "threshold": 0.5, "minimum": 2, "cooldown": 0, "channels": ["good", "bad"],
        },
        "quiet": {"when": "cost", "threshold": 5},
    },
}  # fmt: skip


@pytest.fixture
def alerts(journal: Journal) -> Alerts:
    """The alerts that the service has, not started: a test evaluates them when it wants to."""
    return Alerts(journal, read_alerts(TABLE))


def fail(journal: Journal) -> None:
    """Record a failure."""
    rung.recover_sync(
        Script(HttpError(529, "overloaded"), HttpError(529, "overloaded"), "fine"),
        "go",
        policy=rung.policy("call", backoff={"base": 0}),
        journal=journal,
        breakers=rung.BreakerRegistry(),
        retry_budget=None,
    )
    assert journal.flush()


def test_rules_are_shown_with_state_and_value(service: Running, alerts: Alerts) -> None:
    """A rule is ok, then fires with its value; the history has the change and what became of it."""
    assert [one["state"] for one in service.get("/api/alerts")["rules"]] == ["ok", "ok"]
    fail(service.journal)
    alerts.evaluate()
    assert alerts.send_due() == 2
    failing, quiet = service.get("/api/alerts")["rules"]
    assert (failing["state"], quiet["state"], failing["threshold"]) == ("firing", "ok", 0.5)
    assert failing["value"] > 0.5
    assert failing["detail"] == "2 of 3 attempts failed."
    (entry,) = service.get("/api/alerts/history")["entries"]
    assert (entry["event"], entry["rule"], entry["alert"]) == ("fired", "failing", failing["alert"])
    told = {one["channel"]: one for one in entry["deliveries"]}
    assert (told["good"]["state"], told["bad"]["state"]) == ("sent", "waiting")
    assert "exit code 1" in told["bad"]["error"]
    assert service.get("/api/alerts/history", rule="quiet")["entries"] == []
    assert [one["type"] for one in service.get("/api/alerts")["channels"]] == ["command", "command"]


def test_a_rule_over_its_threshold_in_its_cooldown_is_cooling_down(service: Running, alerts: Alerts) -> None:
    """A rule that the cooldown alone holds back says until when, and one below its threshold does not."""
    rule = {"when": "failure_rate", "threshold": 0.5, "minimum": 2, "cooldown": 600}
    alerts.settings = read_alerts({"rules": {"resting": rule}})
    for value in (1.0, 0.0):  # it fires and is resolved
        record(service.journal, alerts.rule("resting"), alerts.settings, Reading(value), now=None)
    (below,) = service.get("/api/alerts")["rules"]
    assert (below["state"], below["coolingUntil"]) == ("ok", None)
    fail(service.journal)
    (over,) = service.get("/api/alerts")["rules"]
    assert over["coolingUntil"] == over["firedAt"] + 600


def test_a_test_says_which_channel_accepted_it(service: Running) -> None:
    """Each channel gets the test; the one that refused it says why, and the audit log has who asked."""
    errors = service.post("/api/alerts/failing/test")["errors"]
    assert errors["good"] == ""
    assert "exit code 1" in errors["bad"]
    assert service.get("/api/alerts/history")["entries"][0]["event"] == "test"
    assert any(one["subject"] == "alert/failing" for one in service.get("/api/audit"))


def test_a_rule_is_silenced(service: Running, alerts: Alerts) -> None:
    """A silenced rule fires without a notification, and 0 minutes end the silence."""
    until = service.post("/api/alerts/failing/silence", {"minutes": 30})["silencedUntil"]
    assert service.get("/api/alerts")["rules"][0]["silencedUntil"] == until
    fail(service.journal)
    alerts.evaluate()
    assert alerts.send_due() == 0
    assert service.get("/api/alerts/history")["entries"][0]["silenced"]
    service.post("/api/alerts/failing/silence", {"minutes": 0})
    alerts.evaluate()
    assert alerts.send_due() == 2


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("nothing/test", None, 404),
        ("nothing/silence", {"minutes": 1}, 404),
        ("failing/silence", {"minutes": -1}, 422),
        ("failing/silence", {"minutes": 1e9}, 422),
        ("failing/silence", {}, 422),
    ],
)
def test_wrong_requests(service: Running, path: str, body: Any, status: int) -> None:
    """A rule that is not there and minutes out of range are refused with a reason."""
    assert service.post(f"/api/alerts/{path}", body, status)["detail"]


def test_a_reader_may_look_but_not_act(service: Running) -> None:
    """Role read sees rules and history; tests and silences need role act."""
    reader = service.client(service.token("read"))
    assert reader.get("/api/alerts").status_code == 200
    assert reader.get("/api/alerts/history").status_code == 200
    assert reader.post("/api/alerts/failing/test", json={}).status_code == 403
    assert reader.post("/api/alerts/failing/silence", json={"minutes": 1}).status_code == 403
