"""Reservations in the journal, so that processes which share it never spend the same dollars twice.

Each process that spends has one message, `held/HOLDER`: what it has reserved or leased under each limit, and until when that
counts if the process dies. Writers of a journal exclude each other, so a reservation is atomic.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.policy.purses import Purses, Reservation
from rung.core.policy.spend_limits import month_start
from rung.store import messages
from rung.store.queries.spend import spent_by_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rung.core.policy.spend_limits import SpendLimit
    from rung.store.backends.port import BackendConnection, Database, Readable, Row

    Query = Callable[[str, Sequence[Any]], list[Row]]  # inside or outside a transaction
    Held = Callable[[], Mapping[str, float]]  # read inside the transaction, so that no reservation is overwritten

HOLD_SECONDS: Final = 60.0
_TOPIC: Final = "held/"
_ALL: Final = "SELECT topic, body FROM message WHERE topic >= 'held/' AND topic < 'held0'"


class SpendRefusal(NamedTuple):
    """The limit that forbids a reservation, and the US dollars of it that are not spent."""

    limit: SpendLimit
    left: float


class OtherHolders(NamedTuple):
    """Whether other processes are present, and the US dollars that they have reserved, by limit."""

    present: bool
    held: Mapping[str, float]


def reserve(
    journal: Database,
    holder: str,
    held: Held,
    limits: Sequence[SpendLimit],
    dollars: float,
    now: float,
    seconds: float = HOLD_SECONDS,
) -> SpendRefusal | None:
    """Reserve dollars that a holder already counts in `held`. Return why it may not; None if it is granted."""

    def work(connection: BackendConnection) -> SpendRefusal | None:
        own = held()
        before = {**own, **{limit.id: own.get(limit.id, 0.0) - dollars for limit in limits}}
        purses = purses_of(connection.execute, {**live_holds(connection.execute, now), holder: before}, limits, now)
        refusing = purses.reserve(Reservation(limits=limits), dollars)
        if refusing is not None:
            return SpendRefusal(refusing, purses.left(refusing))
        put_hold(connection, holder, own, now, seconds)
        return None

    return journal.write(work, lambda connection: is_written(connection, holder, now)).result()


def publish(journal: Database, holder: str, held: Held, now: float) -> None:
    """Replace what a process has reserved; also tells others that it is present."""
    journal.write(
        lambda connection: put_hold(connection, holder, held(), now, HOLD_SECONDS),
        lambda connection: is_written(connection, holder, now),
    ).result()


def release(journal: Database, holder: str) -> None:
    """Free all that a process has reserved."""
    messages.take(journal, _TOPIC + holder)


def held_by_others(journal: Readable, holder: str, now: float) -> OtherHolders:
    """Return what all other live processes have reserved."""
    others = {name: held for name, held in live_holds(journal.read, now).items() if name != holder}
    return OtherHolders(bool(others), _sum(others))


def left(journal: Database, limits: Sequence[SpendLimit], now: float) -> float | None:
    """Return the US dollars that may still be reserved under all these limits; None without limits."""
    if not limits:
        return None
    purses = purses_of(journal.read, live_holds(journal.read, now), limits, now)
    return max(0.0, min(limit.limit - purses.used(limit.id) for limit in limits))


def refusing(journal: Database, limits: Sequence[SpendLimit], now: float) -> SpendRefusal | None:
    """Return the limit under which nothing is left to reserve; None if there is none."""
    purses = purses_of(journal.read, live_holds(journal.read, now), limits, now)
    exhausted = purses.exhausted(limits)
    return None if exhausted is None else SpendRefusal(exhausted, purses.left(exhausted))


def purses_of(
    query: Query, held: Mapping[str, Mapping[str, float]], limits: Sequence[SpendLimit], now: float
) -> Purses:
    """Return the purses of these limits: what the journal has recorded as spent, and what all processes hold."""
    purses = Purses()
    purses.spent = {limit.id: _recorded(query, limit, now) for limit in limits}
    purses.reserved = _sum(held)
    return purses


def _recorded(query: Query, limit: SpendLimit, now: float) -> float:
    """Return the US dollars that the journal has recorded as spent under a limit."""
    if limit.scope == "key":
        return spent_by_key(query, limit.id)
    if limit.scope == "session":
        rows = query("SELECT dollars FROM session WHERE id = ?", (limit.name,))
        return float(rows[0][0]) if rows else 0.0
    sql = "SELECT COALESCE(SUM(dollars), 0) FROM by_hour WHERE hour >= ?"
    values: list[Any] = [int(month_start(now) // 3_600)]
    if limit.scope == "project":
        sql, values = sql + " AND project = ?", [*values, limit.name]
    return float(query(sql, values)[0][0])


def live_holds(query: Query, now: float) -> dict[str, dict[str, float]]:
    """Return what each live process has reserved."""
    bodies = {topic.removeprefix(_TOPIC): json.loads(body) for topic, body in query(_ALL, ())}
    return {holder: body["held"] for holder, body in bodies.items() if body["until"] > now}


def _sum(held: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for amounts in held.values():
        for name, dollars in amounts.items():
            total[name] = total.get(name, 0.0) + dollars
    return total


def put_hold(connection: BackendConnection, holder: str, held: Mapping[str, float], now: float, seconds: float) -> None:
    """Replace what a process holds of each limit, inside a transaction."""
    body = json.dumps({"until": now + seconds, "held": dict(held)})
    connection.execute(
        "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
        " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at",
        (_TOPIC + holder, body, now),
    )


def is_written(connection: BackendConnection, holder: str, now: float) -> bool:
    """Return whether what a process wrote at this time is what it holds."""
    return bool(connection.execute("SELECT 1 FROM message WHERE topic = ? AND at = ?", (_TOPIC + holder, now)))
