"""The fleet route: what it says, and who may ask."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rung.store.fleet.executors import ExecutorRole, announce, beat, drain, new_executor

if TYPE_CHECKING:
    from tests.service.conftest import Running


def test_a_journal_without_a_fleet(service: Running) -> None:
    """Without executors every list is empty."""
    found = service.get("/api/fleet")
    assert {name for name, value in found.items() if value == []} == found.keys() - {"at"}


def test_the_fleet_of_a_journal(service: Running) -> None:
    """Executors, runs, queues, versions and orders to drain are those of the journal."""
    worker = announce(service.journal, new_executor(ExecutorRole.WORKER, engine="dbos"))
    beat(service.journal, replace(worker, detail={"runs": 3, "queues": ["rung.report"]}))
    old = announce(service.journal, replace(new_executor(ExecutorRole.GATEWAY), version="0.0.9"))
    drain(service.journal, old.id)
    service.journal.runs.submit("r1", "report", {})
    found = service.get("/api/fleet")
    shown = {each["id"]: each for each in found["executors"]}
    assert (shown[worker.id]["runs"], shown[worker.id]["queues"]) == (3, ["rung.report"])
    assert (shown[worker.id]["health"], shown[worker.id]["state"]) == ("live", "live")
    assert (shown[old.id]["state"], shown[old.id]["startedAt"]) == ("draining", old.started_at)
    assert {each["version"]: each["executors"] for each in found["versions"]} == {worker.version: 1, "0.0.9": 1}
    assert [(each["name"], each["waiting"]) for each in found["queues"]] == [("report", 1)]
    assert [(each["task"], each["open"]) for each in found["runs"]] == [("report", 1)]


def test_who_may_see_the_fleet(service: Running) -> None:
    """A reader may see the fleet, and nobody without a token."""
    assert service.client(service.token("read")).get("/api/fleet").status_code == 200
    assert service.client().get("/api/fleet").status_code == 401
