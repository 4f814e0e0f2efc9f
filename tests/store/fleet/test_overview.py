"""Overview of a fleet, in both stores."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rung.core.policy.slices import SharedLimit, SliceRequest
from rung.store import messages
from rung.store.durable_runs import DurableRunStore
from rung.store.fleet.executors import Executor, ExecutorRole, announce, beat, new_executor
from rung.store.fleet.overview import (
    EXPIRING_SECONDS,
    Queue,
    SharedLimitUse,
    VersionCount,
    load_overview,
    overview_json,
)
from rung.store.fleet.slices import FleetReport, LimitRequest, exchange

if TYPE_CHECKING:
    from rung.store.journal.journal import Journal

HERE = (socket.gethostname(), os.getpid())


def _executor(role: ExecutorRole, **changes: object) -> Executor:
    return replace(new_executor(role), **changes)  # type: ignore[arg-type]  # any field


def test_an_empty_fleet(journal: Journal) -> None:
    """A journal without a fleet has an overview in which everything is empty."""
    assert overview_json(load_overview(journal, 1000.0)) == {
        "at": 1000.0, "executors": [], "runs": [], "leases": [], "queues": [], "versions": [], "limits": [],
    }  # fmt: skip


def test_runs_are_counted_by_task_and_owner(journal: Journal) -> None:
    """Open runs are grouped by task and owner, the owner is found among the executors, and ended runs do not count."""
    mine = announce(journal, new_executor(ExecutorRole.WORKER), 1000.0)
    runs = DurableRunStore(journal, now=lambda: 1000.0)
    for name in ("a", "b"):
        runs.claim(name, "report", {})
    runs.claim("c", "report", {}).finish({"status": "succeeded", "value": 1})
    runs.submit("d", "report", {})
    runs.claim("e")
    assert load_overview(journal, 1001.0).runs == [
        ("", *HERE, mine.id, 1, 1000.0),
        ("report", "", 0, "", 1, 1000.0),
        ("report", *HERE, mine.id, 2, 1000.0),
    ]
    assert [each["runs"] for each in overview_json(load_overview(journal, 1001.0))["executors"]] == [3]


def test_the_lag_is_that_of_the_oldest_run_without_a_worker(journal: Journal) -> None:
    """A submitted run waits since then, one whose lease expired since its expiry; recoveries wait for no worker."""
    clock = [1000.0]
    runs = DurableRunStore(journal, lease=30.0, now=lambda: clock[0])
    runs.submit("old", "report", {})
    runs.claim("held", "mail", {})
    runs.claim("recovery").release()
    clock[0] = 1010.0
    runs.submit("new", "report", {})
    assert load_overview(journal, 1020.0).queues == [Queue("embedded", "report", 2, 20.0)]
    assert load_overview(journal, 1035.0).queues == [
        Queue("embedded", "mail", 1, 5.0),
        Queue("embedded", "report", 2, 35.0),
    ]


def test_leases_that_were_not_renewed_are_listed(journal: Journal) -> None:
    """A lease is listed when its owner is late to renew it, and stays listed after it expired; the first to expire first."""
    clock = [1000.0]
    runs = DurableRunStore(journal, lease=30.0, now=lambda: clock[0])
    runs.claim("first", "report", {})
    clock[0] = 1005.0
    runs.claim("second", "report", {})
    assert load_overview(journal, 1030.0 - EXPIRING_SECONDS).leases == []
    late = load_overview(journal, 1032.0).leases
    assert [(each.run, each.host, each.pid, each.expires_in) for each in late] == [
        ("first", *HERE, -2.0),
        ("second", *HERE, 3.0),
    ]


def test_versions_side_by_side(journal: Journal) -> None:
    """During a rolling restart both versions are counted, without dead executors."""
    for version, at in (("1.0", 1000.0), ("1.1", 1000.0), ("1.1", 1000.0), ("0.9", 100.0)):
        announce(journal, _executor(ExecutorRole.WORKER, version=version), at)
    assert load_overview(journal, 1001.0).versions == [VersionCount("1.0", 1), VersionCount("1.1", 2)]


def test_queues_of_other_engines_are_those_that_workers_report(journal: Journal) -> None:
    """The latest report about a queue counts, a dead worker's does not, and a mere name is no report."""
    old, new, dead = (announce(journal, _executor(ExecutorRole.WORKER, engine="dbos"), 1000.0) for _ in range(3))
    beat(journal, replace(dead, detail={"queues": [{"name": "gone", "waiting": 9}]}), 500.0)
    beat(journal, replace(old, detail={"queues": [{"name": "rung", "waiting": 7, "lag": 3.5}]}), 1001.0)
    beat(
        journal, replace(new, detail={"runs": 1, "queues": ["plain", {"name": "rung", "waiting": 2, "lag": 1}]}), 1002.0
    )
    overview = load_overview(journal, 1003.0)
    assert overview.queues == [Queue("dbos", "rung", 2, 1.0)]
    shown = {each["id"]: each for each in overview_json(overview)["executors"]}
    assert (shown[new.id]["queues"], shown[new.id]["runs"], shown[new.id]["age"]) == (["plain", "rung"], 1, 1.0)
    assert shown[dead.id]["health"] == "dead"
    json.dumps(shown)


def test_shared_limits_show_what_is_out_in_slices(journal: Journal) -> None:
    """A limit shows what was used and what its holders have leased, as the processes exchange it."""
    request = SliceRequest(number=1, used=2.0, acknowledged=0.0, keeps=2.0, need=1.0, want=3.0)
    report = FleetReport(number=1, limits={"dollars": LimitRequest(SharedLimit(amount=100.0), request)})
    lease = exchange(journal, "main", "holder-1", report, 1000.0).leases["dollars"]
    messages.send(journal, "shared/newer", {"limits": {"odd": "of another version"}}, 1000.0)
    assert lease.out > 0
    assert load_overview(journal, 1001.0).limits == [SharedLimitUse("main", "dollars", 2.0, lease.out, 1)]


def test_the_clock_is_that_of_the_database(postgres_journal: Journal) -> None:
    """Without a given time, the overview is as of now."""
    announce(postgres_journal, new_executor(ExecutorRole.SERVICE))
    overview = load_overview(postgres_journal)
    assert abs(overview.at - time.time()) < 3600
    assert [each.health.value for each in overview.executors] == ["live"]
