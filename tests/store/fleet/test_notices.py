"""Notices that one of several services sends, in both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rung.store import messages
from rung.store.fleet.notices import KEEP_SECONDS, SEND_SECONDS, NoticeState, claim_notice, settle_notice

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

MINE, SENDING, SENT = NoticeState


def test_one_service_sends_a_notice(journal: Journal) -> None:
    """While one service sends it the others do not, and once it is sent nobody does."""
    assert claim_notice(journal, "ask/i/1", "a", 1000.0) is MINE
    assert claim_notice(journal, "ask/i/1", "b", 1001.0) is SENDING
    assert claim_notice(journal, "ask/i/2", "b", 1001.0) is MINE
    settle_notice(journal, "ask/i/1", "a", sent=True, now=1002.0)
    assert [claim_notice(journal, "ask/i/1", name, 9000.0) for name in ("a", "b")] == [SENT, SENT]


def test_a_notice_that_failed_is_left_to_any_service(journal: Journal) -> None:
    """A service that could not send it lets the next one try at once; one that died, when its time is over."""
    assert claim_notice(journal, "x", "a", 1000.0) is MINE
    settle_notice(journal, "x", "a", sent=False)
    assert claim_notice(journal, "x", "b", 1001.0) is MINE
    assert claim_notice(journal, "x", "a", 1000.0 + SEND_SECONDS) is SENDING
    assert claim_notice(journal, "x", "a", 1001.0 + SEND_SECONDS) is MINE
    settle_notice(journal, "x", "b", sent=False)  # too late: it is no longer its own
    assert claim_notice(journal, "x", "b", 1002.0 + SEND_SECONDS) is SENDING


def test_old_notices_are_forgotten(journal: Journal) -> None:
    """A notice is kept as long as its item can be in the inbox, and other messages stay."""
    settle_notice(journal, "old", "a", sent=True, now=1000.0)
    messages.send(journal, "notify", {"kept": True}, 1000.0)
    claim_notice(journal, "new", "a", 1001.0 + KEEP_SECONDS)
    assert messages.latest(journal, "notice/old") is None
    assert messages.latest(journal, "notice/new") is not None
    assert messages.latest(journal, "notify") == {"kept": True}
