"""Slices of spend limits in the journal: what a process may spend without asking, as part of its message `held/HOLDER`.

The message says what the process has reserved and not yet recorded, and what it has leased beyond that. So every process
that reserves in the journal, of this version or an earlier one, leaves it alone. Writers of a journal exclude each other, so
a lease is atomic. Times are on the database's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rung.core.policy.slices import slice_size
from rung.store.fleet.database_clock import time_in
from rung.store.spend_holds import SpendRefusal, is_written, live_holds, purses_of, put_hold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rung.core.policy.spend_limits import SpendLimit
    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal

LEASE_SECONDS: Final = 60.0  # for which a process may use its slices without having reached the journal
DOUBT_SECONDS: Final = 900.0  # after that, for which a process that comes back can still record what it spent
STORE_SECONDS: Final = 5.0  # for which a caller waits for the journal
_FORGET_SECONDS: Final = 86_400.0  # after which the message of a dead process is removed
_FORGET: Final = "DELETE FROM message WHERE topic >= 'held/' AND topic < 'held0' AND at < ?"


class WantedSlice(NamedTuple):
    """A limit that a process uses: dollars that it would like to have leased, and the largest that it reserves at once."""

    limit: SpendLimit
    want: float
    largest: float


def lease_spend(
    journal: Journal,
    holder: str,
    held: Mapping[str, float],
    leased: Mapping[str, float],
    wanted: Sequence[WantedSlice],
    limits: Sequence[SpendLimit] = (),
    more: float = 0.0,
    now: float | None = None,
) -> Mapping[str, float] | SpendRefusal:
    """Reserve `more` dollars under `limits`, and lease slices of the wanted limits.

    Return what the process holds of each limit then, or why it may not reserve. `held`: what it has reserved, and spent but
    not recorded, without `more`. `leased`: what it has leased, and may be using meanwhile; less is never returned. Blocks on
    the journal, for at most `STORE_SECONDS`.
    """
    written_at: list[float] = []

    def work(connection: BackendConnection) -> Mapping[str, float] | SpendRefusal:
        at = time_in(connection, now)
        own = {name: max(held.get(name, 0.0), leased.get(name, 0.0)) for name in {*held, *leased}}
        holds = {**live_holds(connection.execute, at), holder: own}
        known = {limit.id: limit for limit in (*(each.limit for each in wanted), *limits)}
        purses = purses_of(connection.execute, holds, list(known.values()), at)
        refusing = purses.exhausted(limits)
        if refusing is not None:
            return SpendRefusal(refusing, purses.left(refusing))
        reserved = {limit.id: held.get(limit.id, 0.0) + more for limit in limits}
        amounts = {name: max(own.get(name, 0.0), reserved.get(name, 0.0)) for name in {*own, *reserved}}
        for each in wanted:
            amount, before = amounts.get(each.limit.id, 0.0), own.get(each.limit.id, 0.0)
            left = each.limit.limit - purses.used(each.limit.id) - (amount - before)
            used = reserved.get(each.limit.id, held.get(each.limit.id, 0.0))
            amounts[each.limit.id] = amount + _extra(each, left, amount - used, len(holds))
        written_at[:] = [at]
        connection.execute(_FORGET, (at - _FORGET_SECONDS,))
        put_hold(connection, holder, amounts, at, LEASE_SECONDS + DOUBT_SECONDS)
        return amounts

    def present(connection: BackendConnection) -> bool:
        return bool(written_at) and is_written(connection, holder, written_at[0])

    return journal.write(work, present).result(STORE_SECONDS)


def _extra(each: WantedSlice, left: float, slack: float, holders: int) -> float:
    """Return what a process leases of a limit beyond its `slack`: nothing that would not be enough for its next call."""
    extra = slice_size(left, holders, 0.0, each.want)
    return extra if extra + slack >= each.largest else 0.0
