"""State that the processes of a fleet exchange: slices of limits, circuits, and keys that rest. One message per fleet.

`exchange` applies what one process tells, in one transaction, and returns what all know. Times are on the database's clock. The message is `shared/FLEET`; fields that this version does not know are
kept, and missing ones have defaults: two versions run side by side during an update.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from rung.core.policy.key_pool import KeyState, KeyStatus
from rung.core.policy.shared_circuits import CircuitReport, SharedCircuit, merge_circuits
from rung.core.policy.slices import Lease, SharedUse, unused, without
from rung.core.policy.slices import exchange as exchange_slice
from rung.store.fleet.database_clock import time_in, time_of
from rung.store.messages import latest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rung.core.policy.slices import SharedLimit, SliceRequest
    from rung.store.backends.port import BackendConnection
    from rung.store.journal.journal import Journal

T = TypeVar("T")
HOLDER_SECONDS: Final = 30.0  # after which a process that did not exchange is no longer listed
STORE_SECONDS: Final = 5.0  # for which a process waits for the journal
MAX_RESTS: Final = 1_000
UNUSED_SECONDS: Final = 3_600.0  # after which a limit is forgotten that nobody holds a slice of
_TOPIC: Final = "shared/"
_PUT: Final = (
    "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
    " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at"
)


class LimitRequest(NamedTuple):
    """A limit by its settings, and what a process asks of it."""

    limit: SharedLimit
    request: SliceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReport:
    """Report of one process. `number` grows with each report; `rests`: None for a key that works again."""

    number: int
    circuits: CircuitReport = field(default_factory=lambda: CircuitReport(opened={}))
    limits: Mapping[str, LimitRequest] = field(default_factory=dict)
    rests: Mapping[str, KeyStatus | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """Shared state of all processes, as of `now` on the database's clock; `leases` are those of the process that asked."""

    now: float
    circuits: Mapping[str, SharedCircuit]
    leases: Mapping[str, Lease]
    rests: Mapping[str, KeyStatus]
    holders: frozenset[str]


def exchange(journal: Journal, fleet: str, holder: str, report: FleetReport, now: float | None = None) -> FleetView:
    """Tell what a process has learned and used, and return what all know. Blocks on the journal."""

    def merge(document: dict[str, Any], at: float) -> FleetView:
        leases = {name: _exchange_limit(document, name, holder, each, at) for name, each in report.limits.items()}
        return _view(document, leases, at)

    return _transact(journal, fleet, holder, report, merge, now)


def leave(journal: Journal, fleet: str, holder: str, report: FleetReport, now: float | None = None) -> None:
    """Tell what a process has learned and used, return its slices, and take it off the list. Blocks on the journal."""

    def merge(document: dict[str, Any], at: float) -> None:
        for name, (limit, request) in report.limits.items():
            use = without(limit, _use(document, name, limit, at), holder, request, at)
            document["limits"][name] = _use_json(use)
        document["holders"].pop(holder, None)

    _transact(journal, fleet, holder, report, merge, now)


def read_fleet_view(journal: Journal, fleet: str, now: float | None = None) -> FleetView:
    """Return what all processes know, without leases. Blocks on the journal."""
    document = _parse(latest(journal, _TOPIC + fleet))
    return _view(document, {}, time_of(journal, now))


def _transact(
    journal: Journal,
    fleet: str,
    holder: str,
    report: FleetReport,
    merge: Callable[[dict[str, Any], float], T],
    now: float | None,
) -> T:
    topic = _TOPIC + fleet

    def work(connection: BackendConnection) -> T:
        at, document = time_in(connection, now), _read(connection, topic)
        document["holders"] = {
            name: row for name, row in document["holders"].items() if at < float(row[1]) + HOLDER_SECONDS
        }
        document["holders"][holder] = [report.number, at]
        circuits = merge_circuits(_circuits(document), holder, report.circuits, at)
        document["circuits"] = {key: list(circuit) for key, circuit in circuits.items()}
        document["rests"] = _merge_rests(document["rests"], report.rests, at)
        result = merge(document, at)
        document["limits"] = {
            name: use
            for name, use in document["limits"].items()
            if at < UNUSED_SECONDS + max(use["at"], *(row[2] for row in use["leases"].values()), 0.0)
        }
        connection.execute(_PUT, (topic, json.dumps(document, separators=(",", ":")), at))
        return result

    def present(connection: BackendConnection) -> bool:
        return bool(_read(connection, topic)["holders"].get(holder, [0])[0] == report.number)

    return journal.write(work, present).result(STORE_SECONDS)


def _exchange_limit(document: dict[str, Any], name: str, holder: str, each: LimitRequest, at: float) -> Lease:
    use, lease = exchange_slice(each.limit, _use(document, name, each.limit, at), holder, each.request, at)
    document["limits"][name] = _use_json(use)
    return lease


def _merge_rests(rows: dict[str, Any], reported: Mapping[str, KeyStatus | None], at: float) -> dict[str, Any]:
    rests: dict[str, list[Any]] = {key: list(row) for key, row in rows.items() if float(row[1]) > at}
    for key, status in reported.items():
        rests.pop(key, None)
        if status is not None and status.until > at:
            rests[key] = [str(status.state), status.until]
    return dict(list(rests.items())[-MAX_RESTS:])


# -- the document --------------------------------------------------------------------------------------


def _read(connection: BackendConnection, topic: str) -> dict[str, Any]:
    rows = connection.execute("SELECT body FROM message WHERE topic = ?", (topic,))
    return _parse(json.loads(rows[0][0]) if rows else None)


def _parse(document: Any) -> dict[str, Any]:
    return {"holders": {}, "circuits": {}, "limits": {}, "rests": {}, **(document or {})}


def _circuits(document: Mapping[str, Any]) -> dict[str, SharedCircuit]:
    fields = len(SharedCircuit._fields)
    return {key: SharedCircuit(*row[:fields]) for key, row in document["circuits"].items()}


def _view(document: Mapping[str, Any], leases: Mapping[str, Lease], at: float) -> FleetView:
    states = set(KeyState)
    return FleetView(
        now=at,
        circuits=_circuits(document),
        leases=leases,
        rests={
            key: KeyStatus(KeyState(row[0]), float(row[1]))
            for key, row in document["rests"].items()
            if row[0] in states
        },
        holders=frozenset(document["holders"]),
    )


def _use(document: Mapping[str, Any], name: str, limit: SharedLimit, at: float) -> SharedUse:
    table = document["limits"].get(name)
    if table is None:
        return unused(limit, at)
    fields = len(Lease._fields)
    leases = {holder: Lease(*row[:fields]) for holder, row in table["leases"].items()}
    return SharedUse(used=table["used"], at=table["at"], leases=leases)


def _use_json(use: SharedUse) -> dict[str, Any]:
    return {"used": use.used, "at": use.at, "leases": {holder: list(lease) for holder, lease in use.leases.items()}}
