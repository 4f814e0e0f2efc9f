"""Orders of operators to running recoveries: accepted only while the incident is open, and answered if it ends first.

A process that ends an incident writes its last events in one transaction with the answer to an order that it did not
take. So an accepted order is carried out, or the person reads that it was too late.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rung.store.messages import as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rung.core.domain.events import Ordered
    from rung.core.recovery.interventions import Intervention
    from rung.store.backends.port import BackendConnection, Database

TOO_LATE: Final = "too late: the recovery ended before it could take the order"
_PUT: Final = (
    "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
    " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at"
)
_OPEN: Final = "SELECT 1 FROM incident WHERE id = ? AND ended_at IS NULL"


def order_recovery(database: Database, incident: str, order: Intervention, now: float) -> bool:
    """Leave an order for the recovery of an incident; return False, and leave none, if the incident has ended."""
    topic, body = f"order/{incident}", as_json(order._asdict(), "the order")

    def work(connection: BackendConnection) -> bool:
        if not connection.execute(_OPEN, (incident,)):
            return False
        connection.execute(_PUT, (topic, body, now))
        return True

    return database.write(
        work,
        lambda connection: bool(connection.execute("SELECT 1 FROM message WHERE topic = ? AND at = ?", (topic, now))),
    ).result()


def settle_orders(
    connection: BackendConnection, taken: Sequence[tuple[str, Ordered]], ended: Sequence[tuple[str, float]]
) -> None:
    """Remove the orders that recoveries have taken; answer those of incidents that have ended since."""
    for incident, event in taken:
        _remove_taken(connection, incident, event)
    for incident, at in ended:
        if connection.execute("DELETE FROM message WHERE topic = ? RETURNING 1", (f"order/{incident}",)):
            connection.execute(_PUT, (f"result/{incident}", json.dumps({"ok": False, "text": TOO_LATE}), at))


def _remove_taken(connection: BackendConnection, incident: str, event: Ordered) -> None:
    topic = f"order/{incident}"
    for (body,) in connection.execute("SELECT body FROM message WHERE topic = ?", (topic,)):
        order = json.loads(body)
        taken = (event.action, event.by, event.model)  # the journal may have shortened the prompt
        if isinstance(order, dict) and tuple(order.get(name) or "" for name in ("action", "by", "model")) == taken:
            connection.execute("DELETE FROM message WHERE topic = ? AND body = ?", (topic, body))
