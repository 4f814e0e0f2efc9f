"""Reservations in the journal: atomic between processes, freed by release and by time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from rung.core.policy.spend_limits import SpendLimit, SpendLimits
from rung.store import spend_holds
from rung.store.queries.spend import charge_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from rung.store.journal.journal import Journal

NOW = 1_790_000_000.0
LIMITS = [
    SpendLimit("key", "", 2.0, "a-key"),
    *SpendLimits(session=9.0, project=9.0, month=9.0).limits_for("s", "p", "m"),
]


def reserve(
    journal: Journal, holder: str, held: float, more: float, now: float = NOW
) -> spend_holds.SpendRefusal | None:
    amounts = {limit.id: held for limit in LIMITS}
    return spend_holds.reserve(journal, holder, lambda: amounts, LIMITS, more, now)


def test_reservations_of_processes_add_up(make_journal: Callable[[], Journal]) -> None:
    """What others hold and what is spent counts; a hold ends with its release or its time."""
    one, other = make_journal(), make_journal()
    assert spend_holds.left(one, LIMITS, NOW) == 2.0
    assert reserve(one, "one", 1.5, 1.5) is None
    assert spend_holds.left(other, LIMITS, NOW) == pytest.approx(0.5)
    assert reserve(other, "other", 1.0, 1.0) is None  # something is left: the last may exceed it
    assert reserve(other, "other", 1.5, 0.5) == spend_holds.SpendRefusal(LIMITS[0], 2.0)
    assert spend_holds.held_by_others(one, "one", NOW) == (True, {limit.id: 1.0 for limit in LIMITS})
    spend_holds.release(one, "one")
    assert spend_holds.left(other, LIMITS, NOW) == pytest.approx(1.0)
    charge_keys(one, {"a-key": 0.5}, NOW)
    assert spend_holds.left(other, LIMITS, NOW) == pytest.approx(0.5)
    assert spend_holds.left(other, LIMITS, NOW + spend_holds.HOLD_SECONDS) == pytest.approx(1.5)
    spend_holds.publish(other, "other", dict, NOW)
    assert spend_holds.held_by_others(one, "one", NOW) == (True, {})
    assert spend_holds.left(one, [], NOW) is None


def test_a_race_for_the_last_dollars(make_journal: Callable[[], Journal]) -> None:
    """Of 16 holders that reserve a dollar of two at once, two are granted it."""
    journals, granted, ready = [make_journal() for _ in range(4)], [], threading.Barrier(16)

    def run(number: int) -> None:
        ready.wait()
        if reserve(journals[number % 4], f"holder-{number}", 1.0, 1.0, NOW + number / 1_000) is None:
            granted.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 2
