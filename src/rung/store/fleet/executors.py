"""Executors of a fleet: one heartbeat row per process, as the message `executor/ID`.

Heartbeats are times on the database's clock, so the clocks of the hosts do not matter. Where the database's own clock
is set, a fail-over to another server included, an executor counts as dead too early or too late by as much.
An order to drain is the message `executor-drain/ID`; the executor reads it with its next heartbeat.
A dead executor whose runs were handed over is remembered for a day as the message `executor-lost/ID`, for alerts.
Unknown fields of a row are kept out and missing ones have defaults: two versions run side by side during an update.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import socket
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rung import __version__
from rung.core.domain.errors import ConfigError
from rung.core.policy.executor_health import LEASE_SECONDS, ExecutorHealth, check_lease, executor_health
from rung.store.fleet.database_clock import time_in, time_of
from rung.store.messages import as_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rung.store.backends.port import BackendConnection, Database, Readable
    from rung.store.journal.journal import Journal

FORGET_SECONDS: Final = 86_400.0  # after which a dead gateway or service is no longer listed
_ROWS: Final = "SELECT topic, body, at FROM message WHERE topic >= 'executor/' AND topic < 'executor0'"
_ORDERS: Final = "SELECT topic FROM message WHERE topic >= 'executor-drain/' AND topic < 'executor-drain0'"
_LOST: Final = (
    "SELECT topic, body FROM message WHERE topic >= 'executor-lost/' AND topic < 'executor-lost0' AND at >= ?"
)
_FORGET_LOST: Final = "DELETE FROM message WHERE topic >= 'executor-lost/' AND topic < 'executor-lost0' AND at < ?"
_PUT: Final = (
    "INSERT INTO message (topic, body, at) VALUES (?, ?, ?)"
    " ON CONFLICT (topic) DO UPDATE SET body = excluded.body, at = excluded.at"
)


class ExecutorRole(StrEnum):
    """Role of an executor in its fleet."""

    WORKER = "worker"
    GATEWAY = "gateway"
    SERVICE = "service"
    CONDUCTOR = "conductor"


class ExecutorState(StrEnum):
    """Whether an executor takes new work."""

    LIVE = "live"
    DRAINING = "draining"  # it takes no new runs and exits when those in hand have ended


ENGINES: Final = ("embedded", "dbos", "temporal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """One process of a fleet, as in its row. Times are on the database's clock.

    `detail`: what it has in hand: `runs` (a number), `queues` (names), `requests` (in flight).
    `health` is computed when the row is read.
    """

    id: str
    role: ExecutorRole
    host: str
    pid: int
    version: str
    engine: str = "embedded"
    state: ExecutorState = ExecutorState.LIVE
    started_at: float = 0.0
    heartbeat: float = 0.0
    lease: float = LEASE_SECONDS
    detail: Mapping[str, Any] = field(default_factory=dict)
    health: ExecutorHealth = ExecutorHealth.LIVE

    def __post_init__(self) -> None:
        check_lease(self.lease)
        if not self.id or "/" in self.id:
            raise ConfigError("id", self.id, "a non-empty name without /")

    @property
    def label(self) -> str:
        """Return its role and where it runs, for a person."""
        return f"{self.role} {self.host}:{self.pid}"


def new_executor(
    role: ExecutorRole, *, engine: str = "embedded", lease: float = LEASE_SECONDS, executor_id: str = ""
) -> Executor:
    """Return this process as an executor, with a random id: a restarted process is another executor."""
    if engine not in ENGINES:
        raise ConfigError("engine", engine, ", ".join(ENGINES))
    return Executor(
        id=executor_id or secrets.token_hex(8),
        role=ExecutorRole(role),
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        engine=engine,
        lease=lease,
    )


def announce(journal: Database, executor: Executor, now: float | None = None) -> Executor:
    """Write the first heartbeat of an executor and return it with its times; forget gateways and services long dead."""

    def work(connection: BackendConnection) -> Executor:
        at = time_in(connection, now)
        for topic, text, heartbeat in connection.execute(_ROWS):
            if at - heartbeat > FORGET_SECONDS and json.loads(text).get("role") in {"gateway", "service"}:
                connection.execute("DELETE FROM message WHERE topic = ?", (topic,))
        started = replace(executor, started_at=at, heartbeat=at)
        connection.execute(_PUT, (_topic(executor.id), _body(started), at))
        return started

    def present(connection: BackendConnection) -> bool:
        return _is_listed(connection, executor.id)

    return journal.write(work, present).result()


def beat(journal: Database, executor: Executor, now: float | None = None) -> Executor:
    """Write a heartbeat with the executor's state and detail; return it, draining if it was ordered to drain."""

    def work(connection: BackendConnection) -> Executor:
        at = time_in(connection, now)
        ordered = connection.execute("SELECT 1 FROM message WHERE topic = ?", (_order(executor.id),))
        beaten = replace(executor, heartbeat=at, state=ExecutorState.DRAINING if ordered else executor.state)
        connection.execute(_PUT, (_topic(executor.id), _body(beaten), at))
        return beaten

    return journal.write(work, lambda _: True).result()  # a lost heartbeat is made good by the next one


