"""Overview of a fleet for an operator: executors, open runs, leases, queues, versions and shared limits, at one moment.

Leases of runs are times on the clock of their owner's host, so they are right to within the skew of the hosts' clocks.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rung.core.policy.executor_health import ExecutorHealth
from rung.core.policy.slices import Lease
from rung.store.durable_runs import LEASE_SECONDS
from rung.store.fleet.database_clock import time_of
from rung.store.fleet.executors import executors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rung.store.backends.port import Readable
    from rung.store.fleet.executors import Executor
    from rung.store.journal.journal import Journal

EXPIRING_SECONDS: Final = LEASE_SECONDS / 3  # an owner renews its lease before so little of it is left
MAX_LEASES: Final = 50
_RUNS: Final = (
    "SELECT task, owner, count(*), MIN(made_at) FROM run WHERE state = 'open' GROUP BY task, owner ORDER BY task, owner"
)
_LEASES: Final = "SELECT id, task, owner, lease FROM run WHERE state = 'open' AND owner <> '' AND lease < ? ORDER BY lease, id LIMIT ?"
# A recovery (task '') belongs to the call that made it: it waits for that, not for a worker.
_WAITING: Final = (
    "SELECT task, count(*), MIN(CASE WHEN owner = '' THEN touched_at ELSE lease END) FROM run"
    " WHERE state = 'open' AND task <> '' AND (owner = '' OR lease < ?) GROUP BY task ORDER BY task"
)
_SHARED: Final = "SELECT topic, body FROM message WHERE topic >= 'shared/' AND topic < 'shared0' ORDER BY topic"


class OpenRuns(NamedTuple):
    """Open runs of a task with one owner; without one, `host` is empty and `pid` 0. `task` is empty for recoveries."""

    task: str
    host: str
    pid: int
    executor: str  # id of the executor that owns them, if that is known
    open: int
    oldest_at: float


class ExpiringLease(NamedTuple):
    """Lease of a run that its owner has not renewed in time; expired if `expires_in` is negative."""

    run: str
    task: str
    host: str
    pid: int
    expires_in: float


class Queue(NamedTuple):
    """Runs that wait for a worker, and since how many seconds the oldest does."""

    engine: str
    name: str
    waiting: int
    lag: float


class VersionCount(NamedTuple):
    """Number of executors of a version of Rung that are not dead."""

    version: str
    executors: int


class SharedLimitUse(NamedTuple):
    """A limit that the processes share: what was used of it, and what is out in slices, with so many holders."""

    fleet: str
    name: str
    used: float
    out: float
    holders: int


class FleetOverview(NamedTuple):
    """A fleet at the time `at` of the database."""

    at: float
    executors: list[Executor]
    runs: list[OpenRuns]
    leases: list[ExpiringLease]
    queues: list[Queue]
    versions: list[VersionCount]
    limits: list[SharedLimitUse]


def load_overview(journal: Journal, now: float | None = None) -> FleetOverview:
    """Read the fleet that shares a journal."""
    at = time_of(journal, now)
    listed = executors(journal, at)
    alive = [each for each in listed if each.health is not ExecutorHealth.DEAD]
    counts = Counter(each.version for each in alive)
    return FleetOverview(
        at,
        listed,
        _open_runs(journal, listed),
        _expiring_leases(journal, at),
        [*_embedded_queues(journal, at), *_engine_queues(alive)],
        [VersionCount(version, number) for version, number in sorted(counts.items())],
        list(_limits(journal)),
    )


def _open_runs(journal: Readable, listed: Iterable[Executor]) -> list[OpenRuns]:
    ids = {(each.host, each.pid): each.id for each in listed}
    found = []
    for task, owner, number, oldest in journal.read(_RUNS):
        host, pid = _process(owner)
        found.append(OpenRuns(task, host, pid, ids.get((host, pid), ""), number, oldest))
    return found


def _expiring_leases(journal: Readable, at: float) -> list[ExpiringLease]:
    rows = journal.read(_LEASES, (at + EXPIRING_SECONDS, MAX_LEASES))
    return [ExpiringLease(run, task, *_process(owner), lease - at) for run, task, owner, lease in rows]


def _embedded_queues(journal: Readable, at: float) -> list[Queue]:
    rows = journal.read(_WAITING, (at,))
    return [Queue("embedded", task, number, max(0.0, at - since)) for task, number, since in rows]


def _engine_queues(alive: Iterable[Executor]) -> Iterator[Queue]:
    """Yield the queues of other engines, whose workers report them in their heartbeats; the latest report counts."""
    latest: dict[tuple[str, str], Queue] = {}
    others = [each for each in alive if each.engine != "embedded"]  # its queues are in the journal
    for executor in sorted(others, key=lambda each: each.heartbeat):
        for queue in executor.detail.get("queues") or ():
            if isinstance(queue, dict) and "name" in queue:
                waiting, lag = int(queue.get("waiting") or 0), float(queue.get("lag") or 0.0)
                name = str(queue["name"])
                latest[executor.engine, name] = Queue(executor.engine, name, waiting, lag)
    yield from sorted(latest.values())


def _limits(journal: Readable) -> Iterator[SharedLimitUse]:
    """Yield the shared limits as of their last exchange; leave out what another version writes in another way."""
    for topic, text in journal.read(_SHARED):
        for name, use in sorted(json.loads(text).get("limits", {}).items()):
            with suppress(KeyError, TypeError, ValueError, AttributeError):
                leases = [Lease(*row[: len(Lease._fields)]) for row in use["leases"].values()]
                out = sum(lease.out for lease in leases)
                yield SharedLimitUse(topic.removeprefix("shared/"), name, float(use["used"]), out, len(leases))


def _process(owner: str) -> tuple[str, int]:
    """Return the host and the PID of a stored owner; nobody if there is none or it cannot be read."""
    try:
        host, _, _, pid, _ = json.loads(owner)
        return str(host), int(pid)
    except (ValueError, TypeError):
        return "", 0


def overview_json(overview: FleetOverview) -> dict[str, Any]:
    """Return an overview as JSON values, for the command line and the service."""
    owned: Counter[str] = Counter()
    for runs in overview.runs:
        owned[runs.executor] += runs.open
    return {
        "at": overview.at,
        "executors": [_executor_json(each, overview.at, owned[each.id]) for each in overview.executors],
        "runs": [each._asdict() for each in overview.runs],
        "leases": [each._asdict() for each in overview.leases],
        "queues": [each._asdict() for each in overview.queues],
        "versions": [each._asdict() for each in overview.versions],
        "limits": [each._asdict() for each in overview.limits],
    }


def _executor_json(executor: Executor, at: float, owned: int) -> dict[str, Any]:
    """Return an executor; its runs are those it reports, or those of the journal that it owns."""
    names = ("id", "role", "host", "pid", "version", "engine", "state", "health", "started_at", "heartbeat", "lease")
    detail = executor.detail
    queues = [str(each.get("name")) if isinstance(each, dict) else str(each) for each in detail.get("queues") or ()]
    return {
        **{name: getattr(executor, name) for name in names},
        "age": max(0.0, at - executor.heartbeat),
        "runs": _count(detail.get("runs")) or owned,
        "requests": _count(detail.get("requests")),
        "queues": queues,
    }


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
