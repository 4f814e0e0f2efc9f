"""Exchange of a fleet's limits, circuits and resting keys in one message of the journal, on both back ends."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from rung.core.policy.key_pool import KeyState, KeyStatus
from rung.core.policy.shared_circuits import CircuitReport
from rung.core.policy.slices import SharedLimit, SliceHolder
from rung.store.fleet.slices import FleetReport, LimitRequest, exchange, leave, read_fleet_view
from rung.store.messages import latest, send

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal

NOW = 1_790_000_000.0
LIMIT = SharedLimit(amount=100.0, doubt_seconds=60.0)


def report(number: int, holder: SliceHolder, need: float = 0.0, limit: SharedLimit = LIMIT) -> FleetReport:
    return FleetReport(number=number, limits={"tokens": LimitRequest(limit, holder.request(NOW, need))})


def test_slices_are_leased_renewed_and_returned(make_journal: Callable[[], Journal]) -> None:
    """Two processes lease from one limit, and what one returns the other gets."""
    one, other, a, b = make_journal(), make_journal(), SliceHolder(), SliceHolder()
    a.apply(exchange(one, "f", "a", report(1, a, 60.0), NOW).leases["tokens"], 10.0)
    b.apply(exchange(other, "f", "b", report(1, b, 60.0), NOW).leases["tokens"], 10.0)
    assert (a.slack, b.slack) == (60.0, 0.0)
    assert a.take(10.0, NOW)
    a.apply(exchange(one, "f", "a", report(2, a), NOW + 1).leases["tokens"], 10.0)
    a.apply(exchange(one, "f", "a", report(3, a), NOW + 2).leases["tokens"], 10.0)
    view = exchange(other, "f", "b", report(2, b, 60.0), NOW + 3)
    b.apply(view.leases["tokens"], 10.0)
    assert b.slack == 60.0
    assert view.holders == {"a", "b"}
    leave(other, "f", "b", report(3, b), NOW + 4)
    assert read_fleet_view(one, "f", NOW + 4).holders == {"a"}
    assert exchange(one, "f", "a", report(4, a, 90.0), NOW + 5).leases["tokens"].out == 90.0
    assert read_fleet_view(one, "another", NOW).holders == frozenset()


def test_a_race_for_the_last_tokens(make_journal: Callable[[], Journal]) -> None:
    """Of 16 holders that lease 30 of 100 tokens at once, three get them."""
    journals, granted, ready = [make_journal() for _ in range(4)], [], threading.Barrier(16)

    def run(number: int) -> None:
        ready.wait()
        lease = exchange(journals[number % 4], "f", f"h{number}", report(1, SliceHolder(), 30.0), NOW).leases["tokens"]
        granted.append(lease.out)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(granted) == [0.0] * 13 + [30.0] * 3


def test_circuits_and_resting_keys_are_known_to_all(journal: Journal) -> None:
    """An open circuit and a key that rests are told to all, until they end."""
    exhausted = KeyStatus(KeyState.EXHAUSTED, NOW + 50)
    told = FleetReport(number=1, circuits=CircuitReport(opened={"k": 3.0}), rests={"x": exhausted, "y": exhausted})
    exchange(journal, "f", "a", told, NOW)
    view = exchange(journal, "f", "b", FleetReport(number=1, rests={"y": None}), NOW + 1)
    assert view.circuits["k"].is_open
    assert view.circuits["k"].probe_at == NOW + 3
    assert view.rests == {"x": exhausted}
    later = exchange(journal, "f", "b", FleetReport(number=2), NOW + 50)
    assert not later.rests
    assert later.holders == {"b"}


def test_the_database_tells_the_time(journal: Journal) -> None:
    """Without a time, leases are on the database's clock."""
    view = exchange(journal, "f", "a", report(1, SliceHolder(), 1.0))
    assert view.leases["tokens"].until == view.now + LIMIT.lease_seconds
    assert view.now > NOW / 2


def test_unknown_fields_of_a_newer_version_stay(journal: Journal) -> None:
    """A document with more fields and longer rows is read, and its other fields are kept."""
    exchange(journal, "f", "a", FleetReport(number=1, circuits=CircuitReport(opened={"k": 3.0})), NOW)
    document = latest(journal, "shared/f")
    document["circuits"]["k"].append("more")
    document["rests"]["z"] = ["unheard of", NOW + 99]
    send(journal, "shared/f", {**document, "later": 7}, NOW)
    view = exchange(journal, "f", "b", FleetReport(number=1), NOW + 1)
    assert view.circuits["k"].is_open
    assert dict(view.rests) == {}
    assert latest(journal, "shared/f")["later"] == 7


def test_limits_that_nobody_uses_are_forgotten(journal: Journal) -> None:
    """The document does not grow with limits of the past."""
    holder = SliceHolder()
    exchange(journal, "f", "a", report(1, holder, 1.0), NOW)
    leave(journal, "f", "a", report(2, holder), NOW + 1)
    assert "tokens" in latest(journal, "shared/f")["limits"]
    exchange(journal, "f", "b", FleetReport(number=1), NOW + 4_000)
    assert json.dumps(latest(journal, "shared/f")["limits"]) == "{}"