def list_missing(journal: Database, executor_id: str, lease: float, now: float | None = None) -> None:
    """Give an executor that has runs in hand, but no row, a row with a heartbeat now: it is dead a lease later if it is."""
    missing = Executor(
        id=executor_id, role=ExecutorRole.WORKER, host="unknown", pid=0, version="unknown", engine="dbos", lease=lease
    )

    def work(connection: BackendConnection) -> None:
        if not _is_listed(connection, executor_id):
            at = time_in(connection, now)
            connection.execute(_PUT, (_topic(executor_id), _body(replace(missing, started_at=at)), at))

    journal.write(work, lambda connection: _is_listed(connection, executor_id)).result()


def leave(journal: Database, executor_id: str) -> None:
    """Remove an executor that exits, and the order to drain it."""

    def work(connection: BackendConnection) -> None:
        for topic in (_topic(executor_id), _order(executor_id)):
            connection.execute("DELETE FROM message WHERE topic = ?", (topic,))

    journal.write(work, lambda connection: not _is_listed(connection, executor_id)).result()


def forget(journal: Database, executor: Executor) -> bool:
    """Remove a dead executor whose runs were handed over; False if it has beaten since, or somebody else removed it."""

    def work(connection: BackendConnection) -> bool:
        gone = connection.execute(
            "DELETE FROM message WHERE topic = ? AND at = ? RETURNING 1", (_topic(executor.id), executor.heartbeat)
        )
        if gone:
            connection.execute("DELETE FROM message WHERE topic = ?", (_order(executor.id),))
            died = executor.heartbeat + executor.lease
            connection.execute(_FORGET_LOST, (died - FORGET_SECONDS,))
            connection.execute(_PUT, (f"executor-lost/{executor.id}", json.dumps({"label": executor.label}), died))
        return bool(gone)

    return journal.write(work, lambda connection: not _is_listed(connection, executor.id)).result()


def lost_since(journal: Readable, since: float) -> dict[str, str]:
    """Return the executors that died after a time and were removed: their labels by id."""
    return {
        topic.removeprefix("executor-lost/"): str(json.loads(text).get("label", ""))
        for topic, text in journal.read(_LOST, (since,))
    }


def drain(journal: Database, executor_id: str, now: float | None = None) -> bool:
    """Order an executor to take no new runs and to exit when those in hand have ended; False if there is none."""

    def work(connection: BackendConnection) -> bool:
        if not _is_listed(connection, executor_id):
            return False
        connection.execute(_PUT, (_order(executor_id), "{}", time_in(connection, now)))
        return True

    def present(connection: BackendConnection) -> bool:
        return bool(connection.execute("SELECT 1 FROM message WHERE topic = ?", (_order(executor_id),)))

    return journal.write(work, present).result()


def executors(journal: Journal, now: float | None = None, *, observed_since: float = -math.inf) -> list[Executor]:
    """Return the executors with their health, by role, host and start. See `executor_health` for `observed_since`."""
    at = time_of(journal, now)  # before the rows are read: an age is never too high
    ordered = {topic.removeprefix("executor-drain/") for (topic,) in journal.read(_ORDERS)}
    found = [_executor(topic, text, heartbeat) for topic, text, heartbeat in journal.read(_ROWS)]
    listed = [
        replace(
            each,
            health=executor_health(each.heartbeat, each.lease, at, observed_since),
            state=ExecutorState.DRAINING if each.id in ordered else each.state,
        )
        for each in found
        if each is not None
    ]
    return sorted(listed, key=lambda each: (each.role, each.host, each.started_at, each.id))


def dead(journal: Journal, now: float | None = None, *, observed_since: float = -math.inf) -> list[Executor]:
    """Return the executors whose lease has expired: their runs may be handed to others."""
    found = executors(journal, now, observed_since=observed_since)
    return [each for each in found if each.health is ExecutorHealth.DEAD]


def find_executor(journal: Readable, executor_id: str) -> Executor | None:
    """Return one executor as in its row, without its health; None if it is not listed."""
    rows = journal.read("SELECT topic, body, at FROM message WHERE topic = ?", (_topic(executor_id),))
    return _executor(*rows[0]) if rows else None


def _executor(topic: str, text: str, heartbeat: float) -> Executor | None:
    """Return the executor of a row; None for a row that this version cannot read, as a newer role."""
    try:
        body: dict[str, Any] = json.loads(text)
        return Executor(
            id=topic.removeprefix("executor/"),
            role=ExecutorRole(body["role"]),
            host=str(body["host"]),
            pid=int(body["pid"]),
            version=str(body["version"]),
            engine=str(body.get("engine", "embedded")),
            state=ExecutorState(body.get("state", "live")),
            started_at=float(body.get("started_at", 0.0)),
            heartbeat=heartbeat,
            lease=float(body.get("lease", LEASE_SECONDS)),
            detail=dict(body.get("detail") or {}),
        )
    except (KeyError, TypeError, ValueError, ConfigError):
        return None


def _body(executor: Executor) -> str:
    names = ("role", "host", "pid", "version", "engine", "state", "started_at", "lease")
    table = {name: getattr(executor, name) for name in names}
    return as_json({**table, "detail": dict(executor.detail)}, f"the detail of executor {executor.id}")


def _is_listed(connection: BackendConnection, executor_id: str) -> bool:
    return bool(connection.execute("SELECT 1 FROM message WHERE topic = ?", (_topic(executor_id),)))


def _topic(executor_id: str) -> str:
    return f"executor/{executor_id}"


def _order(executor_id: str) -> str:
    return f"executor-drain/{executor_id}"
