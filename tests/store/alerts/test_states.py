"""States, history and waiting notifications of alerts: decided once, sent until they are sent, and never forgotten."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from rung.core.alerts.evaluation import AlertChange, AlertState, Reading
from rung.core.alerts.rules import AlertSettings, read_alerts
from rung.store import messages
from rung.store.alerts.outbox import RETRY_SECONDS, claim_next, has_due, record_delivery
from rung.store.alerts.states import KEEP_SECONDS, history, load_scopes, load_state, record, silence

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal

HIGH, LOW = Reading(5.0, "five"), Reading(0.0)


def settings(**rule: Any) -> AlertSettings:
    """Settings with one rule and two channels, of which one does not hear of the end."""
    channels = {
        "ops": {"type": "slack", "url_env": "OPS"},
        "log": {"type": "command", "run": ["log"], "resolved": False},
    }
    table = {"when": "stuck", "threshold": 3, "cooldown": 0, "channels": ["ops", "log"], **rule}
    return read_alerts({"channels": channels, "rules": {"r": table}})


ALERTS = settings()
RULE = ALERTS.rules["r"]
BOTH = ("ops", "log")


def fire(journal: Journal, reading: Reading, now: float, **options: Any) -> AlertChange | None:
    """Record a reading; return the change."""
    return record(journal, RULE, ALERTS, reading, now=now, **options).change


def test_a_change_is_stored_with_its_history_and_its_notifications(journal: Journal) -> None:
    """What fired is in the state, in the history, and waits for each channel; its end for those that want it."""
    assert fire(journal, HIGH, 1_000.0) is AlertChange.FIRED
    assert fire(journal, HIGH, 1_001.0) is None
    assert load_state(journal, "r").is_firing
    assert fire(journal, LOW, 1_002.0) is AlertChange.RESOLVED
    ended, fired = history(journal)
    assert [(one.notification.event, one.notification.value) for one in (fired, ended)] == [
        ("fired", 5.0),
        ("resolved", 0.0),
    ]
    assert fired.notification.alert == ended.notification.alert == load_state(journal, "r").alert
    assert (set(fired.deliveries), set(ended.deliveries)) == ({"ops", "log"}, {"ops"})
    assert history(journal, rule="other") == []
    assert len(history(journal, limit=1)) == 1


def test_of_several_processes_one_decides(make_journal: Callable[[], Journal]) -> None:
    """Processes that read the same figure at the same time fire once, and queue each notification once."""
    journals = [make_journal() for _ in range(4)]
    start = threading.Barrier(len(journals))
    changes: list[AlertChange | None] = []

    def run(journal: Journal) -> None:
        start.wait(30)
        changes.append(fire(journal, HIGH, 1_000.0))

    threads = [threading.Thread(target=run, args=(each,)) for each in journals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(map(str, changes)) == ["None", "None", "None", "fired"]
    claims = [claim_next(each, BOTH, f"p{n}", 60.0, now=1_001.0) for n, each in enumerate(journals)]
    assert sorted(one.channel for one in claims if one is not None) == ["log", "ops"]


def test_the_end_waits_for_its_beginning(journal: Journal) -> None:
    """A channel that could not be told of the beginning is told of it first: a page must not stay open."""
    fire(journal, HIGH, 1_000.0)
    fire(journal, LOW, 1_001.0)
    first = claim_next(journal, ("ops",), "a", 60.0, now=1_002.0)
    assert first is not None
    assert first.notification.event == "fired"
    assert claim_next(journal, ("ops",), "b", 60.0, now=1_002.0) is None
    record_delivery(journal, first, "a", now=1_003.0)
    second = claim_next(journal, ("ops",), "b", 60.0, now=1_003.0)
    assert second is not None
    assert (second.notification.event, second.notification.alert) == ("resolved", first.notification.alert)


def test_a_process_that_dies_while_it_sends_leaves_it_to_another(journal: Journal) -> None:
    """When the claim has ended, another process sends the same notification with the same id."""
    fire(journal, HIGH, 1_000.0)
    dying = claim_next(journal, ("ops",), "a", 60.0, now=1_000.0)
    assert dying is not None
    assert not has_due(journal, ("ops",), 1_059.0)
    assert has_due(journal, ("ops",), 1_060.0)
    other = claim_next(journal, ("ops",), "b", 60.0, now=1_060.0)
    assert other is not None
    assert other.notification == dying.notification
    record_delivery(journal, other, "b", now=1_061.0)
    record_delivery(journal, dying, "a", "late", now=1_062.0)  # it is no longer its own
    assert history(journal)[0].deliveries["ops"]["state"] == "sent"
    assert not has_due(journal, ("ops",), 1e9)


def test_a_failed_delivery_is_tried_again_and_then_given_up(journal: Journal) -> None:
    """Each failure waits longer, the last is recorded with its error, and no other process tries in between."""
    fire(journal, HIGH, 1_000.0)
    now = 1_000.0
    for number, pause in enumerate((*RETRY_SECONDS, None), 1):
        claim = claim_next(journal, ("ops",), "a", 60.0, now=now)
        assert claim is not None
        assert claim.attempt == number
        record_delivery(journal, claim, "a", f"HTTP {500 + number}", now=now)
        told = history(journal)[0].deliveries["ops"]
        assert (told["attempts"], told["error"]) == (number, f"HTTP {500 + number}")
        assert told["state"] == ("failed" if pause is None else "waiting")
        assert not has_due(journal, ("ops",), now + (pause or 1e9) - 1)
        now += pause or 0.0
    assert claim_next(journal, ("ops",), "a", 60.0, now=1e9) is None


def test_a_channel_of_another_process_is_left_to_it(journal: Journal) -> None:
    """A process sends only to the channels that it has."""
    fire(journal, HIGH, 1_000.0)
    assert claim_next(journal, ("other",), "a", 60.0, now=1_001.0) is None
    assert not has_due(journal, (), 1_001.0)


def test_a_silence_holds_in_all_scopes(journal: Journal) -> None:
    """A silenced rule fires without a notification, in a crew too, and is notified when the silence ends."""
    assert silence(journal, "r", 60.0, now=1_000.0) == 1_060.0
    assert fire(journal, HIGH, 1_001.0) is AlertChange.FIRED
    assert fire(journal, HIGH, 1_001.0, scope="crew:a.db") is AlertChange.FIRED
    assert all(entry.is_silenced and not entry.deliveries for entry in history(journal))
    assert not has_due(journal, BOTH, 1_050.0)
    assert list(load_scopes(journal, "r")) == ["crew:a.db"]
    assert record(journal, RULE, ALERTS, HIGH, now=1_060.0).notify is AlertChange.FIRED
    (entry,) = [one for one in history(journal) if not one.notification.scope]
    assert (entry.is_silenced, entry.notification.at, set(entry.deliveries)) == (False, 1_001.0, {"ops", "log"})
    assert silence(journal, "r", 0.0, now=1_070.0) == 1_070.0
    assert not load_state(journal, "r").is_silenced(1_070.0)


def test_a_restart_forgets_nothing(make_journal: Callable[[], Journal]) -> None:
    """Another process reads the state, the history and what waits as the first one left them."""
    first = make_journal()
    fire(first, HIGH, 1_000.0)
    first.close()
    second = make_journal()
    assert load_state(second, "r") == AlertState(
        is_firing=True,
        since=1_000.0,
        fired_at=1_000.0,
        alert=load_state(second, "r").alert,
        is_notified=True,
        value=5.0,
    )
    assert fire(second, HIGH, 1_001.0) is None
    assert has_due(second, BOTH, 1_001.0)


def test_what_a_newer_version_wrote_is_left_out(journal: Journal) -> None:
    """A row of the history with a figure that this version does not know is not shown, and the others are."""
    fire(journal, HIGH, 1_000.0)
    newer = {**history(journal)[0].notification.to_json(), "id": "x", "when": "latency"}
    messages.send(journal, "alert-entry/x", newer, 1_001.0)
    assert [one.notification.when for one in history(journal)] == ["stuck"]


def test_old_history_is_forgotten(journal: Journal) -> None:
    """The history is kept for ninety days."""
    fire(journal, HIGH, 1_000.0)
    fire(journal, LOW, 1_001.0 + KEEP_SECONDS)
    assert [one.notification.event for one in history(journal)] == ["resolved"]
