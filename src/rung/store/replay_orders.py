"""Replay orders: an operator has a recorded call made again, by a gateway that shares the journal or by a process of its own.

An order is a message `replay/INCIDENT` to the gateways or `rerun/INCIDENT` to a process, sealed, because it may carry a key
that the client gave for this one call. Each gateway says in `replayer/HOLDER` that it is there, and which upstreams it has a
key of its own for.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.recovery.interventions import Intervention
from rung.store import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.store.backends.port import Readable
    from rung.store.journal.journal import Journal

GATEWAYS: Final = "replay"
PROCESS: Final = "rerun"
ORDER_SECONDS: Final = 30.0  # after which an order that no gateway took is void
PRESENT_SECONDS: Final = 30.0
_ORDERS: Final = ("replay/", "replay0")
_PRESENT: Final = "SELECT body FROM message WHERE topic >= 'replayer/' AND topic < 'replayer0'"
_PRESENT_TOPICS: Final = "SELECT topic, body FROM message WHERE topic >= 'replayer/' AND topic < 'replayer0'"


class ReplayOrder(NamedTuple):
    """Order to make the call of an incident again, as a new incident `id` of the session.

    `api_key`: key for the upstream, for this order alone. `wire`: API of a call that was not recorded, whose whole request is
    the prompt of the intervention.
    """

    id: str
    of: str
    session: str
    project: str
    intervention: Intervention
    api_key: str = ""
    wire: str = ""


def send_order(journal: Journal, order: ReplayOrder, now: float, to: str = GATEWAYS) -> None:
    """Leave an order for the gateways, or for a process that gets its id."""
    table = {**order._asdict(), "intervention": order.intervention._asdict()}
    sealed = journal.key.seal(json.dumps(table), _place(order.id))
    messages.send(journal, f"{to}/{order.id}", {"until": now + ORDER_SECONDS, "sealed": sealed}, now)


def pending_orders(journal: Readable) -> list[str]:
    """Return the ids of the orders that no gateway has taken."""
    rows = journal.read("SELECT topic FROM message WHERE topic >= ? AND topic < ?", _ORDERS)
    return [topic.removeprefix("replay/") for (topic,) in rows]


def read_order(journal: Journal, name: str) -> ReplayOrder | None:
    """Return an order without taking it; None if it is gone. Raises SealedElsewhere if it is for another account."""
    body = messages.latest(journal, f"replay/{name}")
    return None if body is None else _order(journal, name, body)


def take_order(journal: Journal, name: str, now: float, to: str = GATEWAYS) -> ReplayOrder | None:
    """Take an order; None if somebody else took it or its time is over. Exactly one caller gets it."""
    body = messages.take(journal, f"{to}/{name}")
    return None if body is None or body["until"] < now else _order(journal, name, body)


def announce(
    journal: Journal, holder: str, upstreams: Mapping[str, bool], now: float, status: Mapping[str, Any] | None = None
) -> None:
    """Say that a gateway is there, with its upstreams, whether it has a key of its own for each, and its status."""
    body = {"until": now + PRESENT_SECONDS, "upstreams": dict(upstreams), "status": dict(status or {})}
    messages.send(journal, f"replayer/{holder}", body, now)


def retire(journal: Journal, holder: str) -> None:
    """Say that a gateway has gone."""
    messages.take(journal, f"replayer/{holder}")


def present_upstreams(journal: Readable, now: float) -> dict[str, bool]:
    """Return the upstreams of the gateways that are there, and whether one of them has a key of its own for it."""
    found: dict[str, bool] = {}
    for (text,) in journal.read(_PRESENT):
        body: dict[str, Any] = json.loads(text)
        if body["until"] > now:
            for name, has_key in body["upstreams"].items():
                found[name] = found.get(name, False) or bool(has_key)
    return found


def present_statuses(journal: Readable, now: float) -> dict[str, dict[str, Any]]:
    """Return the status of each gateway that is there, by its name; those of older versions have none."""
    found = {}
    for topic, text in journal.read(_PRESENT_TOPICS):
        body: dict[str, Any] = json.loads(text)
        if body["until"] > now and body.get("status"):
            found[topic.removeprefix("replayer/")] = body["status"]
    return found


def _order(journal: Journal, name: str, body: Mapping[str, Any]) -> ReplayOrder:
    table = json.loads(journal.key.unseal(str(body["sealed"]), _place(name)))
    return ReplayOrder(**{**table, "intervention": Intervention.of(table["intervention"])})


def _place(name: str) -> str:
    return f"replay {name!r}"
