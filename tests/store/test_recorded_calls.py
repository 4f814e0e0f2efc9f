"""Recorded calls: sealed, bound to their incident, bounded in number and time, and deleted with their incident."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

import rung
from rung.core.domain.errors import SealedElsewhere, StoreDamaged
from rung.core.policy.call_costs import SessionUsage
from rung.core.recovery.interventions import Intervention, InterventionType
from rung.store import recorded_calls
from rung.store.journal.retention import prune
from rung.store.recorded_calls import GATEWAY, MAX_PER_SESSION, RecordedCall, record_call, recorded_call
from rung.store.replay_orders import (
    ORDER_SECONDS,
    PRESENT_SECONDS,
    ReplayOrder,
    announce,
    pending_orders,
    present_upstreams,
    read_order,
    retire,
    send_order,
    take_order,
)
from rung.store.sealing import JournalKey
from rung.store.session_usage import add_usage, session_usage
from rung.testing import HttpError, Script

if TYPE_CHECKING:
    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal

CALL = RecordedCall(GATEWAY, {"body": "what a client has said"})
DAY = 86_400.0


@pytest.fixture(autouse=True)
def own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNG_JOURNAL_KEY", "a key that is only for this test")


def test_a_call_comes_back_as_it_was(journal: Journal) -> None:
    """Its way in is readable without the key; the rest is not."""
    record_call(journal, "s", "i-1", CALL, DAY)
    assert recorded_call(journal, "s", "i-1") == CALL
    assert recorded_calls.recorded_way_in(journal, "s", "i-1") == GATEWAY
    assert recorded_call(journal, "s", "i-2") is None
    ((body,),) = journal.read("SELECT body FROM message")
    assert "what a client has said" not in body


def test_another_key_and_another_place(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call cannot be read under another key, nor used for another incident."""
    record_call(journal, "s", "i-1", CALL, DAY)
    topics = [topic for (topic,) in journal.read("SELECT topic FROM message")]
    journal.write(
        lambda connection: connection.execute("UPDATE message SET topic = ?", (topics[0].replace("i-1", "i-2"),)),
        lambda _: False,
    ).result()
    with pytest.raises(StoreDamaged, match="moved from another place"):
        recorded_call(journal, "s", "i-2")
    monkeypatch.setenv("RUNG_JOURNAL_KEY", "the key of somebody else, who reads")
    journal.key = JournalKey()
    with pytest.raises(SealedElsewhere):
        recorded_call(journal, "s", "i-2")


def test_the_last_few_of_a_session_are_kept(journal: Journal) -> None:
    """Each session keeps its newest calls; other sessions are not affected."""
    record_call(journal, "other", "o", CALL, DAY, 1_000.0)
    for n in range(MAX_PER_SESSION + 3):
        record_call(journal, "s", f"i-{n}", CALL, DAY, 1_000.0 + n)
    kept = [n for n in range(MAX_PER_SESSION + 3) if recorded_call(journal, "s", f"i-{n}", 2_000.0) is not None]
    assert kept == list(range(3, MAX_PER_SESSION + 3))
    assert recorded_call(journal, "other", "o", 2_000.0) == CALL


def test_their_time_is_limited(journal: Journal) -> None:
    """A call is not returned after its time, and the next sweep deletes it."""
    record_call(journal, "s", "old", CALL, DAY, 1_000.0)
    assert recorded_call(journal, "s", "old", 1_000.0 + DAY - 1) == CALL
    assert recorded_call(journal, "s", "old", 1_000.0 + DAY + 1) is None
    record_call(journal, "t", "new", CALL, DAY, 1_000.0 + 2 * DAY)
    assert len(journal.read("SELECT 1 FROM message")) == 1


def test_they_are_pruned_with_their_incident(journal: Journal) -> None:
    """Who prunes the journal deletes the recorded calls of the incidents, too."""
    session = rung.Session("small", "s")
    outcome = rung.recover_sync(Script(HttpError(401, "no")), "x", policy="call", journal=journal, session=session)
    assert journal.flush()
    record_call(journal, "s", outcome.id, CALL, DAY)
    assert prune(journal, older_than=1e11).incidents == 1
    assert recorded_call(journal, "s", outcome.id) is None


def test_orders_reach_one_taker(journal: Journal) -> None:
    """An order is sealed, taken once, and void after its time; gateways that are there are seen until they have gone."""
    order = ReplayOrder("again-1", "i-1", "s", "shop", Intervention(InterventionType.RETRY, "ada"), "sk-once")
    send_order(journal, order, 1_000.0)
    assert pending_orders(journal) == ["again-1"]
    assert "sk-once" not in str(journal.read("SELECT body FROM message"))
    assert read_order(journal, "again-1") == order
    assert take_order(journal, "again-1", 1_001.0) == order
    assert take_order(journal, "again-1", 1_001.0) is None
    send_order(journal, order, 1_000.0)
    assert take_order(journal, "again-1", 1_000.0 + ORDER_SECONDS + 1) is None
    announce(journal, "one", {"claude": True}, 1_000.0)
    announce(journal, "other", {"claude": False, "gpt": False}, 1_000.0)
    assert present_upstreams(journal, 1_001.0) == {"claude": True, "gpt": False}
    retire(journal, "one")
    assert present_upstreams(journal, 1_001.0) == {"claude": False, "gpt": False}
    assert not present_upstreams(journal, 1_000.0 + PRESENT_SECONDS + 1)


def test_usage_adds_up(journal: Journal) -> None:
    """Tokens of a session are added, by whichever process reports them."""
    add_usage(journal, {}, 1.0)
    add_usage(journal, {"s": SessionUsage(1, 10, 5, 2), "t": SessionUsage(1, 1, 1, 0)}, 1.0)
    add_usage(journal, {"s": SessionUsage(2, 20, 5, 0)}, 2.0)
    assert session_usage(journal, "s") == SessionUsage(3, 30, 10, 2)
    assert session_usage(journal, "unknown") == SessionUsage()


def test_usage_of_another_version_is_read(journal: Journal) -> None:
    """A row with fewer counts, or with more, that another version has written is read."""
    for session, body in (("older", "[1, 10, 5, 2]"), ("newer", "[1, 10, 5, 2, 3, 1, 9]")):
        journal.write(partial(_insert_usage, session, body), lambda _: False).result()
    assert session_usage(journal, "older") == SessionUsage(1, 10, 5, 2)
    assert session_usage(journal, "newer") == SessionUsage(1, 10, 5, 2, 3, 1)


def _insert_usage(session: str, body: str, connection: BackendConnection) -> None:
    connection.execute("INSERT INTO message (topic, body, at) VALUES (?, ?, 1.0)", (f"usage/{session}", body))
